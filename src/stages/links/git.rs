//! What git knows: the paths of its index and the address of its remote, read from the
//! files of the repository. No process is started.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The paths in git's index, relative to the root of the course.
#[derive(Debug, Default)]
pub(super) struct Index {
    paths: HashSet<Vec<u8>>,
    /// Submodules, whose files the index does not list.
    modules: Vec<Vec<u8>>,
}

impl Index {
    /// Whether git tracks the path, or cannot say.
    pub(super) fn tracks(&self, path: &str) -> bool {
        let path = path.as_bytes();
        let inside = |module: &Vec<u8>| {
            path.strip_prefix(module.as_slice()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        self.paths.contains(path) || self.modules.iter().any(inside)
    }
}

/// The git folder of a repository, and where in it the root of the course lies.
#[derive(Debug)]
pub(super) struct Repository {
    git: PathBuf,
    /// `""` or `sub/folder/`.
    prefix: String,
}

impl Repository {
    /// The repository that `root` lies in.
    pub(super) fn find(root: &Path) -> Option<Self> {
        let top = root.ancestors().find(|folder| folder.join(".git").exists())?;
        let entry = top.join(".git");
        let git = if entry.is_dir() { entry } else { top.join(linked(&entry)?) };
        let prefix = root.strip_prefix(top).ok()?.to_str()?.replace('\\', "/");
        let prefix = if prefix.is_empty() { prefix } else { format!("{prefix}/") };
        Some(Repository { git, prefix })
    }

    /// The index; `None` when there is none or it is of a form that is not read here
    /// (split, sparse, SHA-256).
    pub(super) fn index(&self) -> Option<Index> {
        let bytes = std::fs::read(self.git.join("index")).ok()?;
        let mut index = Index::default();
        read_index(&bytes, |mode, path| {
            if let Some(path) = path.strip_prefix(self.prefix.as_bytes()) {
                if mode >> 12 == 0o16 {
                    index.modules.push(path.to_vec());
                }
                index.paths.insert(path.to_vec());
            }
        })?;
        Some(index)
    }

    /// The address of `origin`, or of the only other remote.
    pub(super) fn remote(&self) -> Option<String> {
        let common = std::fs::read_to_string(self.git.join("commondir")).ok();
        let folder = common.map_or(self.git.clone(), |common| self.git.join(common.trim()));
        let text = std::fs::read_to_string(folder.join("config")).ok()?;
        remote_url(&text)
    }
}

/// The git folder that a `.git` file of a worktree or submodule names.
fn linked(file: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(file).ok()?;
    Some(PathBuf::from(text.strip_prefix("gitdir:")?.trim()))
}

fn remote_url(config: &str) -> Option<String> {
    let mut name = None;
    let mut first = None;
    for line in config.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            name = section.strip_prefix("remote \"").and_then(|rest| rest.split('"').next());
        } else if let (Some(name), Some((key, value))) = (name, line.split_once('='))
            && key.trim() == "url"
        {
            if name == "origin" {
                return Some(value.trim().to_owned());
            }
            first.get_or_insert_with(|| value.trim().to_owned());
        }
    }
    first
}

/// Reads the entries of an index of version 2, 3 or 4 (git, `index-format`). `None` when
/// it is torn or of another form.
fn read_index(bytes: &[u8], mut entry: impl FnMut(u32, &[u8])) -> Option<()> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = number(4)?;
    if bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    let mut path: Vec<u8> = Vec::new();
    for _ in 0..number(8)? {
        let mode = number(at + 24)?;
        let flags = u16::from_be_bytes(bytes.get(at + 60..at + 62)?.try_into().ok()?);
        let mut name = at + if flags & 0x4000 == 0 { 62 } else { 64 };
        if version == 4 {
            let cut = variable_int(bytes, &mut name)?;
            path.truncate(path.len().checked_sub(cut)?);
        } else {
            path.clear();
        }
        let length = memchr::memchr(0, bytes.get(name..)?)?;
        path.extend_from_slice(&bytes[name..name + length]);
        let end = name + length + 1;
        at = if version == 4 { end } else { at + (name + length - at + 8) / 8 * 8 };
        entry(mode, &path);
    }
    // Extensions that change the meaning of the list: split index, sparse folders.
    while bytes.len() > at + 28 {
        let signature = bytes.get(at..at + 4)?;
        if signature == b"link" || signature == b"sdir" {
            return None;
        }
        at += 8 + number(at + 4)? as usize;
    }
    Some(())
}

/// The offset encoding of pack files.
fn variable_int(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut byte = *bytes.get(*at)?;
    *at += 1;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = *bytes.get(*at)?;
        *at += 1;
        value = (value.checked_add(1)?.checked_mul(128)?) | usize::from(byte & 0x7f);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_remote_called_origin_wins() {
        let config = "[core]\n\tbare = false\n[remote \"fork\"]\n\turl = a\n[remote \"origin\"]\n\turl = https://x/y\n";
        assert_eq!(remote_url(config).as_deref(), Some("https://x/y"));
    }

    proptest! {
        #[test]
        fn a_torn_index_is_no_fault(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut torn = b"DIRC\0\0\0\x02\0\0\0\x05".to_vec();
            torn.extend(bytes);
            let _ = read_index(&torn, |_, _| {});
        }
    }
}
