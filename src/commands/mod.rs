//! Commands that are not stages, one file each.

mod backend;
mod compare;
mod explain;
mod init;
mod normalize;
mod merge;
mod settings;

use crate::Screen;
use crate::cli::{Cli, Command};
use crate::error::RunError;
use crate::model::Localized;
use crate::results::v1;
use clap::CommandFactory;

/// Runs a command that is not a stage.
///
/// # Errors
/// A fault of usage.
pub fn run(command: &Command, cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    match command {
        Command::Init(args) => init::run(args, cli, screen),
        Command::Explain(args) => explain::run(args, screen),
        Command::Backend(args) => backend::run(&args.command, cli, screen),
        Command::Confine(args) => crate::stages::answers::confine(args),
        Command::Merge(args) => merge::run(args, screen),
        Command::Settings => settings::run(cli, screen),
        Command::Compare(args) => compare::run(args, cli, screen),
        Command::Normalize(args) => normalize::run(args, cli, screen),
        Command::Schema(_) => {
            screen.print(&v1::to_text(&v1::json_schema().to_value()));
            Ok(0)
        }
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "verify", &mut script);
            screen.print(&String::from_utf8_lossy(&script));
            Ok(0)
        }
        _ => Err(RunError::usage(Localized::both("not built yet", "尚未实现"), "")),
    }
}
