//! Files that are never torn and never lost: written beside the target, synced,
//! renamed; what had the name before goes to `history/`.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// An error of the system with the path it is about.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", .path.display())]
struct Placed {
    path: PathBuf,
    source: io::Error,
}

/// Adds the path to an error of the system.
fn at<T>(path: &Path, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), Placed { path: path.to_owned(), source: error }))
}

/// The error of the system alone, for those who name the path themselves.
pub fn without_place(error: io::Error) -> io::Error {
    error.downcast::<Placed>().map_or_else(|error| error, |placed| placed.source)
}

/// What the system said of a temporary file, without a name that nobody chose: tempfile
/// gives that in the text alone.
fn unnamed(error: io::Error) -> io::Error {
    let text = error.to_string();
    text.rsplit_once(" at path ")
        .map_or_else(|| io::Error::other(text.clone()), |(said, _)| io::Error::new(error.kind(), said.to_owned()))
}

/// How temporary files are called.
const TEMPORARY: (&str, &str) = (".verify-", ".tmp");
/// A temporary file older than this belongs to no run that still writes it.
const STALE: std::time::Duration = std::time::Duration::from_secs(60 * 60);

/// Removes what a killed run left in `folder`; looked for once in the life of the
/// process. Best effort: a leftover harms nobody.
fn remove_leftovers(folder: &Path) {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let first = SEEN.lock().is_ok_and(|mut seen| seen.insert(folder.to_owned()));
    let entries = if first { fs::read_dir(folder).ok() } else { None };
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let facts = entry.metadata().ok().filter(fs::Metadata::is_file);
        let age = facts.and_then(|facts| facts.modified().ok()?.elapsed().ok());
        if name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1) && age.is_some_and(|age| age > STALE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Writes `bytes` under `path` so that a reader sees the old file or the new one,
/// whole, whenever the process ends. Missing parent folders are made.
///
/// # Errors
/// The folder cannot be made or written, or the disk is full; `path` is then as it was.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let bytes = &*crate::secrets::clean(bytes);
    let folder = parent(path);
    at(folder, fs::create_dir_all(folder))?;
    remove_leftovers(folder);
    #[cfg(target_os = "linux")]
    if write_unnamed(folder, path, bytes)? {
        return Ok(());
    }
    let (prefix, suffix) = TEMPORARY;
    let temporary = tempfile::Builder::new().prefix(prefix).suffix(suffix).tempfile_in(folder);
    let mut temporary = at(folder, temporary.map_err(unnamed))?;
    at(path, fill(temporary.as_file_mut(), path, bytes))?;
    at(path, temporary.persist(path).map_err(|error| error.error))?;
    sync_folder(folder);
    Ok(())
}

/// Content and permissions of what is going to be `path`, on the disk.
fn fill(file: &mut File, path: &Path, bytes: &[u8]) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A temporary file is private; a result is read by others.
        let mode = fs::metadata(path).map_or(0o644, |known| known.permissions().mode() & 0o777);
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Writes through a file without a name, which the system drops when the process is
/// killed; it gets a temporary name only for the moment of the rename. `false` where the
/// file system cannot do that; nothing is left then.
#[cfg(target_os = "linux")]
fn write_unnamed(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<bool> {
    use nix::fcntl::{AT_FDCWD, AtFlags};
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let Ok(mut file) = tempfile::tempfile_in(folder) else { return Ok(false) };
    at(path, fill(&mut file, path, bytes))?;
    let (prefix, suffix) = TEMPORARY;
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = folder.join(format!("{prefix}{}-{number}{suffix}", std::process::id()));
    let open = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    if nix::unistd::linkat(AT_FDCWD, &open, AT_FDCWD, &name, AtFlags::AT_SYMLINK_FOLLOW).is_err() {
        return Ok(false);
    }
    if let Err(error) = fs::rename(&name, path) {
        let _ = fs::remove_file(&name);
        return at(path, Err(error));
    }
    sync_folder(folder);
    Ok(true)
}

/// Whether what is written under `path` stays below `root`, whatever links stand on the
/// way: of a path that is not there yet, the part that is.
pub fn is_inside(root: &Path, path: &Path) -> bool {
    let goes_up = path.components().any(|part| part == std::path::Component::ParentDir);
    let there = path.ancestors().skip(1).find_map(|part| part.canonicalize().ok());
    let root = root.canonicalize();
    !goes_up && there.zip(root.ok()).is_some_and(|(there, root)| there.starts_with(root))
}

/// Like [`write_atomic`], but a file of that name is first kept in `history/` beside
/// it, with the time in its name. Returns where it was kept.
///
/// # Errors
/// As [`write_atomic`]; the earlier file is then still under its name.
pub fn write_keeping_history(path: &Path, bytes: &[u8], now: jiff::Timestamp) -> io::Result<Option<PathBuf>> {
    let kept = if path.exists() { Some(keep_in_history(path, now)?) } else { None };
    if let Err(error) = write_atomic(path, bytes) {
        // The earlier file never left its name; a second name for it would only confuse.
        if let Some(kept) = &kept {
            let _ = fs::remove_file(kept);
        }
        return Err(error);
    }
    Ok(kept)
}

/// Moves a file to `history/` beside it, if it is there.
///
/// # Errors
/// It cannot be moved.
pub fn retire_to_history(path: &Path, now: jiff::Timestamp) -> io::Result<()> {
    if path.exists() {
        keep_in_history(path, now)?;
        at(path, fs::remove_file(path))?;
    }
    Ok(())
}

/// Gives the file a second name in `history/`; it keeps its first one until something
/// is renamed over it, so that at no moment there is none.
fn keep_in_history(path: &Path, now: jiff::Timestamp) -> io::Result<PathBuf> {
    let folder = parent(path).join("history");
    at(&folder, fs::create_dir_all(&folder))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let stamp = now.strftime("%Y%m%dT%H%M%S%3fZ");
    for attempt in 0..1000 {
        let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
        let kept = folder.join(format!("{stem}.{stamp}{suffix}.{extension}"));
        match fs::hard_link(path, &kept) {
            Ok(()) => return Ok(kept),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // No hard links here (some network and FAT file systems): copy.
            Err(_) if !kept.exists() => {
                at(&kept, fs::copy(path, &kept))?;
                return Ok(kept);
            }
            Err(error) => return at(&kept, Err(error)),
        }
    }
    Err(io::Error::other(format!("{}: too many files of this name", folder.display())))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes the rename itself durable. Best effort: not every file system lets a folder
/// be synced, and the bytes are synced already.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// SHA-256 in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-256 of a file, read in pieces.
///
/// # Errors
/// The file cannot be read.
pub fn sha256_file(path: &Path) -> io::Result<String> {
    let mut file = at(path, File::open(path))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match at(path, file.read(&mut buffer))? {
            0 => return Ok(hex(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_result_is_kept_and_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/66.json");
        let now: jiff::Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        assert_eq!(write_keeping_history(&path, b"one", now).unwrap(), None);
        let first = write_keeping_history(&path, b"two", now).unwrap().unwrap();
        let second = write_keeping_history(&path, b"three", now).unwrap().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        assert_eq!(fs::read(&first).unwrap(), b"one");
        assert_eq!(fs::read(&second).unwrap(), b"two");
        assert_eq!(first.file_name().unwrap(), "66.20261130T120000000Z.json");
        let names: Vec<_> =
            fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_another_writes_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (old, young) = (folder.path().join(".verify-abc.tmp"), folder.path().join(".verify-def.tmp"));
        fs::write(&young, "").unwrap();
        let then = std::time::SystemTime::now() - 2 * STALE;
        File::create(&old).unwrap().set_modified(then).unwrap();
        let other = folder.path().join("mine.tmp");
        File::create(&other).unwrap().set_modified(then).unwrap();
        write_atomic(&folder.path().join("a.json"), b"{}").unwrap();
        assert_eq!((old.exists(), young.exists(), other.exists()), (false, true, true));
    }

    #[test]
    fn an_error_names_neither_the_temporary_file_nor_a_path_twice() {
        let folder = tempfile::tempdir().unwrap();
        let error = tempfile::Builder::new().tempfile_in(folder.path().join("no")).map_err(unnamed).unwrap_err();
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = crate::error::RunError::file("r.json", write_atomic(&file.join("r.json"), b"").unwrap_err());
        let text = error.to_string();
        assert!(text.starts_with("r.json: ") && !text.contains(&*file.to_string_lossy()), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn a_path_is_inside_when_its_folders_are_whatever_links_say() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(root.path().join("in")).unwrap();
        std::os::unix::fs::symlink(other.path(), root.path().join("out")).unwrap();
        std::os::unix::fs::symlink("in", root.path().join("link")).unwrap();
        let inside = |path: &str| is_inside(root.path(), &root.path().join(path));
        assert!(inside("a.json") && inside("in/a.json") && inside("new/deep/a.json") && inside("link/a.json"));
        assert!(!inside("out/a.json") && !inside("out/new/a.json") && !inside("../a.json") && !inside("in/../../a"));
        assert!(!is_inside(root.path(), &other.path().join("a.json")));
    }

    #[test]
    fn digests_are_hexadecimal() {
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
