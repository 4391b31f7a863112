//! The example course is what the profile says it is and passes; the broken one shows
//! each planted fault and blocks what comes after it.

use crate::support::{findings, project, report, scratch, verify};
use rstest::rstest;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use verify::config::{self, Settings};
use verify::notebook::{CellKind, Notebook};

fn course() -> PathBuf {
    project("fixtures/course")
}

fn settings() -> Settings {
    config::resolve(&course(), None).unwrap().settings
}

/// A scratch copy of a course without what a smoke run of a developer left there.
pub(crate) fn clean_copy(folder: &str) -> tempfile::TempDir {
    let copy = scratch(&project(folder));
    let results = copy.path().join("benchmarks/results");
    let ignored = ignored_in(copy.path());
    for entry in fs::read_dir(&results).unwrap() {
        let path = entry.unwrap().path();
        if ignored.matched_path_or_any_parents(&path, path.is_dir()).is_ignore() {
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.unwrap();
        }
    }
    copy
}

fn ignored_in(root: &Path) -> ignore::gitignore::Gitignore {
    let mut builder = ignore::gitignore::GitignoreBuilder::new(root);
    assert!(builder.add(root.join(".gitignore")).is_none(), "the course has a readable .gitignore");
    builder.build().unwrap()
}

/// Every file below a folder with its bytes.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = walkdir::WalkDir::new(folder).into_iter().map(|entry| entry.unwrap().into_path());
    files.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

fn stage<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["stages"].as_array().unwrap().iter().find(|stage| stage["stage"] == name).unwrap()
}

#[test]
fn every_project_has_its_notebook_its_page_its_workload_and_a_switch_that_is_off() {
    for section in settings().project {
        let notebook = Notebook::read(&fs::read(course().join(&section.notebook)).unwrap()).unwrap();
        let switch = format!("{} = False", section.switch);
        assert!(notebook.cells.iter().any(|cell| cell.source.contains(&switch)), "{}: {switch}", section.id);
        assert!(course().join(&section.page).is_file(), "{}", section.page);
        let rows = rows(&section.workload);
        assert!(rows.len() >= section.requests as usize, "{}: too few prompts", section.workload);
    }
}

/// The rows of a workload; ids are unique, prompts are not empty.
fn rows(workload: &str) -> Vec<Value> {
    let text = fs::read_to_string(course().join(workload)).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), rows.len(), "{workload}: an id occurs twice");
    for row in &rows {
        assert!(!row["prompt"].as_str().unwrap().trim().is_empty());
        assert!(row["max_tokens"].as_u64().unwrap() > 0);
    }
    rows
}

#[test]
fn the_prompts_of_the_prefix_workload_share_a_long_prefix_and_nothing_else() {
    let rows = rows("benchmarks/workloads/shared_prefix.jsonl");
    let prompts: Vec<&str> = rows.iter().map(|row| row["prompt"].as_str().unwrap()).collect();
    let shared = prompts[0].bytes().zip(prompts[1].bytes()).take_while(|(a, b)| a == b).count();
    let prefix = &prompts[0][..prompts[0][..shared].rfind(". ").unwrap() + 2];
    assert!(prefix.split_whitespace().count() >= 150);
    let mut rest: Vec<&str> = prompts.iter().map(|prompt| prompt.strip_prefix(prefix).unwrap()).collect();
    rest.sort_unstable();
    rest.dedup();
    assert_eq!(rest.len(), prompts.len());
}

#[test]
fn the_pages_show_the_code_of_their_notebooks() {
    for section in settings().project {
        let notebook = Notebook::read(&fs::read(course().join(&section.notebook)).unwrap()).unwrap();
        let page = fs::read_to_string(course().join(&section.page)).unwrap();
        for cell in notebook.cells.iter().filter(|cell| cell.kind == CellKind::Code) {
            let block = format!("```python\n{}\n```", cell.source);
            assert!(page.contains(&block), "{} lacks cell {} of its notebook", section.page, cell.number);
        }
    }
}

#[test]
fn what_a_smoke_run_writes_is_ignored_and_what_is_published_is_not() {
    let ignored = ignored_in(&course());
    let is_ignored = |path: &str| ignored.matched_path_or_any_parents(course().join(path), false).is_ignore();
    for section in settings().project {
        let stem = section.result.strip_suffix(".json").unwrap();
        for name in ["", ".baseline", ".bench", ".failure", ".baseline.failure"] {
            assert!(is_ignored(&format!("benchmarks/results/{stem}{name}.json")), "{stem}{name}");
        }
    }
    assert!(is_ignored("benchmarks/results/history/66_vllm_real.20261130T120000000Z.json"));
    assert!(!is_ignored("benchmarks/results/published/66_reference_c1.json"));
}

/// A tool of the course, run by Python.
fn tool(name: &str) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(if cfg!(windows) { "python" } else { "python3" });
    command.current_dir(course()).env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONUTF8", "1");
    command.arg(format!("tools/{name}.py"));
    command
}

#[test]
fn the_runtime_tool_plans_what_the_profile_says() {
    for section in settings().project {
        let mut command = tool("inference_project_runtime");
        command.args(["--project", &section.id.to_string(), "--dry-run", "--", "server", "{port}"]);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains(&format!("workload: {}\n", section.workload)), "{said}");
        assert!(said.contains(&format!("concurrency: {}\n", section.concurrency)), "{said}");
        assert!(said.contains(&format!("result: benchmarks/results/{}\n", section.result)), "{said}");
    }
}

#[test]
fn the_schema_tool_takes_what_is_published_and_refuses_what_is_broken() {
    let published = course().join("benchmarks/results/published");
    for entry in fs::read_dir(published).unwrap() {
        tool("inference_result_schema").arg(entry.unwrap().path()).assert().success();
    }
    let broken = project("fixtures/course-broken/benchmarks/results/published/66_missing_ttft.json");
    tool("inference_result_schema").arg(broken).assert().code(1).stdout(predicates::str::contains("metrics.ttft_ms"));
}

#[test]
fn the_measuring_tool_says_that_nobody_answers() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("66.json");
    let mut command = tool("benchmark_inference_backend");
    command.args(["--base-url", &format!("http://{unused}"), "--workload", "benchmarks/workloads/fixed.jsonl"]);
    command.arg("--output").arg(&output);
    command.assert().code(1).stderr(predicates::str::contains("无法测量"));
    assert!(!output.exists());
}

#[test]
fn the_example_course_passes_and_stays_as_it_was() {
    let copy = clean_copy("fixtures/course");
    let before = tree(copy.path());
    let mut command = verify(copy.path());
    command.arg("all");
    let (code, report) = report(command);
    let wrong: Vec<&Value> = findings(&report, None).filter(|finding| finding["severity"] != "note").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((code, &report["status"]), (0, &Value::from("pass")));
    for name in ["static", "answers", "links", "schema"] {
        assert_eq!(stage(&report, name)["status"], "pass", "{name}");
    }
    assert_eq!(stage(&report, "smoke")["status"], "skipped");
    assert!(!stage(&report, "smoke")["reason"].as_str().unwrap().is_empty());
    assert_eq!(stage(&report, "answers")["summary"], serde_json::json!({"pass": 5}));
    assert!(tree(copy.path()) == before, "the run changed the course");
}

#[test]
fn every_question_of_the_example_course_is_still_open() {
    let copy = clean_copy("fixtures/course");
    let mut command = verify(copy.path());
    command.args(["answers", "--mode", "question"]);
    let (code, report) = report(command);
    let items = stage(&report, "answers")["items"].as_array().unwrap();
    let statuses: Vec<&str> = items.iter().map(|item| item["status"].as_str().unwrap()).collect();
    assert_eq!((code, statuses), (0, vec!["expected_fail"; 5]));
}

/// Stage, file, cell, line, and a rule or what its id begins with.
#[rstest]
#[case::a_full_width_bracket("static", "00_Prerequisites/01_Python_Warmup.ipynb", Some(3), Some(2), "static/")]
#[case::a_wrong_answer(
    "answers",
    "02_PyTorch_Algorithms/69_Prefix_Caching_Benchmark.ipynb",
    Some(4),
    Some(4),
    "answers/test-failed"
)]
#[case::a_page_that_was_not_written("links", "docs/index.md", None, Some(4), "links/missing-file")]
#[case::a_result_without_ttft(
    "schema",
    "benchmarks/results/published/66_missing_ttft.json",
    None,
    None,
    "schema/missing"
)]
#[case::accept_over_a_smoke_run(
    "conclude",
    "benchmarks/results/69_prefix_cache.json",
    None,
    None,
    "evidence/level-too-low"
)]
fn each_stage_shows_its_planted_fault_and_nothing_else(
    #[case] name: &str,
    #[case] path: &str,
    #[case] cell: Option<u64>,
    #[case] line: Option<u64>,
    #[case] rule: &str,
) {
    let copy = clean_copy("fixtures/course-broken");
    let mut command = verify(copy.path());
    command.args(["all", "--only", name]);
    let (code, report) = report(command);
    let errors: Vec<&Value> = findings(&report, Some("error")).collect();
    assert_eq!((code, errors.len()), (1, 1), "{errors:#?}");
    let fault = errors[0];
    assert_eq!(fault["path"], path);
    assert!(fault["rule"].as_str().unwrap().starts_with(rule), "{fault:#}");
    assert_eq!(fault["cell"].as_u64(), cell, "{fault:#}");
    if line.is_some() {
        assert_eq!(fault["line"].as_u64(), line, "{fault:#}");
    }
}

#[test]
fn the_smoke_stage_shows_a_backend_that_exits_at_once() {
    let copy = clean_copy("fixtures/course-broken");
    let mut command = verify(copy.path());
    command.args(["all", "--only", "smoke"]);
    let (code, report) = report(command);
    let errors: Vec<&Value> = findings(&report, Some("error")).collect();
    assert_eq!((code, errors.len()), (1, 1), "{errors:#?}");
    let said = format!("{} {}", errors[0]["message"], errors[0]["help"]);
    assert!(said.contains("exit code 1") && said.contains("model file is damaged"), "{said}");
    let results = "benchmarks/results/69_prefix_cache";
    let bytes = |folder: &Path, end: &str| fs::read(folder.join(format!("{results}{end}"))).unwrap();
    assert!(
        bytes(copy.path(), ".json") == bytes(&project("fixtures/course-broken"), ".json"),
        "the result was touched"
    );
    assert!(!bytes(copy.path(), ".failure.json").is_empty());
}

#[test]
fn the_first_fault_blocks_every_later_stage() {
    let copy = clean_copy("fixtures/course-broken");
    let mut command = verify(copy.path());
    command.arg("all");
    let (code, report) = report(command);
    assert_eq!(code, 1);
    assert_eq!(stage(&report, "static")["status"], "fail");
    for name in ["answers", "links", "smoke", "schema", "conclude"] {
        let stage = stage(&report, name);
        assert_eq!((&stage["status"], &stage["blocked_by"]), (&"blocked".into(), &"static".into()), "{name}");
    }
}

#[test]
fn keep_going_shows_a_fault_in_every_stage_and_still_exits_1() {
    let copy = clean_copy("fixtures/course-broken");
    let mut command = verify(copy.path());
    command.args(["all", "--keep-going"]);
    let (code, report) = report(command);
    assert_eq!(code, 1);
    let stages = report["stages"].as_array().unwrap();
    assert!(stages.iter().all(|stage| stage["status"] == "fail"), "{report:#}");
    for stage in stages {
        let errors: Vec<&Value> =
            stage["findings"].as_array().unwrap().iter().filter(|finding| finding["severity"] == "error").collect();
        assert_eq!(errors.len(), 1, "{}: {errors:#?}", stage["stage"]);
    }
}

#[test]
fn the_historical_results_of_the_course_migrate_and_stay_as_they_were() {
    let copy = clean_copy("fixtures/course");
    let legacy = tree(&copy.path().join("benchmarks/legacy"));
    let files = legacy.keys().filter(|path| path.extension().is_some_and(|end| end == "json"));
    let mut command = verify(copy.path());
    command.arg("normalize").args(files);
    command.args(["--out-dir", "migrated"]).assert().success();
    assert!(tree(&copy.path().join("benchmarks/legacy")) == legacy, "an original was touched");
    let mut command = verify(copy.path());
    command.args(["schema", "migrated"]);
    let (code, report) = report(command);
    assert_eq!((code, &stage(&report, "schema")["summary"]), (0, &serde_json::json!({"ok": 3})));
}

#[test]
fn links_of_a_chosen_project_are_those_of_its_notebook_and_its_page() {
    let copy = clean_copy("fixtures/course");
    let chosen = settings().project(66).cloned().unwrap();
    let other = settings().project(69).cloned().unwrap();
    for page in [&chosen.page, &other.page, &"docs/index.md".to_owned()] {
        let path = copy.path().join(page);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}\n[gone](./gone.md)\n")).unwrap();
    }
    let mut command = verify(copy.path());
    command.args(["all", "--only", "links", "--project", "66"]);
    let (code, report) = report(command);
    let places: Vec<&Value> = findings(&report, None).map(|finding| &finding["path"]).collect();
    assert_eq!((code, places), (1, vec![&Value::from(chosen.page)]), "{report:#}");
    assert_eq!(stage(&report, "links")["summary"]["files"], 2);
}
