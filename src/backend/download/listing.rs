//! What a hub says a model consists of. Everything in it comes from a server and is
//! checked before it is used as a name: paths, digests, the commit.

use super::digest::Digest;
use super::error::DownloadError;
use crate::backend::model_id::{below, is_commit};
use serde_json::Value;

/// One file of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemoteFile {
    /// Path below the model's folder, with `/`.
    pub(super) path: String,
    /// Bytes, where it is stated.
    pub(super) size: Option<u64>,
    /// What the content must be, where it is stated.
    pub(super) digest: Option<Digest>,
}

/// The files of a model at one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    /// The commit; ModelScope does not always tell.
    pub(super) commit: Option<String>,
    /// Its files.
    pub(super) files: Vec<RemoteFile>,
}

impl Listing {
    /// Reads Hugging Face's `GET /api/models/OWNER/NAME/revision/REV?blobs=true`.
    pub(super) fn of_hugging_face(text: &str, host: &str) -> Result<Self, DownloadError> {
        let value = parse(text, host)?;
        let commit = value["sha"].as_str().filter(|commit| is_commit(commit)).map(str::to_owned);
        let commit = Some(commit.ok_or_else(|| unusable(host, "it names no commit"))?);
        let siblings = value["siblings"].as_array().ok_or_else(|| unusable(host, "it lists no files"))?;
        let file = |entry: &Value| {
            let lfs = &entry["lfs"];
            let digest = lfs["sha256"].as_str().or_else(|| entry["blobId"].as_str());
            RemoteFile {
                path: entry["rfilename"].as_str().unwrap_or_default().to_owned(),
                size: lfs["size"].as_u64().or_else(|| entry["size"].as_u64()),
                digest: digest.and_then(Digest::read),
            }
        };
        checked(Listing { commit, files: siblings.iter().map(file).collect() }, host)
    }

    /// Reads ModelScope's `GET /api/v1/models/OWNER/NAME/repo/files?Recursive=true`.
    pub(super) fn of_model_scope(text: &str, host: &str) -> Result<Self, DownloadError> {
        let value = parse(text, host)?;
        let data = &value["Data"];
        let files = data["Files"]
            .as_array()
            .ok_or_else(|| unusable(host, value["Message"].as_str().unwrap_or("it lists no files")))?;
        let commit = data["LatestCommitter"]["Id"].as_str().filter(|commit| is_commit(commit)).map(str::to_owned);
        let file = |entry: &Value| RemoteFile {
            path: entry["Path"].as_str().unwrap_or_default().to_owned(),
            size: entry["Size"].as_u64(),
            digest: entry["Sha256"].as_str().and_then(Digest::read),
        };
        let files = files.iter().filter(|entry| entry["Type"] != "tree").map(file).collect();
        checked(Listing { commit, files }, host)
    }
}

fn parse(text: &str, host: &str) -> Result<Value, DownloadError> {
    serde_json::from_str(text).map_err(|error| unusable(host, &format!("it is no JSON: {error}")))
}

fn unusable(host: &str, cause: &str) -> DownloadError {
    DownloadError::Unusable { host: host.to_owned(), cause: cause.chars().take(200).collect() }
}

/// Refuses the whole listing for one name that climbs: whoever lists it is not the hub.
/// Names that are only odd are left out, as no server needs them.
fn checked(mut listing: Listing, host: &str) -> Result<Listing, DownloadError> {
    let climbs = |path: &str| path.starts_with(['/', '\\']) || path.split(['/', '\\']).any(|part| part == "..");
    if let Some(file) = listing.files.iter().find(|file| climbs(&file.path)) {
        return Err(DownloadError::UnsafeName { name: file.path.clone(), host: host.to_owned() });
    }
    listing.files.retain(|file| below(&file.path).is_some());
    Ok(listing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA1: &str = "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0";

    #[test]
    fn both_hubs_listings_are_read() {
        let sha256 = "ab".repeat(32);
        let text = format!(
            r#"{{"sha":"{SHA1}","siblings":[{{"rfilename":"config.json","size":5,"blobId":"{SHA1}"}},
            {{"rfilename":"m.safetensors","size":1,"blobId":"{SHA1}","lfs":{{"sha256":"{sha256}","size":9,"pointerSize":1}}}}]}}"#
        );
        let listing = Listing::of_hugging_face(&text, "h").unwrap();
        assert_eq!(listing.commit.as_deref(), Some(SHA1));
        assert_eq!(listing.files[0].digest, Some(Digest::GitSha1(SHA1.to_owned())));
        assert_eq!(
            (listing.files[1].size, listing.files[1].digest.clone()),
            (Some(9), Some(Digest::Sha256(sha256.clone())))
        );
        let text = format!(
            r#"{{"Code":200,"Data":{{"LatestCommitter":{{"Id":"{SHA1}"}},"Files":[{{"Path":"d","Type":"tree"}},
            {{"Path":"d/m.gguf","Type":"blob","Size":7,"Sha256":"{sha256}"}},{{"Path":"x","Type":"blob","Sha256":""}}]}}}}"#
        );
        let listing = Listing::of_model_scope(&text, "h").unwrap();
        assert_eq!((listing.commit.as_deref(), listing.files.len()), (Some(SHA1), 2));
        assert_eq!((listing.files[0].size, listing.files[1].digest.clone()), (Some(7), None));
    }

    #[test]
    fn a_name_that_climbs_refuses_the_listing_and_an_odd_one_is_left_out() {
        let listing = |name: &str| {
            let name = serde_json::to_string(name).unwrap();
            Listing::of_hugging_face(&format!(r#"{{"sha":"{SHA1}","siblings":[{{"rfilename":{name}}}]}}"#), "h")
        };
        for evil in ["../x.json", "a/../../x.json", "/etc/x.json", "..\\x.json", "\\\\host\\x.json"] {
            assert!(matches!(listing(evil), Err(DownloadError::UnsafeName { .. })), "{evil}");
        }
        for odd in ["", "a:b.json", "a//b.json", "x\u{0}.json", "con "] {
            assert_eq!(listing(odd).unwrap().files, [], "{odd:?}");
        }
    }

    #[test]
    fn an_answer_that_is_no_listing_says_what_it_is() {
        for text in ["<html>", "{}", r#"{"sha":"../../etc","siblings":[]}"#, r#"{"sha":null}"#] {
            assert!(matches!(Listing::of_hugging_face(text, "h"), Err(DownloadError::Unusable { .. })), "{text}");
        }
        let refused = Listing::of_model_scope(r#"{"Code":1,"Message":"no such thing"}"#, "h").unwrap_err();
        assert!(refused.cause().get(crate::model::Lang::En).contains("no such thing"));
    }
}
