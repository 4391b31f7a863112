//! `verify schema`: gather result files, let the gate judge each, say what was found.

use super::Chain;
use crate::cli::SchemaArgs;
use crate::config::{Project, SchemaLevel, nearest};
use crate::course::Context;
use crate::error::RunError;
use crate::model::{Finding, Item, ItemStatus, Localized, Location, Outcome, RepoPath, Summary};
use crate::results::files::{self, Candidate};
use crate::results::gate::{self, Form, Judgement, Mark};
use crate::results::{jq, json};
use crate::rules::{run as run_rules, schema as rules};
use rayon::prelude::*;
use serde_json::Value;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Runs the stage.
///
/// # Errors
/// A fault of usage: nothing was checked.
pub fn run(ctx: &Context, args: &SchemaArgs, chain: &Chain) -> Result<Outcome, RunError> {
    let files = match args.files.as_slice() {
        [] => of_results_folder(ctx, chain),
        named => files::named(ctx, named)?,
    };
    if files.is_empty() {
        let folder = &ctx.settings.course.results;
        return Ok(Outcome::skipped(Localized::both(
            format!("there is no result file in {folder}"),
            format!("{folder} 中没有结果文件"),
        )));
    }
    let level = args.level.unwrap_or(ctx.settings.schema.level);
    Ok(judge_all(ctx, &files, level))
}

/// What is in the results folder, and what the chain demands to be there.
fn of_results_folder(ctx: &Context, chain: &Chain) -> Vec<Candidate> {
    let mut found = files::of_run(ctx);
    let demanded = |project: &&Project| {
        !project.result.is_empty() && (chain.require_results || chain.smoke_ran.contains(&project.id))
    };
    for project in ctx.chosen_projects().filter(demanded) {
        let path = files::project_files(ctx, project).result;
        match found.iter_mut().find(|file| file.path == path) {
            // Demanded by name: another contract in its place is a failure.
            Some(file) => file.named = true,
            None => found.push(Candidate { path, named: true }),
        }
    }
    found.sort();
    found
}

fn judge_all(ctx: &Context, files: &[Candidate], level: SchemaLevel) -> Outcome {
    let judged: Vec<Judged> = files
        .par_iter()
        .map(|file| if ctx.cancel.is_set() { Judged::default() } else { judge_file(ctx, file, level) })
        .collect();
    let mut items = Vec::with_capacity(judged.len());
    let mut findings = Vec::new();
    for file in judged {
        items.extend(file.item);
        findings.extend(file.findings);
    }
    items.sort_by(|a, b| a.path.cmp(&b.path));
    Outcome::ran(items.len(), Summary::of_items(&items), items, findings)
}

/// What became of one file.
#[derive(Default)]
struct Judged {
    item: Option<Item>,
    findings: Vec<Finding>,
}

/// Gates one file that was just written, as the stage does.
pub(super) fn gate_file(ctx: &Context, path: &Path) -> Vec<Finding> {
    let file = Candidate { path: path.to_path_buf(), named: true };
    judge_file(ctx, &file, ctx.settings.schema.level).findings
}

fn judge_file(ctx: &Context, file: &Candidate, level: SchemaLevel) -> Judged {
    let path = ctx.repo_path(&file.path);
    if ctx.excludes.matches(&path) {
        return Judged { item: None, findings: vec![Finding::new(&run_rules::EXCLUDED, Location::file(path))] };
    }
    let skipped = |detail: Localized| {
        let mut item = Item::new(path.clone(), ItemStatus::Skipped);
        item.detail = Some(detail);
        Judged { item: Some(item), findings: Vec::new() }
    };
    if !file.named && files::is_failure_record(&file.path) {
        return skipped(Localized::both("the record of a run that failed", "失败运行的记录"));
    }
    let read = read(&file.path, ctx.settings.schema.max_bytes);
    let (text, judgement) = match &read {
        Err(mark) => (String::new(), Judgement { marks: vec![(**mark).clone()], form: None }),
        Ok(bytes) if level == SchemaLevel::Compat => {
            let form = strict(bytes, path.as_str()).1.form;
            (String::new(), Judgement { form, ..compat(bytes) })
        }
        Ok(bytes) => strict(bytes, path.as_str()),
    };
    if let (false, Some(Form::OtherContract(name))) = (file.named, &judgement.form) {
        return skipped(Localized::both(format!("another contract: {name}"), format!("另一种契约：{name}")));
    }
    let mut item = Item::new(path.clone(), if judgement.is_ok() { ItemStatus::Ok } else { ItemStatus::Failed });
    item.project = files::project_of(ctx, &file.path);
    let mut findings = gate::findings(&path, &text, judgement.marks);
    findings.extend(failed_since(ctx, &file.path, path));
    Judged { item: Some(item), findings }
}

/// The record of a failure beside a result: the run that should have replaced it failed.
fn failed_since(ctx: &Context, result: &Path, shown: RepoPath) -> Option<Finding> {
    let record = files::failure_record_of(result);
    // Asked first: what is not there would be looked for among all its neighbours.
    if !record.is_file() {
        return None;
    }
    let bytes = read(&record, ctx.settings.schema.max_bytes).ok()?;
    let reason = serde_json::from_slice::<Value>(&bytes).ok().and_then(|record| {
        let reason = record["failure"]["failure_reason"].as_str()?;
        Some(reason.to_owned())
    });
    let unknown = || Localized::both("the record does not say why", "记录中没有写明原因");
    Some(
        Finding::new(&rules::FAILED_SINCE, Location::file(shown))
            .arg("reason", reason.map_or_else(unknown, Localized::from))
            .arg("record", ctx.repo_path(&record).as_str()),
    )
}

/// The bytes of a file, or why there are none. Never more than the limit is read,
/// whatever the file says of its size.
pub(crate) fn read(path: &Path, max_bytes: u64) -> Result<Vec<u8>, Box<Mark>> {
    let whole = |rule| Mark { span: None, ..Mark::new(rule, 0..0, "") };
    if !files::is_openable(path) {
        return Err(Box::new(whole(&run_rules::UNREADABLE).arg(
            "cause",
            Localized::both("it is neither a regular file nor a folder", "既不是普通文件，也不是文件夹"),
        )));
    }
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Box::new(missing(path, whole(&rules::FILE_MISSING))),
        _ => Box::new(whole(&run_rules::UNREADABLE).arg("cause", error.to_string())),
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > max_bytes {
        return Err(Box::new(whole(&rules::TOO_LARGE).arg("limit", max_bytes)));
    }
    Ok(bytes)
}

/// Names the file that was meant, where one of nearly that name stands in the folder.
fn missing(path: &Path, mark: Mark) -> Mark {
    let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
    let Some(typed) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { return mark };
    let entries = path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let names: Vec<String> = entries
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        // 66.json and 67.json are two measurements, not two spellings.
        .filter(|name| digits(name) == digits(&typed))
        .collect();
    match nearest(&typed, names.iter().map(String::as_str)) {
        Some(name) => mark.help(Localized::both(format!("did you mean `{name}`?"), format!("是不是想写 `{name}`？"))),
        None => mark,
    }
}

fn strict(bytes: &[u8], path: &str) -> (String, Judgement) {
    match gate::decode(bytes) {
        Err((readable, mark)) => (readable.to_owned(), Judgement { marks: vec![*mark], form: None }),
        Ok(decoded) => {
            let mut judgement = gate::judge(&json::read(decoded.text), path);
            if decoded.bom {
                judgement.marks.insert(0, Mark::new(&rules::BOM, 0..0, ""));
            }
            (decoded.text.to_owned(), judgement)
        }
    }
}

fn compat(bytes: &[u8]) -> Judgement {
    let marks = match jq::verdict(bytes) {
        Ok(()) => Vec::new(),
        Err(fault) => {
            vec![Mark { span: None, ..Mark::new(&rules::COMPAT, 0..0, fault.pointer()) }.arg("what", fault.text())]
        }
    };
    Judgement { marks, form: None }
}
