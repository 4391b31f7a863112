//! What this machine has, as facts: an absent GPU is a fact, not a fault.

use crate::process::ask;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long an interpreter may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Compute capability of a GPU, such as 9.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capability {
    /// Before the point.
    pub major: i32,
    /// Behind it.
    pub minor: i32,
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Serialize for Capability {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A GPU as NVML describes it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Gpu {
    /// Name.
    pub name: String,
    /// Its identifier, the same after a restart.
    pub uuid: Option<String>,
    /// Total memory, MiB.
    pub memory_mib: u64,
    /// Memory in use by anybody, MiB.
    pub used_mib: u64,
    /// What it can compute in.
    #[serde(rename = "compute_capability")]
    pub capability: Option<Capability>,
}

/// The GPUs that a program with this CUDA_VISIBLE_DEVICES may use: all without it, none
/// for an empty one, else those it names by number or identifier up to the first unknown
/// name (<https://docs.nvidia.com/cuda/cuda-c-programming-guide/#env-vars>).
pub fn visible(gpus: Vec<Gpu>, devices: Option<&str>) -> Vec<Gpu> {
    let Some(devices) = devices else { return gpus };
    let named = |name: &str| match name.parse::<usize>() {
        Ok(number) => gpus.get(number),
        Err(_) => {
            gpus.iter().find(|gpu| !name.is_empty() && gpu.uuid.as_ref().is_some_and(|uuid| uuid.starts_with(name)))
        }
    };
    devices.split(',').map_while(|name| named(name.trim()).cloned()).collect()
}

/// The GPUs of this machine with the driver version, or why NVML says nothing.
///
/// # Errors
/// NVML is not here or cannot be used; the text says which.
pub fn gpus() -> Result<(String, Vec<Gpu>), String> {
    let nvml = nvml_wrapper::Nvml::init().map_err(|error| error.to_string())?;
    let driver = nvml.sys_driver_version().map_err(|error| error.to_string())?;
    let count = nvml.device_count().map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for index in 0..count {
        let device = nvml.device_by_index(index).map_err(|error| error.to_string())?;
        let memory = device.memory_info().map_err(|error| error.to_string())?;
        found.push(Gpu {
            name: device.name().map_err(|error| error.to_string())?,
            memory_mib: memory.total >> 20,
            used_mib: memory.used >> 20,
            uuid: device.uuid().ok(),
            capability: device
                .cuda_compute_capability()
                .ok()
                .map(|capability| Capability { major: capability.major, minor: capability.minor }),
        });
    }
    Ok((driver, found))
}

/// A program on PATH.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let direct = Path::new(program);
    if direct.components().count() > 1 {
        return is_program(direct).then(|| direct.to_path_buf());
    }
    let folders = std::env::var_os("PATH")?;
    let names: &[String] = &[program.to_owned(), format!("{program}.exe")];
    std::env::split_paths(&folders)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|path| is_program(path))
}

/// Whether a file can be run.
#[cfg(unix)]
pub fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Whether a file can be run.
#[cfg(not(unix))]
pub fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// The first of `python3` and `python` that runs and is Python 3.
pub fn python() -> Option<PathBuf> {
    ["python3", "python"].into_iter().filter_map(on_path).find(|path| python_version(path).is_some())
}

/// `3.11.7`, if the program is Python 3.
pub fn python_version(path: &Path) -> Option<String> {
    let (_, text) = ask(Command::new(path).arg("--version"), PATIENCE, || false).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.trim().strip_prefix("Python ").filter(|version| version.starts_with('3')).map(str::to_owned)
}

/// Whether an interpreter has a top-level module; it is looked up, not imported.
pub fn has_module(python: &Path, module: &str) -> bool {
    const LOOK: &str = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)";
    let asked = ask(Command::new(python).args(["-c", LOOK, module]), PATIENCE, || false);
    asked.is_ok_and(|(status, _)| status.success())
}

/// Bytes free for us where `folder` is; its nearest existing ancestor counts.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|ancestor| ancestor.exists())?;
    free_bytes_of(existing)
}

#[cfg(unix)]
#[expect(clippy::useless_conversion, reason = "the types differ between systems")]
fn free_bytes_of(folder: &Path) -> Option<u64> {
    let stat = nix::sys::statvfs::statvfs(folder).ok()?;
    Some(u64::from(stat.blocks_available()) * u64::from(stat.fragment_size()))
}

#[cfg(not(unix))]
fn free_bytes_of(_folder: &Path) -> Option<u64> {
    None
}

/// Description of the processor, for results.
pub fn cpu_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Load averages over 1, 5 and 15 minutes.
pub fn load() -> Option<[f64; 3]> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<f64>);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_use_the_gpus_that_its_environment_names() {
        let gpu = |name: &str| Gpu { name: name.to_owned(), uuid: Some(format!("GPU-{name}")), ..Gpu::default() };
        let names =
            |devices| visible(vec![gpu("a"), gpu("b")], devices).into_iter().map(|gpu| gpu.name).collect::<String>();
        assert_eq!([names(None), names(Some("")), names(Some("-1")), names(Some("1,0"))], ["ab", "", "", "ba"]);
        assert_eq!([names(Some("GPU-b")), names(Some("0,7,1"))], ["b", "a"]);
        assert!(Capability { major: 7, minor: 5 } < Capability { major: 8, minor: 0 });
    }
}
