//! Fetches a model into the cache of its hub, so that the hub's own library and every
//! server that uses it find it there afterwards. Only what a server needs, only when
//! that was allowed; resumable, with every digest checked.

mod digest;
mod error;
mod listing;
mod select;
mod site;
mod transfer;
mod web;

pub use error::DownloadError;
pub use site::Hub;

use super::doctor;
use super::model::{self, Caches};
use super::model_id::{ModelId, is_commit};
use crate::fsx;
use crate::interrupt::Cancel;
use crate::term::Phase;
use error::mebibytes;
use listing::{Listing, RemoteFile};
use site::Site;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use transfer::{Job, Meter};
use web::Web;

/// Room that is left free beside a model, bytes.
const MARGIN: u64 = 64 << 20;

/// A model that has been fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// From where.
    pub hub: Hub,
    /// The commit, where the hub tells it.
    pub commit: Option<String>,
    /// Bytes of its files.
    pub bytes: u64,
}

/// Fetches `id` from the first of `hubs` that has it. Python code of the model comes
/// along only `with_code`.
///
/// # Errors
/// No hub has it, or it could not be brought here; what came is continued by the next call.
pub fn fetch(
    id: &ModelId,
    hubs: &[Hub],
    caches: &Caches,
    with_code: bool,
    phase: &Phase,
    cancel: &Cancel,
) -> Result<Fetched, DownloadError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| DownloadError::Io { path: PathBuf::new(), source })?;
    runtime.block_on(async {
        tokio::select! {
            biased;
            _ = cancel.wait(1) => Err(DownloadError::Interrupted),
            fetched = from_any(id, hubs, caches, with_code, phase) => fetched,
        }
    })
}

async fn from_any(
    id: &ModelId,
    hubs: &[Hub],
    caches: &Caches,
    with_code: bool,
    phase: &Phase,
) -> Result<Fetched, DownloadError> {
    let mut first = None;
    for (number, hub) in hubs.iter().enumerate() {
        match from(id, *hub, caches, with_code, phase).await {
            Err(error) if error.elsewhere() && number + 1 < hubs.len() => {
                phase.say(&format!("{}: {}", hub.name(), error.cause().get(crate::model::Lang::En)));
                first.get_or_insert(error);
            }
            // What the hub of the first choice said is what the user can act on.
            Err(error) if error.elsewhere() => return Err(first.unwrap_or(error)),
            other => return other,
        }
    }
    Err(first.unwrap_or(DownloadError::Interrupted))
}

async fn from(
    id: &ModelId,
    hub: Hub,
    caches: &Caches,
    with_code: bool,
    phase: &Phase,
) -> Result<Fetched, DownloadError> {
    let site = Site::of(hub, |name| std::env::var(name).ok().filter(|value| !value.is_empty()))?;
    let web = Web::new(&site, id)?;
    phase.say(&format!("looking for {id} at {}", site.host()));
    let listing = site.listing(&web.listing().await?)?;
    let files = select::needed(&listing.files, id, &site.host(), with_code)?;
    let place = Place { id, hub, caches, commit: listing.commit.clone() };
    let jobs = files.iter().map(|file| place.job(&site, file)).collect::<Result<Vec<Job>, DownloadError>>()?;
    let missing = jobs.iter().map(Job::missing).sum();
    check_room(&place.cache(), missing)?;
    let bytes = files.iter().filter_map(|file| file.size).sum();
    phase.say(&format!("fetching {} of {id}: {} in {} files", mebibytes(missing), mebibytes(bytes), files.len()));
    let mut meter = Meter::new(phase, missing);
    for job in &jobs {
        transfer::fetch(&web, job, &mut meter).await?;
    }
    place.publish(&files).map_err(|(path, source)| DownloadError::Io { path, source })?;
    phase.say(&format!("{id} is here: {}", place.shown_commit(&listing)));
    Ok(Fetched { hub, commit: listing.commit, bytes })
}

fn check_room(folder: &Path, missing: u64) -> Result<(), DownloadError> {
    match doctor::free_bytes(folder) {
        Some(free) if missing > 0 && missing.saturating_add(MARGIN) > free => {
            Err(DownloadError::Disk { folder: folder.to_path_buf(), needed: missing, free })
        }
        _ => Ok(()),
    }
}

/// Where the files of one model go.
struct Place<'a> {
    id: &'a ModelId,
    hub: Hub,
    caches: &'a Caches,
    commit: Option<String>,
}

impl Place<'_> {
    /// Folder of the model in the cache.
    fn folder(&self) -> PathBuf {
        match self.hub {
            Hub::HuggingFace => model::hugging_face_folder(self.id, self.caches),
            Hub::ModelScope => model::model_scope_folder(self.id, self.caches),
        }
    }

    fn cache(&self) -> PathBuf {
        let folder = self.folder();
        folder.parent().unwrap_or(&folder).to_path_buf()
    }

    fn revision(&self) -> &str {
        self.id.revision.as_deref().unwrap_or(self.hub.default_revision())
    }

    /// Folder that a server is given.
    fn snapshot(&self) -> PathBuf {
        let name = match self.hub {
            Hub::HuggingFace => self.commit.as_deref().unwrap_or_default(),
            Hub::ModelScope => self.revision(),
        };
        self.folder().join("snapshots").join(name)
    }

    fn job(&self, site: &Site, file: &RemoteFile) -> Result<Job, DownloadError> {
        let url = site.file_url(self.id, self.commit.as_deref().filter(|_| self.hub == Hub::HuggingFace), &file.path);
        let (target, lock) = match self.hub {
            Hub::HuggingFace => {
                let blob = blob(file).ok_or_else(|| DownloadError::Unusable {
                    host: site.host(),
                    cause: format!("it states no digest of {}", file.path),
                })?;
                // The lock of huggingface_hub, so that it and we wait for each other.
                let locks = self.cache().join(".locks").join(self.folder().file_name().unwrap_or_default());
                (self.folder().join("blobs").join(blob), locks.join(format!("{blob}.lock")))
            }
            Hub::ModelScope => {
                let name = fsx::sha256(format!("{}/{}", self.revision(), file.path).as_bytes());
                (self.snapshot().join(&file.path), self.folder().join(".locks").join(format!("{}.lock", &name[..16])))
            }
        };
        Ok(Job { url, name: file.path.clone(), target, lock, size: file.size, digest: file.digest.clone() })
    }

    /// Shows the complete model to others: links to the contents, then the reference that
    /// makes its revision known. In this order nobody ever finds half a model.
    fn publish(&self, files: &[RemoteFile]) -> Result<(), (PathBuf, io::Error)> {
        if self.hub == Hub::HuggingFace {
            for file in files {
                let link = self.snapshot().join(&file.path);
                link_to_blob(&self.folder(), &link, file).map_err(|error| (link, error))?;
            }
        }
        let revision = self.revision();
        match &self.commit {
            Some(commit) if !is_commit(revision) => {
                let path = self.folder().join("refs").join(revision);
                fsx::write_atomic(&path, commit.as_bytes()).map_err(|error| (path, fsx::without_place(error)))
            }
            _ => Ok(()),
        }
    }

    fn shown_commit(&self, listing: &Listing) -> String {
        match &listing.commit {
            Some(commit) => format!("{} is commit {commit}", self.revision()),
            None => format!("revision {}", self.revision()),
        }
    }
}

/// The name of a content in Hugging Face's cache.
fn blob(file: &RemoteFile) -> Option<&str> {
    file.digest.as_ref().map(digest::Digest::text)
}

/// A relative link, as huggingface_hub makes it; where the system has none, another name
/// for the same file, or a copy.
fn link_to_blob(folder: &Path, link: &Path, file: &RemoteFile) -> io::Result<()> {
    if link.exists() {
        return Ok(());
    }
    let blob = blob(file).unwrap_or_default();
    let parent = link.parent().unwrap_or(folder);
    fs::create_dir_all(parent)?;
    // A link that leads nowhere: its content was deleted.
    if link.symlink_metadata().is_ok() {
        fs::remove_file(link)?;
    }
    #[cfg(unix)]
    {
        let up = "../".repeat(2 + file.path.matches('/').count());
        std::os::unix::fs::symlink(format!("{up}blobs/{blob}"), link)
    }
    #[cfg(not(unix))]
    {
        let content = folder.join("blobs").join(blob);
        fs::hard_link(&content, link).or_else(|_| fs::copy(&content, link).map(drop))
    }
}
