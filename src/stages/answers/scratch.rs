//! The folder a notebook runs in: a mirror of its own, in which writing harms nobody.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files up to this size are copied, larger ones linked.
const MAX_COPY: u64 = 1 << 20;
/// At most so many files are copied into one mirror.
const MAX_FILES: usize = 2000;

/// A folder with more notebooks is mirrored without them.
const MAX_NOTEBOOKS: usize = 200;

/// Folders of one run of one notebook.
#[derive(Debug)]
pub(super) struct Scratch {
    /// Everything of this run.
    pub(super) top: PathBuf,
    /// Mirror of the notebook's folder: where it runs.
    pub(super) cwd: PathBuf,
    /// Cells as files, for tracebacks and `inspect`.
    pub(super) cells: PathBuf,
    /// For temporary files and caches.
    pub(super) temporary: PathBuf,
}

impl Scratch {
    /// Makes the folders below `top`. `folder` is the notebook's, `root` the course's:
    /// the folders between them are mirrored by links, so that `../data` is found.
    pub(super) fn make(top: PathBuf, root: &Path, folder: &Path) -> io::Result<Scratch> {
        let mirror = top.join("root");
        let inside = folder.strip_prefix(root).unwrap_or(Path::new(""));
        let mut here = mirror.clone();
        fs::create_dir_all(&here)?;
        if !inside.as_os_str().is_empty() {
            let mut original = root.to_path_buf();
            for part in inside.components() {
                link_siblings(&original, &here, Path::new(part.as_os_str()));
                original.push(part);
                here.push(part);
                fs::create_dir_all(&here)?;
            }
        }
        copy_folder(folder, &here);
        let (cells, temporary) = (top.join("cells"), top.join("tmp"));
        fs::create_dir_all(&cells)?;
        fs::create_dir_all(temporary.join("cache"))?;
        Ok(Scratch { cwd: here, cells, temporary, top })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Links are removed, never followed.
        let _ = fs::remove_dir_all(&self.top);
    }
}

fn link_siblings(folder: &Path, mirror: &Path, except: &Path) {
    for entry in entries(folder) {
        if Path::new(&entry.file_name()) != except {
            link(&entry.path(), &mirror.join(entry.file_name()));
        }
    }
}

/// Small files are copied, so that writing to them changes nothing; notebooks, large
/// files and folders are linked. Where notebooks stand by the hundred, they are left out:
/// with links to all of them in the mirror of each, the effort would grow with the square.
fn copy_folder(folder: &Path, mirror: &Path) {
    let is_notebook = |path: &Path| path.extension().is_some_and(|extension| extension == "ipynb");
    let (notebooks, others): (Vec<PathBuf>, Vec<PathBuf>) =
        entries(folder).map(|entry| entry.path()).partition(|path| is_notebook(path));
    let into = |path: &Path| path.file_name().map(|name| mirror.join(name));
    for (count, path) in others.iter().enumerate() {
        let Some(target) = into(path) else { continue };
        let small = path.symlink_metadata().is_ok_and(|data| data.is_file() && data.len() <= MAX_COPY);
        if !small || count >= MAX_FILES || fs::copy(path, &target).is_err() {
            link(path, &target);
        }
    }
    if notebooks.len() <= MAX_NOTEBOOKS {
        notebooks.iter().for_each(|path| into(path).into_iter().for_each(|target| link(path, &target)));
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.file_name() != ".git")
}

/// A link that cannot be made leaves the file out: the notebook then says what it misses.
fn link(original: &Path, link: &Path) {
    #[cfg(unix)]
    let _ = std::os::unix::fs::symlink(original, link);
    #[cfg(windows)]
    let _ = if original.is_dir() {
        std::os::windows::fs::symlink_dir(original, link)
    } else {
        std::os::windows::fs::symlink_file(original, link)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notebooks_are_mirrored_unless_there_are_hundreds() {
        let course = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(course.path().join(name), "{}").unwrap();
        ["a.ipynb", "b.ipynb", "data.csv"].iter().for_each(|name| write(name));
        let mirrored = || {
            let run = tempfile::tempdir().unwrap();
            let scratch = Scratch::make(run.path().join("1"), course.path(), course.path()).unwrap();
            entries(&scratch.cwd).count()
        };
        assert_eq!(mirrored(), 3);
        (0..MAX_NOTEBOOKS).for_each(|number| write(&format!("{number}.ipynb")));
        assert_eq!(mirrored(), 1, "the data stays");
    }
}
