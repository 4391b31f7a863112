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
    /// Write the suggestions that leave no choice, then check again
    #[arg(long)]
    pub fix: bool,
    /// With --fix: show the changes on standard error and write nothing
    #[arg(long, requires = "fix")]
    pub dry_run: bool,
    /// Accept the findings listed in FILE and fail on new ones; written when it does not exist
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Accept the findings of today: write the baseline anew
    #[arg(long, requires = "baseline")]
    pub update_baseline: bool,
    /// Run the command `links.convert` of verify.toml first
    #[arg(long)]
    pub convert: bool,
    /// Check that each chapter page has its page in the docs tree, and compare their links
    #[arg(long)]
    pub mirror: bool,
    /// Run the command `links.build` of verify.toml first
    #[arg(long)]
    pub build: bool,
    /// Also ask the servers of http(s) links (off by default; needs the network)
    #[arg(long)]
    pub external: bool,
    /// Run again after every change, until Ctrl-C
    #[arg(long, conflicts_with = "update_baseline")]
    pub watch: bool,
    /// Do not convert, whatever else was asked for (option of the former script)
    #[arg(long, help_heading = "Former options")]
    pub skip_convert: bool,
    /// Do not compare chapters and docs tree (option of the former script)
    #[arg(long, help_heading = "Former options")]
    pub skip_mirror_check: bool,
    /// Do not build the site (option of the former script)
    #[arg(long, help_heading = "Former options")]
    pub skip_build: bool,
    /// Do not check links (option of the former script)
    #[arg(long, help_heading = "Former options")]
    pub skip_scan: bool,
}
