//! From a profile to the command that starts its server, with the model found and its
//! precision chosen.

use super::*;
use crate::backend::doctor;
use crate::backend::dtype;
use crate::backend::flags;
use crate::backend::launch::fill;
use crate::backend::model_id::is_commit;
use crate::backend::provision::{self, Provisioned};
use crate::backend::remote_code::own_code;
use crate::backend::resolve::{self, Ask, Resolved};
use crate::term::Phase;

pub(super) type Start = (BackendProfile, Server, Model, String);

/// What a run wants of a server that a profile describes.
pub(super) struct Wish<'a> {
    /// A folder, a file, or an id; empty: the backend's own.
    pub(super) model: &'a str,
    /// What a path of it is relative to.
    pub(super) base: &'a Path,
    /// Requests that are worked on at a time.
    pub(super) slots: u32,
    /// The limit was stated: a server that does not limit by itself is told to.
    pub(super) limited: bool,
    /// Tokens of context per slot.
    pub(super) context: u32,
    pub(super) features: &'a [String],
    /// Further arguments.
    pub(super) args: &'a [String],
    pub(super) wishes: &'a Wishes,
}

/// The command of a profile.
pub(super) fn start_of(
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

/// Finds the model before a server is started on it.
pub(super) fn resolve_model(
    model: &mut Model,
    ask: &Ask<'_>,
    at: &Location,
    phase: &Phase,
    ctx: &Context,
) -> Result<(), Finding> {
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
