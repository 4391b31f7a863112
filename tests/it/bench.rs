//! `verify bench` against a server with known send times: each case of
//! `fixtures/cases/bench` names the server's faults, the client's options and the bounds
//! within which the figures must lie.

use crate::support::{self, project, report, verify};
use rstest::rstest;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The truth server, built once per test run and kept in the build folder.
pub fn truth_server() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = project("benchmarks/truth_server");
        let target = project("target").join("truth_server");
        let built = Command::new(env!("CARGO"))
            .args(["build", "--release", "--quiet", "--locked", "--manifest-path"])
            .arg(source.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&target)
            .status()
            .expect("cargo runs");
        assert!(built.success(), "the truth server does not build");
        target.join("release/truth_server")
    })
}

/// A running truth server.
struct Server {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Server {
    fn start(args: &[String]) -> Self {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let port_file = folder.path().join("port");
        let child = Command::new(truth_server())
            .args(args)
            .args(["--port", "0", "--life-s", "120", "--port-file"])
            .arg(&port_file)
            .stdout(Stdio::null())
            .spawn()
            .expect("the truth server starts");
        let began = Instant::now();
        let port = loop {
            if let Some(port) = fs::read_to_string(&port_file).ok().and_then(|text| text.trim().parse().ok()) {
                break port;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "the truth server does not listen");
            std::thread::sleep(Duration::from_millis(5));
        };
        Server { child, folder, port }
    }

    fn bench(&self, args: &[String]) -> assert_cmd::Command {
        let mut command = verify(self.folder.path());
        command.args(["bench", "--model", "truth-model", "--base-url"]);
        command.arg(format!("http://127.0.0.1:{}", self.port)).args(args);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn list(value: &Value) -> Vec<String> {
    value.as_array().expect("a list").iter().map(|arg| arg.as_str().expect("a text").to_owned()).collect()
}

/// What differs from the expectation of a case.
fn faults(expect: &Value, code: i32, bench: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for (key, wanted) in expect.as_object().expect("expect") {
        let got = &bench[key];
        let met = match (key.as_str(), wanted) {
            ("exit", wanted) => wanted.as_i64() == Some(i64::from(code)),
            ("notes", wanted) => {
                let notes = bench["notes"].to_string();
                list(wanted).iter().all(|note| notes.contains(note.as_str()))
            }
            ("absent" | "null", wanted) => list(wanted).iter().all(|name| {
                bench[name].is_null() && bench["absent"][name].as_str().is_some_and(|reason| !reason.is_empty())
            }),
            (_, Value::Array(bounds)) => {
                let inside = |got: f64| bounds[0].as_f64() <= Some(got) && Some(got) <= bounds[1].as_f64();
                got.as_f64().is_some_and(inside)
            }
            (_, wanted) => got == wanted,
        };
        if !met {
            let shown = if key == "notes" || key == "absent" { &bench[key] } else { got };
            faults.push(format!("{key}: wanted {wanted}, got {shown}"));
        }
    }
    let failed = bench["failed"].as_u64() != Some(0);
    if expect.get("exit").is_none() && code != i32::from(failed) {
        faults.push(format!("exit code {code} with {} failed requests", bench["failed"]));
    }
    faults
}

/// Runs a case; bounds are those of a machine with room, so a case that misses one while
/// other tests run is given another chance. What is counted must be right each time.
fn run_case(case: &Value) {
    let mut missed = Vec::new();
    for _ in 0..3 {
        let server = Server::start(&list(&case["args"]["truth_server"]));
        let (code, report) = report(server.bench(&list(&case["args"]["client"])));
        let bench = &report["bench"];
        let mut expect = case["expect"].clone();
        if let Some(absent) = case.get("absent") {
            expect["absent"] = absent.clone();
        }
        missed = faults(&expect, code, bench);
        if missed.iter().all(|fault| fault.contains("_ms:") || fault.contains("_s:") || fault.contains("fairness")) {
            if missed.is_empty() {
                return;
            }
            continue;
        }
        break;
    }
    panic!("{}: {missed:#?}", case["what"]);
}

#[rstest]
fn case(#[files("fixtures/cases/bench/*/case.json")] path: PathBuf) {
    run_case(&support::case(path.parent().expect("a folder")));
}

/// Shapes that the handed cases leave out. The server: 100 ms to the first token, 10 ms
/// between tokens, 32 tokens; the client: 8 requests, 4 at a time.
#[rstest]
#[case::reasoning_first("--reasoning 16", "", json!({"successful": 8, "ttft_ms": [99, 140], "ttft_visible_ms": [255, 300], "output_tokens": 256}))]
#[case::empty_deltas_before_the_token("--empty-deltas 3 --role none", "", json!({"successful": 8, "ttft_ms": [99, 140], "notes": ["ignored for TTFT"]}))]
#[case::empty_deltas_between_tokens("--empty-every 4", "", json!({"successful": 8, "stream_chunks": 256, "tpot_ms": [9.5, 12]}))]
#[case::many_tokens_in_the_first_chunk("--first-chunk-tokens 8 --usage every", "", json!({"successful": 8, "output_tokens": 256, "tpot_ms": [9.5, 12]}))]
#[case::first_chunk_unknown("--first-chunk-tokens 8", "", json!({"successful": 8, "output_tokens": 256, "itl_ms": null, "notes": ["taken as 1 token"]}))]
#[case::no_usage("--usage off", "", json!({"successful": 8, "output_tokens": 256, "tokens_source": "chunks", "notes": ["token count is a lower bound (chunks)"]}))]
#[case::usage_below_the_chunks("--usage-tokens 5", "", json!({"successful": 8, "tpot_ms": null, "notes": ["usage_inconsistent: 5 < 32 chunks"]}))]
#[case::usage_on_every_chunk("--usage every", "", json!({"successful": 8, "output_tokens": 256, "stream_chunks": 256, "itl_ms": [9.5, 12]}))]
#[case::late_finish("--tail-ms 500", "", json!({"successful": 8, "e2e_ms": [405, 470], "tpot_ms": [9.5, 12], "stream_end_ms": [900, 1000]}))]
#[case::no_done_line("--done off", "", json!({"successful": 8, "notes": ["no_done"]}))]
#[case::no_done_and_no_finish("--done off --finish none", "", json!({"successful": 0, "failed": 8, "errors": {"truncated": 8}, "exit": 1, "ttft_ms": null}))]
#[case::finish_with_the_last_token("--finish with-last --role merged", "", json!({"successful": 8, "output_tokens": 256, "tpot_ms": [9.5, 12]}))]
#[case::cr_and_lf_over_segments("--eol crlf --split 40 --split-mode http", "", json!({"successful": 8, "output_tokens": 256}))]
#[case::line_separators_in_the_text("--content u2028", "", json!({"successful": 8, "output_tokens": 256}))]
#[case::texts_that_look_like_events("--content sse", "", json!({"successful": 8, "output_tokens": 256}))]
#[case::close_delimited("--framing close", "", json!({"successful": 8, "output_tokens": 256}))]
#[case::close_delimited_and_cut("--framing close --fault disconnect:10:clean@every=2", "", json!({"successful": 4, "errors": {"truncated": 4}}))]
#[case::cut_with_a_clean_end("--fault disconnect:10:clean@every=2", "", json!({"successful": 4, "errors": {"truncated": 4}}))]
#[case::error_event("--fault error:10:event@every=2", "", json!({"successful": 4, "errors": {"stream_error": 4}, "output_tokens": 128}))]
#[case::error_line("--fault error:10:line@every=2", "", json!({"successful": 4, "errors": {"stream_error": 4}}))]
#[case::error_before_any_token("--fault error:0@every=2", "", json!({"successful": 4, "errors": {"stream_error": 4}}))]
#[case::json_instead_of_a_stream("--fault plain@every=2", "", json!({"successful": 4, "errors": {"not_streamed": 4}, "ttft_ms": [99, 140]}))]
#[case::broken_json("--fault garbage:10:json@every=2", "", json!({"successful": 4, "errors": {"bad_event": 4}}))]
#[case::a_very_long_line("--fault garbage:10:long@every=2", "", json!({"successful": 4, "errors": {"bad_event": 4}}))]
#[case::bytes_between_events("--fault garbage:10:bytes@every=2", "", json!({"successful": 8, "output_tokens": 256, "notes": ["unknown_field"]}))]
#[case::html_between_events("--fault garbage:10:html@every=2", "", json!({"successful": 8, "notes": ["unknown_field"]}))]
#[case::damaged_text("--fault garbage:10:utf8@every=2", "", json!({"successful": 8, "output_tokens": 256, "tpot_ms": [9.5, 12], "notes": ["utf8_replaced"]}))]
#[case::stall_for_ever("--fault stall:10:0@every=4", "--timeout 1", json!({"successful": 6, "errors": {"timeout": 2}, "notes": ["2 censored samples at 1000 ms"]}))]
#[case::headers_stall("--fault hdrstall:50", "", json!({"successful": 8, "ttft_ms": [99, 140]}))]
#[case::early_end_of_the_answer("--fault short:5@every=2", "", json!({"successful": 8, "output_tokens": 148, "notes": ["5 to 32 tokens long"]}))]
#[case::bad_gateway("--fault status:502::html@every=2", "", json!({"successful": 4, "errors": {"http_502": 4}, "exit": 1}))]
#[case::busy_without_retries("--fault status:503:1@first=2", "", json!({"successful": 6, "errors": {"http_503": 2}, "retries": 0}))]
#[case::busy_with_retries("--fault status:503@first=1", "--retries 2", json!({"successful": 8, "failed": 0, "retries": 1}))]
#[case::busy_for_good("--fault status:429:0", "--retries 1", json!({"successful": 0, "errors": {"http_429": 8}, "retries": 8}))]
#[case::some_failures_tolerated("--fault status:500@nth=3", "--tolerate-failures 0.2", json!({"successful": 7, "failed": 1, "exit": 0}))]
#[case::silent_close("--silent-close", "", json!({"successful": 8, "failed": 0}))]
#[case::idle_close("--idle-close-ms 1 --tail-ms 5", "", json!({"successful": 8, "failed": 0}))]
#[case::key_wanted("--api-key secret", "", json!({"successful": 0, "exit": 1, "notes": ["401", "key"]}))]
#[case::no_metrics("--metrics off", "", json!({"successful": 8, "prefix_cache_hit_rate": null, "notes": ["prefix cache: no evidence"]}))]
#[case::speculation("--spec 3:0.7", "", json!({"successful": 8, "output_tokens": 256, "spec_acceptance_rate": [0.2, 1.0]}))]
#[case::completions("", "--endpoint completions", json!({"successful": 8, "output_tokens": 256, "ttft_ms": [99, 140]}))]
#[case::logprobs("", "--quality-probes logprobs", json!({"successful": 8, "output_tokens": 256, "mean_logprob": [-0.1251, -0.1249]}))]
#[case::warm_up_counts_nothing("--fault status:500@first=2", "--warmup 2", json!({"successful": 8, "failed": 0, "exit": 0}))]
#[case::counts_are_asked_for_in_the_warm_up("--tokens-per-chunk 4 --usage every", "--warmup 2", json!({"successful": 8, "itl_ms": [9.5, 12]}))]
#[case::open_loop_constant("", "--request-rate 20 --arrival constant --max-tokens 4", json!({"successful": 8, "ttft_ms": [99, 140], "client_queue_ms": [0, 20], "duration_s": [0.45, 0.8]}))]
#[case::open_loop_overload("--max-running 1 --itl-ms 0 --tokens 1", "--request-rate 40 --arrival constant", json!({"successful": 8, "ttft_ms": [330, 420], "latency_from_schedule_ms": [330, 420], "queue_waiting_peak": [3, 7]}))]
#[case::open_loop_poisson("", "--request-rate 50 --seed 3 --max-tokens 2", json!({"successful": 8, "failed": 0}))]
#[case::conversation("", "--turns 4 --max-tokens 2", json!({"successful": 8, "failed": 0}))]
#[case::shared_prefix("", "--shared-prefix 120 --max-tokens 2 --concurrency 1", json!({"successful": 8, "prefix_cache_hit_rate": [0.5, 0.9]}))]
#[case::own_prompts_hit_no_cache("", "--max-tokens 2", json!({"successful": 8, "prefix_cache_hit_rate": 0.0}))]
#[case::goodput_met("", "--goodput ttft:500,tpot:50,e2e:5000", json!({"goodput_share": 1.0}))]
#[case::goodput_missed("", "--goodput ttft:50", json!({"goodput_share": 0.0}))]
#[case::tenants("", "--tenants a=1:max_tokens=2,b=1:max_tokens=4:words=50", json!({"successful": 8, "fairness_jain_tenants": [0.9, 1.0]}))]
fn shape(#[case] server: &str, #[case] client: &str, #[case] expect: Value) {
    let mut server_args = words("--ttft-ms 100 --itl-ms 10 --tokens 32 --seed 1");
    // The last of two equal options holds.
    server_args.extend(words(server));
    let mut client_args = words("--num-prompts 8 --max-tokens 32 --warmup 0 --timeout 8");
    if !client.contains("--request-rate") && !client.contains("--concurrency") {
        client_args.extend(words("--concurrency 4"));
    }
    for option in ["--max-tokens", "--warmup", "--timeout"] {
        if client.split_whitespace().any(|word| word == option) {
            let at = client_args.iter().position(|word| word == option).expect("a default");
            client_args.drain(at..at + 2);
        }
    }
    client_args.extend(words(client));
    run_case(&json!({"what": server, "args": {"truth_server": server_args, "client": client_args}, "expect": expect}));
}

/// A small run for tests of what stands around it.
fn quick_server() -> Server {
    Server::start(&words("--ttft-ms 20 --itl-ms 2 --tokens 8 --seed 1"))
}

#[test]
fn the_report_states_what_was_sent_and_how_well_the_client_measures() {
    let server = quick_server();
    let (code, report) = report(server.bench(&words("-n 12 -c 4 --max-tokens 8 --warmup 2 --seed 7")));
    let bench = &report["bench"];
    assert_eq!((code, &report["status"], &report["stages"]), (0, &json!("pass"), &json!([])));
    assert_eq!(bench["load"]["shape"], "closed");
    assert_eq!((&bench["load"]["concurrency"], &bench["load"]["seed"]), (&json!(4), &json!(7)));
    assert!(bench["client_error"]["ttft"]["true_mean_ms"].as_f64().expect("measured") >= 40.0);
    assert!(bench["starvation"]["run_queue_wait_ms"].is_number());
    assert_eq!(bench["distributions"]["ttft"]["n"], 12);
    assert!(bench["distributions"]["ttft"]["intervals"]["p50"].is_array());
    for (name, value) in bench.as_object().expect("an object").iter().filter(|(_, value)| value.is_null()) {
        assert!(bench["absent"][name].is_string(), "{name} is {value} without a reason");
    }
}

#[test]
fn a_ramp_ends_at_its_knee() {
    let server = Server::start(&words("--ttft-ms 20 --itl-ms 2 --tokens 8 --seed 1 --max-running 2"));
    let (code, report) =
        report(server.bench(&words("-n 16 --ramp concurrency --max-tokens 8 --warmup 0 --no-self-check")));
    let bench = &report["bench"];
    assert_eq!(code, 0, "{}", bench["notes"]);
    let levels: Vec<f64> =
        bench["ramp"].as_array().expect("steps").iter().filter_map(|step| step["level"].as_f64()).collect();
    assert!(levels.len() >= 2 && levels.starts_with(&[1.0, 2.0]), "{levels:?}");
    assert!(bench["knee"].as_f64().is_some_and(|knee| (1.0..=4.0).contains(&knee)), "{}", bench["knee"]);
}

#[test]
fn a_trace_is_replayed_and_every_request_kept() {
    let server = quick_server();
    let trace = server.folder.path().join("trace.jsonl");
    let lines: String = (0..6)
        .map(|index| format!("{{\"t\":{},\"prompt\":\"p{index}\",\"max_tokens\":2}}\n", f64::from(index) * 0.05))
        .collect();
    fs::write(&trace, lines).expect("the trace is written");
    let (code, report) =
        report(server.bench(&words("--trace trace.jsonl --warmup 0 --save-requests requests.jsonl --no-self-check")));
    let bench = &report["bench"];
    assert_eq!((code, &bench["successful"], &bench["load"]["arrival"]), (0, &json!(6), &json!("trace")));
    assert_eq!(bench["output_tokens"], 12);
    assert!(bench["duration_s"].as_f64().expect("known") >= 0.25);
    let kept = fs::read_to_string(server.folder.path().join("requests.jsonl")).expect("the requests are kept");
    let kept: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(kept.len(), 6);
    assert!(kept.iter().all(|one| one["chunks_ms"].as_array().is_some_and(|chunks| chunks.len() == 2)));
}

#[test]
fn a_workload_that_is_none_is_a_usage_fault() {
    let server = quick_server();
    fs::write(server.folder.path().join("bad.jsonl"), "{\"t\":\"soon\"}\n").expect("written");
    for args in ["--trace bad.jsonl", "--workload bad.jsonl", "--workload none.jsonl", "--api-key-env NO_SUCH_VARIABLE"]
    {
        let (code, report) = report(server.bench(&words(args)));
        assert_eq!(code, 2, "{args}: {report}");
        assert!(report["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{args}");
    }
    for args in ["-n 0", "-c 0", "--request-rate 0", "-c 4 --request-rate 2", "--tenants x", "--goodput itl:5"] {
        assert_eq!(server.bench(&words(args)).output().expect("it runs").status.code(), Some(2), "{args}");
    }
}

#[test]
fn a_server_that_never_comes_is_no_measurement() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let mut command = verify(folder.path());
    command.args(words("bench --base-url http://127.0.0.1:9 --model m --ready-timeout 0.3"));
    let (code, report) = report(command);
    assert_eq!((code, &report["bench"]["successful"]), (1, &json!(0)));
    assert!(report["bench"]["notes"][0].as_str().expect("a note").contains("not ready"), "{report}");
}

#[test]
fn a_server_that_starts_late_is_waited_for() {
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr()).expect("a port").port();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let late = words("--ttft-ms 20 --itl-ms 2 --tokens 8 --listen-after-s 1 --life-s 60");
    let child = Command::new(truth_server())
        .args(late)
        .args(["--port", &port.to_string()])
        .stdout(Stdio::null())
        .spawn()
        .expect("the truth server starts");
    let server = Server { child, folder, port };
    let (code, report) = report(server.bench(&words("-n 2 --max-tokens 8 --warmup 0 --no-self-check")));
    let waited = report["bench"]["ready_wait_s"].as_f64().expect("known");
    assert!(code == 0 && (0.3..10.0).contains(&waited), "{code} {waited}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_what_was_measured() {
    let server = Server::start(&words("--ttft-ms 50 --itl-ms 5 --tokens 8"));
    let mut command = Command::new(server.bench(&[]).get_program());
    let child = command
        .args(words("bench --model truth-model -n 1000 -c 2 --max-tokens 8 --warmup 0 --no-self-check --format json"))
        .args(["--base-url", &format!("http://127.0.0.1:{}", server.port)])
        .current_dir(server.folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    std::thread::sleep(Duration::from_millis(900));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("the signal is sent");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert!(report["bench"]["successful"].as_u64().is_some_and(|count| count > 0), "{report}");
    assert!(report["bench"]["notes"].to_string().contains("interrupted"));
}

#[test]
fn people_get_a_table_in_their_language() {
    let server = quick_server();
    let text = |lang: &str| {
        let mut command = server.bench(&words("-n 8 -c 2 --max-tokens 8 --warmup 2 --no-self-check"));
        let output = command.args(["--lang", lang, "--no-progress"]).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // Figures differ from run to run; so does the width of their columns.
        let text =
            regex::Regex::new(r"\d+\.\d+|127\.0\.0\.1:\d+").expect("a pattern").replace_all(&text, "#").into_owned();
        regex::Regex::new(" {2,}").expect("a pattern").replace_all(&text, "  ").into_owned()
    };
    for (lang, wanted) in [("en", ["closed loop c=2", "TTFT", "passed"]), ("zh", ["闭环 c=2", "TTFT", "通过"])] {
        let shown = text(lang);
        assert!(wanted.iter().all(|part| shown.contains(part)), "{shown}");
        assert!(shown.contains("not claimable with n=8") || lang == "zh", "{shown}");
    }
}

#[test]
fn calibrate_measures_the_client_itself() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let mut command = verify(folder.path());
    command.args(words("calibrate -c 1,4"));
    let (_, report) = report(command);
    let errors = report["calibration"].as_array().expect("errors");
    assert_eq!(errors.iter().map(|error| &error["concurrency"]).collect::<Vec<_>>(), [&json!(1), &json!(4)]);
    assert!(errors.iter().all(|error| error["ttft"]["true_mean_ms"].as_f64().is_some_and(|mean| mean >= 100.0)));
}

/// A pass of ten requests with round figures, one of them failed.
fn round_traces() -> Vec<verify::client::RequestTrace> {
    use verify::client::{Chunk, FaultKind, RequestFault, RequestTrace, Usage};
    let ms = Duration::from_millis;
    let trace = |index: u64| RequestTrace {
        id: format!("m{index}"),
        max_tokens: 4,
        scheduled: ms(index * 10),
        sent: ms(index * 10),
        first_event: Some(ms(index * 10 + 100)),
        chunks: (0..4)
            .map(|token| Chunk {
                at: ms(index * 10 + 100 + 20 * token),
                visible: true,
                tokens_so_far: None,
                damaged: false,
            })
            .collect(),
        end: ms(index * 10 + 165),
        done: true,
        usage: Some(Usage { prompt_tokens: Some(9), completion_tokens: Some(4), cached_tokens: None }),
        model: Some("small".to_owned()),
        ..RequestTrace::default()
    };
    let failed = RequestFault { kind: FaultKind::Http, status: Some(503), message: "loading".to_owned() };
    (0..10).map(|index| RequestTrace { fault: (index == 9).then(|| failed.clone()), ..trace(index) }).collect()
}

#[rstest]
#[case("en", verify::model::Lang::En)]
#[case("zh", verify::model::Lang::Zh)]
fn what_people_see(#[case] name: &str, #[case] lang: verify::model::Lang) {
    use verify::bench::report::{BenchReport, LoadStated, Readings};
    let load = LoadStated {
        shape: "closed".into(),
        concurrency: Some(4),
        request_rate: None,
        arrival: None,
        max_concurrency: None,
        num_prompts: 10,
        warmup: 2,
        max_tokens: 4,
        timeout_s: 8.0,
        retries: 0,
        seed: 0,
        turns: 1,
        shared_prefix_words: 0,
        workload_sha256: None,
        tenants: None,
        continuous_usage: false,
    };
    let readings = Readings { ready_wait_s: Some(0.0), waiting_peak: Some(2.0), ..Readings::default() };
    let traces = round_traces();
    let at = ("http://127.0.0.1:8000", "small", verify::client::Api::Chat);
    let report = BenchReport::of(at, load, "ttft:200".parse().ok(), &traces, &readings);
    let findings = verify::bench::notes::findings(&report, &traces, &readings, 0.0);
    let options = verify::render::HumanOptions { root: Path::new("."), lang, color: false, width: 100, quiet: false };
    let text = verify::render::bench::human(
        &report,
        &findings,
        verify::model::Status::Fail,
        Duration::from_millis(300),
        options,
    );
    insta::assert_snapshot!(format!("bench-{name}"), text);
}

/// Starts one generator of a load of two; both meet at `meet`.
fn generator(server: &Server, part: &str, meet: &str, load: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verify"));
    command.current_dir(server.folder.path());
    for name in support::SCRUBBED {
        command.env_remove(name);
    }
    command
        .args(["bench", "--model", "truth-model", "--base-url", &format!("http://127.0.0.1:{}", server.port)])
        .args(words("--max-tokens 8 --no-self-check --meet"))
        .args([meet, "--partition", &format!("{part}/2"), "--save-requests", &format!("part-{part}.jsonl")])
        .args(words(load))
        .args(["--output", &format!("json=own-{part}.json")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs")
}

/// An address that nobody listens on.
fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

fn merged(server: &Server, args: &[&str]) -> (i32, Value) {
    let mut command = verify(server.folder.path());
    command.arg("merge").args(args);
    report(command)
}

#[test]
fn two_generators_meet_and_their_union_is_the_whole_load() {
    let server = Server::start(&words("--ttft-ms 40 --itl-ms 10 --tokens 8"));
    let meet = free_address();
    let load = "-n 24 -c 4 --warmup 2";
    let first = generator(&server, "1", &meet, load);
    let second = generator(&server, "2", &meet, load);
    for child in [second, first] {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let own: Value =
        serde_json::from_slice(&fs::read(server.folder.path().join("own-2.json")).expect("a report")).expect("JSON");
    assert_eq!((&own["bench"]["load"]["concurrency"], &own["bench"]["successful"]), (&json!(2), &json!(12)));
    let (code, whole) = merged(&server, &["part-2.jsonl", "part-1.jsonl"]);
    let bench = &whole["bench"];
    assert_eq!(code, 0, "{bench:#}");
    assert_eq!((&bench["successful"], &bench["load"]["concurrency"]), (&json!(24), &json!(4)), "{bench:#}");
    assert_eq!(bench["output_tokens"], json!(24 * 8));
    let figure = |value: &Value| value.as_f64().expect("a number");
    assert!((40.0..200.0).contains(&figure(&bench["ttft_p50_ms"])), "{bench:#}");
    // 24 requests of 110 ms, four at a time.
    assert!((0.6..6.0).contains(&figure(&bench["duration_s"])), "{bench:#}");
    let merged_ = &bench["merged"];
    assert!(figure(&merged_["clock_uncertainty_ms"]) < 20.0, "{merged_:#}");
    assert!(figure(&merged_["in_flight_max"]) <= 4.0 && figure(&merged_["in_flight_mean"]) > 1.0, "{merged_:#}");
    assert!(figure(&merged_["generators"][1]["wall_clock_ahead_ms"]).abs() < 20.0, "{merged_:#}");
    let requests = figure(&bench["requests_per_s"]) * figure(&bench["duration_s"]);
    assert!((requests - 24.0).abs() < 1e-6);

    // A wall clock that is an hour off changes no figure and is named.
    let path = server.folder.path().join("part-2.jsonl");
    let text = fs::read_to_string(&path).expect("a part");
    let (head, rest) = text.split_once('\n').expect("a first line");
    let mut header: Value = serde_json::from_str(head).expect("a header");
    header["clock"]["wall_at_zero_s"] = json!(figure(&header["clock"]["wall_at_zero_s"]) + 3600.0);
    fs::write(server.folder.path().join("off.jsonl"), format!("{header}\n{rest}")).expect("written");
    let (code, off) = merged(&server, &["part-1.jsonl", "off.jsonl"]);
    assert_eq!((code, &off["bench"]["duration_s"]), (0, &bench["duration_s"]));
    assert!(off["bench"]["notes"].to_string().contains("wall clock of part 2 is +3600"), "{:#}", off["bench"]["notes"]);

    // Half of a load, the same half twice, and parts of two runs are no whole.
    for (args, said) in [
        (vec!["part-1.jsonl"], "missing: 2/2"),
        (vec!["part-1.jsonl", "part-1.jsonl"], "is there twice"),
        (vec!["part-1.jsonl", "own-2.json"], "no verify-bench-part/v1"),
        (vec!["own-1.json", "own-2.json"], "cannot be joined"),
    ] {
        let (code, refused) = merged(&server, &args);
        let message = refused["error"]["message"].to_string();
        assert!(code == 2 && message.contains(said), "{args:?}: {code} {message}");
    }
}

#[test]
fn a_generator_of_another_load_is_sent_away() {
    let server = Server::start(&words("--ttft-ms 5 --itl-ms 1 --tokens 4"));
    let meet = free_address();
    // Three in flight cannot be halved; the parts are still those of one load.
    let mut first = generator(&server, "1", &meet, "-n 12 -c 3");
    let other = generator(&server, "2", &meet, "-n 12 -c 3 --seed 7").wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&other.stdout).into_owned();
    assert_eq!(other.status.code(), Some(1), "{said}");
    assert!(said.contains("bench/no-meeting") && said.contains("`seed` is 0 at part 1 and 7 at part 2"), "{said}");
    // The right one is still let in.
    let right = generator(&server, "2", &meet, "-n 12 -c 3").wait_with_output().expect("it ends");
    assert!(right.status.success(), "{}", String::from_utf8_lossy(&right.stdout));
    assert!(first.wait().expect("it ends").success());
}

#[test]
fn parts_that_cannot_start_together_are_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for (args, said) in [
        ("-c 2 -n 4 --partition 1/2 --save-requests p", "must start together"),
        ("-c 1 -n 4 --partition 1/2 --save-requests p --meet 127.0.0.1:0", "cannot be split over 2"),
        ("-c 2 -n 4 --partition 1/2 --save-requests p --meet 192.0.2.1:9", "cannot listen on 192.0.2.1:9"),
    ] {
        let mut command = verify(folder.path());
        command.args(words("bench --base-url http://127.0.0.1:9 --model m")).args(words(args));
        let (code, report) = report(command);
        assert!(code == 2 && report["error"]["message"].to_string().contains(said), "{args}: {report:#}");
    }
}

#[test]
fn a_start_by_wall_clock_leaves_rates_to_who_knows_the_clocks() {
    let server = Server::start(&words("--ttft-ms 5 --itl-ms 1 --tokens 4"));
    let start = (jiff::Timestamp::now() + Duration::from_secs(4)).to_string();
    let run = |part: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verify"));
        command
            .current_dir(server.folder.path())
            .args(["bench", "--model", "truth-model", "--base-url", &format!("http://127.0.0.1:{}", server.port)])
            .args(words("-n 8 -c 2 --max-tokens 4 --no-self-check --start-at"))
            .args([&start, "--partition", &format!("{part}/2"), "--save-requests", &format!("part-{part}.jsonl")])
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary runs")
    };
    for mut child in [run("1"), run("2")] {
        assert!(child.wait().expect("it ends").success());
    }
    let (code, whole) = merged(&server, &["part-1.jsonl", "part-2.jsonl"]);
    assert!(code == 1 && whole["bench"]["output_tokens_per_s"].is_null(), "{whole:#}");
    assert!(whole["bench"]["ttft_ms"].is_number());
    let (code, whole) = merged(&server, &["part-1.jsonl", "part-2.jsonl", "--clock-error", "0.5"]);
    assert!(code == 0 && whole["bench"]["output_tokens_per_s"].is_number(), "{whole:#}");
}
