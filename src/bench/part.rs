//! What one of several generators of a load keeps for `verify merge`: a first line about
//! the load, the clock and the server, then one line for every request. Pure.

use super::calibrate::ClientError;
use super::plan::Targets;
use super::report::LoadStated;
use super::starvation::Starvation;
use super::trace_file;
use crate::client::{Api, RequestTrace};
use crate::model::Localized;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::BufRead;

/// How the format is called.
pub const SCHEMA_VERSION: &str = "verify-bench-part/v1";
/// Two clocks of computers go apart by no more than this, ms per ms.
const DRIFT: f64 = 100e-6;
/// Common time of the agreed start, ms: what came before it still has a time.
const START_MS: f64 = 3.6e6;

/// The same in seconds.
pub fn start_s() -> f64 {
    START_MS / 1000.0
}

/// The first line of a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA_VERSION`].
    pub schema_version: String,
    /// The program that wrote it.
    pub tool_version: String,
    /// Which part, from 1.
    pub part: usize,
    /// Of how many.
    pub of: usize,
    /// Where the generators agreed on the start, the same name in every part.
    pub meeting: Option<String>,
    /// The agreed start by wall clock, seconds since 1970.
    pub start_at_s: Option<f64>,
    /// The server.
    pub base_url: String,
    /// `model` of the requests.
    pub model: String,
    /// The route.
    pub endpoint: Api,
    /// The load of all generators together.
    pub load: LoadStated,
    /// SHA-256 of the prompt of every request, where there is one.
    pub prompt_sha256: Option<String>,
    /// Targets of goodput, ms.
    pub goodput_targets_ms: Option<Targets>,
    /// Share of requests that may fail.
    pub tolerate_failures: f64,
    /// Lines that follow.
    pub requests: usize,
    /// The signal that cut the load short.
    pub interrupted: Option<String>,
    /// The clock of this generator.
    pub clock: Clock,
    /// Seconds until the server was ready.
    pub ready_wait_s: Option<f64>,
    /// Counter differences over the window of this generator, by meaning.
    pub counted: BTreeMap<String, f64>,
    /// Largest number of waiting requests.
    pub waiting_peak: Option<f64>,
    /// This client's own error.
    pub client_error: Option<ClientError>,
    /// What it waited for a core.
    pub starvation: Option<Starvation>,
    /// Log-probabilities of the quality probes.
    pub logprobs: Vec<f64>,
}

/// How the times of a part relate to other clocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// The wall clock at time 0 of the part, seconds since 1970.
    pub wall_at_zero_s: f64,
    /// How far the wall clock was set during the load, ms.
    pub wall_step_ms: f64,
    /// Comparisons with the clock of part 1: before the load, and after it.
    pub readings: Vec<Comparison>,
}

/// One comparison with the clock of part 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// When, in the time of the part, ms.
    pub at_ms: f64,
    /// Time since the agreed start on the clock of part 1, minus time of the part, ms.
    pub shift_ms: f64,
    /// It is wrong by no more, ms.
    pub uncertainty_ms: f64,
}

impl Header {
    /// What the parts of one load have in common, member by member.
    pub fn identity(&self) -> Value {
        let mut members = match serde_json::to_value(&self.load) {
            Ok(Value::Object(members)) => members,
            _ => serde_json::Map::new(),
        };
        // Found out by each generator in its own warm-up.
        members.remove("continuous_usage");
        let own = serde_json::json!({
            "base_url": self.base_url.trim_end_matches('/').trim_end_matches("/v1"),
            "model": self.model,
            "endpoint": self.endpoint,
            "prompt_sha256": self.prompt_sha256,
            "goodput": self.goodput_targets_ms,
            "tolerate_failures": self.tolerate_failures,
        });
        if let Value::Object(own) = own {
            members.extend(own);
        }
        Value::Object(members)
    }

    /// How far the times of the part must be moved at one of them, to be those of all
    /// parts, ms; `None`: not known.
    fn shift_ms(&self, at_ms: f64) -> Option<f64> {
        let shift = match (&*self.clock.readings, self.start_at_s) {
            ([first, .., last], _) if last.at_ms > first.at_ms => {
                let slope = (last.shift_ms - first.shift_ms) / (last.at_ms - first.at_ms);
                first.shift_ms + slope * (at_ms - first.at_ms)
            }
            ([first, ..], _) => first.shift_ms,
            ([], Some(start)) => (self.clock.wall_at_zero_s - start) * 1000.0,
            ([], None) => return None,
        };
        Some(shift)
    }

    /// How far that may be wrong, ms; `None`: nobody knows. `stated`: what the wall clocks
    /// differ by at most, as the user says.
    pub fn uncertainty_ms(&self, length_ms: f64, stated: Option<f64>) -> Option<f64> {
        match &*self.clock.readings {
            // The clock that counts.
            [_] if self.part == 1 => Some(0.0),
            [only] => Some(only.uncertainty_ms + DRIFT * (length_ms - only.at_ms).max(0.0)),
            [first, .., last] => Some(first.uncertainty_ms.max(last.uncertainty_ms)),
            [] => stated.map(|stated| stated + self.clock.wall_step_ms.abs()),
        }
    }

    /// How fast the clock of part 1 runs beside this one, parts per million faster.
    pub fn drift_ppm(&self) -> Option<f64> {
        let [first, .., last] = &*self.clock.readings else { return None };
        let length = last.at_ms - first.at_ms;
        (length > 0.0).then(|| (last.shift_ms - first.shift_ms) / length * 1e6)
    }

    /// The wall clock of this generator at the agreed start, seconds since 1970.
    pub fn wall_at_start_s(&self) -> Option<f64> {
        Some(self.clock.wall_at_zero_s - self.shift_ms(0.0)? / 1000.0)
    }
}

/// A part as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What is known of it.
    pub header: Header,
    /// Its requests, at the times of all parts.
    pub traces: Vec<RequestTrace>,
    /// SHA-256 of the lines of its requests.
    pub digest: String,
}

/// The whole file of a part.
pub fn text(header: &Header, traces: &[RequestTrace]) -> String {
    // Plain data: serialization cannot fail.
    format!("{}\n{}", serde_json::to_string(header).unwrap_or_default(), trace_file::lines(traces))
}

/// Whether a first line is that of a part.
pub fn is_part(first_line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        schema_version: String,
    }
    let kind: Option<Kind> = serde_json::from_slice(first_line).ok();
    kind.is_some_and(|kind| kind.schema_version.starts_with("verify-bench-part/"))
}

/// Reads a part.
///
/// # Errors
/// What is wrong with it.
pub fn read(mut file: impl BufRead) -> Result<Part, Localized> {
    let mut line = String::new();
    let unreadable = |error: std::io::Error| Localized::from(error.to_string());
    file.read_line(&mut line).map_err(unreadable)?;
    let header: Header = serde_json::from_str(&line).map_err(|error| {
        Localized::both(format!("no {SCHEMA_VERSION}: {error}"), format!("不是 {SCHEMA_VERSION}：{error}"))
    })?;
    if header.schema_version != SCHEMA_VERSION {
        let version = &header.schema_version;
        return Err(Localized::both(format!("its version is {version}"), format!("版本是 {version}")));
    }
    let shift = |at_ms: f64| header.shift_ms(at_ms).unwrap_or(0.0) + START_MS;
    let mut digest = sha2::Sha256::default();
    let mut traces = Vec::new();
    for (number, line) in (2..).zip(file.lines()) {
        let line = line.map_err(unreadable)?;
        sha2::Digest::update(&mut digest, &line);
        traces.push(
            trace_file::read_line(&line, &shift).map_err(|fault| {
                Localized::both(format!("line {number}: {fault}"), format!("第 {number} 行：{fault}"))
            })?,
        );
    }
    if traces.len() != header.requests {
        let (got, wanted) = (traces.len(), header.requests);
        return Err(Localized::both(
            format!("it holds {got} of {wanted} requests: the file is cut"),
            format!("{wanted} 个请求中只有 {got} 个：文件不完整"),
        ));
    }
    let digest = sha2::Digest::finalize(digest).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Part { header, traces, digest })
}
