//! Figures of a sample that know how large it is.

use serde::Serialize;

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
    fn fairness_is_one_for_equal_shares() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[]), None);
    }
}
