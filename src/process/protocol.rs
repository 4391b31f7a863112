//! What `verify` and its guardian say to each other: one JSON line each way per event.
//! The launch travels over the pipe and not in an argument list, where everybody on the
//! machine could read the keys in it.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What to start, and how its log is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Working directory.
    pub cwd: PathBuf,
    /// The whole environment of the server.
    pub env: Vec<(String, String)>,
    /// File for its standard output and standard error.
    pub log: PathBuf,
    /// Bytes of log that are kept at most: the first half and the last half.
    pub log_max_bytes: u64,
    /// Texts that must not reach the log.
    pub secrets: Vec<String>,
}

/// From `verify` to the guardian, after the launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// SIGTERM, then SIGKILL for whatever is left after the grace.
    Stop {
        /// Milliseconds.
        grace_ms: u64,
    },
}

impl Order {
    pub(super) fn stop(grace: std::time::Duration) -> Self {
        Order::Stop { grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX) }
    }
}

/// From the guardian to `verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// The server runs.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// The program could not be started.
    NotStarted {
        /// What the system said.
        cause: String,
    },
    /// The server itself ended; its descendants may still live.
    Exited {
        /// Exit status, if it ended by itself.
        code: Option<i32>,
        /// Signal, if one ended it.
        signal: Option<i32>,
    },
    /// Nothing that was started lives any more.
    Gone {
        /// Whether SIGKILL was needed.
        forced: bool,
        /// Bytes that the server logged.
        log_bytes: u64,
        /// Bytes of them that were not kept.
        log_dropped: u64,
    },
}
