//! The command line: clap types only, one Args struct per command.

mod answers;
mod backend;
mod bench;
mod chain;
mod chinese;
mod links;
mod report;
mod results;
mod smoke;
mod static_checks;

pub use answers::{AnswerMode, AnswersArgs, ConfineArgs, Partition};
pub use backend::{BackendArgs, BackendCommand};
pub use bench::{
    Arrival, BenchArgs, BenchLoad, BenchServer, BenchTogether, BenchVerdict, BenchWorkload, CalibrateArgs,
    ExperimentArgs, QualityProbe, Ramp,
};
pub use chain::AllArgs;
pub use links::LinksArgs;
pub use report::ReportArgs;
pub use results::{CompareArgs, ConcludeArgs, NormalizeArgs, SchemaArgs, SourceFormat, Stated};
pub use smoke::{BackendChoice, SmokeArgs};
pub use static_checks::StaticArgs;

use crate::model::Lang;
use crate::render::{Format, OutputTarget};
use crate::term::ColorChoice;
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// The gate between an inference result and its readers.
///
/// `verify all` runs the documented chain: static → answers → links → smoke → schema →
/// conclude. A stage that fails blocks the later ones; a skip is never a pass.
#[derive(Debug, Parser)]
#[command(name = "verify", version, propagate_version = true, max_term_width = 100, disable_help_subcommand = true)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// The command line as people type it, for completions and man pages: clap hides
    /// internal commands from its help alone.
    pub fn public() -> clap::Command {
        let whole = Cli::command();
        let root = clap::Command::new("verify").version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
        // The options bring the words of their own struct, which those of the program replace.
        let mut root = GlobalArgs::augment_args(root);
        if let Some(about) = whole.get_about() {
            root = root.about(about.clone());
        }
        if let Some(about) = whole.get_long_about() {
            root = root.long_about(about.clone());
        }
        let visible = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
        root.subcommand_required(true).subcommands(visible)
    }
}

/// Reads the command line, with help and refusals in `lang`.
///
/// # Errors
/// Help or version was asked for, or the command line cannot be understood.
pub(crate) fn parse(args: &[OsString], lang: Lang) -> Result<Cli, clap::Error> {
    let mut command = chinese::speaking(Cli::command(), lang);
    let mut matches = command.try_get_matches_from_mut(args).map_err(without_internal_commands)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// clap names every command where one is missing or misspelt, the hidden ones too.
fn without_internal_commands(mut error: clap::Error) -> clap::Error {
    for kind in [ContextKind::ValidSubcommand, ContextKind::SuggestedSubcommand] {
        if let Some(ContextValue::Strings(names)) = error.remove(kind) {
            let names: Vec<String> = names.into_iter().filter(|name| !name.starts_with("__")).collect();
            if !names.is_empty() {
                error.insert(kind, ContextValue::Strings(names));
            }
        }
    }
    error
}

/// What clap has to say, where it is not in clap's own words.
pub(crate) fn in_words(error: &clap::Error, lang: Lang, coloured: bool) -> Option<String> {
    (lang == Lang::Zh).then(|| chinese::said(error, coloured, width()))
}

/// Columns of the terminal, 100 at most.
fn width() -> usize {
    let stated = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let seen = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    stated.or_else(seen).unwrap_or(MAX_WIDTH).clamp(40, MAX_WIDTH)
}

/// Columns that help takes at most.
const MAX_WIDTH: usize = 100;

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Root of the course [default: the nearest ancestor with verify.toml, else with .git, else here]
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Settings file to read instead of verify.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// Format of standard output, or of the file given with --output
    #[arg(long, global = true, value_enum, env = "VERIFY_FORMAT", hide_env = true)]
    pub format: Option<Format>,
    /// Write the report to FILE while the console keeps the human text; FORMAT=FILE may be given several times
    #[arg(short, long = "output", global = true, value_name = "[FORMAT=]FILE")]
    pub outputs: Vec<OutputTarget>,
    /// Report warnings as errors
    #[arg(long, global = true)]
    pub strict: bool,
    /// Print failures and the last line only
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: ColorChoice,
    /// Show no progress
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// Language of human text [default: from the locale]
    #[arg(long, global = true, value_enum, env = "VERIFY_LANG", hide_env = true)]
    pub lang: Option<Lang>,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the chain: static → answers → links → smoke → schema → conclude
    All(AllArgs),
    /// Check that Python files and notebook cells compile and notebooks are well-formed
    Static(StaticArgs),
    /// Run the reference answers of notebooks against their tests
    Answers(AnswersArgs),
    /// Check links and anchors in Markdown and notebook cells, offline
    Links(LinksArgs),
    /// Start a real backend, prove the path with a small workload, stop it
    Smoke(SmokeArgs),
    /// Gate result files against inference-benchmark/v1
    Schema(SchemaArgs),
    /// Judge which decision the evidence in result files can carry
    Conclude(ConcludeArgs),
    /// Put a baseline and its candidates side by side
    Compare(CompareArgs),
    /// Show experiments and results: table, distributions, timelines, memory, differences
    Report(ReportArgs),
    /// Migrate historical results to inference-benchmark/v1; the original is never touched
    Normalize(NormalizeArgs),
    /// Put a load on a running server and measure it, or run an experiment
    Bench(Box<BenchArgs>),
    /// Measure this client's own error on this machine
    Calibrate(CalibrateArgs),
    /// List, install or examine backends
    Backend(BackendArgs),
    /// Join the reports of a run, or the parts of a load, that was split with --partition
    Merge(MergeArgs),
    /// Print the resolved settings and where each value comes from
    Settings,
    /// Write a commented verify.toml
    Init(InitArgs),
    /// Explain a rule: what is wrong, why it matters, what to do, a bad and a good example
    Explain(ExplainArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print a man page, or write all of them into a folder
    Man(ManArgs),
    /// Own a server for the process that started this one (internal)
    #[command(name = "__guard", hide = true)]
    Guard,
    /// End what a killed run left behind (internal)
    #[command(name = "__sweep", hide = true)]
    Sweep,
    /// Build walls and become the interpreter of a notebook (internal)
    #[command(name = "__confine", hide = true)]
    Confine(ConfineArgs),
}

/// `verify merge`.
#[derive(Debug, Clone, Args)]
pub struct MergeArgs {
    /// Reports in the format verify-report/v1, or what `verify bench --partition` saved
    #[arg(value_name = "REPORT", required = true)]
    pub reports: Vec<PathBuf>,
    /// Parts of a load: how far the wall clocks of their machines can differ, where they did not meet
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub clock_error: Option<f64>,
}

/// `verify init`.
#[derive(Debug, Clone, Args)]
pub struct InitArgs {
    /// Print the file instead of writing it
    #[arg(long)]
    pub print: bool,
    /// Replace an existing verify.toml
    #[arg(long)]
    pub force: bool,
}

/// `verify explain`.
#[derive(Debug, Clone, Args)]
pub struct ExplainArgs {
    /// Rule id, such as links/missing-file, or a group, such as links; none: list every rule
    pub rule: Option<String>,
}

/// `verify completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `verify man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// Command whose page is wanted; none: the page of verify
    pub command: Option<String>,
    /// Write every page into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub out_dir: Option<PathBuf>,
}

fn milliseconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "a number of ms is needed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
