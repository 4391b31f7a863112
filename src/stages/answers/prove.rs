//! `--prove`: whether the tests would notice a wrong answer. They are run against the
//! question area and against answers that were changed on purpose.

use super::mutants::{self, Mutant};
use super::plan::{Mode, Plan};
use super::runner::Runner;
use super::verdict::Case;
use super::{Done, Job, on_threads, planned, read};
use crate::course::Context;
use crate::model::{Finding, ItemStatus, Localized, Location};
use crate::rules::answers as table;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A changed answer that is to be tested.
struct Trial<'a> {
    job: &'a Job<'a>,
    cell: u32,
    mutant: Option<Mutant>,
    plan: Plan,
    timeout: f64,
}

/// Numbers of scratch folders: beyond those of the ordinary run.
const FIRST_NUMBER: usize = 1_000_000;

/// Tests every answer that passed. Gives the functions that no test notices, and how
/// many changed answers were tried.
pub(super) fn prove(
    ctx: &Context,
    runner: &Runner<'_>,
    jobs: &[Job<'_>],
    done: &[Option<Done>],
    workers: usize,
) -> (Vec<Finding>, usize) {
    let passed = jobs.iter().zip(done).filter_map(|(job, done)| {
        let done = done.as_ref().filter(|done| done.verdict.status == ItemStatus::Pass)?;
        (job.mode == Mode::Answer).then_some((job, done.duration))
    });
    let trials: Vec<Trial<'_>> = passed.flat_map(|(job, took)| trials(ctx, job, took)).collect();
    let phase = ctx.progress.start("prove", trials.len() as u64);
    let survived: Vec<Mutex<bool>> = trials.iter().map(|_| Mutex::new(false)).collect();
    let next = AtomicUsize::new(0);
    on_threads(workers, &|| {
        while !ctx.cancel.is_set() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(trial) = trials.get(index) else { break };
            let unnoticed = passes(runner, FIRST_NUMBER + index, trial);
            phase.step(trial.job.target.path.as_str());
            *survived[index].lock().unwrap_or_else(PoisonError::into_inner) = unnoticed;
        }
    });
    let unnoticed = trials
        .iter()
        .zip(survived)
        .filter(|(_, survived)| *survived.lock().unwrap_or_else(PoisonError::into_inner))
        .map(|(trial, _)| trial);
    (findings(unnoticed), trials.len())
}

fn trials<'a>(ctx: &Context, job: &'a Job<'a>, took: Duration) -> Vec<Trial<'a>> {
    let Ok(plan) = &job.plan else { return Vec::new() };
    // A change may turn a loop endless; there is no point in waiting the whole limit.
    let timeout = (took.as_secs_f64() * 3.0 + 3.0).min(job.target.timeout);
    let mut trials = Vec::new();
    let question =
        read(ctx, job.target).ok().and_then(|sections| planned(ctx, job.target, &sections, Mode::Question).ok());
    if let Some(question) = question {
        trials.push(Trial { job, cell: 0, mutant: None, plan: question, timeout });
    }
    for (index, step) in plan.steps.iter().enumerate() {
        for mutant in mutants::of(step) {
            let mut changed = plan.clone();
            changed.steps[index].text.clone_from(&mutant.text);
            trials.push(Trial { job, cell: step.cell, mutant: Some(mutant), plan: changed, timeout });
        }
    }
    trials
}

fn passes(runner: &Runner<'_>, number: usize, trial: &Trial<'_>) -> bool {
    let mode = if trial.mutant.is_some() { Mode::Answer } else { Mode::Question };
    let mut target = trial.job.target.clone();
    target.timeout = trial.timeout;
    let case = Case {
        path: &target.path,
        mode,
        plan: &trial.plan,
        timeout: trial.timeout,
        walled: runner.walled(),
        memory: runner.memory,
    };
    runner.run(number, &target, &trial.plan).is_ok_and(|(run, _)| case.judge(&run).status == ItemStatus::Pass)
}

/// One finding a function: the first change that nobody noticed, and how many there were.
fn findings<'t, 'a: 't>(unnoticed: impl Iterator<Item = &'t Trial<'a>>) -> Vec<Finding> {
    let mut functions: BTreeMap<(&str, u32, u32), (Location, Vec<&Localized>)> = BTreeMap::new();
    let mut found = Vec::new();
    for trial in unnoticed {
        let at = Location::file(trial.job.target.path.clone());
        match &trial.mutant {
            None => found.push(Finding::new(&table::QUESTION_ALREADY_SOLVED, at)),
            Some(mutant) => {
                let key = (trial.job.target.path.as_str(), trial.cell, mutant.line);
                let at = at.cell(trial.cell).line(mutant.line).target(&mutant.function);
                functions.entry(key).or_insert_with(|| (at, Vec::new())).1.push(&mutant.what);
            }
        }
    }
    found.extend(functions.into_values().map(|(at, changes)| {
        let all = |lang| changes.iter().map(|what| what.get(lang)).collect::<Vec<_>>();
        let both = Localized::both(all(crate::model::Lang::En).join("; "), all(crate::model::Lang::Zh).join("；"));
        Finding::new(&table::UNTESTED, at).arg("mutant", both)
    }));
    found
}
