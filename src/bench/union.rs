//! The figures of a load that several generators sent, from the union of their requests.
//! Pure.

use super::meeting::difference;
use super::notes;
use super::part::{Header, Part};
use super::report::{BenchReport, Readings};
use super::stats::Spread;
use crate::client::RequestTrace;
use crate::model::{Finding, Localized, Location, RepoPath};
use crate::rules::bench as rules;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// Figures that say when things happened relative to each other: they need one clock.
/// All others are lengths within one request, each taken from one clock alone.
pub const NEED_COMMON_CLOCK: [&str; 9] = [
    "duration_s",
    "output_tokens_per_s",
    "requests_per_s",
    "steady_output_tokens_per_s",
    "steady_window_s",
    "goodput_requests_per_s",
    "tenants.output_tokens_per_s",
    "merged.in_flight",
    "merged.overlap",
];
/// Share of the window during which all generators should be sending.
const TOGETHER: f64 = 0.9;
/// Share of the window by which its length may be uncertain without a word.
const UNCERTAIN: f64 = 0.01;
/// A wall clock that is further off than this is worth a word, ms.
const WALL_OFF_MS: f64 = 1000.0;

/// What a report says of a load that several generators sent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Merged {
    /// The generators, in order of their parts.
    pub generators: Vec<Generator>,
    /// Figures that need the clocks of the generators to be known to each other; the others
    /// are lengths within a request, taken from one clock.
    pub needs_common_clock: Vec<&'static str>,
    /// Times of two generators can be wrong by this towards each other, ms; null: nobody knows.
    pub clock_uncertainty_ms: Option<f64>,
    /// How far rates of the window can be wrong by that, as a share.
    pub rate_uncertainty: Option<f64>,
    /// Requests in flight, all generators together, mean over the window.
    pub in_flight_mean: Option<f64>,
    /// Most requests in flight at a time.
    pub in_flight_max: Option<usize>,
    /// Seconds during which every generator was sending.
    pub overlap_s: Option<f64>,
    /// That over the whole window.
    pub overlap_share: Option<f64>,
}

/// One generator of a load.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Generator {
    /// Its part, from 1.
    pub part: usize,
    /// Its requests.
    pub requests: usize,
    /// Those that failed.
    pub failed: usize,
    /// Mean time to first token of its requests, ms.
    pub ttft_ms: Option<f64>,
    /// How far its wall clock is ahead of that of part 1, ms.
    pub wall_clock_ahead_ms: Option<f64>,
    /// Its times can be wrong by this towards those of part 1, ms.
    pub uncertainty_ms: Option<f64>,
    /// How much faster the clock of part 1 ran beside its own, parts per million.
    pub drift_ppm: Option<f64>,
    /// Its first request, seconds after the agreed start.
    pub began_s: Option<f64>,
    /// Its last answer, seconds after the agreed start.
    pub ended_s: Option<f64>,
    /// Its own error on the mean time to first token, ms.
    pub client_error_ttft_ms: Option<f64>,
    /// It waited for a core so long that its latencies are not the server's alone.
    pub starved: Option<bool>,
}

/// The whole.
#[derive(Debug)]
pub struct Whole {
    /// Its figures.
    pub report: BenchReport,
    /// What there is to say.
    pub findings: Vec<Finding>,
}

/// Checks that the parts are those of one load, each once.
///
/// # Errors
/// What is wrong, naming the parts.
pub fn check(parts: &[Part]) -> Result<(), Localized> {
    let Some((first, others)) = parts.split_first() else { return Ok(()) };
    let ours = first.header.identity();
    for other in others {
        let (a, b) = (first.header.part, other.header.part);
        let theirs = other.header.identity();
        if let Some(name) = difference(&ours, &theirs) {
            let (x, y) = (&ours[&name], &theirs[&name]);
            return Err(Localized::both(
                format!("not the same load: `{name}` is {x} in part {a} and {y} in part {b}"),
                format!("不是同一份负载：`{name}` 在第 {a} 份为 {x}，在第 {b} 份为 {y}"),
            ));
        }
        if (&first.header.meeting, first.header.start_at_s) != (&other.header.meeting, other.header.start_at_s) {
            return Err(Localized::both(
                format!("parts {a} and {b} did not start together: they belong to two runs"),
                format!("第 {a} 份和第 {b} 份不是一起开始的：它们属于两次运行"),
            ));
        }
    }
    let mut seen = std::collections::BTreeMap::new();
    for part in parts.iter().filter(|part| !part.traces.is_empty()) {
        if let Some(before) = seen.insert(&part.digest, part.header.part) {
            let part = part.header.part;
            return Err(Localized::both(
                format!("parts {before} and {part} hold the same requests"),
                format!("第 {before} 份和第 {part} 份是同一批请求"),
            ));
        }
    }
    Ok(())
}

/// The figures of the whole. `stated`: what the wall clocks differ by at most, ms.
pub fn merge(mut parts: Vec<Part>, stated: Option<f64>) -> Option<Whole> {
    parts.sort_by_key(|part| part.header.part);
    let first = parts.first()?.header.clone();
    let uncertain: Option<Vec<f64>> = parts.iter().map(|part| uncertainty(part, stated)).collect();
    let merged = merged(&parts, uncertain.as_deref(), stated);
    let readings = readings(&parts);
    let headers: Vec<Header> = parts.iter().map(|part| part.header.clone()).collect();
    let mut traces: Vec<RequestTrace> = parts.into_iter().flat_map(|part| part.traces).collect();
    if uncertain.is_some() {
        traces.sort_by_key(begin);
    }
    let at = (first.base_url.as_str(), first.model.as_str(), first.endpoint);
    let mut report = BenchReport::of(at, first.load.clone(), first.goodput_targets_ms, &traces, &readings);
    report.merged = Some(merged);
    if uncertain.is_none() {
        forget_common_time(&mut report);
    }
    let mut findings = notes::findings(&report, &traces, &readings, first.tolerate_failures);
    if uncertain.is_none() {
        // What tells of an order, where none is known.
        findings.retain(|finding| ![rules::DRIFT.id, rules::COLD_MIXED.id].contains(&finding.rule.id));
    }
    findings.extend(about_clocks(&report, &headers));
    Some(Whole { report, findings })
}

fn uncertainty(part: &Part, stated: Option<f64>) -> Option<f64> {
    let length = part.traces.iter().map(|trace| trace.end).max().unwrap_or_default();
    let begin = part.traces.iter().map(begin).min().unwrap_or_default();
    part.header.uncertainty_ms(length.saturating_sub(begin).as_secs_f64() * 1000.0, stated)
}

fn begin(trace: &RequestTrace) -> Duration {
    if trace.sent.is_zero() { trace.scheduled } else { trace.sent }
}

fn merged(parts: &[Part], uncertain: Option<&[f64]>, stated: Option<f64>) -> Merged {
    let generators: Vec<Generator> = parts.iter().map(|part| generator(part, &parts[0].header, stated)).collect();
    let mut merged = Merged {
        generators,
        needs_common_clock: NEED_COMMON_CLOCK.to_vec(),
        clock_uncertainty_ms: None,
        rate_uncertainty: None,
        in_flight_mean: None,
        in_flight_max: None,
        overlap_s: None,
        overlap_share: None,
    };
    let Some(uncertain) = uncertain else { return merged };
    // Two generators are wrong towards each other by both their errors at most.
    let mut sorted = uncertain.to_vec();
    sorted.sort_by(f64::total_cmp);
    let apart: f64 = sorted.iter().rev().take(2).sum();
    merged.clock_uncertainty_ms = Some(apart);
    let spans = parts.iter().map(|part| part.traces.iter().map(|trace| (begin(trace), trace.end)).collect());
    let spans: Vec<Vec<(Duration, Duration)>> = spans.collect();
    let all: Vec<(Duration, Duration)> = spans.concat();
    let window = span(&all).map_or(0.0, |(from, to)| to.saturating_sub(from).as_secs_f64());
    if window > 0.0 {
        let busy: f64 = all.iter().map(|(begin, end)| end.saturating_sub(*begin).as_secs_f64()).sum();
        let overlap = overlap(&spans).as_secs_f64();
        merged.rate_uncertainty = Some(apart / 1000.0 / window);
        merged.in_flight_mean = Some(busy / window);
        merged.in_flight_max = Some(most_at_a_time(&all));
        merged.overlap_s = Some(overlap);
        merged.overlap_share = Some(overlap / window);
    }
    merged
}

/// How long every generator was sending.
fn overlap(spans: &[Vec<(Duration, Duration)>]) -> Duration {
    let each: Option<Vec<(Duration, Duration)>> = spans.iter().map(|spans| span(spans)).collect();
    let each = each.unwrap_or_default();
    let latest = each.iter().map(|(begin, _)| *begin).max().unwrap_or_default();
    let earliest = each.iter().map(|(_, end)| *end).min().unwrap_or_default();
    earliest.saturating_sub(latest)
}

/// First begin and last end.
fn span(spans: &[(Duration, Duration)]) -> Option<(Duration, Duration)> {
    Some((spans.iter().map(|(begin, _)| *begin).min()?, spans.iter().map(|(_, end)| *end).max()?))
}

/// Most spans that cover one moment; one that ends as another begins is over.
fn most_at_a_time(spans: &[(Duration, Duration)]) -> usize {
    let begins = spans.iter().map(|(begin, _)| (*begin, 1i64));
    let ends = spans.iter().map(|(_, end)| (*end, -1i64));
    let mut events: Vec<(Duration, i64)> = begins.chain(ends).collect();
    events.sort_unstable();
    let (_, most) = events.into_iter().fold((0i64, 0i64), |(now, most), (_, step)| {
        let now = now + step;
        (now, most.max(now))
    });
    usize::try_from(most).unwrap_or(0)
}

fn generator(part: &Part, first: &Header, stated: Option<f64>) -> Generator {
    let header = &part.header;
    let good: Vec<f64> = part
        .traces
        .iter()
        .filter(|trace| trace.succeeded())
        .filter_map(|trace| Some(trace.chunks.first()?.at.saturating_sub(trace.sent).as_secs_f64() * 1000.0))
        .collect();
    let spans: Vec<(Duration, Duration)> = part.traces.iter().map(|trace| (begin(trace), trace.end)).collect();
    let known = uncertainty(part, stated);
    let since_start = |at: Duration| at.as_secs_f64() - super::part::start_s();
    let span = span(&spans).filter(|_| known.is_some());
    // Wall clocks that were not compared cannot be told apart from a late start.
    let compared = !header.clock.readings.is_empty();
    let ahead = header.wall_at_start_s().zip(first.wall_at_start_s()).filter(|_| compared);
    Generator {
        part: header.part,
        requests: part.traces.len(),
        failed: part.traces.iter().filter(|trace| !trace.succeeded()).count(),
        ttft_ms: Spread::of(&good).map(|spread| spread.mean),
        wall_clock_ahead_ms: ahead.map(|(own, first)| (own - first) * 1000.0),
        uncertainty_ms: known,
        drift_ppm: header.drift_ppm(),
        began_s: span.map(|(begin, _)| since_start(begin)),
        ended_s: span.map(|(_, end)| since_start(end)),
        client_error_ttft_ms: header.client_error.as_ref().and_then(|error| Some(error.ttft?.mean_ms)),
        starved: header.starvation.map(|starvation| starvation.starved),
    }
}

/// Readings of the whole. Of the server's counters those of the generator that ended
/// last: all began before the start, and it looked when everybody had ended. Of the
/// clients' own weaknesses the worst.
fn readings(parts: &[Part]) -> Readings {
    let last = parts.iter().max_by_key(|part| part.traces.iter().map(|trace| trace.end).max());
    let most = |pick: fn(&Header) -> Option<f64>| {
        parts
            .iter()
            .filter_map(|part| pick(&part.header))
            .fold(None, |most: Option<f64>, value| Some(most.map_or(value, |most| most.max(value))))
    };
    let errors = parts.iter().filter_map(|part| part.header.client_error.clone());
    let starved = parts.iter().filter_map(|part| part.header.starvation);
    Readings {
        ready_wait_s: most(|header| header.ready_wait_s),
        counted: last.map(|part| part.header.counted.clone()).unwrap_or_default(),
        waiting_peak: most(|header| header.waiting_peak),
        warmup: Vec::new(),
        client_error: errors.max_by(|a, b| {
            let weight =
                |error: &super::calibrate::ClientError| (!error.within_limits, error.bound_ms().unwrap_or(0.0));
            weight(a).partial_cmp(&weight(b)).unwrap_or(std::cmp::Ordering::Equal)
        }),
        starvation: starved
            .max_by(|a, b| a.run_queue_wait_share.unwrap_or(0.0).total_cmp(&b.run_queue_wait_share.unwrap_or(0.0))),
        logprobs: parts.iter().flat_map(|part| part.header.logprobs.iter().copied()).collect(),
    }
}

/// Takes out what would need a clock that all share.
fn forget_common_time(report: &mut BenchReport) {
    report.duration_s = None;
    report.output_tokens_per_s = None;
    report.requests_per_s = None;
    report.steady_output_tokens_per_s = None;
    report.steady_window_s = None;
    report.goodput_requests_per_s = None;
    report.tenants.values_mut().for_each(|tenant| tenant.output_tokens_per_s = None);
}

fn about_clocks(report: &BenchReport, headers: &[Header]) -> Vec<Finding> {
    let Some(merged) = &report.merged else { return Vec::new() };
    let say = |rule| Finding::new(rule, Location::file(RepoPath::new(&report.base_url)));
    let mut findings = Vec::new();
    for signal in headers.iter().filter_map(|header| header.interrupted.as_deref()) {
        let done: usize = headers.iter().map(|header| header.requests).sum();
        findings.push(say(&rules::INTERRUPTED).arg("signal", signal.to_owned()).arg("done", done));
    }
    let Some(apart) = merged.clock_uncertainty_ms else {
        findings.push(say(&rules::CLOCK_UNKNOWN));
        return findings;
    };
    if let Some(share) = merged.rate_uncertainty.filter(|share| *share > UNCERTAIN) {
        let uncertain = say(&rules::CLOCK_UNCERTAIN).arg("ms", format!("{apart:.1}"));
        findings.push(uncertain.arg("percent", format!("{:.1}", share * 100.0)));
    }
    if let Some(share) = merged.overlap_share.filter(|share| *share < TOGETHER) {
        findings.push(say(&rules::GENERATORS_APART).arg("percent", format!("{:.0}", (1.0 - share) * 100.0)));
    }
    for generator in &merged.generators {
        if let Some(ahead) = generator.wall_clock_ahead_ms.filter(|ahead| ahead.abs() > WALL_OFF_MS) {
            let off = say(&rules::WALL_CLOCK_OFF).arg("part", generator.part as u64);
            findings.push(off.arg("seconds", format!("{:+.3}", ahead / 1000.0)));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::part::{self, Clock, Comparison};
    use crate::bench::report::LoadStated;
    use crate::client::{Api, Chunk, Usage};
    use crate::model::Lang;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn load() -> LoadStated {
        LoadStated {
            shape: "closed".into(),
            concurrency: Some(2),
            request_rate: None,
            arrival: None,
            max_concurrency: None,
            num_prompts: 4,
            warmup: 2,
            max_tokens: 2,
            timeout_s: 1.0,
            retries: 0,
            seed: 0,
            turns: 1,
            shared_prefix_words: 0,
            workload_sha256: None,
            tenants: None,
            continuous_usage: false,
        }
    }

    fn header(part: usize, requests: usize, readings: Vec<Comparison>) -> Header {
        Header {
            schema_version: part::SCHEMA_VERSION.to_owned(),
            tool_version: "0".to_owned(),
            part,
            of: 2,
            meeting: Some("m".to_owned()),
            start_at_s: None,
            base_url: "http://127.0.0.1:1".to_owned(),
            model: "m".to_owned(),
            endpoint: Api::Chat,
            load: load(),
            prompt_sha256: None,
            goodput_targets_ms: None,
            tolerate_failures: 0.0,
            requests,
            interrupted: None,
            clock: Clock { wall_at_zero_s: 1e9, wall_step_ms: 0.0, readings },
            ready_wait_s: None,
            counted: std::collections::BTreeMap::new(),
            waiting_peak: None,
            client_error: None,
            starvation: None,
            logprobs: Vec::new(),
        }
    }

    /// Two requests one after the other, each 100 ms: first token after 40, last after 90.
    fn requests(name: &str, begin: u64) -> Vec<RequestTrace> {
        let request = |number: u64| {
            let at = begin + number * 100;
            let chunk = |after| Chunk { at: ms(at + after), visible: true, tokens_so_far: None, damaged: false };
            RequestTrace {
                id: format!("{name}{number}"),
                max_tokens: 2,
                scheduled: ms(at),
                sent: ms(at),
                chunks: vec![chunk(40), chunk(90)],
                first_event: Some(ms(at + 40)),
                end: ms(at + 100),
                done: true,
                usage: Some(Usage { prompt_tokens: Some(1), completion_tokens: Some(2), cached_tokens: None }),
                ..RequestTrace::default()
            }
        };
        vec![request(0), request(1)]
    }

    fn exact(shift_ms: f64) -> Vec<Comparison> {
        vec![Comparison { at_ms: -50.0, shift_ms, uncertainty_ms: 0.0 }]
    }

    fn around(shift_ms: f64) -> Vec<Comparison> {
        let at = |at_ms, uncertainty_ms| Comparison { at_ms, shift_ms, uncertainty_ms };
        vec![at(-50.0, 0.2), at(300.0, 0.3)]
    }

    fn parts(first: Header, second: Header) -> Vec<Part> {
        let written = [(first, requests("a", 10)), (second, requests("b", 5010))];
        let read = |(header, traces): (Header, Vec<RequestTrace>)| {
            part::read(part::text(&header, &traces).as_bytes()).unwrap()
        };
        written.into_iter().map(read).collect()
    }

    fn met() -> Vec<Part> {
        // The clock of part 2 shows 5000 ms more; its wall clock is an hour ahead.
        let mut second = header(2, 2, around(-5000.0));
        second.clock.wall_at_zero_s = 1e9 + 3600.0 - 5.0;
        parts(header(1, 2, exact(0.0)), second)
    }

    fn rules_of(whole: &Whole) -> Vec<&'static str> {
        whole.findings.iter().map(|finding| finding.rule.id).collect()
    }

    #[test]
    fn the_union_has_the_rate_of_both_whatever_their_wall_clocks_say() {
        let parts = met();
        assert_eq!(check(&parts), Ok(()));
        let whole = merge(parts, None).unwrap();
        let (report, merged) = (&whole.report, whole.report.merged.as_ref().unwrap());
        assert_eq!((report.successful, report.output_tokens), (4, 8));
        assert!((report.duration_s.unwrap() - 0.2).abs() < 1e-9, "{:?}", report.duration_s);
        assert!((report.output_tokens_per_s.unwrap() - 40.0).abs() < 1e-6);
        assert_eq!(report.latencies["ttft_ms"], Some(40.0));
        assert_eq!((merged.in_flight_max, merged.overlap_share), (Some(2), Some(1.0)));
        assert!((merged.clock_uncertainty_ms.unwrap() - 0.3).abs() < 1e-9);
        assert!((merged.in_flight_mean.unwrap() - 2.0).abs() < 1e-9);
        let second = &merged.generators[1];
        assert!((second.wall_clock_ahead_ms.unwrap() - 3.6e6).abs() < 1e-3, "{second:?}");
        assert!((second.began_s.unwrap() - 0.010).abs() < 1e-9);
        assert!(rules_of(&whole).contains(&"bench/wall-clock-off"));
        assert!(!rules_of(&whole).contains(&"bench/generators-apart"));
    }

    #[test]
    fn clocks_that_go_apart_are_followed_and_lengths_stay_exact() {
        let at = |at_ms, shift_ms| Comparison { at_ms, shift_ms, uncertainty_ms: 0.0 };
        // 1 ms in 5 s: 200 parts per million.
        let second = header(2, 2, vec![at(10.0, -5000.0), at(5010.0, -5001.0)]);
        let whole = merge(parts(header(1, 2, exact(0.0)), second), None).unwrap();
        let generator = &whole.report.merged.as_ref().unwrap().generators[1];
        assert!((generator.drift_ppm.unwrap() + 200.0).abs() < 1e-6);
        assert!((generator.began_s.unwrap() - 0.009).abs() < 1e-9, "{generator:?}");
        assert_eq!(whole.report.latencies["ttft_max_ms"], Some(40.0));
    }

    #[test]
    fn without_a_common_clock_there_is_no_rate_and_latencies_stand() {
        let by_wall = |part| Header { meeting: None, start_at_s: Some(1e9), ..header(part, 2, Vec::new()) };
        let whole = merge(parts(by_wall(1), by_wall(2)), None).unwrap();
        let mut report = whole.report.clone();
        assert_eq!((report.duration_s, report.output_tokens_per_s, report.requests_per_s), (None, None, None));
        assert_eq!(report.latencies["ttft_ms"], Some(40.0));
        report.explain_absences();
        assert!(report.absent["output_tokens_per_s"].contains("clocks"), "{:?}", report.absent);
        assert!(rules_of(&whole).contains(&"bench/clock-unknown"));
        let stated = merge(parts(by_wall(1), by_wall(2)), Some(20.0)).unwrap();
        assert_eq!(stated.report.merged.as_ref().unwrap().clock_uncertainty_ms, Some(40.0));
        assert!(stated.report.duration_s.is_some_and(|length| length > 5.0));
        let mut set = by_wall(2);
        set.clock.wall_step_ms = -500.0;
        let stepped = merge(parts(by_wall(1), set), Some(20.0)).unwrap();
        assert_eq!(stepped.report.merged.unwrap().clock_uncertainty_ms, Some(540.0), "a clock that was set is worse");
    }

    #[test]
    fn generators_that_were_not_together_are_named() {
        let whole = merge(parts(header(1, 2, exact(0.0)), header(2, 2, around(-4500.0))), None).unwrap();
        assert!(rules_of(&whole).contains(&"bench/generators-apart"), "{:?}", rules_of(&whole));
        let mut vague = around(-5000.0);
        vague.iter_mut().for_each(|reading| reading.uncertainty_ms = 30.0);
        let whole = merge(parts(header(1, 2, exact(0.0)), header(2, 2, vague)), None).unwrap();
        assert!(rules_of(&whole).contains(&"bench/clock-uncertain"));
    }

    #[test]
    fn parts_of_different_loads_are_refused() {
        let refused = |change: fn(&mut Header)| {
            let mut second = header(2, 2, around(-5000.0));
            change(&mut second);
            check(&parts(header(1, 2, exact(0.0)), second)).map_err(|fault| fault.get(Lang::En).to_owned())
        };
        assert_eq!(refused(|_| {}), Ok(()));
        assert_eq!(refused(|header| header.load.continuous_usage = true), Ok(()), "found out by each");
        assert_eq!(refused(|header| header.base_url.push_str("/v1/")), Ok(()), "the same server");
        assert!(refused(|header| header.base_url = "http://other:1".into()).unwrap_err().contains("`base_url`"));
        assert!(refused(|header| header.model = "n".into()).unwrap_err().contains("`model`"));
        assert!(
            refused(|header| header.load.workload_sha256 = Some("x".into())).unwrap_err().contains("workload_sha256")
        );
        assert!(refused(|header| header.load.max_tokens = 3).unwrap_err().contains("`max_tokens`"));
        assert!(refused(|header| header.meeting = Some("n".into())).unwrap_err().contains("start together"));
        let same = part::text(&header(1, 2, exact(0.0)), &requests("a", 10));
        let other = part::text(&header(2, 2, around(0.0)), &requests("a", 10));
        let both: Vec<Part> = [same, other].iter().map(|text| part::read(text.as_bytes()).unwrap()).collect();
        assert!(check(&both).unwrap_err().get(Lang::En).contains("same requests"));
    }

    #[test]
    fn a_cut_part_is_refused() {
        let text = part::text(&header(1, 2, exact(0.0)), &requests("a", 10));
        let lines: Vec<&str> = text.lines().collect();
        let fault =
            |text: &str| part::read(text.as_bytes()).map_err(|fault| fault.get(Lang::En).to_owned()).unwrap_err();
        assert!(fault(&lines[..2].join("\n")).contains("1 of 2 requests"));
        assert!(fault(&text[..text.len() - 40]).contains("line 3"));
        assert!(fault("").contains("no verify-bench-part/v1"));
        assert!(fault(&text.replace("part/v1", "part/v9")).contains("v9"));
        assert!(part::is_part(lines[0].as_bytes()) && !part::is_part(b"{\"schema_version\": \"verify-report/v1\"}"));
    }
}
