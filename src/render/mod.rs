//! One report, several readers: text for people, JSON for programs.

pub mod bench;
mod human;
mod json;
pub mod source;
pub mod v1;

pub use human::{HumanOptions, render as render_human, render_change, render_error};
pub use json::{
    render as render_json, render_bench as render_json_bench, render_calibration as render_json_calibration,
    render_error as render_json_error,
};

use clap::ValueEnum;
use std::path::PathBuf;
use std::str::FromStr;

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// `verify-report/v1`.
    Json,
}

/// `--output [FORMAT=]FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputTarget {
    /// The format, when one was given.
    pub format: Option<Format>,
    /// The file.
    pub path: PathBuf,
}

impl FromStr for OutputTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err("a file name is needed".to_owned());
        }
        let named = text.split_once('=').and_then(|(name, path)| {
            <Format as clap::ValueEnum>::from_str(name, false).ok().map(|format| (format, path))
        });
        let word =
            text.split_once('=').map(|(word, _)| word).filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric()));
        Ok(match named {
            Some((_, "")) => return Err("a file name is needed after `=`".to_owned()),
            // A file of that name is still to be had: `./xml=x`.
            None if word.is_some() => {
                let known: Vec<String> = Format::value_variants()
                    .iter()
                    .filter_map(|format| Some(format.to_possible_value()?.get_name().to_owned()))
                    .collect();
                return Err(format!("`{}` is no format; formats: {}", word.unwrap_or_default(), known.join(", ")));
            }
            Some((format, path)) => OutputTarget { format: Some(format), path: path.into() },
            None => OutputTarget { format: None, path: text.into() },
        })
    }
}
