//! What each section of the course has to show beside the public figures.

use super::comparison::differences;
use super::{Case, Effort, Facts, Reason, plain};
use crate::model::Localized;
use crate::results::json::{Kind, Node};
use crate::results::v1::Verdict;
use crate::rules::evidence as rules;

pub(super) fn judge(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    match case.candidate.project() {
        Some(67) => reasons.extend(quantization(case.candidate)),
        Some(68) => reasons.extend(speculation(case.candidate)),
        Some(69) => reasons.extend(prefix_cache(case.candidate)),
        Some(70) => scheduler(case, reasons),
        _ => reasons.extend(profile(case)),
    }
}

/// A value that says something: no null, no blank, not "none".
fn given(facts: Facts<'_>, path: &[&str]) -> bool {
    facts.node(path).is_some_and(|node| match &node.kind {
        Kind::Text(text) => {
            let text = text.trim().to_lowercase();
            !["", "none", "off", "false", "disabled", "no", "null"].contains(&text.as_str())
                && facts.recorded(path).is_some()
        }
        Kind::Bool(value) => *value,
        Kind::NotFinite | Kind::Null => false,
        _ => true,
    })
}

fn lacking(missing: &[&str]) -> Localized {
    let names = missing.join(", ");
    Localized::both(format!("no {names}"), format!("没有 {names}"))
}

fn quantization(facts: Facts<'_>) -> Option<Reason> {
    let names = ["quantization_format", "quantization_artifact"];
    let missing: Vec<&str> = names.into_iter().filter(|name| !given(facts, &["config", name])).collect();
    (!missing.is_empty()).then(|| {
        Reason::new(&rules::NO_QUANTIZATION, Verdict::NotEvaluated, &["config", missing[0]])
            .arg("value", lacking(&missing))
            .step(Effort::Experiment, "serve a quantized model", "使用量化模型")
    })
}

fn speculation(facts: Facts<'_>) -> Option<Reason> {
    let draft = given(facts, &["config", "draft_model"])
        || given(facts, &["config", "settings", "draft_model"])
        || given(facts, &["strategy_metrics", "draft_model"]);
    let rate = facts.number(&["strategy_metrics", "acceptance_rate"]).is_some();
    let missing: Vec<&str> = [(draft, "draft_model"), (rate, "acceptance_rate")]
        .into_iter()
        .filter(|(given, _)| !given)
        .map(|(_, name)| name)
        .collect();
    if !missing.is_empty() {
        return Some(
            Reason::new(&rules::NOT_SPECULATIVE, Verdict::NotEvaluated, &["strategy_metrics"])
                .arg("value", lacking(&missing))
                .step(
                    Effort::Experiment,
                    "start the backend with a draft model and record the acceptance rate",
                    "带草稿模型启动后端并记录接受率",
                ),
        );
    }
    facts.number(&["strategy_metrics", "verify_cost_ms"]).is_none().then(|| {
        Reason::tune(&rules::VERIFY_COST_MISSING, &["strategy_metrics"]).step(
            Effort::Measure,
            "measure verify_cost_ms",
            "测量 verify_cost_ms",
        )
    })
}

fn prefix_cache(facts: Facts<'_>) -> Option<Reason> {
    let policy = facts.text(&["config", "cache_policy"]).unwrap_or("off");
    let off = ["default", "off", "none", "disabled", "false", "no"].contains(&policy.to_lowercase().as_str());
    let rate = ["cache_hit_rate", "hit_rate"].iter().find_map(|name| facts.number(&["strategy_metrics", name]));
    let source = facts.text(&["strategy_metrics", "hit_rate_source"]).unwrap_or_default().to_lowercase();
    let inferred = ["infer", "estimat", "guess", "ttft", "推断", "估"].iter().any(|word| source.contains(word));
    let lacking = if off {
        Localized::both(format!("cache_policy is {policy}"), format!("cache_policy 为 {policy}"))
    } else if rate.is_none() {
        lacking(&["cache_hit_rate"])
    } else if inferred {
        Localized::both(format!("the hit rate is {source}"), format!("命中率来源为 {source}"))
    } else {
        let cost = facts.number(&["strategy_metrics", "invalidation_cost_ms"]);
        return cost.is_none().then(|| {
            Reason::tune(&rules::INVALIDATION_COST_MISSING, &["strategy_metrics"]).step(
                Effort::Measure,
                "measure invalidation_cost_ms",
                "测量 invalidation_cost_ms",
            )
        });
    };
    Some(Reason::new(&rules::CACHE_NOT_SHOWN, Verdict::NotEvaluated, &["strategy_metrics"]).arg("value", lacking).step(
        Effort::Measure,
        "take the hit rate from the backend's metrics or log",
        "从后端指标或日志中取命中率",
    ))
}

fn scheduler(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    let facts = case.candidate;
    if load_only(case) {
        reasons.push(
            Reason::new(&rules::LOAD_SENSITIVITY_ONLY, Verdict::NotEvaluated, &["config", "concurrency"]).step(
                Effort::Experiment,
                "compare two scheduler policies under one load",
                "在同一负载下比较两种调度策略",
            ),
        );
        return;
    }
    let wanted = case.limits.min_scheduler_concurrency;
    let concurrency = facts.number(&["config", "concurrency"]).unwrap_or(1.0);
    if concurrency < f64::from(wanted) {
        reasons.push(
            Reason::tune(&rules::CONCURRENCY_TOO_LOW, &["config", "concurrency"])
                .arg("value", plain(concurrency))
                .arg("wanted", wanted)
                .step(Effort::Experiment, format!("concurrency {wanted} on both sides"), format!("两侧并发 {wanted}")),
        );
    }
    if facts.node(&["strategy_metrics", "fairness"]).is_none_or(|node| node.number().is_none() && !node.is_object()) {
        reasons.push(Reason::tune(&rules::FAIRNESS_MISSING, &["strategy_metrics"]).step(
            Effort::Measure,
            "measure fairness",
            "测量公平性",
        ));
    }
}

/// Stated, or seen: load is the one thing that differs from the baseline, or there is
/// no baseline and no policy is named.
fn load_only(case: &Case<'_>) -> bool {
    let facts = case.candidate;
    let stated = facts.text(&["config", "experiment_type"]).is_some_and(|kind| kind.to_lowercase().contains("load"));
    let seen = match case.baseline {
        Some(baseline) => {
            matches!(differences(facts, baseline).as_slice(), [only] if only.variable == "load")
        }
        None => !given(facts, &["config", "scheduler_policy"]),
    };
    stated || seen
}

/// Sections that the user added: what the profile lists must be there.
fn profile(case: &Case<'_>) -> Option<Reason> {
    let facts = case.candidate;
    let absent = |name: &&str| {
        facts.node(&["strategy_metrics", name]).is_none_or(Node::is_null) && facts.node(&["config", name]).is_none()
    };
    let missing: Vec<&str> = case.strategy_metrics.iter().map(String::as_str).filter(absent).collect();
    (!missing.is_empty()).then(|| {
        let names = missing.join(", ");
        Reason::tune(&rules::STRATEGY_METRIC_MISSING, &["strategy_metrics"]).arg("value", names.as_str()).step(
            Effort::Measure,
            format!("measure {names}"),
            format!("测量 {names}"),
        )
    })
}
