//! Finding the root and the files under it.

use crate::error::RunError;
use crate::model::{Finding, Localized, Location, RepoPath};
use crate::rules;
use globset::{Glob, GlobSet, GlobSetBuilder};
use ignore::WalkBuilder;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Folders that never hold sources: caches, environments, generated output.
const SKIPPED_FOLDERS: &[&str] = &["node_modules", "__pycache__", "site-packages"];

/// The nearest ancestor with `verify.toml`, else with `.git`, else `start` itself.
pub fn find_root(start: &Path) -> PathBuf {
    let holding = |name: &str| start.ancestors().find(|folder| folder.join(name).exists());
    holding(crate::config::FILE_NAME).or_else(|| holding(".git")).unwrap_or(start).to_path_buf()
}

/// What kind of source a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `.py`
    Python,
    /// `.ipynb`
    Notebook,
}

impl FileKind {
    /// By file name.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "py" => Some(FileKind::Python),
            "ipynb" => Some(FileKind::Notebook),
            _ => None,
        }
    }
}

/// Compiled patterns of `course.exclude`.
#[derive(Debug, Clone, Default)]
pub struct Excludes(GlobSet);

impl Excludes {
    /// Compiles the patterns. A pattern that names a folder excludes what is below it.
    ///
    /// # Errors
    /// A pattern that is not a glob.
    pub fn new(patterns: &[String]) -> Result<Self, RunError> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let pattern = pattern.trim_end_matches('/');
            for form in [pattern.to_owned(), format!("{pattern}/**")] {
                set.add(Glob::new(&form).map_err(|error| bad_pattern(pattern, &error))?);
            }
        }
        set.build().map(Excludes).map_err(|error| bad_pattern("course.exclude", &error))
    }

    /// Whether a path relative to the root is excluded.
    pub fn matches(&self, path: &RepoPath) -> bool {
        self.0.is_match(path.as_str())
    }
}

fn bad_pattern(pattern: &str, error: &globset::Error) -> RunError {
    RunError::usage(
        Localized::both(
            format!("`{pattern}` is not a glob pattern: {error}"),
            format!("`{pattern}` 不是合法的 glob 模式：{error}"),
        ),
        Localized::both("correct `course.exclude` in verify.toml", "请更正 verify.toml 中的 `course.exclude`"),
    )
}

/// Checks a path named by the user before it is opened: a pipe, a socket or a device
/// would make the run wait for ever. What does not exist is left to the caller.
///
/// # Errors
/// Something is there that is neither a file nor a folder.
pub fn check_regular(path: &Path) -> Result<(), RunError> {
    match std::fs::metadata(path) {
        Ok(known) if !known.is_file() && !known.is_dir() => {
            let shown = path.display();
            Err(RunError::usage(
                Localized::both(
                    format!("{shown} is neither a file nor a folder, but a pipe, a socket or a device"),
                    format!("{shown} 不是普通文件或文件夹，而是管道、套接字或设备"),
                ),
                Localized::both(
                    "name a file or a folder; save what a pipe delivers to a file first",
                    "请指定文件或文件夹；管道的内容请先保存为文件",
                ),
            ))
        }
        _ => Ok(()),
    }
}

/// Whether a file is there, or may be there where this user must not look. What cannot be
/// looked at counts, so that opening it says why, instead of being taken for absent.
pub fn may_be_file(path: &Path) -> bool {
    match std::fs::metadata(path) {
        Ok(known) => known.is_file(),
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    }
}

/// What a walk saw.
#[derive(Debug, Clone, Default)]
pub struct Walked {
    /// The files that were wanted, sorted by path.
    pub files: Vec<PathBuf>,
    /// Folders that could not be entered, sorted by path: what they hold nobody knows.
    pub unreadable: Vec<Unreadable>,
}

/// A folder that could not be entered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unreadable {
    /// Absolute path.
    pub path: PathBuf,
    /// What the system said.
    pub cause: String,
}

impl Unreadable {
    /// What an error of a walk is about. `None` for what vanished during the walk and for
    /// links in circles, which hide nothing.
    pub fn of(error: &ignore::Error) -> Option<Self> {
        let kind = error.io_error()?.kind();
        let path = place(error)?;
        // The text of the error repeats the path, with the folders of this machine.
        (kind != ErrorKind::NotFound).then(|| Unreadable { path: path.to_path_buf(), cause: kind.to_string() })
    }

    /// The finding of a stage that must judge everything.
    pub fn finding(&self, root: &Path) -> Finding {
        let at = Location::file(RepoPath::relative(root, &self.path));
        Finding::new(&rules::run::UNREADABLE, at).arg("cause", &self.cause)
    }
}

fn place(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => place(err),
        ignore::Error::Partial(errors) => errors.iter().find_map(place),
        _ => None,
    }
}

/// Files under `start` that `wanted` takes. `.gitignore` is honoured; hidden folders,
/// caches and virtual environments are not entered.
pub fn walk(root: &Path, start: &Path, excludes: &Excludes, wanted: impl Fn(&Path) -> bool) -> Walked {
    let excluded = excludes.clone();
    let top = root.to_path_buf();
    let first = start.to_path_buf();
    let walker = WalkBuilder::new(start)
        .hidden(true)
        .parents(false)
        .require_git(false)
        .git_global(false)
        .filter_entry(move |entry| {
            let path = entry.path();
            if path == first {
                return true;
            }
            let name = entry.file_name().to_string_lossy();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let skipped = is_folder && (SKIPPED_FOLDERS.contains(&name.as_ref()) || path.join("pyvenv.cfg").exists());
            !skipped && !excluded.matches(&RepoPath::relative(&top, path))
        })
        .build();
    let mut walked = Walked::default();
    for entry in walker {
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) && wanted(entry.path()) => {
                walked.files.push(entry.into_path());
            }
            Ok(_) => {}
            Err(error) => walked.unreadable.extend(Unreadable::of(&error)),
        }
    }
    walked.files.sort();
    walked.unreadable.sort();
    walked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excluding_a_folder_excludes_what_is_below_it() {
        let excludes = Excludes::new(&["drafts/".to_owned(), "*.tmp.md".to_owned()]).unwrap();
        assert!(excludes.matches(&RepoPath::new("drafts/a/b.md")));
        assert!(excludes.matches(&RepoPath::new("drafts")));
        assert!(!excludes.matches(&RepoPath::new("drafts2/a.md")));
        assert!(Excludes::new(&["a[".to_owned()]).is_err());
    }
}
