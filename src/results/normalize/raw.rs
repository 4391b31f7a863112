//! The course's own reports: early and late producer, rows under two names, repeats
//! with `runs`, notebook extras, failure records.

use super::draft::Draft;
use super::value::{number, rounded, to_value};
use super::{Migrated, Refusal, Request};
use crate::model::Localized;
use crate::results::evidence::plain;
use crate::results::gate::{is_placeholder, visible};
use crate::results::json::{Kind, Node};
use crate::results::v1::{STATISTICS, Verdict};
use serde_json::{Map, Value, json};

/// Public metrics of the late producer beside those that every result has.
const LATE_METRICS: [&str; 16] = [
    "queue_wait_ms",
    "input_transfer_bytes",
    "input_transfer_ms",
    "transfer_bytes",
    "handoff_ms",
    "recompute_ms",
    "network_wait_ms",
    "communication_ms",
    "exposed_comm_ms",
    "overlap_ratio",
    "idle_gap_ms",
    "model_load_ms",
    "stream_output_ms",
    "cold_start_ms",
    "output_tokens_mean",
    "estimated_output_tokens",
];

/// A raw report, with the text it was read from.
#[derive(Clone, Copy)]
struct Report<'n> {
    text: &'n str,
    root: &'n Node<'n>,
}

impl<'n> Report<'n> {
    fn node(self, path: &[&str]) -> Option<&'n Node<'n>> {
        self.root.at(path).filter(|node| !node.is_null())
    }

    fn value(self, path: &[&str]) -> Value {
        self.node(path).map_or(Value::Null, |node| to_value(self.text, node))
    }

    /// A number at a path; anything else is null.
    fn number(self, path: &[&str]) -> Value {
        self.node(path).filter(|node| node.number().is_some()).map_or(Value::Null, |node| to_value(self.text, node))
    }

    fn text(self, path: &[&str]) -> Option<String> {
        self.node(path)?.text().filter(|text| visible(text)).map(str::to_owned)
    }

    /// What the experiment's contract records, unless it only names a request.
    fn contract(self, name: &str) -> Option<String> {
        self.text(&["experiment_contract", name]).filter(|text| !is_placeholder(text))
    }

    /// Rows of requests, under either name, else those of the single runs.
    fn rows(self) -> Vec<&'n Node<'n>> {
        for name in ["request_results", "results"] {
            let rows = self.node(&[name]).map(Node::entries).unwrap_or_default();
            if !rows.is_empty() {
                return rows.iter().collect();
            }
        }
        Vec::new()
    }
}

pub(super) fn migrate<'n>(text: &'n str, root: &'n Node<'n>, request: &Request<'_>) -> Result<Migrated, Refusal> {
    let report = Report { text, root };
    if root.get("metrics").is_none() && root.get("workload").is_none() {
        return Err(Refusal::new(
            Localized::both(
                "the report holds neither metrics nor a workload: nothing was measured",
                "报告既没有 metrics 也没有 workload：什么也没有测量",
            ),
            Localized::both(
                "leave it out, or run the measurement again; the tool of another report is named with --from",
                "请不要指定它，或重新测量；如果是其他工具的报告，请用 --from 指明",
            ),
        ));
    }
    Ok(draft(report, request).finish("raw-report"))
}

pub(super) fn migrate_failure<'n>(
    text: &'n str,
    root: &'n Node<'n>,
    request: &Request<'_>,
) -> Result<Migrated, Refusal> {
    let mut draft = draft(Report { text, root }, request);
    draft.status = Some("failed".to_owned());
    draft.note("the record of a run that failed: nothing was measured", "失败运行的记录：什么也没有测量");
    Ok(draft.finish("failure-record"))
}

fn draft<'r>(report: Report<'_>, request: &'r Request<'r>) -> Draft<'r> {
    let mut draft = Draft::new(request);
    identity(report, &mut draft);
    config(report, &mut draft);
    metrics(report, &mut draft);
    runs(report, &mut draft);
    conclusions(report, &mut draft);
    draft
}

fn identity(report: Report<'_>, draft: &mut Draft<'_>) {
    draft.project = report.contract("project").or_else(|| report.text(&["project"]));
    draft.label = report.text(&["label"]);
    draft.role = report
        .text(&["experiment", "role"])
        .or_else(|| report.contract("role"))
        .or_else(|| report.text(&["role"]))
        .or_else(|| report.text(&["config", "role"]));
    draft.source = report.text(&["base_url"]).map_or(Value::Null, Value::String);
}

fn config(report: Report<'_>, draft: &mut Draft<'_>) {
    draft.model = report.text(&["model"]).map_or(Value::Null, Value::String);
    draft.backend = report
        .contract("backend")
        .or_else(|| report.text(&["experiment", "backend"]))
        .filter(|name| !is_placeholder(name));
    draft.dtype = report.contract("dtype");
    draft.prompt_tokens = prompt_tokens(report);
    draft.generated_tokens = report.number(&["workload", "max_tokens"]);
    draft.batch = report.number(&["experiment_contract", "batch"]);
    draft.cache_policy = report.contract("cache_policy");
    draft.concurrency_defaults_to_one = true;
    draft.concurrency = concurrency(report, draft);
    let mut add = |name: &str, value: Value| {
        if !value.is_null() {
            draft.config.insert(name.to_owned(), value);
        }
    };
    let either = |name: &str, contract: &str| match report.number(&["workload", name]) {
        Value::Null => report.number(&["experiment_contract", contract]),
        value => value,
    };
    let text = |text: Option<String>| text.map_or(Value::Null, Value::String);
    add("workload", text(report.text(&["workload", "source"]).or_else(|| report.contract("workload_path"))));
    add("requests", either("requests", "num_prompts"));
    add("warmup", either("warmup", "warmup"));
    add("repeats", either("repeats", "repeats"));
    // Notebooks wrote the model's id there; that is no revision.
    let model = report.text(&["model"]);
    add(
        "model_revision",
        text(report.contract("model_revision").filter(|name| Some(name) != model.as_ref() && !name.contains('/'))),
    );
    add("backend_version", text(report.contract("backend_version")));
    add("device", text(report.text(&["experiment_contract", "hardware", "device"])));
    let runtime = report.text(&["experiment_contract", "hardware", "torch"]);
    add("runtime_version", text(runtime.map(|version| format!("torch {version}"))));
    for name in ["quantization_format", "quantization_artifact", "draft_model", "scheduler_policy"] {
        add(name, text(report.contract(name)));
    }
}

/// What the workload says; given but unreadable is null, not 1.
fn concurrency(report: Report<'_>, draft: &mut Draft<'_>) -> Option<Value> {
    let node =
        report.node(&["workload", "concurrency"]).or_else(|| report.node(&["experiment_contract", "concurrency"]))?;
    if node.number().is_none() {
        draft.note(
            "workload.concurrency is not a number: null; state --concurrency",
            "workload.concurrency 不是数值：写为 null；请用 --concurrency 说明",
        );
    }
    Some(if node.number().is_some() { to_value(report.text, node) } else { Value::Null })
}

/// Mean over the rows, where the client really writes it, else the recorded mean.
fn prompt_tokens(report: Report<'_>) -> Value {
    let of_row = |row: &&Node<'_>| {
        row.get("prompt_tokens").and_then(Node::number).or_else(|| row.at(&["usage", "prompt_tokens"])?.number())
    };
    let counts: Vec<f64> = report.rows().iter().filter_map(of_row).collect();
    if counts.is_empty() {
        return report.number(&["metrics", "prompt_tokens_mean"]);
    }
    number(rounded(counts.iter().sum::<f64>() / counts.len() as f64))
}

fn metrics(report: Report<'_>, draft: &mut Draft<'_>) {
    draft.ttft = distribution(report, "ttft_ms", draft);
    draft.tpot = distribution(report, "tpot_ms", draft);
    let e2e = ["e2e_ms", "e2e_latency_ms"].into_iter().find(|name| report.node(&["metrics", name]).is_some());
    draft.e2e = distribution(report, e2e.unwrap_or("e2e_ms"), draft);
    draft.requests_per_s = report.number(&["metrics", "request_throughput_per_s"]);
    draft.tokens_per_s = report.number(&["metrics", "output_token_throughput_per_s"]);
    draft.successful = report.number(&["metrics", "successful_requests"]);
    draft.failed = report.number(&["metrics", "failed_requests"]);
    draft.duration_s = report.number(&["metrics", "duration_s"]);
    draft.peak_memory_mb = match report.number(&["peak_memory_mb"]) {
        Value::Null => report.number(&["metrics", "peak_memory_mb"]),
        value => value,
    };
    draft.peak_memory_scope =
        report.text(&["peak_memory_scope"]).or_else(|| report.text(&["metrics", "peak_memory_scope"]));
    for name in LATE_METRICS {
        let value = report.value(&["metrics", name]);
        if value.is_number() || value.is_boolean() {
            draft.metrics.insert(name.to_owned(), value);
        }
    }
    output_length(report, draft);
}

/// Mean length of an answer, and whether it was guessed.
fn output_length(report: Report<'_>, draft: &mut Draft<'_>) {
    let metric = |name: &str| report.node(&["metrics", name]).and_then(Node::number);
    if let (Some(tokens), Some(requests)) = (metric("output_tokens"), metric("successful_requests"))
        && requests > 0.0
        && tokens > 0.0
    {
        draft.metrics.entry("output_tokens_mean").or_insert_with(|| number(rounded(tokens / requests)));
    }
    let guessed = |row: &&Node<'_>| row.get("estimated_output_tokens").and_then(Node::bool) == Some(true);
    if report.rows().iter().any(guessed) {
        draft.metrics.insert("estimated_output_tokens".to_owned(), Value::Bool(true));
    }
}

/// A distribution as it was recorded; one without a single number is null.
fn distribution(report: Report<'_>, name: &str, draft: &mut Draft<'_>) -> Value {
    let Some(node) = report.node(&["metrics", name]) else { return Value::Null };
    match &node.kind {
        Kind::Number(_) => to_value(report.text, node),
        Kind::Object(members) => {
            let measured = |key: &str| node.get(key).and_then(Node::number).is_some();
            if !members.is_empty() && STATISTICS.iter().any(|key| measured(key)) {
                to_value(report.text, node)
            } else {
                Value::Null
            }
        }
        Kind::NotFinite => Value::Null,
        _ => {
            draft.note(format!("metrics.{name} is not readable: null"), format!("metrics.{name} 无法读取：写为 null"));
            Value::Null
        }
    }
}

/// Repeated runs: how many, how many requests succeeded in all of them, each throughput.
fn runs(report: Report<'_>, draft: &mut Draft<'_>) {
    let runs = report.node(&["runs"]).map(Node::entries).unwrap_or_default();
    if runs.is_empty() {
        draft.samples = samples_of_one(report, draft);
        return;
    }
    draft.config.entry("repeats").or_insert_with(|| Value::from(runs.len()));
    let metric = |run: &Node<'_>, name: &str| run.at(&["metrics", name]).and_then(Node::number);
    let counts: Vec<f64> = runs.iter().filter_map(|run| metric(run, "successful_requests")).collect();
    if counts.len() == runs.len() {
        draft.samples = number(counts.iter().sum());
    } else {
        draft.note(
            "not every run says how many requests succeeded: samples is null",
            "并非每轮都写明成功请求数：samples 为 null",
        );
    }
    let run_of = |run: &Node<'_>| {
        let value = |path: &[&str]| {
            run.at(path).filter(|node| node.number().is_some()).map_or(Value::Null, |node| to_value(report.text, node))
        };
        json!({
            "throughput_tokens_per_s": value(&["metrics", "output_token_throughput_per_s"]),
            "throughput_requests_per_s": value(&["metrics", "request_throughput_per_s"]),
            "ttft_p50_ms": value(&["metrics", "ttft_ms", "p50"]),
            "e2e_p50_ms": value(&["metrics", "e2e_ms", "p50"]),
            "successful_requests": value(&["metrics", "successful_requests"]),
            "failed_requests": value(&["metrics", "failed_requests"]),
        })
    };
    draft.metrics.insert("per_run".to_owned(), runs.iter().map(run_of).collect());
}

/// Without single runs: the count itself, or mean × repeats where that is a whole number.
fn samples_of_one(report: Report<'_>, draft: &mut Draft<'_>) -> Value {
    let Some(successful) = report.node(&["metrics", "successful_requests"]).and_then(Node::number) else {
        return Value::Null;
    };
    let repeats = report.node(&["workload", "repeats"]).and_then(Node::number).unwrap_or(1.0);
    let samples = successful * repeats;
    if repeats > 1.0 {
        draft.note(
            format!("samples = {} × {} repeats", plain(successful), plain(repeats)),
            format!("samples = {} × {} 轮", plain(successful), plain(repeats)),
        );
    }
    // Means are written with four decimals.
    if (samples - samples.round()).abs() < 0.001 * repeats { number(samples.round()) } else { Value::Null }
}

fn conclusions(report: Report<'_>, draft: &mut Draft<'_>) {
    let quality = report.node(&["quality"]).or_else(|| report.node(&["experiment_contract", "quality"]));
    if let Some(quality) = quality.filter(|quality| quality.is_object()) {
        draft.quality = to_value(report.text, quality);
    }
    let failure = |names: &[&str]| {
        ["failure", "experiment_contract"].iter().find_map(|parent| {
            let node = report.node(&[parent])?;
            let node = if *parent == "failure" { Some(node) } else { node.get("failure") }?;
            names.iter().find_map(|name| node.get(name)?.text()).map(str::to_owned)
        })
    };
    draft.failure_reason = failure(&["reason", "failure_reason"]).map_or(Value::Null, Value::String);
    draft.retest_path = failure(&["retest_path"]).map_or(Value::Null, Value::String);
    draft.status = status(report, draft);
    draft.evidence_level = ["evidence_level"].iter().find_map(|name| {
        report.text(&[name]).or_else(|| report.contract(name)).or_else(|| report.text(&["experiment", name]))
    });
    draft.decision = decision(report, draft);
    if let Some(node) = report.node(&["strategy_metrics"]).filter(|node| node.is_object())
        && let Value::Object(metrics) = to_value(report.text, node)
    {
        draft.strategy_metrics = metrics;
    }
}

/// Failed when every request failed; else what is recorded, as the historical tool
/// took it: the report's own word, then that of the quality.
fn status(report: Report<'_>, draft: &Draft<'_>) -> Option<String> {
    let count = |name: &str| report.node(&["metrics", name]).and_then(Node::number);
    if count("successful_requests") == Some(0.0) && count("failed_requests").is_some_and(|failed| failed > 0.0) {
        return Some("failed".to_owned());
    }
    report.text(&["status"]).or_else(|| draft.quality.get("status")?.as_str().map(str::to_owned))
}

/// A decision that was recorded, as an object; a word of another contract becomes
/// `not_evaluated`.
fn decision(report: Report<'_>, draft: &mut Draft<'_>) -> Value {
    let node = report.node(&["decision"]).or_else(|| report.node(&["experiment_contract", "decision"]));
    let Some(node) = node else { return json!({ "decision": "not_evaluated" }) };
    let mut members = match to_value(report.text, node) {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let word = node.text().or_else(|| node.get("decision")?.text());
    let known = word.and_then(Verdict::of);
    if known.is_none() {
        let word = word.unwrap_or("?");
        draft.note(
            format!("decision \"{word}\" is no word of this contract: not_evaluated"),
            format!("decision \"{word}\" 不是本契约的词：写为 not_evaluated"),
        );
    }
    members.insert("decision".to_owned(), Value::from(known.unwrap_or_default().name()));
    Value::Object(members)
}
