//! Memory of a process tree, each figure with its scope. RSS counts shared pages once
//! per process, PSS shares them out, anonymous leaves out what is mapped from files
//! (llama.cpp maps its weights).

use crate::process::proc_tree;
use serde::Serialize;

/// One reading, bytes, summed over the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Reading {
    /// Resident set.
    pub rss: u64,
    /// Proportional share, where the kernel tells it.
    pub pss: Option<u64>,
    /// Anonymous part of the resident set.
    pub anonymous: Option<u64>,
    /// Processes counted.
    pub processes: usize,
}

/// Reads the tree below `guardian`, the guardian itself left out. `None` where there is
/// no `/proc`.
pub fn read_tree(guardian: u32) -> Option<Reading> {
    let mut sum = Reading { pss: Some(0), anonymous: Some(0), ..Reading::default() };
    for pid in proc_tree::descendants(guardian).into_iter().filter(|pid| *pid != guardian) {
        let Some(one) = read_process(pid) else { continue };
        sum.rss += one.rss;
        sum.pss = sum.pss.zip(one.pss).map(|(a, b)| a + b);
        sum.anonymous = sum.anonymous.zip(one.anonymous).map(|(a, b)| a + b);
        sum.processes += 1;
    }
    (sum.processes > 0).then_some(sum)
}

fn read_process(pid: u32) -> Option<Reading> {
    let field = |text: &str, name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? << 10)
    };
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    Some(Reading {
        rss: field(&status, "VmRSS:")?,
        pss: field(&smaps, "Pss:"),
        anonymous: field(&status, "RssAnon:"),
        processes: 1,
    })
}

/// The largest of each figure over several readings.
pub fn peak(readings: &[Reading]) -> Option<Reading> {
    readings.iter().copied().reduce(|a, b| Reading {
        rss: a.rss.max(b.rss),
        pss: a.pss.max(b.pss),
        anonymous: a.anonymous.max(b.anonymous),
        processes: a.processes.max(b.processes),
    })
}
