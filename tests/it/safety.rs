//! The promises of SECURITY.md: a key appears nowhere, nothing is written outside the
//! course, and nobody else steers the terminal.

use crate::support::{project, report, scratch, verify};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Output;
use verify::render::Format;

/// Secret, and looked for everywhere.
const CANARY: &str = "sk-canary-7f3a9c51e2d84b06";

/// What would repaint a screen, set its title, or turn text round; in C0, in C1 and as
/// direction marks.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{8}\u{7f}evil";

/// How the server behaves that sends back whatever it is told.
#[derive(Clone, Copy, PartialEq)]
enum Echo {
    /// It answers, and the answer holds the key.
    Answer,
    /// It refuses, and the refusal holds the key.
    Refuse,
    /// The stream breaks off with an error that holds the key.
    Break,
}

/// A server that repeats the key, and what is hostile, in everything it says.
fn server(echo: Echo) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, echo));
        }
    });
    format!("http://{address}/v1")
}

fn serve(mut stream: TcpStream, echo: Echo) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length, mut key) = (String::new(), 0, String::new());
    if reader.read_line(&mut head).is_err() {
        return;
    }
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
        let (name, value) = line.trim().split_once(": ").unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "authorization" => value.trim_start_matches("Bearer ").clone_into(&mut key),
            _ => {}
        }
        line.clear();
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    let (status, kind, text) = answer(&head, &key, echo);
    let length = text.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nServer: {key}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
}

fn answer(head: &str, key: &str, echo: Echo) -> (&'static str, &'static str, String) {
    if head.starts_with("GET /v1/models") {
        let model = json!({"id": "tiny", "owned_by": format!("{key}{HOSTILE}"), "meta": {"ftype": key, "key": key}});
        return ("200 OK", "application/json", json!({"object": "list", "data": [model]}).to_string());
    }
    if head.starts_with("GET /metrics") {
        return ("200 OK", "text/plain", format!("# {key}\nvllm:prompt_tokens_total{{key=\"{key}\"}} 1\n"));
    }
    if head.starts_with("GET") {
        return ("200 OK", "text/plain", format!("ok {key}"));
    }
    let error = json!({"error": {"message": format!("bad key {key} {HOSTILE}"), "code": key}});
    let chunk = |text: &str| json!({"model": key, "choices": [{"index": 0, "delta": {"content": text}}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let said = format!("your key is {key} {HOSTILE}");
    match echo {
        Echo::Refuse => ("500 Internal Server Error", "application/json", error.to_string()),
        Echo::Break => {
            ("200 OK", "text/event-stream", format!("data: {}\n\ndata: {error}\n\ndata: [DONE]\n\n", chunk(&said)))
        }
        Echo::Answer => (
            "200 OK",
            "text/event-stream",
            format!("data: {}\n\ndata: {}\n\ndata: {end}\n\ndata: [DONE]\n\n", chunk(&said), chunk("!")),
        ),
    }
}

/// A run against a server, with the key in the environment.
fn smoke(folder: &Path, base_url: &str, more: &[&str]) -> Output {
    let spec = json!({
        "backend": {"base_url": base_url, "served_model": "tiny", "api_key_env": "CANARY_API_KEY",
                    "ready_timeout_s": 1, "probe_timeout_s": 1},
        "workload": "workload.jsonl", "requests": 2, "max_tokens": 4, "result": "benchmarks/results/x.json",
    });
    fs::write(folder.join("run.json"), spec.to_string()).unwrap();
    fs::write(folder.join("workload.jsonl"), "{\"prompt\": \"hello\"}\n").unwrap();
    let mut command = verify(folder);
    command.args(["smoke", "--config", "run.json"]).args(more).env("CANARY_API_KEY", CANARY);
    command.output().unwrap()
}

fn files(folder: &Path) -> Vec<(String, String)> {
    let entries = walkdir::WalkDir::new(folder).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    entries
        .map(|entry| {
            let text = String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned();
            (entry.path().display().to_string(), text)
        })
        .collect()
}

fn texts(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[rstest::rstest]
#[case(Echo::Answer, 0)]
#[case(Echo::Refuse, 1)]
#[case(Echo::Break, 1)]
fn a_key_that_the_server_sends_back_appears_nowhere(#[case] echo: Echo, #[case] code: i32) {
    let folder = tempfile::tempdir().unwrap();
    let base_url = server(echo);
    for format in Format::value_variants() {
        let name = format.to_possible_value().unwrap().get_name().to_owned();
        let output = smoke(folder.path(), &base_url, &["--format", &name]);
        let said = texts(&output);
        assert_eq!(output.status.code(), Some(code), "{name}: {said}");
        assert!(!said.contains(CANARY), "{name}: {said}");
        let to_file = format!("{name}=report.{name}");
        let output = smoke(folder.path(), &base_url, &["--output", &to_file, "-v"][..2]);
        assert!(!texts(&output).contains(CANARY));
    }
    let files = files(folder.path());
    let holding: Vec<&String> = files.iter().filter(|(_, text)| text.contains(CANARY)).map(|(path, _)| path).collect();
    assert!(holding.is_empty(), "{holding:?}");
    // It looked where there was something to see: the echo was stored, redacted, and kept.
    let stored = files.iter().filter(|(path, text)| path.contains("results") && text.contains("[redacted]")).count();
    assert!(stored >= 2, "{:?}", files.iter().map(|(path, _)| path).collect::<Vec<_>>());
}

/// The same for the ad-hoc load run: what it prints, and the requests that it keeps.
#[test]
fn a_key_appears_in_nothing_that_bench_says_or_keeps() {
    let folder = tempfile::tempdir().unwrap();
    for echo in [Echo::Answer, Echo::Refuse, Echo::Break] {
        for format in ["json", "human"] {
            let mut command = verify(folder.path());
            command.args(["bench", "--base-url", &server(echo), "--model", "tiny", "-n", "2", "--max-tokens", "4"]);
            command.args(["--prompt", "hello", "--api-key-env", "CANARY_API_KEY", "--no-self-check"]);
            command.args(["--save-requests", "requests.jsonl", "--format", format]).env("CANARY_API_KEY", CANARY);
            let output = command.output().unwrap();
            let said = texts(&output);
            assert!(output.status.code().is_some_and(|code| code < 2), "{said}");
            assert!(!said.contains(CANARY), "{said}");
            assert!(format == "json" || steering(&output).is_empty(), "{said:?}");
            let kept = files(folder.path());
            assert!(kept.iter().all(|(_, text)| !text.contains(CANARY)), "{kept:?}");
        }
    }
    assert!(folder.path().join("requests.jsonl").exists());
}

/// Every process of this machine, again and again while a server runs that is given the key.
#[cfg(target_os = "linux")]
#[test]
fn a_key_is_on_no_command_line() {
    let copy = scratch(&project("fixtures/cases/backend/auth-key-redacted/input"));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_verify"));
    command.args(["smoke", "--config", "smoke.json"]).env("CASE_API_KEY", CANARY).current_dir(copy.path());
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut seen = BTreeSet::new();
    while child.try_wait().unwrap().is_none() {
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            seen.insert(String::from_utf8_lossy(&line).replace('\0', " "));
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert!(seen.iter().any(|line| line.contains("server.py")), "the server was never seen");
    assert!(seen.iter().all(|line| !line.contains(CANARY)), "{seen:#?}");
    assert!(files(copy.path()).iter().all(|(_, text)| !text.contains(CANARY)));
}

// Where is written -----------------------------------------------------------------

#[rstest::rstest]
#[case("[course]\nresults = \"../elsewhere\"\n")]
#[case("[course]\nresults = \"/tmp/elsewhere\"\n")]
#[case("[[project]]\nid = 66\nresult = \"../../66.json\"\n")]
#[case("[[project]]\nid = 66\nresult = \"/etc/66.json\"\n")]
#[case("[[project]]\nid = 66\nresult = 'C:\\66.json'\n")]
#[case("[links.external]\ncache = \"a/../../cache.json\"\n")]
fn settings_that_lead_out_of_the_course_are_refused(#[case] text: &str) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("verify.toml"), text).unwrap();
    let output = verify(folder.path()).arg("settings").output().unwrap();
    let said = texts(&output);
    assert!(output.status.code() == Some(2) && said.contains("leads out of the course"), "{said}");
}

#[cfg(unix)]
#[rstest::rstest]
#[case("benchmarks")]
#[case("benchmarks/results")]
#[case("benchmarks/results/history")]
fn a_link_that_leads_out_of_the_course_is_not_followed(#[case] link: &str) {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let link = folder.path().join(link);
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(outside.path(), &link).unwrap();
    let output = smoke(folder.path(), &server(Echo::Answer), &["--format", "json"]);
    let said = texts(&output);
    assert!(output.status.code() == Some(1) && said.contains("smoke/result-outside"), "{said}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

/// A result that is a link to a file elsewhere is replaced, not written through.
#[cfg(unix)]
#[test]
fn a_result_that_is_a_link_is_replaced() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = outside.path().join("precious");
    fs::write(&target, "precious").unwrap();
    fs::create_dir_all(folder.path().join("benchmarks/results")).unwrap();
    std::os::unix::fs::symlink(&target, folder.path().join("benchmarks/results/x.json")).unwrap();
    let output = smoke(folder.path(), &server(Echo::Answer), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", texts(&output));
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
}

#[test]
fn a_run_specification_cannot_lead_out() {
    let folder = tempfile::tempdir().unwrap();
    for result in ["../x.json", "/tmp/x.json", "a/../../x.json"] {
        let spec = json!({"backend": {"base_url": "http://127.0.0.1:1"}, "workload": "w.jsonl", "result": result});
        fs::write(folder.path().join("run.json"), spec.to_string()).unwrap();
        verify(folder.path()).args(["smoke", "--config", "run.json"]).assert().code(2);
    }
}

/// The paths in the reports that are joined are shown, never opened for writing.
#[test]
fn merged_reports_write_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let part = json!({
        "schema_version": "verify-report/v1", "tool": {"name": "verify", "version": "0"}, "status": "fail", "exit_code": 1,
        "duration_ms": 1, "stages": [{"stage": "links", "status": "fail", "duration_ms": 1, "summary": {},
        "items": [{"path": "../../evil.json", "status": "fail"}],
        "findings": [{"rule": "links/missing-file", "severity": "error", "message": "x", "path": "/etc/passwd", "line": 1, "column": 1}]}],
    });
    fs::write(folder.path().join("part.json"), part.to_string()).unwrap();
    let output = verify(folder.path()).args(["merge", "part.json", "--output", "json=whole.json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", texts(&output));
    let names: BTreeSet<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    // A file that a report names is no reason to show what stands in it.
    assert!(!texts(&output).contains("root:"), "{}", texts(&output));
}

// What is shown --------------------------------------------------------------------

/// The characters of an output that steer a terminal, colours aside where they were asked for.
fn steering(output: &Output) -> String {
    let text = texts(output);
    let mut rest = text.as_str();
    let mut plain = String::new();
    while let Some(at) = rest.find("\u{1b}[") {
        let body = &rest[at + 2..];
        let end = body.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(body.len());
        plain.push_str(&rest[..at]);
        if !body[end..].starts_with('m') {
            plain.push('\u{1b}');
        }
        rest = body[end..].strip_prefix('m').unwrap_or(&body[end..]);
    }
    plain.push_str(rest);
    plain.retain(|c| {
        c.is_control() && c != '\n' && c != '\t' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    });
    plain
}

fn notebook(source: &str) -> String {
    let cell = |kind: &str, source: &str| json!({"cell_type": kind, "metadata": {}, "source": source, "outputs": [], "execution_count": null});
    json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        cell("markdown", &format!("## 参考代码与解析 {HOSTILE}\n\n[x](gone{HOSTILE}.md)")), cell("code", source)]})
    .to_string()
}

/// A course of which every text is hostile.
fn hostile_course() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("a.md", &format!("# A{HOSTILE}\n\n[x](readme{HOSTILE}.md) [y](Sub/b.md) {HOSTILE}\n[z](<{HOSTILE}>)\n"));
    write("sub/b.md", "# B\n");
    write("broken.py", &format!("x = '{HOSTILE}\n"));
    write(
        "02_PyTorch_Algorithms/a.ipynb",
        &notebook(&format!("def test():\n    raise ValueError({HOSTILE:?}) # {HOSTILE}\ntest()")),
    );
    write("02_PyTorch_Algorithms/b.ipynb", &notebook(&format!("x = ({HOSTILE}")));
    write("02_PyTorch_Algorithms/c.ipynb", &format!("{{\"cells\": [{HOSTILE}"));
    let text =
        fs::read_to_string(project("fixtures/course/benchmarks/results/published/66_reference_c1.json")).unwrap();
    let mut result: Value = serde_json::from_str(&text).unwrap();
    result["normalized_result"]["config"]["model"] = HOSTILE.into();
    result["normalized_result"]["strategy"] = HOSTILE.into();
    write("benchmarks/results/good.json", &result.to_string());
    result["normalized_result"][HOSTILE] = HOSTILE.into();
    result["normalized_result"]["config"]["dtype"] = json!([HOSTILE]);
    write("benchmarks/results/bad.json", &result.to_string());
    write("benchmarks/results/raw.json", &format!("{{\"a\": \"{HOSTILE}\"}}"));
    write(
        "legacy.json",
        &json!({"label": HOSTILE, "model": HOSTILE, "metrics": {"ttft_ms": 3, HOSTILE: 4}}).to_string(),
    );
    let report = json!({
        "schema_version": "verify-report/v1", "tool": {"name": "verify", "version": "0"}, "status": "fail", "exit_code": 1,
        "duration_ms": 1, "stages": [{"stage": "links", "status": "fail", "duration_ms": 1, "summary": {},
        "items": [{"path": HOSTILE, "status": "fail", "detail": HOSTILE, "next_steps": [HOSTILE]}],
        "findings": [{"rule": "links/missing-file", "severity": "error", "message": HOSTILE, "path": HOSTILE, "target": HOSTILE, "help": HOSTILE}]}],
    });
    write("report.json", &report.to_string());
    #[cfg(unix)]
    write(&format!("name{HOSTILE}\n.md"), "[x](gone.md)\n");
    folder
}

#[rstest::rstest]
#[case(&["static"])]
#[case(&["answers"])]
#[case(&["links"])]
#[case(&["links", "--fix", "--dry-run"])]
#[case(&["links", "--mirror"])]
#[case(&["schema"])]
#[case(&["schema", "--level", "compat"])]
#[case(&["conclude", "benchmarks/results/good.json"])]
#[case(&["compare", "benchmarks/results/good.json", "benchmarks/results/good.json"])]
#[case(&["compare", "benchmarks/results/good.json", "benchmarks/results/bad.json"])]
#[case(&["normalize", "legacy.json", "--dry-run"])]
#[case(&["merge", "report.json"])]
#[case(&["all", "--keep-going"])]
#[case(&["settings"])]
#[case(&["explain", HOSTILE])]
#[case(&["links", HOSTILE])]
fn nobody_else_steers_the_terminal(#[case] args: &[&str]) {
    let folder = hostile_course();
    for color in ["never", "always"] {
        for lang in ["en", "zh"] {
            let output =
                verify(folder.path()).args(args).args(["-C", ".", "--color", color, "--lang", lang]).output().unwrap();
            assert_eq!(steering(&output), "", "{args:?} {color}: {:?}", texts(&output));
        }
    }
}

#[test]
fn settings_and_their_faults_do_not_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let escaped = "\\u001b]0;owned\\u0007\\u001b[2J\\u009b31m\\u202e";
    for text in [
        format!("[course]\nnotebooks = [\"{escaped}\"]\n"),
        format!("[course]\n\"{escaped}\" = 1\n"),
        "[course]\n# \u{9b}31m\u{202e}\nexclud = []\n".to_owned(),
        format!("[smoke]\nbackend = \"{escaped}\"\n"),
    ] {
        fs::write(folder.path().join("verify.toml"), &text).unwrap();
        for color in ["never", "always"] {
            for command in [&["settings"][..], &["all"]] {
                let output = verify(folder.path()).args(command).args(["-C", ".", "--color", color]).output().unwrap();
                assert_eq!(steering(&output), "", "{text}: {:?}", texts(&output));
            }
        }
    }
}

#[test]
fn a_server_does_not_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    for echo in [Echo::Answer, Echo::Refuse, Echo::Break] {
        for color in ["never", "always"] {
            let output = smoke(folder.path(), &server(echo), &["--color", color]);
            assert_eq!(steering(&output), "", "{:?}", texts(&output));
        }
    }
    let (_, shown) = {
        let mut command = verify(folder.path());
        command.args(["schema", "benchmarks/results/x.json"]);
        report(command)
    };
    assert_eq!(shown["status"], "pass", "{shown:#}");
}
