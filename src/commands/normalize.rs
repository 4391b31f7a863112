//! `verify normalize`: reads, migrates, writes. The original is never touched: not by
//! another spelling of its name, not through a link.

use crate::cli::{Cli, NormalizeArgs};
use crate::course::Context;
use crate::error::RunError;
use crate::model::{Lang, Localized, RepoPath};
use crate::render::Format;
use crate::results::files::{self, Candidate};
use crate::results::gate::{self, Mark};
use crate::results::json;
use crate::results::normalize::{Migration, Refusal, Request, migrate};
use crate::results::v1;
use crate::stages::schema::read;
use crate::term::{Progress, neutralize};
use crate::{Screen, fsx};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// With more files than this a bar is worth looking at, and single lines are not.
const MANY: usize = 50;

/// Migrates every named file.
///
/// # Errors
/// A fault of usage.
pub(crate) fn run(args: &NormalizeArgs, cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    let format = screen.format_of(&[Format::Human, Format::Json])?;
    let ctx = crate::context(cli, screen, &[])?;
    let files = files::named(&ctx, &args.files)?;
    let jobs = plan(&ctx, args, cli, &files)?;
    let projects: Vec<u32> = ctx.settings.project.iter().map(|project| project.id).collect();
    let progress = if jobs.len() > MANY { bar_only(ctx.progress) } else { Progress::Silent };
    let phase = progress.start("normalize", jobs.len() as u64);
    let originals = Originals::of(&jobs);
    let results: Vec<Done> = jobs
        .par_iter()
        .map(|job| {
            let done =
                if ctx.cancel.is_set() { Done::Interrupted } else { one(&ctx, args, job, &projects, &originals) };
            phase.step(job.shown.as_str());
            done
        })
        .collect();
    drop(phase);
    let text = match format {
        Format::Json => report_json(&jobs, &results),
        _ => report(&jobs, &results, args, screen.lang, cli.global.quiet),
    };
    screen.print(&text);
    Ok(ctx.cancel.get().map_or_else(|| exit_code(&results, args), |state| u8::try_from(state.exit_code()).unwrap_or(1)))
}

/// A line per file would drown the summary of ten thousand.
fn bar_only(progress: Progress) -> Progress {
    match progress {
        bar @ Progress::Bar(_) => bar,
        _ => Progress::Silent,
    }
}

/// One file and where its migration goes.
struct Job {
    path: PathBuf,
    shown: RepoPath,
    output: PathBuf,
    output_shown: RepoPath,
    /// The user named the output or its folder.
    placed: bool,
    /// An earlier run wrote it beside its source: there is nothing to migrate.
    own: bool,
}

/// Why a file is not migrated, and what to do.
struct Fault {
    rule: Option<&'static str>,
    reason: Localized,
    help: Localized,
}

/// What became of one file.
enum Done {
    /// Written, or the same bytes were there already.
    Written { migration: Migration, was_there: bool, kept: Option<PathBuf> },
    /// Would be written.
    Planned { migration: Migration, before: String, replaces: bool, was_there: bool },
    /// A result already, and nobody asked for a copy.
    Nothing { migration: Migration },
    /// Cannot be migrated.
    Refused(Fault),
    /// Would overwrite something.
    Conflict(Fault),
    /// An earlier run wrote it.
    Already,
    /// The run was interrupted before.
    Interrupted,
}

fn plan(ctx: &Context, args: &NormalizeArgs, cli: &Cli, files: &[Candidate]) -> Result<Vec<Job>, RunError> {
    let output = single_output(args, cli, files.len())?;
    let mut jobs = Vec::new();
    for file in files {
        // Found by folder: what an earlier migration wrote beside its source.
        if !file.named && (files::is_failure_record(&file.path) || is_migrated_name(&file.path)) {
            continue;
        }
        let target = match (&output, &args.out_dir) {
            (Some(output), _) => ctx.at_cwd(output),
            (None, Some(folder)) => ctx.at_cwd(folder).join(file.path.file_name().unwrap_or_default()),
            (None, None) => default_output(&file.path),
        };
        let placed = output.is_some() || args.out_dir.is_some();
        jobs.push(Job {
            own: !placed && is_own_output(ctx, &file.path),
            shown: ctx.repo_path(&file.path),
            path: file.path.clone(),
            output_shown: ctx.repo_path(&files::lexical(&target)),
            output: files::lexical(&target),
            placed,
        });
    }
    one_output_each(&jobs)?;
    Ok(jobs)
}

/// `--output FILE`, which is for one file only.
fn single_output(args: &NormalizeArgs, cli: &Cli, count: usize) -> Result<Option<PathBuf>, RunError> {
    let hint = Localized::both(
        "--output names one migrated file; for several use --out-dir DIR",
        "--output 指定一个迁移后的文件；多个文件请用 --out-dir DIR",
    );
    let fault = |en: &str, zh: &str| Err(RunError::usage(Localized::both(en, zh), hint.clone()));
    match cli.global.outputs.as_slice() {
        [] => Ok(None),
        [_] if args.out_dir.is_some() => {
            fault("--output and --out-dir exclude each other", "--output 与 --out-dir 不能同时使用")
        }
        [target] if count == 1 && target.format.is_none() => Ok(Some(target.path.clone())),
        _ => fault("--output does not fit here", "--output 用法不对"),
    }
}

fn default_output(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!("{stem}_normalized.json"))
}

fn is_migrated_name(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("_normalized"))
}

/// Whether an earlier run of this program wrote the file: its name and its envelope
/// both say so.
fn is_own_output(ctx: &Context, path: &Path) -> bool {
    let wrote = |document: serde_json::Value| {
        let tool = document["migration"]["tool"].as_str().and_then(|tool| tool.split(' ').next());
        document["normalized_result"].is_object() && tool == Some("verify")
    };
    is_migrated_name(path)
        && read(path, ctx.settings.schema.max_bytes).is_ok_and(|bytes| serde_json::from_slice(&bytes).is_ok_and(wrote))
}

fn one_output_each(jobs: &[Job]) -> Result<(), RunError> {
    let mut seen: BTreeMap<&Path, &Job> = BTreeMap::new();
    for job in jobs {
        if let Some(other) = seen.insert(&job.output, job) {
            return Err(RunError::usage(
                Localized::both(
                    format!("{} and {} would both be written to {}", other.shown, job.shown, job.output_shown),
                    format!("{} 和 {} 会写到同一个文件 {}", other.shown, job.shown, job.output_shown),
                ),
                Localized::both("migrate them into different folders", "请分别迁移到不同的文件夹"),
            ));
        }
    }
    Ok(())
}

/// Every input of the run, as the file system knows it.
struct Originals(std::collections::HashSet<Identity>);

/// A file by device and number where there are such, else by its resolved path.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    #[cfg(unix)]
    Number(u64, u64),
    #[cfg(not(unix))]
    Path(PathBuf),
}

fn identity(path: &Path) -> Option<Identity> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let facts = std::fs::metadata(path).ok()?;
        Some(Identity::Number(facts.dev(), facts.ino()))
    }
    #[cfg(not(unix))]
    path.canonicalize().ok().map(Identity::Path)
}

impl Originals {
    fn of(jobs: &[Job]) -> Self {
        Originals(jobs.iter().filter(|job| !job.own).filter_map(|job| identity(&job.path)).collect())
    }

    /// Whether an output reaches one of the inputs, by whatever name or link.
    fn contain(&self, output: &Path) -> bool {
        identity(output).is_some_and(|found| self.0.contains(&found))
    }
}

fn one(ctx: &Context, args: &NormalizeArgs, job: &Job, projects: &[u32], originals: &Originals) -> Done {
    if job.own {
        return Done::Already;
    }
    if originals.contain(&job.output) {
        return conflict(
            format!("{} is an original; it is never overwritten", job.output_shown),
            format!("{} 是原文件，不会被覆盖", job.output_shown),
            Localized::both("choose another place with --output or --out-dir", "请用 --output 或 --out-dir 换一个位置"),
        );
    }
    let migration = match migration(ctx, args, job, projects) {
        Ok(migration) => migration,
        Err(fault) => return Done::Refused(fault),
    };
    if migration.is_result && !job.placed {
        return Done::Nothing { migration };
    }
    place(args, job, migration)
}

fn conflict(en: String, zh: String, help: Localized) -> Done {
    Done::Conflict(Fault { rule: None, reason: Localized::both(en, zh), help })
}

/// Reads and migrates one file.
fn migration(ctx: &Context, args: &NormalizeArgs, job: &Job, projects: &[u32]) -> Result<Migration, Fault> {
    let bytes = read(&job.path, ctx.settings.schema.max_bytes).map_err(|mark| words(&mark, &job.shown, ""))?;
    let decoded = gate::decode(&bytes).map_err(|(readable, mark)| words(&mark, &job.shown, readable))?;
    let digest = fsx::sha256(&bytes);
    let request = Request {
        source_path: job.shown.as_str(),
        source_sha256: &digest,
        from: args.from,
        line: args.line,
        index: args.index,
        group: args.group.as_deref(),
        stated: &args.stated,
        projects,
    };
    migrate(decoded.text, &request).map_err(|refusal| located(&refusal, decoded.text))
}

fn located(refusal: &Refusal, text: &str) -> Fault {
    let rule = refusal.rule.map(|rule| rule.id);
    Fault { rule, reason: placed_reason(refusal, text), help: refusal.help.clone() }
}

fn placed_reason(refusal: &Refusal, text: &str) -> Localized {
    let Some(offset) = refusal.offset else { return refusal.reason.clone() };
    let (line, column) = json::Positions::new(text).of(offset);
    let (en, zh) = (refusal.reason.get(Lang::En), refusal.reason.get(Lang::Zh));
    Localized::both(format!("{en} (line {line}, column {column})"), format!("{zh}（第 {line} 行第 {column} 列）"))
}

/// A mark in one line.
fn words(mark: &Mark, path: &RepoPath, text: &str) -> Fault {
    let findings = gate::findings(path, text, vec![mark.clone()]);
    let say = |lang| {
        findings.first().map_or_else(String::new, |finding| {
            let place = finding.at.line.zip(finding.at.column);
            let place = place.map_or_else(String::new, |(line, column)| format!(" ({line}:{column})"));
            format!("{}{place}", finding.message(lang))
        })
    };
    let help = |lang| findings.first().and_then(|finding| finding.help_text(lang)).unwrap_or_default();
    Fault {
        rule: Some(mark.rule.id),
        reason: Localized::both(say(Lang::En), say(Lang::Zh)),
        help: Localized::both(help(Lang::En), help(Lang::Zh)),
    }
}

/// Writes, unless the same bytes are there, something else is, or nobody wants it.
fn place(args: &NormalizeArgs, job: &Job, migration: Migration) -> Done {
    if std::fs::metadata(&job.output).is_ok_and(|facts| !facts.is_file()) {
        return conflict(
            format!("{} is no regular file; nothing is written there", job.output_shown),
            format!("{} 不是普通文件，不会写入", job.output_shown),
            Localized::both("choose another place with --output or --out-dir", "请用 --output 或 --out-dir 换一个位置"),
        );
    }
    let there = std::fs::symlink_metadata(&job.output).is_ok();
    let before = if there { std::fs::read(&job.output).unwrap_or_default() } else { Vec::new() };
    let was_there = there && before == migration.text.as_bytes();
    if args.dry_run || args.check {
        let source = || std::fs::read(&job.path).unwrap_or_default();
        let shown = if there { before } else { source() };
        let before = String::from_utf8_lossy(&shown).into_owned();
        return Done::Planned { migration, before, replaces: there, was_there };
    }
    if was_there {
        return Done::Written { migration, was_there, kept: None };
    }
    if there && !args.force {
        return conflict(
            format!("{} exists and is different", job.output_shown),
            format!("{} 已存在且内容不同", job.output_shown),
            Localized::both("--force keeps it in history/ and replaces it", "用 --force 可将其存入 history/ 后替换"),
        );
    }
    match fsx::write_keeping_history(&job.output, migration.text.as_bytes(), jiff::Timestamp::now()) {
        Ok(kept) => Done::Written { migration, was_there, kept },
        Err(error) => Done::Refused(Fault {
            rule: None,
            reason: Localized::from(error.to_string()),
            help: Localized::both(
                "check the folder, its permissions and the space left",
                "请检查文件夹、权限和剩余空间",
            ),
        }),
    }
}

/// 2 for what would be overwritten, 1 for what is no result now, else 0.
fn exit_code(results: &[Done], args: &NormalizeArgs) -> u8 {
    let worst = |done: &Done| match done {
        Done::Conflict(_) => 2,
        Done::Refused(_) | Done::Interrupted => 1,
        Done::Already => 0,
        Done::Planned { was_there: false, .. } if args.check => 1,
        Done::Written { migration, .. } | Done::Planned { migration, .. } | Done::Nothing { migration } => {
            u8::from(!migration.passes())
        }
    };
    let codes: Vec<u8> = results.iter().map(worst).collect();
    // One file in the way of many others is a failure among results, not a fault of the command.
    if codes.contains(&1) || codes.len() > 1 && codes.contains(&2) { 1 } else { codes.into_iter().max().unwrap_or(0) }
}

/// One entry per file: `verify-normalize/v1`.
fn report_json(jobs: &[Job], results: &[Done]) -> String {
    let entry = |(job, done): (&Job, &Done)| {
        let (status, migration, reason) = match done {
            Done::Written { migration, was_there: true, .. } | Done::Planned { migration, was_there: true, .. } => {
                ("same", Some(migration), None)
            }
            Done::Written { migration, .. } => ("migrated", Some(migration), None),
            Done::Planned { migration, .. } => ("planned", Some(migration), None),
            Done::Nothing { migration } => ("result", Some(migration), None),
            Done::Refused(fault) => ("refused", None, Some(fault.reason.get(Lang::En))),
            Done::Conflict(fault) => ("conflict", None, Some(fault.reason.get(Lang::En))),
            Done::Already => ("result", None, None),
            Done::Interrupted => ("interrupted", None, None),
        };
        serde_json::json!({
            "path": job.shown.as_str(),
            "output": job.output_shown.as_str(),
            "status": status,
            "kind": migration.map(|migration| migration.kind),
            "passes": migration.map(Migration::passes),
            "defaults": migration.map(|migration| migration.defaults.clone()),
            "notes": migration.map(|migration| migration.notes.iter().map(|note| note.get(Lang::En)).collect::<Vec<_>>()),
            "reason": reason,
        })
    };
    let files: Vec<serde_json::Value> = jobs.iter().zip(results).map(entry).collect();
    v1::to_text(&serde_json::json!({ "schema_version": "verify-normalize/v1", "files": files }))
}

fn report(jobs: &[Job], results: &[Done], args: &NormalizeArgs, lang: Lang, quiet: bool) -> String {
    let mut out = String::new();
    let mut faults = String::new();
    let mut counts = Counts::default();
    for (job, done) in jobs.iter().zip(results) {
        let mut text = String::new();
        let failed = describe(&mut text, job, done, lang);
        counts.add(done, failed);
        if args.dry_run {
            diff(&mut text, job, done);
        }
        if failed {
            faults.push_str(&text);
        } else if !quiet && (jobs.len() <= MANY || args.dry_run) {
            out.push_str(&text);
        }
    }
    // Failures last: they are what is left to do.
    out.push_str(&faults);
    if jobs.len() > 1 {
        counts.write(&mut out, lang);
    }
    neutralize(&out)
}

#[derive(Default)]
struct Counts {
    written: usize,
    unchanged: usize,
    failed: usize,
    not_reached: usize,
}

impl Counts {
    fn add(&mut self, done: &Done, failed: bool) {
        match done {
            Done::Interrupted => self.not_reached += 1,
            _ if failed => self.failed += 1,
            Done::Written { was_there: false, .. } | Done::Planned { was_there: false, .. } => self.written += 1,
            _ => self.unchanged += 1,
        }
    }

    fn write(&self, out: &mut String, lang: Lang) {
        let Counts { written, unchanged, failed, not_reached } = self;
        let text = Localized::both(
            format!("{written} migrated, {unchanged} unchanged, {failed} failed"),
            format!("迁移 {written}，未变 {unchanged}，失败 {failed}"),
        );
        let _ = write!(out, "{}", text.get(lang));
        if *not_reached > 0 {
            let text = Localized::both(format!(", {not_reached} not reached"), format!("，未处理 {not_reached}"));
            let _ = write!(out, "{}", text.get(lang));
        }
        out.push('\n');
    }
}

/// In the form of the other commands.
fn complain(out: &mut String, job: &Job, fault: &Fault, lang: Lang) {
    let rule = fault.rule.map_or_else(String::new, |rule| format!("[{rule}]"));
    let _ = writeln!(out, "error{rule}: {}: {}", job.shown, fault.reason.get(lang));
    if !fault.help.get(lang).is_empty() {
        let label = if lang == Lang::En { "help" } else { "建议" };
        let _ = writeln!(out, "  {label}: {}", fault.help.get(lang));
    }
}

/// Says what became of one file; true when a person has to do something.
fn describe(out: &mut String, job: &Job, done: &Done, lang: Lang) -> bool {
    let say = |en: &'static str, zh: &'static str| if lang == Lang::En { en } else { zh };
    let output = &job.output_shown;
    let (migration, word) = match done {
        Done::Refused(fault) | Done::Conflict(fault) => {
            complain(out, job, fault, lang);
            return true;
        }
        Done::Already => {
            let what = say("nothing to migrate (already migrated)", "无需迁移（已迁移过）");
            let _ = writeln!(out, "{} {}: {what}", say("result  ", "已是结果"), job.shown);
            return false;
        }
        Done::Interrupted => {
            let _ = writeln!(out, "{} {}", say("not reached", "未处理"), job.shown);
            return false;
        }
        Done::Nothing { migration } => (migration, say("result  ", "已是结果")),
        Done::Written { migration, was_there: true, .. } => (migration, say("same    ", "相同    ")),
        Done::Written { migration, .. } => (migration, say("migrated", "已迁移  ")),
        Done::Planned { migration, was_there: true, .. } => (migration, say("same    ", "相同    ")),
        Done::Planned { migration, .. } => (migration, say("would be migrated", "将会迁移")),
    };
    match done {
        Done::Nothing { .. } => {
            let _ = writeln!(out, "{word} {}: {}", job.shown, say("nothing to migrate", "无需迁移"));
        }
        _ => {
            let _ = writeln!(out, "{word} {} → {output} ({})", job.shown, migration.kind);
        }
    }
    if let Done::Written { kept: Some(kept), .. } = done {
        let _ = writeln!(out, "  {} {}", say("the earlier file is now", "原有文件现为"), kept.display());
    }
    if !migration.defaults.is_empty() {
        let _ = writeln!(out, "  {}: {}", say("not recorded, taken as", "未记录，取为"), migration.defaults.join(", "));
    }
    for note in &migration.notes {
        let _ = writeln!(out, "  {}: {}", say("note", "说明"), note.get(lang));
    }
    gate_says(out, job, migration, lang)
}

/// What the gate would say about the new file.
fn gate_says(out: &mut String, job: &Job, migration: &Migration, lang: Lang) -> bool {
    let path = RepoPath::new(job.output.to_string_lossy());
    for finding in gate::findings(&path, &migration.text, migration.marks.clone()) {
        let _ = writeln!(out, "  {}[{}]: {}", finding.severity.name(), finding.rule.id, finding.message(lang));
    }
    if !migration.passes() {
        let text = Localized::both(
            "  not a result that `verify schema` accepts: what is missing was not measured or not recorded",
            "  `verify schema` 不会接受它：缺少的内容没有测量或没有记录",
        );
        let _ = writeln!(out, "{}", text.get(lang));
    }
    !migration.passes()
}

/// The change in the form that reviews use: against the file that would be replaced,
/// else what of the source stands in the result. Both sides are laid out alike, so
/// that white space is no difference.
fn diff(out: &mut String, job: &Job, done: &Done) {
    let Done::Planned { migration, before, replaces, was_there: false } = done else { return };
    let laid_out = |text: &str, pick: bool| match serde_json::from_str::<serde_json::Value>(text) {
        Ok(mut value) if pick && value.get("normalized_result").is_some_and(serde_json::Value::is_object) => {
            v1::to_text(&value["normalized_result"].take())
        }
        Ok(value) => v1::to_text(&value),
        Err(_) => text.to_owned(),
    };
    let (old, new) = (laid_out(before, !replaces), laid_out(&migration.text, !replaces));
    let old_name = if *replaces { job.output_shown.as_str() } else { job.shown.as_str() };
    let new_name =
        if *replaces { job.output_shown.to_string() } else { format!("{} /normalized_result", job.output_shown) };
    let difference = similar::TextDiff::from_lines(old.as_str(), new.as_str());
    let _ = write!(out, "{}", difference.unified_diff().context_radius(3).header(old_name, &new_name));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_interrupt_left_is_not_counted_as_failed() {
        let mut counts = Counts::default();
        counts.add(&Done::Already, false);
        counts.add(&Done::Interrupted, false);
        let mut out = String::new();
        counts.write(&mut out, Lang::En);
        assert_eq!(out, "0 migrated, 1 unchanged, 0 failed, 1 not reached\n");
    }
}
