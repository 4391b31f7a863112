//! Models on this machine: where an id or a path leads, and whether everything a server
//! will read is there and whole. Milliseconds, offline; a truncated shard would cost a
//! server a minute to find.
//!
//! Layouts: Hugging Face's hub cache (`models--OWNER--NAME/refs`, `snapshots`), and the
//! three that ModelScope has used.

use super::model_id::{ModelId, below, is_commit};
use crate::fsx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Where a model may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ModelSource {
    /// A path that exists, then the caches of both hubs, then a hub where a download is allowed.
    #[default]
    Auto,
    /// An id of ModelScope.
    Modelscope,
    /// An id of Hugging Face.
    Huggingface,
    /// A path.
    Local,
}

/// Where a model was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A path that was named.
    Local,
    /// Hugging Face's cache.
    HuggingFace,
    /// ModelScope's cache.
    ModelScope,
}

/// A complete model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Folder or GGUF file.
    pub path: PathBuf,
    /// Where it was found.
    pub origin: Origin,
    /// Commit or branch, in a hub's cache.
    pub revision: Option<String>,
    /// Bytes of the weights.
    pub weight_bytes: u64,
    /// SHA-256 over names, sizes, small files and the headers of weights: the same model
    /// has the same digest without its gigabytes being read.
    pub digest: String,
}

/// Why there is no usable model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Nothing is there; the places that were looked at.
    #[error("{name} does not exist")]
    Missing {
        /// What was named.
        name: String,
        /// Where it was looked for.
        looked_at: Vec<PathBuf>,
    },
    /// Something is there and not whole.
    #[error("{}: {cause}", .path.display())]
    Incomplete {
        /// The file or folder at fault.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
}

/// Folders of the hubs' caches, from the environment and the home folder.
#[derive(Debug, Clone, Default)]
pub struct Caches {
    /// Hugging Face's hub cache.
    pub hugging_face: Option<PathBuf>,
    /// ModelScope's cache.
    pub model_scope: Option<PathBuf>,
}

impl Caches {
    /// HF_HUB_CACHE, else HF_HOME/hub, else `huggingface/hub` in the user's cache folder;
    /// MODELSCOPE_CACHE, else `~/.cache/modelscope`. The names and their order are those of
    /// the hubs' own libraries.
    pub fn of(variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let home = variable("HOME").or_else(|| variable("USERPROFILE"));
        // `~` is left to us where a variable was not set by a shell.
        let variable = |name: &str| {
            let value = variable(name)?;
            match (value.strip_prefix("~"), &home) {
                (Ok(rest), Some(home)) => Some(home.join(rest)),
                _ => Some(value),
            }
        };
        let cache = home.as_ref().map(|home| home.join(".cache"));
        let below = |cache: Option<PathBuf>, name: &str| cache.map(|cache| cache.join(name));
        let hf_home =
            variable("HF_HOME").or_else(|| below(variable("XDG_CACHE_HOME").or_else(|| cache.clone()), "huggingface"));
        Caches {
            hugging_face: variable("HF_HUB_CACHE")
                .or_else(|| variable("HUGGINGFACE_HUB_CACHE"))
                .or_else(|| below(hf_home, "hub")),
            model_scope: variable("MODELSCOPE_CACHE").or_else(|| below(cache, "modelscope")),
        }
    }

    /// From this process's environment.
    pub fn of_environment() -> Self {
        Caches::of(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
    }
}

/// A folder or file that was named.
///
/// # Errors
/// It is not there, or not whole.
pub fn local(path: &Path) -> Result<Model, ModelError> {
    if !path.exists() {
        return Err(ModelError::Missing { name: path.display().to_string(), looked_at: vec![path.to_path_buf()] });
    }
    let (weight_bytes, digest) = check(path)?;
    Ok(Model { path: path.to_path_buf(), origin: Origin::Local, revision: None, weight_bytes, digest })
}

/// Folder of a model in Hugging Face's cache.
pub fn hugging_face_folder(id: &ModelId, caches: &Caches) -> PathBuf {
    caches.hugging_face.clone().unwrap_or_default().join(format!("models--{}", id.flat()))
}

/// Folder of a model in ModelScope's cache, as its library has it since 1.38.
pub fn model_scope_folder(id: &ModelId, caches: &Caches) -> PathBuf {
    caches.model_scope.clone().unwrap_or_default().join("models").join(id.flat())
}

/// An id in Hugging Face's cache.
///
/// # Errors
/// No snapshot is there, or it is not whole.
pub fn hugging_face(id: &ModelId, caches: &Caches) -> Result<Model, ModelError> {
    let folder = hugging_face_folder(id, caches);
    let missing = || ModelError::Missing { name: id.to_string(), looked_at: vec![folder.clone()] };
    let reference =
        |name: &str| fs::read_to_string(folder.join("refs").join(name)).ok().map(|text| text.trim().to_owned());
    let commit = match id.revision.as_deref() {
        Some(commit) if is_commit(commit) => Some(commit.to_owned()),
        Some(name) => reference(name),
        // Without refs/main only a full commit names a snapshot: take the only one there is.
        None => reference("main").or_else(|| only_entry(&folder.join("snapshots"))),
    };
    // What a reference holds was not written by us: it must not lead out of the folder.
    let commit = commit.filter(|commit| below(commit).is_some()).ok_or_else(missing)?;
    found(id, folder.join("snapshots").join(&commit), Origin::HuggingFace, Some(commit))
        .unwrap_or_else(|| Err(missing()))
}

/// An id in ModelScope's cache.
///
/// # Errors
/// It is in none of the layouts, or it is not whole.
pub fn model_scope(id: &ModelId, caches: &Caches) -> Result<Model, ModelError> {
    let cache = caches.model_scope.clone().unwrap_or_default();
    let folder = model_scope_folder(id, caches);
    let snapshots = folder.join("snapshots");
    let mut layouts: Vec<(PathBuf, Option<String>)> = match &id.revision {
        Some(revision) => vec![(snapshots.join(revision), Some(revision.clone()))],
        None => {
            let names = ["master", "main"].map(str::to_owned).into_iter().chain(only_entry(&snapshots));
            names.map(|revision| (snapshots.join(&revision), Some(revision))).collect()
        }
    };
    // The older layouts know no revision: they cannot show that they hold the one asked for.
    if id.revision.is_none() {
        let written = id.repo.replace('.', "___");
        let older = [
            cache.join("models").join(&written),
            cache.join("hub/models").join(&written),
            cache.join("hub").join(&id.repo),
        ];
        layouts.splice(0..0, older.into_iter().map(|older| (older, None)));
    }
    let looked_at = layouts.iter().map(|(folder, _)| folder.clone()).collect();
    let commit = |revision: String| {
        let text = fs::read_to_string(folder.join("refs").join(&revision)).ok();
        text.map(|text| text.trim().to_owned()).filter(|commit| is_commit(commit)).unwrap_or(revision)
    };
    layouts
        .into_iter()
        .find_map(|(place, revision)| found(id, place, Origin::ModelScope, revision.map(commit)))
        .unwrap_or_else(|| Err(ModelError::Missing { name: id.to_string(), looked_at }))
}

/// The model in a folder that exists, or the file of it that the id names; `None` when it
/// is not there.
fn found(id: &ModelId, folder: PathBuf, origin: Origin, revision: Option<String>) -> Option<Result<Model, ModelError>> {
    let path = id.file.as_ref().map_or_else(|| folder.clone(), |file| folder.join(file));
    (folder.is_dir() && path.symlink_metadata().is_ok()).then(|| {
        let (weight_bytes, digest) = check(&path)?;
        Ok(Model { path, origin, revision, weight_bytes, digest })
    })
}

/// The name of the only entry of a folder.
fn only_entry(folder: &Path) -> Option<String> {
    let mut entries = fs::read_dir(folder).ok()?.flatten();
    let first = entries.next()?;
    entries.next().is_none().then(|| first.file_name().to_string_lossy().into_owned())
}

fn incomplete(path: &Path, cause: impl Into<String>) -> ModelError {
    ModelError::Incomplete { path: path.to_path_buf(), cause: cause.into() }
}

/// Checks a GGUF file or a model folder; gives bytes of weights and the digest.
fn check(path: &Path) -> Result<(u64, String), ModelError> {
    let mut identity = String::new();
    let files = if path.is_dir() { folder_files(path)? } else { parts_of(path) };
    let mut weight_bytes = 0;
    for file in files {
        let length = fs::metadata(&file).map_err(|error| incomplete(&file, error.to_string()))?.len();
        let extension = file.extension().unwrap_or_default().to_string_lossy().into_owned();
        let head = match extension.as_str() {
            "gguf" => gguf_head(&file, length)?,
            "safetensors" => safetensors_head(&file, length)?,
            _ => fs::read(&file).map_err(|error| incomplete(&file, error.to_string()))?,
        };
        if matches!(extension.as_str(), "gguf" | "safetensors") {
            weight_bytes += length;
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        identity.push_str(&format!("{name}\t{length}\t{}\n", fsx::sha256(&head)));
    }
    Ok((weight_bytes, fsx::sha256(identity.as_bytes())))
}

/// A file and, when it is the first part of a divided GGUF, the other parts.
fn parts_of(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    gguf_parts(&name).into_iter().map(|part| path.with_file_name(part)).collect()
}

/// The names of all parts of a GGUF file: `x-00001-of-00003.gguf` has three, others one.
pub fn gguf_parts(name: &str) -> Vec<String> {
    let alone = || vec![name.to_owned()];
    let Some((stem, count)) = name.strip_suffix(".gguf").and_then(|stem| stem.rsplit_once("-of-")) else {
        return alone();
    };
    let Some((stem, number)) = stem.rsplit_once('-') else { return alone() };
    match (number.len(), count.len(), number.parse::<u32>(), count.parse::<u32>()) {
        (5, 5, Ok(_), Ok(total @ 1..=4096)) => {
            (1..=total).map(|part| format!("{stem}-{part:05}-of-{total:05}.gguf")).collect()
        }
        _ => alone(),
    }
}

/// The files of a model folder that a server reads, all of them there.
fn folder_files(folder: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(|error| incomplete(folder, error.to_string()))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".incomplete") {
            return Err(incomplete(&entry.path(), "a download that did not finish"));
        }
        names.insert(name);
    }
    let gguf: Vec<PathBuf> =
        names.iter().filter(|name| name.ends_with(".gguf")).map(|name| folder.join(name)).collect();
    if !gguf.is_empty() {
        return Ok(gguf);
    }
    if !names.contains("config.json") {
        return Err(incomplete(folder, "no config.json: it is no model folder"));
    }
    const TOKENIZERS: [&str; 4] = ["tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json"];
    if !TOKENIZERS.iter().any(|name| names.contains(*name)) {
        return Err(incomplete(folder, "no tokenizer files (tokenizer.json or tokenizer.model)"));
    }
    let index = folder.join("model.safetensors.index.json");
    if index.is_file() {
        names.extend(shards(&index)?);
    }
    let weights = names.iter().any(|name| name.ends_with(".safetensors") || name.ends_with(".bin"));
    if !weights {
        return Err(incomplete(folder, "no weights (*.safetensors)"));
    }
    let read = |name: &String| name.ends_with(".safetensors") || name.ends_with(".json");
    Ok(names.iter().filter(|name| read(name)).map(|name| folder.join(name)).collect())
}

/// The shards that an index names.
fn shards(index: &Path) -> Result<BTreeSet<String>, ModelError> {
    let text = fs::read_to_string(index).map_err(|error| incomplete(index, error.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| incomplete(index, error.to_string()))?;
    let map = value["weight_map"].as_object().ok_or_else(|| incomplete(index, "no weight_map"))?;
    Ok(map.values().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// The header of a safetensors file, after checking that its tensors end where the file
/// does: 8 bytes of length (little-endian), JSON, data
/// (<https://huggingface.co/docs/safetensors>).
fn safetensors_head(file: &Path, length: u64) -> Result<Vec<u8>, ModelError> {
    let broken = |error: io::Error| incomplete(file, error.to_string());
    let mut reader = File::open(file).map_err(broken)?;
    let mut prefix = [0; 8];
    reader.read_exact(&mut prefix).map_err(|_| incomplete(file, "shorter than a safetensors header"))?;
    let header_length = u64::from_le_bytes(prefix);
    let data_start = header_length.checked_add(8).filter(|start| *start <= length && header_length <= MAX_HEADER);
    let Some(data_start) = data_start else { return Err(incomplete(file, "its header reaches beyond its end")) };
    let mut header = vec![0; usize::try_from(header_length).unwrap_or(0)];
    reader.read_exact(&mut header).map_err(broken)?;
    let value: Value =
        serde_json::from_slice(&header).map_err(|error| incomplete(file, format!("its header is no JSON: {error}")))?;
    let ends = value.as_object().into_iter().flatten().filter_map(|(_, tensor)| tensor["data_offsets"][1].as_u64());
    let wanted = data_start + ends.max().unwrap_or(0);
    if wanted == length {
        Ok(header)
    } else {
        Err(incomplete(file, format!("truncated or damaged: {length} bytes, its header speaks of {wanted}")))
    }
}

/// A safetensors header larger than this is none.
const MAX_HEADER: u64 = 100 << 20;

/// The first bytes of a GGUF file, after checking its magic.
fn gguf_head(file: &Path, length: u64) -> Result<Vec<u8>, ModelError> {
    let mut head = Vec::new();
    let reader = File::open(file).map_err(|error| incomplete(file, error.to_string()))?;
    reader.take(1 << 16).read_to_end(&mut head).map_err(|error| incomplete(file, error.to_string()))?;
    if head.starts_with(b"GGUF") && length > 24 {
        Ok(head)
    } else {
        Err(incomplete(file, "it does not begin with GGUF"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn safetensors(bytes: usize) -> Vec<u8> {
        let header = format!("{{\"w\":{{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,{bytes}]}}}}");
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header.as_bytes());
        file.extend(std::iter::repeat_n(0, bytes));
        file
    }

    fn folder(at: &Path) {
        fs::create_dir_all(at).unwrap();
        fs::write(at.join("config.json"), "{}").unwrap();
        fs::write(at.join("tokenizer.json"), "{}").unwrap();
        fs::write(at.join("model.safetensors"), safetensors(16)).unwrap();
    }

    fn id(text: &str) -> ModelId {
        ModelId::parse(text).unwrap()
    }

    #[test]
    fn a_truncated_shard_and_a_missing_one_are_found() {
        let scratch = tempfile::tempdir().unwrap();
        let at = scratch.path();
        folder(at);
        let whole = local(at).unwrap();
        assert_eq!((whole.weight_bytes > 16, whole.origin), (true, Origin::Local));
        let mut cut = safetensors(16);
        cut.truncate(cut.len() - 3);
        fs::write(at.join("model.safetensors"), cut).unwrap();
        assert!(local(at).unwrap_err().to_string().contains("truncated or damaged"));
        folder(at);
        fs::write(at.join("model.safetensors.index.json"), "{\"weight_map\":{\"a\":\"model-2.safetensors\"}}").unwrap();
        assert!(local(at).unwrap_err().to_string().contains("model-2.safetensors"));
        fs::remove_file(at.join("config.json")).unwrap();
        assert!(local(at).unwrap_err().to_string().contains("no config.json"));
    }

    #[test]
    fn the_caches_of_both_hubs_are_read() {
        let scratch = tempfile::tempdir().unwrap();
        let variable = |name: &str| (name == "HOME").then(|| scratch.path().to_path_buf());
        let caches = Caches::of(variable);
        let hub = scratch.path().join(".cache/huggingface/hub/models--o--n");
        assert!(matches!(hugging_face(&id("o/n"), &caches), Err(ModelError::Missing { .. })));
        folder(&hub.join("snapshots/abc"));
        fs::create_dir_all(hub.join("refs")).unwrap();
        fs::write(hub.join("refs/main"), "abc\n").unwrap();
        assert_eq!(hugging_face(&id("o/n"), &caches).unwrap().revision.as_deref(), Some("abc"));
        assert_eq!(hugging_face(&id("o/n@main"), &caches).unwrap().revision.as_deref(), Some("abc"));
        for absent in [format!("o/n@{}", "0".repeat(40)), "o/n@v1".to_owned(), "o/n:x.gguf".to_owned()] {
            assert!(matches!(hugging_face(&id(&absent), &caches), Err(ModelError::Missing { .. })), "{absent}");
        }
        fs::write(hub.join("refs/v1"), "../../../../x").unwrap();
        assert!(matches!(hugging_face(&id("o/n@v1"), &caches), Err(ModelError::Missing { .. })));
        let scope = scratch.path().join(".cache/modelscope");
        let places = [
            ("o/n.5", "models/o/n___5"),
            ("p/q", "models/p--q/snapshots/main"),
            ("p/t@v2", "models/p--t/snapshots/v2"),
            ("t/u.1", "hub/models/t/u___1"),
            ("r/s", "hub/r/s"),
        ];
        for (name, place) in places {
            assert!(matches!(model_scope(&id(name), &caches), Err(ModelError::Missing { .. })));
            folder(&scope.join(place));
            assert_eq!(model_scope(&id(name), &caches).unwrap().origin, Origin::ModelScope);
        }
        assert!(matches!(model_scope(&id("r/s@v9"), &caches), Err(ModelError::Missing { .. })));
    }

    #[test]
    fn the_caches_are_where_the_hubs_libraries_look() {
        let of = |set: &'static [(&str, &str)]| {
            Caches::of(move |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value)))
        };
        let face = |set| of(set).hugging_face.unwrap().display().to_string();
        assert_eq!(face(&[("HOME", "/h")]), "/h/.cache/huggingface/hub");
        assert_eq!(face(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]), "/x/huggingface/hub");
        assert_eq!(face(&[("HOME", "/h"), ("HF_HOME", "~/f"), ("XDG_CACHE_HOME", "/x")]), "/h/f/hub");
        assert_eq!(face(&[("HUGGINGFACE_HUB_CACHE", "/old"), ("HF_HOME", "/f")]), "/old");
        assert_eq!(face(&[("HF_HUB_CACHE", "/c"), ("HF_HOME", "/f")]), "/c");
        let scope = |set| of(set).model_scope.unwrap().display().to_string();
        assert_eq!([scope(&[("HOME", "/h")]), scope(&[("MODELSCOPE_CACHE", "/m")])], ["/h/.cache/modelscope", "/m"]);
    }

    #[test]
    fn a_divided_gguf_is_all_of_its_parts() {
        assert_eq!(gguf_parts("m-00002-of-00002.gguf"), ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]);
        for alone in ["m.gguf", "m-of-2.gguf", "m-1-of-2.gguf", "m-00001-of-99999.gguf"] {
            assert_eq!(gguf_parts(alone), [alone]);
        }
        let scratch = tempfile::tempdir().unwrap();
        let first = scratch.path().join("m-00001-of-00002.gguf");
        fs::write(&first, b"GGUF\x03 and enough bytes to be one").unwrap();
        assert!(local(&first).unwrap_err().to_string().contains("m-00002-of-00002.gguf"));
    }

    #[test]
    fn a_file_that_is_no_gguf_is_refused_before_any_start() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("m.gguf");
        fs::write(&file, b"GGUF\x03 and enough bytes to be one").unwrap();
        assert!(local(&file).is_ok());
        fs::write(&file, b"<html>not found</html> and many more bytes").unwrap();
        assert!(local(&file).unwrap_err().to_string().contains("GGUF"));
    }
}
