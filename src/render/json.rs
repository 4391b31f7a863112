//! `verify-report/v1` as text.

use super::v1::Report;
use crate::error::RunError;
use crate::model::{Lang, RunReport};

/// The report, ending with a newline.
pub fn render(report: &RunReport) -> String {
    text(&Report::of(report))
}

/// The report of a run that checked nothing.
pub fn render_error(error: &RunError) -> String {
    text(&Report::of_fault(error.message(Lang::En), error.hint(Lang::En)))
}

fn text(report: &Report) -> String {
    // Plain structs of strings and numbers: serialization cannot fail.
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}
