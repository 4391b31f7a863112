//! `verify static`: the cases of `fixtures/cases/static`, and what they leave out.

use crate::support::{args, case, findings, project, report, scratch, verify};
#[cfg(unix)]
use crate::support::{pipe, report_with_closed_folder};
use rstest::rstest;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What a case compares: severity, path, cell, line.
type Place = (String, String, Option<u64>, Option<u64>);

fn places(report: &Value) -> Vec<Place> {
    findings(report, None)
        .filter(|finding| finding["severity"] != "note")
        .map(|finding| {
            let text = |key: &str| finding[key].as_str().expect("a text").to_owned();
            (text("severity"), text("path"), finding["cell"].as_u64(), finding["line"].as_u64())
        })
        .collect()
}

fn matches(want: &Value, got: &Place) -> bool {
    let (severity, path, cell, line) = got;
    let lines = [want["line"].as_u64(), want["or_line"].as_u64()];
    severity == want["severity"].as_str().unwrap_or("error")
        && want["path"] == path.as_str()
        && (want["cell"].is_null() || want["cell"].as_u64() == *cell)
        && (want["line"].is_null() || (line.is_some() && lines.contains(line)))
}

/// Errors and warnings are complete per file and line.
#[rstest]
fn cases(#[files("fixtures/cases/static/*/case.json")] path: PathBuf) {
    let folder = path.parent().expect("a folder");
    let case = case(folder);
    let copy = scratch(&folder.join("input"));
    let before = tree(copy.path());
    let mut command = verify(copy.path());
    command.args(args(&case));
    let (code, report) = report(command);
    let mut got = places(&report);
    for want in case["expect"]["findings"].as_array().expect("findings") {
        let index = got.iter().position(|got| matches(want, got));
        got.remove(index.unwrap_or_else(|| panic!("missed {want}; got {got:?}")));
    }
    assert!(got.is_empty(), "false alarms: {got:?}");
    assert_eq!(i64::from(code), case["expect"]["exit"].as_i64().expect("exit"));
    assert_eq!(tree(copy.path()), before, "the tree changed");
    if let Some(text) = case["expect"]["contains"].as_str() {
        assert!(report.to_string().contains(text), "no {text:?} in {report}");
    }
}

fn tree(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut out = Vec::new();
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
        let entry = entry.expect("an entry");
        let length = entry.metadata().expect("metadata").len();
        out.push((entry.path().to_path_buf(), if entry.file_type().is_file() { length } else { 0 }));
    }
    out
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    folder
}

/// A notebook of format 4.5 with these code cells.
fn notebook(cells: &[&str]) -> String {
    let cells: Vec<Value> = cells
        .iter()
        .enumerate()
        .map(|(index, source)| {
            json!({"cell_type": "code", "id": format!("c{index}"), "metadata": {}, "outputs": [],
                   "execution_count": null, "source": source})
        })
        .collect();
    json!({"cells": cells, "nbformat": 4, "nbformat_minor": 5,
           "metadata": {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}})
    .to_string()
}

fn run(folder: &TempDir, arguments: &[&str]) -> (i32, Value) {
    let mut command = verify(folder.path());
    command.arg("static").args(arguments);
    report(command)
}

/// Rule, cell, line, column.
type RuleAt = (String, Option<u64>, Option<u64>, Option<u64>);

fn rules(report: &Value) -> Vec<RuleAt> {
    findings(report, None)
        .map(|finding| {
            let rule = finding["rule"].as_str().expect("a rule").to_owned();
            (rule, finding["cell"].as_u64(), finding["line"].as_u64(), finding["column"].as_u64())
        })
        .collect()
}

/// What a learner reads, in both languages: one file for each kind of message.
#[rstest]
#[case("full_width", "def 损失（x, y）：\n    return x\n")]
#[case("curly_quotes", "print(“你好”)\n")]
#[case("zero_width", "total\u{200b} = 1\n")]
#[case("full_width_space", "if x:\n\u{3000}\u{3000}y = 1\n")]
#[case("print_statement", "for i in range(3):\n    print \"step\", i\n")]
#[case("tabs_and_spaces", "if True:\n\tx = 1\n        y = 2\n")]
#[case("conflict", "a = 1\n<<<<<<< HEAD\nb = 2\n=======\nb = 3\n>>>>>>> topic\nc = (\n")]
#[case("unclosed_bracket", "model = Model(\n    layers=2,\n    heads=4\n\ndef train():\n    return 1\n")]
#[case("wrong_bracket", "x = [1, 2)\n")]
#[case("unclosed_string", "name = 'vllm\nprint(name)\n")]
#[case("missing_colon", "if ready\n    go()\n")]
#[case("assign_in_condition", "if x = 1:\n    go()\n")]
#[case("missing_comma", "config = {\n    'a': 1\n    'b': 2,\n}\n")]
#[case("keyword_as_name", "class = 3\n")]
#[case("else_if", "if a:\n    b\nelse if c:\n    d\n")]
#[case("increment", "i++\n")]
#[case("c_logic", "if a && b:\n    c\n")]
#[case("octal", "mode = 0755\n")]
#[case("except_comma", "try:\n    f()\nexcept ValueError, e:\n    pass\n")]
#[case("magic_in_module", "import os\n%matplotlib inline\n!pip install torch\n")]
#[case("missing_block", "def f():\nx = 1\n")]
#[case("unindent", "if a:\n        b\n    c\n")]
#[case("newer_syntax", "match x:\n    case 1:\n        pass\ntype X = int\n")]
#[case("returns_outside", "def f(a, a):\n    await g()\nreturn 3\nfor x in y:\n    pass\nbreak\n")]
fn messages(#[case] name: &str, #[case] text: &str) {
    let folder = folder(&[("bad.py", text)]);
    let mut shown = String::new();
    for lang in ["en", "zh"] {
        let output = verify(folder.path()).args(["static", "--lang", lang]).output().expect("the binary runs");
        shown.push_str(&String::from_utf8_lossy(&output.stdout));
        shown.push('\n');
    }
    insta::with_settings!({filters => vec![(r"\(\d+(\.\d+)? m?s\)", "([time])")]}, {
        insta::assert_snapshot!(format!("message_{name}"), shown);
    });
}

#[test]
fn independent_errors_are_all_reported_and_consequences_are_not() {
    let text = "def broken(:\n    return 1\n\nclass A\n    def f(self):\n        x = = 2\n        return x\n\n\
                print 'x'\ny = (1,\n\ndef g():\n    nonlocal z\n";
    let folder = folder(&[("bad.py", text)]);
    let (code, report) = run(&folder, &[]);
    let lines: Vec<Option<u64>> = rules(&report).into_iter().map(|(_, _, line, _)| line).collect();
    assert_eq!((code, lines), (1, vec![Some(1), Some(4), Some(6), Some(9), Some(10)]));
}

#[test]
fn columns_count_characters() {
    let folder = folder(&[("bad.py", "推理 = '中文'，1\n"), ("nb.ipynb", &notebook(&["    x = （1)\n"]))]);
    let (_, report) = run(&folder, &[]);
    let got = rules(&report);
    assert_eq!(got[0], ("static/character".to_owned(), None, Some(1), Some(10)));
    // The indentation that IPython takes off still counts.
    assert_eq!(got[1], ("static/character".to_owned(), Some(1), Some(1), Some(9)));
}

#[test]
fn what_only_the_compiler_refuses_is_found() {
    for (text, line) in [
        ("match x:\n    case y | 1:\n        pass\n", 2),
        ("match x:\n    case f'a':\n        pass\n", 2),
        ("match x:\n    case -0j ** 0:\n        pass\n", 2),
        ("for x in y:\n    try:\n        pass\n    except* E:\n        break\n", 5),
        ("f'{*a}'\n", 1),
        ("x.__debug__ = 1\n", 1),
        ("f(__debug__=1)\n", 1),
        ("def f():\n    x = 1\n    global x\n", 3),
        ("def f():\n    import x\n    global x\n", 3),
        ("def f():\n    [x := 1 for _ in y]\n    global x\n", 3),
        ("def f(x):\n    global x\n", 2),
        ("def f():\n    global x\n    x: int = 1\n", 3),
        ("def f():\n    class C:\n        nonlocal y\n", 3),
        ("from __future__ import nonsense\n", 1),
        ("x = 1\nfrom __future__ import annotations\n", 2),
        ("class C:\n    def f(self):\n        [await x for x in y]\n", 3),
        ("for x in y:\n    class C:\n        break\n", 3),
    ] {
        let folder = folder(&[("bad.py", text)]);
        let (code, report) = run(&folder, &["--target-version", "3.12"]);
        assert_eq!(places(&report), [("error".to_owned(), "bad.py".to_owned(), None, Some(line))], "{text}");
        assert_eq!(code, 1, "{text}");
    }
}

#[test]
fn valid_scopes_are_left_alone() {
    let text = "\
global top
def f():
    x = 1
    def g():
        nonlocal x
        x = 2
    class C:
        y = 3
        def h(self):
            nonlocal x, __class__
            global y
            y = x
    return [x for x in (lambda: (yield))()]
async def a():
    async with b as c:
        return [d async for d in c], (await e for e in c)
def generic():
    for x in y:
        try:
            continue
        finally:
            pass
    else:
        pass
";
    let folder = folder(&[("good.py", text)]);
    assert_eq!(rules(&run(&folder, &[]).1), []);
}

#[test]
fn limits_of_cpython_are_kept() {
    let blocks = |depth: usize| {
        (0..depth).map(|at| format!("{}for x in y:\n", " ".repeat(at))).collect::<String>()
            + &" ".repeat(depth)
            + "pass\n"
    };
    let ifs = |depth: usize| {
        (0..depth).map(|at| format!("{}if x:\n", " ".repeat(at))).collect::<String>() + &" ".repeat(depth) + "pass\n"
    };
    let brackets = |depth: usize| format!("x = {}{}\n", "(".repeat(depth), ")".repeat(depth));
    let digits = |count: usize| format!("x = {}\n", "7".repeat(count));
    let targets = |count: usize| format!("{}*z = w\n", "a, ".repeat(count));
    for (good, bad) in [
        (blocks(20), blocks(21)),
        (ifs(99), ifs(100)),
        (brackets(200), brackets(201)),
        (digits(4300), digits(4301)),
        (targets(255), targets(256)),
    ] {
        assert_eq!(rules(&run(&folder(&[("good.py", &good)]), &[]).1), []);
        assert_eq!(run(&folder(&[("bad.py", &bad)]), &[]).0, 1, "{}", &bad[..40]);
    }
}

#[test]
fn no_depth_of_nesting_hides_the_other_files() {
    let deep = [
        format!("x = a{}\n", ".b".repeat(400_000)),
        format!("x = {}1\n", "-".repeat(900_000)),
        format!("x = 1{}\n", "+1".repeat(100_000)),
        "(".repeat(300_000),
        format!("x = f{}\n", "(1)".repeat(100_000)),
        format!("x = {}1\n", "lambda: ".repeat(60_000)),
        format!("x = {}1{}\n", "f'{".repeat(2000), "}'".repeat(2000)),
        format!("{}pass\n", (0..1500).map(|at| format!("{}if x:\n", " ".repeat(at))).collect::<String>()),
        format!("if 1: pass\n{}", "elif 1: pass\n".repeat(20_000)),
    ];
    let mut files: Vec<(String, String)> =
        (0..).zip(&deep).map(|(at, text)| (format!("deep{at}.py"), text.clone())).collect();
    files.push(("other.py".to_owned(), "return 1\n".to_owned()));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let (code, report) = run(&folder(&files), &[]);
    assert_eq!(code, 1);
    let judged: Vec<Place> = places(&report);
    assert!(judged.iter().any(|(_, path, ..)| path == "other.py"), "{judged:?}");
    for at in 0..8 {
        assert!(judged.iter().any(|(_, path, ..)| *path == format!("deep{at}.py")), "deep{at}: {judged:?}");
    }
}

#[test]
fn large_flat_data_is_no_fault() {
    let data =
        format!("DATA = [\n{}]\n", "    {'name': 'x', 'value': (1, 2.5, -3), 'tags': ['a', 'b']},\n".repeat(20_000));
    assert_eq!(rules(&run(&folder(&[("data.py", &data)]), &[]).1), []);
}

#[test]
fn cells_are_judged_as_ipython_sees_them() {
    let cells = [
        "  %matplotlib inline\n  x = 1\n",
        "%%time\nx = = 1\n",
        "%%bash\nif [ 1 ]; then (\n",
        ">>> x = 1\n... y = 2\n",
        "pip install torch",
        "import os\npip install torch\n",
        "x = 1\n%%time\ny = 2\n",
        "async with a as b:\n    c = [d async for d in await e]\n",
        "%%python\n%magic\n",
        "%%capture\n%%timeit -n 1\nreturn 3\n",
        "yield 3\n",
        "!ls {x}\nfiles = !ls\nprint??\n",
        "",
    ];
    let folder = folder(&[("nb.ipynb", &notebook(&cells))]);
    let (code, report) = run(&folder, &[]);
    let got: Vec<_> = findings(&report, None)
        .map(|finding| {
            (finding["severity"].as_str().unwrap_or_default(), finding["cell"].as_u64(), finding["line"].as_u64())
        })
        .collect();
    let at = |severity, cell, line| (severity, Some(cell), Some(line));
    assert_eq!(
        got,
        [
            at("error", 2, 2),
            at("warning", 5, 1),
            at("error", 6, 2),
            at("error", 7, 2),
            at("error", 9, 2),
            at("error", 10, 3),
            at("error", 11, 1),
        ]
    );
    assert_eq!(code, 1);
    assert_eq!(report["stages"][0]["summary"], json!({"files": 1, "cells": 13}));
    assert!(report.to_string().contains("write `%pip install torch`"));
}

#[test]
fn faults_of_the_notebook_itself() {
    for (text, rule, line, column) in [
        ("", "static/notebook-json", Some(1), Some(1)),
        ("{\n \"cells\": [],\n}", "static/notebook-json", Some(3), Some(1)),
        ("{\"nbformat\": 3, \"worksheets\": []}", "static/notebook-format", None, None),
        ("{\"nbformat\": 4, \"metadata\": {}}", "static/notebook-format", None, None),
        ("{\"cells\": [], \"metadata\": {}}", "static/notebook-format", None, None),
        ("[1]", "static/notebook-format", None, None),
        ("{\n<<<<<<< a\n=======\n", "static/conflict-marker", Some(2), None),
    ] {
        let (code, report) = run(&folder(&[("nb.ipynb", text)]), &[]);
        assert_eq!(rules(&report), [(rule.to_owned(), None, line, column)], "{text}");
        assert_eq!(code, 1, "{text}");
    }
}

#[test]
fn warnings_of_the_notebook_do_not_fail_it() {
    let text = json!({
        "nbformat": 4, "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "my-env", "language": "python"}},
        "cells": [
            {"cell_type": "code", "id": "a", "source": "x = 1", "outputs": [{"output_type": "error", "ename": "ValueError"}]},
            {"cell_type": "code", "id": "a", "source": ["y = 1"]},
            {"cell_type": "code", "id": null, "source": []},
            {"cell_type": "markdown", "source": "text"},
            {"cell_type": "markdown", "id": "not valid!", "source": "text"},
        ],
    });
    let (code, report) = run(&folder(&[("nb.ipynb", &format!("\u{feff}{text}"))]), &[]);
    let got: Vec<(String, Option<u64>)> = rules(&report).into_iter().map(|(rule, cell, ..)| (rule, cell)).collect();
    let id = |cell| ("static/cell-id".to_owned(), Some(cell));
    assert_eq!(
        got,
        [
            ("static/byte-order-mark".to_owned(), None),
            ("static/kernelspec".to_owned(), None),
            ("static/stored-error".to_owned(), Some(1)),
            id(2),
            id(3),
            id(4),
            id(5),
        ]
    );
    assert_eq!(code, 0);
    let mut strict = verify(folder(&[("nb.ipynb", &text.to_string())]).path());
    strict.args(["--strict", "static"]);
    assert_eq!(report["stages"][0]["status"], "pass");
}

#[test]
fn a_cell_that_is_tagged_to_fail_is_only_noted() {
    let mut book: Value = serde_json::from_str(&notebook(&["x = = 1"])).expect("JSON");
    book["cells"][0]["metadata"] = json!({"tags": ["raises-exception"]});
    book["cells"][0]["outputs"] = json!([{"output_type": "error", "ename": "SyntaxError"}]);
    let (code, report) = run(&folder(&[("nb.ipynb", &book.to_string())]), &[]);
    let got: Vec<&str> = findings(&report, None).map(|finding| finding["severity"].as_str().expect("a text")).collect();
    assert_eq!((code, got), (0, vec!["note"]));
}

#[test]
fn a_backend_switch_committed_as_true_is_a_warning() {
    let path = "02_PyTorch_Algorithms/66_Inference_Performance_Comparison.ipynb";
    let folder = folder(&[
        (path, &notebook(&["RUN_REAL_BACKEND = True\nif RUN_REAL_BACKEND:\n    pass"])),
        // Another project's switch, and a notebook that is none.
        ("02_PyTorch_Algorithms/68_Speculative_Decoding_Benchmark.ipynb", &notebook(&["RUN_BACKEND_SMOKE = False"])),
        ("other.ipynb", &notebook(&["RUN_REAL_BACKEND = True"])),
    ]);
    let (code, report) = run(&folder, &[]);
    assert_eq!(rules(&report), [("static/backend-switch".to_owned(), Some(1), Some(1), Some(1))]);
    assert_eq!((code, findings(&report, None).next().expect("one")["path"].as_str()), (0, Some(path)));
}

#[test]
fn tests_that_prove_nothing_are_warnings() {
    let mut book: Value = serde_json::from_str(&notebook(&[
        "def test_swallow():\n    try:\n        assert f() == 1\n    except Exception as e:\n        print(e)\ntest_swallow()",
        "assert (x, 'message')",
        "def test_never():\n    assert x",
        "def test_returns():\n    return f() == 2\ntest_returns()",
        "def test_twice():\n    assert 1",
        "def test_twice():\n    assert 2\ntest_twice()",
    ]))
    .expect("JSON");
    let heading = json!({"cell_type": "markdown", "id": "h", "metadata": {}, "source": "text\n\n## 参考代码与解析\n"});
    book["cells"].as_array_mut().expect("cells").push(heading);
    let (code, report) = run(&folder(&[("nb.ipynb", &book.to_string())]), &[]);
    let got: Vec<(String, Option<u64>, Option<u64>)> =
        rules(&report).into_iter().map(|(rule, cell, line, _)| (rule, cell, line)).collect();
    let at = |rule: &str, cell, line| (format!("static/{rule}"), Some(cell), Some(line));
    assert_eq!(
        got,
        [
            at("swallowed-assertion", 1, 4),
            at("assert-tuple", 2, 1),
            at("test-never-called", 3, 1),
            at("test-returns", 4, 2),
            at("duplicate-test", 6, 1),
            at("answer-without-code", 7, 3),
        ]
    );
    assert_eq!(code, 0);
}

#[test]
fn the_target_version_comes_from_flag_settings_or_project() {
    let newer = "type X = int\n";
    let pyproject = "[project]\nname = 'x'\nrequires-python = '>=3.12'\n";
    let settings = "[static]\ntarget_version = \"3.11\"\n";
    let code = |files: &[(&str, &str)], arguments: &[&str]| run(&folder(files), arguments).0;
    assert_eq!(code(&[("a.py", newer)], &[]), 1);
    assert_eq!(code(&[("a.py", newer), ("pyproject.toml", pyproject)], &[]), 0);
    assert_eq!(code(&[("a.py", newer), ("pyproject.toml", pyproject), ("verify.toml", settings)], &[]), 1);
    assert_eq!(code(&[("a.py", newer), ("verify.toml", settings)], &["--target-version", "3.13"]), 0);
    assert_eq!(code(&[("a.py", newer)], &["--target-version", "three"]), 2);
}

#[test]
fn paths_that_match_nothing_are_usage_faults_and_excluded_ones_are_notes() {
    let folder = folder(&[
        ("a.py", "x = 1\n"),
        ("drafts/b.py", "return\n"),
        ("docs/c.md", "text"),
        ("verify.toml", "[course]\nexclude = [\"drafts\"]\ntools = [\"tools/gone.py\"]\n"),
    ]);
    for missing in ["nowhere", "docs", "docs/c.md"] {
        assert_eq!(run(&folder, &[missing]).0, 2, "{missing}");
    }
    for excluded in ["drafts", "drafts/b.py", "./drafts/../drafts/b.py"] {
        let (code, report) = run(&folder, &["a.py", excluded]);
        let got: Vec<String> = rules(&report).into_iter().map(|(rule, ..)| rule).collect();
        assert_eq!((code, got), (0, vec!["run/excluded".to_owned()]), "{excluded}");
    }
    // The list of tools is the user's own here, so that a missing one is worth a note.
    let (code, report) = run(&folder, &[]);
    let got: Vec<String> = rules(&report).into_iter().map(|(rule, ..)| rule).collect();
    assert_eq!((code, got), (0, vec!["static/tool-missing".to_owned()]));
    assert_eq!(report["stages"][0]["summary"]["files"], 1);
}

#[test]
fn a_project_of_the_chain_is_its_notebook_and_the_tools() {
    let folder = folder(&[
        ("02_PyTorch_Algorithms/66_Inference_Performance_Comparison.ipynb", &notebook(&["x = 1"])),
        ("02_PyTorch_Algorithms/67_Quantized_Inference_and_Deployment.ipynb", &notebook(&["return"])),
        ("tools/inference_result_schema.py", "x = 1\n"),
        ("other.py", "return\n"),
    ]);
    let mut command = verify(folder.path());
    command.args(["all", "--only", "static", "--project", "66"]);
    let (code, report) = report(command);
    assert_eq!((code, &report["stages"][0]["summary"]), (0, &json!({"files": 2, "cells": 1})));
}

#[test]
fn nothing_to_check_is_no_pass() {
    let (code, report) = run(&folder(&[("README.md", "text")]), &[]);
    assert_eq!((code, report["stages"][0]["status"].as_str()), (0, Some("skipped")));
}

#[test]
fn the_same_input_gives_the_same_report() {
    let folder = scratch(&project("fixtures/cases/static"));
    let strip = |mut report: Value| {
        report["duration_ms"] = Value::Null;
        report["stages"][0]["duration_ms"] = Value::Null;
        report.to_string()
    };
    let first = strip(run(&folder, &[]).1);
    assert!((0..4).all(|_| strip(run(&folder, &[]).1) == first));
}

/// Little address space, as `ulimit -v` gives: smaller stacks, same verdicts.
#[cfg(target_os = "linux")]
#[rstest]
#[case(4 << 20)]
#[case(1 << 20)]
#[case(400 << 10)]
fn little_address_space_is_enough(#[case] kib: u64) {
    let deep = format!("x = a{}\n", ".b".repeat(60_000));
    let folder = folder(&[("deep.py", &deep), ("other.py", "return 1\n"), ("good.py", "x = 1\n")]);
    let binary = assert_cmd::cargo::cargo_bin("verify");
    let mut command = assert_cmd::Command::new("sh");
    let script = format!("ulimit -v {kib} && exec \"$0\" static --format json");
    command.current_dir(folder.path()).args(["-c", &script]).arg(binary);
    let output = command.output().expect("sh runs");
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let paths: Vec<String> = places(&report).into_iter().map(|(_, path, ..)| path).collect();
    assert_eq!(paths, ["deep.py", "other.py"]);
}

/// Interpreters on PATH that are really there.
fn python() -> Option<&'static str> {
    let works = |name: &&str| {
        let output = std::process::Command::new(name).args(["-c", "print(1)"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    ["python3", "python"].into_iter().find(works)
}

#[test]
fn a_real_interpreter_is_asked_and_only_notes_come_of_it() {
    let Some(python) = python() else {
        eprintln!("skipped: no Python on this machine");
        return;
    };
    let folder = folder(&[
        ("good.py", "x = 1\n"),
        ("bad.py", "return 1\n"),
        ("nb.ipynb", &notebook(&["%matplotlib inline\nfiles = !ls\nawait x\n", "%%bash\n(", "print 1"])),
    ]);
    let (plain_code, plain) = run(&folder, &[]);
    let (code, report) = run(&folder, &["--python", python]);
    assert_eq!((code, rules(&report)), (plain_code, rules(&plain)), "they agree");
    assert_eq!(run(&folder, &["--python", "/no/such/python"]).0, 2);
    assert_eq!(run(&folder, &["--python", "true"]).0, 2);
}

/// A stand-in for an interpreter that disagrees about everything, and one that dies.
#[cfg(unix)]
#[test]
fn disagreements_and_deaths_of_the_interpreter_are_notes() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder(&[
        ("a.py", "x = 1\n"),
        ("b.py", "return\n"),
        (".tools/contrary", "#!/bin/sh\necho 3.10.0\necho '[1, \"SyntaxError: no\"]'\necho null\nexec sleep 60\n"),
        (".tools/dying", "#!/bin/sh\necho 3.10.0\nkill -SEGV $$\n"),
    ]);
    for name in ["contrary", "dying"] {
        let path = folder.path().join(".tools").join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    let notes = |name: &str| {
        let (code, report) = run(&folder, &["--python", &format!(".tools/{name}")]);
        assert_eq!(code, 1);
        let messages =
            findings(&report, Some("note")).map(|finding| finding["message"].as_str().expect("a text").to_owned());
        messages.collect::<Vec<_>>()
    };
    assert_eq!(notes("contrary"), ["Python 3.10.0 refuses this: SyntaxError: no", "Python 3.10.0 accepts this"]);
    let died = notes("dying");
    assert!(died.len() == 2 && died.iter().all(|message| message.contains("died on this")), "{died:?}");
}

/// What a folder holds that nobody may enter was not judged, so it cannot pass.
#[cfg(unix)]
#[rstest]
#[case::the_root(&["static"], "shut", "shut")]
#[case::named(&["static", "shut"], "shut", "shut")]
#[case::the_notebook_of_a_project(&["all", "--only", "static", "--project", "66"], "02_PyTorch_Algorithms", "02_PyTorch_Algorithms/")]
#[case::results(&["schema"], "benchmarks/results/more", "benchmarks/results/more")]
#[case::all_results(&["schema"], "benchmarks/results", "benchmarks/results")]
#[case::named_results(&["schema", "benchmarks"], "benchmarks/results", "benchmarks/results")]
#[case::conclude(&["all", "--only", "conclude", "--project", "66"], "benchmarks/results", "benchmarks/results/")]
#[case::answers(&["answers"], "02_PyTorch_Algorithms", "02_PyTorch_Algorithms")]
fn a_folder_that_cannot_be_entered_fails(#[case] args: &[&str], #[case] closed: &str, #[case] shown: &str) {
    let folder = tempfile::Builder::new().prefix("verify-test-").tempdir().expect("a scratch folder");
    fs::write(folder.path().join("a.py"), "x = 1\n").expect("a file");
    fs::create_dir_all(folder.path().join("benchmarks/results")).expect("a folder");
    fs::create_dir_all(folder.path().join(closed)).expect("a folder");
    let (code, report) = report_with_closed_folder(folder.path(), closed, args);
    let found: Vec<&Value> = findings(&report, Some("error")).collect();
    assert_eq!((code, found.len()), (1, 1), "{report:#}");
    assert_eq!(found[0]["rule"], "run/unreadable");
    assert!(found[0]["path"].as_str().expect("a path").starts_with(shown), "{report:#}");
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_a_fault_of_usage_and_never_opened() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    pipe(&folder.path().join("p.py"));
    let mut command = verify(folder.path());
    command.timeout(std::time::Duration::from_secs(20)).args(["static", "p.py"]);
    command.assert().code(2).stderr(predicates::str::contains("neither a file nor a folder"));
}
