//! The guardian where there are no process groups: it ends the server when it is told
//! to, or when `verify` is gone. A process that the server started may live on, and
//! results say so.

use super::log::{HeadAndTail, Redactor};
use super::protocol::{Event, LaunchSpec, Order};
use std::io::{self, BufRead, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Runs the guardian over the given pipes.
///
/// # Errors
/// The launch cannot be read, or nobody listens to the events.
pub(super) fn serve(mut orders: impl BufRead + Send + 'static, mut events: impl Write) -> io::Result<()> {
    let mut line = String::new();
    orders.read_line(&mut line)?;
    let launch: LaunchSpec = serde_json::from_str(&line)?;
    let (program, args) = launch.argv.split_first().ok_or_else(|| io::Error::other("an empty command"))?;
    let (reader, writer) = io::pipe()?;
    let started = Command::new(program)
        .args(args)
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn();
    let mut server = match started {
        Ok(server) => server,
        Err(error) => return report(&mut events, &Event::NotStarted { cause: error.to_string() }),
    };
    let mut log = HeadAndTail::new(&launch.log, launch.log_max_bytes);
    let redactor = Redactor::new(&launch.secrets);
    let (sizes_in, sizes) = mpsc::channel();
    let draining = thread::Builder::new().spawn(move || {
        log.drain(reader, &redactor);
        let _ = sizes_in.send(log.finish());
    });
    let (stop_in, stop) = mpsc::channel();
    let listening = thread::Builder::new().spawn(move || {
        // An order or the end of the pipe: both mean "stop".
        for line in orders.lines().map_while(Result::ok) {
            if serde_json::from_str::<Order>(&line).is_ok() {
                break;
            }
        }
        let _ = stop_in.send(());
    });
    // A limit of threads or memory: a server that nobody can watch must not run.
    if let Err(error) = draining.and(listening) {
        server.kill()?;
        server.wait()?;
        return report(&mut events, &Event::NotStarted { cause: format!("no thread to watch it: {error}") });
    }
    report(&mut events, &Event::Started { pid: server.id() })?;
    let mut forced = false;
    let status = loop {
        if let Some(status) = server.try_wait()? {
            break status;
        }
        if !matches!(stop.recv_timeout(Duration::from_millis(20)), Err(RecvTimeoutError::Timeout)) {
            forced = true;
            server.kill()?;
            break server.wait()?;
        }
    };
    report(&mut events, &Event::Exited { code: status.code(), signal: None })?;
    let (log_bytes, log_dropped) = sizes.recv_timeout(Duration::from_secs(2)).unwrap_or_default();
    report(&mut events, &Event::Gone { forced, log_bytes, log_dropped })
}

fn report(events: &mut impl Write, event: &Event) -> io::Result<()> {
    let mut line = serde_json::to_string(event)?;
    line.push('\n');
    events.write_all(line.as_bytes())?;
    events.flush()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_server_ends_when_its_owner_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let launch = LaunchSpec {
            argv: ["sh", "-c", "echo up; exec sleep 60"].map(str::to_owned).into(),
            cwd: folder.path().to_path_buf(),
            env: vec![("PATH".to_owned(), std::env::var("PATH").unwrap())],
            log: folder.path().join("log"),
            log_max_bytes: 4096,
            secrets: Vec::new(),
        };
        let orders = io::Cursor::new(format!("{}\n", serde_json::to_string(&launch).unwrap()));
        let mut events = Vec::new();
        serve(orders, &mut events).unwrap();
        let events: Vec<Event> =
            String::from_utf8(events).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(
            matches!(events[0], Event::Started { .. }) && matches!(events[2], Event::Gone { forced: true, .. }),
            "{events:?}"
        );
    }
}
