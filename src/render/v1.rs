//! Wire types of `verify-report/v1`: frozen, apart from the model.

use crate::bench::calibrate::ClientError;
use crate::bench::report::BenchReport;
use crate::model::{
    Finding, Item, ItemStatus, Lang, Outcome, Partition, RunReport, Severity, StageId, StageRun, Status,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The version that stands in every report.
pub const SCHEMA_VERSION: &str = "verify-report/v1";

/// The report of one run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "verify-report/v1")]
pub struct Report<'a> {
    /// Always `verify-report/v1`.
    #[schemars(extend("const" = SCHEMA_VERSION))]
    pub schema_version: &'static str,
    /// The program that wrote it.
    pub tool: Tool,
    /// Computed from the stages.
    pub status: Status,
    /// Exit status of the process.
    pub exit_code: i32,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
    /// Which part of a course was seen, when `--partition` chose one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<Partition>,
    /// A usage or configuration fault: nothing was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// The stages that were asked for, in the order of the chain.
    pub stages: Vec<Stage<'a>>,
    /// What `verify bench` measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bench: Option<BenchReport>,
    /// This client's own error at each concurrency, from `verify calibrate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Vec<ClientError>>,
}

/// The program.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Tool {
    /// Always `verify`.
    #[schemars(extend("const" = "verify"))]
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// A usage or configuration fault.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Fault {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// One stage.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Stage<'a> {
    /// Its name.
    pub stage: StageId,
    /// Verdict.
    pub status: Status,
    /// The stage that failed, when this one is blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<StageId>,
    /// Why it did not run, when it is skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
    /// Counts.
    pub summary: BTreeMap<String, u64>,
    /// One entry per thing judged.
    pub items: Vec<ReportItem>,
    /// Sorted by path, cell, line, column, rule.
    pub findings: ReportFindings<'a>,
}

/// The findings of a stage, each made when it is written: a report of a million does not
/// stand in memory twice.
#[derive(Debug, Clone, Copy)]
pub struct ReportFindings<'a>(&'a [Finding]);

impl Serialize for ReportFindings<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(finding))
    }
}

impl JsonSchema for ReportFindings<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        <Vec<ReportFinding>>::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        <Vec<ReportFinding>>::json_schema(generator)
    }
}

/// One thing judged.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReportItem {
    /// The file.
    pub path: String,
    /// Verdict.
    pub status: ItemStatus,
    /// `answer` or `question`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<&'static str>,
    /// Section of the course.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<u32>,
    /// Wall time in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The decision a result file claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed: Option<String>,
    /// The highest decision its evidence allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_decision: Option<String>,
    /// One line of detail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The cheapest steps that would raise the verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next_steps: Vec<String>,
    /// The limits by which it was judged, where they can be set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub thresholds: BTreeMap<&'static str, f64>,
}

/// One finding.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReportFinding {
    /// Stable rule id.
    pub rule: &'static str,
    /// What it does to the stage.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// The file, relative to the root.
    pub path: String,
    /// 1-based position among all cells of a notebook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<u32>,
    /// 1-based; inside the cell in a notebook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// 1-based, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The link as written, the JSON pointer, the test's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl<'a> Report<'a> {
    /// The wire form of a report.
    pub fn of(report: &'a RunReport) -> Self {
        Report {
            status: report.status(),
            exit_code: report.exit_code(),
            duration_ms: millis(report.duration),
            partition: report.partition,
            stages: report.stages.iter().map(stage).collect(),
            ..Report::empty()
        }
    }

    /// The wire form of a run that checked nothing.
    pub fn of_fault(message: String, help: String) -> Self {
        Report { status: Status::Fail, exit_code: 2, error: Some(Fault { message, help }), ..Report::empty() }
    }

    /// The wire form of a command that runs no stage.
    pub(super) fn of_command(status: Status, exit_code: i32, duration: Duration) -> Self {
        Report { status, exit_code, duration_ms: millis(duration), ..Report::empty() }
    }

    fn empty() -> Self {
        Report {
            schema_version: SCHEMA_VERSION,
            tool: Tool { name: "verify", version: env!("CARGO_PKG_VERSION") },
            status: Status::Skipped,
            exit_code: 0,
            duration_ms: 0,
            partition: None,
            error: None,
            stages: Vec::new(),
            bench: None,
            calibration: None,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn stage(run: &StageRun) -> Stage<'_> {
    let blocked_by = match &run.outcome {
        Outcome::Blocked { by } => Some(*by),
        _ => None,
    };
    let reason = run.outcome.skip_reason().map(|reason| reason.get(Lang::En).to_owned());
    let summary = match &run.outcome {
        Outcome::Ran { summary, .. } => summary.iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        _ => BTreeMap::new(),
    };
    Stage {
        stage: run.stage,
        status: run.outcome.status(),
        blocked_by,
        reason,
        duration_ms: millis(run.duration),
        summary,
        items: run.outcome.items().iter().map(item).collect(),
        findings: ReportFindings(run.outcome.findings()),
    }
}

fn item(item: &Item) -> ReportItem {
    ReportItem {
        path: item.path.as_str().to_owned(),
        status: item.status,
        mode: item.mode,
        project: item.project,
        duration_ms: item.duration.map(millis),
        claimed: item.claimed.clone(),
        max_decision: item.max_decision.clone(),
        detail: item.detail.as_ref().map(|detail| detail.get(Lang::En).to_owned()),
        next_steps: item.next_steps.iter().map(|step| step.get(Lang::En).to_owned()).collect(),
        thresholds: item.thresholds.iter().copied().collect(),
    }
}

fn finding(finding: &Finding) -> ReportFinding {
    ReportFinding {
        rule: finding.rule.id,
        severity: finding.severity,
        message: finding.message(Lang::En),
        path: finding.at.path.as_str().to_owned(),
        cell: finding.at.cell,
        line: finding.at.line,
        column: finding.at.column,
        target: finding.at.target.clone(),
        help: finding.help_text(Lang::En),
    }
}
