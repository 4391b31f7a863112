//! `verify answers`: runs the reference answers of notebooks against their tests.
//!
//! The verdict rests on proof, not on an exit status: a driver inside the interpreter
//! tells over a channel of its own which tests were entered, left and raised. [`code`],
//! [`names`], [`sections`] and [`plan`] decide what runs; [`runner`], [`child`] and
//! [`server`] run it behind the walls of [`sandbox`]; [`verdict`] judges what was told.

#[cfg(unix)]
mod child;
#[cfg(not(unix))]
#[path = "child_plain.rs"]
mod child;
mod code;
mod events;
mod interpreter;
mod mutants;
mod names;
mod output;
mod plan;
#[cfg_attr(not(unix), allow(dead_code, reason = "processes are followed on Unix only"))]
mod processes;
mod prove;
mod runner;
mod sandbox;
mod scratch;
mod sections;
mod select;
#[cfg(unix)]
mod server;
mod tree;
mod verdict;

pub use sandbox::{Sandbox, confine};

use crate::cli::{AnswerMode, AnswersArgs};
use crate::course::Context;
use crate::error::RunError;
use crate::model::{Finding, Item, ItemStatus, Localized, Location, Outcome, RepoPath, Summary};
use crate::notebook::Notebook;
use crate::rules;
use crate::rules::answers as table;
use crate::stages::Chain;
use plan::{Mode, Plan};
use runner::{Refusal, Runner, Wishes};
use sandbox::{Network, Walls};
use sections::{Gap, Sections};
use select::{Selected, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tree::{Change, Tree};
use verdict::{Case, Verdict};

/// Stack for taking cells apart: what the parser accepts may be nested deeply.
const PARSE_STACK: usize = 512 << 20;

/// More than any machine has, and still a number that every limit can hold.
const MAX_MEMORY_MB: u64 = 1 << 32;

/// One notebook in one mode.
struct Job<'a> {
    target: &'a Target,
    mode: Mode,
    /// What runs, or the verdict that needs no run.
    plan: Result<Plan, Verdict>,
}

/// What came out of a job.
struct Done {
    verdict: Verdict,
    duration: Duration,
}

/// Runs the stage.
///
/// # Errors
/// A fault of usage: nothing was checked.
pub fn run(ctx: &Context, args: &AnswersArgs, chain: &Chain) -> Result<Outcome, RunError> {
    let selection = match select::select(ctx, args, chain.in_chain)? {
        Selected::Nothing(reason) => return Ok(Outcome::skipped(reason)),
        Selected::These(selection) => selection,
    };
    let jobs = plan_all(ctx, &selection.targets, args.mode);
    let mut findings = selection.notes.clone();
    let done = if jobs.iter().any(|job| job.plan.is_ok()) {
        run_all(ctx, args, &jobs, &mut findings)
    } else {
        jobs.iter().map(|job| Some(without_run(job))).collect()
    };
    let mut items = Vec::new();
    for (job, done) in jobs.iter().zip(done) {
        let Some(done) = done else { continue };
        let (item, told) = finish(ctx, args, job, done);
        items.push(item);
        findings.extend(told);
    }
    Ok(Outcome::ran(items.len(), Summary::of_items(&items), items, findings))
}

/// The notebooks that a run is about; none where it would be skipped.
///
/// # Errors
/// As [`run`].
pub fn selected(ctx: &Context, args: &AnswersArgs) -> Result<Vec<PathBuf>, RunError> {
    Ok(match select::select(ctx, args, false)? {
        Selected::Nothing(_) => Vec::new(),
        Selected::These(selection) => selection.targets.into_iter().map(|target| target.file).collect(),
    })
}

fn finish(ctx: &Context, args: &AnswersArgs, job: &Job<'_>, done: Done) -> (Item, Vec<Finding>) {
    let mut verdict = done.verdict;
    if args.fail_on_skip && verdict.status == ItemStatus::Skip {
        verdict.status = ItemStatus::Fail;
        verdict.findings.push(Finding::new(&table::SKIP_FORBIDDEN, Location::file(job.target.path.clone())));
    }
    let mut item = Item::new(job.target.path.clone(), verdict.status);
    item.mode = Some(job.mode.name());
    item.duration = Some(done.duration);
    item.project = project_of(ctx, &job.target.path);
    if !verdict.missing.is_empty() {
        let modules: Vec<&str> = verdict.missing.iter().map(|(module, ..)| module.as_str()).collect();
        let modules = modules.join(", ");
        item.detail = Some(Localized::both(format!("missing: {modules}"), format!("缺少：{modules}")));
    }
    if let Ok(plan) = &job.plan {
        verdict.findings.extend(notes(job, plan));
    }
    (item, verdict.findings)
}

fn project_of(ctx: &Context, path: &RepoPath) -> Option<u32> {
    ctx.settings.project.iter().find(|project| project.notebook == path.as_str()).map(|project| project.id)
}

/// What a reader should know about how the notebook was run.
fn notes(job: &Job<'_>, plan: &Plan) -> Vec<Finding> {
    let at = |cell: u32| Location::file(job.target.path.clone()).cell(cell);
    let leans = plan.leans.iter().filter(|lean| !lean.names.is_empty()).map(|lean| {
        let names: Vec<String> = lean.names.iter().map(|name| format!("`{name}`")).collect();
        Finding::new(&table::CONTEXT_USED, at(lean.cell)).arg("names", names.join(", "))
    });
    let magics = plan.magics.iter().map(|(cell, magic)| {
        Finding::new(&table::MAGIC_NOT_RUN, at(*cell).line(magic.line)).arg("magic", magic.text.trim())
    });
    leans.chain(magics).collect()
}

// Planning ------------------------------------------------------------------------

/// Plans every notebook in every mode, on a thread whose stack bears what the parser takes.
fn plan_all<'a>(ctx: &Context, targets: &'a [Target], mode: AnswerMode) -> Vec<Job<'a>> {
    std::thread::scope(|scope| {
        let work = || targets.iter().flat_map(|target| plan_one(ctx, target, mode)).collect();
        let thread = std::thread::Builder::new().stack_size(PARSE_STACK).spawn_scoped(scope, work);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(jobs)) => jobs,
            // No room for the stack: plan here; only hostile nesting needs the room.
            _ => targets.iter().flat_map(|target| plan_one(ctx, target, mode)).collect(),
        }
    })
}

fn plan_one<'a>(ctx: &Context, target: &'a Target, mode: AnswerMode) -> Vec<Job<'a>> {
    let modes: &[Mode] = match (target.inline, mode) {
        (true, _) | (_, AnswerMode::Inline) => &[Mode::Inline],
        (_, AnswerMode::Answer) => &[Mode::Answer],
        (_, AnswerMode::Question) => &[Mode::Question],
        (_, AnswerMode::Both) => &[Mode::Question, Mode::Answer],
    };
    let sections = read(ctx, target);
    modes
        .iter()
        .map(|mode| {
            let plan = match &sections {
                Ok(sections) => planned(ctx, target, sections, *mode),
                Err(finding) => Err(error(finding.clone())),
            };
            Job { target, mode: *mode, plan }
        })
        .collect()
}

fn error(finding: Finding) -> Verdict {
    Verdict { status: ItemStatus::Error, findings: vec![finding], missing: Vec::new() }
}

fn read(ctx: &Context, target: &Target) -> Result<Sections, Finding> {
    let at = || Location::file(target.path.clone());
    let bytes = std::fs::read(&target.file)
        .map_err(|error| Finding::new(&rules::run::UNREADABLE, at()).arg("cause", error.to_string()))?;
    let notebook = Notebook::read(&bytes).map_err(|error| {
        let (line, column) = error.place();
        let at = at().line(line).column(column);
        Finding::new(&table::UNREADABLE, at).arg("cause", error.to_string())
    })?;
    if let Some(fault) = notebook.faults.iter().find(|fault| is_code(&notebook, fault.cell)) {
        let cause = Localized::both("a code cell has no readable source", "有代码单元格没有可读的 source");
        return Err(Finding::new(&table::UNREADABLE, at().cell(fault.cell)).arg("cause", cause));
    }
    let course = &ctx.settings.course;
    Ok(Sections::of(&notebook, &course.answer_markers, &course.stop_markers))
}

fn is_code(notebook: &Notebook, cell: u32) -> bool {
    notebook.cell(cell).is_some_and(|cell| cell.kind == crate::notebook::CellKind::Code)
}

/// The plan, or the verdict of a notebook that cannot run: sections that are missing,
/// cells that do not parse, results of magics that are needed.
fn planned(ctx: &Context, target: &Target, sections: &Sections, mode: Mode) -> Result<Plan, Verdict> {
    let at = || Location::file(target.path.clone());
    let plan = Plan::of(sections, mode).map_err(|gap| error(gap_finding(ctx, target, gap)))?;
    if !plan.faults.is_empty() {
        let findings = plan.faults.iter().map(|(cell, fault)| {
            let at = at().cell(*cell).line(fault.line).column(fault.column);
            Finding::new(&table::SYNTAX, at).arg("message", format!("SyntaxError: {}", fault.message))
        });
        let findings = findings.collect();
        return Err(Verdict { status: ItemStatus::Fail, findings, missing: Vec::new() });
    }
    if !plan.unbound.is_empty() {
        let findings = plan.unbound.iter().map(|unbound| {
            Finding::new(&table::MAGIC_RESULT_NEEDED, at().cell(unbound.cell).line(unbound.magic.line))
                .arg("name", &unbound.name)
                .arg("magic", unbound.magic.text.trim())
        });
        return Err(Verdict { status: ItemStatus::Error, findings: findings.collect(), missing: Vec::new() });
    }
    Ok(plan)
}

fn gap_finding(ctx: &Context, target: &Target, gap: Gap) -> Finding {
    let at = Location::file(target.path.clone());
    match gap {
        Gap::Code => Finding::new(&table::NO_CODE, at),
        Gap::AnswerSection => {
            let marker = ctx.settings.course.answer_markers.first().map_or("Answer", String::as_str);
            Finding::new(&table::NO_ANSWER_SECTION, at).arg("marker", marker)
        }
        Gap::AnswerCode(cell) => Finding::new(&table::NO_ANSWER_CODE, at.cell(cell)),
        Gap::Test => Finding::new(&table::NO_TEST, at),
    }
}

// Running -----------------------------------------------------------------------------

fn without_run(job: &Job<'_>) -> Done {
    let verdict = job.plan.as_ref().err().cloned().unwrap_or_else(|| Verdict {
        status: ItemStatus::Error,
        findings: Vec::new(),
        missing: Vec::new(),
    });
    Done { verdict, duration: Duration::ZERO }
}

fn wishes(ctx: &Context, args: &AnswersArgs, count: usize) -> Wishes {
    let settings = &ctx.settings.answers;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.filter(|jobs| *jobs > 0).unwrap_or(if settings.jobs > 0 { settings.jobs } else { cores });
    let named = (!settings.python.is_empty()).then(|| program(&ctx.root, Path::new(&settings.python)));
    let memory = args.memory.unwrap_or(settings.memory_mb);
    Wishes {
        python: args.python.as_ref().map(|path| program(&ctx.cwd, path)).or(named),
        jobs: jobs.clamp(1, count.max(1)),
        preload: settings.preload && !args.no_preload,
        sandbox: args.sandbox.unwrap_or(settings.sandbox),
        memory: (memory > 0).then_some(memory.min(MAX_MEMORY_MB) << 20),
    }
}

/// A bare name is looked for on PATH, anything longer is a path.
fn program(base: &Path, name: &Path) -> PathBuf {
    if name.components().count() > 1 { base.join(name) } else { name.to_path_buf() }
}

fn run_all(ctx: &Context, args: &AnswersArgs, jobs: &[Job<'_>], findings: &mut Vec<Finding>) -> Vec<Option<Done>> {
    let planned: Vec<(&Target, &Plan)> =
        jobs.iter().filter_map(|job| Some((job.target, job.plan.as_ref().ok()?))).collect();
    let wishes = wishes(ctx, args, planned.len());
    let runner = match Runner::new(ctx, &wishes, &planned, wishes.jobs) {
        Ok(runner) => runner,
        Err(refusal) => {
            findings.push(refused(&refusal));
            return jobs.iter().map(|job| Some(without_run(job))).collect();
        }
    };
    findings.extend(about_run(&runner, wishes.sandbox));
    // Where writing is walled off, nothing a notebook does can change the repository.
    let before = runner.walls.writable.is_none().then(|| Tree::of(&ctx.root));
    let done = work(ctx, &runner, jobs, wishes.jobs);
    if args.prove {
        let (unnoticed, tried) = prove::prove(ctx, &runner, jobs, &done, wishes.jobs);
        findings.extend(unnoticed);
        findings.push(Finding::new(&table::PROVED, Location::file(RepoPath::new("."))).arg("count", tried));
    }
    if let Some(before) = before {
        findings.extend(changed_files(ctx, &before.changes(&Tree::of(&ctx.root))));
    }
    findings.extend(missing_modules(&runner, jobs, &done));
    done
}

fn refused(refusal: &Refusal) -> Finding {
    let at = Location::file(RepoPath::new("."));
    match refusal {
        Refusal::Python(cause) => Finding::new(&table::NO_PYTHON, at).arg("cause", cause.clone()),
        Refusal::Walls(en, zh) => Finding::new(&table::SANDBOX_UNAVAILABLE, at).arg("what", Localized::both(*en, *zh)),
        Refusal::Process(error) => {
            let (cause, help) = crate::process::explain(error);
            let finding = Finding::new(&table::NO_PROCESS, at).arg("cause", cause);
            help.into_iter().fold(finding, Finding::help)
        }
        Refusal::Io(error) => Finding::new(&table::NO_SCRATCH, at)
            .arg("folder", std::env::temp_dir().display().to_string())
            .arg("cause", error.to_string()),
    }
}

/// Which walls held, and whether shared modules were imported ahead.
fn about_run(runner: &Runner<'_>, sandbox: Sandbox) -> Vec<Finding> {
    let at = || Location::file(RepoPath::new("."));
    let mut findings = Vec::new();
    if sandbox != Sandbox::Off {
        findings.push(Finding::new(&table::SANDBOX, at()).arg("held", held(&runner.walls)));
    }
    if let Some(cause) = &runner.preload_failed {
        findings.push(Finding::new(&table::PRELOAD_FAILED, at()).arg("cause", cause));
    }
    findings
}

fn held(walls: &Walls) -> Localized {
    let (write, write_zh) = match walls.writable {
        Some(_) => ("no writing outside the scratch folder (Landlock)", "不能写入临时目录以外（Landlock）"),
        None => (
            "writing not restricted (no Landlock); the repository is compared afterwards",
            "写入不受限（没有 Landlock），结束后比对仓库",
        ),
    };
    let (network, network_zh) = match walls.network {
        Some(Network::Namespace) => ("no network (empty namespace)", "没有网络（空的网络命名空间）"),
        Some(Network::Seccomp) => ("no network sockets (seccomp)", "不能创建网络套接字（seccomp）"),
        None => ("network not restricted", "网络不受限"),
    };
    Localized::both(format!("{write}; {network}"), format!("{write_zh}；{network_zh}"))
}

/// Does `work` on `workers` threads, this one among them: where the system gives no more
/// threads, those that there are do it all.
fn on_threads(workers: usize, work: &(impl Fn() + Sync)) {
    std::thread::scope(|scope| {
        for _ in 1..workers {
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

/// Runs the jobs on `workers` threads. The result is in the order of the jobs, whatever
/// the workers do; a job that an interrupt left out has none.
fn work(ctx: &Context, runner: &Runner<'_>, jobs: &[Job<'_>], workers: usize) -> Vec<Option<Done>> {
    let phase = ctx.progress.start("answers", jobs.len() as u64);
    let results: Vec<Mutex<Option<Done>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    on_threads(workers, &|| {
        while !ctx.cancel.is_set() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { break };
            let done = one(ctx, runner, index, job);
            if ctx.cancel.is_set() {
                break;
            }
            phase.step(&format!("{} {}", job.target.path, done.verdict.status.name()));
            *results[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        }
    });
    results.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

fn one(_ctx: &Context, runner: &Runner<'_>, index: usize, job: &Job<'_>) -> Done {
    let Ok(plan) = &job.plan else { return without_run(job) };
    let began = Instant::now();
    let case = Case {
        path: &job.target.path,
        mode: job.mode,
        plan,
        timeout: job.target.timeout,
        walled: runner.walled(),
        memory: runner.memory,
    };
    let verdict = match runner.run(index, job.target, plan) {
        Ok((run, left)) => {
            let mut verdict = case.judge(&run);
            verdict.findings.extend(left.iter().map(|command| {
                Finding::new(&table::LEFT_PROCESS, Location::file(job.target.path.clone())).arg("command", command)
            }));
            if !verdict.missing.is_empty() {
                let known = runner.missing(job.target, plan);
                verdict.missing.extend(known.into_iter().map(|(module, cell, line)| (module, Some(cell), Some(line))));
                verdict.missing.sort();
                verdict.missing.dedup_by(|a, b| a.0 == b.0);
            }
            verdict
        }
        Err(cause) => {
            let at = Location::file(job.target.path.clone());
            error(Finding::new(&table::INTERPRETER_FAILED, at).arg("how", cause.to_string()))
        }
    };
    Done { verdict, duration: began.elapsed() }
}

/// At most so many changed files are named.
const MAX_CHANGES: usize = 50;

fn changed_files(ctx: &Context, changes: &[(PathBuf, Change)]) -> Vec<Finding> {
    changes
        .iter()
        .take(MAX_CHANGES)
        .map(|(path, change)| {
            let path = ctx.repo_path(path);
            let (en, zh) = match change {
                Change::Added => ("appeared", "多出了"),
                Change::Changed => ("was changed", "改动了"),
                Change::Removed => ("was removed", "删除了"),
            };
            let text = Localized::both(format!("{path} {en}"), format!("{zh} {path}"));
            Finding::new(&table::CHANGED_FILES, Location::file(path)).arg("change", text)
        })
        .collect()
}

/// Each missing module once, at the first notebook that needs it.
fn missing_modules(runner: &Runner<'_>, jobs: &[Job<'_>], done: &[Option<Done>]) -> Vec<Finding> {
    let mut needed: BTreeMap<&str, (Location, BTreeSet<&str>)> = BTreeMap::new();
    for (job, done) in jobs.iter().zip(done) {
        let missing = done.iter().flat_map(|done| &done.verdict.missing);
        for (module, cell, line) in missing {
            let at = || Location::file(job.target.path.clone()).cell(*cell).line(*line).target(module);
            needed.entry(module).or_insert_with(|| (at(), Default::default())).1.insert(job.target.path.as_str());
        }
    }
    let modules: Vec<String> = needed.keys().map(|module| (*module).to_owned()).collect();
    let install = interpreter::install_command(&runner.interpreter.executable, &modules);
    let finding = |(module, (at, notebooks)): (&str, (Location, BTreeSet<&str>))| {
        Finding::new(&table::MISSING_MODULE, at)
            .arg("module", module)
            .arg("count", notebooks.len())
            .arg("install", install.as_str())
    };
    needed.into_iter().map(finding).collect()
}
