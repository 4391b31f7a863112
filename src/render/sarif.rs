//! SARIF 2.1.0, for the code scanning of GitHub and for viewers.
//!
//! A run holds at most 25,000 results (GitHub refuses more): the worst are kept and the
//! rest counted in a notification. Columns count Unicode code points.

use super::fingerprint::fingerprints;
use super::place::{self, Place, places};
use super::{cell_of, fault_text, json_text, worst_first};
use crate::error::RunError;
use crate::model::{Finding, Lang, RunReport, Severity};
use crate::rules::{Rule, readable};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Results of one run that GitHub takes.
const MAX_RESULTS: usize = 25_000;

/// What stands unescaped in the path of a URI reference.
const PATH: AsciiSet = NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The report, ending with a newline.
pub(super) fn render(report: &RunReport, root: &Path) -> String {
    let all = worst_first(report);
    // Twins are counted over everything, so that a limit does not rename what is kept.
    let prints = fingerprints(&all);
    let kept = &all[..all.len().min(MAX_RESULTS)];
    let mut rules: Vec<&Rule> = kept.iter().map(|finding| finding.rule).collect();
    rules.sort_by_key(|rule| rule.id);
    rules.dedup_by_key(|rule| rule.id);
    let prefix = place::prefix(root);
    let places = places(root, kept);
    let results = Results(|| {
        let placed = kept.iter().zip(&places).zip(&prints);
        placed.map(|((finding, place), print)| result(finding, *place, print, &rules, &prefix))
    });
    let mut notes = Vec::new();
    if all.len() > kept.len() {
        let text = format!("{} more findings are left out: a run holds {MAX_RESULTS} results", all.len() - kept.len());
        notes.push(notification("warning", &text));
    }
    if report.interrupted.is_some() {
        notes.push(notification("error", "interrupted: what follows was not checked"));
    }
    let described = rules.iter().copied().map(rule).collect();
    log(described, &results, notes, report.exit_code(), report.interrupted.is_none())
}

/// The report of a run that checked nothing.
pub(super) fn render_error(error: &RunError) -> String {
    log(Vec::new(), &[(); 0], vec![notification("error", &fault_text(error))], 2, false)
}

/// Results, each made when it is written: 25,000 trees of JSON take a lot of memory.
struct Results<F>(F);

impl<F: Fn() -> I, I: Iterator<Item = Value>> Serialize for Results<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

#[derive(Serialize)]
struct Log<'a, R> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [SarifRun<'a, R>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRun<'a, R> {
    tool: Value,
    automation_details: Value,
    column_kind: &'static str,
    invocations: Value,
    results: &'a R,
}

fn log<R: Serialize>(rules: Vec<Value>, results: &R, notes: Vec<Value>, exit_code: i32, successful: bool) -> String {
    let run = SarifRun {
        tool: json!({"driver": {
            "name": "verify",
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "rules": rules,
        }}),
        automation_details: json!({"id": "verify/"}),
        column_kind: "unicodeCodePoints",
        invocations: json!([{
            "executionSuccessful": successful,
            "exitCode": exit_code,
            "toolExecutionNotifications": notes,
        }]),
        results,
    };
    json_text(&Log {
        schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        version: "2.1.0",
        runs: [run],
    })
}

fn notification(level: &str, text: &str) -> Value {
    json!({"level": level, "message": {"text": text}})
}

fn rule(rule: &Rule) -> Value {
    let (group, _) = rule.id.split_once('/').unwrap_or((rule.id, ""));
    let why = readable(rule.why.get(Lang::En));
    let told = |text: &'static str| Some(readable(text)).filter(|text| !text.is_empty() && !is_placeholder(text));
    let message = told(rule.message.get(Lang::En)).unwrap_or_else(|| why.clone());
    let help = told(rule.help.get(Lang::En)).map(|help| format!("\n\nWhat to do: {help}")).unwrap_or_default();
    json!({
        "id": rule.id,
        "shortDescription": {"text": message},
        "fullDescription": {"text": why},
        "help": {"text": format!("{why}{help}")},
        "defaultConfiguration": {"level": level(rule.severity)},
        "properties": {"tags": [group]},
    })
}

/// A template that says something only where it is filled.
fn is_placeholder(text: &str) -> bool {
    text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).is_some_and(|name| !name.contains(['<', ' ']))
}

fn result(finding: &Finding, place: Place, print: &str, rules: &[&Rule], prefix: &str) -> Value {
    let mut text = format!("{}{}", cell_of(finding), finding.message(Lang::En));
    if let Some(help) = finding.help_text(Lang::En) {
        text.push_str("\n\n");
        text.push_str(&help);
    }
    let index = rules.binary_search_by_key(&finding.rule.id, |rule| rule.id).ok();
    json!({
        "ruleId": finding.rule.id,
        "ruleIndex": index,
        "level": level(finding.severity),
        "message": {"text": text},
        "locations": [location(finding, place, prefix)],
        "partialFingerprints": {"primaryLocationLineHash": format!("{print}:1"), "verifyFinding/v1": print},
    })
}

fn location(finding: &Finding, place: Place, prefix: &str) -> Value {
    let mut region = Map::new();
    region.insert("startLine".to_owned(), place.line.into());
    if let Some(span) = place.columns {
        region.insert("startColumn".to_owned(), span.start.into());
        if let Some(end) = span.end {
            region.insert("endColumn".to_owned(), end.into());
        }
    }
    let uri = uri(&format!("{prefix}{}", finding.at.path));
    let mut location = json!({"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}});
    if let Some(cell) = finding.at.cell {
        let name = format!("cell {cell}");
        let full = format!("{}:{name}", finding.at.path);
        location["logicalLocations"] = json!([{"name": name, "fullyQualifiedName": full, "kind": "member"}]);
    }
    location
}

/// A path as a URI reference.
fn uri(path: &str) -> String {
    utf8_percent_encode(path, &PATH).to_string()
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}
