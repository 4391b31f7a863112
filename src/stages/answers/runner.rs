//! Everything the notebooks of one run share: interpreter, walls, fork server, folders.

use super::child::{self, Launch, Watch};
use super::interpreter::{self, Ask, Interpreter};
use super::plan::Plan;
use super::processes::Known;
use super::sandbox::{Sandbox, Walls};
use super::scratch::Scratch;
use super::select::Target;
#[cfg(unix)]
use super::server::Server;
#[cfg(unix)]
use super::verdict::End;
use super::verdict::Run;
use crate::course::Context;
use crate::model::Localized;
use crate::process::{self, Sweeper};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// How long shared imports may take.
#[cfg(unix)]
const PRELOAD_PATIENCE: Duration = Duration::from_secs(180);

/// What is asked of a run.
#[derive(Debug, Clone)]
pub(super) struct Wishes {
    /// Interpreter named by the user.
    pub(super) python: Option<PathBuf>,
    /// Notebooks at a time.
    pub(super) jobs: usize,
    /// Import shared modules once.
    pub(super) preload: bool,
    /// Walls.
    pub(super) sandbox: Sandbox,
    /// Bytes for one notebook; `None`: no limit.
    pub(super) memory: Option<u64>,
}

/// Why a run cannot begin.
#[derive(Debug)]
pub(super) enum Refusal {
    /// No interpreter, with the cause.
    Python(Localized),
    /// Walls that were demanded and are not to be had: network, writing.
    Walls(&'static str, &'static str),
    /// The process that cleans up after the run does not start.
    Process(io::Error),
    /// The scratch folder.
    Io(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Refusal::Io(error)
    }
}

/// The shared part of a run.
pub(super) struct Runner<'a> {
    ctx: &'a Context,
    /// Ends and removes what a SIGKILL of ours would leave; dropped before the folder.
    _sweeper: Sweeper,
    folder: TempDir,
    driver: PathBuf,
    /// The interpreter.
    pub(super) interpreter: Interpreter,
    environment: Vec<(OsString, OsString)>,
    /// Walls that stand.
    pub(super) walls: Walls,
    /// Bytes for one notebook.
    pub(super) memory: Option<u64>,
    known: Known,
    #[cfg(unix)]
    server: Option<Server>,
    /// Why shared modules were not imported ahead.
    pub(super) preload_failed: Option<String>,
}

/// A path below `parent` that nobody has and nobody guesses.
fn new_name(parent: &Path) -> PathBuf {
    // Seeded by the system, anew for every hasher.
    let random = std::hash::RandomState::new().hash_one(std::process::id());
    parent.join(format!("verify-answers-{random:016x}"))
}

/// The folder of that very name, for us alone; removed when it is dropped.
fn made(path: &Path) -> std::io::Result<tempfile::TempDir> {
    let name = path.file_name().unwrap_or_default();
    tempfile::Builder::new().prefix(name).rand_bytes(0).tempdir_in(path.parent().unwrap_or(Path::new(".")))
}

impl<'a> Runner<'a> {
    /// Finds the interpreter, builds the walls, imports what notebooks share.
    pub(super) fn new(
        ctx: &'a Context,
        wishes: &Wishes,
        jobs: &[(&Target, &Plan)],
        in_session: usize,
    ) -> Result<Runner<'a>, Refusal> {
        // The sweeper knows of the folder before it is there: whenever we are killed, it goes.
        let path = new_name(&std::env::temp_dir().canonicalize()?);
        let mark = path.to_string_lossy().into_owned();
        let sweeper = Sweeper::start(&mark, &path).map_err(Refusal::Process)?;
        let folder = made(&path)?;
        let driver = path.join("driver.py");
        fs::write(&driver, interpreter::DRIVER)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (cores / in_session.max(1)).max(1);
        let mut environment = interpreter::clean_environment(std::env::vars_os(), threads);
        let known = Known::default();
        known.lock().insert(i32::try_from(sweeper.pid()).unwrap_or(0));
        interpreter::set(&mut environment, process::MARK, mark);
        let asks = asks(ctx, jobs);
        let interpreter = interpreter::find(wishes.python.as_deref(), &path, &driver, asks, &environment, &ctx.cancel)
            .map_err(Refusal::Python)?;
        let walls = walls(wishes.sandbox, &path)?;
        redirect_caches(&mut environment, &path)?;
        if walls.writable.is_some() {
            new_home(&mut environment, &path, interpreter.user_base.as_deref())?;
        }
        super::processes::adopt_orphans(true);
        let mut runner = Runner {
            ctx,
            _sweeper: sweeper,
            folder,
            driver,
            interpreter,
            environment,
            walls,
            memory: wishes.memory,
            known,
            #[cfg(unix)]
            server: None,
            preload_failed: None,
        };
        if wishes.preload {
            runner.preload(jobs);
        }
        Ok(runner)
    }

    fn launch(&self, arguments: &[&str]) -> Launch {
        let mut command: Vec<OsString> = self.prefix();
        command.extend([self.interpreter.executable.clone().into(), self.driver.clone().into()]);
        command.extend(arguments.iter().map(OsString::from));
        Launch { command, environment: self.environment.clone(), cwd: self.folder.path().to_path_buf() }
    }

    /// This program, which builds the walls and becomes the interpreter.
    fn prefix(&self) -> Vec<OsString> {
        match (std::env::current_exe(), serde_json::to_string(&self.walls)) {
            (Ok(program), Ok(walls)) if cfg!(unix) => vec![program.into(), "__confine".into(), walls.into()],
            _ => Vec::new(),
        }
    }

    /// Modules that at least two notebooks would import from the same file.
    fn shared_modules(&self, jobs: &[(&Target, &Plan)]) -> (Vec<String>, Vec<PathBuf>) {
        let mut notebooks: BTreeMap<&str, BTreeSet<&Path>> = BTreeMap::new();
        let mut origins: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
        for (target, plan) in jobs.iter().filter(|(_, plan)| !plan.sets_environment) {
            for ask in asks_of(self.ctx, target, plan) {
                let Some((ask, found)) = self.interpreter.modules.get_key_value(&ask) else { continue };
                let Some(origin) = found.origin.as_deref().filter(|_| !found.standard) else { continue };
                notebooks.entry(&ask.module).or_default().insert(&target.file);
                origins.entry(&ask.module).or_default().insert(origin);
                paths.extend(ask.path.iter().filter(|folder| Path::new(origin).starts_with(folder)).cloned());
            }
        }
        let shared = |module: &&str| notebooks[*module].len() >= 2 && origins[*module].len() == 1;
        (notebooks.keys().copied().filter(shared).map(str::to_owned).collect(), paths.into_iter().collect())
    }

    #[cfg(unix)]
    fn preload(&mut self, jobs: &[(&Target, &Plan)]) {
        let (modules, paths) = self.shared_modules(jobs);
        if jobs.len() < 2 {
            return;
        }
        let launch = self.launch(&["serve"]);
        match Server::start(&launch, &modules, &paths, PRELOAD_PATIENCE, &self.ctx.cancel, &self.known) {
            Ok(server) => {
                let failed: Vec<String> =
                    server.failed.iter().map(|(name, cause)| format!("{name} ({cause})")).collect();
                self.preload_failed = (!failed.is_empty()).then(|| failed.join("; "));
                self.server = Some(server);
            }
            Err(error) => self.preload_failed = Some(error.to_string()),
        }
    }

    #[cfg(not(unix))]
    fn preload(&mut self, _jobs: &[(&Target, &Plan)]) {}

    /// Runs one plan. The second value lists processes that the notebook left.
    pub(super) fn run(&self, number: usize, target: &Target, plan: &Plan) -> io::Result<(Run, Vec<String>)> {
        let folder = target.file.parent().unwrap_or(&self.ctx.root);
        let scratch = Scratch::make(self.folder.path().join(number.to_string()), &self.ctx.root, folder)?;
        let nonce = nonce();
        let plan_file = self.write_plan(&scratch, folder, plan, &nonce)?;
        let stack = scratch.top.join("stack.txt");
        let watch = Watch {
            nonce: &nonce,
            timeout: limit(target.timeout),
            stack: &stack,
            cells: &scratch.cells,
            cancel: &self.ctx.cancel,
            known: &self.known,
        };
        #[cfg(unix)]
        if let Some(server) = self.server.as_ref().filter(|_| !plan.sets_environment) {
            match server.run(&plan_file, &watch) {
                Ok((run, _)) if run.end == End::Lost => {}
                Ok(done) => return Ok(done),
                Err(_) => {}
            }
            // The server is gone; the notebook runs once more, on its own.
            self.write_plan(&scratch, folder, plan, &nonce)?;
        }
        child::run_fresh(&self.launch(&["run", &plan_file.to_string_lossy()]), &watch)
    }

    fn write_plan(&self, scratch: &Scratch, folder: &Path, plan: &Plan, nonce: &str) -> io::Result<PathBuf> {
        let mut steps = Vec::new();
        let mut script = String::from("# What spawned workers import: the definitions of the notebook.\n");
        for (number, step) in plan.steps.iter().enumerate() {
            // A cell runs once in most plans; context of one cell may come in two pieces.
            let name = if plan.steps[..number].iter().any(|other| other.cell == step.cell) {
                format!("{}-{number}.py", step.cell)
            } else {
                format!("{}.py", step.cell)
            };
            let file = scratch.cells.join(name);
            fs::write(&file, &step.text)?;
            script.push_str(&step.worker_text);
            script.push('\n');
            steps.push(serde_json::json!({
                "cell": step.cell, "role": step.role, "file": file, "tests": step.tests, "pure": step.pure,
            }));
        }
        let script_file = scratch.top.join("notebook.py");
        fs::write(&script_file, script)?;
        let plan_file = scratch.top.join("plan.json");
        let text = serde_json::json!({
            "nonce": nonce,
            "steps": steps,
            "script": script_file,
            "path": [folder, &self.ctx.root, Path::new("")],
            "cwd": scratch.cwd,
            "sentences": self.ctx.settings.answers.skip_sentences,
            "memory": self.memory,
            "stack": scratch.top.join("stack.txt"),
            "environment": {"TMPDIR": scratch.temporary, "TEMP": scratch.temporary, "TMP": scratch.temporary},
        });
        fs::write(&plan_file, text.to_string())?;
        Ok(plan_file)
    }

    /// Whether any wall stands.
    pub(super) fn walled(&self) -> bool {
        self.walls != Walls::default()
    }

    /// Modules of a plan that are not there.
    pub(super) fn missing(&self, target: &Target, plan: &Plan) -> Vec<(String, u32, u32)> {
        let path = import_path(self.ctx, target);
        let imports = plan.steps.iter().flat_map(|step| step.imports.iter().map(|import| (step.cell, import)));
        imports
            .filter(|(_, import)| import.required)
            .filter(|(_, import)| {
                let ask = Ask { module: import.module.clone(), path: path.clone() };
                self.interpreter.modules.get(&ask).is_some_and(|found| found.origin.is_none() && !found.standard)
            })
            .map(|(cell, import)| (import.module.clone(), cell, import.line))
            .collect()
    }
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        #[cfg(unix)]
        {
            if let Some(server) = &self.server {
                server.stop(&self.known);
            }
            super::processes::sweep(&self.known);
        }
        super::processes::adopt_orphans(false);
    }
}

/// Settings may hold any number: at least a moment, at most a day.
fn limit(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.clamp(0.1, 86_400.0)).unwrap_or(Duration::from_secs(30))
}

fn import_path(ctx: &Context, target: &Target) -> Vec<PathBuf> {
    let folder = target.file.parent().unwrap_or(&ctx.root).to_path_buf();
    if folder == ctx.root { vec![folder] } else { vec![folder, ctx.root.clone()] }
}

fn asks_of(ctx: &Context, target: &Target, plan: &Plan) -> Vec<Ask> {
    let path = import_path(ctx, target);
    let imports = plan.steps.iter().flat_map(|step| &step.imports);
    imports.map(|import| Ask { module: import.module.clone(), path: path.clone() }).collect()
}

fn asks(ctx: &Context, jobs: &[(&Target, &Plan)]) -> Vec<Ask> {
    let all: BTreeSet<Ask> = jobs.iter().flat_map(|(target, plan)| asks_of(ctx, target, plan)).collect();
    all.into_iter().collect()
}

fn walls(sandbox: Sandbox, folder: &Path) -> Result<Walls, Refusal> {
    if sandbox == Sandbox::Off {
        return Ok(Walls::default());
    }
    let walls = super::sandbox::probe(folder);
    match (sandbox, &walls.writable, walls.network) {
        (Sandbox::On, None, _) => Err(Refusal::Walls("way to forbid writing (Landlock)", "禁止写入的机制（Landlock）")),
        (Sandbox::On, _, None) => Err(Refusal::Walls(
            "way to cut off the network (namespace or seccomp)",
            "断开网络的机制（命名空间或 seccomp）",
        )),
        _ => Ok(walls),
    }
}

/// Caches go to the folder of the run; models that are there already stay readable.
fn redirect_caches(environment: &mut Vec<(OsString, OsString)>, run: &Path) -> io::Result<()> {
    let home = interpreter::get(environment, "HOME").map(PathBuf::from);
    let cache = interpreter::get(environment, "XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| home.map(|home| home.join(".cache")));
    if let Some(cache) = cache {
        for (name, folder) in [("HF_HOME", "huggingface"), ("TORCH_HOME", "torch")] {
            if interpreter::get(environment, name).is_none() {
                interpreter::set(environment, name, cache.join(folder));
            }
        }
    }
    for (name, folder) in [
        ("XDG_CACHE_HOME", "cache"),
        ("MPLCONFIGDIR", "cache/matplotlib"),
        ("TRITON_CACHE_DIR", "cache/triton"),
        ("TORCH_EXTENSIONS_DIR", "cache/torch_extensions"),
        ("TMPDIR", "tmp"),
    ] {
        fs::create_dir_all(run.join(folder))?;
        interpreter::set(environment, name, run.join(folder));
    }
    Ok(())
}

/// Where writing to the home folder is forbidden, programs get one of their own.
fn new_home(environment: &mut Vec<(OsString, OsString)>, run: &Path, user_base: Option<&str>) -> io::Result<()> {
    let home = run.join("home");
    fs::create_dir_all(&home)?;
    interpreter::set(environment, "HOME", &home);
    if let Some(base) = user_base {
        interpreter::set(environment, "PYTHONUSERBASE", base);
    }
    Ok(())
}

/// A word that nobody can guess.
fn nonce() -> String {
    let random = || std::collections::hash_map::RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scratch_folder_has_the_name_that_its_sweeper_was_told() {
        let parent = tempfile::tempdir().unwrap();
        let (path, other) = (new_name(parent.path()), new_name(parent.path()));
        assert_ne!(path, other);
        let folder = made(&path).unwrap();
        assert_eq!(folder.path(), path);
        assert!(made(&path).is_err(), "somebody else's folder is never taken for ours");
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn any_number_of_seconds_is_a_limit() {
        assert_eq!(limit(2.5), Duration::from_millis(2500));
        assert_eq!(limit(-1.0), Duration::from_millis(100));
        assert_eq!(limit(f64::INFINITY), Duration::from_secs(86_400));
        assert_eq!(limit(f64::NAN), Duration::from_secs(30));
    }
}
