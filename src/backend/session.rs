//! The life of one server: start, wait until it is ready, let a body use it, stop it.
//! Whatever happens in between, the stop happens.

use super::counters;
use super::diagnose::{diagnose, last_words};
use super::dtype;
use super::ending::explain;
use super::gpu_memory;
use super::launch;
use super::machine;
use super::memory;
use super::plan::{Listen, Plan, Server};
use super::ready::{self, ColdStart, Door, Identity, NotReady, Routes, Wait};
use super::socket::SocketFolder;
use crate::client::{Asked, Endpoint, Run};
use crate::course::Context;
use crate::model::{Finding, Lang, Localized, Location};
use crate::process::{Guarded, LaunchSpec, Redactor, StopKind, Stopped, clean_log, proc_tree};
use crate::rules;
use crate::term::Phase;
use std::cell::RefCell;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often memory is read while requests run.
pub(crate) const MEMORY_INTERVAL: Duration = Duration::from_millis(250);
/// How often gauges are read where nothing but a gauge tells of a queue.
const GAUGE_INTERVAL: Duration = Duration::from_millis(50);
/// How often they are read where counters tell of the queue as well: looking costs the
/// server time.
const SLOW_GAUGE_INTERVAL: Duration = Duration::from_millis(250);
/// How often a wait for a server says what it is waiting for.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long a server may take to end after its requests failed, for its end to be the cause.
const END_AFTER_FAILURE: Duration = Duration::from_millis(300);
/// Bytes at the end of the log in which its last line is looked for.
const LAST_LINE: u64 = 4 << 10;
/// Bytes of the log that are searched for a cause.
const LOG_TO_SEARCH: u64 = 8 << 20;

/// Why a run is no measurement.
pub(crate) type Fault = Box<Finding>;

/// What is known of a server from its start to its stop.
#[derive(Debug, Default)]
pub(crate) struct Life {
    pub(crate) argv: Vec<String>,
    pub(crate) base_url: String,
    /// Where it listens, when we started it.
    pub(crate) door: Option<Door>,
    /// The precision that it reported.
    pub(crate) reported_dtype: Option<String>,
    pub(crate) cold: ColdStart,
    pub(crate) identity: Identity,
    pub(crate) stopped: Option<Stopped>,
    /// What is left after the stop.
    pub(crate) after: Option<Aftermath>,
    pub(crate) log: Option<PathBuf>,
    /// Why it is no measurement.
    pub(crate) fault: Option<Finding>,
    /// The end of the log, when it failed.
    pub(crate) log_tail: String,
}

/// What is found where a server was, once it was stopped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aftermath {
    /// Nobody listens where it listened.
    pub(crate) port_free: bool,
    /// GPU memory that its processes still hold; `None` without NVML.
    pub(crate) gpu_memory: Option<gpu_memory::Held>,
}

/// A server that is ready.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) plan: &'a Plan,
    /// The process, when it is ours.
    pub(crate) server: Option<&'a Guarded>,
    pub(crate) endpoint: Endpoint,
    pub(crate) client: reqwest::Client,
    /// The name that requests use.
    pub(crate) model: String,
    /// When the server was started.
    pub(crate) spawned: Instant,
    /// Its entry in the server's list of models.
    pub(crate) entry: serde_json::Value,
    pub(crate) phase: &'a Phase,
}

impl Session<'_> {
    /// A series of requests whose times count from now.
    pub(crate) fn run(&self) -> Run {
        Run {
            endpoint: Arc::new(self.endpoint.clone()),
            model: self.model.as_str().into(),
            epoch: Instant::now(),
            timeout: self.plan.probe_timeout,
            asked: Asked::default(),
        }
    }

    /// A finding about this run, at its result file.
    pub(crate) fn finding(&self, rule: &'static rules::Rule) -> Finding {
        finding(self.ctx, self.plan, rule)
    }

    /// The server's counters now; empty where it has none.
    pub(crate) async fn counters(&self) -> counters::Page {
        if self.plan.profile.metrics.is_empty() {
            return counters::Page::default();
        }
        match ready::get(&self.client, &self.endpoint, &self.plan.profile.metrics).await {
            Ok((200, page)) => counters::read(&self.plan.profile, &page),
            _ => counters::Page::default(),
        }
    }

    /// Reads the memory of the server's process tree until it is dropped. Never ready.
    pub(crate) async fn watch_memory(&self, watch: &mut memory::Watch) {
        let Some(guardian) = self.server.and_then(Guarded::guardian_pid) else { return std::future::pending().await };
        let began = Instant::now();
        loop {
            let at_ms = began.elapsed().as_secs_f64() * 1000.0;
            // The kernel walks the page tables for a reading; the answers must not wait for it.
            if let Ok(seen) = tokio::task::spawn_blocking(move || memory::read_tree(guardian)).await {
                watch.add(at_ms, seen);
            }
            tokio::time::sleep(MEMORY_INTERVAL).await;
        }
    }

    /// Samples the gauges of running and waiting requests until it is dropped. Never ready.
    pub(crate) async fn watch_gauges(&self, peaks: &mut counters::Counters) {
        let counters = &self.plan.profile.counters;
        if !counters.contains_key("waiting") {
            return std::future::pending().await;
        }
        let interval = if counters.contains_key("queue_seconds") { SLOW_GAUGE_INTERVAL } else { GAUGE_INTERVAL };
        loop {
            counters::raise_peaks(peaks, &self.counters().await.counters);
            tokio::time::sleep(interval).await;
        }
    }
}

/// A start that may be tried once more on another port.
enum Attempt {
    Done,
    PortTaken,
}

/// Starts the server of a plan (or finds the one that runs already), waits until it is
/// ready, lets `body` use it, and stops it. The fault of any step is in the result; so
/// are an interrupt and the end of the server while the body runs, which drop the body.
pub(crate) async fn with_server(
    ctx: &Context,
    plan: &Plan,
    run_id: &str,
    phase: &Phase,
    mut body: impl AsyncFnMut(&Session<'_>) -> Result<(), Fault>,
) -> Life {
    let mut life = Life::default();
    match &plan.server {
        Server::External { base_url } => {
            base_url.clone_into(&mut life.base_url);
            let using = use_server(ctx, plan, None, None, Instant::now(), &mut life, phase, &mut body);
            let fault = unless_interrupted(ctx, plan, using).await;
            life.fault = fault.map(|fault| *fault);
        }
        Server::Start { port, .. } => {
            let attempt = start_and_use(ctx, plan, run_id, &mut life, phase, &mut body).await;
            if matches!(attempt, Attempt::PortTaken) && port.is_none() {
                life = Life::default();
                start_and_use(ctx, plan, &format!("{run_id}-2"), &mut life, phase, &mut body).await;
            }
        }
    }
    life
}

/// A finding about this run, at its result file.
fn finding(ctx: &Context, plan: &Plan, rule: &'static rules::Rule) -> Finding {
    Finding::new(rule, Location::file(ctx.repo_path(&plan.result))).arg("backend", &plan.profile.name)
}

async fn start_and_use(
    ctx: &Context,
    plan: &Plan,
    run_id: &str,
    life: &mut Life,
    phase: &Phase,
    body: &mut impl AsyncFnMut(&Session<'_>) -> Result<(), Fault>,
) -> Attempt {
    let Server::Start { argv, listen, env, port: fixed, .. } = &plan.server else { return Attempt::Done };
    let wants_socket = argv.iter().chain(env.values()).any(|text| text.contains("{socket}"));
    // The folder of the socket lives until the server is gone.
    let (door, arguments, _folder) = match choose_door(listen, *fixed, wants_socket) {
        Ok(chosen) => chosen,
        Err(error) => {
            life.fault = Some(finding(ctx, plan, &rules::smoke::NOT_STARTED).arg("cause", error.to_string()));
            return Attempt::Done;
        }
    };
    if let (Some(port), Some(owners)) = (fixed, door.listeners())
        && launch::port_in_use(*port)
    {
        life.fault = Some(door_finding(ctx, plan, &door, &owners));
        return Attempt::Done;
    }
    let log = log_path(plan, run_id);
    let argv: Vec<String> = argv.iter().chain(arguments).cloned().collect();
    let spec = launch_spec(ctx, plan, &argv, env, &door, &log);
    life.argv.clone_from(&spec.argv);
    life.base_url = door.base_url();
    life.door = Some(door.clone());
    life.log = Some(log.clone());
    phase.say(&format!("starting {}", plan.profile.name));
    let oom_before = machine::oom_kills();
    let spawned = Instant::now();
    let server = match Guarded::start(&spec).await {
        Ok(server) => server,
        Err(error) => {
            let program = life.argv.first().map(String::as_str).unwrap_or_default();
            let (cause, help) = crate::process::explain(&error);
            let named = |lang| format!("`{program}`: {}", cause.get(lang));
            let cause = Localized::both(named(Lang::En), named(Lang::Zh));
            let fault = finding(ctx, plan, &rules::smoke::NOT_STARTED).arg("cause", cause);
            life.fault = Some(help.into_iter().fold(fault, Finding::help));
            return Attempt::Done;
        }
    };
    let using = use_server(ctx, plan, Some(&server), Some(&door), spawned, life, phase, body);
    let fault = unless_interrupted(ctx, plan, using).await;
    phase.say("stopping");
    let tree = server.guardian_pid().map(proc_tree::descendants).unwrap_or_default();
    let stopped = server.stop(plan.stop_grace, ctx.cancel.wait(2)).await;
    life.stopped = Some(stopped);
    let after = Aftermath { port_free: door.is_free(), gpu_memory: gpu_memory::left_by(&tree) };
    let text = read_log(&log);
    life.reported_dtype = dtype::reported(&life.identity.entry, &text);
    let mut attempt = Attempt::Done;
    life.fault = fault.map(|fault| {
        let diagnosis = diagnose(&text);
        if diagnosis.as_ref().is_some_and(|found| found.signature.id == "port-in-use") {
            attempt = Attempt::PortTaken;
        }
        life.log_tail = tail(&text);
        let oom_kills = machine::oom_kills().zip(oom_before).map(|(now, before)| now.saturating_sub(before));
        explain(ctx, *fault, stopped.exit, diagnosis, &text, &log, oom_kills)
    });
    if life.fault.is_none() {
        life.fault = leftover(ctx, plan, stopped.kind, &after);
    }
    life.after = Some(after);
    attempt
}

/// What a stop must not leave.
fn leftover(ctx: &Context, plan: &Plan, stop: StopKind, after: &Aftermath) -> Option<Finding> {
    if stop == StopKind::Leftover {
        return Some(finding(ctx, plan, &rules::smoke::LEFTOVER));
    }
    let held = after.gpu_memory.as_ref().filter(|held| !held.is_empty())?;
    let list: Vec<String> = held.iter().map(|(pid, bytes)| format!("{pid} ({bytes} bytes)")).collect();
    Some(finding(ctx, plan, &rules::smoke::GPU_MEMORY_LEFT).arg("processes", list.join(", ")))
}

/// Where the server is to listen: a Unix socket where it can and nobody fixed a port, else
/// a free port; with the arguments that tell it so.
fn choose_door(
    listen: &Listen,
    fixed: Option<u16>,
    wants_socket: bool,
) -> io::Result<(Door, &[String], Option<SocketFolder>)> {
    if wants_socket || (fixed.is_none() && !listen.socket.is_empty()) {
        match SocketFolder::new() {
            Ok(folder) => return Ok((Door::Socket(folder.path()), &listen.socket, Some(folder))),
            Err(error) if wants_socket => return Err(error),
            // No folder whose path is short enough: a port serves as well.
            Err(_) => {}
        }
    }
    let port = fixed.map_or_else(launch::free_port, Ok)?;
    Ok((Door::Port(port), &listen.port, None))
}

fn launch_spec(
    ctx: &Context,
    plan: &Plan,
    argv: &[String],
    env: &std::collections::BTreeMap<String, String>,
    door: &Door,
    log: &Path,
) -> LaunchSpec {
    let placeholder = match door {
        Door::Port(_) => "{port}",
        Door::Socket(_) => "{socket}",
    };
    let with_door = |text: &String| text.replace(placeholder, &door.to_string());
    let argv = argv.iter().map(with_door).collect();
    let mut full: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !env.contains_key(name))
        .collect();
    full.extend(env.iter().map(|(name, value)| (name.clone(), with_door(value))));
    let mut secrets = Redactor::secrets_of(full.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    secrets.extend(plan.key.clone());
    LaunchSpec {
        argv,
        cwd: ctx.root.clone(),
        env: full,
        log: log.to_path_buf(),
        log_max_bytes: plan.log_max_bytes,
        secrets,
    }
}

/// One log file per run, beside the results.
fn log_path(plan: &Plan, run_id: &str) -> PathBuf {
    let stem = plan.result.file_stem().unwrap_or_default().to_string_lossy();
    plan.result.with_file_name("logs").join(format!("{stem}.{run_id}.log"))
}

/// The fault of a use, or that it was interrupted: nothing is waited for then.
async fn unless_interrupted(
    ctx: &Context,
    plan: &Plan,
    using: impl Future<Output = Result<(), Fault>>,
) -> Option<Fault> {
    tokio::select! {
        result = using => result.err(),
        state = ctx.cancel.wait(1) => Some(Box::new(finding(ctx, plan, &rules::run::INTERRUPTED).arg("signal", state.name()))),
    }
}

#[expect(clippy::too_many_arguments, reason = "one call; a struct for it would only rename them")]
async fn use_server(
    ctx: &Context,
    plan: &Plan,
    server: Option<&Guarded>,
    door: Option<&Door>,
    spawned: Instant,
    life: &mut Life,
    phase: &Phase,
    body: &mut impl AsyncFnMut(&Session<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let broken = |cause: String| Box::new(finding(ctx, plan, &rules::smoke::NOT_STARTED).arg("cause", cause));
    let endpoint = Endpoint::new(&life.base_url, plan.key.clone()).map_err(|error| broken(error.to_string()))?;
    let client = endpoint.control_client().map_err(|error| broken(error.to_string()))?;
    let routes = Routes { health: plan.profile.health.clone(), models: plan.profile.models.clone() };
    let wait = Wait {
        endpoint: &endpoint,
        routes: &routes,
        served_model: &plan.served_model,
        server,
        door,
        spawned,
        timeout: plan.ready_timeout,
        probe_timeout: plan.probe_timeout,
    };
    let seen = RefCell::new(String::new());
    let say = |now: &str| {
        phase.quiet_say(&format!("waiting for {}: {now}", plan.profile.name));
        now.clone_into(&mut seen.borrow_mut());
    };
    let waiting = wait.run(&client, &mut life.cold, &say);
    let ready = tokio::select! {
        ready = waiting => ready,
        never = heartbeat(phase, plan, spawned, &seen, life.log.as_deref()) => never,
    };
    life.identity = ready.map_err(|reason| Box::new(not_ready(ctx, plan, reason, life)))?;
    let (model, entry) = (life.identity.model.clone(), life.identity.entry.clone());
    let session = Session { ctx, plan, server, endpoint, client, model, entry, spawned, phase };
    let died = || async {
        match server {
            Some(server) => server.exited().await,
            None => std::future::pending().await,
        }
    };
    let exited = || {
        session
            .finding(&rules::smoke::SERVER_EXITED)
            .arg("when", Localized::both("while requests ran", "在请求进行中"))
            .arg("log", shown_log(ctx, life))
    };
    tokio::select! {
        // What its last answers say of the cause is in the log; none of them is waited for.
        biased;
        _ = died() => Err(Box::new(exited())),
        result = body(&session) => match result {
            // Requests of a server that was killed fail a moment before its end is known.
            Err(fault) => match tokio::time::timeout(END_AFTER_FAILURE, died()).await {
                Ok(_) => Err(Box::new(exited())),
                Err(_) => Err(fault),
            },
            Ok(()) => Ok(()),
        },
    }
}

/// Says every ten seconds what is being waited for, with the last line that the server
/// logged. Never ready.
async fn heartbeat(
    phase: &Phase,
    plan: &Plan,
    spawned: Instant,
    seen: &RefCell<String>,
    log: Option<&Path>,
) -> Result<Identity, NotReady> {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let mut text = format!("waiting for {}, {} s", plan.profile.name, spawned.elapsed().as_secs());
        for part in [seen.borrow().clone(), log.and_then(last_line).unwrap_or_default()] {
            if !part.is_empty() {
                text.push_str("; ");
                text.push_str(&part);
            }
        }
        phase.say(&text);
    }
}

/// The last line of a log that is being written.
fn last_line(path: &Path) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LAST_LINE))).ok()?;
    let mut bytes = Vec::new();
    file.take(LAST_LINE).read_to_end(&mut bytes).ok()?;
    last_words(&clean_log(&bytes))
}

fn not_ready(ctx: &Context, plan: &Plan, reason: NotReady, life: &Life) -> Finding {
    match reason {
        NotReady::Timeout { last } => {
            let fault = finding(ctx, plan, &rules::smoke::NOT_READY)
                .arg("seconds", plan.ready_timeout.as_secs_f64())
                .arg("last", last)
                .arg("log", shown_log(ctx, life));
            match life.log {
                Some(_) => fault,
                None => fault.help(Localized::both(
                    format!("see whether a server runs at {}, or raise `ready_timeout_s`", life.base_url),
                    format!("请确认 {} 上有服务在运行，或调大 `ready_timeout_s`", life.base_url),
                )),
            }
        }
        NotReady::Exited(_) => finding(ctx, plan, &rules::smoke::SERVER_EXITED)
            .arg("when", Localized::both("before it was ready", "在就绪之前"))
            .arg("log", shown_log(ctx, life)),
        NotReady::Unauthorized { status, route } => {
            finding(ctx, plan, &rules::smoke::UNAUTHORIZED).arg("status", u32::from(status)).arg("route", route)
        }
        NotReady::WrongModel { listed } => finding(ctx, plan, &rules::smoke::WRONG_MODEL)
            .arg("expected", &plan.served_model)
            .arg("listed", listed.join(", ")),
        NotReady::ForeignPort { pids } => match &life.door {
            Some(door) => door_finding(ctx, plan, door, &pids),
            None => finding(ctx, plan, &rules::smoke::NOT_STARTED).arg("cause", "the server is not ours"),
        },
    }
}

fn door_finding(ctx: &Context, plan: &Plan, door: &Door, pids: &[u32]) -> Finding {
    let owner = pids.first().map_or_else(
        || Localized::from(""),
        |pid| {
            let command = proc_tree::command_line(*pid).unwrap_or_default();
            Localized::both(format!(" by process {pid} ({command})"), format!("，占用者为进程 {pid}（{command}）"))
        },
    );
    finding(ctx, plan, &rules::smoke::PORT_IN_USE).arg("port", door.to_string()).arg("owner", owner)
}

fn shown_log(ctx: &Context, life: &Life) -> Localized {
    life.log.as_ref().map_or(Localized::from(""), |log| Localized::from(ctx.repo_path(log)))
}

fn read_log(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.take(LOG_TO_SEARCH).read_to_end(&mut bytes);
    }
    clean_log(&bytes)
}

/// The last forty lines.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
