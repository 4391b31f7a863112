//! Where the generators of one load meet: part 1 listens, the others come. They agree on
//! the load and on the moment at which it starts, and measure how far apart their clocks
//! are: a few short questions and answers, of which the quickest tells most, as NTP does.
//! Wall clocks have no part in it.

use crate::interrupt::Cancel;
use crate::model::{Localized, Partition};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// What the words of this protocol are called; another version is another load.
const PROTOCOL: &str = "verify-meeting/1";
/// Longest line that is read.
const LONGEST_LINE: u64 = 1 << 16;
/// Limit for one answer of the other side.
const ANSWER: Duration = Duration::from_secs(10);
/// How long generators wait for each other before the load.
const GATHERING: Duration = Duration::from_secs(600);
/// How long part 1 stays for the last questions of the others after its own load.
const PARTING: Duration = Duration::from_secs(600);
/// Between the agreement and the start: time to read the server's counters.
const LEAD: Duration = Duration::from_millis(1500);
/// Questions of one measurement of the clocks.
const PROBES: usize = 24;
/// Between two of them.
const PROBE_GAP: Duration = Duration::from_millis(4);

/// How far the clock of part 1 was ahead at some moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// When, on the own clock.
    pub at: Instant,
    /// Time since the start of the load on the clock of part 1, minus that on the own
    /// clock since `at`: what time it is there at `at`, in ms.
    pub there_ms: f64,
    /// Half of the quickest round trip: it can be wrong by no more, ms.
    pub uncertainty_ms: f64,
}

/// What came of a meeting.
#[derive(Debug)]
pub struct Met {
    /// Names the meeting; parts of different meetings belong to different loads.
    pub id: String,
    /// The agreed moment, on the own clock.
    pub start: Instant,
    /// The clocks before the load.
    pub before: Reading,
    link: Link,
}

#[derive(Debug)]
enum Link {
    Lead(watch::Receiver<State>, watch::Sender<State>),
    Joined(Box<Talk>),
}

/// A place to meet, reserved before anything else is done.
#[derive(Debug)]
pub enum Place {
    /// Part 1: the door is open already.
    Lead(StdListener),
    /// Another part.
    Join(String),
}

/// Which part this is of which load.
#[derive(Debug, Clone)]
pub struct Who {
    /// The part.
    pub partition: Partition,
    /// What all of them must have in common.
    pub load: Value,
}

#[derive(Debug, Clone, Default)]
struct State {
    there: BTreeSet<usize>,
    ready: BTreeSet<usize>,
    done: BTreeSet<usize>,
    start_ns: Option<u64>,
    closing: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Hello { protocol: String, part: usize, of: usize, load: Value },
    Welcome { meeting: String },
    Refused { en: String, zh: String },
    Probe,
    Now { ns: u64 },
    Ready,
    Start { ns: u64 },
    Done,
}

impl Place {
    /// Reserves the place: part 1 listens there.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn reserve(address: &str, partition: Partition) -> std::io::Result<Self> {
        if partition.part != 1 {
            return Ok(Place::Join(address.to_owned()));
        }
        let listener = StdListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Place::Lead(listener))
    }

    /// Waits until all are there and ready, and agrees on the start.
    ///
    /// # Errors
    /// Why they did not meet.
    pub async fn meet(self, who: &Who, cancel: &Cancel, say: &dyn Fn(&str)) -> Result<Met, Localized> {
        let meeting = async {
            match self {
                Place::Lead(listener) => lead(listener, who, say).await,
                Place::Join(address) => join(&address, who, say).await,
            }
        };
        tokio::select! {
            met = timeout(GATHERING, meeting) => met.unwrap_or_else(|_| Err(late())),
            _ = cancel.wait(1) => Err(Localized::both("interrupted", "已中断")),
        }
    }
}

impl Met {
    /// The clocks once more, after the load: how they went apart meanwhile. `None`: the
    /// other side is gone, or this is the clock that counts.
    pub async fn again(&mut self) -> Option<Reading> {
        let Link::Joined(talk) = &mut self.link else { return None };
        let reading = talk.clocks().await.ok();
        let _ = talk.say(&Word::Done).await;
        reading
    }

    /// Part 1 stays until the others have asked for the last time; nothing is lost when
    /// one of them does not.
    pub async fn part(&mut self, cancel: &Cancel) {
        let Link::Lead(state, sender) = &mut self.link else { return };
        let everyone = state.wait_for(|state| state.there.is_subset(&state.done));
        tokio::select! {
            _ = timeout(PARTING, everyone) => {}
            _ = cancel.wait(1) => {}
        }
        sender.send_modify(|state| state.closing = true);
    }
}

fn late() -> Localized {
    let minutes = GATHERING.as_secs() / 60;
    Localized::both(
        format!("not every generator was ready within {minutes} minutes"),
        format!("{minutes} 分钟内没有等齐所有压测进程"),
    )
}

fn lost(error: &dyn std::fmt::Display) -> Localized {
    Localized::both(format!("the connection to part 1 broke: {error}"), format!("与第 1 份压测进程的连接断开：{error}"))
}

// ---------------------------------------------------------------- part 1

async fn lead(listener: StdListener, who: &Who, say: &dyn Fn(&str)) -> Result<Met, Localized> {
    let broken =
        |error: std::io::Error| Localized::both(format!("cannot listen: {error}"), format!("无法监听：{error}"));
    let listener = TcpListener::from_std(listener).map_err(broken)?;
    let base = Instant::now();
    let id = id(base);
    let (sender, mut state) = watch::channel(State::default());
    let door = Door { who: Arc::new(who.clone()), id: id.clone(), base, state: sender.clone() };
    tokio::spawn(door.keep(listener));
    let others = who.partition.of - 1;
    loop {
        let ready = state.borrow_and_update().ready.len();
        if ready >= others {
            break;
        }
        say(&format!("{ready} of {others} other generators are ready"));
        // The sender lives as long as we do.
        let _ = state.changed().await;
    }
    let start = base.elapsed() + LEAD;
    sender.send_modify(|state| state.start_ns = Some(nanos(start)));
    let before = Reading { at: base, there_ms: -ms(start), uncertainty_ms: 0.0 };
    Ok(Met { id, start: base + start, before, link: Link::Lead(state, sender) })
}

/// A name that no other meeting has.
fn id(base: Instant) -> String {
    let unique = format!("{base:?} {} {:?}", std::process::id(), std::time::SystemTime::now());
    crate::fsx::sha256(unique.as_bytes())[..16].to_owned()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[derive(Clone)]
struct Door {
    who: Arc<Who>,
    id: String,
    base: Instant,
    state: watch::Sender<State>,
}

impl Door {
    /// Lets in whoever comes, until the meeting is over.
    async fn keep(self, listener: TcpListener) {
        let mut state = self.state.subscribe();
        loop {
            tokio::select! {
                () = async { drop(state.wait_for(|state| state.closing).await) } => return,
                come = listener.accept() => match come {
                    Ok((stream, _)) => drop(tokio::spawn(self.clone().serve(stream))),
                    // Out of files for the moment.
                    Err(_) => sleep(ANSWER / 100).await,
                },
            }
        }
    }

    async fn serve(self, stream: TcpStream) {
        let Ok(mut talk) = Talk::of(stream) else { return };
        let Ok(Word::Hello { protocol, part, of, load }) = talk.hear(ANSWER).await else { return };
        if let Some(reason) = self.refusal(&protocol, part, of, &load) {
            let (en, zh) =
                (reason.get(crate::model::Lang::En).to_owned(), reason.get(crate::model::Lang::Zh).to_owned());
            let _ = talk.say(&Word::Refused { en, zh }).await;
            return;
        }
        let _ = talk.say(&Word::Welcome { meeting: self.id.clone() }).await;
        let started = self.answer(&mut talk, part).await;
        // Whoever leaves before the start has to come again; after it nobody waits for them.
        self.state.send_modify(|state| {
            state.done.insert(part);
            if started.is_none() {
                state.there.remove(&part);
                state.ready.remove(&part);
            }
        });
    }

    fn refusal(&self, protocol: &str, part: usize, of: usize, load: &Value) -> Option<Localized> {
        if protocol != PROTOCOL {
            return Some(Localized::both("another version of verify", "verify 版本不同"));
        }
        if of != self.who.partition.of || !(2..=of).contains(&part) {
            let wanted = self.who.partition.of;
            return Some(Localized::both(
                format!("part {part}/{of} was not expected: part 1 was started as 1/{wanted}"),
                format!("不需要第 {part}/{of} 份：第 1 份是以 1/{wanted} 启动的"),
            ));
        }
        if let Some(name) = difference(&self.who.load, load) {
            let (ours, theirs) = (&self.who.load[&name], &load[&name]);
            return Some(Localized::both(
                format!("it is not the same load: `{name}` is {ours} at part 1 and {theirs} at part {part}"),
                format!("不是同一份负载：`{name}` 在第 1 份为 {ours}，在第 {part} 份为 {theirs}"),
            ));
        }
        let mut twice = false;
        self.state.send_modify(|state| {
            twice = state.start_ns.is_some() || !state.there.insert(part);
            state.done.remove(&part);
        });
        twice.then(|| {
            Localized::both(format!("part {part}/{of} is there already"), format!("第 {part}/{of} 份已经加入"))
        })
    }

    /// Answers one generator to its end. `None`: it left before the start.
    async fn answer(&self, talk: &mut Talk, part: usize) -> Option<()> {
        let mut state = self.state.subscribe();
        let mut started = None;
        loop {
            match talk.hear(Duration::MAX).await {
                Ok(Word::Probe) => talk.say(&Word::Now { ns: nanos(self.base.elapsed()) }).await.ok()?,
                Ok(Word::Ready) if started.is_none() => {
                    self.state.send_modify(|state| {
                        state.ready.insert(part);
                    });
                    let ns = tokio::select! {
                        agreed = agreed(&mut state) => agreed?,
                        () = talk.closed() => return None,
                    };
                    talk.say(&Word::Start { ns }).await.ok()?;
                    started = Some(());
                }
                _ => return started,
            }
        }
    }
}

/// The agreed start, as soon as there is one.
async fn agreed(state: &mut watch::Receiver<State>) -> Option<u64> {
    state.wait_for(|state| state.start_ns.is_some()).await.ok()?.start_ns
}

/// The first member in which two loads differ.
pub fn difference(ours: &Value, theirs: &Value) -> Option<String> {
    let (Value::Object(ours), Value::Object(theirs)) = (ours, theirs) else { return Some(String::new()) };
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    names.into_iter().find(|name| ours.get(*name) != theirs.get(*name)).cloned()
}

// ---------------------------------------------------------------- the others

async fn join(address: &str, who: &Who, say: &dyn Fn(&str)) -> Result<Met, Localized> {
    let mut talk = loop {
        match TcpStream::connect(address).await.and_then(Talk::of) {
            Ok(talk) => break talk,
            Err(error) => say(&format!("part 1 is not at {address} yet: {error}")),
        }
        sleep(Duration::from_millis(200)).await;
    };
    let Partition { part, of } = who.partition;
    let hello = Word::Hello { protocol: PROTOCOL.to_owned(), part, of, load: who.load.clone() };
    talk.say(&hello).await.map_err(|error| lost(&error))?;
    let id = match talk.hear(ANSWER).await.map_err(|error| lost(&error))? {
        Word::Welcome { meeting } => meeting,
        Word::Refused { en, zh } => return Err(Localized::both(en, zh)),
        _ => return Err(lost(&"an answer that is none")),
    };
    say("measuring the clocks");
    // Not knowing the start yet, `there_ms` counts from the beginning of that clock.
    let clocks = talk.clocks().await.map_err(|error| lost(&error))?;
    talk.say(&Word::Ready).await.map_err(|error| lost(&error))?;
    say("waiting for the other generators");
    let Word::Start { ns } = talk.hear(GATHERING).await.map_err(|error| lost(&error))? else {
        return Err(lost(&"an answer that is none"));
    };
    let start_ms = ns as f64 / 1e6;
    talk.start_ms = start_ms;
    let before = Reading { there_ms: clocks.there_ms - start_ms, ..clocks };
    let until = Duration::try_from_secs_f64((-before.there_ms / 1000.0).max(0.0)).unwrap_or_default();
    Ok(Met { id, start: before.at + until, before, link: Link::Joined(Box::new(talk)) })
}

/// A connection on which words are exchanged, one a line.
#[derive(Debug)]
struct Talk {
    stream: BufReader<TcpStream>,
    /// The start on the clock of part 1; 0 until it is known.
    start_ms: f64,
}

impl Talk {
    fn of(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Talk { stream: BufReader::new(stream), start_ms: 0.0 })
    }

    async fn say(&mut self, word: &Word) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(word)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line).await
    }

    async fn hear(&mut self, limit: Duration) -> std::io::Result<Word> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.stream).take(LONGEST_LINE);
        let reading = bounded.read_until(b'\n', &mut line);
        match timeout(limit, reading).await {
            Ok(Ok(0)) => Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(Ok(_)) => Ok(serde_json::from_slice(&line)?),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
        }
    }

    /// Waits until the other side is gone; what it says meanwhile stays unheard.
    async fn closed(&mut self) {
        while self.stream.fill_buf().await.is_ok_and(|bytes| !bytes.is_empty()) {
            sleep(ANSWER / 100).await;
        }
    }

    /// Asks what time it is there, and takes the quickest answer.
    async fn clocks(&mut self) -> std::io::Result<Reading> {
        let mut best: Option<Reading> = None;
        for _ in 0..PROBES {
            let asked = Instant::now();
            self.say(&Word::Probe).await?;
            let Word::Now { ns } = self.hear(ANSWER).await? else {
                return Err(std::io::ErrorKind::InvalidData.into());
            };
            let trip = asked.elapsed();
            let reading = Reading {
                at: asked + trip / 2,
                there_ms: ns as f64 / 1e6 - self.start_ms,
                uncertainty_ms: ms(trip) / 2.0,
            };
            if best.is_none_or(|known| reading.uncertainty_ms < known.uncertainty_ms) {
                best = Some(reading);
            }
            sleep(PROBE_GAP).await;
        }
        best.ok_or_else(|| std::io::ErrorKind::InvalidData.into())
    }
}
