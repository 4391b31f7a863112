//! A question to a program of somebody else: the answer is bounded in length and time,
//! because whatever is called `python` may print or wait for ever.

use std::io::{self, PipeReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A longer answer is none, in bytes.
const MAX_ANSWER: u64 = 4 << 20;
/// How often deadline and interrupt are looked at.
const TICK: Duration = Duration::from_millis(5);

/// Runs a command to its end and gives its status and standard output.
///
/// # Errors
/// It does not start, prints more than 4 MiB, takes longer than `patience`, or
/// `give_up` says that nobody wants the answer any more. It has been stopped then.
pub fn ask(command: &mut Command, patience: Duration, give_up: impl Fn() -> bool) -> io::Result<(ExitStatus, Vec<u8>)> {
    let (answer, pipe) = io::pipe()?;
    hear(command.stdout(pipe).stderr(Stdio::null()), answer, patience, give_up)
}

/// As [`ask`], with what the program says on standard error among its answer: servers
/// print their version on either.
///
/// # Errors
/// As [`ask`].
pub fn ask_both(
    command: &mut Command,
    patience: Duration,
    give_up: impl Fn() -> bool,
) -> io::Result<(ExitStatus, Vec<u8>)> {
    let (answer, pipe) = io::pipe()?;
    hear(command.stdout(pipe.try_clone()?).stderr(pipe), answer, patience, give_up)
}

fn hear(
    command: &mut Command,
    pipe: PipeReader,
    patience: Duration,
    give_up: impl Fn() -> bool,
) -> io::Result<(ExitStatus, Vec<u8>)> {
    let child = command.stdin(Stdio::null()).spawn();
    // The command holds its ends of the pipe: while it does, the answer has no end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child?;
    let answer = listen(&mut child, pipe, patience, give_up);
    if answer.is_err() {
        // An error here means that it is gone already.
        let _ = child.kill();
        let _ = child.wait();
    }
    answer
}

fn listen(
    child: &mut Child,
    pipe: PipeReader,
    patience: Duration,
    give_up: impl Fn() -> bool,
) -> io::Result<(ExitStatus, Vec<u8>)> {
    let until = Instant::now() + patience;
    let late = || if give_up() || Instant::now() >= until { Err(no_answer(patience)) } else { Ok(()) };
    let (sender, heard) = channel();
    // Not waited for: something the program left behind may hold the pipe open.
    thread::Builder::new().spawn(move || {
        let mut text = Vec::new();
        let read = pipe.take(MAX_ANSWER + 1).read_to_end(&mut text);
        let _ = sender.send(read.map(|_| text));
    })?;
    let text = loop {
        match heard.recv_timeout(TICK) {
            Ok(text) => break text?,
            Err(RecvTimeoutError::Timeout) => late()?,
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("no answer")),
        }
    };
    if text.len() as u64 > MAX_ANSWER {
        return Err(io::Error::other(format!("it printed more than {} MiB", MAX_ANSWER >> 20)));
    }
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, text));
        }
        late()?;
        thread::sleep(TICK);
    }
}

fn no_answer(patience: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("no answer in {} s", patience.as_secs()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, patience: Duration) -> io::Result<String> {
        let (_, text) = ask(Command::new("sh").args(["-c", script]), patience, || false)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    #[test]
    fn an_answer_is_bounded_in_length_and_time() {
        let long = Duration::from_secs(60);
        assert_eq!(shell("echo 3", long).unwrap(), "3\n");
        assert!(shell("exec cat /dev/zero", long).unwrap_err().to_string().contains("more than 4 MiB"));
        let (_, both) = ask_both(Command::new("sh").args(["-c", "echo 1; echo 2 >&2"]), long, || false).unwrap();
        assert_eq!(String::from_utf8_lossy(&both), "1\n2\n");
        let short = Duration::from_millis(200);
        for silent in ["exec sleep 60", "exec >&-; exec sleep 60", "sleep 60 & exit 0"] {
            let began = Instant::now();
            assert_eq!(shell(silent, short).unwrap_err().kind(), io::ErrorKind::TimedOut, "{silent}");
            assert!(began.elapsed() < long / 2, "{silent}");
        }
    }
}
