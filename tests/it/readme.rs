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

/// Pages that show commands.
fn pages() -> Vec<std::path::PathBuf> {
    let docs = fs::read_dir(project("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    docs.chain(["README.md", "README.zh-CN.md"].map(project)).collect()
}

/// The words of a command line as a shell splits them, up to a comment or another command.
fn words(line: &str) -> Vec<String> {
    // What a substitution brings is a file here: options in it belong to another program.
    let line = regex::Regex::new(r"\$\([^)]*\)").unwrap().replace_all(line, "substituted");
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in line.chars() {
        match (letter, quote) {
            ('"' | '\'', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            (' ', None) => words.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    words.push(word);
    let ends = |word: &String| ["#", "|", "||", "&&", ">", "2>", "\\", ";"].iter().any(|end| word.starts_with(end));
    words.into_iter().take_while(|word| !ends(word)).filter(|word| !word.is_empty()).collect()
}

/// What a reader copies from a page, the program understands.
#[test]
fn every_command_line_of_the_pages_is_understood() {
    use clap::Parser;
    let mut faults = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let code = text.split("```").skip(1).step_by(2).flat_map(str::lines);
        let lines = code.filter_map(|line| {
            let line = line.trim().trim_start_matches("- ").trim_start_matches("run: ").trim_start_matches("$ ");
            line.starts_with("verify ").then(|| line.replace("${{ matrix.part }}", "1"))
        });
        for line in lines {
            seen += 1;
            if let Err(error) = verify::cli::Cli::try_parse_from(words(&line))
                && error.use_stderr()
            {
                faults.push(format!("{}: {line}\n{error}", page.display()));
            }
        }
    }
    assert!(seen > 40, "the pages show commands: {seen}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// In running text, commands have placeholders; their names and options exist all the same.
#[test]
fn every_command_that_the_pages_name_exists() {
    let root = verify::cli::Cli::command();
    let option = regex::Regex::new(r"--([a-z][a-z-]*)").unwrap();
    let span = regex::Regex::new(r"`verify ([a-z]+)([^`]*)`").unwrap();
    let mut faults = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for found in span.captures_iter(&text) {
            let Some(command) = root.find_subcommand(&found[1]) else {
                faults.push(format!("{}: {}", page.display(), &found[0]));
                continue;
            };
            let below = command.get_subcommands().flat_map(clap::Command::get_arguments);
            let known: Vec<&str> = command
                .get_arguments()
                .chain(root.get_arguments())
                .chain(below)
                .filter_map(clap::Arg::get_long)
                .collect();
            let named = option
                .captures_iter(found[2].split("$(").next().unwrap_or_default())
                .map(|option| option[1].to_owned());
            for option in named.filter(|option| !known.contains(&option.as_str())) {
                faults.push(format!("{}: {} has no --{option}", page.display(), &found[0]));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
