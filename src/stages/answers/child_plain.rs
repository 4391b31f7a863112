//! One notebook as a process, where there are no process groups and no descriptors to
//! hand over: the channel is a file. Weaker than on Unix: what the notebook starts in
//! turn is not followed.

use super::events::Reader;
use super::output::Output;
use super::processes::Known;
use super::verdict::{End, Run};
use crate::interrupt::Cancel;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often deadline, interrupt and exit are looked at.
const TICK: Duration = Duration::from_millis(5);

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
    /// Beside it lies the file of the channel.
    pub(super) stack: &'a Path,
    /// Folder of the cell files.
    #[expect(dead_code, reason = "only Unix can ask a stuck notebook where it is")]
    pub(super) cells: &'a Path,
    /// Interruption.
    pub(super) cancel: &'a Cancel,
    /// Processes we wait for.
    #[expect(dead_code, reason = "only Linux hands orphans to us")]
    pub(super) known: &'a Known,
}

/// Starts an interpreter of its own for a notebook and ends it with its verdict.
pub(super) fn run_fresh(launch: &Launch, watch: &Watch<'_>) -> io::Result<(Run, Vec<String>)> {
    let channel = watch.stack.with_file_name("channel.txt");
    File::create(&channel)?;
    let [program, arguments @ ..] = launch.command.as_slice() else { return Err(io::Error::other("no program")) };
    let mut child = Command::new(program)
        .args(arguments)
        .arg(&channel)
        .env_clear()
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&launch.cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let kept = Arc::new(Mutex::new(Output::default()));
    let listening = listen(child.stdout.take(), &kept).and_then(|()| listen(child.stderr.take(), &kept));
    if let Err(error) = listening {
        let _ = child.kill();
        let _ = child.wait();
        return Err(error);
    }
    let mut reader = Reader::new(watch.nonce);
    let end = follow(&mut child, File::open(&channel)?, &mut reader, watch);
    let _ = child.kill();
    let _ = child.wait();
    let tail = kept.lock().unwrap_or_else(PoisonError::into_inner).last_lines();
    Ok((Run { events: reader.events, end, tail }, Vec::new()))
}

fn follow(child: &mut Child, mut channel: File, reader: &mut Reader, watch: &Watch<'_>) -> End {
    let deadline = Instant::now() + watch.timeout;
    let mut buffer = Vec::new();
    loop {
        let gone = child.try_wait().ok().flatten();
        buffer.clear();
        if channel.read_to_end(&mut buffer).is_ok() && reader.feed(&buffer) {
            return End::Told;
        }
        if let Some(status) = gone {
            return End::Exited(status.code().unwrap_or(-1));
        }
        if watch.cancel.is_set() {
            return End::Interrupted;
        }
        if Instant::now() >= deadline {
            return End::Timeout(None);
        }
        std::thread::sleep(TICK);
    }
}

/// Reads until the pipe ends; a process that outlives the notebook keeps only this thread.
fn listen(pipe: Option<impl Read + Send + 'static>, kept: &Arc<Mutex<Output>>) -> io::Result<()> {
    let (Some(mut pipe), kept) = (pipe, Arc::clone(kept)) else { return Ok(()) };
    std::thread::Builder::new().spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            kept.lock().unwrap_or_else(PoisonError::into_inner).feed(&buffer[..count]);
        }
    })?;
    Ok(())
}
