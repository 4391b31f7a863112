//! The code quality report of GitLab: a list of issues with a fingerprint each.

use super::fingerprint::fingerprints;
use super::place::{self, places};
use super::{fault_text, full_text, json_text, worst_first};
use crate::error::RunError;
use crate::model::{RunReport, Severity};
use crate::{config, fsx};
use serde_json::{Value, json};
use std::path::Path;

/// The report, ending with a newline.
pub(super) fn render(report: &RunReport, root: &Path) -> String {
    let findings = worst_first(report);
    let prefix = place::prefix(root);
    let issues: Vec<Value> = findings
        .iter()
        .zip(places(root, &findings))
        .zip(fingerprints(&findings))
        .map(|((finding, place), fingerprint)| {
            let path = format!("{prefix}{}", finding.at.path);
            issue(finding.rule.id, finding.severity, &full_text(finding), &fingerprint, &path, place.line)
        })
        .collect();
    json_text(&Value::Array(issues))
}

/// The report of a run that checked nothing.
pub(super) fn render_error(error: &RunError) -> String {
    let text = fault_text(error);
    let fingerprint = &fsx::sha256(text.as_bytes())[..32];
    let file = config::FILE_NAME;
    json_text(&json!([issue("verify/usage", Severity::Error, &text, fingerprint, file, 1)]))
}

fn issue(rule: &str, severity: Severity, text: &str, fingerprint: &str, path: &str, line: u32) -> Value {
    json!({
        "description": text,
        "check_name": rule,
        "fingerprint": fingerprint,
        "severity": match severity {
            Severity::Error => "major",
            Severity::Warning => "minor",
            Severity::Note => "info",
        },
        "location": {"path": path, "lines": {"begin": line}},
    })
}
