//! Settings: built-in profile, then `verify.toml`, then the command line.
//! Layers are merged as TOML values, so that precedence lives in one function and
//! every value keeps the layer it came from.

pub(crate) mod check;
mod layer;
mod settings;

pub use layer::{Origin, Origins};
pub use settings::*;

use crate::model::{Lang, Localized, Text};
use miette::{NamedSource, SourceSpan};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the settings file that is looked for at the root.
pub const FILE_NAME: &str = "verify.toml";

/// The built-in course profile, in the very format of a user's file.
pub const BUILTIN: &str = include_str!("builtin.toml");

/// Settings with the origin of every value.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The settings.
    pub settings: Settings,
    /// Where each value came from, by dotted path.
    pub origins: Origins,
    /// The user's file, if one was read.
    pub file: Option<PathBuf>,
}

/// A fault in a settings file.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum SettingsError {
    /// Could not be read.
    #[error("{}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Is not TOML, has an unknown key or a value of the wrong type.
    #[error("{}:{line}:{column}: {message}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// 1-based.
        line: usize,
        /// 1-based, in characters.
        column: usize,
        /// What is wrong.
        message: String,
        /// The nearest known key, for an unknown one.
        suggestion: Option<String>,
        /// Where a right file is shown.
        shown_by: &'static Text,
        /// The text, for the snippet.
        #[source_code]
        text: Arc<NamedSource<String>>,
        /// The place in the text.
        #[label("here")]
        span: SourceSpan,
    },
}

impl SettingsError {
    /// What to do next.
    pub fn hint(&self, lang: Lang) -> String {
        match self {
            SettingsError::Read { .. } => {
                Localized::both("check the path given with --settings", "请检查 --settings 给出的路径")
                    .get(lang)
                    .to_owned()
            }
            SettingsError::Invalid { suggestion: Some(known), .. } => {
                Localized::both(format!("did you mean `{known}`?"), format!("是不是想写 `{known}`？"))
                    .get(lang)
                    .to_owned()
            }
            SettingsError::Invalid { shown_by, .. } => shown_by.get(lang).to_owned(),
        }
    }

    /// The message in `lang`, with its place.
    pub fn message(&self, lang: Lang) -> String {
        match self {
            SettingsError::Invalid { path, line, column, message, .. } if lang == Lang::Zh => {
                format!("{}:{line}:{column}: {}", path.display(), crate::model::fault(message, lang))
            }
            other => other.to_string(),
        }
    }
}

/// Reads and merges the layers. `file` is read when it is given, else `verify.toml`
/// under `root` when it exists.
///
/// # Errors
/// The file cannot be read, is not TOML, or holds an unknown key or a wrong type.
pub fn resolve(root: &Path, file: Option<&Path>) -> Result<Resolved, SettingsError> {
    let mut origins = Origins::default();
    let mut merged = toml::Table::new();
    for builtin in [BUILTIN, crate::backend::BUILTIN_PROFILES] {
        layer::merge(&mut merged, parse(builtin, Path::new("builtin.toml"))?, Origin::Builtin, &mut origins);
    }
    let path = match file {
        Some(path) => Some(path.to_path_buf()),
        // Whatever has that name is meant: a folder or a dangling link is a fault, not "no settings".
        None => Some(root.join(FILE_NAME)).filter(|path| path.symlink_metadata().is_ok()),
    };
    if let Some(path) = &path {
        let text = read(path).map_err(|source| SettingsError::Read { path: path.clone(), source })?;
        layer::merge(&mut merged, parse(&text, path)?, Origin::File, &mut origins);
    }
    let settings = Settings::deserialize_value(toml::Value::Table(merged))
        .map_err(|error| invalid(BUILTIN, path.as_deref().unwrap_or(Path::new(FILE_NAME)), &error, &SETTINGS_SHOWN))?;
    Ok(Resolved { settings, origins, file: path })
}

/// A settings file larger than this is none.
const MAX_BYTES: u64 = 1 << 20;

fn read(path: &Path) -> io::Result<String> {
    let data = std::fs::metadata(path)?;
    if !data.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if data.len() > MAX_BYTES {
        return Err(io::Error::other(format!("{} bytes are too many for settings", data.len())));
    }
    std::fs::read_to_string(path)
}

/// Parses one file strictly: every key must be known and of the right type.
fn parse(text: &str, path: &Path) -> Result<toml::Table, SettingsError> {
    toml::from_str::<Settings>(text).map_err(|error| invalid(text, path, &error, &SETTINGS_SHOWN))?;
    toml::from_str::<toml::Table>(text).map_err(|error| invalid(text, path, &error, &SETTINGS_SHOWN))
}

/// Reads another TOML file of ours as strictly as the settings: a fault is placed, and an
/// unknown key gets the nearest known one; `shown_by` says where a right file is shown.
///
/// # Errors
/// It is not TOML, or holds an unknown key or a value of the wrong type.
pub fn from_toml<T: serde::de::DeserializeOwned>(
    text: &str,
    path: &Path,
    shown_by: &'static Text,
) -> Result<T, SettingsError> {
    toml::from_str::<T>(text).map_err(|error| invalid(text, path, &error, shown_by))
}

/// Where a right `verify.toml` is shown.
static SETTINGS_SHOWN: Text = Text {
    en: "`verify init --print` shows every key with its meaning",
    zh: "`verify init --print` 会列出所有键及其含义",
};

fn invalid(text: &str, path: &Path, error: &toml::de::Error, shown_by: &'static Text) -> SettingsError {
    let span = error.span().unwrap_or(0..0);
    let start = span.start.min(text.len());
    let before = text.get(..start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let message = plain(error.message().lines().next().unwrap_or("invalid"));
    SettingsError::Invalid {
        path: path.to_path_buf(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        suggestion: suggestion(&message),
        shown_by,
        message,
        text: Arc::new(NamedSource::new(path.display().to_string(), text.to_owned())),
        span: (start, span.end.saturating_sub(start)).into(),
    }
}

/// serde's names of types in the words of TOML.
fn plain(message: &str) -> String {
    let Some((given, expected)) = message.split_once(", expected ") else { return message.to_owned() };
    let expected = match expected {
        _ if expected.starts_with("struct ") => "a table",
        "usize" | "u16" | "u32" | "u64" => "a whole number, not negative",
        "f64" => "a number",
        "a sequence" => "a list",
        other => other,
    };
    format!("{}, expected {expected}", given.replace(" as i128", ""))
}

/// The nearest of the known keys that serde lists after an unknown one:
/// "unknown field `a`, expected one of `b`, `c`".
fn suggestion(message: &str) -> Option<String> {
    let (unknown, known) = message.strip_prefix("unknown field `")?.split_once('`')?;
    let names = known.split('`').skip(1).step_by(2);
    nearest(unknown, names).map(str::to_owned)
}

/// The nearest of `names` to what was typed, if it is near enough to be meant.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(typed, name), name))
        .filter(|(distance, name)| *distance <= (name.chars().count().max(typed.chars().count()) / 3).max(1))
        .min()
        .map(|(_, name)| name)
}

/// What the fuzz targets reach: reads a settings file and tells its fault.
#[cfg(fuzzing)]
pub(crate) fn fuzz(text: &str) {
    if let Err(error) = parse(text, Path::new(FILE_NAME)) {
        let _ = (error.to_string(), error.hint(Lang::Zh));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_placed_and_the_nearest_is_named() {
        let text = "[smoke]\n# 注释\nbackned = \"cpu\"\n";
        let error = parse(text, Path::new("verify.toml")).unwrap_err();
        let SettingsError::Invalid { line, column, suggestion, .. } = &error else { panic!("{error}") };
        assert_eq!((*line, *column, suggestion.as_deref()), (3, 1, Some("backend")));
    }

    #[test]
    fn the_builtin_profile_parses_and_has_the_five_projects() {
        let resolved = resolve(Path::new("/nonexistent"), None).unwrap();
        let ids: Vec<u32> = resolved.settings.project.iter().map(|project| project.id).collect();
        assert_eq!(ids, [66, 67, 68, 69, 70]);
        assert!(resolved.settings.project.iter().all(|project| project.id != 70 || project.concurrency >= 4));
    }
}
