//! The load engine: sessions in, traces out. Closed loop (a fixed number in flight) and
//! open loop (sent at planned times, whatever the server does). Reading what came is the
//! work of a thread of its own: the tasks that wait on sockets only copy and stamp.

use crate::client::{
    ChatRequest, Connection, Exchange, FaultKind, Prepared, Recording, RequestFault, RequestTrace, Run, StreamReader,
    Transfer,
};
use crate::interrupt::Cancel;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

/// Requests that follow one another: one prompt, or a conversation whose next turn waits
/// for the answer of the turn before.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Session {
    /// Who asks, in a mix of tenants.
    pub tenant: Option<Arc<str>>,
    /// What is asked, in order.
    pub turns: Vec<ChatRequest>,
}

impl From<ChatRequest> for Session {
    fn from(request: ChatRequest) -> Self {
        Session { tenant: None, turns: vec![request] }
    }
}

/// When sessions begin.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// So many in flight, the next one when one ends: capacity.
    Closed {
        /// In flight.
        concurrency: u32,
    },
    /// At planned times from the start, one per session: latency under a load.
    Open {
        /// From the start; computed in advance and never moved.
        arrivals: Vec<Duration>,
        /// In flight at most; a request that has to wait for it waits in our queue.
        max_in_flight: Option<u32>,
    },
}

impl Shape {
    /// Connections that are opened before the first request is sent.
    fn connections(&self, sessions: usize) -> usize {
        let wanted = match self {
            Shape::Closed { concurrency } => *concurrency as usize,
            Shape::Open { max_in_flight: Some(most), .. } => *most as usize,
            // About one second of arrivals; more are opened as they are needed.
            Shape::Open { arrivals, .. } => {
                arrivals.iter().take_while(|at| **at <= Duration::from_secs(1)).count().clamp(1, 256)
            }
        };
        wanted.clamp(1, sessions.max(1))
    }
}

/// Hears of requests while they run. Called from several threads; must not block.
pub trait Progress: Send + Sync {
    /// A request is about to be sent.
    fn started(&self) {}
    /// A request ended.
    fn ended(&self, _trace: &RequestTrace) {}
}

/// Nobody listens.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unheard;

impl Progress for Unheard {}

/// One load on one server.
#[derive(Debug, Clone)]
pub struct Load {
    /// Server, model, limits; its epoch is what all times count from.
    pub run: Run,
    /// What is asked.
    pub sessions: Vec<Session>,
    /// When.
    pub shape: Shape,
    /// Further tries after 429 and 503.
    pub retries: u32,
    /// Ends the load early; what had ended by then is returned.
    pub cancel: Option<Cancel>,
}

impl Load {
    /// Runs it to its end. The traces come in the order of the sessions, turn by turn.
    pub async fn execute(self, progress: Arc<dyn Progress>) -> Vec<RequestTrace> {
        let (sender, traces) = reading(Arc::clone(&progress));
        let cancel = self.cancel.clone();
        let mut tasks = JoinSet::new();
        let shared = Arc::new(Shared {
            sessions: self.sessions.iter().map(|session| prepare(&self.run, session)).collect(),
            run: self.run,
            retries: self.retries,
            next: AtomicUsize::new(0),
            idle: Mutex::new(Vec::new()),
            progress,
        });
        let interrupted = async {
            match &cancel {
                Some(cancel) => drop(cancel.wait(1).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.spread(&self.shape, &sender, &mut tasks) => {}
            () = interrupted => {}
        }
        // Every task holds a sender: the thread that reads ends when all of them did.
        tasks.shutdown().await;
        drop(sender);
        traces.await.unwrap_or_default()
    }
}

/// Sends `requests`, `concurrency` at a time, and returns their traces in the order of
/// the list.
pub async fn closed_loop(
    run: &Run,
    requests: &[ChatRequest],
    concurrency: u32,
    progress: Arc<dyn Progress>,
) -> Vec<RequestTrace> {
    let load = Load {
        run: run.clone(),
        sessions: requests.iter().cloned().map(Session::from).collect(),
        shape: Shape::Closed { concurrency },
        retries: 0,
        cancel: None,
    };
    load.execute(progress).await
}

/// A session whose first body is made already.
struct Ready {
    session: Session,
    first: Option<Prepared>,
}

fn prepare(run: &Run, session: &Session) -> Ready {
    let first = session.turns.first().map(|request| run.prepare(request, session.tenant.clone(), 0));
    Ready { session: session.clone(), first }
}

/// What all tasks of a load share.
struct Shared {
    run: Run,
    sessions: Vec<Ready>,
    retries: u32,
    next: AtomicUsize,
    idle: Mutex<Vec<Connection>>,
    progress: Arc<dyn Progress>,
}

impl Shared {
    async fn spread(self: &Arc<Self>, shape: &Shape, sender: &mpsc::Sender<Message>, tasks: &mut JoinSet<()>) {
        let connections = self.open(shape.connections(self.sessions.len())).await;
        match shape {
            Shape::Closed { .. } => {
                for connection in connections {
                    tasks.spawn(Arc::clone(self).work(connection, sender.clone()));
                }
            }
            Shape::Open { arrivals, max_in_flight } => {
                self.idle().extend(connections.into_iter().flatten());
                self.arrive(arrivals, *max_in_flight, sender, tasks).await;
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Opens connections at once. One that fails is tried again by the request that needs it.
    async fn open(self: &Arc<Self>, count: usize) -> Vec<Option<Connection>> {
        let mut opening = JoinSet::new();
        for _ in 0..count {
            let shared = Arc::clone(self);
            opening.spawn(async move { shared.run.connect().await.ok() });
        }
        opening.join_all().await
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One of the closed loop: takes session after session.
    async fn work(self: Arc<Self>, mut connection: Option<Connection>, sender: mpsc::Sender<Message>) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.sessions.len() {
                return;
            }
            let now = self.run.epoch.elapsed();
            self.session(index, now, &mut connection, &sender).await;
        }
    }

    /// The open loop. A thread keeps the times, because timers of the runtime are coarse.
    async fn arrive(
        self: &Arc<Self>,
        arrivals: &[Duration],
        max_in_flight: Option<u32>,
        sender: &mpsc::Sender<Message>,
        tasks: &mut JoinSet<()>,
    ) {
        let slots = Arc::new(Semaphore::new(max_in_flight.map_or(Semaphore::MAX_PERMITS, |most| most.max(1) as usize)));
        let began = self.run.epoch.elapsed() + LEAD;
        let mut due = timetable(self.run.epoch, began, arrivals.to_vec());
        let mut index = 0;
        while let Some(at) = due.recv().await {
            let (shared, slots, sender) = (Arc::clone(self), Arc::clone(&slots), sender.clone());
            let session = index;
            index += 1;
            if session >= self.sessions.len() {
                return;
            }
            tasks.spawn(async move {
                // The semaphore is fair and never closed: first come, first served.
                let _slot = slots.acquire().await;
                let mut connection = shared.idle().pop();
                shared.session(session, at, &mut connection, &sender).await;
                shared.idle().extend(connection);
            });
            while tasks.try_join_next().is_some() {}
        }
    }

    /// All turns of one session, one after the other.
    async fn session(
        &self,
        index: usize,
        scheduled: Duration,
        connection: &mut Option<Connection>,
        sender: &mpsc::Sender<Message>,
    ) {
        let ready = &self.sessions[index];
        let Some(mut prepared) = ready.first.clone() else { return };
        let mut scheduled = scheduled;
        let mut said = ready.session.turns[0].clone();
        for (turn, next) in (1..).zip(ready.session.turns.iter().skip(1)) {
            let key = Key { session: index, turn: turn - 1 };
            let Some(trace) = self.answered(key, &prepared, scheduled, connection, sender).await else { return };
            if !trace.succeeded() {
                return;
            }
            said = said.next_turn(&trace.text, next);
            prepared = self.run.prepare(&said, ready.session.tenant.clone(), turn);
            scheduled = self.run.epoch.elapsed();
        }
        let key = Key { session: index, turn: prepared.turn };
        self.request(key, &prepared, scheduled, connection, sender, None).await;
    }

    /// A request whose answer the next turn needs.
    async fn answered(
        &self,
        key: Key,
        prepared: &Prepared,
        scheduled: Duration,
        connection: &mut Option<Connection>,
        sender: &mpsc::Sender<Message>,
    ) -> Option<RequestTrace> {
        let (reply, trace) = oneshot::channel();
        self.request(key, prepared, scheduled, connection, sender, Some(reply)).await;
        trace.await.ok()
    }

    /// One request, with its further tries where the server is busy and they are allowed.
    async fn request(
        &self,
        key: Key,
        prepared: &Prepared,
        scheduled: Duration,
        connection: &mut Option<Connection>,
        sender: &mpsc::Sender<Message>,
        reply: Option<oneshot::Sender<RequestTrace>>,
    ) {
        self.progress.started();
        let mut tries = 0;
        let mut exchange = loop {
            // A reader that is gone ends with its load; nobody waits for the piece then.
            let mut sink = |recording| drop(sender.send(Message::Piece(key, recording)));
            let exchange = self.run.exchange(prepared, scheduled, connection, &mut sink).await;
            match busy(&exchange).filter(|_| tries < self.retries) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => break exchange,
            }
            tries += 1;
        };
        exchange.transfer.trace.retries = tries;
        let _ = sender.send(Message::End(key, Box::new(exchange.transfer), reply));
    }
}

/// Between the opening of connections and the first planned time.
const LEAD: Duration = Duration::from_millis(5);
/// Wait of a busy server that does not say how long.
const BUSY: Duration = Duration::from_secs(1);
/// Longest wait that a server may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// How long to wait before a further try; `None`: this is no answer of a busy server.
fn busy(exchange: &Exchange) -> Option<Duration> {
    let status = exchange.transfer.fault.as_ref().filter(|fault| fault.kind == FaultKind::Http)?.status?;
    matches!(status, 429 | 503).then(|| exchange.retry_after.unwrap_or(BUSY).min(LONGEST_WAIT))
}

/// The planned times, each given out when it is due.
fn timetable(
    epoch: std::time::Instant,
    began: Duration,
    arrivals: Vec<Duration>,
) -> tokio::sync::mpsc::UnboundedReceiver<Duration> {
    let (sender, due) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for at in arrivals {
            let at = began + at;
            // In steps, so that the thread does not outlive a load that was given up.
            while let Some(left) = at.checked_sub(epoch.elapsed()).filter(|left| !left.is_zero()) {
                std::thread::sleep(left.min(Duration::from_millis(200)));
                if sender.is_closed() {
                    return;
                }
            }
            if sender.send(at).is_err() {
                return;
            }
        }
    });
    due
}

/// Which request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    session: usize,
    turn: u32,
}

enum Message {
    Piece(Key, Recording),
    End(Key, Box<Transfer>, Option<oneshot::Sender<RequestTrace>>),
}

/// The thread that reads what came. It ends with the last sender and gives out the traces.
fn reading(progress: Arc<dyn Progress>) -> (mpsc::Sender<Message>, oneshot::Receiver<Vec<RequestTrace>>) {
    let (sender, messages) = mpsc::channel();
    let (done, traces) = oneshot::channel();
    std::thread::spawn(move || {
        // The load may have been given up: nobody wants the traces then.
        let _ = done.send(read_all(&messages, progress.as_ref()));
    });
    (sender, traces)
}

fn read_all(messages: &mpsc::Receiver<Message>, progress: &dyn Progress) -> Vec<RequestTrace> {
    let mut readers: HashMap<Key, StreamReader> = HashMap::new();
    let mut traces: Vec<(Key, RequestTrace)> = Vec::new();
    for message in messages {
        match message {
            Message::Piece(key, recording) => readers.entry(key).or_default().take(&recording),
            Message::End(key, transfer, reply) => {
                let trace = readers.remove(&key).unwrap_or_default().finish(*transfer);
                progress.ended(&trace);
                if let Some(reply) = reply {
                    let _ = reply.send(trace.clone());
                }
                traces.push((key, trace));
            }
        }
    }
    traces.sort_by_key(|(key, _)| *key);
    traces.into_iter().map(|(_, trace)| trace).collect()
}

/// The fault of a request that was given up because the run ended.
pub fn cancelled(why: &str) -> RequestFault {
    RequestFault::new(FaultKind::Cancelled, why)
}
