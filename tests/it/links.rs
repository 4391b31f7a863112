//! Cases of this domain: `fixtures/cases/links`.

use crate::support::{args, case, findings, report, scratch, verify};
#[cfg(unix)]
use crate::support::{pipe, report_with_closed_folder};
use rstest::rstest;
use serde_json::Value;
use std::fs;
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
        [format!("links/missing-file a.md:1:4 {help}"), format!("links/missing-file a.md:5:25 {help}"),]
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
fn what_could_not_be_read_is_not_counted_as_checked() {
    let folder = tree(&[("c.ipynb", "{\"cells\": [}")]);
    std::fs::write(folder.path().join("a.md"), b"\xff\xfe\x00").expect("a file");
    let stage = |more: &[&str]| {
        let mut command = verify(folder.path());
        command.arg("links").args(more);
        let (code, report) = report(command);
        (code, report["stages"][0].clone())
    };
    let (code, skipped) = stage(&[]);
    assert_eq!((code, &skipped["status"]), (0, &Value::from("skipped")), "{skipped:#}");
    assert_eq!((&skipped["summary"]["files"], &skipped["summary"]["unreadable"]), (&0.into(), &2.into()));
    assert!(!skipped["reason"].as_str().expect("a reason").contains("excluded"), "{skipped:#}");
    assert_eq!(stage(&["--strict"]).0, 1);
    write(folder.path(), "b.md", "# B\n");
    let (_, passed) = stage(&[]);
    assert_eq!((&passed["status"], &passed["summary"]["files"]), (&"pass".into(), &1.into()), "{passed:#}");
    assert_eq!(passed["summary"]["unreadable"], 2);
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_entered_is_a_warning() {
    let folder = tree(&[("shut/b.md", "[x](gone.md)\n")]);
    let run = |more: &[&str]| {
        let args = [&["links"], more].concat();
        let (code, report) = report_with_closed_folder(folder.path(), "shut", &args);
        let rules: Vec<String> =
            findings(&report, None).map(|finding| format!("{} {}", finding["rule"], finding["path"])).collect();
        (code, report["stages"][0].clone(), rules.join("; "))
    };
    let warning = "\"links/unreadable\" \"shut\"";
    let (code, stage, rules) = run(&[]);
    assert_eq!((code, &stage["status"], rules.as_str()), (0, &"skipped".into(), warning));
    write(folder.path(), "a.md", "# A\n");
    let (code, stage, rules) = run(&[]);
    assert_eq!((code, &stage["status"], rules.as_str()), (0, &"pass".into(), warning));
    assert_eq!((&stage["summary"]["files"], &stage["summary"]["unreadable"]), (&1.into(), &1.into()));
    assert_eq!(run(&["shut"]).2, warning);
    assert_eq!(run(&["a.md"]).2, "");
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_a_fault_of_usage_and_never_opened() {
    let folder = tree(&[("a.md", "# A\n")]);
    pipe(&folder.path().join("p.md"));
    for args in [&["p.md"][..], &["a.md", "p.md"], &["--baseline", "p.md"]] {
        let mut command = verify(folder.path());
        command.timeout(std::time::Duration::from_secs(20)).arg("links").args(args);
        command.assert().code(2).stderr(predicates::str::contains("neither a file nor a folder"));
    }
    // Found by looking around, it is passed over.
    verify(folder.path()).timeout(std::time::Duration::from_secs(20)).arg("links").assert().code(0);
}

#[test]
fn a_named_path_that_holds_nothing_to_check_is_a_fault_of_usage() {
    let folder = tree(&[
        ("tools/a.py", "x = 1\n"),
        ("a.md", "# A\n"),
        ("drafts/b.md", "# B\n"),
        ("verify.toml", "[course]\nexclude = [\"drafts/*.md\"]\n"),
    ]);
    let refused = |paths: &[&str], words: &'static str| {
        let run = verify(folder.path()).arg("links").args(paths).assert();
        run.code(2).stderr(predicates::str::contains(words));
    };
    refused(&["a.md", "tools"], "tools holds no Markdown file and no notebook");
    refused(&["tools/a.py"], "tools/a.py is neither a Markdown file nor a notebook");
    assert_eq!(
        found(folder.path(), &["drafts"]),
        ["run/excluded drafts:null:null remove it from `course.exclude` to have it checked"]
    );
    assert_eq!(found(folder.path(), &["."]), [] as [String; 0]);
}

/// What pre-commit and editors pass: pages of other extensions, and files without links.
#[test]
fn pages_of_other_extensions_are_read_and_other_files_are_noted() {
    let folder = tree(&[
        ("a.markdown", "[x](gone.md)\n"),
        ("b.mdx", "[y](gone.md)\n"),
        ("c.md", "[a](a.markdown) [b](b.mdx)\n"),
        ("d.txt", "[z](gone.md)\n"),
    ]);
    let places = |args: &[&str]| -> Vec<String> {
        found(folder.path(), args).iter().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(places(&[]), ["links/missing-file a.markdown:1:1"]);
    assert_eq!(
        places(&["a.markdown", "b.mdx", "d.txt"]),
        ["links/missing-file a.markdown:1:1", "links/missing-file b.mdx:1:1", "links/not-a-source d.txt:null:null"]
    );
    assert_eq!(places(&["c.md", "d.txt"]), ["links/not-a-source d.txt:null:null"]);
    verify(folder.path()).args(["links", "d.txt"]).assert().code(2);
    verify(folder.path()).args(["links", "c.md", "d.txt"]).assert().code(0);
}

#[test]
fn paths_narrow_what_is_reported_but_not_what_is_known() {
    let folder =
        tree(&[("a/x.md", "# X\n\n[up](../b/y.md#y) [gone](gone.md)\n"), ("b/y.md", "# Y\n\n[gone](gone.md)\n")]);
    let help = "correct the path, or remove the link";
    assert_eq!(found(folder.path(), &["a"]), [format!("links/missing-file a/x.md:3:19 {help}")]);
    verify(folder.path()).args(["links", "c.md"]).assert().code(2);
}

#[test]
fn comments_and_entries_accept_and_what_accepts_nothing_is_said() {
    let folder = tree(&[
        (
            "a.md",
            "<!-- verify-ignore links -->\n\n- [a](gone-a.md)\n- [b](gone-b.md)\n\n[c](gone-c.md)\n\n<!-- verify-ignore-start links: drafts -->\n\n[d](gone-d.md)\n\n[e](gone-e.md)\n\n<!-- verify-ignore-end links -->\n\n<!-- verify-ignore links -->\n\nNothing here.\n",
        ),
        ("made/b.md", "[f](/gone/f.md) [g](gone-g.md)\n"),
        (
            "verify.toml",
            "[[links.ignore]]\npath = \"made/**\"\ntarget = \"/gone/**\"\nreason = \"made by the build\"\n\n[[links.ignore]]\ntarget = \"never\"\nreason = \"old\"\n",
        ),
    ]);
    let rules: Vec<String> =
        found(folder.path(), &[]).iter().map(|line| line.split(" correct").next().unwrap_or(line).to_owned()).collect();
    assert_eq!(
        rules,
        [
            "links/missing-file a.md:6:1",
            "links/unused-ignore a.md:16:1 remove it",
            "links/missing-file made/b.md:1:17",
            "links/unused-ignore verify.toml:6:null remove it",
        ]
    );
}

#[test]
fn an_entry_without_a_reason_is_a_fault_of_the_settings() {
    let folder = tree(&[("a.md", "x\n"), ("verify.toml", "[[links.ignore]]\ntarget = \"x\"\n")]);
    verify(folder.path()).arg("links").assert().code(2);
}

#[test]
fn fix_writes_what_leaves_no_choice_and_dry_run_only_shows_it() {
    let notebook = "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \"source\": [\n    \"# 推\\n\",\n    \"[a](x.md) [b](none.md)\"\n   ]\n  }\n ],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";
    let folder = tree(&[
        ("a.md", "[n](x.md \"x.md\") and [h](b.md#Setp)\r\n\r\n[one](pics/p.png)\r\n"),
        ("b.md", "# Setup\n"),
        ("c.ipynb", notebook),
        ("x.ipynb", "{\"cells\": [], \"metadata\": {}, \"nbformat\": 4, \"nbformat_minor\": 5}"),
        ("img/p.png", ""),
        ("old/p.png", ""),
    ]);
    let read = |path: &str| std::fs::read_to_string(folder.path().join(path)).expect("a file");
    let before = (read("a.md"), read("c.ipynb"));

    let output = verify(folder.path()).args(["links", "--fix", "--dry-run"]).output().expect("it runs");
    let diff = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(diff.contains("--- a/a.md") && diff.contains("+[n](x.ipynb \"x.md\")"), "{diff}");
    assert_eq!((read("a.md"), read("c.ipynb")), before);

    let mut command = verify(folder.path());
    command.args(["links", "--fix"]);
    let (code, report) = report(command);
    assert_eq!(code, 1);
    assert_eq!(report["stages"][0]["summary"]["fixed"], 2);
    // Two pictures of that name, and a heading that is only near: left to the author.
    assert_eq!(read("a.md"), "[n](x.ipynb \"x.md\") and [h](b.md#Setp)\r\n\r\n[one](pics/p.png)\r\n");
    assert_eq!(read("c.ipynb"), notebook.replace("(x.md)", "(x.ipynb)"));
    assert_eq!(places(findings(&report, Some("error"))).len(), 3);
}

#[test]
fn a_baseline_accepts_today_and_fails_on_what_is_new() {
    let folder = tree(&[("a.md", "[x](gone.md)\n\n[x](gone.md)\n")]);
    let run = |code: i32, more: &[&str]| {
        verify(folder.path()).args(["links", "--baseline", "base.json"]).args(more).assert().code(code);
    };
    run(0, &[]);
    run(0, &[]);
    write(folder.path(), "a.md", "New line\n\n[x](gone.md)\n\n[x](gone.md)\n");
    run(0, &[]);
    write(folder.path(), "a.md", "[x](gone.md)\n\n[x](gone.md)\n\n[x](gone.md)\n");
    run(1, &[]);
    run(0, &["--update-baseline"]);
    run(0, &[]);
    write(folder.path(), "base.json", "{}");
    run(2, &[]);
}

#[test]
fn the_mirror_names_missing_pages_and_links_that_differ() {
    let folder = tree(&[
        ("docs/.vitepress/config.mts", "export default {}\n"),
        ("docs/index.md", "# I\n"),
        ("docs/part/a.md", "[next](./b.md)\n"),
        ("docs/part/b.md", "# B\n"),
        ("part/a.md", "[next](./b.md)\n"),
        ("part/b.ipynb", "{\"cells\": []}"),
        ("part/c.md", "# C\n"),
    ]);
    let rules = |more: &[&str]| -> Vec<String> {
        let list = found(folder.path(), more);
        list.iter().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(
        rules(&["--mirror"]),
        [
            "links/mirror-differs part/a.md:1:1",
            "links/missing-file part/a.md:1:1",
            "links/mirror-missing part/c.md:null:null"
        ]
    );
    assert_eq!(rules(&["--mirror", "--skip-scan"]), ["links/mirror-missing part/c.md:null:null"]);
    let former = ["--skip-convert", "--skip-mirror-check", "--skip-build"];
    assert_eq!(rules(&former), ["links/missing-file part/a.md:1:1"]);
}

#[cfg(unix)]
#[test]
fn convert_and_build_run_first_and_their_failure_ends_the_run() {
    let settings = "[links]\nconvert = [\"sh\", \"-c\", \"echo converting; printf '# B\\\\n' > b.md\"]\nbuild = [\"sh\", \"-c\", \"exit 3\"]\nbuild_dir = \".\"\n";
    let folder = tree(&[("a.md", "[b](b.md#b)\n"), ("verify.toml", settings)]);
    verify(folder.path()).arg("links").assert().code(1);
    let output = verify(folder.path()).args(["links", "--convert", "--format", "json"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.starts_with(b"{"), "what a command prints must not mix with the report");
    let failed = found(folder.path(), &["--build"]);
    assert_eq!(failed.len(), 1);
    assert!(failed[0].starts_with("links/command-failed"), "{failed:?}");
    verify(folder.path()).args(["links", "--build", "--skip-build"]).assert().code(0);
    std::fs::remove_file(folder.path().join("verify.toml")).expect("it is there");
    verify(folder.path()).args(["links", "--convert"]).assert().code(2);
}

#[test]
fn addresses_of_the_own_repository_and_site_are_checked_offline() {
    let folder = tree(&[
        ("docs/.vitepress/config.mts", "export default { base: '/n/' }\n"),
        ("docs/index.md", "# Home\n"),
        ("docs/guide.md", "# Guide\n"),
        (
            "README.md",
            "[1](https://github.com/o/n/blob/main/docs/guide.md#guide)\n[2](https://github.com/o/n/blob/main/docs/gone.md)\n[3](https://colab.research.google.com/github/o/n/blob/main/gone.ipynb)\n[4](https://o.github.io/n/guide)\n[5](https://o.github.io/n/gone)\n[6](https://github.com/o/n/issues)\n\nhttps://github.com/o/n/blob/main/bare.md.\n",
        ),
        ("verify.toml", "[links]\nrepository = \"https://github.com/o/n\"\nsite = \"https://o.github.io/n/\"\n"),
    ]);
    let places: Vec<String> =
        found(folder.path(), &[]).iter().map(|line| line.split(' ').nth(1).unwrap_or_default().to_owned()).collect();
    assert_eq!(places, ["README.md:2:1", "README.md:3:1", "README.md:5:1", "README.md:8:1"]);
}

#[test]
fn what_git_does_not_track_is_a_warning() {
    let folder = tree(&[
        (".gitignore", "made/\n"),
        ("made/x.md", "# X\n"),
        ("new.md", "# N\n"),
        ("a.md", "[x](made/x.md) [new](new.md) [a](a.md)\n"),
    ]);
    let git = |args: &[&str]| {
        let status = std::process::Command::new("git").args(args).current_dir(folder.path()).output();
        assert!(status.expect("git runs").status.success(), "{args:?}");
    };
    // Without a repository only the ignore rules speak.
    let help = |path: &str| format!("add `{path}` with `git add -f`, or link to something that is published");
    assert_eq!(found(folder.path(), &[]), [format!("links/untracked-target a.md:1:1 {}", help("made/x.md"))]);
    git(&["init", "-q"]);
    git(&["add", "a.md", ".gitignore"]);
    assert_eq!(
        found(folder.path(), &[]),
        [
            format!("links/untracked-target a.md:1:1 {}", help("made/x.md")),
            format!("links/untracked-target a.md:1:16 {}", help("new.md")),
        ]
    );
    git(&["add", "-f", "new.md", "made/x.md"]);
    assert_eq!(found(folder.path(), &[]), [] as [String; 0]);
}

#[cfg(unix)]
#[test]
fn symbolic_links_in_circles_are_walked_once() {
    let folder = tree(&[("sub/a.md", "# A\n"), ("b.md", "[a](loop/sub/a.md#a) [l](alias.md#a) [g](loop/gone.md)\n")]);
    std::os::unix::fs::symlink(".", folder.path().join("loop")).expect("a link");
    std::os::unix::fs::symlink("sub/a.md", folder.path().join("alias.md")).expect("a link");
    let lines = found(folder.path(), &[]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("links/missing-file b.md:1:38"), "{lines:?}");
}

/// A server on this machine that answers by path, and counts.
fn server() -> (String, std::sync::Arc<std::sync::Mutex<Vec<String>>>) {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = std::sync::Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let log = std::sync::Arc::clone(&log);
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
                let mut line = String::new();
                reader.read_line(&mut line).expect("a request");
                let mut header = String::new();
                while reader.read_line(&mut header).is_ok_and(|length| length > 2) {
                    header.clear();
                }
                let request = line.rsplit_once(' ').map_or(line.as_str(), |(request, _)| request).to_owned();
                let before = {
                    let mut log = log.lock().expect("a log");
                    log.push(request.clone());
                    log.iter().filter(|known| **known == request).count()
                };
                let (status, more) = match request.as_str() {
                    "HEAD /ok" => ("200 OK", ""),
                    "GET /get-only" => ("200 OK", ""),
                    "HEAD /get-only" => ("405 Method Not Allowed", ""),
                    "HEAD /busy" if before == 1 => ("429 Too Many Requests", "Retry-After: 1\r\n"),
                    "HEAD /busy" => ("200 OK", ""),
                    request if request.ends_with("/refused") => ("403 Forbidden", ""),
                    _ => ("404 Not Found", ""),
                };
                let mut stream = stream;
                let _ = write!(stream, "HTTP/1.1 {status}\r\n{more}Content-Length: 0\r\nConnection: close\r\n\r\n");
            });
        }
    });
    (address, seen)
}

#[test]
fn external_links_are_dead_alive_or_unknown() {
    let (address, seen) = server();
    let text = format!(
        "[1]({address}/ok#x) [2]({address}/get-only) [3]({address}/busy)\n\n[4]({address}/gone)\n\n[5]({address}/refused)\n\n[6](http://127.0.0.1:9/closed)\n\n[7]({address}/ok)\n"
    );
    let folder = tree(&[("a.md", &text), ("verify.toml", "[links.external]\nretries = 1\n")]);
    let rules = || -> Vec<String> {
        let list = found(folder.path(), &["--external"]);
        list.iter().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect()
    };
    let expected = ["links/dead-url a.md:3:1", "links/unchecked-url a.md:5:1", "links/unchecked-url a.md:7:1"];
    assert_eq!(rules(), expected);
    let first = std::mem::take(&mut *seen.lock().expect("a log"));
    assert_eq!(first.iter().filter(|request| request.ends_with("/ok")).count(), 1, "{first:?}");
    // What was alive is believed for a day; what was not is asked for again.
    assert_eq!(rules(), expected);
    let second = seen.lock().expect("a log").clone();
    assert!(second.iter().all(|request| request.ends_with("/gone") || request.ends_with("/refused")), "{second:?}");
    // Off by default.
    assert_eq!(found(folder.path(), &[]), [] as [String; 0]);
}

#[test]
fn big_and_deep_files_do_not_hang() {
    let headings: String = (0..100_000).map(|n| format!("# Same\n\n## H {n}\n")).collect();
    let deep: String = (0..3000).map(|n| format!("{}- [x](a.md)\n", " ".repeat(2 * (n % 500)))).collect();
    let quotes = format!("{}[x](gone.md)\n", "> ".repeat(2000));
    let brackets = "[".repeat(50_000);
    let folder = tree(&[
        ("a.md", &format!("{headings}\n[x](#same-99999) [y](#h-5)\n")),
        ("deep.md", &deep),
        ("quotes.md", &quotes),
        ("brackets.md", &brackets),
    ]);
    let started = std::time::Instant::now();
    let lines = found(folder.path(), &[]);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    assert!(lines.iter().all(|line| line.starts_with("links/missing-file quotes.md")), "{lines:?}");
}

/// A name that is no UTF-8 is shown with replacement characters; what is shown names no file.
#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_utf8_is_neither_found_nor_suggested() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("docs")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"docs/n\xff.md");
    fs::write(folder.path().join(odd), "# N\n\n[here](#n) [gone](#gone)\n").unwrap();
    let page = folder.path().join("docs/c.md");
    fs::write(&page, "[a](no.md) [b](n\u{fffd}.md)\n").unwrap();
    let run = |args: &[&str]| {
        let mut command = verify(folder.path());
        command.args(args);
        report(command)
    };
    let (code, document) = run(&["links"]);
    let findings = document["stages"][0]["findings"].as_array().unwrap();
    assert_eq!((code, findings.len()), (1, 3), "{document}");
    assert!(!document.to_string().contains("write `n"), "{document}");
    assert_eq!(run(&["links", "--fix"]).0, 1);
    assert_eq!(fs::read_to_string(&page).unwrap(), "[a](no.md) [b](n\u{fffd}.md)\n");
}
