//! What the decision claims: targets, objective, P99, how far it reaches.

use super::{Case, Effort, Facts, Reason, plain};
use crate::model::Localized;
use crate::results::json::Node;
use crate::results::v1::Verdict;
use crate::rules::{Rule, evidence as rules};

/// Texts that claim more than one device, backend and workload can show.
const TOO_WIDE: [&str; 17] = [
    "universal",
    "every gpu",
    "every device",
    "every workload",
    "all gpus",
    "all devices",
    "all hardware",
    "all workloads",
    "any gpu",
    "any device",
    "any hardware",
    "everywhere",
    "通用",
    "所有设备",
    "所有 gpu",
    "任何设备",
    "任意设备",
];

pub(super) fn judge(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    let facts = case.candidate;
    targets(case, reasons);
    reasons.extend(objective(facts));
    reasons.extend(scope(facts));
    reasons.extend(production(facts));
    reasons.extend(tail(case));
    reasons.extend(unreasoned(facts));
}

fn targets(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    let targets = case.candidate.list(&["decision", "targets"]);
    if targets.is_empty() {
        reasons.push(Reason::tune(&rules::TARGET_MISSING, &["decision"]).step(
            Effort::Write,
            "state targets",
            "写明目标",
        ));
        return;
    }
    let missed: Vec<Localized> = targets.iter().filter_map(|target| missed(case, target)).collect();
    if !missed.is_empty() {
        let join = |lang| missed.iter().map(|text| text.get(lang)).collect::<Vec<_>>().join("; ");
        let all = Localized::both(join(crate::model::Lang::En), join(crate::model::Lang::Zh));
        reasons.push(Reason::tune(&rules::TARGET_MISSED, &["decision", "targets"]).arg("value", all).step(
            Effort::Work,
            "meet the targets",
            "达到目标",
        ));
    }
}

/// What is wrong with one target; `None` when it is met, or when it needs a baseline
/// and there is none (that has a rule of its own).
fn missed(case: &Case<'_>, target: &Node<'_>) -> Option<Localized> {
    let unreadable = || Localized::both("a target cannot be judged", "有目标无法判断");
    let Some(metric) = target.get("metric").and_then(Node::text) else { return Some(unreadable()) };
    let limit = |name: &str| target.get(name).and_then(Node::number);
    let Some(value) = case.candidate.metric(metric) else {
        return Some(Localized::both(format!("{metric} was not measured"), format!("{metric} 没有测量")));
    };
    let mut judged = 0;
    let mut fault = None;
    for (op, limit) in absolute_limits(target) {
        judged += 1;
        if !holds(value, op, limit) {
            let (value, limit) = (plain(value), plain(limit));
            fault = Some(Localized::from(format!("{metric} {value}, {op} {limit}")));
        }
    }
    for name in ["min_gain", "max_regression", "max_regression_ms", "max_delta_ms", "max_increase_ms"] {
        let Some(limit) = limit(name) else { continue };
        judged += 1;
        let Some(baseline) = case.baseline else { continue };
        match baseline.metric(metric) {
            None => {
                fault = Some(Localized::both(
                    format!("{metric} was not measured in the baseline"),
                    format!("基线没有测量 {metric}"),
                ));
            }
            Some(before) => fault = relative(metric, name, limit, before, value).or(fault),
        }
    }
    if judged == 0 { Some(unreadable()) } else { fault }
}

/// `op` with `value`, or `min`/`max`.
fn absolute_limits(target: &Node<'_>) -> Vec<(&'static str, f64)> {
    let number = |name: &str| target.get(name).and_then(Node::number);
    let op = target.get("op").and_then(Node::text).and_then(|op| {
        ["<=", "<", ">=", ">", "=="].into_iter().find(|known| *known == op.trim()).or(match op.trim() {
            "le" | "≤" => Some("<="),
            "lt" => Some("<"),
            "ge" | "≥" => Some(">="),
            "gt" => Some(">"),
            _ => None,
        })
    });
    let stated = op.zip(number("value"));
    let min = number("min").map(|limit| (">=", limit));
    let max = number("max").map(|limit| ("<=", limit));
    [stated, min, max].into_iter().flatten().collect()
}

fn holds(value: f64, op: &str, limit: f64) -> bool {
    match op {
        "<=" => value <= limit,
        "<" => value < limit,
        ">=" => value >= limit,
        ">" => value > limit,
        _ => value == limit,
    }
}

/// Rounding in the last digit decides nothing.
const ROUNDING: f64 = 1e-9;

fn relative(metric: &str, name: &str, limit: f64, before: f64, now: f64) -> Option<Localized> {
    let better_by = if lower_is_better(metric) { before - now } else { now - before };
    let gain = better_by / before;
    let kept = match name {
        "min_gain" => gain >= limit - ROUNDING,
        "max_regression" => -gain <= limit + ROUNDING,
        _ => -better_by <= limit + ROUNDING,
    };
    let change = signed_percent((now - before) / before);
    (!kept).then(|| {
        Localized::from(format!("{metric} {} → {} ({change}), {name} {}", plain(before), plain(now), plain(limit)))
    })
}

/// `+4.0 %`.
fn signed_percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// Times, memory and costs; everything else is better when it is higher.
pub(crate) fn lower_is_better(metric: &str) -> bool {
    ["_ms", "memory", "latency", "cost", "wait", "failed", "duration", "loss", "p99", "p95"]
        .iter()
        .any(|part| metric.contains(part))
}

fn objective(facts: Facts<'_>) -> Option<Reason> {
    let targets = facts.list(&["decision", "targets"]);
    let objective = facts.text(&["decision", "objective"])?.to_lowercase();
    let wanted: (&[&str], &str) = match objective.as_str() {
        "interactive" | "online" | "chat" | "latency" => (&["ttft", "p99"], "TTFT / P99"),
        "batch" | "offline" | "throughput" => (&["throughput"], "throughput"),
        _ => return None,
    };
    let names = || targets.iter().filter_map(|target| target.get("metric")?.text());
    let aimed = names().any(|metric| wanted.0.iter().any(|part| metric.contains(part)));
    (!targets.is_empty() && !aimed).then(|| {
        Reason::tune(&rules::OBJECTIVE_MISMATCH, &["decision", "objective"])
            .arg("value", objective)
            .arg("wanted", wanted.1)
            .step(Effort::Write, format!("a target on {}", wanted.1), format!("针对 {} 的目标", wanted.1))
    })
}

/// The claim itself is the fault, whatever the decision.
fn wrong_claim(rule: &'static Rule, path: &[&str]) -> Reason {
    Reason { wrong_claim: true, ..Reason::tune(rule, path) }
}

fn scope(facts: Facts<'_>) -> Option<Reason> {
    let too_wide = |text: &&str| {
        let text = text.to_lowercase();
        text.trim() == "general" || TOO_WIDE.iter().any(|part| text.contains(part))
    };
    let claims = facts.list(&["decision", "claims"]).iter().filter_map(Node::text);
    let scope = facts.text(&["decision", "scope"]).into_iter().chain(claims).find(too_wide)?;
    Some(wrong_claim(&rules::SCOPE_TOO_WIDE, &["decision", "scope"]).arg("value", scope).step(
        Effort::Write,
        "limit the claim to this device, backend and workload",
        "把结论限定为此设备、此后端、此工作负载",
    ))
}

fn production(facts: Facts<'_>) -> Option<Reason> {
    let claim = facts.claims().into_iter().find(|claim| claim.contains("production") || claim.contains("生产"))?;
    (!facts.is_real_benchmark()).then(|| {
        let level = facts.level().map_or_else(|| Localized::both("not recorded", "未记录"), Localized::from);
        wrong_claim(&rules::SMOKE_AS_PRODUCTION, &["decision", "claims"]).arg("value", claim).arg("level", level).step(
            Effort::Write,
            "drop the claim",
            "去掉该声称",
        )
    })
}

/// P99 needs its samples, when anything rests on it.
fn tail(case: &Case<'_>) -> Option<Reason> {
    let facts = case.candidate;
    let claimed = facts.claims().iter().any(|claim| claim.contains("p99"));
    let mut targets = facts.list(&["decision", "targets"]).iter().filter_map(|target| target.get("metric")?.text());
    let targeted = targets.any(|metric| metric.contains("p99"));
    if !claimed && !targeted {
        return None;
    }
    let have = facts.samples().unwrap_or(0.0);
    let (least, enough) = (case.limits.p99_min_samples, case.limits.p99_warn_samples);
    let path: &[&str] = if claimed { &["decision", "claims"] } else { &["decision", "targets"] };
    if have < f64::from(least) {
        let lacking = plain((f64::from(least) - have).ceil());
        let reason = Reason { wrong_claim: claimed, ..Reason::tune(&rules::P99_TOO_FEW_SAMPLES, path) };
        let (en, zh) = (format!("{lacking} more requests for P99"), format!("为 P99 再发 {lacking} 个请求"));
        Some(reason.arg("value", plain(have)).arg("wanted", least).step(Effort::Longer, en, zh))
    } else if have < f64::from(enough) {
        Some(Reason::advice(&rules::P99_WIDE_INTERVAL, path).arg("value", plain(have)).arg("wanted", enough))
    } else {
        None
    }
}

fn unreasoned(facts: Facts<'_>) -> Option<Reason> {
    let word = facts.text(&["decision", "decision"]).and_then(Verdict::of)?;
    let missing: Vec<&str> =
        ["reason", "next_action"].into_iter().filter(|name| facts.text(&["decision", name]).is_none()).collect();
    (word != Verdict::NotEvaluated && !missing.is_empty())
        .then(|| Reason::advice(&rules::REASON_MISSING, &["decision"]).arg("value", missing.join(", ")))
}

/// Reject needs a violated limit, or a missed target on a real benchmark.
pub(super) fn judge_reject(case: &Case<'_>, claimed: Option<Verdict>, reasons: &mut Vec<Reason>) {
    let violated = [
        &rules::QUALITY_BELOW_FLOOR,
        &rules::CRITICAL_FIELD_CHANGED,
        &rules::BUDGET_EXCEEDED,
        &rules::RUN_FAILED,
        &rules::FAILED_REQUESTS,
    ];
    let has = |rule: &Rule| reasons.iter().any(|reason| reason.rule == rule);
    let shown = violated.into_iter().any(has) || case.candidate.is_real_benchmark() && has(&rules::TARGET_MISSED);
    if claimed == Some(Verdict::Reject) && !shown {
        reasons.push(Reason::advice(&rules::REJECT_WITHOUT_EVIDENCE, &["decision", "decision"]));
    }
}
