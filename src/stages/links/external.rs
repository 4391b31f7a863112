//! `--external`: asks servers whether an address is alive. Bounded, polite, patient, and
//! clear about the difference between "dead" and "could not be asked".

use crate::config::ExternalSettings;
use crate::fsx;
use crate::interrupt::Cancel;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, StatusCode};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// What a server said about an address, or why it could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub(super) enum Answer {
    /// There is a page.
    Alive,
    /// The server says there is none.
    Dead {
        /// The status code.
        status: u16,
    },
    /// Nothing is known about the page.
    Unknown {
        /// Why.
        cause: String,
    },
}

/// Asks for every address once. Answers come back by address.
pub(super) fn ask(
    settings: &ExternalSettings,
    cache_file: Option<&Path>,
    cancel: &Cancel,
    addresses: &[String],
) -> std::io::Result<HashMap<String, Answer>> {
    let mut cache = cache_file.map(|path| Cache::read(path, settings.cache_hours)).unwrap_or_default();
    let mut answers: HashMap<String, Answer> = HashMap::new();
    let mut open = Vec::new();
    for address in addresses {
        match cache.get(address) {
            Some(answer) => _ = answers.insert(address.clone(), answer),
            None => open.push(address.clone()),
        }
    }
    if !open.is_empty() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let asked = runtime.block_on(ask_all(settings, cancel, open));
        for (address, answer) in asked {
            cache.put(&address, &answer);
            answers.insert(address, answer);
        }
        // Connections that hang must not hold up the report.
        runtime.shutdown_background();
    }
    if let Some(path) = cache_file {
        cache.write(path)?;
    }
    Ok(answers)
}

async fn ask_all(settings: &ExternalSettings, cancel: &Cancel, addresses: Vec<String>) -> Vec<(String, Answer)> {
    let asker = match Asker::new(settings) {
        Ok(asker) => Arc::new(asker),
        Err(error) => {
            let unknown = Answer::Unknown { cause: error.to_string() };
            return addresses.into_iter().map(|address| (address, unknown.clone())).collect();
        }
    };
    let mut hosts: HashMap<String, Arc<Semaphore>> = HashMap::new();
    let mut tasks = JoinSet::new();
    for address in addresses {
        let host = url::Url::parse(&address).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
        let permits = || Arc::new(Semaphore::new(settings.per_host.max(1)));
        let host = Arc::clone(hosts.entry(host).or_insert_with(permits));
        let asker = Arc::clone(&asker);
        tasks.spawn(async move {
            // First the host, then the whole: a slow host must not hold everybody's places.
            let _own = host.acquire_owned().await;
            let _all = asker.places.acquire().await;
            let answer = asker.ask(&address).await;
            (address, answer)
        });
    }
    let mut answers = Vec::new();
    loop {
        tokio::select! {
            next = tasks.join_next() => match next {
                Some(Ok(answer)) => answers.push(answer),
                Some(Err(_)) => {}
                None => return answers,
            },
            _ = cancel.wait(1) => {
                tasks.abort_all();
                return answers;
            }
        }
    }
}

struct Asker {
    client: Client,
    settings: ExternalSettings,
    places: Semaphore,
}

/// What one request showed.
enum Reply {
    Status(StatusCode, HeaderMap),
    Failed(String),
}

impl Asker {
    fn new(settings: &ExternalSettings) -> reqwest::Result<Self> {
        // Without a provider of cryptography the first https request would panic; one
        // may have been installed by another part of the program.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("verify/", env!("CARGO_PKG_VERSION"), " (link checker)"))
            .timeout(Duration::from_secs_f64(settings.timeout_s.clamp(0.1, 3600.0)))
            .redirect(reqwest::redirect::Policy::limited(10))
            .build()?;
        Ok(Asker { client, settings: settings.clone(), places: Semaphore::new(settings.concurrency.max(1)) })
    }

    /// HEAD first; a server that will not have it, or says no, is asked with GET.
    async fn ask(&self, address: &str) -> Answer {
        match self.patiently(Method::HEAD, address).await {
            Answer::Alive => Answer::Alive,
            _ => self.patiently(Method::GET, address).await,
        }
    }

    /// Asks again after a refusal or an error of the connection, as the server wishes.
    async fn patiently(&self, method: Method, address: &str) -> Answer {
        let mut tries = 0;
        loop {
            let reply = self.once(method.clone(), address).await;
            let wait = match &reply {
                Reply::Status(status, headers) if is_busy(*status) => {
                    retry_after(headers).unwrap_or_else(|| backoff(tries))
                }
                Reply::Failed(_) => backoff(tries),
                Reply::Status(..) => return self.judge(&reply),
            };
            if tries >= self.settings.retries || wait.as_secs_f64() > self.settings.max_wait_s {
                return self.judge(&reply);
            }
            tries += 1;
            tokio::time::sleep(wait).await;
        }
    }

    async fn once(&self, method: Method, address: &str) -> Reply {
        match self.client.request(method, address).send().await {
            Ok(response) => Reply::Status(response.status(), response.headers().clone()),
            Err(error) => Reply::Failed(reason(&error)),
        }
    }

    fn judge(&self, reply: &Reply) -> Answer {
        match reply {
            Reply::Status(status, _) => {
                let code = status.as_u16();
                if status.is_success() || self.settings.accept.contains(&code) {
                    Answer::Alive
                } else if self.settings.dead.contains(&code) {
                    Answer::Dead { status: code }
                } else {
                    Answer::Unknown { cause: format!("HTTP {code}") }
                }
            }
            Reply::Failed(cause) => Answer::Unknown { cause: cause.clone() },
        }
    }
}

fn is_busy(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

fn backoff(tries: u32) -> Duration {
    Duration::from_millis(200 * 2_u64.pow(tries.min(6)))
}

/// `Retry-After` in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    let left = date.as_second() - jiff::Timestamp::now().as_second();
    Some(Duration::from_secs(u64::try_from(left).unwrap_or(0)))
}

/// The innermost cause: "connection refused" says more than "error sending request".
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "timeout".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Good answers of earlier runs. Bad ones are asked for again.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Cache {
    schema_version: String,
    /// Second of the Unix epoch at which an address was last seen alive.
    alive: BTreeMap<String, i64>,
    #[serde(skip)]
    oldest: i64,
}

const CACHE_VERSION: &str = "verify-links-cache/v1";

impl Cache {
    /// A cache that cannot be read is an empty one.
    fn read(path: &Path, hours: f64) -> Self {
        let read = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<Cache>(&bytes).ok());
        let mut cache = read.filter(|cache| cache.schema_version == CACHE_VERSION).unwrap_or_default();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "hours of a cache are far below the limit, and casts saturate"
        )]
        let age = (hours * 3600.0) as i64;
        cache.oldest = jiff::Timestamp::now().as_second().saturating_sub(age);
        let oldest = cache.oldest;
        cache.alive.retain(|_, at| *at > oldest);
        cache
    }

    fn get(&self, address: &str) -> Option<Answer> {
        self.alive.contains_key(address).then_some(Answer::Alive)
    }

    fn put(&mut self, address: &str, answer: &Answer) {
        if *answer == Answer::Alive {
            self.alive.insert(address.to_owned(), jiff::Timestamp::now().as_second());
        }
    }

    fn write(&mut self, path: &Path) -> std::io::Result<()> {
        CACHE_VERSION.clone_into(&mut self.schema_version);
        fsx::write_atomic(path, serde_json::to_string_pretty(self)?.as_bytes())
    }
}
