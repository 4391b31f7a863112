//! What a report says in words beside its figures. Pure.

use super::metrics::{RequestFigures, TokensSource, counted, tokens_per_chunk};
use super::report::{BenchReport, Readings, cache, stalls, timed_out};
use super::stats::{PERCENTILES, Spread};
use crate::client::RequestTrace;
use crate::model::{Finding, Localized, Location, RepoPath};
use crate::rules::{Rule, bench as rules};
use std::collections::BTreeMap;

/// A first request this many times slower than the median is the cold one.
const COLD_FACTOR: f64 = 3.0;
/// Medians of the first and the last third further apart than this drift.
const DRIFT: f64 = 0.10;
/// Requests from which thirds are compared.
const DRIFT_FROM: usize = 15;
/// Values from which a P99 is given without a note.
const P99_FIRM: usize = 299;

/// Everything there is to say about a pass.
pub fn findings(report: &BenchReport, traces: &[RequestTrace], readings: &Readings, tolerated: f64) -> Vec<Finding> {
    let say = Say { base_url: &report.base_url };
    let good: Vec<&RequestTrace> = traces.iter().filter(|trace| trace.succeeded()).collect();
    let figures: Vec<RequestFigures> = good.iter().filter_map(|trace| RequestFigures::of(trace)).collect();
    let mut all = Vec::new();
    all.extend(failures(say, report, traces, tolerated));
    all.extend(percentiles(say, report));
    all.extend(tokens(say, report, &good, &figures));
    all.extend(order(say, &figures));
    all.extend(stream(say, report, &good));
    all.extend(server(say, report, readings));
    all.extend(client(say, report));
    all
}

#[derive(Clone, Copy)]
struct Say<'a> {
    base_url: &'a str,
}

impl Say<'_> {
    fn of(self, rule: &'static Rule) -> Finding {
        Finding::new(rule, Location::file(RepoPath::new(self.base_url)))
    }

    /// A finding with a count, when there is something to count.
    fn count(self, rule: &'static Rule, count: usize) -> Option<Finding> {
        (count > 0).then(|| self.of(rule).arg("count", count))
    }
}

fn failures(say: Say<'_>, report: &BenchReport, traces: &[RequestTrace], tolerated: f64) -> Vec<Finding> {
    let Some(first) = traces.iter().find_map(|trace| trace.fault.as_ref()) else { return Vec::new() };
    let kinds: Vec<String> = report.errors.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let rate = report.failure_rate.unwrap_or(1.0);
    let rule = if rate <= tolerated { &rules::FAILURES_TOLERATED } else { &rules::REQUESTS_FAILED };
    let failed = say
        .of(rule)
        .arg("failed", report.failed)
        .arg("total", traces.len())
        .arg("kinds", kinds.join(", "))
        .arg("first", &first.message);
    let censored = traces.iter().filter(|trace| timed_out(trace)).count();
    let limit = report.load.timeout_s * 1000.0;
    let censored = say.count(&rules::CENSORED, censored).map(|finding| finding.arg("limit", limit));
    let unbounded = PERCENTILES.into_iter().find(|(name, ..)| {
        let alone = report.distributions.get("e2e").is_none_or(|spread| spread.n > 0);
        alone && super::stats::with_failures(&vec![0.0; report.successful], report.failed, quantile(name)).is_none()
    });
    let unbounded = unbounded.map(|(name, ..)| {
        say.of(&rules::UNBOUNDED).arg("first", name).arg("failed", report.failed).arg("total", traces.len())
    });
    [Some(failed), censored, unbounded].into_iter().flatten().collect()
}

fn quantile(name: &str) -> f64 {
    PERCENTILES.into_iter().find(|(known, ..)| *known == name).map_or(0.5, |(_, q, _)| q)
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[&str]) -> Localized {
    let en = match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    };
    Localized::both(en, names.join("、"))
}

fn percentiles(say: Say<'_>, report: &BenchReport) -> Option<Finding> {
    let spread = report.distributions.get("ttft")?;
    if !spread.unsupported.is_empty() {
        return Some(say.of(&rules::PERCENTILES).arg("list", listed(&spread.unsupported)).arg("n", spread.n));
    }
    (spread.n < P99_FIRM).then(|| say.of(&rules::P99_THIN).arg("n", spread.n))
}

fn tokens(say: Say<'_>, report: &BenchReport, good: &[&RequestTrace], figures: &[RequestFigures]) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut implausible: BTreeMap<String, usize> = BTreeMap::new();
    for detail in good.iter().filter_map(|trace| counted(trace).implausible) {
        *implausible.entry(detail).or_default() += 1;
    }
    let worst = implausible.iter().max_by_key(|(_, count)| **count);
    all.extend(worst.map(|(detail, _)| {
        say.of(&rules::USAGE_INCONSISTENT).arg("detail", detail).arg("count", implausible.values().sum::<usize>())
    }));
    if report.tokens_source == TokensSource::Chunks {
        all.push(say.of(&rules::TOKENS_BY_CHUNKS));
    }
    let unknown = |trace: &&&RequestTrace| {
        counted(trace).source == TokensSource::Usage && trace.chunks.len() > 1 && tokens_per_chunk(trace).is_none()
    };
    if good.iter().any(|trace| unknown(&trace)) {
        all.push(say.of(&rules::FIRST_CHUNK));
    }
    let single = figures.iter().filter(|one| one.output_tokens == 1).count();
    all.extend(say.count(&rules::ONE_TOKEN, single));
    let lengths: Vec<u64> = figures.iter().map(|one| one.output_tokens).collect();
    if let (Some(least), Some(most)) = (lengths.iter().min(), lengths.iter().max())
        && (*most as f64) > 1.05 * (*least as f64)
    {
        all.push(say.of(&rules::OUTPUT_LENGTHS).arg("least", *least).arg("most", *most));
    }
    all
}

/// What the order of the requests tells: a cold first one, and drift.
fn order(say: Say<'_>, figures: &[RequestFigures]) -> Vec<Finding> {
    let median = |part: &[RequestFigures]| {
        let ttft: Vec<f64> = part.iter().map(|one| one.ttft_ms).collect();
        Spread::of(&ttft).and_then(|spread| spread.percentile("p50"))
    };
    let mut all = Vec::new();
    if let ([first, rest @ ..], Some(whole)) = (figures, median(figures))
        && !rest.is_empty()
        && first.ttft_ms > COLD_FACTOR * whole
    {
        let shown = |ms: f64| format!("{ms:.1}");
        all.push(say.of(&rules::COLD_MIXED).arg("first", shown(first.ttft_ms)).arg("median", shown(whole)));
    }
    let third = figures.len() / 3;
    if figures.len() >= DRIFT_FROM
        && let (Some(early), Some(late)) = (median(&figures[..third]), median(&figures[figures.len() - third..]))
        && early > 0.0
        && (late / early - 1.0).abs() > DRIFT
    {
        all.push(say.of(&rules::DRIFT).arg("percent", format!("{:+.0}", (late / early - 1.0) * 100.0)));
    }
    all
}

/// Oddities of the streams.
fn stream(say: Say<'_>, report: &BenchReport, good: &[&RequestTrace]) -> Vec<Finding> {
    let mut all = Vec::new();
    let early: Vec<f64> = good
        .iter()
        .filter_map(|trace| {
            let gap = trace.chunks.first()?.at.saturating_sub(trace.first_event?);
            Some(gap.as_secs_f64() * 1000.0)
        })
        .collect();
    let gap = Spread::of(&early).and_then(|spread| spread.percentile("p50")).unwrap_or(0.0);
    // A role chunk usually comes in the same segment as the first token.
    let ttft = report.latencies.get("ttft_ms").copied().flatten().unwrap_or(0.0);
    if gap > 1.0_f64.max(0.05 * ttft) {
        all.push(say.of(&rules::ROLE_CHUNK).arg("gap", format!("{gap:.1}")));
    }
    let icl: Vec<f64> = good.iter().flat_map(|trace| super::report::gaps(trace)).collect();
    let (count, limit) = stalls(&icl);
    let longest = icl.iter().copied().fold(0.0, f64::max);
    all.extend(
        say.count(&rules::STALLS, count)
            .map(|finding| finding.arg("limit", format!("{limit:.0}")).arg("longest", format!("{longest:.0}"))),
    );
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in good.iter().filter_map(|trace| trace.content_type.as_deref()) {
        *kinds.entry(if kind.is_empty() { "(none)" } else { kind }).or_default() += 1;
    }
    all.extend(
        kinds.into_iter().filter_map(|(kind, count)| {
            say.count(&rules::CONTENT_TYPE, count).map(|finding| finding.arg("kind", kind))
        }),
    );
    let count = |pick: fn(&RequestTrace) -> bool| good.iter().filter(|trace| pick(trace)).count();
    all.extend(say.count(&rules::NO_DONE, count(|trace| !trace.done)));
    all.extend(say.count(&rules::UTF8_REPLACED, count(|trace| trace.chunks.iter().any(|chunk| chunk.damaged))));
    all.extend(say.count(&rules::UNKNOWN_FIELD, count(|trace| trace.unknown_fields > 0)));
    all.extend(say.count(&rules::STALE_RETRY, usize::try_from(report.stale_retries).unwrap_or(usize::MAX)));
    all.extend(say.count(&rules::RETRIED, usize::try_from(report.retries).unwrap_or(usize::MAX)));
    all
}

/// What the server's counters tell.
fn server(say: Say<'_>, report: &BenchReport, readings: &Readings) -> Vec<Finding> {
    if report.successful == 0 {
        return Vec::new();
    }
    let mut all = vec![match cache(&readings.counted) {
        Some((hits, queries)) => say.of(&rules::CACHE_HITS).arg("hits", hits).arg("queries", queries),
        None => say.of(&rules::NO_CACHE_EVIDENCE),
    }];
    if let Some(counted) = readings.counted.get("generated_tokens")
        && report.failed == 0
        && report.tokens_source == TokensSource::Usage
        && (counted - report.output_tokens as f64).abs() > report.successful as f64
    {
        all.push(say.of(&rules::COUNTERS_DISAGREE).arg("counted", *counted).arg("answered", report.output_tokens));
    }
    all
}

/// What this client did wrong itself.
fn client(say: Say<'_>, report: &BenchReport) -> Vec<Finding> {
    let mut all = Vec::new();
    if let Some(error) = report.client_error.as_ref().filter(|error| !error.within_limits) {
        let parts = [("TTFT", error.ttft), ("ITL", error.itl), ("E2E", error.e2e)];
        let detail: Vec<String> = parts
            .into_iter()
            .filter_map(|(name, error)| Some((name, error.filter(|error| !error.within)?)))
            .map(|(name, error)| {
                format!("{name} mean {:+.2}, P50 {:+.2}, tail {:+.2} ms", error.mean_ms, error.p50_ms, error.tail_ms)
            })
            .collect();
        let detail = if detail.is_empty() { "no answer came".to_owned() } else { detail.join("; ") };
        all.push(say.of(&rules::CLIENT_ERROR).arg("detail", detail));
    }
    // Without a success there is no figure that waiting could disturb.
    if let Some(starved) = report.starvation.filter(|starvation| starvation.starved && report.successful > 0) {
        let (wait, share) =
            (starved.run_queue_wait_ms.unwrap_or_default(), starved.run_queue_wait_share.unwrap_or_default());
        all.push(
            say.of(&rules::STARVED).arg("wait", format!("{wait:.0}")).arg("percent", format!("{:.0}", share * 100.0)),
        );
    }
    all
}
