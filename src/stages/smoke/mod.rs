//! `verify smoke`: a real server is started, proven with a small workload, and always
//! stopped. A run that failed leaves a failure record and no result.

mod probes;
mod proof;
mod record;
mod run;

use crate::backend::plan::{self, Named, Plan, Planned, Role};
use crate::backend::spec::RunSpec;
use crate::bench::metrics::{PassFigures, TokensSource};
use crate::cli::{BackendChoice, SmokeArgs};
use crate::client::other_model;
use crate::config::Project;
use crate::course::Context;
use crate::error::RunError;
use crate::fsx;
use crate::model::{Finding, Item, ItemStatus, Localized, Location, Outcome, Summary};
use crate::rules;
use crate::term::Phase;

use run::Observed;
use std::time::Instant;

/// Checks what was named before anything runs.
///
/// # Errors
/// There is no backend of that name, or the address is none.
pub fn check(ctx: &Context, choice: &BackendChoice) -> Result<(), RunError> {
    plan::named_backend(ctx, choice).map(drop)
}

/// Runs the stage.
///
/// # Errors
/// A fault of usage: an unknown backend, a run specification that is none.
pub fn run(ctx: &Context, args: &SmokeArgs) -> Result<Outcome, RunError> {
    if let Some(file) = &args.config {
        let spec = RunSpec::read(&ctx.at_cwd(file))?;
        let phase = ctx.progress.start("smoke", 1);
        let item = one(ctx, &plan::of_spec(ctx, &spec, &args.backend, &phase), None, &phase);
        return Ok(outcome(vec![item]));
    }
    let Some(named) = plan::named_backend(ctx, &args.backend)? else {
        return Ok(Outcome::skipped(Localized::both(
            "no backend was named; `--backend cpu` runs a small real model on the CPU",
            "没有指定后端；`--backend cpu` 会在 CPU 上运行一个真实的小模型",
        )));
    };
    let projects = projects(ctx);
    if projects.is_empty() {
        return Ok(Outcome::skipped(Localized::both(
            "none of the projects' notebooks is in this course",
            "本课程中没有这些项目的笔记本",
        )));
    }
    let phase = ctx.progress.start("smoke", projects.len() as u64);
    let judged = projects.into_iter().flat_map(|project| project_runs(ctx, project, &named, args, &phase));
    Ok(outcome(judged.collect()))
}

/// The chosen projects; without a choice those whose notebook is here.
fn projects(ctx: &Context) -> Vec<&Project> {
    ctx.chosen_projects()
        .filter(|project| !ctx.projects.is_empty() || ctx.at_root(&project.notebook).is_file())
        .collect()
}

type Judged = (Item, Vec<Finding>);

/// The runs of a project. After an interrupt nothing new is started.
fn project_runs(ctx: &Context, project: &Project, named: &Named, args: &SmokeArgs, phase: &Phase) -> Vec<Judged> {
    if ctx.cancel.is_set() {
        return Vec::new();
    }
    let planned = plan::of_project(ctx, project, named, &args.backend, phase);
    let runs =
        planned.iter().map_while(|planned| (!ctx.cancel.is_set()).then(|| one(ctx, planned, Some(project), phase)));
    let judged: Vec<Judged> = runs.collect();
    let verdicts: Vec<&str> = judged.iter().map(|(item, _)| item.status.name()).collect();
    phase.step(&format!("project {} {}", project.id, verdicts.join(", ")));
    judged
}

fn outcome(judged: Vec<Judged>) -> Outcome {
    let (items, findings): (Vec<Item>, Vec<Vec<Finding>>) = judged.into_iter().unzip();
    let summary = Summary::of_items(&items);
    Outcome::ran(items.len(), summary, items, findings.concat())
}

/// Judges one run: its item and its findings.
fn one(ctx: &Context, planned: &Planned, project: Option<&Project>, phase: &Phase) -> Judged {
    let began = Instant::now();
    let (path, status, detail, findings) = match planned {
        Err(fault) => {
            let path = project.map_or_else(
                || fault.at.path.clone(),
                |project| ctx.repo_path(&ctx.results_dir().join(&project.result)),
            );
            (path, ItemStatus::Error, None, vec![fault.clone()])
        }
        Ok(plan) => {
            let (detail, findings) = match leaving(ctx, plan) {
                Some(fault) => (None, vec![fault]),
                None => execute(ctx, plan, phase),
            };
            let failed = findings.iter().any(|finding| finding.severity == crate::model::Severity::Error);
            (ctx.repo_path(&plan.result), if failed { ItemStatus::Fail } else { ItemStatus::Pass }, detail, findings)
        }
    };
    let mut item = Item::new(path, status);
    item.project = project.map(|project| project.id);
    item.duration = Some(began.elapsed());
    item.detail = detail;
    (item, findings)
}

/// A link on the way to the result, or to the earlier ones, that leads out of the course:
/// nothing is started then, because nothing could be written.
fn leaving(ctx: &Context, plan: &Plan) -> Option<Finding> {
    let beside = |folder: &str| plan.result.with_file_name(folder).join("file");
    let written = [plan.result.clone(), beside("history"), beside("logs")];
    let out = written.iter().find(|path| !fsx::is_inside(&ctx.root, path))?;
    let folder = ctx.repo_path(out.parent().unwrap_or(out));
    Some(
        Finding::new(&rules::smoke::RESULT_OUTSIDE, Location::file(ctx.repo_path(&plan.result)))
            .arg("folder", folder.as_str()),
    )
}

/// Runs a plan and writes what is to be written.
fn execute(ctx: &Context, plan: &Plan, phase: &Phase) -> (Option<Localized>, Vec<Finding>) {
    let run_id = run_id();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let at = Location::file(ctx.repo_path(&plan.result));
            let fault = Finding::new(&rules::smoke::NOT_STARTED, at)
                .arg("backend", &plan.profile.name)
                .arg("cause", error.to_string());
            return (None, vec![fault]);
        }
    };
    let mut observed = runtime.block_on(run::execute(ctx, plan, &run_id, phase));
    let figures = PassFigures::of(&observed.measured.traces);
    if observed.life.fault.is_none() {
        let at = Location::file(ctx.repo_path(&plan.result));
        observed.life.fault = proof::unsupported_claim(at, plan, &observed.measured, &figures);
    }
    match observed.life.fault.take() {
        Some(fault) => (None, failed(ctx, plan, &observed, fault, &run_id)),
        None => succeeded(ctx, plan, &observed, &figures, &run_id),
    }
}

/// Time and process id: unique among the runs of one machine, and sortable.
fn run_id() -> String {
    format!("{}-{}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%3fZ"), std::process::id())
}

fn failed(ctx: &Context, plan: &Plan, observed: &Observed, fault: Finding, run_id: &str) -> Vec<Finding> {
    // The record is a help for the reader; that it cannot be written does not change the verdict.
    let _ = record::write_failure(ctx, plan, observed, &fault, run_id);
    vec![fault]
}

fn succeeded(
    ctx: &Context,
    plan: &Plan,
    observed: &Observed,
    figures: &PassFigures,
    run_id: &str,
) -> (Option<Localized>, Vec<Finding>) {
    let at = Location::file(ctx.repo_path(&plan.result));
    if let Err(error) = record::write_result(ctx, plan, observed, figures, run_id) {
        let fault = Finding::new(&rules::smoke::RESULT_NOT_WRITTEN, at).arg("cause", error.to_string());
        return (None, failed(ctx, plan, observed, fault, run_id));
    }
    let mut findings = plan.notes.clone();
    findings.extend(proof::remarks(&at, plan, &observed.measured, figures));
    findings.extend(disturbed(ctx, &at, observed));
    let asked = &observed.life.identity.model;
    if let Some(answered) = other_model(&observed.measured.traces, asked) {
        let finding = Finding::new(&rules::smoke::ANSWERED_BY_ANOTHER, at.clone());
        findings.push(finding.arg("model", asked).arg("answered", answered));
    }
    if figures.tokens_source == TokensSource::Chunks {
        findings.push(Finding::new(&rules::smoke::ESTIMATED_TOKENS, at.clone()));
    }
    if let Some(project) =
        plan.project.as_ref().filter(|project| plan.role == Role::Candidate && !project.to_confirm.is_empty())
    {
        findings.push(Finding::new(&rules::smoke::TO_CONFIRM, at).arg("list", project.to_confirm.join(", ")));
    }
    (Some(detail(observed, figures)), findings)
}

/// Others used the processors meanwhile.
fn disturbed(ctx: &Context, at: &Location, observed: &Observed) -> Option<Finding> {
    let wanted = ctx.settings.conclude.max_others_cpu;
    let taken = observed.measured.contention.map(|found| found.taken()).filter(|taken| *taken > wanted)?;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    Some(Finding::new(&rules::smoke::DISTURBED, at.clone()).arg("value", percent(taken)).arg("wanted", percent(wanted)))
}

/// The figures a person wants to see beside the verdict.
fn detail(observed: &Observed, figures: &PassFigures) -> Localized {
    let mut parts = Vec::new();
    for (name, distribution) in [("TTFT", figures.ttft_ms), ("TPOT", figures.tpot_ms), ("E2E", figures.e2e_ms)] {
        parts.extend(distribution.map(|known| format!("{name} P50 {:.1} ms", known.p50)));
    }
    parts.extend(figures.output_tokens_per_s.map(|rate| format!("{rate:.1} tok/s")));
    parts.extend(observed.measured.memory.peak().map(|peak| format!("RSS {} MiB", peak.rss >> 20)));
    parts.push(format!("n={}", figures.successful));
    parts.join(" · ").into()
}
