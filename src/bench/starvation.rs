//! Did this program get the processor when it wanted it? A client that waits for a core
//! measures its own wait as the server's time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Share of a run that its threads may wait for a core before the alarm is given.
/// Measured on two cores: 0.4 % when nothing else ran, 14 % with four busy loops.
pub const WAIT_LIMIT: f64 = 0.03;

/// Readings at the start of a window.
#[derive(Debug)]
pub struct Watch {
    began: Instant,
    waited: Option<Duration>,
    stolen: Option<Duration>,
}

/// What the threads of this program waited for a core.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Starvation {
    /// Time in run queues, all threads together, ms; null where the system does not tell.
    pub run_queue_wait_ms: Option<f64>,
    /// That time over the length of the window.
    pub run_queue_wait_share: Option<f64>,
    /// Time that a hypervisor took from this machine, ms; null where the system does not tell.
    pub steal_ms: Option<f64>,
    /// The client waited so long for a core that its latencies are not the server's alone.
    pub starved: bool,
}

impl Watch {
    /// Starts to watch.
    pub fn start() -> Self {
        Watch { began: Instant::now(), waited: run_queue_wait(), stolen: steal() }
    }

    /// What happened since.
    pub fn stop(&self) -> Starvation {
        let window = self.began.elapsed();
        let since = |before: Option<Duration>, now: Option<Duration>| {
            before.zip(now).map(|(before, now)| now.saturating_sub(before))
        };
        let waited = since(self.waited, run_queue_wait());
        let share = waited.map(|waited| waited.as_secs_f64() / window.as_secs_f64().max(1e-9));
        let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
        Starvation {
            run_queue_wait_ms: waited.map(ms),
            run_queue_wait_share: share,
            steal_ms: since(self.stolen, steal()).map(ms),
            starved: share.is_some_and(|share| share > WAIT_LIMIT),
        }
    }
}

/// Sum over the threads of this process; `None` where there is no such file.
fn run_queue_wait() -> Option<Duration> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let waits = tasks.flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    });
    let waits: Vec<u64> = waits.collect();
    (!waits.is_empty()).then(|| Duration::from_nanos(waits.iter().sum()))
}

/// Steal time of all processors, in the ticks of 10 ms that Linux shows to programs.
fn steal() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks: u64 = text.lines().next()?.split_ascii_whitespace().nth(8)?.parse().ok()?;
    Some(Duration::from_millis(ticks * 10))
}
