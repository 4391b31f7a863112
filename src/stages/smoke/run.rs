//! One run from start to stop: start → wait → warm-up → counters → measure → counters →
//! stop. Whatever happens in between, the stop happens.

use super::plan::{Plan, Server};
use super::spec::Switch;
use crate::backend::counters::{self, Counters};
use crate::backend::diagnose::{Diagnosis, diagnose, last_words};
use crate::backend::memory::{self, Reading};
use crate::backend::ready::{self, ColdStart, Identity, NotReady, Routes, Wait};
use crate::backend::{doctor, launch};
use crate::bench::load::closed_loop;
use crate::client::{ChatRequest, Endpoint, RequestTrace, Run, control_client};
use crate::course::Context;
use crate::model::{Finding, Localized, Location};
use crate::process::{Exit, Guarded, LaunchSpec, Redactor, StopKind, Stopped, clean_log, proc_tree};
use crate::rules;
use crate::term::Phase;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How often memory is read while requests run.
const MEMORY_INTERVAL: Duration = Duration::from_millis(250);
/// How often the gauge of waiting requests is read.
const GAUGE_INTERVAL: Duration = Duration::from_millis(50);
/// Pairs of a hit and a miss.
const INVALIDATION_PAIRS: usize = 3;
/// Bytes of the log that are searched for a cause.
const LOG_TO_SEARCH: u64 = 8 << 20;

/// What a run leaves: everything measured, or why it ended early.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) argv: Vec<String>,
    pub(super) base_url: String,
    pub(super) cold: ColdStart,
    pub(super) identity: Identity,
    pub(super) warmup: Vec<RequestTrace>,
    pub(super) traces: Vec<RequestTrace>,
    pub(super) counters_before: Counters,
    pub(super) counters_after: Counters,
    pub(super) memory: Vec<Reading>,
    /// Largest number of waiting requests that the server's gauge showed.
    pub(super) waiting_peak: Option<f64>,
    /// TTFT of requests that hit the cache and of the same ones with their prefix changed, ms.
    pub(super) invalidation: Option<Invalidation>,
    pub(super) load_before: Option<[f64; 3]>,
    pub(super) load_after: Option<[f64; 3]>,
    pub(super) stopped: Option<Stopped>,
    pub(super) log: Option<PathBuf>,
    /// Why it is no measurement.
    pub(super) fault: Option<Finding>,
    /// The end of the log, when it failed.
    pub(super) log_tail: String,
}

/// What a changed prefix costs.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub(super) struct Invalidation {
    pub(super) hit_ttft_ms: Vec<f64>,
    pub(super) miss_ttft_ms: Vec<f64>,
}

/// A start that may be tried once more on another port.
enum Attempt {
    Done,
    PortTaken,
}

/// Runs a plan. The result says what was observed; a fault is in it.
pub(super) async fn execute(ctx: &Context, plan: &Plan, run_id: &str, phase: &Phase) -> Observed {
    let mut observed = Observed::default();
    match &plan.server {
        Server::External { base_url } => {
            base_url.clone_into(&mut observed.base_url);
            let fault =
                unless_interrupted(ctx, plan, measure(ctx, plan, None, None, Instant::now(), &mut observed, phase))
                    .await;
            observed.fault = fault.map(|fault| *fault);
        }
        Server::Start { port, .. } => {
            let attempt = start_and_measure(ctx, plan, run_id, &mut observed, phase).await;
            if matches!(attempt, Attempt::PortTaken) && port.is_none() {
                observed = Observed::default();
                start_and_measure(ctx, plan, &format!("{run_id}-2"), &mut observed, phase).await;
            }
        }
    }
    observed
}

/// A finding about this run, at its result file.
fn finding(ctx: &Context, plan: &Plan, rule: &'static rules::Rule) -> Finding {
    Finding::new(rule, Location::file(ctx.repo_path(&plan.result))).arg("backend", &plan.profile.name)
}

async fn start_and_measure(
    ctx: &Context,
    plan: &Plan,
    run_id: &str,
    observed: &mut Observed,
    phase: &Phase,
) -> Attempt {
    let Server::Start { argv, env, port: fixed, .. } = &plan.server else { return Attempt::Done };
    let port = match fixed.map_or_else(launch::free_port, Ok) {
        Ok(port) => port,
        Err(error) => {
            observed.fault = Some(finding(ctx, plan, &rules::smoke::NOT_STARTED).arg("cause", error.to_string()));
            return Attempt::Done;
        }
    };
    if fixed.is_some() && launch::port_in_use(port) {
        observed.fault = Some(port_finding(ctx, plan, port, &proc_tree::listeners(port).unwrap_or_default()));
        return Attempt::Done;
    }
    let log = log_path(plan, run_id);
    let spec = launch_spec(ctx, plan, argv, env, port, &log);
    observed.argv.clone_from(&spec.argv);
    observed.base_url = format!("http://127.0.0.1:{port}");
    observed.log = Some(log.clone());
    phase.say(&format!("starting {}", plan.profile.name));
    let spawned = Instant::now();
    let server = match Guarded::start(&spec).await {
        Ok(server) => server,
        Err(error) => {
            let program = observed.argv.first().map(String::as_str).unwrap_or_default();
            observed.fault =
                Some(finding(ctx, plan, &rules::smoke::NOT_STARTED).arg("cause", format!("`{program}`: {error}")));
            return Attempt::Done;
        }
    };
    let measuring = measure(ctx, plan, Some(&server), Some(port), spawned, observed, phase);
    let fault = unless_interrupted(ctx, plan, measuring).await;
    phase.say("stopping");
    let stopped = server.stop(plan.stop_grace, ctx.cancel.wait(2)).await;
    observed.stopped = Some(stopped);
    let text = read_log(&log);
    let mut attempt = Attempt::Done;
    observed.fault = fault.map(|fault| {
        let diagnosis = diagnose(&text);
        if diagnosis.as_ref().is_some_and(|found| found.signature.id == "port-in-use") {
            attempt = Attempt::PortTaken;
        }
        observed.log_tail = tail(&text);
        explain(ctx, *fault, stopped.exit, diagnosis, &text, &log)
    });
    if stopped.kind == StopKind::Leftover && observed.fault.is_none() {
        observed.fault = Some(finding(ctx, plan, &rules::smoke::LEFTOVER));
    }
    attempt
}

fn launch_spec(
    ctx: &Context,
    plan: &Plan,
    argv: &[String],
    env: &std::collections::BTreeMap<String, String>,
    port: u16,
    log: &Path,
) -> LaunchSpec {
    let with_port = |text: &String| text.replace("{port}", &port.to_string());
    let argv = argv.iter().map(with_port).collect();
    let mut full: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !env.contains_key(name))
        .collect();
    full.extend(env.iter().map(|(name, value)| (name.clone(), with_port(value))));
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

type Fault = Box<Finding>;

/// The fault of a measurement, or that it was interrupted: nothing is waited for then.
async fn unless_interrupted(
    ctx: &Context,
    plan: &Plan,
    measuring: impl Future<Output = Result<(), Fault>>,
) -> Option<Fault> {
    tokio::select! {
        result = measuring => result.err(),
        state = ctx.cancel.wait(1) => Some(Box::new(finding(ctx, plan, &rules::run::INTERRUPTED).arg("signal", state.name()))),
    }
}

async fn measure(
    ctx: &Context,
    plan: &Plan,
    server: Option<&Guarded>,
    port: Option<u16>,
    spawned: Instant,
    observed: &mut Observed,
    phase: &Phase,
) -> Result<(), Fault> {
    let broken = |cause: String| Box::new(finding(ctx, plan, &rules::smoke::NOT_STARTED).arg("cause", cause));
    let endpoint = Endpoint::new(&observed.base_url, plan.key.clone()).map_err(|error| broken(error.to_string()))?;
    let client = control_client().map_err(|error| broken(error.to_string()))?;
    let routes = Routes { health: plan.profile.health.clone(), models: plan.profile.models.clone() };
    let wait = Wait {
        endpoint: &endpoint,
        routes: &routes,
        served_model: &plan.served_model,
        server,
        port,
        spawned,
        timeout: plan.ready_timeout,
        probe_timeout: plan.probe_timeout,
    };
    let ready = wait.run(&client, &mut observed.cold, &|_| phase.quiet_say("waiting for the server")).await;
    observed.identity = ready.map_err(|reason| Box::new(not_ready(ctx, plan, reason, observed)))?;
    let run = Run {
        endpoint: &endpoint,
        model: &observed.identity.model.clone(),
        epoch: Instant::now(),
        timeout: plan.probe_timeout,
    };
    let (done, mut progress) = mpsc::unbounded_channel();
    phase.say("warm-up");
    observed.warmup =
        closed_loop(&run, &plan.workload.take(plan.warmup.max(1))[..plan.warmup as usize], plan.concurrency, &done)
            .await;
    observed.counters_before = read_counters(&client, &endpoint, plan).await;
    observed.load_before = doctor::load();
    let requests = plan.workload.take(plan.requests);
    let total = requests.len();
    let watching = async {
        let mut count = 0;
        while progress.recv().await.is_some() {
            count += 1;
            phase.quiet_say(&format!("request {count}/{total}"));
        }
        std::future::pending::<()>().await;
    };
    let gauging = sample_waiting(&client, &endpoint, plan, &mut observed.waiting_peak);
    let sampling = sample_memory(server.and_then(Guarded::guardian_pid), &mut observed.memory);
    let died = async {
        match server {
            Some(server) => server.exited().await,
            None => std::future::pending().await,
        }
    };
    let traces = tokio::select! {
        traces = closed_loop(&run, &requests, plan.concurrency, &done) => Some(traces),
        // The server's end is no reason to drop what its last answers say of the cause,
        // but none of them is waited for: nobody will answer.
        _ = died => None,
        () = watching => None,
        () = sampling => None,
        () = gauging => None,
    };
    let Some(traces) = traces else {
        return Err(Box::new(
            finding(ctx, plan, &rules::smoke::SERVER_EXITED)
                .arg("when", Localized::both("while requests ran", "在请求进行中"))
                .arg("log", shown_log(ctx, observed)),
        ));
    };
    observed.traces = traces;
    observed.load_after = doctor::load();
    observed.counters_after = read_counters(&client, &endpoint, plan).await;
    if plan.claims.prefix_cache == Some(Switch::On) && plan.project.is_some() {
        phase.say("invalidation");
        observed.invalidation = Some(invalidate(&run, &requests[0]).await);
    }
    match observed.traces.iter().find_map(|trace| trace.fault.as_ref()) {
        None => Ok(()),
        Some(fault) => {
            let failed = observed.traces.iter().filter(|trace| !trace.succeeded()).count();
            let status =
                fault.status.filter(|status| *status != 200).map(|status| format!("{status} ")).unwrap_or_default();
            Err(Box::new(
                finding(ctx, plan, &rules::smoke::REQUEST_FAILED)
                    .arg("failed", failed)
                    .arg("total", total)
                    .arg("kind", fault.kind.to_string())
                    .arg("detail", format!("{status}{}", fault.message))
                    .arg("record", ctx.repo_path(&plan.failure_path())),
            ))
        }
    }
}

async fn sample_memory(guardian: Option<u32>, readings: &mut Vec<Reading>) {
    let Some(guardian) = guardian else { return std::future::pending().await };
    loop {
        readings.extend(memory::read_tree(guardian));
        tokio::time::sleep(MEMORY_INTERVAL).await;
    }
}

/// Samples the gauge of waiting requests while a queue can form.
async fn sample_waiting(client: &reqwest::Client, endpoint: &Endpoint, plan: &Plan, peak: &mut Option<f64>) {
    if plan.concurrency < 2 || !plan.profile.counters.contains_key("waiting") {
        return std::future::pending().await;
    }
    loop {
        if let Some(now) = read_counters(client, endpoint, plan).await.get("waiting") {
            *peak = Some(peak.unwrap_or(0.0).max(*now));
        }
        tokio::time::sleep(GAUGE_INTERVAL).await;
    }
}

/// Pairs of a request that hits the cache and the same one behind a changed first word,
/// which cannot. The difference of their TTFT is what an invalidation costs.
async fn invalidate(run: &Run<'_>, request: &ChatRequest) -> Invalidation {
    let mut found = Invalidation::default();
    let mut connection = None;
    for round in 0..INVALIDATION_PAIRS {
        // The first sending fills the cache again after the miss of the round before.
        run.send(request, &mut connection).await;
        let hit = run.send(request, &mut connection).await;
        let miss = run.send(&request.with_changed_prefix(&format!("[{round}] ")), &mut connection).await;
        let ttft = |trace: &RequestTrace| {
            let first = trace.chunks.first().filter(|_| trace.succeeded())?;
            Some(first.at.saturating_sub(trace.sent).as_secs_f64() * 1000.0)
        };
        if let (Some(hit), Some(miss)) = (ttft(&hit), ttft(&miss)) {
            found.hit_ttft_ms.push(hit);
            found.miss_ttft_ms.push(miss);
        }
    }
    found
}

async fn read_counters(client: &reqwest::Client, endpoint: &Endpoint, plan: &Plan) -> Counters {
    if plan.profile.metrics.is_empty() {
        return Counters::new();
    }
    match ready::get(client, endpoint, &plan.profile.metrics).await {
        Ok((200, page)) => counters::read(&plan.profile, &page),
        _ => Counters::new(),
    }
}

fn not_ready(ctx: &Context, plan: &Plan, reason: NotReady, observed: &Observed) -> Finding {
    match reason {
        NotReady::Timeout { last } => {
            let fault = finding(ctx, plan, &rules::smoke::NOT_READY)
                .arg("seconds", plan.ready_timeout.as_secs_f64())
                .arg("last", last)
                .arg("log", shown_log(ctx, observed));
            match observed.log {
                Some(_) => fault,
                None => fault.help(Localized::both(
                    format!("see whether a server runs at {}, or raise `ready_timeout_s`", observed.base_url),
                    format!("请确认 {} 上有服务在运行，或调大 `ready_timeout_s`", observed.base_url),
                )),
            }
        }
        NotReady::Exited(_) => finding(ctx, plan, &rules::smoke::SERVER_EXITED)
            .arg("when", Localized::both("before it was ready", "在就绪之前"))
            .arg("log", shown_log(ctx, observed)),
        NotReady::Unauthorized { status, route } => {
            finding(ctx, plan, &rules::smoke::UNAUTHORIZED).arg("status", u32::from(status)).arg("route", route)
        }
        NotReady::WrongModel { listed } => finding(ctx, plan, &rules::smoke::WRONG_MODEL)
            .arg("expected", &plan.served_model)
            .arg("listed", listed.join(", ")),
        NotReady::ForeignPort { pids } => {
            let port = observed.base_url.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(0);
            port_finding(ctx, plan, port, &pids)
        }
    }
}

fn port_finding(ctx: &Context, plan: &Plan, port: u16, pids: &[u32]) -> Finding {
    let owner = pids.first().map_or_else(
        || Localized::from(""),
        |pid| {
            let command = proc_tree::command_line(*pid).unwrap_or_default();
            Localized::both(format!(" by process {pid} ({command})"), format!("，占用者为进程 {pid}（{command}）"))
        },
    );
    finding(ctx, plan, &rules::smoke::PORT_IN_USE).arg("port", u32::from(port)).arg("owner", owner)
}

fn shown_log(ctx: &Context, observed: &Observed) -> Localized {
    observed.log.as_ref().map_or(Localized::from(""), |log| Localized::from(ctx.repo_path(log)))
}

/// Adds what the end of the server and its log say to a fault.
fn explain(
    ctx: &Context,
    fault: Finding,
    exit: Option<Exit>,
    diagnosis: Option<Diagnosis>,
    text: &str,
    log: &Path,
) -> Finding {
    if fault.rule.id != rules::smoke::SERVER_EXITED.id {
        return fault;
    }
    let exit_text = exit.map_or_else(|| "an unknown end".to_owned(), |exit| exit.to_string());
    let fault = fault.arg("exit", exit_text);
    let shown = ctx.repo_path(log);
    match diagnosis {
        Some(Diagnosis { signature, line }) => fault
            .arg(
                "cause",
                Localized::both(format!("{} — {line}", signature.cause.en), format!("{} — {line}", signature.cause.zh)),
            )
            .help(Localized::both(
                format!("{}; the log is {shown}", signature.advice.en),
                format!("{}；日志见 {shown}", signature.advice.zh),
            )),
        None if exit.and_then(|exit| exit.signal) == Some(9) => fault
            .arg(
                "cause",
                Localized::both(
                    "killed, perhaps by the kernel for lack of memory (OOM killer)",
                    "被强制结束，可能是内核因内存不足所为（OOM killer，memory）",
                ),
            )
            .help(Localized::both(
                "compare the memory it needs with what is free; look at the kernel's log",
                "请对比所需内存与可用内存，并查看内核日志",
            )),
        None if exit.and_then(|exit| exit.code) == Some(0) => fault.arg(
            "cause",
            Localized::both(
                "the command returned; a server must stay in the foreground",
                "命令已返回；服务必须在前台运行",
            ),
        ),
        None => {
            let last = last_words(text).unwrap_or_else(|| "it logged nothing".to_owned());
            fault.arg("cause", last)
        }
    }
}

fn read_log(path: &Path) -> String {
    use std::io::Read;
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
