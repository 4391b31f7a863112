//! Files of `--output`, and the summary of a step on GitHub.

use crate::error::RunError;
use crate::fsx;
use crate::model::Localized;
use crate::secrets::clean_text as clean;
use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Refuses targets that no run could serve, before it has taken its time: a folder that
/// is not there (a typo), and one file for two reports.
///
/// # Errors
/// Such a target.
pub(crate) fn check<'a>(cwd: &Path, targets: impl Iterator<Item = &'a Path>) -> Result<(), RunError> {
    let mut seen: HashMap<PathBuf, &Path> = HashMap::new();
    for target in targets {
        let path = cwd.join(target);
        if !path.parent().is_none_or(Path::is_dir) {
            return Err(RunError::file(target, io::Error::other("its folder does not exist")));
        }
        if path.is_dir() {
            return Err(RunError::file(target, io::Error::from(io::ErrorKind::IsADirectory)));
        }
        // A device takes any number of reports.
        if path.exists() && !path.is_file() {
            continue;
        }
        if let Some(first) = seen.insert(identity(&path), target) {
            return Err(same_file(first, target));
        }
    }
    Ok(())
}

fn same_file(first: &Path, second: &Path) -> RunError {
    let (first, second) = (first.display(), second.display());
    RunError::usage(
        Localized::both(
            format!("two reports would go to the same file: {first} and {second}"),
            format!("两份报告会写入同一个文件：{first} 和 {second}"),
        ),
        Localized::both("give each --output a file of its own", "请为每个 --output 指定不同的文件"),
    )
}

/// What a path leads to, links and `..` resolved, whether the file is there or not.
fn identity(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// Writes a report whole or not at all. A link is followed and kept; what is no regular
/// file (a pipe, `/dev/stdout`) is written to, never replaced.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let special = ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder));
    if special || (path.exists() && !path.is_file()) {
        return OpenOptions::new().append(true).open(path)?.write_all(clean(text).as_bytes());
    }
    fsx::write_atomic(&identity(path), text.as_bytes())
}

/// Bytes that a file holds already; none where there is no file.
pub(crate) fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |facts| facts.len())
}

/// Adds to a file that others write to as well.
///
/// # Errors
/// It cannot be written.
pub(crate) fn append(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(clean(text).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_for_two_reports_is_seen_through_links_and_dots() {
        let folder = tempfile::tempdir().unwrap();
        let check = |names: &[&str]| check(folder.path(), names.iter().map(Path::new)).is_ok();
        assert!(check(&["a.json", "b.json"]) && check(&[]));
        assert!(!check(&["a.json", "./a.json"]));
        assert!(!check(&["none/a.json"]) && !check(&["."]));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("a.json", folder.path().join("c.json")).unwrap();
            fs::write(folder.path().join("a.json"), "").unwrap();
            assert!(!check(&["a.json", "c.json"]));
            assert!(check(&["/dev/null", "/dev/null"]));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_kept_and_its_file_written() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.json"), folder.path().join("c.json"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("a.json", &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.symlink_metadata().unwrap().is_symlink());
    }
}
