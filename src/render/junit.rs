//! JUnit XML as GitLab, Jenkins and the test reporters of GitHub read it. A stage is a
//! suite, a thing judged is a case; what a stage found outside its items is a case each.
//!
//! GitLab takes class and name of a case for its key and drops the second of the same
//! key, and shows the body of a failure rather than its attribute; Jenkins keeps one
//! failure of a case. Hence one joined failure, its text in the body too.

use super::{fault_text, place};
use crate::error::RunError;
use crate::model::{Finding, Item, ItemStatus, Lang, Outcome, RunReport, Severity, StageRun, Status};
use crate::term::neutralize;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// Cases of a suite; GitLab gives up on a file above 250,000 XML objects.
const MAX_CASES: usize = 20_000;

/// What a case says.
enum Verdict {
    Pass,
    Failure(String),
    Error(String),
    Skipped(String),
}

/// One `testcase`.
struct Case {
    class: &'static str,
    name: String,
    file: Option<String>,
    time: Option<Duration>,
    verdict: Verdict,
    /// Warnings and notes, which fail nothing.
    out: String,
}

/// The report, ending with a newline.
pub(super) fn render(report: &RunReport, root: &Path) -> String {
    let prefix = place::prefix(root);
    let suites: Vec<Suite> = report.stages.iter().map(|run| Suite::of(run, &prefix)).collect();
    document(&suites, report.duration)
}

/// The report of a run that checked nothing.
pub(super) fn render_error(error: &RunError) -> String {
    let case = Case {
        class: "verify",
        name: "usage".to_owned(),
        file: None,
        time: None,
        verdict: Verdict::Error(fault_text(error)),
        out: String::new(),
    };
    document(&[Suite { name: "verify", time: Duration::ZERO, cases: vec![case] }], Duration::ZERO)
}

/// One `testsuite`.
struct Suite {
    name: &'static str,
    time: Duration,
    cases: Vec<Case>,
}

impl Suite {
    fn of(run: &StageRun, prefix: &str) -> Self {
        let mut cases = item_cases(run, prefix);
        cases.extend(finding_cases(run, prefix));
        let dropped = cases.len().saturating_sub(MAX_CASES);
        cases.truncate(MAX_CASES);
        if dropped > 0 {
            let text = format!("{dropped} more cases are not listed here; see the log or the JSON report");
            cases.push(stage_case(run, format!("{dropped} more"), Verdict::Failure(text)));
        }
        if cases.is_empty() {
            cases.push(stage_case(run, run.stage.name().to_owned(), whole(run)));
        }
        make_unique(&mut cases);
        Suite { name: run.stage.name(), time: run.duration, cases }
    }
}

/// A case for the stage as a whole.
fn stage_case(run: &StageRun, name: String, verdict: Verdict) -> Case {
    let loose = run.outcome.findings().iter().filter(|finding| finding.severity != Severity::Error);
    Case { class: run.stage.name(), name, file: None, time: Some(run.duration), verdict, out: lines(loose) }
}

/// What became of a stage that has nothing else to show.
fn whole(run: &StageRun) -> Verdict {
    match &run.outcome {
        Outcome::Blocked { by } => Verdict::Skipped(format!("blocked by {by}")),
        outcome => match (outcome.status(), outcome.skip_reason()) {
            (Status::Fail, _) => Verdict::Failure("failed".to_owned()),
            (_, Some(reason)) => Verdict::Skipped(reason.get(Lang::En).to_owned()),
            _ => Verdict::Pass,
        },
    }
}

/// The items, each with the findings about its file.
fn item_cases(run: &StageRun, prefix: &str) -> Vec<Case> {
    let mut by_path: HashMap<&str, Vec<&Finding>> = HashMap::new();
    for finding in run.outcome.findings() {
        by_path.entry(finding.at.path.as_str()).or_default().push(finding);
    }
    run.outcome
        .items()
        .iter()
        .map(|item| {
            let findings = by_path.get(item.path.as_str()).map(Vec::as_slice).unwrap_or_default();
            let (errors, rest): (Vec<&Finding>, Vec<&Finding>) =
                findings.iter().copied().partition(|finding| finding.severity == Severity::Error);
            Case {
                class: run.stage.name(),
                name: item_name(item),
                file: Some(format!("{prefix}{}", item.path)),
                time: item.duration,
                verdict: item_verdict(item, &lines(errors)),
                out: lines(rest),
            }
        })
        .collect()
}

fn item_name(item: &Item) -> String {
    let mode = item.mode.map(|mode| format!(" [{mode}]")).unwrap_or_default();
    let project = item.project.map(|project| format!(" (project {project})")).unwrap_or_default();
    format!("{}{mode}{project}", item.path)
}

fn item_verdict(item: &Item, errors: &str) -> Verdict {
    let detail = item.detail.as_ref().map(|detail| detail.get(Lang::En)).filter(|detail| !detail.trim().is_empty());
    let detail = detail.unwrap_or(item.status.name());
    let text = if errors.is_empty() { detail } else { errors }.to_owned();
    match item.status {
        ItemStatus::Pass | ItemStatus::Ok | ItemStatus::ExpectedFail => Verdict::Pass,
        ItemStatus::Skip | ItemStatus::Skipped => Verdict::Skipped(detail.to_owned()),
        ItemStatus::Fail | ItemStatus::Failed => Verdict::Failure(text),
        ItemStatus::Timeout | ItemStatus::Error => Verdict::Error(text),
    }
}

/// Errors that no failed item shows, one case each.
fn finding_cases<'a>(run: &'a StageRun, prefix: &'a str) -> impl Iterator<Item = Case> + 'a {
    let shown: Vec<&str> =
        run.outcome.items().iter().filter(|item| item.status.is_failure()).map(|item| item.path.as_str()).collect();
    let errors = run.outcome.findings().iter().filter(|finding| finding.severity == Severity::Error);
    errors.filter(move |finding| !shown.contains(&finding.at.path.as_str())).map(move |finding| Case {
        class: run.stage.name(),
        name: format!("{} {}", where_of(finding), finding.rule.id),
        file: Some(format!("{prefix}{}", finding.at.path)),
        time: None,
        verdict: Verdict::Failure(line(finding)),
        out: String::new(),
    })
}

/// The second of two equal names would be dropped by its reader.
fn make_unique(cases: &mut [Case]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases {
        let count = seen.entry(case.name.clone()).and_modify(|count| *count += 1).or_insert(1);
        if *count > 1 {
            let _ = write!(case.name, " #{count}");
        }
    }
}

fn where_of(finding: &Finding) -> String {
    let cell = finding.at.cell.map(|cell| format!(":cell {cell}")).unwrap_or_default();
    let line = finding.at.line.map(|line| format!(":{line}")).unwrap_or_default();
    let column = finding.at.line.and(finding.at.column).map(|column| format!(":{column}")).unwrap_or_default();
    format!("{}{cell}{line}{column}", finding.at.path)
}

fn line(finding: &Finding) -> String {
    let help = finding.help_text(Lang::En).map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    let (place, severity, message) = (where_of(finding), finding.severity.name(), finding.message(Lang::En));
    format!("{place}: {severity}[{}]: {message}{help}\n", finding.rule.id)
}

fn lines<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> String {
    findings.into_iter().map(line).collect()
}

fn document(suites: &[Suite], time: Duration) -> String {
    let all = || suites.iter().flat_map(|suite| &suite.cases);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites name=\"verify\" {} time=\"{}\">", counts(all(), false), seconds(time));
    for suite in suites {
        let (name, time) = (suite.name, seconds(suite.time));
        let _ = writeln!(out, "  <testsuite name=\"{name}\" {} time=\"{time}\">", counts(suite.cases.iter(), true));
        suite.cases.iter().for_each(|case| write_case(&mut out, case));
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn counts<'a>(cases: impl Iterator<Item = &'a Case> + Clone, skipped: bool) -> String {
    let of = |wanted: fn(&Verdict) -> bool| cases.clone().filter(|case| wanted(&case.verdict)).count();
    let failures = of(|verdict| matches!(verdict, Verdict::Failure(_)));
    let errors = of(|verdict| matches!(verdict, Verdict::Error(_)));
    let mut text = format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", cases.clone().count());
    if skipped {
        let _ = write!(text, " skipped=\"{}\"", of(|verdict| matches!(verdict, Verdict::Skipped(_))));
    }
    text
}

fn write_case(out: &mut String, case: &Case) {
    let _ = write!(out, "    <testcase classname=\"{}\" name=\"{}\"", case.class, attribute(&case.name));
    if let Some(file) = &case.file {
        let _ = write!(out, " file=\"{}\"", attribute(file));
    }
    if let Some(time) = case.time {
        let _ = write!(out, " time=\"{}\"", seconds(time));
    }
    let body = verdict_element(&case.verdict);
    if body.is_empty() && case.out.is_empty() {
        out.push_str("/>\n");
        return;
    }
    out.push_str(">\n");
    out.push_str(&body);
    if !case.out.is_empty() {
        let _ = writeln!(out, "      <system-out>{}</system-out>", content(case.out.trim_end()));
    }
    out.push_str("    </testcase>\n");
}

fn verdict_element(verdict: &Verdict) -> String {
    let (name, text) = match verdict {
        Verdict::Pass => return String::new(),
        Verdict::Skipped(reason) => return format!("      <skipped message=\"{}\"/>\n", attribute(reason)),
        Verdict::Failure(text) => ("failure", text),
        Verdict::Error(text) => ("error", text),
    };
    let text = text.trim_end();
    let first = text.lines().next().unwrap_or_default();
    format!("      <{name} message=\"{}\">{}</{name}>\n", attribute(first), content(text))
}

fn seconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}

/// Characters that XML 1.0 knows: control characters become visible, as on a terminal.
fn allowed(text: &str) -> String {
    neutralize(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

fn content(text: &str) -> String {
    allowed(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn attribute(text: &str) -> String {
    // A plain line break in an attribute reads as a space.
    content(text).replace('"', "&quot;").replace('\n', "&#10;").replace('\t', "&#9;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_forbids_is_made_visible() {
        assert_eq!(attribute("a\u{1b}[31m<&\">\n\u{ffff}\u{0}"), "a␛[31m&lt;&amp;&quot;&gt;&#10;\u{fffd}␀");
        assert_eq!(content("a\tb\r\n"), "a\tb␍\n");
    }
}
