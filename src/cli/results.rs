//! Commands on result files: `schema`, `conclude`, `compare`, `normalize`.

use crate::config::SchemaLevel;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `verify schema`.
#[derive(Debug, Clone, Default, Args)]
pub struct SchemaArgs {
    /// Result files and folders [default: the results folder]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How much is demanded
    #[arg(long, value_enum)]
    pub level: Option<SchemaLevel>,
    /// Print the JSON schema of inference-benchmark/v1
    #[arg(long)]
    pub print_schema: bool,
}

/// Arguments of `verify conclude`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConcludeArgs {
    /// Result files [default: those of the projects]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Result file that the others are compared with
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
}

/// Arguments of `verify compare`.
#[derive(Debug, Clone, Default, Args)]
pub struct CompareArgs {
    /// The baseline
    pub baseline: PathBuf,
    /// The candidates
    #[arg(required = true)]
    pub candidates: Vec<PathBuf>,
}

/// Arguments of `verify normalize`.
#[derive(Debug, Clone, Default, Args)]
pub struct NormalizeArgs {
    /// Historical result files
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}
