//! A Unix socket in a fresh private folder: no other user can listen on it, no port can
//! be taken in between, and nothing of an earlier run is ever met.

use std::io;
use std::path::{Path, PathBuf};

/// Bytes that a socket's path may have: 104 on macOS and BSD, 108 on Linux, the zero included.
const LONGEST: usize = 103;

/// A folder for one socket; it goes with its owner.
#[derive(Debug)]
pub(crate) struct SocketFolder {
    folder: tempfile::TempDir,
}

impl SocketFolder {
    /// Makes one where the path is short enough for a socket.
    pub(crate) fn new() -> io::Result<Self> {
        if !cfg!(unix) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no Unix sockets that we use"));
        }
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let places = runtime.into_iter().chain([std::env::temp_dir(), PathBuf::from("/tmp")]);
        let mut last = io::Error::other("no folder for it");
        for place in places {
            match SocketFolder::below(&place) {
                Ok(folder) => return Ok(folder),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn below(place: &Path) -> io::Result<Self> {
        remove_leftovers(place);
        let mut builder = tempfile::Builder::new();
        let prefix = format!("{PREFIX}{}-", std::process::id());
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = SocketFolder { folder: builder.prefix(&prefix).rand_bytes(6).tempdir_in(place)? };
        let length = folder.path().as_os_str().len();
        if length > LONGEST {
            let text = format!("a socket's path may have {LONGEST} bytes, below {} it has {length}", place.display());
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, text));
        }
        Ok(folder)
    }

    /// Where the server listens. llama.cpp takes a host for a path by its end.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("s.sock")
    }
}

const PREFIX: &str = "verify-";

/// Removes folders of runs that were killed: their number is no living process's.
/// Best effort; a leftover harms nobody.
#[cfg(target_os = "linux")]
fn remove_leftovers(place: &Path) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split_once('-'))
            .and_then(|(pid, _)| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) && entry.path().join("s.sock").exists()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn remove_leftovers(_place: &Path) {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_folder_is_private_and_goes_with_its_owner() {
        let folder = SocketFolder::new().unwrap();
        let path = folder.path();
        let parent = path.parent().unwrap().to_path_buf();
        assert_eq!(fs::metadata(&parent).unwrap().permissions().mode() & 0o777, 0o700);
        let _listener = UnixListener::bind(&path).unwrap();
        assert!(path.to_string_lossy().ends_with(".sock"));
        drop(folder);
        assert!(!parent.exists());
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_is_not_chosen() {
        let scratch = tempfile::tempdir().unwrap();
        let deep = scratch.path().join("d".repeat(LONGEST));
        fs::create_dir(&deep).unwrap();
        assert_eq!(SocketFolder::below(&deep).unwrap_err().kind(), io::ErrorKind::InvalidFilename);
        assert_eq!(fs::read_dir(&deep).unwrap().count(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_killed_run_left_is_removed_and_what_others_have_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let make = |name: &str, file: &str| {
            fs::create_dir(scratch.path().join(name)).unwrap();
            fs::write(scratch.path().join(name).join(file), "").unwrap();
        };
        let own = format!("verify-{}-x", std::process::id());
        make("verify-4000000000-x", "s.sock");
        make("verify-4000000001-x", "data");
        make("verify-test-abc", "s.sock");
        make(&own, "s.sock");
        let folder = SocketFolder::below(scratch.path()).unwrap();
        let left = |name: &str| scratch.path().join(name).exists();
        assert!(!left("verify-4000000000-x"));
        assert!(left("verify-4000000001-x") && left("verify-test-abc") && left(&own));
        drop(folder);
    }
}
