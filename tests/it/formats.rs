//! Every format of a report: read by a parser or held against a schema that others wrote,
//! and as people see it.

use crate::support::{project, verify};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;
use verify::error::RunError;
use verify::model::{
    Finding, Item, ItemStatus, Lang, Localized, Location, Outcome, RepoPath, RunReport, Severity, StageId, StageRun,
    Summary,
};
use verify::render::{self, Format, HumanOptions};
use verify::rules;

const MACHINE: [Format; 7] =
    [Format::Json, Format::Junit, Format::Sarif, Format::Github, Format::Gitlab, Format::Rdjson, Format::Markdown];

/// A schema that lies in the project.
fn schema(path: &str) -> jsonschema::Validator {
    let text = fs::read_to_string(project(path)).expect("the schema is committed");
    jsonschema::validator_for(&serde_json::from_str(&text).expect("a schema is JSON")).expect("a schema")
}

fn hold(validator: &jsonschema::Validator, text: &str) -> Value {
    let value: Value = serde_json::from_str(text).expect("the format is JSON");
    let faults: Vec<String> =
        validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    value
}

/// Reads one format as its readers do and gives the number of findings it shows.
fn read(format: Format, text: &str) -> usize {
    static SCHEMAS: OnceLock<[jsonschema::Validator; 3]> = OnceLock::new();
    let [report, sarif, rdjson] = SCHEMAS.get_or_init(|| {
        [
            schema("schemas/verify-report-v1.schema.json"),
            schema("schemas/vendor/sarif/sarif-schema-2.1.0.json"),
            schema("schemas/vendor/reviewdog/DiagnosticResult.json"),
        ]
    });
    let length = |value: &Value| value.as_array().expect("a list").len();
    match format {
        Format::Human => text.lines().count(),
        Format::Json => {
            let value = hold(report, text);
            value["stages"].as_array().expect("stages").iter().map(|stage| length(&stage["findings"])).sum()
        }
        Format::Sarif => length(&hold(sarif, text)["runs"][0]["results"]),
        Format::Rdjson => length(&hold(rdjson, text)["diagnostics"]),
        Format::Gitlab => read_gitlab(text),
        Format::Junit => read_junit(text),
        Format::Github => text.lines().filter(|line| command(line).is_some_and(|(name, _)| name != "group")).count(),
        Format::Markdown => read_markdown(text),
    }
}

/// What GitLab asks of a code quality report.
fn read_gitlab(text: &str) -> usize {
    let value: Value = serde_json::from_str(text).expect("JSON");
    let issues = value.as_array().expect("a list");
    let mut seen = BTreeSet::new();
    for issue in issues {
        assert!(seen.insert(issue["fingerprint"].as_str().expect("a fingerprint")), "{issue}");
        assert!(!issue["description"].as_str().expect("a text").is_empty());
        assert!(!issue["check_name"].as_str().expect("a text").is_empty());
        assert!(["info", "minor", "major", "critical", "blocker"].contains(&issue["severity"].as_str().unwrap()));
        assert!(!issue["location"]["path"].as_str().expect("a path").starts_with("./"));
        assert!(issue["location"]["lines"]["begin"].as_u64().expect("a line") >= 1);
    }
    issues.len()
}

/// What Jenkins' schema (junit-10) and GitLab ask of JUnit XML: known elements and
/// attributes, true counts, no two cases of one key, the text of a failure in its body.
fn read_junit(text: &str) -> usize {
    let document = roxmltree::Document::parse(text).expect("well-formed XML");
    let root = document.root_element();
    assert!(root.has_tag_name("testsuites"));
    let count = |node: roxmltree::Node<'_, '_>, name: &str| node.descendants().filter(|n| n.has_tag_name(name)).count();
    let mut keys = BTreeSet::new();
    for suite in root.children().filter(roxmltree::Node::is_element) {
        assert!(suite.has_tag_name("testsuite"));
        for (attribute, element) in
            [("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")]
        {
            assert_eq!(suite.attribute(attribute).unwrap().parse::<usize>().unwrap(), count(suite, element));
        }
        for case in suite.children().filter(roxmltree::Node::is_element) {
            assert!(case.has_tag_name("testcase"));
            let key = (case.attribute("classname").unwrap(), case.attribute("name").unwrap());
            assert!(keys.insert(key), "{key:?} twice");
            let known = ["classname", "name", "file", "time"];
            assert!(case.attributes().all(|attribute| known.contains(&attribute.name())));
            let verdicts: Vec<_> =
                case.children().filter(|n| n.is_element() && !n.has_tag_name("system-out")).collect();
            assert!(verdicts.len() <= 1, "Jenkins keeps one failure");
            for verdict in verdicts.iter().filter(|verdict| !verdict.has_tag_name("skipped")) {
                assert!(verdict.text().is_some_and(|text| !text.trim().is_empty()), "old GitLab reads the body");
            }
        }
    }
    count(root, "failure") + count(root, "error")
}

/// The command that the runner of GitHub would take from a line, by its own rules.
fn command(line: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    assert!(!line.contains("##["), "an old command in {line}");
    let (head, _) = line.trim_start().strip_prefix("::")?.split_once("::")?;
    let (name, properties) = head.split_once(' ').unwrap_or((head, ""));
    let properties = properties.split(',').filter_map(|property| property.split_once('=')).collect();
    Some((name, properties))
}

/// Rows of the table of findings, by a CommonMark parser with tables.
fn read_markdown(text: &str) -> usize {
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
    let (mut columns, mut cells, mut rows, mut tables) = (0, 0, 0, Vec::new());
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Table(alignments)) => (columns, rows) = (alignments.len(), 0),
            Event::Start(Tag::TableRow) => cells = 0,
            Event::Start(Tag::TableCell) => cells += 1,
            Event::End(TagEnd::TableRow) => {
                assert_eq!(cells, columns, "a row with another number of cells");
                rows += 1;
            }
            Event::End(TagEnd::Table) => tables.push((columns, rows)),
            Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::HtmlBlock) => panic!("markup of a stranger"),
            Event::InlineHtml(html) => assert!(["<br>", "<code>", "</code>", "<!-- -->"].contains(&&*html), "{html}"),
            _ => {}
        }
    }
    tables.iter().skip(1).find(|(columns, _)| *columns == 4).map_or(0, |(_, rows)| *rows)
}

fn options(root: &Path, lang: Lang) -> HumanOptions<'_> {
    HumanOptions { root, lang, color: false, width: 100, quiet: false }
}

/// A stage with these findings.
fn stage(stage: StageId, items: Vec<Item>, findings: Vec<Finding>) -> StageRun {
    let outcome = Outcome::ran(1, Summary::new().with("files", 3), items, findings);
    StageRun { stage, outcome, duration: Duration::from_millis(41) }
}

fn report_of(stages: Vec<StageRun>) -> RunReport {
    RunReport { stages, duration: Duration::from_millis(50), ..RunReport::default() }
}

/// A finding with a text of a stranger wherever there is one.
fn wild(text: &str, severity: Severity, line: u32) -> Finding {
    let at = Location::file(RepoPath::new(format!("docs/{text}.md"))).line(line).column(2).length(3).target(text);
    Finding::new(&rules::links::MISSING_FILE, at).severity(severity).help(format!("say {text}"))
}

/// Runs over the broken course without a backend or an interpreter.
fn broken(format: Format) -> String {
    let folder = crate::course::clean_copy("fixtures/course-broken");
    let out = folder.path().join("report.out");
    let target = format!("{}={}", format.name(), out.display());
    let mut command = verify(folder.path());
    command.args(["all", "--keep-going", "--only", "static", "--only", "links", "--only", "schema"]);
    let output = command.args(["--output", &target]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(out).unwrap()
}

/// Every format over the broken course: valid for its readers, the exit code the same, and
/// as it was when somebody last looked at it.
#[rstest::rstest]
#[case(Format::Json)]
#[case(Format::Junit)]
#[case(Format::Sarif)]
#[case(Format::Github)]
#[case(Format::Gitlab)]
#[case(Format::Rdjson)]
#[case(Format::Markdown)]
fn the_broken_course(#[case] format: Format) {
    let text = broken(format);
    assert!(read(format, &text) > 0, "{text}");
    if format != Format::Json {
        insta::with_settings!({filters => vec![
            (r#"time="\d+\.\d+""#, r#"time="[time]""#),
            (r"\| [\d.]+ m?s \|", "| [time] |"),
        ]}, {
            insta::assert_snapshot!(format!("broken-course-{}", format.name()), text);
        });
    }
}

#[test]
fn what_json_counts_every_format_shows() {
    let errors = |text: &str| {
        let report: Value = serde_json::from_str(text).unwrap();
        let stages = report["stages"].as_array().unwrap().clone();
        stages.iter().flat_map(|stage| stage["findings"].as_array().unwrap().clone()).collect::<Vec<_>>()
    };
    let all = errors(&broken(Format::Json));
    for format in [Format::Sarif, Format::Gitlab, Format::Rdjson, Format::Markdown] {
        assert_eq!(read(format, &broken(format)), all.len(), "{format:?}");
    }
    // A notebook's finding is at its line of the file, and says its cell.
    let sarif: Value = serde_json::from_str(&broken(Format::Sarif)).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let in_cell = results.iter().find(|result| !result["locations"][0]["logicalLocations"].is_null()).unwrap();
    let line = in_cell["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64().unwrap();
    assert!(line > 3, "{in_cell:#}");
    assert!(in_cell["message"]["text"].as_str().unwrap().starts_with("cell "));
}

#[test]
fn findings_before_the_first_line_and_without_one_are_placed() {
    let file = Finding::new(&rules::links::MISSING_FILE, Location::file(RepoPath::new("a b/推理#1.md")).target("x"));
    let report = report_of(vec![stage(StageId::Links, Vec::new(), vec![file])]);
    let folder = tempfile::tempdir().unwrap();
    let text = |format| render::render(format, &report, options(folder.path(), Lang::En));
    for format in MACHINE {
        assert_eq!(read(format, &text(format)), 1, "{format:?}");
    }
    let sarif: Value = serde_json::from_str(&text(Format::Sarif)).unwrap();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a%20b/%E6%8E%A8%E7%90%86%231.md");
    assert_eq!(place["region"], serde_json::json!({"startLine": 1}));
    assert!(text(Format::Github).starts_with("::error file=a b/推理#1.md,title=links/missing-file::"));
}

#[test]
fn items_become_cases_by_their_verdict() {
    let item = |path: &str, status| Item::new(RepoPath::new(path), status);
    let items = vec![
        item("a.ipynb", ItemStatus::Pass),
        item("b.ipynb", ItemStatus::Fail),
        item("c.ipynb", ItemStatus::Timeout),
        item("d.ipynb", ItemStatus::Skip),
        item("a.ipynb", ItemStatus::ExpectedFail),
    ];
    let found = Finding::new(&rules::answers::TEST_FAILED, Location::file(RepoPath::new("b.ipynb")).cell(3).line(7));
    let blocked = StageRun {
        stage: StageId::Links,
        outcome: Outcome::Blocked { by: StageId::Answers },
        duration: Duration::ZERO,
    };
    let report = report_of(vec![stage(StageId::Answers, items, vec![found]), blocked]);
    let text = render::render(Format::Junit, &report, options(Path::new("."), Lang::En));
    read_junit(&text);
    let document = roxmltree::Document::parse(&text).unwrap();
    let verdicts: Vec<(&str, &str)> = document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"))
        .map(|case| (case.attribute("name").unwrap(), case.first_element_child().map_or("", |n| n.tag_name().name())))
        .collect();
    let expected = [
        ("a.ipynb", ""),
        ("b.ipynb", "failure"),
        ("c.ipynb", "error"),
        ("d.ipynb", "skipped"),
        ("a.ipynb #2", ""),
        ("links", "skipped"),
    ];
    assert_eq!(verdicts, expected);
    assert!(text.contains("b.ipynb:cell 3:7: error[answers/test-failed]: "), "{text}");
}

#[test]
fn github_shows_the_worst_ten_of_a_kind_and_the_log_has_all() {
    let findings = (1..=13).map(|line| wild("a", Severity::Warning, line)).chain([wild("z", Severity::Error, 1)]);
    let report = report_of(vec![stage(StageId::Links, Vec::new(), findings.collect())]);
    let text = render::render(Format::Github, &report, options(Path::new("."), Lang::En));
    let of = |kind| text.lines().filter(|line| command(line).is_some_and(|(name, _)| name == kind)).count();
    assert_eq!((of("error"), of("warning"), of("notice"), of("group")), (1, 10, 0, 1));
    assert!(text.starts_with("::error ") && text.contains("::group::3 more at level warning"), "{text}");
    assert_eq!(text.matches("links/missing-file").count(), 14);
}

#[test]
fn sarif_keeps_the_worst_of_too_many_and_says_so() {
    let findings: Vec<Finding> = (1..=25_001)
        .map(|line| wild("a", if line == 25_001 { Severity::Error } else { Severity::Note }, line))
        .collect();
    let report = report_of(vec![stage(StageId::Links, Vec::new(), findings)]);
    let text = render::render(Format::Sarif, &report, options(Path::new("."), Lang::En));
    let log: Value = serde_json::from_str(&text).unwrap();
    let run = &log["runs"][0];
    assert_eq!(
        (run["results"].as_array().unwrap().len(), &run["results"][0]["level"]),
        (25_000, &Value::from("error"))
    );
    let said = run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"].as_str().unwrap();
    assert!(said.starts_with("1 more findings are left out"), "{said}");
}

#[test]
fn a_run_that_checked_nothing_says_so_in_every_format() {
    let error = RunError::usage(Localized::both("no `a|b`\n::x", "没有 a"), "try b");
    for format in MACHINE {
        let text = render::render_error(format, &error, options(Path::new("."), Lang::En));
        let shown = read(format, &text);
        let holds = match format {
            Format::Json | Format::Markdown | Format::Sarif => shown == 0,
            _ => shown == 1,
        };
        assert!(holds && text.contains("try b"), "{format:?}: {text}");
    }
    let sarif = render::render_error(Format::Sarif, &error, options(Path::new("."), Lang::En));
    assert!(sarif.contains("\"executionSuccessful\": false"), "{sarif}");
}

#[test]
fn exit_codes_do_not_depend_on_the_format() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.py"), "x = (\n").unwrap();
    for format in MACHINE.iter().map(|format| format.name()).chain(["human"]) {
        let code =
            |args: &[&str]| verify(folder.path()).args(args).args(["--format", format]).output().unwrap().status.code();
        assert_eq!((code(&["static"]), code(&["static", "none.py"])), (Some(1), Some(2)), "{format}");
        fs::create_dir_all(folder.path().join("good")).unwrap();
        fs::write(folder.path().join("good/a.py"), "x = 1\n").unwrap();
        assert_eq!(code(&["static", "good"]), Some(0), "{format}");
    }
}

#[test]
fn several_outputs_at_once_and_never_two_to_one_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.py"), "x = (\n").unwrap();
    let outputs = ["junit=j.xml", "sarif=s.sarif", "markdown=m.md"].map(|target| ["--output", target]).concat();
    let output = verify(folder.path()).arg("static").args(&outputs).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("bad.py:1"), "the console stays human");
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read(Format::Junit, &text("j.xml")), 1);
    assert_eq!(read(Format::Sarif, &text("s.sarif")), 1);
    assert_eq!(read(Format::Markdown, &text("m.md")), 1);
    let twice = ["static", "--output", "junit=x", "--output", "sarif=./x"];
    let output = verify(folder.path()).args(twice).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(!folder.path().join("x").exists());
}

/// The report reaches the console even where its file is lost.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_written_is_a_fault_and_the_console_has_the_report() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.py"), "x = 1\n").unwrap();
    let output = verify(folder.path()).args(["static", "--output", "json=/dev/full"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).contains("passed"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/dev/full"));
}

#[test]
fn the_summary_of_a_step_is_appended() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.py"), "x = (\n").unwrap();
    let summary = folder.path().join("summary.md");
    fs::write(&summary, "before\n").unwrap();
    let run = |args: &[&str]| {
        let mut command = verify(folder.path());
        command.env("GITHUB_STEP_SUMMARY", &summary).args(args).assert().code(1);
        fs::read_to_string(&summary).unwrap()
    };
    assert_eq!(run(&["static"]), "before\n");
    let text = run(&["static", "--format", "github", "--lang", "zh"]);
    assert!(text.starts_with("before\n## verify: 未通过\n"), "{text}");
    let findings = (1..3_000).map(|line| wild(&"长".repeat(200), Severity::Error, line)).collect();
    let report = report_of(vec![stage(StageId::Links, Vec::new(), findings)]);
    let cut = render::step_summary(&report, Lang::Zh, 7);
    assert!(cut.len() + 7 <= 1_000_000 && cut.len() > 900_000 && cut.ends_with("\n\n已截断：完整报告见日志\n"));
}

/// On a workflow's log nothing that a course wrote is a command of the runner.
#[test]
fn a_course_gives_the_runner_no_commands() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.md"), "[x](::error::y)\n[y](##[add-mask]z)\n").unwrap();
    for format in ["human", "github"] {
        let mut command = verify(folder.path());
        let output =
            command.env("GITHUB_ACTIONS", "true").args(["links", "a.md", "--format", format]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.contains("##["), "{text}");
        let commands = text.lines().filter(|line| line.trim_start().starts_with("::error::")).count();
        assert_eq!(commands, 0, "{text}");
    }
}

#[test]
fn a_command_without_a_format_refuses_it() {
    let folder = tempfile::tempdir().unwrap();
    verify(folder.path()).args(["settings", "--format", "sarif"]).assert().code(2);
    verify(folder.path()).env("VERIFY_FORMAT", "sarif").arg("settings").assert().success();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever a course calls its files and writes into them, every reader gets a
    /// well-formed report with every finding in it.
    #[test]
    fn every_format_is_well_formed(text in any::<String>(), more in "[|`\\\\<&\\]\\[@:#%,\r\n\u{0}\u{1b}\u{ffff}\u{202e} a-c]{0,24}") {
        let mut item = Item::new(RepoPath::new(more.clone()), ItemStatus::Failed);
        item.detail = Some(Localized::from(&text));
        let said = Finding::new(&rules::links::MISSING_ANCHOR, Location::file(RepoPath::new(more.clone()))).said(&text);
        let findings = vec![wild(&text, Severity::Error, 1), wild(&more, Severity::Error, 2), said];
        let report = report_of(vec![
            stage(StageId::Links, Vec::new(), findings),
            stage(StageId::Schema, vec![item], vec![]),
        ]);
        let folder = tempfile::tempdir().unwrap();
        for format in MACHINE {
            let shown = read(format, &render::render(format, &report, options(folder.path(), Lang::Zh)));
            let expected = if format == Format::Junit { 4 } else { 3 };
            prop_assert_eq!(shown, expected, "{:?}", format);
        }
    }
}
