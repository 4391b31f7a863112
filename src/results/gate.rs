//! The contract of `inference-benchmark/v1`, judged on the text itself: every fault of
//! a file in one pass, each with pointer, place, value and remedy. Pure: bytes in,
//! marks out.

mod checks;
mod fields;
mod kind;
mod read;

pub(crate) use checks::{is_placeholder, visible};
pub use kind::{Form, failure_reason, foreign, form, group_name, quoted, tool_title};
pub use read::{Text, decode, mark_of};

use super::json::{Document, Node};
use crate::model::{Finding, Localized, Location, RepoPath, Severity};
use crate::rules::Rule;
use std::ops::Range;

/// One fault before it has a file and a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// The rule.
    pub rule: &'static Rule,
    /// Usually the rule's own.
    pub severity: Severity,
    /// Byte span in the text; `None`: nowhere in particular.
    pub span: Option<Range<usize>>,
    /// JSON pointer of what is wrong.
    pub pointer: String,
    /// What fills the templates.
    pub args: Vec<(&'static str, Localized)>,
    /// A help made for this place.
    pub help: Option<Localized>,
}

impl Mark {
    /// A mark with the rule's own severity.
    pub fn new(rule: &'static Rule, span: Range<usize>, pointer: impl Into<String>) -> Self {
        Mark { rule, severity: rule.severity, span: Some(span), pointer: pointer.into(), args: Vec::new(), help: None }
    }

    /// Fills one placeholder.
    #[must_use]
    pub fn arg(mut self, name: &'static str, value: impl Into<Localized>) -> Self {
        self.args.push((name, value.into()));
        self
    }

    /// Another severity.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// A help made for this place.
    #[must_use]
    pub fn help(mut self, help: impl Into<Localized>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// What the gate says about one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Faults in document order.
    pub marks: Vec<Mark>,
    /// What kind of document it is; `None` when it could not be read.
    pub form: Option<Form>,
}

impl Judgement {
    /// Whether nothing here is an error.
    pub fn is_ok(&self) -> bool {
        self.marks.iter().all(|mark| mark.severity != Severity::Error)
    }
}

/// Judges the text of one file. `path` is how commands in the advice name it.
pub fn judge(document: &Document<'_>, path: &str) -> Judgement {
    let mut marks: Vec<Mark> = document.faults.iter().map(|fault| mark_of(fault, document.text)).collect();
    let form = document.root.as_ref().map(|root| {
        let form = form(root);
        judge_root(&mut marks, document.text, root, &form, path);
        form
    });
    marks.sort_by_key(|mark| mark.span.as_ref().map_or(0, |span| span.start));
    Judgement { marks, form }
}

fn judge_root(marks: &mut Vec<Mark>, text: &str, root: &Node<'_>, form: &Form, path: &str) {
    const POINTER: &str = "/normalized_result";
    match form {
        Form::Enveloped => {
            if let Some(normalized) = root.get("normalized_result") {
                checks::Checker::new(text, marks).normalized(normalized, POINTER);
            }
        }
        other => marks.push(kind::mark(other, root, text, path)),
    }
    if let Form::Manifest { .. } = form {
        let groups = root.get("groups").map(Node::entries).unwrap_or_default();
        for (index, group) in groups.iter().enumerate() {
            if let Some(normalized) = group.get("normalized_result") {
                checks::Checker::new(text, marks).normalized(normalized, &format!("/groups/{index}/normalized_result"));
            }
        }
    }
}

/// Gives marks their file, line and column.
pub fn findings(path: &RepoPath, text: &str, marks: Vec<Mark>) -> Vec<Finding> {
    let mut positions = super::json::Positions::new(text);
    let place = |mark: &Mark| {
        let at = Location::file(path.clone()).target(mark.pointer.clone());
        let Some(span) = &mark.span else { return at };
        let (line, column) = positions.of(span.start);
        // A caret under a whole object would cover the file; one line of it is enough.
        let shown = text.get(span.clone()).and_then(|text| text.lines().next()).map_or(1, |line| line.chars().count());
        at.line(line).column(column).length(u32::try_from(shown.clamp(1, 80)).unwrap_or(1))
    };
    let places: Vec<Location> = marks.iter().map(place).collect();
    marks.into_iter().zip(places).map(|(mark, at)| finding(mark, at)).collect()
}

fn finding(mark: Mark, at: Location) -> Finding {
    let mut finding = Finding::new(mark.rule, at).severity(mark.severity);
    for (name, value) in mark.args {
        finding = finding.arg(name, value);
    }
    match mark.help {
        Some(help) => finding.help(help),
        None => finding,
    }
}

/// The text of a value, short enough for a message.
pub fn shown(text: &str, span: &Range<usize>) -> String {
    const MOST: usize = 40;
    let value = text.get(span.clone()).unwrap_or_default();
    let line: String = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = if value.starts_with('"') { value.to_owned() } else { line };
    if line.chars().count() <= MOST { line } else { line.chars().take(MOST - 1).chain(['…']).collect() }
}
