//! The guardian: `verify` started a second time, alone in its session, with one duty:
//! nothing of what it started outlives it or `verify`. It learns that `verify` died,
//! even by SIGKILL, from the end of its standard input; on Linux every descendant,
//! also one that left its group and lost its parent, comes back to it (subreaper), and
//! should the guardian itself be killed, the kernel kills the server (parent-death signal).

use super::log::{HeadAndTail, Redactor};
#[cfg(target_os = "linux")]
use super::proc_tree;
use super::protocol::{Event, LaunchSpec, Order};
use nix::errno::Errno;
use nix::sys::signal::{self, SigHandler, Signal};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{self, Pid};
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Grace when `verify` died and nobody can ask for more. Nothing is to be left two seconds
/// later, and the kernel needs up to a second of them to take gigabytes back from a
/// server that was killed on a busy machine.
const ORPHANED_GRACE: Duration = Duration::from_millis(500);
/// Grace for the rest of the tree when the server itself is dead already.
const LEFTOVER_GRACE: Duration = Duration::from_millis(500);
/// How long the log may still flow after the last process is gone (a pipe held elsewhere).
const DRAIN: Duration = Duration::from_secs(2);

/// Signals that a terminal or a shell sends to whole groups: the guardian decides itself.
const IGNORED: [Signal; 5] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGXFSZ];

enum Message {
    Order(Order),
    Orphaned,
    Reaped(Pid, Option<i32>, Option<i32>),
    NoChildren,
}

/// Runs the guardian over standard input and output.
///
/// # Errors
/// The launch cannot be read, or nobody listens to the events.
pub(super) fn serve() -> io::Result<()> {
    become_guardian();
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let launch: LaunchSpec = serde_json::from_str(&line)?;
    let (server, output) = match start(&launch) {
        Ok(started) => started,
        Err(error) => return report(&Event::NotStarted { cause: error.to_string() }),
    };
    let pid = Pid::from_raw(i32::try_from(server.id()).unwrap_or(i32::MAX));
    let (sender, inbox) = mpsc::channel();
    let watching = pump(output, &launch).and_then(|log| {
        listen(sender.clone())?;
        reap(sender)?;
        Ok(log)
    });
    let log = match watching {
        Ok(log) => log,
        // A limit of threads or memory: a server that nobody can watch must not run.
        Err(error) => {
            signal_tree(pid, Signal::SIGKILL);
            return report(&Event::NotStarted { cause: format!("no thread to watch it: {error}") });
        }
    };
    report(&Event::Started { pid: server.id() })?;
    let forced = guard(pid, &inbox);
    let (log_bytes, log_dropped) = log.recv_timeout(DRAIN).unwrap_or_default();
    report(&Event::Gone { forced, log_bytes, log_dropped })
}

fn become_guardian() {
    let _ = unistd::setsid();
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
    for ignored in IGNORED {
        set_disposition(ignored, SigHandler::SigIgn);
    }
}

#[expect(unsafe_code, reason = "sigaction is unsafe because of handlers; SIG_IGN and SIG_DFL install none")]
fn set_disposition(which: Signal, how: SigHandler) {
    // SAFETY: no handler function is installed, so none can run.
    let _ = unsafe { signal::signal(which, how) };
}

/// Starts the server in a session of its own, standard input closed, both outputs in
/// one pipe. Called on the main thread: the parent-death signal follows the thread.
#[expect(unsafe_code, reason = "the new session and the parent-death signal can only be set between fork and exec")]
fn start(launch: &LaunchSpec) -> io::Result<(Child, io::PipeReader)> {
    let (program, args) = launch.argv.split_first().ok_or_else(|| io::Error::other("an empty command"))?;
    let (reader, writer) = io::pipe()?;
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let guardian = unistd::getpid();
    // SAFETY: only async-signal-safe system calls; no allocation, no lock.
    unsafe {
        command.pre_exec(move || {
            unistd::setsid()?;
            for ignored in IGNORED {
                set_disposition(ignored, SigHandler::SigDfl);
            }
            #[cfg(target_os = "linux")]
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            // The guardian may have died before the signal was set.
            if unistd::getppid() == guardian { Ok(()) } else { Err(Errno::ESRCH.into()) }
        });
    }
    // `command` holds our writing ends of the pipe and drops them here; the reader ends
    // when the last process of the tree is gone.
    Ok((command.spawn()?, reader))
}

/// Drains the log on a thread of its own; the receiver gets the sizes when it ends.
fn pump(output: io::PipeReader, launch: &LaunchSpec) -> io::Result<Receiver<(u64, u64)>> {
    let (sender, receiver) = mpsc::channel();
    let mut log = HeadAndTail::new(&launch.log, launch.log_max_bytes);
    let redactor = Redactor::new(&launch.secrets);
    thread::Builder::new().spawn(move || {
        log.drain(output, &redactor);
        let _ = sender.send(log.finish());
    })?;
    Ok(receiver)
}

/// Orders from `verify`; the end of the pipe means that it is gone.
fn listen(sender: Sender<Message>) -> io::Result<()> {
    thread::Builder::new().spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if let Ok(order) = serde_json::from_str(&line) {
                let _ = sender.send(Message::Order(order));
            }
        }
        let _ = sender.send(Message::Orphaned);
    })?;
    Ok(())
}

/// Every child that ends, the server and whoever was orphaned to us.
fn reap(sender: Sender<Message>) -> io::Result<()> {
    thread::Builder::new().spawn(move || {
        loop {
            let message = match waitpid(None, None) {
                Ok(WaitStatus::Exited(pid, code)) => Message::Reaped(pid, Some(code), None),
                Ok(WaitStatus::Signaled(pid, signal, _)) => Message::Reaped(pid, None, Some(signal as i32)),
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(_) => Message::NoChildren,
            };
            let last = matches!(message, Message::NoChildren);
            if sender.send(message).is_err() || last {
                break;
            }
        }
    })?;
    Ok(())
}

/// Waits for an order or an end, then stops the tree. Returns whether SIGKILL was needed.
fn guard(server: Pid, inbox: &Receiver<Message>) -> bool {
    let mut stopping: Option<Instant> = None;
    let mut forced = false;
    loop {
        let message = match stopping {
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(20));
                inbox.recv_timeout(left)
            }
        };
        match message {
            Ok(Message::NoChildren) | Err(RecvTimeoutError::Disconnected) => return forced,
            Ok(Message::Reaped(pid, code, signal)) => {
                if pid == server {
                    let _ = report(&Event::Exited { code, signal });
                    stopping = sooner(stopping, LEFTOVER_GRACE);
                    signal_tree(server, Signal::SIGTERM);
                }
            }
            Ok(Message::Order(Order::Stop { grace_ms })) => {
                stopping = sooner(stopping, Duration::from_millis(grace_ms));
                signal_tree(server, Signal::SIGTERM);
            }
            Ok(Message::Orphaned) => {
                stopping = sooner(stopping, ORPHANED_GRACE);
                signal_tree(server, Signal::SIGTERM);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stopping.is_some_and(|deadline| Instant::now() >= deadline) {
            forced |= signal_tree(server, Signal::SIGKILL);
        }
    }
}

fn sooner(known: Option<Instant>, grace: Duration) -> Option<Instant> {
    let wanted = Instant::now() + grace;
    Some(known.map_or(wanted, |known| known.min(wanted)))
}

/// Signals every descendant; says whether there was one. Without `/proc` only the
/// server's own group can be reached.
#[cfg(target_os = "linux")]
fn signal_tree(_server: Pid, which: Signal) -> bool {
    let me = std::process::id();
    let pids: Vec<u32> = proc_tree::descendants(me).into_iter().filter(|pid| *pid != me).collect();
    for pid in &pids {
        let _ = signal::kill(Pid::from_raw(i32::try_from(*pid).unwrap_or(i32::MAX)), which);
    }
    !pids.is_empty()
}

#[cfg(not(target_os = "linux"))]
fn signal_tree(server: Pid, which: Signal) -> bool {
    signal::killpg(server, which).is_ok()
}

fn report(event: &Event) -> io::Result<()> {
    let mut line = serde_json::to_string(event)?;
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()
}
