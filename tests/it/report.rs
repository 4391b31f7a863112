//! `verify report`: the table, the page and its figures.

use crate::support::{project, verify};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use verify::bench::experiment::record::{ExperimentRecord, PassPhase};
use verify::model::Lang;
use verify::report::{Sheet, gather, page, text};

const EXAMPLE: &str = "fixtures/experiments/concurrency.experiment.json";
const RESULT: &str = "fixtures/course-broken/benchmarks/results/69_prefix_cache.json";

fn example() -> ExperimentRecord {
    serde_json::from_slice(&fs::read(project(EXAMPLE)).unwrap()).unwrap()
}

fn sheet(record: &ExperimentRecord) -> Sheet {
    Sheet { sources: vec![gather::experiment("experiment.json", record)] }
}

/// Every drawing of a page.
fn drawings(page: &str) -> Vec<&str> {
    let starts = page.match_indices("<svg id=").map(|(at, _)| at);
    starts.map(|at| &page[at..at + page[at..].find("</svg>").expect("a closed drawing") + 6]).collect()
}

/// What makes a page readable: drawings are well-formed and told, ids are unique, what is
/// referred to is there, and nothing is loaded or run.
fn check(page: &str) {
    for svg in drawings(page) {
        let document = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
        let root = document.root_element();
        for part in root.attribute("aria-labelledby").expect("told").split(' ') {
            let told = root.children().find(|node| node.attribute("id") == Some(part)).expect("title and description");
            assert!(told.text().is_some_and(|text| !text.trim().is_empty()), "{part} says nothing");
        }
        for number in document
            .descendants()
            .flat_map(|node| node.attributes())
            .filter(|a| ["x", "y", "x1", "y1", "cx", "cy", "width", "height"].contains(&a.name()))
        {
            assert!(number.value().parse::<f64>().is_ok_and(f64::is_finite), "{number:?}");
        }
    }
    let (mut ids, mut wanted) = (BTreeSet::new(), BTreeSet::new());
    for token in html5gum::Tokenizer::new(page).flatten() {
        let html5gum::Token::StartTag(tag) = token else { continue };
        let name = String::from_utf8_lossy(&tag.name).into_owned();
        assert!(!["script", "img", "iframe", "link", "object", "base", "form"].contains(&name.as_str()), "<{name}>");
        for (key, value) in &tag.attributes {
            let (key, value) = (String::from_utf8_lossy(key).into_owned(), String::from_utf8_lossy(value).into_owned());
            assert!(!key.starts_with("on") && key != "src" && key != "style", "{key}={value}");
            match key.as_str() {
                "id" => assert!(ids.insert(value.clone()), "id {value} twice"),
                "href" => _ = wanted.insert(value.strip_prefix('#').expect("links stay in the page").to_owned()),
                "aria-labelledby" => wanted.extend(value.split(' ').map(str::to_owned)),
                _ => {}
            }
        }
    }
    let missing: Vec<&String> = wanted.difference(&ids).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_page_is_complete_in_both_languages() {
    for lang in [Lang::En, Lang::Zh] {
        let page = page::html(&sheet(&example()), lang);
        check(&page);
        // Differences, two distributions, three against concurrency, three scopes, three arms.
        assert_eq!(drawings(&page).len(), 12);
        assert_eq!(page.matches("<details>").count(), 12, "a table behind every figure");
    }
}

#[test]
fn the_figures_are_as_somebody_last_saw_them() {
    let page = page::html(&sheet(&example()), Lang::En);
    let shown = |id: &str| {
        drawings(&page)
            .into_iter()
            .find(|svg| svg.starts_with(&format!("<svg id=\"source-0-{id}\"")))
            .unwrap()
            .to_owned()
    };
    for id in ["forest", "ttft", "load2", "pss", "time1"] {
        insta::assert_snapshot!(format!("report-figure-{id}"), shown(id));
    }
}

#[test]
fn the_terminal_and_markdown_have_the_same_table() {
    let output = verify(&project("")).args(["report", EXAMPLE, RESULT]).output().unwrap();
    assert!(output.status.success());
    insta::assert_snapshot!("report-human-en", String::from_utf8_lossy(&output.stdout));
    let args = ["report", EXAMPLE, RESULT, "--format", "markdown", "--lang", "zh"];
    let output = verify(&project("")).args(args).output().unwrap();
    insta::assert_snapshot!("report-markdown-zh", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn what_is_absent_is_null_with_a_reason_and_scopes_have_columns_of_their_own() {
    let output = verify(&project("")).args(["report", EXAMPLE, RESULT, "--format", "json"]).output().unwrap();
    let table: Value = serde_json::from_slice(&output.stdout).unwrap();
    let schema = fs::read_to_string(project("schemas/verify-table-v1.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    assert_eq!(schema.iter_errors(&table).map(|error| error.to_string()).collect::<Vec<_>>(), Vec::<String>::new());
    let rows = table["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &table["schema_version"]), (4, &Value::from("verify-table/v1")));
    for row in rows {
        for group in ["configuration", "time", "memory", "quality"] {
            let columns: Vec<&String> = row[group].as_object().unwrap().keys().collect();
            assert_eq!(columns, rows[0][group].as_object().unwrap().keys().collect::<Vec<_>>(), "{group}");
            for cell in row[group].as_object().unwrap().values() {
                assert!(!cell["value"].is_null() || cell["reason"].as_str().is_some_and(|text| !text.is_empty()));
            }
        }
    }
    let (first, last) = (&rows[0], &rows[3]);
    assert_eq!(first["time"]["ttft_p99_ms"]["reason"], "36 requests cannot carry it, 100 are needed");
    assert_eq!(last["memory"]["device_reserved_peak"]["value"], 9140.0);
    assert!(
        last["memory"]["pss_peak"]["value"].is_null() && first["memory"]["device_reserved_peak"]["value"].is_null()
    );
    // The evidence decides, whatever the file claims.
    assert_eq!((&last["conclusion"]["claimed"], &last["conclusion"]["decision"]), (&"accept".into(), &"tune".into()));
}

#[test]
fn a_page_is_written_and_faults_are_told() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("run")).unwrap();
    fs::copy(project(EXAMPLE), folder.path().join("run/experiment.json")).unwrap();
    verify(folder.path()).args(["report", "run", "--html", "r.html"]).assert().success();
    check(&fs::read_to_string(folder.path().join("r.html")).unwrap());
    let text = fs::read_to_string(project(EXAMPLE)).unwrap();
    fs::write(folder.path().join("half.json"), &text[..text.len() / 2]).unwrap();
    let output = verify(folder.path()).args(["report", "half.json"]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("half.json"));
    verify(folder.path()).args(["report", "none.json"]).assert().code(1);
    verify(folder.path()).args(["report", "run", "--format", "sarif"]).assert().code(2);
    verify(folder.path()).args(["report", "run", "--html", "x", "--output", "x"]).assert().code(2);
    verify(folder.path()).args(["report", "run", "--html", "none/x"]).assert().code(2);
}

/// Ten arms of ten thousand requests: the page stays small and says what it left out.
#[test]
fn a_large_experiment_makes_a_small_page() {
    let mut record = example();
    let (arm, manifest) = (record.arms[0].clone(), record.manifest.arms[0].clone());
    let pass = record.passes.iter().find(|pass| pass.phase == PassPhase::Measured).unwrap().clone();
    (record.arms, record.manifest.arms, record.passes) = Default::default();
    for index in 0..10 {
        let name = format!("arm-{index}");
        let mut pass = pass.clone();
        let request = pass.requests[0].clone();
        pass.arm = name.clone();
        pass.requests = (0..10_000)
            .map(|number| {
                let mut request = request.clone();
                request.sent_ms = f64::from(number) * 3.0;
                request.ttft_ms = Some(40.0 + f64::from(number % 977));
                request
            })
            .collect();
        let sample = pass.memory.samples[0];
        pass.memory.samples = (0..10_000)
            .map(|number| {
                let mut sample = sample;
                sample.at_ms = f64::from(number) * 100.0;
                sample
            })
            .collect();
        record.passes.push(pass);
        record.arms.push(verify::bench::experiment::record::ArmRecord { name: name.clone(), ..arm.clone() });
        record.manifest.arms.push(verify::bench::experiment::record::ArmManifest { name, ..manifest.clone() });
    }
    let page = page::html(&sheet(&record), Lang::En);
    check(&page);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("48 of its 10000 requests, evenly chosen."));
}

/// An experiment that has only begun is shown as far as it is.
#[test]
fn an_experiment_without_a_pass_has_no_figures_and_says_why() {
    let mut record = example();
    (record.passes, record.comparisons, record.finished_at) = Default::default();
    record.arms.iter_mut().for_each(|arm| (arm.time, arm.memory, arm.quality) = Default::default());
    let page = page::html(&sheet(&record), Lang::Zh);
    check(&page);
    assert!(drawings(&page).is_empty() && page.contains("还没有任何一轮完成"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever a model is called, whatever it answered and however long that took.
    #[test]
    fn no_name_and_no_number_breaks_a_page(name in any::<String>(), ms in prop::collection::vec(-1e9f64..1e12, 3), hostile in "[<>&\"'`\u{0}\u{ffff}\\]-]{0,12}") {
        let mut record = example();
        let tag = format!("{hostile}<script>{name}</script><img src=x onerror=y>");
        record.manifest.name = tag.clone();
        record.manifest.arms[1].name = tag.clone();
        record.manifest.arms[1].model.name = tag.clone();
        record.arms[1].name = tag.clone();
        record.arms[1].conclusion.reason.en = tag.clone();
        record.comparisons[0].candidate = tag.clone();
        record.comparisons[0].interval = Some([ms[0], ms[1]]);
        record.notes[0].message.en = tag.clone();
        for pass in record.passes.iter_mut().filter(|pass| pass.arm == "c2") {
            pass.arm = tag.clone();
            pass.requests[0].id = tag.clone();
            pass.requests[0].fault = Some(tag.clone());
            pass.requests[1].ttft_ms = Some(ms[0]);
            pass.requests[1].e2e_ms = Some(ms[1]);
            pass.requests[1].sent_ms = ms[2];
        }
        let sheet = sheet(&record);
        check(&page::html(&sheet, Lang::En));
        let shown = text::human(&sheet, Lang::En);
        let steers = shown.chars().any(|c| c != '\n' && c.is_control());
        prop_assert!(!steers);
    }
}
