//! The folder of an experiment. Everything is written as it ends, each file whole or not
//! at all, so that an interruption loses nothing and a later run can go on.
//!
//! ```text
//! manifest.json               what was fixed
//! passes/NNN-ARM-REPEAT.json  a pass with the stamps of its tokens
//! starts/NNN-ARM.json         a start of a server
//! answers/ARM.json            answers of the probes
//! extras/ARM.json             what the server said of itself, the cost of an invalidation
//! logs/                       logs of the servers
//! experiment.json             the record: everything a report needs
//! ARM.json                    a result file per arm
//! ```

use super::record::{Manifest, PassPhase, PassRecord, StartRecord};
use crate::client::RequestTrace;
use crate::fsx;
use crate::quality::Answers;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// A pass with the stamps of its tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PassFile {
    /// The pass.
    pub pass: PassRecord,
    /// Its requests, token by token, in the order of the workload.
    pub traces: Vec<TraceRecord>,
}

/// One request, token by token. Milliseconds from the beginning of the pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceRecord {
    /// Name in the workload.
    pub id: String,
    /// Sent.
    pub sent_ms: f64,
    /// Every token-bearing event.
    pub events_ms: Vec<f64>,
    /// `[DONE]`, or the end of the body.
    pub end_ms: f64,
    /// The visible text.
    pub text: String,
    /// What was said when it failed.
    pub fault: Option<String>,
}

impl TraceRecord {
    /// Of a trace.
    pub fn of(trace: &RequestTrace) -> Self {
        let ms = |at: std::time::Duration| at.as_secs_f64() * 1000.0;
        TraceRecord {
            id: trace.id.clone(),
            sent_ms: ms(trace.sent),
            events_ms: trace.chunks.iter().map(|chunk| ms(chunk.at)).collect(),
            end_ms: ms(trace.end),
            text: trace.text.clone(),
            fault: trace.fault.as_ref().map(|fault| format!("{}: {}", fault.name(), fault.message)),
        }
    }
}

/// What else is known of an arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extras {
    /// The name that requests used.
    pub served_model: String,
    /// Precision of the weights as the server states it.
    pub precision: Option<String>,
    /// TTFT of requests that hit the cache, ms.
    pub hit_ttft_ms: Vec<f64>,
    /// TTFT of the same requests behind a changed prefix, ms.
    pub miss_ttft_ms: Vec<f64>,
}

/// The folder.
#[derive(Debug, Clone)]
pub struct Store {
    /// Where it is.
    pub folder: PathBuf,
    /// Passes that have ended, in the order in which they ran.
    pub passes: Vec<PassRecord>,
    /// Starts of servers, in order.
    pub starts: Vec<StartRecord>,
}

impl Store {
    /// Whether an experiment lies in a folder.
    pub fn exists(folder: &Path) -> bool {
        folder.join("manifest.json").exists()
    }

    /// Begins a new one.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn create(folder: &Path, manifest: &Manifest) -> io::Result<Self> {
        write(&folder.join("manifest.json"), manifest)?;
        Ok(Store { folder: folder.to_path_buf(), passes: Vec::new(), starts: Vec::new() })
    }

    /// The manifest that lies in a folder.
    ///
    /// # Errors
    /// It cannot be read or is none.
    pub fn manifest(folder: &Path) -> io::Result<Manifest> {
        read(&folder.join("manifest.json"))
    }

    /// Opens what an earlier run left.
    ///
    /// # Errors
    /// A file of it cannot be read.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let mut passes: Vec<PassRecord> =
            all::<PassFile>(&folder.join("passes"))?.into_iter().map(|file| file.pass).collect();
        let mut starts: Vec<StartRecord> = all(&folder.join("starts"))?;
        passes.sort_by_key(|pass| pass.index);
        starts.sort_by_key(|start| start.start);
        Ok(Store { folder: folder.to_path_buf(), passes, starts })
    }

    /// Whether a measured pass has ended.
    pub fn has(&self, arm: &str, repeat: u32) -> bool {
        self.passes.iter().any(|pass| pass.arm == arm && pass.repeat == repeat && pass.phase == PassPhase::Measured)
    }

    /// Number of the next pass.
    pub fn next_index(&self) -> u32 {
        self.passes.iter().map(|pass| pass.index).max().unwrap_or(0) + 1
    }

    /// Number of the next start.
    pub fn next_start(&self) -> u32 {
        self.starts.iter().map(|start| start.start).max().unwrap_or(0) + 1
    }

    /// Keeps a pass.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_pass(&mut self, pass: PassRecord, traces: &[RequestTrace]) -> io::Result<()> {
        let repeat = match pass.phase {
            PassPhase::Warmup => "warmup".to_owned(),
            PassPhase::Measured => pass.repeat.to_string(),
        };
        let path = self.folder.join("passes").join(format!("{:03}-{}-{repeat}.json", pass.index, pass.arm));
        write(&path, &PassFile { pass: pass.clone(), traces: traces.iter().map(TraceRecord::of).collect() })?;
        self.passes.push(pass);
        Ok(())
    }

    /// Keeps a start.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_start(&mut self, start: StartRecord) -> io::Result<()> {
        write(&self.folder.join("starts").join(format!("{:03}-{}.json", start.start, start.arm)), &start)?;
        self.starts.push(start);
        Ok(())
    }

    /// Answers of an arm so far.
    pub fn answers(&self, arm: &str) -> Answers {
        read(&self.folder.join("answers").join(format!("{arm}.json"))).unwrap_or_default()
    }

    /// Keeps the answers of an arm.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn keep_answers(&self, arm: &str, answers: &Answers) -> io::Result<()> {
        write(&self.folder.join("answers").join(format!("{arm}.json")), answers)
    }

    /// What else is known of an arm.
    pub fn extras(&self, arm: &str) -> Extras {
        read(&self.folder.join("extras").join(format!("{arm}.json"))).unwrap_or_default()
    }

    /// Keeps what else is known of an arm.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_extras(&self, arm: &str, extras: &Extras) -> io::Result<()> {
        write(&self.folder.join("extras").join(format!("{arm}.json")), extras)
    }
}

/// Writes JSON, whole or not at all.
pub(super) fn write<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value).map_err(io::Error::other)?;
    text.push(b'\n');
    fsx::write_atomic(path, &text)
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let bytes = std::fs::read(path)?;
    serde_json::from_slice(&bytes).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

/// Every JSON file of a folder; none where there is no folder. What a kill left half
/// written has another name.
fn all<T: DeserializeOwned>(folder: &Path) -> io::Result<Vec<T>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files.iter().map(|path| read(path)).collect()
}
