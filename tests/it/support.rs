//! Running the binary in a scratch copy of a fixture, with a scrubbed environment.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// Variables that change how the program looks or behaves on somebody's machine.
pub const SCRUBBED: &[&str] = &[
    "CI",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "LC_ALL",
    "LC_MESSAGES",
    "LANG",
    "VERIFY_LANG",
    "VERIFY_FORMAT",
    "VERIFY_BACKEND",
    "GITHUB_ACTIONS",
    "GITHUB_STEP_SUMMARY",
];

/// The binary in `cwd`.
pub fn verify(cwd: &Path) -> Command {
    let mut command = Command::cargo_bin("verify").expect("the binary is built with the tests");
    command.current_dir(cwd);
    for name in SCRUBBED {
        command.env_remove(name);
    }
    command
}

/// Exit code and JSON report of a run.
pub fn report(mut command: Command) -> (i32, Value) {
    let output = command.args(["--format", "json"]).output().expect("the binary runs");
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("no JSON report: {error}; stderr: {}", String::from_utf8_lossy(&output.stderr)));
    assert_valid(&report);
    (output.status.code().unwrap_or(-1), report)
}

/// Every report of every test satisfies the published schema.
fn assert_valid(report: &Value) {
    static SCHEMA: OnceLock<jsonschema::Validator> = OnceLock::new();
    let validator = SCHEMA.get_or_init(|| {
        let text =
            fs::read_to_string(project("schemas/verify-report-v1.schema.json")).expect("the schema is committed");
        jsonschema::validator_for(&serde_json::from_str(&text).expect("a schema is JSON")).expect("a schema")
    });
    let faults: Vec<String> =
        validator.iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(faults.is_empty(), "the report does not satisfy its schema: {faults:#?}");
}

/// Every finding of every stage, optionally of one severity.
pub fn findings<'a>(report: &'a Value, severity: Option<&'a str>) -> impl Iterator<Item = &'a Value> {
    let stages = report["stages"].as_array().expect("stages").iter();
    stages
        .flat_map(|stage| stage["findings"].as_array().expect("findings"))
        .filter(move |finding| severity.is_none_or(|wanted| finding["severity"] == wanted))
}

/// A folder of the project.
pub fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A scratch copy of a folder, links kept as links.
pub fn scratch(folder: &Path) -> TempDir {
    let copy = tempfile::Builder::new().prefix("verify-test-").tempdir().expect("a scratch folder");
    copy_tree(folder, copy.path());
    copy
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a readable folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        let kind = entry.file_type().expect("a file type");
        if kind.is_dir() {
            copy_tree(&entry.path(), &target);
        } else if kind.is_symlink() {
            #[cfg(unix)]
            std::os::unix::fs::symlink(fs::read_link(entry.path()).expect("a link"), &target).expect("a link");
        } else {
            fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}

/// `case.json` of a case folder.
pub fn case(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("case.json")).expect("case.json");
    serde_json::from_str(&text).expect("case.json is JSON")
}

/// `args` of a case.
pub fn args(case: &Value) -> Vec<String> {
    let list = case["args"].as_array().expect("args");
    list.iter().map(|arg| arg.as_str().expect("a text").to_owned()).collect()
}

/// The report of a user who may not enter the folder `closed` below `root`. Root may enter
/// any folder, so root runs the program as somebody else.
#[cfg(unix)]
pub fn report_with_closed_folder(root: &Path, closed: &str, args: &[&str]) -> (i32, Value) {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let mode = |path: &Path, bits: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).expect("its permissions can be set");
    };
    let closed = root.join(closed);
    mode(root, 0o755);
    mode(&closed, 0o000);
    let bin = tempfile::tempdir().expect("a scratch folder");
    let mut command = verify(root);
    if fs::read_dir(&closed).is_ok() {
        mode(bin.path(), 0o755);
        let copy = bin.path().join("verify");
        // Not `fs::copy`: a test beside this one that starts a process meanwhile would hand
        // it our open file, and a program that is open for writing cannot be run.
        let copied = std::process::Command::new("cp").arg(command.get_program()).arg(&copy).status();
        assert!(copied.expect("cp runs").success());
        let mut other = std::process::Command::new(copy);
        other.current_dir(root).uid(65534).gid(65534);
        for name in SCRUBBED {
            other.env_remove(name);
        }
        command = Command::from_std(other);
    }
    command.args(args);
    let result = report(command);
    mode(&closed, 0o755);
    result
}

/// A pipe that nobody writes to.
#[cfg(unix)]
pub fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
    assert!(made.success());
}
