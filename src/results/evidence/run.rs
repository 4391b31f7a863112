//! The run itself: was it real, did it succeed, is it enough, is it good.

use super::{Case, Effort, Facts, Reason, plain};
use crate::model::Localized;
use crate::results::json::{Kind, Node};
use crate::results::v1::Verdict;
use crate::rules::evidence as rules;

/// Words of `quality.status` that say that nothing was probed.
const NOT_COLLECTED: [&str; 6] =
    ["not_collected", "not_recorded", "not_evaluated", "not_measured", "pending", "skipped"];
/// Words of `status` that say that the run failed.
const FAILED: [&str; 6] = ["failed", "fail", "error", "crashed", "aborted", "cancelled"];

pub(super) fn judge(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    let facts = case.candidate;
    reasons.extend(level(facts));
    reasons.extend(failure(facts));
    reasons.extend(failed_requests(facts));
    reasons.extend(repeats(case));
    reasons.extend(samples(case));
    reasons.extend(stability(case));
    reasons.extend(disturbed(case));
    reasons.extend(client_error(facts));
    quality(case, reasons);
    memory(case, reasons);
    reasons.extend(placeholders(facts));
    reasons.extend(environment(facts));
    reasons.extend(cold_start(facts));
    reasons.extend(estimated(case));
}

fn level(facts: Facts<'_>) -> Option<Reason> {
    if facts.is_real_benchmark() {
        return None;
    }
    let level = facts.level().map_or_else(not_recorded, Localized::from);
    Some(Reason::tune(&rules::LEVEL_TOO_LOW, &["evidence_level"]).arg("value", level).step(
        Effort::Experiment,
        "a real benchmark instead of a smoke run",
        "用真实基准测试代替冒烟运行",
    ))
}

fn not_recorded() -> Localized {
    Localized::both("not recorded", "未记录")
}

fn failure(facts: Facts<'_>) -> Option<Reason> {
    let status = facts.text(&["status"]).filter(|status| FAILED.contains(&status.to_lowercase().as_str()));
    let median = facts.metric("e2e_latency_ms.p50");
    if status.is_none() && median.is_some() {
        return None;
    }
    let why = facts.text(&["failure", "failure_reason"]).or(status);
    let why = why.map_or_else(|| Localized::both("no median", "没有中位数"), Localized::from);
    let path: &[&str] = if status.is_some() { &["status"] } else { &["metrics", "e2e_latency_ms"] };
    Some(Reason::tune(&rules::RUN_FAILED, path).arg("value", why).step(
        Effort::Work,
        "a run that succeeds",
        "一次成功的运行",
    ))
}

fn failed_requests(facts: Facts<'_>) -> Option<Reason> {
    let failed = facts.number(&["metrics", "failed_requests"]).filter(|failed| *failed > 0.0)?;
    Some(Reason::tune(&rules::FAILED_REQUESTS, &["metrics", "failed_requests"]).arg("value", plain(failed)).step(
        Effort::Work,
        "a run without failed requests",
        "一次没有失败请求的运行",
    ))
}

fn repeats(case: &Case<'_>) -> Option<Reason> {
    let wanted = case.limits.min_repeats;
    let have = case.candidate.repeats().unwrap_or(0.0);
    if have >= f64::from(wanted) {
        return None;
    }
    let lacking = plain((f64::from(wanted) - have).ceil());
    Some(
        Reason::tune(&rules::SINGLE_RUN, &["config", "repeats"])
            .arg("value", case.candidate.repeats().map_or_else(not_recorded, |count| plain(count).into()))
            .arg("wanted", wanted)
            .step(Effort::Longer, format!("{lacking} more runs"), format!("再测 {lacking} 轮")),
    )
}

fn samples(case: &Case<'_>) -> Option<Reason> {
    let wanted = case.limits.min_samples;
    let have = case.candidate.samples().unwrap_or(0.0);
    if have >= f64::from(wanted) {
        return None;
    }
    let lacking = plain((f64::from(wanted) - have).ceil());
    Some(
        Reason::tune(&rules::TOO_FEW_SAMPLES, &["metrics", "samples"])
            .arg("value", case.candidate.samples().map_or_else(not_recorded, |count| plain(count).into()))
            .arg("wanted", wanted)
            .step(Effort::Longer, format!("{lacking} more requests"), format!("再发 {lacking} 个请求")),
    )
}

/// Coefficient of variation of throughput over the runs (sample standard deviation).
/// Repeats that are claimed but not kept prove nothing.
fn stability(case: &Case<'_>) -> Option<Reason> {
    let facts = case.candidate;
    let runs = facts.list(&["metrics", "per_run"]);
    let values = |name: &str| runs.iter().filter_map(|run| run.get(name)?.number()).collect::<Vec<f64>>();
    let tokens = values("throughput_tokens_per_s");
    let throughput = if tokens.len() < 2 { values("throughput_requests_per_s") } else { tokens };
    let repeated = facts.repeats().unwrap_or(0.0) >= f64::from(case.limits.min_repeats);
    let value = match variation(&throughput) {
        Some(cv) if cv > case.limits.max_cv => format!("CV {}", plain(cv)).into(),
        None if repeated => Localized::both("the runs are not in metrics.per_run", "metrics.per_run 中没有各轮数据"),
        _ => return None,
    };
    let reason = Reason::tune(&rules::UNSTABLE, &["metrics", "per_run"]).arg("wanted", plain(case.limits.max_cv));
    Some(reason.arg("value", value).step(Effort::Longer, "runs that agree", "各轮结果一致的重复运行"))
}

/// Others on the same processors. A run that did not look, or could not, is not blamed.
fn disturbed(case: &Case<'_>) -> Option<Reason> {
    let wanted = case.limits.max_others_cpu;
    let share = case.candidate.number(&["metrics", "others_cpu_share"]).filter(|share| *share > wanted)?;
    Some(
        Reason::tune(&rules::DISTURBED, &["metrics", "others_cpu_share"])
            .arg("value", percent(share))
            .arg("wanted", percent(wanted))
            .step(Effort::Longer, "the same run on a quiet machine", "在安静的机器上重测"),
    )
}

/// A client that measured itself. One that was not checked is not blamed.
fn client_error(facts: Facts<'_>) -> Option<Reason> {
    let path = ["metrics", "client_within_limits"];
    (facts.node(&path).and_then(Node::bool) == Some(false)).then(|| {
        Reason::tune(&rules::CLIENT_ERROR, &path).step(
            Effort::Longer,
            "a run by a client within its limits",
            "客户端误差在限值之内的重测",
        )
    })
}

/// A share in whole percent.
fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn variation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let spread = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (values.len() >= 2 && mean > 0.0).then(|| spread.sqrt() / mean)
}

fn quality(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    let facts = case.candidate;
    let number = |name: &str| facts.number(&["quality", name]);
    let wanted = case.limits.min_probes;
    reasons.extend(critical_fields(facts));
    let uncollected = facts.text(&["quality", "status"]).filter(|status| NOT_COLLECTED.contains(status));
    let lacking = match (uncollected, number("value"), number("floor")) {
        (Some(status), ..) => Localized::from(status),
        (None, None, _) => Localized::both("there is no value", "没有数值"),
        (None, _, None) => Localized::both("there is no floor", "没有下限"),
        (None, Some(value), Some(floor)) => {
            reasons.extend(probes(case, number("probes"), wanted));
            reasons.extend(floor_kept(facts, value, floor));
            return;
        }
    };
    let reason = Reason::tune(&rules::ACCEPT_WITHOUT_QUALITY, &["quality"]).arg("value", lacking);
    let probed = number("value").is_some() && number("probes").is_some_and(|have| have >= f64::from(wanted));
    reasons.push(if probed {
        reason.step(Effort::Write, "state a floor for quality", "写明质量下限")
    } else {
        reason.step(Effort::Measure, format!("{wanted} quality probes"), format!("{wanted} 个质量探针"))
    });
}

fn probes(case: &Case<'_>, probes: Option<f64>, wanted: u32) -> Option<Reason> {
    let have = probes.unwrap_or(0.0);
    let lacking = plain((f64::from(wanted) - have).ceil());
    (have < f64::from(case.limits.min_probes)).then(|| {
        Reason::tune(&rules::QUALITY_TOO_FEW_PROBES, &["quality", "probes"])
            .arg("value", plain(have))
            .arg("wanted", wanted)
            .step(Effort::Measure, format!("{lacking} more quality probes"), format!("再加 {lacking} 个质量探针"))
    })
}

fn floor_kept(facts: Facts<'_>, value: f64, floor: f64) -> Option<Reason> {
    let lower = facts.text(&["quality", "direction"]).is_some_and(|direction| {
        let direction = direction.to_lowercase();
        ["lower", "min", "down", "less", "decrease"].iter().any(|word| direction.contains(word))
    });
    let kept = if lower { value <= floor } else { value >= floor };
    (!kept).then(|| {
        Reason::new(&rules::QUALITY_BELOW_FLOOR, Verdict::Reject, &["quality", "value"])
            .arg("value", plain(value))
            .arg("wanted", plain(floor))
            .step(Effort::Work, "quality that keeps its floor", "让质量回到下限之内")
    })
}

fn critical_fields(facts: Facts<'_>) -> Option<Reason> {
    let changed: Vec<&str> = facts
        .list(&["quality", "fields"])
        .iter()
        .filter(|field| is_critical(field) && !agrees(field))
        .map(|field| field.get("name").or_else(|| field.get("field")).and_then(Node::text).unwrap_or("?"))
        .collect();
    (!changed.is_empty()).then(|| {
        Reason::new(&rules::CRITICAL_FIELD_CHANGED, Verdict::Reject, &["quality", "fields"])
            .arg("value", changed.join(", "))
            .step(Effort::Work, "answers in which the critical fields agree", "关键字段一致的回答")
    })
}

fn is_critical(field: &Node<'_>) -> bool {
    let word = ["risk", "level", "severity", "importance"].iter().find_map(|key| field.get(key)?.text());
    field.get("critical").and_then(Node::bool).unwrap_or(false)
        || word.is_some_and(|word| ["critical", "high"].contains(&word.to_lowercase().as_str()))
}

/// A share of agreement below 1, or a plain no. What was not compared did not change.
fn agrees(field: &Node<'_>) -> bool {
    let value = ["match", "match_rate", "agreement", "value"].iter().find_map(|key| field.get(key));
    match value.map(|value| &value.kind) {
        Some(Kind::Number(share)) => *share >= 1.0,
        Some(Kind::Bool(same)) => *same,
        _ => true,
    }
}

fn memory(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    let facts = case.candidate;
    let budget = |name: &str| facts.number(&["decision", "budget", name]);
    let cap = budget("peak_memory_mb").or_else(|| budget("memory_cap_mb"));
    let peak = facts.number(&["metrics", "peak_memory_mb"]);
    if cap.is_none() {
        reasons.push(Reason::tune(&rules::BUDGET_MISSING, &["decision", "budget"]).step(
            Effort::Write,
            "state a memory budget",
            "写明内存预算",
        ));
    }
    if let (Some(peak), Some(cap)) = (peak, cap)
        && peak > cap
    {
        reasons.push(
            Reason::tune(&rules::BUDGET_EXCEEDED, &["metrics", "peak_memory_mb"])
                .arg("value", plain(peak))
                .arg("wanted", plain(cap))
                .step(Effort::Work, "memory within the budget", "把内存降到预算之内"),
        );
    }
    if peak.is_none() {
        reasons.push(Reason::tune(&rules::MEMORY_NOT_MEASURED, &["metrics", "peak_memory_mb"]).step(
            Effort::Measure,
            "measure peak memory and its scope",
            "测量峰值内存并写明口径",
        ));
    } else if facts.text(&["metrics", "peak_memory_scope"]).is_none() {
        reasons.push(Reason::tune(&rules::MEMORY_SCOPE_MISSING, &["metrics", "peak_memory_scope"]).step(
            Effort::Write,
            "state the scope of the memory figure",
            "写明内存数字的口径",
        ));
    }
}

fn placeholders(facts: Facts<'_>) -> Option<Reason> {
    let missing: Vec<&str> =
        ["model", "backend", "dtype"].into_iter().filter(|name| facts.recorded(&["config", name]).is_none()).collect();
    let first = *missing.first()?;
    let names = missing.join(", ");
    Some(Reason::tune(&rules::PLACEHOLDER, &["config", first]).arg("value", names.as_str()).step(
        Effort::Write,
        format!("record {names}"),
        format!("记录 {names}"),
    ))
}

fn environment(facts: Facts<'_>) -> Option<Reason> {
    let absent = |name: &&str| facts.recorded(&["config", name]).is_none();
    let names = ["model_revision", "backend_version", "device", "workload"];
    let missing: Vec<&str> = names.into_iter().filter(absent).collect();
    if missing.is_empty() {
        return None;
    }
    let names = missing.join(", ");
    Some(Reason::tune(&rules::ENVIRONMENT_MISSING, &["config"]).arg("value", names.as_str()).step(
        Effort::Write,
        format!("record {names}"),
        format!("记录 {names}"),
    ))
}

fn cold_start(facts: Facts<'_>) -> Option<Reason> {
    let cold = facts.number(&["config", "warmup"]) == Some(0.0) && facts.text(&["config", "run_phase"]).is_none();
    cold.then(|| {
        Reason::tune(&rules::COLD_START_INCLUDED, &["config", "warmup"]).step(
            Effort::Longer,
            "warm up before measuring",
            "测量前先预热",
        )
    })
}

/// On either side: a guessed baseline is no better than a guessed candidate.
fn estimated(case: &Case<'_>) -> Option<Reason> {
    let guessed = |facts: Facts<'_>| {
        let node = facts.node(&["metrics", "estimated_output_tokens"]);
        node.is_some_and(|node| node.bool() == Some(true) || node.number().is_some_and(|count| count > 0.0))
    };
    (guessed(case.candidate) || case.baseline.is_some_and(guessed)).then(|| {
        Reason::tune(&rules::ESTIMATED_TOKENS, &["metrics", "estimated_output_tokens"]).step(
            Effort::Measure,
            "count output tokens",
            "对输出 token 计数",
        )
    })
}
