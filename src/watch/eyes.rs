//! Seeing changes: the watcher of the system, with the bursts that an editor makes of
//! one save put together.

use super::changes::{Changes, is_temporary};
use crate::error::RunError;
use crate::interrupt::Cancel;
use crate::model::Localized;
use ignore::WalkBuilder;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A save is over when nothing happened for so long.
const QUIET: Duration = Duration::from_millis(30);
/// A change is looked at after so long, though files go on changing.
const LONGEST: Duration = Duration::from_millis(500);
/// How often an interrupt is looked at.
const TICK: Duration = Duration::from_millis(50);

/// Folders whose changes mean nothing: of git, of interpreters, of packages, of ours.
const PASSED_OVER: &[&str] = &[".git", ".verify", "node_modules", "__pycache__", ".ipynb_checkpoints"];
/// A folder with this file holds generated things; cargo, pytest and others write it.
const CACHE_MARK: &str = "CACHEDIR.TAG";

/// Watches a tree.
pub(super) struct Eyes {
    watcher: RecommendedWatcher,
    events: Receiver<notify::Result<Event>>,
    root: PathBuf,
    /// Files that the run itself writes.
    own: Vec<PathBuf>,
    /// Files that were there when they were last looked at: a temporary file that came and
    /// went between two looks was never there.
    known: BTreeSet<PathBuf>,
}

impl Eyes {
    /// Begins to watch what is below `root` and not ignored.
    ///
    /// # Errors
    /// The system does not watch that much.
    pub(super) fn open(root: &Path, own: Vec<PathBuf>) -> Result<Self, RunError> {
        let (sender, events) = channel();
        let tell = move |event: notify::Result<Event>| {
            // Every file that a run opens is an event too; nobody listens when the watch ends.
            if event.as_ref().map_or(true, matters) {
                let _ = sender.send(event);
            }
        };
        let watcher = notify::recommended_watcher(tell).map_err(|error| cannot_watch(&error))?;
        let mut eyes = Eyes { watcher, events, root: root.to_path_buf(), own, known: BTreeSet::new() };
        if !cfg!(target_os = "linux") {
            eyes.watcher.watch(root, RecursiveMode::Recursive).map_err(|error| cannot_watch(&error))?;
        }
        eyes.look(root).map_err(|error| cannot_watch(&error))?;
        Ok(eyes)
    }

    /// How many files are watched.
    pub(super) fn count(&self) -> usize {
        self.known.len()
    }

    /// Waits for a change and what follows at once. `None`: an interrupt.
    pub(super) fn wait(&mut self, cancel: &Cancel) -> Option<Changes> {
        loop {
            if cancel.is_set() {
                return None;
            }
            match self.events.recv_timeout(TICK) {
                Ok(first) => return Some(self.collect(first)),
                Err(RecvTimeoutError::Timeout) => {}
                // The sender lives in the watcher, so it cannot go.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
            }
        }
    }

    /// One look at what a burst of events left behind.
    fn collect(&mut self, first: notify::Result<Event>) -> Changes {
        let until = Instant::now() + LONGEST;
        let mut burst = vec![first];
        while Instant::now() < until
            && let Ok(event) = self.events.recv_timeout(QUIET)
        {
            burst.push(event);
        }
        let mut changes = Changes::default();
        let mut paths = BTreeSet::new();
        for event in burst {
            match event {
                Ok(event) if !event.need_rescan() => paths.extend(event.paths),
                // Events were lost: only looking at everything again is safe.
                _ => changes.everything = true,
            }
        }
        if changes.everything {
            paths.insert(self.root.clone());
        }
        for path in paths {
            if !self.passes_over(&path) {
                self.take(path, &mut changes);
            }
        }
        changes
    }

    fn take(&mut self, path: PathBuf, changes: &mut Changes) {
        match path.symlink_metadata() {
            Ok(facts) if facts.is_dir() => {
                let before = self.known.clone();
                // A folder that cannot be watched any more is as good as unchanged.
                let _ = self.look(&path);
                changes.files.extend(self.known.difference(&before).cloned());
            }
            Ok(_) => {
                self.known.insert(path.clone());
                changes.files.insert(path);
            }
            Err(_) => {
                let gone: Vec<PathBuf> = self.known.iter().filter(|file| file.starts_with(&path)).cloned().collect();
                for file in &gone {
                    self.known.remove(file);
                }
                changes.files.extend(gone);
            }
        }
    }

    /// Learns the files below a folder, and watches its folders where the system wants
    /// each to be named. Linux counts them: ignored ones are not watched.
    fn look(&mut self, folder: &Path) -> notify::Result<()> {
        let walker = WalkBuilder::new(folder)
            .hidden(false)
            .parents(folder != self.root)
            .require_git(false)
            .git_global(false)
            .filter_entry(|entry| !is_passed_over(entry.path()))
            .build();
        for entry in walker.flatten() {
            if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
                self.known.insert(entry.into_path());
            } else if cfg!(target_os = "linux")
                && let Err(error) = self.watcher.watch(entry.path(), RecursiveMode::NonRecursive)
                // A folder that went in this very moment needs no watch.
                && entry.path().exists()
            {
                return Err(error);
            }
        }
        Ok(())
    }

    fn passes_over(&self, path: &Path) -> bool {
        let inside = path.strip_prefix(&self.root).unwrap_or(path);
        is_temporary(path)
            || self.own.iter().any(|own| own == path)
            || inside.ancestors().any(|part| part.file_name().is_some() && is_passed_over(&self.root.join(part)))
    }
}

fn is_passed_over(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    PASSED_OVER.iter().any(|known| name == *known) || path.join(CACHE_MARK).exists() || path.join("pyvenv.cfg").exists()
}

/// Whether an event says that something else stands in a file now.
fn matters(event: &Event) -> bool {
    let only_read =
        matches!(event.kind, EventKind::Access(_) | EventKind::Modify(notify::event::ModifyKind::Metadata(_)));
    event.need_rescan() || !only_read
}

fn cannot_watch(error: &notify::Error) -> RunError {
    let hint = match error.kind {
        notify::ErrorKind::MaxFilesWatch => Localized::both(
            "the system watches no more folders; raise fs.inotify.max_user_watches, or leave folders out in .gitignore",
            "系统的监视数量已达上限；请调高 fs.inotify.max_user_watches，或在 .gitignore 中排除一些目录",
        ),
        _ => Localized::both("run the command without --watch", "请去掉 --watch 再运行"),
    };
    RunError::usage(
        Localized::both(format!("files cannot be watched: {error}"), format!("无法监视文件：{error}")),
        hint,
    )
}
