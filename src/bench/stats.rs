//! Figures of a sample that know how large it is.

use crate::results::v1::Latency;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Samples below this carry no P99 (`null`); see the evidence rules.
pub const P99_MIN: usize = 100;
/// Samples below this carry no P95: the one-sided 95 % bound, ln(0.05)/ln(0.95).
pub const P95_MIN: usize = 59;
/// Samples below this carry no P90: ln(0.05)/ln(0.9).
pub const P90_MIN: usize = 29;

/// A distribution of one metric, in the unit of the metric. Percentiles interpolate
/// linearly between order statistics (R-7, as numpy does); one that the sample cannot
/// carry is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Distribution {
    /// Size of the sample.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile, from n = 29.
    pub p90: Option<f64>,
    /// 95th percentile, from n = 59.
    pub p95: Option<f64>,
    /// 99th percentile, from n = 100.
    pub p99: Option<f64>,
    /// Largest.
    pub max: f64,
}

impl Distribution {
    /// Of a sample; `None` when it is empty.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len();
        let from = |needed: usize, q: f64| (n >= needed).then(|| quantile(&sorted, q));
        Some(Distribution {
            n,
            mean: sorted.iter().sum::<f64>() / n as f64,
            min,
            p50: quantile(&sorted, 0.5),
            p90: from(P90_MIN, 0.9),
            p95: from(P95_MIN, 0.95),
            p99: from(P99_MIN, 0.99),
            max,
        })
    }
}

/// How percentiles are taken, as every report states it.
pub const METHOD: &str = "exact samples, linear interpolation between order statistics (R-7); \
                          intervals: order statistics by binomial ranks, two-sided 95 %";

/// The percentiles that a report shows: name, quantile, samples from which it is shown.
pub const PERCENTILES: [(&str, f64, usize); 4] =
    [("p50", 0.5, 1), ("p90", 0.9, P90_MIN), ("p95", 0.95, P95_MIN), ("p99", 0.99, P99_MIN)];

/// A distribution as a report shows it: what the sample cannot carry is absent, and the
/// range stands beside it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// Size of the sample.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample; from two values.
    pub stddev: Option<f64>,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Percentiles by name; null: the sample cannot carry it.
    pub percentiles: BTreeMap<&'static str, Option<f64>>,
    /// 95 % confidence interval of each percentile, where the sample is large enough for one.
    pub intervals: BTreeMap<&'static str, [f64; 2]>,
    /// Percentiles that `n` cannot carry.
    pub unsupported: Vec<&'static str>,
}

impl Spread {
    /// Of a sample; `None` when it is empty.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len();
        let mean = sorted.iter().sum::<f64>() / n as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let carried = |from: usize| n >= from;
        Some(Spread {
            n,
            mean,
            stddev: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()),
            min,
            max,
            percentiles: PERCENTILES
                .into_iter()
                .map(|(name, q, from)| (name, carried(from).then(|| quantile(&sorted, q))))
                .collect(),
            intervals: PERCENTILES
                .into_iter()
                .filter_map(|(name, q, _)| ranks(n, q).map(|(low, high)| (name, [sorted[low], sorted[high]])))
                .collect(),
            unsupported: PERCENTILES.into_iter().filter(|(.., from)| !carried(*from)).map(|(name, ..)| name).collect(),
        })
    }

    /// A percentile by its name.
    pub fn percentile(&self, name: &str) -> Option<f64> {
        self.percentiles.get(name).copied().flatten()
    }
}

/// Ranks (from 0) whose order statistics enclose the quantile with 95 % confidence: at
/// most 2.5 % on either side by the binomial law. `None`: the sample is too small.
fn ranks(n: usize, q: f64) -> Option<(usize, usize)> {
    let tail = 0.025;
    // The number of values below the quantile is binomial; its probabilities by recursion
    // from the logarithm of the first, which stays finite for any n of ours.
    let (mut log, step) = (n as f64 * (1.0 - q).ln(), (q / (1.0 - q)).ln());
    let (mut sum, mut low, mut high) = (0.0, None, None);
    for k in 0..=n {
        let before = sum;
        sum += log.exp();
        // The largest k with P(fewer than k) small enough; the smallest with P(at most k) large enough.
        if k > 0 && before <= tail {
            low = Some(k - 1);
        }
        if high.is_none() && sum >= 1.0 - tail && k < n {
            high = Some(k);
        }
        log += ((n - k) as f64 / (k + 1) as f64).ln() + step;
    }
    Some((low?, high?))
}

/// The quantile over all requests when `failed` of them count as infinitely slow;
/// `None`: it lies among the failed ones, or there is no request.
pub fn with_failures(successes: &[f64], failed: usize, q: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = successes.to_vec();
    sorted.sort_by(f64::total_cmp);
    let total = sorted.len() + failed;
    let above = (q * total.checked_sub(1)? as f64).ceil() as usize;
    sorted.resize(total, f64::INFINITY);
    (above < successes.len()).then(|| quantile(&sorted, q))
}

impl From<Distribution> for Latency {
    fn from(known: Distribution) -> Self {
        Latency {
            n: Some(known.n as u64),
            mean: Some(known.mean),
            min: Some(known.min),
            p50: Some(known.p50),
            p90: known.p90,
            p95: known.p95,
            p99: known.p99,
            max: Some(known.max),
        }
    }
}

/// Linear interpolation between order statistics of a sorted, non-empty sample.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let position = q * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// Jain's fairness index, (Σx)² / (n·Σx²): 1 when all shares are equal, 1/n when one has all.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_sample_has_no_high_percentile() {
        let five = Distribution::of(&[5.0, 1.0, 3.0, 2.0, 4.0]).unwrap();
        assert_eq!((five.n, five.mean, five.min, five.p50, five.max), (5, 3.0, 1.0, 3.0, 5.0));
        assert_eq!((five.p90, five.p95, five.p99), (None, None, None));
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        let hundred = Distribution::of(&hundred).unwrap();
        assert!((hundred.p99.unwrap() - 99.01).abs() < 1e-9 && (hundred.p95.unwrap() - 95.05).abs() < 1e-9);
        assert_eq!(Distribution::of(&[]), None);
    }

    #[test]
    fn an_interval_is_given_from_the_sizes_of_the_binomial_law() {
        // Two-sided 95 %: 6 for the median, 36, 72 and 368 for the tail.
        for (q, least) in [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368)] {
            assert!(ranks(least - 1, q).is_none(), "{q}");
            assert!(ranks(least, q).is_some(), "{q}");
        }
        // Ten values: the 2nd to the 9th enclose the median with 97.9 %.
        assert_eq!(ranks(10, 0.5), Some((1, 8)));
        assert!(ranks(100_000, 0.99).is_some_and(|(low, high)| low < 99_000 && 99_000 < high));
    }

    #[test]
    fn a_spread_names_what_it_cannot_carry() {
        let eight = Spread::of(&[1.0; 8]).unwrap();
        assert_eq!(eight.unsupported, ["p90", "p95", "p99"]);
        assert_eq!((eight.percentile("p50"), eight.percentile("p99")), (Some(1.0), None));
    }

    #[test]
    fn a_failed_request_is_slower_than_any_other() {
        let six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(with_failures(&six, 2, 0.5), Some(4.5));
        assert_eq!(with_failures(&six, 2, 0.9), None);
        assert_eq!(with_failures(&[], 0, 0.5), None);
    }

    #[test]
    fn fairness_is_one_for_equal_shares() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[]), None);
    }
}
