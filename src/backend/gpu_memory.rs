//! Which process holds how much memory on the GPUs, as NVML tells it. A machine without
//! NVML has no list: that is a fact, and it is kept apart from an empty list.

use super::gpu;
use nvml_wrapper::enums::device::UsedGpuMemory;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes per process id, summed over the GPUs.
pub type Held = BTreeMap<u32, u64>;

/// How long the driver may take to free the memory of a process that has ended.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often the list is read until then.
const TICK: Duration = Duration::from_millis(100);

/// The list now; `None` without NVML. The process ids are those of the driver: inside a
/// container with process ids of its own they are others than ours.
pub fn by_process() -> Option<Held> {
    let nvml = gpu::nvml()?;
    let mut held = Held::new();
    for index in 0..nvml.device_count().ok()? {
        let Ok(device) = nvml.device_by_index(index) else { continue };
        let processes = device.running_compute_processes().unwrap_or_default();
        for process in processes {
            let bytes = match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => bytes,
                UsedGpuMemory::Unavailable => 0,
            };
            *held.entry(process.pid).or_insert(0) += bytes;
        }
    }
    Some(held)
}

/// What processes that should be gone still hold.
pub fn of(pids: &[u32], held: &Held) -> Held {
    held.iter().filter(|(pid, _)| pids.contains(pid)).map(|(pid, bytes)| (*pid, *bytes)).collect()
}

/// What the processes still hold once the driver has had time to free it; `None`
/// without NVML. Waits only while there is something left.
pub fn left_by(pids: &[u32]) -> Option<Held> {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = of(pids, &by_process()?);
        if left.is_empty() || Instant::now() >= until {
            return Some(left);
        }
        thread::sleep(TICK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_processes_of_the_tree_count() {
        let held = Held::from([(7, 1 << 30), (8, 5), (9, 0)]);
        assert_eq!(of(&[8, 9, 10], &held), Held::from([(8, 5), (9, 0)]));
        assert_eq!(of(&[], &held), Held::new());
    }

    /// Where there is no NVML there is no list, and where there is one nobody of ours is in it.
    #[test]
    fn a_process_without_a_gpu_leaves_nothing_there() {
        assert!(left_by(&[std::process::id()]).is_none_or(|left| left.is_empty()));
    }
}
