//! `--mirror`: the docs tree holds a copy of every chapter page. Says which page has no
//! copy, and where a link is right in one copy and wrong in the other.

use super::document::LinkKind;
use super::resolve::{Verdict, World};
use super::site::{below, within};
use super::{Faulty, report};
use crate::config::LinksSettings;
use crate::model::{Finding, Location, RepoPath};
use crate::rules::links as rules;
use std::collections::HashMap;

/// Pairs of a chapter page and the path of its copy.
fn pairs<'w>(world: &'w World, settings: &LinksSettings) -> Vec<(usize, &'w str, String)> {
    let docs = world.docs.0.as_str();
    let mirrored = |path: &str| {
        if settings.mirror.is_empty() {
            let top = path.split('/').next().unwrap_or_default();
            top != path && world.tree.get(&within(docs, top)).is_some()
        } else {
            settings.mirror.iter().any(|folder| below(folder.trim_matches('/'), path).is_some())
        }
    };
    let sources = world.tree.sources.iter().enumerate();
    sources
        .filter(|(_, source)| {
            source.path.ends_with(".md") && below(docs, &source.path).is_none() && mirrored(&source.path)
        })
        .map(|(index, source)| (index, source.path.as_str(), within(docs, &source.path)))
        .collect()
}

/// How many chapter pages the docs tree should hold.
pub(super) fn pages(world: &World, settings: &LinksSettings) -> usize {
    if world.docs.0.is_empty() { 0 } else { pairs(world, settings).len() }
}

/// The findings of the comparison. `faults` are those of the scan.
pub(super) fn compare(world: &World, settings: &LinksSettings, faults: &[Faulty]) -> Vec<Finding> {
    if world.docs.0.is_empty() {
        return Vec::new();
    }
    let mut by_path: HashMap<&str, Vec<&Faulty>> = HashMap::new();
    for faulty in faults {
        by_path.entry(&faulty.path).or_default().push(faulty);
    }
    let mut findings = Vec::new();
    for (source, path, copy) in pairs(world, settings) {
        let Some(twin) = world.tree.source(&copy) else {
            let at = Location::file(RepoPath::new(path));
            findings.push(Finding::new(&rules::MIRROR_MISSING, at).arg("page", copy));
            continue;
        };
        for (here, there) in [(path, twin), (copy.as_str(), source)] {
            for faulty in by_path.get(here).into_iter().flatten() {
                findings.extend(differs(world, faulty, there));
            }
        }
    }
    findings
}

/// A note when the same link works in the other copy.
fn differs(world: &World, faulty: &Faulty, there: usize) -> Option<Finding> {
    if faulty.link.kind == LinkKind::FrontMatter {
        return None;
    }
    let same = world.document(there).links.iter().find(|link| link.target == faulty.link.target)?;
    let reader = world.reader(there);
    if world.judge(reader, same) != Verdict::Fine {
        return None;
    }
    let at = report::location(&faulty.path, faulty.link.place).target(&*faulty.link.target);
    Some(Finding::new(&rules::MIRROR_DIFFERS, at).arg("copy", reader.path))
}
