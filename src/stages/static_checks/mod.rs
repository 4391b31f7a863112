//! `verify static`: every Python file and every code cell compiles for the target
//! version, notebooks are well-formed, and tests can fail. No Python is needed.
//!
//! [`files`] selects, a pool of threads with deep stacks works, [`python`] and
//! [`notebook`] judge one file each. Below them, pure: [`judge`] takes a text to its
//! faults; [`explain`] finds words for what does not parse, [`semantic`], [`symbols`],
//! [`extra`] and [`limits`] find what only CPython's compiler refuses, [`lint`] finds
//! tests that prove nothing. [`interpreter`] asks a real Python for a second opinion.

mod characters;
mod explain;
mod extra;
mod fault;
mod files;
mod interpreter;
mod judge;
mod limits;
mod lint;
mod mask;
mod notebook;
mod pool;
mod python;
mod semantic;
mod symbols;
mod words;

use crate::cli::StaticArgs;
use crate::course::{Context, FileKind};
use crate::error::RunError;
use crate::model::{Finding, Localized, Location, Outcome, Summary};
use crate::python::{Target, version};
use crate::rules;
use interpreter::Sources;
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Files larger than this hold data, not code (bytes).
const MAX_PYTHON: u64 = 16 << 20;
/// Notebooks may hold pictures in their outputs (bytes).
const MAX_NOTEBOOK: u64 = 256 << 20;

/// What every file is judged with.
#[derive(Debug)]
struct Task<'a> {
    ctx: &'a Context,
    target: Target,
    /// Bytes of stack of each worker.
    stack: usize,
    /// Units kept for the real interpreter, if one was named.
    sources: Option<Sources>,
}

/// What became of one file.
#[derive(Debug, Default)]
struct Verdict {
    findings: Vec<Finding>,
    /// Code cells judged.
    cells: usize,
}

/// Runs the stage.
///
/// # Errors
/// A fault of usage: nothing was checked.
pub fn run(ctx: &Context, args: &StaticArgs) -> Result<Outcome, RunError> {
    let target = Target::resolve(args.target_version.as_deref(), &ctx.settings.r#static.target_version, &ctx.root)
        .map_err(|text| unknown_version(&text))?;
    let selection = files::select(ctx, args)?;
    let (pool, stack) = pool::build()?;
    let task = Task { ctx, target, stack, sources: args.python.as_ref().map(|_| Sources::default()) };
    let verdicts: Vec<Verdict> =
        pool.install(|| selection.files.par_iter().map(|path| check_file(&task, path)).collect());
    let mut findings = selection.notes;
    let cells = verdicts.iter().map(|verdict| verdict.cells).sum::<usize>();
    findings.extend(verdicts.into_iter().flat_map(|verdict| verdict.findings));
    if let (Some(python), Some(sources)) = (&args.python, task.sources) {
        findings.extend(interpreter::compare(ctx, python, target, sources)?);
    }
    let judged = selection.files.len();
    Ok(Outcome::ran(judged, Summary::new().with("files", judged).with("cells", cells), Vec::new(), findings))
}

fn unknown_version(text: &str) -> RunError {
    let known = version::known();
    RunError::usage(
        Localized::both(
            format!("`{text}` is no Python version that can be judged for"),
            format!("无法按 Python 版本 `{text}` 检查"),
        ),
        Localized::both(format!("known versions: {known}"), format!("可用版本：{known}")),
    )
}

/// Judges one file. Whatever is in it, the others are judged too.
fn check_file(task: &Task<'_>, path: &Path) -> Verdict {
    if task.ctx.cancel.is_set() {
        return Verdict::default();
    }
    let shown = task.ctx.repo_path(path);
    let fail = |finding: Finding| Verdict { findings: vec![finding], cells: 0 };
    let at = || Location::file(shown.clone());
    let is_notebook = FileKind::of(path) == Some(FileKind::Notebook);
    let limit = if is_notebook { MAX_NOTEBOOK } else { MAX_PYTHON };
    let size = std::fs::metadata(path).map_or(0, |known| known.len());
    if size > limit {
        let finding = Finding::new(&rules::static_checks::TOO_LARGE, at());
        return fail(finding.arg("size", size >> 20).arg("limit", limit >> 20));
    }
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => return fail(Finding::new(&rules::run::UNREADABLE, at()).arg("cause", error.to_string())),
    };
    // Nothing is shared that a panic could leave half changed.
    let judged = catch_unwind(AssertUnwindSafe(|| {
        if is_notebook { notebook::check(task, &shown, &bytes) } else { python::check(task, &shown, &bytes) }
    }));
    judged.unwrap_or_else(|cause| {
        let cause = cause
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default();
        fail(Finding::new(&rules::static_checks::CHECKER, at()).arg("cause", cause))
    })
}

/// What the fuzz targets reach: judges one text, with the stack that the fuzzer runs on.
#[cfg(fuzzing)]
pub(crate) fn fuzz(text: &str, dialect: crate::python::Dialect) {
    let target = Target { version: ruff_python_ast::PythonVersion::PY310, origin: crate::python::Origin::Default };
    for fault in judge::judge(text, dialect, target, 64 << 20).faults {
        assert!(text.get(fault.range.clone()).is_some() || fault.range.start >= text.len(), "{fault:?}");
    }
}
