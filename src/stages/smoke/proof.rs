//! What a run proves of its strategy: from the server's counters in the measured window
//! and the answers that came, never from the command line. What they do not show is
//! `null`. Pure.

use super::run::{Invalidation, Measured};
use crate::backend::counters::Counters;
use crate::backend::plan::Plan;
use crate::backend::spec::Switch;
use crate::bench::metrics::PassFigures;
use crate::bench::stats::Distribution;
use crate::model::{Finding, Localized, Location};
use crate::rules;
use serde_json::{Map, Value, json as object};

/// A mean wait below this is a step of the scheduler, not a queue, ms.
const QUEUE_MS: f64 = 10.0;

/// Definition of `verify_cost_ms`, stored beside the figure.
const VERIFY_COST: &str = "server's decode time of the window / decoding steps, where a step is one pass of the \
     target model: generated - accepted - one first token per request, and at least one per draft; \
     drafting is inside, steps without a draft are in the mean";

/// The metrics that the project asks for, and what explains them.
pub(super) fn strategy_metrics(
    plan: &Plan,
    measured: &Measured,
    figures: &PassFigures,
    dtype: Option<&str>,
) -> Map<String, Value> {
    let counted = measured.counted();
    let mut metrics = Map::new();
    for name in plan.project.iter().flat_map(|project| &project.strategy_metrics) {
        match name.as_str() {
            "quantization_format" => put(&mut metrics, name, dtype),
            "weights_bytes" => put(&mut metrics, name, plan.model.bytes),
            "cache_hit_rate" => cache(&mut metrics, measured, &counted, figures),
            "acceptance_rate" => acceptance(&mut metrics, &counted),
            "verify_cost_ms" => verification(&mut metrics, &counted, figures, plan.concurrency),
            "fairness" => fairness(&mut metrics, figures),
            "queue_wait_ms" => queue(&mut metrics, measured, &counted, figures),
            "invalidation_cost_ms" => {
                put(&mut metrics, name, measured.invalidation.as_ref().and_then(invalidation_cost));
            }
            other => put(&mut metrics, other, Value::Null),
        }
    }
    metrics
}

fn put(metrics: &mut Map<String, Value>, name: &str, value: impl serde::Serialize) {
    metrics.insert(name.to_owned(), object!(value));
}

fn cache(metrics: &mut Map<String, Value>, measured: &Measured, counted: &Counters, figures: &PassFigures) {
    let rate = hit_rate(counted, figures);
    put(metrics, "cache_hit_rate", rate);
    if rate.is_some() {
        put(metrics, "hit_rate_source", "server_counters");
    }
    put(metrics, "cache_settings", (!measured.before.settings.is_empty()).then_some(&measured.before.settings));
}

/// Cached over all prompt tokens of the window. The answers say how long the prompts
/// were; where they do not, the server's counters do: some count only the computed
/// tokens of prompts, others all.
fn hit_rate(counted: &Counters, figures: &PassFigures) -> Option<f64> {
    let cached = *counted.get("cached_tokens")?;
    let told: Option<u64> = figures.requests.iter().map(|request| request.prompt_tokens).sum();
    let by_answers = told.filter(|all| *all > 0).map(|all| all as f64);
    let computed = counted.get("computed_tokens").map(|computed| computed + cached);
    let all = by_answers.or(computed).or(counted.get("prompt_tokens").copied())?;
    (all > 0.0).then(|| (cached / all).min(1.0))
}

/// Median TTFT behind a changed prefix minus median TTFT on a hit. A difference that is
/// not above zero is noise and no cost; the samples are in the result.
fn invalidation_cost(found: &Invalidation) -> Option<f64> {
    let median = |samples: &[f64]| Distribution::of(samples).map(|known| known.p50);
    Some(median(&found.miss_ttft_ms)? - median(&found.hit_ttft_ms)?).filter(|cost| *cost > 0.0)
}

/// Accepted over drafted tokens; the mean length of what a verification gives, the
/// target's own token included; and the share of drafts accepted at each position.
fn acceptance(metrics: &mut Map<String, Value>, counted: &Counters) {
    let of = |name: &str| counted.get(name).copied();
    let rate = of("drafted_tokens").filter(|drafted| *drafted > 0.0);
    put(metrics, "acceptance_rate", rate.zip(of("accepted_tokens")).map(|(drafted, accepted)| accepted / drafted));
    let drafts = of("drafts").filter(|drafts| *drafts > 0.0);
    let length = drafts.zip(of("accepted_tokens")).map(|(drafts, accepted)| 1.0 + accepted / drafts);
    put(metrics, "acceptance_length", length);
    put(metrics, "acceptance_per_position", drafts.and_then(|drafts| per_position(counted, drafts)));
}

fn per_position(counted: &Counters, drafts: f64) -> Option<Vec<f64>> {
    let mut at: Vec<(u32, f64)> = counted
        .iter()
        .filter_map(|(meaning, accepted)| {
            Some((meaning.strip_prefix("accepted_at.")?.parse().ok()?, accepted / drafts))
        })
        .collect();
    at.sort_by_key(|(position, _)| *position);
    // Positions that no draft of this window reached say nothing.
    while at.last().is_some_and(|(_, share)| *share == 0.0) {
        at.pop();
    }
    (!at.is_empty()).then(|| at.into_iter().map(|(_, share)| share).collect())
}

/// What a step with verification costs; see [`VERIFY_COST`]. With several requests in
/// flight their decode times overlap, and no cost of a step can be told.
fn verification(metrics: &mut Map<String, Value>, counted: &Counters, figures: &PassFigures, concurrency: u32) {
    let drafts = counted.get("drafts").copied().filter(|drafts| *drafts > 0.0);
    let steps = drafts.and_then(|drafts| {
        let own = counted.get("generated_tokens")? - counted.get("accepted_tokens")? - figures.successful as f64;
        Some(own.max(drafts))
    });
    let cost = steps
        .filter(|_| concurrency <= 1)
        .zip(counted.get("decode_seconds"))
        .map(|(steps, seconds)| seconds * 1000.0 / steps)
        .filter(|cost| *cost > 0.0);
    put(metrics, "verify_cost_ms", cost);
    put(metrics, "verification_passes", drafts);
    put(metrics, "decoding_steps", steps);
    if cost.is_some() {
        put(metrics, "verify_cost_definition", VERIFY_COST);
    }
}

fn fairness(metrics: &mut Map<String, Value>, figures: &PassFigures) {
    put(metrics, "fairness", figures.fairness_jain_ttft);
    put(metrics, "fairness_definition", "Jain's index over the TTFT of the requests");
}

/// Mean time in the server's queue: by its own histogram, else by what its answers say.
pub(super) fn queue_wait(counted: &Counters, figures: &PassFigures) -> Option<(f64, &'static str)> {
    let requests = counted.get("queued_requests").filter(|requests| **requests > 0.0);
    let counters = requests.zip(counted.get("queue_seconds")).map(|(requests, seconds)| seconds * 1000.0 / requests);
    match counters {
        Some(wait) => Some((wait, "server_histogram")),
        None => figures.queue_wait_ms.map(|wait| (wait.mean, "ttft_minus_prompt_time")),
    }
}

fn queue(metrics: &mut Map<String, Value>, measured: &Measured, counted: &Counters, figures: &PassFigures) {
    let wait = queue_wait(counted, figures);
    put(metrics, "queue_wait_ms", wait.map(|(wait, _)| wait));
    if let Some((_, source)) = wait {
        put(metrics, "queue_wait_source", source);
    }
    put(metrics, "waiting_peak", measured.gauges.get("waiting"));
    put(metrics, "running_peak", measured.gauges.get("running"));
    put(metrics, "preemptions", counted.get("preemptions"));
}

/// Where counters and answers do not describe the same work, and where the load brought
/// no queue about.
pub(super) fn remarks(at: &Location, plan: &Plan, measured: &Measured, figures: &PassFigures) -> Vec<Finding> {
    let counted = measured.counted();
    let mut found: Vec<Finding> = Vec::new();
    found.extend(disagreement(
        at,
        &counted,
        "generated_tokens",
        figures.output_tokens as f64,
        figures.successful as f64,
    ));
    found.extend(disagreement(at, &counted, "completed_requests", figures.successful as f64, 0.0));
    if plan.concurrency > 1 && !queued(measured, &counted) {
        found.push(Finding::new(&rules::smoke::NO_QUEUE, at.clone()));
    }
    found
}

/// Whether a queue was seen; a server that tells nothing of one gives no reason to deny it.
fn queued(measured: &Measured, counted: &Counters) -> bool {
    let seen = measured.gauges.get("waiting").is_none_or(|peak| *peak > 0.0);
    let requests = counted.get("queued_requests").filter(|requests| **requests > 0.0);
    let waited = requests.zip(counted.get("queue_seconds")).map(|(requests, seconds)| seconds * 1000.0 / requests);
    seen || waited.is_some_and(|wait| wait > QUEUE_MS)
}

/// The server's count against the answers we got. One token per request is tolerated:
/// servers differ in whether they count the end of a text.
fn disagreement(at: &Location, counted: &Counters, meaning: &str, answered: f64, tolerance: f64) -> Option<Finding> {
    let count = *counted.get(meaning)?;
    let what = match meaning {
        "completed_requests" => Localized::both("completed requests", "个完成的请求"),
        _ => Localized::both("generated tokens", "个生成 token"),
    };
    ((count - answered).abs() > tolerance).then(|| {
        Finding::new(&rules::smoke::COUNTERS_DISAGREE, at.clone())
            .arg("counted", count)
            .arg("answered", answered)
            .arg("what", what)
    })
}

/// A claim of the run that the server's counters or stated settings contradict or do
/// not bear out.
pub(super) fn unsupported_claim(
    at: Location,
    plan: &Plan,
    measured: &Measured,
    figures: &PassFigures,
) -> Option<Finding> {
    let counted = measured.counted();
    let shown = |value: Option<f64>| value.map_or_else(|| "no such counter".to_owned(), |value| value.to_string());
    let drafted = counted.get("drafted_tokens").copied();
    if plan.claims.speculation == Some(Switch::On) && drafted.is_none_or(|count| count <= 0.0) {
        return Some(Finding::new(&rules::smoke::SPECULATION_NOT_ACTIVE, at).arg("drafted", shown(drafted)));
    }
    let cached = counted.get("cached_tokens").copied();
    let (claim, evidence) = if contradicted(plan.claims.speculation, drafted) {
        (format!("speculation {}", state(plan.claims.speculation)), format!("drafted tokens: {}", shown(drafted)))
    } else if contradicted(plan.claims.prefix_cache, cached) {
        (format!("prefix cache {}", state(plan.claims.prefix_cache)), format!("cached tokens: {}", shown(cached)))
    } else {
        let (label, value) = stated(plan, measured, "prefix_cache")?;
        if switched(value)? == plan.claims.prefix_cache? {
            return None;
        }
        (format!("prefix cache {}", state(plan.claims.prefix_cache)), format!("{label}=\"{value}\""))
    };
    let fault = Finding::new(&rules::smoke::CLAIM_NOT_SHOWN, at).arg("claim", claim).arg("evidence", evidence);
    Some(match block_too_large(plan, measured, figures) {
        Some(help) => fault.help(help),
        None => fault,
    })
}

fn contradicted(claim: Option<Switch>, count: Option<f64>) -> bool {
    match claim {
        Some(Switch::On) => count.is_none_or(|count| count <= 0.0),
        Some(Switch::Off) => count.is_some_and(|count| count > 0.0),
        None => false,
    }
}

fn state(claim: Option<Switch>) -> &'static str {
    if claim == Some(Switch::On) { "on" } else { "off" }
}

/// A setting that the server states among its counters, with the label's name.
fn stated<'a>(plan: &'a Plan, measured: &'a Measured, meaning: &str) -> Option<(&'a str, &'a str)> {
    let label = plan.profile.settings_labels.get(meaning)?;
    Some((label, measured.before.settings.get(label)?))
}

fn switched(value: &str) -> Option<Switch> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" | "on" => Some(Switch::On),
        "false" | "0" | "off" => Some(Switch::Off),
        _ => None,
    }
}

/// A prompt that is shorter than a block of the cache can never hit it.
fn block_too_large(plan: &Plan, measured: &Measured, figures: &PassFigures) -> Option<Localized> {
    if plan.claims.prefix_cache != Some(Switch::On) {
        return None;
    }
    let block: u64 = stated(plan, measured, "block_size")?.1.parse().ok()?;
    let longest = figures.requests.iter().filter_map(|request| request.prompt_tokens).max()?;
    (longest <= block).then(|| {
        Localized::both(
            format!(
                "the longest prompt has {longest} tokens and a block of the cache {block}: only whole blocks are cached, so none of these prompts can ever hit; use prompts that share more than {block} tokens"
            ),
            format!(
                "最长的提示词有 {longest} 个 token，而缓存的一个块是 {block} 个 token：只有完整的块才会被缓存，这些提示词永远不可能命中；请使用共享前缀超过 {block} 个 token 的提示词"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::metrics::RequestFigures;
    use crate::client::{Chunk, RequestTrace, Usage};
    use std::time::Duration;

    fn counters(values: &[(&str, f64)]) -> Counters {
        values.iter().map(|(meaning, value)| ((*meaning).to_owned(), *value)).collect()
    }

    /// Figures of requests with prompts of these lengths.
    fn figures(prompts: &[Option<u64>]) -> PassFigures {
        let traces: Vec<RequestTrace> = prompts
            .iter()
            .map(|prompt| RequestTrace {
                chunks: vec![Chunk {
                    at: Duration::from_millis(5),
                    visible: true,
                    tokens_so_far: None,
                    damaged: false,
                }],
                usage: Some(Usage { prompt_tokens: *prompt, completion_tokens: Some(10), cached_tokens: None }),
                ..RequestTrace::default()
            })
            .collect();
        let figures = PassFigures::of(&traces);
        assert!(figures.requests.iter().map(|request: &RequestFigures| request.output_tokens).all(|count| count == 10));
        figures
    }

    #[test]
    fn a_hit_rate_is_over_all_prompt_tokens_however_the_server_counts() {
        // llama.cpp counts computed tokens only, vLLM all; the answers tell in both cases.
        let computed = counters(&[("cached_tokens", 400.0), ("computed_tokens", 600.0)]);
        let all = counters(&[("cached_tokens", 400.0), ("prompt_tokens", 1000.0)]);
        for counted in [&computed, &all] {
            assert_eq!(hit_rate(counted, &figures(&[Some(500), Some(500)])), Some(0.4));
            assert_eq!(hit_rate(counted, &figures(&[None, Some(500)])), Some(0.4));
        }
        assert_eq!(hit_rate(&counters(&[("prompt_tokens", 5.0)]), &figures(&[Some(5)])), None);
    }

    #[test]
    fn the_cost_of_a_verification_is_decode_time_per_step() {
        let counted = counters(&[
            ("generated_tokens", 100.0),
            ("accepted_tokens", 50.0),
            ("drafted_tokens", 80.0),
            ("drafts", 20.0),
            ("decode_seconds", 2.4),
            ("accepted_at.0", 20.0),
            ("accepted_at.1", 10.0),
            ("accepted_at.2", 0.0),
        ]);
        let mut metrics = Map::new();
        acceptance(&mut metrics, &counted);
        verification(&mut metrics, &counted, &figures(&[Some(5), Some(5)]), 1);
        assert_eq!(metrics["acceptance_rate"], 0.625);
        assert_eq!(metrics["acceptance_length"], 3.5);
        assert_eq!(metrics["acceptance_per_position"], object!([1.0, 0.5]));
        assert_eq!((&metrics["decoding_steps"], &metrics["verify_cost_ms"]), (&object!(48.0), &object!(50.0)));
        let null_at_four = {
            verification(&mut metrics, &counted, &figures(&[Some(5)]), 4);
            metrics["verify_cost_ms"].is_null()
        };
        assert!(null_at_four, "decode times of several requests overlap");
    }

    #[test]
    fn what_a_server_does_not_count_is_null() {
        let mut metrics = Map::new();
        acceptance(&mut metrics, &Counters::new());
        verification(&mut metrics, &counters(&[("drafts", 0.0), ("decode_seconds", 3.0)]), &figures(&[None]), 1);
        for name in
            ["acceptance_rate", "acceptance_length", "acceptance_per_position", "verify_cost_ms", "decoding_steps"]
        {
            assert!(metrics[name].is_null(), "{name}");
        }
    }

    #[test]
    fn a_queue_is_seen_in_the_gauge_or_in_the_histogram() {
        let gauge = |waiting| Measured { gauges: counters(&[("waiting", waiting)]), ..Measured::default() };
        let histogram = |seconds| counters(&[("queued_requests", 8.0), ("queue_seconds", seconds)]);
        assert!(queued(&gauge(3.0), &Counters::new()));
        assert!(!queued(&gauge(0.0), &Counters::new()));
        assert!(queued(&gauge(0.0), &histogram(4.0)), "the gauge was looked at between two moments");
        assert!(!queued(&gauge(0.0), &histogram(0.008)));
        assert!(queued(&Measured::default(), &Counters::new()), "a server that tells nothing");
        assert_eq!(queue_wait(&histogram(4.0), &figures(&[])), Some((500.0, "server_histogram")));
    }

    #[test]
    fn an_invalidation_that_costs_less_than_nothing_is_noise() {
        let cost = |hit: [f64; 3], miss: [f64; 3]| {
            invalidation_cost(&Invalidation { hit_ttft_ms: hit.to_vec(), miss_ttft_ms: miss.to_vec() })
        };
        assert_eq!(cost([10.0, 12.0, 11.0], [90.0, 95.0, 91.0]), Some(80.0));
        assert_eq!(cost([10.0, 12.0, 11.0], [9.0, 10.0, 9.0]), None);
        assert_eq!(invalidation_cost(&Invalidation::default()), None);
    }

    #[test]
    fn switches_are_read_as_servers_write_them() {
        assert_eq!([switched("True"), switched("False"), switched("128")], [Some(Switch::On), Some(Switch::Off), None]);
    }
}
