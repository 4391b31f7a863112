//! What is decided before a server starts and told to it: where it listens, in which
//! precision, with which flags, whether code of a model may run. The server is a script
//! that writes down what it was told.

use crate::support::{self, findings, project, scratch};
use rstest::rstest;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A server for a port or a Unix socket, by its flags.
const SERVER: &str = r#"#!/usr/bin/env python3
import os, sys
args = sys.argv[1:]
if "--version" in args:
    print("server 1.2")
    sys.exit(0)
if "--help" in args:
    with open("helps.log", "a") as log: log.write("asked\n")
    if os.path.exists("no-help"): sys.exit(3)
    print(open("help.txt").read())
    sys.exit(0)
with open("told.log", "w") as log: log.write("\n".join(args + ["offline=" + os.environ.get("HF_HUB_OFFLINE", "")]))
import socketserver
from http.server import ThreadingHTTPServer
import fake
fake.O.update(models=lambda: ["served"])
fake.note_pid()
if "--uds" in args:
    path = args[args.index("--uds") + 1]
    print("mode %o" % (os.stat(os.path.dirname(path)).st_mode & 0o777), flush=True)
    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer): daemon_threads = True
    Server(path, fake.H).serve_forever()
else:
    ThreadingHTTPServer(("127.0.0.1", fake.PORT), fake.H).serve_forever()
"#;

const SETTINGS: &str = r#"
[[backend]]
name = "scripted"
program = "./server"
args = ["--model", "{model}", "--dtype", "{dtype}"]
port_args = ["--port", "{port}"]
socket_args = ["--uds", "{socket}"]
remote_code_args = ["--trust-remote-code"]
help_args = ["--help"]
served_model = "served"
metrics = ""
ready_timeout_s = 20.0
[backend.features]
prefix_cache_off = []
speculation = ["--speculate", "4"]
"#;

const HELP: &str =
    "usage: server [--model M] [--dtype D] [--port P] [--uds U] [--speculate-tokens N] [--trust-remote-code]";

/// The example course with that server and a model folder.
fn course(more: &str) -> TempDir {
    let course = scratch(&project("fixtures/course"));
    let at = |name: &str| course.path().join(name);
    let input = project("fixtures/cases/backend/first-request-slow/input");
    fs::copy(input.join("fake.py"), at("fake.py")).unwrap();
    fs::write(at("server"), SERVER).unwrap();
    fs::set_permissions(at("server"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(at("help.txt"), HELP).unwrap();
    let settings = fs::read_to_string(at("verify.toml")).unwrap();
    fs::write(at("verify.toml"), format!("{more}\n{settings}\n{SETTINGS}")).unwrap();
    fs::create_dir(at("model")).unwrap();
    fs::write(at("model/config.json"), r#"{"dtype": "bfloat16"}"#).unwrap();
    fs::write(at("model/tokenizer.json"), "{}").unwrap();
    fs::write(at("model/model.safetensors"), crate::hub::safetensors(16)).unwrap();
    course
}

fn smoke(course: &Path, arguments: &[&str]) -> (i32, Value) {
    let mut command = support::verify(course);
    command.args(["smoke", "--backend", "scripted", "--project", "66"]).args(arguments);
    command
        .env("VERIFY_CACHE_DIR", course.join("cache"))
        .env_remove("HF_HUB_OFFLINE")
        .env_remove("CUDA_VISIBLE_DEVICES");
    command.env("HF_HUB_CACHE", course.join("hf")).env("MODELSCOPE_CACHE", course.join("ms"));
    support::report(command)
}

fn told(course: &Path) -> Vec<String> {
    fs::read_to_string(course.join("told.log")).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn after<'a>(told: &'a [String], flag: &str) -> Option<&'a str> {
    let at = told.iter().position(|word| word == flag)?;
    told.get(at + 1).map(String::as_str)
}

fn result(course: &Path) -> Value {
    serde_json::from_slice(&fs::read(course.join("benchmarks/results/66_vllm_real.json")).unwrap()).unwrap()
}

fn has<'a>(report: &'a Value, rule: &str) -> Option<&'a Value> {
    findings(report, None).find(|finding| finding["rule"] == rule)
}

#[test]
fn a_server_that_can_is_reached_by_a_socket_that_is_gone_afterwards() {
    let course = course("");
    let (code, report) = smoke(course.path(), &["--model", "model"]);
    assert_eq!(code, 0, "{report:#}");
    let told = told(course.path());
    let socket = Path::new(after(&told, "--uds").unwrap());
    assert!(!told.iter().any(|word| word == "--port") && told.last().unwrap() == "offline=1", "{told:?}");
    assert!(!socket.parent().unwrap().exists(), "the folder of the socket is left");
    let result = result(course.path());
    assert_eq!(result["base_url"], format!("unix:{}", socket.display()));
    let log = course.path().join(result["server"]["log"].as_str().unwrap());
    assert!(fs::read_to_string(log).unwrap().contains("mode 700"));
}

#[test]
fn a_port_serves_where_sockets_are_switched_off() {
    let off = course("[smoke]\nsocket = false\n");
    let (code, report) = smoke(off.path(), &["--model", "model"]);
    assert_eq!(code, 0, "{report:#}");
    let words = told(off.path());
    let port = after(&words, "--port").unwrap();
    assert_eq!(result(off.path())["base_url"], format!("http://127.0.0.1:{port}"));
    assert!(!words.iter().any(|word| word == "--uds"));
}

/// An ad-hoc command that holds `{socket}` gets one.
#[test]
fn a_run_specification_may_ask_for_a_socket() {
    let course = course("");
    let input = project("fixtures/cases/backend/first-request-slow/input");
    fs::copy(input.join("workload.jsonl"), course.path().join("workload.jsonl")).unwrap();
    let spec = serde_json::json!({
        "backend": {"command": ["./server", "--uds", "{socket}"], "served_model": "served", "ready_timeout_s": 20},
        "workload": "workload.jsonl", "result": "benchmarks/results/66_vllm_real.json", "max_tokens": 4,
    });
    fs::write(course.path().join("run.json"), spec.to_string()).unwrap();
    let mut command = support::verify(course.path());
    command.args(["smoke", "--config", "run.json"]);
    let (code, report) = support::report(command);
    assert_eq!(code, 0, "{report:#}");
    assert!(result(course.path())["base_url"].as_str().unwrap().starts_with("unix:/"));
}

#[test]
fn a_server_on_a_socket_that_runs_already_can_be_named() {
    let course = course("");
    let path = course.path().join("s.sock");
    let child = std::process::Command::new("./server")
        .arg("--uds")
        .arg(&path)
        .current_dir(course.path())
        .stdout(std::process::Stdio::null())
        .spawn();
    let mut child = child.unwrap();
    let mut command = support::verify(course.path());
    command.args(["smoke", "--project", "66", "--base-url", &format!("unix:{}", path.display())]);
    let (code, report) = support::report(command);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(result(course.path())["environment"]["external"], true);
}

/// The precision of the model, unless another was asked for; the result keeps the chain.
#[rstest]
#[case::own(&[], "bfloat16", "the model's own")]
#[case::asked_for(&["--dtype", "float16"], "float16", "asked for")]
fn the_precision_is_chosen_and_explained(#[case] arguments: &[&str], #[case] chosen: &str, #[case] reason: &str) {
    let course = course("");
    let (code, report) = smoke(course.path(), &[&["--model", "model"], arguments].concat());
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(after(&told(course.path()), "--dtype"), Some(chosen));
    let result = result(course.path());
    let chain = &result["dtype"];
    assert_eq!((chain["chosen"].as_str(), chain["of_model"].as_str()), (Some(chosen), Some("bfloat16")));
    // A machine with an old GPU may have a reason of its own.
    assert!(
        chain["reason"].as_str().unwrap().contains(reason) || chain["reason"].as_str().unwrap().contains("capability")
    );
    assert_eq!(result["normalized_result"]["config"]["dtype"], chosen);
    assert_eq!(result["model_identity"]["origin"], "local");
}

#[test]
fn a_flag_that_this_version_lacks_is_found_before_the_start() {
    let with_feature = |course: &TempDir| {
        let mut command = support::verify(course.path());
        command.args(["smoke", "--backend", "scripted", "--project", "68", "--model", "model"]);
        command.env("VERIFY_CACHE_DIR", course.path().join("cache"));
        support::report(command)
    };
    let course = course("");
    let (code, report) = with_feature(&course);
    let finding = has(&report, "smoke/flag-unknown").unwrap_or_else(|| panic!("{report:#}"));
    let text = format!("{} {}", finding["message"], finding["help"]);
    assert!(
        code == 1
            && text.contains("scripted (server 1.2)")
            && text.contains("--speculate of `speculation`")
            && text.contains("`--speculate-tokens`"),
        "{text}"
    );
    let pids = || fs::read_to_string(course.path().join("pids.log")).unwrap_or_default().lines().count();
    assert_eq!(pids(), 1, "the baseline ran, the candidate did not start");
    let asked = || fs::read_to_string(course.path().join("helps.log")).unwrap().lines().count();
    assert_eq!(asked(), 1, "the help of one program is read once");
    // The program changes, and with it what it knows.
    fs::write(course.path().join("server"), SERVER.to_owned() + "# newer\n").unwrap();
    fs::write(course.path().join("help.txt"), HELP.replace("--speculate-tokens", "--speculate")).unwrap();
    let (_, report) = with_feature(&course);
    assert!(has(&report, "smoke/flag-unknown").is_none(), "{report:#}");
    assert_eq!(asked(), 2);
}

#[test]
fn a_help_that_cannot_be_read_stops_nothing() {
    let course = course("");
    fs::write(course.path().join("no-help"), "").unwrap();
    let (code, report) = smoke(course.path(), &["--model", "model"]);
    assert_eq!(code, 0, "{report:#}");
}

#[test]
fn code_of_a_model_is_told_of_and_run_only_where_the_settings_say_so() {
    for (more, runs) in [("", false), ("[smoke]\ntrust_remote_code = true\n", true)] {
        let course = course(more);
        fs::write(course.path().join("model/modeling_x.py"), "").unwrap();
        let (code, report) = smoke(course.path(), &["--model", "model"]);
        assert_eq!(code, 0, "{report:#}");
        assert_eq!(told(course.path()).iter().any(|word| word == "--trust-remote-code"), runs);
        match has(&report, "smoke/model-code") {
            Some(finding) => assert!(
                !runs
                    && finding["severity"] == "warning"
                    && finding["message"].as_str().unwrap().contains("modeling_x.py")
            ),
            None => assert!(runs, "{report:#}"),
        }
    }
}

#[test]
fn code_at_a_branch_is_not_run_and_the_commit_to_pin_is_named() {
    let course = course("[smoke]\ntrust_remote_code = true\n");
    let commit = crate::hub::COMMIT;
    let folder = course.path().join("hf/models--o--n");
    fs::create_dir_all(folder.join("snapshots")).unwrap();
    fs::create_dir_all(folder.join("refs")).unwrap();
    fs::rename(course.path().join("model"), folder.join("snapshots").join(commit)).unwrap();
    fs::write(folder.join("refs/main"), commit).unwrap();
    fs::write(folder.join("snapshots").join(commit).join("modeling_x.py"), "").unwrap();
    let (_, report) = smoke(course.path(), &["--model", "o/n"]);
    let finding = has(&report, "smoke/model-code").unwrap_or_else(|| panic!("{report:#}"));
    assert!(finding["help"].as_str().unwrap().contains(&format!("o/n@{commit}")), "{finding:#}");
    assert!(!told(course.path()).iter().any(|word| word == "--trust-remote-code"));
    let (_, report) = smoke(course.path(), &["--model", &format!("o/n@{commit}")]);
    assert!(has(&report, "smoke/model-code").is_none(), "{report:#}");
    assert!(told(course.path()).iter().any(|word| word == "--trust-remote-code"));
    assert_eq!(result(course.path())["normalized_result"]["config"]["model_revision"], commit);
}

#[test]
fn an_id_that_is_nowhere_is_no_download_by_the_server() {
    let absent = course("");
    let (code, report) = smoke(absent.path(), &["--model", "no-owner/no-model"]);
    let finding = has(&report, "smoke/model-missing").unwrap_or_else(|| panic!("{report:#}"));
    assert!(code == 1 && finding["help"].as_str().unwrap().contains("--download"), "{finding:#}");
    assert!(told(absent.path()).is_empty());
    // A server with names of its own gets the name.
    let own = course("");
    let settings = fs::read_to_string(own.path().join("verify.toml")).unwrap();
    let settings = settings.replace("served_model = \"served\"", "served_model = \"served\"\nown_model_names = true");
    fs::write(own.path().join("verify.toml"), settings).unwrap();
    let (code, report) = smoke(own.path(), &["--model", "qwen3:0.6b"]);
    assert_eq!(code, 0, "{report:#}");
    let told = told(own.path());
    assert_eq!((after(&told, "--model"), told.last().unwrap().as_str()), (Some("qwen3:0.6b"), "offline="));
}
