//! From a project or a run specification to one run, with everything decided: the
//! command, the model, the workload, the limits, where the result goes.

use super::BackendProfile;
use super::build::Build;
use super::launch::fill;
use super::model::{self, Caches, ModelError};
use super::provision::{self, Provisioned};
use super::spec::{Claims, DEFAULT_LOG_BYTES, ModelSource, RunSpec, Switch};
use crate::bench::workload::Workload;
use crate::cli::BackendChoice;
use crate::client::Endpoint;
use crate::config::{Project, nearest};
use crate::course::Context;
use crate::error::RunError;
use crate::model::{Finding, Localized, Location, RepoPath};
use crate::rules;
use crate::term::Phase;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tokens of context per slot of a server that we start.
const CONTEXT: u32 = 2048;

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
    pub(crate) result: PathBuf,
    pub(crate) log_max_bytes: u64,
    pub(crate) ready_timeout: Duration,
    pub(crate) probe_timeout: Duration,
    pub(crate) stop_grace: Duration,
}

impl Plan {
    /// Where the record of a failure goes: `<stem>.failure.json` beside the result.
    pub(crate) fn failure_path(&self) -> PathBuf {
        self.result.with_extension("failure.json")
    }
}

/// Where the server comes from.
#[derive(Debug, Clone)]
pub(crate) enum Server {
    /// We start it.
    Start {
        /// Program and arguments, `{port}` still open.
        argv: Vec<String>,
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

/// The model of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    /// What the user or the profile named.
    pub(crate) name: String,
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

/// One side of a project: the candidate, or the baseline it is compared with.
#[derive(Debug, Clone)]
struct Arm {
    role: Role,
    strategy: String,
    features: Vec<String>,
    concurrency: u32,
    cache_policy: String,
    model: String,
    result: PathBuf,
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

/// Plans the runs of one project: its baseline first, where it has one, then itself.
pub(crate) fn of_project(
    ctx: &Context,
    project: &Project,
    named: &Named,
    choice: &BackendChoice,
    phase: &Phase,
) -> Vec<Planned> {
    let minimum = ctx.settings.conclude.min_scheduler_concurrency;
    if project.id == 70 && project.concurrency < minimum {
        let at = Location::file(ctx.repo_path(&ctx.results_dir().join(&project.result)));
        return vec![Err(Finding::new(&rules::smoke::CONCURRENCY_TOO_LOW, at)
            .arg("project", project.id)
            .arg("needed", minimum)
            .arg("given", project.concurrency))];
    }
    arms(ctx, project, named, choice)
        .into_iter()
        .map(|arm| of_arm(ctx, project, arm, named, choice.offline, phase))
        .collect()
}

fn arms(ctx: &Context, project: &Project, named: &Named, choice: &BackendChoice) -> Vec<Arm> {
    let smoke = &ctx.settings.smoke;
    let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    let model = choice.model.clone().unwrap_or_else(|| smoke.model.clone());
    let quantized = choice.quantized_model.clone().unwrap_or_else(|| smoke.quantized_model.clone());
    let offered = |features: &[String]| match named {
        Named::Profile(profile) => features.iter().all(|feature| profile.features.contains_key(feature)),
        // The settings of somebody else's server are not ours to switch.
        Named::Url(_) => false,
    };
    let candidate = Arm {
        role: Role::Candidate,
        strategy: project.strategy.clone(),
        features: project.features.clone(),
        concurrency: project.concurrency,
        cache_policy: project.cache_policy.clone(),
        model: if project.id == 67 { or(&quantized, &model) } else { model.clone() },
        result: ctx.results_dir().join(&project.result),
    };
    let Some(other) = project.baseline.as_ref().filter(|_| offered(&project.features)) else { return vec![candidate] };
    let needs_second_model = project.id == 67 && quantized.is_empty();
    if needs_second_model {
        return vec![candidate];
    }
    let baseline = Arm {
        role: Role::Baseline,
        strategy: or(&other.strategy, &project.strategy),
        features: if other.features.is_empty() { project.features.clone() } else { other.features.clone() },
        concurrency: if other.concurrency == 0 { project.concurrency } else { other.concurrency },
        cache_policy: or(&other.cache_policy, &project.cache_policy),
        model,
        result: candidate.result.with_extension("baseline.json"),
    };
    vec![baseline, candidate]
}

fn of_arm(ctx: &Context, project: &Project, arm: Arm, named: &Named, offline: bool, phase: &Phase) -> Planned {
    let at = Location::file(ctx.repo_path(&arm.result));
    let workload_path = RepoPath::new(project.workload.clone());
    let workload = read_workload(&ctx.at_root(&project.workload), &workload_path, project.max_tokens)?;
    let key = api_key(&ctx.settings.smoke.api_key_env, &at)?;
    let mut features = arm.features.clone();
    let mut notes = Vec::new();
    let (profile, server, model, served_model) = match named {
        Named::Url(base_url) => {
            features.clear();
            (
                external_profile(&ctx.settings.backend),
                Server::External { base_url: base_url.clone() },
                Model::default(),
                arm.model.clone(),
            )
        }
        Named::Profile(profile) => {
            let absent: Vec<String> =
                features.extract_if(.., |feature| !profile.features.contains_key(feature)).collect();
            if !absent.is_empty() {
                notes.push(
                    Finding::new(&rules::smoke::FEATURE_NOT_OFFERED, at.clone())
                        .arg("backend", &profile.name)
                        .arg("features", absent.join(", ")),
                );
            }
            let slots = if project.parallel == 0 { arm.concurrency } else { project.parallel }.max(1);
            let wish = Wish {
                model: &arm.model,
                base: &ctx.cwd,
                slots,
                limited: project.parallel > 0,
                context: CONTEXT,
                features: &features,
                args: &[],
                offline,
            };
            start_of(profile, &wish, &at, phase)?
        }
    };
    Ok(Plan {
        project: Some(project.clone()),
        role: arm.role,
        strategy: arm.strategy,
        claims: claims(&features),
        features,
        notes,
        ready_timeout: seconds(profile.ready_timeout_s),
        probe_timeout: seconds(profile.ready_timeout_s),
        stop_grace: Duration::from_secs(10),
        profile,
        server,
        model,
        served_model,
        key,
        workload_path,
        workload,
        requests: project.requests,
        concurrency: arm.concurrency,
        warmup: project.warmup,
        max_tokens: project.max_tokens,
        cache_policy: arm.cache_policy,
        result: arm.result,
        log_max_bytes: DEFAULT_LOG_BYTES,
    })
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

type Start = (BackendProfile, Server, Model, String);

/// What a run wants of a server that a profile describes.
struct Wish<'a> {
    /// A folder, a file, or an id; empty: the backend's own.
    model: &'a str,
    /// What a path of it is relative to.
    base: &'a Path,
    /// Requests that are worked on at a time.
    slots: u32,
    /// The limit was stated: a server that does not limit by itself is told to.
    limited: bool,
    /// Tokens of context per slot.
    context: u32,
    features: &'a [String],
    /// Further arguments.
    args: &'a [String],
    offline: bool,
}

/// The command of a profile.
fn start_of(profile: &BackendProfile, wish: &Wish<'_>, at: &Location, phase: &Phase) -> Result<Start, Finding> {
    let missing = |cause: Localized| {
        Finding::new(&rules::smoke::BACKEND_MISSING, at.clone())
            .arg("backend", &profile.name)
            .arg("install", &profile.install)
            .arg("cause", cause)
    };
    let mut values: BTreeMap<&str, String> = BTreeMap::new();
    let mut model = Model { name: wish.model.to_owned(), ..Model::default() };
    let mut version = None;
    if profile.provision == "cpu" {
        let found = provisioned(wish.offline, phase).map_err(|(cause, help)| missing(cause).help(help))?;
        values.insert("python", found.python.display().to_string());
        values.insert("launcher", found.launcher.display().to_string());
        version = Some(found.version.clone());
        if wish.model.is_empty() {
            model.name = found.model.display().to_string();
            model.bytes = std::fs::metadata(&found.model).ok().map(|data| data.len());
            model.sha256 = Some(found.model_sha256);
        }
    }
    if model.name.is_empty() && profile.args.iter().any(|arg| arg.contains("{model}")) {
        return Err(Finding::new(&rules::smoke::NO_MODEL, at.clone()).arg("backend", &profile.name));
    }
    resolve_model(&mut model, ModelSource::Auto, wish.base, wish.offline, at)?;
    values.insert("model", model.name.clone());
    let served_model = match profile.served_model.as_str() {
        "" => short_name(&model.name),
        template => fill(template, &values),
    };
    values.insert("served_model", served_model.clone());
    values.insert("host", "127.0.0.1".to_owned());
    values.insert("parallel", wish.slots.to_string());
    values.insert("context", (wish.context * wish.slots).to_string());
    values.insert("threads", threads().to_string());
    let mut argv = vec![profile.program.clone()];
    argv.extend(profile.args.iter().cloned());
    if wish.limited {
        argv.extend(profile.slot_args.iter().cloned());
    }
    argv.extend(profile.extra_args.iter().cloned());
    argv.extend(wish.features.iter().filter_map(|feature| profile.features.get(feature)).flatten().cloned());
    argv.extend(wish.args.iter().cloned());
    let argv: Vec<String> = argv.iter().map(|template| fill(template, &values)).collect();
    let env = profile.env.iter().map(|(name, template)| (name.clone(), fill(template, &values))).collect();
    let program = argv.first().map(String::as_str).unwrap_or_default();
    let program = profile.locate(program).map_err(missing)?;
    let mut build = Build::of(profile, &program);
    build.version = version.or(build.version);
    let server = Server::Start { argv, env, port: None, build };
    Ok((profile.clone(), server, model, served_model))
}

/// The CPU backend, installed when it is missing and that is allowed. The error is a
/// cause and the advice for it.
fn provisioned(offline: bool, phase: &Phase) -> Result<Provisioned, (Localized, Localized)> {
    if let Some(found) = provision::find() {
        return Ok(found);
    }
    if offline {
        return Err((
            Localized::both(
                "it is not installed, and --offline forbids to install it",
                "尚未安装，而 --offline 不允许安装",
            ),
            Localized::both(
                "run `verify backend install cpu` once, with a network",
                "请在有网络时运行一次 `verify backend install cpu`",
            ),
        ));
    }
    provision::install(&|line| phase.say(line)).map_err(|error| {
        let (en, zh) = error.advice();
        (error.to_string().into(), Localized::both(en, zh))
    })
}

/// What an experiment wants of the server of one arm.
#[derive(Debug, Clone)]
pub(crate) struct ArmWish {
    pub(crate) strategy: String,
    pub(crate) role: Role,
    /// A folder, a file, or an id, relative to the root; empty: the backend's own.
    pub(crate) model: String,
    pub(crate) features: Vec<String>,
    pub(crate) args: Vec<String>,
    /// Requests that are worked on at a time.
    pub(crate) slots: u32,
    /// The limit was stated.
    pub(crate) limited: bool,
    /// Tokens of context per slot.
    pub(crate) context: u32,
    pub(crate) concurrency: u32,
    pub(crate) max_tokens: u32,
    pub(crate) cache_policy: String,
    pub(crate) timeout: Duration,
    pub(crate) api_key_env: String,
    pub(crate) result: PathBuf,
    pub(crate) workload_path: RepoPath,
    pub(crate) workload: Workload,
}

/// Plans the server of one arm of an experiment.
pub(crate) fn of_experiment(ctx: &Context, named: &Named, wish: ArmWish, offline: bool, phase: &Phase) -> Planned {
    let at = Location::file(ctx.repo_path(&wish.result));
    let key = api_key(&wish.api_key_env, &at)?;
    let (profile, server, model, served_model) = match named {
        Named::Url(base_url) => (
            external_profile(&ctx.settings.backend),
            Server::External { base_url: base_url.clone() },
            Model::default(),
            wish.model.clone(),
        ),
        Named::Profile(profile) => {
            let server = Wish {
                model: &wish.model,
                base: &ctx.root,
                slots: wish.slots.max(1),
                limited: wish.limited,
                context: wish.context,
                features: &wish.features,
                args: &wish.args,
                offline,
            };
            start_of(profile, &server, &at, phase)?
        }
    };
    Ok(Plan {
        project: None,
        role: wish.role,
        strategy: wish.strategy,
        claims: claims(&wish.features),
        features: wish.features,
        notes: Vec::new(),
        ready_timeout: seconds(profile.ready_timeout_s),
        probe_timeout: wish.timeout,
        stop_grace: Duration::from_secs(10),
        profile,
        server,
        model,
        served_model,
        key,
        workload_path: wish.workload_path,
        requests: 0,
        workload: wish.workload,
        concurrency: wish.concurrency,
        warmup: 0,
        max_tokens: wish.max_tokens,
        cache_policy: wish.cache_policy,
        result: wish.result,
        log_max_bytes: DEFAULT_LOG_BYTES,
    })
}

/// Plans an ad-hoc run.
pub(crate) fn of_spec(ctx: &Context, spec: &RunSpec) -> Planned {
    let result = ctx.at_root(&spec.result);
    let at = Location::file(ctx.repo_path(&result));
    let backend = &spec.backend;
    let workload_path = RepoPath::new(spec.workload.clone());
    let workload = read_workload(&ctx.at_root(&spec.workload), &workload_path, spec.max_tokens)?;
    let key = api_key(&backend.api_key_env, &at)?;
    let mut model = Model { name: backend.model.clone(), ..Model::default() };
    resolve_model(&mut model, backend.model_source, &ctx.root, false, &at)?;
    let server = if backend.base_url.is_empty() {
        let values = BTreeMap::from([
            ("model", model.name.clone()),
            ("served_model", backend.served_model.clone()),
            ("host", "127.0.0.1".to_owned()),
        ]);
        let argv = backend.command.iter().map(|template| fill(template, &values)).collect();
        // What an ad-hoc command starts is not looked into: it may be a shell around anything.
        Server::Start { argv, env: backend.env.clone(), port: backend.port, build: Build::default() }
    } else {
        Server::External { base_url: backend.base_url.clone() }
    };
    let profile = external_profile(&ctx.settings.backend);
    Ok(Plan {
        project: None,
        role: Role::Candidate,
        strategy: "ad-hoc".to_owned(),
        features: Vec::new(),
        notes: Vec::new(),
        profile,
        server,
        model,
        served_model: backend.served_model.clone(),
        key,
        workload_path,
        workload,
        requests: spec.requests,
        concurrency: spec.concurrency,
        warmup: spec.warmup,
        max_tokens: spec.max_tokens,
        cache_policy: "default".to_owned(),
        claims: spec.claims,
        result,
        log_max_bytes: spec.log_max_bytes,
        ready_timeout: seconds(backend.ready_timeout_s),
        probe_timeout: seconds(backend.probe_timeout_s),
        stop_grace: seconds(backend.stop_grace_s),
    })
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

/// Finds the model before a server is started on it: a path, then the caches of the
/// hubs. An id that is in neither is left to the server, unless that is forbidden.
fn resolve_model(
    model: &mut Model,
    source: ModelSource,
    base: &Path,
    offline: bool,
    at: &Location,
) -> Result<(), Finding> {
    if model.name.is_empty() || model.sha256.is_some() {
        return Ok(());
    }
    let path = base.join(&model.name);
    let looks_like_path = model.name.starts_with(['.', '/', '~']) || model.name.ends_with(".gguf");
    let caches = Caches::of(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from));
    let local = || model::local(&path);
    let hub = || {
        model::hugging_face(&model.name, &caches).or_else(|first| match first {
            ModelError::Missing { .. } => model::model_scope(&model.name, &caches),
            incomplete => Err(incomplete),
        })
    };
    let found = match source {
        ModelSource::Local => local(),
        ModelSource::Huggingface => model::hugging_face(&model.name, &caches),
        ModelSource::Modelscope => model::model_scope(&model.name, &caches),
        ModelSource::Auto if path.exists() || looks_like_path => local(),
        ModelSource::Auto => hub(),
    };
    match found {
        Ok(found) => {
            model.name = found.path.display().to_string();
            model.sha256 = Some(found.digest);
            model.bytes = Some(found.weight_bytes);
            model.revision = found.revision;
            Ok(())
        }
        Err(ModelError::Missing { .. }) if source != ModelSource::Local && !looks_like_path && !offline => Ok(()),
        Err(ModelError::Missing { name, looked_at }) => {
            let places: Vec<String> = looked_at.iter().map(|place| place.display().to_string()).collect();
            let places = places.join(", ");
            Err(Finding::new(&rules::smoke::MODEL_MISSING, at.clone()).arg("model", name).help(Localized::both(
                format!("looked at {places}; give an existing folder or file with --model (or `smoke.model`)"),
                format!("查找过 {places}；请用 --model（或 `smoke.model`）给出存在的文件夹或文件"),
            )))
        }
        Err(error @ ModelError::Incomplete { .. }) => {
            Err(Finding::new(&rules::smoke::MODEL_INCOMPLETE, at.clone()).arg("cause", error.to_string()))
        }
    }
}

/// The last part of a path or id, without `.gguf`.
fn short_name(model: &str) -> String {
    let name = model.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or(model);
    name.strip_suffix(".gguf").unwrap_or(name).to_owned()
}

/// Half of the cores: decode threads of llama.cpp spin, and a client needs a core too.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::from_secs(60))
}
