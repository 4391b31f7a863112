//! `verify links`: [`tree`] sees the files, [`read`] and [`extract`] turn sources into
//! links and headings, [`resolve`] judges, [`suggest`] says what to write instead.

mod accept;
mod anchors;
mod command;
mod document;
mod external;
mod extract;
mod fix;
mod git;
mod html;
mod mirror;
mod own;
mod read;
mod report;
mod resolve;
mod scope;
mod site;
mod slug;
mod suggest;
mod target;
mod tree;

use crate::cli::LinksArgs;
use crate::config::Slug;
use crate::course::Context;
use crate::error::RunError;
use crate::fsx;
use crate::model::{Finding, Localized, Outcome, Summary};
use crate::term;
use accept::Accepted;
use rayon::prelude::*;
use resolve::{Fault, Reader, Verdict, World};
use scope::Scope;
use std::io::Write;

/// Runs the stage.
///
/// # Errors
/// A fault of usage: nothing was checked.
pub fn run(ctx: &Context, args: &LinksArgs) -> Result<Outcome, RunError> {
    let mut scope = Scope::new(ctx, args)?;
    let accepted = Accepted::new(&ctx.settings.links.ignore)?;
    if let Some(failed) = prepare(ctx, args)? {
        return Ok(Outcome::ran(1, Summary::new(), Vec::new(), vec![failed]));
    }
    let mirror = args.mirror && !args.skip_mirror_check;
    if args.skip_scan {
        return without_scan(ctx, args, &scope, mirror);
    }
    let mut survey = Survey::take(ctx, args, &scope, &accepted)?;
    scope.check_named(ctx, &survey.world)?;
    let mut findings = scope.notes();
    let closed = scope.unreadable(ctx, &survey.world.tree);
    let folders = closed.len();
    findings.extend(closed);
    if survey.sources.is_empty() && findings.is_empty() {
        return Ok(Outcome::skipped(Localized::both(
            "there is no Markdown file and no notebook to check",
            "没有可检查的 Markdown 文件或 Notebook",
        )));
    }
    let fixed = if args.fix { fix(&survey, args.dry_run)? } else { 0 };
    if fixed > 0 && !args.dry_run {
        survey = Survey::take(ctx, args, &scope, &accepted)?;
    }
    if mirror {
        findings.extend(mirror::compare(&survey.world, &ctx.settings.links, &survey.checked.faults));
    }
    if let Some(file) = &args.baseline {
        findings.push(accept::baseline(ctx, file, args.update_baseline, &mut survey.checked.faults)?);
    }
    findings.extend(survey.findings());
    if args.external {
        findings.extend(web(ctx, &survey.checked.web, &accepted)?);
    }
    findings.extend(accept::unused_comments(&survey.world, &survey.sources));
    if !scope.is_narrow() && !args.no_anchors {
        findings.extend(accepted.unused(ctx));
    }
    let mut summary = survey.summary();
    let unreadable = survey.checked.unreadable.len() + folders;
    if unreadable > 0 {
        summary.set("unreadable", unreadable);
    }
    if args.fix {
        summary.set(if args.dry_run { "fixable" } else { "fixed" }, fixed);
    }
    Ok(Outcome::ran(survey.checked.read, summary, Vec::new(), findings))
}

/// Converts and builds, where that was asked for. A command that fails is a finding, and
/// the end of the run.
fn prepare(ctx: &Context, args: &LinksArgs) -> Result<Option<Finding>, RunError> {
    let settings = &ctx.settings.links;
    if args.convert
        && !args.skip_convert
        && let Some(failed) = command::run(ctx, "convert", &settings.convert, &ctx.root)?
    {
        return Ok(Some(failed));
    }
    if args.build && !args.skip_build {
        let folder = if settings.build_dir.is_empty() { scope::docs(ctx, args)?.0 } else { settings.build_dir.clone() };
        return command::run(ctx, "build", &settings.build, &ctx.at_root(&folder));
    }
    Ok(None)
}

/// `--skip-scan`: at most the pages of the mirror are compared.
fn without_scan(ctx: &Context, args: &LinksArgs, scope: &Scope, mirror: bool) -> Result<Outcome, RunError> {
    if !mirror {
        return Ok(Outcome::skipped(Localized::both(
            "links were not checked, as --skip-scan asks",
            "按 --skip-scan 的要求，未检查链接",
        )));
    }
    let world = world(ctx, args, scope)?;
    let findings = mirror::compare(&world, &ctx.settings.links, &[]);
    let pages = mirror::pages(&world, &ctx.settings.links);
    Ok(Outcome::ran(pages, Summary::new().with("pages", pages), Vec::new(), findings))
}

/// Asks the servers of the links that leave the repository.
fn web(ctx: &Context, links: &[WebLink], accepted: &Accepted<'_>) -> Result<Vec<Finding>, RunError> {
    let settings = &ctx.settings.links.external;
    let cache = (!settings.cache.is_empty()).then(|| ctx.at_root(&settings.cache));
    let mut addresses: Vec<String> = links.iter().map(|link| link.address.clone()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let answers = external::ask(settings, cache.as_deref(), &ctx.cancel, &addresses)
        .map_err(|error| RunError::file(&settings.cache, error))?;
    let asked = links.iter().filter_map(|link| Some((link, answers.get(&link.address)?)));
    let findings = asked.filter_map(|(link, answer)| report::web(link, answer));
    Ok(findings
        .filter(|finding| !accepted.takes(finding.at.path.as_str(), finding.at.target.as_deref().unwrap_or_default()))
        .collect())
}

/// Writes the suggestions that leave no choice, or shows them. Returns how many links
/// they concern.
fn fix(survey: &Survey, dry_run: bool) -> Result<usize, RunError> {
    let changes = fix::plan(&survey.world, &survey.checked.faults);
    for change in &changes {
        if dry_run {
            // Standard output carries the report and nothing else.
            let _ = std::io::stderr().write_all(term::neutralize(&change.diff()).as_bytes());
        } else {
            fsx::write_atomic(&change.file, change.new.as_bytes())
                .map_err(|error| RunError::file(&change.file, error))?;
        }
    }
    Ok(changes.iter().map(|change| change.links).sum())
}

/// One look at all files: what they hold and what is wrong with it.
#[derive(Debug)]
struct Survey {
    world: World,
    sources: Vec<usize>,
    checked: Checked,
}

impl Survey {
    fn take(ctx: &Context, args: &LinksArgs, scope: &Scope, accepted: &Accepted<'_>) -> Result<Self, RunError> {
        let world = world(ctx, args, scope)?;
        let sources = scope.sources(ctx, &world.tree);
        let mut checked = check(ctx, &world, &sources, scope);
        checked.faults.retain(|faulty| !accepted.takes(&faulty.path, &faulty.link.target));
        Ok(Survey { world, sources, checked })
    }

    fn summary(&self) -> Summary {
        Summary::new()
            .with("files", self.checked.read)
            .with("links", self.checked.links)
            .with("external", self.checked.external)
    }

    fn findings(&self) -> Vec<Finding> {
        let unreadable = self.checked.unreadable.iter().filter_map(|source| {
            let fault = self.world.document(*source).fault.as_ref()?;
            Some(report::unreadable(&self.world.tree.sources[*source].path, fault))
        });
        let mut known = report::Suggestions::default();
        self.checked
            .faults
            .iter()
            .map(|faulty| report::finding(&self.world, faulty, &mut known))
            .chain(unreadable)
            .collect()
    }
}

fn world(ctx: &Context, args: &LinksArgs, scope: &Scope) -> Result<World, RunError> {
    let docs = scope::docs(ctx, args)?;
    let repository = git::Repository::find(&ctx.root);
    let remote = repository.as_ref().and_then(git::Repository::remote);
    let (tree, index) = rayon::join(|| tree::Tree::walk(ctx, scope.named_files()), || repository?.index());
    let sites = site::find(&tree, &docs.0, &|path| std::fs::read_to_string(ctx.root.join(path)).ok());
    let slug = args.slug.filter(|slug| *slug != Slug::Auto).unwrap_or(ctx.settings.links.slug);
    let mut world = World::new(ctx.root.clone(), tree, sites, docs, slug);
    world.check_anchors = !args.no_anchors;
    world.index = index;
    world.own = own::Own::new(&ctx.settings.links, remote.as_deref());
    world.ask_servers = args.external;
    Ok(world)
}

/// What was found in the sources.
#[derive(Debug, Default)]
struct Checked {
    /// Sources that could be read: what was not read was not judged.
    read: usize,
    links: usize,
    external: usize,
    faults: Vec<Faulty>,
    unreadable: Vec<usize>,
    web: Vec<WebLink>,
}

/// A link to another server.
#[derive(Debug)]
struct WebLink {
    path: String,
    link: document::Link,
    /// What to ask for: with a scheme, without a fragment.
    address: String,
}

/// A faulty link with its place.
#[derive(Debug)]
struct Faulty {
    path: String,
    source: Option<usize>,
    link: document::Link,
    fault: Fault,
}

impl Checked {
    fn take(&mut self, other: Checked) {
        self.read += other.read;
        self.links += other.links;
        self.external += other.external;
        self.faults.extend(other.faults);
        self.unreadable.extend(other.unreadable);
        self.web.extend(other.web);
    }

    fn judge(&mut self, world: &World, reader: Reader<'_>, link: &document::Link) {
        self.links += 1;
        match world.judge(reader, link) {
            Verdict::Fine => {}
            Verdict::External => {
                self.external += 1;
                if world.ask_servers
                    && let Some(address) = target::web_address(&link.target)
                {
                    self.web.push(WebLink { path: reader.path.to_owned(), link: link.clone(), address });
                }
            }
            Verdict::Fault(fault) => self.faults.push(Faulty {
                path: reader.path.to_owned(),
                source: reader.source,
                link: link.clone(),
                fault,
            }),
        }
    }
}

/// Reads and judges the sources; the first pass reads all of them, so that a fragment
/// never waits for another thread's file.
fn check(ctx: &Context, world: &World, sources: &[usize], scope: &Scope) -> Checked {
    sources.par_iter().for_each(|source| {
        if !ctx.cancel.is_set() {
            world.document(*source);
        }
    });
    let mut checked = sources
        .par_iter()
        .filter(|_| !ctx.cancel.is_set())
        .map(|source| check_source(world, *source))
        .reduce(Checked::default, |mut all, one| {
            all.take(one);
            all
        });
    for site in &world.sites {
        for (path, links) in site.config_links.iter().filter(|(path, _)| scope.covers(ctx, path)) {
            let reader = world.config_reader(site, path);
            links.iter().for_each(|link| checked.judge(world, reader, link));
        }
    }
    checked
}

fn check_source(world: &World, source: usize) -> Checked {
    let mut checked = Checked::default();
    let reader = world.reader(source);
    let document = world.document(source);
    if document.fault.is_some() {
        checked.unreadable.push(source);
    } else {
        checked.read = 1;
    }
    for link in &document.links {
        // Front matter is only read by the site.
        if link.kind == document::LinkKind::FrontMatter && reader.site.is_none() {
            continue;
        }
        let (faults, web) = (checked.faults.len(), checked.web.len());
        checked.judge(world, reader, link);
        if (checked.faults.len() > faults || checked.web.len() > web)
            && let Some(comment) = link.ignored_by.and_then(|index| document.ignores.get(index as usize))
        {
            comment.mark();
            checked.faults.truncate(faults);
            checked.web.truncate(web);
        }
    }
    checked
}

/// What the fuzz targets reach: reads a source as its kind and takes every address apart.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8], notebook: bool) {
    let kind = if notebook { read::SourceKind::Notebook } else { read::SourceKind::Markdown };
    let document = read::parse(bytes, kind);
    let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).count();
    for link in &document.links {
        let _ = (target::parse(&link.target), target::web_address(&link.target));
        assert!(link.place.line >= 1 && link.place.column >= 1, "{link:?}");
        assert!(notebook || link.place.line as usize <= lines, "{link:?}");
    }
}
