//! Candidate against baseline by paired passes. Pure.

use super::record::{Comparison, ComparisonVerdict};

/// A difference below this share of the baseline says nothing.
const LEAST_SHARE: f64 = 0.03;

/// A metric that is compared.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name in records.
    pub name: &'static str,
    /// Smaller is better.
    pub lower_is_better: bool,
}

/// The metrics that are compared, in the order of tables.
pub const METRICS: [Metric; 4] = [
    Metric { name: "ttft_p50_ms", lower_is_better: true },
    Metric { name: "tpot_p50_ms", lower_is_better: true },
    Metric { name: "e2e_p50_ms", lower_is_better: true },
    Metric { name: "output_tokens_per_s", lower_is_better: false },
];

/// Compares the passes of the same repeats. `client_error` is the client's own error on
/// this metric, in its unit.
pub fn compare(
    metric: Metric,
    baseline: &str,
    candidate: &str,
    pairs: Vec<[f64; 2]>,
    client_error: Option<f64>,
) -> Comparison {
    let differences: Vec<f64> = pairs.iter().map(|[theirs, ours]| ours - theirs).collect();
    let difference = mean(&differences);
    let base = mean(&pairs.iter().map(|[theirs, _]| *theirs).collect::<Vec<_>>());
    let interval = difference.and_then(|mean| half_width(&differences).map(|half| [mean - half, mean + half]));
    let threshold = base.map(|base| (LEAST_SHARE * base.abs()).max(client_error.unwrap_or(0.0).abs()));
    Comparison {
        baseline: baseline.to_owned(),
        candidate: candidate.to_owned(),
        metric: metric.name.to_owned(),
        better: if metric.lower_is_better { "lower" } else { "higher" }.to_owned(),
        verdict: verdict(metric, difference, interval, threshold),
        relative: difference.zip(base).and_then(|(difference, base)| (base != 0.0).then(|| difference / base)),
        pairs,
        difference,
        interval,
        threshold,
    }
}

fn verdict(
    metric: Metric,
    difference: Option<f64>,
    interval: Option<[f64; 2]>,
    threshold: Option<f64>,
) -> ComparisonVerdict {
    let (Some(difference), Some([low, high]), Some(threshold)) = (difference, interval, threshold) else {
        return ComparisonVerdict::Unclear;
    };
    let excludes_zero = low > 0.0 || high < 0.0;
    if !excludes_zero || difference.abs() <= threshold {
        ComparisonVerdict::Unclear
    } else if (difference < 0.0) == metric.lower_is_better {
        ComparisonVerdict::Better
    } else {
        ComparisonVerdict::Worse
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Half of the 95 % interval of a mean, by Student's t; `None` below three values.
fn half_width(values: &[f64]) -> Option<f64> {
    let (n, mean) = (values.len(), mean(values)?);
    if n < 3 {
        return None;
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
    Some(student(n - 1) * (variance / n as f64).sqrt())
}

/// The 0.975 quantile of Student's t with `freedom` degrees of freedom, by table up to
/// 30, then by the first terms of its expansion around the normal quantile.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    const NORMAL: f64 = 1.959_964;
    match TABLE.get(freedom.saturating_sub(1)) {
        Some(value) => *value,
        None => NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * freedom as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: Metric = METRICS[0];
    const THROUGHPUT: Metric = METRICS[3];

    #[test]
    fn a_clear_gain_is_better_and_a_clear_loss_is_worse() {
        let pairs = vec![[100.0, 80.0], [102.0, 81.0], [98.0, 79.0]];
        let found = compare(LATENCY, "a", "b", pairs.clone(), None);
        assert_eq!((found.difference, found.verdict), (Some(-20.0), ComparisonVerdict::Better));
        assert!((found.relative.unwrap() + 0.2).abs() < 1e-9);
        let [low, high] = found.interval.unwrap();
        // Differences -20, -21, -19: s = 1, half = 4.303 / sqrt(3).
        assert!((low + 22.484).abs() < 1e-3 && (high + 17.516).abs() < 1e-3);
        assert_eq!(compare(THROUGHPUT, "a", "b", pairs, None).verdict, ComparisonVerdict::Worse);
    }

    #[test]
    fn noise_a_small_difference_and_the_clients_own_error_are_unclear() {
        let verdict = |pairs: Vec<[f64; 2]>, error| compare(LATENCY, "a", "b", pairs, error).verdict;
        assert_eq!(verdict(vec![[100.0, 80.0], [100.0, 125.0], [100.0, 90.0]], None), ComparisonVerdict::Unclear);
        assert_eq!(verdict(vec![[100.0, 98.0], [100.0, 98.1], [100.0, 97.9]], None), ComparisonVerdict::Unclear, "2 %");
        let clear = vec![[100.0, 90.0], [100.0, 90.1], [100.0, 89.9]];
        assert_eq!(verdict(clear.clone(), None), ComparisonVerdict::Better);
        assert_eq!(verdict(clear, Some(12.0)), ComparisonVerdict::Unclear);
        assert_eq!(verdict(vec![[100.0, 50.0], [100.0, 50.0]], None), ComparisonVerdict::Unclear, "two pairs");
        assert_eq!(verdict(Vec::new(), None), ComparisonVerdict::Unclear);
    }

    #[test]
    fn students_quantile_falls_towards_the_normal_one() {
        let values: Vec<f64> = (1..200).map(student).collect();
        assert!(values.windows(2).all(|pair| pair[1] < pair[0] + 5e-4));
        assert!((student(40) - 2.0211).abs() < 1e-2 && (student(199) - 1.972).abs() < 1e-3);
    }
}
