//! Our side of the guardian: start, watch, stop. Dropping the handle closes the pipe,
//! and the guardian then stops the tree by itself.

use super::protocol::{Event, LaunchSpec, Order};
use serde::{Deserialize, Serialize};
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

/// How the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Exit status, if it ended by itself.
    pub code: Option<i32>,
    /// Signal, if one ended it.
    pub signal: Option<i32>,
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) => f.write_str("an unknown end"),
        }
    }
}

/// What is known of the server now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Process id, once it was started.
    pub pid: Option<u32>,
    /// Why it could not be started.
    pub not_started: Option<String>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// The whole tree is gone.
    pub gone: Option<Gone>,
}

/// The end of the tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gone {
    /// Whether SIGKILL was needed.
    pub forced: bool,
    /// Bytes logged.
    pub log_bytes: u64,
    /// Bytes of them not kept.
    pub log_dropped: u64,
}

/// Quality of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopKind {
    /// Everything ended within the grace.
    Clean,
    /// SIGKILL was needed.
    Forced,
    /// Something may be left.
    Leftover,
}

/// What a stop did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// Quality.
    pub kind: StopKind,
    /// How the server ended.
    pub exit: Option<Exit>,
    /// Wall time of the stop.
    pub duration: Duration,
    /// Bytes logged.
    pub log_bytes: u64,
    /// Bytes of them not kept.
    pub log_dropped: u64,
}

/// A server under a guardian.
#[derive(Debug)]
pub struct Guarded {
    guardian: Child,
    orders: Option<ChildStdin>,
    state: watch::Receiver<State>,
}

impl Guarded {
    /// Starts the guardian and the server under it; returns when the server runs.
    ///
    /// # Errors
    /// The guardian or the program cannot be started.
    pub async fn start(launch: &LaunchSpec) -> io::Result<Self> {
        let mut guardian = Command::new(super::this_program()?)
            .arg("__guard")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(mut orders), Some(events)) = (guardian.stdin.take(), guardian.stdout.take()) else {
            return Err(io::Error::other("the guardian has no pipes"));
        };
        let mut line = serde_json::to_vec(launch)?;
        line.push(b'\n');
        orders.write_all(&line).await?;
        let (sender, state) = watch::channel(State::default());
        tokio::spawn(follow(events, sender));
        let mut guarded = Guarded { guardian, orders: Some(orders), state };
        let started = guarded.wait(|state| state.pid.is_some() || state.not_started.is_some()).await;
        match started {
            Some(State { not_started: Some(cause), .. }) => Err(io::Error::other(cause)),
            Some(_) => Ok(guarded),
            None => Err(io::Error::other("the guardian ended before the server was started")),
        }
    }

    /// What is known now.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Process id of the guardian: every process of the tree descends from it.
    pub fn guardian_pid(&self) -> Option<u32> {
        self.guardian.id()
    }

    /// A watch on the end of the server, for others to wait on.
    pub fn exited(&self) -> impl Future<Output = Exit> + Send + 'static {
        let mut state = self.state.clone();
        async move {
            match state.wait_for(|state| state.exit.is_some()).await {
                Ok(state) => state.exit.unwrap_or(Exit { code: None, signal: None }),
                // The guardian is gone, and with it the server.
                Err(_) => Exit { code: None, signal: None },
            }
        }
    }

    /// Stops the tree: SIGTERM, `grace`, SIGKILL, until nothing is left. When `hurry`
    /// completes first, what is left of the grace is skipped.
    pub async fn stop(mut self, grace: Duration, hurry: impl Future) -> Stopped {
        let began = std::time::Instant::now();
        self.order(Order::stop(grace)).await;
        let mut state = self.state.clone();
        let limit = grace + Duration::from_secs(10);
        let gone = tokio::time::timeout(limit, async {
            tokio::select! {
                _ = state.wait_for(|state| state.gone.is_some()) => return,
                _ = hurry => {}
            }
            self.order(Order::stop(Duration::ZERO)).await;
            let _ = self.state.clone().wait_for(|state| state.gone.is_some()).await;
        });
        // Whether it came in time or not, the state tells what is known.
        let _ = gone.await;
        drop(self.orders.take());
        let _ = tokio::time::timeout(Duration::from_secs(3), self.guardian.wait()).await;
        let state = self.state();
        let kind = match state.gone {
            Some(Gone { forced: false, .. }) => StopKind::Clean,
            Some(_) => StopKind::Forced,
            None => StopKind::Leftover,
        };
        let gone = state.gone.unwrap_or_default();
        Stopped {
            kind,
            exit: state.exit,
            duration: began.elapsed(),
            log_bytes: gone.log_bytes,
            log_dropped: gone.log_dropped,
        }
    }

    /// Sends an order. The pipe stays open: its end would be an order of its own.
    async fn order(&mut self, order: Order) {
        if let Some(orders) = &mut self.orders
            && let Ok(mut line) = serde_json::to_vec(&order)
        {
            line.push(b'\n');
            // A guardian that does not read any more has ended, and its tree with it.
            let _ = orders.write_all(&line).await;
            let _ = orders.flush().await;
        }
    }

    async fn wait(&mut self, until: impl FnMut(&State) -> bool) -> Option<State> {
        self.state.wait_for(until).await.ok().map(|state| state.clone())
    }
}

async fn follow(events: ChildStdout, sender: watch::Sender<State>) {
    let mut lines = BufReader::new(events).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(event) = serde_json::from_str(&line) else { continue };
        sender.send_modify(|state| match event {
            Event::Started { pid } => state.pid = Some(pid),
            Event::NotStarted { cause } => state.not_started = Some(cause),
            Event::Exited { code, signal } => state.exit = Some(Exit { code, signal }),
            Event::Gone { forced, log_bytes, log_dropped } => {
                state.gone = Some(Gone { forced, log_bytes, log_dropped });
            }
        });
    }
}
