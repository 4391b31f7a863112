//! Lifecycle of servers: each case of `fixtures/cases/backend` has a fake server with
//! one way to misbehave; then the same promises with a real model on the CPU.
//! Linux only: who lives is read from `/proc`.

use crate::support::{self, SCRUBBED, project, scratch};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use rstest::rstest;
use serde_json::Value;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A fake server's process, stopped with its group when the case is over.
struct Setup(Child);

impl Drop for Setup {
    fn drop(&mut self) {
        let _ = signal::killpg(pid(self.0.id()), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).unwrap())
}

/// State letter of a process; zombies are as good as gone.
fn lives(id: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// The pids that the fake processes noted and that still live.
fn living(work: &Path) -> Vec<i32> {
    let text = fs::read_to_string(work.join("pids.log")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).filter(|id| lives(*id)).collect()
}

fn wait_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !done() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

fn start_setup(case: &Value, work: &Path) -> Vec<Setup> {
    let mut running = Vec::new();
    for entry in case["setup"].as_array().into_iter().flatten() {
        let argv: Vec<&str> = entry["argv"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
        let child = Command::new(argv[0])
            .args(&argv[1..])
            .current_dir(work)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        running.push(Setup(child));
        if let Some(port) = entry["wait_port"].as_u64() {
            let port = u16::try_from(port).unwrap();
            assert!(wait_until(Duration::from_secs(10), || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()));
        }
        std::thread::sleep(Duration::from_secs_f64(entry["wait_s"].as_f64().unwrap_or(0.0)));
    }
    let _ = fs::remove_file(work.join("pids.log"));
    running
}

/// The program as the case wants it started: a limit of file size, a pipe as input.
fn command(case: &Value, work: &Path) -> Command {
    let binary = env!("CARGO_BIN_EXE_verify");
    let mut command = match case["limits"]["rlimit_fsize"].as_u64() {
        // `ulimit -f` counts blocks of 512 bytes; the signal is ignored as harnesses do.
        Some(bytes) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(format!("ulimit -f {}; trap '' XFSZ; exec \"$0\" \"$@\"", bytes / 512)).arg(binary);
            shell
        }
        None => Command::new(binary),
    };
    command.args(support::args(case)).current_dir(work).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if case["stdin"] == "open_pipe" { Stdio::piped() } else { Stdio::null() });
    SCRUBBED.iter().for_each(|name| {
        command.env_remove(name);
    });
    for (name, value) in case["env"].as_object().into_iter().flatten() {
        command.env(name, value.as_str().unwrap());
    }
    command
}

/// Sends the signal of the case once the file it names has enough lines.
fn shoot(case: &Value, work: &Path, target: u32) {
    let Some(signal) = case["signal"]["sig"].as_str() else { return };
    let file = work.join(case["signal"]["when_lines"][0].as_str().unwrap());
    let lines = usize::try_from(case["signal"]["when_lines"][1].as_u64().unwrap()).unwrap();
    let signal: Signal = format!("SIG{signal}").parse().unwrap();
    wait_until(Duration::from_secs(30), || fs::read_to_string(&file).unwrap_or_default().lines().count() >= lines);
    signal::kill(pid(target), signal).unwrap();
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().filter_map(|entry| entry.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    walkdir::WalkDir::new(folder)
        .into_iter()
        .flatten()
        .filter(|entry| entry.file_type().is_file())
        .map(walkdir::DirEntry::into_path)
        .collect()
}

struct Ended {
    code: i32,
    took: f64,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

fn run(case: &Value, work: &Path) -> Ended {
    let began = Instant::now();
    let mut child = command(case, work).spawn().unwrap();
    let held = child.stdin.take();
    shoot(case, work, child.id());
    let output = child.wait_with_output().unwrap();
    drop(held);
    let code = output.status.code().unwrap_or_else(|| -output.status.signal().unwrap_or(0));
    Ended { code, took: began.elapsed().as_secs_f64(), stdout: output.stdout, stderr: output.stderr }
}

#[rstest]
fn case(#[files("fixtures/cases/backend/*/case.json")] path: PathBuf) {
    let folder = path.parent().unwrap();
    let case = support::case(folder);
    let copy = scratch(&folder.join("input"));
    let work = copy.path();
    let mut setup = start_setup(&case, work);
    let given = files_below(work);
    let ended = run(&case, work);
    let expect = &case["expect"];
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();

    assert!(wait_until(Duration::from_millis(300), || living(work).is_empty()), "orphans: {:?}", living(work));
    let codes: Vec<i64> = match &expect["exit"] {
        Value::Array(list) => list.iter().filter_map(Value::as_i64).collect(),
        code => code.as_i64().into_iter().collect(),
    };
    assert!(codes.contains(&i64::from(ended.code)), "exit {}, expected {codes:?}: {stderr}", ended.code);
    if let Some(limit) = expect["max_wall_s"].as_f64() {
        assert!(ended.took <= limit, "took {} s", ended.took);
    }
    let report: Value = serde_json::from_slice(&ended.stdout).expect("a JSON report");
    assert_eq!(report["stages"][0]["status"], expect["stage_status"], "{report:#}");
    let text = report.to_string().to_lowercase();
    for wanted in texts(&expect["message_contains"]) {
        assert!(text.contains(&wanted.to_lowercase()), "the report lacks {wanted:?}: {report:#}");
    }
    if expect["report_must_not_contain_control_chars"] == true {
        assert!(!has_control(&report), "{report:#}");
    }
    check_files(&case, work, &given, &ended);
    for server in &mut setup {
        assert!(
            expect["setup_still_alive"] != true || server.0.try_wait().unwrap().is_none(),
            "a foreign server was stopped"
        );
    }
}

fn has_control(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'),
        Value::Array(list) => list.iter().any(has_control),
        Value::Object(map) => map.values().any(has_control),
        _ => false,
    }
}

fn check_files(case: &Value, work: &Path, given: &[PathBuf], ended: &Ended) {
    let expect = &case["expect"];
    let spec: Value = serde_json::from_str(&fs::read_to_string(work.join("smoke.json")).unwrap()).unwrap();
    let path = work.join(spec["result"].as_str().unwrap());
    let result: Option<Value> = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    assert_eq!(Some(result.is_some() || path.exists()), expect["result_written"].as_bool(), "result file");
    for absent in texts(&expect["must_not_exist"]) {
        assert!(!work.join(&absent).exists(), "{absent} exists");
    }
    let own: Vec<PathBuf> = files_below(work).into_iter().filter(|file| !given.contains(file)).collect();
    assert!(!own.iter().any(|file| file.to_string_lossy().ends_with(".tmp")), "a temporary file is left: {own:?}");
    for secret in texts(&expect["must_not_appear_anywhere"]) {
        let found = |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found(&ended.stdout) && !found(&ended.stderr), "a secret is on the console");
        for file in &own {
            assert!(!found(&fs::read(file).unwrap()), "a secret is in {}", file.display());
        }
    }
    let metrics = result.as_ref().map_or(&Value::Null, |result| &result["normalized_result"]["metrics"]);
    if let Some(failed) = expect["failed_requests"].as_f64() {
        assert_eq!(metrics["failed_requests"].as_f64(), Some(failed));
    }
    if let Some(limit) = expect["e2e_p99_ms_max"].as_f64() {
        assert!(metrics["e2e_latency_ms"]["max"].as_f64().unwrap() <= limit, "the warm-up leaked into the measurement");
    }
    if let Some(least) = expect["cold_start_s_min"].as_f64() {
        assert!(metrics["cold_start_ms"].as_f64().unwrap() >= least * 1000.0, "{metrics:#}");
    }
}

/// A healthy case of the collection, for promises that no case states.
fn healthy() -> tempfile::TempDir {
    scratch(&project("fixtures/cases/backend/server-reads-stdin/input"))
}

#[test]
fn an_earlier_result_and_a_failure_record_go_to_history() {
    let work = healthy();
    let results = work.path().join("benchmarks/results");
    fs::create_dir_all(&results).unwrap();
    fs::write(results.join("66_vllm_real.json"), "earlier").unwrap();
    fs::write(results.join("66_vllm_real.failure.json"), "failed earlier").unwrap();
    support::verify(work.path()).args(["smoke", "--config", "smoke.json"]).assert().success();
    let kept: Vec<String> =
        files_below(&results.join("history")).iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(kept.contains(&"earlier".to_owned()) && kept.contains(&"failed earlier".to_owned()), "{kept:?}");
    assert!(!results.join("66_vllm_real.failure.json").exists());
    assert!(fs::read_to_string(results.join("66_vllm_real.json")).unwrap().contains("inference-benchmark/v1"));
}

#[test]
fn a_failed_run_leaves_the_earlier_result_and_says_why() {
    let work = scratch(&project("fixtures/cases/backend/exit1-cuda-oom/input"));
    let results = work.path().join("benchmarks/results");
    fs::create_dir_all(&results).unwrap();
    fs::write(results.join("66_vllm_real.json"), "earlier").unwrap();
    support::verify(work.path()).args(["smoke", "--config", "smoke.json"]).assert().code(1);
    assert_eq!(fs::read_to_string(results.join("66_vllm_real.json")).unwrap(), "earlier");
    let record: Value = serde_json::from_slice(&fs::read(results.join("66_vllm_real.failure.json")).unwrap()).unwrap();
    assert_eq!(
        (record["status"].as_str(), record["decision"]["decision"].as_str()),
        (Some("failed"), Some("not_evaluated"))
    );
    assert!(record["failure"]["failure_reason"].as_str().unwrap().contains("out of memory"));
}

/// Kills `verify` at different moments of a run; nothing of it lives two seconds later,
/// and there is a whole result or none.
#[rstest]
fn sigkill_at_any_moment_leaves_no_server_and_no_torn_file(#[values(60, 250, 500, 800, 1200)] after_ms: u64) {
    let work = healthy();
    let mut child = Command::new(env!("CARGO_BIN_EXE_verify"))
        .args(["smoke", "--config", "smoke.json"])
        .current_dir(work.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(after_ms));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        wait_until(Duration::from_secs(2), || living(work.path()).is_empty()),
        "orphans: {:?}",
        living(work.path())
    );
    if let Ok(bytes) = fs::read(work.path().join("benchmarks/results/66_vllm_real.json")) {
        serde_json::from_slice::<Value>(&bytes).expect("a whole result or none");
    }
}

/// The example course with the real CPU backend, installed into the cache on first use.
fn real_course() -> tempfile::TempDir {
    scratch(&project("fixtures/course"))
}

#[test]
fn a_real_model_is_started_measured_and_stopped() {
    let course = real_course();
    let mut command = support::verify(course.path());
    command.args(["smoke", "--backend", "cpu", "--project", "66,70"]);
    let (code, report) = support::report(command);
    assert_eq!(code, 0, "{report:#}");
    for (name, concurrency) in [("66_vllm_real.json", 1), ("70_scheduler.json", 4)] {
        let result: Value =
            serde_json::from_slice(&fs::read(course.path().join("benchmarks/results").join(name)).unwrap()).unwrap();
        let normalized = &result["normalized_result"];
        assert_eq!(normalized["evidence_level"], "real_backend_smoke");
        assert_ne!(normalized["decision"]["decision"], "accept");
        assert_eq!(normalized["config"]["concurrency"], concurrency);
        assert_eq!(normalized["config"]["dtype"], "q4_1");
        let metrics = &normalized["metrics"];
        let figure =
            |path: &str| metrics.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {metrics:#}"));
        assert!(0.0 < figure("/ttft_ms/min") && figure("/ttft_ms/p50") < figure("/e2e_latency_ms/max"));
        assert!(
            figure("/throughput_tokens_per_s") > 0.0
                && figure("/peak_memory_mb") > 50.0
                && figure("/cold_start_ms") > 0.0
        );
        assert_eq!(metrics["ttft_ms"]["p99"], Value::Null, "a handful of requests carries no P99");
        // The server counted at least what we were answered; its warm-up is in no window.
        let counted = result["counters"]["difference"]["generated_tokens"].as_f64().unwrap();
        let answered = result["metrics"]["output_tokens"].as_f64().unwrap();
        assert!(
            (counted - answered).abs() <= normalized["metrics"]["samples"].as_f64().unwrap(),
            "{counted} {answered}"
        );
        assert_eq!(result["server"]["stop"]["kind"], "clean");
    }
}

#[test]
fn a_real_server_does_not_outlive_a_killed_verify() {
    let course = real_course();
    let mut child = Command::new(env!("CARGO_BIN_EXE_verify"))
        .args(["smoke", "--backend", "cpu", "--project", "70"])
        .current_dir(course.path())
        .env_remove("VERIFY_BACKEND")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The install may come first; the log appears when the server starts.
    let logs = course.path().join("benchmarks/results/logs");
    assert!(wait_until(Duration::from_secs(240), || files_below(&logs)
        .iter()
        .any(|log| fs::metadata(log).is_ok_and(|data| data.len() > 0))));
    let marker = files_below(&logs)[0].clone();
    let ours = verify::process::proc_tree::descendants(child.id());
    assert!(ours.len() >= 3, "verify, guardian, server: {ours:?} ({})", marker.display());
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = wait_until(Duration::from_secs(2), || ours.iter().all(|id| !lives(i32::try_from(*id).unwrap())));
    assert!(
        gone,
        "still alive: {:?}",
        ours.iter().filter(|id| lives(i32::try_from(**id).unwrap())).collect::<Vec<_>>()
    );
    assert!(!course.path().join("benchmarks/results/70_scheduler.json").exists());
}

#[test]
fn offline_without_the_backend_names_the_command_that_installs_it() {
    let course = real_course();
    let cache = tempfile::tempdir().unwrap();
    let mut command = support::verify(course.path());
    command.env("VERIFY_CACHE_DIR", cache.path());
    command.args(["smoke", "--backend", "cpu", "--offline", "--project", "66"]);
    let (code, report) = support::report(command);
    assert_eq!(code, 1);
    assert!(report.to_string().contains("verify backend install cpu"), "{report:#}");
    assert!(!course.path().join("benchmarks/results/66_vllm_real.json").exists());
}

#[test]
fn a_server_that_runs_already_is_measured_and_left_alone() {
    let course = real_course();
    let input = project("fixtures/cases/backend/first-request-slow/input");
    for name in ["fake.py", "server.py"] {
        fs::copy(input.join(name), course.path().join(name)).unwrap();
    }
    let port = verify::backend::launch::free_port().unwrap();
    let child = Command::new("python3")
        .args(["server.py", "--port", &port.to_string()])
        .current_dir(course.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut server = Setup(child);
    let mut command = support::verify(course.path());
    command.args(["smoke", "--project", "66", "--base-url", &format!("http://127.0.0.1:{port}/v1")]);
    let (code, report) = support::report(command);
    assert_eq!(code, 0, "{report:#}");
    assert!(server.0.try_wait().unwrap().is_none(), "the server was stopped");
    let path = course.path().join("benchmarks/results/66_vllm_real.json");
    let result: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(result["environment"]["external"], true);
    let metrics = &result["normalized_result"]["metrics"];
    assert_eq!((&metrics["peak_memory_mb"], &metrics["cold_start_ms"]), (&Value::Null, &Value::Null));
}

/// What each project has to prove, shown by the server's own counters.
#[test]
fn cache_and_speculation_are_proven_by_counters_on_both_sides() {
    let course = real_course();
    let mut command = support::verify(course.path());
    command.args(["smoke", "--backend", "cpu", "--project", "68,69"]);
    let (code, report) = support::report(command);
    assert_eq!(code, 0, "{report:#}");
    let result = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(course.path().join("benchmarks/results").join(name)).unwrap()).unwrap()
    };
    let counted = |result: &Value, name: &str| result["counters"]["difference"][name].as_f64().unwrap();
    let (off, on) = (result("69_prefix_cache.baseline.json"), result("69_prefix_cache.json"));
    assert_eq!(counted(&off, "cached_tokens"), 0.0);
    assert!(counted(&on, "cached_tokens") > 0.0);
    let metrics = &on["normalized_result"]["strategy_metrics"];
    let rate = metrics["cache_hit_rate"].as_f64().unwrap();
    assert!(rate > 0.0 && rate <= 1.0 && metrics["hit_rate_source"] == "server_counters");
    assert!(metrics["invalidation_cost_ms"].as_f64().unwrap() > 0.0, "{metrics:#}");
    let (plain, drafted) = (result("68_backend_smoke.baseline.json"), result("68_backend_smoke.json"));
    assert_eq!(counted(&plain, "drafted_tokens"), 0.0);
    assert!(counted(&drafted, "drafted_tokens") > 0.0);
    assert_eq!(plain["normalized_result"]["role"], "baseline");
    let answers = |result: &Value| result["answers"].clone();
    assert_eq!(answers(&plain), answers(&drafted), "speculation must not change a greedy answer");
}

/// Numbers and places that a run specification must not have.
#[rstest]
#[case("\"concurrency\": 0")]
#[case("\"result\": \"../x.json\"")]
#[case("\"result\": \"docs\"")]
#[case("\"max_tokens\": -1")]
fn an_impossible_run_specification_is_a_usage_fault(#[case] member: &str) {
    let work = healthy();
    let spec = fs::read_to_string(work.path().join("smoke.json")).unwrap();
    let name = member.split('"').nth(1).unwrap();
    let kept: Vec<&str> = spec.lines().filter(|line| !line.contains(&format!("\"{name}\""))).collect();
    let spec = kept.join("\n").trim_end_matches('}').trim_end().trim_end_matches(',').to_owned();
    fs::write(work.path().join("smoke.json"), format!("{spec},\n {member}\n}}")).unwrap();
    support::verify(work.path()).args(["smoke", "--config", "smoke.json"]).assert().code(2);
}

/// Waiting for somebody else's server ends with an interrupt as every other wait does.
#[test]
fn waiting_for_an_external_server_can_be_interrupted() {
    let course = real_course();
    let port = verify::backend::launch::free_port().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_verify"))
        .args(["smoke", "--project", "66", "--base-url", &format!("http://127.0.0.1:{port}")])
        .current_dir(course.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let began = Instant::now();
    signal::kill(pid(child.id()), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(began.elapsed() < Duration::from_secs(5));
}

/// A fake server of the cases with behaviour of its own, and a specification for it.
fn served_by(server: &str, change: impl Fn(&mut Value)) -> tempfile::TempDir {
    let work = healthy();
    fs::write(work.path().join("server.py"), server).unwrap();
    let path = work.path().join("smoke.json");
    let mut spec: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut spec);
    fs::write(path, spec.to_string()).unwrap();
    work
}

fn smoke(work: &Path) -> (i32, Value) {
    let mut command = support::verify(work);
    command.args(["smoke", "--config", "smoke.json"]);
    support::report(command)
}

fn first_error(report: &Value) -> &Value {
    support::findings(report, Some("error")).next().unwrap_or_else(|| panic!("no error: {report:#}"))
}

fn result_of(work: &Path) -> Value {
    serde_json::from_slice(&fs::read(work.join("benchmarks/results/66_vllm_real.json")).unwrap()).unwrap()
}

/// A page of counters as vLLM writes it: the cache is on, its blocks are larger than any
/// prompt here (three tokens), and nothing hits.
const COUNTED: &str = r#"
from fake import serve
PAGE = '''# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 0
vllm:prompt_tokens_total{engine="0"} %d
vllm:generation_tokens_total{engine="0"} %d
vllm:request_success_total{engine="0",finished_reason="stop"} %d
vllm:request_success_total{engine="0",finished_reason="abort"} 0
vllm:cache_config_info{block_size="128",enable_prefix_caching="True"} 1.0
'''
serve(metrics=lambda n: PAGE % (3 * n, 4 * n, n * FACTOR))
"#;

#[test]
fn a_prompt_that_is_shorter_than_a_block_of_the_cache_is_told_why_it_never_hits() {
    let work =
        served_by(&COUNTED.replace("FACTOR", "1"), |spec| spec["claims"] = serde_json::json!({"prefix_cache": "on"}));
    let (code, report) = smoke(work.path());
    let error = first_error(&report);
    assert_eq!((code, error["rule"].as_str()), (1, Some("smoke/claim-not-shown")), "{report:#}");
    let help = error["help"].as_str().unwrap();
    assert!(help.contains("3 tokens") && help.contains("128"), "{help}");
    assert!(!work.path().join("benchmarks/results/66_vllm_real.json").exists());
}

#[test]
fn a_cache_that_is_stated_on_is_not_off_although_nothing_hit() {
    let work =
        served_by(&COUNTED.replace("FACTOR", "1"), |spec| spec["claims"] = serde_json::json!({"prefix_cache": "off"}));
    let (code, report) = smoke(work.path());
    let error = first_error(&report);
    assert_eq!((code, error["rule"].as_str()), (1, Some("smoke/claim-not-shown")), "{report:#}");
    assert!(error["message"].as_str().unwrap().contains("enable_prefix_caching=\"True\""), "{error:#}");
}

#[test]
fn a_server_that_completed_more_than_it_answered_us_is_noticed() {
    let rules = |factor: &str| {
        let work = served_by(&COUNTED.replace("FACTOR", factor), |_| {});
        let (code, report) = smoke(work.path());
        assert_eq!(code, 0, "{report:#}");
        support::findings(&report, Some("warning")).map(|found| found["rule"].to_string()).collect::<Vec<_>>()
    };
    assert!(!rules("1").contains(&"\"smoke/counters-disagree\"".to_owned()));
    assert!(rules("2").contains(&"\"smoke/counters-disagree\"".to_owned()));
}

/// What a result keeps besides its figures.
#[test]
fn a_result_keeps_the_start_the_tree_the_samples_the_counters_and_the_stop() {
    let work = served_by(
        &COUNTED.replace("FACTOR", "1").replace(
            "from fake import serve",
            "from fake import serve\nimport subprocess\nsubprocess.Popen(['sleep', '60'])",
        ),
        |spec| spec["warmup"] = 1.into(),
    );
    let (code, report) = smoke(work.path());
    assert_eq!(code, 0, "{report:#}");
    let result = result_of(work.path());
    let cold = &result["server"]["cold_start"];
    let at = |name: &str| cold[name].as_f64().unwrap_or_else(|| panic!("{name}: {cold:#}"));
    assert!(at("port_open_ms") <= at("healthy_ms") && at("healthy_ms") < at("first_answer_ms"));
    assert!(at("first_answer_ms") < at("second_answer_ms") && at("second_request_ttft_ms") > 0.0);
    let tree: Vec<(&str, bool)> = result["process_tree"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| (process["role"].as_str().unwrap(), process["rss"].as_u64().unwrap() > 0))
        .collect();
    assert!(tree.contains(&("server", true)) && tree.contains(&("helper", true)), "{tree:?}");
    let sample = &result["memory"]["samples"][0];
    for name in ["at_ms", "rss", "pss", "anonymous", "nvml_process", "processes"] {
        assert!(sample.get(name).is_some(), "{name}: {sample:#}");
    }
    let counters = &result["counters"];
    assert_eq!(counters["difference"]["generated_tokens"], result["metrics"]["output_tokens"].as_f64().unwrap());
    assert!(counters["raw"]["after"]["vllm:prefix_cache_hits_total{engine=\"0\",model_name=\"tiny\"}"].is_number());
    assert_eq!(counters["settings"]["block_size"], "128");
    assert_eq!(result["server"]["stop"]["port_free"], true);
    assert!(result["server"]["stop"].get("gpu_memory_left").is_some());
}

/// An engine that dies behind a living server: the stream says it, the log says why.
#[test]
fn the_cause_in_the_log_stands_beside_a_request_that_failed() {
    let server = "import sys\nfrom fake import serve\n\ndef tail(n):\n    if n < 2:\n        return None\n    \
                  print('(EngineCore pid=7) torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB', file=sys.stderr, flush=True)\n    \
                  return 'EngineCore encountered an issue.'\n\nserve(tail=tail)\n";
    let work = served_by(server, |_| {});
    let (code, report) = smoke(work.path());
    let error = first_error(&report);
    assert_eq!((code, error["rule"].as_str()), (1, Some("smoke/request-failed")), "{report:#}");
    let help = error["help"].as_str().unwrap();
    assert!(help.contains("Tried 2 GiB") && help.contains("memory share"), "{help}");
}

/// The server is killed while it answers: however the failed requests and the news of
/// its end race, the end is what is reported.
#[rstest]
fn a_server_that_is_killed_in_a_stream_is_reported_as_ended(#[values(1, 2, 3, 4)] _round: u32) {
    let server = "import os, signal\nfrom fake import serve\n\ndef mid(n, i):\n    if n == 2 and i == 2:\n        \
                  os.kill(os.getpid(), signal.SIGKILL)\n\nserve(mid=mid)\n";
    let work = served_by(server, |_| {});
    let (code, report) = smoke(work.path());
    assert_eq!((code, first_error(&report)["rule"].as_str()), (1, Some("smoke/server-exited")), "{report:#}");
}

#[test]
fn a_long_wait_says_every_ten_seconds_what_it_waits_for_and_what_was_logged_last() {
    let server = "import time\nprint('loading shard 3 of 9', flush=True)\ntime.sleep(600)\n";
    let work = served_by(server, |spec| spec["backend"]["ready_timeout_s"] = 11.into());
    let output = Command::new(env!("CARGO_BIN_EXE_verify"))
        .args(["smoke", "--config", "smoke.json"])
        .current_dir(work.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find(|line| line.contains("waiting for")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("10 s") && line.contains("refuses") && line.contains("loading shard 3 of 9"), "{line}");
    assert_eq!(output.status.code(), Some(1));
}
