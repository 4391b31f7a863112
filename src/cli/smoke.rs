//! `verify smoke`.

use crate::backend::model::ModelSource;
use clap::Args;
use std::path::PathBuf;

/// Which backend serves.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Backend")]
pub struct BackendChoice {
    /// Backend to start; `verify backend list` shows the names
    #[arg(long, value_name = "NAME", env = "VERIFY_BACKEND", hide_env = true, conflicts_with = "base_url")]
    pub backend: Option<String>,
    /// Server that is running already; it is neither started nor stopped
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Model: a folder, a file, or an id: OWNER/NAME[@REVISION][:FILE.gguf]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Where an id is looked for [default: the caches of both hubs]
    #[arg(long, value_enum, value_name = "SOURCE")]
    pub model_source: Option<ModelSource>,
    /// Fetch a model that is in no cache into the cache of its hub
    #[arg(long, conflicts_with = "offline")]
    pub download: bool,
    /// Precision that the server is asked for [default: auto, the model's own where the device has it]
    #[arg(long, value_name = "DTYPE")]
    pub dtype: Option<String>,
    /// Quantized form of the model, for project 67; the model is then its baseline
    #[arg(long, value_name = "MODEL")]
    pub quantized_model: Option<String>,
    /// Install nothing and download nothing
    #[arg(long)]
    pub offline: bool,
}

/// Arguments of `verify smoke`.
#[derive(Debug, Clone, Default, Args)]
pub struct SmokeArgs {
    /// Section of the course; may be given several times [default: all]
    #[arg(long = "project", value_delimiter = ',', value_name = "N")]
    pub projects: Vec<u32>,
    /// The backend.
    #[command(flatten)]
    pub backend: BackendChoice,
    /// One ad-hoc run: a JSON or TOML run specification
    #[arg(long, value_name = "FILE", conflicts_with_all = ["projects", "backend", "base_url", "model"])]
    pub config: Option<PathBuf>,
}
