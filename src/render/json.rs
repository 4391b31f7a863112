//! `verify-report/v1` as text.

use super::v1::Report;
use crate::bench::calibrate::ClientError;
use crate::bench::report::BenchReport;
use crate::error::RunError;
use crate::model::{Lang, RunReport, Status};
use std::time::Duration;

/// The report, ending with a newline.
pub(super) fn render(report: &RunReport) -> String {
    text(&Report::of(report))
}

/// The report of a run that checked nothing.
pub(super) fn render_error(error: &RunError) -> String {
    text(&Report::of_fault(error.message(Lang::En), error.hint(Lang::En)))
}

/// The report of `verify bench`.
pub fn render_bench(bench: &BenchReport, status: Status, exit_code: i32, duration: Duration) -> String {
    text(&Report { bench: Some(bench.clone()), ..Report::of_command(status, exit_code, duration) })
}

/// The report of `verify calibrate`.
pub fn render_calibration(errors: &[ClientError], status: Status, exit_code: i32, duration: Duration) -> String {
    text(&Report { calibration: Some(errors.to_vec()), ..Report::of_command(status, exit_code, duration) })
}

fn text(report: &Report<'_>) -> String {
    // Plain structs of strings and numbers: serialization cannot fail.
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}
