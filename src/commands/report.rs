//! `verify report`: reads experiments and results, shows them side by side.

use super::compare::{names, result};
use crate::bench::experiment::record::{self, ExperimentRecord};
use crate::cli::{Cli, ReportArgs};
use crate::course::Context;
use crate::error::RunError;
use crate::model::Localized;
use crate::render::{Format, HumanOptions};
use crate::report::{Sheet, Source, gather, json, page, text};
use crate::results::evidence::{self, Case, Facts};
use crate::results::{files, json as reader};
use crate::stages::conclude::normalized_of;
use crate::term::neutralize;
use crate::{Screen, output};
use std::path::{Path, PathBuf};

/// A record of ten arms and ten thousand requests each takes some tens of megabytes.
const MAX_RECORD: u64 = 1 << 30;
/// The record in the folder of an experiment.
const RECORD: &str = "experiment.json";

/// Shows the files side by side.
///
/// # Errors
/// A fault of usage, or an output that cannot be written.
pub(crate) fn run(args: &ReportArgs, cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    screen.format_of(&[Format::Human, Format::Json, Format::Markdown])?;
    let ctx = crate::context(cli, screen, &[])?;
    if let Some(html) = &args.html {
        let targets = cli.global.outputs.iter().map(|target| target.path.as_path());
        output::check(&ctx.cwd, targets.chain([html.as_path()]))?;
    }
    let (sheet, faults) = read(&ctx, args)?;
    if !faults.is_empty() {
        let texts: Vec<&str> = faults.iter().map(|fault| fault.get(screen.lang)).collect();
        screen.complain(&neutralize(&texts.concat()));
        return Ok(1);
    }
    if let Some(html) = &args.html {
        let target = ctx.at_cwd(html);
        output::write(&target, &page::html(&sheet, screen.lang)).map_err(|error| RunError::file(html, error))?;
    }
    let shown = |format, _: HumanOptions<'_>| match format {
        Format::Json => json::render(&sheet),
        Format::Markdown => text::markdown(&sheet, screen.lang),
        _ => text::human(&sheet, screen.lang),
    };
    screen.emit(shown, &ctx.root)?;
    Ok(0)
}

/// Every file, or what is wrong with each that is none.
fn read(ctx: &Context, args: &ReportArgs) -> Result<(Sheet, Vec<Localized>), RunError> {
    let paths: Vec<PathBuf> = args
        .files
        .iter()
        .map(|path| if ctx.at_cwd(path).is_dir() { path.join(RECORD) } else { path.clone() })
        .collect();
    for path in &paths {
        files::no_device(path, &ctx.at_cwd(path))?;
    }
    let shown: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let (mut sheet, mut faults, mut baseline) = (Sheet::default(), Vec::new(), None);
    for (path, name) in shown.iter().zip(names(&shown)) {
        let source = match experiment(ctx, path) {
            Some(Ok(record)) => Ok(Some(gather::experiment(&path.display().to_string(), &record))),
            Some(Err(fault)) => Err(fault),
            None => result(ctx, path).map(|text| one_result(ctx, &name, &text, &mut baseline)),
        };
        match source {
            Ok(source) => sheet.sources.extend(source),
            Err(fault) => faults.push(fault),
        }
    }
    Ok((sheet, faults))
}

/// The record of an experiment; `None`: the file is something else.
fn experiment(ctx: &Context, path: &Path) -> Option<Result<ExperimentRecord, Localized>> {
    let file = ctx.at_cwd(path);
    let facts = std::fs::metadata(&file).ok().filter(|facts| facts.is_file() && facts.len() <= MAX_RECORD)?;
    let bytes = std::fs::read(&file).ok().filter(|bytes| bytes.len() as u64 == facts.len())?;
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).into_owned();
    if !head.contains(record::SCHEMA_VERSION) {
        return None;
    }
    let shown = path.display();
    Some(serde_json::from_slice(&bytes).map_err(|error| {
        Localized::both(
            format!("{shown} is no complete {}: {error}\n  help: repeat the experiment with --resume, or name another file\n", record::SCHEMA_VERSION),
            format!("{shown} 不是完整的 {}：{error}\n  建议：用 --resume 继续该实验，或换一个文件\n", record::SCHEMA_VERSION),
        )
    }))
}

/// A result; those after the first are judged against it.
fn one_result(ctx: &Context, name: &str, text: &str, baseline: &mut Option<String>) -> Option<Source> {
    let document = reader::read(text);
    let facts = Facts(normalized_of(document.root.as_ref())?);
    let before = baseline.as_ref().map(|text| reader::read(text));
    let before = before.as_ref().and_then(|document| normalized_of(document.root.as_ref())).map(Facts);
    let known = evidence::conclude(&Case {
        candidate: facts,
        baseline: before,
        limits: &ctx.settings.conclude,
        strategy_metrics: &[],
    });
    let source = gather::result(name, facts, &known);
    if baseline.is_none() {
        *baseline = Some(text.to_owned());
    }
    Some(source)
}
