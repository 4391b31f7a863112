//! The Python that runs notebooks: found, asked what it has, started in a clean environment.

use crate::backend::doctor::is_program;
use crate::interrupt::Cancel;
use crate::model::{Lang, Localized};
use crate::process::ask;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The program that runs in the child.
pub(super) const DRIVER: &str = include_str!("script/driver.py");

/// How long it may take to say what it has.
const PATIENCE: Duration = Duration::from_secs(30);

/// A working interpreter.
#[derive(Debug, Clone)]
pub(super) struct Interpreter {
    /// What it calls itself: past shims and launchers.
    pub(super) executable: PathBuf,
    /// Where each module that was asked for comes from.
    pub(super) modules: BTreeMap<Ask, Found>,
    /// Base folder of packages installed for this user.
    pub(super) user_base: Option<String>,
}

/// A module as one notebook would import it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Ask {
    /// Its top-level name.
    pub(super) module: String,
    /// Folders that are looked through first.
    pub(super) path: Vec<PathBuf>,
}

/// Where a module comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Found {
    /// Its file; `None`: not there.
    pub(super) origin: Option<String>,
    /// Part of Python itself.
    pub(super) standard: bool,
}

#[derive(Serialize)]
struct Query<'a> {
    asks: &'a [Ask],
}

#[derive(Deserialize)]
struct Answer {
    executable: PathBuf,
    version: String,
    user_base: Option<String>,
    found: Vec<Found>,
}

/// Finds an interpreter and asks it. `named` is the only candidate when it is given.
///
/// # Errors
/// Why there is none, in a few words.
pub(super) fn find(
    named: Option<&Path>,
    run_folder: &Path,
    driver: &Path,
    asks: Vec<Ask>,
    environment: &[(OsString, OsString)],
    cancel: &Cancel,
) -> Result<Interpreter, Localized> {
    let query = run_folder.join("query.json");
    let text = serde_json::to_vec(&Query { asks: &asks }).map_err(|error| Localized::from(error.to_string()))?;
    std::fs::write(&query, text).map_err(|error| Localized::from(error.to_string()))?;
    let candidates: Vec<PathBuf> = match named {
        Some(path) => vec![path.to_path_buf()],
        None => ["python3", "python"].map(PathBuf::from).to_vec(),
    };
    let mut causes = Vec::new();
    for candidate in candidates {
        let program = resolve(&candidate, environment);
        let mut command = Command::new(&program);
        command
            .arg(driver)
            .arg("probe")
            .arg(&query)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir(run_folder);
        let shown = candidate.display();
        match ask(&mut command, PATIENCE, || cancel.is_set()) {
            Ok((status, text)) => match serde_json::from_slice::<Answer>(&text) {
                Ok(answer) if is_recent(&answer.version) => return Ok(interpreter(program, answer, asks)),
                Ok(answer) => causes.push(Localized::both(
                    format!("{shown} is Python {}", answer.version),
                    format!("{shown} 的版本是 Python {}", answer.version),
                )),
                Err(_) => causes.push(unusable(&candidate, &status.to_string())),
            },
            Err(error) => causes.push(not_run(&candidate, &error, environment)),
        }
    }
    let all = |lang, between| causes.iter().map(|cause| cause.get(lang)).collect::<Vec<_>>().join(between);
    Err(Localized::both(all(Lang::En, "; "), all(Lang::Zh, "；")))
}

fn unusable(candidate: &Path, how: &str) -> Localized {
    let shown = candidate.display();
    Localized::both(
        format!("{shown} is not a usable Python 3 ({how})"),
        format!("{shown} 不是可用的 Python 3（{how}）"),
    )
}

fn not_run(candidate: &Path, error: &io::Error, environment: &[(OsString, OsString)]) -> Localized {
    let shown = candidate.display();
    if error.kind() != io::ErrorKind::NotFound {
        return unusable(candidate, &error.to_string());
    }
    if candidate.components().count() == 1 && get(environment, "PATH").is_none_or(OsStr::is_empty) {
        return Localized::both(format!("{shown} is not found: PATH is empty"), format!("找不到 {shown}：PATH 为空"));
    }
    Localized::both(format!("{shown} is not found"), format!("找不到 {shown}"))
}

/// Where systems look for programs when nobody set PATH.
const USUAL_FOLDERS: &str = "/usr/local/bin:/usr/bin:/bin";

/// The absolute path of a bare name: an interpreter that was started by its name cannot
/// always tell where it lies.
fn resolve(candidate: &Path, environment: &[(OsString, OsString)]) -> PathBuf {
    if candidate.components().count() > 1 {
        return candidate.to_path_buf();
    }
    let folders = get(environment, "PATH").filter(|path| !path.is_empty()).unwrap_or(OsStr::new(USUAL_FOLDERS));
    let found = std::env::split_paths(folders).map(|folder| folder.join(candidate)).find(|path| is_program(path));
    found.unwrap_or_else(|| candidate.to_path_buf())
}

fn interpreter(program: PathBuf, answer: Answer, asks: Vec<Ask>) -> Interpreter {
    Interpreter {
        executable: if answer.executable.as_os_str().is_empty() { program } else { answer.executable },
        user_base: answer.user_base,
        modules: asks.into_iter().zip(answer.found).collect(),
    }
}

/// The driver needs Python 3.8.
fn is_recent(version: &str) -> bool {
    let mut parts = version.split('.').filter_map(|part| part.parse::<u32>().ok());
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (3, 8)
}

/// Endings of variables that hold secrets.
const SECRET_ENDINGS: &[&str] =
    &["TOKEN", "_KEY", "APIKEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS", "_PAT", "_AUTH", "COOKIE"];
/// Beginnings of variables that hold secrets or lead to them.
const SECRET_BEGINNINGS: &[&str] =
    &["AWS_", "AZURE_", "GOOGLE_APPLICATION", "SSH_", "GPG_", "ACTIONS_", "TWINE_", "NPM_"];
/// What may stay of PYTHON…: where packages lie.
const PYTHON_KEPT: &[&str] = &["PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE"];

/// The environment that a notebook may see: no secrets, nothing that changes what Python
/// means (`PYTHONOPTIMIZE` removes every assert).
pub(super) fn clean_environment(
    variables: impl Iterator<Item = (OsString, OsString)>,
    threads: usize,
) -> Vec<(OsString, OsString)> {
    let mut kept: Vec<(OsString, OsString)> = variables.filter(|(name, _)| is_harmless(name)).collect();
    let threads = threads.to_string();
    let fixed = [
        ("PYTHONUTF8", "1"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONHASHSEED", "0"),
        ("MPLBACKEND", "Agg"),
        ("HF_HUB_OFFLINE", "1"),
        ("TRANSFORMERS_OFFLINE", "1"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("PYTORCH_NVML_BASED_CUDA_CHECK", "1"),
        ("OMP_NUM_THREADS", &threads),
        ("MKL_NUM_THREADS", &threads),
        ("OPENBLAS_NUM_THREADS", &threads),
        ("NUMEXPR_NUM_THREADS", &threads),
    ];
    for (name, value) in fixed {
        set(&mut kept, name, value);
    }
    kept
}

/// Sets one variable.
pub(super) fn set(environment: &mut Vec<(OsString, OsString)>, name: &str, value: impl AsRef<OsStr>) {
    environment.retain(|(known, _)| known != name);
    environment.push((name.into(), value.as_ref().to_owned()));
}

/// The value of one variable.
pub(super) fn get<'e>(environment: &'e [(OsString, OsString)], name: &str) -> Option<&'e OsStr> {
    environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

fn is_harmless(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    let secret = SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || SECRET_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    let python = name.starts_with("PYTHON") && !PYTHON_KEPT.contains(&name.as_str());
    !secret && !python
}

/// Names under which some modules are installed.
const PACKAGES: &[(&str, &str)] = &[
    ("sklearn", "scikit-learn"),
    ("cv2", "opencv-python-headless"),
    ("PIL", "pillow"),
    ("yaml", "pyyaml"),
    ("bs4", "beautifulsoup4"),
    ("dotenv", "python-dotenv"),
    ("skimage", "scikit-image"),
    ("google", "protobuf"),
];

/// The command that installs modules.
pub(super) fn install_command(python: &Path, modules: &[String]) -> String {
    let name = |module: &String| {
        PACKAGES.iter().find(|(known, _)| known == module).map_or(module.as_str(), |(_, package)| *package).to_owned()
    };
    let packages: Vec<String> = modules.iter().map(name).collect();
    format!("{} -m pip install {}", python.display(), packages.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_python_oddities_are_left_behind() {
        let variables = [
            "PATH",
            "HF_TOKEN",
            "OPENAI_API_KEY",
            "PYTHONOPTIMIZE",
            "PYTHONPATH",
            "GITHUB_TOKEN",
            "KEYBOARD",
            "aws_session",
            "PYTHONWARNINGS",
            "HOME",
        ];
        let environment = clean_environment(variables.into_iter().map(|name| (name.into(), "x".into())), 2);
        let names: Vec<String> =
            environment.iter().map(|(name, _)| name.to_string_lossy().into_owned()).take(4).collect();
        assert_eq!(names, ["PATH", "PYTHONPATH", "KEYBOARD", "HOME"]);
        assert_eq!(get(&environment, "OMP_NUM_THREADS"), Some(OsStr::new("2")));
        assert_eq!(get(&environment, "PYTHONOPTIMIZE"), None);
    }

    #[test]
    fn packages_go_by_their_own_names() {
        let modules = ["sklearn".to_owned(), "torch".to_owned()];
        assert_eq!(install_command(Path::new("python3"), &modules), "python3 -m pip install scikit-learn torch");
    }
}
