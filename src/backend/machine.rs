//! How busy the machine was with other things while a run was measured. Decode threads
//! that share their cores with strangers were seen to be twenty times slower: figures of
//! such a run are disturbed, and say so.

use crate::process::proc_tree;
use serde::Serialize;
use std::time::{Duration, Instant};

/// A window shorter than this is a handful of clock ticks.
const SHORTEST: Duration = Duration::from_millis(200);

/// Processor time that was used until a moment.
#[derive(Debug, Clone, Copy)]
pub struct Activity {
    at: Instant,
    /// Of the whole machine, and ours of it: the server's tree and this program.
    busy: Duration,
    ours: Duration,
    /// Taken by the hypervisor for other machines.
    stolen: Duration,
    /// Time in which some process waited for a processor (pressure stall information).
    stalled: Option<Duration>,
    processors: usize,
}

/// What others took of the machine during a window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Contention {
    /// Share of all processors' time that programs other than the server and `verify`
    /// used, 0 to 1.
    pub others_cpu_share: f64,
    /// Share of all processors' time that the hypervisor gave to other machines, 0 to 1.
    pub stolen_cpu_share: f64,
    /// Share of the window in which some process, ours included, waited for a processor.
    pub cpu_pressure_share: Option<f64>,
    /// Length of the window, seconds.
    pub window_s: f64,
    /// Processors of the machine.
    pub processors: usize,
}

impl Activity {
    /// Reads the counters of the kernel. `None` where there are none; the server is the
    /// tree below `guardian`.
    pub fn read(guardian: u32) -> Option<Self> {
        let tick = tick()?;
        let (busy, stolen, processors) = machine(&std::fs::read_to_string("/proc/stat").ok()?)?;
        let table = proc_tree::table();
        let family = proc_tree::family(&table, guardian);
        let mine = std::process::id();
        let ours = |pid: u32| pid == mine || family.contains(&pid);
        let ticks: u64 = table.iter().filter(|entry| ours(entry.pid)).map(|entry| entry.cpu_ticks).sum();
        Some(Activity {
            at: Instant::now(),
            busy: tick.mul_f64(busy as f64),
            ours: tick.mul_f64(ticks as f64),
            stolen: tick.mul_f64(stolen as f64),
            stalled: std::fs::read_to_string("/proc/pressure/cpu").ok().and_then(|text| stalled(&text)),
            processors,
        })
    }

    /// What happened from `before` until now; `None` for a window too short to tell.
    pub fn since(&self, before: &Activity) -> Option<Contention> {
        let window = self.at.duration_since(before.at);
        if window < SHORTEST {
            return None;
        }
        let capacity = window.as_secs_f64() * self.processors.max(1) as f64;
        let share = |time: Duration| (time.as_secs_f64() / capacity).clamp(0.0, 1.0);
        let ours = self.ours.saturating_sub(before.ours);
        Some(Contention {
            others_cpu_share: share(self.busy.saturating_sub(before.busy).saturating_sub(ours)),
            stolen_cpu_share: share(self.stolen.saturating_sub(before.stolen)),
            cpu_pressure_share: self
                .stalled
                .zip(before.stalled)
                .map(|(now, then)| (now.saturating_sub(then).as_secs_f64() / window.as_secs_f64()).clamp(0.0, 1.0)),
            window_s: window.as_secs_f64(),
            processors: self.processors,
        })
    }
}

impl Contention {
    /// Share of the machine that was not ours to use: other programs and other machines.
    pub fn taken(&self) -> f64 {
        (self.others_cpu_share + self.stolen_cpu_share).min(1.0)
    }
}

/// Processes that the kernel has killed for lack of memory since it started, in control
/// groups too. `None` where it does not count them.
pub fn oom_kills() -> Option<u64> {
    counted(&std::fs::read_to_string("/proc/vmstat").ok()?, "oom_kill")
}

/// The number of one line of `/proc/vmstat`.
fn counted(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Length of a clock tick of `/proc`.
fn tick() -> Option<Duration> {
    #[cfg(target_os = "linux")]
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok()??;
    #[cfg(not(target_os = "linux"))]
    let per_second = 0;
    (per_second > 0).then(|| Duration::from_secs_f64(1.0 / per_second as f64))
}

/// Busy and stolen ticks, and the number of processors, from `/proc/stat`. Busy is user,
/// nice, system, irq and softirq; guests are in user already.
fn machine(text: &str) -> Option<(u64, u64, usize)> {
    let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = all.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal] = *ticks.get(..8)? else { return None };
    let numbered =
        |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let processors = text.lines().filter(numbered).count();
    Some((
        user.saturating_add(nice).saturating_add(system).saturating_add(irq).saturating_add(softirq),
        steal,
        processors,
    ))
}

/// Total of the line `some` of a pressure file, which counts microseconds.
fn stalled(text: &str) -> Option<Duration> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split_ascii_whitespace().find_map(|field| field.strip_prefix("total="))?;
    total.parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let text =
            "cpu  100 1 20 4000 7 3 2 5 0 0\ncpu0 50 0 10 2000 3 1 1 2 0 0\ncpu1 50 1 10 2000 4 2 1 3 0 0\nintr 5\n";
        assert_eq!(machine(text), Some((126, 5, 2)));
        assert_eq!(machine("cpu 1 2 3\n"), None, "an old kernel without steal");
        assert_eq!(machine(""), None);
        let pressure = "some avg10=1.00 avg60=0.50 avg300=0.10 total=2500000\nfull avg10=0.00 total=7\n";
        assert_eq!(stalled(pressure), Some(Duration::from_millis(2500)));
        assert_eq!(stalled("full total=7\n"), None);
        assert_eq!(counted("oom_kill_disable 7\noom_kill 3\ndrop_slab 0\n", "oom_kill"), Some(3));
        assert_eq!(counted("drop_slab 0\n", "oom_kill"), None);
    }

    #[test]
    fn what_others_took_is_the_rest_of_the_busy_time() {
        let begin = Instant::now();
        let at = |s: u64, busy: u64, ours: u64| Activity {
            at: begin + Duration::from_secs(s),
            busy: Duration::from_secs(busy),
            ours: Duration::from_secs(ours),
            stolen: Duration::ZERO,
            stalled: None,
            processors: 2,
        };
        let found = at(10, 115, 53).since(&at(0, 100, 50)).unwrap();
        assert!((found.others_cpu_share - 0.6).abs() < 1e-9, "15 s busy, 3 of them ours, of 20 s");
        assert_eq!(
            at(10, 101, 60).since(&at(0, 100, 50)).unwrap().others_cpu_share,
            0.0,
            "children that were waited for"
        );
        assert_eq!(at(0, 101, 60).since(&at(0, 100, 50)), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn our_own_work_is_not_that_of_others() {
        let before = Activity::read(std::process::id()).unwrap();
        let mut sum = 0u64;
        while before.at.elapsed() < Duration::from_millis(400) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let after = Activity::read(std::process::id()).unwrap();
        assert!(after.ours - before.ours >= Duration::from_millis(20), "{:?}", after.ours - before.ours);
        assert!(after.since(&before).unwrap().others_cpu_share <= 1.0);
    }
}
