//! What the smoke stage does with a server that is ready: warm-up → counters →
//! measured requests → counters → invalidation → probes.

use super::probes;
use crate::backend::counters::{self, Counters};
use crate::backend::doctor;
use crate::backend::machine::{Activity, Contention};
use crate::backend::memory;
use crate::backend::plan::Plan;
use crate::backend::session::{self, Fault, Life, Session};
use crate::backend::spec::Switch;
use crate::bench::load::{Progress, Unheard, closed_loop};
use crate::client::{ChatRequest, RequestTrace, Run};
use crate::course::Context;
use crate::rules;
use crate::term::Phase;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Pairs of a hit and a miss.
const INVALIDATION_PAIRS: usize = 3;

/// What a run leaves: the life of its server and everything measured.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) life: Life,
    pub(super) measured: Measured,
}

/// What was measured while the server ran.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) warmup: Vec<RequestTrace>,
    pub(super) traces: Vec<RequestTrace>,
    /// The server's counters before the measured window.
    pub(super) before: counters::Page,
    /// The same after it.
    pub(super) after: counters::Page,
    pub(super) memory: memory::Watch,
    /// Largest values of the server's gauges (`running`, `waiting`) that were seen.
    pub(super) gauges: Counters,
    /// End and time to first token of the request after the readiness request, ms.
    pub(super) second: Option<(f64, Option<f64>)>,
    /// TTFT of requests that hit the cache and of the same ones with their prefix changed, ms.
    pub(super) invalidation: Option<Invalidation>,
    /// Answers to the quality probes.
    pub(super) probes: Option<probes::Asked>,
    pub(super) load_before: Option<[f64; 3]>,
    pub(super) load_after: Option<[f64; 3]>,
    /// What others took of the machine while requests ran.
    pub(super) contention: Option<Contention>,
}

/// What a changed prefix costs.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub(super) struct Invalidation {
    pub(super) hit_ttft_ms: Vec<f64>,
    pub(super) miss_ttft_ms: Vec<f64>,
}

impl Measured {
    /// What the server counted in the measured window.
    pub(super) fn counted(&self) -> Counters {
        counters::difference(&self.before.counters, &self.after.counters)
    }
}

/// Runs a plan. The result says what was observed; a fault is in it.
pub(super) async fn execute(ctx: &Context, plan: &Plan, run_id: &str, phase: &Phase) -> Observed {
    let mut measured = Measured::default();
    let mut life =
        session::with_server(ctx, plan, run_id, phase, async |session| measure(session, &mut measured).await).await;
    if let Some((answered, ttft)) = measured.second {
        life.cold.second_answer_ms = Some(answered);
        life.cold.second_request_ttft_ms = ttft;
    }
    Observed { life, measured }
}

async fn measure(session: &Session<'_>, measured: &mut Measured) -> Result<(), Fault> {
    let Session { plan, phase, .. } = session;
    let run = session.run();
    let (done, mut progress) = mpsc::unbounded_channel();
    let told: Arc<dyn Progress> = Arc::new(Told(done));
    phase.say("warm-up");
    measured.warmup = closed_loop(
        &run,
        &plan.workload.take(plan.warmup.max(1))[..plan.warmup as usize],
        plan.concurrency,
        Arc::new(Unheard),
    )
    .await;
    measured.before = session.counters().await;
    measured.load_before = doctor::load();
    // Of somebody else's server it is not known which processes are its own.
    let activity = || Activity::read(session.server?.guardian_pid()?);
    let before = activity();
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
    let waiting = async {
        // A queue can form only where more than one request is in flight.
        match plan.concurrency {
            0 | 1 => std::future::pending().await,
            _ => session.watch_gauges(&mut measured.gauges).await,
        }
    };
    tokio::select! {
        traces = closed_loop(&run, &requests, plan.concurrency, told) => measured.traces = traces,
        () = watching => {}
        () = session.watch_memory(&mut measured.memory) => {}
        () = waiting => {}
    }
    measured.contention = activity().zip(before).and_then(|(after, before)| after.since(&before));
    measured.load_after = doctor::load();
    measured.after = session.counters().await;
    measured.second = second_answer(session, &run, measured.warmup.iter().chain(&measured.traces));
    if plan.claims.prefix_cache == Some(Switch::On) && plan.project.is_some() {
        phase.say("invalidation");
        measured.invalidation = Some(invalidate(&run, &requests[0]).await);
    }
    all_succeeded(session, &measured.traces)?;
    if let Some(set) = &plan.probes {
        phase.say("quality probes");
        measured.probes = Some(probes::ask(&run, set).await);
    }
    Ok(())
}

/// The first answer after the one that showed the server ready: when it was complete,
/// counted from the start of the server, and its time to first token.
fn second_answer<'a>(
    session: &Session<'_>,
    run: &Run,
    traces: impl Iterator<Item = &'a RequestTrace>,
) -> Option<(f64, Option<f64>)> {
    let trace = traces.filter(|trace| trace.succeeded()).min_by_key(|trace| trace.end)?;
    let began = run.epoch.saturating_duration_since(session.spawned);
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    let ttft = trace.chunks.first().map(|chunk| milliseconds(chunk.at.saturating_sub(trace.sent)));
    Some((milliseconds(began + trace.end), ttft))
}

/// A request that failed fails the run.
fn all_succeeded(session: &Session<'_>, traces: &[RequestTrace]) -> Result<(), Fault> {
    let Some(fault) = traces.iter().find_map(|trace| trace.fault.as_ref()) else { return Ok(()) };
    let failed = traces.iter().filter(|trace| !trace.succeeded()).count();
    let status = fault.status.filter(|status| *status != 200).map(|status| format!("{status} ")).unwrap_or_default();
    Err(Box::new(
        session
            .finding(&rules::smoke::REQUEST_FAILED)
            .arg("failed", failed)
            .arg("total", traces.len())
            .arg("kind", fault.kind.to_string())
            .arg("detail", format!("{status}{}", fault.message))
            .arg("record", session.ctx.repo_path(&session.plan.failure_path())),
    ))
}

/// Pairs of a request that hits the cache and the same one behind a changed first word,
/// which cannot. The difference of their TTFT is what an invalidation costs.
async fn invalidate(run: &Run, request: &ChatRequest) -> Invalidation {
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

/// Counts requests as they end.
struct Told(mpsc::UnboundedSender<()>);

impl Progress for Told {
    fn ended(&self, _trace: &RequestTrace) {
        // Nobody listens when no progress is shown.
        let _ = self.0.send(());
    }
}
