//! `verify links`.

use crate::config::Slug;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `verify links`.
#[derive(Debug, Clone, Default, Args)]
pub struct LinksArgs {
    /// Report only links in these files and folders; targets are known everywhere
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Root of the documentation site
    #[arg(long, value_name = "DIR")]
    pub docs: Option<PathBuf>,
    /// Which rule makes heading ids
    #[arg(long, value_enum)]
    pub slug: Option<Slug>,
    /// Check files only, not what stands behind `#`
    #[arg(long)]
    pub no_anchors: bool,
}
