//! The command line in Chinese: help pages and refusals. English is what clap makes of the
//! doc comments; the tables of [`help`] hold the Chinese beside it.

mod help;

use crate::model::{Lang, translate};
use clap::builder::{PossibleValue, StyledStr};
use clap::{Arg, Command};
use unicode_width::UnicodeWidthChar;

/// The command tree as it speaks in `lang`.
pub(super) fn speaking(command: Command, lang: Lang) -> Command {
    match lang {
        Lang::En => command,
        // Lines are folded in the end: clap wraps at spaces only, and Chinese has few.
        Lang::Zh => in_chinese(command).term_width(0),
    }
}

fn in_chinese(mut command: Command) -> Command {
    if let Some(about) = command.get_about().map(StyledStr::to_string) {
        command = command.about(chinese(&about).to_owned());
    }
    if let Some(about) = command.get_long_about().map(StyledStr::to_string) {
        command = command.long_about(chinese(&about).to_owned());
    }
    command = command.mut_args(argument);
    let names: Vec<String> = shown(&command).map(|command| command.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, in_chinese))
}

/// Internal commands are nobody's to read.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set())
}

/// An option with its help, its default and its values in Chinese.
fn argument(arg: Arg) -> Arg {
    let Some(help) = arg.get_help().map(StyledStr::to_string) else { return arg };
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let default =
        (!defaults.is_empty() && arg.get_action().takes_values()).then(|| format!("[默认：{}]", defaults.join(" ")));
    let values = if arg.get_action().takes_values() { arg.get_possible_values() } else { Vec::new() };
    let names: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
    let choice = (!names.is_empty()).then(|| format!("[可选值：{}]", names.join("、")));
    let help = chinese(&help).to_owned();
    let short = [Some(help.clone()), default.clone(), choice].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let mut long = help;
    if !values.is_empty() {
        long.push_str("\n\n可选值：");
        values.iter().for_each(|value| long.push_str(&described(value)));
    }
    if let Some(default) = default {
        long.push_str(&format!("\n\n{default}"));
    }
    let heading = arg.get_help_heading().map(|heading| find(help::HEADINGS, heading).unwrap_or(heading).to_owned());
    let arg = if values.is_empty() && long == short { arg } else { arg.long_help(long) };
    let takes_values = arg.get_action().takes_values();
    let arg = arg.help(short).hide_default_value(takes_values).hide_possible_values(takes_values);
    match heading {
        Some(heading) => arg.help_heading(heading),
        None => arg,
    }
}

/// A value on a line of its own, with what it means.
fn described(value: &PossibleValue) -> String {
    let means = value.get_help().map(|help| format!("：{}", chinese(&help.to_string()))).unwrap_or_default();
    format!("\n- {}{means}", value.get_name())
}

/// The Chinese of a help text. A test keeps the table whole; a text that it lacks would
/// stay English.
fn chinese(english: &str) -> &str {
    find(help::HELP, english).unwrap_or(english)
}

fn find(table: &[(&str, &'static str)], english: &str) -> Option<&'static str> {
    table.iter().find(|(en, _)| *en == english).map(|(_, zh)| *zh)
}

/// What clap has to say, in Chinese: a help page or a refusal, folded to `width` columns.
pub(super) fn said(error: &clap::Error, coloured: bool, width: usize) -> String {
    let text = error.render();
    let text = if coloured && !error.use_stderr() { text.ansi().to_string() } else { text.to_string() };
    let text = if error.use_stderr() { refusal(&text, coloured) } else { page(&text) };
    text.lines().map(|line| fold(line.trim_end(), width) + "\n").collect()
}

/// A help page, whose words of clap's own are still English.
fn page(text: &str) -> String {
    let text = help::FRAME.iter().fold(text.to_owned(), |text, (en, zh)| text.replace(en, zh));
    help::HEADINGS.iter().fold(text, |text, (_, zh)| text.replace(&format!("{zh}:"), &format!("{zh}：")))
}

/// A refusal, line by line.
fn refusal(text: &str, coloured: bool) -> String {
    let lines = text.lines().map(|line| translate(help::REFUSALS, line).unwrap_or_else(|| line.to_owned()));
    let text = page(&lines.collect::<Vec<_>>().join("\n"));
    match text.strip_prefix("错误：").filter(|_| coloured) {
        Some(rest) => format!("\u{1b}[1m\u{1b}[31m错误：\u{1b}[0m{rest}"),
        None => text,
    }
}

/// Breaks a line that is too wide; what follows stands below the column of the help text.
fn fold(line: &str, width: usize) -> String {
    let indent = help_column(line).min(width / 2);
    let (mut out, mut used, mut last_break, mut label) = (String::new(), 0, None, false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            // A colour takes no room.
            out.push(letter);
            out.extend(letters.by_ref().take_while(|c| *c != 'm').chain(['m']));
            continue;
        }
        let wide = letter.width().unwrap_or(0);
        // `[可选值：` stays together.
        label = letter == '[' || label && letter != '：';
        if used > indent && !label && (letter == ' ' || wide == 2 && !BOUND_TO_THE_LEFT.contains(letter)) {
            last_break = Some(out.len());
        }
        if used + wide > width && used > indent {
            let at = last_break.unwrap_or(out.len());
            let tail = out.split_off(at).trim_start().to_owned();
            out = out.trim_end().to_owned();
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            out.push_str(&tail);
            used = indent + tail.chars().filter_map(UnicodeWidthChar::width).sum::<usize>();
            last_break = None;
        }
        out.push(letter);
        used += wide;
    }
    out
}

/// What no line begins with.
const BOUND_TO_THE_LEFT: &str = "，。、；：！？）》」…";

/// Where the help text of a line begins: behind the last gap, else at its indentation.
fn help_column(line: &str) -> usize {
    let plain = without_colours(line);
    let begin = plain.len() - plain.trim_start().len();
    match plain[begin..].find("  ") {
        Some(gap) => {
            let column = begin + gap;
            column + plain[column..].len() - plain[column..].trim_start().len()
        }
        None if plain[begin..].starts_with("- ") => begin + 2,
        None => begin,
    }
}

fn without_colours(line: &str) -> String {
    let mut letters = line.chars();
    let mut out = String::new();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            let _ = letters.by_ref().find(|c| *c == 'm');
        } else {
            out.push(letter);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    /// Every English text of the visible command tree, as clap has it.
    fn texts(command: &Command, all: &mut BTreeSet<String>) {
        all.extend(command.get_about().map(StyledStr::to_string));
        all.extend(command.get_long_about().map(StyledStr::to_string));
        for arg in command.get_arguments() {
            all.extend(arg.get_help().map(StyledStr::to_string));
            all.extend(arg.get_long_help().map(StyledStr::to_string));
            if arg.get_action().takes_values() {
                all.extend(
                    arg.get_possible_values().iter().filter_map(|value| value.get_help()).map(StyledStr::to_string),
                );
            }
        }
        shown(command).for_each(|command| texts(command, all));
    }

    fn headings(command: &Command, all: &mut BTreeSet<String>) {
        all.extend(command.get_arguments().filter_map(|arg| arg.get_help_heading().map(str::to_owned)));
        shown(command).for_each(|command| headings(command, all));
    }

    #[test]
    fn every_help_text_has_its_chinese_and_none_is_left_over() {
        let (mut wanted, mut titles) = (BTreeSet::new(), BTreeSet::new());
        texts(&crate::cli::Cli::command(), &mut wanted);
        headings(&crate::cli::Cli::command(), &mut titles);
        for (what, wanted, table) in [("help", wanted, help::HELP), ("headings", titles, help::HEADINGS)] {
            let there: BTreeSet<String> = table.iter().map(|(en, _)| (*en).to_owned()).collect();
            let missing: Vec<&String> = wanted.difference(&there).collect();
            let left_over: Vec<&String> = there.difference(&wanted).collect();
            assert!(
                missing.is_empty() && left_over.is_empty(),
                "{what}: missing {missing:#?}, left over {left_over:#?}"
            );
            assert_eq!(there.len(), table.len(), "{what}: a text stands twice");
        }
    }

    #[test]
    fn the_chinese_command_line_is_consistent() {
        speaking(crate::cli::Cli::command(), Lang::Zh).debug_assert();
    }

    /// What a text names and a user types: `code`, --options, VALUE names.
    fn names(text: &str) -> BTreeSet<String> {
        let code = text.split('`').skip(1).step_by(2).map(|span| format!("`{span}`"));
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_./=".contains(c)));
        let typed = words.filter(|word| {
            let letters = word.chars().filter(char::is_ascii_uppercase).count();
            word.starts_with("--") || letters >= 3 && !word.contains(|c: char| c.is_ascii_lowercase())
        });
        code.chain(typed.map(|word| word.trim_end_matches('.').to_owned())).collect()
    }

    #[test]
    fn both_languages_name_the_same_things() {
        for (en, zh) in help::HELP {
            assert_eq!(names(en), names(zh), "{en}");
            assert_eq!(en.contains("[default: "), zh.contains("[默认："), "{en}");
        }
        for (en, zh) in help::REFUSALS {
            let holes = |text: &str| text.matches('{').count();
            assert_eq!(holes(en), holes(zh), "{en}");
        }
    }

    #[test]
    fn a_refusal_is_taken_apart_and_put_together() {
        let line = "error: invalid value '0' for '--concurrency <C>': 0 is not in 1..=4096";
        assert_eq!(
            translate(help::REFUSALS, line).as_deref(),
            Some("错误：值 '0' 不能用于 '--concurrency <C>'：0 不在 1..=4096 范围内")
        );
        assert_eq!(
            translate(help::REFUSALS, "  tip: a similar argument exists: '--fix'").as_deref(),
            Some("  提示：是不是想写 '--fix'？")
        );
        assert_eq!(translate(help::REFUSALS, "nothing of clap's"), None);
        assert_eq!(
            translate(help::REFUSALS, "`max` of `chat` must be a whole number above 0").as_deref(),
            Some("`chat` 的 `max` 必须是大于 0 的整数")
        );
    }

    #[test]
    fn a_long_line_goes_on_below_its_help_text() {
        assert_eq!(
            fold("  -q, --quiet  只显示失败项和最后一行", 30),
            "  -q, --quiet  只显示失败项和\n               最后一行"
        );
        assert_eq!(fold("短", 10), "短");
        assert_eq!(fold("一二三，四五", 6), "一二\n三，四\n五");
        assert_eq!(fold("\u{1b}[1m一二\u{1b}[0m三", 4), "\u{1b}[1m一二\u{1b}[0m\n三");
    }
}
