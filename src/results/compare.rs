//! Results side by side: four groups that are never mixed into one score. A difference
//! is given only where workload, environment, phase and (for memory) scope agree.

use super::evidence::{Difference, Facts, differences, phase, plain, same_environment, same_workload};
use super::v1::PLACEHOLDERS;
use crate::model::Localized;

/// Figures of time: path below `metrics`, heading, whether lower is better.
pub const TIME: [(&str, &str); 8] = [
    ("ttft_ms.p50", "TTFT P50 ms"),
    ("ttft_ms.p99", "TTFT P99 ms"),
    ("tpot_ms.p50", "TPOT P50 ms"),
    ("e2e_latency_ms.p50", "E2E P50 ms"),
    ("e2e_latency_ms.p99", "E2E P99 ms"),
    ("throughput_tokens_per_s", "token/s"),
    ("throughput_requests_per_s", "req/s"),
    ("cold_start_ms", "cold start ms"),
];

/// Members of `config` that are shown whenever a side has them.
pub const CONFIGURATION: [&str; 8] =
    ["model", "backend", "dtype", "batch", "concurrency", "cache_policy", "prompt_tokens", "generated_tokens"];

/// One result in the comparison.
#[derive(Debug, Clone)]
pub struct Side {
    /// How the result is called.
    pub name: String,
    /// Values of [`CONFIGURATION`]; `None`: not recorded.
    pub configuration: Vec<Option<String>>,
    /// What was changed against the baseline.
    pub changed: Vec<Difference>,
    /// Values of [`TIME`].
    pub time: Vec<Option<f64>>,
    /// Successful requests over all passes.
    pub samples: Option<f64>,
    /// Peak memory and its scope.
    pub memory: Option<f64>,
    /// What the memory figure counts.
    pub scope: Option<String>,
    /// Metric, value, floor, probes.
    pub quality: [Option<String>; 4],
    /// Why no difference is given; empty for the baseline and where both sides agree.
    pub obstacles: Vec<Localized>,
    /// Why no difference of memory is given, beside the obstacles.
    pub memory_obstacle: Option<Localized>,
}

impl Side {
    /// Whether a 99th percentile is shown.
    pub fn has_tail(&self) -> bool {
        TIME.iter().zip(&self.time).any(|((path, _), value)| path.ends_with("p99") && value.is_some())
    }

    /// Whether differences in time are meaningful.
    pub fn is_comparable(&self) -> bool {
        self.obstacles.is_empty()
    }
}

/// Describes one result, against the baseline if it is a candidate.
pub fn side(name: &str, facts: Facts<'_>, baseline: Option<Facts<'_>>) -> Side {
    let text = |path: &[&str]| facts.text(path).map(str::to_owned);
    let number = |path: &[&str]| facts.number(path).map(plain);
    let value = |name: &str| text(&["config", name]).or_else(|| number(&["config", name]));
    let quality = |name: &str| text(&["quality", name]).or_else(|| number(&["quality", name]));
    Side {
        name: name.to_owned(),
        configuration: CONFIGURATION.iter().map(|name| value(name)).collect(),
        changed: baseline.map(|baseline| differences(facts, baseline)).unwrap_or_default(),
        time: TIME.iter().map(|(path, _)| facts.metric(path)).collect(),
        samples: facts.samples(),
        memory: facts.number(&["metrics", "peak_memory_mb"]),
        scope: text(&["metrics", "peak_memory_scope"]),
        quality: [
            quality("metric").or_else(|| quality("status")),
            quality("value"),
            quality("floor"),
            quality("probes"),
        ],
        obstacles: baseline.map(|baseline| obstacles(facts, baseline)).unwrap_or_default(),
        memory_obstacle: baseline.and_then(|baseline| memory_obstacle(facts, baseline)),
    }
}

/// What forbids a difference. A fact that only one side records forbids it as well:
/// agreement must be seen, not assumed.
fn obstacles(facts: Facts<'_>, baseline: Facts<'_>) -> Vec<Localized> {
    let mut found = Vec::new();
    let known = |facts: Facts<'_>, name: &str| facts.recorded(&["config", name]).is_some();
    if let Err((ours, theirs)) = same_workload(facts, baseline) {
        found.push(differ("workload", "工作负载", &ours, &theirs));
    } else if !["workload_sha256", "workload"].iter().any(|name| known(facts, name) && known(baseline, name)) {
        found.push(Localized::both("the workload is not recorded on both sides", "并非两侧都记录了工作负载"));
    }
    if let Err((ours, theirs)) = same_environment(facts, baseline) {
        found.push(differ("environment", "环境", &ours, &theirs));
    } else if !known(facts, "device") || !known(baseline, "device") {
        found.push(Localized::both("the device is not recorded on both sides", "并非两侧都记录了设备"));
    }
    match (phase(facts), phase(baseline)) {
        (Some(ours), Some(theirs)) if ours != theirs => found.push(differ("phase", "阶段", &ours, &theirs)),
        (Some(_), Some(_)) => {}
        _ => found.push(Localized::both(
            "the phase (cold or warm) is not recorded on both sides",
            "并非两侧都记录了阶段（冷或热）",
        )),
    }
    found
}

fn differ(en: &str, zh: &str, ours: &str, theirs: &str) -> Localized {
    Localized::both(format!("another {en}: {ours}, baseline {theirs}"), format!("{zh}不同：{ours}，基线为 {theirs}"))
}

fn memory_obstacle(facts: Facts<'_>, baseline: Facts<'_>) -> Option<Localized> {
    let scope = |facts: Facts<'_>| facts.text(&["metrics", "peak_memory_scope"]).map(str::to_owned);
    match (scope(facts), scope(baseline)) {
        (Some(ours), Some(theirs)) if ours == theirs => None,
        (Some(ours), Some(theirs)) => Some(differ("memory scope", "内存口径", &ours, &theirs)),
        _ => Some(Localized::both("the memory scope is not recorded on both sides", "并非两侧都记录了内存口径")),
    }
}

/// Relative difference, candidate minus baseline.
pub fn change(now: Option<f64>, before: Option<f64>) -> Option<f64> {
    let (now, before) = (now?, before?);
    (before != 0.0).then(|| (now - before) / before)
}

/// How far the conclusion reaches, in words: this device, this backend, this workload.
pub fn boundary(facts: Facts<'_>) -> Localized {
    let value = |name: &str| {
        facts
            .text(&["config", name])
            .filter(|text| !PLACEHOLDERS.contains(&text.to_lowercase().as_str()))
            .map(str::to_owned)
    };
    let named = |name: &str, en: &str, zh: &str| match value(name) {
        Some(text) => (text.clone(), text),
        None => (format!("an unrecorded {en}"), format!("未记录的{zh}")),
    };
    let device = named("device", "device", "设备");
    let backend = named("backend", "backend", "后端");
    let version = value("backend_version").map(|version| format!(" {version}")).unwrap_or_default();
    let model = named("model", "model", "模型");
    let workload = named("workload", "workload", "工作负载");
    Localized::both(
        format!(
            "These figures hold for {} with {}{version}, {} and {}. They say nothing about other devices, backends, models or workloads.",
            device.0, backend.0, model.0, workload.0
        ),
        format!(
            "以上数字只对 {}、{}{version}、{}、{} 成立，不能说明其他设备、后端、模型或工作负载。",
            device.1, backend.1, model.1, workload.1
        ),
    )
}
