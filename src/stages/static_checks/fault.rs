//! One fault in a text, before it has a file, a cell and a line.

use crate::model::{Finding, Localized, Location, Severity};
use crate::python::Lines;
use crate::rules::Rule;
use ruff_text_size::TextRange;
use std::ops::Range;

/// A fault at a byte range of a unit.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    /// Its rule.
    pub(super) rule: &'static Rule,
    /// Bytes of the unit's text.
    pub(super) range: Range<usize>,
    /// Fills `{message}` of the rule.
    pub(super) message: Localized,
    /// A help made for the place.
    pub(super) help: Option<Localized>,
    /// Another severity than the rule's.
    pub(super) severity: Option<Severity>,
    /// Of two faults on one line the one with the smaller rank is shown.
    pub(super) rank: u8,
}

/// Rank of a fault that names its cause exactly.
pub(super) const EXACT: u8 = 0;
/// Rank of what the parser says.
pub(super) const PARSER: u8 = 1;
/// Rank of what only the compiler finds.
pub(super) const COMPILER: u8 = 2;

impl Fault {
    /// A fault with the rule's own severity and help.
    pub(super) fn new(rule: &'static Rule, range: impl Into<Span>, message: impl Into<Localized>) -> Self {
        let Span(range) = range.into();
        Fault { rule, range, message: message.into(), help: None, severity: None, rank: COMPILER }
    }

    /// Sets the help.
    pub(super) fn help(mut self, help: impl Into<Localized>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the rank.
    pub(super) fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }

    /// Sets the severity.
    pub(super) fn severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }

    /// The finding of this fault in a file or cell. `removed` tells how many characters
    /// stood in front of a 1-based line and are not in the text.
    pub(super) fn finding(&self, at: Location, lines: &Lines<'_>, removed: impl Fn(u32) -> u32) -> Finding {
        let (line, column) = lines.place(self.range.start);
        let length = lines.width(self.range.start, self.range.end);
        let at = at.line(line).column(column + removed(line)).length(length);
        let mut finding = Finding::new(self.rule, at).arg("message", self.message.clone());
        if let Some(help) = &self.help {
            finding = finding.help(help.clone());
        }
        match self.severity {
            Some(severity) => finding.severity(severity),
            None => finding,
        }
    }
}

/// A byte range, from whatever has one.
#[derive(Debug)]
pub(super) struct Span(Range<usize>);

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Span(range)
    }
}

impl From<TextRange> for Span {
    fn from(range: TextRange) -> Self {
        Span(range.start().to_usize()..range.end().to_usize())
    }
}

/// Sorts faults by place and keeps one a line: the one with the smallest rank, then the
/// first. The same place on several lines of one statement counts as it is.
pub(super) fn one_a_line(mut faults: Vec<Fault>, lines: &Lines<'_>) -> Vec<Fault> {
    faults.sort_by_key(|fault| (lines.index(fault.range.start), fault.rank, fault.range.start));
    faults.dedup_by_key(|fault| lines.index(fault.range.start));
    faults
}
