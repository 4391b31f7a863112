//! What is accepted although it is at fault: comments, entries of `verify.toml`, a
//! baseline. Whatever accepts nothing is said.

use super::resolve::World;
use super::{Faulty, report};
use crate::config::LinkIgnore;
use crate::course::Context;
use crate::error::RunError;
use crate::model::{Finding, Localized, Location, RepoPath};
use crate::rules::links as rules;
use crate::{config, fsx};
use globset::{Glob, GlobMatcher};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

/// The entries of `[[links.ignore]]`, compiled.
#[derive(Debug)]
pub(super) struct Accepted<'s> {
    entries: Vec<Entry<'s>>,
}

#[derive(Debug)]
struct Entry<'s> {
    entry: &'s LinkIgnore,
    path: Option<GlobMatcher>,
    target: GlobMatcher,
    used: Cell<bool>,
}

impl<'s> Accepted<'s> {
    /// Compiles the entries.
    ///
    /// # Errors
    /// An entry without a reason or a target, or with a pattern that is no glob.
    pub(super) fn new(entries: &'s [LinkIgnore]) -> Result<Self, RunError> {
        let entries = entries.iter().map(Entry::new).collect::<Result<_, _>>()?;
        Ok(Accepted { entries })
    }

    /// Whether an entry accepts the link. The first one that does counts as used.
    pub(super) fn takes(&self, path: &str, target: &str) -> bool {
        let hit = self.entries.iter().find(|entry| entry.takes(path, target));
        hit.inspect(|entry| entry.used.set(true)).is_some()
    }

    /// A warning for every entry that accepted nothing.
    pub(super) fn unused(&self, ctx: &Context) -> Vec<Finding> {
        let lines = entry_lines(ctx);
        let unused = self.entries.iter().enumerate().filter(|(_, entry)| !entry.used.get());
        unused
            .map(|(index, entry)| {
                let at = Location::file(RepoPath::new(config::FILE_NAME)).line(lines.get(index).copied());
                let path = if entry.entry.path.is_empty() { "**" } else { &entry.entry.path };
                let what = format!("path `{path}`, target `{}`", entry.entry.target);
                Finding::new(&rules::UNUSED_IGNORE, at).arg("what", what)
            })
            .collect()
    }
}

impl<'s> Entry<'s> {
    fn new(entry: &'s LinkIgnore) -> Result<Self, RunError> {
        if entry.reason.trim().is_empty() || entry.target.is_empty() {
            return Err(RunError::usage(
                Localized::both(
                    format!("the `[[links.ignore]]` entry for `{}` lacks a target or a reason", entry.target),
                    format!("`[[links.ignore]]` 中 `{}` 这一项缺少 target 或 reason", entry.target),
                ),
                Localized::both(
                    "say in `reason` why the link is accepted; somebody will ask",
                    "请在 `reason` 中写明接受该链接的原因，以便日后追溯",
                ),
            ));
        }
        let glob =
            |pattern: &str| Glob::new(pattern).map(|glob| glob.compile_matcher()).map_err(|e| bad_glob(pattern, &e));
        let path = if entry.path.is_empty() { None } else { Some(glob(&entry.path)?) };
        Ok(Entry { entry, path, target: glob(&entry.target)?, used: Cell::new(false) })
    }

    fn takes(&self, path: &str, target: &str) -> bool {
        self.path.as_ref().is_none_or(|glob| glob.is_match(path))
            && (self.entry.target == target || self.target.is_match(target))
    }
}

fn bad_glob(pattern: &str, error: &globset::Error) -> RunError {
    RunError::usage(
        Localized::both(
            format!("`{pattern}` is not a glob pattern: {error}"),
            format!("`{pattern}` 不是合法的 glob 模式：{error}"),
        ),
        Localized::both("correct `[[links.ignore]]` in verify.toml", "请更正 verify.toml 中的 `[[links.ignore]]`"),
    )
}

/// The lines of `[[links.ignore]]` in the settings file, as far as they are written so.
fn entry_lines(ctx: &Context) -> Vec<u32> {
    let text = std::fs::read_to_string(ctx.root.join(config::FILE_NAME)).unwrap_or_default();
    let is_header = |line: &str| line.split_whitespace().collect::<String>().starts_with("[[links.ignore]]");
    (1..).zip(text.lines()).filter(|(_, line)| is_header(line)).map(|(number, _)| number).collect()
}

/// A warning for every ignore comment in `sources` that accepted nothing.
pub(super) fn unused_comments(world: &World, sources: &[usize]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let path = &world.tree.sources[*source].path;
        for comment in &world.document(*source).ignores {
            if !comment.used.load(Ordering::Relaxed) {
                let at = report::location(path, comment.place);
                findings.push(Finding::new(&rules::UNUSED_IGNORE, at).arg("what", "<!-- verify-ignore links -->"));
            }
        }
    }
    findings
}

/// `verify-links-baseline/v1`: findings that are accepted, with how often each occurs.
#[derive(Debug, Default, Serialize, Deserialize)]
struct BaselineFile {
    schema_version: String,
    findings: Vec<BaselineEntry>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct BaselineEntry {
    path: String,
    target: String,
    rule: String,
    count: usize,
}

const BASELINE_VERSION: &str = "verify-links-baseline/v1";

type Key = (String, String, String);

/// Applies a baseline: what it accepts is taken out. A baseline that does not exist, or
/// is to be renewed, is written with what was found.
///
/// # Errors
/// The file cannot be read or written, or is no baseline.
pub(super) fn baseline(ctx: &Context, file: &Path, renew: bool, faults: &mut Vec<Faulty>) -> Result<Finding, RunError> {
    let path = ctx.at_cwd(file);
    crate::course::check_regular(&path)?;
    let at = Location::file(ctx.repo_path(&path));
    if renew || !path.exists() {
        let count = faults.len();
        write_baseline(&path, faults).map_err(|error| RunError::file(file, error))?;
        faults.clear();
        let what = Localized::both(
            format!("baseline written: {count} findings of today are accepted"),
            format!("已写入基线：接受当前的 {count} 个问题"),
        );
        return Ok(Finding::new(&rules::BASELINE, at).arg("what", what));
    }
    let mut accepted = read_baseline(file, &path)?;
    let before = faults.len();
    faults.retain(|faulty| match accepted.get_mut(&key(faulty)) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    });
    let (taken, stale) = (before - faults.len(), accepted.values().sum::<usize>());
    let what = Localized::both(
        format!("the baseline accepts {taken} findings; {stale} of its entries no longer occur"),
        format!("基线接受了 {taken} 个问题；其中 {stale} 项已不再出现"),
    );
    Ok(Finding::new(&rules::BASELINE, at).arg("what", what))
}

fn key(faulty: &Faulty) -> Key {
    (faulty.path.clone(), faulty.link.target.to_string(), faulty.fault.rule.id.to_owned())
}

fn read_baseline(given: &Path, path: &Path) -> Result<BTreeMap<Key, usize>, RunError> {
    let text = std::fs::read_to_string(path).map_err(|error| RunError::file(given, error))?;
    let bad = |message: String| {
        RunError::usage(
            Localized::both(
                format!("{} is no baseline: {message}", given.display()),
                format!("{} 不是基线文件：{message}", given.display()),
            ),
            Localized::both("write a new one with --update-baseline", "请用 --update-baseline 重新生成"),
        )
    };
    let read: BaselineFile = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
    if read.schema_version != BASELINE_VERSION {
        return Err(bad(format!("schema_version is `{}`", read.schema_version)));
    }
    Ok(read.findings.into_iter().map(|entry| ((entry.path, entry.target, entry.rule), entry.count)).collect())
}

fn write_baseline(path: &Path, faults: &[Faulty]) -> std::io::Result<()> {
    let mut counts: BTreeMap<Key, usize> = BTreeMap::new();
    for faulty in faults {
        *counts.entry(key(faulty)).or_default() += 1;
    }
    let entry = |((path, target, rule), count)| BaselineEntry { path, target, rule, count };
    let file =
        BaselineFile { schema_version: BASELINE_VERSION.to_owned(), findings: counts.into_iter().map(entry).collect() };
    let mut text = serde_json::to_string_pretty(&file)?;
    text.push('\n');
    fsx::write_atomic(path, text.as_bytes())
}
