//! One notebook as a process: started, watched, ended together with all it started.

use super::events::Reader;
use super::output::Output;
use super::processes::{self, Known};
use super::verdict::{End, Run};
use crate::interrupt::Cancel;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

/// How often deadline, interrupt and exit are looked at.
const TICK: Duration = Duration::from_millis(5);
/// How long output is drained once everything is dead.
const DRAIN: Duration = Duration::from_millis(200);
/// How long a notebook out of time may take to say where it is.
const STACK_WAIT: Duration = Duration::from_millis(150);

/// A command to start.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    /// Program and arguments.
    pub(super) command: Vec<OsString>,
    /// The whole environment.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub(super) cwd: PathBuf,
}

/// What a run is held to.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    /// Starts the lines of the channel that count.
    pub(super) nonce: &'a str,
    /// Time for the notebook.
    pub(super) timeout: Duration,
    /// Where the driver writes its stack when asked.
    pub(super) stack: &'a Path,
    /// Folder of the cell files.
    pub(super) cells: &'a Path,
    /// Interruption.
    pub(super) cancel: &'a Cancel,
    /// Processes we wait for.
    pub(super) known: &'a Known,
}

/// A process that runs a notebook.
pub(super) enum Process {
    /// Our own child.
    Own(Child),
    /// A child of the fork server, which tells its status.
    Forked {
        /// The process.
        pid: i32,
        /// Raw wait status, once it is gone.
        status: Receiver<i32>,
    },
}

impl Process {
    fn pid(&self) -> i32 {
        match self {
            Process::Own(child) => i32::try_from(child.id()).unwrap_or(0),
            Process::Forked { pid, .. } => *pid,
        }
    }

    fn try_exit(&mut self) -> Option<End> {
        match self {
            Process::Own(child) => child.try_wait().ok().flatten().map(end_of),
            Process::Forked { status, .. } => match status.try_recv() {
                Ok(raw) => Some(end_of(ExitStatus::from_raw(raw))),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => Some(End::Lost),
            },
        }
    }

    fn reap(&mut self) {
        match self {
            Process::Own(child) => drop(child.wait()),
            Process::Forked { status, .. } => drop(status.recv_timeout(Duration::from_secs(2))),
        }
    }
}

fn end_of(status: ExitStatus) -> End {
    match status.signal() {
        Some(signal) => End::Signal(signal),
        None => End::Exited(status.code().unwrap_or(-1)),
    }
}

/// The ends of a pipe: ours, and the one for the child. Neither survives an `exec` by
/// itself.
pub(super) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?)
}

/// Lets one descriptor survive an `exec`. Only under the lock of [`Known`]: nobody else
/// may start a process while it is open.
pub(super) fn make_inheritable(descriptor: &OwnedFd) -> io::Result<()> {
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(())
}

/// Starts `launch` with `passed` inheritable; output goes to `output`.
pub(super) fn spawn(launch: &Launch, output: OwnedFd, passed: OwnedFd, known: &Known) -> io::Result<Child> {
    let mut guard = known.lock();
    make_inheritable(&passed)?;
    let [program, arguments @ ..] = launch.command.as_slice() else {
        return Err(io::Error::other("no program"));
    };
    let errors = output.try_clone()?;
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&launch.cwd)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()?;
    drop(passed);
    guard.insert(i32::try_from(child.id()).unwrap_or(0));
    Ok(child)
}

/// Starts an interpreter of its own for a notebook. `channel` gives the argument that
/// names the descriptor of the control channel.
pub(super) fn run_fresh(launch: &Launch, watch: &Watch<'_>) -> io::Result<(Run, Vec<String>)> {
    let (output, output_child) = pipe()?;
    let (channel, channel_child) = pipe()?;
    let mut launch = launch.clone();
    launch.command.push(channel_child.as_raw_fd().to_string().into());
    let child = spawn(&launch, output_child, channel_child, watch.known)?;
    Ok(supervise(Process::Own(child), output, channel, watch))
}

/// Watches a process until its verdict is known, then ends everything it started.
pub(super) fn supervise(
    mut process: Process,
    output: OwnedFd,
    channel: OwnedFd,
    watch: &Watch<'_>,
) -> (Run, Vec<String>) {
    let mut ears = Ears {
        output: Some(output),
        channel: Some(channel),
        kept: Output::default(),
        reader: Reader::new(watch.nonce),
    };
    let pid = process.pid();
    let end = follow(&mut process, &mut ears, watch);
    let left: Vec<String> = match end {
        End::Told | End::Exited(_) => {
            let family = processes::descendants(pid);
            family.into_iter().filter_map(processes::command_line).collect()
        }
        _ => Vec::new(),
    };
    processes::kill_tree(pid);
    process.reap();
    watch.known.lock().remove(&pid);
    let orphans = processes::sweep(watch.known);
    ears.drain();
    let left = if left.is_empty() && matches!(end, End::Exited(_)) { orphans } else { left };
    (Run { events: ears.reader.events, end, tail: ears.kept.last_lines() }, left)
}

fn follow(process: &mut Process, ears: &mut Ears, watch: &Watch<'_>) -> End {
    let deadline = Instant::now() + watch.timeout;
    loop {
        if ears.listen(TICK) {
            return End::Told;
        }
        if let Some(end) = process.try_exit() {
            // What it told last may still be in the pipe.
            while ears.hears_channel() {}
            return if ears.reader.ended() { End::Told } else { end };
        }
        if watch.cancel.is_set() {
            return End::Interrupted;
        }
        if Instant::now() >= deadline {
            return End::Timeout(where_is_it(process.pid(), ears, watch));
        }
    }
}

/// Asks the driver for its stack; a process that is stuck in native code answers too.
fn where_is_it(pid: i32, ears: &mut Ears, watch: &Watch<'_>) -> Option<(u32, u32)> {
    kill(Pid::from_raw(pid), Signal::SIGUSR2).ok()?;
    let until = Instant::now() + STACK_WAIT;
    while Instant::now() < until {
        ears.listen(TICK);
        let text = std::fs::read_to_string(watch.stack).unwrap_or_default();
        if let Some(place) = place_in_stack(&text, watch.cells) {
            return Some(place);
        }
    }
    None
}

/// First line such as `File "…/cells/7.py", line 3 in f` whose file is a cell.
fn place_in_stack(text: &str, cells: &Path) -> Option<(u32, u32)> {
    let prefix = format!("File \"{}/", cells.display());
    text.lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix(&prefix)?;
        let (cell, rest) = rest.split_once(".py\", line ")?;
        let line = rest.split(' ').next()?;
        Some((cell.parse().ok()?, line.parse().ok()?))
    })
}

/// The two descriptors of a run, and what was heard.
struct Ears {
    output: Option<OwnedFd>,
    channel: Option<OwnedFd>,
    kept: Output,
    reader: Reader,
}

impl Ears {
    /// Waits up to `wait` for something and takes it. True when the notebook told its end.
    fn listen(&mut self, wait: Duration) -> bool {
        let ready = self.ready(wait);
        if ready.0 {
            self.hear_output();
        }
        if ready.1 {
            self.hear_channel();
        }
        self.reader.ended()
    }

    fn ready(&self, wait: Duration) -> (bool, bool) {
        let open: Vec<(usize, &OwnedFd)> = [&self.output, &self.channel]
            .into_iter()
            .enumerate()
            .filter_map(|(at, fd)| Some((at, fd.as_ref()?)))
            .collect();
        let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO);
        if open.is_empty() {
            std::thread::sleep(wait);
            return (false, false);
        }
        let mut polled: Vec<PollFd<'_>> =
            open.iter().map(|(_, fd)| PollFd::new(fd.as_fd(), PollFlags::POLLIN)).collect();
        let _ = poll(&mut polled, timeout);
        let heard =
            |wanted: usize| open.iter().zip(&polled).any(|((at, _), fd)| *at == wanted && fd.any().unwrap_or(false));
        (heard(0), heard(1))
    }

    fn hear_output(&mut self) {
        let mut buffer = [0; 1 << 16];
        match read(self.output.as_ref(), &mut buffer) {
            0 => self.output = None,
            count => self.kept.feed(&buffer[..count]),
        }
    }

    fn hear_channel(&mut self) -> bool {
        let mut buffer = [0; 1 << 16];
        match read(self.channel.as_ref(), &mut buffer) {
            0 => {
                self.channel = None;
                false
            }
            count => {
                self.reader.feed(&buffer[..count]);
                true
            }
        }
    }

    fn hears_channel(&mut self) -> bool {
        self.ready(Duration::ZERO).1 && self.hear_channel()
    }

    /// Everything is dead, so the pipe ends by itself; the bound is for what is not ours.
    fn drain(&mut self) {
        let until = Instant::now() + DRAIN;
        while self.output.is_some() && Instant::now() < until {
            if self.ready(Duration::from_millis(20)).0 {
                self.hear_output();
            }
        }
    }
}

fn read(descriptor: Option<&OwnedFd>, buffer: &mut [u8]) -> usize {
    let Some(descriptor) = descriptor else { return 0 };
    let Ok(copy) = descriptor.try_clone() else { return 0 };
    File::from(copy).read(buffer).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_stuck_notebook_is_read_from_its_stack() {
        let text = "Current thread 0x1 (most recent call first):\n  File \"/usr/lib/x.py\", line 9 in g\n  File \"/s/cells/7.py\", line 3 in f\n  File \"/s/cells/4.py\", line 6 in <module>\n";
        assert_eq!(place_in_stack(text, Path::new("/s/cells")), Some((7, 3)));
    }
}
