//! `verify links`: [`tree`] sees the files, [`read`] and [`extract`] turn sources into
//! links and headings, [`resolve`] judges, [`suggest`] says what to write instead.

mod anchors;
mod document;
mod extract;
mod git;
mod html;
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
use crate::model::{Finding, Localized, Outcome, Summary};
use rayon::prelude::*;
use resolve::{Fault, Reader, Verdict, World};
use scope::Scope;

/// Runs the stage.
///
/// # Errors
/// A fault of usage: nothing was checked.
pub fn run(ctx: &Context, args: &LinksArgs) -> Result<Outcome, RunError> {
    let scope = Scope::new(ctx, args)?;
    let world = world(ctx, args, &scope)?;
    let sources = scope.sources(ctx, &world.tree);
    if sources.is_empty() {
        return Ok(Outcome::skipped(Localized::both(
            "there is no Markdown file and no notebook to check",
            "没有可检查的 Markdown 文件或 Notebook",
        )));
    }
    let checked = check(ctx, &world, &sources, &scope);
    let mut findings = scope.notes(ctx);
    findings.extend(checked.findings(&world));
    let summary =
        Summary::new().with("files", sources.len()).with("links", checked.links).with("external", checked.external);
    Ok(Outcome::ran(sources.len(), summary, Vec::new(), findings))
}

fn world(ctx: &Context, args: &LinksArgs, scope: &Scope) -> Result<World, RunError> {
    let docs = scope::docs(ctx, args)?;
    let repository = git::Repository::find(&ctx.root);
    let (tree, index) = rayon::join(|| tree::Tree::walk(ctx, scope.named_files()), || repository?.index());
    let sites = site::find(&tree, &docs.0, &|path| std::fs::read_to_string(ctx.root.join(path)).ok());
    let slug = args.slug.filter(|slug| *slug != Slug::Auto).unwrap_or(ctx.settings.links.slug);
    let mut world = World::new(ctx.root.clone(), tree, sites, docs, slug);
    world.check_anchors = !args.no_anchors;
    world.index = index;
    Ok(world)
}

/// What was found in the sources.
#[derive(Debug, Default)]
struct Checked {
    links: usize,
    external: usize,
    faults: Vec<Faulty>,
    unreadable: Vec<usize>,
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
        self.links += other.links;
        self.external += other.external;
        self.faults.extend(other.faults);
        self.unreadable.extend(other.unreadable);
    }

    fn judge(&mut self, world: &World, reader: Reader<'_>, link: &document::Link) {
        self.links += 1;
        match world.judge(reader, link) {
            Verdict::Fine => {}
            Verdict::External => self.external += 1,
            Verdict::Fault(fault) => self.faults.push(Faulty {
                path: reader.path.to_owned(),
                source: reader.source,
                link: link.clone(),
                fault,
            }),
        }
    }

    fn findings(&self, world: &World) -> Vec<Finding> {
        let unreadable = self.unreadable.iter().filter_map(|source| {
            let fault = world.document(*source).fault.as_ref()?;
            Some(report::unreadable(&world.tree.sources[*source].path, fault))
        });
        self.faults.iter().map(|faulty| report::finding(world, faulty)).chain(unreadable).collect()
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
    }
    for link in &document.links {
        // Front matter is only read by the site.
        if link.kind != document::LinkKind::FrontMatter || reader.site.is_some() {
            checked.judge(world, reader, link);
        }
    }
    checked
}
