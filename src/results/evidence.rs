//! Which decision the evidence of a result can carry. Every rule that fires puts a
//! ceiling; the lowest one is what is allowed; a claim above it is an error. Pure.

mod claims;
mod comparison;
mod facts;
mod project;
mod run;

pub use comparison::{Difference, differences, phase, same_environment, same_workload};
pub use facts::{Facts, plain};

use super::v1::Verdict;
use crate::config::ConcludeSettings;
use crate::model::{Localized, Severity};
use crate::rules::Rule;

/// What is judged: a result, what it is compared with, and the limits that hold.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The result.
    pub candidate: Facts<'a>,
    /// What it is compared with.
    pub baseline: Option<Facts<'a>>,
    /// Thresholds.
    pub limits: &'a ConcludeSettings,
    /// What the profile asks of the project beside the public metrics; empty for the
    /// projects that have rules of their own.
    pub strategy_metrics: &'a [String],
}

/// One rule that fired.
#[derive(Debug, Clone)]
pub struct Reason {
    /// The rule.
    pub rule: &'static Rule,
    /// The highest decision it leaves; `None`: advice only.
    pub ceiling: Option<Verdict>,
    /// The claim itself is the fault, whatever the decision.
    pub wrong_claim: bool,
    /// What it is about, as a path below the result.
    pub path: Vec<String>,
    /// What fills the templates.
    pub args: Vec<(&'static str, Localized)>,
    /// What would lift it.
    pub step: Option<Step>,
}

/// What would lift a ceiling, and how dear it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Cheapest first.
    pub effort: Effort,
    /// What to do, as a fragment.
    pub text: Localized,
}

/// How dear a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Something is written down.
    Write,
    /// The same run again, longer.
    Longer,
    /// Something more is measured.
    Measure,
    /// Another experiment.
    Experiment,
    /// Work on the strategy itself.
    Work,
}

impl Reason {
    fn new(rule: &'static Rule, ceiling: Verdict, path: &[&str]) -> Self {
        Reason {
            rule,
            ceiling: Some(ceiling),
            wrong_claim: false,
            path: path.iter().map(|step| (*step).to_owned()).collect(),
            args: Vec::new(),
            step: None,
        }
    }

    fn tune(rule: &'static Rule, path: &[&str]) -> Self {
        Reason::new(rule, Verdict::Tune, path)
    }

    fn advice(rule: &'static Rule, path: &[&str]) -> Self {
        Reason { ceiling: None, ..Reason::new(rule, Verdict::Tune, path) }
    }

    fn arg(mut self, name: &'static str, value: impl Into<Localized>) -> Self {
        self.args.push((name, value.into()));
        self
    }

    fn step(mut self, effort: Effort, en: impl Into<String>, zh: impl Into<String>) -> Self {
        self.step = Some(Step { effort, text: Localized::both(en, zh) });
        self
    }

    /// What it does to a claim. A ceiling of `not_evaluated` under the claim `tune` is
    /// a warning: the checklist calls thin evidence tune, notebook 69 calls it
    /// not_evaluated, and both are respected.
    pub fn severity(&self, claimed: Verdict) -> Severity {
        match self.ceiling {
            _ if self.wrong_claim => Severity::Error,
            None => self.rule.severity,
            Some(ceiling) if claimed <= ceiling => Severity::Note,
            Some(Verdict::NotEvaluated) if claimed == Verdict::Tune => Severity::Warning,
            Some(_) => Severity::Error,
        }
    }
}

/// What the evidence allows.
#[derive(Debug, Clone)]
pub struct Conclusion {
    /// The decision the file claims; `None` when it has no known word.
    pub claimed: Option<Verdict>,
    /// The highest decision that is allowed.
    pub allowed: Verdict,
    /// Reasons by weight: lowest ceiling first.
    pub reasons: Vec<Reason>,
}

impl Conclusion {
    /// The claim that ceilings are held against: no known word claims nothing.
    pub fn claim(&self) -> Verdict {
        self.claimed.unwrap_or_default()
    }

    /// What would raise the ceiling, cheapest first; `None` under `accept`.
    pub fn next_step(&self) -> Option<Localized> {
        let mut binding: Vec<&Step> = self
            .reasons
            .iter()
            .filter(|reason| reason.ceiling == Some(self.allowed) && self.allowed < Verdict::Accept)
            .filter_map(|reason| reason.step.as_ref())
            .collect();
        binding.sort_by_key(|step| step.effort);
        let mut texts: Vec<&Localized> = Vec::new();
        for step in binding {
            if !texts.contains(&&step.text) {
                texts.push(&step.text);
            }
        }
        let above = self.reasons.iter().filter_map(|reason| reason.ceiling).filter(|ceiling| *ceiling > self.allowed);
        let goal = above.min().unwrap_or(Verdict::Accept);
        let join = |lang, separator: &str| texts.iter().map(|text| text.get(lang)).collect::<Vec<_>>().join(separator);
        (!texts.is_empty()).then(|| {
            Localized::both(
                format!("for {goal}: {}", join(crate::model::Lang::En, "; ")),
                format!("要达到 {goal}：{}", join(crate::model::Lang::Zh, "；")),
            )
        })
    }
}

/// Judges one result.
pub fn conclude(case: &Case<'_>) -> Conclusion {
    let mut reasons = Vec::new();
    run::judge(case, &mut reasons);
    claims::judge(case, &mut reasons);
    comparison::judge(case, &mut reasons);
    project::judge(case, &mut reasons);
    let claimed = case.candidate.text(&["decision", "decision"]).and_then(Verdict::of);
    claims::judge_reject(case, claimed, &mut reasons);
    let allowed = reasons.iter().filter_map(|reason| reason.ceiling).min().unwrap_or(Verdict::Accept);
    // Stable: within one ceiling the order of the policy stays.
    reasons.sort_by_key(|reason| reason.ceiling.unwrap_or(Verdict::Accept));
    Conclusion { claimed, allowed, reasons }
}
