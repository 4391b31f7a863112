//! `verify answers`.

use clap::Args;
use std::path::PathBuf;

/// What of a notebook runs against its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum AnswerMode {
    /// The reference answer.
    #[default]
    Answer,
    /// The question area, which should still raise NotImplementedError.
    Question,
    /// Both.
    Both,
}

/// Arguments of `verify answers`.
#[derive(Debug, Clone, Default, Args)]
pub struct AnswersArgs {
    /// Notebooks and folders [default: the notebook folders of the settings]
    #[arg(value_name = "NOTEBOOK")]
    pub paths: Vec<PathBuf>,
    /// Folder of notebooks
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// What runs against the tests
    #[arg(long, value_enum, default_value_t)]
    pub mode: AnswerMode,
    /// Seconds for one notebook [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<f64>,
    /// Notebooks at a time [default: cores]
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Python interpreter
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
}
