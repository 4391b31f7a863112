//! A backend described as data: a new server is a TOML table, not code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One OpenAI-compatible server and how to treat it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BackendProfile {
    /// Name on the command line.
    pub name: String,
    /// One line for `verify backend list`.
    pub summary: String,
    /// Program, looked up on PATH; `{python}` is the interpreter of a provisioned backend.
    pub program: String,
    /// Arguments. `{model}`, `{served_model}`, `{host}`, `{port}`, `{context}`,
    /// `{parallel}`, `{threads}` are filled in.
    pub args: Vec<String>,
    /// Arguments that print the version.
    pub version_args: Vec<String>,
    /// Arguments per feature (`prefix_cache_off`, `prefix_cache_on`), added when a run asks for it.
    pub features: BTreeMap<String, Vec<String>>,
    /// Environment of the server.
    pub env: BTreeMap<String, String>,
    /// Route that answers 200 when the server is healthy; empty: it has none.
    pub health: String,
    /// Route that lists the models; empty: it is not relied on.
    pub models: String,
    /// Route with counters in Prometheus text; empty: it has none.
    pub metrics: String,
    /// Whether a complete stream ends with `[DONE]`.
    pub ends_with_done: bool,
    /// Seconds until it must have answered a first request.
    pub ready_timeout_s: f64,
    /// Precision of the weights when nothing else tells it.
    pub dtype: String,
    /// Command that provides it when it is missing.
    pub install: String,
}

impl Default for BackendProfile {
    fn default() -> Self {
        BackendProfile {
            name: String::new(),
            summary: String::new(),
            program: String::new(),
            args: Vec::new(),
            version_args: vec!["--version".to_owned()],
            features: BTreeMap::new(),
            env: BTreeMap::new(),
            health: "/health".to_owned(),
            models: "/v1/models".to_owned(),
            metrics: "/metrics".to_owned(),
            ends_with_done: true,
            ready_timeout_s: 60.0,
            dtype: String::new(),
            install: String::new(),
        }
    }
}
