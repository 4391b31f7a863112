//! One file, from wherever it stopped to its end. What came stays in `….incomplete`
//! whatever happens, and becomes the file only when its digest is right.

use super::digest::{Digest, Hasher};
use super::error::{DownloadError, mebibytes};
use super::web::{Rest, Trouble, Web, pause, strong_etag};
use crate::backend::doctor;
use crate::term::Phase;
use reqwest::StatusCode;
use reqwest::header::CONTENT_RANGE;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use url::Url;

/// Tries in a row that bring nothing new before it is given up.
const TRIES: u32 = 5;
/// How often the line of progress is drawn over.
const DRAW: Duration = Duration::from_millis(200);
/// How often a log gets a line of progress.
const LOG: Duration = Duration::from_secs(10);

/// A file to fetch.
pub(super) struct Job {
    /// Where it is.
    pub(super) url: Url,
    /// What people call it.
    pub(super) name: String,
    /// Where it goes.
    pub(super) target: PathBuf,
    /// Lock that others who fetch the same respect.
    pub(super) lock: PathBuf,
    /// Bytes, where they are known.
    pub(super) size: Option<u64>,
    /// What the content must be, where it is known.
    pub(super) digest: Option<Digest>,
}

impl Job {
    /// Where it grows.
    fn partial(&self) -> PathBuf {
        with_suffix(&self.target, ".incomplete")
    }

    /// Whether it is here already: by its length, and by its digest where its name does
    /// not say it.
    fn is_here(&self) -> bool {
        let Ok(facts) = fs::metadata(&self.target) else { return false };
        let by_name = self.digest.as_ref().is_some_and(|digest| self.target.ends_with(digest.text()));
        let same = || match &self.digest {
            Some(digest) => digest_of(&self.target, digest).is_ok_and(|found| found == digest.text()),
            None => self.size.is_some(),
        };
        self.size.is_none_or(|size| size == facts.len()) && (by_name || same())
    }

    /// Bytes that still have to come, as far as that is known.
    pub(super) fn missing(&self) -> u64 {
        let size = self.size.unwrap_or(0);
        let here = if self.is_here() { size } else { fs::metadata(self.partial()).map_or(0, |facts| facts.len()) };
        size.saturating_sub(here)
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn digest_of(path: &Path, kind: &Digest) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Hasher::new(kind, file.metadata()?.len());
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

/// How far it is, told to whoever looks.
pub(super) struct Meter<'a> {
    phase: &'a Phase,
    total: u64,
    done: u64,
    began: Instant,
    drawn: Option<Instant>,
    logged: Instant,
}

impl<'a> Meter<'a> {
    /// `total` bytes are to come.
    pub(super) fn new(phase: &'a Phase, total: u64) -> Self {
        let now = Instant::now();
        Meter { phase, total, done: 0, began: now, drawn: None, logged: now }
    }

    /// Says something once.
    pub(super) fn say(&self, text: &str) {
        self.phase.say(text);
    }

    fn add(&mut self, name: &str, bytes: u64) {
        self.done += bytes;
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW) {
            self.drawn = Some(Instant::now());
            self.phase.quiet_say(&self.line(name));
        }
        if self.logged.elapsed() >= LOG {
            self.logged = Instant::now();
            self.phase.say(&self.line(name));
        }
    }

    fn line(&self, name: &str) -> String {
        let seconds = self.began.elapsed().as_secs_f64().max(0.001);
        let rate = self.done as f64 / f64::from(1 << 20) / seconds;
        let done = mebibytes(self.done);
        if self.total == 0 {
            return format!("{name}: {done}, {rate:.1} MiB/s");
        }
        let percent = (self.done.min(self.total) * 100) / self.total;
        format!("{name}: {done} of {} ({percent} %), {rate:.1} MiB/s", mebibytes(self.total))
    }
}

/// What has come of a file.
struct Partial {
    file: File,
    path: PathBuf,
    length: u64,
    hasher: Option<Hasher>,
    etag: Option<String>,
}

impl Partial {
    /// Takes up what an earlier try left, reading it once for its digest.
    async fn open(job: &Job) -> io::Result<Self> {
        let path = job.partial();
        let file = File::options().read(true).append(true).create(true).open(&path)?;
        let hasher = Self::fresh_hasher(job);
        let etag = fs::read_to_string(with_suffix(&path, ".etag")).ok();
        let mut partial = Partial { file, path, length: 0, hasher, etag };
        let length = partial.file.metadata()?.len();
        if job.size.is_some_and(|size| length > size) {
            partial.restart(job)?;
            return Ok(partial);
        }
        partial.file.seek(SeekFrom::Start(0))?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            let count = partial.file.read(&mut buffer)?;
            if count == 0 {
                return Ok(partial);
            }
            if let Some(hasher) = &mut partial.hasher {
                hasher.update(&buffer[..count]);
            }
            partial.length += count as u64;
            // Gigabytes may be here already: an interrupt must get its turn.
            tokio::task::yield_now().await;
        }
    }

    fn fresh_hasher(job: &Job) -> Option<Hasher> {
        match (&job.digest, job.size) {
            (Some(Digest::GitSha1(_)), None) => None,
            (digest, size) => digest.as_ref().map(|digest| Hasher::new(digest, size.unwrap_or(0))),
        }
    }

    fn restart(&mut self, job: &Job) -> io::Result<()> {
        self.file.set_len(0)?;
        self.length = 0;
        self.hasher = Self::fresh_hasher(job);
        self.etag = None;
        self.remember_etag(None);
        Ok(())
    }

    /// Keeps the server's name for the content beside it, for another process to go on.
    fn remember_etag(&mut self, etag: Option<String>) {
        let path = with_suffix(&self.path, ".etag");
        // Without it the digest alone tells whether two parts belong together.
        let _ = match &etag {
            Some(etag) => fs::write(&path, etag),
            None => fs::remove_file(&path),
        };
        self.etag = etag;
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// The digest of what is here, and a fresh start for the hasher.
    fn finish(&mut self, job: &Job) -> Option<String> {
        let hasher = std::mem::replace(&mut self.hasher, Self::fresh_hasher(job))?;
        Some(hasher.finish())
    }
}

/// Fetches one file; another process that fetches the same is waited for.
pub(super) async fn fetch(web: &Web<'_>, job: &Job, meter: &mut Meter<'_>) -> Result<(), DownloadError> {
    let io = |path: &Path, source: io::Error| DownloadError::Io { path: path.to_path_buf(), source };
    for path in [&job.target, &job.lock] {
        let folder = path.parent().unwrap_or(path);
        fs::create_dir_all(folder).map_err(|error| io(folder, error))?;
    }
    let _lock = lock(&job.lock, &job.name, meter).await.map_err(|error| io(&job.lock, error))?;
    if job.is_here() {
        return Ok(());
    }
    let mut partial = Partial::open(job).await.map_err(|error| io(&job.partial(), error))?;
    for last in [false, true] {
        complete(web, job, &mut partial, meter).await?;
        let found = partial.finish(job);
        let expected = job.digest.as_ref().map(Digest::text);
        match (expected, found) {
            (Some(expected), Some(found)) if expected != found => {
                partial.restart(job).map_err(|error| io(&partial.path, error))?;
                if last {
                    let (file, expected) = (job.name.clone(), expected.to_owned());
                    return Err(DownloadError::Differs { file, expected, found });
                }
                meter.say(&format!("{}: its digest is wrong; fetching it once more", job.name));
            }
            _ => return keep(job, &partial).map_err(|error| io(&job.target, error)),
        }
    }
    Ok(())
}

/// Makes the partial the file.
fn keep(job: &Job, partial: &Partial) -> io::Result<()> {
    partial.file.sync_all()?;
    fs::rename(&partial.path, &job.target)?;
    let _ = fs::remove_file(with_suffix(&partial.path, ".etag"));
    Ok(())
}

/// Waits for the lock without holding up an interrupt.
async fn lock(path: &Path, name: &str, meter: &Meter<'_>) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    let mut said = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) => {
                if !said {
                    meter.say(&format!("{name}: waiting for another process that fetches it"));
                    said = true;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            // Some network file systems have no locks; the digest still holds.
            Err(fs::TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => return Ok(file),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Gets what is missing, over as many connections as it takes while each brings more.
async fn complete(web: &Web<'_>, job: &Job, partial: &mut Partial, meter: &mut Meter<'_>) -> Result<(), DownloadError> {
    let mut best = partial.length;
    let mut failures = 0;
    loop {
        let trouble = match attempt(web, job, partial, meter).await {
            Ok(()) => return Ok(()),
            Err(Trouble::Fatal(error)) => return Err(error),
            Err(trouble) => trouble,
        };
        if partial.length > best {
            best = partial.length;
            failures = 0;
        }
        failures += 1;
        match trouble {
            Trouble::Again { after, .. } if failures < TRIES => pause(failures, after).await,
            trouble => return Err(trouble.into_error()),
        }
    }
}

/// One connection.
async fn attempt(web: &Web<'_>, job: &Job, partial: &mut Partial, meter: &mut Meter<'_>) -> Result<(), Trouble> {
    if job.size.is_some_and(|size| size == partial.length) {
        return Ok(());
    }
    let written = |partial: &Partial, error: io::Error| Trouble::Fatal(not_written(job, partial, error));
    let etag = partial.etag.clone();
    let rest = Rest { from: partial.length, etag: etag.as_deref() };
    let rest = Some(&rest).filter(|rest| rest.from > 0);
    let mut response = web.get(job.url.clone(), Some(&job.name), rest).await?;
    let host = response.url().clone();
    let host = super::site::host(&host);
    match response.status() {
        StatusCode::PARTIAL_CONTENT if continues_at(&response) == Some(partial.length) => {}
        StatusCode::RANGE_NOT_SATISFIABLE if total_of(&response) == Some(partial.length) => return Ok(()),
        // It cannot continue, or what it has is another content: from the beginning.
        StatusCode::OK => {
            partial.restart(job).map_err(|error| written(partial, error))?;
            partial.remember_etag(strong_etag(&response));
        }
        _ => {
            partial.restart(job).map_err(|error| written(partial, error))?;
            let cause = "it gave another part of the file than was asked for".to_owned();
            return Err(Trouble::Again { error: DownloadError::Unusable { host, cause }, after: None });
        }
    }
    while let Some(bytes) = response.chunk().await.map_err(|error| web.broken(&error, host.clone()))? {
        let length = partial.length + bytes.len() as u64;
        if job.size.is_some_and(|size| length > size) {
            let cause = format!("{} is longer than it is listed", job.name);
            partial.restart(job).map_err(|error| written(partial, error))?;
            return Err(Trouble::Fatal(DownloadError::Unusable { host, cause }));
        }
        partial.append(&bytes).map_err(|error| written(partial, error))?;
        meter.add(&job.name, bytes.len() as u64);
    }
    match job.size {
        Some(size) if partial.length < size => {
            let cause = format!("the connection ended after {} of {size} bytes", partial.length);
            let variable = web.site.hub.endpoint_variable();
            Err(Trouble::Again { error: DownloadError::Unreachable { host, cause, variable }, after: None })
        }
        _ => Ok(()),
    }
}

/// The file could not grow: with the disk full, how much room is missing.
fn not_written(job: &Job, partial: &Partial, source: io::Error) -> DownloadError {
    let folder = job.target.parent().unwrap_or(&job.target).to_path_buf();
    match (source.kind(), doctor::free_bytes(&folder)) {
        (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, Some(free)) => {
            let needed = job.size.unwrap_or(partial.length).saturating_sub(partial.length);
            DownloadError::Disk { folder, needed, free }
        }
        _ => DownloadError::Io { path: partial.path.clone(), source },
    }
}

/// The first byte of a part, and the length of the whole: `bytes 7-9/10`, `bytes */10`.
fn content_range(response: &reqwest::Response) -> Option<(&str, &str)> {
    let text = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    text.trim().strip_prefix("bytes")?.trim_start().split_once('/')
}

fn continues_at(response: &reqwest::Response) -> Option<u64> {
    content_range(response)?.0.split_once('-')?.0.trim().parse().ok()
}

fn total_of(response: &reqwest::Response) -> Option<u64> {
    content_range(response)?.1.trim().parse().ok()
}
