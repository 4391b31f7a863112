//! The report in a terminal and in Markdown. Names and answers of others are text.

use super::groups::{Table, footnotes, plain, table};
use super::{Difference, Group, Sheet, Source, metric_title};
use crate::model::{Lang, Localized, word};
use crate::render::markdown_text;
use crate::term::{neutralize, one_line, pad};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// For a terminal.
pub fn human(sheet: &Sheet, lang: Lang) -> String {
    let mut out = String::new();
    for group in Group::ALL {
        let table = table(sheet, group);
        let _ = writeln!(out, "{}", group.title(lang));
        write_table(&mut out, &rows(&table, lang));
        for (title, text) in &table.shared {
            let _ = writeln!(out, "  {}: {}", title.get(lang), one_line(text));
        }
        for note in footnotes(&table, lang) {
            let _ = writeln!(out, "  {note}");
        }
        out.push('\n');
    }
    for source in &sheet.sources {
        write_source(&mut out, source, lang);
    }
    neutralize(&out)
}

/// Head and rows as texts.
fn rows(table: &Table, lang: Lang) -> Vec<Vec<String>> {
    let head = std::iter::once(arm_word(lang).to_owned());
    let head = head.chain(table.columns.iter().map(|column| column.title.get(lang).to_owned())).collect();
    let body = table.rows.iter().map(|row| {
        std::iter::once(one_line(&row.name)).chain(row.cells.iter().map(|cell| one_line(&plain(cell)))).collect()
    });
    std::iter::once(head).chain(body).collect()
}

fn arm_word(lang: Lang) -> &'static str {
    if lang == Lang::En { "arm" } else { "组" }
}

/// A table that is wide stands on its side: a column an arm.
fn write_table(out: &mut String, rows: &[Vec<String>]) {
    let wide: usize = (0..rows[0].len()).map(|column| width(rows, column) + 2).sum();
    let turned: Vec<Vec<String>>;
    let rows = if wide > 110 && rows.len() <= rows[0].len() {
        turned = (0..rows[0].len()).map(|column| rows.iter().map(|row| row[column].clone()).collect()).collect();
        &turned
    } else {
        rows
    };
    for row in rows {
        let cells: Vec<String> = row.iter().enumerate().map(|(column, text)| pad(text, width(rows, column))).collect();
        let _ = writeln!(out, "  {}", cells.join("  ").trim_end());
    }
}

fn width(rows: &[Vec<String>], column: usize) -> usize {
    rows.iter().map(|row| row[column].width()).max().unwrap_or(0)
}

fn write_source(out: &mut String, source: &Source, lang: Lang) {
    let say = |en: &'static str, zh: &'static str| if lang == Lang::En { en } else { zh };
    let name = source.experiment.as_ref().unwrap_or(&source.file);
    let _ = writeln!(out, "{}", one_line(name));
    for difference in &source.differences {
        let _ = writeln!(out, "  {}", one_line(&sentence(difference, lang)));
    }
    for arm in &source.arms {
        let known = &arm.conclusion;
        let claimed = known.claimed.as_ref().filter(|claimed| **claimed != known.decision);
        let claimed = claimed.map(|claimed| format!(" ({} {claimed})", say("claimed:", "声称："))).unwrap_or_default();
        let _ = writeln!(
            out,
            "  {}: {}{claimed} — {}",
            one_line(&arm.name),
            known.decision,
            one_line(known.reason.get(lang))
        );
        if let Some(text) = &known.not_covered {
            let _ = writeln!(out, "    {}: {}", say("not covered", "未覆盖"), one_line(text.get(lang)));
        }
        if let Some(step) = &known.next_step {
            let _ = writeln!(out, "    → {}", one_line(step.get(lang)));
        }
    }
    for note in &source.notes {
        let _ = writeln!(out, "  {}[{}]: {}", word(&note.severity, lang), note.rule, one_line(note.text.get(lang)));
    }
    out.push('\n');
}

/// One difference in words.
pub fn sentence(known: &Difference, lang: Lang) -> String {
    let (candidate, baseline, metric) = (&known.candidate, &known.baseline, metric_title(&known.metric));
    let verdict = verdict(known.verdict, lang);
    let figures = relative(known, lang);
    match lang {
        Lang::En => format!("{candidate} against {baseline}: {metric} {figures}, {verdict}"),
        Lang::Zh => format!("{candidate} 相对 {baseline}：{metric} {figures}，{verdict}"),
    }
}

/// `+37.0 % [+23.9 %, +50.0 %]`
pub fn relative(known: &Difference, lang: Lang) -> String {
    let Some(relative) = known.relative else { return "—".to_owned() };
    let interval = match known.interval {
        Some([low, high]) => format!(" [{}, {}]", percent(low), percent(high)),
        None if lang == Lang::En => format!(" (no interval: {} pairs)", known.pairs),
        None => format!("（{} 对，无区间）", known.pairs),
    };
    format!("{}{interval}", percent(relative))
}

/// `+37.0 %`
pub fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0).replace('-', "−")
}

/// What a comparison shows, in words.
pub fn verdict(word: &str, lang: Lang) -> &'static str {
    let text = match word {
        "better" => ("better", "更好"),
        "worse" => ("worse", "更差"),
        _ => ("no difference shown", "未见差异"),
    };
    if lang == Lang::En { text.0 } else { text.1 }
}

/// As Markdown.
pub fn markdown(sheet: &Sheet, lang: Lang) -> String {
    let title = Localized::both("Benchmark report", "基准测试报告");
    let mut out = format!("# {}\n", title.get(lang));
    for group in Group::ALL {
        let table = table(sheet, group);
        let _ = writeln!(out, "\n## {}\n", group.title(lang));
        write_markdown_table(&mut out, &rows(&table, lang));
        if !table.shared.is_empty() {
            let _ = writeln!(out, "\n{}\n", Localized::both("The same in every arm:", "各组相同：").get(lang));
        }
        for (title, text) in &table.shared {
            let _ = writeln!(out, "- {}: {}", title.get(lang), markdown_text(text));
        }
        for note in footnotes(&table, lang) {
            let _ = writeln!(out, "\n{}", markdown_text(&note));
        }
    }
    for source in &sheet.sources {
        write_markdown_source(&mut out, source, lang);
    }
    out
}

fn write_markdown_table(out: &mut String, rows: &[Vec<String>]) {
    for (index, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().map(|text| markdown_text(text)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
        if index == 0 {
            let _ = writeln!(out, "|{}", " --- |".repeat(row.len()));
        }
    }
}

fn write_markdown_source(out: &mut String, source: &Source, lang: Lang) {
    let say = |en: &'static str, zh: &'static str| if lang == Lang::En { en } else { zh };
    let name = source.experiment.as_ref().unwrap_or(&source.file);
    let _ = writeln!(out, "\n## {}\n", markdown_text(name));
    for (name, value) in &source.facts {
        let _ = writeln!(out, "- {}: {}", name.get(lang), markdown_text(value));
    }
    if !source.differences.is_empty() {
        let _ = writeln!(out, "\n### {}\n", say("Differences, 95 % intervals", "差异与 95% 置信区间"));
        for known in &source.differences {
            let _ = writeln!(out, "- {}", markdown_text(&sentence(known, lang)));
        }
    }
    let _ = writeln!(out, "\n### {}\n", say("Conclusion", "结论"));
    for arm in &source.arms {
        let known = &arm.conclusion;
        let _ = writeln!(
            out,
            "- {}: **{}** — {}",
            markdown_text(&arm.name),
            markdown_text(&known.decision),
            markdown_text(known.reason.get(lang))
        );
        if let Some(claimed) = known.claimed.as_ref().filter(|claimed| **claimed != known.decision) {
            let _ = writeln!(out, "  - {}: {claimed}", say("claimed by the file", "文件声称"));
        }
        if let Some(text) = &known.not_covered {
            let _ = writeln!(out, "  - {}: {}", say("not covered", "未覆盖"), markdown_text(text.get(lang)));
        }
        if let Some(step) = &known.next_step {
            let _ = writeln!(out, "  - {}: {}", say("next step", "下一步"), markdown_text(step.get(lang)));
        }
    }
    if !source.notes.is_empty() {
        let _ = writeln!(out, "\n### {}\n", say("Notes", "说明"));
        for note in &source.notes {
            let _ = writeln!(
                out,
                "- {} `{}`: {}",
                word(&note.severity, lang),
                note.rule.replace('`', "'"),
                markdown_text(note.text.get(lang))
            );
        }
    }
}
