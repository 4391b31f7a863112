//! `verify compare`: four groups of columns, differences only where they mean
//! something, what each decision may be, and how far it reaches.

use crate::Screen;
use crate::cli::{Cli, CompareArgs};
use crate::course::Context;
use crate::error::RunError;
use crate::model::{Lang, Localized};
use crate::render::{Format, HumanOptions};
use crate::results::compare::{self, CONFIGURATION, Side, TIME};
use crate::results::evidence::{self, Case, Conclusion, Facts, plain};
use crate::results::files;
use crate::results::json::{self, Document};
use crate::stages::conclude::{load, normalized_of};
use crate::term::{neutralize, pad};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use unicode_width::UnicodeWidthStr;

/// What stands where a value or a difference cannot be given.
const NONE: &str = "—";

/// Puts a baseline and its candidates side by side.
///
/// # Errors
/// A fault of usage, or an output that cannot be written.
pub(crate) fn run(args: &CompareArgs, cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    screen.format_of(&[Format::Human, Format::Json])?;
    let ctx = crate::context(cli, screen, &[])?;
    let mut texts = Vec::new();
    let mut faults = String::new();
    let paths: Vec<&Path> = std::iter::once(&args.baseline).chain(&args.candidates).map(PathBuf::as_path).collect();
    for path in &paths {
        files::no_device(path, &ctx.at_cwd(path))?;
    }
    for (path, name) in paths.iter().zip(names(&paths)) {
        match result(&ctx, path) {
            Ok(text) => texts.push((name, text)),
            Err(fault) => faults.push_str(fault.get(screen.lang)),
        }
    }
    if !faults.is_empty() {
        screen.print(&neutralize(&faults));
        return Ok(1);
    }
    let documents: Vec<(String, Document<'_>)> =
        texts.iter().map(|(name, text)| (name.clone(), json::read(text))).collect();
    let Some(comparison) = Comparison::of(&ctx, &documents) else { return Ok(1) };
    let text = |format, _: HumanOptions<'_>| match format {
        Format::Json => comparison.json(),
        _ => comparison.human(screen.lang),
    };
    screen.emit(text, &ctx.root)?;
    Ok(0)
}

/// Short names of the results: the file's, or the path where two files are called alike.
pub(super) fn names(paths: &[&Path]) -> Vec<String> {
    let stem = |path: &Path| {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        name.strip_suffix(".json").map(str::to_owned).unwrap_or(name)
    };
    let unique = |path: &Path| paths.iter().filter(|other| stem(other) == stem(path)).count() == 1;
    paths.iter().map(|path| if unique(path) { stem(path) } else { path.display().to_string() }).collect()
}

/// The text of a result, or what keeps it from being one.
pub(super) fn result(ctx: &Context, path: &Path) -> Result<String, Localized> {
    let loaded = load(ctx, &files::lexical(&ctx.at_cwd(path)));
    let findings = loaded.findings();
    if findings.is_empty() {
        return Ok(loaded.text);
    }
    let lines = |lang| {
        findings.iter().fold(String::new(), |mut out, finding| {
            let (message, shown) = (finding.message(lang), path.display().to_string());
            let place = if message.contains(&shown) { String::new() } else { format!("{shown}: ") };
            let _ = writeln!(out, "{}[{}]: {place}{message}", finding.severity.name(), finding.rule.id);
            if let Some(help) = finding.help_text(lang) {
                let label = if lang == Lang::En { "help" } else { "建议" };
                let _ = writeln!(out, "  {label}: {help}");
            }
            out
        })
    };
    Err(Localized::both(lines(Lang::En), lines(Lang::Zh)))
}

/// Everything that is shown.
struct Comparison {
    sides: Vec<Side>,
    conclusions: Vec<Conclusion>,
    boundary: Localized,
    /// Samples that a 99th percentile needs.
    tail: u32,
}

impl Comparison {
    fn of(ctx: &Context, documents: &[(String, Document<'_>)]) -> Option<Self> {
        let facts: Vec<(&String, Facts<'_>)> = documents
            .iter()
            .filter_map(|(name, document)| Some((name, Facts(normalized_of(document.root.as_ref())?))))
            .collect();
        let ((name, baseline), candidates) = facts.split_first()?;
        let mut sides = vec![compare::side(name, *baseline, None)];
        let mut conclusions = Vec::new();
        for (name, candidate) in candidates {
            sides.push(compare::side(name, *candidate, Some(*baseline)));
            conclusions.push(evidence::conclude(&Case {
                candidate: *candidate,
                baseline: Some(*baseline),
                limits: &ctx.settings.conclude,
                strategy_metrics: &[],
            }));
        }
        Some(Comparison {
            sides,
            conclusions,
            boundary: compare::boundary(*baseline),
            tail: ctx.settings.conclude.p99_min_samples,
        })
    }

    fn human(&self, lang: Lang) -> String {
        let say = |en: &'static str, zh: &'static str| if lang == Lang::En { en } else { zh };
        let mut out = String::new();
        let mut group = |title: &str, rows: Vec<Vec<String>>| {
            let _ = writeln!(out, "{title}");
            write_table(&mut out, &rows);
            out.push('\n');
        };
        group(say("Configuration", "配置"), self.configuration(lang));
        group(say("Time", "时间"), self.time(lang));
        group(say("Memory", "内存"), self.memory(lang));
        group(say("Quality", "质量"), self.quality(lang));
        self.write_obstacles(&mut out, lang);
        self.write_conclusions(&mut out, lang);
        let _ = writeln!(out, "{}: {}", say("Boundary", "边界"), self.boundary.get(lang));
        neutralize(&out)
    }

    fn head(lang: Lang) -> String {
        if lang == Lang::En { "result" } else { "结果" }.to_owned()
    }

    fn configuration(&self, lang: Lang) -> Vec<Vec<String>> {
        let used: Vec<usize> = (0..CONFIGURATION.len())
            .filter(|index| self.sides.iter().any(|side| side.configuration[*index].is_some()))
            .collect();
        let mut head = vec![Self::head(lang)];
        head.extend(used.iter().map(|index| CONFIGURATION[*index].to_owned()));
        head.push(if lang == Lang::En { "changed against the baseline" } else { "相对基线的变化" }.to_owned());
        let mut rows = vec![head];
        for side in &self.sides {
            let mut row = vec![side.name.clone()];
            row.extend(used.iter().map(|index| side.configuration[*index].clone().unwrap_or(NONE.to_owned())));
            let changed = side.changed.iter().flat_map(|difference| &difference.members);
            let changed: Vec<String> =
                changed.map(|(name, ours, theirs)| format!("{name}: {theirs} → {ours}")).collect();
            row.push(if changed.is_empty() { NONE.to_owned() } else { changed.join(", ") });
            rows.push(row);
        }
        rows
    }

    /// Each figure with its difference; one that does not mean anything is not given.
    fn time(&self, lang: Lang) -> Vec<Vec<String>> {
        let baseline = &self.sides[0];
        let used: Vec<usize> =
            (0..TIME.len()).filter(|index| self.sides.iter().any(|side| side.time[*index].is_some())).collect();
        let mut head = vec![Self::head(lang)];
        for index in &used {
            head.extend([TIME[*index].1.to_owned(), "Δ".to_owned()]);
        }
        head.push("n".to_owned());
        let mut rows = vec![head];
        for (position, side) in self.sides.iter().enumerate() {
            let mut row = vec![side.name.clone()];
            for index in &used {
                let given = position > 0 && side.is_comparable();
                let change = compare::change(side.time[*index], baseline.time[*index]).filter(|_| given);
                row.extend([figure(side.time[*index]), percent(change)]);
            }
            row.push(figure(side.samples));
            rows.push(row);
        }
        rows
    }

    fn memory(&self, lang: Lang) -> Vec<Vec<String>> {
        let titles = if lang == Lang::En { ["peak MB", "scope", "Δ"] } else { ["峰值 MB", "口径", "Δ"] };
        let mut rows = vec![[vec![Self::head(lang)], titles.map(str::to_owned).to_vec()].concat()];
        for (position, side) in self.sides.iter().enumerate() {
            let given = position > 0 && side.is_comparable() && side.memory_obstacle.is_none();
            let change = compare::change(side.memory, self.sides[0].memory).filter(|_| given);
            let scope = side.scope.clone().unwrap_or(NONE.to_owned());
            rows.push(vec![side.name.clone(), figure(side.memory), scope, percent(change)]);
        }
        rows
    }

    fn quality(&self, lang: Lang) -> Vec<Vec<String>> {
        let titles = if lang == Lang::En {
            ["metric", "value", "floor", "probes"]
        } else {
            ["指标", "数值", "下限", "探针数"]
        };
        let mut rows = vec![[vec![Self::head(lang)], titles.map(str::to_owned).to_vec()].concat()];
        for side in &self.sides {
            let mut row = vec![side.name.clone()];
            row.extend(side.quality.iter().map(|value| value.clone().unwrap_or(NONE.to_owned())));
            rows.push(row);
        }
        rows
    }

    fn write_obstacles(&self, out: &mut String, lang: Lang) {
        let say = |en: &'static str, zh: &'static str| if lang == Lang::En { en } else { zh };
        let mut wrote = false;
        for side in &self.sides[1..] {
            for obstacle in &side.obstacles {
                let _ =
                    writeln!(out, "{}: {} — {}", side.name, say("no differences", "不给出差值"), obstacle.get(lang));
                wrote = true;
            }
            if let Some(obstacle) = side.memory_obstacle.as_ref().filter(|_| side.memory.is_some()) {
                let _ = writeln!(
                    out,
                    "{}: {} — {}",
                    side.name,
                    say("no difference in memory", "不给出内存差值"),
                    obstacle.get(lang)
                );
                wrote = true;
            }
        }
        for side in
            self.sides.iter().filter(|side| side.has_tail() && side.samples.is_some_and(|n| n < f64::from(self.tail)))
        {
            let n = figure(side.samples);
            let text = Localized::both(
                format!("P99 from {n} samples is their maximum"),
                format!("{n} 个样本的 P99 就是最大值"),
            );
            let _ = writeln!(out, "{}: {}", side.name, text.get(lang));
            wrote = true;
        }
        if wrote {
            out.push('\n');
        }
    }

    fn write_conclusions(&self, out: &mut String, lang: Lang) {
        let say = |en: &'static str, zh: &'static str| if lang == Lang::En { en } else { zh };
        for (side, conclusion) in self.sides[1..].iter().zip(&self.conclusions) {
            let claimed = conclusion.claimed.map_or(NONE, |verdict| verdict.name());
            let _ = writeln!(
                out,
                "{}: {} {claimed}, {} {}",
                side.name,
                say("claimed", "声称"),
                say("allowed", "允许"),
                conclusion.allowed
            );
            for reason in conclusion.reasons.iter().filter(|reason| reason.ceiling.is_some()) {
                let message = crate::model::Args::from_iter(reason.args.iter().cloned());
                let text = message.fill(reason.rule.message.get(lang), lang);
                let _ = writeln!(out, "  - {text} [{}]", reason.rule.id);
            }
            if let Some(step) = conclusion.next_step() {
                let _ = writeln!(out, "  → {}", step.get(lang));
            }
        }
        out.push('\n');
    }

    fn json(&self) -> String {
        let baseline = &self.sides[0];
        let results: Vec<Value> =
            self.sides.iter().enumerate().map(|(index, side)| self.side_json(index, side, baseline)).collect();
        let document = json!({
            "schema_version": "verify-compare/v1",
            "results": results,
            "boundary": self.boundary.get(Lang::En),
        });
        crate::results::v1::to_text(&document)
    }

    fn side_json(&self, index: usize, side: &Side, baseline: &Side) -> Value {
        let time = |of: &dyn Fn(usize) -> Option<f64>| -> Value {
            TIME.iter()
                .enumerate()
                .map(|(at, (name, _))| ((*name).to_owned(), json!(of(at))))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let configuration: serde_json::Map<String, Value> = CONFIGURATION
            .iter()
            .zip(&side.configuration)
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        let mut out = json!({
            "name": side.name,
            "role": if index == 0 { "baseline" } else { "candidate" },
            "configuration": configuration,
            "changed": side.changed.iter().map(|difference| &difference.variable).collect::<Vec<_>>(),
            "time": time(&|at| side.time[at]),
            "samples": side.samples,
            "memory": { "peak_memory_mb": side.memory, "peak_memory_scope": side.scope },
            "quality": { "metric": side.quality[0], "value": side.quality[1], "floor": side.quality[2], "probes": side.quality[3] },
        });
        if let Some(conclusion) = index.checked_sub(1).and_then(|at| self.conclusions.get(at)) {
            let comparable = side.is_comparable();
            let memory = comparable && side.memory_obstacle.is_none();
            out["comparable"] = json!(comparable);
            out["obstacles"] = side.obstacles.iter().map(|text| text.get(Lang::En)).collect();
            out["change"] = time(&|at| compare::change(side.time[at], baseline.time[at]).filter(|_| comparable));
            out["memory"]["change"] = json!(compare::change(side.memory, baseline.memory).filter(|_| memory));
            out["claimed"] = json!(conclusion.claimed.map(|verdict| verdict.name()));
            out["max_decision"] = json!(conclusion.allowed.name());
            out["reasons"] = conclusion.reasons.iter().map(|reason| reason.rule.id).collect();
        }
        out
    }
}

fn figure(value: Option<f64>) -> String {
    value.map_or(NONE.to_owned(), plain)
}

fn percent(change: Option<f64>) -> String {
    change.map_or(NONE.to_owned(), |change| format!("{:+.1} %", change * 100.0))
}

/// Columns aligned by display width; numbers to the right.
pub(crate) fn write_table(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let numeric = |column: usize| {
        let figure = |text: &str| text == NONE || text.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c));
        column > 0 && rows[1..].iter().all(|row| figure(&row[column]))
    };
    for row in rows {
        let cells: Vec<String> = (0..columns)
            .map(|column| {
                let (text, width) = (&row[column], width(column));
                if numeric(column) { format!("{}{text}", " ".repeat(width - text.width())) } else { pad(text, width) }
            })
            .collect();
        let _ = writeln!(out, "  {}", cells.join("  ").trim_end());
    }
}
