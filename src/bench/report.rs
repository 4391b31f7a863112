//! The figures of one ad-hoc run, flat, as `verify bench` reports them. Pure: everything
//! here follows from stored traces and readings.

use super::calibrate::ClientError;
use super::metrics::{RequestFigures, TokensSource, counted, tokens_per_chunk};
use super::plan::{Targets, Tenants};
use super::starvation::Starvation;
use super::stats::{METHOD, PERCENTILES, Spread, jain, with_failures};
use super::union::{Merged, NEED_COMMON_CLOCK};
use crate::client::{Api, RequestTrace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// What was sent, as a report states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadStated {
    /// `closed` or `open`.
    pub shape: Cow<'static, str>,
    /// Requests in flight of a closed loop.
    pub concurrency: Option<u32>,
    /// Requests per second of an open loop; null for a replayed trace.
    pub request_rate: Option<f64>,
    /// Arrivals of an open loop: `constant`, `poisson` or `trace`.
    pub arrival: Option<Cow<'static, str>>,
    /// Requests in flight at most, in an open loop.
    pub max_concurrency: Option<u32>,
    /// Measured requests.
    pub num_prompts: u32,
    /// Requests before them.
    pub warmup: u32,
    /// Tokens of an answer at most.
    pub max_tokens: u32,
    /// Seconds for one request.
    pub timeout_s: f64,
    /// Further tries allowed after 429 and 503.
    pub retries: u32,
    /// Seed of arrivals, prompts and mix.
    pub seed: u64,
    /// Turns of a conversation.
    pub turns: u32,
    /// Words that all prompts share.
    pub shared_prefix_words: u32,
    /// SHA-256 of the file of prompts or of the trace.
    pub workload_sha256: Option<String>,
    /// The mix of tenants.
    pub tenants: Option<Tenants>,
    /// Token counts were asked for in every chunk.
    pub continuous_usage: bool,
}

/// What one tenant got.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TenantFigures {
    /// Successful requests.
    pub successful: usize,
    /// Failed requests.
    pub failed: usize,
    /// Mean time to first token, ms.
    pub ttft_ms: Option<f64>,
    /// Mean end-to-end latency, ms.
    pub e2e_ms: Option<f64>,
    /// Output tokens per second of the window.
    pub output_tokens_per_s: Option<f64>,
}

/// One step of a ramp.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RampStep {
    /// Requests in flight, or requests per second.
    pub level: f64,
    /// Output tokens per second.
    pub output_tokens_per_s: Option<f64>,
    /// Answers per second.
    pub requests_per_s: Option<f64>,
    /// Mean time to first token, ms.
    pub ttft_ms: Option<f64>,
    /// Median time to first token, ms.
    pub ttft_p50_ms: Option<f64>,
    /// Mean time per output token, ms.
    pub tpot_ms: Option<f64>,
    /// Mean end-to-end latency, ms.
    pub e2e_ms: Option<f64>,
    /// Failed requests.
    pub failed: usize,
}

/// A finding in a report of `verify bench`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BenchFinding {
    /// Stable rule id.
    pub rule: &'static str,
    /// An error fails the run.
    pub severity: crate::model::Severity,
    /// What is the case.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Everything `verify bench` says about one load on one server. Latencies are those of
/// successful requests, in ms; what was not measured is null, with its reason in `absent`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BenchReport {
    /// The server.
    pub base_url: String,
    /// `model` of the requests.
    pub model: String,
    /// `model` of the answers.
    pub served_model: Option<String>,
    /// Route that was measured.
    pub endpoint: Api,
    /// What was sent.
    pub load: LoadStated,
    /// Successful requests: status 200, a token, proof of the end, no error inside.
    pub successful: usize,
    /// Failed requests.
    pub failed: usize,
    /// Failures by kind; a status is in its name (`http_503`).
    pub errors: BTreeMap<String, u64>,
    /// Share of the requests that failed.
    pub failure_rate: Option<f64>,
    /// Further tries after 429 and 503.
    pub retries: u64,
    /// Requests sent again because the server had closed a kept connection.
    pub stale_retries: u64,
    /// Seconds until the server was ready.
    pub ready_wait_s: Option<f64>,
    /// First request sent → end of the last one, seconds.
    pub duration_s: Option<f64>,
    /// Mean, `_p50`, `_p90`, `_p95`, `_p99`, `_min` and `_max` of each metric, ms:
    /// `ttft` (sent → first token-bearing event), `ttft_visible` (first visible text),
    /// `first_chunk` (any choice), `icl` (gaps between token-bearing events), `itl` (per
    /// token), `tpot` (per request), `e2e` (sent → last token-bearing event),
    /// `stream_end` ([DONE] or end of body), `latency_from_schedule` (planned → last
    /// token), `client_queue` (planned → sent), `connect`, `queue_wait` (in the server,
    /// where it tells).
    #[serde(flatten)]
    pub latencies: BTreeMap<String, Option<f64>>,
    /// Time to first token of the first warm-up request, ms: the cold sample.
    pub cold_ttft_ms: Option<f64>,
    /// Size, spread, percentiles and their intervals of each metric.
    pub distributions: BTreeMap<&'static str, Spread>,
    /// How percentiles and intervals are taken.
    pub percentile_method: &'static str,
    /// End-to-end percentiles over all requests, a failure being infinitely slow; null:
    /// unbounded.
    pub e2e_all_requests_ms: BTreeMap<&'static str, Option<f64>>,
    /// Requests that ran out of time: at least this slow.
    pub censored: usize,
    /// Token-bearing events of successful requests.
    pub stream_chunks: u64,
    /// Output tokens of successful requests.
    pub output_tokens: u64,
    /// Where the counts come from; `chunks`: a lower bound.
    pub tokens_source: TokensSource,
    /// Prompt tokens of successful requests, by usage.
    pub prompt_tokens: Option<u64>,
    /// Prompt tokens from the cache, by usage.
    pub cached_tokens: Option<u64>,
    /// Output tokens per second of the window.
    pub output_tokens_per_s: Option<f64>,
    /// Answers per second of the window.
    pub requests_per_s: Option<f64>,
    /// Output tokens per second of one request, mean.
    pub request_tokens_per_s: Option<f64>,
    /// Output tokens per second while at least 90 % of the requests were in flight.
    pub steady_output_tokens_per_s: Option<f64>,
    /// Length of that window, seconds.
    pub steady_window_s: Option<f64>,
    /// Targets of goodput, ms.
    pub goodput_targets_ms: Option<Targets>,
    /// Requests per second that met all targets.
    pub goodput_requests_per_s: Option<f64>,
    /// Share of all requests that met all targets.
    pub goodput_share: Option<f64>,
    /// Jain's index over the TTFT of the requests: 1 is equal.
    pub fairness_jain_ttft: Option<f64>,
    /// Longest over shortest TTFT.
    pub fairness_max_min_ttft: Option<f64>,
    /// Requests whose TTFT is above 5 times the median.
    pub slow_requests: usize,
    /// Jain's index over the mean TTFT of the tenants.
    pub fairness_jain_tenants: Option<f64>,
    /// What each tenant got.
    pub tenants: BTreeMap<String, TenantFigures>,
    /// Gaps above 10 times the median gap, one second at least.
    pub stalls: usize,
    /// Tokens from the prefix cache over tokens looked up, by the server's counters.
    pub prefix_cache_hit_rate: Option<f64>,
    /// Largest number of waiting requests that the server's gauge showed.
    pub queue_waiting_peak: Option<f64>,
    /// Tokens that a draft proposed, by the server's counters.
    pub spec_draft_tokens: Option<f64>,
    /// Tokens of them that were accepted.
    pub spec_accepted_tokens: Option<f64>,
    /// Accepted over proposed.
    pub spec_acceptance_rate: Option<f64>,
    /// Mean log-probability of generated tokens, by the quality probes.
    pub mean_logprob: Option<f64>,
    /// This client's own error, measured before the run.
    pub client_error: Option<ClientError>,
    /// What this client waited for a core during the run.
    pub starvation: Option<Starvation>,
    /// Steps of a ramp, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ramp: Vec<RampStep>,
    /// Level after which throughput gained less than 5 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knee: Option<f64>,
    /// Where the load came from, when several generators sent it together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
    /// What the figures do not say by themselves, in words.
    pub notes: Vec<String>,
    /// The same with rule and severity.
    pub findings: Vec<BenchFinding>,
    /// Why a figure is null.
    pub absent: BTreeMap<String, String>,
}

/// What was read around a measured pass.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Readings {
    /// Seconds until the server was ready.
    pub ready_wait_s: Option<f64>,
    /// Counter differences over the window, by meaning.
    pub counted: BTreeMap<String, f64>,
    /// Largest number of waiting requests.
    pub waiting_peak: Option<f64>,
    /// Warm-up requests, in order; the first is the cold sample.
    pub warmup: Vec<RequestTrace>,
    /// The client's own error.
    pub client_error: Option<ClientError>,
    /// What the client waited for a core.
    pub starvation: Option<Starvation>,
    /// Log-probabilities of the quality probes; none were asked for, or none were given.
    pub logprobs: Vec<f64>,
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Samples of every metric that has its flat figures.
fn samples(good: &[&RequestTrace], requests: &[RequestFigures]) -> Vec<(&'static str, Vec<f64>)> {
    let column = |pick: fn(&RequestFigures) -> Option<f64>| requests.iter().filter_map(pick).collect::<Vec<f64>>();
    vec![
        ("ttft", column(|one| Some(one.ttft_ms))),
        ("ttft_visible", column(|one| one.ttft_visible_ms)),
        ("first_chunk", column(|one| one.first_chunk_ms)),
        ("icl", good.iter().flat_map(|trace| gaps(trace)).collect()),
        ("itl", good.iter().flat_map(|trace| token_gaps(trace)).collect()),
        ("tpot", column(|one| one.tpot_ms)),
        ("e2e", column(|one| Some(one.e2e_ms))),
        ("stream_end", column(|one| Some(one.stream_end_ms))),
        ("latency_from_schedule", column(|one| Some(one.latency_from_schedule_ms))),
        ("client_queue", column(|one| Some(one.client_queue_ms))),
        ("connect", column(|one| one.connect_ms)),
        ("queue_wait", column(|one| one.queue_wait_ms)),
    ]
}

/// Gaps between token-bearing events, ms.
pub fn gaps(trace: &RequestTrace) -> impl Iterator<Item = f64> {
    trace.chunks.windows(2).map(|pair| ms(pair[1].at.saturating_sub(pair[0].at)))
}

/// Gaps between tokens, ms: each gap shared out over the tokens of its later chunk.
/// Nothing where the tokens of the chunks are not known.
pub fn token_gaps(trace: &RequestTrace) -> Vec<f64> {
    let Some(counts) = tokens_per_chunk(trace) else { return Vec::new() };
    gaps(trace)
        .zip(counts.into_iter().skip(1))
        .flat_map(|(gap, count)| std::iter::repeat_n(gap / count as f64, usize::try_from(count).unwrap_or(0)))
        .collect()
}

impl BenchReport {
    /// The figures of a pass.
    pub fn of(
        (base_url, model, endpoint): (&str, &str, Api),
        load: LoadStated,
        targets: Option<Targets>,
        traces: &[RequestTrace],
        readings: &Readings,
    ) -> Self {
        let good: Vec<&RequestTrace> = traces.iter().filter(|trace| trace.succeeded()).collect();
        let requests: Vec<RequestFigures> = good.iter().filter_map(|trace| RequestFigures::of(trace)).collect();
        let samples = samples(&good, &requests);
        let distributions: BTreeMap<&'static str, Spread> =
            samples.iter().filter_map(|(name, values)| Some((*name, Spread::of(values)?))).collect();
        let of = |name: &str| samples.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, values)| values);
        let (ttft, e2e) = (of("ttft"), of("e2e"));
        let failed = traces.len() - good.len();
        let duration_s = window(traces);
        let rate = |count: f64| duration_s.filter(|length| *length > 0.0 && count > 0.0).map(|length| count / length);
        let output_tokens: u64 = requests.iter().map(|request| request.output_tokens).sum();
        let estimated = good.iter().any(|trace| counted(trace).source == TokensSource::Chunks);
        let steady = load.concurrency.and_then(|target| steady(traces, target));
        let met = targets.map(|targets| requests.iter().filter(|one| meets(one, targets)).count());
        let tenants = tenants(traces, duration_s);
        let tenant_ttft: Vec<f64> = tenants.values().filter_map(|one| one.ttft_ms).collect();
        let sum = |pick: fn(&RequestFigures) -> Option<u64>| {
            let counts: Vec<u64> = requests.iter().filter_map(pick).collect();
            (!counts.is_empty()).then(|| counts.iter().sum())
        };
        let count = |name: &str| readings.counted.get(name).copied();
        BenchReport {
            base_url: base_url.to_owned(),
            model: model.to_owned(),
            served_model: good.iter().find_map(|trace| trace.model.clone()),
            endpoint,
            successful: good.len(),
            failed,
            errors: errors(traces),
            failure_rate: (!traces.is_empty()).then(|| failed as f64 / traces.len() as f64),
            retries: traces.iter().map(|trace| u64::from(trace.retries)).sum(),
            stale_retries: traces.iter().filter(|trace| trace.stale_retry).count() as u64,
            ready_wait_s: readings.ready_wait_s,
            duration_s,
            latencies: flat(&samples, &distributions),
            cold_ttft_ms: readings.warmup.first().and_then(RequestFigures::of).map(|cold| cold.ttft_ms),
            e2e_all_requests_ms: PERCENTILES
                .into_iter()
                .map(|(name, q, from)| (name, with_failures(e2e, failed, q).filter(|_| traces.len() >= from)))
                .collect(),
            distributions,
            percentile_method: METHOD,
            censored: traces.iter().filter(|trace| timed_out(trace)).count(),
            stream_chunks: requests.iter().map(|request| request.chunks as u64).sum(),
            output_tokens,
            tokens_source: if estimated { TokensSource::Chunks } else { TokensSource::Usage },
            prompt_tokens: sum(|one| one.prompt_tokens),
            cached_tokens: sum(|one| one.cached_tokens),
            output_tokens_per_s: rate(output_tokens as f64),
            requests_per_s: rate(good.len() as f64),
            request_tokens_per_s: mean(
                requests
                    .iter()
                    .filter(|one| one.e2e_ms > 0.0)
                    .map(|one| one.output_tokens as f64 / one.e2e_ms * 1000.0),
            ),
            steady_output_tokens_per_s: steady.map(|(rate, _)| rate),
            steady_window_s: steady.map(|(_, length)| length),
            goodput_targets_ms: targets,
            goodput_requests_per_s: met.and_then(|met| duration_s.map(|length| met as f64 / length)),
            goodput_share: met.filter(|_| !traces.is_empty()).map(|met| met as f64 / traces.len() as f64),
            fairness_jain_ttft: jain(ttft),
            fairness_max_min_ttft: max_min(ttft),
            slow_requests: slow(ttft),
            fairness_jain_tenants: if tenants.len() > 1 { jain(&tenant_ttft) } else { None },
            tenants,
            stalls: stalls(of("icl")).0,
            prefix_cache_hit_rate: cache(&readings.counted).map(|(hits, queries)| hits / queries),
            queue_waiting_peak: readings.waiting_peak,
            spec_draft_tokens: count("drafted_tokens"),
            spec_accepted_tokens: count("accepted_tokens"),
            spec_acceptance_rate: count("drafted_tokens")
                .filter(|drafted| *drafted > 0.0)
                .and_then(|drafted| Some(count("accepted_tokens")? / drafted)),
            mean_logprob: mean(readings.logprobs.iter().copied()),
            client_error: readings.client_error.clone(),
            starvation: readings.starvation,
            ramp: Vec::new(),
            knee: None,
            merged: None,
            notes: Vec::new(),
            findings: Vec::new(),
            absent: BTreeMap::new(),
            load,
        }
    }

    /// Says of every figure that is null why it is.
    pub fn explain_absences(&mut self) {
        // Plain data: serialization cannot fail.
        let Ok(Value::Object(members)) = serde_json::to_value(&*self) else { return };
        let missing = members.iter().filter(|(_, value)| value.is_null()).map(|(key, _)| key.clone());
        self.absent = missing.map(|key| (key.clone(), self.reason(&key))).collect();
    }

    fn reason(&self, key: &str) -> String {
        let metric = self.distributions.iter().find(|(name, _)| {
            key.strip_prefix(*name).and_then(|rest| rest.strip_prefix("_p")).is_some_and(|rest| rest.ends_with("_ms"))
        });
        if let Some((_, spread)) = metric {
            return format!(
                "n={}: too few values; they range from {:.3} to {:.3} ms",
                spread.n, spread.min, spread.max
            );
        }
        if let Some(merged) = &self.merged {
            match key {
                "cold_ttft_ms" => {
                    return "each generator warmed up by itself: none saw the first request alone".to_owned();
                }
                _ if merged.clock_uncertainty_ms.is_none() && NEED_COMMON_CLOCK.contains(&key) => {
                    return "the clocks of the generators are not known to each other".to_owned();
                }
                _ => {}
            }
        }
        match key {
            _ if self.successful == 0 && !matches!(key, "cold_ttft_ms") => "no request succeeded",
            _ if key.starts_with("tpot") => "no answer with a second token and a plausible token count",
            _ if key.starts_with("itl") => "the tokens of the chunks are not known, or there is no second token",
            _ if key.starts_with("icl") => "no answer has a second chunk",
            _ if key.starts_with("connect") => "every request used a connection that was open already",
            _ if key.starts_with("queue_wait_") => "the server does not tell its prompt time",
            _ if key.starts_with("ttft_visible") => "no answer has visible text",
            _ if key.starts_with("goodput") => "no targets were given (--goodput)",
            _ if key.starts_with("steady") => "an open loop, or too short for a steady state",
            _ if key.starts_with("spec_") => "the server publishes no counters of speculative decoding",
            "cold_ttft_ms" => "no warm-up request was sent, or it failed",
            "prefix_cache_hit_rate" => "no evidence: the server publishes no counters of a prefix cache",
            "queue_waiting_peak" => "the server publishes no gauge of waiting requests, or no queue could form",
            "mean_logprob" => "no quality probe asked for it, or the server does not tell",
            "fairness_jain_tenants" => "fewer than two tenants",
            "client_error" => "not measured",
            _ => "not known in this run",
        }
        .to_owned()
    }
}

/// The flat figures: `ttft_ms`, `ttft_p50_ms`, … for every metric, null where there is none.
fn flat(
    samples: &[(&'static str, Vec<f64>)],
    distributions: &BTreeMap<&'static str, Spread>,
) -> BTreeMap<String, Option<f64>> {
    let mut figures = BTreeMap::new();
    for (name, _) in samples {
        let spread = distributions.get(name);
        figures.insert(format!("{name}_ms"), spread.map(|spread| spread.mean));
        figures.insert(format!("{name}_min_ms"), spread.map(|spread| spread.min));
        figures.insert(format!("{name}_max_ms"), spread.map(|spread| spread.max));
        for (percentile, ..) in PERCENTILES {
            let value = spread.and_then(|spread| spread.percentile(percentile));
            figures.insert(format!("{name}_{percentile}_ms"), value);
        }
    }
    figures
}

pub(super) fn timed_out(trace: &RequestTrace) -> bool {
    trace.fault.as_ref().is_some_and(|fault| fault.kind == crate::client::FaultKind::Timeout)
}

fn errors(traces: &[RequestTrace]) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    for fault in traces.iter().filter_map(|trace| trace.fault.as_ref()) {
        *errors.entry(fault.name()).or_insert(0) += 1;
    }
    errors
}

/// First request sent → end of the last one, seconds.
fn window(traces: &[RequestTrace]) -> Option<f64> {
    // A request that never was on the wire began when it was due.
    let begin = traces.iter().map(|trace| if trace.sent.is_zero() { trace.scheduled } else { trace.sent });
    // Retries begin before the try that counts.
    let begin = begin.zip(traces).map(|(sent, trace)| if trace.retries > 0 { trace.scheduled } else { sent }).min()?;
    let end = traces.iter().map(|trace| trace.end).max()?;
    Some(end.saturating_sub(begin).as_secs_f64())
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0usize, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

fn meets(one: &RequestFigures, targets: Targets) -> bool {
    let within =
        |value: Option<f64>, target: Option<f64>| target.is_none_or(|target| value.is_some_and(|v| v <= target));
    // A single token has no time per further token, and so misses no target on it.
    let tpot = one.tpot_ms.or((one.output_tokens == 1).then_some(0.0));
    within(Some(one.ttft_ms), targets.ttft) && within(tpot, targets.tpot) && within(Some(one.e2e_ms), targets.e2e)
}

fn max_min(values: &[f64]) -> Option<f64> {
    let spread = Spread::of(values)?;
    (spread.min > 0.0).then(|| spread.max / spread.min)
}

fn slow(ttft: &[f64]) -> usize {
    let Some(median) = Spread::of(ttft).and_then(|spread| spread.percentile("p50")) else { return 0 };
    ttft.iter().filter(|value| **value > 5.0 * median).count()
}

/// How many gaps are stalls, and from how many ms on.
pub(super) fn stalls(gaps: &[f64]) -> (usize, f64) {
    let median = Spread::of(gaps).and_then(|spread| spread.percentile("p50")).unwrap_or(0.0);
    let limit = (10.0 * median).max(1000.0);
    (gaps.iter().filter(|gap| **gap > limit).count(), limit)
}

/// Tokens found in the prefix cache, and tokens looked up.
pub(super) fn cache(counted: &BTreeMap<String, f64>) -> Option<(f64, f64)> {
    let hits = *counted.get("cached_tokens")?;
    let queries = match (counted.get("cache_queries"), counted.get("prompt_tokens")) {
        (Some(queries), _) => *queries,
        // vLLM counts all prompt tokens, llama.cpp only the computed ones.
        (None, Some(prompt)) if *prompt >= hits => *prompt,
        (None, Some(prompt)) => prompt + hits,
        (None, None) => return None,
    };
    (queries > 0.0).then_some((hits, queries))
}

fn tenants(traces: &[RequestTrace], duration_s: Option<f64>) -> BTreeMap<String, TenantFigures> {
    let mut by_name: BTreeMap<String, Vec<&RequestTrace>> = BTreeMap::new();
    for trace in traces {
        if let Some(tenant) = &trace.tenant {
            by_name.entry(tenant.to_string()).or_default().push(trace);
        }
    }
    let figures = |traces: Vec<&RequestTrace>| {
        let good = traces.iter().filter(|trace| trace.succeeded());
        let requests: Vec<RequestFigures> = good.filter_map(|trace| RequestFigures::of(trace)).collect();
        let tokens: u64 = requests.iter().map(|one| one.output_tokens).sum();
        TenantFigures {
            successful: requests.len(),
            failed: traces.len() - requests.len(),
            ttft_ms: mean(requests.iter().map(|one| one.ttft_ms)),
            e2e_ms: mean(requests.iter().map(|one| one.e2e_ms)),
            output_tokens_per_s: duration_s.filter(|length| *length > 0.0).map(|length| tokens as f64 / length),
        }
    };
    by_name.into_iter().map(|(name, traces)| (name, figures(traces))).collect()
}

/// Output tokens per second from the first to the last moment at which 90 % of `target`
/// were in flight, and the length of that window: the ramps at both ends of a closed loop
/// bias short runs. `None` where the window is shorter than the longest gap it must hold.
fn steady(traces: &[RequestTrace], target: u32) -> Option<(f64, f64)> {
    if target < 2 {
        return None;
    }
    let needed = (f64::from(target) * 0.9).ceil() as i64;
    let mut steps: Vec<(Duration, i64)> = traces.iter().flat_map(|trace| [(trace.sent, 1), (trace.end, -1)]).collect();
    steps.sort_unstable();
    let (mut in_flight, mut begin, mut end) = (0, None, None);
    for (at, step) in steps {
        if in_flight >= needed && step < 0 {
            end = Some(at);
        }
        in_flight += step;
        if in_flight >= needed {
            begin.get_or_insert(at);
        }
    }
    let (begin, end) = (begin?, end?);
    let length = end.checked_sub(begin)?.as_secs_f64();
    let good = traces.iter().filter(|trace| trace.succeeded());
    let tokens: f64 = good
        .map(|trace| {
            let inside = trace.chunks.iter().filter(|chunk| (begin..=end).contains(&chunk.at)).count();
            let per_chunk = counted(trace).tokens as f64 / trace.chunks.len().max(1) as f64;
            inside as f64 * per_chunk
        })
        .sum();
    (length > 0.0 && tokens > 0.0).then(|| (tokens / length, length))
}
