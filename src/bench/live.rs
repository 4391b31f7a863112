//! Running figures while a load runs, for whoever watches a terminal.

use super::load::Progress;
use super::metrics::RequestFigures;
use crate::client::RequestTrace;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Counts and means so far.
#[derive(Debug)]
pub struct Live {
    began: Instant,
    total: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default, Clone, Copy)]
struct State {
    started: u64,
    ended: u64,
    failed: u64,
    ttft: (u64, f64),
    tpot: (u64, f64),
}

impl Live {
    /// For a load of `total` requests.
    pub fn new(total: usize) -> Self {
        Live { began: Instant::now(), total: total as u64, state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests that ended.
    pub fn ended_so_far(&self) -> u64 {
        self.state().ended
    }

    /// One line: running TTFT and TPOT, requests in flight, failures, time left.
    pub fn line(&self) -> String {
        line(*self.state(), self.total, self.began.elapsed())
    }
}

fn line(state: State, total: u64, elapsed: Duration) -> String {
    let mean = |name: &str, (count, sum): (u64, f64)| {
        if count == 0 { format!("{name} —") } else { format!("{name} {:.1} ms", sum / count as f64) }
    };
    let mut parts = vec![mean("TTFT", state.ttft), mean("TPOT", state.tpot)];
    parts.push(format!("{} in flight", state.started.saturating_sub(state.ended)));
    if state.failed > 0 {
        parts.push(format!("{} failed", state.failed));
    }
    if state.ended > 0 {
        let left = elapsed.mul_f64(total.saturating_sub(state.ended) as f64 / state.ended as f64);
        parts.push(format!("ETA {}", crate::term::human_duration(left)));
    }
    parts.join(" · ")
}

impl Progress for Live {
    fn started(&self) {
        self.state().started += 1;
    }

    fn ended(&self, trace: &RequestTrace) {
        let figures = RequestFigures::of(trace).filter(|_| trace.succeeded());
        let mut state = self.state();
        state.ended += 1;
        let Some(figures) = figures else {
            state.failed += 1;
            return;
        };
        state.ttft = (state.ttft.0 + 1, state.ttft.1 + figures.ttft_ms);
        if let Some(tpot) = figures.tpot_ms {
            state.tpot = (state.tpot.0 + 1, state.tpot.1 + tpot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_what_is_known_so_far() {
        assert_eq!(line(State::default(), 8, Duration::ZERO), "TTFT — · TPOT — · 0 in flight");
        let state = State { started: 6, ended: 2, failed: 1, ttft: (1, 100.0), tpot: (1, 10.25) };
        let text = line(state, 8, Duration::from_secs(2));
        assert_eq!(text, "TTFT 100.0 ms · TPOT 10.2 ms · 4 in flight · 1 failed · ETA 6.0 s");
        let chinese = crate::model::progress(&format!("c4 pass 2: {text}"), crate::model::Lang::Zh);
        assert_eq!(chinese, "c4 第 2 轮：TTFT 100.0 ms · TPOT 10.2 ms · 在途 4 · 失败 1 · 剩余 6.0 s");
    }
}
