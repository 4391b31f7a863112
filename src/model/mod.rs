//! What a run says: stages, items, findings, the report. Pure data and the few
//! computations on it (status, exit code, order); no I/O, no text on screen.

mod finding;
mod phrases;
mod report;
mod text;

pub use finding::{CellNo, Finding, Location, RepoPath};
pub use phrases::{counted, fault, progress, translate, word};
pub use report::{Item, ItemStatus, Outcome, Partition, RunReport, SkipReason, StageRun, Status, Summary};
pub use text::{Args, Lang, Localized, Text};

use serde::{Deserialize, Serialize};

/// One step of the documented chain.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    clap::ValueEnum,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum StageId {
    /// Python files and notebook cells compile; notebooks are well-formed.
    Static,
    /// The reference answers pass their tests.
    Answers,
    /// Links and anchors resolve.
    Links,
    /// A real backend is started, proven with a small workload, stopped.
    Smoke,
    /// Result files satisfy `inference-benchmark/v1`.
    Schema,
    /// What the evidence in the result files can carry.
    Conclude,
}

impl StageId {
    /// Every stage, in the order in which the chain runs them.
    pub const ALL: [StageId; 6] =
        [StageId::Static, StageId::Answers, StageId::Links, StageId::Smoke, StageId::Schema, StageId::Conclude];

    /// The name on the command line and in the report.
    pub fn name(self) -> &'static str {
        match self {
            StageId::Static => "static",
            StageId::Answers => "answers",
            StageId::Links => "links",
            StageId::Smoke => "smoke",
            StageId::Schema => "schema",
            StageId::Conclude => "conclude",
        }
    }
}

impl std::fmt::Display for StageId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What a finding does to its stage: an error fails it, a warning and a note do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Explains, never fails anything.
    Note,
    /// Does not fail the stage, unless `--strict` turns it into an error.
    Warning,
    /// Fails the stage.
    Error,
}

impl Severity {
    /// The word used in every machine format.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}
