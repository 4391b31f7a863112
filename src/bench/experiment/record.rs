//! `verify-experiment/v1`: what an experiment leaves behind. One file holds everything
//! a report needs; the stamps of single tokens stay in the files of the passes.
//!
//! Units are in the names: `_ms` milliseconds, `_s` seconds, `_bytes` bytes, `_j` joules,
//! `_mhz` megahertz. What was not measured is `null`, never 0. Memory figures stand
//! under their scope and are never comparable across scopes.

use crate::quality::ArmQuality;
use crate::results::v1::Latency;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version that stands in every record.
pub const SCHEMA_VERSION: &str = "verify-experiment/v1";

/// An experiment from its frozen manifest to its conclusion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentRecord {
    /// Always `verify-experiment/v1`.
    #[schemars(extend("const" = SCHEMA_VERSION))]
    pub schema_version: String,
    /// Version of `verify` that wrote it.
    pub tool_version: String,
    /// When the first pass began, RFC 3339.
    pub created_at: String,
    /// When the last pass had ended; `null` while some are still to come.
    pub finished_at: Option<String>,
    /// What was fixed before anything ran.
    pub manifest: Manifest,
    /// One entry per arm, the baseline first.
    pub arms: Vec<ArmRecord>,
    /// Every pass in the order in which they ran, warm-ups too.
    pub passes: Vec<PassRecord>,
    /// Candidate minus baseline, one entry per candidate and metric.
    pub comparisons: Vec<Comparison>,
    /// What has to be said beside the figures, in both languages.
    pub notes: Vec<Note>,
}

/// What an experiment fixes. Two runs with one fingerprint measured the same thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// SHA-256 of the other members in their JSON form.
    pub fingerprint: String,
    /// Name of the experiment.
    pub name: String,
    /// The one variable: `length`, `precision`, `quantization`, `concurrency`, `cache`,
    /// `speculation` or `scheduler`.
    pub variable: String,
    /// The arms, the baseline first.
    pub arms: Vec<ArmManifest>,
    /// Who serves.
    pub backend: BackendFacts,
    /// Where it ran.
    pub machine: MachineFacts,
    /// How tokens are chosen.
    pub decoding: Decoding,
    /// Measured passes per arm.
    pub repeats: u32,
    /// Requests that are sent before the measured ones of a pass block, and not counted.
    pub warmup: u32,
    /// Seed of the order of the arms and of generated prompts and arrivals.
    pub seed: u64,
    /// The probes of quality; `null` when there are none.
    pub probes: Option<ProbeSetFacts>,
    /// What a request has to keep to count as good; empty when nothing was stated.
    pub goodput: Goodput,
}

/// One arm: everything that decides what is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmManifest {
    /// Its name.
    pub name: String,
    /// The variable's value as text.
    pub value: String,
    /// The weights.
    pub model: ModelFacts,
    /// Precision of the weights as stated; `null` when only the server knows.
    pub precision: Option<String>,
    /// Requests that the server works on at a time.
    pub batch: u32,
    /// How requests arrive.
    pub load: LoadFacts,
    /// `off`, `prefix`, …
    pub cache_policy: String,
    /// Features of the backend that are switched on.
    pub features: Vec<String>,
    /// Command of the server, `{port}` open; empty for somebody else's server.
    pub command: Vec<String>,
    /// What is asked.
    pub workload: WorkloadFacts,
}

/// The weights of an arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelFacts {
    /// File name or id, without the folders of this machine.
    pub name: String,
    /// Commit or branch, when it came from a hub's cache.
    pub revision: Option<String>,
    /// SHA-256 of the weights, or of what identifies them.
    pub sha256: Option<String>,
    /// Size of the weights.
    pub weight_bytes: Option<u64>,
}

/// How requests arrive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFacts {
    /// `closed` (a fixed number in flight), `constant` or `poisson` (a fixed rate).
    pub shape: String,
    /// In flight: exactly in a closed loop, at most in an open one; `null`: no limit.
    pub concurrency: Option<u32>,
    /// Arrivals per second of an open loop.
    pub rate_per_s: Option<f64>,
}

/// What an arm asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadFacts {
    /// File below the root, or `generated`.
    pub source: String,
    /// SHA-256 of the file, or of the generated prompts.
    pub sha256: String,
    /// Requests of one pass.
    pub requests: u32,
    /// Tokens at most per answer.
    pub max_tokens: u32,
    /// Words of a generated prompt; `null` for a file.
    pub prompt_words: Option<u32>,
    /// What stands before a prompt so that a cache cannot know it: `prompt` (a number of
    /// its own before every prompt), `pass` (one number for all prompts of a pass, where
    /// the cache is the subject).
    pub salt: String,
    /// Every prompt with its digest, before the salt.
    pub prompts: Vec<PromptFacts>,
}

/// A prompt, by its digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptFacts {
    /// Name in the workload.
    pub id: String,
    /// SHA-256 of its messages in JSON.
    pub sha256: String,
}

/// Who serves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackendFacts {
    /// Name of the profile; `server` for an address.
    pub name: String,
    /// Engine, as results name it.
    pub engine: String,
    /// Its version, where it is known.
    pub version: Option<String>,
    /// It was running already: neither started nor stopped, its memory not ours to read.
    pub external: bool,
}

/// Where it ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineFacts {
    /// What computes: the GPU, else the processor; `null` for somebody else's server.
    pub device: Option<String>,
    /// Driver of the GPUs.
    pub driver: Option<String>,
    /// Names of the GPUs; empty: none, or NVML is not here.
    pub gpus: Vec<String>,
    /// The processor.
    pub cpu: Option<String>,
    /// Cores that this process may use.
    pub cores: Option<u32>,
    /// `linux`, …
    pub os: String,
    /// `x86_64`, …
    pub arch: String,
}

/// How tokens are chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decoding {
    /// 0 is greedy.
    pub temperature: f64,
    /// Seed of sampling; `null`: none was sent.
    pub seed: Option<u64>,
    /// Whether answers go on to their limit whatever the model says.
    pub ignore_eos: bool,
}

/// The probes of quality, by their digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeSetFacts {
    /// Name of the set, or its file below the root.
    pub name: String,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Number of probes.
    pub probes: u32,
}

/// What a request has to keep to be good; absent limits hold for every request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Goodput {
    /// Time to first token at most.
    pub ttft_ms: Option<f64>,
    /// Time per output token at most.
    pub tpot_ms: Option<f64>,
    /// End-to-end latency at most.
    pub e2e_ms: Option<f64>,
}

impl Goodput {
    /// Whether anything is demanded.
    pub fn is_stated(&self) -> bool {
        self.ttft_ms.is_some() || self.tpot_ms.is_some() || self.e2e_ms.is_some()
    }
}

/// What is known of an arm after its passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmRecord {
    /// Its name, as in the manifest.
    pub name: String,
    /// Precision of the weights: as stated, else as the server says.
    pub precision: Option<String>,
    /// Every start of the servers it was measured on; arms may share one.
    pub starts: Vec<StartRecord>,
    /// Time: median over the measured passes with their range.
    pub time: ArmTime,
    /// Memory: scope by scope, static and dynamic apart.
    pub memory: ArmMemory,
    /// Quality; `null` when nothing was probed.
    pub quality: Option<ArmQuality>,
    /// Energy of the GPUs over the measured passes; `null` without NVML.
    pub energy_j: Option<f64>,
    /// Energy per output token.
    pub energy_per_token_j: Option<f64>,
    /// What the server's counters show over the measured passes.
    pub server: ServerEvidence,
    /// What is claimed and what the evidence rules allow.
    pub conclusion: ArmConclusion,
    /// Its result file (`inference-benchmark/v1`), relative to the record.
    pub result: Option<String>,
}

/// One start of a server, milliseconds from its spawn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartRecord {
    /// Number of the start over the whole experiment, from 1.
    pub start: u32,
    /// The arm it served.
    pub arm: String,
    /// The port accepted a connection.
    pub port_open_ms: Option<f64>,
    /// The health route answered 200.
    pub healthy_ms: Option<f64>,
    /// The first request was answered completely: the cold start.
    pub first_answer_ms: Option<f64>,
    /// Time to first token of that first request, from its own sending.
    pub first_request_ttft_ms: Option<f64>,
    /// End-to-end latency of that first request.
    pub first_request_e2e_ms: Option<f64>,
    /// Memory after it was ready and before any load: the weights and what is reserved.
    pub static_memory: MemoryFigures,
}

/// A figure over passes: the median of the passes with their range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverPasses {
    /// Number of passes that have it.
    pub n: u32,
    /// Median of the passes.
    pub median: Option<f64>,
    /// Smallest pass.
    pub min: Option<f64>,
    /// Largest pass.
    pub max: Option<f64>,
}

/// The time columns of an arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmTime {
    /// Median TTFT of the passes.
    pub ttft_p50_ms: OverPasses,
    /// Median TPOT of the passes.
    pub tpot_p50_ms: OverPasses,
    /// Median end-to-end latency of the passes.
    pub e2e_p50_ms: OverPasses,
    /// Output tokens per second of the passes, prefill inside.
    pub output_tokens_per_s: OverPasses,
    /// Requests per second of the passes.
    pub requests_per_s: OverPasses,
    /// Requests per second that kept every stated limit.
    pub goodput_per_s: OverPasses,
    /// First answer after the spawn, over the starts.
    pub cold_start_ms: OverPasses,
    /// Whether the passes agree within 5 % (throughput), so that their requests are pooled.
    pub pooled: bool,
    /// Requests of all passes together; `null` when the passes do not agree.
    pub ttft_ms: Option<Latency>,
    /// As above.
    pub tpot_ms: Option<Latency>,
    /// As above.
    pub e2e_ms: Option<Latency>,
    /// Coefficient of variation of the throughput of the passes.
    pub throughput_cv: Option<f64>,
    /// Successful requests over all passes.
    pub successful: u64,
    /// Failed requests over all passes.
    pub failed: u64,
    /// Mean tokens of a prompt.
    pub prompt_tokens_mean: Option<f64>,
    /// Mean tokens of an answer.
    pub output_tokens_mean: Option<f64>,
    /// Output tokens were counted from chunks because the server gave no plausible usage.
    pub tokens_estimated: bool,
}

/// Memory of one moment or one peak, scope by scope. Figures of different scopes are
/// never compared or added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryFigures {
    /// Resident set, summed over the process tree; shared pages count once per process.
    pub rss_bytes: Option<u64>,
    /// Proportional share, summed over the process tree.
    pub pss_bytes: Option<u64>,
    /// Anonymous part of the resident set; weights mapped from a file are not in it.
    pub rss_anon_bytes: Option<u64>,
    /// Used on all GPUs by anybody (NVML).
    pub device_used_bytes: Option<u64>,
    /// Used on all GPUs by the server's process tree (NVML); `null` also where the
    /// processes of a container cannot be told.
    pub device_process_bytes: Option<u64>,
    /// Share of the cache for keys and values in use, 0 to 1, as the server states it.
    pub kv_cache_usage: Option<f64>,
}

/// The memory columns of an arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmMemory {
    /// After it was ready and before any load.
    #[serde(rename = "static")]
    pub at_rest: MemoryFigures,
    /// Largest sample of each scope over the measured passes.
    pub peak: MemoryFigures,
    /// Peak minus static, where both are known and the peak is larger.
    pub growth: MemoryFigures,
    /// Time between two samples.
    pub interval_ms: f64,
    /// Number of samples.
    pub samples: u32,
}

/// What the server's counters show. `null` is "no evidence", never zero.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerEvidence {
    /// Cached over all prompt tokens.
    pub prefix_cache_hit_rate: Option<f64>,
    /// Tokens that were drafted.
    pub drafted_tokens: Option<f64>,
    /// Accepted over drafted tokens.
    pub acceptance_rate: Option<f64>,
    /// Largest number of waiting requests that the gauge showed.
    pub waiting_peak: Option<f64>,
    /// TTFT behind a changed prefix minus TTFT on a hit; where the cache is the subject.
    pub invalidation_cost_ms: Option<f64>,
    /// Counters that fell between two readings: the server was restarted or reset.
    pub resets: Vec<String>,
}

/// A decision with its limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmConclusion {
    /// `accept`, `tune`, `reject` or `not_evaluated`.
    pub decision: String,
    /// Why, and on which device, backend and workload it holds.
    pub reason: BothLanguages,
    /// What it does not cover.
    pub not_covered: BothLanguages,
    /// The rules that limit it, by id.
    pub rules: Vec<String>,
    /// What would raise it; `null` under `accept`.
    pub next_step: Option<BothLanguages>,
}

/// A text in both languages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BothLanguages {
    /// English.
    pub en: String,
    /// Chinese.
    pub zh: String,
}

/// Something that has to be said beside the figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// Id of the rule, such as `bench/cold-mixed-in`.
    pub rule: String,
    /// `error`, `warning` or `note`.
    pub severity: String,
    /// The arm it is about; `null`: the whole experiment.
    pub arm: Option<String>,
    /// What is to be said.
    pub message: BothLanguages,
}

/// What a pass was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PassPhase {
    /// Kept, never counted.
    Warmup,
    /// Counted.
    Measured,
}

/// One pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassRecord {
    /// Place in the order of running, from 1.
    pub index: u32,
    /// The arm.
    pub arm: String,
    /// Repeat of the arm, from 1; 0 for a warm-up.
    pub repeat: u32,
    /// What it was for.
    pub phase: PassPhase,
    /// The start of the server that it ran on.
    pub start: u32,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// First request sent → last answer ended.
    pub duration_s: f64,
    /// The requests, in the order of the workload.
    pub requests: Vec<RequestRecord>,
    /// Figures of the pass.
    pub time: PassTime,
    /// The server's counters right before and after.
    pub counters: CounterRecord,
    /// Memory while it ran.
    pub memory: MemorySeries,
    /// GPUs while it ran; `null` without NVML.
    pub gpu: Option<GpuRecord>,
    /// What the client itself needed.
    pub client: ClientRecord,
    /// Largest share of the processors' time that other programs or other machines on the
    /// same host took meanwhile, 0 to 1; `null` where the system does not tell.
    pub others_cpu_share: Option<f64>,
    /// Load averages of the machine over one minute, before and after.
    pub load_average: [Option<f64>; 2],
}

/// One request. Times in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestRecord {
    /// Name in the workload.
    pub id: String,
    /// Sent, from the beginning of the pass.
    pub sent_ms: f64,
    /// When it should have been sent, from the beginning of the pass.
    pub scheduled_ms: f64,
    /// Time in the server's queue, where the server tells its prompt time.
    pub queue_wait_ms: Option<f64>,
    /// Sent → first token-bearing event; `null` when it failed.
    pub ttft_ms: Option<f64>,
    /// Time per further output token.
    pub tpot_ms: Option<f64>,
    /// Sent → last token-bearing event.
    pub e2e_ms: Option<f64>,
    /// Prompt tokens by usage.
    pub prompt_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// Prompt tokens that came from the cache, by usage.
    pub cached_tokens: Option<u64>,
    /// `finish_reason`.
    pub finish_reason: Option<String>,
    /// Why it failed, in one word; `null`: it succeeded.
    pub fault: Option<String>,
}

/// Figures of one pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassTime {
    /// Sent → first token-bearing event.
    pub ttft_ms: Option<Latency>,
    /// Time per further output token, one sample per request.
    pub tpot_ms: Option<Latency>,
    /// Sent → last token-bearing event.
    pub e2e_ms: Option<Latency>,
    /// Gaps between token-bearing events.
    pub icl_ms: Option<Latency>,
    /// Time in the server's queue.
    pub queue_wait_ms: Option<Latency>,
    /// Successful requests.
    pub successful: u64,
    /// Failed requests.
    pub failed: u64,
    /// Failures by kind.
    pub failures: BTreeMap<String, u64>,
    /// Output tokens of successful requests.
    pub output_tokens: u64,
    /// Whether output tokens were counted from chunks.
    pub tokens_estimated: bool,
    /// Output tokens per second.
    pub output_tokens_per_s: Option<f64>,
    /// Requests per second.
    pub requests_per_s: Option<f64>,
    /// Requests per second that kept every stated limit; `null` when none is stated.
    pub goodput_per_s: Option<f64>,
    /// Jain's index over the TTFT of the requests.
    pub fairness_jain_ttft: Option<f64>,
}

/// Counters by meaning, as the profile of the backend names them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CounterRecord {
    /// Right before the pass.
    pub before: BTreeMap<String, f64>,
    /// Right after the pass.
    pub after: BTreeMap<String, f64>,
    /// What happened between; a counter that fell counts from zero.
    pub difference: BTreeMap<String, f64>,
    /// The counters that fell.
    pub resets: Vec<String>,
    /// Largest number of waiting requests that the gauge showed.
    pub waiting_peak: Option<f64>,
}

/// Memory over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySeries {
    /// Time between two samples.
    pub interval_ms: f64,
    /// The samples.
    pub samples: Vec<MemorySample>,
}

/// Memory of one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySample {
    /// From the beginning of the pass.
    pub at_ms: f64,
    /// Scope by scope.
    pub memory: MemoryFigures,
}

/// The GPUs over one pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuRecord {
    /// Energy of all GPUs over the pass; `null` where the GPU does not count it.
    pub energy_j: Option<f64>,
    /// Clock of the multiprocessors of the first GPU before the pass.
    pub sm_clock_before_mhz: Option<u32>,
    /// The same after it.
    pub sm_clock_after_mhz: Option<u32>,
}

/// What the client itself needed: a figure of a starved client is no figure of the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientRecord {
    /// Processor time of this process during the pass.
    pub cpu_s: Option<f64>,
    /// The same as a share of one core.
    pub cpu_share: Option<f64>,
    /// Time its threads were ready to run and waited for a processor.
    pub starved_ms: Option<f64>,
    /// Error of this client at this load, measured against a known schedule; `null`:
    /// not measured.
    pub error_ttft_ms: Option<f64>,
    /// The same for the end-to-end latency.
    pub error_e2e_ms: Option<f64>,
    /// The same for the gaps between tokens.
    pub error_itl_ms: Option<f64>,
    /// Whether these errors keep their limits; `null`: not measured.
    #[serde(default)]
    pub error_within_limits: Option<bool>,
}

/// Candidate minus baseline over paired passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Arm.
    pub baseline: String,
    /// Arm.
    pub candidate: String,
    /// `ttft_p50_ms`, `tpot_p50_ms`, `e2e_p50_ms`, `output_tokens_per_s`.
    pub metric: String,
    /// `lower` or `higher`.
    pub better: String,
    /// Baseline and candidate of the same repeat.
    pub pairs: Vec<[f64; 2]>,
    /// Mean of the differences, in the unit of the metric.
    pub difference: Option<f64>,
    /// The same relative to the mean of the baseline.
    pub relative: Option<f64>,
    /// 95 % interval of the mean difference (t over pairs); `null` below three pairs.
    pub interval: Option<[f64; 2]>,
    /// A difference smaller than this says nothing: 3 % of the baseline, or the
    /// client's own error, whichever is larger.
    pub threshold: Option<f64>,
    /// What it shows.
    pub verdict: ComparisonVerdict,
}

/// What a comparison shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// The interval excludes 0 on the good side and the difference exceeds the threshold.
    Better,
    /// The same on the bad side.
    Worse,
    /// Neither: more repeats, or there is no difference that matters.
    Unclear,
}
