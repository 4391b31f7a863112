//! GPUs while something is measured, as NVML tells it. A machine without NVML has none
//! of these figures: `None`, never zero.

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::Clock;
use std::sync::OnceLock;

/// NVML, loaded once.
pub(super) fn nvml() -> Option<&'static Nvml> {
    static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
    NVML.get_or_init(|| Nvml::init().ok()).as_ref()
}

/// Whether this machine has NVML and a GPU.
pub fn present() -> bool {
    nvml().and_then(|nvml| nvml.device_count().ok()).is_some_and(|count| count > 0)
}

/// A figure summed over all GPUs; `None` when one of them does not have it.
fn sum(read: impl Fn(&nvml_wrapper::Device<'_>) -> Option<u64>) -> Option<u64> {
    let nvml = nvml()?;
    let count = nvml.device_count().ok().filter(|count| *count > 0)?;
    (0..count).map(|index| read(&nvml.device_by_index(index).ok()?)).sum()
}

/// Bytes in use on all GPUs, by anybody.
pub fn used_bytes() -> Option<u64> {
    sum(|device| device.memory_info().ok().map(|memory| memory.used))
}

/// Energy since the driver was loaded, millijoules, all GPUs.
pub fn energy_mj() -> Option<u64> {
    sum(|device| device.total_energy_consumption().ok())
}

/// Clock of the multiprocessors of the first GPU, MHz.
pub fn sm_clock_mhz() -> Option<u32> {
    nvml()?.device_by_index(0).ok()?.clock_info(Clock::SM).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_gpu_nothing_is_claimed() {
        if !present() {
            assert_eq!((used_bytes(), energy_mj(), sm_clock_mhz()), (None, None, None));
        }
    }
}
