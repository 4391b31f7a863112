//! From stamped bytes to what happened in one request. Pure.
//!
//! Definitions: a token-bearing event carries non-empty content, reasoning or a tool
//! call. A request succeeded when the status was 200, a token came, the end was seen
//! (`finish_reason` or `[DONE]`), the transport was complete, and nothing said "error".

use super::chat::{Answer, Usage, error_text};
use super::sse::{Event, Parser};
use serde::Serialize;
use std::time::Duration;

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// No connection.
    Connect,
    /// The connection closed before a byte of the answer.
    ConnectClosed,
    /// A status other than 200.
    Http,
    /// No end within the limit.
    Timeout,
    /// The answer stopped before its end.
    Truncated,
    /// The server reported a fault inside the stream.
    StreamError,
    /// A stream was asked for and a plain answer came.
    NotStreamed,
    /// An event that is not JSON.
    BadEvent,
    /// An answer without a token.
    Empty,
    /// `finish_reason` said that the server gave up.
    Aborted,
    /// We stopped it ourselves.
    Cancelled,
}

impl std::fmt::Display for FaultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FaultKind::Connect => "no connection",
            FaultKind::ConnectClosed => "the connection closed before an answer",
            FaultKind::Http => "an error status",
            FaultKind::Timeout => "out of time",
            FaultKind::Truncated => "a cut answer",
            FaultKind::StreamError => "an error inside the stream",
            FaultKind::NotStreamed => "no stream",
            FaultKind::BadEvent => "an unreadable event",
            FaultKind::Empty => "an answer without a token",
            FaultKind::Aborted => "an aborted answer",
            FaultKind::Cancelled => "given up",
        })
    }
}

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestFault {
    /// The kind, for counting.
    pub kind: FaultKind,
    /// HTTP status, when there was one.
    pub status: Option<u16>,
    /// What was said.
    pub message: String,
}

impl RequestFault {
    /// A fault without a status.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        RequestFault { kind, status: None, message: message.into() }
    }
}

/// One token-bearing event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Since the epoch of the run.
    pub at: Duration,
    /// Whether a reader sees it.
    pub visible: bool,
    /// Tokens generated so far, where the server counts in every event.
    pub tokens_so_far: Option<u64>,
}

/// What happened in one request. Times count from the epoch of the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestTrace {
    /// Name in the workload.
    pub id: String,
    /// When it should have been sent.
    pub scheduled: Duration,
    /// Just before its first byte was written to an open connection.
    pub sent: Duration,
    /// Time to open the connection, when one was opened for it.
    pub connect: Option<Duration>,
    /// It was sent twice, because a reused connection had been closed by the server.
    pub stale_retry: bool,
    /// Token-bearing events.
    pub chunks: Vec<Chunk>,
    /// First event with a choice, token-bearing or not.
    pub first_event: Option<Duration>,
    /// `[DONE]`, or the end of the body.
    pub end: Duration,
    /// `[DONE]` was seen.
    pub done: bool,
    /// `finish_reason` as it came last.
    pub finish: Option<String>,
    /// Token counts.
    pub usage: Option<Usage>,
    /// Time the server says it spent on the prompt, ms (llama.cpp).
    pub prompt_ms: Option<f64>,
    /// `model` of the answer.
    pub model: Option<String>,
    /// Visible text.
    pub text: String,
    /// Why it failed.
    pub fault: Option<RequestFault>,
}

impl RequestTrace {
    /// Whether it succeeded.
    pub fn succeeded(&self) -> bool {
        self.fault.is_none()
    }
}

/// Reads the stamped pieces of a streamed body into `trace`. `complete` says whether the
/// transport reached its end.
pub fn read_stream(trace: &mut RequestTrace, frames: &[(Duration, bytes::Bytes)], complete: bool) {
    let mut parser = Parser::default();
    let mut events = Vec::new();
    for (at, bytes) in frames {
        parser.push(bytes, &mut events);
        events.drain(..).for_each(|event| trace.take(*at, &event));
    }
    let unfinished = parser.finish(&mut events);
    let last = frames.last().map_or(trace.sent, |(at, _)| *at);
    let seen_before = trace.chunks.len();
    events.drain(..).for_each(|event| trace.take(last, &event));
    if !trace.done {
        trace.end = trace.end.max(last);
    }
    if trace.fault.is_none() {
        trace.fault = trace.missing(complete, unfinished, seen_before == 0 && frames_are_json(frames));
    }
}

fn frames_are_json(frames: &[(Duration, bytes::Bytes)]) -> bool {
    frames.iter().flat_map(|(_, bytes)| bytes.iter()).find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

impl RequestTrace {
    fn take(&mut self, at: Duration, event: &Event) {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            self.end = at;
            return;
        }
        let parsed = serde_json::from_str::<Answer>(&event.data);
        if event.name == "error" {
            let said = parsed
                .ok()
                .and_then(|answer| answer.error)
                .map_or_else(|| event.data.clone(), |error| error_text(&error));
            self.fail(FaultKind::StreamError, said);
            return;
        }
        match parsed {
            Ok(answer) => self.take_answer(at, answer),
            Err(error) => {
                let start: String = event.data.chars().take(80).collect();
                self.fail(FaultKind::BadEvent, format!("{error}: {start}"));
            }
        }
    }

    fn take_answer(&mut self, at: Duration, answer: Answer) {
        if let Some(error) = &answer.error {
            self.fail(FaultKind::StreamError, error_text(error));
            return;
        }
        let bearing = answer.bearing();
        let usage = answer.usage();
        if answer.choices.as_ref().is_some_and(|choices| !choices.is_empty()) {
            self.first_event.get_or_insert(at);
        }
        if bearing.any() {
            let tokens_so_far = usage.and_then(|usage| usage.completion_tokens);
            self.chunks.push(Chunk { at, visible: !bearing.visible.is_empty(), tokens_so_far });
            self.text.push_str(&bearing.visible);
        }
        if let Some(finish) = answer.choices.into_iter().flatten().filter_map(|choice| choice.finish_reason).next_back()
        {
            self.finish = Some(finish);
        }
        self.usage = usage.or(self.usage);
        self.prompt_ms = answer.timings.and_then(|timings| timings.prompt_ms).or(self.prompt_ms);
        self.model = answer.model.or(self.model.take());
    }

    /// The first fault is the cause; later ones follow from it.
    fn fail(&mut self, kind: FaultKind, message: String) {
        self.fault.get_or_insert(RequestFault { kind, status: Some(200), message });
    }

    fn missing(&self, complete: bool, unfinished: bool, json: bool) -> Option<RequestFault> {
        let fault = |kind, message: &str| Some(RequestFault { kind, status: Some(200), message: message.to_owned() });
        match &self.finish {
            _ if json => fault(FaultKind::NotStreamed, "a plain JSON answer instead of a stream"),
            Some(reason) if reason == "abort" || reason == "error" => {
                fault(FaultKind::Aborted, &format!("finish_reason is {reason}"))
            }
            None if !self.done => fault(FaultKind::Truncated, "the stream ended without finish_reason and [DONE]"),
            _ if !complete && !self.done => fault(FaultKind::Truncated, "the connection broke before the end"),
            _ if unfinished && !self.done => fault(FaultKind::Truncated, "the last event is cut"),
            _ if self.chunks.is_empty() => fault(FaultKind::Empty, "no token came"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn stream(pieces: &[(u64, &str)], complete: bool) -> RequestTrace {
        let frames: Vec<_> =
            pieces.iter().map(|(at, text)| (ms(*at), bytes::Bytes::copy_from_slice(text.as_bytes()))).collect();
        let mut trace = RequestTrace::default();
        read_stream(&mut trace, &frames, complete);
        trace
    }

    const ROLE: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n";
    const HI: &str = "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    const THINK: &str = "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n";
    const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    #[test]
    fn a_role_chunk_is_no_token_and_reasoning_is_one() {
        let trace = stream(&[(5, ROLE), (20, THINK), (40, HI), (41, STOP), (41, USAGE), (42, DONE)], true);
        assert_eq!(trace.fault, None);
        assert_eq!(trace.first_event, Some(ms(5)));
        assert_eq!(
            trace.chunks.iter().map(|chunk| (chunk.at, chunk.visible)).collect::<Vec<_>>(),
            [(ms(20), false), (ms(40), true)]
        );
        assert_eq!((trace.end, trace.text.as_str(), trace.model.as_deref()), (ms(42), "hi", Some("m")));
        assert_eq!(trace.usage.unwrap().completion_tokens, Some(2));
    }

    #[test]
    fn success_needs_proof_of_the_end() {
        let kind = |pieces: &[(u64, &str)], complete| stream(pieces, complete).fault.map(|fault| fault.kind);
        assert_eq!(kind(&[(1, HI)], true), Some(FaultKind::Truncated));
        assert_eq!(kind(&[(1, HI), (2, STOP)], true), None, "a server without [DONE]");
        assert_eq!(kind(&[(1, HI), (2, STOP)], false), Some(FaultKind::Truncated));
        assert_eq!(kind(&[(1, HI), (2, DONE)], false), None);
        assert_eq!(kind(&[(1, ROLE), (2, STOP), (3, DONE)], true), Some(FaultKind::Empty));
        assert_eq!(
            kind(&[(1, "{\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}")], true),
            Some(FaultKind::NotStreamed)
        );
        assert_eq!(kind(&[(1, HI), (2, "data: {oops\n\n"), (3, STOP), (4, DONE)], true), Some(FaultKind::BadEvent));
    }

    #[test]
    fn an_error_inside_a_200_stream_fails_whatever_follows() {
        for text in [
            "data: {\"error\": {\"message\": \"engine died\"}}\n\n",
            "event: error\ndata: engine died\n\n",
            "error: engine died\n\n",
        ] {
            let fault = stream(&[(1, HI), (2, text), (3, STOP), (4, DONE)], true).fault.unwrap();
            assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::StreamError, "engine died"), "{text:?}");
        }
    }
}
