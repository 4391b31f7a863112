//! The run specification: one ad-hoc run in a JSON or TOML file (`--config`).

use crate::backend::model::ModelSource;
use crate::client::Endpoint;
use crate::config::check;
use crate::error::RunError;
use crate::model::{self, Lang, Localized};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, Path};

/// One ad-hoc run. Paths are relative to the root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunSpec {
    /// The server.
    pub backend: BackendSpec,
    /// JSONL file of prompts.
    pub workload: String,
    /// Requests; 0: the workload once.
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
    /// Answers are streamed; the only value is true, since TTFT is seen in a stream only.
    pub stream: bool,
    /// Bytes of server log that are kept at most.
    pub log_max_bytes: u64,
    /// What the run says about itself; the server's counters must bear it out.
    pub claims: Claims,
    /// The result file.
    pub result: String,
}

impl Default for RunSpec {
    fn default() -> Self {
        RunSpec {
            backend: BackendSpec::default(),
            workload: String::new(),
            requests: 0,
            concurrency: 1,
            warmup: 1,
            max_tokens: 32,
            stream: true,
            log_max_bytes: DEFAULT_LOG_BYTES,
            claims: Claims::default(),
            result: String::new(),
        }
    }
}

/// Bytes of server log that are kept at most, unless a run says otherwise.
pub(crate) const DEFAULT_LOG_BYTES: u64 = 4 << 20;

/// The server of an ad-hoc run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BackendSpec {
    /// Program and arguments; `{port}`, `{model}`, `{served_model}`, `{host}` are filled in.
    pub command: Vec<String>,
    /// Additional environment of the server.
    pub env: BTreeMap<String, String>,
    /// Server that is running already, instead of a command.
    pub base_url: String,
    /// Name of the environment variable that holds the API key.
    pub api_key_env: String,
    /// The model: a folder, a file, or an id.
    pub model: String,
    /// Where the model comes from.
    pub model_source: ModelSource,
    /// Name that requests use; empty: the only one that the server lists.
    pub served_model: String,
    /// Port; none: a free one.
    pub port: Option<u16>,
    /// Seconds until it must have answered a first request.
    #[serde(deserialize_with = "check::seconds")]
    pub ready_timeout_s: f64,
    /// Seconds for that first request.
    #[serde(deserialize_with = "check::seconds")]
    pub probe_timeout_s: f64,
    /// Seconds between SIGTERM and SIGKILL.
    #[serde(deserialize_with = "check::grace")]
    pub stop_grace_s: f64,
}

impl Default for BackendSpec {
    fn default() -> Self {
        BackendSpec {
            command: Vec::new(),
            env: BTreeMap::new(),
            base_url: String::new(),
            api_key_env: String::new(),
            model: String::new(),
            model_source: ModelSource::Auto,
            served_model: String::new(),
            port: None,
            ready_timeout_s: 60.0,
            probe_timeout_s: 30.0,
            stop_grace_s: 10.0,
        }
    }
}

/// What a run says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Claims {
    /// Speculative decoding is on (`"on"`) or off.
    pub speculation: Option<Switch>,
    /// The prefix cache is on or off.
    pub prefix_cache: Option<Switch>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

impl RunSpec {
    /// Reads a run specification, TOML by its name, else JSON.
    ///
    /// # Errors
    /// The file cannot be read or does not hold a run specification.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let text = std::fs::read_to_string(path).map_err(|error| RunError::file(path, error))?;
        let parsed = if path.extension().is_some_and(|extension| extension == "toml") {
            toml::from_str(&text).map_err(|error| error.to_string())
        } else {
            serde_json::from_str(&text).map_err(|error| error.to_string())
        };
        let spec: RunSpec =
            parsed.map_err(|error| fault(path, Localized::both(error.clone(), model::fault(&error, Lang::Zh))))?;
        let missing = [
            (
                spec.backend.command.is_empty() && spec.backend.base_url.is_empty(),
                "backend.command or backend.base_url",
            ),
            (spec.workload.is_empty(), "workload"),
            (spec.result.is_empty(), "result"),
        ];
        let outside =
            Path::new(&spec.result).components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir));
        if !spec.result.is_empty() && (outside || !spec.result.ends_with(".json")) {
            return Err(fault(
                path,
                Localized::both(
                    "`result` must be a .json file below the root",
                    "`result` 必须是课程根目录下的 .json 文件",
                ),
            ));
        }
        if !spec.backend.base_url.is_empty() {
            Endpoint::new(&spec.backend.base_url, None).map_err(|error| fault(path, error.to_string()))?;
        }
        match missing.iter().find(|(absent, _)| *absent) {
            Some((_, name)) => {
                Err(fault(path, Localized::both(format!("`{name}` is needed"), format!("缺少 `{name}`"))))
            }
            None if !spec.stream => Err(fault(
                path,
                Localized::both(
                    "`stream` must be true: the time to first token is seen in a stream only",
                    "`stream` 必须为 true：只有流式回答才能看到首 token 延迟",
                ),
            )),
            None => Ok(spec),
        }
    }
}

fn fault(path: &Path, what: impl Into<Localized>) -> RunError {
    let (what, shown) = (what.into(), path.display());
    RunError::usage(
        Localized::both(format!("{shown}: {}", what.get(Lang::En)), format!("{shown}：{}", what.get(Lang::Zh))),
        Localized::both(
            "the run specification is described in the README, section `smoke`",
            "运行说明的格式见 README 的 `smoke` 一节",
        ),
    )
}
