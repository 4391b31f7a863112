//! Diagnostics for reviewdog. Its columns count bytes of UTF-8, so they are left out where
//! the file could not be read.

use super::place::{self, Place, places};
use super::{fault_text, full_text, json_text, worst_first};
use crate::error::RunError;
use crate::model::{Finding, RunReport, Severity};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The report, ending with a newline.
pub(super) fn render(report: &RunReport, root: &Path) -> String {
    let findings = worst_first(report);
    let prefix = place::prefix(root);
    let diagnostics: Vec<Value> = findings
        .iter()
        .zip(places(root, &findings))
        .map(|(finding, place)| diagnostic(finding, place, &prefix))
        .collect();
    result(&diagnostics)
}

/// The report of a run that checked nothing.
pub(super) fn render_error(error: &RunError) -> String {
    result(&[json!({
        "message": fault_text(error),
        "severity": "ERROR",
        "code": {"value": "verify/usage"},
    })])
}

fn result(diagnostics: &[Value]) -> String {
    json_text(&json!({"source": {"name": "verify"}, "diagnostics": diagnostics}))
}

fn diagnostic(finding: &Finding, place: Place, prefix: &str) -> Value {
    let mut location = json!({"path": format!("{prefix}{}", finding.at.path)});
    if finding.at.line.is_some() || finding.at.cell.is_some() {
        location["range"] = range(place);
    }
    json!({
        "message": full_text(finding),
        "location": location,
        "severity": match finding.severity {
            Severity::Error => "ERROR",
            Severity::Warning => "WARNING",
            Severity::Note => "INFO",
        },
        "code": {"value": finding.rule.id},
    })
}

fn range(place: Place) -> Value {
    let position = |column: Option<u32>| {
        let mut position = Map::new();
        position.insert("line".to_owned(), place.line.into());
        if let Some(column) = column {
            position.insert("column".to_owned(), column.into());
        }
        Value::Object(position)
    };
    let mut range = json!({"start": position(place.bytes.map(|span| span.start))});
    if let Some(end) = place.bytes.and_then(|span| span.end) {
        range["end"] = position(Some(end));
    }
    range
}
