//! Exit codes, formats and faults of the command line.

use crate::support::{report, verify};
use std::fs;

fn empty() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_fault_of_the_command_line_exits_2() {
    verify(empty().path()).arg("al").assert().code(2);
    verify(empty().path()).args(["all", "--only", "smok"]).assert().code(2);
}

#[test]
fn help_and_version_exit_0() {
    verify(empty().path()).arg("--help").assert().success();
    verify(empty().path()).arg("--version").assert().success().stdout("verify 0.1.0\n");
}

#[test]
fn an_unknown_setting_is_a_usage_fault_with_a_report_and_no_stages() {
    let folder = empty();
    fs::write(folder.path().join("verify.toml"), "[smoke]\nbackned = \"cpu\"\n").unwrap();
    let mut command = verify(folder.path());
    command.arg("static");
    let (code, report) = report(command);
    assert_eq!((code, report["exit_code"].as_i64()), (2, Some(2)));
    assert_eq!(report["stages"], serde_json::json!([]));
    assert_eq!(report["error"]["help"], "did you mean `backend`?");
}

#[test]
fn an_unknown_project_is_a_usage_fault() {
    verify(empty().path()).args(["all", "--project", "7"]).assert().code(2);
}

#[test]
fn output_takes_the_format_and_the_console_keeps_the_text() {
    let folder = empty();
    let output =
        verify(folder.path()).args(["all", "--format", "json", "--output", "out/report.json"]).output().unwrap();
    assert!(!output.stdout.starts_with(b"{"));
    let text = fs::read_to_string(folder.path().join("out/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["schema_version"], "verify-report/v1");
}

#[test]
fn init_writes_once_and_what_it_writes_is_valid() {
    let folder = empty();
    verify(folder.path()).arg("init").assert().success();
    verify(folder.path()).arg("init").assert().code(2);
    let text = fs::read_to_string(folder.path().join("verify.toml")).unwrap();
    // The commented keys must be as valid as the file itself.
    let keys: String = text
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| rest.starts_with('[') || rest.contains(" = ")).unwrap_or(""))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(folder.path().join("verify.toml"), keys).unwrap();
    verify(folder.path()).arg("settings").assert().success();
}
