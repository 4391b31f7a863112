//! The client's own error on this machine: it measures a server in this process that
//! sends at known times, and the difference is its own.

use super::load::{Load, Session, Shape, Unheard};
use super::metrics::RequestFigures;
use super::stats::Spread;
use super::truth::{MARK, Schedule, Truth, TruthServer};
use crate::client::{Asked, ChatRequest, Endpoint, RequestTrace, Run};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The schedule of the short check before a measured run.
pub const SHORT: Schedule = Schedule { ttft: Duration::from_millis(40), itl: Duration::from_millis(10), tokens: 12 };
/// The schedule of `verify calibrate`.
pub const LONG: Schedule = Schedule { ttft: Duration::from_millis(100), itl: Duration::from_millis(20), tokens: 64 };

/// Largest error of a mean or median that still counts as none: milliseconds, or share
/// of the figure, whichever is larger.
pub const CENTRE_LIMIT: (f64, f64) = (0.5, 0.01);
/// The same for a 99th percentile (the maximum, where there are too few values for one).
pub const TAIL_LIMIT: (f64, f64) = (3.0, 0.02);

/// The client's error on one metric: what it measured minus what the server did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricError {
    /// True mean, ms.
    pub true_mean_ms: f64,
    /// Error of the mean, ms.
    pub mean_ms: f64,
    /// Error of the median, ms.
    pub p50_ms: f64,
    /// Error of the 99th percentile, ms; of the maximum, where n < 100.
    pub tail_ms: f64,
    /// Values.
    pub n: usize,
    /// All three are within their limits.
    pub within: bool,
}

impl MetricError {
    fn of(measured: &[f64], truth: &[f64]) -> Option<Self> {
        let (ours, theirs) = (Spread::of(measured)?, Spread::of(truth)?);
        let tail = |spread: &Spread| spread.percentile("p99").unwrap_or(spread.max);
        let p50 = |spread: &Spread| spread.percentile("p50").unwrap_or(spread.mean);
        let within = |ours: f64, theirs: f64, (ms, share): (f64, f64)| (ours - theirs).abs() <= ms.max(theirs * share);
        Some(MetricError {
            true_mean_ms: theirs.mean,
            mean_ms: ours.mean - theirs.mean,
            p50_ms: p50(&ours) - p50(&theirs),
            tail_ms: tail(&ours) - tail(&theirs),
            n: ours.n,
            within: within(ours.mean, theirs.mean, CENTRE_LIMIT)
                && within(p50(&ours), p50(&theirs), CENTRE_LIMIT)
                && within(tail(&ours), tail(&theirs), TAIL_LIMIT),
        })
    }
}

/// The error at one concurrency, as it is stored with a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientError {
    /// Streams at once.
    pub concurrency: u32,
    /// Answers measured.
    pub requests: usize,
    /// Time to first token.
    pub ttft: Option<MetricError>,
    /// Gaps between tokens.
    pub itl: Option<MetricError>,
    /// End-to-end latency.
    pub e2e: Option<MetricError>,
    /// Every error is within the limits (mean and median 0.5 ms or 1 %, tail 3 ms or
    /// 2 %); a result measured by a client beyond them carries no `accept`.
    pub within_limits: bool,
}

impl ClientError {
    /// Differences of means below this say nothing: the client's own error on TTFT, ms.
    pub fn bound_ms(&self) -> Option<f64> {
        self.ttft.map(|error| error.mean_ms.abs().max(error.p50_ms.abs()))
    }
}

/// Measures the error at `concurrency`, `rounds` answers per stream. `None`: no answer
/// came, which is an error beyond any limit.
///
/// # Errors
/// The server in this process cannot be started.
pub async fn calibrate(concurrency: u32, rounds: u32, schedule: Schedule) -> std::io::Result<ClientError> {
    let epoch = Instant::now();
    let server = TruthServer::start(schedule, epoch)?;
    let endpoint = Endpoint::new(&server.base_url(), None).map_err(std::io::Error::other)?;
    let sessions = (0..concurrency.max(1) * rounds.max(1)).map(|index| {
        let name = format!("c{index}");
        Session::from(ChatRequest::prompt(&name, &format!("{MARK}{name} "), schedule.tokens))
    });
    let load = Load {
        run: Run {
            endpoint: Arc::new(endpoint),
            model: "calibration".into(),
            epoch,
            timeout: Duration::from_secs(20),
            asked: Asked::default(),
        },
        sessions: sessions.collect(),
        shape: Shape::Closed { concurrency },
        retries: 0,
        cancel: None,
    };
    let traces = load.execute(Arc::new(Unheard)).await;
    let pairs: Vec<(RequestTrace, Truth)> = traces
        .into_iter()
        .filter(RequestTrace::succeeded)
        .filter_map(|trace| server.truth(&trace.id).map(|truth| (trace, truth)))
        .collect();
    Ok(error_of(concurrency, &pairs))
}

/// Answers per stream of the short check: enough values even for one stream.
pub fn short_rounds(concurrency: u32) -> u32 {
    if concurrency < 4 { 3 } else { 1 }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn error_of(concurrency: u32, pairs: &[(RequestTrace, Truth)]) -> ClientError {
    let gaps = |times: &mut dyn Iterator<Item = Duration>| -> Vec<f64> {
        let times: Vec<Duration> = times.collect();
        times.windows(2).map(|pair| ms(pair[1].saturating_sub(pair[0]))).collect()
    };
    let figures: Vec<RequestFigures> = pairs.iter().filter_map(|(trace, _)| RequestFigures::of(trace)).collect();
    let true_since = |pick: fn(&Truth) -> Option<&Duration>| -> Vec<f64> {
        pairs.iter().filter_map(|(_, truth)| Some(ms(pick(truth)?.saturating_sub(truth.arrived)))).collect()
    };
    let column = |pick: fn(&RequestFigures) -> f64| -> Vec<f64> { figures.iter().map(pick).collect() };
    let our_gaps: Vec<f64> =
        pairs.iter().flat_map(|(trace, _)| gaps(&mut trace.chunks.iter().map(|chunk| chunk.at))).collect();
    let true_gaps: Vec<f64> = pairs.iter().flat_map(|(_, truth)| gaps(&mut truth.written.iter().copied())).collect();
    let ttft = MetricError::of(&column(|one| one.ttft_ms), &true_since(|truth| truth.written.first()));
    let itl = MetricError::of(&our_gaps, &true_gaps);
    let e2e = MetricError::of(&column(|one| one.e2e_ms), &true_since(|truth| truth.written.last()));
    ClientError {
        concurrency,
        requests: pairs.len(),
        within_limits: [ttft, itl, e2e].iter().all(|error| error.is_some_and(|error| error.within)),
        ttft,
        itl,
        e2e,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_judged_by_the_larger_limit() {
        let error = |shift: f64| MetricError::of(&[100.0 + shift, 100.0 + shift], &[100.0, 100.0]).unwrap();
        assert!(error(0.9).within, "1 % of 100 ms is more than 0.5 ms");
        assert!(!error(1.1).within);
        assert_eq!(error(-2.0).mean_ms, -2.0);
    }

    #[test]
    fn the_client_measures_the_server_of_this_process() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let error = runtime.block_on(calibrate(4, 2, SHORT)).unwrap();
        assert_eq!((error.requests, error.concurrency), (8, 4));
        let ttft = error.ttft.unwrap();
        // Loose, since tests run beside one another: it is the right clock, not a good machine, that is tested.
        assert!(ttft.true_mean_ms >= 40.0 && ttft.mean_ms.abs() < 20.0, "{error:?}");
        assert_eq!(error.itl.unwrap().n, 8 * 11);
    }
}
