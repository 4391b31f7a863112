//! Cases of this domain: `fixtures/cases/schema`; the former gate; the published schema.

use crate::support::{args, case, findings, project, report, scratch, verify};
use rstest::rstest;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Verdict by file of a report.
fn verdicts(report: &Value) -> BTreeMap<String, String> {
    let stages = report["stages"].as_array().expect("stages").iter();
    stages
        .flat_map(|stage| stage["items"].as_array().expect("items"))
        .map(|item| (item["path"].as_str().unwrap().to_owned(), item["status"].as_str().unwrap().to_owned()))
        .collect()
}

fn targets(report: &Value, severity: &str) -> BTreeSet<String> {
    findings(report, Some(severity)).map(|finding| finding["target"].as_str().unwrap_or_default().to_owned()).collect()
}

fn strings(list: &Value) -> BTreeSet<String> {
    list.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[rstest]
fn case_is_judged_as_it_should(#[files("fixtures/cases/schema/*/case.json")] path: PathBuf) {
    let folder = path.parent().unwrap();
    let case = case(folder);
    let copy = scratch(folder);
    let mut command = verify(copy.path());
    command.args(args(&case));
    let (code, report) = report(command);
    let expect = &case["expect"];
    assert_eq!(Some(i64::from(code)), expect["exit"].as_i64(), "{report:#}");
    let wanted: BTreeMap<String, String> = serde_json::from_value(expect["files"].clone()).unwrap();
    assert_eq!(verdicts(&report), wanted);
    assert_eq!(targets(&report, "error"), strings(&expect["pointers"]), "{report:#}");
    assert_eq!(targets(&report, "warning"), strings(&expect["warnings"]), "{report:#}");
    for wanted in expect["findings"].as_array().unwrap() {
        let same = |finding: &&Value| {
            finding["rule"] == wanted["rule"]
                && finding["path"] == wanted["path"]
                && finding["target"].as_str().unwrap_or_default() == wanted["pointer"]
                && ["line", "column"].iter().all(|key| wanted[key].is_null() || finding[key] == wanted[key])
        };
        assert!(findings(&report, None).any(|finding| same(&finding)), "{wanted}: {report:#}");
    }
}

/// `--level compat` gives the verdicts that the checklist's filter gave under jq 1.6 for
/// the same bytes; whatever it failed is never ok under the whole contract.
#[rstest]
fn compat_is_the_verdict_of_the_former_gate(#[files("fixtures/cases/schema/*/case.json")] path: PathBuf) {
    let folder = path.parent().unwrap();
    let case = case(folder);
    let files: Vec<String> = case["jq_1_6"].as_object().unwrap().keys().cloned().collect();
    let copy = scratch(folder);
    let run = |level: &str| {
        let mut command = verify(copy.path());
        command.args(["schema", "--level", level]).args(&files);
        verdicts(&report(command).1)
    };
    let (compat, strict) = (run("compat"), run("strict"));
    for (file, verdict) in case["jq_1_6"].as_object().unwrap() {
        assert_eq!(compat[file] == "ok", verdict == "OK", "{file}");
        assert!(strict[file] != "ok" || verdict == "OK", "{file} is ok, but the former gate failed it");
    }
}

/// Documents on which the former gate was measured beside the cases.
#[rstest]
#[case("", "OK")]
#[case(" \n", "OK")]
#[case("\u{1e}{}", "OK")]
#[case("\u{1e}{}\n", "FAILED")]
#[case("{}", "FAILED")]
#[case("{} GOOD", "OK")]
#[case("GOOD GOOD", "OK")]
#[case("null GOOD", "OK")]
#[case("\"x\" GOOD", "OK")]
#[case("GOOD {}", "FAILED")]
#[case("GOOD null", "FAILED")]
#[case("GOOD 0", "FAILED")]
#[case("GOOD }", "FAILED")]
#[case("GOOD ,", "FAILED")]
#[case("NaN GOOD", "OK")]
#[case("[nan] GOOD", "FAILED")]
#[case("[+1, 01, .5, 1., 1e999, -inf, Infinity] GOOD", "OK")]
#[case("[0x10] GOOD", "FAILED")]
#[case("[1e] GOOD", "FAILED")]
#[case("truefalse GOOD", "FAILED")]
#[case("true\"a\" GOOD", "OK")]
#[case("1GOOD", "OK")]
#[case("[1{}] GOOD", "FAILED")]
#[case("1] GOOD", "FAILED")]
#[case("\"\u{1f}\" GOOD", "OK")]
#[case("\"\t\" GOOD", "FAILED")]
#[case("\u{feff}GOOD", "OK")]
#[case("// note\nGOOD", "FAILED")]
fn compat_knows_what_the_former_gate_did(#[case] text: &str, #[case] verdict: &str) {
    let folder = tempfile::tempdir().unwrap();
    let good = fs::read_to_string(project("fixtures/cases/schema/valid-scalar-latencies/input/x.json")).unwrap();
    fs::write(folder.path().join("x.json"), text.replace("GOOD", &good)).unwrap();
    let mut command = verify(folder.path());
    command.args(["schema", "--level", "compat", "x.json"]);
    assert_eq!(verdicts(&report(command).1)["x.json"] == "ok", verdict == "OK");
}

/// A good result with one change.
fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let text = fs::read_to_string(project("fixtures/cases/schema/valid-scalar-latencies/input/x.json")).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    change(&mut document["normalized_result"]);
    document
}

/// Error rules with their pointers for one document.
fn faults(document: &Value) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.json"), document.to_string()).unwrap();
    let mut command = verify(folder.path());
    command.args(["schema", "x.json"]);
    let (_, report) = report(command);
    findings(&report, None)
        .map(|finding| {
            format!(
                "{} {} {}",
                finding["severity"].as_str().unwrap(),
                finding["rule"].as_str().unwrap(),
                finding["target"].as_str().unwrap()
            )
        })
        .map(|text| text.replace("/normalized_result", ""))
        .collect()
}

#[test]
fn impossible_figures_are_errors() {
    let document = changed(|result| {
        result["metrics"]["ttft_ms"] = json!({"mean": 50.0, "min": 60.0, "p50": 70.0, "p95": 65.0, "max": 80.0});
        result["metrics"]["e2e_latency_ms"] = json!({"p50": 60.0, "p95": 70.0});
        result["metrics"]["tpot_ms"] = json!({"p50": -1.0});
        result["metrics"]["p99_ms"] = json!(-3);
        result["metrics"]["throughput_tokens_per_s"] = json!(-0.5);
    });
    let mut found = faults(&document);
    found.sort();
    assert_eq!(
        found,
        [
            "error schema/inconsistent /metrics/ttft_ms/mean",
            "error schema/inconsistent /metrics/ttft_ms/p50",
            "error schema/inconsistent /metrics/ttft_ms/p95",
            "error schema/range /metrics/p99_ms",
            "error schema/range /metrics/throughput_tokens_per_s",
            "error schema/range /metrics/tpot_ms/p50",
        ]
    );
}

#[test]
fn what_is_optional_is_a_warning_when_it_is_left_out() {
    let document = changed(|result| {
        let result = result.as_object_mut().unwrap();
        result.retain(|name, _| !["project", "strategy", "quality"].contains(&name.as_str()));
        result.insert("evidence_level".to_owned(), json!("excellent"));
        result["metrics"].as_object_mut().unwrap().retain(|name, _| name.contains("ttft") || name.contains("e2e"));
        result["metrics"]["acceptance_rate"] = json!(0.7);
        result["config"].as_object_mut().unwrap().retain(|name, _| !name.contains("_tokens"));
    });
    let mut found = faults(&document);
    found.sort();
    assert_eq!(
        found,
        [
            "warning schema/enum /evidence_level",
            "warning schema/misplaced-strategy-metric /metrics/acceptance_rate",
            "warning schema/not-collected /config/generated_tokens",
            "warning schema/not-collected /config/prompt_tokens",
            "warning schema/not-collected /metrics/p99_ms",
            "warning schema/not-collected /metrics/peak_memory_mb",
            "warning schema/not-collected /metrics/throughput_tokens_per_s",
            "warning schema/not-collected /metrics/tpot_ms",
            "warning schema/not-collected /project",
            "warning schema/not-collected /quality",
            "warning schema/not-collected /strategy",
        ]
    );
}

#[test]
fn a_misspelt_member_is_recognized() {
    let document = changed(|result| {
        let config = result["config"].as_object_mut().unwrap();
        let model = config.remove("model").unwrap();
        config.insert("modle".to_owned(), model);
    });
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.json"), document.to_string()).unwrap();
    let mut command = verify(folder.path());
    command.args(["schema", "x.json"]);
    let (_, report) = report(command);
    let finding = findings(&report, Some("error")).next().unwrap();
    assert_eq!(finding["help"], "did you mean `model` where `modle` stands?");
}

#[test]
fn by_folder_other_contracts_are_skipped_and_by_name_they_fail() {
    // Outside the repository, whose own settings exclude the fixtures.
    let legacy = scratch(&project("fixtures/legacy-results"));
    let run = |paths: &[&str]| {
        let mut command = verify(legacy.path());
        command.arg("schema").args(paths);
        report(command)
    };
    let (code, by_folder) = run(&["other-contracts"]);
    assert_eq!(code, 0);
    assert!(verdicts(&by_folder).values().all(|verdict| verdict == "skipped"), "{by_folder:#}");
    assert_eq!(run(&["--level", "compat", "other-contracts"]).0, 0);
    let (code, by_name) = run(&["other-contracts/73_real_gpu_training.json"]);
    assert_eq!(code, 1);
    assert_eq!(findings(&by_name, None).next().unwrap()["rule"], "schema/other-contract");
}

#[test]
fn a_folder_without_results_is_a_usage_fault_and_an_empty_results_folder_a_skip() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    verify(folder.path()).args(["schema", "empty"]).assert().code(2);
    verify(folder.path()).args(["schema", "*.json"]).assert().code(2);
    let mut command = verify(folder.path());
    command.arg("schema");
    let (code, report) = report(command);
    assert_eq!((code, report["status"].as_str()), (0, Some("skipped")));
}

/// The results folder of a scratch course with one project's files.
fn course(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, source) in files {
        let path = folder.path().join("benchmarks/results").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(project(source), path).unwrap();
    }
    folder
}

const GOOD: &str = "fixtures/cases/schema/valid-scalar-latencies/input/x.json";
const FAILURE: &str = "fixtures/cases/schema/failure-record/input/x.json";

#[test]
fn the_chain_judges_the_chosen_projects_and_demands_results_only_when_asked() {
    let folder = course(&[
        ("66_vllm_real.json", GOOD),
        ("70_scheduler.json", FAILURE),
        ("66_vllm_real.failure.json", FAILURE),
        ("history/66_vllm_real.old.json", FAILURE),
    ]);
    let run = |more: &[&str]| {
        let mut command = verify(folder.path());
        command.args(["all", "--only", "schema"]).args(more);
        let (code, report) = report(command);
        (code, verdicts(&report))
    };
    let result = |name: &str| format!("benchmarks/results/{name}");
    let (code, all) = run(&[]);
    assert_eq!(code, 1);
    assert_eq!(all[&result("66_vllm_real.failure.json")], "skipped");
    assert_eq!(all[&result("70_scheduler.json")], "failed");
    assert_eq!(all.len(), 3, "{all:?}");
    let (code, chosen) = run(&["--project", "66"]);
    assert_eq!((code, chosen.len()), (0, 1));
    assert_eq!(run(&["--project", "67"]), (0, BTreeMap::new()));
    let (code, demanded) = run(&["--project", "67", "--require-results"]);
    assert_eq!((code, demanded[&result("67_quantized_deployment.json")].as_str()), (1, "failed"));
}

#[test]
fn a_result_whose_last_run_failed_is_marked() {
    let folder = course(&[("66_vllm_real.json", GOOD)]);
    let record = folder.path().join("benchmarks/results/66_vllm_real.failure.json");
    fs::write(&record, r#"{"failure": {"failure_reason": "the server went away"}}"#).unwrap();
    let run = || {
        let mut command = verify(folder.path());
        command.args(["schema"]);
        report(command)
    };
    let (code, document) = run();
    let finding = &document["stages"][0]["findings"][0];
    assert_eq!(
        (code, finding["rule"].as_str(), finding["severity"].as_str()),
        (0, Some("schema/failed-since"), Some("warning"))
    );
    assert_eq!(finding["path"], "benchmarks/results/66_vllm_real.json");
    assert!(finding["message"].as_str().unwrap().contains("the server went away"), "{finding}");
    fs::write(&record, "torn").unwrap();
    assert!(run().1["stages"][0]["findings"][0]["message"].as_str().unwrap().contains("does not say why"));
    fs::remove_file(&record).unwrap();
    assert!(targets(&run().1, "warning").is_empty());
}

#[test]
fn print_schema_prints_the_committed_schema() {
    let output = verify(Path::new(".")).args(["schema", "--print-schema"]).output().unwrap();
    let committed = fs::read(project("schemas/inference-benchmark-v1.schema.json")).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&committed));
}

/// The published schema says as much of the contract as a schema can: it takes every
/// file that the gate takes, and refuses those whose faults a schema can express.
#[rstest]
fn the_published_schema_agrees_with_the_gate(#[files("fixtures/cases/schema/*/case.json")] path: PathBuf) {
    let folder = path.parent().unwrap();
    let schema = verify::results::v1::json_schema().to_value();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let case = case(folder);
    for (file, verdict) in case["expect"]["files"].as_object().unwrap() {
        let Ok(text) = fs::read_to_string(folder.join(file)) else { continue };
        let Ok(document) = serde_json::from_str::<Value>(&text) else { continue };
        let beyond = ["duplicate-key", "number-overflow", "percentiles-out-of-order", "strict-dtype-unknown"];
        let expected = verdict == "ok" || beyond.contains(&case["id"].as_str().unwrap());
        let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert_eq!(errors.is_empty(), expected, "{file}: {errors:?}");
    }
}

#[test]
fn what_our_writer_writes_passes_the_gate_and_leaves_nothing_out() {
    use verify::results::v1::{Config, Latency, Metrics, NormalizedResult, envelope, to_text};
    let latency = |p50| Some(Latency { n: Some(1), mean: Some(p50), p50: Some(p50), ..Latency::default() });
    let result = NormalizedResult {
        project: Some("66".to_owned()),
        strategy: Some("baseline".to_owned()),
        config: Config {
            model: "m".to_owned(),
            backend: "cpu".to_owned(),
            dtype: "q8_0".to_owned(),
            ..Config::default()
        },
        metrics: Metrics { ttft_ms: latency(3.0), e2e_latency_ms: latency(9.0), ..Metrics::default() },
        ..NormalizedResult::default()
    };
    let document = envelope(serde_json::Map::new(), &result);
    assert_eq!(document["normalized_result"]["metrics"]["peak_memory_mb"], Value::Null);
    assert!(document["normalized_result"]["metrics"].as_object().unwrap().contains_key("tpot_ms"));
    assert_eq!(faults(&document), Vec::<String>::new());
    assert!(to_text(&document).ends_with("}\n"));
}

#[rstest]
#[case("several-faults", "en")]
#[case("several-faults", "zh")]
#[case("manifest-with-groups", "en")]
#[case("raw-report-not-migrated", "en")]
#[case("failure-record", "zh")]
#[case("merge-conflict", "en")]
#[case("duplicate-key", "zh")]
fn people_see_the_place_and_the_remedy(#[case] id: &str, #[case] lang: &str) {
    let folder = scratch(&project("fixtures/cases/schema").join(id));
    let mut command = verify(folder.path());
    let case = case(folder.path());
    let output = command.args(["--lang", lang]).args(args(&case)).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    insta::with_settings!({ filters => vec![(r"\([\d.]+ m?s\)", "(TIME)")] }, {
        insta::assert_snapshot!(format!("schema-{id}-{lang}"), text);
    });
}

#[test]
fn limits_and_excludes_come_from_the_settings() {
    let folder = course(&[("66_vllm_real.json", GOOD), ("drafts/67.json", FAILURE)]);
    fs::write(folder.path().join("verify.toml"), "[schema]\nmax_bytes = 100\n[course]\nexclude = [\"**/drafts\"]\n")
        .unwrap();
    let mut command = verify(folder.path());
    command.args(["schema", "benchmarks/results/66_vllm_real.json", "benchmarks/results/drafts/67.json"]);
    let (code, report) = report(command);
    let found: Vec<&str> = findings(&report, None).map(|finding| finding["rule"].as_str().unwrap()).collect();
    assert_eq!((code, found), (1, vec!["json/too-large", "run/excluded"]));
}

#[test]
fn bytes_that_are_no_utf8_are_named_by_their_encoding() {
    let folder = tempfile::tempdir().unwrap();
    let wide: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(folder.path().join("wide.json"), wide).unwrap();
    let mut bytes = b"\xef\xbb\xbf".to_vec();
    bytes.extend(fs::read(project(GOOD)).unwrap());
    fs::write(folder.path().join("bom.json"), bytes).unwrap();
    let mut command = verify(folder.path());
    command.args(["schema", "wide.json", "bom.json"]);
    let (_, report) = report(command);
    assert_eq!(
        verdicts(&report),
        BTreeMap::from([("bom.json".into(), "ok".into()), ("wide.json".into(), "failed".into())])
    );
    let messages: Vec<&str> = findings(&report, None).map(|finding| finding["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["the file starts with a byte order mark", "the file is not UTF-8: it is UTF-16"]);
}

/// A pipe without a writer would be waited for, deaf to signals; none is ever opened.
#[cfg(unix)]
#[rstest]
#[case(&["schema", "f.json"])]
#[case(&["normalize", "f.json"])]
#[case(&["compare", "f.json", "f.json"])]
#[case(&["conclude", "f.json"])]
#[case(&["conclude", "a.json", "--baseline", "f.json"])]
#[case(&["schema", "/dev/null"])]
fn a_pipe_or_device_is_a_fault_of_usage_and_is_not_opened(#[case] args: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.json"), "{}").unwrap();
    assert!(std::process::Command::new("mkfifo").arg(folder.path().join("f.json")).status().unwrap().success());
    let output = verify(folder.path()).args(args).timeout(std::time::Duration::from_secs(20)).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("is neither a regular file nor a folder"), "{text}");
    // Found by folder it is passed over.
    let mut command = verify(folder.path());
    command.args(["schema", "."]).timeout(std::time::Duration::from_secs(20));
    assert_eq!(verdicts(&report(command).1).into_keys().collect::<Vec<_>>(), ["a.json"]);
}

#[test]
fn a_mistyped_name_is_answered_with_the_near_one() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["README.md", "67.json"] {
        fs::write(folder.path().join(name), "{}").unwrap();
    }
    let said =
        |name: &str| String::from_utf8(verify(folder.path()).args(["schema", name]).output().unwrap().stdout).unwrap();
    assert!(said("README.mdd").contains("did you mean `README.md`?"));
    // Another number is another measurement.
    assert!(said("66.json").contains("run the measurement"));
}
