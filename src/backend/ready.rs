//! Is it ready? Alive, healthy, the model listed, the socket our own, and one request
//! of the workload's kind answered. Times of each step are the cold start; they are
//! stored and never mixed with warm figures.

use super::launch;
use crate::client::{Api, Asked, ChatRequest, Endpoint, FaultKind, Run};
use crate::process::{Exit, Guarded, proc_tree};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Routes of a server; an empty one is skipped.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    /// Answers 200 when healthy.
    pub health: String,
    /// Lists the models.
    pub models: String,
}

/// The start of a server, milliseconds from its spawn.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ColdStart {
    /// The port accepted a connection.
    pub port_open_ms: Option<f64>,
    /// The health route answered 200.
    pub healthy_ms: Option<f64>,
    /// The first request was answered completely: the cold start.
    pub first_answer_ms: Option<f64>,
    /// Time to first token of that first request.
    pub first_request_ttft_ms: Option<f64>,
    /// End-to-end latency of that first request.
    pub first_request_e2e_ms: Option<f64>,
    /// The next request was answered completely; what the first one paid once more than
    /// it (compilation, first touch of memory) is the difference of their times.
    pub second_answer_ms: Option<f64>,
    /// Time to first token of that second request.
    pub second_request_ttft_ms: Option<f64>,
}

/// What a ready server said of itself.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// The name that requests use.
    pub model: String,
    /// Its entry in the list of models.
    pub entry: Value,
}

/// Why a server is not ready.
#[derive(Debug)]
pub enum NotReady {
    /// Time is up.
    Timeout {
        /// What the last probe saw.
        last: String,
    },
    /// It ended.
    Exited(Exit),
    /// It wants a key.
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// Where.
        route: String,
    },
    /// It serves other models.
    WrongModel {
        /// What it lists.
        listed: Vec<String>,
    },
    /// Somebody else answers on the port.
    ForeignPort {
        /// The owners.
        pids: Vec<u32>,
    },
}

/// Where a server that we start listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Door {
    /// A port of this machine.
    Port(u16),
    /// A Unix socket.
    Socket(PathBuf),
}

impl Door {
    /// The address by which a client finds it.
    pub fn base_url(&self) -> String {
        match self {
            Door::Port(port) => format!("http://127.0.0.1:{port}"),
            Door::Socket(path) => format!("unix:{}", path.display()),
        }
    }

    /// The processes that listen there; `None` where that cannot be known.
    pub fn listeners(&self) -> Option<Vec<u32>> {
        match self {
            Door::Port(port) => proc_tree::listeners(*port),
            Door::Socket(path) => proc_tree::socket_listeners(path),
        }
    }

    /// Whether one of these processes listens there; `None` where that cannot be known.
    fn one_listens(&self, pids: &[u32]) -> Option<bool> {
        match self {
            Door::Port(port) => proc_tree::one_listens(pids, *port),
            Door::Socket(path) => proc_tree::one_listens_on_socket(pids, path),
        }
    }

    /// Whether nobody listens there.
    pub fn is_free(&self) -> bool {
        match self {
            Door::Port(port) => !launch::port_in_use(*port),
            #[cfg(unix)]
            Door::Socket(path) => std::os::unix::net::UnixStream::connect(path).is_err(),
            #[cfg(not(unix))]
            Door::Socket(_) => true,
        }
    }
}

impl std::fmt::Display for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Door::Port(port) => write!(f, "{port}"),
            Door::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

/// How to wait.
#[derive(Debug)]
pub struct Wait<'a> {
    /// The server.
    pub endpoint: &'a Endpoint,
    /// Its routes.
    pub routes: &'a Routes,
    /// The name requests use; empty: the only one listed.
    pub served_model: &'a str,
    /// The process, when it is ours.
    pub server: Option<&'a Guarded>,
    /// Where it must be the one who listens.
    pub door: Option<&'a Door>,
    /// When it was spawned.
    pub spawned: Instant,
    /// Limit for everything.
    pub timeout: Duration,
    /// Limit for the first request.
    pub probe_timeout: Duration,
}

/// A list of models or a page of counters larger than this is none.
const MAX_PAGE: usize = 8 << 20;
/// Limit for one look at a route.
const LOOK: Duration = Duration::from_secs(2);

/// Between two looks at a server of this age: a fiftieth of it, so that no look adds
/// much to a short wait and a long one is not spent on looking.
fn pause(age: Duration) -> Duration {
    (age / 50).clamp(Duration::from_millis(5), Duration::from_millis(250))
}

enum Step {
    Ready(Identity),
    Later(String),
    Never(NotReady),
}

impl Wait<'_> {
    /// Waits until the server is ready. `say` hears what the last probe saw.
    ///
    /// # Errors
    /// It ended, time is up, it refuses us, or it is not the server we started.
    pub async fn run(
        &self,
        client: &reqwest::Client,
        cold: &mut ColdStart,
        say: &dyn Fn(&str),
    ) -> Result<Identity, NotReady> {
        let exit = async {
            match self.server {
                Some(server) => server.exited().await,
                None => std::future::pending().await,
            }
        };
        let mut last = "no answer yet".to_owned();
        let probing = async {
            let mut foreign_since = None;
            loop {
                match self.probe(client, cold).await {
                    Step::Ready(identity) => return Ok(identity),
                    // The listener may be a moment older than our look at /proc, or our own
                    // server may be about to fail on the port: give it the time to say so.
                    Step::Never(NotReady::ForeignPort { pids }) => {
                        let since = *foreign_since.get_or_insert_with(Instant::now);
                        if since.elapsed() > Duration::from_secs(5) {
                            return Err(NotReady::ForeignPort { pids });
                        }
                        last = "the port belongs to another program".to_owned();
                    }
                    Step::Never(reason) => return Err(reason),
                    Step::Later(seen) => {
                        say(&seen);
                        last = seen;
                    }
                }
                tokio::time::sleep(pause(self.spawned.elapsed())).await;
            }
        };
        let left = self.timeout.saturating_sub(self.spawned.elapsed());
        let ended = tokio::select! {
            biased;
            exit = exit => Some(Err(NotReady::Exited(exit))),
            result = tokio::time::timeout(left, probing) => result.ok(),
        };
        ended.unwrap_or(Err(NotReady::Timeout { last }))
    }

    fn since_spawn(&self) -> f64 {
        self.spawned.elapsed().as_secs_f64() * 1000.0
    }

    async fn probe(&self, client: &reqwest::Client, cold: &mut ColdStart) -> Step {
        if !self.routes.health.is_empty() {
            match self.get(client, &self.routes.health).await {
                Err(seen) => return Step::Later(seen),
                Ok((404, _)) => {}
                Ok((status @ (401 | 403), _)) => return self.unauthorized(status, &self.routes.health),
                Ok((200, _)) => {}
                Ok((status, _)) => {
                    cold.port_open_ms.get_or_insert(self.since_spawn());
                    return Step::Later(format!("{} answers {status}", self.routes.health));
                }
            }
        }
        cold.port_open_ms.get_or_insert(self.since_spawn());
        cold.healthy_ms.get_or_insert(self.since_spawn());
        if let Some(foreign) = self.foreign_owner() {
            return Step::Never(foreign);
        }
        match self.identify(client).await {
            Step::Ready(identity) => self.first_request(identity, cold).await,
            other => other,
        }
    }

    /// A listening socket of the door that belongs to no process of our tree.
    fn foreign_owner(&self) -> Option<NotReady> {
        let guardian = self.server?.guardian_pid()?;
        let ours = proc_tree::descendants(guardian);
        let door = self.door?;
        if door.one_listens(&ours)? {
            return None;
        }
        let owners = door.listeners()?;
        let foreign = !owners.is_empty() && !owners.iter().any(|owner| ours.contains(owner));
        foreign.then_some(NotReady::ForeignPort { pids: owners })
    }

    async fn identify(&self, client: &reqwest::Client) -> Step {
        let route = &self.routes.models;
        if route.is_empty() {
            return Step::Ready(Identity { model: self.served_model.to_owned(), entry: Value::Null });
        }
        let (status, body) = match self.get(client, route).await {
            Ok(answer) => answer,
            Err(seen) => return Step::Later(seen),
        };
        match status {
            200 => {}
            401 | 403 => return self.unauthorized(status, route),
            _ => return Step::Later(format!("{route} answers {status}")),
        }
        let list: Value = serde_json::from_str(&body).unwrap_or_default();
        let entries: Vec<&Value> = list["data"].as_array().into_iter().flatten().collect();
        let name = |entry: &Value| entry["id"].as_str().unwrap_or_default().to_owned();
        let found = match entries.as_slice() {
            [only] if self.served_model.is_empty() => Some(*only),
            entries => entries.iter().copied().find(|entry| name(entry) == self.served_model),
        };
        match found {
            Some(entry) => Step::Ready(Identity { model: name(entry), entry: entry.clone() }),
            None if entries.is_empty() => Step::Later(format!("{route} lists no model")),
            None => Step::Never(NotReady::WrongModel { listed: entries.into_iter().map(name).collect() }),
        }
    }

    async fn first_request(&self, identity: Identity, cold: &mut ColdStart) -> Step {
        let request = ChatRequest {
            id: "readiness".to_owned(),
            messages: json!([{"role": "user", "content": "Say ok."}]),
            max_tokens: 2,
        };
        let run = Run {
            endpoint: Arc::new(self.endpoint.clone()),
            model: identity.model.as_str().into(),
            epoch: Instant::now(),
            timeout: self.probe_timeout,
            asked: Asked::default(),
        };
        let mut connection = None;
        let trace = run.send(&request, &mut connection).await;
        match &trace.fault {
            None => {
                let since_sent = |at: Duration| (at.saturating_sub(trace.sent)).as_secs_f64() * 1000.0;
                cold.first_answer_ms.get_or_insert(self.since_spawn());
                cold.first_request_ttft_ms = trace.chunks.first().map(|chunk| since_sent(chunk.at));
                cold.first_request_e2e_ms = trace.chunks.last().map(|chunk| since_sent(chunk.at));
                Step::Ready(identity)
            }
            Some(fault) => match (fault.kind, fault.status) {
                (FaultKind::Http, Some(status @ (401 | 403))) => self.unauthorized(status, Api::Chat.route()),
                (kind, status) => {
                    let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
                    Step::Later(format!("the first request failed: {kind}{status}: {}", fault.message))
                }
            },
        }
    }

    fn unauthorized(&self, status: u16, route: &str) -> Step {
        // A foreign server on our port must not be mistaken for ours that wants a key.
        match self.foreign_owner() {
            Some(foreign) => Step::Never(foreign),
            None => Step::Never(NotReady::Unauthorized { status, route: route.to_owned() }),
        }
    }

    async fn get(&self, client: &reqwest::Client, route: &str) -> Result<(u16, String), String> {
        get(client, self.endpoint, route).await
    }
}

/// Status and body of a route; the error says what was seen instead.
///
/// # Errors
/// No answer within two seconds.
pub async fn get(client: &reqwest::Client, endpoint: &Endpoint, route: &str) -> Result<(u16, String), String> {
    let mut request = client.get(endpoint.address(route)).timeout(LOOK);
    if let Some(key) = endpoint.key() {
        request = request.bearer_auth(key);
    }
    let seen = |error: reqwest::Error| {
        if error.is_connect() {
            "the port refuses connections".to_owned()
        } else if error.is_timeout() {
            format!("{route} gave no answer within {} s", LOOK.as_secs())
        } else {
            format!("{route}: {}", error.without_url())
        }
    };
    let mut response = request.send().await.map_err(seen)?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(seen)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_PAGE {
            return Err(format!("{route} answers more than {} MiB", MAX_PAGE >> 20));
        }
    }
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_young_server_is_looked_at_more_often() {
        let pauses = [0, 1, 20, 600].map(|seconds| pause(Duration::from_secs(seconds)).as_millis());
        assert_eq!(pauses, [5, 20, 250, 250]);
    }
}
