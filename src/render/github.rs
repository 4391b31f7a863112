//! Workflow commands of GitHub Actions. A step shows ten annotations of a kind and drops
//! the rest without a word, so the worst ten of each kind are commands and everything is
//! in the log.

use super::place::{self, Place, places};
use super::{count, fault_text, full_text, worst_first};
use crate::error::RunError;
use crate::model::{Finding, RunReport, Severity};
use crate::term::{neutralize, one_line};
use std::fmt::Write;
use std::path::Path;

/// Annotations of one kind that a step shows.
const SHOWN: usize = 10;

/// Characters of a message; GitHub cuts annotations at 64 KiB.
const MAX_MESSAGE: usize = 4_000;

/// Commands for the worst findings, a line for every other one, and the verdict.
pub(super) fn render(report: &RunReport, root: &Path) -> String {
    let all = worst_first(report);
    let prefix = place::prefix(root);
    let mut out = String::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Note] {
        let of_kind: Vec<&Finding> = all.iter().copied().filter(|finding| finding.severity == severity).collect();
        let (shown, rest) = of_kind.split_at(of_kind.len().min(SHOWN));
        for (finding, place) in shown.iter().zip(places(root, shown)) {
            write_command(&mut out, finding, place, &prefix);
        }
        if !rest.is_empty() {
            let (kind, more) = (kind(severity), rest.len());
            let _ = writeln!(out, "::group::{more} more at level {kind}, which GitHub would not show as annotations");
            rest.iter().for_each(|finding| write_line(&mut out, finding));
            out.push_str("::endgroup::\n");
        }
    }
    write_verdict(&mut out, report, &all);
    out
}

/// The annotation of a run that checked nothing.
pub(super) fn render_error(error: &RunError) -> String {
    format!("::error title=verify::{}\n", data(&fault_text(error)))
}

/// One line per stage and one for the whole.
fn write_verdict(out: &mut String, report: &RunReport, all: &[&Finding]) {
    for run in &report.stages {
        let _ = writeln!(out, "verify {}: {}", run.stage, run.outcome.status().name());
    }
    let of = |severity| count(all, severity);
    let (errors, warnings, notes) = (of(Severity::Error), of(Severity::Warning), of(Severity::Note));
    let status = report.status().name();
    let _ = writeln!(out, "verify: {status}, findings: {errors} error, {warnings} warning, {notes} note");
}

fn kind(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    }
}

fn write_command(out: &mut String, finding: &Finding, place: Place, prefix: &str) {
    let file = property(&format!("{prefix}{}", finding.at.path));
    let _ = write!(out, "::{} file={file}", kind(finding.severity));
    if finding.at.line.is_some() || finding.at.cell.is_some() {
        let _ = write!(out, ",line={0},endLine={0}", place.line);
    }
    if let Some(span) = place.columns {
        let _ = write!(out, ",col={}", span.start);
        // The last column is inside what is marked.
        if let Some(end) = span.end {
            let _ = write!(out, ",endColumn={}", end.saturating_sub(1).max(span.start));
        }
    }
    let text: String = full_text(finding).chars().take(MAX_MESSAGE).collect();
    let _ = writeln!(out, ",title={}::{}", property(finding.rule.id), data(&text));
}

/// A finding in the log. It begins with its level, so that nothing in it is a command.
fn write_line(out: &mut String, finding: &Finding) {
    let at = &finding.at;
    let number = |number: Option<u32>| number.map(|number| format!(":{number}")).unwrap_or_default();
    let cell = at.cell.map(|cell| format!(":cell {cell}")).unwrap_or_default();
    let place = format!("{}{cell}{}{}", one_line(at.path.as_str()), number(at.line), number(at.line.and(at.column)));
    let text = full_text(finding).replace('\n', " ");
    let line = format!("{} {place} [{}] {}", kind(finding.severity), finding.rule.id, one_line(&text));
    let _ = writeln!(out, "{}", without_old_commands(&line));
}

/// The text of a command. Only `%` and line ends have a meaning in it.
fn data(text: &str) -> String {
    without_old_commands(&neutralize(text)).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, which also ends at `:` and `,`.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// The runner still obeys commands of the form `##[name]` anywhere in a line.
fn without_old_commands(text: &str) -> String {
    text.replace("##[", "# #[")
}

/// Text for people on the log of a workflow: what a notebook or a server printed must not
/// become a command of the runner.
pub fn defuse(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let rest = line.trim_start();
        if rest.starts_with("::") {
            out.push_str(&line[..line.len() - rest.len()]);
            out.push('\u{200b}');
            out.push_str(&without_old_commands(rest));
        } else {
            out.push_str(&without_old_commands(line));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_escaped_where_they_have_a_meaning() {
        assert_eq!(data("100%\r\n::error::x"), "100%25␍%0A::error::x");
        assert_eq!(property("a,b:c%\n"), "a%2Cb%3Ac%25%0A");
    }

    #[test]
    fn what_others_wrote_is_no_command() {
        assert_eq!(defuse("a\n  ::set-env name=x::y\n"), "a\n  \u{200b}::set-env name=x::y\n");
        assert_eq!(defuse("x ##[add-mask]y"), "x # #[add-mask]y");
        assert_eq!(defuse("a::b\n"), "a::b\n");
    }
}
