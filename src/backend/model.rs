//! Models on this machine: where an id or a path leads, and whether everything a server
//! will read is there and whole. Milliseconds, offline; a truncated shard would cost a
//! server a minute to find.
//!
//! Layouts: Hugging Face's hub cache (`models--OWNER--NAME/refs`, `snapshots`), and the
//! three that ModelScope has used.

use crate::fsx;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

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
    /// HF_HUB_CACHE, else HF_HOME/hub, else `~/.cache/huggingface/hub`; MODELSCOPE_CACHE,
    /// else `~/.cache/modelscope`.
    pub fn of(variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let home = variable("HOME").map(|home| home.join(".cache"));
        let below = |name: &str| home.as_ref().map(|home| home.join(name));
        Caches {
            hugging_face: variable("HF_HUB_CACHE")
                .or_else(|| variable("HF_HOME").map(|home| home.join("hub")))
                .or_else(|| below("huggingface/hub")),
            model_scope: variable("MODELSCOPE_CACHE").or_else(|| below("modelscope")),
        }
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

/// An id in Hugging Face's cache.
///
/// # Errors
/// No snapshot is there, or it is not whole.
pub fn hugging_face(id: &str, caches: &Caches) -> Result<Model, ModelError> {
    let folder = caches.hugging_face.clone().unwrap_or_default().join(format!("models--{}", id.replace('/', "--")));
    let missing = || ModelError::Missing { name: id.to_owned(), looked_at: vec![folder.clone()] };
    // Without refs/main only a full commit names a snapshot: take the only one there is.
    let revision = fs::read_to_string(folder.join("refs/main"))
        .map(|text| text.trim().to_owned())
        .ok()
        .or_else(|| only_entry(&folder.join("snapshots")))
        .ok_or_else(missing)?;
    found(folder.join("snapshots").join(&revision), Origin::HuggingFace, Some(revision))
        .unwrap_or_else(|| Err(missing()))
}

/// An id in ModelScope's cache.
///
/// # Errors
/// It is in none of the three layouts, or it is not whole.
pub fn model_scope(id: &str, caches: &Caches) -> Result<Model, ModelError> {
    let cache = caches.model_scope.clone().unwrap_or_default();
    let snapshots = cache.join("models").join(id.replace('/', "--")).join("snapshots");
    let revision = only_entry(&snapshots);
    let layouts = [
        (cache.join("models").join(id.replace('.', "___")), None),
        (snapshots.join(revision.clone().unwrap_or_default()), revision),
        (cache.join("hub").join(id), None),
    ];
    let looked_at = layouts.iter().map(|(folder, _)| folder.clone()).collect();
    layouts
        .into_iter()
        .find_map(|(folder, revision)| found(folder, Origin::ModelScope, revision))
        .unwrap_or_else(|| Err(ModelError::Missing { name: id.to_owned(), looked_at }))
}

/// The model in a folder that exists; `None` when the folder does not.
fn found(folder: PathBuf, origin: Origin, revision: Option<String>) -> Option<Result<Model, ModelError>> {
    folder.is_dir().then(|| {
        let (weight_bytes, digest) = check(&folder)?;
        Ok(Model { path: folder, origin, revision, weight_bytes, digest })
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
    let files = if path.is_dir() { folder_files(path)? } else { vec![path.to_path_buf()] };
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
        assert!(matches!(hugging_face("o/n", &caches), Err(ModelError::Missing { .. })));
        folder(&hub.join("snapshots/abc"));
        fs::create_dir_all(hub.join("refs")).unwrap();
        fs::write(hub.join("refs/main"), "abc\n").unwrap();
        assert_eq!(hugging_face("o/n", &caches).unwrap().revision.as_deref(), Some("abc"));
        let scope = scratch.path().join(".cache/modelscope");
        for (id, place) in [("o/n.5", "models/o/n___5"), ("p/q", "models/p--q/snapshots/main"), ("r/s", "hub/r/s")] {
            assert!(matches!(model_scope(id, &caches), Err(ModelError::Missing { .. })));
            folder(&scope.join(place));
            assert_eq!(model_scope(id, &caches).unwrap().origin, Origin::ModelScope);
        }
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
