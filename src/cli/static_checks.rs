//! `verify static`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `verify static`.
#[derive(Debug, Clone, Default, Args)]
pub struct StaticArgs {
    /// Files and folders [default: the root]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Python version to judge for, such as 3.10
    #[arg(long, value_name = "VERSION")]
    pub target_version: Option<String>,
    /// Interpreter that is asked about every file and cell too; where it disagrees, a note says so
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// Run again after every change, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
}
