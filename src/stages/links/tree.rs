//! The files that exist, as one walk saw them. Links are compared with this and never
//! with the disk, which on some systems takes `README.md` for `Readme.md`.

use super::read::SourceKind;
use super::target::{file_name, folder};
use crate::course::{Context, Unreadable};
use ignore::{DirEntry, WalkBuilder, WalkState};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use unicode_normalization::UnicodeNormalization;

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    /// A folder.
    Folder,
    /// A file that holds no links.
    File,
    /// A Markdown file or notebook: its index in [`Tree::sources`].
    Source(usize),
    /// A symbolic link.
    Symlink,
}

/// A Markdown file or notebook.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    /// Where to open it.
    pub(super) file: PathBuf,
    /// What it is.
    pub(super) kind: SourceKind,
}

/// The walked tree.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: HashMap<String, Node>,
    /// Sorted by path.
    pub(super) sources: Vec<Source>,
    /// Folders that could not be entered, sorted by path.
    pub(super) unreadable: Vec<Unreadable>,
    folded: OnceLock<HashMap<String, Vec<String>>>,
    names: OnceLock<HashMap<String, Vec<String>>>,
    by_folder: OnceLock<HashMap<String, Vec<Spelled>>>,
}

/// The name of a file with what tells quickly that another cannot be near it.
#[derive(Debug)]
struct Spelled {
    path: String,
    letters: Letters,
}

/// Which letters a name holds, as a set of 64, and how many. A change of one letter, or
/// of two that stand beside each other, changes two members of the set at most.
#[derive(Debug, Clone, Copy)]
struct Letters {
    set: u64,
    count: usize,
}

impl Letters {
    fn of(name: &str) -> Self {
        let set = name.chars().fold(0, |set, letter| set | 1 << (u32::from(letter) % 64));
        Letters { set, count: name.chars().count() }
    }

    /// Whether so few changes may lead from one to the other.
    fn may_be_near(self, other: Letters, changes: usize) -> bool {
        self.count.abs_diff(other.count) <= changes && (self.set ^ other.set).count_ones() as usize <= 2 * changes
    }
}

/// Folders that are never entered: other people's text and generated copies.
fn is_skipped(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    if name == ".git" {
        return true;
    }
    if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
        return false;
    }
    let inside_site = || entry.path().parent().and_then(Path::file_name).is_some_and(|parent| parent == ".vitepress");
    name == "node_modules"
        || name == ".ipynb_checkpoints"
        || (name == "dist" || name == "cache") && inside_site()
        || entry.path().join("pyvenv.cfg").exists()
}

/// Everything below the root that is not ignored, in no order.
fn walk(root: &Path) -> Seen {
    let found: Mutex<Seen> = Mutex::default();
    let walker = WalkBuilder::new(root)
        .hidden(false)
        .ignore(false)
        .parents(false)
        .require_git(false)
        .git_global(false)
        .filter_entry(|entry| entry.depth() == 0 || !is_skipped(entry))
        .threads(std::thread::available_parallelism().map_or(2, usize::from).min(4))
        .build_parallel();
    walker.run(|| {
        let mut batch = Batch { found: Seen::default(), into: &found };
        Box::new(move |entry| {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    batch.found.unreadable.extend(Unreadable::of(&error));
                    return WalkState::Continue;
                }
            };
            if entry.depth() > 0 {
                let kind = entry.file_type();
                let node = match kind {
                    Some(kind) if kind.is_dir() => Some(Node::Folder),
                    Some(kind) if kind.is_symlink() => Some(Node::Symlink),
                    Some(kind) if kind.is_file() => Some(Node::File),
                    _ => None,
                };
                batch.found.entries.push((entry.into_path(), node));
            }
            WalkState::Continue
        })
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What a walk saw.
#[derive(Default)]
struct Seen {
    entries: Vec<(PathBuf, Option<Node>)>,
    unreadable: Vec<Unreadable>,
}

/// What one thread saw, handed over when it ends.
struct Batch<'a> {
    found: Seen,
    into: &'a Mutex<Seen>,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let mut into = self.into.lock().unwrap_or_else(PoisonError::into_inner);
        into.entries.append(&mut self.found.entries);
        into.unreadable.append(&mut self.found.unreadable);
    }
}

impl Tree {
    /// Walks the root. `extra` are sources named on the command line that the walk may
    /// leave out because git ignores them.
    pub(super) fn walk(ctx: &Context, extra: &[PathBuf]) -> Self {
        let mut tree = Tree::default();
        tree.nodes.insert(String::new(), Node::Folder);
        let seen = walk(&ctx.root);
        tree.unreadable = seen.unreadable;
        tree.unreadable.sort();
        for (file, node) in seen.entries {
            let is_source = || SourceKind::of(ctx.repo_path(&file).as_str()).is_some();
            if let Some(node) = node.filter(|_| is_target(&file) || is_source()) {
                tree.insert(ctx.repo_path(&file).as_str().to_owned(), file, node);
            }
        }
        for file in extra {
            let path = ctx.repo_path(file).as_str().to_owned();
            let kind = SourceKind::of_named(&path);
            let is_source = tree.sources.iter().any(|source| source.path == path);
            match kind.filter(|_| !is_source) {
                Some(kind) => tree.insert_source(path, file.clone(), kind),
                None => drop(tree.nodes.entry(path).or_insert(Node::File)),
            }
        }
        tree.sources.sort_by(|a, b| a.path.cmp(&b.path));
        for (index, source) in tree.sources.iter().enumerate() {
            if is_target(&source.file) {
                tree.nodes.insert(source.path.clone(), Node::Source(index));
            } else {
                tree.nodes.remove(&source.path);
            }
        }
        tree
    }

    fn insert(&mut self, path: String, file: PathBuf, node: Node) {
        match SourceKind::of(&path).filter(|_| node == Node::File) {
            Some(kind) => self.insert_source(path, file, kind),
            None => drop(self.nodes.insert(path, node)),
        }
    }

    fn insert_source(&mut self, path: String, file: PathBuf, kind: SourceKind) {
        self.sources.push(Source { path: path.clone(), file, kind });
        self.nodes.insert(path, Node::File);
    }

    /// What stands under this very path, byte by byte.
    pub(super) fn get(&self, path: &str) -> Option<Node> {
        self.nodes.get(path).copied()
    }

    /// The source under this very path.
    pub(super) fn source(&self, path: &str) -> Option<usize> {
        match self.get(path) {
            Some(Node::Source(index)) => Some(index),
            _ => None,
        }
    }

    /// Every path that is not a folder, in no order.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter(|(_, node)| **node != Node::Folder).map(|(path, _)| path.as_str())
    }

    /// The files beside `path` whose names may differ from its own by so few changes, in
    /// no order. A course with very many dead links asks this for each of them.
    pub(super) fn maybe_spelled(&self, path: &str, changes: usize) -> impl Iterator<Item = &str> {
        let by_folder = self.by_folder.get_or_init(|| {
            let mut index: HashMap<String, Vec<Spelled>> = HashMap::new();
            for (path, _) in self.nodes.iter().filter(|(_, node)| **node != Node::Folder) {
                let letters = Letters::of(file_name(path));
                index.entry(folder(path).to_owned()).or_default().push(Spelled { path: path.clone(), letters });
            }
            index
        });
        let wanted = Letters::of(file_name(path));
        let beside = by_folder.get(folder(path)).map_or(&[][..], Vec::as_slice);
        beside.iter().filter(move |file| file.letters.may_be_near(wanted, changes)).map(|file| file.path.as_str())
    }

    /// Every folder, in no order.
    pub(super) fn folders(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter(|(_, node)| **node == Node::Folder).map(|(path, _)| path.as_str())
    }

    /// Paths that differ only in letter case or Unicode form, sorted.
    pub(super) fn in_other_case(&self, path: &str) -> &[String] {
        let folded = self.folded.get_or_init(|| self.index(fold));
        folded.get(&fold(path)).map_or(&[], Vec::as_slice)
    }

    /// Files with this name, wherever they are, sorted.
    pub(super) fn named(&self, name: &str) -> &[String] {
        let names = self.names.get_or_init(|| self.index(|path| file_name(path).to_lowercase()));
        names.get(&name.to_lowercase()).map_or(&[], Vec::as_slice)
    }

    fn index(&self, key: impl Fn(&str) -> String) -> HashMap<String, Vec<String>> {
        let mut index: HashMap<String, Vec<String>> = HashMap::new();
        for path in self.nodes.keys().filter(|path| !path.is_empty()) {
            index.entry(key(path)).or_default().push(path.clone());
        }
        index.values_mut().for_each(|paths| paths.sort());
        index
    }
}

/// Whether a link can lead there. A name that is no UTF-8 is shown with replacement
/// characters, and what is shown names no file.
fn is_target(file: &Path) -> bool {
    file.to_str().is_some()
}

/// Equal for two names that a case-insensitive disk takes for one.
fn fold(path: &str) -> String {
    path.nfc().collect::<String>().to_lowercase()
}

/// Whether a path exists on the disk under this very name: each folder is listed, since
/// some systems answer yes to any letter case.
pub(super) fn on_disk(root: &Path, path: &str) -> bool {
    let mut folder = root.to_path_buf();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let listed = std::fs::read_dir(&folder)
            .is_ok_and(|entries| entries.flatten().any(|entry| entry.file_name().to_str() == Some(part)));
        if !listed {
            return false;
        }
        folder.push(part);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What the quick look leaves out is never near: else a suggestion would be lost.
        #[test]
        fn what_is_near_by_spelling_passes_the_quick_look(a in "[a-d章节é]{0,6}", b in "[a-d章节é]{0,6}") {
            let distance = strsim::damerau_levenshtein(&a, &b);
            prop_assert!(distance > 2 || Letters::of(&a).may_be_near(Letters::of(&b), 2));
        }
    }

    #[test]
    fn only_files_of_the_same_folder_that_may_be_meant_are_looked_at() {
        let mut tree = Tree::default();
        for path in ["a/intro.md", "a/intor.md", "a/zzzzz.md", "intro.md", "a/introduction.md"] {
            tree.nodes.insert(path.to_owned(), Node::File);
        }
        let mut found: Vec<&str> = tree.maybe_spelled("a/intra.md", 2).collect();
        found.sort_unstable();
        assert_eq!(found, ["a/intor.md", "a/intro.md"]);
    }
}
