//! What the user typed or configured wrong: exit code 2, nothing was checked.

use crate::model::{Lang, Localized};
use std::path::PathBuf;

/// A usage or configuration fault. Every variant says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A fault in `verify.toml` or in the file given with `--settings`.
    #[error(transparent)]
    Settings(#[from] crate::config::SettingsError),
    /// Any other fault of usage.
    #[error("{}", .message.get(Lang::En))]
    Usage {
        /// What is wrong.
        message: Localized,
        /// What to do.
        hint: Localized,
    },
    /// A file named on the command line, or needed for it, could not be used.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl RunError {
    /// A fault of usage with advice.
    pub fn usage(message: impl Into<Localized>, hint: impl Into<Localized>) -> Self {
        RunError::Usage { message: message.into(), hint: hint.into() }
    }

    /// A file that could not be used.
    pub fn file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        RunError::File { path: path.into(), source: crate::fsx::without_place(source) }
    }

    /// The message in `lang`.
    pub fn message(&self, lang: Lang) -> String {
        match self {
            RunError::Usage { message, .. } => message.get(lang).to_owned(),
            RunError::Settings(error) => error.message(lang),
            other => other.to_string(),
        }
    }

    /// What to do next, in `lang`.
    pub fn hint(&self, lang: Lang) -> String {
        match self {
            RunError::Settings(error) => error.hint(lang),
            RunError::Usage { hint, .. } => hint.get(lang).to_owned(),
            RunError::File { .. } => {
                Localized::both("check the path and its permissions", "请检查路径及其权限").get(lang).to_owned()
            }
        }
    }
}
