//! `verify report`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `verify report`.
#[derive(Debug, Clone, Default, Args)]
pub struct ReportArgs {
    /// Records of experiments, their folders, and result files; the baseline first
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Write the page with tables and figures, one file that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
