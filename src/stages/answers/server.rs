//! The fork server: one interpreter imports what notebooks share, then forks a child for
//! each of them.

use super::child::{self, Launch, Process, Watch};
use super::processes::{self, Known};
use super::verdict::Run;
use crate::interrupt::Cancel;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, IoSlice, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the server may take to fork.
const FORK_WAIT: Duration = Duration::from_secs(20);

/// What the server says.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Answer {
    Ready {
        #[expect(dead_code, reason = "the field tells this answer from the others")]
        ready: bool,
        failed: BTreeMap<String, String>,
        r#unsafe: Option<String>,
    },
    Forked {
        id: u64,
        pid: i32,
    },
    Gone {
        id: u64,
        status: i32,
    },
}

type Waiting = Arc<Mutex<BTreeMap<u64, Sender<i32>>>>;

/// A running fork server.
pub(super) struct Server {
    process: Mutex<Child>,
    requests: Mutex<Requests>,
    waiting: Waiting,
    /// Modules that could not be imported, with the reason.
    pub(super) failed: BTreeMap<String, String>,
}

struct Requests {
    stream: UnixStream,
    forked: Receiver<(u64, i32)>,
    next: u64,
}

impl Server {
    /// Starts the server and waits until it has imported. `launch` ends with the command
    /// that takes the number of its socket.
    ///
    /// # Errors
    /// It does not start, says that forking would not be safe, or takes too long.
    pub(super) fn start(
        launch: &Launch,
        modules: &[String],
        paths: &[PathBuf],
        patience: Duration,
        cancel: &Cancel,
        known: &Known,
    ) -> io::Result<Server> {
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = OwnedFd::from(theirs);
        let mut launch = launch.clone();
        launch.command.push(theirs.as_raw_fd().to_string().into());
        let nothing = OwnedFd::from(std::fs::OpenOptions::new().write(true).open("/dev/null")?);
        let process = child::spawn(&launch, nothing, theirs, known)?;
        let waiting = Waiting::default();
        let (ready_to, ready) = channel();
        let (forked_to, forked) = channel();
        let heard = ours.try_clone()?;
        let requests = Mutex::new(Requests { stream: ours, forked, next: 0 });
        let mut server = Server { process: Mutex::new(process), requests, waiting, failed: BTreeMap::new() };
        listen(heard, ready_to, forked_to, Arc::clone(&server.waiting))?;
        server.hello(modules, paths)?;
        server.failed = server.wait_ready(&ready, patience, cancel)?;
        Ok(server)
    }

    fn hello(&self, modules: &[String], paths: &[PathBuf]) -> io::Result<()> {
        let hello = serde_json::json!({"modules": modules, "paths": paths}).to_string();
        lock(&self.requests).stream.write_all(hello.as_bytes())
    }

    fn wait_ready(
        &self,
        ready: &Receiver<Answer>,
        patience: Duration,
        cancel: &Cancel,
    ) -> io::Result<BTreeMap<String, String>> {
        let until = Instant::now() + patience;
        loop {
            match ready.recv_timeout(Duration::from_millis(20)) {
                Ok(Answer::Ready { r#unsafe: Some(cause), .. }) => return Err(io::Error::other(cause)),
                Ok(Answer::Ready { failed, .. }) => return Ok(failed),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("the importing process ended")),
                Err(RecvTimeoutError::Timeout) if cancel.is_set() || Instant::now() > until => {
                    return Err(io::Error::other("importing took too long"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Runs one notebook in a fork.
    ///
    /// # Errors
    /// The server is gone; the notebook has not run.
    pub(super) fn run(&self, plan: &Path, watch: &Watch<'_>) -> io::Result<(Run, Vec<String>)> {
        let (output, output_child) = child::pipe()?;
        let (control, control_child) = child::pipe()?;
        let (status_to, status) = channel();
        let pid = self.fork(plan, &output_child, &control_child, status_to, watch.known)?;
        drop((output_child, control_child));
        Ok(child::supervise(Process::Forked { pid, status }, output, control, watch))
    }

    fn fork(
        &self,
        plan: &Path,
        output: &OwnedFd,
        control: &OwnedFd,
        status: Sender<i32>,
        known: &Known,
    ) -> io::Result<i32> {
        let mut requests = lock(&self.requests);
        requests.next += 1;
        let id = requests.next;
        lock(&self.waiting).insert(id, status);
        let text = serde_json::json!({"id": id, "plan": plan}).to_string();
        let descriptors = [output.as_raw_fd(), control.as_raw_fd()];
        let message = [ControlMessage::ScmRights(&descriptors)];
        sendmsg::<()>(
            requests.stream.as_raw_fd(),
            &[IoSlice::new(text.as_bytes())],
            &message,
            MsgFlags::empty(),
            None,
        )?;
        let (answered, pid) = requests.forked.recv_timeout(FORK_WAIT).map_err(io::Error::other)?;
        if answered != id {
            return Err(io::Error::other("the importing process lost count"));
        }
        known.lock().insert(pid);
        Ok(pid)
    }

    /// Ends the server.
    pub(super) fn stop(&self, known: &Known) {
        let mut process = lock(&self.process);
        let pid = i32::try_from(process.id()).unwrap_or(0);
        processes::kill_tree(pid);
        let _ = process.wait();
        known.lock().remove(&pid);
        processes::sweep(known);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let process = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Stopped already in the ordinary case; killing what is waited for does nothing.
        let _ = process.kill();
        let _ = process.wait();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands every answer to whoever waits for it, until the server is gone.
fn listen(stream: UnixStream, ready: Sender<Answer>, forked: Sender<(u64, i32)>, waiting: Waiting) -> io::Result<()> {
    std::thread::Builder::new().spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            match serde_json::from_str::<Answer>(&line) {
                Ok(Answer::Forked { id, pid }) => drop(forked.send((id, pid))),
                Ok(Answer::Gone { id, status }) => {
                    if let Some(sender) = lock(&waiting).remove(&id) {
                        let _ = sender.send(status);
                    }
                }
                Ok(answer @ Answer::Ready { .. }) => drop(ready.send(answer)),
                Err(_) => {}
            }
        }
        // Whoever still waits learns that nobody will answer.
        lock(&waiting).clear();
    })?;
    Ok(())
}
