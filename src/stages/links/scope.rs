//! Which sources a run reports on. Targets are known everywhere, whatever the scope.

use super::tree::Tree;
use crate::cli::LinksArgs;
use crate::course::Context;
use crate::error::RunError;
use crate::model::{Finding, Localized, Location, RepoPath};
use crate::rules;
use std::path::{Path, PathBuf};

/// The paths of the command line.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Files and folders, relative to the root; empty: everything.
    named: Vec<String>,
    files: Vec<PathBuf>,
    excluded: Vec<RepoPath>,
}

impl Scope {
    /// Reads the paths.
    ///
    /// # Errors
    /// A path that does not exist, or lies outside the root.
    pub(super) fn new(ctx: &Context, args: &LinksArgs) -> Result<Self, RunError> {
        let mut scope = Scope::default();
        for given in &args.paths {
            let path = inside(ctx, given)?;
            let repo_path = ctx.repo_path(&path);
            if ctx.excludes.matches(&repo_path) {
                scope.excluded.push(repo_path);
                continue;
            }
            if path.is_file() {
                scope.files.push(path);
            }
            scope.named.push(repo_path.as_str().to_owned());
        }
        if scope.named.is_empty() && !scope.excluded.is_empty() {
            // Everything that was named is excluded: nothing matches an impossible path.
            scope.named.push("\0".to_owned());
        }
        Ok(scope)
    }

    /// Files named one by one: sources even where git ignores them.
    pub(super) fn named_files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Whether paths narrow the run.
    pub(super) fn is_narrow(&self) -> bool {
        !self.named.is_empty()
    }

    /// Whether a path relative to the root is reported on.
    pub(super) fn covers(&self, ctx: &Context, path: &str) -> bool {
        let named = |name: &String| name.is_empty() || super::site::below(name, path).is_some();
        (self.named.is_empty() || self.named.iter().any(named)) && !ctx.excludes.matches(&RepoPath::new(path))
    }

    /// The sources that are reported on.
    pub(super) fn sources(&self, ctx: &Context, tree: &Tree) -> Vec<usize> {
        let covered = |(index, source): (usize, &super::tree::Source)| self.covers(ctx, &source.path).then_some(index);
        tree.sources.iter().enumerate().filter_map(covered).collect()
    }

    /// A note for every named path that the settings exclude.
    pub(super) fn notes(&self, _ctx: &Context) -> Vec<Finding> {
        let note = |path: &RepoPath| Finding::new(&rules::run::EXCLUDED, Location::file(path.clone()));
        self.excluded.iter().map(note).collect()
    }
}

fn inside(ctx: &Context, given: &Path) -> Result<PathBuf, RunError> {
    let path = ctx.at_cwd(given);
    let Ok(path) = path.canonicalize() else {
        return Err(RunError::usage(
            Localized::both(format!("{} does not exist", given.display()), format!("{} 不存在", given.display())),
            Localized::both("paths are relative to where you stand", "路径相对于当前所在目录"),
        ));
    };
    let root = ctx.root.canonicalize().unwrap_or_else(|_| ctx.root.clone());
    match path.strip_prefix(&root) {
        Ok(rest) => Ok(if rest.as_os_str().is_empty() { ctx.root.clone() } else { ctx.root.join(rest) }),
        Err(_) => Err(RunError::usage(
            Localized::both(
                format!("{} lies outside the root {}", given.display(), ctx.root.display()),
                format!("{} 不在根目录 {} 之内", given.display(), ctx.root.display()),
            ),
            Localized::both("name the root with -C", "请用 -C 指定根目录"),
        )),
    }
}

/// The docs root relative to the root, and whether it was named on the command line.
///
/// # Errors
/// A named folder that does not exist or lies outside the root.
pub(super) fn docs(ctx: &Context, args: &LinksArgs) -> Result<(String, bool), RunError> {
    match &args.docs {
        Some(given) => {
            let path = inside(ctx, given)?;
            let relative = ctx.repo_path(&path).as_str().to_owned();
            Ok((if path == ctx.root { String::new() } else { relative }, true))
        }
        None => Ok((ctx.settings.course.docs.trim_matches('/').to_owned(), false)),
    }
}
