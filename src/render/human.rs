//! Text for people: findings with their snippet, then a table of the stages.

use super::source::{Snippet, Sources};
use crate::error::RunError;
use crate::model::{Finding, Item, ItemStatus, Lang, Outcome, RunReport, Severity, StageRun, Status, counted, word};
use crate::term::{human_duration, neutralize, one_line, pad};
use anstyle::{AnsiColor, Style};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;
use unicode_width::UnicodeWidthStr;

/// Findings of one stage shown with their snippet; the rest take one line each.
const WITH_SNIPPET: usize = 20;

/// Warnings of one rule that a chain shows; the stage run alone shows all of them.
const WARNINGS_OF_A_RULE: usize = 5;

/// How the text looks.
#[derive(Debug, Clone, Copy)]
pub struct HumanOptions<'a> {
    /// Root of the course, for snippets.
    pub root: &'a Path,
    /// Language.
    pub lang: Lang,
    /// Whether to colour.
    pub color: bool,
    /// Columns.
    pub width: usize,
    /// Failures and the last line only.
    pub quiet: bool,
}

impl HumanOptions<'_> {
    pub(super) fn paint(self, style: Style, text: &str) -> String {
        if self.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    pub(super) fn say(self, en: &'static str, zh: &'static str) -> &'static str {
        match self.lang {
            Lang::En => en,
            Lang::Zh => zh,
        }
    }
}

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();

pub(super) fn color(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(anstyle::Color::Ansi(color)))
}

/// The whole report.
pub(super) fn render(report: &RunReport, options: HumanOptions<'_>) -> String {
    let mut out = String::new();
    let mut sources = Sources::default();
    let chain = report.stages.len() > 1;
    for run in &report.stages {
        write_stage(&mut out, run, chain, &mut sources, options);
    }
    if report.stages.len() > 1 && !options.quiet {
        write_table(&mut out, report, options);
    }
    write_last_line(&mut out, report, options);
    out
}

/// What a change brought, and the verdict over everything. What else is wrong is counted:
/// whoever watches has seen it.
pub fn render_change(whole: &RunReport, shown: &RunReport, options: HumanOptions<'_>) -> String {
    let mut out = String::new();
    let mut sources = Sources::default();
    for run in &shown.stages {
        write_stage(&mut out, run, false, &mut sources, options);
    }
    let errors = |report: &RunReport| {
        let findings = report.stages.iter().flat_map(|run| run.outcome.findings());
        findings.filter(|finding| finding.severity == Severity::Error).count()
    };
    let more = errors(whole).saturating_sub(errors(shown));
    if more > 0 {
        let text = match options.lang {
            Lang::En => format!("… and {more} earlier errors in files that the change does not touch"),
            Lang::Zh => format!("… 另有 {more} 处此前的错误，位于本次改动未涉及的文件中"),
        };
        let _ = writeln!(out, "{}", options.paint(DIM, &text));
    }
    write_last_line(&mut out, whole, options);
    out
}

/// A usage or configuration fault.
pub fn render_error(error: &RunError, options: HumanOptions<'_>) -> String {
    let mut out = String::new();
    let label = options.paint(color(AnsiColor::Red).bold(), options.say("error", "错误"));
    if let RunError::Settings(error) = error
        && let Some(snippet) = error.source_code()
    {
        let shown = Shown {
            message: error.message(options.lang),
            rule: None,
            severity: Severity::Error,
            lang: options.lang,
            help: Some(error.hint(options.lang)),
            source: Some(snippet),
            span: error.labels().and_then(|mut labels| labels.next()).map(|label| *label.inner()),
        };
        write_diagnostic(&mut out, &shown, options);
        return out;
    }
    let _ = writeln!(out, "{label}: {}", neutralize(&error.message(options.lang)));
    let hint = error.hint(options.lang);
    if !hint.is_empty() {
        let _ = writeln!(out, "  {}: {}", options.say("help", "建议"), neutralize(&hint));
    }
    out
}

/// The findings of a stage, errors first, so that a long list of notes cannot push them
/// off the screen. A chain shows every error, a few warnings of each rule, and counts
/// the rest; the stage run alone shows everything.
fn write_stage(out: &mut String, run: &StageRun, chain: bool, sources: &mut Sources, options: HumanOptions<'_>) {
    let least = match (options.quiet, chain) {
        (true, _) => Severity::Error,
        (false, true) => Severity::Warning,
        (false, false) => Severity::Note,
    };
    let mut findings: Vec<&Finding> =
        run.outcome.findings().iter().filter(|finding| finding.severity >= least).collect();
    findings.sort_by_key(|finding| finding.severity != Severity::Error);
    let mut warnings: BTreeMap<&str, usize> = BTreeMap::new();
    let mut shown = 0;
    for finding in findings {
        if chain && finding.severity == Severity::Warning {
            let count = warnings.entry(finding.rule.id).or_default();
            *count += 1;
            if *count > WARNINGS_OF_A_RULE {
                continue;
            }
        }
        if shown < WITH_SNIPPET && finding.severity != Severity::Note {
            write_finding(out, finding, sources, options);
        } else {
            write_finding_line(out, finding, options);
        }
        shown += 1;
    }
    for (rule, count) in warnings.into_iter().filter(|(_, count)| *count > WARNINGS_OF_A_RULE) {
        let (more, stage) = (count - WARNINGS_OF_A_RULE, run.stage);
        let text = match options.lang {
            Lang::En => format!("… and {more} more of {rule}; `verify {stage}` shows them"),
            Lang::Zh => format!("… 还有 {more} 处 {rule}；`verify {stage}` 会全部列出"),
        };
        let _ = writeln!(out, "{}", options.paint(DIM, &text));
    }
    if !options.quiet {
        if chain && !run.outcome.items().is_empty() {
            let _ = writeln!(out, "{}", options.paint(BOLD, run.stage.name()));
        }
        write_items(out, run, options);
    }
}

fn write_items(out: &mut String, run: &StageRun, options: HumanOptions<'_>) {
    let items = run.outcome.items();
    let width = items.iter().map(|item| item.path.as_str().width()).max().unwrap_or(0).min(72);
    for item in items {
        let verdict = verdict(item, options);
        let mode = item.mode.filter(|mode| *mode != "answer").map(|mode| format!(" [{mode}]")).unwrap_or_default();
        let time = item.duration.map(human_duration).unwrap_or_default();
        let detail = item.detail.as_ref().map(|detail| neutralize(detail.get(options.lang))).unwrap_or_default();
        let line =
            format!("  {verdict} {}{mode}  {}  {detail}", pad(&one_line(item.path.as_str()), width), pad(&time, 7));
        let _ = writeln!(out, "{}", line.trim_end());
        for step in &item.next_steps {
            let _ = writeln!(out, "    {} {}", options.paint(DIM, "→"), neutralize(step.get(options.lang)));
        }
    }
}

fn verdict(item: &Item, options: HumanOptions<'_>) -> String {
    let text = pad(word(item.status.name(), options.lang), 13);
    let style = match item.status {
        ItemStatus::Pass | ItemStatus::Ok => color(AnsiColor::Green),
        ItemStatus::Skip | ItemStatus::Skipped | ItemStatus::ExpectedFail => color(AnsiColor::Yellow),
        _ => color(AnsiColor::Red),
    };
    options.paint(style, &text)
}

fn write_table(out: &mut String, report: &RunReport, options: HumanOptions<'_>) {
    let head = [
        options.say("stage", "阶段"),
        options.say("verdict", "结论"),
        options.say("counts", "计数"),
        options.say("time", "耗时"),
    ];
    let rows: Vec<[String; 4]> = report.stages.iter().map(|run| row(run, options)).collect();
    let mut widths = head.map(UnicodeWidthStr::width);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let line = |cells: [&str; 4]| {
        cells
            .iter()
            .zip(widths)
            .map(|(cell, width)| pad(cell, width))
            .collect::<Vec<_>>()
            .join("  ")
            .trim_end()
            .to_owned()
    };
    let _ = writeln!(out, "\n{}", options.paint(BOLD, &line(head)));
    for (row, run) in rows.iter().zip(&report.stages) {
        let text = line([&row[0], &row[1], &row[2], &row[3]]);
        let _ = writeln!(out, "{}", options.paint(status_style(run.outcome.status()), &text));
    }
}

fn row(run: &StageRun, options: HumanOptions<'_>) -> [String; 4] {
    let counts = match &run.outcome {
        Outcome::Blocked { by } => format!("{} {by}", options.say("blocked by", "被阻断于")),
        Outcome::Skipped { reason } => neutralize(reason.0.get(options.lang)),
        Outcome::Ran { summary, findings, .. } => {
            let mut parts: Vec<String> =
                summary.iter().map(|(name, count)| counted(count, name, options.lang)).collect();
            for severity in [Severity::Error, Severity::Warning, Severity::Note] {
                let count = findings.iter().filter(|finding| finding.severity == severity).count();
                if count > 0 {
                    parts.push(severity_count(severity, count, options.lang));
                }
            }
            if let Some(reason) = run.outcome.skip_reason() {
                parts.insert(0, reason.get(options.lang).to_owned());
            }
            parts.join(" · ")
        }
    };
    let time = if matches!(run.outcome, Outcome::Ran { .. }) { human_duration(run.duration) } else { String::new() };
    [run.stage.name().to_owned(), word(run.outcome.status().name(), options.lang).to_owned(), counts, time]
}

/// `1 error`, `2 errors`, `错误 2`.
pub(super) fn severity_count(severity: Severity, count: usize, lang: Lang) -> String {
    let plural = if lang == Lang::En && count != 1 { "s" } else { "" };
    counted(count, severity.name(), lang) + plural
}

fn status_style(status: Status) -> Style {
    match status {
        Status::Pass => color(AnsiColor::Green),
        Status::Fail => color(AnsiColor::Red),
        Status::Skipped | Status::Blocked => color(AnsiColor::Yellow),
    }
}

fn write_last_line(out: &mut String, report: &RunReport, options: HumanOptions<'_>) {
    let conclusion = match (report.interrupted, report.status()) {
        (Some(_), _) => options.say("interrupted", "已中断"),
        (None, Status::Pass) => options.say("passed", "通过"),
        (None, Status::Fail | Status::Blocked) => options.say("failed", "未通过"),
        (None, Status::Skipped) => options.say("skipped: nothing was checked", "已跳过：没有检查任何内容"),
    };
    let mut parts = Vec::new();
    for status in [Status::Fail, Status::Blocked, Status::Skipped] {
        let names: Vec<&str> =
            report.stages.iter().filter(|run| run.outcome.status() == status).map(|run| run.stage.name()).collect();
        if !names.is_empty() && report.stages.len() > 1 {
            parts.push(format!("{}: {}", word(status.name(), options.lang), names.join(", ")));
        }
    }
    if let [run] = report.stages.as_slice() {
        let [stage, _, counts, _] = row(run, options);
        parts.push(format!("{stage}: {counts}"));
    }
    let style = if report.interrupted.is_some() { color(AnsiColor::Red) } else { status_style(report.status()) };
    let detail = if parts.is_empty() { String::new() } else { format!(" — {}", parts.join("; ")) };
    let _ = writeln!(out, "{}{detail} ({})", options.paint(style.bold(), conclusion), human_duration(report.duration));
}

fn write_finding_line(out: &mut String, finding: &Finding, options: HumanOptions<'_>) {
    let severity = options.paint(severity_style(finding.severity), word(finding.severity.name(), options.lang));
    let message = neutralize(&finding.message(options.lang)).replace('\n', " ");
    let _ = writeln!(out, "{}: {severity}[{}]: {message}", place(finding), finding.rule.id);
    if let Some(help) = finding.help_text(options.lang) {
        let _ = writeln!(out, "  {}: {}", options.say("help", "建议"), neutralize(&help).replace('\n', "\n    "));
    }
}

/// `path:cell 14:7:5`, as far as it is known.
fn place(finding: &Finding) -> String {
    let mut text = one_line(finding.at.path.as_str());
    if let Some(cell) = finding.at.cell {
        let _ = write!(text, ":cell {cell}");
    }
    for number in [finding.at.line, finding.at.column].into_iter().map_while(|number| number) {
        let _ = write!(text, ":{number}");
    }
    text
}

pub(super) fn severity_style(severity: Severity) -> Style {
    match severity {
        Severity::Error => color(AnsiColor::Red).bold(),
        Severity::Warning => color(AnsiColor::Yellow).bold(),
        Severity::Note => color(AnsiColor::Cyan).bold(),
    }
}

fn write_finding(out: &mut String, finding: &Finding, sources: &mut Sources, options: HumanOptions<'_>) {
    let Some(snippet) = sources.snippet(options.root, &finding.at) else {
        write_finding_line(out, finding, options);
        return;
    };
    let shown = Shown {
        message: neutralize(&finding.message(options.lang)),
        rule: Some(finding.rule.id),
        severity: finding.severity,
        lang: options.lang,
        help: finding.help_text(options.lang).map(|help| neutralize(&help)),
        span: Some(snippet.span),
        source: Some(&snippet as &Snippet as &dyn SourceCode),
    };
    write_diagnostic(out, &shown, options);
}

fn write_diagnostic(out: &mut String, shown: &Shown<'_>, options: HumanOptions<'_>) {
    let theme = if options.color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_links(false)
        .with_context_lines(1)
        // A path or a command in a help is pasted: it is never broken inside.
        .with_word_separator(textwrap::WordSeparator::AsciiSpace)
        .with_word_splitter(textwrap::WordSplitter::NoHyphenation)
        .with_break_words(false)
        .with_width(options.width.max(40));
    if handler.render_report(out, shown).is_err() {
        let _ = writeln!(out, "{}", shown.message);
    }
    let trimmed = out.trim_end().len();
    out.truncate(trimmed);
    out.push('\n');
    if let Some(help) = &shown.help {
        write_help(out, help, options);
    }
    out.push('\n');
}

/// `  help: …`, wrapped at spaces only: a path or a command in it is pasted.
fn write_help(out: &mut String, help: &str, options: HumanOptions<'_>) {
    let first = format!("  {}: ", options.say("help", "建议"));
    let wrap = textwrap::Options::new(options.width.max(40))
        .initial_indent(&first)
        .subsequent_indent("        ")
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    let _ = writeln!(out, "{}", textwrap::fill(help, wrap));
}

/// A finding in the form that miette draws.
struct Shown<'a> {
    message: String,
    rule: Option<&'static str>,
    severity: Severity,
    lang: Lang,
    help: Option<String>,
    source: Option<&'a dyn SourceCode>,
    span: Option<miette::SourceSpan>,
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.rule
            .map(|rule| Box::new(format!("{}[{rule}]", word(self.severity.name(), self.lang))) as Box<dyn fmt::Display>)
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Note => miette::Severity::Advice,
        })
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.span?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(None, span))))
    }
}
