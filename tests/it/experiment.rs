//! Experiments: what is refused before anything runs, what a known difference looks
//! like, what a kill leaves, what the records hold.

#[cfg(target_os = "linux")]
use crate::bench::truth_server;
use crate::support::{findings, project, report, verify};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use verify::bench::experiment::record::ExperimentRecord;

#[test]
fn the_example_of_a_record_is_one() {
    let text = fs::read_to_string(project("fixtures/experiments/concurrency.experiment.json")).expect("the example");
    let record: ExperimentRecord = serde_json::from_str(&text).expect("a record");
    let again: Value = serde_json::to_value(&record).expect("plain data");
    let once: Value = serde_json::from_str(&text).expect("JSON");
    let members = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&once["passes"][0]["requests"][0]), members(&again["passes"][0]["requests"][0]));
    assert_eq!(members(&once["arms"][0]["memory"]), ["static", "peak", "growth", "interval_ms", "samples"]);
    assert_eq!(record.passes.len(), 18);
}

fn folder(experiment: &str) -> TempDir {
    let folder = tempfile::Builder::new().prefix("verify-test-").tempdir().expect("a scratch folder");
    fs::write(folder.path().join("e.toml"), experiment).expect("the experiment");
    fs::write(folder.path().join("verify.toml"), "").expect("settings");
    folder
}

/// What a fault of usage says, in one text.
fn refused(experiment: &str) -> String {
    let folder = folder(experiment);
    let output = verify(folder.path()).args(["bench", "e.toml"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(!folder.path().join("e.run").exists(), "something was measured");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn faults_of_an_experiment_are_named_before_anything_runs() {
    let arms =
        "[vary]\nvariable = 'cache'\n[[vary.arm]]\nname = 'a'\ncache = 'off'\n[[vary.arm]]\nname = 'b'\ncache = 'on'\n";
    let two = refused(&format!("backend = 'cpu'\n{arms}concurrency = 4\n"));
    assert!(two.contains("two variables") && two.contains("cache") && two.contains("concurrency"), "{two}");
    let typo = refused(&format!("bakend = 'cpu'\n{arms}"));
    assert!(typo.contains("bakend") && typo.contains("did you mean `backend`"), "{typo}");
    let unset = refused(&format!("backend = 'cpu'\nmodel = '${{VERIFY_NO_SUCH_VARIABLE}}/m.gguf'\n{arms}"));
    assert!(unset.contains("VERIFY_NO_SUCH_VARIABLE is not set"), "{unset}");
    let unknown = refused(&format!("backend = 'cpi'\n{arms}"));
    assert!(unknown.contains("there is no backend `cpi`"), "{unknown}");
    let probes = refused(&format!("backend = 'cpu'\nprobes = 'no-such.toml'\n{arms}"));
    assert!(probes.contains("no-such.toml"), "{probes}");
    let one = refused("backend = 'cpu'\n[vary]\nvariable = 'cache'\n[[vary.arm]]\nname = 'a'\n");
    assert!(one.contains("a comparison needs two"), "{one}");
}

/// A folder with the truth server as a backend, and an experiment on it.
#[cfg(target_os = "linux")]
fn on_truth(experiment: &str, flags: &str) -> TempDir {
    let folder = folder(experiment);
    let program = truth_server().display().to_string();
    let settings = format!(
        "[[backend]]\nname = 'truth'\nprogram = '{program}'\nserved_model = 'truth-model'\n\
         args = ['--port', '{{port}}', '--life-s', '120'{flags}]\n\
         [backend.features]\nprefix_cache_off = []\n[backend.counters]\ngenerated_tokens = 'vllm:generation_tokens_total'\n"
    );
    fs::write(folder.path().join("verify.toml"), settings).expect("settings");
    folder
}

fn record(folder: &Path) -> ExperimentRecord {
    let text = fs::read_to_string(folder.join("e.run/experiment.json")).expect("the record");
    serde_json::from_str(&text).expect("a record")
}

#[cfg(target_os = "linux")]
const SLOWER: &str = "backend = 'truth'\nprobes = 'none'\nrequests = 4\nprompt_words = 8\nmax_tokens = 3\n\
    [vary]\nvariable = 'scheduler'\n[[vary.arm]]\nname = 'fast'\nargs = ['--ttft-ms', '30', '--itl-ms', '5']\n\
    [[vary.arm]]\nname = 'slow'\nargs = ['--ttft-ms', '150', '--itl-ms', '5']\n";

#[cfg(target_os = "linux")]
#[test]
fn a_known_difference_is_found_and_everything_is_kept() {
    let folder = on_truth(SLOWER, "");
    let mut command = verify(folder.path());
    command.args(["bench", "e.toml"]);
    let (code, shown) = report(command);
    assert_eq!(code, 0, "{shown:#}");
    let record = record(folder.path());
    let ttft = record.comparisons.iter().find(|found| found.metric == "ttft_p50_ms").expect("compared");
    let difference = ttft.difference.expect("a difference");
    assert!((80.0..220.0).contains(&difference), "true is 120 ms: {difference}");
    assert_eq!(serde_json::to_value(ttft.verdict).expect("a word"), "worse", "{ttft:?}");
    // Interleaved A B B A, warm-ups kept and not counted, each arm three times.
    let measured: Vec<&str> =
        record.passes.iter().filter(|pass| pass.repeat > 0).map(|pass| pass.arm.as_str()).collect();
    assert_eq!((measured.len(), measured[1], measured[3]), (6, measured[2], measured[4]));
    assert_eq!(record.passes.iter().filter(|pass| pass.repeat == 0).count(), 4);
    assert_eq!((record.arms[0].time.successful, record.arms[0].starts.is_empty()), (12, false));
    assert!(record.arms.iter().all(|arm| arm.memory.at_rest.rss_bytes.is_some_and(|bytes| bytes > 0)));
    assert!(record.arms[0].starts[0].first_answer_ms.is_some_and(|cold| cold > 0.0));
    assert!(record.passes.iter().all(|pass| pass.client.error_ttft_ms.is_some()), "the client was checked");
    // The results pass the gate, and are a real benchmark that carries no accept.
    verify(folder.path()).args(["schema", "e.run/fast.json", "e.run/slow.json"]).assert().success();
    let slow: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("e.run/slow.json")).unwrap()).unwrap();
    let result = &slow["normalized_result"];
    assert_eq!(result["evidence_level"], "real_benchmark");
    assert_eq!(result["decision"]["decision"], "tune");
    assert_eq!(result["metrics"]["per_run"].as_array().map(Vec::len), Some(3));
    // A second run does not touch it.
    let again = verify(folder.path()).args(["bench", "e.toml"]).output().expect("it runs");
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("--resume"));
    // What the client's check found stays with the pass, whoever reads it later.
    for (within, rule) in [(json!(false), "experiment/client-error"), (Value::Null, "experiment/client-unchecked")] {
        let pass = folder.path().join("e.run/passes");
        let named = |path: &std::path::Path| {
            path.to_string_lossy().contains("slow") && !path.to_string_lossy().contains("warmup")
        };
        let pass = fs::read_dir(pass).unwrap().map(|entry| entry.unwrap().path()).find(|path| named(path)).unwrap();
        let mut kept: Value = serde_json::from_str(&fs::read_to_string(&pass).unwrap()).unwrap();
        let client = kept.pointer_mut("/pass/client").expect("the client's part");
        client["error_within_limits"] = within.clone();
        fs::write(&pass, kept.to_string()).unwrap();
        let mut command = verify(folder.path());
        command.args(["bench", "e.toml", "--resume"]);
        let (_, shown) = report(command);
        let found: Vec<&Value> = findings(&shown, Some("warning")).filter(|found| found["rule"] == rule).collect();
        assert_eq!(found.len(), 1, "{shown:#}");
        assert!(found[0]["path"].as_str().unwrap().ends_with("slow.json"), "{found:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_experiment_goes_on_and_a_changed_one_does_not() {
    let experiment = SLOWER.replace("'--ttft-ms', '30'", "'--ttft-ms', '120'");
    let folder = on_truth(&experiment, "");
    let passes = || -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(folder.path().join("e.run/passes")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| !path.to_string_lossy().contains("warmup")).collect()
    };
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("verify"))
        .args(["bench", "e.toml", "--no-progress"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let began = std::time::Instant::now();
    while passes().len() < 2 && began.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().expect("SIGKILL");
    child.wait().expect("it ended");
    let kept: Vec<(std::path::PathBuf, Vec<u8>)> =
        passes().into_iter().map(|path| (path.clone(), fs::read(path).expect("a pass"))).collect();
    assert!((2..6).contains(&kept.len()), "{}", kept.len());
    fs::write(folder.path().join("e.toml"), experiment.replace("max_tokens = 3", "max_tokens = 4")).unwrap();
    let other = verify(folder.path()).args(["bench", "e.toml", "--resume"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert_eq!(other.status.code(), Some(2));
    assert!(said.contains("max_tokens: 3 → 4"), "{said}");
    fs::write(folder.path().join("e.toml"), experiment).unwrap();
    let mut command = verify(folder.path());
    command.args(["bench", "e.toml", "--resume"]);
    let (code, shown) = report(command);
    assert_eq!(code, 0, "{shown:#}");
    assert_eq!(passes().len(), 6);
    assert!(
        kept.iter().all(|(path, bytes)| fs::read(path).is_ok_and(|now| now == *bytes)),
        "a pass was measured twice"
    );
    assert!(record(folder.path()).finished_at.is_some());
}

#[cfg(target_os = "linux")]
#[test]
fn one_changed_character_of_an_amount_rejects_an_arm() {
    let experiment = "backend = 'truth'\nprobes = 'probes.toml'\nrequests = 2\nprompt_words = 8\nmax_tokens = 2\n\
        [vary]\nvariable = 'scheduler'\n[[vary.arm]]\nname = 'right'\nargs = ['--answers', 'right.jsonl']\n\
        [[vary.arm]]\nname = 'wrong'\nargs = ['--answers', 'wrong.jsonl']\n";
    let folder = on_truth(experiment, ", '--ttft-ms', '5', '--itl-ms', '1'");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write(
        "probes.toml",
        "name = 'pay'\n[[probe]]\nid = 'pay'\nprompt = 'how much'\n[[probe.field]]\nname = 'amount'\ntier = 'critical'\npattern = '(\\d+\\.\\d\\d)'\n",
    );
    write("right.jsonl", "{\"match\":\"how much\",\"tokens\":[\"It is \",\"12.50\",\".\"]}\n");
    write("wrong.jsonl", "{\"match\":\"how much\",\"tokens\":[\"It is \",\"12.60\",\".\"]}\n");
    let mut command = verify(folder.path());
    command.args(["bench", "e.toml"]);
    let (code, shown) = report(command);
    assert_eq!(code, 0, "a rejected candidate is a conclusion, not a fault: {shown:#}");
    let record = record(folder.path());
    let quality = record.arms[1].quality.as_ref().expect("probed");
    assert_eq!((quality.critical_fields.count, quality.critical_fields.of), (0, 1), "{quality:#?}");
    assert_eq!(quality.probes[0].answers.len(), 3, "before, under load, after");
    assert_eq!(record.arms[1].conclusion.decision, "reject");
    assert!(record.arms[1].conclusion.rules.contains(&"evidence/critical-field-changed".to_owned()));
    // Human tables, in Chinese, for the same record.
    let table = verify(folder.path()).args(["bench", "e.toml", "--resume", "--lang", "zh"]).output().expect("it runs");
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    for word in ["配置", "时间", "内存", "质量", "与基线的差别", "结论", "reject"] {
        assert!(table.contains(word), "{word}: {table}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn failed_requests_fail_the_experiment_and_an_arm_without_answers_ends_it() {
    let experiment = "backend = 'truth'\nprobes = 'none'\nrequests = 4\nprompt_words = 8\nmax_tokens = 2\nrepeats = 1\n\
        [vary]\nvariable = 'scheduler'\n[[vary.arm]]\nname = 'a'\n[[vary.arm]]\nname = 'b'\nargs = ['--fault', 'status:500@every=2']\n";
    let folder = on_truth(experiment, ", '--ttft-ms', '5', '--itl-ms', '1'");
    let mut command = verify(folder.path());
    command.args(["bench", "e.toml"]);
    let (code, shown) = report(command);
    assert_eq!(code, 1);
    let findings = shown["stages"][0]["findings"].as_array().expect("findings");
    let rules: Vec<&str> = findings.iter().filter_map(|finding| finding["rule"].as_str()).collect();
    assert!(rules.contains(&"experiment/requests-failed") && rules.contains(&"experiment/few-repeats"), "{rules:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_chain_measures_the_enlarged_workload_before_it_concludes() {
    let folder = on_truth("", ", '--ttft-ms', '5', '--itl-ms', '1'");
    let settings = folder.path().join("verify.toml");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, format!("{text}[bench]\nrequests = 4\nprobe_count = 5\n")).unwrap();
    let workloads = folder.path().join("benchmarks/workloads");
    fs::create_dir_all(&workloads).unwrap();
    let workload = project("fixtures/course/benchmarks/workloads/mixed_lengths.jsonl");
    fs::copy(workload, workloads.join("mixed_lengths.jsonl")).unwrap();
    let mut command = verify(folder.path());
    command.args(["all", "--only", "smoke,schema,conclude", "--project", "70", "--backend", "truth"]);
    let (code, shown) = report(command);
    assert_eq!(code, 0, "{shown:#}");
    let results = folder.path().join("benchmarks/results");
    for (name, role) in [("70_scheduler.bench.json", "candidate"), ("70_scheduler.bench.baseline.json", "baseline")] {
        let result: Value = serde_json::from_str(&fs::read_to_string(results.join(name)).expect(name)).unwrap();
        let result = &result["normalized_result"];
        assert_eq!((&result["evidence_level"], &result["role"]), (&"real_benchmark".into(), &role.into()), "{name}");
        assert_eq!((&result["config"]["repeats"], &result["quality"]["probes"]), (&3.into(), &5.into()), "{name}");
    }
    let stages = shown["stages"].as_array().unwrap();
    let items = stages[2]["items"].as_array().unwrap();
    assert_eq!(items[0]["path"], "benchmarks/results/70_scheduler.bench.json");
    assert!(folder.path().join(".verify/bench/70_scheduler/experiment.json").exists());
    verify(folder.path()).args(["schema", "benchmarks/results"]).assert().success();
}
