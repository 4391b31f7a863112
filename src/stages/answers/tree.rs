//! The repository before and after: notebooks must leave it as it was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Folders that are large and not the course's.
const PASSED_OVER: &[&str] = &[".git", "node_modules", "target", ".venv", "venv", "site-packages"];
/// Beyond this many files the comparison is given up: it is not a course any more.
const MAX_FILES: usize = 200_000;

/// Size and time of change of every file.
#[derive(Debug, Default)]
pub(super) struct Tree(BTreeMap<PathBuf, (u64, Option<SystemTime>)>);

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// It is new.
    Added,
    /// It has other bytes, or another time.
    Changed,
    /// It is gone.
    Removed,
}

impl Tree {
    /// Looks at everything below `root`.
    pub(super) fn of(root: &Path) -> Tree {
        let walker = walkdir::WalkDir::new(root).into_iter().filter_entry(|entry| {
            let name = entry.file_name().to_string_lossy();
            entry.depth() == 0 || !(entry.file_type().is_dir() && PASSED_OVER.contains(&name.as_ref()))
        });
        let files = walker.flatten().filter(|entry| !entry.file_type().is_dir()).take(MAX_FILES);
        Tree(
            files
                .filter_map(|entry| {
                    let data = entry.metadata().ok()?;
                    Some((entry.into_path(), (data.len(), data.modified().ok())))
                })
                .collect(),
        )
    }

    /// What differs in `after`.
    pub(super) fn changes(&self, after: &Tree) -> Vec<(PathBuf, Change)> {
        let mut changes: Vec<(PathBuf, Change)> = Vec::new();
        for (path, state) in &after.0 {
            match self.0.get(path) {
                None => changes.push((path.clone(), Change::Added)),
                Some(before) if before != state => changes.push((path.clone(), Change::Changed)),
                Some(_) => {}
            }
        }
        let gone = self.0.keys().filter(|path| !after.0.contains_key(*path));
        changes.extend(gone.map(|path| (path.clone(), Change::Removed)));
        changes.sort_by(|a, b| a.0.cmp(&b.0));
        changes
    }
}
