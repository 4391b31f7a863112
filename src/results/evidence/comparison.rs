//! Candidate against baseline: the same workload, the same environment, one variable.

use super::{Case, Effort, Facts, Reason, plain};
use crate::model::Localized;
use crate::results::gate::is_placeholder;
use crate::results::json::{Kind, Node};
use crate::rules::evidence as rules;
use std::collections::BTreeMap;

/// Members of `config` that describe the run and not what is tried.
const NOT_VARIABLES: [&str; 18] = [
    "workload",
    "workload_sha256",
    "workload_path",
    "requests",
    "num_prompts",
    "repeats",
    "warmup",
    "run_phase",
    "prompt_tokens",
    "generated_tokens",
    "device",
    "runtime_version",
    "backend_version",
    "model_revision",
    "experiment_type",
    "note",
    "source",
    "port",
];

/// Settings that change together and count as one variable.
const LINKED: [(&str, &[&str]); 6] = [
    ("weights", &["model", "dtype", "quantization_format", "quantization_artifact", "quantization", "weights_bytes"]),
    ("engine", &["backend"]),
    ("cache", &["cache_policy", "enable_prefix_caching", "prefix_cache"]),
    ("speculation", &["draft_model", "speculative_config", "num_speculative_tokens", "speculative_method"]),
    ("load", &["concurrency", "request_rate", "arrival"]),
    ("scheduler", &["scheduler_policy", "max_num_seqs", "max_num_batched_tokens", "scheduling_policy"]),
];

/// A variable and what it is on either side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The variable: a member of `config`, or the name of a group of linked ones.
    pub variable: String,
    /// Its members with the candidate's and the baseline's value.
    pub members: Vec<(String, String, String)>,
}

/// What differs between two configurations, linked settings as one variable.
pub fn differences(candidate: Facts<'_>, baseline: Facts<'_>) -> Vec<Difference> {
    let mut found: BTreeMap<String, Vec<(String, String, String)>> = BTreeMap::new();
    let (ours, theirs) = (settings(candidate), settings(baseline));
    let names: std::collections::BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for name in names {
        let value = |side: &BTreeMap<String, String>| side.get(name).cloned().unwrap_or_else(|| "null".to_owned());
        let (ours, theirs) = (value(&ours), value(&theirs));
        // A placeholder says nothing, not even that something was changed.
        let unknown = is_placeholder(&ours) || is_placeholder(&theirs);
        if ours != theirs && !unknown && !NOT_VARIABLES.contains(&name.as_str()) {
            let group = LINKED.iter().find(|(_, members)| members.contains(&name.as_str()));
            let variable = group.map_or(name.as_str(), |(group, _)| *group);
            found.entry(variable.to_owned()).or_default().push((name.clone(), ours, theirs));
        }
    }
    found.into_iter().map(|(variable, members)| Difference { variable, members }).collect()
}

/// Members of `config` and of its `settings`, as comparable text; null is absence.
fn settings(facts: Facts<'_>) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for path in [&["config"][..], &["config", "settings"]] {
        for member in facts.node(path).map(Node::members).unwrap_or_default() {
            let nested = path.len() == 1 && member.key == "settings";
            if !nested && !member.value.is_null() {
                out.insert(member.key.to_string(), comparable(&member.value));
            }
        }
    }
    out
}

fn comparable(node: &Node<'_>) -> String {
    match &node.kind {
        Kind::Null | Kind::NotFinite => "null".to_owned(),
        Kind::Bool(value) => value.to_string(),
        Kind::Number(number) => plain(*number),
        Kind::Text(text) => text.trim().to_owned(),
        Kind::Array(entries) => format!("[{}]", entries.iter().map(comparable).collect::<Vec<_>>().join(", ")),
        Kind::Object(members) => {
            let mut parts: Vec<String> =
                members.iter().map(|member| format!("{}: {}", member.key, comparable(&member.value))).collect();
            parts.sort();
            format!("{{{}}}", parts.join(", "))
        }
    }
}

/// Whether both sides ran the same workload: by digest where both have one, else by
/// name, and with the same cap on answers. The error is what they ran.
///
/// # Errors
/// What the candidate and the baseline ran.
pub fn same_workload(candidate: Facts<'_>, baseline: Facts<'_>) -> Result<(), (String, String)> {
    let pair = |name: &str| {
        let side = |facts: Facts<'_>| facts.recorded(&["config", name]).map(str::to_owned);
        side(candidate).zip(side(baseline))
    };
    if let Some((ours, theirs)) = pair("workload_sha256").or_else(|| pair("workload"))
        && ours != theirs
    {
        return Err(pair("workload").filter(|(a, b)| a != b).unwrap_or((ours, theirs)));
    }
    let cap = |facts: Facts<'_>| facts.number(&["config", "generated_tokens"]);
    match (cap(candidate), cap(baseline)) {
        (Some(ours), Some(theirs)) if ours != theirs => {
            Err((format!("max_tokens {}", plain(ours)), format!("max_tokens {}", plain(theirs))))
        }
        _ => Ok(()),
    }
}

/// Whether both sides ran on the same device with the same software. Versions of
/// different engines or weights are no fault: those are the variable.
///
/// # Errors
/// What the candidate and the baseline ran on.
pub fn same_environment(candidate: Facts<'_>, baseline: Facts<'_>) -> Result<(), (String, String)> {
    let side = |facts: Facts<'_>, name: &str| facts.recorded(&["config", name]).map(str::to_owned);
    let same = |name: &str| side(candidate, name) == side(baseline, name);
    let mut names = vec!["device", "runtime_version"];
    if same("backend") {
        names.push("backend_version");
    }
    if same("model") && same("quantization_format") && same("quantization_artifact") {
        names.push("model_revision");
    }
    for name in names {
        if let (Some(ours), Some(theirs)) = (side(candidate, name), side(baseline, name))
            && ours != theirs
        {
            return Err((ours, theirs));
        }
    }
    Ok(())
}

/// `cold` or `warm`, as stated or by the warm-up; `None` when neither is recorded.
pub fn phase(facts: Facts<'_>) -> Option<String> {
    facts.text(&["config", "run_phase"]).map(str::to_lowercase).or_else(|| {
        let warmup = facts.number(&["config", "warmup"])?;
        Some(if warmup > 0.0 { "warm" } else { "cold" }.to_owned())
    })
}

pub(super) fn judge(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    let Some(baseline) = case.baseline else {
        reasons.push(Reason::tune(&rules::NO_BASELINE, &[]).step(
            Effort::Experiment,
            "measure a baseline",
            "测量一份基线",
        ));
        return;
    };
    let facts = case.candidate;
    reasons.extend(memory_scope(facts, baseline));
    if let Err((ours, theirs)) = same_workload(facts, baseline) {
        let reason = Reason::tune(&rules::WORKLOAD_MISMATCH, &["config", "workload"]);
        reasons.push(both(reason, ours, theirs).step(
            Effort::Experiment,
            "run both sides with one workload",
            "用同一工作负载运行两侧",
        ));
    }
    if let Err((ours, theirs)) = same_environment(facts, baseline) {
        let reason = Reason::tune(&rules::ENVIRONMENT_MISMATCH, &["config", "device"]);
        reasons.push(both(reason, ours, theirs).step(
            Effort::Experiment,
            "run both sides in one environment",
            "在同一环境运行两侧",
        ));
    }
    reasons.extend(variables(facts, baseline));
    reasons.extend(phases(facts, baseline));
    reasons.extend(output_length(case, baseline));
}

fn both(reason: Reason, ours: impl Into<Localized>, theirs: impl Into<Localized>) -> Reason {
    reason.arg("value", ours).arg("other", theirs)
}

fn memory_scope(facts: Facts<'_>, baseline: Facts<'_>) -> Option<Reason> {
    let scope = |facts: Facts<'_>| {
        facts
            .number(&["metrics", "peak_memory_mb"])
            .and_then(|_| facts.text(&["metrics", "peak_memory_scope"]).map(str::to_owned))
    };
    let (ours, theirs) = (scope(facts)?, scope(baseline)?);
    (ours != theirs).then(|| {
        both(Reason::tune(&rules::MEMORY_SCOPE_MISMATCH, &["metrics", "peak_memory_scope"]), ours, theirs).step(
            Effort::Measure,
            "measure memory in one scope on both sides",
            "两侧用同一口径测量内存",
        )
    })
}

fn variables(facts: Facts<'_>, baseline: Facts<'_>) -> Option<Reason> {
    let changed = differences(facts, baseline);
    match changed.as_slice() {
        [_] => None,
        [] => Some(Reason::tune(&rules::NO_VARIABLE_CHANGED, &["config"]).step(
            Effort::Write,
            "record the setting that was changed",
            "记录所改的设置",
        )),
        several => {
            let names: Vec<&str> = several.iter().map(|difference| difference.variable.as_str()).collect();
            Some(Reason::tune(&rules::MULTIPLE_VARIABLES, &["config"]).arg("value", names.join(", ")).step(
                Effort::Experiment,
                "change one thing only",
                "只改一项",
            ))
        }
    }
}

fn phases(facts: Facts<'_>, baseline: Facts<'_>) -> Option<Reason> {
    let (ours, theirs) = (phase(facts)?, phase(baseline)?);
    (ours != theirs).then(|| {
        both(Reason::tune(&rules::COLD_WARM_MIXED, &["config", "warmup"]), ours, theirs).step(
            Effort::Experiment,
            "measure both sides in one phase",
            "在同一阶段测量两侧",
        )
    })
}

fn output_length(case: &Case<'_>, baseline: Facts<'_>) -> Option<Reason> {
    let length = |facts: Facts<'_>| facts.number(&["metrics", "output_tokens_mean"]).filter(|length| *length > 0.0);
    let (ours, theirs) = (length(case.candidate)?, length(baseline)?);
    ((ours - theirs).abs() / theirs > case.limits.output_length_tolerance).then(|| {
        let reason = Reason::tune(&rules::OUTPUT_LENGTH_DIFFERS, &["metrics", "output_tokens_mean"]);
        both(reason, plain(ours), plain(theirs)).step(
            Effort::Experiment,
            "answers of the same length",
            "让输出长度一致",
        )
    })
}
