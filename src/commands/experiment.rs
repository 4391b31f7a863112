//! `verify bench EXPERIMENT.toml`: reads it, runs what is still to come, keeps
//! everything, says what it shows and what it does not.

use crate::Screen;
use crate::backend::plan::{self, Named};
use crate::bench::experiment::engine;
use crate::bench::experiment::setup::{self, Experiment, Making};
use crate::bench::experiment::spec::{CacheSpec, ExperimentSpec, Variable};
use crate::bench::experiment::store::Store;
use crate::bench::experiment::verdict::{self, Concluded};
use crate::cli::{BackendChoice, Cli, ExperimentArgs};
use crate::config;
use crate::course::Context;
use crate::error::RunError;
use crate::model::{
    Finding, Item, ItemStatus, Localized, Location, Outcome, RepoPath, RunReport, Severity, StageId, StageRun, Summary,
    Text,
};
use crate::quality::ProbeSet;
use crate::render::{self, Format};
use crate::results::v1::Verdict;
use crate::rules::{experiment as rules, run as run_rules};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Runs an experiment and shows its tables and its report.
///
/// # Errors
/// A fault of usage: nothing was measured.
pub(crate) fn run(file: &Path, args: &ExperimentArgs, cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    let began = Instant::now();
    let ctx = crate::context(cli, screen, &[])?;
    let path = ctx.at_cwd(file);
    let (spec, variable) = read(&path)?;
    let choice = BackendChoice {
        backend: Some(spec.backend.clone()).filter(|name| !name.is_empty()),
        base_url: Some(spec.base_url.clone()).filter(|url| !url.is_empty()),
        offline: args.offline,
        ..BackendChoice::default()
    };
    let named = plan::named_backend(&ctx, &choice)?.ok_or_else(|| no_backend(&path))?;
    let probes = probes(&spec.probes, &ctx.root)?;
    let folder = folder(&ctx, &path, args);
    let phase = ctx.progress.start("bench", u64::from(spec.repeats) * spec.vary.arm.len() as u64);
    if let Some(missing) = not_offered(&ctx, &spec, &named, &folder) {
        return show(&ctx, screen, None, vec![missing], began);
    }
    let making = Making {
        ctx: &ctx,
        spec: &spec,
        variable,
        named: &named,
        folder: &folder,
        offline: args.offline,
        phase: &phase,
    };
    let experiment = match setup::of_spec(making, probes) {
        Ok(experiment) => experiment,
        Err(missing) => return show(&ctx, screen, None, vec![*missing], began),
    };
    let store = open(&experiment, args)?;
    let concluded = measure(&ctx, &experiment, store, &phase)?;
    drop(phase);
    show(&ctx, screen, Some(&concluded), concluded.findings.clone(), began)
}

/// Runs what is still to come and keeps the conclusion.
fn measure(
    ctx: &Context,
    experiment: &Experiment,
    mut store: Store,
    phase: &crate::term::Phase,
) -> Result<Concluded, RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| RunError::file("runtime", error))?;
    let ended = runtime.block_on(engine::run(ctx, experiment, &mut store, phase));
    // A request that hangs must not keep the process.
    runtime.shutdown_background();
    let mut concluded = verdict::conclude(ctx, experiment, &store, &ended);
    concluded.findings.extend(ended.fault);
    verdict::write(experiment, &concluded).map_err(|error| RunError::file(&experiment.folder, error))?;
    Ok(concluded)
}

/// Where a right experiment is shown: its example is one that a test runs.
static EXPERIMENT_SHOWN: Text = Text {
    en: "`verify explain experiment/few-repeats` shows a whole experiment; schemas/ has every key for editors",
    zh: "`verify explain experiment/few-repeats` 给出了一个完整的实验文件；schemas/ 中有供编辑器使用的全部键",
};

/// Reads and checks the file; every fault is placed or named before anything runs.
fn read(path: &Path) -> Result<(ExperimentSpec, Variable), RunError> {
    crate::course::check_regular(path)?;
    let text = std::fs::read_to_string(path).map_err(|error| RunError::file(path, error))?;
    let mut spec: ExperimentSpec = config::from_toml(&text, path, &EXPERIMENT_SHOWN)?;
    if spec.name.is_empty() {
        spec.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    let variable = spec.check().map_err(|fault| {
        let [en, zh] = fault.message;
        let [hint_en, hint_zh] = fault.hint;
        let shown = path.display();
        RunError::usage(
            Localized::both(format!("{shown}: {en}"), format!("{shown}：{zh}")),
            Localized::both(hint_en, hint_zh),
        )
    })?;
    spec.expand(|name| std::env::var(name).ok().filter(|value| !value.is_empty())).map_err(|name| {
        RunError::usage(
            Localized::both(
                format!("{}: the environment variable {name} is not set", path.display()),
                format!("{}：环境变量 {name} 没有设置", path.display()),
            ),
            Localized::both(format!("set it: {name}=… verify bench …"), format!("请设置：{name}=… verify bench …")),
        )
    })?;
    Ok((spec, variable))
}

fn no_backend(path: &Path) -> RunError {
    RunError::usage(
        Localized::both(
            format!("{}: no backend is named", path.display()),
            format!("{}：没有指定后端", path.display()),
        ),
        Localized::both("set `backend` or `base_url`", "请设置 `backend` 或 `base_url`"),
    )
}

fn probes(name: &str, root: &Path) -> Result<Option<ProbeSet>, RunError> {
    if name.is_empty() || name == "none" {
        return Ok(None);
    }
    ProbeSet::named(name, root).map(Some).map_err(|error| {
        RunError::usage(
            error.to_string(),
            Localized::both(
                "`probes` is `builtin`, `builtin-en`, `builtin-zh`, `none`, or a TOML file",
                "`probes` 可写 `builtin`、`builtin-en`、`builtin-zh`、`none`，或一个 TOML 文件",
            ),
        )
    })
}

/// `EXPERIMENT.run` beside the file, unless a folder was named.
fn folder(ctx: &Context, file: &Path, args: &ExperimentArgs) -> PathBuf {
    args.out_dir.as_ref().map_or_else(|| file.with_extension("run"), |given| ctx.at_cwd(given))
}

/// Features that arms need and the backend does not have.
fn not_offered(ctx: &Context, spec: &ExperimentSpec, named: &Named, folder: &Path) -> Option<Finding> {
    let Named::Profile(profile) = named else { return None };
    let has = |feature: &str| profile.features.contains_key(feature);
    let missing = spec.vary.arm.iter().find_map(|arm| {
        let needs = [
            (arm.speculation == Some(CacheSpec::On) && !has("speculation"), "speculation"),
            (arm.cache == Some(CacheSpec::Off) && !has("prefix_cache_off"), "prefix_cache_off"),
        ];
        needs.into_iter().find(|(missing, _)| *missing).map(|(_, feature)| (arm.name.clone(), feature.to_owned()))
    });
    let unknown =
        || spec.features.iter().find(|feature| !has(feature)).map(|feature| ("*".to_owned(), feature.clone()));
    let (arm, feature) = missing.or_else(unknown)?;
    let at = Location::file(ctx.repo_path(folder));
    Some(
        Finding::new(&rules::FEATURE_NOT_OFFERED, at)
            .arg("backend", &profile.name)
            .arg("features", feature)
            .arg("arm", arm),
    )
}

/// The folder of the experiment: a new one, or what an earlier run of the very same left.
fn open(experiment: &Experiment, args: &ExperimentArgs) -> Result<Store, RunError> {
    let folder = &experiment.folder;
    let io = |error| RunError::file(folder, error);
    if Store::exists(folder) && args.fresh {
        let aside = format!("{}.{}", folder.display(), jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ"));
        std::fs::rename(folder, aside).map_err(io)?;
    }
    if !Store::exists(folder) {
        return Store::create(folder, &experiment.manifest).map_err(io);
    }
    let earlier = Store::manifest(folder).map_err(io)?;
    if !args.resume {
        return Err(RunError::usage(
            Localized::both(
                format!("{} holds an experiment already", folder.display()),
                format!("{} 中已有一个实验", folder.display()),
            ),
            Localized::both(
                "--resume goes on with it, --fresh keeps it under another name and begins anew",
                "--resume 接着做，--fresh 把它改名保存后重新开始",
            ),
        ));
    }
    let changed = earlier.differences(&experiment.manifest);
    if earlier.fingerprint == experiment.manifest.fingerprint && changed.is_empty() {
        return Store::open(folder).map_err(io);
    }
    let list: Vec<String> = changed.iter().take(5).map(|(field, was, is)| format!("{field}: {was} → {is}")).collect();
    let list = if list.is_empty() { "fingerprint".to_owned() } else { list.join("; ") };
    Err(RunError::usage(
        Localized::both(
            format!("{}: this is another experiment: {list}", folder.display()),
            format!("{}：这已是另一个实验：{list}", folder.display()),
        ),
        Localized::both(
            "passes of two manifests cannot be mixed; undo the change, or begin anew with --fresh",
            "两份清单的数据不能混在一起；请撤销改动，或用 --fresh 重新开始",
        ),
    ))
}

/// Shows tables and report in every format that was asked for.
fn show(
    ctx: &Context,
    screen: &Screen<'_>,
    concluded: Option<&Concluded>,
    findings: Vec<Finding>,
    began: Instant,
) -> Result<u8, RunError> {
    let mut report = report(ctx, concluded, findings, began);
    if let Some(state) = ctx.cancel.get() {
        report.interrupted = Some(state.exit_code());
    }
    if let Some(concluded) = concluded.filter(|_| screen.console() == Format::Human && !screen.is_quiet()) {
        screen.print(&crate::term::neutralize(&render::experiment::human(&concluded.record, ctx.lang)));
        screen.print("\n");
    }
    screen.show(&report)
}

/// The report: the conclusion over one result per arm.
fn report(ctx: &Context, concluded: Option<&Concluded>, mut findings: Vec<Finding>, began: Instant) -> RunReport {
    if let Some(state) = ctx.cancel.get()
        && !findings.iter().any(|finding| finding.rule == &run_rules::INTERRUPTED)
    {
        let at = Location::file(RepoPath::new("."));
        findings.push(Finding::new(&run_rules::INTERRUPTED, at).arg("signal", state.name()));
    }
    let items: Vec<Item> = concluded.map(|concluded| items(ctx, concluded, &findings)).unwrap_or_default();
    let outcome = Outcome::ran(items.len().max(1), Summary::of_items(&items), items, findings);
    RunReport {
        stages: vec![StageRun { stage: StageId::Conclude, outcome, duration: began.elapsed() }],
        duration: began.elapsed(),
        ..RunReport::default()
    }
}

fn items(ctx: &Context, concluded: &Concluded, findings: &[Finding]) -> Vec<Item> {
    let measured = concluded.record.arms.iter().filter(|arm| arm.result.is_some());
    measured
        .zip(&concluded.results)
        .map(|(arm, result)| {
            let path = ctx.repo_path(&result.path);
            let failed = findings.iter().any(|finding| finding.severity == Severity::Error && finding.at.path == path);
            let mut item = Item::new(path, if failed { ItemStatus::Failed } else { ItemStatus::Ok });
            item.claimed = Some(arm.conclusion.decision.clone());
            item.max_decision = Some(result.allowed.name().to_owned());
            let (en, zh) = (&arm.conclusion.reason.en, &arm.conclusion.reason.zh);
            item.detail = Some(Localized::both(en.clone(), zh.clone()));
            if result.allowed < Verdict::Accept {
                let step = arm.conclusion.next_step.as_ref();
                item.next_steps =
                    step.map(|step| Localized::both(step.en.clone(), step.zh.clone())).into_iter().collect();
            }
            item
        })
        .collect()
}
