//! One measured request, from an open connection to a trace.

use super::chat::{Asked, ChatRequest, error_text};
use super::endpoint::{Answered, Connection, Endpoint, read_body};
use super::recording::Recording;
use super::trace::{FaultKind, RequestFault, RequestTrace, StreamReader, Transfer};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::header;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of an error body that are read.
const MAX_ERROR_BODY: usize = 64 << 10;

/// What every request of a run shares.
#[derive(Debug, Clone)]
pub struct Run {
    /// The server.
    pub endpoint: Arc<Endpoint>,
    /// `model` of the requests.
    pub model: Arc<str>,
    /// What all times count from.
    pub epoch: Instant,
    /// Limit for one request, connection included.
    pub timeout: Duration,
    /// What is asked for besides the prompt.
    pub asked: Asked,
}

/// A request whose bytes are made before its clock starts.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Name in the workload.
    pub id: String,
    /// Who asks.
    pub tenant: Option<Arc<str>>,
    /// Place in the conversation.
    pub turn: u32,
    /// Tokens at most.
    pub max_tokens: u32,
    body: Bytes,
}

/// How one request went on the wire.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) transfer: Transfer,
    /// Seconds that a busy server asked us to wait.
    pub(crate) retry_after: Option<Duration>,
}

impl Run {
    /// Opens a connection for requests of this run.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn connect(&self) -> Result<Connection, RequestFault> {
        self.endpoint.connect(self.epoch).await
    }

    /// Makes the bytes of a request.
    pub fn prepare(&self, request: &ChatRequest, tenant: Option<Arc<str>>, turn: u32) -> Prepared {
        Prepared {
            id: request.id.clone(),
            tenant,
            turn,
            max_tokens: request.max_tokens,
            body: Bytes::from(request.body(&self.model, self.asked)),
        }
    }

    /// Sends one streamed request. `connection` is used when it is open and holds an open
    /// one afterwards where the server keeps it.
    pub async fn send(&self, request: &ChatRequest, connection: &mut Option<Connection>) -> RequestTrace {
        let prepared = self.prepare(request, None, 0);
        let mut reader = StreamReader::default();
        let exchange =
            self.exchange(&prepared, self.epoch.elapsed(), connection, &mut |recording| reader.take(&recording)).await;
        reader.finish(exchange.transfer)
    }

    /// The wire part of a request: what is read goes to `sink`, unread.
    pub(crate) async fn exchange(
        &self,
        request: &Prepared,
        scheduled: Duration,
        connection: &mut Option<Connection>,
        sink: &mut (dyn FnMut(Recording) + Send),
    ) -> Exchange {
        let mut exchange = Exchange::default();
        let transfer = &mut exchange.transfer;
        transfer.trace = RequestTrace {
            id: request.id.clone(),
            tenant: request.tenant.clone(),
            turn: request.turn,
            max_tokens: request.max_tokens,
            scheduled,
            ..RequestTrace::default()
        };
        let mut recording = Recording::default();
        let exchanging =
            self.try_exchange(request, connection, transfer, &mut exchange.retry_after, &mut recording, sink);
        let fault = match tokio::time::timeout(self.timeout, exchanging).await {
            Ok(result) => result.err(),
            Err(_) => {
                let seconds = self.timeout.as_secs_f64();
                Some(RequestFault::new(FaultKind::Timeout, format!("no complete answer within {seconds} s")))
            }
        };
        transfer.trace.end = self.epoch.elapsed();
        if let Some(open) = connection.as_ref().filter(|_| transfer.trace.sent.is_zero()) {
            transfer.trace.sent = open.sent();
        }
        if !recording.is_empty() {
            sink(recording);
        }
        if fault.is_some() || !transfer.complete {
            *connection = None;
        }
        transfer.fault = fault;
        exchange
    }

    async fn try_exchange(
        &self,
        request: &Prepared,
        connection: &mut Option<Connection>,
        transfer: &mut Transfer,
        retry_after: &mut Option<Duration>,
        recording: &mut Recording,
        sink: &mut (dyn FnMut(Recording) + Send),
    ) -> Result<(), RequestFault> {
        let trace = &mut transfer.trace;
        let answered = match self.post(connection, request.body.clone(), trace).await {
            // The server closed a kept connection before it saw the request: not its answer,
            // so the request is sent once more on a fresh one and its clock starts again.
            Err(fault)
                if fault.kind == FaultKind::ConnectClosed
                    && connection.as_ref().is_some_and(Connection::used_before) =>
            {
                *connection = None;
                trace.stale_retry = true;
                self.post(connection, request.body.clone(), trace).await?
            }
            other => other?,
        };
        trace.sent = answered.sent;
        let (head, incoming) = answered.response.into_parts();
        let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if head.status != hyper::StatusCode::OK {
            *retry_after = text(header::RETRY_AFTER).and_then(|value| wait_of(&value));
            return Err(refusal(head.status.as_u16(), incoming).await);
        }
        let kind = text(header::CONTENT_TYPE).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        trace.content_type = (kind != "text/event-stream").then_some(kind);
        let Some(open) = connection.as_ref() else { return Ok(()) };
        let clock = open.clock();
        transfer.complete = read_body(incoming, &clock, recording, sink).await?;
        Ok(())
    }

    async fn post(
        &self,
        connection: &mut Option<Connection>,
        body: Bytes,
        trace: &mut RequestTrace,
    ) -> Result<Answered, RequestFault> {
        let kept = match connection.take() {
            Some(mut kept) => kept.reusable().await.then_some(kept),
            None => None,
        };
        let open = match kept {
            Some(kept) => connection.insert(kept),
            None => {
                let began = Instant::now();
                let fresh = self.connect().await?;
                trace.connect = Some(began.elapsed());
                connection.insert(fresh)
            }
        };
        open.post(&self.endpoint, self.asked.api.route(), body).await
    }
}

/// The fault of a status other than 200, with what its body says.
async fn refusal(status: u16, body: hyper::body::Incoming) -> RequestFault {
    let body = Limited::new(body, MAX_ERROR_BODY).collect().await.map(http_body_util::Collected::to_bytes);
    let text = body.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let message = serde_json::from_str::<serde_json::Value>(&text)
        .ok()
        .and_then(|value| value.get("error").map(error_text))
        .unwrap_or_else(|| text.chars().take(200).collect());
    RequestFault { kind: FaultKind::Http, status: Some(status), message }
}

/// `Retry-After`: seconds, or a date.
fn wait_of(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(value.trim()).ok()?;
    let left = date.timestamp().as_second() - jiff::Timestamp::now().as_second();
    Some(Duration::from_secs(u64::try_from(left).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_given_in_seconds_or_as_a_date() {
        assert_eq!(wait_of("2"), Some(Duration::from_secs(2)));
        assert_eq!(wait_of("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(wait_of("soon"), None);
        assert_eq!(wait_of("-1"), None);
    }
}
