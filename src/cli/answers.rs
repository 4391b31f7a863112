//! `verify answers`.

pub use crate::model::Partition;
use crate::stages::answers::Sandbox;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

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
    /// Every code cell in order, for self-contained notebooks.
    Inline,
}

impl FromStr for Partition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Partition { part, of }),
            _ => Err("give K/N with K from 1 to N, such as 2/4".to_owned()),
        }
    }
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
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Notebooks at a time [default: cores]
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Python interpreter
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// Give every notebook an interpreter of its own instead of importing shared modules once
    #[arg(long)]
    pub no_preload: bool,
    /// Walls around notebooks: no network, no writing outside a scratch folder [default: auto]
    #[arg(long, value_enum, value_name = "WHEN")]
    pub sandbox: Option<Sandbox>,
    /// Memory of one notebook in MiB
    #[arg(long, value_name = "MIB")]
    pub memory: Option<u64>,
    /// Change each answer function on purpose and list those that no test notices
    #[arg(long)]
    pub prove: bool,
    /// Count a skipped test as failed, for machines that have the hardware
    #[arg(long)]
    pub fail_on_skip: bool,
    /// Test the Kth of N parts of the course; `verify merge` joins the reports
    #[arg(long, value_name = "K/N")]
    pub partition: Option<Partition>,
    /// Run again after every change, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 86_400.0 => Ok(value),
        _ => Err("give seconds above 0 and at most 86400".to_owned()),
    }
}

/// Arguments of the hidden command that becomes a notebook's interpreter.
#[derive(Debug, Clone, Args)]
pub struct ConfineArgs {
    /// The walls, as JSON.
    pub walls: String,
    /// Program and arguments; none: only try the walls.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_one_of_its_parts() {
        assert_eq!("2/4".parse(), Ok(Partition { part: 2, of: 4 }));
        for wrong in ["0/4", "5/4", "1/0", "2", "a/b", "1/2/3"] {
            assert!(wrong.parse::<Partition>().is_err(), "{wrong}");
        }
    }
}
