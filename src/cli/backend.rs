//! `verify backend`.

use clap::{Args, Subcommand};

/// Arguments of `verify backend`.
#[derive(Debug, Clone, Args)]
pub struct BackendArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: BackendCommand,
}

/// What `verify backend` does.
#[derive(Debug, Clone, Subcommand)]
pub enum BackendCommand {
    /// Show the known backends and whether they are here
    List,
    /// Provision a backend into the cache folder
    Install {
        /// The backend: cpu
        name: String,
        /// Download nothing: only say whether it is complete
        #[arg(long)]
        offline: bool,
    },
    /// Say what this machine has and what is missing, with the command that helps
    Doctor,
}
