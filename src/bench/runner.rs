//! A measured pass on a server that runs already: ready → client's own error → warm-up →
//! counters → load → counters. What it leaves are traces and readings, no figures.

use super::load::{Load, Progress, Session, Shape, Unheard};
use super::starvation::{Starvation, Watch};
use crate::backend::BackendProfile;
use crate::backend::counters::{self, Counters};
use crate::client::{Asked, Connection, Endpoint, FaultKind, RequestTrace, Run};
use crate::interrupt::Cancel;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the gauge of waiting requests is read.
const GAUGE_INTERVAL: Duration = Duration::from_millis(50);
/// Limit for a page that is not measured.
const LOOK: Duration = Duration::from_secs(5);
/// The route with counters, as every server of ours has it.
const METRICS: &str = "/metrics";

/// A server that runs already, and how it is asked.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where.
    pub endpoint: Arc<Endpoint>,
    /// `model` of the requests.
    pub model: Arc<str>,
    /// What is asked for besides prompts.
    pub asked: Asked,
    /// Limit for one request.
    pub timeout: Duration,
    /// Further tries after 429 and 503.
    pub retries: u32,
    /// Ends everything early.
    pub cancel: Cancel,
    /// When the measured part begins, where others begin then too.
    pub start: Option<Instant>,
}

/// Why a server is not measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// Not ready in time; what the last look saw.
    NotReady(String),
    /// It wants a key.
    Unauthorized(u16),
    /// The run was interrupted.
    Interrupted,
}

/// A ready server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Readiness {
    /// How long it took.
    pub waited: Duration,
    /// Models that it lists; empty: it lists none.
    pub models: Vec<String>,
}

/// What one pass left.
#[derive(Debug, Default)]
pub struct Pass {
    /// One per request, in order.
    pub traces: Vec<RequestTrace>,
    /// Counter differences over the window, by meaning.
    pub counted: Counters,
    /// Largest number of waiting requests.
    pub waiting_peak: Option<f64>,
    /// What this client waited for a core.
    pub starvation: Option<Starvation>,
    /// What the times of the traces count from.
    pub epoch: Option<Instant>,
}

impl Target {
    /// Waits until the server lists its models, or has no such list. No request of the
    /// measured kind is sent: the first one is the cold sample.
    ///
    /// # Errors
    /// Time is up, a key is wanted, or the run was interrupted.
    pub async fn ready(&self, limit: Duration, say: &dyn Fn(&str)) -> Result<Readiness, Unusable> {
        let began = Instant::now();
        let mut last = "no answer yet".to_owned();
        let looking = async {
            loop {
                match tokio::time::timeout(LOOK, self.look()).await {
                    Ok(Look::Ready(models)) => return Ok(Readiness { waited: began.elapsed(), models }),
                    Ok(Look::Unauthorized(status)) => return Err(Unusable::Unauthorized(status)),
                    Ok(Look::Later(seen)) => last = seen,
                    Err(_) => last = format!("no answer within {} s", LOOK.as_secs()),
                }
                say(&last);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let ended = tokio::select! {
            result = tokio::time::timeout(limit, looking) => result.ok(),
            _ = self.cancel.wait(1) => Some(Err(Unusable::Interrupted)),
        };
        ended.unwrap_or(Err(Unusable::NotReady(last)))
    }

    async fn look(&self) -> Look {
        const MODELS: &str = "/v1/models";
        let mut connection = match self.endpoint.connect(Instant::now()).await {
            Ok(connection) => connection,
            Err(fault) => return Look::Later(fault.message),
        };
        match connection.get(&self.endpoint, MODELS).await {
            Ok((200, page)) => Look::Ready(listed(&page)),
            Ok((status @ (401 | 403), _)) => Look::Unauthorized(status),
            // No such route: nothing to wait for.
            Ok((404 | 405 | 501, _)) => Look::Ready(Vec::new()),
            Ok((status, _)) => Look::Later(format!("{MODELS} answers {status}")),
            Err(fault) => Look::Later(fault.message),
        }
    }

    /// The load of a pass on this server.
    pub fn load(&self, sessions: Vec<Session>, shape: Shape) -> Load {
        Load {
            run: Run {
                endpoint: Arc::clone(&self.endpoint),
                model: Arc::clone(&self.model),
                epoch: Instant::now(),
                timeout: self.timeout,
                asked: self.asked,
            },
            sessions,
            shape,
            retries: self.retries,
            cancel: Some(self.cancel.clone()),
        }
    }

    /// Warm-up requests: the first alone, since it is the cold sample, then the others at
    /// the load's concurrency. The first also asks for token counts in every chunk; they
    /// are asked for further on where the server gave them and they tell something.
    pub async fn warm_up(&mut self, mut sessions: Vec<Session>, concurrency: u32) -> Vec<RequestTrace> {
        if sessions.is_empty() {
            return Vec::new();
        }
        let others = sessions.split_off(1);
        let mut asking = self.clone();
        asking.asked.continuous_usage = true;
        let alone = Shape::Closed { concurrency: 1 };
        let mut traces = asking.load(sessions.clone(), alone.clone()).execute(Arc::new(Unheard)).await;
        if traces.first().is_some_and(refused) {
            traces = self.load(sessions, alone).execute(Arc::new(Unheard)).await;
        } else {
            self.asked.continuous_usage = traces.first().is_some_and(counts_help);
        }
        if !others.is_empty() {
            traces.extend(self.load(others, Shape::Closed { concurrency }).execute(Arc::new(Unheard)).await);
        }
        traces
    }

    /// The measured part, with the counters right before and after it.
    pub async fn measure(
        &self,
        profiles: &[BackendProfile],
        sessions: Vec<Session>,
        shape: Shape,
        progress: Arc<dyn Progress>,
    ) -> Pass {
        let mut counting = Counting::new(self, profiles).await;
        let before = counting.read().await;
        // Nothing waits behind a single request.
        let queues = !matches!(shape, Shape::Closed { concurrency: 1 });
        if let Some(start) = self.start {
            tokio::time::sleep_until(start.into()).await;
        }
        let watch = Watch::start();
        let mut waiting_peak = None;
        let load = self.load(sessions, shape);
        let epoch = Some(load.run.epoch);
        let traces = tokio::select! {
            traces = load.execute(progress) => traces,
            () = counting.peak(queues, &mut waiting_peak) => Vec::new(),
        };
        let starvation = Some(watch.stop());
        let after = counting.read().await;
        Pass { traces, counted: counters::difference(&before, &after), waiting_peak, starvation, epoch }
    }
}

enum Look {
    Ready(Vec<String>),
    Unauthorized(u16),
    Later(String),
}

fn listed(page: &str) -> Vec<String> {
    let list: Value = serde_json::from_str(page).unwrap_or_default();
    let entries = list["data"].as_array().into_iter().flatten();
    entries.filter_map(|entry| Some(entry["id"].as_str()?.to_owned())).collect()
}

/// The server does not take what was asked for beside the prompt.
fn refused(trace: &RequestTrace) -> bool {
    trace.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Http && matches!(fault.status, Some(400 | 422)))
}

/// The server counts in every chunk, and some chunk holds several tokens.
fn counts_help(trace: &RequestTrace) -> bool {
    let last = trace.chunks.last().and_then(|chunk| chunk.tokens_so_far);
    last.is_some_and(|tokens| tokens > trace.chunks.len() as u64)
}

/// The server's counters, read on a connection of their own.
struct Counting<'a> {
    endpoint: Arc<Endpoint>,
    /// Whose names the page has; `None`: it has none that we know.
    profile: Option<&'a BackendProfile>,
    connection: Option<Connection>,
}

impl<'a> Counting<'a> {
    async fn new(target: &Target, profiles: &'a [BackendProfile]) -> Self {
        let mut counting = Counting { endpoint: Arc::clone(&target.endpoint), profile: None, connection: None };
        let page = counting.page().await.unwrap_or_default();
        counting.profile = counters::known(profiles, &page);
        counting
    }

    async fn page(&mut self) -> Option<String> {
        let fresh = match self.connection.take() {
            Some(mut kept) => kept.reusable().await.then_some(kept),
            None => None,
        };
        let mut connection = match fresh {
            Some(kept) => kept,
            None => self.endpoint.connect(Instant::now()).await.ok()?,
        };
        let asked = tokio::time::timeout(LOOK, connection.get(&self.endpoint, METRICS)).await;
        let (status, page) = asked.ok()?.ok()?;
        self.connection = Some(connection);
        (status == 200).then_some(page)
    }

    async fn read(&mut self) -> Counters {
        let Some(profile) = self.profile else { return Counters::new() };
        self.page().await.map(|page| counters::read(profile, &page).counters).unwrap_or_default()
    }

    /// Follows the gauge of waiting requests, for ever.
    async fn peak(&mut self, queues: bool, peak: &mut Option<f64>) {
        if !queues || !self.profile.is_some_and(|profile| profile.counters.contains_key("waiting")) {
            return std::future::pending().await;
        }
        loop {
            if let Some(now) = self.read().await.get("waiting") {
                *peak = Some(peak.unwrap_or(0.0).max(*now));
            }
            tokio::time::sleep(GAUGE_INTERVAL).await;
        }
    }
}
