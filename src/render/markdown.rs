//! Markdown for the summary of a step, a comment on a pull request, a wiki. In the
//! reader's language. Whatever comes from a course is text here, never markup.

use crate::error::RunError;
use crate::model::{Finding, Item, Lang, Localized, Outcome, RunReport, Severity, StageRun, Status, counted, word};
use crate::term::{human_duration, one_line};
use std::fmt::Write;

/// Rows of findings; a page with more is not read, and some readers cut it anywhere.
const MAX_ROWS: usize = 1_000;

/// Bytes of a step's summary; GitHub drops the whole of it at 1 MiB (1,048,576).
const SUMMARY_BYTES: usize = 1_000_000;

/// The report, ending with a newline.
pub(super) fn render(report: &RunReport, lang: Lang) -> String {
    let say = |en: &'static str, zh: &'static str| match lang {
        Lang::En => en,
        Lang::Zh => zh,
    };
    let verdict = match (report.interrupted, report.status()) {
        (Some(_), _) => say("interrupted", "已中断"),
        (None, Status::Pass) => say("passed", "通过"),
        (None, Status::Fail | Status::Blocked) => say("failed", "未通过"),
        (None, Status::Skipped) => say("skipped, nothing was checked", "已跳过，没有检查任何内容"),
    };
    let mut out = format!("## verify: {verdict}\n\n");
    if !report.stages.is_empty() {
        let head = say("| stage | verdict | counts | time |", "| 阶段 | 结论 | 计数 | 耗时 |");
        let _ = writeln!(out, "{head}\n| --- | --- | --- | --- |");
        report.stages.iter().for_each(|run| write_stage(&mut out, run, lang));
    }
    write_findings(&mut out, report, lang);
    report.stages.iter().for_each(|run| write_items(&mut out, run, lang));
    out
}

/// The report of a run that checked nothing.
pub(super) fn render_error(error: &RunError, lang: Lang) -> String {
    let title = Localized::both("nothing was checked", "没有检查任何内容");
    let (message, hint) = (inline(&error.message(lang)), inline(&error.hint(lang)));
    format!("## verify: {}\n\n{message}\n\n{hint}\n", title.get(lang))
}

/// The report for a summary of GitHub that holds `present` bytes already: cut at the end
/// of a line where it would become too long, and saying so.
pub fn step_summary(report: &RunReport, lang: Lang, present: u64) -> String {
    let room = SUMMARY_BYTES.saturating_sub(usize::try_from(present).unwrap_or(usize::MAX));
    let text = render(report, lang);
    if text.len() <= room {
        return text;
    }
    let note = Localized::both("\ncut: the whole report is in the log\n", "\n已截断：完整报告见日志\n");
    let end = text.floor_char_boundary(room.saturating_sub(note.get(lang).len()));
    let whole_lines = text[..end].rfind('\n').map_or(0, |at| at + 1);
    if whole_lines == 0 { String::new() } else { format!("{}{}", &text[..whole_lines], note.get(lang)) }
}

fn write_stage(out: &mut String, run: &StageRun, lang: Lang) {
    let counts = match &run.outcome {
        Outcome::Blocked { by } => match lang {
            Lang::En => format!("blocked by {by}"),
            Lang::Zh => format!("被 {by} 阻断"),
        },
        Outcome::Skipped { reason } => inline(reason.0.get(lang)),
        Outcome::Ran { summary, findings, .. } => {
            let reason = run.outcome.skip_reason().map(|reason| inline(reason.get(lang)));
            let counts = summary.iter().map(|(name, count)| counted(count, name, lang));
            let severities = [Severity::Error, Severity::Warning, Severity::Note].into_iter().filter_map(|severity| {
                let count = findings.iter().filter(|finding| finding.severity == severity).count();
                (count > 0).then(|| super::human::severity_count(severity, count, lang))
            });
            reason.into_iter().chain(counts).chain(severities).collect::<Vec<_>>().join(" · ")
        }
    };
    let time = if matches!(run.outcome, Outcome::Ran { .. }) { human_duration(run.duration) } else { String::new() };
    let _ = writeln!(out, "| {} | {} | {counts} | {time} |", run.stage, word(run.outcome.status().name(), lang));
}

fn write_findings(out: &mut String, report: &RunReport, lang: Lang) {
    let all = super::worst_first(report);
    if all.is_empty() {
        return;
    }
    let (title, head) = match lang {
        Lang::En => ("Findings", "| level | place | what | rule |"),
        Lang::Zh => ("发现的问题", "| 级别 | 位置 | 说明 | 规则 |"),
    };
    let _ = writeln!(out, "\n### {title}\n\n{head}\n| --- | --- | --- | --- |");
    for finding in all.iter().take(MAX_ROWS) {
        write_finding(out, finding, lang);
    }
    if let Some(more) = all.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
        let text = match lang {
            Lang::En => format!("… and {more} more; the JSON report has all of them"),
            Lang::Zh => format!("… 还有 {more} 处，完整列表见 JSON 报告"),
        };
        let _ = writeln!(out, "\n{text}");
    }
}

fn write_finding(out: &mut String, finding: &Finding, lang: Lang) {
    let mut place = finding.at.path.as_str().to_owned();
    if let Some(cell) = finding.at.cell {
        let _ = write!(place, ":cell {cell}");
    }
    for number in [finding.at.line, finding.at.column].into_iter().map_while(|number| number) {
        let _ = write!(place, ":{number}");
    }
    let help = finding.help_text(lang).map(|help| format!("<br>→ {}", inline(&help))).unwrap_or_default();
    let message = inline(&finding.message(lang));
    let severity = word(finding.severity.name(), lang);
    let _ = writeln!(out, "| {severity} | {} | {message}{help} | {} |", code(&place), code(finding.rule.id));
}

/// Items that say more than their verdict, and failures that no finding explains.
fn write_items(out: &mut String, run: &StageRun, lang: Lang) {
    let explained = |item: &Item| run.outcome.findings().iter().any(|finding| finding.at.path == item.path);
    let told = |item: &&Item| {
        item.detail.is_some() || !item.next_steps.is_empty() || (item.status.is_failure() && !explained(item))
    };
    let items: Vec<&Item> = run.outcome.items().iter().filter(told).take(MAX_ROWS).collect();
    if items.is_empty() {
        return;
    }
    let head = match lang {
        Lang::En => "| item | verdict | detail |",
        Lang::Zh => "| 检查项 | 结论 | 说明 |",
    };
    let _ = writeln!(out, "\n### {}\n\n{head}\n| --- | --- | --- |", run.stage);
    for item in items {
        let mode = item.mode.map(|mode| format!(" [{mode}]")).unwrap_or_default();
        let detail = item.detail.iter().chain(&item.next_steps).map(|text| inline(text.get(lang)));
        let detail = detail.collect::<Vec<_>>().join("<br>→ ");
        let name = code(&format!("{}{mode}", item.path));
        let _ = writeln!(out, "| {name} | {} | {detail} |", word(item.status.name(), lang));
    }
}

/// Text with `code` in backticks, in one line, safe in a cell of a table.
pub fn inline(text: &str) -> String {
    let flat = one_line(&text.trim().replace(['\n', '\t'], " "));
    let pieces: Vec<&str> = flat.split('`').collect();
    if pieces.len().is_multiple_of(2) {
        return escape(&flat);
    }
    let mut out = String::new();
    for (index, piece) in pieces.iter().enumerate() {
        match index % 2 {
            0 => out.push_str(&escape(piece)),
            _ => out.push_str(&code(piece)),
        }
    }
    out
}

/// A code span. Tags instead of backticks where the text has a character that a table or
/// a code span takes for its own.
fn code(text: &str) -> String {
    let text = one_line(text);
    let simple = !text.contains(['|', '`', '\\']) && !text.starts_with(' ') && !text.ends_with(' ') && !text.is_empty();
    if simple { format!("`{text}`") } else { format!("<code>{}</code>", escape(&text)) }
}

/// Text in which nothing is markup: no table, no tag, no link, no mention of a person.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' => out.push_str("&#124;"),
            '@' => out.push_str("@<!-- -->"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '$' | '#' | '!' | '(' | ')' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_course_is_no_markup() {
        assert_eq!(inline("`a|b` <b> @you\n[x](y)"), "<code>a&#124;b</code> \\<b\\> @<!-- -->you \\[x\\]\\(y\\)");
        assert_eq!(inline("`docs/a.md` 不存在"), "`docs/a.md` 不存在");
        assert_eq!(inline("one ` only"), "one \\` only");
    }

    #[test]
    fn a_summary_is_cut_at_a_line_end_and_says_so() {
        let report = RunReport::default();
        assert_eq!(step_summary(&report, Lang::En, 0), render(&report, Lang::En));
        let text = step_summary(&report, Lang::En, 999_950);
        assert!(text.len() <= 50, "{text}");
        assert_eq!(step_summary(&report, Lang::En, 2_000_000), "");
    }
}
