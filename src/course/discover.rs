//! Finding the root and the files under it.

use crate::error::RunError;
use crate::model::{Localized, RepoPath};
use globset::{Glob, GlobSet, GlobSetBuilder};
use ignore::WalkBuilder;
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

/// Files under `start` that `wanted` takes, sorted by path. `.gitignore` is honoured;
/// hidden folders, caches and virtual environments are not entered.
pub fn walk(root: &Path, start: &Path, excludes: &Excludes, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
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
    let mut files: Vec<PathBuf> = walker
        .flatten()
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .map(ignore::DirEntry::into_path)
        .filter(|path| wanted(path))
        .collect();
    files.sort();
    files
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
