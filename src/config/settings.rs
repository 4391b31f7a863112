//! The resolved settings and, at once, the format of `verify.toml`: every key has a
//! default, unknown keys are refused, the JSON schema for editors comes from here.

use super::check;
use crate::backend::BackendProfile;
use crate::backend::model::ModelSource;
use crate::bench::experiment::record::Goodput;
use crate::bench::experiment::spec::{DecisionSpec, QualitySpec};
use crate::stages::answers::Sandbox;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where things are in the course.
    pub course: CourseSettings,
    /// Settings of `verify static`.
    pub r#static: StaticSettings,
    /// Settings of `verify answers`.
    pub answers: AnswersSettings,
    /// Settings of `verify links`.
    pub links: LinksSettings,
    /// Settings of `verify smoke`.
    pub smoke: SmokeSettings,
    /// Settings of `verify schema`.
    pub schema: SchemaSettings,
    /// Thresholds of `verify conclude`.
    pub conclude: ConcludeSettings,
    /// The enlarged workload that `conclude` measures in the chain.
    pub bench: BenchSettings,
    /// Sections of the course that measure something, one table each.
    pub project: Vec<Project>,
    /// Backends: the built-in ones changed, or new ones.
    pub backend: Vec<BackendProfile>,
}

impl Settings {
    pub(super) fn deserialize_value(value: toml::Value) -> Result<Self, toml::de::Error> {
        Settings::deserialize(value)
    }

    /// The project with this number.
    pub fn project(&self, id: u32) -> Option<&Project> {
        self.project.iter().find(|project| project.id == id)
    }
}

/// Where things are in the course. Paths are relative to the root, with `/`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CourseSettings {
    /// Folders whose notebooks hold a question area and reference answers.
    pub notebooks: Vec<String>,
    /// Folders of self-contained notebooks: every code cell runs in order.
    pub inline_notebooks: Vec<String>,
    /// Root of the documentation site.
    pub docs: String,
    /// Folder of the result files.
    #[serde(deserialize_with = "check::inside")]
    pub results: String,
    /// Glob patterns of paths that no stage looks at, also when they are named on the command line.
    pub exclude: Vec<String>,
    /// Python files that must exist and compile.
    pub tools: Vec<String>,
    /// Texts that end the question area.
    pub stop_markers: Vec<String>,
    /// Texts in the heading that opens the answer area.
    pub answer_markers: Vec<String>,
}

/// Settings of `verify static`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StaticSettings {
    /// Python version to judge for, such as `3.10`; empty: `requires-python` of
    /// `pyproject.toml`, else 3.10.
    pub target_version: String,
}

/// Settings of `verify answers`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AnswersSettings {
    /// Seconds for one notebook.
    #[serde(deserialize_with = "check::seconds")]
    pub timeout_s: f64,
    /// Notebooks at a time; 0: as many as there are cores.
    #[serde(deserialize_with = "check::at_a_time_or_auto")]
    pub jobs: usize,
    /// Interpreter; empty: `python3`, then `python`, on PATH.
    pub python: String,
    /// Sentences that say "skipped" when a running test prints them.
    pub skip_sentences: Vec<String>,
    /// Walls around notebooks: no network, no writing outside a scratch folder.
    pub sandbox: Sandbox,
    /// Memory of one notebook in MiB; 0: no limit.
    pub memory_mb: u64,
    /// Import shared modules once and fork a process for each notebook.
    pub preload: bool,
    /// Settings of single notebooks; later entries win.
    pub notebook: Vec<NotebookSettings>,
}

impl Default for AnswersSettings {
    fn default() -> Self {
        AnswersSettings {
            timeout_s: 30.0,
            jobs: 0,
            python: String::new(),
            skip_sentences: Vec::new(),
            sandbox: Sandbox::Auto,
            memory_mb: 0,
            preload: true,
            notebook: Vec::new(),
        }
    }
}

/// Settings of the notebooks that match a pattern.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotebookSettings {
    /// Glob pattern of their path, relative to the root.
    pub path: String,
    /// Seconds for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
    /// Self-contained: every code cell runs in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline: Option<bool>,
}

/// Which rule makes heading ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Slug {
    /// The page the reader is on decides.
    #[default]
    Auto,
    /// GitHub's rule everywhere.
    Github,
    /// VitePress' rule everywhere.
    Vitepress,
}

/// Settings of `verify links`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinksSettings {
    /// Which rule makes heading ids.
    pub slug: Slug,
    /// Links that are accepted although they do not resolve.
    pub ignore: Vec<LinkIgnore>,
    /// Command that converts notebooks into pages, run by `--convert`: program and arguments.
    pub convert: Vec<String>,
    /// Command that builds the site, run by `--build`: program and arguments.
    pub build: Vec<String>,
    /// Folder in which `build` runs; empty: the docs root.
    pub build_dir: String,
    /// Folders of chapters that the docs tree mirrors; empty: every folder that both have.
    pub mirror: Vec<String>,
    /// Address of the repository, such as `https://github.com/owner/name`; empty: the git remote.
    pub repository: String,
    /// Branches whose files are the ones at hand.
    pub branches: Vec<String>,
    /// Address of the published site, such as `https://owner.github.io/name/`.
    pub site: String,
    /// How `--external` asks.
    pub external: ExternalSettings,
}

/// How `verify links --external` asks servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExternalSettings {
    /// Requests in flight.
    #[serde(deserialize_with = "check::at_a_time")]
    pub concurrency: usize,
    /// Requests in flight to one host.
    #[serde(deserialize_with = "check::at_a_time")]
    pub per_host: usize,
    /// Seconds for one request.
    #[serde(deserialize_with = "check::seconds")]
    pub timeout_s: f64,
    /// Further tries after a refusal or an error of the connection.
    pub retries: u32,
    /// Longest wait in seconds that a server may ask for with Retry-After.
    #[serde(deserialize_with = "check::grace")]
    pub max_wait_s: f64,
    /// Status codes that count as alive besides 200 to 299.
    pub accept: Vec<u16>,
    /// Status codes that count as dead; any other says nothing about the page.
    pub dead: Vec<u16>,
    /// Cache of answers; empty: none.
    #[serde(deserialize_with = "check::inside")]
    pub cache: String,
    /// Hours for which a good answer is believed.
    pub cache_hours: f64,
}

impl Default for ExternalSettings {
    fn default() -> Self {
        ExternalSettings {
            concurrency: 16,
            per_host: 2,
            timeout_s: 20.0,
            retries: 2,
            max_wait_s: 60.0,
            accept: Vec::new(),
            dead: vec![404, 410],
            cache: ".verify/links-external.json".to_owned(),
            cache_hours: 24.0,
        }
    }
}

/// One accepted link.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinkIgnore {
    /// Glob pattern of the source file; empty: every file.
    pub path: String,
    /// Glob pattern of the link as written.
    pub target: String,
    /// Why it is accepted.
    pub reason: String,
}

/// Settings of `verify smoke`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SmokeSettings {
    /// Backend that the chain starts; empty: the stage is skipped unless one is named.
    pub backend: String,
    /// Server that is running already; neither started nor stopped.
    pub base_url: String,
    /// Model: a folder, a file, or an id: `OWNER/NAME`, with `@REVISION` and `:FILE.gguf` where
    /// needed. Empty: the backend's own.
    pub model: String,
    /// Where an id is looked for: both hubs' caches, or one's.
    pub model_source: ModelSource,
    /// A model that is in no cache is fetched into the cache of its hub.
    pub download: bool,
    /// Python code that a model brings is run, for models at a pinned commit (`OWNER/NAME@COMMIT`)
    /// and for folders.
    pub trust_remote_code: bool,
    /// Precision that servers are asked for, such as `float16`; `auto`: the model's own, or
    /// float16 where the device has no bfloat16.
    pub dtype: String,
    /// A server is reached by a Unix socket in a private folder where it can; else by a port.
    pub socket: bool,
    /// Quantized form of the model, for project 67; `model` is then its baseline.
    pub quantized_model: String,
    /// Name of the environment variable that holds the API key of `base_url`.
    pub api_key_env: String,
}

impl Default for SmokeSettings {
    fn default() -> Self {
        SmokeSettings {
            backend: String::new(),
            base_url: String::new(),
            model: String::new(),
            model_source: ModelSource::Auto,
            download: false,
            trust_remote_code: false,
            dtype: "auto".to_owned(),
            socket: true,
            quantized_model: String::new(),
            api_key_env: String::new(),
        }
    }
}

/// How much `verify schema` demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum SchemaLevel {
    /// The whole contract.
    #[default]
    Strict,
    /// Exactly the verdict of the checklist's former `jq` filter.
    Compat,
}

/// Settings of `verify schema`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SchemaSettings {
    /// How much is demanded.
    pub level: SchemaLevel,
    /// Files larger than this are not read.
    pub max_bytes: u64,
}

impl Default for SchemaSettings {
    fn default() -> Self {
        SchemaSettings { level: SchemaLevel::Strict, max_bytes: 64 << 20 }
    }
}

/// Thresholds of `verify conclude`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConcludeSettings {
    /// Repeats below this are too few for `accept`.
    pub min_repeats: u32,
    /// Samples (successful requests over all repeats) below this are too few for `accept`.
    pub min_samples: u32,
    /// Largest coefficient of variation of throughput over the repeats.
    #[serde(deserialize_with = "check::relative")]
    pub max_cv: f64,
    /// Largest share of the machine's processor time that other programs may have used
    /// while the run was measured, 0 to 1.
    #[serde(deserialize_with = "check::share")]
    pub max_others_cpu: f64,
    /// Quality probes below this are too few for `accept`.
    pub min_probes: u32,
    /// Samples below this carry no P99.
    pub p99_min_samples: u32,
    /// Samples below this carry a P99 only with a warning.
    pub p99_warn_samples: u32,
    /// Tolerated relative difference of the mean output length of two sides.
    #[serde(deserialize_with = "check::relative")]
    pub output_length_tolerance: f64,
    /// Concurrency below this shows nothing about a scheduler (project 70).
    pub min_scheduler_concurrency: u32,
}

impl Default for ConcludeSettings {
    fn default() -> Self {
        ConcludeSettings {
            min_repeats: 3,
            min_samples: 30,
            max_cv: 0.10,
            max_others_cpu: 0.10,
            min_probes: 5,
            p99_min_samples: 100,
            p99_warn_samples: 299,
            output_length_tolerance: 0.05,
            min_scheduler_concurrency: 4,
        }
    }
}

/// The enlarged workload that `conclude` measures in the chain, when a backend is named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BenchSettings {
    /// Measured passes per arm; 0: nothing is measured.
    #[serde(deserialize_with = "check::at_a_time_or_auto")]
    pub repeats: u32,
    /// Requests of one pass; 0: as many as `conclude.min_samples` wants of all passes.
    #[serde(deserialize_with = "check::amount")]
    pub requests: u32,
    /// Probes of quality: `builtin`, `builtin-en`, `builtin-zh`, `none`, or a TOML file.
    pub probes: String,
    /// Probes that are asked, spread over the set, by smoke (67, 68) and by the enlarged
    /// workload; 0: all of them.
    #[serde(deserialize_with = "check::amount")]
    pub probe_count: u32,
    /// What a request has to keep to count as good.
    pub goodput: Goodput,
    /// What quality has to keep; without a floor nothing is accepted.
    pub quality: QualitySpec,
    /// What a candidate has to reach to be accepted.
    pub decision: DecisionSpec,
}

impl Default for BenchSettings {
    fn default() -> Self {
        BenchSettings {
            repeats: 3,
            requests: 0,
            probes: "builtin".to_owned(),
            probe_count: 6,
            goodput: Goodput::default(),
            quality: QualitySpec::default(),
            decision: DecisionSpec::default(),
        }
    }
}

/// One section of the course that measures something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Project {
    /// Number of the section.
    pub id: u32,
    /// What it is about.
    pub title: String,
    /// Its notebook.
    pub notebook: String,
    /// Its page in the documentation.
    pub page: String,
    /// Practice level: P1 (the chain works on a smoke run), P2 (a real backend with full evidence).
    pub level: String,
    /// Variable in the notebook that switches the real backend on; committed as `False`.
    pub switch: String,
    /// Name of its result file in the results folder.
    #[serde(deserialize_with = "check::inside")]
    pub result: String,
    /// Name of the strategy in its result.
    pub strategy: String,
    /// Workload: a JSONL file of prompts.
    pub workload: String,
    /// Requests of the small workload.
    #[serde(deserialize_with = "check::amount")]
    pub requests: u32,
    /// Requests in flight.
    #[serde(deserialize_with = "check::at_a_time")]
    pub concurrency: u32,
    /// Requests sent before the measured ones and not counted.
    #[serde(deserialize_with = "check::amount")]
    pub warmup: u32,
    /// Tokens at most per answer.
    #[serde(deserialize_with = "check::amount")]
    pub max_tokens: u32,
    /// Requests that the server works on at a time; the others queue. 0: `concurrency`.
    #[serde(deserialize_with = "check::at_a_time_or_auto")]
    pub parallel: u32,
    /// Whether requests may hit the server's prefix cache.
    pub cache_policy: String,
    /// Features of the backend that the run switches on, as its profile names them.
    pub features: Vec<String>,
    /// The other side of the comparison, measured first; none: there is nothing to compare.
    pub baseline: Option<Baseline>,
    /// Whether quality probes are asked after the measured requests: a candidate is held
    /// against the answers of its baseline.
    pub probes: bool,
    /// Metrics its result needs beside the public ones.
    pub strategy_metrics: Vec<String>,
    /// What the smoke run shows by itself.
    pub automatic: Vec<String>,
    /// What the learner still has to confirm.
    pub to_confirm: Vec<String>,
}

/// The other side of a comparison: what differs from its project. An empty text, an
/// empty list or 0 stands for "as the project".
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Baseline {
    /// Name of the strategy in its result.
    pub strategy: String,
    /// Features of the backend.
    pub features: Vec<String>,
    /// Requests in flight.
    #[serde(deserialize_with = "check::at_a_time_or_auto")]
    pub concurrency: u32,
    /// Whether requests may hit the server's prefix cache.
    pub cache_policy: String,
}

impl Default for Project {
    fn default() -> Self {
        Project {
            id: 0,
            title: String::new(),
            notebook: String::new(),
            page: String::new(),
            level: "P1".to_owned(),
            switch: "RUN_REAL_BACKEND".to_owned(),
            result: String::new(),
            strategy: String::new(),
            workload: String::new(),
            requests: 5,
            concurrency: 1,
            warmup: 1,
            max_tokens: 32,
            parallel: 0,
            cache_policy: "off".to_owned(),
            features: Vec::new(),
            baseline: None,
            probes: false,
            strategy_metrics: Vec::new(),
            automatic: Vec::new(),
            to_confirm: Vec::new(),
        }
    }
}
