//! From a project or a run specification to one run, with everything decided: the
//! command, the model, the workload, the limits, where the result goes.

use super::BackendProfile;
use super::build::Build;
use super::doctor;
use super::dtype::{self, Dtype};
use super::flags;
use super::launch::fill;
use super::model::{ModelSource, Origin};
use super::model_id::is_commit;
use super::provision::{self, Provisioned};
use super::remote_code::own_code;
use super::resolve::{self, Ask, Permission, Resolved};
use super::spec::{Claims, DEFAULT_LOG_BYTES, RunSpec, Switch};
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
        .map(|arm| of_arm(ctx, project, arm, named, &Wishes::of(ctx, choice), phase))
        .collect()
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

fn of_arm(ctx: &Context, project: &Project, arm: Arm, named: &Named, wishes: &Wishes, phase: &Phase) -> Planned {
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
                wishes,
            };
            start_of(ctx, profile, &wish, &at, phase, &mut notes)?
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
    wishes: &'a Wishes,
}

/// The command of a profile.
fn start_of(
    ctx: &Context,
    profile: &BackendProfile,
    wish: &Wish<'_>,
    at: &Location,
    phase: &Phase,
    notes: &mut Vec<Finding>,
) -> Result<Start, Finding> {
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
        let found = provisioned(wish.wishes.permission == Permission::Offline, phase)
            .map_err(|(cause, help)| missing(cause).help(help))?;
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
    let code = ctx.settings.smoke.trust_remote_code && !profile.remote_code_args.is_empty();
    let ask = Ask {
        name: wish.model,
        source: wish.wishes.source,
        base: wish.base,
        permission: wish.wishes.permission,
        server_knows: profile.own_model_names,
        with_code: code && resolve::is_pinned(wish.model),
    };
    resolve_model(&mut model, &ask, at, phase, ctx)?;
    let remote_code = remote_code(profile, &model, code, at, notes);
    model.dtype = dtype_of(profile, &model, &wish.wishes.dtype);
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
    values.insert("dtype", model.dtype.argument().to_owned());
    let filled = |templates: &[String]| templates.iter().map(|template| fill(template, &values)).collect::<Vec<_>>();
    let mut templates = vec![profile.program.clone()];
    templates.extend(profile.args.iter().cloned());
    if wish.limited {
        templates.extend(profile.slot_args.iter().cloned());
    }
    templates.extend(profile.extra_args.iter().cloned());
    templates.extend(wish.features.iter().filter_map(|feature| profile.features.get(feature)).flatten().cloned());
    templates.extend(wish.args.iter().cloned());
    templates.extend(remote_code);
    let argv = filled(&templates);
    let mut env: BTreeMap<String, String> =
        profile.env.iter().map(|(name, template)| (name.clone(), fill(template, &values))).collect();
    if model.origin.is_some() {
        // Everything is here: a server that looks around on the network only loses time.
        env.entry("HF_HUB_OFFLINE".to_owned()).or_insert_with(|| "1".to_owned());
    }
    let program = argv.first().map(String::as_str).unwrap_or_default();
    let program = profile.locate(program).map_err(missing)?;
    let mut build = Build::of(profile, &program);
    build.version = version.or(build.version);
    known_flags(ctx, profile, &program, wish.features, build.version.as_deref(), at)?;
    let listen = listen_of(profile, ctx.settings.smoke.socket, &filled);
    let server = Server::Start { argv, listen, env, port: None, build };
    Ok((profile.clone(), server, model, served_model))
}

/// Where a server of this profile may listen. Arguments that hold `{port}` themselves
/// leave nothing to choose.
fn listen_of(profile: &BackendProfile, socket: bool, filled: &dyn Fn(&[String]) -> Vec<String>) -> Listen {
    if profile.args.iter().chain(profile.env.values()).any(|text| text.contains("{port}")) {
        return Listen::default();
    }
    let socket_args = if socket { filled(&profile.socket_args) } else { Vec::new() };
    Listen { port: filled(&profile.port_args), socket: socket_args }
}

/// Compares the flags of a run with those that this version of the server knows.
fn known_flags(
    ctx: &Context,
    profile: &BackendProfile,
    program: &Path,
    features: &[String],
    version: Option<&str>,
    at: &Location,
) -> Result<(), Finding> {
    let Some(known) = flags::probe(profile, program, &|| ctx.cancel.is_set()) else { return Ok(()) };
    let switched = features.iter().filter_map(|feature| Some((feature.as_str(), profile.features.get(feature)?)));
    let parts = [("args", &profile.args), ("port_args", &profile.port_args)];
    for (part, arguments) in parts.into_iter().chain(switched) {
        let Some(flag) = known.unknown(arguments).first().copied() else { continue };
        let finding = Finding::new(&rules::smoke::FLAG_UNKNOWN, at.clone())
            .arg("backend", &profile.name)
            .arg("version", version.unwrap_or("?"))
            .arg("flag", flag)
            .arg("part", part);
        return Err(match known.nearest(flag) {
            None => finding,
            Some(nearest) => finding.help(Localized::both(
                format!("did you mean `{nearest}`? Change `{part}` of backend `{}` in verify.toml, or install another version", profile.name),
                format!("是不是 `{nearest}`？请在 verify.toml 中修改后端 `{}` 的 `{part}`，或换一个版本", profile.name),
            )),
        });
    }
    Ok(())
}

/// Arguments that let the server run code of the model: only where the settings say so
/// and nobody can change the code any more. Otherwise code is a thing to be told of.
fn remote_code(
    profile: &BackendProfile,
    model: &Model,
    allowed: bool,
    at: &Location,
    notes: &mut Vec<Finding>,
) -> Vec<String> {
    let files = match model.origin {
        Some(_) if !profile.remote_code_args.is_empty() => own_code(Path::new(&model.name)),
        _ => Vec::new(),
    };
    if files.is_empty() {
        return Vec::new();
    }
    let pinned = model.origin == Some(Origin::Local) || resolve::is_pinned(&model.asked);
    if allowed && pinned {
        return profile.remote_code_args.clone();
    }
    let finding = Finding::new(&rules::smoke::MODEL_CODE, at.clone()).arg("files", files.join(", "));
    notes.push(match (&model.revision, allowed) {
        (Some(commit), true) if is_commit(commit) => {
            let name = model.asked.split(['@', ':']).next().unwrap_or_default();
            finding.help(Localized::both(
                format!("`smoke.trust_remote_code` wants a pinned model: read the code, then give `{name}@{commit}`"),
                format!("`smoke.trust_remote_code` 要求固定版本：请先审阅代码，再使用 `{name}@{commit}`"),
            ))
        }
        _ => finding,
    });
    Vec::new()
}

/// The precision of a run. Devices are looked at only where the answer matters.
fn dtype_of(profile: &BackendProfile, model: &Model, requested: &str) -> Dtype {
    let matters = profile.args.iter().any(|argument| argument.contains("{dtype}"));
    let gpus = if matters { doctor::gpus().map(|(_, gpus)| gpus).unwrap_or_default() } else { Vec::new() };
    let devices =
        profile.env.get("CUDA_VISIBLE_DEVICES").cloned().or_else(|| std::env::var("CUDA_VISIBLE_DEVICES").ok());
    let of_model = dtype::of_model(Path::new(&model.name));
    let requested = if matters { requested } else { "auto" };
    dtype::choose(requested, of_model, &doctor::visible(gpus, devices.as_deref()))
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
pub(crate) fn of_experiment(
    ctx: &Context,
    named: &Named,
    wish: ArmWish,
    choice: &BackendChoice,
    phase: &Phase,
) -> Planned {
    let at = Location::file(ctx.repo_path(&wish.result));
    let key = api_key(&wish.api_key_env, &at)?;
    let mut notes = Vec::new();
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
                wishes: &Wishes::of(ctx, choice),
            };
            start_of(ctx, profile, &server, &at, phase, &mut notes)?
        }
    };
    Ok(Plan {
        project: None,
        role: wish.role,
        strategy: wish.strategy,
        claims: claims(&wish.features),
        features: wish.features,
        notes,
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
pub(crate) fn of_spec(ctx: &Context, spec: &RunSpec, choice: &BackendChoice, phase: &Phase) -> Planned {
    let result = ctx.at_root(&spec.result);
    let at = Location::file(ctx.repo_path(&result));
    let backend = &spec.backend;
    let workload_path = RepoPath::new(spec.workload.clone());
    let workload = read_workload(&ctx.at_root(&spec.workload), &workload_path, spec.max_tokens)?;
    let key = api_key(&backend.api_key_env, &at)?;
    let mut model = Model { name: backend.model.clone(), ..Model::default() };
    let ask = Ask {
        name: &backend.model,
        source: backend.model_source,
        base: &ctx.root,
        permission: Wishes::of(ctx, choice).permission,
        // The command is the user's own: what it makes of a name is not ours to know.
        server_knows: backend.model_source != ModelSource::Local,
        with_code: false,
    };
    resolve_model(&mut model, &ask, &at, phase, ctx)?;
    model.dtype = dtype::choose("auto", dtype::of_model(Path::new(&model.name)), &[]);
    let server = if backend.base_url.is_empty() {
        let values = BTreeMap::from([
            ("model", model.name.clone()),
            ("served_model", backend.served_model.clone()),
            ("host", "127.0.0.1".to_owned()),
        ]);
        let argv = backend.command.iter().map(|template| fill(template, &values)).collect();
        let listen = Listen::default();
        // What an ad-hoc command starts is not looked into: it may be a shell around anything.
        Server::Start { argv, listen, env: backend.env.clone(), port: backend.port, build: Build::default() }
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

/// Finds the model before a server is started on it.
fn resolve_model(model: &mut Model, ask: &Ask<'_>, at: &Location, phase: &Phase, ctx: &Context) -> Result<(), Finding> {
    model.asked = ask.name.to_owned();
    if model.name.is_empty() || model.sha256.is_some() {
        return Ok(());
    }
    if let Resolved::Here(found) = resolve::resolve(ask, at, phase, &ctx.cancel)? {
        model.name = found.path.display().to_string();
        model.origin = Some(found.origin);
        model.sha256 = Some(found.digest);
        model.bytes = Some(found.weight_bytes);
        model.revision = found.revision;
    }
    Ok(())
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
