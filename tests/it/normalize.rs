//! Cases of this domain: `fixtures/cases/normalize`, `fixtures/legacy-results`, foreign
//! reports, many files at once.

use crate::support::{args, case, project, scratch, verify};
use rstest::rstest;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// What of `wanted` is not in `got`: objects as subsets, null also by absence, numbers
/// to nine digits.
fn lacking(wanted: &Value, got: &Value, path: &str, out: &mut Vec<String>) {
    match (wanted, got) {
        (Value::Object(wanted), Value::Object(got)) => {
            for (key, value) in wanted {
                lacking(value, got.get(key).unwrap_or(&Value::Null), &format!("{path}/{key}"), out);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            if (a - b).abs() > a.abs() * 1e-9 {
                out.push(format!("{path}: {b}, not {a}"));
            }
        }
        _ if wanted == got => {}
        _ => out.push(format!("{path}: {got}, not {wanted}")),
    }
}

/// Bytes and time of a file, `None` when it is absent.
fn state(path: &Path) -> Option<(Vec<u8>, std::time::SystemTime)> {
    let facts = fs::symlink_metadata(path).ok()?;
    Some((fs::read(path).unwrap(), facts.modified().unwrap()))
}

fn set_up(folder: &Path, expect: &Value) {
    for (link, text) in expect["setup"]["symlink"].as_object().into_iter().flatten() {
        let link = folder.join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(text.as_str().unwrap(), link).unwrap();
        #[cfg(not(unix))]
        fs::copy(link.parent().unwrap().join(text.as_str().unwrap()), &link).unwrap();
    }
    for (new, old) in expect["setup"]["hardlink"].as_object().into_iter().flatten() {
        let new = folder.join(new);
        fs::create_dir_all(new.parent().unwrap()).unwrap();
        fs::hard_link(folder.join(old.as_str().unwrap()), new).unwrap();
    }
}

#[rstest]
fn case_is_migrated_as_it_should(#[files("fixtures/cases/normalize/*/case.json")] path: PathBuf) {
    let folder = path.parent().unwrap();
    let case = case(folder);
    let expect = &case["expect"];
    let copy = scratch(folder);
    let at = |name: &str| copy.path().join(name);
    set_up(copy.path(), expect);
    let mut kept: Vec<PathBuf> =
        fs::read_dir(at("input")).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    kept.extend(expect["unchanged"].as_array().into_iter().flatten().map(|name| at(name.as_str().unwrap())));
    let before: Vec<_> = kept.iter().map(|path| state(path)).collect();
    let output = expect["output"].as_str().map(at);
    let mut earlier = None;
    let mut code = None;
    for _ in 0..expect["repeat"].as_u64().unwrap_or(1) {
        earlier = output.as_deref().and_then(state);
        code = verify(copy.path()).args(args(&case)).output().unwrap().status.code();
    }
    assert_eq!(code.map(i64::from), expect["exit"].as_i64());
    assert_eq!(kept.iter().map(|path| state(path)).collect::<Vec<_>>(), before, "an original changed");
    for name in expect["absent"].as_array().into_iter().flatten() {
        assert!(fs::symlink_metadata(at(name.as_str().unwrap())).is_err(), "{name} appeared");
    }
    if expect["written"] != json!(true) {
        assert!(output.is_none_or(|path| !path.exists()));
        return;
    }
    let output = output.unwrap();
    assert!(earlier.is_none() || earlier == state(&output), "the second run changed the output");
    let text = fs::read_to_string(&output).unwrap();
    for part in expect["output_contains"].as_array().into_iter().flatten() {
        assert!(text.contains(part.as_str().unwrap()), "{part} is missing");
    }
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut faults = Vec::new();
    if !expect["normalized"].is_null() {
        lacking(&expect["normalized"], &document["normalized_result"], "", &mut faults);
    }
    assert!(faults.is_empty(), "{faults:#?}");
    let gate = verify(copy.path()).arg("schema").arg(&output).output().unwrap().status.code();
    assert_eq!(gate.map(i64::from), expect["exit"].as_i64(), "the gate and the migration disagree");
}

/// Migrates one file of `fixtures/legacy-results`; `None` when nothing is written.
fn legacy(name: &str, more: &[&str]) -> (i32, Option<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.json");
    let mut command = verify(&project("fixtures/legacy-results"));
    let code =
        command.args(["normalize", name]).args(more).arg("--output").arg(&output).output().unwrap().status.code();
    let document = fs::read_to_string(&output).ok().map(|text| serde_json::from_str(&text).unwrap());
    (code.unwrap(), document)
}

#[rstest]
#[case("01_raw_early_c1_results_null.json", 0, json!({"config": {"backend": "vllm", "dtype": "unknown", "prompt_tokens": null, "concurrency": 1}, "metrics": {"p99_ms": 339.88624}}))]
#[case("02_raw_early_c4_results_null.json", 0, json!({"config": {"concurrency": 4}}))]
#[case("03_raw_with_results_usage.json", 0, json!({"config": {"prompt_tokens": 28.6}, "role": "candidate"}))]
#[case("04_raw_with_request_results.json", 0, json!({"config": {"prompt_tokens": 28.6}, "role": "baseline"}))]
#[case("05_raw_repeats_with_runs.json", 0, json!({"config": {"repeats": 3}, "metrics": {"samples": 14, "failed_requests": 0.3333}}))]
#[case("06_raw_partial_metrics.json", 1, json!({"config": {"concurrency": 1}, "metrics": {"ttft_ms": null, "samples": null}}))]
#[case("07_raw_all_requests_failed.json", 1, json!({"status": "failed", "metrics": {"successful_requests": 0, "failed_requests": 5, "ttft_ms": null, "tpot_ms": null, "e2e_latency_ms": null}}))]
#[case("08_failure_record_backend_start.json", 1, json!({"status": "failed", "decision": {"decision": "tune"}, "failure": {"failure_reason": "CUDA out of memory while loading the model", "retest_path": "benchmarks/results/66_g0_vllm_20260711_101500.json"}}))]
#[case("14_raw_sglang_run.json", 0, json!({"config": {"backend": "sglang"}}))]
fn every_historical_shape_is_read(#[case] name: &str, #[case] code: i32, #[case] wanted: Value) {
    let (found, document) = legacy(name, &[]);
    assert_eq!(found, code);
    let mut faults = Vec::new();
    lacking(&wanted, &document.unwrap()["normalized_result"], "", &mut faults);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[rstest]
#[case("09_bare_v1_early_normalizer_output.json", &[])]
#[case("10_bare_v1_late_normalizer_output.json", &[])]
#[case("11_enveloped_new_run.json", &["normalized_result"])]
#[case("12_enveloped_late_notebook_extras.json", &["normalized_result"])]
fn a_result_stays_as_it_is(#[case] name: &str, #[case] path: &[&str]) {
    let source: Value =
        serde_json::from_str(&fs::read_to_string(project("fixtures/legacy-results").join(name)).unwrap()).unwrap();
    let inner = path.iter().fold(&source, |value, key| &value[*key]);
    let (code, document) = legacy(name, &[]);
    let document = document.unwrap();
    assert_eq!((code, &document["normalized_result"]), (0, inner));
    let notes = document["migration"]["notes"].as_array().unwrap().len();
    assert_eq!(notes, if name.starts_with("12") { 2 } else { 0 });
}

#[test]
fn what_is_no_single_result_is_refused_and_a_group_can_be_chosen() {
    assert_eq!(legacy("13_manifest_69_prefix_cache.json", &[]), (1, None));
    assert_eq!(legacy("13_manifest_69_prefix_cache.json", &["--group", "g2"]), (1, None));
    let (code, document) = legacy("13_manifest_69_prefix_cache.json", &["--group", "g1_prefix_cache"]);
    assert_eq!(code, 0);
    assert_eq!(document.unwrap()["normalized_result"]["strategy"], "vllm-g1_prefix_cache");
    assert_eq!(legacy("other-contracts/73_real_gpu_training.json", &[]), (1, None));
    assert_eq!(legacy("other-contracts/75_memory_budget_decision_9600.json", &[]), (1, None));
}

/// Writes `text` as `input.json` and migrates it.
fn migrated(text: &str, more: &[&str]) -> (i32, Option<Value>, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("input.json"), text).unwrap();
    let output =
        verify(folder.path()).args(["normalize", "input.json", "--output", "out.json"]).args(more).output().unwrap();
    let document = fs::read_to_string(folder.path().join("out.json")).ok();
    let document = document.map(|text| serde_json::from_str(&text).unwrap());
    (output.status.code().unwrap(), document, String::from_utf8(output.stdout).unwrap())
}

/// Asserts on the public block of a migrated text.
fn becomes(text: &str, more: &[&str], code: i32, wanted: &Value) {
    let (found, document, said) = migrated(text, more);
    assert_eq!(found, code, "{said}");
    let mut faults = Vec::new();
    lacking(wanted, &document.expect("written")["normalized_result"], "", &mut faults);
    assert!(faults.is_empty(), "{faults:#?}");
}

fn of_case(id: &str) -> String {
    fs::read_to_string(project("fixtures/cases/normalize").join(id).join("input/raw.json")).unwrap()
}

#[test]
fn one_line_of_a_jsonl_file_is_read() {
    let text =
        of_case("sglang-bench-serving-two-lines").replacen("\"request_rate\": 4.0", "\"request_rate\": Infinity", 1);
    let wanted = json!({
        "config": {"backend": "sglang", "model": "Qwen/Qwen2.5-0.5B-Instruct", "dtype": "unknown", "concurrency": 4, "prompt_tokens": 30, "generated_tokens": 60},
        "metrics": {"e2e_latency_ms": {"p50": 790.0, "p90": 820.0, "p95": 830.0, "p99": 850.0}, "failed_requests": null, "successful_requests": 40},
        "strategy_metrics": {"cache_hit_rate": 0.68, "acceptance_length": null},
    });
    becomes(&text, &["--line", "1"], 0, &wanted);
    assert_eq!(migrated(&text, &["--line", "3"]).0, 1);
    assert!(migrated(&text, &[]).2.contains("--line N"));
}

#[test]
fn one_benchmark_of_a_sweep_is_read_with_its_own_units() {
    let wanted = json!({
        "config": {"model": "Qwen/Qwen2.5-0.5B-Instruct", "backend": "unknown", "concurrency": 4},
        "metrics": {"e2e_latency_ms": {"mean": 842.6, "p50": 956.4, "p90": 960.0, "p99": 970.1}, "successful_requests": 40, "failed_requests": 1},
    });
    becomes(&of_case("guidellm-sweep"), &["--index", "0"], 0, &wanted);
    assert_eq!(migrated(&of_case("guidellm-sweep"), &["--index", "7"]).0, 1);
    assert!(migrated(&of_case("guidellm-sweep"), &[]).2.contains("--index N"));
}

#[test]
fn units_are_read_and_a_cancelled_run_is_evidence_against_it() {
    let text = json!({
        "schema_version": "1.4", "aiperf_version": "0.13.0", "was_cancelled": true,
        "input_config": {"endpoint": {"model_names": ["m"]}, "loadgen": {"concurrency": 8}},
        "request_latency": {"unit": "s", "avg": 0.8426, "p50": 0.9564, "p99": 0.9701},
        "time_to_first_token": {"unit": "us", "avg": 190_030, "p50": 234_570},
        "inter_token_latency": {"unit": "ms", "avg": 11.4},
        "input_sequence_length": {"unit": "tokens", "avg": 28.6},
        "output_sequence_length": {"unit": "tokens", "avg": 58.4},
        "request_throughput": {"unit": "requests/sec", "avg": 4.3},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 251.0},
        "request_count": {"avg": 40}, "error_request_count": {"avg": 0}, "benchmark_duration": {"unit": "sec", "avg": 9.3},
    });
    let wanted = json!({
        "config": {"model": "m", "concurrency": 8, "prompt_tokens": 28.6, "generated_tokens": 58.4},
        "metrics": {"ttft_ms": {"mean": 190.03, "p50": 234.57}, "tpot_ms": {"mean": 11.4}, "e2e_latency_ms": {"mean": 842.6, "p50": 956.4, "p99": 970.1},
                    "throughput_requests_per_s": 4.3, "throughput_tokens_per_s": 251.0, "successful_requests": 40, "duration_s": 9.3},
        "status": "failed",
    });
    becomes(&text.to_string(), &["--backend", "vllm", "--dtype", "bfloat16"], 0, &wanted);
}

#[test]
fn llmperf_seconds_and_minutes_are_converted_and_its_own_definition_is_not_renamed() {
    let text = json!({
        "version": "2023-08-31", "name": "run", "model": "m", "num_concurrent_requests": 2,
        "results_ttft_s_mean": 0.19, "results_ttft_s_quantiles_p50": 0.2, "results_ttft_s_quantiles_p99": 0.3,
        "results_end_to_end_latency_s_mean": 0.8, "results_end_to_end_latency_s_quantiles_p50": 0.9, "results_end_to_end_latency_s_quantiles_p99": 1.25,
        "results_inter_token_latency_s_mean": 0.01, "results_num_completed_requests_per_min": 258.0,
        "results_mean_output_throughput_token_per_s": 60.0, "results_num_completed_requests": 30, "results_number_errors": 2,
        "results_number_input_tokens_mean": 550, "results_number_output_tokens_mean": 150,
    });
    let wanted = json!({
        "config": {"backend": "unknown", "concurrency": 2, "prompt_tokens": 550, "generated_tokens": 150},
        "metrics": {"ttft_ms": {"mean": 190, "p50": 200, "p99": 300}, "tpot_ms": null, "e2e_latency_ms": {"mean": 800, "p50": 900, "p99": 1250},
                    "throughput_requests_per_s": 4.3, "successful_requests": 30, "failed_requests": 2, "p99_ms": 1250},
    });
    becomes(&text.to_string(), &[], 0, &wanted);
}

#[test]
fn a_report_of_another_tool_than_the_named_one_is_refused() {
    let (code, document, said) = migrated(&of_case("vllm-bench-serve-latencies"), &["--from", "guidellm"]);
    assert_eq!((code, document), (1, None));
    assert!(said.contains("not a report of guidellm"), "{said}");
}

#[test]
fn an_unreadable_concurrency_is_null_and_not_one() {
    let text = of_case("default-output-name").replacen("\"concurrency\": 1", "\"concurrency\": \"four\"", 1);
    becomes(&text, &[], 1, &json!({"config": {"concurrency": null}}));
    becomes(&text, &["--concurrency", "4"], 0, &json!({"config": {"concurrency": 4}}));
}

#[cfg(unix)]
#[test]
fn no_name_and_no_link_reaches_the_original() {
    let copy = scratch(&project("fixtures/cases/normalize/default-output-name"));
    let input = copy.path().join("input/raw.json");
    fs::hard_link(&input, copy.path().join("hard.json")).unwrap();
    fs::create_dir(copy.path().join("sub")).unwrap();
    std::os::unix::fs::symlink("../input", copy.path().join("sub/folder")).unwrap();
    let before = state(&input);
    for output in ["hard.json", "sub/folder/raw.json", "sub/../input/raw.json"] {
        for more in [&[][..], &["--force"]] {
            verify(copy.path()).args(["normalize", "input/raw.json", "--output", output]).args(more).assert().code(2);
        }
    }
    verify(copy.path()).args(["normalize", "input/raw.json", "--out-dir", "input"]).assert().code(2);
    assert_eq!(state(&input), before);
}

#[test]
fn force_keeps_the_earlier_file_and_a_second_run_changes_nothing() {
    let copy = scratch(&project("fixtures/cases/normalize/output-exists"));
    let output = copy.path().join("input/normalized.json");
    let old = fs::read(&output).unwrap();
    let run = |more: &[&str]| {
        verify(copy.path())
            .args(["normalize", "input/raw.json", "--output", "input/normalized.json"])
            .args(more)
            .assert()
    };
    run(&[]).code(2);
    run(&["--force"]).success();
    let history: Vec<PathBuf> =
        fs::read_dir(copy.path().join("input/history")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(history.len(), 1);
    assert_eq!(fs::read(&history[0]).unwrap(), old);
    let new = state(&output);
    run(&[]).success();
    run(&["--force"]).success();
    assert_eq!(state(&output), new);
}

#[test]
fn one_bad_file_does_not_stop_the_others_and_is_listed_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let good = fs::read(project("fixtures/legacy-results/01_raw_early_c1_results_null.json")).unwrap();
    for name in ["a.json", "b.json", "d.json"] {
        fs::write(folder.path().join(name), &good).unwrap();
    }
    fs::write(folder.path().join("c.json"), "{\"a\": }").unwrap();
    let output = verify(folder.path()).args(["normalize", "*.json", "--out-dir", "out"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[lines.len() - 1], "3 migrated, 0 unchanged, 1 failed");
    assert!(lines[lines.len() - 2].starts_with("  help: "), "{text}");
    assert!(lines[lines.len() - 3].starts_with("error[json/syntax]: c.json: "), "{text}");
    assert!(lines[lines.len() - 3].contains("c.json: not JSON: a value is expected here"), "{text}");
    assert!(["a", "b", "d"].iter().all(|name| folder.path().join("out").join(format!("{name}.json")).is_file()));
    verify(folder.path()).args(["normalize", "a.json", "b.json", "--output", "x.json"]).assert().code(2);
}

#[test]
fn two_originals_never_share_an_output() {
    let folder = tempfile::tempdir().unwrap();
    let good = fs::read(project("fixtures/legacy-results/01_raw_early_c1_results_null.json")).unwrap();
    for name in ["a", "b"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("x.json"), &good).unwrap();
    }
    verify(folder.path()).args(["normalize", "a/x.json", "b/x.json", "--out-dir", "out"]).assert().code(2);
    assert!(!folder.path().join("out").exists());
}

#[test]
fn check_and_dry_run_write_nothing() {
    let copy = scratch(&project("fixtures/cases/normalize/default-output-name"));
    let run = |more: &str| verify(copy.path()).args(["normalize", "input/raw.json", more]).output().unwrap();
    assert_eq!(run("--check").status.code(), Some(1));
    let shown = String::from_utf8(run("--dry-run").stdout).unwrap();
    assert!(!copy.path().join("input/raw_normalized.json").exists());
    insta::assert_snapshot!("normalize-dry-run", shown);
    verify(copy.path()).args(["normalize", "input/raw.json"]).assert().success();
    assert_eq!(run("--check").status.code(), Some(0));
}

#[test]
fn programs_get_one_entry_per_file() {
    let copy = scratch(&project("fixtures/legacy-results"));
    let output = verify(copy.path())
        .args(["--format", "json", "normalize", "01_raw_early_c1_results_null.json", "11_enveloped_new_run.json"])
        .arg("13_manifest_69_prefix_cache.json")
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let statuses: Vec<&str> =
        report["files"].as_array().unwrap().iter().map(|file| file["status"].as_str().unwrap()).collect();
    assert_eq!((output.status.code(), statuses), (Some(1), vec!["migrated", "result", "refused"]));
    assert_eq!(report["files"][0]["output"], "01_raw_early_c1_results_null_normalized.json");
}

/// A shell's `*.json` names what the first run wrote.
#[test]
fn a_second_run_over_everything_in_the_folder_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let good = fs::read(project("fixtures/legacy-results/01_raw_early_c1_results_null.json")).unwrap();
    for name in ["a.json", "b.json"] {
        fs::write(folder.path().join(name), &good).unwrap();
    }
    verify(folder.path()).args(["normalize", "a.json", "b.json"]).assert().code(0);
    let names = ["a.json", "a_normalized.json", "b.json", "b_normalized.json"];
    let states = || names.map(|name| state(&folder.path().join(name)));
    let before = states();
    let output = verify(folder.path()).arg("normalize").args(names).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(states(), before);
    assert!(text.contains("a_normalized.json: nothing to migrate (already migrated)"), "{text}");
    assert!(text.ends_with("0 migrated, 4 unchanged, 0 failed\n"), "{text}");
    // The name alone makes no output: an original called so stays protected.
    fs::write(folder.path().join("b_normalized.json"), &good).unwrap();
    verify(folder.path()).args(["normalize", "--force", "b.json", "b_normalized.json"]).assert().code(1);
    assert_eq!(fs::read(folder.path().join("b_normalized.json")).unwrap(), good);
}
