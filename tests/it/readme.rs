//! The README in both languages: complete, and in step.

use crate::support::project;
use clap::CommandFactory;
use std::fs;

fn readme(name: &str) -> String {
    fs::read_to_string(project(name)).unwrap()
}

/// Headings by depth, code blocks and links with what they say: everything but prose.
fn skeleton(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            code = !code;
            lines.push(line.to_owned());
        } else if code {
            // A comment in a code block is prose.
            lines.push(line.split(" #").next().unwrap_or_default().trim_end().to_owned());
        } else if line.starts_with('#') {
            lines.push("#".repeat(line.chars().take_while(|c| *c == '#').count()));
        } else if line.starts_with('|') {
            lines.push(line.split('`').nth(1).unwrap_or("|").to_owned());
        }
    }
    lines
}

#[test]
fn both_languages_have_the_same_sections_tables_and_code() {
    assert_eq!(skeleton(&readme("README.md")), skeleton(&readme("README.zh-CN.md")));
}

#[test]
fn every_command_has_its_line() {
    let command = verify::cli::Cli::command();
    for text in [readme("README.md"), readme("README.zh-CN.md")] {
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            let line = format!("| `verify {}", command.get_name());
            assert!(text.contains(&line), "the README lacks `verify {}`", command.get_name());
        }
    }
}
