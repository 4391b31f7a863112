//! Which files are judged.

use crate::cli::StaticArgs;
use crate::course::{Context, Excludes, FileKind, check_regular, may_be_file, walk};
use crate::error::RunError;
use crate::model::{Finding, Localized, Location};
use crate::rules;
use crate::{config, config::Settings};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The files to judge, and notes about those that are not.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// Absolute paths, sorted, each once.
    pub(super) files: Vec<PathBuf>,
    /// Excluded paths and missing tools.
    pub(super) notes: Vec<Finding>,
}

/// Selects what the command line names, else what the run is about.
///
/// # Errors
/// A named path that matches nothing.
pub(super) fn select(ctx: &Context, args: &StaticArgs) -> Result<Selection, RunError> {
    let mut files = BTreeSet::new();
    let mut notes = Vec::new();
    if !args.paths.is_empty() {
        for named in &args.paths {
            named_path(ctx, named, &mut files, &mut notes)?;
        }
    } else {
        if ctx.projects.is_empty() {
            let walked = walk(&ctx.root, &ctx.root, &ctx.excludes, |path| FileKind::of(path).is_some());
            files.extend(walked.files);
            notes.extend(walked.unreadable.iter().map(|folder| folder.finding(&ctx.root)));
        } else {
            projects(ctx, &mut files, &mut notes);
        }
        tools(ctx, &mut files, &mut notes);
    }
    Ok(Selection { files: files.into_iter().collect(), notes })
}

fn named_path(
    ctx: &Context,
    named: &Path,
    files: &mut BTreeSet<PathBuf>,
    notes: &mut Vec<Finding>,
) -> Result<(), RunError> {
    let path = tidy(&ctx.at_cwd(named));
    let shown = named.display();
    if !path.exists() {
        return Err(RunError::usage(
            Localized::both(format!("{shown} does not exist"), format!("{shown} 不存在")),
            Localized::both("check the path; it is relative to the current folder", "请检查路径；它相对于当前目录"),
        ));
    }
    let excluded = |path: &Path| ctx.excludes.matches(&ctx.repo_path(path));
    let note = |path: &Path| Finding::new(&rules::run::EXCLUDED, Location::file(ctx.repo_path(path)));
    if path.ancestors().take_while(|above| *above != ctx.root).any(excluded) {
        notes.push(note(&path));
        return Ok(());
    }
    check_regular(&path)?;
    let is_source = |path: &Path| FileKind::of(path).is_some();
    if path.is_file() {
        if !is_source(&path) {
            return Err(RunError::usage(
                Localized::both(
                    format!("{shown} is neither a Python file nor a notebook"),
                    format!("{shown} 既不是 Python 文件也不是 notebook"),
                ),
                Localized::both(
                    "name .py and .ipynb files, or folders that hold them",
                    "请给出 .py、.ipynb 文件或包含它们的文件夹",
                ),
            ));
        }
        files.insert(path);
        return Ok(());
    }
    let found = walk(&ctx.root, &path, &ctx.excludes, is_source);
    notes.extend(found.unreadable.iter().map(|folder| folder.finding(&ctx.root)));
    if found.files.is_empty() && found.unreadable.is_empty() {
        if walk(&ctx.root, &path, &Excludes::default(), is_source).files.is_empty() {
            return Err(RunError::usage(
                Localized::both(
                    format!("{shown} holds no Python file and no notebook"),
                    format!("{shown} 中没有 Python 文件或 notebook"),
                ),
                Localized::both(
                    "check the path; hidden and ignored files are passed over",
                    "请检查路径；隐藏文件和被忽略的文件会跳过",
                ),
            ));
        }
        notes.push(note(&path));
    }
    files.extend(found.files);
    Ok(())
}

/// Without `.` and `..`, so that a file has one name however it was typed.
fn tidy(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

fn projects(ctx: &Context, files: &mut BTreeSet<PathBuf>, notes: &mut Vec<Finding>) {
    for project in ctx.chosen_projects().filter(|project| !project.notebook.is_empty()) {
        let path = ctx.at_root(&project.notebook);
        if may_be_file(&path) {
            files.insert(path);
        } else {
            let at = Location::file(ctx.repo_path(&path));
            notes.push(Finding::new(&rules::static_checks::NOTEBOOK_MISSING, at).arg("project", project.id));
        }
    }
}

/// The tools of the course are judged wherever they lie. One that is missing is worth a
/// word only if the user listed it.
fn tools(ctx: &Context, files: &mut BTreeSet<PathBuf>, notes: &mut Vec<Finding>) {
    let listed_by_user = ctx.settings.course.tools != builtin_tools();
    for tool in &ctx.settings.course.tools {
        let path = ctx.at_root(tool);
        if ctx.excludes.matches(&ctx.repo_path(&path)) {
            continue;
        }
        if may_be_file(&path) {
            files.insert(path);
        } else if listed_by_user {
            notes.push(Finding::new(&rules::static_checks::TOOL_MISSING, Location::file(ctx.repo_path(&path))));
        }
    }
}

fn builtin_tools() -> Vec<String> {
    toml::from_str::<Settings>(config::BUILTIN).map(|settings| settings.course.tools).unwrap_or_default()
}
