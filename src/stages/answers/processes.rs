//! Everything a notebook starts ends with it: process table, whole trees, orphans.

use crate::process::proc_tree;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The processes that this stage started and waits for itself. Held while one is started,
/// so that the search for orphans never meets a process that is not yet known.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<BTreeSet<i32>>);

impl Known {
    /// The set; a thread that panicked left it as it is.
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Living descendants of a process, itself not among them.
pub(super) fn descendants(root: i32) -> Vec<i32> {
    let Ok(root) = u32::try_from(root) else { return Vec::new() };
    proc_tree::descendants(root).into_iter().skip(1).filter_map(|pid| i32::try_from(pid).ok()).collect()
}

/// Command line of a process, for a message; `None` for helpers of Python itself.
pub(super) fn command_line(pid: i32) -> Option<String> {
    let text = proc_tree::command_line(u32::try_from(pid).ok()?)?;
    let helper =
        ["multiprocessing.resource_tracker", "multiprocessing.semaphore_tracker", "multiprocessing.forkserver"];
    (!helper.iter().any(|name| text.contains(name))).then(|| text.chars().take(120).collect())
}

/// Kills a process with its group and every descendant. The root goes last: while it
/// lives, orphans below it stay below it.
#[cfg(unix)]
pub(super) fn kill_tree(root: i32) {
    use nix::sys::signal::{Signal, kill, killpg};
    use nix::unistd::Pid;
    let pid = Pid::from_raw(root);
    let _ = kill(pid, Signal::SIGSTOP);
    // A process that forks while we look is met in the next round.
    for _ in 0..100 {
        let family = descendants(root);
        if family.is_empty() {
            break;
        }
        for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
            for child in &family {
                let _ = kill(Pid::from_raw(*child), signal);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let _ = killpg(pid, Signal::SIGKILL);
    let _ = kill(pid, Signal::SIGKILL);
}

/// Makes this process the one that orphans are handed to.
#[cfg(target_os = "linux")]
pub(super) fn adopt_orphans(on: bool) {
    let _ = nix::sys::prctl::set_child_subreaper(on);
}

/// Elsewhere orphans go to init: only process groups are killed.
#[cfg(not(target_os = "linux"))]
pub(super) fn adopt_orphans(_on: bool) {}

/// Kills and waits for processes that became ours because their parent, a notebook, is
/// gone. Those in the session of a notebook that still runs are spared. Returns the
/// command lines of the living ones.
#[cfg(unix)]
pub(super) fn sweep(known: &Known) -> Vec<String> {
    use nix::sys::wait::{WaitPidFlag, waitpid};
    use nix::unistd::Pid;
    let known = known.lock();
    let me = std::process::id();
    let ours = |pid: u32| i32::try_from(pid).is_ok_and(|pid| known.contains(&pid));
    let mut commands = Vec::new();
    for _ in 0..20 {
        let mut orphans = proc_tree::table();
        orphans.retain(|entry| entry.parent == me && !ours(entry.pid) && (entry.zombie || !ours(entry.session)));
        if orphans.is_empty() {
            break;
        }
        for orphan in orphans {
            let Ok(pid) = i32::try_from(orphan.pid) else { continue };
            if !orphan.zombie {
                commands.extend(command_line(pid));
                kill_tree(pid);
            }
            let _ = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    commands
}
