//! Which sources a run reports on. Targets are known everywhere, whatever the scope.

use super::document::ReadFault;
use super::report;
use super::resolve::World;
use super::tree::Tree;
use crate::cli::LinksArgs;
use crate::course::{Context, check_regular};
use crate::error::RunError;
use crate::model::{Finding, Localized, Location, RepoPath};
use crate::rules;
use std::path::{Path, PathBuf};

/// The paths of the command line.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Files and folders, relative to the root; empty: everything.
    named: Vec<String>,
    /// Notebooks and pages of the chosen projects; none: the run is about all of them.
    projects: Option<Vec<String>>,
    files: Vec<PathBuf>,
    excluded: Vec<RepoPath>,
    /// Named files that are neither Markdown nor notebooks.
    passed_over: Vec<RepoPath>,
    /// What was named, relative to the root and as it was typed.
    given: Vec<(String, PathBuf)>,
}

impl Scope {
    /// Reads the paths.
    ///
    /// # Errors
    /// A path that does not exist, lies outside the root, or is no file and no folder.
    pub(super) fn new(ctx: &Context, args: &LinksArgs) -> Result<Self, RunError> {
        let mut scope = Scope { projects: of_projects(ctx), ..Scope::default() };
        for given in &args.paths {
            let path = inside(ctx, given)?;
            let repo_path = ctx.repo_path(&path);
            if ctx.excludes.matches(&repo_path) {
                scope.excluded.push(repo_path);
                continue;
            }
            // The root itself is named by the empty path, below which everything lies.
            let name = if path == ctx.root { String::new() } else { repo_path.as_str().to_owned() };
            if path.is_file() {
                scope.files.push(path);
            }
            scope.given.push((name.clone(), given.clone()));
            scope.named.push(name);
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

    /// Whether paths or projects narrow the run.
    pub(super) fn is_narrow(&self) -> bool {
        !self.named.is_empty() || self.projects.is_some()
    }

    /// Whether a path relative to the root is reported on.
    pub(super) fn covers(&self, ctx: &Context, path: &str) -> bool {
        self.names(path)
            && self.projects.as_ref().is_none_or(|own| own.iter().any(|known| known == path))
            && !ctx.excludes.matches(&RepoPath::new(path))
    }

    fn names(&self, path: &str) -> bool {
        self.named.is_empty() || self.named.iter().any(|name| super::site::below(name, path).is_some())
    }

    /// The folders that could not be entered and may hold what is reported on.
    pub(super) fn unreadable(&self, ctx: &Context, tree: &Tree) -> Vec<Finding> {
        let within = |folder: &str| {
            let own = |known: &String| super::site::below(folder, known).is_some();
            self.projects.as_ref().is_none_or(|projects| projects.iter().any(own))
        };
        let shown = tree.unreadable.iter().map(|folder| (ctx.repo_path(&folder.path), folder));
        shown
            .filter(|(path, _)| self.names(path.as_str()) && within(path.as_str()) && !ctx.excludes.matches(path))
            .map(|(path, folder)| report::unreadable(path.as_str(), &ReadFault::Io(folder.cause.clone())))
            .collect()
    }

    /// Checks that every named path holds something to check, and notes those of which
    /// the settings exclude everything. Among sources a file of another kind is only
    /// noted: hooks pass whatever was changed.
    ///
    /// # Errors
    /// A folder without Markdown and notebooks, or nothing but files of other kinds.
    pub(super) fn check_named(&mut self, ctx: &Context, world: &World) -> Result<(), RunError> {
        let sources = || world.tree.sources.iter().map(|source| source.path.as_str());
        let configs = || world.sites.iter().flat_map(|site| &site.config_links).map(|(path, _)| path.as_str());
        let closed = || world.tree.unreadable.iter().map(|folder| ctx.repo_path(&folder.path).as_str().to_owned());
        for (name, given) in &self.given {
            let below = |path: &str| super::site::below(name, path).is_some();
            let excluded = |path: &str| ctx.excludes.matches(&RepoPath::new(path));
            let mut held = sources().chain(configs()).filter(|path| below(path)).peekable();
            if held.peek().is_none() && !closed().any(|path| below(&path)) {
                let is_folder = ctx.root.join(name).is_dir();
                if is_folder || self.passed_over.len() + 1 == self.given.len() {
                    return Err(nothing_in(given, is_folder));
                }
                self.passed_over.push(RepoPath::new(name));
                continue;
            }
            if held.peek().is_some() && held.all(excluded) {
                self.excluded.push(RepoPath::new(name));
            }
        }
        Ok(())
    }

    /// The sources that are reported on.
    pub(super) fn sources(&self, ctx: &Context, tree: &Tree) -> Vec<usize> {
        let covered = |(index, source): (usize, &super::tree::Source)| self.covers(ctx, &source.path).then_some(index);
        tree.sources.iter().enumerate().filter_map(covered).collect()
    }

    /// A note for every named path that the settings exclude or that holds no links.
    pub(super) fn notes(&self) -> Vec<Finding> {
        let note = |rule| move |path: &RepoPath| Finding::new(rule, Location::file(path.clone()));
        let excluded = self.excluded.iter().map(note(&rules::run::EXCLUDED));
        excluded.chain(self.passed_over.iter().map(note(&rules::links::NOT_A_SOURCE))).collect()
    }
}

fn of_projects(ctx: &Context) -> Option<Vec<String>> {
    let files = ctx.chosen_projects().flat_map(|project| [&project.notebook, &project.page]);
    let own = files.filter(|path| !path.is_empty()).map(|path| ctx.repo_path(&ctx.at_root(path)).as_str().to_owned());
    (!ctx.projects.is_empty()).then(|| own.collect())
}

fn nothing_in(given: &Path, is_folder: bool) -> RunError {
    let shown = given.display();
    if is_folder {
        return RunError::usage(
            Localized::both(
                format!("{shown} holds no Markdown file and no notebook"),
                format!("{shown} 中没有 Markdown 文件或 notebook"),
            ),
            Localized::both("check the path; ignored files are passed over", "请检查路径；被忽略的文件会跳过"),
        );
    }
    RunError::usage(
        Localized::both(
            format!("{shown} is neither a Markdown file nor a notebook"),
            format!("{shown} 既不是 Markdown 文件也不是 notebook"),
        ),
        Localized::both(
            "name .md and .ipynb files, or folders that hold them",
            "请给出 .md、.ipynb 文件或包含它们的文件夹",
        ),
    )
}

fn inside(ctx: &Context, given: &Path) -> Result<PathBuf, RunError> {
    let path = ctx.at_cwd(given);
    let Ok(path) = path.canonicalize() else {
        return Err(RunError::usage(
            Localized::both(format!("{} does not exist", given.display()), format!("{} 不存在", given.display())),
            Localized::both("paths are relative to where you stand", "路径相对于当前所在目录"),
        ));
    };
    check_regular(&path)?;
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
