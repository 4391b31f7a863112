//! Runs an experiment: blocks of passes on one server, cold start → warm-up → measured
//! passes, the probes before, under and after the load. What ends is kept at once.

use super::record::{PassPhase, PassRecord, StartRecord};
use super::sample::{self, Beginning, GaugePeaks};
use super::schedule::{Slot, order};
use super::setup::{Arm, Experiment};
use super::store::{Extras, Store};
use super::{figures, record};
use crate::backend::doctor;
use crate::backend::machine::Activity;
use crate::backend::plan::Server;
use crate::backend::ready::ColdStart;
use crate::backend::session::{self, Fault, Session};
use crate::bench::calibrate::{ClientError, MetricError, SHORT, calibrate, short_rounds};
use crate::bench::live::Live;
use crate::bench::load::{self, Load, Progress, Shape, Unheard};
use crate::bench::plan::{constant_arrivals, poisson_arrivals};
use crate::client::{Asked, ChatRequest, RequestTrace, Run};
use crate::course::Context;
use crate::model::{Finding, Location};
use crate::process::Guarded;
use crate::quality::{self, Moment};
use crate::rules::experiment as rules;
use crate::term::Phase;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pairs of a hit and a miss.
const INVALIDATION_PAIRS: usize = 3;
/// Streams of the check of the client at most: what it shows at 256 holds for more.
const MAX_CHECKED: u32 = 256;
/// Salts of warm-ups and of the load under the probes stand apart from those of passes.
const SALT_APART: usize = 900_000;

/// What a run of an experiment left beside its files.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Why it is not complete.
    pub(crate) fault: Option<Finding>,
    /// Every measured pass is there.
    pub(crate) complete: bool,
}

/// Runs what is still to come of an experiment.
pub(crate) async fn run(ctx: &Context, experiment: &Experiment, store: &mut Store, phase: &Phase) -> Ended {
    let mut ended = Ended::default();
    let slots = order(experiment.arms.len(), experiment.manifest.repeats, experiment.manifest.seed);
    let to_come: Vec<(usize, Slot)> = slots
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, slot)| !store.has(&experiment.arms[slot.arm].name, slot.repeat))
        .collect();
    let errors = if to_come.is_empty() { BTreeMap::new() } else { check_client(experiment, phase).await };
    for (number, block) in blocks(experiment, &to_come).into_iter().enumerate() {
        if ctx.cancel.is_set() {
            break;
        }
        let first = &experiment.arms[block[0].1.arm];
        let run_id = format!("{:03}-{number}", store.next_start());
        let mut runner = Runner {
            experiment,
            start: store.next_start(),
            start_record: StartRecord { arm: first.name.clone(), ..StartRecord::default() },
            ready: false,
            errors: &errors,
            store,
            phase,
        };
        let life =
            session::with_server(ctx, &first.plan, &run_id, phase, async |session| runner.block(session, &block).await)
                .await;
        let Runner { start, start_record, ready, .. } = runner;
        if ready {
            let started = matches!(first.plan.server, Server::Start { .. });
            let kept = store.keep_start(start_of(start, start_record, life.cold, started));
            ended.fault = kept.err().map(|error| not_written(ctx, experiment, &error));
        }
        if let Some(fault) = life.fault {
            ended.fault = Some(fault);
        }
        if ended.fault.is_some() {
            break;
        }
    }
    ended.complete = slots.iter().all(|slot| store.has(&experiment.arms[slot.arm].name, slot.repeat));
    ended
}

fn not_written(ctx: &Context, experiment: &Experiment, error: &io::Error) -> Finding {
    Finding::new(&rules::NOT_WRITTEN, Location::file(ctx.repo_path(&experiment.folder))).arg("cause", error.to_string())
}

/// A server that ran already tells nothing of a cold start.
fn start_of(start: u32, record: StartRecord, cold: ColdStart, started: bool) -> StartRecord {
    StartRecord {
        start,
        port_open_ms: cold.port_open_ms.filter(|_| started),
        healthy_ms: cold.healthy_ms.filter(|_| started),
        first_answer_ms: cold.first_answer_ms.filter(|_| started),
        first_request_ttft_ms: cold.first_request_ttft_ms,
        first_request_e2e_ms: cold.first_request_e2e_ms,
        ..record
    }
}

/// Passes that follow one another on one server: those whose server has the same command.
fn blocks(experiment: &Experiment, to_come: &[(usize, Slot)]) -> Vec<Vec<(usize, Slot)>> {
    let command = |slot: &Slot| &experiment.manifest.arms[slot.arm].command;
    let mut blocks: Vec<Vec<(usize, Slot)>> = Vec::new();
    for entry in to_come {
        match blocks.last_mut() {
            Some(block) if block.last().is_some_and(|(_, last)| command(last) == command(&entry.1)) => {
                block.push(*entry)
            }
            _ => blocks.push(vec![*entry]),
        }
    }
    blocks
}

/// Measures the client's own error at every concurrency of the experiment.
async fn check_client(experiment: &Experiment, phase: &Phase) -> BTreeMap<u32, ClientError> {
    let mut errors = BTreeMap::new();
    for concurrency in experiment.arms.iter().map(concurrency) {
        if errors.contains_key(&concurrency) {
            continue;
        }
        phase.say(&format!("checking the client at concurrency {concurrency}"));
        let Ok(found) = calibrate(concurrency.min(MAX_CHECKED), short_rounds(concurrency), SHORT).await else {
            continue;
        };
        errors.insert(concurrency, found);
    }
    errors
}

/// Requests in flight of an arm; of an open loop about one second of arrivals.
fn concurrency(arm: &Arm) -> u32 {
    arm.load.concurrency.unwrap_or_else(|| arm.load.rate_per_s.unwrap_or(1.0).ceil().clamp(1.0, 256.0) as u32)
}

/// What runs on one server.
struct Runner<'a> {
    experiment: &'a Experiment,
    store: &'a mut Store,
    errors: &'a BTreeMap<u32, ClientError>,
    phase: &'a Phase,
    start: u32,
    start_record: StartRecord,
    /// The server was ready: its start counts.
    ready: bool,
}

impl Runner<'_> {
    async fn block(&mut self, session: &Session<'_>, block: &[(usize, Slot)]) -> Result<(), Fault> {
        self.ready = true;
        self.start_record.static_memory = sample::memory_now(session).await;
        let mut warm: Option<usize> = None;
        for (place, slot) in block {
            let arm = &self.experiment.arms[slot.arm];
            if warm != Some(slot.arm) {
                self.identity(session, arm)?;
                self.probe(session, arm, Moment::Before).await?;
                self.warm_up(session, arm, *place).await?;
                warm = Some(slot.arm);
            }
            self.measure(session, arm, *place, slot.repeat).await?;
            if self.is_last(slot.arm) {
                self.invalidate(session, arm).await?;
                self.probe(session, arm, Moment::UnderLoad).await?;
                self.probe(session, arm, Moment::After).await?;
            }
        }
        Ok(())
    }

    /// Whether every measured pass of an arm is there.
    fn is_last(&self, arm: usize) -> bool {
        let name = &self.experiment.arms[arm].name;
        (1..=self.experiment.manifest.repeats).all(|repeat| self.store.has(name, repeat))
    }

    fn kept(&self, session: &Session<'_>, result: io::Result<()>) -> Result<(), Fault> {
        result.map_err(|error| Box::new(not_written(session.ctx, self.experiment, &error)))
    }

    /// What the server says of the model it serves.
    fn identity(&mut self, session: &Session<'_>, arm: &Arm) -> Result<(), Fault> {
        let mut extras = self.store.extras(&arm.name);
        extras.served_model.clone_from(&session.model);
        let stated = session.entry["meta"]["ftype"].as_str().map(str::trim).filter(|stated| !stated.is_empty());
        extras.precision = stated.map(str::to_ascii_lowercase);
        let kept = self.store.keep_extras(&arm.name, &extras);
        self.kept(session, kept)
    }

    async fn warm_up(&mut self, session: &Session<'_>, arm: &Arm, place: usize) -> Result<(), Fault> {
        let requests: Vec<ChatRequest> = arm.requests.iter().cycle().take(arm.warmup as usize).cloned().collect();
        if requests.is_empty() {
            return Ok(());
        }
        let requests = salted(arm, &requests, SALT_APART + place * 100, 0);
        self.pass(session, arm, requests, Shape::Closed { concurrency: concurrency(arm) }, 0).await.map(drop)
    }

    async fn measure(&mut self, session: &Session<'_>, arm: &Arm, place: usize, repeat: u32) -> Result<(), Fault> {
        let count = arm.requests.len();
        // Where one arm leaves nothing for the other, both sides of a pair are asked the very same.
        let number = if arm.cache_off || arm.own_server { repeat as usize - 1 } else { place };
        let requests = salted(arm, &arm.requests, number * count, number);
        let shape = shape(arm, count, self.experiment.manifest.seed.wrapping_add(u64::from(repeat)));
        let failed = self.pass(session, arm, requests, shape, repeat).await?;
        self.phase.step(&format!("{} pass {repeat}", arm.name));
        // A server that answers nothing any more would cost a timeout per request.
        if failed.all { Err(all_failed(session, failed.first)) } else { Ok(()) }
    }

    /// One pass: counters → requests → counters, with everything that is read beside it.
    async fn pass(
        &mut self,
        session: &Session<'_>,
        arm: &Arm,
        requests: Vec<ChatRequest>,
        shape: Shape,
        repeat: u32,
    ) -> Result<Failed, Fault> {
        let before = session.counters().await.counters;
        let load_before = doctor::load().map(|load| load[0]);
        let started_at = jiff::Timestamp::now().to_string();
        let activity = || session.server.and_then(Guarded::guardian_pid).and_then(Activity::read);
        let active_before = activity();
        let beginning = Beginning::read();
        let run = self.run_of(session, arm);
        let began = run.epoch;
        let live = Arc::new(Live::new(requests.len()));
        let load = Load {
            run,
            sessions: requests.into_iter().map(load::Session::from).collect(),
            shape,
            retries: 0,
            cancel: None,
        };
        let (mut samples, mut peaks) = (Vec::new(), GaugePeaks::default());
        let progress: Arc<dyn Progress> = Arc::clone(&live) as Arc<dyn Progress>;
        let useful = concurrency(arm) > 1 || session.plan.profile.counters.contains_key("kv_cache_usage");
        let traces = tokio::select! {
            traces = load.execute(progress) => traces,
            () = sample::watch_memory(session, began, &mut samples) => Vec::new(),
            () = sample::watch_gauges(session, useful, &mut peaks) => Vec::new(),
            () = self.show(arm, repeat, &live) => Vec::new(),
        };
        let client = beginning.client();
        let gpu = beginning.gpu(session.server.is_some());
        let others = activity().zip(active_before).and_then(|(after, before)| after.since(&before));
        let after = session.counters().await.counters;
        let (duration_s, time) = figures::pass_time(&traces, self.experiment.manifest.goodput);
        if let Some(sample) = samples.last_mut() {
            sample.memory.kv_cache_usage = peaks.kv_cache_usage;
        }
        let error = self.errors.get(&concurrency(arm));
        let mean = |metric: fn(&ClientError) -> Option<MetricError>| Some(metric(error?)?.mean_ms);
        let pass = PassRecord {
            index: self.store.next_index(),
            arm: arm.name.clone(),
            repeat,
            phase: if repeat == 0 { PassPhase::Warmup } else { PassPhase::Measured },
            start: self.start,
            started_at,
            duration_s,
            requests: traces.iter().map(figures::request).collect(),
            time,
            counters: sample::counted(before, after, peaks),
            memory: record::MemorySeries { interval_ms: sample::MEMORY_INTERVAL.as_secs_f64() * 1000.0, samples },
            gpu,
            client: record::ClientRecord {
                error_ttft_ms: mean(|error| error.ttft),
                error_itl_ms: mean(|error| error.itl),
                error_e2e_ms: mean(|error| error.e2e),
                error_within_limits: error.map(|error| error.within_limits),
                ..client
            },
            others_cpu_share: others.map(|found| found.taken()),
            load_average: [load_before, doctor::load().map(|load| load[0])],
        };
        let kept = self.store.keep_pass(pass, &traces);
        self.kept(session, kept)?;
        Ok(Failed::of(&traces))
    }

    /// Shows running figures until it is dropped. Never ready.
    async fn show(&self, arm: &Arm, repeat: u32, live: &Live) {
        let what = if repeat == 0 { "warm-up".to_owned() } else { format!("pass {repeat}") };
        loop {
            self.phase.quiet_say(&format!("{} {what}: {}", arm.name, live.line()));
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn run_of(&self, session: &Session<'_>, arm: &Arm) -> Run {
        let run = session.run();
        Run {
            epoch: Instant::now(),
            timeout: arm.plan.probe_timeout,
            asked: Asked { ignore_eos: arm.ignore_eos, ..run.asked },
            ..run
        }
    }

    /// Asks the probes once per moment and arm.
    async fn probe(&mut self, session: &Session<'_>, arm: &Arm, moment: Moment) -> Result<(), Fault> {
        let Some(set) = &self.experiment.probes else { return Ok(()) };
        let mut answers = self.store.answers(&arm.name);
        if answers.values().flatten().any(|answer| answer.moment == moment) {
            return Ok(());
        }
        self.phase.say(&format!("{}: probes", arm.name));
        let run = session.run();
        if moment == Moment::UnderLoad {
            tokio::select! {
                () = quality::ask(&run, set, moment, &mut answers) => {}
                () = self.keep_busy(session, arm) => {}
            }
        } else {
            quality::ask(&run, set, moment, &mut answers).await;
        }
        let kept = self.store.keep_answers(&arm.name, &answers);
        self.kept(session, kept)
    }

    /// Sends the arm's own prompts until it is dropped, as many in flight as in its passes. Never ready.
    async fn keep_busy(&self, session: &Session<'_>, arm: &Arm) {
        for round in 0.. {
            let requests = salted(arm, &arm.requests, SALT_APART + 50_000 + round * arm.requests.len(), SALT_APART);
            let run = self.run_of(session, arm);
            load::closed_loop(&run, &requests, concurrency(arm), Arc::new(Unheard)).await;
            // A server that refuses at once must not be asked without a pause.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Pairs of a request that hits the cache and the same one behind a changed first
    /// word, which cannot: where the cache is the subject and on.
    async fn invalidate(&mut self, session: &Session<'_>, arm: &Arm) -> Result<(), Fault> {
        let mut extras = self.store.extras(&arm.name);
        if !self.experiment.cache_is_subject || arm.cache_off || !extras.hit_ttft_ms.is_empty() {
            return Ok(());
        }
        self.phase.say(&format!("{}: invalidation", arm.name));
        let run = self.run_of(session, arm);
        if let Some(request) = arm.requests.first() {
            measure_invalidation(&run, request, &mut extras).await;
        }
        let kept = self.store.keep_extras(&arm.name, &extras);
        self.kept(session, kept)
    }
}

async fn measure_invalidation(run: &Run, request: &ChatRequest, extras: &mut Extras) {
    let mut connection = None;
    for round in 0..INVALIDATION_PAIRS {
        // The first sending fills the cache again after the miss of the round before.
        run.send(request, &mut connection).await;
        let hit = run.send(request, &mut connection).await;
        let miss = run.send(&request.with_changed_prefix(&format!("[miss {round}] ")), &mut connection).await;
        let ttft = |trace: &RequestTrace| {
            let first = trace.chunks.first().filter(|_| trace.succeeded())?;
            Some(first.at.saturating_sub(trace.sent).as_secs_f64() * 1000.0)
        };
        if let (Some(hit), Some(miss)) = (ttft(&hit), ttft(&miss)) {
            extras.hit_ttft_ms.push(hit);
            extras.miss_ttft_ms.push(miss);
        }
    }
}

/// Puts a number of fixed width before every prompt: one per prompt from `first` on, or
/// the same for all of them where the cache is the subject.
fn salted(arm: &Arm, requests: &[ChatRequest], first: usize, of_pass: usize) -> Vec<ChatRequest> {
    let number = |index: usize| if arm.salt_per_pass { of_pass + first } else { first + index };
    requests
        .iter()
        .enumerate()
        .map(|(index, request)| request.with_changed_prefix(&format!("[{:06}] ", number(index) % 1_000_000)))
        .collect()
}

fn shape(arm: &Arm, count: usize, seed: u64) -> Shape {
    match arm.load.rate_per_s {
        None => Shape::Closed { concurrency: concurrency(arm) },
        Some(rate) => Shape::Open {
            arrivals: if arm.load.shape == "constant" {
                constant_arrivals(count, rate)
            } else {
                poisson_arrivals(count, rate, seed)
            },
            max_in_flight: None,
        },
    }
}

/// Whether the requests of a pass failed.
struct Failed {
    all: bool,
    first: String,
}

impl Failed {
    fn of(traces: &[RequestTrace]) -> Self {
        let first = traces.iter().find_map(|trace| trace.fault.as_ref());
        Failed {
            all: traces.iter().all(|trace| !trace.succeeded()),
            first: first.map(|fault| format!("{}: {}", fault.name(), fault.message)).unwrap_or_default(),
        }
    }
}

fn all_failed(session: &Session<'_>, first: String) -> Fault {
    let at = Location::file(session.ctx.repo_path(&session.plan.result));
    Box::new(Finding::new(&rules::ALL_FAILED, at).arg("first", first))
}

#[cfg(test)]
mod tests {
    use super::super::setup::generated;
    use super::*;

    fn text(request: &ChatRequest) -> &str {
        request.messages[0]["content"].as_str().unwrap()
    }

    #[test]
    fn salts_have_one_width_and_no_two_prompts_share_one() {
        let requests = generated(3, 4, 8, 1);
        let salt = |number: usize| format!("[{number:06}] ");
        let changed: Vec<ChatRequest> =
            requests.iter().enumerate().map(|(index, request)| request.with_changed_prefix(&salt(index))).collect();
        assert!(text(&changed[2]).starts_with("[000002] Continue"));
    }
}
