//! `verify explain`: every rule has an example, and every example does what it says.

use crate::support::{report, verify};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use verify::rules::example::{Example, Part, Side};
use verify::rules::{Rule, all};

/// The address that stands in the examples for that of the server of the test.
const ADDRESS: &str = "127.0.0.1:8000";

/// What is the machine's and nobody's fault: a busy one shows these beside any rule.
#[cfg(target_os = "linux")]
const OF_THE_MACHINE: &[&str] = &[
    "bench/cold-mixed",
    "bench/drift",
    "bench/stalls",
    "bench/starved",
    "experiment/cold-mixed-in",
    "experiment/drift",
    "experiment/client-error",
    "experiment/client-starved",
    "smoke/disturbed",
];

/// Bad breaks its rule and no other that a person must act on; good breaks none.
#[test]
#[cfg(target_os = "linux")]
fn every_example_does_what_it_says() {
    let wanted = std::env::var("EXAMPLE").unwrap_or_default();
    let queue: Mutex<Vec<&Rule>> = Mutex::new(all().filter(|rule| rule.id.contains(&wanted)).collect());
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(rule) = queue.lock().unwrap().pop() else { break };
                    let found = faults_of(rule);
                    faults.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mut faults = faults.into_inner().unwrap();
    faults.sort();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// The rules that no file can break, each with its reason in both languages.
#[test]
fn rules_without_an_example_say_why() {
    let without: Vec<String> = all()
        .filter_map(|rule| {
            let example = Example::parse(rule.example).unwrap_or_else(|line| panic!("{}: {line}", rule.id));
            let reason = example.none?;
            assert!(example.parts.is_empty() && example.commands.is_empty(), "{}: reason or example", rule.id);
            assert!(!reason.zh.is_empty(), "{}: a reason in Chinese", rule.id);
            Some(format!("{}: {}", rule.id, reason.en))
        })
        .collect();
    insta::assert_snapshot!(without.join("\n"));
}

fn faults_of(rule: &Rule) -> Vec<String> {
    let example = match Example::parse(rule.example) {
        Ok(example) if example.none.is_some() => return Vec::new(),
        Ok(example) => example,
        Err(line) => return vec![format!("{}: cannot be read: {line}", rule.id)],
    };
    let mut faults = Vec::new();
    if example.shown(Side::Bad) == example.shown(Side::Good)
        && example.command(Side::Bad) == example.command(Side::Good)
    {
        faults.push(format!("{}: bad and good are the same", rule.id));
    }
    let allowed = |id: &str, severity: &str| {
        severity == "note" || id == rule.id || example.also.contains(&id) || OF_THE_MACHINE.contains(&id)
    };
    for (side, breaks) in [(Side::Bad, true), (Side::Good, false)] {
        let found = run(&example, side);
        let ids: BTreeSet<&str> = found.iter().map(|(id, ..)| id.as_str()).collect();
        let stray = found.iter().any(|(id, severity, _)| !allowed(id, severity));
        if ids.contains(rule.id) != breaks || stray {
            faults.push(format!("{} {side:?}: {found:#?}", rule.id));
        }
    }
    faults
}

/// Runs one side; rule, severity and message of what was reported.
fn run(example: &Example, side: Side) -> Vec<(String, String, String)> {
    let folder = tempfile::Builder::new().prefix("verify-explain-").tempdir().expect("a scratch folder");
    let root = folder.path();
    let parts: Vec<Part> =
        example.parts.iter().filter(|part| [side, Side::Both].contains(&part.side)).copied().collect();
    let (files, scripts): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(|part| !part.is_server());
    let address = if scripts.is_empty() { ADDRESS.to_owned() } else { serve(scripts) };
    if files.iter().any(|part| part.name == ".gitignore") {
        let made = std::process::Command::new("git").args(["init", "-q"]).current_dir(root).status();
        assert!(made.expect("git runs").success());
    }
    for part in files {
        let path = root.join(part.name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content(&part, &address)).expect("a file");
    }
    let command = example.command(side).unwrap_or_default().replace(ADDRESS, &address);

    let mut process = verify(root);
    process.args(command.split_whitespace().skip(1));
    let (code, shown) = report(process);
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let stages = shown["stages"].as_array().expect("stages").iter();
    let of_stages = stages.flat_map(|stage| stage["findings"].as_array().expect("findings"));
    let findings = of_stages.chain(shown["bench"]["findings"].as_array().into_iter().flatten());
    let mut found: Vec<_> = findings
        .map(|finding| {
            (
                text(finding, "rule"),
                text(finding, "severity"),
                format!("{}: {}", text(finding, "path"), text(finding, "message")),
            )
        })
        .collect();
    if code == 2 {
        found.push(("usage".to_owned(), "error".to_owned(), shown["error"].to_string()));
    }
    found
}

/// What the file of a part holds.
fn content(part: &Part, address: &str) -> Vec<u8> {
    if let Some(base) = part.base {
        let path = crate::support::project("fixtures/explain/base").join(base);
        if part.text.is_empty() {
            return fs::read(path).expect("a base");
        }
        let mut document: Value = serde_json::from_str(&fs::read_to_string(path).expect("a base")).expect("JSON");
        merge(&mut document, &serde_json::from_str(part.text).expect("a part of a document"));
        return document.to_string().into_bytes();
    }
    if part.escaped {
        return bytes(part.text);
    }
    let port = format!(": {}", address.rsplit(':').next().unwrap_or_default());
    let text = format!("{}\n", part.text.replace(ADDRESS, address).replace(": 8000", &port));
    let is_notebook = Path::new(part.name).extension().is_some_and(|end| end == "ipynb");
    if is_notebook && text.starts_with("# %%") { notebook(part.text).into_bytes() } else { text.into_bytes() }
}

/// Members of a part take the place of those of the whole; "(absent)" takes one away.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return patch.clone_into(target) };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (name, value) in patch {
        if value == "(absent)" {
            target.remove(name);
        } else {
            merge(target.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

/// `\xNN` as the byte that it stands for.
fn bytes(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        out.push(u8::from_str_radix(&part[..2], 16).expect("two digits"));
        out.extend_from_slice(&part.as_bytes()[2..]);
    }
    out.push(b'\n');
    out
}

/// A notebook of the cells that begin with `# %%`, `# %% [markdown]` or `# %% tag: NAME`.
fn notebook(text: &str) -> String {
    let cells: Vec<Value> = text
        .split("# %%")
        .skip(1)
        .enumerate()
        .map(|(at, cell)| {
            let (head, source) = cell.split_once('\n').unwrap_or((cell, ""));
            let tags: Vec<&str> = head.trim().strip_prefix("tag: ").into_iter().collect();
            let source = source.trim_end();
            let id = format!("cell-{at}");
            if head.trim() == "[markdown]" {
                json!({"cell_type": "markdown", "id": id, "metadata": {}, "source": source})
            } else {
                json!({"cell_type": "code", "id": id, "metadata": {"tags": tags}, "source": source,
                       "outputs": [], "execution_count": null})
            }
        })
        .collect();
    let kernel = json!({"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}});
    json!({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

/// Starts a server that sends what the parts say; its address.
fn serve(parts: Vec<Part>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (parts, count) = (Arc::new(parts), Arc::new(AtomicUsize::new(0)));
    // It ends with the test program.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (parts, count) = (Arc::clone(&parts), Arc::clone(&count));
            std::thread::spawn(move || answer(stream, &parts, &count));
        }
    });
    address
}

/// Reads one request and answers it; a client that went away is no fault.
fn answer(stream: TcpStream, parts: &[Part], count: &AtomicUsize) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    reader.read_line(&mut head).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    let path = head.split_whitespace().nth(1)?;
    let text = if head.starts_with("POST") {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        let exact = format!("server request {number}");
        let from = |part: &&Part| {
            part.name
                .strip_prefix("server from request ")
                .is_some_and(|from| from.parse().is_ok_and(|from: usize| number >= from))
        };
        let find = |name: &str| parts.iter().find(|part| part.name == name);
        find(&exact).or_else(|| parts.iter().find(from)).or_else(|| find("server"))?.text.to_owned()
    } else {
        let later = format!("server {path} afterwards");
        let find = |name: &str| parts.iter().find(|part| part.name == name).map(|part| part.text.to_owned());
        let after = (count.load(Ordering::SeqCst) > 0).then(|| find(&later)).flatten();
        after.or_else(|| find(&format!("server {path}"))).unwrap_or_else(|| usual(path))
    };
    send(reader.get_mut(), &text)
}

fn usual(path: &str) -> String {
    match path {
        "/v1/models" => "HTTP/1.1 200 OK\ncontent-type: application/json\n\n{\"data\":[{\"id\":\"m\"}]}".to_owned(),
        "/health" => "HTTP/1.1 200 OK\n\n".to_owned(),
        _ => "HTTP/1.1 404 Not Found\n\n".to_owned(),
    }
}

/// Sends a text: with a head of its own or as a stream of events; `: 50 ms later` waits.
fn send(stream: &mut TcpStream, text: &str) -> Option<()> {
    let (head, body) = match text.split_once("\n\n") {
        Some((head, body)) if head.starts_with("HTTP/") => (head.to_owned(), body),
        _ if text.starts_with("HTTP/") => (text.to_owned(), ""),
        _ => ("HTTP/1.1 200 OK\ncontent-type: text/event-stream".to_owned(), text),
    };
    stream.write_all(format!("{}\r\nconnection: close\r\n\r\n", head.replace('\n', "\r\n")).as_bytes()).ok()?;
    for line in body.split('\n') {
        let wait = line.strip_prefix(": ").and_then(|line| line.strip_suffix(" ms later"));
        if let Some(wait) = wait.and_then(|wait| wait.parse().ok()) {
            stream.flush().ok()?;
            std::thread::sleep(Duration::from_millis(wait));
        } else {
            stream.write_all(&bytes(line)).ok()?;
        }
    }
    stream.write_all(b"\n").ok()
}

/// Both languages show the example, and the place where it stands.
#[test]
fn a_rule_is_explained_in_both_languages() {
    let explain = |lang: &str, rule: &str| {
        let output = verify(Path::new(".")).args(["explain", rule, "--lang", lang]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for rule in ["links/missing-file", "evidence/budget-missing", "bench/no-done", "smoke/leftover"] {
        insta::assert_snapshot!(
            format!("explain-{}", rule.replace('/', "-")),
            explain("en", rule) + "\n" + &explain("zh", rule)
        );
    }
}
