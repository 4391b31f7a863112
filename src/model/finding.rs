//! One occurrence of a rule at a place.

use super::{Args, Lang, Localized, Severity};
use crate::rules::Rule;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::path::Path;

/// A path relative to the root, with `/`, as it stands in every report.
/// Bytes that are not UTF-8 are shown as U+FFFD: it names a file, it does not open one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct RepoPath(String);

impl RepoPath {
    /// Takes a text that already has the form `a/b.md`.
    pub fn new(text: impl Into<String>) -> Self {
        RepoPath(text.into())
    }

    /// `path` relative to `root`; a path outside the root stays as it is.
    pub fn relative(root: &Path, path: &Path) -> Self {
        let inside = path.strip_prefix(root).unwrap_or(path);
        let text = inside.to_string_lossy();
        RepoPath(if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() })
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for RepoPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// 1-based position of a cell among all cells of its notebook.
pub type CellNo = u32;

/// Where a finding is: file, cell, line, column, and what it is about besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub path: RepoPath,
    /// 1-based cell among all cells, in a notebook.
    pub cell: Option<CellNo>,
    /// 1-based line; inside the cell in a notebook.
    pub line: Option<u32>,
    /// 1-based column in characters.
    pub column: Option<u32>,
    /// Characters to underline in human output; not part of the report.
    pub length: Option<u32>,
    /// The link as written, the JSON pointer, the test's name.
    pub target: Option<String>,
}

impl Location {
    /// A whole file.
    pub fn file(path: RepoPath) -> Self {
        Location { path, cell: None, line: None, column: None, length: None, target: None }
    }

    /// Sets the cell.
    #[must_use]
    pub fn cell(mut self, cell: impl Into<Option<CellNo>>) -> Self {
        self.cell = cell.into();
        self
    }

    /// Sets the line.
    #[must_use]
    pub fn line(mut self, line: impl Into<Option<u32>>) -> Self {
        self.line = line.into();
        self
    }

    /// Sets the column.
    #[must_use]
    pub fn column(mut self, column: impl Into<Option<u32>>) -> Self {
        self.column = column.into();
        self
    }

    /// Sets how many characters to underline.
    #[must_use]
    pub fn length(mut self, length: impl Into<Option<u32>>) -> Self {
        self.length = length.into();
        self
    }

    /// Sets what the finding is about besides its place.
    #[must_use]
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    fn key(&self) -> (&str, u32, u32, u32) {
        (self.path.as_str(), self.cell.unwrap_or(0), self.line.unwrap_or(0), self.column.unwrap_or(0))
    }
}

/// One occurrence of a rule. Message and help come from the rule's row, filled with
/// `args`; a help made for this one place replaces the row's.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// Usually the rule's own.
    pub severity: Severity,
    /// Where.
    pub at: Location,
    /// What fills the templates.
    pub args: Args,
    message: Option<Localized>,
    help: Option<Localized>,
}

impl Finding {
    /// A finding of `rule` at a place, with the rule's own severity.
    pub fn new(rule: &'static Rule, at: Location) -> Self {
        let mut args = Args::default();
        args.set("path", Localized::from(&at.path));
        if let Some(target) = &at.target {
            args.set("target", Localized::from(target));
        }
        Finding { rule, severity: rule.severity, at, args, message: None, help: None }
    }

    /// Fills one placeholder of the rule's texts. `path` and `target` are filled already.
    #[must_use]
    pub fn arg(mut self, name: &'static str, value: impl Into<Localized>) -> Self {
        self.args.set(name, value.into());
        self
    }

    /// The message as another run said it, instead of the rule's filled template.
    #[must_use]
    pub fn said(mut self, message: impl Into<Localized>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// A help made for this place.
    #[must_use]
    pub fn help(mut self, help: impl Into<Localized>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Another severity than the rule's own.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The message in `lang`.
    pub fn message(&self, lang: Lang) -> String {
        match &self.message {
            Some(message) => message.get(lang).to_owned(),
            None => self.args.fill(self.rule.message.get(lang), lang),
        }
    }

    /// What to do next, in `lang`; `None` where the rule has nothing to add.
    pub fn help_text(&self, lang: Lang) -> Option<String> {
        let text = match &self.help {
            Some(help) => help.get(lang).to_owned(),
            None => self.args.fill(self.rule.help.get(lang), lang),
        };
        (!text.is_empty()).then_some(text)
    }

    /// Order of a report: path, cell, line, column, rule, then target and message.
    pub fn order(&self, other: &Finding) -> Ordering {
        (self.at.key(), self.rule.id, &self.at.target)
            .cmp(&(other.at.key(), other.rule.id, &other.at.target))
            .then_with(|| self.message(Lang::En).cmp(&other.message(Lang::En)))
    }
}
