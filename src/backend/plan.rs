//! From a project or a run specification to one run, with everything decided: the
//! command, the model, the workload, the limits, where the result goes.

mod ad_hoc;
mod experiment;
mod project;
mod start;

pub(crate) use ad_hoc::of_spec;
pub(crate) use experiment::{ArmWish, of_experiment};
pub(crate) use project::of_project;

use super::BackendProfile;
use super::build::Build;
use super::dtype::Dtype;
use super::model::{ModelSource, Origin};
use super::resolve::Permission;
use super::spec::{Claims, Switch};
use crate::bench::workload::Workload;
use crate::cli::BackendChoice;
use crate::client::Endpoint;
use crate::config::{Project, nearest};
use crate::course::Context;
use crate::error::RunError;
use crate::model::{Finding, Localized, Location, RepoPath};
use crate::quality::ProbeSet;
use crate::results::files::failure_record_of;
use crate::rules;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) project: Option<Project>,
    pub(crate) role: Role,
    pub(crate) strategy: String,
    /// Features of the backend that are switched on.
    pub(crate) features: Vec<String>,
    /// What is to be said beside the verdict.
    pub(crate) notes: Vec<Finding>,
    pub(crate) profile: BackendProfile,
    pub(crate) server: Server,
    pub(crate) model: Model,
    /// Name that requests use; empty: the only one listed.
    pub(crate) served_model: String,
    pub(crate) key: Option<String>,
    pub(crate) workload_path: RepoPath,
    pub(crate) workload: Workload,
    pub(crate) requests: u32,
    pub(crate) concurrency: u32,
    pub(crate) warmup: u32,
    pub(crate) max_tokens: u32,
    pub(crate) cache_policy: String,
    pub(crate) claims: Claims,
    /// What is asked after the measured requests, to see what the strategy does to answers.
    pub(crate) probes: Option<ProbeSet>,
    pub(crate) result: PathBuf,
    pub(crate) log_max_bytes: u64,
    pub(crate) ready_timeout: Duration,
    pub(crate) probe_timeout: Duration,
    pub(crate) stop_grace: Duration,
}

impl Plan {
    /// Where the record of a failure goes: `<stem>.failure.json` beside the result.
    pub(crate) fn failure_path(&self) -> PathBuf {
        failure_record_of(&self.result)
    }
}

/// Where the server comes from.
#[derive(Debug, Clone)]
pub(crate) enum Server {
    /// We start it.
    Start {
        /// Program and arguments, `{port}` or `{socket}` still open.
        argv: Vec<String>,
        /// Arguments that say where it listens, to choose from at the start.
        listen: Listen,
        /// Additional environment.
        env: BTreeMap<String, String>,
        /// A port that the user fixed.
        port: Option<u16>,
        /// Which build it is, as far as it is known without starting it.
        build: Build,
    },
    /// It runs already.
    External {
        /// Its address.
        base_url: String,
    },
}

/// How a server can be told where to listen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listen {
    /// Arguments for a port; `{port}` still open.
    pub(crate) port: Vec<String>,
    /// Arguments for a Unix socket, `{socket}` still open; empty: a port it is.
    pub(crate) socket: Vec<String>,
}

/// The model of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    /// What the server is given: what the user or the profile named, or where that is.
    pub(crate) name: String,
    /// What the user or the profile named.
    pub(crate) asked: String,
    /// Where it was found; none: it was left to the server.
    pub(crate) origin: Option<Origin>,
    /// Its precision, from the wish to what the server is asked for.
    pub(crate) dtype: Dtype,
    /// SHA-256 of the weights, or of what identifies them, where it is known.
    pub(crate) sha256: Option<String>,
    /// Commit or branch, when it came from a hub's cache.
    pub(crate) revision: Option<String>,
    /// Size of the weights, bytes.
    pub(crate) bytes: Option<u64>,
}

/// Everything before a run: either it can run, or a finding says why not.
pub(crate) type Planned = Result<Plan, Finding>;

/// The backend that was named, on the command line or in the settings.
#[derive(Debug, Clone)]
pub(crate) enum Named {
    Profile(Box<BackendProfile>),
    Url(String),
}

/// The backend of a run, if one was named.
///
/// # Errors
/// No backend has that name.
pub(crate) fn named_backend(ctx: &Context, choice: &BackendChoice) -> Result<Option<Named>, RunError> {
    let smoke = &ctx.settings.smoke;
    let name = match (&choice.backend, &choice.base_url) {
        (_, Some(url)) => return address(url).map(Some),
        (Some(name), None) => name,
        (None, None) if !smoke.base_url.is_empty() => return address(&smoke.base_url).map(Some),
        (None, None) if smoke.backend.is_empty() => return Ok(None),
        (None, None) => &smoke.backend,
    };
    let profiles = &ctx.settings.backend;
    match profiles.iter().find(|profile| profile.name == *name) {
        Some(profile) => Ok(Some(Named::Profile(Box::new(profile.clone())))),
        None => {
            let known: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
            let hint = match nearest(name, known.iter().copied()) {
                Some(meant) => Localized::both(format!("did you mean `{meant}`?"), format!("是不是想写 `{meant}`？")),
                None => {
                    let known = known.join(", ");
                    Localized::both(format!("known backends: {known}"), format!("已有后端：{known}"))
                }
            };
            Err(RunError::usage(
                Localized::both(format!("there is no backend `{name}`"), format!("没有后端 `{name}`")),
                hint,
            ))
        }
    }
}

fn address(url: &str) -> Result<Named, RunError> {
    Endpoint::new(url, None).map_err(|error| {
        RunError::usage(
            error.to_string(),
            Localized::both("give an address such as http://127.0.0.1:8000", "请给出形如 http://127.0.0.1:8000 的地址"),
        )
    })?;
    Ok(Named::Url(url.to_owned()))
}

/// Which side a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// What the candidate is compared with.
    Baseline,
    /// What is tried.
    Candidate,
}

impl Role {
    /// The word in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Baseline => "baseline",
            Role::Candidate => "candidate",
        }
    }
}

/// What a run may do and is asked for, from options and settings.
#[derive(Debug, Clone)]
struct Wishes {
    permission: Permission,
    source: ModelSource,
    dtype: String,
}

impl Wishes {
    fn of(ctx: &Context, choice: &BackendChoice) -> Self {
        let smoke = &ctx.settings.smoke;
        let download = choice.download || smoke.download;
        Wishes {
            permission: Permission::of(choice.offline, download, |name| std::env::var(name).ok()),
            source: choice.model_source.unwrap_or(smoke.model_source),
            dtype: choice.dtype.clone().unwrap_or_else(|| smoke.dtype.clone()),
        }
    }
}

/// What switched features claim; the server's counters have to bear it out.
fn claims(features: &[String]) -> Claims {
    let has = |name: &str| features.iter().any(|feature| feature == name);
    Claims {
        speculation: has("speculation").then_some(Switch::On),
        prefix_cache: match (has("prefix_cache_on"), has("prefix_cache_off")) {
            (true, _) => Some(Switch::On),
            (false, true) => Some(Switch::Off),
            (false, false) => None,
        },
    }
}

/// A server of which only the protocol is known: its counters may be of any known name.
fn external_profile(known: &[BackendProfile]) -> BackendProfile {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (meaning, name) in known.iter().flat_map(|profile| &profile.counters) {
        let all = names.entry(meaning.clone()).or_default();
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    let stating = known.iter().find(|profile| !profile.settings_metric.is_empty()).cloned().unwrap_or_default();
    BackendProfile {
        name: "server".to_owned(),
        counters: names.into_iter().map(|(meaning, all)| (meaning, all.join(","))).collect(),
        settings_metric: stating.settings_metric,
        settings_labels: stating.settings_labels,
        ..BackendProfile::default()
    }
}

pub(crate) fn read_workload(path: &Path, shown: &RepoPath, max_tokens: u32) -> Result<Workload, Finding> {
    Workload::read(path, max_tokens).map_err(|error| {
        Finding::new(&rules::smoke::WORKLOAD, Location::file(shown.clone())).arg("cause", error.to_string())
    })
}

fn api_key(variable: &str, at: &Location) -> Result<Option<String>, Finding> {
    if variable.is_empty() {
        return Ok(None);
    }
    match std::env::var(variable) {
        Ok(key) if !key.is_empty() => Ok(Some(key)),
        _ => Err(Finding::new(&rules::smoke::KEY_MISSING, at.clone()).arg("variable", variable)),
    }
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::from_secs(60))
}
