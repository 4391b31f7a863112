//! `verify explain`.

use crate::Screen;
use crate::backend::diagnose::SIGNATURES;
use crate::cli::ExplainArgs;
use crate::config::nearest;
use crate::error::RunError;
use crate::model::{Lang, Localized, Text, word};
use crate::rules::example::{Example, Part, Side};
use crate::rules::{self, Rule, readable};
use crate::term::pad;
use std::fmt::Write;

/// Begins the ids of known causes of a server's end.
const DIAGNOSIS: &str = "diagnosis/";

/// Explains one rule, or lists all of them.
///
/// # Errors
/// There is no rule of that id.
pub(crate) fn run(args: &ExplainArgs, screen: &Screen<'_>) -> Result<u8, RunError> {
    let mut text = String::new();
    match &args.rule {
        None => {
            for rule in rules::all() {
                let _ = writeln!(
                    text,
                    "{:34} {} {}",
                    rule.id,
                    pad(word(rule.severity.name(), screen.lang), 8),
                    summary(rule, screen.lang)
                );
            }
            for signature in SIGNATURES {
                let id = format!("{DIAGNOSIS}{}", signature.id);
                let _ = writeln!(
                    text,
                    "{id:34} {} {}",
                    pad(word("cause", screen.lang), 8),
                    signature.cause.get(screen.lang)
                );
            }
        }
        Some(id) if id.starts_with(DIAGNOSIS) => write_diagnosis(&mut text, id, screen.lang)?,
        Some(group) if !group.contains('/') && write_group(&mut text, group, screen.lang) => {}
        Some(id) => {
            let rule = rules::find(id).ok_or_else(|| unknown(id))?;
            let message = readable(rule.message.get(screen.lang));
            let _ = writeln!(text, "{} ({})\n\n{message}\n", rule.id, word(rule.severity.name(), screen.lang));
            let _ = writeln!(text, "{}", readable(rule.why.get(screen.lang)));
            let help = readable(rule.help.get(screen.lang));
            if !help.is_empty() {
                let _ = writeln!(text, "\n{help}");
            }
            write_example(&mut text, rule, screen.lang);
        }
    }
    screen.print(&text);
    Ok(0)
}

/// What a rule is about, in a line of a list. Where the message is all made for the place,
/// the reason tells more.
fn summary(rule: &Rule, lang: Lang) -> String {
    let message = readable(rule.message.get(lang));
    if !(message.starts_with('<') && message.find('>') == Some(message.len() - 1)) {
        return message;
    }
    let why = rule.why.get(lang);
    let end = why.find(". ").or_else(|| why.find('。')).unwrap_or(why.len());
    readable(&why[..end])
}

/// Lists the rules of one group, such as `links`; false when there is no such group.
fn write_group(text: &mut String, group: &str, lang: Lang) -> bool {
    for rule in rules::all().filter(|rule| rule.id.split_once('/').is_some_and(|(name, _)| name == group)) {
        let _ = writeln!(text, "{:34} {} {}", rule.id, pad(word(rule.severity.name(), lang), 8), summary(rule, lang));
    }
    for signature in SIGNATURES.iter().filter(|_| DIAGNOSIS.strip_suffix('/') == Some(group)) {
        let id = format!("{DIAGNOSIS}{}", signature.id);
        let _ = writeln!(text, "{id:34} {} {}", pad(word("cause", lang), 8), signature.cause.get(lang));
    }
    !text.is_empty()
}

/// The bad and the good example, or why there is none.
fn write_example(text: &mut String, rule: &Rule, lang: Lang) {
    // A test reads every one, so there is nothing to say of one that cannot be read.
    let Ok(example) = Example::parse(rule.example) else { return };
    if let Some(reason) = example.none {
        let label = Text { en: "No example", zh: "没有示例" };
        let _ = writeln!(text, "\n{}{}{}", label.get(lang), colon(lang), reason.get(lang));
    } else {
        write_side(text, &example, Side::Bad, lang);
        write_side(text, &example, Side::Good, lang);
    }
}

/// One side of an example: its files, then the command line.
fn write_side(text: &mut String, example: &Example, side: Side, lang: Lang) {
    let label = match side {
        Side::Good => Text { en: "Good", zh: "正确示例" },
        _ => Text { en: "Bad", zh: "错误示例" },
    };
    let _ = writeln!(text, "\n{}{}", label.get(lang), colon(lang).trim_end());
    for part in example.shown(side) {
        let _ = writeln!(text, "  {}", part_name(part, lang));
        let absent = Text { en: "(absent)", zh: "（没有这一项）" }.get(lang);
        for line in part.text.lines() {
            let line = line.replace("\"(absent)\"", absent);
            let _ = writeln!(text, "{}", format!("    {line}").trim_end());
        }
    }
    if let Some(command) = example.command(side) {
        let _ = writeln!(text, "  $ {command}");
    }
}

/// Where a part of an example stands.
fn part_name(part: &Part, lang: Lang) -> String {
    let excerpt = Text { en: " (excerpt)", zh: "（节选）" };
    match part.name.strip_prefix("server").filter(|_| part.is_server()) {
        Some(when) => {
            let label = Text { en: "what the server sends", zh: "服务返回的内容" }.get(lang);
            let when = when.trim();
            match (lang, when.strip_prefix("from request "), when.strip_prefix("request ")) {
                _ if when.is_empty() => label.to_owned(),
                (Lang::Zh, Some(number), _) => format!("{label}（从第 {number} 个请求起）"),
                (Lang::Zh, _, Some(number)) => format!("{label}（第 {number} 个请求）"),
                (Lang::Zh, ..) => format!("{label}（{}）", when.replace("afterwards", "测量之后")),
                (Lang::En, ..) => format!("{label} ({when})"),
            }
        }
        None if part.base.is_some() => format!("{}{}", part.name, excerpt.get(lang)),
        None => part.name.to_owned(),
    }
}

fn colon(lang: Lang) -> &'static str {
    Text { en: ": ", zh: "：" }.get(lang)
}

/// A known cause of a server's end: what it means, what to do, what it is known by.
fn write_diagnosis(text: &mut String, id: &str, lang: Lang) -> Result<(), RunError> {
    let found = SIGNATURES.iter().find(|signature| id.strip_prefix(DIAGNOSIS) == Some(signature.id));
    let signature = found.ok_or_else(|| unknown(id))?;
    let _ = writeln!(text, "{id}\n\n{}\n\n{}", signature.cause.get(lang), signature.advice.get(lang));
    let label = Localized::both("Known by these words in a server's log:", "依据服务日志中的这些文字：");
    let _ = writeln!(text, "\n{}", label.get(lang));
    for needle in signature.needles {
        let _ = writeln!(text, "  {needle}");
    }
    Ok(())
}

fn unknown(id: &str) -> RunError {
    let diagnoses: Vec<String> = SIGNATURES.iter().map(|signature| format!("{DIAGNOSIS}{}", signature.id)).collect();
    let known = rules::all().map(|rule| rule.id).chain(diagnoses.iter().map(String::as_str));
    let hint = match nearest(id, known) {
        Some(known) => Localized::both(format!("did you mean `{known}`?"), format!("是不是想写 `{known}`？")),
        None => Localized::both("`verify explain` lists every rule", "`verify explain` 会列出所有规则"),
    };
    RunError::usage(Localized::both(format!("there is no rule `{id}`"), format!("没有规则 `{id}`")), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_something_of_every_rule() {
        for rule in rules::all() {
            for lang in [Lang::En, Lang::Zh] {
                let text = summary(rule, lang);
                assert!(!text.starts_with('<') || text.find('>') != Some(text.len() - 1), "{}: {text}", rule.id);
            }
        }
    }
}
