//! Items, outcomes, the report of a run. A status is computed, never set.

use super::{Finding, Localized, RepoPath, Severity, StageId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Verdict over one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// Did what it has to do.
    Pass,
    /// A test failed.
    Fail,
    /// Said itself that it was not run.
    Skip,
    /// A question still raises `NotImplementedError`, as it should.
    ExpectedFail,
    /// Ran out of time.
    Timeout,
    /// Could not be judged.
    Error,
    /// A result file that satisfies the contract.
    Ok,
    /// A result file that does not, or is absent.
    Failed,
    /// A file of another contract, found by folder.
    Skipped,
}

impl ItemStatus {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            ItemStatus::Pass => "pass",
            ItemStatus::Fail => "fail",
            ItemStatus::Skip => "skip",
            ItemStatus::ExpectedFail => "expected_fail",
            ItemStatus::Timeout => "timeout",
            ItemStatus::Error => "error",
            ItemStatus::Ok => "ok",
            ItemStatus::Failed => "failed",
            ItemStatus::Skipped => "skipped",
        }
    }

    /// Whether this verdict fails its stage.
    pub fn is_failure(self) -> bool {
        matches!(self, ItemStatus::Fail | ItemStatus::Timeout | ItemStatus::Error | ItemStatus::Failed)
    }

    /// Whether this verdict says that nothing was judged.
    pub fn is_skip(self) -> bool {
        matches!(self, ItemStatus::Skip | ItemStatus::Skipped)
    }

    /// The failing verdict of the same vocabulary.
    fn failed(self) -> Self {
        match self {
            ItemStatus::Ok => ItemStatus::Failed,
            ItemStatus::Pass | ItemStatus::ExpectedFail => ItemStatus::Fail,
            other => other,
        }
    }
}

/// One thing judged: a notebook and mode, a result file, a project.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The file.
    pub path: RepoPath,
    /// Verdict.
    pub status: ItemStatus,
    /// `answer` or `question`, for notebooks.
    pub mode: Option<&'static str>,
    /// Course project, where the item belongs to one.
    pub project: Option<u32>,
    /// How long it took, where that was measured.
    pub duration: Option<Duration>,
    /// The decision a result file claims.
    pub claimed: Option<String>,
    /// The highest decision its evidence allows.
    pub max_decision: Option<String>,
    /// One line a person wants to see beside the verdict (figures, a reason).
    pub detail: Option<Localized>,
    /// The cheapest steps that would raise the verdict.
    pub next_steps: Vec<Localized>,
    /// The limits by which it was judged, where they can be set.
    pub thresholds: Vec<(&'static str, f64)>,
}

impl Item {
    /// An item with a path and a verdict.
    pub fn new(path: RepoPath, status: ItemStatus) -> Self {
        Item {
            path,
            status,
            mode: None,
            project: None,
            duration: None,
            claimed: None,
            max_decision: None,
            detail: None,
            next_steps: Vec::new(),
            thresholds: Vec::new(),
        }
    }
}

/// Counts of a stage, in the order in which they are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary(Vec<(&'static str, u64)>);

impl Summary {
    /// An empty summary.
    pub fn new() -> Self {
        Summary::default()
    }

    /// Sets one count.
    #[must_use]
    pub fn with(mut self, name: &'static str, count: impl TryInto<u64>) -> Self {
        self.set(name, count);
        self
    }

    /// Sets one count.
    pub fn set(&mut self, name: &'static str, count: impl TryInto<u64>) {
        let count = count.try_into().unwrap_or(u64::MAX);
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, slot)) => *slot = count,
            None => self.0.push((name, count)),
        }
    }

    /// Counts the verdicts of `items`, one entry a verdict that occurs.
    pub fn of_items(items: &[Item]) -> Self {
        let mut summary = Summary::new();
        for item in items {
            let name = item.status.name();
            let count = summary.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| count);
            summary.set(name, count + 1);
        }
        summary
    }

    /// Name and count, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// Why a stage did not run although nothing blocked it. Printed and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkipReason(pub Localized);

/// What became of a stage.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It ran. Made by [`Outcome::ran`].
    Ran {
        /// How many things were judged, where there are no items. None is a skip,
        /// whatever notes there are.
        judged: usize,
        /// Counts.
        summary: Summary,
        /// One entry per thing judged.
        items: Vec<Item>,
        /// Sorted findings.
        findings: Vec<Finding>,
    },
    /// It had nothing to do, or nobody asked for it.
    Skipped {
        /// Why.
        reason: SkipReason,
    },
    /// An earlier stage failed. Only the pipeline makes this.
    Blocked {
        /// The stage that failed.
        by: StageId,
    },
}

/// Verdict over a stage or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Everything judged is in order.
    Pass,
    /// Something is not.
    Fail,
    /// Not run, with a reason. Never a pass.
    Skipped,
    /// Not reached.
    Blocked,
}

impl Status {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Status::Pass => "pass",
            Status::Fail => "fail",
            Status::Skipped => "skipped",
            Status::Blocked => "blocked",
        }
    }
}

impl Outcome {
    /// The outcome of a stage that judged `judged` things. Nothing judged and nothing
    /// found is a skip: an empty set proves nothing.
    pub fn ran(judged: usize, summary: Summary, items: Vec<Item>, mut findings: Vec<Finding>) -> Self {
        if judged == 0 && findings.is_empty() && items.is_empty() {
            return Outcome::skipped(Localized::both("nothing to check", "没有可检查的内容"));
        }
        findings.sort_by(Finding::order);
        Outcome::Ran { judged, summary, items, findings }
    }

    /// A skip with its reason.
    pub fn skipped(reason: impl Into<Localized>) -> Self {
        Outcome::Skipped { reason: SkipReason(reason.into()) }
    }

    /// Computed from findings and items.
    pub fn status(&self) -> Status {
        match self {
            Outcome::Skipped { .. } => Status::Skipped,
            Outcome::Blocked { .. } => Status::Blocked,
            Outcome::Ran { judged, items, findings, .. } => {
                let failed = findings.iter().any(|finding| finding.severity == Severity::Error)
                    || items.iter().any(|item| item.status.is_failure());
                let judged =
                    if items.is_empty() { *judged > 0 } else { items.iter().any(|item| !item.status.is_skip()) };
                match (failed, judged) {
                    (true, _) => Status::Fail,
                    (false, false) => Status::Skipped,
                    (false, true) => Status::Pass,
                }
            }
        }
    }

    /// Why nothing was judged, when nothing was.
    pub fn skip_reason(&self) -> Option<Localized> {
        match self {
            Outcome::Skipped { reason } => Some(reason.0.clone()),
            Outcome::Ran { items, findings, .. } if self.status() == Status::Skipped => Some(if !items.is_empty() {
                Localized::both("everything was skipped", "所有检查项都被跳过")
            } else if findings.iter().all(|finding| finding.rule == &crate::rules::run::EXCLUDED) {
                Localized::both(
                    "nothing to check: what was named is excluded",
                    "没有可检查的内容：指定的路径都被排除了",
                )
            } else {
                Localized::both("nothing could be checked; the findings say why", "没有内容可以检查，原因见各条提示")
            }),
            _ => None,
        }
    }

    /// The findings, empty unless the stage ran.
    pub fn findings(&self) -> &[Finding] {
        match self {
            Outcome::Ran { findings, .. } => findings,
            _ => &[],
        }
    }

    /// The items, empty unless the stage ran.
    pub fn items(&self) -> &[Item] {
        match self {
            Outcome::Ran { items, .. } => items,
            _ => &[],
        }
    }

    /// `--strict`: warnings become errors and their items failures. The one place that
    /// changes a severity after the fact.
    pub fn make_strict(&mut self) {
        let Outcome::Ran { items, findings, .. } = self else { return };
        for finding in findings.iter_mut().filter(|finding| finding.severity == Severity::Warning) {
            finding.severity = Severity::Error;
            for item in items.iter_mut().filter(|item| item.path == finding.at.path) {
                item.status = item.status.failed();
            }
        }
    }
}

/// One stage of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct StageRun {
    /// Which.
    pub stage: StageId,
    /// What became of it.
    pub outcome: Outcome,
    /// Wall time.
    pub duration: Duration,
}

/// `--partition K/N`: one of `of` parts of a course.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Partition {
    /// 1-based.
    pub part: usize,
    /// How many there are.
    pub of: usize,
}

/// Everything a run says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunReport {
    /// The stages that were asked for, in order.
    pub stages: Vec<StageRun>,
    /// Wall time of the whole run.
    pub duration: Duration,
    /// Exit code of an interrupt (130 or 143), if one ended the run.
    pub interrupted: Option<i32>,
    /// Which part of the course it saw, when it saw a part.
    pub partition: Option<Partition>,
}

impl RunReport {
    /// `fail` when a stage failed, `skipped` when none ran, else `pass`.
    pub fn status(&self) -> Status {
        let statuses: Vec<Status> = self.stages.iter().map(|run| run.outcome.status()).collect();
        if self.interrupted.is_some() || statuses.contains(&Status::Fail) {
            Status::Fail
        } else if statuses.contains(&Status::Pass) {
            Status::Pass
        } else {
            Status::Skipped
        }
    }

    /// A function of the report alone.
    pub fn exit_code(&self) -> i32 {
        match (self.interrupted, self.status()) {
            (Some(code), _) => code,
            (None, Status::Fail) => 1,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Location;
    use crate::rules::run;

    fn item(status: ItemStatus) -> Item {
        Item::new(RepoPath::new("a"), status)
    }

    #[test]
    fn a_skip_is_never_a_pass() {
        let note = Finding::new(&run::EXCLUDED, Location::file(RepoPath::new("a")));
        assert_eq!(Outcome::ran(0, Summary::new(), Vec::new(), vec![note]).status(), Status::Skipped);
        assert_eq!(Outcome::ran(1, Summary::new(), vec![item(ItemStatus::Skip)], Vec::new()).status(), Status::Skipped);
        let mixed = vec![item(ItemStatus::Skip), item(ItemStatus::Pass)];
        assert_eq!(Outcome::ran(2, Summary::new(), mixed, Vec::new()).status(), Status::Pass);
        assert_eq!(Outcome::ran(1, Summary::new(), vec![item(ItemStatus::Timeout)], Vec::new()).status(), Status::Fail);
    }
}
