//! Memory of a process tree, each figure with its scope. RSS counts shared pages once
//! per process, PSS shares them out, anonymous leaves out what is mapped from files
//! (llama.cpp maps its weights). What the processes hold on GPUs stands apart.

use super::gpu_memory;
use crate::process::proc_tree;
use serde::Serialize;
use std::collections::BTreeMap;

/// One reading, bytes, summed over the tree.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Reading {
    /// Milliseconds since the first reading.
    pub at_ms: f64,
    /// Resident set.
    pub rss: u64,
    /// Proportional share, where the kernel tells it.
    pub pss: Option<u64>,
    /// Anonymous part of the resident set.
    pub anonymous: Option<u64>,
    /// Memory that these processes hold on GPUs, as NVML counts it per process; `None`
    /// without NVML, or where its process ids are not ours (a container of its own).
    pub nvml_process: Option<u64>,
    /// Processes counted.
    pub processes: usize,
}

/// A process of the tree with the peak of each figure, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessPeak {
    /// Process id.
    pub pid: u32,
    /// Its parent, when it was first seen.
    pub parent: Option<u32>,
    /// What it does, by its command line: `server`, `engine`, `worker`, `resource_tracker`, …
    pub role: &'static str,
    /// Largest resident set.
    pub rss: u64,
    /// Largest proportional share.
    pub pss: Option<u64>,
    /// Largest anonymous part.
    pub anonymous: Option<u64>,
    /// Most GPU memory.
    pub nvml_process: Option<u64>,
}

/// What was read of a tree over time.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// Readings in order.
    pub readings: Vec<Reading>,
    /// Every process that was seen, by its id.
    pub processes: BTreeMap<u32, ProcessPeak>,
}

impl Watch {
    /// Adds one look at the tree. Nothing seen is nothing added.
    pub fn add(&mut self, at_ms: f64, seen: Vec<ProcessPeak>) {
        if seen.is_empty() {
            return;
        }
        self.readings.push(sum(at_ms, &seen));
        for now in seen {
            self.processes.entry(now.pid).and_modify(|known| known.raise(&now)).or_insert(now);
        }
    }

    /// The largest of each figure over the readings.
    pub fn peak(&self) -> Option<Reading> {
        peak(&self.readings)
    }
}

impl ProcessPeak {
    fn raise(&mut self, now: &ProcessPeak) {
        // A process shows its real name only after it has become what it is to be.
        self.role = now.role;
        self.rss = self.rss.max(now.rss);
        self.pss = self.pss.max(now.pss);
        self.anonymous = self.anonymous.max(now.anonymous);
        self.nvml_process = self.nvml_process.max(now.nvml_process);
    }
}

/// A figure of the tree is known when every process tells it; GPU memory when one does.
fn sum(at_ms: f64, seen: &[ProcessPeak]) -> Reading {
    let all = |pick: fn(&ProcessPeak) -> Option<u64>| seen.iter().map(pick).sum::<Option<u64>>();
    let device: Vec<u64> = seen.iter().filter_map(|process| process.nvml_process).collect();
    Reading {
        at_ms,
        rss: seen.iter().map(|process| process.rss).sum(),
        pss: all(|process| process.pss),
        anonymous: all(|process| process.anonymous),
        nvml_process: (!device.is_empty()).then(|| device.iter().sum()),
        processes: seen.len(),
    }
}

/// The processes below `guardian`, itself left out, as they are now. Empty where there
/// is no `/proc`.
pub fn read_tree(guardian: u32) -> Vec<ProcessPeak> {
    let pids: Vec<u32> = proc_tree::descendants(guardian).into_iter().filter(|pid| *pid != guardian).collect();
    let on_gpu = gpu_memory::by_process();
    pids.into_iter()
        .filter_map(|pid| {
            let mut process = read_process(pid, guardian)?;
            process.nvml_process = on_gpu.as_ref().and_then(|held| held.get(&pid)).copied();
            Some(process)
        })
        .collect()
}

fn read_process(pid: u32, guardian: u32) -> Option<ProcessPeak> {
    let field = |text: &str, name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    let kib = |text: &str, name: &str| field(text, name).map(|kib| kib << 10);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let parent = field(&status, "PPid:").and_then(|parent| u32::try_from(parent).ok());
    let command = proc_tree::command_line(pid).unwrap_or_default();
    Some(ProcessPeak {
        pid,
        parent,
        role: role(&command, parent == Some(guardian)),
        rss: kib(&status, "VmRSS:")?,
        pss: kib(&smaps, "Pss:"),
        anonymous: kib(&status, "RssAnon:"),
        nvml_process: None,
    })
}

/// What a process of a server does, by its command line: engines rename themselves
/// (`VLLM::EngineCore`, `sglang::scheduler`), Python's helpers say what they run.
fn role(command: &str, started_by_us: bool) -> &'static str {
    const ROLES: [(&str, &str); 8] = [
        ("resource_tracker", "resource_tracker"),
        ("enginecore", "engine"),
        ("vllm::worker", "worker"),
        ("scheduler", "scheduler"),
        ("detokenizer", "detokenizer"),
        ("apiserver", "server"),
        ("runner", "runner"),
        ("forkserver", "fork_server"),
    ];
    let command = command.to_ascii_lowercase();
    let known = ROLES.iter().find(|(part, _)| command.contains(part)).filter(|_| !started_by_us);
    known.map_or(if started_by_us { "server" } else { "helper" }, |(_, role)| role)
}

/// The largest of each figure over several readings; `at_ms` is of the first.
pub fn peak(readings: &[Reading]) -> Option<Reading> {
    readings.iter().copied().reduce(|a, b| Reading {
        at_ms: a.at_ms.min(b.at_ms),
        rss: a.rss.max(b.rss),
        pss: a.pss.max(b.pss),
        anonymous: a.anonymous.max(b.anonymous),
        nvml_process: a.nvml_process.max(b.nvml_process),
        processes: a.processes.max(b.processes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, rss: u64, pss: Option<u64>, nvml_process: Option<u64>) -> ProcessPeak {
        ProcessPeak { pid, parent: Some(1), role: "server", rss, pss, anonymous: Some(1), nvml_process }
    }

    #[test]
    fn a_tree_is_summed_per_reading_and_each_process_keeps_its_peaks() {
        let mut watch = Watch::default();
        watch.add(0.0, vec![process(7, 10, Some(4), None), process(8, 20, None, Some(5))]);
        watch.add(250.0, vec![process(7, 30, Some(3), None)]);
        watch.add(500.0, Vec::new());
        let first = watch.readings[0];
        assert_eq!((first.rss, first.pss, first.anonymous, first.nvml_process), (30, None, Some(2), Some(5)));
        assert_eq!((watch.readings.len(), watch.readings[1].pss, watch.readings[1].nvml_process), (2, Some(3), None));
        assert_eq!((watch.processes[&7].rss, watch.processes[&7].pss, watch.processes[&8].rss), (30, Some(4), 20));
        assert_eq!(watch.peak().map(|peak| (peak.rss, peak.processes)), Some((30, 2)));
    }

    #[test]
    fn roles_are_read_from_the_command_line() {
        assert_eq!(role("/usr/bin/python3 /usr/bin/vllm serve m", true), "server");
        assert_eq!(role("VLLM::EngineCore", false), "engine");
        assert_eq!(role("VLLM::Worker", false), "worker");
        assert_eq!(
            role("python3 -c from multiprocessing.resource_tracker import main;main(5)", false),
            "resource_tracker"
        );
        assert_eq!(role("sglang::scheduler", false), "scheduler");
        assert_eq!(role("sleep 60", false), "helper");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_is_read_from_the_system() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let seen = read_tree(std::process::id());
        let found = seen.iter().find(|process| process.pid == child.id()).map(|process| (process.parent, process.role));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, Some((Some(std::process::id()), "server")));
    }
}
