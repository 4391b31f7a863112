//! Everything a notebook starts ends with it: process table, whole trees, orphans.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One line of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Process.
    pub(super) pid: i32,
    /// Its parent.
    pub(super) parent: i32,
    /// Its session.
    session: i32,
    /// Already dead, only not yet waited for.
    zombie: bool,
}

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

/// Reads `pid (name) state parent group session …`; the name may hold anything.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has /proc"))]
fn parse_stat(text: &str) -> Option<Entry> {
    let (head, rest) = text.split_once(" (")?;
    let fields: Vec<&str> = rest.rsplit_once(") ")?.1.split(' ').collect();
    Some(Entry {
        pid: head.parse().ok()?,
        zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
    })
}

/// The process table; empty where the system has no /proc.
pub(super) fn table() -> Vec<Entry> {
    #[cfg(target_os = "linux")]
    {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(|first: char| first.is_ascii_digit()))
            .filter_map(|entry| std::fs::read(entry.path().join("stat")).ok())
            .filter_map(|bytes| parse_stat(&String::from_utf8_lossy(&bytes)))
            .collect()
    }
    #[cfg(not(target_os = "linux"))]
    Vec::new()
}

/// Living descendants of a process, itself not among them.
pub(super) fn descendants(table: &[Entry], root: i32) -> Vec<i32> {
    let mut family = vec![root];
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        family.extend(table.iter().filter(|entry| entry.parent == parent && entry.pid != root).map(|entry| entry.pid));
        at += 1;
    }
    let dead = |pid: &i32| table.iter().any(|entry| entry.pid == *pid && entry.zombie);
    family.into_iter().skip(1).filter(|pid| !dead(pid)).collect()
}

/// Command line of a process, for a message; `None` for helpers of Python itself.
pub(super) fn command_line(pid: i32) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    let helper =
        ["multiprocessing.resource_tracker", "multiprocessing.semaphore_tracker", "multiprocessing.forkserver"];
    let text = text.trim();
    (!text.is_empty() && !helper.iter().any(|name| text.contains(name))).then(|| text.chars().take(120).collect())
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
        let family = descendants(&table(), root);
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
    let me = i32::try_from(std::process::id()).unwrap_or(0);
    let mut commands = Vec::new();
    for _ in 0..20 {
        let table = table();
        let orphans: Vec<Entry> = table
            .into_iter()
            .filter(|entry| entry.parent == me && !known.contains(&entry.pid))
            .filter(|entry| entry.zombie || !known.contains(&entry.session))
            .collect();
        if orphans.is_empty() {
            break;
        }
        for orphan in orphans {
            if !orphan.zombie {
                commands.extend(command_line(orphan.pid));
                kill_tree(orphan.pid);
            }
            let _ = waitpid(Pid::from_raw(orphan.pid), Some(WaitPidFlag::WNOHANG));
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let entry = parse_stat("12 (a) b (c) S 3 4 5 0").unwrap();
        assert_eq!(entry, Entry { pid: 12, parent: 3, session: 5, zombie: false });
        assert!(parse_stat("12 (x) Z 3 4 5 0").unwrap().zombie);
    }

    #[test]
    fn the_whole_family_is_found_and_the_dead_are_left_out() {
        let entry = |pid, parent, zombie| Entry { pid, parent, session: 0, zombie };
        let table = [entry(3, 2, false), entry(2, 1, false), entry(4, 3, true), entry(9, 8, false)];
        assert_eq!(descendants(&table, 1), [2, 3]);
    }
}
