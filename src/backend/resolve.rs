//! From what a user calls a model to a complete one on this machine: a path, then the
//! caches of the hubs, then, only where it was allowed, a download.

use super::download::{self, DownloadError, Hub};
use super::model::{self, Caches, Model, ModelError, ModelSource, Origin};
use super::model_id::{ModelId, is_commit};
use crate::interrupt::Cancel;
use crate::model::{Finding, Localized, Location};
use crate::rules;
use crate::term::Phase;
use std::path::{Path, PathBuf};

/// What may be done for a model that is not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Nothing: no network for us, and none for the server.
    Offline,
    /// Nothing by us.
    CacheOnly,
    /// It may be fetched.
    Download,
}

impl Permission {
    /// From the options and the settings of a run; HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE)
    /// in the environment is `--offline` as well.
    pub fn of(offline: bool, download: bool, variable: impl Fn(&str) -> Option<String>) -> Self {
        let on = |name| {
            variable(name)
                .is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off"))
        };
        match (offline || on("HF_HUB_OFFLINE") || on("TRANSFORMERS_OFFLINE"), download) {
            (true, _) => Permission::Offline,
            (false, true) => Permission::Download,
            (false, false) => Permission::CacheOnly,
        }
    }
}

/// A model that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Path or id, as the user wrote it.
    pub name: &'a str,
    /// Where to look.
    pub source: ModelSource,
    /// What relative paths are relative to.
    pub base: &'a Path,
    /// What may be done when it is not here.
    pub permission: Permission,
    /// The server knows names of its own: one that is nowhere here is left to it.
    pub server_knows: bool,
    /// Python code of the model is fetched with it.
    pub with_code: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved {
    /// It is here.
    Here(Model),
    /// It is a name that the server resolves.
    LeftToServer,
}

/// Finds a model, fetching it where that was allowed.
///
/// # Errors
/// It is nowhere, or not whole, or could not be fetched: the finding says what to do.
pub fn resolve(ask: &Ask<'_>, at: &Location, phase: &Phase, cancel: &Cancel) -> Result<Resolved, Finding> {
    let caches = Caches::of_environment();
    let path = absolute(ask);
    let id = ModelId::parse(ask.name).filter(|_| !is_path(ask, &path));
    let Some(id) = id else {
        let a_name = ask.server_knows && !is_path(ask, &path);
        return match model::local(&path) {
            Ok(found) => Ok(Resolved::Here(found)),
            Err(ModelError::Missing { .. }) if a_name => Ok(Resolved::LeftToServer),
            Err(error) => Err(not_here(ask, error, at)),
        };
    };
    match cached(ask.source, &id, &caches) {
        Ok(found) => Ok(Resolved::Here(found)),
        Err(_) if ask.permission == Permission::Download => {
            let hubs = hubs(ask.source);
            let fetched = download::fetch(&id, hubs, &caches, ask.with_code, phase, cancel);
            let fetched = fetched.map_err(|error| not_fetched(&id, error, at, cancel))?;
            let source = match fetched.hub {
                Hub::HuggingFace => ModelSource::Huggingface,
                Hub::ModelScope => ModelSource::Modelscope,
            };
            cached(source, &id, &caches).map(Resolved::Here).map_err(|error| not_here(ask, error, at))
        }
        Err(ModelError::Missing { .. }) if ask.server_knows => Ok(Resolved::LeftToServer),
        Err(error) => Err(not_here(ask, error, at)),
    }
}

/// Whether an id names a commit: what it stands for cannot be changed by anybody.
pub fn is_pinned(name: &str) -> bool {
    ModelId::parse(name).and_then(|id| id.revision).is_some_and(|revision| is_commit(&revision))
}

/// The path that a name would be; `~` is the home folder where no shell has replaced it.
fn absolute(ask: &Ask<'_>) -> PathBuf {
    let home = std::env::var_os("HOME").filter(|_| ask.name.starts_with("~/"));
    match (home, ask.name.strip_prefix("~/")) {
        (Some(home), Some(rest)) => Path::new(&home).join(rest),
        _ => ask.base.join(ask.name),
    }
}

/// Whether a name means a path: it was said so, it exists, or it cannot be an id.
fn is_path(ask: &Ask<'_>, path: &Path) -> bool {
    let looks_like_one =
        ask.name.starts_with(['.', '/', '~']) || (ask.name.ends_with(".gguf") && !ask.name.contains(':'));
    match ask.source {
        ModelSource::Local => true,
        ModelSource::Auto => path.exists() || looks_like_one,
        ModelSource::Huggingface | ModelSource::Modelscope => false,
    }
}

/// The hubs to ask, in this order.
fn hubs(source: ModelSource) -> &'static [Hub] {
    match source {
        ModelSource::Modelscope => &[Hub::ModelScope],
        ModelSource::Huggingface => &[Hub::HuggingFace],
        ModelSource::Auto | ModelSource::Local => &[Hub::HuggingFace, Hub::ModelScope],
    }
}

/// A model in the caches. A copy that is not whole hides no whole one in the other cache.
fn cached(source: ModelSource, id: &ModelId, caches: &Caches) -> Result<Model, ModelError> {
    match source {
        ModelSource::Huggingface => model::hugging_face(id, caches),
        ModelSource::Modelscope => model::model_scope(id, caches),
        ModelSource::Auto | ModelSource::Local => {
            let first = match model::hugging_face(id, caches) {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            model::model_scope(id, caches).map_err(|second| both(first, second))
        }
    }
}

/// One error of two: what is half there says more than what is not there.
fn both(first: ModelError, second: ModelError) -> ModelError {
    match (first, second) {
        (ModelError::Missing { name, mut looked_at }, ModelError::Missing { looked_at: more, .. }) => {
            looked_at.extend(more);
            ModelError::Missing { name, looked_at }
        }
        (ModelError::Missing { .. }, incomplete) | (incomplete, _) => incomplete,
    }
}

fn not_fetched(id: &ModelId, error: DownloadError, at: &Location, cancel: &Cancel) -> Finding {
    if let (DownloadError::Interrupted, Some(state)) = (&error, cancel.get()) {
        return Finding::new(&rules::run::INTERRUPTED, at.clone()).arg("signal", state.name()).help(error.advice());
    }
    Finding::new(&rules::smoke::MODEL_NOT_FETCHED, at.clone())
        .arg("model", id.to_string())
        .arg("cause", error.cause())
        .help(error.advice())
}

fn not_here(ask: &Ask<'_>, error: ModelError, at: &Location) -> Finding {
    let fetchable = ModelId::parse(ask.name).is_some() && !is_path(ask, &absolute(ask));
    match error {
        ModelError::Missing { name, looked_at } => {
            let places: Vec<String> = looked_at.iter().map(|place| place.display().to_string()).collect();
            Finding::new(&rules::smoke::MODEL_MISSING, at.clone()).arg("model", name).help(advice(
                ask.permission,
                fetchable,
                &places.join(", "),
            ))
        }
        incomplete => {
            let finding =
                Finding::new(&rules::smoke::MODEL_INCOMPLETE, at.clone()).arg("cause", incomplete.to_string());
            if fetchable {
                finding.help(Localized::both(
                    "run again with --download: it fetches what is missing",
                    "请加上 --download 重新运行：会补齐缺少的部分",
                ))
            } else {
                finding
            }
        }
    }
}

/// What to do about a model that is nowhere.
fn advice(permission: Permission, fetchable: bool, places: &str) -> Localized {
    match (fetchable, permission) {
        (false, _) => Localized::both(
            format!("looked at {places}; give an existing folder or file with --model (or `smoke.model`)"),
            format!("查找过 {places}；请用 --model（或 `smoke.model`）给出存在的文件夹或文件"),
        ),
        (true, Permission::Offline) => Localized::both(
            format!(
                "looked at {places}; --offline (or HF_HUB_OFFLINE) forbids a download: give a folder with --model, or run once with --download"
            ),
            format!(
                "查找过 {places}；--offline（或 HF_HUB_OFFLINE）不允许下载：请用 --model 给出文件夹，或联网时加 --download 运行一次"
            ),
        ),
        (true, _) => Localized::both(
            format!(
                "looked at {places}; nothing is fetched unasked: add --download (or `smoke.download = true`), or give a folder with --model"
            ),
            format!(
                "查找过 {places}；不会擅自下载：请加上 --download（或 `smoke.download = true`），或用 --model 给出文件夹"
            ),
        ),
    }
}

/// The word for where a model came from.
pub fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Local => "local",
        Origin::HuggingFace => "huggingface",
        Origin::ModelScope => "modelscope",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Lang, RepoPath};
    use crate::term::Progress;

    fn asked(name: &str, source: ModelSource, permission: Permission, server_knows: bool) -> Result<Resolved, Finding> {
        let base = Path::new("/nowhere/at/all");
        let ask = Ask { name, source, base, permission, server_knows, with_code: false };
        let at = Location::file(RepoPath::new("r.json".to_owned()));
        resolve(&ask, &at, &Progress::Silent.start("t", 0), &Cancel::default())
    }

    #[test]
    fn nothing_is_fetched_unasked_and_the_message_says_how_to_ask() {
        let help = |result: Result<Resolved, Finding>| result.unwrap_err().help_text(Lang::En).unwrap_or_default();
        let name = "no-such-owner/no-such-model";
        assert!(help(asked(name, ModelSource::Auto, Permission::CacheOnly, false)).contains("--download"));
        assert!(help(asked(name, ModelSource::Huggingface, Permission::Offline, false)).contains("--offline"));
        for path in ["./x", "models/x.gguf", "/x"] {
            let text = help(asked(path, ModelSource::Auto, Permission::CacheOnly, true));
            assert!(text.contains("existing folder or file") && !text.contains("--download"), "{path}: {text}");
        }
        for name in ["smol", "qwen3:0.6b", "o/n"] {
            let asked = |server_knows| asked(name, ModelSource::Auto, Permission::CacheOnly, server_knows);
            assert_eq!(asked(true).unwrap(), Resolved::LeftToServer, "{name}");
            assert!(asked(false).is_err(), "{name}");
        }
    }

    #[test]
    fn offline_in_the_environment_is_offline() {
        let set =
            |name: &'static str, value: &'static str| move |asked: &str| (asked == name).then(|| value.to_owned());
        assert_eq!(Permission::of(false, true, |_| None), Permission::Download);
        assert_eq!(Permission::of(true, true, |_| None), Permission::Offline);
        assert_eq!(Permission::of(false, true, set("HF_HUB_OFFLINE", "1")), Permission::Offline);
        assert_eq!(Permission::of(false, false, set("HF_HUB_OFFLINE", "0")), Permission::CacheOnly);
    }
}
