//! Finding result files: named on the command line, or below the results folder.

use crate::config::Project;
use crate::course::Context;
use crate::error::RunError;
use crate::model::Localized;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// The end of the name of a failure record.
const FAILURE: &str = ".failure.json";
/// Where earlier results are kept.
const HISTORY: &str = "history";

/// Where the record of a failed run stands beside the result that it did not write.
pub fn failure_record_of(result: &Path) -> PathBuf {
    result.with_extension(FAILURE.trim_start_matches('.'))
}

/// One file to judge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// Absolute path. A folder that could not be entered stands for what it may hold:
    /// reading it fails, and that is said of it.
    pub path: PathBuf,
    /// Named by the user or needed by the chain, not found by looking into a folder.
    pub named: bool,
}

/// The files named on the command line; folders stand for what is below them.
///
/// # Errors
/// A folder without any JSON file.
pub fn named(ctx: &Context, paths: &[PathBuf]) -> Result<Vec<Candidate>, RunError> {
    let mut files = Vec::new();
    for given in paths {
        let path = lexical(&ctx.at_cwd(given));
        no_device(given, &path)?;
        let found = if path.is_dir() {
            below(ctx, &path)
        } else if !path.exists() && is_pattern(given) {
            matching(ctx, &path)?
        } else {
            vec![Candidate { path, named: true }]
        };
        if found.is_empty() {
            return Err(nothing_there(given));
        }
        files.extend(found);
    }
    let mut seen = BTreeSet::new();
    files.retain(|file| seen.insert(file.path.clone()));
    Ok(files)
}

/// Refuses a named pipe, socket or device before anything opens it: opening a pipe
/// waits for a writer, a device may never end, and no signal is heard meanwhile.
///
/// # Errors
/// `path` is there and is neither a regular file nor a folder.
pub fn no_device(given: &Path, path: &Path) -> Result<(), RunError> {
    if is_openable(path) {
        return Ok(());
    }
    Err(RunError::usage(
        Localized::both(
            format!("{} is neither a regular file nor a folder", given.display()),
            format!("{} 既不是普通文件，也不是文件夹", given.display()),
        ),
        Localized::both(
            "pipes and devices are not read; save the result to a file and name that",
            "不会读取管道和设备；请先把结果保存为文件，再指定该文件",
        ),
    ))
}

/// Whether opening it cannot wait for ever. What is not there can be opened in vain.
pub fn is_openable(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |facts| facts.is_file() || facts.is_dir())
}

fn nothing_there(given: &Path) -> RunError {
    RunError::usage(
        Localized::both(
            format!("{} matches no JSON file", given.display()),
            format!("{} 没有匹配到 JSON 文件", given.display()),
        ),
        Localized::both("name result files or a folder that holds some", "请指定结果文件或包含结果文件的文件夹"),
    )
}

/// A pattern that the shell left to us.
fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '[', '{'])
}

/// Files that match a glob pattern; looked for below its part without wildcards.
fn matching(ctx: &Context, pattern: &Path) -> Result<Vec<Candidate>, RunError> {
    let text = pattern.to_string_lossy();
    let matcher = globset::GlobBuilder::new(&text).literal_separator(true).build().map_err(|error| {
        RunError::usage(
            Localized::both(format!("not a glob pattern: {error}"), format!("不是合法的 glob 模式：{error}")),
            "",
        )
    })?;
    let matcher = matcher.compile_matcher();
    let fixed: PathBuf = pattern.components().take_while(|part| !is_pattern(Path::new(part.as_os_str()))).collect();
    let mut files = below(ctx, &fixed);
    files.retain(|file| matcher.is_match(&file.path) || file.path.is_dir());
    Ok(files)
}

/// Every JSON file below a folder, sorted; earlier results in `history/` are left out.
/// What git ignores counts all the same: a measurement is often not committed.
pub fn below(ctx: &Context, folder: &Path) -> Vec<Candidate> {
    let left_out = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        name.starts_with('.')
            || (entry.file_type().is_dir() && name == HISTORY)
            || ctx.excludes.matches(&ctx.repo_path(entry.path()))
    };
    let entered = |entry: &walkdir::DirEntry| entry.depth() == 0 || !left_out(entry);
    let walk = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(entered);
    let is_result =
        |entry: &walkdir::DirEntry| entry.file_type().is_file() && entry.path().extension() == Some("json".as_ref());
    let mut files: Vec<Candidate> = walk
        .filter_map(|entry| match entry {
            Ok(entry) => is_result(&entry).then(|| entry.into_path()),
            Err(error) => unreadable(&error),
        })
        .map(|path| Candidate { path, named: false })
        .collect();
    files.sort();
    files
}

/// The folder that a walk could not enter. `None` for what is not there and for links in
/// circles, which hide nothing.
fn unreadable(error: &walkdir::Error) -> Option<PathBuf> {
    let absent = error.io_error()?.kind() == std::io::ErrorKind::NotFound;
    error.path().filter(|_| !absent).map(Path::to_path_buf)
}

/// The files of the results folder that a run is about: all of them, or those of the
/// chosen projects.
pub fn of_run(ctx: &Context) -> Vec<Candidate> {
    let all = below(ctx, &ctx.results_dir());
    if ctx.projects.is_empty() {
        return all;
    }
    let wanted: BTreeSet<PathBuf> = ctx
        .chosen_projects()
        .filter(|project| !project.result.is_empty())
        .flat_map(|project| {
            let files = project_files(ctx, project);
            [files.result, files.baseline, files.bench]
        })
        .collect();
    // A folder that could not be entered may hold one of them.
    all.into_iter().filter(|file| wanted.iter().any(|path| path.starts_with(&file.path))).collect()
}

/// Where the results of one project stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFiles {
    /// The candidate.
    pub result: PathBuf,
    /// What it is compared with.
    pub baseline: PathBuf,
    /// The enlarged workload.
    pub bench: PathBuf,
}

/// The files of one project.
pub fn project_files(ctx: &Context, project: &Project) -> ProjectFiles {
    let result = ctx.results_dir().join(&project.result);
    ProjectFiles {
        baseline: result.with_extension("baseline.json"),
        bench: result.with_extension("bench.json"),
        result,
    }
}

/// The project that a file belongs to, by its name in the results folder.
pub fn project_of(ctx: &Context, path: &Path) -> Option<u32> {
    let mine = |project: &&Project| {
        let files = project_files(ctx, project);
        !project.result.is_empty() && [files.result, files.baseline, files.bench].iter().any(|known| known == path)
    };
    ctx.settings.project.iter().find(mine).map(|project| project.id)
}

/// Whether the name says that it is the record of a failure.
pub fn is_failure_record(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(FAILURE))
}

/// `a/./b/../c` as `a/c`, without asking the file system.
pub fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_without_detours() {
        assert_eq!(lexical(Path::new("/a/./b/../c.json")), Path::new("/a/c.json"));
        assert_eq!(lexical(Path::new("../a")), Path::new("../a"));
        assert!(is_failure_record(Path::new("a/66.failure.json")));
    }
}
