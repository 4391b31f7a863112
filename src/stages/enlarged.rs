//! The enlarged workload of the chain: each project's arms, as the smoke stage plans
//! them, through the machinery of experiments. Writes `<stem>.bench.json` (and
//! `<stem>.bench.baseline.json`), gated like any result before it is judged.

use super::Chain;
use super::schema;
use crate::backend::plan::{self, Named, Plan, Planned};
use crate::bench::experiment::setup::{self, ArmParts, Common, Experiment};
use crate::bench::experiment::store::Store;
use crate::bench::experiment::verdict;
use crate::bench::experiment::{engine, record::LoadFacts};
use crate::config::Project;
use crate::course::Context;
use crate::error::RunError;
use crate::model::{Finding, Localized, Location, Severity};
use crate::quality::{self, ProbeSet};
use crate::rules::experiment as rules;
use crate::term::Phase;
use std::io;
use std::path::PathBuf;

/// Folder of the raw passes, one folder per project below it.
const RAW: &str = ".verify/bench";

/// Measures the enlarged workload of every project whose smoke passed; with a backend named
/// for a chain without smoke, of every chosen one. What went wrong is in the findings.
///
/// # Errors
/// A fault of usage: an unknown backend, a probe set that is none.
pub(super) fn run(ctx: &Context, chain: &Chain) -> Result<Vec<Finding>, RunError> {
    let Some(named) = plan::named_backend(ctx, &chain.backend)? else { return Ok(Vec::new()) };
    let projects: Vec<&Project> =
        ctx.chosen_projects().filter(|project| !project.result.is_empty() && wanted(ctx, chain, project)).collect();
    if projects.is_empty() || ctx.settings.bench.repeats == 0 {
        return Ok(Vec::new());
    }
    let probes = probes(ctx)?;
    let mut findings = Vec::new();
    for project in projects {
        if ctx.cancel.is_set() {
            break;
        }
        let arms = 1 + u64::from(project.baseline.is_some());
        let phase = ctx.progress.start("conclude", arms * u64::from(ctx.settings.bench.repeats));
        phase.say(&format!("project {}, enlarged workload", project.id));
        findings.extend(measure(ctx, project, &named, chain, probes.clone(), &phase));
    }
    Ok(findings)
}

fn wanted(ctx: &Context, chain: &Chain, project: &Project) -> bool {
    if chain.smoke_in_chain {
        return chain.smoke_passed.contains(&project.id);
    }
    let asked = chain.backend.backend.is_some() || chain.backend.base_url.is_some();
    asked && (!ctx.projects.is_empty() || ctx.at_root(&project.notebook).is_file())
}

fn probes(ctx: &Context) -> Result<Option<ProbeSet>, RunError> {
    quality::chosen(&ctx.settings.bench, &ctx.root).map_err(|error| {
        RunError::usage(
            error.to_string(),
            Localized::both(
                "`bench.probes` is `builtin`, `none`, or a TOML file",
                "`bench.probes` 可写 `builtin`、`none`，或一个 TOML 文件",
            ),
        )
    })
}

/// One project: everything is measured anew, unless an earlier run of the very same
/// experiment was cut short.
fn measure(
    ctx: &Context,
    project: &Project,
    named: &Named,
    chain: &Chain,
    probes: Option<ProbeSet>,
    phase: &Phase,
) -> Vec<Finding> {
    let planned: Vec<Planned> = plan::of_project(ctx, project, named, &chain.backend, phase);
    let mut plans = Vec::new();
    for one in planned {
        match one {
            Ok(plan) => plans.push(plan),
            Err(fault) => return vec![fault],
        }
    }
    let experiment = experiment(ctx, project, plans, probes);
    let at = Location::file(ctx.repo_path(&ctx.results_dir().join(&project.result).with_extension("bench.json")));
    let failed = |error: &dyn std::fmt::Display| {
        vec![Finding::new(&rules::NOT_WRITTEN, at.clone()).arg("cause", error.to_string())]
    };
    let mut store = match open(&experiment) {
        Ok(store) => store,
        Err(error) => return failed(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let ended = runtime.block_on(engine::run(ctx, &experiment, &mut store, phase));
    runtime.shutdown_background();
    let fault = ended.fault.clone();
    let mut concluded = verdict::conclude(ctx, &experiment, &store, &ended);
    // A run that was cut short is no result; what it measured waits for the next run.
    if fault.is_some() || !ended.complete {
        return fault.into_iter().collect();
    }
    if let Err(error) = verdict::write(&experiment, &concluded) {
        return failed(&error);
    }
    concluded.findings.retain(|finding| finding.rule != &rules::NO_GPU_FIGURES);
    concluded.findings.extend(concluded.results.iter().flat_map(|result| schema::gate_file(ctx, &result.path)));
    // What is no fault is in the result; here only what decides.
    concluded.findings.retain(|finding| finding.severity != Severity::Note);
    concluded.findings
}

fn open(experiment: &Experiment) -> io::Result<Store> {
    let folder = &experiment.folder;
    if Store::exists(folder) {
        let same = Store::manifest(folder).is_ok_and(|earlier| earlier.fingerprint == experiment.manifest.fingerprint);
        if same && !folder.join("experiment.json").exists() {
            return Store::open(folder);
        }
        std::fs::remove_dir_all(folder)?;
    }
    Store::create(folder, &experiment.manifest)
}

fn experiment(ctx: &Context, project: &Project, plans: Vec<Plan>, probes: Option<ProbeSet>) -> Experiment {
    let settings = &ctx.settings.bench;
    let variable = match (project.id, plans.len()) {
        (_, 1) => "none",
        (67, _) => "quantization",
        (68, _) => "speculation",
        (69, _) => "cache",
        (70, _) => "concurrency",
        _ => "strategy",
    };
    let stem = project.result.trim_end_matches(".json").to_owned();
    let requests = enlarged(ctx, project);
    let common = Common {
        name: format!("project-{}", project.id),
        variable: variable.to_owned(),
        repeats: settings.repeats,
        seed: u64::from(project.id),
        goodput: settings.goodput,
        probes,
        folder: ctx.at_root(RAW).join(&stem),
        quality: settings.quality.clone(),
        decision: settings.decision.clone(),
    };
    let arms = plans.into_iter().map(|plan| arm(plan, project, requests)).collect();
    setup::freeze(common, arms)
}

/// Requests of one pass: as stated, else as many as the evidence rules want of all passes.
fn enlarged(ctx: &Context, project: &Project) -> u32 {
    let settings = &ctx.settings.bench;
    match settings.requests {
        0 => ctx.settings.conclude.min_samples.div_ceil(settings.repeats.max(1)).max(project.requests),
        stated => stated,
    }
}

fn arm(mut plan: Plan, project: &Project, requests: u32) -> ArmParts {
    plan.result = bench_path(&plan.result);
    let batch = if project.parallel == 0 { plan.concurrency } else { project.parallel };
    ArmParts {
        name: plan.role.name().to_owned(),
        value: plan.strategy.clone(),
        requests: plan.workload.take(requests),
        load: LoadFacts { shape: "closed".to_owned(), concurrency: Some(plan.concurrency), rate_per_s: None },
        precision: None,
        batch,
        // At least as many as are in flight: fewer do not warm every place.
        warmup: plan.warmup.max(plan.concurrency),
        prompt_words: None,
        ignore_eos: false,
        plan,
    }
}

/// `x.json` → `x.bench.json`, `x.baseline.json` → `x.bench.baseline.json`.
fn bench_path(result: &std::path::Path) -> PathBuf {
    let name = result.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let changed = match name.strip_suffix(".baseline.json") {
        Some(stem) => format!("{stem}.bench.baseline.json"),
        None => format!("{}.bench.json", name.trim_end_matches(".json")),
    };
    result.with_file_name(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_enlarged_result_stands_beside_the_small_one() {
        assert_eq!(bench_path(Path::new("r/69_x.json")), Path::new("r/69_x.bench.json"));
        assert_eq!(bench_path(Path::new("r/69_x.baseline.json")), Path::new("r/69_x.bench.baseline.json"));
    }
}
