//! Reports of other tools. Each has its own names, units and definitions; what a tool
//! defines differently is left null rather than renamed.

use super::draft::Draft;
use super::value::{number, rounded, shifted, to_value};
use super::{Migrated, Refusal, Request};
use crate::model::Localized;
use crate::results::gate::{foreign, is_placeholder, tool_title, visible};
use crate::results::json::Node;
use serde_json::{Map, Value};

/// A foreign report, with the text it was read from.
#[derive(Clone, Copy)]
struct Report<'n> {
    text: &'n str,
    root: &'n Node<'n>,
}

impl<'n> Report<'n> {
    fn node(self, path: &[&str]) -> Option<&'n Node<'n>> {
        self.root.at(path).filter(|node| !node.is_null())
    }

    fn number(self, path: &[&str]) -> Value {
        self.scaled(path, 0)
    }

    /// A number times a power of ten; without one its text stays.
    fn scaled(self, path: &[&str], exponent: i32) -> Value {
        let Some(node) = self.node(path).filter(|node| node.number().is_some()) else { return Value::Null };
        match exponent {
            0 => to_value(self.text, node),
            _ => shifted(self.text, node, exponent).map_or(Value::Null, number),
        }
    }

    fn float(self, path: &[&str]) -> Option<f64> {
        self.node(path)?.number()
    }

    fn text(self, path: &[&str]) -> Option<String> {
        self.node(path)?.text().filter(|text| visible(text)).map(str::to_owned)
    }

    /// The first of several places that holds a text.
    fn first_text(self, paths: &[&[&str]]) -> Option<String> {
        paths.iter().find_map(|path| self.text(path))
    }
}

pub(super) fn migrate<'n>(
    text: &'n str,
    root: &'n Node<'n>,
    tool: &'static str,
    request: &Request<'_>,
) -> Result<Migrated, Refusal> {
    // AIPerf and GenAI-Perf share their members; the user may know better which it is.
    let family = |name: &str| if name == "genai-perf" { "aiperf".to_owned() } else { name.to_owned() };
    if foreign(root).map(family) != Some(family(tool)) {
        let title = tool_title(tool);
        return Err(Refusal::new(
            Localized::both(
                format!("not a report of {title}: its members are missing"),
                format!("不是 {title} 的报告：缺少它的字段"),
            ),
            Localized::both(
                "leave --from out, so that the tool is told by the members, or name another",
                "请去掉 --from，由内容自动识别，或换一个工具名",
            ),
        ));
    }
    let mut draft = Draft::new(request);
    let report = Report { text, root };
    match tool {
        "vllm-bench" => vllm(report, &mut draft),
        "sglang-bench" => sglang(report, &mut draft),
        "guidellm" => guidellm(report, &mut draft, request)?,
        "llmperf" => llmperf(report, &mut draft),
        _ => aiperf(report, &mut draft),
    }
    draft.samples = draft.successful.clone();
    if draft.successful.as_f64() == Some(0.0) {
        draft.status = Some("failed".to_owned());
    }
    Ok(draft.finish(tool))
}

fn text_value(text: Option<String>) -> Value {
    text.map_or(Value::Null, Value::String)
}

fn named(draft: &mut Draft<'_>, name: &str, value: Value) {
    if !value.is_null() {
        draft.config.insert(name.to_owned(), value);
    }
}

/// Null when no statistic is a number.
fn measured(statistics: Map<String, Value>) -> Value {
    if statistics.values().any(Value::is_number) { Value::Object(statistics) } else { Value::Null }
}

/// `mean_ttft_ms`, `median_ttft_ms`, `p99_ttft_ms`: members spread over the report.
fn spread(report: Report<'_>, metric: &str) -> Value {
    let mut statistics = Map::new();
    for (name, key) in [
        ("mean", "mean"),
        ("min", "min"),
        ("p50", "median"),
        ("p50", "p50"),
        ("p90", "p90"),
        ("p95", "p95"),
        ("p99", "p99"),
        ("max", "max"),
    ] {
        let value = report.number(&[&format!("{key}_{metric}")]);
        if !value.is_null() {
            statistics.insert(name.to_owned(), value);
        }
    }
    measured(statistics)
}

/// Tokens per completed request.
fn per_request(report: Report<'_>, total: &str) -> Value {
    match (report.float(&[total]), report.float(&["completed"])) {
        (Some(total), Some(completed)) if completed > 0.0 && total > 0.0 => number(rounded(total / completed)),
        _ => Value::Null,
    }
}

/// What `vllm bench serve` and sglang's `bench_serving` have in common.
fn bench(report: Report<'_>, draft: &mut Draft<'_>) {
    draft.prompt_tokens = per_request(report, "total_input_tokens");
    draft.generated_tokens = per_request(report, "total_output_tokens");
    draft.metrics.insert("output_tokens_mean".to_owned(), draft.generated_tokens.clone());
    draft.ttft = spread(report, "ttft_ms");
    draft.tpot = spread(report, "tpot_ms");
    draft.requests_per_s = report.number(&["request_throughput"]);
    draft.tokens_per_s = report.number(&["output_throughput"]);
    draft.successful = report.number(&["completed"]);
    draft.failed = report.number(&["failed"]);
    draft.duration_s = report.number(&["duration"]);
    named(draft, "requests", report.number(&["num_prompts"]));
    named(draft, "workload", text_value(report.text(&["dataset_name"])));
    // "inf" as text, Infinity as no number: an open loop without a rate.
    named(draft, "request_rate", report.number(&["request_rate"]));
}

fn vllm(report: Report<'_>, draft: &mut Draft<'_>) {
    bench(report, draft);
    draft.label = report.text(&["label"]);
    draft.model = text_value(report.text(&["model_id"]));
    // The client's protocol says nothing about the engine.
    draft.backend = report.text(&["backend"]).filter(|name| !name.starts_with("openai") && !is_placeholder(name));
    if draft.backend.is_none() {
        draft.note(
            "the report names the client's protocol, not the engine: state --backend",
            "报告写的是客户端协议，不是引擎：请用 --backend 说明",
        );
    }
    draft.concurrency = ["max_concurrency", "max_concurrent_requests"]
        .iter()
        .map(|name| report.number(&[name]))
        .find(|value| !value.is_null());
    if report.number(&["max_concurrency"]).is_null() && draft.concurrency.is_some() {
        draft.note("concurrency is the observed peak of an open loop", "concurrency 是开环下观察到的峰值");
    }
    draft.e2e = spread(report, "e2el_ms");
    if draft.e2e.is_null() && report.float(&["failed"]) == Some(0.0) {
        draft.e2e = of_latencies(report);
        if !draft.e2e.is_null() {
            draft.note(
                "end-to-end statistics computed from `latencies` (seconds), linear between ranks",
                "端到端统计由 `latencies`（秒）计算，秩间线性插值",
            );
        }
    }
    let rate = report.scaled(&["spec_decode_acceptance_rate"], -2);
    for (name, value) in
        [("acceptance_rate", rate), ("acceptance_length", report.number(&["spec_decode_acceptance_length"]))]
    {
        if !value.is_null() {
            draft.strategy_metrics.insert(name.to_owned(), value);
        }
    }
}

/// Statistics over per-request latencies in seconds, in milliseconds.
fn of_latencies(report: Report<'_>) -> Value {
    let entries = report.node(&["latencies"]).map(Node::entries).unwrap_or_default();
    let mut values: Vec<f64> = entries.iter().filter_map(|entry| shifted(report.text, entry, 3)).collect();
    if values.is_empty() || values.len() != entries.len() {
        return Value::Null;
    }
    values.sort_by(f64::total_cmp);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let mut statistics = Map::new();
    statistics.insert("n".to_owned(), Value::from(values.len()));
    statistics.insert("mean".to_owned(), number(tidy(mean)));
    for (name, share) in [("min", 0.0), ("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)] {
        statistics.insert(name.to_owned(), number(tidy(percentile(&values, share))));
    }
    measured(statistics)
}

/// Twelve significant digits: what is beyond them is the noise of binary arithmetic.
fn tidy(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

/// Linear between ranks; `values` ascend and are not empty.
fn percentile(values: &[f64], share: f64) -> f64 {
    let rank = share * (values.len() - 1) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank inside the list")]
    let below = rank.floor() as usize;
    let above = (below + 1).min(values.len() - 1);
    values[below] + (values[above] - values[below]) * (rank - below as f64)
}

fn sglang(report: Report<'_>, draft: &mut Draft<'_>) {
    bench(report, draft);
    draft.label = report.text(&["tag"]);
    draft.model = text_value(report.first_text(&[&["server_info", "model_path"], &["model_id"]]));
    draft.backend = report.text(&["backend"]).map(|name| {
        let engine = name.split(['-', '_']).next().unwrap_or(&name).to_owned();
        if ["sglang", "vllm", "lmdeploy"].contains(&engine.as_str()) { engine } else { name }
    });
    draft.dtype = report.text(&["server_info", "dtype"]).filter(|name| !is_placeholder(name));
    // `concurrency` beside it is a measured mean, not a setting.
    draft.concurrency = Some(report.number(&["max_concurrency"])).filter(|value| !value.is_null());
    draft.e2e = spread(report, "e2e_latency_ms");
    let hit_rate = report.scaled(&["cache_report", "cache_hit_rate_pct"], -2);
    if !hit_rate.is_null() {
        draft.strategy_metrics.insert("hit_rate_source".to_owned(), Value::from("cache_report"));
    }
    for (name, value) in [("acceptance_length", report.number(&["accept_length"])), ("cache_hit_rate", hit_rate)] {
        if !value.is_null() {
            draft.strategy_metrics.insert(name.to_owned(), value);
        }
    }
}

fn guidellm(report: Report<'_>, draft: &mut Draft<'_>, request: &Request<'_>) -> Result<(), Refusal> {
    let benchmarks = report.node(&["benchmarks"]).map(Node::entries).unwrap_or_default();
    let index = match (request.index, benchmarks.len()) {
        (Some(index), _) => index as usize,
        (None, 1) => 0,
        (None, count) => {
            return Err(Refusal::new(
                Localized::both(format!("the report holds {count} benchmarks"), format!("报告包含 {count} 组基准")),
                Localized::both(
                    format!("choose one with --index N, from 0 to {}", count.saturating_sub(1)),
                    format!("请用 --index N 选择其中一组，N 为 0 到 {}", count.saturating_sub(1)),
                ),
            ));
        }
    };
    let root = benchmarks.get(index).ok_or_else(|| {
        let count = benchmarks.len();
        Refusal::new(
            Localized::both(
                format!("there is no benchmark {index}: the report holds {count}"),
                format!("没有第 {index} 组基准：报告共 {count} 组"),
            ),
            Localized::both(
                format!("give --index 0 to {}", count.saturating_sub(1)),
                format!("请用 --index 给出 0 到 {}", count.saturating_sub(1)),
            ),
        )
    })?;
    let one = Report { text: report.text, root };
    let mean = |name: &str| one.number(&["metrics", name, "successful", "mean"]);
    draft.model = text_value(one.first_text(&[&["config", "backend", "model"]]).or_else(|| {
        report.first_text(&[
            &["config", "spec", "backend", "model"],
            &["config", "backend", "model"],
            &["args", "model"],
        ])
    }));
    draft.prompt_tokens = mean("prompt_token_count");
    draft.generated_tokens = mean("output_token_count");
    draft.metrics.insert("output_tokens_mean".to_owned(), draft.generated_tokens.clone());
    draft.concurrency = Some(one.number(&["config", "strategy", "streams"])).filter(|value| !value.is_null());
    draft.ttft = guidellm_distribution(one, "time_to_first_token_ms", 0);
    // Its own time per output token contains the first token.
    draft.tpot = guidellm_distribution(one, "inter_token_latency_ms", 0);
    draft.e2e = guidellm_distribution(one, "request_latency", 3);
    draft.requests_per_s = mean("requests_per_second");
    draft.tokens_per_s = mean("output_tokens_per_second");
    draft.successful = one.number(&["metrics", "request_totals", "successful"]);
    draft.failed = one.number(&["metrics", "request_totals", "errored"]);
    draft.duration_s = one.number(&["duration"]);
    Ok(())
}

fn guidellm_distribution(report: Report<'_>, metric: &str, exponent: i32) -> Value {
    let mut statistics = Map::new();
    let base = ["metrics", metric, "successful"];
    for name in ["mean", "min"] {
        statistics.insert(name.to_owned(), report.scaled(&[base[0], base[1], base[2], name], exponent));
    }
    for name in ["p50", "p90", "p95", "p99"] {
        let value = report.scaled(&[base[0], base[1], base[2], "percentiles", name], exponent);
        let median =
            if name == "p50" { report.scaled(&[base[0], base[1], base[2], "median"], exponent) } else { Value::Null };
        statistics.insert(name.to_owned(), if value.is_null() { median } else { value });
    }
    statistics.insert("max".to_owned(), report.scaled(&[base[0], base[1], base[2], "max"], exponent));
    measured(statistics)
}

/// AIPerf and GenAI-Perf: one object per metric, with its unit.
fn aiperf(report: Report<'_>, draft: &mut Draft<'_>) {
    let average = |name: &str| report.number(&[name, "avg"]);
    draft.model = text_value(model_of_input(report));
    draft.prompt_tokens = average("input_sequence_length");
    draft.generated_tokens = average("output_sequence_length");
    draft.metrics.insert("output_tokens_mean".to_owned(), draft.generated_tokens.clone());
    draft.concurrency = concurrency_of_input(report);
    draft.ttft = with_unit(report, "time_to_first_token", draft);
    draft.tpot = with_unit(report, "inter_token_latency", draft);
    draft.e2e = with_unit(report, "request_latency", draft);
    draft.requests_per_s = average("request_throughput");
    draft.tokens_per_s = average("output_token_throughput");
    draft.successful = average("request_count");
    draft.failed = average("error_request_count");
    draft.duration_s = average("benchmark_duration");
    let flag = |name: &str| report.node(&[name]).and_then(Node::bool);
    if flag("was_cancelled") == Some(true) || flag("is_complete") == Some(false) {
        draft.status = Some("failed".to_owned());
        draft.failure_reason = Value::from("the benchmark was cancelled before it was complete");
        draft.note("the benchmark was cancelled: status failed", "基准测试被取消：status 为 failed");
    }
}

/// The model stands in different places of the echoed configuration.
fn model_of_input(report: Report<'_>) -> Option<String> {
    let places: [&[&str]; 7] = [
        &["input_config", "endpoint", "model_names"],
        &["input_config", "model_names"],
        &["input_config", "model"],
        &["input_config", "models"],
        &["input_config", "endpoint", "model"],
        &["input_config", "models", "items"],
        &["model"],
    ];
    places.iter().find_map(|path| {
        let node = report.node(path)?;
        let node = node.entries().first().unwrap_or(node);
        node.text().or_else(|| node.get("name")?.text()).filter(|text| visible(text)).map(str::to_owned)
    })
}

fn concurrency_of_input(report: Report<'_>) -> Option<Value> {
    let places: [&[&str]; 4] = [
        &["input_config", "loadgen", "concurrency"],
        &["input_config", "perf_analyzer", "stimulus", "concurrency"],
        &["input_config", "concurrency"],
        &["input_config", "stimulus", "concurrency"],
    ];
    places.iter().map(|path| report.number(path)).find(|value| !value.is_null())
}

fn with_unit(report: Report<'_>, metric: &str, draft: &mut Draft<'_>) -> Value {
    let Some(node) = report.node(&[metric]) else { return Value::Null };
    let unit = node.get("unit").and_then(Node::text).unwrap_or("ms");
    let exponent = match unit.to_lowercase().as_str() {
        "s" | "sec" | "second" | "seconds" => 3,
        "ms" | "millisecond" | "milliseconds" => 0,
        "us" | "µs" | "microsecond" | "microseconds" => -3,
        "ns" | "nanosecond" | "nanoseconds" => -6,
        other => {
            draft.note(
                format!("{metric} has the unknown unit `{other}`: null"),
                format!("{metric} 的单位 `{other}` 未知：写为 null"),
            );
            return Value::Null;
        }
    };
    let mut statistics = Map::new();
    for (name, key) in [
        ("mean", "avg"),
        ("min", "min"),
        ("p50", "p50"),
        ("p90", "p90"),
        ("p95", "p95"),
        ("p99", "p99"),
        ("max", "max"),
    ] {
        let value = report.scaled(&[metric, key], exponent);
        if !value.is_null() {
            statistics.insert(name.to_owned(), value);
        }
    }
    measured(statistics)
}

/// The flattened summary of LLMPerf.
fn llmperf(report: Report<'_>, draft: &mut Draft<'_>) {
    let result = |name: &str| report.number(&[&format!("results_{name}")]);
    draft.label = report.text(&["name"]);
    draft.model = text_value(report.text(&["model"]));
    draft.prompt_tokens = result("number_input_tokens_mean");
    draft.generated_tokens = result("number_output_tokens_mean");
    draft.metrics.insert("output_tokens_mean".to_owned(), draft.generated_tokens.clone());
    draft.concurrency = Some(report.number(&["num_concurrent_requests"])).filter(|value| !value.is_null());
    draft.ttft = llmperf_distribution(report, "ttft_s");
    draft.e2e = llmperf_distribution(report, "end_to_end_latency_s");
    draft.note(
        "its inter-token latency divides by all tokens: tpot_ms is null",
        "其 token 间延迟按全部 token 计算：tpot_ms 为 null",
    );
    let per_minute = report.float(&["results_num_completed_requests_per_min"]);
    draft.requests_per_s = per_minute.map_or(Value::Null, |rate| number(tidy(rate / 60.0)));
    draft.tokens_per_s = result("mean_output_throughput_token_per_s");
    draft.successful = result("num_completed_requests");
    draft.failed = result("number_errors");
}

fn llmperf_distribution(report: Report<'_>, metric: &str) -> Value {
    let mut statistics = Map::new();
    for (name, key) in [
        ("mean", "mean"),
        ("min", "min"),
        ("p50", "quantiles_p50"),
        ("p90", "quantiles_p90"),
        ("p95", "quantiles_p95"),
        ("p99", "quantiles_p99"),
        ("max", "max"),
    ] {
        let value = report.scaled(&[&format!("results_{metric}_{key}")], 3);
        if !value.is_null() {
            statistics.insert(name.to_owned(), value);
        }
    }
    measured(statistics)
}
