//! Cases of this domain: `fixtures/cases/answers`.

use crate::support::{args, case, findings, project, report, scratch, verify};
use rstest::rstest;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[rstest]
fn cases(#[files("fixtures/cases/answers/*/case.json")] file: PathBuf) {
    let folder = file.parent().unwrap();
    let case = case(folder);
    let copy = scratch(&folder.join("input"));
    let before = tree(copy.path());
    let mut command = verify(copy.path());
    command.args(args(&case));
    for (name, value) in case["env"].as_object().into_iter().flatten() {
        command.env(name, value.as_str().unwrap());
    }
    let (code, report) = report(command);
    check(&case, code, &report);
    assert_eq!(tree(copy.path()), before, "the tree changed");
    if let Some(needle) = case["no_process_left"].as_str() {
        assert_eq!(alive(needle), None);
    }
}

fn check(case: &Value, code: i32, report: &Value) {
    let expect = &case["expect"];
    let verdicts: BTreeMap<String, String> = items(report)
        .map(|item| (item["path"].as_str().unwrap().to_owned(), item["status"].as_str().unwrap().to_owned()))
        .collect();
    let wanted: BTreeMap<String, String> = serde_json::from_value(expect["verdicts"].clone()).unwrap();
    assert_eq!(verdicts, wanted, "{report:#}");
    assert_eq!(i64::from(code), expect["exit"].as_i64().unwrap(), "{report:#}");
    if let Some(finding) = expect["finding"].as_object() {
        assert!(findings(report, None).any(|found| matches(finding, found)), "no {finding:?} in {report:#}");
    }
}

fn items(report: &Value) -> impl Iterator<Item = &Value> {
    report["stages"].as_array().unwrap().iter().flat_map(|stage| stage["items"].as_array().unwrap())
}

fn matches(wanted: &serde_json::Map<String, Value>, found: &Value) -> bool {
    let place = ["path", "cell", "line"].iter().all(|key| wanted.get(*key).is_none_or(|value| found[*key] == *value));
    let text = format!("{}\n{}", found["message"].as_str().unwrap(), found["help"].as_str().unwrap_or_default());
    place && text.contains(wanted.get("contains").and_then(Value::as_str).unwrap_or_default())
}

fn tree(folder: &Path) -> BTreeMap<PathBuf, u64> {
    walkdir::WalkDir::new(folder)
        .into_iter()
        .flatten()
        .map(|entry| {
            (entry.path().to_path_buf(), if entry.file_type().is_file() { entry.metadata().unwrap().len() } else { 0 })
        })
        .collect()
}

/// A living process whose command line holds a text.
fn alive(needle: &str) -> Option<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
        .find(|line| line.contains(needle))
}

/// A folder of notebooks with the fixture's shape: a good one, a wrong one, one that
/// skips, one that is killed.
fn course() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let folder = copy.path().join("course");
    fs::create_dir(&folder).unwrap();
    for (name, case) in [
        ("a", "basic-pass"),
        ("b", "error-inside-answer-is-located-there"),
        ("c", "skip-marker-no-gpu"),
        ("d", "killed-by-signal"),
        ("e", "multiprocessing-spawn"),
        ("f", "test-defined-but-never-called"),
    ] {
        let notebook = project(&format!("fixtures/cases/answers/{case}/input/nb.ipynb"));
        fs::copy(notebook, folder.join(format!("{name}.ipynb"))).unwrap();
    }
    copy
}

fn judged(report: &Value) -> Vec<(String, String)> {
    let item = |item: &Value| (item["path"].as_str().unwrap().to_owned(), item["status"].as_str().unwrap().to_owned());
    items(report).map(item).collect()
}

/// What a report says, without times.
fn told(report: &Value) -> (Vec<(String, String)>, Vec<String>) {
    (judged(report), findings(report, None).map(|finding| format!("{finding:#}")).collect())
}

#[test]
fn workers_and_preload_change_nothing_but_the_time() {
    let copy = course();
    let run = |options: &[&str]| {
        let mut command = verify(copy.path());
        command.args(["answers", "course", "--no-progress"]).args(options);
        told(&report(command).1)
    };
    let alone = run(&["-j1", "--no-preload"]);
    let verdicts: Vec<&str> = alone.0.iter().map(|(_, verdict)| verdict.as_str()).collect();
    assert_eq!(verdicts, ["pass", "fail", "skip", "fail", "pass", "fail"]);
    assert_eq!(run(&["-j4", "--no-preload"]), alone);
    assert_eq!(run(&["-j1"]), alone);
    assert_eq!(run(&["-j4"]), alone);
}

#[test]
fn modes_give_one_item_each() {
    let copy = course();
    let mut command = verify(copy.path());
    command.args(["answers", "course/a.ipynb", "--mode", "both"]);
    let (code, report) = report(command);
    let modes: Vec<(&str, &str)> =
        items(&report).map(|item| (item["mode"].as_str().unwrap(), item["status"].as_str().unwrap())).collect();
    assert_eq!((code, modes), (0, vec![("question", "expected_fail"), ("answer", "pass")]));
}

#[test]
fn parts_of_a_course_are_disjoint_and_complete() {
    let copy = course();
    let mut all = Vec::new();
    for part in ["1/3", "2/3", "3/3"] {
        let mut command = verify(copy.path());
        command.args(["answers", "course", "--partition", part]);
        let judged = judged(&report(command).1);
        assert_eq!(judged.len(), 2);
        all.extend(judged.into_iter().map(|(path, _)| path));
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 6);
}

#[test]
fn a_missing_interpreter_is_said_once_and_counted_per_notebook() {
    let copy = course();
    let mut command = verify(copy.path());
    command.args(["answers", "course", "--python", "./no/such/python"]);
    let (code, report) = report(command);
    assert_eq!(code, 1);
    assert!(judged(&report).iter().all(|(_, verdict)| verdict == "error"));
    let errors: Vec<&str> = findings(&report, Some("error")).map(|finding| finding["rule"].as_str().unwrap()).collect();
    assert_eq!(errors, ["answers/no-python"]);
}

#[test]
fn without_walls_a_changed_repository_is_an_error_that_names_the_file() {
    let copy = scratch(&project("fixtures/cases/answers/sibling-data-file/input"));
    let notebook = copy.path().join("course/nb.ipynb");
    let text = fs::read_to_string(&notebook).unwrap();
    let written = text.replacen("data = [", "open('data/new.txt', 'w').write('x')\\ndata = [", 1);
    assert_ne!(text, written);
    fs::write(&notebook, written).unwrap();
    let mut command = verify(copy.path());
    command.args(["answers", "course/nb.ipynb", "--sandbox", "off"]);
    let (code, report) = report(command);
    let errors: Vec<&Value> = findings(&report, Some("error")).collect();
    assert_eq!(code, 1);
    assert_eq!(
        (errors.len(), &errors[0]["rule"], &errors[0]["path"]),
        (1, &Value::from("answers/changed-files"), &Value::from("course/data/new.txt"))
    );
}

#[test]
fn in_the_chain_a_course_without_notebooks_is_skipped_with_a_reason() {
    let copy = tempfile::tempdir().unwrap();
    let mut command = verify(copy.path());
    command.args(["all", "--only", "answers"]);
    let (_, report) = report(command);
    assert_eq!(report["stages"][0]["status"], "skipped");
    assert!(report["stages"][0]["reason"].as_str().unwrap().contains("02_PyTorch_Algorithms"));
    verify(copy.path()).arg("answers").assert().code(2);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_everything_at_once() {
    let copy = scratch(&project("fixtures/cases/answers/detached-child-outlives-timeout/input"));
    let notebook = copy.path().join("nb.ipynb");
    let text = fs::read_to_string(&notebook).unwrap().replace("47.375", "47.875");
    fs::write(&notebook, text).unwrap();
    let began = std::time::Instant::now();
    let program = assert_cmd::cargo::cargo_bin("verify");
    let mut child = std::process::Command::new(program)
        .args(["answers", "nb.ipynb", "--timeout", "60", "--format", "json", "--no-progress"])
        .current_dir(copy.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while alive("time.sleep(47.875)").is_none() {
        assert!(began.elapsed().as_secs() < 30, "the notebook did not start");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(alive("time.sleep(47.875)"), None);
}

#[test]
fn prove_lists_the_functions_that_no_test_notices() {
    let copy = scratch(&project("fixtures/cases/answers/basic-pass/input"));
    let notebook = copy.path().join("nb.ipynb");
    let text = fs::read_to_string(&notebook).unwrap();
    let written = text.replacen(
        "    return x * x",
        "    return x * x\\n\\ndef unused(x):\\n    if x:\\n        return 1\\n    return 2",
        1,
    );
    assert_ne!(text, written);
    fs::write(&notebook, written).unwrap();
    let mut command = verify(copy.path());
    command.args(["answers", "nb.ipynb", "--prove"]);
    let (code, report) = report(command);
    let unnoticed: Vec<(&str, &str)> = findings(&report, Some("warning"))
        .map(|finding| (finding["rule"].as_str().unwrap(), finding["target"].as_str().unwrap()))
        .collect();
    assert_eq!((code, unnoticed), (0, vec![("answers/untested", "unused")]), "{report:#}");
}

#[test]
fn merged_parts_equal_the_whole() {
    let copy = course();
    for (part, code) in [("1/2", 0), ("2/2", 1)] {
        let output = format!("json={}.json", &part[..1]);
        let options = ["--no-progress", "--partition", part, "--output", &output];
        verify(copy.path()).args(["answers", "course"]).args(options).assert().code(code);
    }
    let mut command = verify(copy.path());
    command.args(["answers", "course", "--no-progress"]);
    let (code, whole) = report(command);
    let mut command = verify(copy.path());
    command.args(["merge", "1.json", "2.json"]);
    let (merged_code, merged) = report(command);
    assert_eq!(merged_code, code);
    assert_eq!(told(&merged), told(&whole));
    assert_eq!(merged["stages"][0]["summary"], whole["stages"][0]["summary"]);
    verify(copy.path()).args(["merge", "course/a.ipynb"]).assert().code(2);
}

#[rstest]
#[case::missing(&["1.json"], "2/2")]
#[case::twice(&["1.json", "1.json"], "part 1/2 is there twice")]
#[case::twice_among_all(&["1.json", "2.json", "2.json"], "part 2/2 is there twice")]
#[case::split_otherwise(&["1.json", "2of3.json"], "into 2 and into 3 parts")]
#[case::empty(&["empty.json"], "nothing in this report")]
#[case::empty_beside_others(&["1.json", "2.json", "empty.json"], "nothing in this report")]
fn an_incomplete_set_is_not_merged(#[case] reports: &[&str], #[case] told: &str) {
    let copy = scratch(&project("fixtures/cases/answers/basic-pass/input"));
    for (file, part) in [("1", "1/2"), ("2", "2/2"), ("2of3", "2/3")] {
        let output = format!("json={file}.json");
        let options = ["answers", "nb.ipynb", "--no-progress", "--partition", part, "--output", &output];
        verify(copy.path()).args(options).assert().success();
    }
    let mut empty: Value = serde_json::from_slice(&fs::read(copy.path().join("1.json")).unwrap()).unwrap();
    assert_eq!(empty["partition"], serde_json::json!({"part": 1, "of": 2}));
    empty.as_object_mut().unwrap().remove("partition");
    empty["stages"] = serde_json::json!([]);
    fs::write(copy.path().join("empty.json"), empty.to_string()).unwrap();
    let output = verify(copy.path()).arg("merge").args(reports).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(told), "{said}");
}

/// A self-contained notebook of one cell.
fn inline(code: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let cell = serde_json::json!({
        "cell_type": "code", "id": "a", "metadata": {}, "source": code, "outputs": [], "execution_count": null,
    });
    let notebook = serde_json::json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    fs::write(folder.path().join("nb.ipynb"), notebook.to_string()).unwrap();
    folder
}

/// One notebook with options and variables: exit code, verdict, all messages and helps.
fn run_inline(folder: &Path, options: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = verify(folder);
    command.args(["answers", "--mode", "inline", "nb.ipynb", "--no-progress"]).args(options);
    command.envs(variables.iter().copied()).timeout(std::time::Duration::from_secs(100));
    let (code, report) = report(command);
    let verdict = judged(&report)[0].1.clone();
    let told: Vec<String> = findings(&report, Some("error"))
        .map(|finding| format!("{} {}", finding["message"].as_str().unwrap(), finding["help"]))
        .collect();
    (code, verdict, told.join("\n"))
}

/// Whatever stands in an error, it is told as what it is.
#[rstest]
#[case::lone_surrogate("raise AssertionError('<half> of a pair')", "AssertionError: \\ud800 of a pair")]
#[case::raised_from(
    "try:\n    raise ValueError('<half>')\nexcept ValueError as e:\n    raise KeyError(1) from e",
    "ValueError: \\ud800"
)]
#[case::module_that_is_no_text("e = ModuleNotFoundError('gone')\ne.name = object()\nraise e", "object object")]
#[case::place_that_is_none("e = SyntaxError('bad')\ne.filename = []\nraise e", "SyntaxError: bad")]
#[case::module_of_a_class("raise type('E', (ValueError,), {'__module__': 5})('odd')", "E: odd")]
#[case::long_name("raise type('E' * 100000, (ValueError,), {})('odd')", "EEEE")]
fn an_odd_error_is_told_all_the_same(#[case] code: &str, #[case] told: &str) {
    let folder = inline(&code.replace("<half>", r"\ud800"));
    let (exit, verdict, messages) = run_inline(folder.path(), &["--timeout", "20"], &[]);
    assert_eq!(exit, 1, "{messages}");
    assert_ne!(verdict, "timeout", "{messages}");
    assert!(messages.contains(told), "{messages}");
}

/// The fork server must not lose its first word either: it would be waited for.
#[test]
fn an_odd_error_of_a_shared_module_is_told() {
    let folder = inline("import shared");
    fs::copy(folder.path().join("nb.ipynb"), folder.path().join("other.ipynb")).unwrap();
    fs::write(folder.path().join("shared.py"), r"raise ValueError('\ud800 of a pair')").unwrap();
    let (exit, _, messages) = run_inline(folder.path(), &["other.ipynb"], &[]);
    assert_eq!(exit, 1, "{messages}");
    assert!(messages.contains(r"ValueError: \ud800 of a pair"), "{messages}");
}

#[cfg(unix)]
#[rstest]
#[case::endless_output("exec yes", "is not a usable Python 3")]
#[case::endless_line("exec cat /dev/zero", "is not a usable Python 3")]
#[case::something_else("echo hello", "is not a usable Python 3")]
#[case::failing("exit 3", "is not a usable Python 3 (exit status: 3)")]
fn a_program_that_is_no_python_is_said_to_be_none(#[case] script: &str, #[case] told: &str) {
    use std::os::unix::fs::PermissionsExt;
    let folder = inline("assert True");
    let program = folder.path().join("odd");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let (exit, verdict, messages) = run_inline(folder.path(), &["--python", "./odd"], &[]);
    assert_eq!((exit, verdict.as_str()), (1, "error"), "{messages}");
    assert!(messages.contains(told), "{messages}");
    let output = verify(folder.path()).args(["static", "nb.ipynb", "--python", "./odd"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is no Python interpreter"), "{said}");
}

#[cfg(unix)]
#[test]
fn without_a_path_the_interpreter_is_found_where_systems_have_it_or_path_is_named() {
    let folder = inline("assert True");
    let mut command = verify(folder.path());
    command.env_clear().args(["answers", "--mode", "inline", "nb.ipynb", "--no-progress"]);
    let (code, report) = report(command);
    let told: Vec<String> = findings(&report, Some("error")).map(|finding| finding["message"].to_string()).collect();
    let found = ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|bin| Path::new(bin).join("python3").exists());
    assert_eq!(code, i32::from(!found), "{told:?}");
    assert!(found || told.iter().any(|text| text.contains("PATH is empty")), "{told:?}");
}

#[test]
fn a_temporary_folder_that_is_not_there_is_named() {
    let folder = inline("assert True");
    let (exit, _, messages) = run_inline(folder.path(), &[], &[("TMPDIR", "/nonexistent-folder")]);
    assert_eq!(exit, 1);
    assert!(messages.contains("/nonexistent-folder") && messages.contains("set TMPDIR"), "{messages}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_limit_of_memory_is_named_where_it_strikes() {
    let folder = inline("block = bytearray(500 << 20)\nassert block");
    let (exit, _, messages) = run_inline(folder.path(), &["--memory", "64"], &[]);
    assert_eq!(exit, 1);
    assert!(messages.contains("MemoryError") && messages.contains("may use 64 MiB"), "{messages}");
}

#[cfg(unix)]
#[test]
fn a_pipe_named_like_a_notebook_is_a_fault_of_usage() {
    let folder = tempfile::tempdir().unwrap();
    nix::unistd::mkfifo(&folder.path().join("f.ipynb"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut command = verify(folder.path());
    let output = command.args(["answers", "f.ipynb"]).timeout(std::time::Duration::from_secs(20)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("f.ipynb is no regular file"), "{said}");
}

/// An interrupt, polite or not, leaves no process and no scratch folder.
#[cfg(target_os = "linux")]
#[rstest]
fn an_interrupt_leaves_nothing_behind(#[values("INT", "TERM", "KILL")] signal: &str) {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    let copy = scratch(&project("fixtures/cases/answers/infinite-loop/input"));
    let temporary = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_verify"))
        .args(["answers", "--timeout", "60", "nb.ipynb", "--no-progress"])
        .current_dir(copy.path())
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The notebook runs once its plan is written and its process is there.
    let needle = temporary.path().to_string_lossy().into_owned();
    let running = || {
        verify::process::proc_tree::all().into_iter().any(|pid| {
            pid != child.id()
                && verify::process::proc_tree::command_line(pid).is_some_and(|line| line.contains(&needle))
        })
    };
    let wait = |limit: Duration, done: &dyn Fn() -> bool| {
        let end = Instant::now() + limit;
        while !done() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        done()
    };
    assert!(wait(Duration::from_secs(60), &running), "the notebook never ran");
    std::thread::sleep(Duration::from_millis(300));
    let signal: nix::sys::signal::Signal = format!("SIG{signal}").parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
    assert!(wait(Duration::from_secs(10), &|| !running()), "a process of the notebook lives on");
    let empty = || fs::read_dir(temporary.path()).unwrap().next().is_none();
    assert!(wait(Duration::from_secs(10), &empty), "the scratch folder is left");
    child.wait().unwrap();
}
