//! `verify bench`: one ad-hoc load run on a server that runs already.

use crate::Screen;
use crate::bench::calibrate::{ClientError, SHORT, calibrate, short_rounds};
use crate::bench::live::Live;
use crate::bench::load::{Session, Shape, Unheard};
use crate::bench::meeting::{Met, Place, Reading, Who};
use crate::bench::part::{self, Comparison, Header};
use crate::bench::plan::{Mix, Prompts, constant_arrivals, deal, poisson_arrivals, replay, share};
use crate::bench::report::{BenchFinding, BenchReport, LoadStated, RampStep, Readings};
use crate::bench::runner::{Pass, Target, Unusable};
use crate::bench::workload::Workload;
use crate::bench::{notes, trace_file};
use crate::cli::{Arrival, BenchArgs, Cli, QualityProbe, Ramp};
use crate::client::{Asked, ChatRequest, Endpoint, RequestTrace, other_model};
use crate::course::Context;
use crate::error::RunError;
use crate::fsx;
use crate::interrupt::Cancel;
use crate::model::{Finding, Lang, Localized, Location, Partition, RepoPath, Severity, Status};
use crate::render::{self, Format};
use crate::rules::{self, bench as bench_rules};
use crate::term::Phase;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Streams of the short check at most: what it shows at 256 holds for more.
const MAX_CHECKED: u32 = 256;
/// Throughput that gains less than this at the next level has its knee here.
const KNEE: f64 = 0.05;
/// Steps of a ramp at most.
const MAX_STEPS: u32 = 12;

/// Runs the load and shows its report.
///
/// # Errors
/// A fault of usage: nothing was measured.
pub(crate) fn run(args: &BenchArgs, cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    if let Some(file) = &args.experiment {
        return super::experiment::run(file, &args.run, cli, screen);
    }
    screen.format_of(&[Format::Human, Format::Json])?;
    let began = Instant::now();
    let ctx = crate::context(cli, screen, &[])?;
    let job = Job::of(&ctx, args)?;
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| RunError::file("runtime", error))?;
    let phase = ctx.progress.start("bench", u64::from(args.load.num_prompts));
    let mut outcome = runtime.block_on(job.measure(&ctx, &phase));
    let saved = save(&ctx, args, &outcome);
    if let Some(met) = &mut outcome.met {
        phase.quiet_say("waiting for the other generators to end");
        runtime.block_on(met.part(&ctx.cancel));
    }
    drop(phase);
    // A request that hangs must not keep the process.
    runtime.shutdown_background();
    saved?;
    show(&ctx, cli, screen, outcome, began.elapsed())
}

/// Keeps what happened in every request, where that was asked for.
fn save(ctx: &Context, args: &BenchArgs, outcome: &Measured) -> Result<(), RunError> {
    let Some(file) = &args.verdict.save_requests else { return Ok(()) };
    let path = ctx.at_cwd(file);
    let text = match &outcome.part {
        Some(header) => part::text(header, &outcome.traces),
        None => trace_file::lines(&outcome.traces),
    };
    fsx::write_atomic(&path, text.as_bytes()).map_err(|error| RunError::file(&path, error))
}

/// Every request in flight is an open file; shells often allow 1,024 though the system
/// allows more. Where it cannot be raised, connections fail and say so.
#[cfg(unix)]
fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

#[cfg(not(unix))]
fn raise_file_limit() {}

/// Everything a run left.
pub(super) struct Measured {
    pub(super) report: BenchReport,
    pub(super) traces: Vec<RequestTrace>,
    pub(super) findings: Vec<Finding>,
    /// What the times of the traces count from.
    pub(super) epoch: Option<Instant>,
    /// What stands above them, when this was one of several generators.
    pub(super) part: Option<Box<Header>>,
    /// The meeting of the generators.
    pub(super) met: Option<Met>,
}

impl Measured {
    pub(super) fn of(report: BenchReport, traces: Vec<RequestTrace>, findings: Vec<Finding>) -> Self {
        Measured { report, traces, findings, epoch: None, part: None, met: None }
    }
}

/// Writes the report in every format that was asked for.
pub(super) fn show(
    ctx: &Context,
    cli: &Cli,
    screen: &Screen<'_>,
    mut measured: Measured,
    duration: Duration,
) -> Result<u8, RunError> {
    if cli.global.strict {
        let warnings = measured.findings.iter_mut().filter(|finding| finding.severity == Severity::Warning);
        warnings.for_each(|finding| finding.severity = Severity::Error);
    }
    let failed = measured.findings.iter().any(|finding| finding.severity == Severity::Error);
    let code = match (ctx.cancel.get(), failed) {
        (Some(state), _) => state.exit_code(),
        (None, failed) => i32::from(failed),
    };
    let status = if code == 0 { Status::Pass } else { Status::Fail };
    let findings = measured.findings;
    let mut report = measured.report;
    report.findings = findings.iter().map(stated).collect();
    report.notes = findings.iter().map(|finding| finding.message(Lang::En)).collect();
    report.explain_absences();
    let human = |options: render::HumanOptions<'_>| render::bench::human(&report, &findings, status, duration, options);
    let json = render::render_json_bench(&report, status, code, duration);
    let text = |format, options: render::HumanOptions<'_>| match format {
        Format::Json => json.clone(),
        _ => human(options),
    };
    screen.emit(text, &ctx.root)?;
    Ok(u8::try_from(code).unwrap_or(1))
}

fn stated(finding: &Finding) -> BenchFinding {
    BenchFinding {
        rule: finding.rule.id,
        severity: finding.severity,
        message: finding.message(Lang::En),
        help: finding.help_text(Lang::En),
    }
}

/// A load, ready to be sent.
struct Job<'a> {
    args: &'a BenchArgs,
    base_url: String,
    target: Target,
    source: Source,
    sha256: Option<String>,
    /// Where the generators of this load meet.
    place: Option<Place>,
}

/// What is sent.
enum Source {
    Mix(Mix),
    Trace(Vec<Session>, Shape),
}

impl<'a> Job<'a> {
    fn of(ctx: &Context, args: &'a BenchArgs) -> Result<Self, RunError> {
        let base_url = args.server.base_url.clone().unwrap_or_default();
        let wrong_url = |error: &dyn std::fmt::Display| {
            RunError::usage(
                error.to_string(),
                Localized::both("give --base-url http://HOST:PORT", "请用 --base-url http://HOST:PORT 给出地址"),
            )
        };
        let key = args.server.api_key_env.as_deref().map(key_of).transpose()?;
        let endpoint = Endpoint::new(&base_url, key).map_err(|error| wrong_url(&error))?;
        let (source, sha256) = source(ctx, args)?;
        let asked = Asked { api: args.server.endpoint, ignore_eos: args.workload.ignore_eos, ..Asked::default() };
        let target = Target {
            endpoint: Arc::new(endpoint),
            model: args.server.model.as_deref().unwrap_or_default().into(),
            asked,
            timeout: Duration::from_secs_f64(args.load.timeout),
            retries: args.load.retries,
            cancel: ctx.cancel.clone(),
            start: None,
        };
        let place = place(args, &source)?;
        Ok(Job { args, base_url, target, source, sha256, place })
    }

    /// Requests in flight that are to be expected, for the warm-up and the self-check.
    fn in_flight(&self) -> u32 {
        let whole = self.whole_in_flight();
        self.args.load.together.partition.map_or(whole, |partition| share(whole, partition).max(1))
    }

    fn whole_in_flight(&self) -> u32 {
        let load = &self.args.load;
        match (load.concurrency, load.max_concurrency, load.request_rate) {
            (Some(closed), ..) => closed,
            (None, Some(most), _) => most,
            (None, None, Some(rate)) => (rate.ceil() as u32).clamp(1, 64),
            (None, None, None) if matches!(self.source, Source::Trace(..)) => 16,
            _ => 1,
        }
    }

    fn shape(&self, level: Level) -> Shape {
        let load = &self.args.load;
        match level {
            Level::Closed(concurrency) => Shape::Closed { concurrency },
            Level::Rate(rate) => {
                let sessions = load.num_prompts.div_ceil(self.args.workload.turns) as usize;
                let arrivals = match load.arrival {
                    Arrival::Constant => constant_arrivals(sessions, rate),
                    Arrival::Poisson => poisson_arrivals(sessions, rate, load.seed),
                };
                Shape::Open { arrivals, max_in_flight: load.max_concurrency }
            }
        }
    }

    fn first_level(&self) -> Level {
        let load = &self.args.load;
        match (load.ramp, load.request_rate) {
            (Some(Ramp::Rate), rate) => Level::Rate(rate.unwrap_or(1.0)),
            (Some(Ramp::Concurrency), _) => Level::Closed(load.concurrency.unwrap_or(1)),
            (None, Some(rate)) => Level::Rate(rate),
            (None, None) => Level::Closed(load.concurrency.unwrap_or(1)),
        }
    }

    async fn measure(mut self, ctx: &Context, phase: &Phase) -> Measured {
        let say = |seen: &str| phase.quiet_say(&format!("waiting for the server: {seen}"));
        let limit = Duration::from_secs_f64(self.args.server.ready_timeout);
        let mut readings = Readings::default();
        let ready = match self.target.ready(limit, &say).await {
            Ok(ready) => ready,
            Err(reason) => return self.unusable(ctx, &reason),
        };
        readings.ready_wait_s = Some(ready.waited.as_secs_f64());
        let mut findings = Vec::new();
        if !ready.models.is_empty() && !ready.models.iter().any(|name| **name == *self.target.model) {
            findings.push(
                self.finding(&bench_rules::MODEL_NOT_LISTED)
                    .arg("listed", ready.models.join(", "))
                    .arg("model", &*self.target.model),
            );
        }
        findings.extend(self.warm_up(phase, &mut readings).await);
        let mut met = match self.gather(ctx, phase).await {
            Ok(met) => met,
            Err(cause) => {
                findings.push(self.finding(&bench_rules::MEETING).arg("cause", cause));
                return Measured { findings, ..self.nothing() };
            }
        };
        phase.say("measuring");
        let mut measured = self.measured(ctx, phase, &mut readings, met.as_mut()).await;
        measured.met = met;
        findings.append(&mut measured.findings);
        measured.findings = findings;
        measured
    }

    /// The client's own error, then the warm-up.
    async fn warm_up(&mut self, phase: &Phase, readings: &mut Readings) -> Option<Finding> {
        let mut finding = None;
        if !self.args.verdict.no_self_check {
            phase.quiet_say("checking this client's own error");
            match self.self_check().await {
                Ok(error) => readings.client_error = Some(error),
                Err(error) => finding = Some(self.finding(&bench_rules::TRUTH_FAILED).arg("cause", error.to_string())),
            }
        }
        let warmup = self.warmup_sessions();
        if !warmup.is_empty() {
            phase.say("warm-up");
            readings.warmup = self.target.warm_up(warmup, self.in_flight()).await;
        }
        finding
    }

    /// The measured part, with what stands above its requests when it is one of several.
    async fn measured(&self, ctx: &Context, phase: &Phase, readings: &mut Readings, met: Option<&mut Met>) -> Measured {
        let wall = Wall::now();
        let (mut measured, steps) = self.levels(ctx, phase, readings).await;
        measured.report.knee = knee(&steps);
        measured.report.ramp = steps;
        if self.args.load.together.partition.is_some() {
            let id = met.as_ref().map(|met| met.id.clone());
            let clocks = clocks(met).await;
            measured.part = Some(Box::new(self.header(ctx, &measured, readings, id, &wall, &clocks)));
        }
        measured
    }

    async fn self_check(&self) -> std::io::Result<ClientError> {
        let concurrency = self.in_flight().min(MAX_CHECKED);
        calibrate(concurrency, short_rounds(concurrency), SHORT).await
    }

    fn warmup_count(&self) -> u32 {
        self.args.load.warmup.unwrap_or_else(|| self.in_flight().max(2))
    }

    fn warmup_sessions(&self) -> Vec<Session> {
        let count = self.warmup_count();
        match &self.source {
            Source::Mix(mix) => {
                let part = self.args.load.together.partition.map(|partition| format!("{} ", partition.part));
                Mix { turns: 1, ..mix.clone() }.sessions(count, &format!("warm-up {}", part.unwrap_or_default()))
            }
            Source::Trace(sessions, _) => sessions.iter().cycle().take(count as usize).cloned().collect(),
        }
    }

    /// One level, or those of a ramp until throughput stops to grow. The figures are those
    /// of the level at the knee.
    async fn levels(&self, ctx: &Context, phase: &Phase, readings: &mut Readings) -> (Measured, Vec<RampStep>) {
        let mut level = self.first_level();
        let mut best = self.level(ctx, phase, readings, level).await;
        if self.args.load.ramp.is_none() {
            return (best, Vec::new());
        }
        let mut steps = vec![step(level, &best.report)];
        for _ in 1..MAX_STEPS {
            if ctx.cancel.is_set() || best.report.successful == 0 {
                break;
            }
            level = level.doubled();
            let next = self.level(ctx, phase, readings, level).await;
            steps.push(step(level, &next.report));
            if !gains(&steps) {
                break;
            }
            best = next;
        }
        (best, steps)
    }

    async fn level(&self, ctx: &Context, phase: &Phase, readings: &mut Readings, level: Level) -> Measured {
        let (sessions, shape) = match &self.source {
            Source::Trace(sessions, shape) => (sessions.clone(), shape.clone()),
            Source::Mix(mix) => {
                // A closed loop needs some rounds to be more than its own ramp.
                let least = match level {
                    Level::Closed(concurrency) if self.args.load.ramp.is_some() => concurrency * 2,
                    _ => 1,
                };
                (mix.sessions(self.args.load.num_prompts.max(least), &level.salt()), self.shape(level))
            }
        };
        let (sessions, shape) = match self.args.load.together.partition {
            Some(partition) => deal(sessions, shape, partition),
            None => (sessions, shape),
        };
        let total = sessions.iter().map(|session| session.turns.len()).sum();
        let live = Arc::new(Live::new(total));
        let watching = async {
            loop {
                tokio::time::sleep(Duration::from_millis(200)).await;
                phase.at(live.ended_so_far(), &live.line());
            }
        };
        let progress = Arc::clone(&live);
        let pass = tokio::select! {
            pass = self.target.measure(&ctx.settings.backend, sessions, shape, progress) => pass,
            () = watching => Pass::default(),
        };
        readings.counted = pass.counted;
        readings.waiting_peak = pass.waiting_peak;
        readings.starvation = pass.starvation;
        if !ctx.cancel.is_set() && self.args.workload.quality_probes.contains(&QualityProbe::Logprobs) {
            phase.quiet_say("quality probes");
            readings.logprobs = self.logprobs().await;
        }
        let epoch = pass.epoch;
        Measured { epoch, ..self.figures(ctx, level, total, pass.traces, readings) }
    }

    fn figures(
        &self,
        ctx: &Context,
        level: Level,
        total: usize,
        traces: Vec<RequestTrace>,
        readings: &Readings,
    ) -> Measured {
        let stated = self.stated(level, total);
        let at = (self.base_url.as_str(), &*self.target.model, self.args.server.endpoint);
        let report = BenchReport::of(at, stated, self.args.verdict.goodput, &traces, readings);
        let mut findings = notes::findings(&report, &traces, readings, self.args.verdict.tolerate_failures);
        if self.args.workload.quality_probes.contains(&QualityProbe::Logprobs) && readings.logprobs.is_empty() {
            findings.push(self.finding(&bench_rules::NO_LOGPROBS));
        }
        if let Some(answered) = other_model(&traces, &self.target.model) {
            let finding = self.finding(&bench_rules::ANSWERED_BY_ANOTHER);
            findings.push(finding.arg("model", &*self.target.model).arg("answered", answered));
        }
        if let Some(state) = ctx.cancel.get() {
            let interrupted = self.finding(&bench_rules::INTERRUPTED);
            findings.push(interrupted.arg("signal", state.name()).arg("done", traces.len()));
        }
        Measured::of(report, traces, findings)
    }

    /// Log-probabilities of what the server generates for some fixed prompts, one at a time.
    async fn logprobs(&self) -> Vec<f64> {
        let mut asking = self.target.clone();
        asking.asked.logprobs = true;
        let probes = PROBES.iter().map(|text| ChatRequest::prompt("probe", text, self.args.workload.max_tokens));
        let sessions = probes.map(Session::from).collect();
        let traces = asking.load(sessions, Shape::Closed { concurrency: 1 }).execute(Arc::new(Unheard)).await;
        traces.into_iter().filter(RequestTrace::succeeded).flat_map(|trace| trace.logprobs).collect()
    }

    fn finding(&self, rule: &'static rules::Rule) -> Finding {
        Finding::new(rule, Location::file(RepoPath::new(&self.base_url)))
    }

    fn unusable(&self, ctx: &Context, reason: &Unusable) -> Measured {
        let finding = match reason {
            Unusable::NotReady(last) => {
                self.finding(&bench_rules::NOT_READY).arg("seconds", self.args.server.ready_timeout).arg("last", last)
            }
            Unusable::Unauthorized(status) => {
                self.finding(&bench_rules::UNAUTHORIZED).arg("status", u32::from(*status))
            }
            Unusable::Interrupted => {
                let signal = ctx.cancel.get().map_or("a signal", |state| state.name());
                self.finding(&bench_rules::INTERRUPTED).arg("signal", signal).arg("done", 0u32)
            }
        };
        Measured { findings: vec![finding], ..self.nothing() }
    }

    /// The report of a load that was not sent.
    fn nothing(&self) -> Measured {
        let at = (self.base_url.as_str(), &*self.target.model, self.args.server.endpoint);
        let stated = self.stated(self.first_level(), self.args.load.num_prompts as usize);
        let report = BenchReport::of(at, stated, self.args.verdict.goodput, &[], &Readings::default());
        Measured::of(report, Vec::new(), Vec::new())
    }

    /// Agrees with the other generators of this load on its start, where there are some.
    async fn gather(&mut self, ctx: &Context, phase: &Phase) -> Result<Option<Met>, Localized> {
        let together = &self.args.load.together;
        if let Some(start) = together.start_at {
            self.target.start = Some(wait_for(start, &ctx.cancel, phase).await?);
            return Ok(None);
        }
        let (Some(partition), Some(place)) = (together.partition, self.place.take()) else { return Ok(None) };
        let empty = self.header(ctx, &self.nothing(), &Readings::default(), None, &Wall::now(), &[]);
        let who = Who { partition, load: empty.identity() };
        let say = |what: &str| phase.quiet_say(what);
        let met = place.meet(&who, &ctx.cancel, &say).await?;
        self.target.start = Some(met.start);
        Ok(Some(met))
    }

    /// What stands above the requests of a part.
    fn header(
        &self,
        ctx: &Context,
        measured: &Measured,
        readings: &Readings,
        meeting: Option<String>,
        wall: &Wall,
        clocks: &[Reading],
    ) -> Header {
        let Partition { part, of } = self.args.load.together.partition.unwrap_or(Partition { part: 1, of: 1 });
        let zero = measured.epoch.unwrap_or(wall.at);
        let comparison = |reading: &Reading| {
            let at_ms = signed_ms(zero, reading.at);
            Comparison { at_ms, shift_ms: reading.there_ms - at_ms, uncertainty_ms: reading.uncertainty_ms }
        };
        let start_at = self.args.load.together.start_at;
        Header {
            schema_version: part::SCHEMA_VERSION.to_owned(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            part,
            of,
            meeting,
            start_at_s: start_at.map(|start| start.as_duration().as_secs_f64()),
            base_url: self.base_url.clone(),
            model: self.target.model.to_string(),
            endpoint: self.args.server.endpoint,
            load: self.whole(self.first_level()),
            prompt_sha256: self.args.workload.prompt.as_ref().map(|text| fsx::sha256(text.as_bytes())),
            goodput_targets_ms: self.args.verdict.goodput,
            tolerate_failures: self.args.verdict.tolerate_failures,
            requests: measured.traces.len(),
            interrupted: ctx.cancel.get().map(|state| state.name().to_owned()),
            clock: part::Clock {
                wall_at_zero_s: wall.seconds + signed_ms(wall.at, zero) / 1000.0,
                wall_step_ms: wall.step_ms(),
                readings: clocks.iter().map(comparison).collect(),
            },
            ready_wait_s: readings.ready_wait_s,
            counted: readings.counted.clone(),
            waiting_peak: readings.waiting_peak,
            client_error: readings.client_error.clone(),
            starvation: readings.starvation,
            logprobs: readings.logprobs.clone(),
        }
    }

    /// The load of all generators together.
    fn whole(&self, level: Level) -> LoadStated {
        let requests = match &self.source {
            Source::Mix(_) => self.args.load.num_prompts,
            Source::Trace(sessions, _) => u32::try_from(sessions.len()).unwrap_or(u32::MAX),
        };
        self.stated_of(level, requests as usize)
    }

    /// The load of this generator.
    fn stated(&self, level: Level, total: usize) -> LoadStated {
        let whole = self.stated_of(level, total);
        let Some(partition) = self.args.load.together.partition else { return whole };
        LoadStated {
            warmup: self.warmup_count(),
            concurrency: whole.concurrency.map(|count| share(count, partition)),
            max_concurrency: whole.max_concurrency.map(|count| share(count, partition)),
            request_rate: whole.request_rate.map(|rate| rate / partition.of as f64),
            ..whole
        }
    }

    fn stated_of(&self, level: Level, total: usize) -> LoadStated {
        let (load, workload) = (&self.args.load, &self.args.workload);
        let replayed = matches!(self.source, Source::Trace(..));
        let (shape, arrival) = match (replayed, level, load.arrival) {
            (true, ..) => ("open", Some("trace")),
            (_, Level::Closed(_), _) => ("closed", None),
            (_, Level::Rate(_), Arrival::Constant) => ("open", Some("constant")),
            (_, Level::Rate(_), Arrival::Poisson) => ("open", Some("poisson")),
        };
        LoadStated {
            shape: shape.into(),
            concurrency: level.concurrency().filter(|_| !replayed),
            request_rate: level.rate().filter(|_| !replayed),
            arrival: arrival.map(Into::into),
            max_concurrency: load.max_concurrency,
            num_prompts: u32::try_from(total).unwrap_or(u32::MAX),
            warmup: load.warmup.unwrap_or_else(|| self.whole_in_flight().max(2)),
            max_tokens: workload.max_tokens,
            timeout_s: load.timeout,
            retries: load.retries,
            seed: load.seed,
            turns: workload.turns,
            shared_prefix_words: workload.shared_prefix.unwrap_or(0),
            workload_sha256: self.sha256.clone(),
            tenants: workload.tenants.clone(),
            continuous_usage: self.target.asked.continuous_usage,
        }
    }
}

/// What a quality probe asks; every server of ours has a word for it.
const PROBES: [&str; 5] = [
    "The capital of France is",
    "Count from one to ten.",
    "Translate to Chinese: good morning.",
    "请用一句话说明什么是量化。",
    "What is 17 times 3?",
];

/// How much load.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Level {
    Closed(u32),
    Rate(f64),
}

impl Level {
    fn doubled(self) -> Self {
        match self {
            Level::Closed(concurrency) => Level::Closed(concurrency.saturating_mul(2)),
            Level::Rate(rate) => Level::Rate(rate * 2.0),
        }
    }

    fn concurrency(self) -> Option<u32> {
        if let Level::Closed(concurrency) = self { Some(concurrency) } else { None }
    }

    fn rate(self) -> Option<f64> {
        if let Level::Rate(rate) = self { Some(rate) } else { None }
    }

    fn number(self) -> f64 {
        match self {
            Level::Closed(concurrency) => f64::from(concurrency),
            Level::Rate(rate) => rate,
        }
    }

    /// Sets the prompts of one level apart from those of another.
    fn salt(self) -> String {
        format!("{}-", self.number())
    }
}

fn step(level: Level, report: &BenchReport) -> RampStep {
    let figure = |name: &str| report.latencies.get(name).copied().flatten();
    RampStep {
        level: level.number(),
        output_tokens_per_s: report.output_tokens_per_s,
        requests_per_s: report.requests_per_s,
        ttft_ms: figure("ttft_ms"),
        ttft_p50_ms: figure("ttft_p50_ms"),
        tpot_ms: figure("tpot_ms"),
        e2e_ms: figure("e2e_ms"),
        failed: report.failed,
    }
}

/// Whether the last step was worth it.
fn gains(steps: &[RampStep]) -> bool {
    let [.., before, last] = steps else { return true };
    let rate = |step: &RampStep| step.output_tokens_per_s.unwrap_or(0.0);
    rate(last) > rate(before) * (1.0 + KNEE)
}

/// The level after which throughput gained less than 5 %; `None`: it still grew at the end.
fn knee(steps: &[RampStep]) -> Option<f64> {
    (1..steps.len()).find(|end| !gains(&steps[..=*end])).map(|end| steps[end - 1].level)
}

/// The wall clock beside the one that measures.
struct Wall {
    at: Instant,
    seconds: f64,
}

impl Wall {
    fn now() -> Self {
        Wall { at: Instant::now(), seconds: jiff::Timestamp::now().as_duration().as_secs_f64() }
    }

    /// How far the wall clock was set since, ms.
    fn step_ms(&self) -> f64 {
        let now = Wall::now();
        (now.seconds - self.seconds) * 1000.0 - signed_ms(self.at, now.at)
    }
}

/// The comparisons of clocks of a meeting, the last of them made now.
async fn clocks(met: Option<&mut Met>) -> Vec<Reading> {
    let Some(met) = met else { return Vec::new() };
    let after = met.again().await;
    std::iter::once(met.before).chain(after).collect()
}

/// From one moment to another, ms; negative when the other was earlier.
fn signed_ms(from: Instant, to: Instant) -> f64 {
    let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
    ms(to.saturating_duration_since(from)) - ms(from.saturating_duration_since(to))
}

/// Waits until shortly before a time of the wall clock; the moment at which it is.
async fn wait_for(start: jiff::Timestamp, cancel: &Cancel, phase: &Phase) -> Result<Instant, Localized> {
    // Time to read the counters of the server.
    const LEAD: Duration = Duration::from_secs(1);
    loop {
        let left = Duration::try_from(start.duration_since(jiff::Timestamp::now())).map_err(|_| {
            Localized::both(format!("the start at {start} has passed"), format!("约定的开始时间 {start} 已过"))
        })?;
        if left <= LEAD {
            return Ok(Instant::now() + left);
        }
        phase.quiet_say(&format!("starting at {start}"));
        let step = (left - LEAD).min(Duration::from_millis(200));
        tokio::select! {
            () = tokio::time::sleep(step) => {}
            _ = cancel.wait(1) => return Err(Localized::both("interrupted", "已中断")),
        }
    }
}

/// The place where the generators of a load meet, when there are several.
fn place(args: &BenchArgs, source: &Source) -> Result<Option<Place>, RunError> {
    let (load, together) = (&args.load, &args.load.together);
    let Some(partition) = together.partition else { return Ok(None) };
    let fault = |en: String, zh: String, hint: (&str, &str)| {
        Err(RunError::usage(Localized::both(en, zh), Localized::both(hint.0, hint.1)))
    };
    let of = partition.of;
    let closed = load.concurrency.or((load.request_rate.is_none() && matches!(source, Source::Mix(_))).then_some(1));
    let least = [closed, load.max_concurrency, Some(load.num_prompts)].into_iter().flatten().min().unwrap_or(1);
    if (least as usize) < of {
        return fault(
            format!("{least} cannot be split over {of} generators: each needs one request in flight at least"),
            format!("{least} 无法分给 {of} 个压测进程：每个至少要有一个在途请求"),
            (
                "raise --num-prompts, --concurrency or --max-concurrency: they are those of the whole load",
                "请调大 --num-prompts、--concurrency 或 --max-concurrency：它们指的是整个负载",
            ),
        );
    }
    let Some(address) = &together.meet else {
        return if together.start_at.is_some() || of == 1 {
            Ok(None)
        } else {
            fault(
                "the parts of a load must start together".to_owned(),
                "负载的各部分必须同时开始".to_owned(),
                (
                    "give --meet HOST:PORT, the same to every part, or --start-at TIME",
                    "请给每一份指定相同的 --meet HOST:PORT，或 --start-at TIME",
                ),
            )
        };
    };
    let reserved = Place::reserve(address, partition);
    reserved.map(Some).or_else(|error| {
        fault(
            format!("cannot listen on {address}: {error}"),
            format!("无法监听 {address}：{error}"),
            ("part 1 runs on the machine whose address --meet names", "第 1 份应在 --meet 所指地址的机器上运行"),
        )
    })
}

fn key_of(variable: &str) -> Result<String, RunError> {
    std::env::var(variable).ok().filter(|key| !key.is_empty()).ok_or_else(|| {
        RunError::usage(
            Localized::both(
                format!("the environment variable {variable} is not set"),
                format!("环境变量 {variable} 没有设置"),
            ),
            Localized::both(
                format!("set {variable} to the API key; keys are never given on a command line"),
                format!("请把 API key 放进 {variable}；key 从不出现在命令行上"),
            ),
        )
    })
}

/// Prompts or a trace, and the fingerprint of the file they came from.
fn source(ctx: &Context, args: &BenchArgs) -> Result<(Source, Option<String>), RunError> {
    let workload = &args.workload;
    if let Some(file) = &workload.trace {
        let path = ctx.at_cwd(file);
        let text = read(&path)?;
        let (sessions, shape) = replay(&text, workload.max_tokens, args.load.max_concurrency)
            .map_err(|fault| no_workload(&path, &fault))?;
        return Ok((Source::Trace(sessions, shape), Some(fsx::sha256(text.as_bytes()))));
    }
    let (prompts, sha256) = match (&workload.workload, &workload.prompt) {
        (Some(file), _) => {
            let path = ctx.at_cwd(file);
            let read =
                Workload::read(&path, workload.max_tokens).map_err(|error| no_workload(&path, &error.to_string()))?;
            let sha256 = read.sha256.clone();
            (Prompts::File(read), Some(sha256))
        }
        (None, Some(text)) => (Prompts::Fixed(text.clone()), None),
        (None, None) => (Prompts::Own { shared_words: workload.shared_prefix.unwrap_or(0) }, None),
    };
    let mix = Mix {
        prompts,
        max_tokens: workload.max_tokens,
        turns: workload.turns,
        tenants: workload.tenants.clone(),
        seed: args.load.seed,
    };
    Ok((Source::Mix(mix), sha256))
}

fn read(path: &Path) -> Result<String, RunError> {
    let bytes = std::fs::read(path).map_err(|error| RunError::file(PathBuf::from(path), error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn no_workload(path: &Path, fault: &str) -> RunError {
    let shown = path.display();
    RunError::usage(
        Localized::both(format!("{shown}: {fault}"), format!("{shown}：{fault}")),
        Localized::both(
            "a workload has one JSON object a line: {\"prompt\": …}; a trace {\"t\": seconds, \"prompt\": …}",
            "工作负载每行一个 JSON 对象：{\"prompt\": …}；轨迹为 {\"t\": 秒, \"prompt\": …}",
        ),
    )
}
