//! Cases of this domain: `fixtures/cases/policy`; thresholds, chain, comparison.

use crate::support::{args, case, findings, project, report, scratch, verify};
use rstest::rstest;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn rules(report: &Value, severity: Option<&str>) -> BTreeSet<String> {
    findings(report, severity).map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect()
}

fn wanted(list: &Value) -> BTreeSet<String> {
    list.as_array().unwrap().iter().map(|rule| rule.as_str().unwrap().to_owned()).collect()
}

#[rstest]
fn case_is_judged_as_it_should(#[files("fixtures/cases/policy/*/case.json")] path: PathBuf) {
    let folder = path.parent().unwrap();
    let case = case(folder);
    let copy = scratch(folder);
    let mut command = verify(copy.path());
    command.args(args(&case));
    let (code, report) = report(command);
    let expect = &case["expect"];
    assert_eq!(rules(&report, None), wanted(&expect["findings"]), "{report:#}");
    assert_eq!(rules(&report, Some("error")), wanted(&expect["errors"]), "{report:#}");
    assert_eq!(rules(&report, Some("warning")), wanted(&expect["warnings"]), "{report:#}");
    assert_eq!(report["stages"][0]["items"][0]["max_decision"], expect["max_decision"]);
    assert_eq!(Some(i64::from(code)), expect["exit"].as_i64());
}

/// Candidate and baseline that show everything.
struct Pair {
    candidate: Value,
    baseline: Value,
    settings: &'static str,
}

impl Pair {
    fn new() -> Self {
        let read = |name: &str| {
            let path = project("fixtures/cases/policy/accept-everything-shown/input").join(name);
            serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
        };
        Pair { candidate: read("candidate.json"), baseline: read("baseline.json"), settings: "" }
    }

    fn candidate(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.candidate["normalized_result"]);
        self
    }

    fn baseline(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.baseline["normalized_result"]);
        self
    }

    fn folder(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("c.json", &self.candidate.to_string());
        write("c.baseline.json", &self.baseline.to_string());
        write("verify.toml", self.settings);
        folder
    }

    /// Rules that fire, the highest allowed decision, the exit code.
    fn judge(&self) -> (Vec<String>, String, i32) {
        let folder = self.folder();
        let mut command = verify(folder.path());
        command.args(["conclude", "c.json"]);
        let (code, report) = report(command);
        let rules = rules(&report, None).into_iter().map(|rule| rule.replace("evidence/", "")).collect();
        (rules, report["stages"][0]["items"][0]["max_decision"].as_str().unwrap().to_owned(), code)
    }
}

fn judged(rules: &[&str], allowed: &str, code: i32) -> (Vec<String>, String, i32) {
    (rules.iter().map(|rule| (*rule).to_owned()).collect(), allowed.to_owned(), code)
}

#[test]
fn the_baseline_beside_the_result_is_taken() {
    assert_eq!(Pair::new().judge(), judged(&[], "accept", 0));
}

#[test]
fn a_client_beyond_its_limits_carries_no_accept() {
    let of = |within: Value| Pair::new().candidate(|result| result["metrics"]["client_within_limits"] = within);
    assert_eq!(of(json!(false)).judge(), judged(&["client-error"], "tune", 1));
    assert_eq!(of(json!(true)).judge(), judged(&[], "accept", 0));
    assert_eq!(of(Value::Null).judge(), judged(&[], "accept", 0), "other tools do not look");
}

#[test]
fn probes_that_ran_are_not_asked_for_again() {
    let next = |change: fn(&mut Value)| {
        let folder = Pair::new().candidate(change).folder();
        let mut command = verify(folder.path());
        command.args(["conclude", "c.json"]);
        report(command).1["stages"][0]["items"][0]["next_steps"].to_string()
    };
    let floor = next(|result| result["quality"]["floor"] = Value::Null);
    assert!(floor.contains("state a floor") && !floor.contains("probes"), "{floor}");
    let nothing = next(|result| result["quality"] = json!({ "status": "not_collected" }));
    assert!(nothing.contains("5 quality probes"), "{nothing}");
}

#[test]
fn memory_is_held_against_its_budget() {
    let pair = Pair::new().candidate(|result| result["metrics"]["peak_memory_mb"] = json!(11_500));
    assert_eq!(pair.judge(), judged(&["budget-exceeded"], "tune", 1));
    // A violated limit carries reject.
    let pair = pair.candidate(|result| result["decision"]["decision"] = json!("reject"));
    assert_eq!(pair.judge(), judged(&["budget-exceeded"], "tune", 0));
}

#[test]
fn a_changed_critical_field_leaves_reject() {
    let pair = Pair::new().candidate(|result| {
        result["quality"]["fields"] = json!([
            {"name": "amount", "critical": true, "match": 0.9},
            {"name": "note", "critical": false, "match": 0.5},
        ]);
    });
    assert_eq!(pair.judge(), judged(&["critical-field-changed"], "reject", 1));
}

#[test]
fn a_floor_may_be_a_ceiling() {
    let loss = |value: f64| {
        Pair::new().candidate(|result| {
            result["quality"] =
                json!({"metric": "task_loss", "value": value, "floor": 2.0, "direction": "lower", "probes": 8});
        })
    };
    assert_eq!(loss(1.9).judge(), judged(&[], "accept", 0));
    assert_eq!(loss(2.1).judge(), judged(&["quality-below-floor"], "reject", 1));
}

#[test]
fn the_rest_of_the_rules_fire_on_what_they_are_about() {
    let candidate = |change: fn(&mut Value)| Pair::new().candidate(change).judge();
    assert_eq!(candidate(|r| r["metrics"]["failed_requests"] = json!(1)), judged(&["failed-requests"], "tune", 1));
    assert_eq!(candidate(|r| r["decision"]["targets"] = json!([])), judged(&["target-missing"], "tune", 1));
    assert_eq!(candidate(|r| r["config"]["dtype"] = json!("auto")), judged(&["placeholder"], "tune", 1));
    assert_eq!(candidate(|r| r["config"]["device"] = json!(null)), judged(&["environment-missing"], "tune", 1));
    assert_eq!(
        candidate(|r| r["metrics"]["output_tokens_mean"] = json!(70)),
        judged(&["output-length-differs"], "tune", 1)
    );
    assert_eq!(candidate(|r| r["decision"]["next_action"] = json!("")), judged(&["reason-missing"], "accept", 0));
    assert_eq!(candidate(|r| r["metrics"]["per_run"] = json!([])), judged(&["unstable"], "tune", 1));
    assert_eq!(
        candidate(|r| r["decision"]["targets"] = json!([{"metric": "nonsense", "op": "<=", "value": 1}])),
        judged(&["objective-mismatch", "target-missed"], "tune", 1)
    );
    assert_eq!(
        candidate(|r| r["decision"]["decision"] = json!("reject")),
        judged(&["reject-without-evidence"], "accept", 1)
    );
}

#[test]
fn linked_settings_are_one_variable_and_names_of_workloads_are_none() {
    let pair = Pair::new()
        .candidate(|result| {
            result["config"]["enforce_eager"] = json!(true);
            result["config"]["dtype"] = json!("int4");
            result["config"]["quantization_format"] = json!("awq");
            result["config"]["workload"] = json!("renamed.jsonl");
        })
        .baseline(|result| result["config"]["quantization_format"] = json!("none"));
    assert_eq!(pair.judge(), judged(&[], "accept", 0));
}

#[test]
fn speculation_and_scheduling_have_to_be_shown() {
    let speculative = Pair::new().candidate(|result| {
        result["project"] = json!("68_speculative_decoding");
        result["config"]["draft_model"] = json!("draft");
        result["config"]["enforce_eager"] = json!(true);
        result["strategy_metrics"] = json!({"acceptance_rate": 0.7});
    });
    assert_eq!(speculative.judge(), judged(&["68-verify-cost-missing"], "tune", 1));
    let load = Pair::new().candidate(|result| {
        result["project"] = json!(70);
        result["config"]["enforce_eager"] = json!(true);
        result["config"]["concurrency"] = json!(8);
        result["strategy_metrics"] = json!({"fairness": 0.9});
        result["decision"]["decision"] = json!("tune");
    });
    assert_eq!(load.judge(), judged(&["70-load-sensitivity-only"], "not_evaluated", 0));
}

#[test]
fn thresholds_come_from_the_settings_and_are_stored() {
    let mut pair = Pair::new().candidate(|result| result["metrics"]["samples"] = json!(12));
    assert_eq!(pair.judge(), judged(&["too-few-samples"], "tune", 1));
    pair.settings = "[conclude]\nmin_samples = 10\n";
    assert_eq!(pair.judge(), judged(&[], "accept", 0));
    let folder = pair.folder();
    let mut command = verify(folder.path());
    command.args(["conclude", "c.json"]);
    assert_eq!(report(command).1["stages"][0]["items"][0]["thresholds"]["min_samples"], json!(10.0));
}

#[test]
fn a_section_of_ones_own_has_to_show_what_its_profile_lists() {
    let mut pair = Pair::new().candidate(|result| result["project"] = json!("71"));
    pair.settings = "[[project]]\nid = 71\nresult = \"71.json\"\nstrategy_metrics = [\"overlap_ratio\"]\n";
    assert_eq!(pair.judge(), judged(&["strategy-metric-missing"], "tune", 1));
}

#[test]
fn what_is_no_result_is_never_concluded_on() {
    for file in
        ["07_raw_all_requests_failed.json", "08_failure_record_backend_start.json", "13_manifest_69_prefix_cache.json"]
    {
        let folder = scratch(&project("fixtures/legacy-results"));
        let mut command = verify(folder.path());
        command.args(["conclude", file]);
        let (code, report) = report(command);
        assert_eq!(code, 1, "{file}");
        assert_eq!(report["stages"][0]["items"][0]["max_decision"], "not_evaluated", "{file}");
    }
}

#[test]
fn the_chain_takes_the_enlarged_workload_and_says_what_was_not_measured() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("benchmarks/results");
    fs::create_dir_all(&results).unwrap();
    let run = || {
        let mut command = verify(folder.path());
        command.args(["all", "--only", "conclude", "--project", "66,67"]);
        report(command)
    };
    let (code, nothing) = run();
    assert_eq!((code, nothing["status"].as_str()), (0, Some("skipped")));
    fs::write(results.join("66_vllm_real.json"), "{}").unwrap();
    fs::write(results.join("66_vllm_real.bench.json"), pair.candidate.to_string()).unwrap();
    fs::write(results.join("66_vllm_real.baseline.json"), pair.baseline.to_string()).unwrap();
    let (code, report) = run();
    let items = &report["stages"][0]["items"];
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(items[0]["path"], "benchmarks/results/66_vllm_real.bench.json");
    assert_eq!((items[0]["max_decision"].as_str(), items[0]["project"].as_u64()), (Some("accept"), Some(66)));
    assert_eq!(
        (items[1]["status"].as_str(), items[1]["max_decision"].as_str()),
        (Some("skipped"), Some("not_evaluated"))
    );
}

#[test]
fn a_folder_is_judged_without_its_baselines() {
    let folder = Pair::new().folder();
    let mut command = verify(folder.path());
    command.args(["conclude", "."]);
    let (code, report) = report(command);
    let items: Vec<(&str, &str)> = report["stages"][0]["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["path"].as_str().unwrap(), item["status"].as_str().unwrap()))
        .collect();
    assert_eq!((code, items), (0, vec![("c.baseline.json", "skipped"), ("c.json", "ok")]));
}

fn shown(folder: &Path, arguments: &[&str]) -> String {
    let output = verify(folder).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[rstest]
#[case("documented-smoke-accept", "en")]
#[case("documented-smoke-accept", "zh")]
#[case("68-smoke-tune", "en")]
fn people_see_claim_ceiling_reasons_and_the_next_step(#[case] id: &str, #[case] lang: &str) {
    // Outside the repository, whose own settings exclude the fixtures.
    let folder = scratch(&project("fixtures/cases/policy").join(id));
    let text = shown(
        folder.path(),
        &["--lang", lang, "conclude", "input/candidate.json", "--baseline", "input/baseline.json"],
    );
    insta::with_settings!({ filters => vec![(r"\([\d.]+ m?s\)", "(TIME)")] }, {
        insta::assert_snapshot!(format!("conclude-{id}-{lang}"), text);
    });
}

#[rstest]
#[case("accept-everything-shown", "en")]
#[case("memory-scopes-differ", "zh")]
#[case("other-device", "en")]
#[case("documented-smoke-accept", "en")]
fn compare_shows_four_groups_and_the_boundary(#[case] id: &str, #[case] lang: &str) {
    let folder = project("fixtures/cases/policy").join(id);
    let text = shown(&folder, &["--lang", lang, "compare", "input/baseline.json", "input/candidate.json"]);
    insta::assert_snapshot!(format!("compare-{id}-{lang}"), text);
}

#[test]
fn compare_withholds_differences_that_mean_nothing() {
    let compared = |id: &str| {
        let folder = project("fixtures/cases/policy").join(id);
        let text = shown(&folder, &["--format", "json", "compare", "input/baseline.json", "input/candidate.json"]);
        serde_json::from_str::<Value>(&text).unwrap()["results"][1].take()
    };
    let same = compared("accept-everything-shown");
    assert_eq!(same["comparable"], true);
    assert!((same["change"]["throughput_tokens_per_s"].as_f64().unwrap() - 0.21259).abs() < 1e-4, "{same:#}");
    for id in ["workload-differs", "other-device", "cold-against-warm"] {
        let other = compared(id);
        assert_eq!(
            (&other["comparable"], &other["change"]["throughput_tokens_per_s"]),
            (&json!(false), &Value::Null),
            "{id}"
        );
    }
    let scopes = compared("memory-scopes-differ");
    assert_eq!((&scopes["comparable"], &scopes["memory"]["change"]), (&json!(true), &Value::Null));
}

#[test]
fn compare_refuses_what_is_no_result() {
    let folder = project("fixtures/legacy-results");
    verify(&folder)
        .args(["compare", "11_enveloped_new_run.json", "01_raw_early_c1_results_null.json"])
        .assert()
        .code(1);
    verify(&folder)
        .args(["compare", "09_bare_v1_early_normalizer_output.json", "11_enveloped_new_run.json"])
        .assert()
        .success();
}

#[test]
fn compare_complains_in_the_form_of_the_other_commands() {
    let folder = Pair::new().folder();
    let said = |lang: &str| {
        let output = verify(folder.path()).args(["--lang", lang, "compare", "nope", "c.json"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(said("en").starts_with("error[schema/file-missing]: nope does not exist\n  help: "), "{}", said("en"));
    assert!(said("zh").contains("\n  建议: "), "{}", said("zh"));
}

#[test]
fn explain_shows_no_bare_template_and_lists_a_group() {
    let folder = tempfile::tempdir().unwrap();
    let said = |args: &[&str]| {
        let output = verify(folder.path()).arg("explain").args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    for lang in ["en", "zh"] {
        let (code, text) = said(&["schema/missing", "--lang", lang]);
        assert!(code == Some(0) && text.contains("<target>") && !text.contains("{target}"), "{text}");
    }
    let (code, text) = said(&["links"]);
    assert_eq!(code, Some(0));
    assert!(text.lines().count() > 3 && text.lines().all(|line| line.starts_with("links/")), "{text}");
    assert_eq!(said(&["linkz"]).0, Some(2));
}
