//! Which notebooks a run is about.

use crate::cli::AnswersArgs;
use crate::course::{Context, FileKind, may_be_file, walk};
use crate::error::RunError;
use crate::model::{Finding, Localized, Location, RepoPath};
use crate::rules;
use globset::Glob;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A notebook to test.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Absolute.
    pub(super) file: PathBuf,
    /// As reports show it.
    pub(super) path: RepoPath,
    /// Self-contained: every code cell runs in order.
    pub(super) inline: bool,
    /// Seconds for it.
    pub(super) timeout: f64,
}

/// What was selected.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// Sorted by path, each once.
    pub(super) targets: Vec<Target>,
    /// Excluded although named, and folders that could not be entered.
    pub(super) notes: Vec<Finding>,
}

/// Why nothing was selected without anybody being at fault.
#[derive(Debug)]
pub(super) enum Selected {
    /// These.
    These(Selection),
    /// Nothing to do, with the reason.
    Nothing(Localized),
}

/// Selects the notebooks of a run.
///
/// # Errors
/// Something named does not exist, is no notebook, or holds none.
pub(super) fn select(ctx: &Context, args: &AnswersArgs, in_chain: bool) -> Result<Selected, RunError> {
    let mut selection = Selection::default();
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    let named: Vec<&PathBuf> = args.paths.iter().chain(&args.dir).collect();
    for given in &named {
        files.extend(named_files(ctx, given, &mut selection.notes)?);
    }
    if named.is_empty() {
        files.extend(default_files(ctx, &mut selection.notes));
        if files.is_empty() && selection.notes.is_empty() {
            let reason = nothing_by_default(ctx);
            return if in_chain { Ok(Selected::Nothing(reason)) } else { Err(RunError::usage(reason, name_one())) };
        }
    }
    selection.targets = files
        .into_iter()
        .filter(|file| !ctx.excludes.matches(&ctx.repo_path(file)))
        .map(|file| target(ctx, args, file))
        .collect::<Result<_, _>>()?;
    if let Some((part, of)) = args.partition.map(|partition| (partition.part, partition.of)) {
        let mut index = 0;
        selection.targets.retain(|_| {
            index += 1;
            (index - 1) % of == part - 1
        });
    }
    Ok(Selected::These(selection))
}

fn named_files(ctx: &Context, given: &Path, notes: &mut Vec<Finding>) -> Result<Vec<PathBuf>, RunError> {
    let path = clean(&ctx.at_cwd(given));
    let shown = ctx.repo_path(&path);
    if !path.exists() {
        return Err(usage(given, "does not exist", "不存在"));
    }
    if ctx.excludes.matches(&shown) {
        notes.push(Finding::new(&rules::run::EXCLUDED, Location::file(shown)));
        return Ok(Vec::new());
    }
    if path.is_dir() {
        let before = notes.len();
        let files = notebooks_in(ctx, &path, notes);
        let nothing = files.is_empty() && notes.len() == before;
        return if nothing { Err(usage(given, "holds no notebook", "中没有笔记本")) } else { Ok(files) };
    }
    if FileKind::of(&path) != Some(FileKind::Notebook) {
        return Err(usage(given, "is no notebook (.ipynb)", "不是笔记本（.ipynb）"));
    }
    // Opening a pipe or a device would wait for whoever writes to it.
    if !path.is_file() {
        return Err(usage(given, "is no regular file", "不是普通文件"));
    }
    Ok(vec![path])
}

fn usage(given: &Path, en: &str, zh: &str) -> RunError {
    let given = given.display();
    RunError::usage(Localized::both(format!("{given} {en}"), format!("{given} {zh}")), name_one())
}

fn name_one() -> Localized {
    Localized::both(
        "name a notebook or a folder of notebooks, or set `course.notebooks` in verify.toml",
        "请指定笔记本或包含笔记本的文件夹，或在 verify.toml 中设置 `course.notebooks`",
    )
}

/// Removes `.` and resolves `..` by name, so that the path lies below the root as written.
fn clean(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if clean.file_name().is_some() => drop(clean.pop()),
            other => clean.push(other),
        }
    }
    clean
}

/// The notebooks below a folder; a finding for each folder that could not be entered.
fn notebooks_in(ctx: &Context, folder: &Path, notes: &mut Vec<Finding>) -> Vec<PathBuf> {
    let walked = walk(&ctx.root, folder, &ctx.excludes, |path| FileKind::of(path) == Some(FileKind::Notebook));
    notes.extend(walked.unreadable.iter().map(|folder| folder.finding(&ctx.root)));
    walked.files
}

fn default_files(ctx: &Context, notes: &mut Vec<Finding>) -> Vec<PathBuf> {
    if !ctx.projects.is_empty() {
        let notebooks = ctx.chosen_projects().map(|project| ctx.at_root(&project.notebook));
        return notebooks.filter(|path| may_be_file(path)).collect();
    }
    let course = &ctx.settings.course;
    let folders = course.notebooks.iter().chain(&course.inline_notebooks).map(|folder| ctx.at_root(folder));
    folders.filter(|folder| folder.is_dir()).flat_map(|folder| notebooks_in(ctx, &folder, notes)).collect()
}

fn nothing_by_default(ctx: &Context) -> Localized {
    if ctx.projects.is_empty() {
        let folders = ctx.settings.course.notebooks.join(", ");
        return Localized::both(
            format!("no notebooks in the folders of the settings ({folders})"),
            format!("设置中的文件夹里没有笔记本（{folders}）"),
        );
    }
    let notebooks: Vec<&str> = ctx.chosen_projects().map(|project| project.notebook.as_str()).collect();
    let notebooks = notebooks.join(", ");
    Localized::both(
        format!("the notebooks of the chosen projects are not here ({notebooks})"),
        format!("所选项目的笔记本不存在（{notebooks}）"),
    )
}

fn target(ctx: &Context, args: &AnswersArgs, file: PathBuf) -> Result<Target, RunError> {
    let path = ctx.repo_path(&file);
    let below = |folder: &String| path.as_str().starts_with(&format!("{}/", folder.trim_end_matches('/')));
    let answers = &ctx.settings.answers;
    let mut target = Target {
        inline: args.mode == crate::cli::AnswerMode::Inline || ctx.settings.course.inline_notebooks.iter().any(below),
        timeout: answers.timeout_s,
        file,
        path: path.clone(),
    };
    for entry in &answers.notebook {
        let glob = Glob::new(&entry.path).map_err(|error| {
            RunError::usage(
                error.to_string(),
                Localized::both("correct `answers.notebook`", "请更正 `answers.notebook`"),
            )
        })?;
        if glob.compile_matcher().is_match(path.as_str()) {
            target.timeout = entry.timeout_s.unwrap_or(target.timeout);
            target.inline = entry.inline.unwrap_or(target.inline);
        }
    }
    target.timeout = args.timeout.unwrap_or(target.timeout);
    Ok(target)
}
