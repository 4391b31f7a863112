//! `--watch`: runs a stage again whenever a file that it reads has changed. [`eyes`]
//! sees the changes, [`changes`] says what they mean for the stage, [`view`] leaves out
//! what the reader has seen already.
//!
//! `static`, `links` and `schema` read a whole course in a fraction of a tenth of a
//! second, and a page that was saved can break links of any other: they run whole.
//! Notebooks take seconds, so `answers` runs those that the change touches.

mod changes;
mod eyes;
mod view;

use crate::Screen;
use crate::cli::AnswersArgs;
use crate::course::Context;
use crate::error::RunError;
use crate::interrupt::Cancel;
use crate::model::{Lang, RepoPath, RunReport};
use crate::pipeline::{self, Job};
use crate::stages::answers;
use changes::Changes;
use eyes::Eyes;
use std::path::PathBuf;

/// Runs a job, and again after every change that concerns it, until an interrupt ends
/// it. Gives the exit code of that.
///
/// # Errors
/// A fault of usage in the first run, files that cannot be watched, or an `--output`
/// that cannot be written. Later faults of usage are shown, and the watch goes on.
pub(crate) fn run(
    screen: &Screen<'_>,
    context: &dyn Fn() -> Result<Context, RunError>,
    job: &Job,
    cancel: &Cancel,
) -> Result<u8, RunError> {
    let ctx = context()?;
    // Before the first run, so that no change falls between the two.
    let mut eyes = Eyes::open(&ctx.root, own_files(screen, &ctx, job))?;
    let mut seen = pipeline::run_one(&ctx, job)?;
    screen.show(&seen)?;
    loop {
        if let Some(state) = cancel.get() {
            return Ok(u8::try_from(state.exit_code()).unwrap_or(1));
        }
        say_watching(screen, &eyes);
        let Some(changes) = wait(&mut eyes, &ctx, job, cancel) else { continue };
        screen.clear();
        match context().and_then(|ctx| again(&ctx, job, &seen, &changes)) {
            Ok(Rerun { whole, shown }) => {
                screen.show_change(&whole, &shown)?;
                seen = whole;
            }
            Err(error) => drop(screen.fail(&error)),
        }
    }
}

/// Waits for changes that concern the job. `None`: an interrupt.
fn wait(eyes: &mut Eyes, ctx: &Context, job: &Job, cancel: &Cancel) -> Option<Changes> {
    loop {
        let changes = eyes.wait(cancel)?.concerning(job.stage(), ctx);
        if !changes.is_empty() {
            return Some(changes);
        }
    }
}

/// Files that the run itself writes: they change with every run and mean nothing.
fn own_files(screen: &Screen<'_>, ctx: &Context, job: &Job) -> Vec<PathBuf> {
    let baseline = match job {
        Job::Links(args) => args.baseline.as_deref(),
        _ => None,
    };
    screen.output_files().chain(baseline).map(|path| ctx.at_cwd(path)).collect()
}

fn say_watching(screen: &Screen<'_>, eyes: &Eyes) {
    let count = eyes.count();
    if !screen.is_quiet() {
        screen.complain(&match screen.lang {
            Lang::En => format!("watching {count} files; Ctrl-C ends\n"),
            Lang::Zh => format!("正在监视 {count} 个文件，按 Ctrl-C 结束\n"),
        });
    }
}

/// What came of a change.
struct Rerun {
    /// The state of everything that was asked for.
    whole: RunReport,
    /// What is new in it.
    shown: RunReport,
}

fn again(ctx: &Context, job: &Job, seen: &RunReport, changes: &Changes) -> Result<Rerun, RunError> {
    if changes.everything {
        let whole = pipeline::run_one(ctx, job)?;
        return Ok(Rerun { shown: whole.clone(), whole });
    }
    let (whole, touched) = match job {
        Job::Answers(args) => notebooks(ctx, args, seen, changes)?,
        job => (pipeline::run_one(ctx, job)?, changes.files.iter().map(|file| ctx.repo_path(file)).collect()),
    };
    Ok(Rerun { shown: view::of_change(seen, &whole, &touched), whole })
}

/// Runs the notebooks that changed, or that name a changed module; the others keep their
/// verdict.
fn notebooks(
    ctx: &Context,
    args: &AnswersArgs,
    seen: &RunReport,
    changes: &Changes,
) -> Result<(RunReport, Vec<RepoPath>), RunError> {
    let selected = answers::selected(ctx, args)?;
    let concerned: Vec<PathBuf> = selected.iter().filter(|notebook| changes.concern(notebook)).cloned().collect();
    let paths = |files: &[PathBuf]| files.iter().map(|file| ctx.repo_path(file)).collect::<Vec<_>>();
    let (touched, selected) = (paths(&concerned), paths(&selected));
    let fresh = if concerned.is_empty() {
        RunReport::default()
    } else {
        let narrow = AnswersArgs { paths: concerned, dir: None, partition: None, ..args.clone() };
        pipeline::run_one(ctx, &Job::Answers(narrow))?
    };
    Ok((view::merge(seen, fresh, &touched, &selected), touched))
}
