//! What people copy: pages, examples, hooks, the action. It must parse, agree with the
//! program, and name the version that it belongs to.

use crate::support::{project, verify};
use clap::Parser;
use regex::Regex;
use std::fs;
use std::path::PathBuf;
use verify::cli::Cli;
use verify::rules;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn text(path: &str) -> String {
    fs::read_to_string(project(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every page that is written by hand.
fn pages() -> Vec<(String, String)> {
    let docs = fs::read_dir(project("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect();
    names.extend(["README.md", "README.zh-CN.md", "SECURITY.md", "CONTRIBUTING.md"].map(project));
    names.iter().map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap())).collect()
}

/// Splits a command line as a shell would, as far as pages need it.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (String::new(), None);
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn every_command_of_the_pages_is_one_that_the_program_takes() {
    let mut count = 0;
    for (page, text) in pages() {
        for line in text.lines().filter_map(|line| line.strip_prefix("$ verify ")) {
            let line = line.split(" #").next().unwrap_or_default().replace('…', "x.json");
            let words = words(&line);
            let answer = Cli::try_parse_from(["verify".to_owned()].into_iter().chain(words.clone()));
            if let Err(error) = answer {
                let asks_only = matches!(
                    error.kind(),
                    clap::error::ErrorKind::DisplayVersion | clap::error::ErrorKind::DisplayHelp
                );
                assert!(asks_only, "{page}: {line}: {error}");
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count} commands found");
}

#[test]
fn every_rule_of_the_pages_exists() {
    let whole = Regex::new(r"`((?:run|static|answers|links|smoke|schema|json|evidence)/[a-z0-9-]+)`").unwrap();
    let explained = Regex::new(r"verify explain ([a-z]+/[a-z0-9-]+)").unwrap();
    for (page, text) in pages() {
        for found in whole.captures_iter(&text).chain(explained.captures_iter(&text)) {
            assert!(rules::find(&found[1]).is_some(), "{page}: {}", &found[1]);
        }
    }
    let row = Regex::new(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`").unwrap();
    let evidence = text("docs/evidence.md");
    let named: Vec<String> = row.captures_iter(&evidence).map(|found| format!("evidence/{}", &found[1])).collect();
    assert!(named.len() > 30);
    for rule in &named {
        assert!(rules::find(rule).is_some(), "docs/evidence.md: {rule}");
    }
    for rule in rules::all().filter(|rule| rule.id.starts_with("evidence/")) {
        let name = rule.id.trim_start_matches("evidence/");
        assert!(evidence.contains(&format!("`{name}`")), "docs/evidence.md lacks {name}");
    }
}

#[test]
fn the_table_of_contents_names_every_page() {
    let summary = text("docs/SUMMARY.md");
    for entry in fs::read_dir(project("docs")).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") && name != "SUMMARY.md" {
            assert!(summary.contains(&format!("({name})")), "{name} is not in docs/SUMMARY.md");
        }
    }
}

#[test]
fn one_version_stands_everywhere() {
    let wanted = [
        ("pyproject.toml", format!("version = \"{VERSION}\"")),
        ("pyproject.toml", format!("inference-verify=={VERSION}")),
        ("action.yml", format!("default: {VERSION}")),
        ("docs/examples/github.yml", format!("version: {VERSION}")),
        ("docs/examples/github.yml", format!("verify@v{VERSION}")),
        ("docs/examples/gitlab-ci.yml", format!("inference-verify=={VERSION}")),
        ("docs/examples/Jenkinsfile", format!("inference-verify=={VERSION}")),
        ("docs/examples/pre-commit-config.yaml", format!("rev: v{VERSION}")),
        ("docs/ci.md", format!("verify@v{VERSION}")),
    ];
    for (file, part) in wanted {
        assert!(text(file).contains(&part), "{file} lacks `{part}`");
    }
}

#[test]
fn every_hook_comes_twice_and_runs_what_exists() {
    let hooks = text(".pre-commit-hooks.yaml");
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.trim().strip_prefix(&format!("{name}: ")));
        line.unwrap_or_default().to_owned()
    };
    let blocks: Vec<&str> = hooks.split("- id: ").skip(1).collect();
    assert_eq!(blocks.len(), 8);
    for block in &blocks {
        let id = block.lines().next().unwrap();
        let entry = field(block, "entry");
        assert!(Cli::try_parse_from(entry.split_whitespace()).is_ok(), "{entry}");
        let language = if id.ends_with("-system") { "system" } else { "python" };
        assert_eq!(field(block, "language"), language, "{id}");
        let twin = blocks.iter().find(|other| other.starts_with(&format!("{id}-system\n")));
        for name in ["entry", "files", "exclude", "pass_filenames", "always_run", "require_serial"] {
            if let Some(twin) = twin {
                assert_eq!(field(block, name), field(twin, name), "{id}: {name}");
            }
        }
    }
}

/// A tag can be moved to other code; a commit cannot.
#[test]
fn actions_are_pinned_by_commit() {
    let pinned = Regex::new(r"^[\w./-]+@[0-9a-f]{40} # v\d").unwrap();
    let workflows = fs::read_dir(project(".github/workflows")).unwrap().flatten();
    let mut files: Vec<PathBuf> = workflows.map(|entry| entry.path()).collect();
    files.extend(["action.yml", "docs/examples/github.yml", "docs/examples/github-matrix.yml"].map(project));
    for file in files {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let used = line.trim().trim_start_matches("- ").strip_prefix("uses: ");
            if let Some(used) = used {
                let own = used == "./" || used.starts_with("OWNER/verify@");
                assert!(own || pinned.is_match(used), "{}: {used}", file.display());
            }
        }
    }
}

#[test]
fn the_project_passes_its_own_checks() {
    for command in ["static", "links"] {
        let output = verify(&project(".")).args([command, "--no-progress"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{command}: {said}");
        assert!(said.contains("passed"), "{said}");
    }
}
