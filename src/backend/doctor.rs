//! What this machine has, as facts: an absent GPU is a fact, not a fault.

use crate::process::ask;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long an interpreter may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A GPU as NVML describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    /// Name.
    pub name: String,
    /// Total memory, MiB.
    pub memory_mib: u64,
    /// Memory in use by anybody, MiB.
    pub used_mib: u64,
    /// Compute capability, such as 9.0.
    pub compute_capability: Option<String>,
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
            compute_capability: device.cuda_compute_capability().ok().map(|cc| format!("{}.{}", cc.major, cc.minor)),
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
