//! The chain: order, blocking, keep-going. One match over `StageId` dispatches.

use crate::cli::{AllArgs, AnswersArgs, ConcludeArgs, LinksArgs, SchemaArgs, SmokeArgs, StaticArgs};
use crate::course::Context;
use crate::error::RunError;
use crate::model::{Finding, Localized, Location, Outcome, RepoPath, RunReport, StageId, StageRun, Status, Summary};
use crate::{rules, stages};
use std::time::Instant;

/// One stage with its arguments.
#[derive(Debug)]
pub enum Job {
    /// `verify static`.
    Static(StaticArgs),
    /// `verify answers`.
    Answers(AnswersArgs),
    /// `verify links`.
    Links(LinksArgs),
    /// `verify smoke`.
    Smoke(SmokeArgs),
    /// `verify schema`.
    Schema(SchemaArgs),
    /// `verify conclude`.
    Conclude(ConcludeArgs),
}

impl Job {
    /// Which stage it is.
    pub fn stage(&self) -> StageId {
        match self {
            Job::Static(_) => StageId::Static,
            Job::Answers(_) => StageId::Answers,
            Job::Links(_) => StageId::Links,
            Job::Smoke(_) => StageId::Smoke,
            Job::Schema(_) => StageId::Schema,
            Job::Conclude(_) => StageId::Conclude,
        }
    }

    /// Whether it runs again after every change.
    pub fn is_watching(&self) -> bool {
        match self {
            Job::Static(args) => args.watch,
            Job::Answers(args) => args.watch,
            Job::Links(args) => args.watch,
            Job::Schema(args) => args.watch,
            Job::Smoke(_) | Job::Conclude(_) => false,
        }
    }

    fn run(&self, ctx: &Context, chain: &stages::Chain) -> Result<Outcome, RunError> {
        match self {
            Job::Static(args) => stages::static_checks::run(ctx, args),
            Job::Answers(args) => stages::answers::run(ctx, args, chain),
            Job::Links(args) => stages::links::run(ctx, args),
            Job::Smoke(args) => stages::smoke::run(ctx, args),
            Job::Schema(args) => stages::schema::run(ctx, args, chain),
            Job::Conclude(args) => stages::conclude::run(ctx, args, chain),
        }
    }
}

/// Runs one stage alone.
///
/// # Errors
/// A fault of usage: nothing was checked.
pub fn run_one(ctx: &Context, job: &Job) -> Result<RunReport, RunError> {
    run_jobs(ctx, std::slice::from_ref(job), true, stages::Chain::default())
}

/// Runs the chain.
///
/// # Errors
/// A fault of usage: nothing was checked.
pub fn run_chain(ctx: &Context, args: &AllArgs) -> Result<RunReport, RunError> {
    let jobs: Vec<Job> = chosen(args)?.into_iter().map(|stage| job(stage, args)).collect();
    if jobs.iter().any(|job| job.stage() == StageId::Smoke) {
        // A backend that does not exist is known before a minute of answers has run.
        stages::smoke::check(ctx, &args.backend)?;
    }
    let chain = stages::Chain {
        in_chain: true,
        require_results: args.require_results,
        smoke_in_chain: jobs.iter().any(|job| job.stage() == StageId::Smoke),
        backend: args.backend.clone(),
        ..stages::Chain::default()
    };
    run_jobs(ctx, &jobs, args.keep_going, chain)
}

/// The stages that `--only`, `--skip`, `--from` and `--until` leave, in the documented order.
fn chosen(args: &AllArgs) -> Result<Vec<StageId>, RunError> {
    let inside = |stage: &StageId| {
        (args.only.is_empty() || args.only.contains(stage))
            && !args.skip.contains(stage)
            && args.from.is_none_or(|from| *stage >= from)
            && args.until.is_none_or(|until| *stage <= until)
    };
    let stages: Vec<StageId> = StageId::ALL.into_iter().filter(inside).collect();
    if stages.is_empty() {
        return Err(RunError::usage(
            Localized::both("these options leave no stage to run", "这些选项没有留下任何可运行的阶段"),
            Localized::both(
                "the order is static, answers, links, smoke, schema, conclude",
                "顺序为 static、answers、links、smoke、schema、conclude",
            ),
        ));
    }
    Ok(stages)
}

fn job(stage: StageId, args: &AllArgs) -> Job {
    match stage {
        StageId::Static => Job::Static(StaticArgs::default()),
        StageId::Answers => Job::Answers(AnswersArgs { partition: args.partition, ..AnswersArgs::default() }),
        StageId::Links => Job::Links(LinksArgs::default()),
        StageId::Smoke => Job::Smoke(SmokeArgs {
            projects: args.projects.clone(),
            backend: args.backend.clone(),
            ..SmokeArgs::default()
        }),
        StageId::Schema => Job::Schema(SchemaArgs::default()),
        StageId::Conclude => Job::Conclude(ConcludeArgs::default()),
    }
}

fn run_jobs(ctx: &Context, jobs: &[Job], keep_going: bool, mut chain: stages::Chain) -> Result<RunReport, RunError> {
    let started = Instant::now();
    let mut report = RunReport::default();
    let mut failed: Option<StageId> = None;
    for job in jobs {
        let stage = job.stage();
        if let Job::Answers(args) = job {
            report.partition = args.partition;
        }
        let began = Instant::now();
        let mut outcome = match failed {
            Some(by) if !keep_going || report.interrupted.is_some() => Outcome::Blocked { by },
            _ => job.run(ctx, &chain)?,
        };
        if let Some(state) = ctx.cancel.get()
            && report.interrupted.is_none()
        {
            report.interrupted = Some(state.exit_code());
            outcome = interrupted(outcome, state.name());
        }
        if outcome.status() == Status::Fail {
            failed = failed.or(Some(stage));
        }
        if stage == StageId::Smoke {
            chain.smoke_ran.extend(outcome.items().iter().filter_map(|item| item.project));
            let failed =
                |id: u32| outcome.items().iter().any(|item| item.project == Some(id) && item.status.is_failure());
            chain.smoke_passed = chain.smoke_ran.iter().copied().filter(|id| !failed(*id)).collect();
        }
        report.stages.push(StageRun { stage, outcome, duration: began.elapsed() });
    }
    report.duration = started.elapsed();
    Ok(report)
}

/// The running stage of an interrupted run fails and says so.
fn interrupted(outcome: Outcome, signal: &str) -> Outcome {
    let finding = Finding::new(&rules::run::INTERRUPTED, Location::file(RepoPath::new("."))).arg("signal", signal);
    let (summary, items, mut findings) = match outcome {
        Outcome::Ran { summary, items, findings, .. } => (summary, items, findings),
        _ => (Summary::new(), Vec::new(), Vec::new()),
    };
    // The stage may have said it at the place where it was stopped.
    if !findings.iter().any(|found| found.rule.id == finding.rule.id) {
        findings.push(finding);
    }
    Outcome::ran(1, summary, items, findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_the_documented_one_whatever_was_typed() {
        let args = AllArgs { only: vec![StageId::Links, StageId::Static], ..AllArgs::default() };
        assert_eq!(chosen(&args).unwrap(), [StageId::Static, StageId::Links]);
        let args = AllArgs { from: Some(StageId::Links), until: Some(StageId::Schema), ..AllArgs::default() };
        assert_eq!(chosen(&args).unwrap(), [StageId::Links, StageId::Smoke, StageId::Schema]);
        let args = AllArgs { only: vec![StageId::Links], skip: vec![StageId::Links], ..AllArgs::default() };
        assert!(chosen(&args).is_err());
    }
}
