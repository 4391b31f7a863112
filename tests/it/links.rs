//! Cases of this domain: `fixtures/cases/links`.

use crate::support::{args, case, findings, report, scratch, verify};
use rstest::rstest;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Path, cell, line and target of findings, sorted.
fn places<'a>(list: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut places: Vec<String> = list
        .map(|entry| format!("{} cell {} line {} {}", entry["path"], entry["cell"], entry["line"], entry["target"]))
        .collect();
    places.sort();
    places
}

/// Every broken link of a case is an error, and nothing else is.
#[rstest]
fn cases(#[files("fixtures/cases/links/*/case.json")] file: PathBuf) {
    let folder = file.parent().expect("a case lies in a folder");
    let case = case(folder);
    let copy = scratch(folder);
    let mut command = verify(&copy.path().join("input"));
    command.args(args(&case));
    let (code, report) = report(command);
    let expected = case["expect"]["broken"].as_array().expect("broken");
    assert_eq!(places(findings(&report, Some("error"))), places(expected.iter()), "{}", case["why"]);
    assert_eq!(code, i32::from(!expected.is_empty()));
    if let Some(rules) = case["expect"]["rules"].as_array() {
        let mut got: Vec<&str> = findings(&report, None).filter_map(|finding| finding["rule"].as_str()).collect();
        got.sort_unstable();
        let wanted: Vec<&str> = rules.iter().filter_map(Value::as_str).collect();
        assert_eq!(got, wanted);
    }
}

/// A folder with these files.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("verify-test-").tempdir().expect("a scratch folder");
    for (path, text) in files {
        write(folder.path(), path, text);
    }
    folder
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

/// Rule, path, line and column of every finding, with what its help says.
fn found(folder: &Path, more: &[&str]) -> Vec<String> {
    let mut command = verify(folder);
    command.arg("links").args(more);
    let (_, report) = report(command);
    findings(&report, None)
        .map(|finding| {
            let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
            format!("{} {}:{}:{} {}", text("rule"), text("path"), finding["line"], finding["column"], text("help"))
        })
        .collect()
}

#[test]
fn columns_count_characters_whatever_stands_in_front() {
    let folder = tree(&[(
        "a.md",
        "\u{feff}推理 [x](gone.md)\r\n\r\n\t- 🚀é [y](gone.md)\r\n\r\n> - 一 <img alt=\"中\" src=\"gone.png\">\r\n",
    )]);
    let help = "correct the path, or remove the link";
    assert_eq!(
        found(folder.path(), &[]),
        [format!("links/missing-file a.md:1:4 {help}"), format!("links/missing-file a.md:5:26 {help}"),]
    );
}

#[test]
fn an_unreadable_file_is_a_warning_and_the_run_goes_on() {
    let folder = tree(&[("b.md", "[x](gone.md)\n"), ("c.ipynb", "{\"cells\": [}")]);
    std::fs::write(folder.path().join("a.md"), b"caf\xe9 [x](gone.md)\n").expect("a file");
    let rules: Vec<String> = found(folder.path(), &[])
        .iter()
        .map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        rules,
        ["links/unreadable a.md:null:null", "links/missing-file b.md:1:1", "links/unreadable c.ipynb:1:12"]
    );
}

#[test]
fn paths_narrow_what_is_reported_but_not_what_is_known() {
    let folder =
        tree(&[("a/x.md", "# X\n\n[up](../b/y.md#y) [gone](gone.md)\n"), ("b/y.md", "# Y\n\n[gone](gone.md)\n")]);
    let help = "correct the path, or remove the link";
    assert_eq!(found(folder.path(), &["a"]), [format!("links/missing-file a/x.md:3:19 {help}")]);
    verify(folder.path()).args(["links", "c.md"]).assert().code(2);
}
