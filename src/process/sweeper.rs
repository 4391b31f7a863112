//! The sweeper: a process that waits for the end of `verify` and, when that end was a
//! SIGKILL, ends every process that carries the mark of the run and removes its scratch
//! folder. Many short-lived programs share one sweeper, where a guardian each would
//! cost more than they run.

use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The variable whose value marks the processes of a run.
pub const MARK: &str = "VERIFY_RUN_MARK";

/// What is to be swept.
#[derive(Debug, Serialize, Deserialize)]
struct Sweep {
    mark: String,
    folder: PathBuf,
}

/// Our side: while it lives, the run is swept should we be killed. Dropping it ends the
/// sweeper without a sweep.
#[derive(Debug)]
pub struct Sweeper(Child);

impl Sweeper {
    /// Starts the sweeper for processes whose environment holds `MARK=mark`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(mark: &str, folder: &Path) -> io::Result<Self> {
        let mut command = Command::new(super::this_program()?);
        command.arg("__sweep").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            // Out of reach of a Ctrl-C that is meant for the whole foreground group.
            command.process_group(0);
        }
        let mut child = command.spawn()?;
        let mut line = serde_json::to_vec(&Sweep { mark: mark.to_owned(), folder: folder.to_path_buf() })?;
        line.push(b'\n');
        if let Some(stdin) = &mut child.stdin {
            stdin.write_all(&line)?;
        }
        Ok(Sweeper(child))
    }
}

impl Sweeper {
    /// Its process id, for whoever counts our children.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        if let Some(mut stdin) = self.0.stdin.take() {
            let _ = stdin.write_all(b"done\n");
        }
        let _ = self.0.wait();
    }
}

/// The sweeper's own side. Returns the exit code of the process.
pub(super) fn serve() -> u8 {
    let mut lines = io::stdin().lock().lines().map_while(Result::ok);
    let Some(sweep) = lines.next().and_then(|line| serde_json::from_str::<Sweep>(&line).ok()) else { return 1 };
    if lines.next().is_some() {
        return 0;
    }
    kill_marked(&format!("{MARK}={}", sweep.mark));
    let _ = std::fs::remove_dir_all(&sweep.folder);
    0
}

/// Kills every marked process until none is left; one that forks while we look is seen
/// in the next round.
#[cfg(target_os = "linux")]
fn kill_marked(mark: &str) {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    let me = std::process::id();
    for _ in 0..100 {
        let found: Vec<u32> = marked(mark).into_iter().filter(|pid| *pid != me).collect();
        if found.is_empty() {
            return;
        }
        for pid in found {
            let _ = kill(Pid::from_raw(i32::try_from(pid).unwrap_or(i32::MAX)), Signal::SIGKILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_marked(_mark: &str) {}

/// The live processes whose environment holds the text.
#[cfg(target_os = "linux")]
fn marked(mark: &str) -> Vec<u32> {
    super::proc_tree::all()
        .into_iter()
        .filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
        })
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_marked_process_is_found_and_killed() {
        let mark = format!("test-{}", std::process::id());
        let mut child = Command::new("sleep").arg("60").env(MARK, &mark).spawn().unwrap();
        let text = format!("{MARK}={mark}");
        // Until it has become `sleep`, the child still shows our own environment.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while marked(&text).is_empty() && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(marked(&text), [child.id()]);
        kill_marked(&text);
        assert!(!child.wait().unwrap().success());
    }
}
