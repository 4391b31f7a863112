//! Files that are never torn and never lost: written beside the target, synced,
//! renamed; what had the name before goes to `history/`.

use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Adds the path to an error of the system.
fn at<T>(path: &Path, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Writes `bytes` under `path` so that a reader sees the old file or the new one,
/// whole, whenever the process ends. Missing parent folders are made.
///
/// # Errors
/// The folder cannot be made or written, or the disk is full; `path` is then as it was.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = parent(path);
    at(folder, fs::create_dir_all(folder))?;
    let mut temporary = at(folder, tempfile::Builder::new().prefix(".verify-").suffix(".tmp").tempfile_in(folder))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A temporary file is private; a result is read by others.
        let mode = fs::metadata(path).map_or(0o644, |known| known.permissions().mode() & 0o777);
        at(path, temporary.as_file().set_permissions(fs::Permissions::from_mode(mode)))?;
    }
    at(path, temporary.write_all(bytes))?;
    at(path, temporary.as_file().sync_all())?;
    at(path, temporary.persist(path).map_err(|error| error.error))?;
    sync_folder(folder);
    Ok(())
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
    fn digests_are_hexadecimal() {
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
