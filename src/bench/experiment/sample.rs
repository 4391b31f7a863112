//! What is read beside the requests of a pass: memory by scope, gauges, GPUs, the client
//! itself.

use super::record::{ClientRecord, CounterRecord, GpuRecord, MemoryFigures, MemorySample};
use crate::backend::counters::{self, Counters};
use crate::backend::session::Session;
use crate::backend::{gpu, memory};
use crate::bench::starvation;
use crate::process::Guarded;
use std::time::{Duration, Instant};

/// How often memory is read.
pub(super) const MEMORY_INTERVAL: Duration = Duration::from_millis(250);
/// How often gauges are read.
const GAUGE_INTERVAL: Duration = Duration::from_millis(100);
/// Meanings of counters that go up and down.
const GAUGES: [&str; 3] = ["waiting", "running", "kv_cache_usage"];

/// Memory of the server's process tree now, scope by scope. The kernel walks page tables
/// for it, so it happens apart from the tasks that wait for answers.
pub(super) async fn memory_now(session: &Session<'_>) -> MemoryFigures {
    // The GPUs of this machine say nothing of a server elsewhere.
    let Some(guardian) = session.server.and_then(Guarded::guardian_pid) else { return MemoryFigures::default() };
    let reading = tokio::task::spawn_blocking(move || {
        let mut watch = memory::Watch::default();
        watch.add(0.0, memory::read_tree(guardian));
        let tree = watch.readings.first();
        MemoryFigures {
            rss_bytes: tree.map(|tree| tree.rss),
            pss_bytes: tree.and_then(|tree| tree.pss),
            rss_anon_bytes: tree.and_then(|tree| tree.anonymous),
            device_used_bytes: gpu::used_bytes(),
            device_process_bytes: tree.and_then(|tree| tree.nvml_process),
            kv_cache_usage: None,
        }
    });
    reading.await.unwrap_or_default()
}

/// Reads memory until it is dropped. Never ready.
pub(super) async fn watch_memory(session: &Session<'_>, began: Instant, samples: &mut Vec<MemorySample>) {
    if session.server.is_none() {
        return std::future::pending().await;
    }
    loop {
        let at_ms = began.elapsed().as_secs_f64() * 1000.0;
        samples.push(MemorySample { at_ms, memory: memory_now(session).await });
        tokio::time::sleep(MEMORY_INTERVAL).await;
    }
}

/// Peaks of the gauges of a pass.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct GaugePeaks {
    pub(super) waiting: Option<f64>,
    pub(super) kv_cache_usage: Option<f64>,
}

/// Reads gauges until it is dropped, where the backend has any. Never ready.
pub(super) async fn watch_gauges(session: &Session<'_>, useful: bool, peaks: &mut GaugePeaks) {
    let known = &session.plan.profile.counters;
    if !useful || !GAUGES.iter().any(|gauge| known.contains_key(*gauge)) {
        return std::future::pending().await;
    }
    loop {
        let now = session.counters().await.counters;
        let raise = |peak: &mut Option<f64>, name: &str| {
            if let Some(value) = now.get(name) {
                *peak = Some(peak.unwrap_or(*value).max(*value));
            }
        };
        raise(&mut peaks.waiting, "waiting");
        raise(&mut peaks.kv_cache_usage, "kv_cache_usage");
        tokio::time::sleep(GAUGE_INTERVAL).await;
    }
}

/// What happened between two readings of the counters.
pub(super) fn counted(before: Counters, after: Counters, peaks: GaugePeaks) -> CounterRecord {
    let is_gauge = |name: &str| GAUGES.contains(&name);
    let mut difference = counters::difference(&before, &after);
    difference.retain(|name, _| !is_gauge(name));
    let fell = |(name, now): (&String, &f64)| {
        (!is_gauge(name) && before.get(name).is_some_and(|then| now < then)).then(|| name.clone())
    };
    let resets = after.iter().filter_map(fell).collect();
    CounterRecord { difference, resets, waiting_peak: peaks.waiting, before, after }
}

/// Readings at the beginning of a pass.
pub(super) struct Beginning {
    at: Instant,
    cpu: Option<Duration>,
    watch: starvation::Watch,
    energy_mj: Option<u64>,
    clock_mhz: Option<u32>,
}

impl Beginning {
    /// Now.
    pub(super) fn read() -> Self {
        Beginning {
            at: Instant::now(),
            cpu: own_cpu(),
            watch: starvation::Watch::start(),
            energy_mj: gpu::energy_mj(),
            clock_mhz: gpu::sm_clock_mhz(),
        }
    }

    /// What the client needed since.
    pub(super) fn client(&self) -> ClientRecord {
        let cpu = own_cpu().zip(self.cpu).map(|(now, then)| now.saturating_sub(then).as_secs_f64());
        let window = self.at.elapsed().as_secs_f64();
        ClientRecord {
            cpu_s: cpu,
            cpu_share: cpu.filter(|_| window > 0.0).map(|cpu| cpu / window),
            starved_ms: self.watch.stop().run_queue_wait_ms,
            ..ClientRecord::default()
        }
    }

    /// What the GPUs did since; `None` without NVML or for a server elsewhere.
    pub(super) fn gpu(&self, ours: bool) -> Option<GpuRecord> {
        (ours && gpu::present()).then(|| GpuRecord {
            energy_j: gpu::energy_mj().zip(self.energy_mj).map(|(now, then)| now.saturating_sub(then) as f64 / 1000.0),
            sm_clock_before_mhz: self.clock_mhz,
            sm_clock_after_mhz: gpu::sm_clock_mhz(),
        })
    }
}

/// Processor time of this process so far.
#[cfg(unix)]
fn own_cpu() -> Option<Duration> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let seconds = |time: nix::sys::time::TimeVal| {
        Duration::try_from_secs_f64(time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).ok()
    };
    Some(seconds(usage.user_time())? + seconds(usage.system_time())?)
}

#[cfg(not(unix))]
fn own_cpu() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_fell_is_a_reset_and_a_gauge_is_none() {
        let at = |tokens: f64, waiting: f64| {
            Counters::from([("generated_tokens".to_owned(), tokens), ("waiting".to_owned(), waiting)])
        };
        let fine = counted(at(5.0, 3.0), at(9.0, 0.0), GaugePeaks { waiting: Some(4.0), kv_cache_usage: None });
        assert_eq!((fine.resets.len(), fine.difference.len(), fine.difference["generated_tokens"]), (0, 1, 4.0));
        assert_eq!(fine.waiting_peak, Some(4.0));
        let reset = counted(at(5.0, 0.0), at(2.0, 0.0), GaugePeaks::default());
        assert_eq!((reset.resets, reset.difference["generated_tokens"]), (vec!["generated_tokens".to_owned()], 2.0));
    }

    #[cfg(unix)]
    #[test]
    fn our_own_processor_time_grows() {
        let before = Beginning::read();
        let mut sum = 0u64;
        while own_cpu() == before.cpu {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(before.client().cpu_s.unwrap() > 0.0);
    }
}
