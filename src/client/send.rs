//! One measured request, from an open connection to a trace.

use super::chat::{ChatRequest, error_text};
use super::endpoint::{Answered, Connection, Endpoint, Frames, read_body};
use super::trace::{FaultKind, RequestFault, RequestTrace, read_stream};
use http_body_util::{BodyExt, Limited};
use std::time::{Duration, Instant};

/// The route of every measured request.
pub const CHAT_ROUTE: &str = "/v1/chat/completions";
/// Bytes of an error body that are read.
const MAX_ERROR_BODY: usize = 64 << 10;

/// What every request of a run shares.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// The server.
    pub endpoint: &'a Endpoint,
    /// `model` of the requests.
    pub model: &'a str,
    /// What all times count from.
    pub epoch: Instant,
    /// Limit for one request, connection included.
    pub timeout: Duration,
}

impl Run<'_> {
    /// Sends one streamed request. `connection` is used when it is open and holds an open
    /// one afterwards where the server keeps it.
    pub async fn send(&self, request: &ChatRequest, connection: &mut Option<Connection>) -> RequestTrace {
        let mut trace =
            RequestTrace { id: request.id.clone(), scheduled: self.epoch.elapsed(), ..RequestTrace::default() };
        let mut frames = Frames::new();
        let mut complete = false;
        let exchange = self.exchange(request, connection, &mut trace, &mut frames, &mut complete);
        let fault = match tokio::time::timeout(self.timeout, exchange).await {
            Ok(result) => result.err(),
            Err(_) => {
                let seconds = self.timeout.as_secs_f64();
                Some(RequestFault::new(FaultKind::Timeout, format!("no complete answer within {seconds} s")))
            }
        };
        trace.end = self.epoch.elapsed();
        if fault.is_some() || !complete {
            *connection = None;
        }
        match fault {
            Some(fault) if frames.is_empty() || matches!(fault.kind, FaultKind::Timeout | FaultKind::BadEvent) => {
                trace.fault = Some(fault);
                read_stream(&mut trace, &frames, false);
            }
            _ => read_stream(&mut trace, &frames, complete),
        }
        trace
    }

    async fn exchange(
        &self,
        request: &ChatRequest,
        connection: &mut Option<Connection>,
        trace: &mut RequestTrace,
        frames: &mut Frames,
        complete: &mut bool,
    ) -> Result<(), RequestFault> {
        let body = request.body(self.model, true);
        let answered = match self.post(connection, body.clone(), trace).await {
            // The server closed a kept connection before it saw the request: not its answer,
            // so the request is sent once more on a fresh one and its clock starts again.
            Err(fault)
                if fault.kind == FaultKind::ConnectClosed
                    && connection.as_ref().is_some_and(Connection::used_before) =>
            {
                *connection = None;
                trace.stale_retry = true;
                self.post(connection, body, trace).await?
            }
            other => other?,
        };
        trace.sent = answered.sent;
        let (head, incoming) = answered.response.into_parts();
        if head.status != hyper::StatusCode::OK {
            let body = Limited::new(incoming, MAX_ERROR_BODY).collect().await.map(http_body_util::Collected::to_bytes);
            let text = body.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
            let message = serde_json::from_str::<serde_json::Value>(&text)
                .ok()
                .and_then(|value| value.get("error").map(error_text))
                .unwrap_or_else(|| text.chars().take(200).collect());
            return Err(RequestFault { kind: FaultKind::Http, status: Some(head.status.as_u16()), message });
        }
        *complete = read_body(incoming, self.epoch, frames).await?;
        Ok(())
    }

    async fn post(
        &self,
        connection: &mut Option<Connection>,
        body: Vec<u8>,
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
                let fresh = self.endpoint.connect().await?;
                trace.connect = Some(began.elapsed());
                connection.insert(fresh)
            }
        };
        trace.sent = self.epoch.elapsed();
        open.post(self.endpoint, CHAT_ROUTE, body, self.epoch).await
    }
}
