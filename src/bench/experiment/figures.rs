//! From traces to the record of a pass, and from passes to the columns of an arm. Pure.

use super::record::{
    ArmMemory, ArmTime, Goodput, MemoryFigures, OverPasses, PassPhase, PassRecord, PassTime, RequestRecord,
    ServerEvidence, StartRecord,
};
use crate::bench::metrics::{PassFigures, RequestFigures, TokensSource, counted};
use crate::bench::stats::Distribution;
use crate::client::RequestTrace;
use crate::results::v1::Latency;
use std::collections::BTreeMap;
use std::time::Duration;

/// Passes whose throughput differs by no more than this are pooled.
const AGREE: f64 = 0.05;

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn distribution(samples: &[f64]) -> Option<Latency> {
    Distribution::of(samples).map(Latency::from)
}

/// One request as a record keeps it.
pub fn request(trace: &RequestTrace) -> RequestRecord {
    let figures = if trace.succeeded() { RequestFigures::of(trace) } else { None };
    let known = figures.as_ref();
    RequestRecord {
        id: trace.id.clone(),
        sent_ms: ms(trace.sent),
        scheduled_ms: ms(trace.scheduled),
        queue_wait_ms: known.and_then(|known| known.queue_wait_ms),
        ttft_ms: known.map(|known| known.ttft_ms),
        tpot_ms: known.and_then(|known| known.tpot_ms),
        e2e_ms: known.map(|known| known.e2e_ms),
        prompt_tokens: known.and_then(|known| known.prompt_tokens),
        output_tokens: known.map(|known| known.output_tokens),
        cached_tokens: known.and_then(|known| known.cached_tokens),
        finish_reason: trace.finish.clone(),
        fault: trace.fault.as_ref().map(crate::client::RequestFault::name),
    }
}

/// Whether a request kept every stated limit.
fn is_good(request: &RequestFigures, goodput: Goodput) -> bool {
    let kept =
        |limit: Option<f64>, value: Option<f64>| limit.is_none_or(|limit| value.is_none_or(|value| value <= limit));
    kept(goodput.ttft_ms, Some(request.ttft_ms))
        && kept(goodput.tpot_ms, request.tpot_ms)
        && kept(goodput.e2e_ms, Some(request.e2e_ms))
}

/// Figures of one pass.
pub fn pass_time(traces: &[RequestTrace], goodput: Goodput) -> (f64, PassTime) {
    let pass = PassFigures::of(traces);
    let good = pass.requests.iter().filter(|request| is_good(request, goodput)).count();
    let estimated =
        traces.iter().filter(|trace| trace.succeeded()).any(|trace| counted(trace).source == TokensSource::Chunks);
    let mut failures = BTreeMap::new();
    for fault in traces.iter().filter_map(|trace| trace.fault.as_ref()) {
        *failures.entry(fault.name()).or_insert(0) += 1;
    }
    let time = PassTime {
        ttft_ms: pass.ttft_ms.map(Into::into),
        tpot_ms: pass.tpot_ms.map(Into::into),
        e2e_ms: pass.e2e_ms.map(Into::into),
        icl_ms: pass.icl_ms.map(Into::into),
        queue_wait_ms: pass.queue_wait_ms.map(Into::into),
        successful: pass.successful as u64,
        failed: pass.failed as u64,
        failures,
        output_tokens: pass.output_tokens,
        tokens_estimated: estimated,
        output_tokens_per_s: pass.output_tokens_per_s,
        requests_per_s: pass.requests_per_s,
        goodput_per_s: (goodput.is_stated() && pass.duration_s > 0.0).then(|| good as f64 / pass.duration_s),
        fairness_jain_ttft: pass.fairness_jain_ttft,
    };
    (pass.duration_s, time)
}

/// Median and range of a figure of passes.
pub fn over(values: impl IntoIterator<Item = Option<f64>>) -> OverPasses {
    let values: Vec<f64> = values.into_iter().flatten().collect();
    Distribution::of(&values).map_or_else(OverPasses::default, |known| OverPasses {
        n: u32::try_from(known.n).unwrap_or(u32::MAX),
        median: Some(known.p50),
        min: Some(known.min),
        max: Some(known.max),
    })
}

fn p50(figure: Option<Latency>) -> Option<f64> {
    figure.and_then(|figure| figure.p50)
}

/// A figure of a pass by the name of a compared metric.
pub fn metric(pass: &PassRecord, name: &str) -> Option<f64> {
    match name {
        "ttft_p50_ms" => p50(pass.time.ttft_ms),
        "tpot_p50_ms" => p50(pass.time.tpot_ms),
        "e2e_p50_ms" => p50(pass.time.e2e_ms),
        "output_tokens_per_s" => pass.time.output_tokens_per_s,
        _ => None,
    }
}

/// The measured passes of an arm.
pub fn measured<'a>(passes: &'a [PassRecord], arm: &'a str) -> impl Iterator<Item = &'a PassRecord> + Clone {
    passes.iter().filter(move |pass| pass.arm == arm && pass.phase == PassPhase::Measured)
}

/// The starts of the servers that an arm was measured on: arms may share one.
pub fn served<'a>(
    passes: &'a [PassRecord],
    starts: &'a [StartRecord],
    arm: &'a str,
) -> impl Iterator<Item = &'a StartRecord> {
    starts.iter().filter(move |start| measured(passes, arm).any(|pass| pass.start == start.start))
}

/// The time columns of an arm.
pub fn arm_time(passes: &[PassRecord], starts: &[StartRecord], arm: &str) -> ArmTime {
    let mine: Vec<&PassRecord> = measured(passes, arm).collect();
    let each = |name: &'static str| over(mine.iter().map(|pass| metric(pass, name)));
    let requests: Vec<&RequestRecord> = mine.iter().flat_map(|pass| &pass.requests).collect();
    let column = |pick: &dyn Fn(&RequestRecord) -> Option<f64>| -> Vec<f64> {
        requests.iter().filter_map(|request| pick(request)).collect()
    };
    let throughput: Vec<f64> = mine.iter().filter_map(|pass| pass.time.output_tokens_per_s).collect();
    let pooled = agree(&throughput);
    let pool = |samples: Vec<f64>| distribution(&samples).filter(|_| pooled);
    let mean = |samples: Vec<f64>| (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64);
    ArmTime {
        ttft_p50_ms: each("ttft_p50_ms"),
        tpot_p50_ms: each("tpot_p50_ms"),
        e2e_p50_ms: each("e2e_p50_ms"),
        output_tokens_per_s: each("output_tokens_per_s"),
        requests_per_s: over(mine.iter().map(|pass| pass.time.requests_per_s)),
        goodput_per_s: over(mine.iter().map(|pass| pass.time.goodput_per_s)),
        cold_start_ms: over(served(passes, starts, arm).map(|start| start.first_answer_ms)),
        pooled,
        ttft_ms: pool(column(&|request| request.ttft_ms)),
        tpot_ms: pool(column(&|request| request.tpot_ms)),
        e2e_ms: pool(column(&|request| request.e2e_ms)),
        throughput_cv: variation(&throughput),
        successful: mine.iter().map(|pass| pass.time.successful).sum(),
        failed: mine.iter().map(|pass| pass.time.failed).sum(),
        prompt_tokens_mean: mean(column(&|request| request.prompt_tokens.map(|count| count as f64))),
        output_tokens_mean: mean(column(&|request| request.output_tokens.map(|count| count as f64))),
        tokens_estimated: mine.iter().any(|pass| pass.time.tokens_estimated),
    }
}

fn agree(throughput: &[f64]) -> bool {
    let (low, high) =
        throughput.iter().fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
    !throughput.is_empty() && high > 0.0 && (high - low) / high <= AGREE
}

fn variation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() >= 2 && mean > 0.0).then(|| (squares / (count - 1.0)).sqrt() / mean)
}

impl MemoryFigures {
    /// Scope by scope.
    fn zip(self, other: Self, join: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
        MemoryFigures {
            rss_bytes: join(self.rss_bytes, other.rss_bytes),
            pss_bytes: join(self.pss_bytes, other.pss_bytes),
            rss_anon_bytes: join(self.rss_anon_bytes, other.rss_anon_bytes),
            device_used_bytes: join(self.device_used_bytes, other.device_used_bytes),
            device_process_bytes: join(self.device_process_bytes, other.device_process_bytes),
            kv_cache_usage: self.kv_cache_usage,
        }
    }

    /// The larger of each.
    pub fn max(self, other: Self) -> Self {
        let kv_cache_usage = match (self.kv_cache_usage, other.kv_cache_usage) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        MemoryFigures { kv_cache_usage, ..self.zip(other, Ord::max) }
    }

    /// What it has more than `other`, where both are known.
    fn above(self, other: Self) -> Self {
        let above = self.zip(other, |ours, theirs| Some(ours?.saturating_sub(theirs?)));
        MemoryFigures { kv_cache_usage: None, ..above }
    }
}

/// The memory columns of an arm.
pub fn arm_memory(passes: &[PassRecord], starts: &[StartRecord], arm: &str) -> ArmMemory {
    let mut memory = ArmMemory::default();
    for start in served(passes, starts, arm) {
        memory.at_rest = memory.at_rest.max(start.static_memory);
    }
    for pass in measured(passes, arm) {
        memory.interval_ms = pass.memory.interval_ms;
        memory.samples += u32::try_from(pass.memory.samples.len()).unwrap_or(u32::MAX);
        memory.peak = pass.memory.samples.iter().fold(memory.peak, |peak, sample| peak.max(sample.memory));
    }
    memory.growth = memory.peak.above(memory.at_rest);
    memory
}

/// What the counters show over the measured passes of an arm.
pub fn evidence(passes: &[PassRecord], arm: &str) -> ServerEvidence {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    let mut found = ServerEvidence::default();
    for pass in measured(passes, arm) {
        for (name, value) in &pass.counters.difference {
            *sums.entry(name).or_insert(0.0) += value;
        }
        found.waiting_peak = larger(found.waiting_peak, pass.counters.waiting_peak);
        found.resets.extend(
            pass.counters.resets.iter().filter(|name| !found.resets.contains(name)).cloned().collect::<Vec<_>>(),
        );
    }
    found.prefix_cache_hit_rate = hit_rate(&sums);
    found.drafted_tokens = sums.get("drafted_tokens").copied();
    found.acceptance_rate = found
        .drafted_tokens
        .filter(|drafted| *drafted > 0.0)
        .zip(sums.get("accepted_tokens"))
        .map(|(drafted, accepted)| accepted / drafted);
    found
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

/// Cached over all prompt tokens. Servers count either all prompt tokens or only the
/// computed ones: a count below the cached tokens can only be the latter.
fn hit_rate(sums: &BTreeMap<&str, f64>) -> Option<f64> {
    let cached = *sums.get("cached_tokens")?;
    let all = match (sums.get("prompt_tokens"), sums.get("computed_tokens")) {
        (_, Some(computed)) => computed + cached,
        (Some(prompt), None) if *prompt >= cached => *prompt,
        (Some(prompt), None) => prompt + cached,
        (None, None) => return None,
    };
    (all > 0.0).then(|| cached / all)
}

/// Time of a decoding step where drafts are verified, ms, by the server's counters over
/// the measured passes. A step is one pass of the target model: what was generated
/// without what was accepted and without the first token of each request, and at least
/// one per draft.
pub fn verify_cost_ms(passes: &[PassRecord], arm: &str) -> Option<f64> {
    let mine = measured(passes, arm);
    let sum = |name: &str| -> Option<f64> {
        mine.clone().map(|pass| pass.counters.difference.get(name).copied()).sum::<Option<f64>>()
    };
    let drafts = sum("drafts").filter(|drafts| *drafts > 0.0)?;
    let successful: u64 = mine.clone().map(|pass| pass.time.successful).sum();
    let steps = (sum("generated_tokens")? - sum("accepted_tokens")? - successful as f64).max(drafts);
    Some(sum("decode_seconds")? * 1000.0 / steps).filter(|cost| *cost > 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::record::{CounterRecord, MemorySample, MemorySeries};
    use super::*;

    fn pass(arm: &str, throughput: f64, requests: &[(f64, f64, u64)]) -> PassRecord {
        PassRecord {
            index: 1,
            arm: arm.to_owned(),
            repeat: 1,
            phase: PassPhase::Measured,
            start: 1,
            started_at: String::new(),
            duration_s: 1.0,
            requests: requests
                .iter()
                .map(|(ttft, e2e, tokens)| RequestRecord {
                    ttft_ms: Some(*ttft),
                    e2e_ms: Some(*e2e),
                    output_tokens: Some(*tokens),
                    ..RequestRecord::default()
                })
                .collect(),
            time: PassTime { output_tokens_per_s: Some(throughput), ..PassTime::default() },
            counters: CounterRecord::default(),
            memory: MemorySeries::default(),
            gpu: None,
            client: super::super::record::ClientRecord::default(),
            others_cpu_share: None,
            load_average: [None, None],
        }
    }

    #[test]
    fn passes_are_pooled_only_when_they_agree() {
        let near = [pass("a", 100.0, &[(10.0, 20.0, 2)]), pass("a", 96.0, &[(12.0, 22.0, 2)])];
        let time = arm_time(&near, &[], "a");
        assert_eq!((time.pooled, time.ttft_ms.unwrap().n, time.ttft_ms.unwrap().mean), (true, Some(2), Some(11.0)));
        let far = [pass("a", 100.0, &[(10.0, 20.0, 2)]), pass("a", 90.0, &[(12.0, 22.0, 2)])];
        let time = arm_time(&far, &[], "a");
        assert_eq!((time.pooled, time.ttft_ms, time.output_tokens_per_s.median), (false, None, Some(95.0)));
        assert!((time.throughput_cv.unwrap() - 0.0744).abs() < 1e-3);
        assert_eq!(arm_time(&far, &[], "b").ttft_p50_ms.n, 0);
    }

    #[test]
    fn warm_ups_are_never_counted() {
        let mut warm = pass("a", 1.0, &[(900.0, 999.0, 2)]);
        warm.phase = PassPhase::Warmup;
        let time = arm_time(&[warm, pass("a", 100.0, &[(10.0, 20.0, 2)])], &[], "a");
        assert_eq!((time.output_tokens_per_s.n, time.ttft_ms.unwrap().max), (1, Some(10.0)));
    }

    #[test]
    fn memory_keeps_scopes_and_static_and_growth_apart() {
        let figures =
            |rss, anon| MemoryFigures { rss_bytes: Some(rss), rss_anon_bytes: anon, ..MemoryFigures::default() };
        let mut one = pass("a", 1.0, &[]);
        one.memory.samples = vec![
            MemorySample { at_ms: 0.0, memory: figures(120, Some(7)) },
            MemorySample { at_ms: 250.0, memory: figures(110, Some(9)) },
        ];
        let start =
            StartRecord { start: 1, arm: "b".to_owned(), static_memory: figures(100, None), ..StartRecord::default() };
        let memory = arm_memory(&[one], &[start], "a");
        assert_eq!((memory.peak.rss_bytes, memory.peak.rss_anon_bytes), (Some(120), Some(9)));
        assert_eq!((memory.growth.rss_bytes, memory.growth.rss_anon_bytes), (Some(20), None));
        assert_eq!((memory.at_rest.device_used_bytes, memory.peak.pss_bytes), (None, None));
    }

    #[test]
    fn no_counter_is_no_evidence() {
        assert_eq!(evidence(&[pass("a", 1.0, &[])], "a"), ServerEvidence::default());
        let mut one = pass("a", 1.0, &[]);
        let counted =
            |values: &[(&str, f64)]| values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        one.counters.difference = counted(&[
            ("prompt_tokens", 40.0),
            ("cached_tokens", 60.0),
            ("drafted_tokens", 8.0),
            ("accepted_tokens", 6.0),
        ]);
        let found = evidence(&[one.clone()], "a");
        assert_eq!((found.prefix_cache_hit_rate, found.acceptance_rate), (Some(0.6), Some(0.75)));
        one.counters.difference =
            counted(&[("prompt_tokens", 100.0), ("cached_tokens", 60.0), ("drafted_tokens", 0.0)]);
        let found = evidence(&[one], "a");
        assert_eq!(
            (found.prefix_cache_hit_rate, found.acceptance_rate, found.drafted_tokens),
            (Some(0.6), None, Some(0.0))
        );
    }

    #[test]
    fn a_step_yields_its_own_token_and_the_accepted_ones() {
        let mut one = pass("a", 1.0, &[]);
        one.time.successful = 2;
        assert_eq!(verify_cost_ms(&[one.clone()], "a"), None, "no drafts, no cost");
        let counted = [("drafts", 4.0), ("generated_tokens", 32.0), ("accepted_tokens", 10.0), ("decode_seconds", 0.4)];
        one.counters.difference = counted.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        assert_eq!(verify_cost_ms(&[one], "a"), Some(20.0));
    }

    #[test]
    fn goodput_counts_requests_that_keep_every_limit() {
        let figures = |ttft: u64, last: u64| {
            let at = Duration::from_millis;
            let chunk = |ms| crate::client::Chunk { at: at(ms), visible: true, tokens_so_far: None, damaged: false };
            RequestTrace {
                chunks: vec![chunk(ttft), chunk(last)],
                end: at(1000),
                done: true,
                ..RequestTrace::default()
            }
        };
        let goodput = Goodput { ttft_ms: Some(100.0), e2e_ms: Some(500.0), tpot_ms: None };
        let (duration, time) = pass_time(&[figures(50, 400), figures(150, 400), figures(50, 600)], goodput);
        assert_eq!((duration, time.goodput_per_s, time.successful), (1.0, Some(1.0), 3));
        assert_eq!(pass_time(&[figures(50, 400)], Goodput::default()).1.goodput_per_s, None);
    }
}
