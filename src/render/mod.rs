//! One report, several readers: text for people, JSON for programs, and the formats that
//! CI systems read. One file per format; machine formats speak English.

pub mod bench;
pub(crate) mod experiment;
mod fingerprint;
mod github;
mod gitlab;
mod human;
mod json;
mod junit;
mod markdown;
mod place;
mod rdjson;
mod sarif;
pub mod source;
pub mod v1;

pub use github::defuse as defuse_workflow_commands;
pub use human::{HumanOptions, render_change, render_error as render_human_error};
pub use json::{render_bench as render_json_bench, render_calibration as render_json_calibration};
pub use markdown::{inline as markdown_text, step_summary};

use crate::error::RunError;
use crate::model::{Finding, Lang, RunReport, Severity};
use clap::ValueEnum;
use std::path::PathBuf;
use std::str::FromStr;

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// `verify-report/v1`.
    Json,
    /// JUnit XML, for GitLab, Jenkins and test reporters.
    Junit,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Workflow commands of GitHub Actions, and the summary of the step.
    Github,
    /// GitLab code quality.
    Gitlab,
    /// Reviewdog diagnostics.
    Rdjson,
    /// Markdown, for comments and summaries.
    Markdown,
}

impl Format {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Human => "human",
            Format::Json => "json",
            Format::Junit => "junit",
            Format::Sarif => "sarif",
            Format::Github => "github",
            Format::Gitlab => "gitlab",
            Format::Rdjson => "rdjson",
            Format::Markdown => "markdown",
        }
    }
}

/// The report in one format, ending with a newline. The language of `options` is that of
/// the formats for people; its root is where files are looked up and paths begin.
pub fn render(format: Format, report: &RunReport, options: HumanOptions<'_>) -> String {
    match format {
        Format::Human => human::render(report, options),
        Format::Json => json::render(report),
        Format::Junit => junit::render(report, options.root),
        Format::Sarif => sarif::render(report, options.root),
        Format::Github => github::render(report, options.root),
        Format::Gitlab => gitlab::render(report, options.root),
        Format::Rdjson => rdjson::render(report, options.root),
        Format::Markdown => markdown::render(report, options.lang),
    }
}

/// A usage or configuration fault in one format: nothing was checked, and a reader of
/// machine formats has to see that too.
pub fn render_error(format: Format, error: &RunError, options: HumanOptions<'_>) -> String {
    match format {
        Format::Human => human::render_error(error, options),
        Format::Json => json::render_error(error),
        Format::Junit => junit::render_error(error),
        Format::Sarif => sarif::render_error(error),
        Format::Github => github::render_error(error),
        Format::Gitlab => gitlab::render_error(error),
        Format::Rdjson => rdjson::render_error(error),
        Format::Markdown => markdown::render_error(error, options.lang),
    }
}

/// The findings of every stage, worst first, else in the order of the report.
fn worst_first(report: &RunReport) -> Vec<&Finding> {
    let mut findings: Vec<&Finding> = report.stages.iter().flat_map(|run| run.outcome.findings()).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// `cell 14, line 7: ` in a notebook, where the line of the file says nothing to a person.
fn cell_of(finding: &Finding) -> String {
    match (finding.at.cell, finding.at.line) {
        (Some(cell), Some(line)) => format!("cell {cell}, line {line}: "),
        (Some(cell), None) => format!("cell {cell}: "),
        (None, _) => String::new(),
    }
}

/// Message and help in English, for formats with one text per finding.
fn full_text(finding: &Finding) -> String {
    let message = format!("{}{}", cell_of(finding), finding.message(Lang::En));
    match finding.help_text(Lang::En) {
        Some(help) => format!("{message}\nhelp: {help}"),
        None => message,
    }
}

/// Message and advice of a fault in English.
fn fault_text(error: &RunError) -> String {
    let (message, hint) = (error.message(Lang::En), error.hint(Lang::En));
    if hint.is_empty() { message } else { format!("{message}\nhelp: {hint}") }
}

/// A value as JSON text with a line end. Values made here always serialize.
fn json_text(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// How many findings of one severity there are.
fn count(findings: &[&Finding], severity: Severity) -> usize {
    findings.iter().filter(|finding| finding.severity == severity).count()
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
                let word = word.unwrap_or_default();
                let known: Vec<&str> = Format::value_variants().iter().map(|format| format.name()).collect();
                let near = crate::config::nearest(word, known.iter().copied());
                let hint = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
                return Err(format!("`{word}` is no format; {hint}formats: {}", known.join(", ")));
            }
            Some((format, path)) => OutputTarget { format: Some(format), path: path.into() },
            None => OutputTarget { format: None, path: text.into() },
        })
    }
}
