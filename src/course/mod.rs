//! The course: its root, its files, the projects a run is about. Everything that a
//! stage needs to know about where things are.

mod discover;

pub use discover::{Excludes, FileKind, Unreadable, Walked, check_regular, find_root, may_be_file, walk};

use crate::config::{Project, Settings};
use crate::error::RunError;
use crate::interrupt::Cancel;
use crate::model::{Lang, Localized, RepoPath};
use crate::term::Progress;
use std::path::{Path, PathBuf};

/// What every stage holds.
#[derive(Debug, Clone)]
pub struct Context {
    /// Root of the course, absolute.
    pub root: PathBuf,
    /// Where the user stands; paths of the command line are relative to it.
    pub cwd: PathBuf,
    /// The resolved settings.
    pub settings: Settings,
    /// Compiled `course.exclude`.
    pub excludes: Excludes,
    /// Projects the run is narrowed to; empty: no narrowing.
    pub projects: Vec<u32>,
    /// Language of human text.
    pub lang: Lang,
    /// Progress on standard error.
    pub progress: Progress,
    /// Interruption of the run.
    pub cancel: Cancel,
}

impl Context {
    /// The projects of the run: the chosen ones, else all of the profile.
    pub fn chosen_projects(&self) -> impl Iterator<Item = &Project> {
        self.settings.project.iter().filter(|project| self.projects.is_empty() || self.projects.contains(&project.id))
    }

    /// Absolute path of something that the settings name relative to the root.
    pub fn at_root(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Absolute path of something named on the command line.
    pub fn at_cwd(&self, path: &Path) -> PathBuf {
        self.cwd.join(path)
    }

    /// The path as reports show it.
    pub fn repo_path(&self, path: &Path) -> RepoPath {
        RepoPath::relative(&self.root, path)
    }

    /// Absolute path of the results folder.
    pub fn results_dir(&self) -> PathBuf {
        self.at_root(&self.settings.course.results)
    }

    /// Checks `--project` numbers against the profile.
    ///
    /// # Errors
    /// A number that the profile does not have.
    pub fn check_projects(&self) -> Result<(), RunError> {
        for id in &self.projects {
            if self.settings.project(*id).is_none() {
                let known: Vec<String> = self.settings.project.iter().map(|project| project.id.to_string()).collect();
                let known = known.join(", ");
                return Err(RunError::usage(
                    Localized::both(format!("there is no project {id}"), format!("没有项目 {id}")),
                    Localized::both(format!("known projects: {known}"), format!("已有项目：{known}")),
                ));
            }
        }
        Ok(())
    }
}
