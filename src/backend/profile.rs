//! A backend described as data: a new server is a TOML table, not code.

use super::doctor;
use crate::config::check;
use crate::model::Localized;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One OpenAI-compatible server and how to treat it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BackendProfile {
    /// Name on the command line.
    pub name: String,
    /// One line for `verify backend list`.
    pub summary: String,
    /// Engine that serves, as results name it: `llama.cpp`, `vllm`, …; empty: the backend's name.
    pub engine: String,
    /// What `verify` can provision for it: `cpu`, or nothing.
    pub provision: String,
    /// Program, looked up on PATH; `{python}` is the interpreter of a provisioned backend.
    pub program: String,
    /// Arguments. `{model}`, `{served_model}`, `{host}`, `{port}`, `{context}`,
    /// `{parallel}`, `{threads}`, `{dtype}` are filled in.
    pub args: Vec<String>,
    /// Arguments added to `args`: what a machine needs besides, without repeating the rest.
    pub extra_args: Vec<String>,
    /// Arguments that limit the requests served at once, added where a project limits
    /// them; empty: `args` does it already, or the server cannot.
    pub slot_args: Vec<String>,
    /// Further arguments that make it listen on `{host}` and `{port}`.
    pub port_args: Vec<String>,
    /// The same for a Unix socket, `{socket}`; empty: it can listen on a port only.
    pub socket_args: Vec<String>,
    /// Arguments that let it run Python code of a model; empty: it never does.
    pub remote_code_args: Vec<String>,
    /// Names of models are the server's own: one that is not here is left to it.
    pub own_model_names: bool,
    /// Python module that the program, an interpreter, must have; empty: none.
    pub python_module: String,
    /// Names of the Python distribution that serves, tried in order; empty: a native program.
    pub packages: Vec<String>,
    /// Name that requests use, with the same placeholders; empty: the last part of the model's name.
    pub served_model: String,
    /// Arguments that print the version; empty: it is not asked.
    pub version_args: Vec<String>,
    /// Arguments that print every flag; with them flags are compared before a start. Empty: they are not.
    pub help_args: Vec<String>,
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
    /// Counters by meaning (`prompt_tokens`: all, or `computed_tokens`: without those
    /// from the cache; `cached_tokens`, `cache_queries`, `generated_tokens`, `drafts`, `drafted_tokens`, `accepted_tokens`, `accepted_at`, `decode_seconds`,
    /// `completed_requests`, `queue_seconds`, `queued_requests`, `preemptions`; gauges
    /// `running`, `waiting`, `kv_cache_usage`), as the server names them. `name{label=a|b}`
    /// counts only series with such a label, `name{label}` gives one counter per value.
    pub counters: BTreeMap<String, String>,
    /// Series among the counters whose labels state settings; empty: none.
    pub settings_metric: String,
    /// Labels of that series by meaning (`prefix_cache`, `block_size`).
    pub settings_labels: BTreeMap<String, String>,
    /// Seconds until it must have answered a first request.
    #[serde(deserialize_with = "check::seconds")]
    pub ready_timeout_s: f64,
    /// Command that provides it when it is missing.
    pub install: String,
}

impl BackendProfile {
    /// Where the program of this backend is, or why it cannot be used.
    ///
    /// # Errors
    /// The program is not on PATH, or lacks its module.
    pub fn locate(&self, program: &str) -> Result<PathBuf, Localized> {
        let path = doctor::on_path(program).ok_or_else(|| {
            Localized::both(format!("`{program}` is not on PATH"), format!("PATH 中没有 `{program}`"))
        })?;
        if self.python_module.is_empty() || doctor::has_module(&path, &self.python_module) {
            return Ok(path);
        }
        let module = &self.python_module;
        Err(Localized::both(
            format!("{} has no module `{module}`", path.display()),
            format!("{} 没有模块 `{module}`", path.display()),
        ))
    }
}

/// The built-in backends, in the format of `verify.toml`.
pub(crate) const BUILTIN: &str = include_str!("profiles.toml");

impl Default for BackendProfile {
    fn default() -> Self {
        BackendProfile {
            name: String::new(),
            summary: String::new(),
            engine: String::new(),
            provision: String::new(),
            program: String::new(),
            args: Vec::new(),
            extra_args: Vec::new(),
            slot_args: Vec::new(),
            port_args: Vec::new(),
            socket_args: Vec::new(),
            remote_code_args: Vec::new(),
            own_model_names: false,
            python_module: String::new(),
            packages: Vec::new(),
            served_model: String::new(),
            version_args: vec!["--version".to_owned()],
            help_args: Vec::new(),
            features: BTreeMap::new(),
            env: BTreeMap::new(),
            health: "/health".to_owned(),
            models: "/v1/models".to_owned(),
            metrics: "/metrics".to_owned(),
            counters: BTreeMap::new(),
            settings_metric: String::new(),
            settings_labels: BTreeMap::new(),
            ready_timeout_s: 60.0,
            install: String::new(),
        }
    }
}
