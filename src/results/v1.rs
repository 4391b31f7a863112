//! `inference-benchmark/v1`: the types that are written, and the source of the JSON
//! schema. What was not measured is `None`, and `None` is written as `null`: no member
//! is ever left out.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version that stands in every result.
pub const SCHEMA_VERSION: &str = "inference-benchmark/v1";

/// Members of a latency distribution, in ascending order of what they must hold:
/// `min` is percentile 0, `max` percentile 100. `mean` stands apart.
pub const RANKS: [&str; 6] = ["min", "p50", "p90", "p95", "p99", "max"];

/// Members of a latency distribution of which at least one must be a number.
pub const STATISTICS: [&str; 7] = ["mean", "min", "p50", "p90", "p95", "p99", "max"];

/// The known words of `evidence_level`.
pub const EVIDENCE_LEVELS: [&str; 9] = [
    "not_recorded",
    "theoretical",
    "simulation",
    "cpu_simulation",
    "gpu_smoke",
    "gpu_baseline_smoke",
    "real_backend_smoke",
    "profiler_trace",
    "real_benchmark",
];

/// Words that stand where something should have been recorded.
pub const PLACEHOLDERS: [&str; 5] = ["unknown", "auto", "n/a", "tbd", "record_at_runtime"];

/// Metrics of one strategy: they belong into `strategy_metrics`, never among the public ones.
pub const STRATEGY_METRICS: [&str; 10] = [
    "acceptance_rate",
    "acceptance_length",
    "verify_cost_ms",
    "draft_cost_ms",
    "cache_hit_rate",
    "hit_rate",
    "hit_rate_source",
    "invalidation_cost_ms",
    "fairness",
    "quantization_error",
];

/// The public block of a result file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NormalizedResult {
    /// Always `inference-benchmark/v1`.
    #[schemars(extend("const" = SCHEMA_VERSION))]
    pub schema_version: String,
    /// Section of the course, as text: `66`.
    #[serde(default)]
    #[schemars(schema_with = "label")]
    pub project: Option<String>,
    /// What was tried.
    #[serde(default)]
    #[schemars(schema_with = "label")]
    pub strategy: Option<String>,
    /// `baseline` or `candidate`.
    #[serde(default)]
    pub role: Option<String>,
    /// What was run.
    pub config: Config,
    /// What was measured.
    pub metrics: Metrics,
    /// What was probed and how it came out; empty when nothing was.
    #[serde(default)]
    pub quality: Quality,
    /// `ok`, `failed`, `not_recorded`.
    #[serde(default)]
    pub status: Option<String>,
    /// How strong the observation is; one of [`EVIDENCE_LEVELS`].
    #[serde(default)]
    pub evidence_level: Option<String>,
    /// Why it failed and how to try again.
    #[serde(default)]
    pub failure: Option<Failure>,
    /// What is concluded.
    pub decision: Decision,
    /// Metrics of this strategy alone; names are free.
    #[serde(default)]
    pub strategy_metrics: Map<String, Value>,
    /// Where it was measured (an address without credentials).
    #[serde(default)]
    pub source: Option<String>,
}

impl Default for NormalizedResult {
    fn default() -> Self {
        NormalizedResult {
            schema_version: SCHEMA_VERSION.to_owned(),
            project: None,
            strategy: None,
            role: None,
            config: Config::default(),
            metrics: Metrics::default(),
            quality: Quality::default(),
            status: None,
            evidence_level: None,
            failure: Some(Failure::default()),
            decision: Decision::default(),
            strategy_metrics: Map::new(),
            source: None,
        }
    }
}

/// What was run: everything that must be equal before two results are compared, and
/// the one thing that differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Config {
    /// The model: an id or a file name.
    #[schemars(schema_with = "visible_text")]
    pub model: String,
    /// Its revision or digest.
    #[serde(default)]
    pub model_revision: Option<String>,
    /// The engine: `vllm`, `llama.cpp`, …
    #[schemars(schema_with = "visible_text")]
    pub backend: String,
    /// Its version.
    #[serde(default)]
    pub backend_version: Option<String>,
    /// Libraries and drivers below it.
    #[serde(default)]
    pub runtime_version: Option<String>,
    /// The device it ran on.
    #[serde(default)]
    pub device: Option<String>,
    /// Precision of weights and activations as they ran, not as they were asked for.
    #[schemars(schema_with = "visible_text")]
    pub dtype: String,
    /// Mean tokens of a prompt.
    #[serde(default)]
    #[schemars(schema_with = "positive_or_null")]
    pub prompt_tokens: Option<f64>,
    /// Tokens at most per answer (the cap; what came is `metrics.output_tokens_mean`).
    #[serde(default)]
    #[schemars(schema_with = "positive_or_null")]
    pub generated_tokens: Option<f64>,
    /// Batch size that was configured.
    #[schemars(range(min = 1))]
    pub batch: u64,
    /// Requests in flight.
    #[schemars(range(min = 1))]
    pub concurrency: u64,
    /// `off`, `default`, `prefix`, …
    #[schemars(schema_with = "visible_text")]
    pub cache_policy: String,
    /// The workload's file.
    #[serde(default)]
    pub workload: Option<String>,
    /// SHA-256 of its bytes: workloads are the same when this is, whatever their name.
    #[serde(default)]
    pub workload_sha256: Option<String>,
    /// Requests of one pass.
    #[serde(default)]
    pub requests: Option<u64>,
    /// Measured passes.
    #[serde(default)]
    pub repeats: Option<u64>,
    /// Requests that were sent before the measured ones and not counted.
    #[serde(default)]
    pub warmup: Option<u64>,
    /// `cold` or `warm`.
    #[serde(default)]
    pub run_phase: Option<String>,
    /// Project 67: the format of the weights, `none` when they are not quantized.
    #[serde(default)]
    pub quantization_format: Option<String>,
    /// Project 67: the quantized file.
    #[serde(default)]
    pub quantization_artifact: Option<String>,
    /// Project 68: the draft model.
    #[serde(default)]
    pub draft_model: Option<String>,
    /// Project 70: how the server orders requests.
    #[serde(default)]
    pub scheduler_policy: Option<String>,
    /// Project 70: `load` when only the load is varied, `scheduler` when the policy is.
    #[serde(default)]
    pub experiment_type: Option<String>,
    /// What else the backend was started with, as far as it can change a figure.
    #[serde(default)]
    pub settings: Map<String, Value>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            model: "unknown".to_owned(),
            model_revision: None,
            backend: "unknown".to_owned(),
            backend_version: None,
            runtime_version: None,
            device: None,
            dtype: "unknown".to_owned(),
            prompt_tokens: None,
            generated_tokens: None,
            batch: 1,
            concurrency: 1,
            cache_policy: "default".to_owned(),
            workload: None,
            workload_sha256: None,
            requests: None,
            repeats: None,
            warmup: None,
            run_phase: None,
            quantization_format: None,
            quantization_artifact: None,
            draft_model: None,
            scheduler_policy: None,
            experiment_type: None,
            settings: Map::new(),
        }
    }
}

/// What was measured. Latencies in milliseconds, memory in MiB.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// Request sent → first token-bearing event.
    #[schemars(schema_with = "measured_latency", required)]
    pub ttft_ms: Option<Latency>,
    /// Time per output token after the first event.
    #[serde(default)]
    #[schemars(schema_with = "optional_latency")]
    pub tpot_ms: Option<Latency>,
    /// Request sent → last token-bearing event.
    #[schemars(schema_with = "measured_latency", required)]
    pub e2e_latency_ms: Option<Latency>,
    /// Output tokens of completed requests / wall time of the measured window.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub throughput_tokens_per_s: Option<f64>,
    /// Completed requests / wall time of the measured window.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub throughput_requests_per_s: Option<f64>,
    /// P95 of the end-to-end latency.
    #[serde(default)]
    #[schemars(schema_with = "positive_or_null")]
    pub p95_ms: Option<f64>,
    /// P99 of the end-to-end latency.
    #[serde(default)]
    #[schemars(schema_with = "positive_or_null")]
    pub p99_ms: Option<f64>,
    /// Peak memory; says nothing without its scope.
    #[serde(default)]
    #[schemars(schema_with = "positive_or_null")]
    pub peak_memory_mb: Option<f64>,
    /// What was counted: `rss`, `device_used`, `device_reserved`, … Scopes are not comparable.
    #[serde(default)]
    pub peak_memory_scope: Option<String>,
    /// Start of the backend → first answer.
    #[serde(default)]
    pub cold_start_ms: Option<f64>,
    /// Mean time a request waited in the server's queue.
    #[serde(default)]
    pub queue_wait_ms: Option<f64>,
    /// Successful requests over all measured passes.
    #[serde(default)]
    pub samples: Option<u64>,
    /// Successful requests of one pass (a mean when there were several).
    #[serde(default)]
    pub successful_requests: Option<f64>,
    /// Failed requests of one pass (a mean when there were several).
    #[serde(default)]
    pub failed_requests: Option<f64>,
    /// Wall time of the measured window of one pass.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Mean tokens of an answer.
    #[serde(default)]
    pub output_tokens_mean: Option<f64>,
    /// Whether output tokens were guessed from characters instead of counted.
    #[serde(default)]
    pub estimated_output_tokens: Option<bool>,
    /// Share of the machine's processor time that was not ours to use while it was
    /// measured (other programs, other virtual machines), 0 to 1.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub others_cpu_share: Option<f64>,
    /// Whether the error of the measuring client itself kept its limits at this load;
    /// `null`: not measured.
    #[serde(default)]
    pub client_within_limits: Option<bool>,
    /// One entry per measured pass.
    #[serde(default)]
    pub per_run: Vec<RunMetrics>,
}

/// One measured pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunMetrics {
    /// Output tokens per second of this pass.
    #[serde(default)]
    pub throughput_tokens_per_s: Option<f64>,
    /// Requests per second of this pass.
    #[serde(default)]
    pub throughput_requests_per_s: Option<f64>,
    /// Median time to first token of this pass.
    #[serde(default)]
    pub ttft_p50_ms: Option<f64>,
    /// Median end-to-end latency of this pass.
    #[serde(default)]
    pub e2e_p50_ms: Option<f64>,
    /// Successful requests of this pass.
    #[serde(default)]
    pub successful_requests: Option<u64>,
    /// Failed requests of this pass.
    #[serde(default)]
    pub failed_requests: Option<u64>,
}

/// A distribution of latencies in milliseconds. A percentile that `n` does not carry
/// is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Number of values.
    pub n: Option<u64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Smallest value.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
}

/// The format of quantized weights by their precision; `none` for floating point.
pub fn quantization_of(dtype: &str) -> &str {
    let floating = ["f32", "f16", "bf16", "float32", "float16", "bfloat16", "all f32"].contains(&dtype);
    if floating { "none" } else { dtype }
}

/// What was probed and how it came out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quality {
    /// `ok`, `below_floor`, `not_collected`, …
    #[serde(default)]
    pub status: Option<String>,
    /// What `value` is: `exact_token`, `task_loss`, …
    #[serde(default)]
    pub metric: Option<String>,
    /// The figure.
    #[serde(default)]
    pub value: Option<f64>,
    /// The limit it has to keep.
    #[serde(default)]
    pub floor: Option<f64>,
    /// `higher` (default) or `lower` is better.
    #[serde(default)]
    pub direction: Option<String>,
    /// Number of probes.
    #[serde(default)]
    pub probes: Option<u64>,
    /// Fields of structured answers, each compared on its own.
    #[serde(default)]
    pub fields: Vec<FieldProbe>,
}

/// One field of a structured answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldProbe {
    /// Its name.
    pub name: String,
    /// Whether a change of it is a risk by itself.
    #[serde(default)]
    pub critical: bool,
    /// Share of probes in which it agreed, 0 to 1.
    #[serde(rename = "match", default)]
    pub agreement: Option<f64>,
}

/// Why it failed and how to try again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// What went wrong; `null` when nothing did.
    #[serde(default)]
    pub failure_reason: Option<String>,
    /// Where the next attempt is or will be.
    #[serde(default)]
    pub retest_path: Option<String>,
}

/// What is concluded, and within which limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// The word.
    pub decision: Verdict,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// What is done next.
    #[serde(default)]
    pub next_action: Option<String>,
    /// `interactive` or `batch`: which figures count first.
    #[serde(default)]
    pub objective: Option<String>,
    /// How far the conclusion is meant to reach.
    #[serde(default)]
    pub scope: Option<String>,
    /// What is claimed besides: `p99`, `stable-production`, …
    #[serde(default)]
    pub claims: Vec<String>,
    /// Limits of resources.
    #[serde(default)]
    pub budget: Option<Budget>,
    /// What has to be reached.
    #[serde(default)]
    pub targets: Vec<Target>,
}

/// Limits of resources.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// Peak memory at most, in the scope of the measurement.
    #[serde(default)]
    pub peak_memory_mb: Option<f64>,
}

/// One thing that has to be reached. Give one of the limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// Path below `metrics`: `ttft_ms.p50`; or a name in `strategy_metrics`.
    pub metric: String,
    /// `<=`, `<`, `>=`, `>`, for `value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// Absolute limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Relative gain over the baseline at least: 0.1 is ten percent better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_gain: Option<f64>,
    /// Milliseconds that it may be worse than the baseline at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_regression_ms: Option<f64>,
}

/// The four words of a decision. Declared from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing is concluded.
    #[default]
    NotEvaluated,
    /// It must not be used so.
    Reject,
    /// Worth going on, not yet proven.
    Tune,
    /// Quality, budget and targets are met together.
    Accept,
}

impl Verdict {
    /// Every word, strongest first.
    pub const ALL: [Verdict; 4] = [Verdict::Accept, Verdict::Tune, Verdict::Reject, Verdict::NotEvaluated];

    /// The word in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Accept => "accept",
            Verdict::Tune => "tune",
            Verdict::Reject => "reject",
            Verdict::NotEvaluated => "not_evaluated",
        }
    }

    /// The verdict of that name.
    pub fn of(name: &str) -> Option<Self> {
        Verdict::ALL.into_iter().find(|verdict| verdict.name() == name)
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A result file: a raw report (any members) plus the public block. A result of the
/// same name inside `raw` is replaced; the block stands last.
pub fn envelope(mut raw: Map<String, Value>, normalized: &NormalizedResult) -> Value {
    raw.shift_remove("normalized_result");
    // Plain structs of texts and numbers; a float that is not finite becomes null.
    raw.insert("normalized_result".to_owned(), serde_json::to_value(normalized).unwrap_or(Value::Null));
    Value::Object(raw)
}

/// The text of a result file: two spaces of indentation, one newline at the end.
pub fn to_text(document: &Value) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// The JSON schema of a result file.
pub fn json_schema() -> Schema {
    let mut generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let normalized = generator.subschema_for::<NormalizedResult>();
    let definitions = generator.take_definitions(true);
    json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "inference-benchmark-v1.schema.json",
        "title": SCHEMA_VERSION,
        "description": "A result file: a raw report with any members, and the public block `normalized_result`. \
            What was not measured is null. `verify schema` demands more than a schema can say: ascending percentiles, \
            no duplicate keys, finite numbers.",
        "type": "object",
        "required": ["normalized_result"],
        "properties": { "normalized_result": normalized },
        "$defs": definitions,
    })
}

/// Text with at least one character that is neither space nor control.
fn visible_text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "[^\\s\\u0000-\\u001f\\u007f-\\u009f\\u200b-\\u200f\\u2060\\ufeff]" })
}

/// A name; whole numbers are tolerated, some producers write `66` without quotes.
fn label(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "integer", "null"] })
}

fn positive_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["number", "null"], "exclusiveMinimum": 0 })
}

/// A positive number, or a distribution with at least one number.
fn measured_latency(_: &mut SchemaGenerator) -> Schema {
    let one: Vec<Value> = STATISTICS
        .iter()
        .map(|name| serde_json::json!({ "required": [name], "properties": { *name: { "type": "number" } } }))
        .collect();
    json_schema!({
        "type": ["number", "object"],
        "exclusiveMinimum": 0,
        "properties": distribution("exclusiveMinimum"),
        "anyOf": [{ "type": "number" }, { "type": "object", "anyOf": one }],
    })
}

/// As [`measured_latency`], but it may be absent, null, or empty, and zero is possible
/// (all tokens in one event).
fn optional_latency(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["number", "object", "null"], "minimum": 0, "properties": distribution("minimum") })
}

fn distribution(limit: &str) -> Value {
    STATISTICS
        .iter()
        .map(|name| ((*name).to_owned(), serde_json::json!({ "type": ["number", "null"], limit: 0 })))
        .collect::<Map<String, Value>>()
        .into()
}
