//! What changed files mean for a stage.

use crate::config;
use crate::course::Context;
use crate::model::StageId;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What has changed since the last run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Anything may have: the settings did, or the system lost count.
    pub(super) everything: bool,
    /// Files that were written, made, renamed or deleted; absolute.
    pub(super) files: BTreeSet<PathBuf>,
}

impl Changes {
    /// Whether nothing has.
    pub(super) fn is_empty(&self) -> bool {
        !self.everything && self.files.is_empty()
    }

    /// What of it a stage has to look at again.
    pub(super) fn concerning(mut self, stage: StageId, ctx: &Context) -> Self {
        self.everything |= self.files.iter().any(|file| is_setting(stage, file));
        self.files.retain(|file| reads(stage, file) && !ctx.excludes.matches(&ctx.repo_path(file)));
        self
    }

    /// Whether a notebook has to run again: it was changed, or names a module that was.
    pub(super) fn concern(&self, notebook: &Path) -> bool {
        if self.files.contains(notebook) {
            return true;
        }
        let modules = self.files.iter().filter(|file| has_extension(file, &["py"])).filter_map(|file| module(file));
        let mut modules = modules.peekable();
        if modules.peek().is_none() {
            return false;
        }
        let text = std::fs::read_to_string(notebook).unwrap_or_default();
        modules.any(|module| text.contains(module))
    }
}

/// The name by which a file is imported: a package by its folder.
fn module(file: &Path) -> Option<&str> {
    match file.file_stem()?.to_str()? {
        "__init__" => file.parent()?.file_name()?.to_str(),
        stem => Some(stem),
    }
}

fn has_extension(path: &Path, known: &[&str]) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|extension| known.contains(&extension))
}

/// A file after whose change every other may be judged differently.
fn is_setting(stage: StageId, file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    name == config::FILE_NAME
        || name == ".gitignore"
        || stage == StageId::Static && name == "pyproject.toml"
        || stage == StageId::Links && file.components().any(|part| part.as_os_str() == ".vitepress")
}

/// Whether a stage reads such a file. A link can lead to any.
fn reads(stage: StageId, file: &Path) -> bool {
    match stage {
        StageId::Links => true,
        StageId::Schema => has_extension(file, &["json", "jsonl"]),
        _ => has_extension(file, &["py", "ipynb"]),
    }
}

/// Whether the name is one that editors give to files of their own, besides the ones
/// that are gone again before anybody looks.
pub(super) fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Emacs: `.#x` and `#x#`; Vim: `.x.swp`, `4913`; GNOME: `.goutputstream-…`; LibreOffice: `.~lock…`.
    [".#", ".~", ".goutputstream-", ".verify-"].iter().any(|start| name.starts_with(start))
        || name.starts_with('#') && name.ends_with('#')
        || ["~", ".tmp", ".swp", ".swo", ".swx", ".part"].iter().any(|end| name.ends_with(end))
        || ["___jb_tmp___", "___jb_old___"].iter().any(|end| name.ends_with(end))
        || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_editors_are_told_from_files_of_people() {
        for name in [".#a.md", "#a.md#", "a.md~", ".a.md.swp", "4913", ".goutputstream-X", "a.md___jb_tmp___"] {
            assert!(is_temporary(Path::new(name)), "{name}");
        }
        for name in ["a.md", "66_x.ipynb", "#1.md", "~a.md", "tmp", "66.json", ".hidden.md"] {
            assert!(!is_temporary(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn a_notebook_runs_again_when_a_module_it_names_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let notebook = folder.path().join("a.ipynb");
        std::fs::write(&notebook, "from helper import x").unwrap();
        let changed = |file: &str| Changes { files: [folder.path().join(file)].into(), ..Changes::default() };
        assert!(changed("a.ipynb").concern(&notebook));
        assert!(changed("lib/helper.py").concern(&notebook));
        assert!(changed("helper/__init__.py").concern(&notebook));
        assert!(!changed("other.py").concern(&notebook));
        assert!(!changed("helper.md").concern(&notebook));
    }

    #[test]
    fn a_stage_is_concerned_by_what_it_reads() {
        let of = |stage, file| reads(stage, Path::new(file)) || is_setting(stage, Path::new(file));
        assert!(of(StageId::Links, "a/picture.png"));
        assert!(of(StageId::Static, "a.py") && of(StageId::Static, "pyproject.toml") && !of(StageId::Static, "a.md"));
        assert!(of(StageId::Schema, "a.json") && !of(StageId::Schema, "a.md") && of(StageId::Schema, "verify.toml"));
        assert!(of(StageId::Answers, "a.ipynb") && !of(StageId::Answers, "a.json"));
    }
}
