//! From stamped bytes to what happened in one request. Pure.
//!
//! Definitions: a token-bearing event carries non-empty content, reasoning or a tool
//! call. A request succeeded when the status was 200, a token came, the end was seen
//! (`finish_reason` or `[DONE]`), the transport was complete, and nothing said "error".

use super::chat::{Answer, Usage, error_text};
use super::recording::Recording;
use super::sse::{Event, Parser};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFault {
    /// The kind, for counting.
    pub kind: FaultKind,
    /// HTTP status, when there was one.
    pub status: Option<u16>,
    /// What was said.
    pub message: String,
}

impl RequestFault {
    /// The kind in one word, the status in it: `truncated`, `http_503`.
    pub fn name(&self) -> String {
        let kind = serde_json::to_value(self.kind).unwrap_or_default();
        match (kind.as_str().unwrap_or_default(), self.kind, self.status) {
            (kind, FaultKind::Http, Some(status)) => format!("{kind}_{status}"),
            (kind, ..) => kind.to_owned(),
        }
    }

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
    /// Some byte of it was no UTF-8.
    pub damaged: bool,
}

/// What happened in one request. Times count from the epoch of the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestTrace {
    /// Name in the workload.
    pub id: String,
    /// Who asked, in a mix of tenants.
    pub tenant: Option<Arc<str>>,
    /// Place in the conversation, from 0.
    pub turn: u32,
    /// Tokens that were asked for at most.
    pub max_tokens: u32,
    /// When it should have been sent.
    pub scheduled: Duration,
    /// Just before its first byte was written to an open connection.
    pub sent: Duration,
    /// Time to open the connection, when one was opened for it.
    pub connect: Option<Duration>,
    /// It was sent twice, because a reused connection had been closed by the server.
    pub stale_retry: bool,
    /// Times it was sent again because the server was busy (429, 503).
    pub retries: u32,
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
    /// Log-probability of every generated token, where they were asked for and given.
    pub logprobs: Vec<f64>,
    /// Content type of an answer that was not labelled as a stream of events.
    pub content_type: Option<String>,
    /// Lines of the stream that are none of the grammar.
    pub unknown_fields: u32,
    /// Why it failed.
    pub fault: Option<RequestFault>,
}

/// The model that answered, where it is none that was asked for. Servers lengthen a name
/// (a date, a revision) or shorten it (a path to its last part): that is the same model.
pub fn other_model<'t>(traces: &'t [RequestTrace], asked: &str) -> Option<&'t str> {
    let same = |answered: &str| answered.contains(asked) || asked.contains(answered);
    traces.iter().filter_map(|trace| trace.model.as_deref()).find(|answered| !answered.is_empty() && !same(answered))
}

impl RequestTrace {
    /// Whether it succeeded.
    pub fn succeeded(&self) -> bool {
        self.fault.is_none()
    }
}

/// What the transport of a request saw; its body is in recordings.
#[derive(Debug, Default)]
pub(crate) struct Transfer {
    /// Identity and times, everything that the body does not tell.
    pub(crate) trace: RequestTrace,
    /// The transport reached its end.
    pub(crate) complete: bool,
    /// Why there is no answer, or no whole one.
    pub(crate) fault: Option<RequestFault>,
}

/// Reads the recordings of one body as they come.
#[derive(Debug, Default)]
pub(crate) struct StreamReader {
    parser: Parser,
    trace: RequestTrace,
    events: Vec<Event>,
    first: Option<u8>,
    last: Duration,
}

impl StreamReader {
    /// Takes the next recording.
    pub(crate) fn take(&mut self, recording: &Recording) {
        for (at, bytes) in recording.reads() {
            self.first = self.first.or_else(|| bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace()));
            self.last = at;
            self.parser.push(bytes, &mut self.events);
            for event in self.events.drain(..) {
                self.trace.take(at, &event);
            }
        }
    }

    /// The trace of the whole request.
    pub(crate) fn finish(mut self, transfer: Transfer) -> RequestTrace {
        let no_body = self.first.is_none();
        let json = self.first == Some(b'{') && self.trace.chunks.is_empty();
        let unfinished = self.parser.finish(&mut self.events);
        for event in self.events.drain(..) {
            self.trace.take(self.last, &event);
        }
        let mut trace = self.trace.within(transfer.trace);
        trace.unknown_fields = self.parser.unknown_fields();
        if !trace.done {
            trace.end = trace.end.max(self.last);
        }
        // What the transport says is the cause, unless the stream told more of it.
        let decisive = |fault: &RequestFault| no_body || matches!(fault.kind, FaultKind::Timeout | FaultKind::BadEvent);
        match transfer.fault {
            Some(fault) if decisive(&fault) => trace.fault = Some(fault),
            _ if trace.fault.is_none() => trace.fault = trace.missing(transfer.complete, unfinished, json),
            _ => {}
        }
        trace
    }
}

impl RequestTrace {
    /// What the body told, within what the transport knows.
    fn within(self, transport: RequestTrace) -> RequestTrace {
        RequestTrace {
            end: if self.done { self.end } else { transport.end },
            chunks: self.chunks,
            first_event: self.first_event,
            done: self.done,
            finish: self.finish,
            usage: self.usage,
            prompt_ms: self.prompt_ms,
            model: self.model,
            text: self.text,
            logprobs: self.logprobs,
            fault: self.fault,
            ..transport
        }
    }
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
            Ok(answer) => self.take_answer(at, answer, event.replaced),
            Err(error) => {
                let start: String = event.data.chars().take(80).collect();
                self.fail(FaultKind::BadEvent, format!("{error}: {start}"));
            }
        }
    }

    fn take_answer(&mut self, at: Duration, answer: Answer, damaged: bool) {
        if let Some(error) = &answer.error {
            self.fail(FaultKind::StreamError, error_text(error));
            return;
        }
        let bearing = answer.bearing();
        let usage = answer.usage();
        let choices = answer.choices.as_ref().is_some_and(|choices| !choices.is_empty());
        if choices {
            self.first_event.get_or_insert(at);
        }
        // Where the server counts in every chunk, a count that grew is a token without text.
        let counted = |usage: Option<Usage>| usage.and_then(|usage| usage.completion_tokens);
        let grew = counted(self.usage).is_some_and(|before| counted(usage).is_some_and(|now| now > before));
        if bearing.any() || (grew && choices) {
            let tokens_so_far = usage.and_then(|usage| usage.completion_tokens);
            let visible = !bearing.visible.is_empty();
            self.chunks.push(Chunk { at, visible, tokens_so_far, damaged });
            self.text.push_str(&bearing.visible);
            self.logprobs.extend(answer.logprobs());
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
        let mut recording = Recording::default();
        pieces.iter().for_each(|(at, text)| recording.push(ms(*at), text.as_bytes()));
        let mut reader = StreamReader::default();
        reader.take(&recording);
        reader.finish(Transfer { complete, ..Transfer::default() })
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

    #[test]
    fn a_longer_or_shorter_name_is_the_same_model() {
        let answered = |name: &str| vec![RequestTrace { model: Some(name.to_owned()), ..RequestTrace::default() }];
        assert_eq!(other_model(&answered("gpt-4o-2024-08-06"), "gpt-4o"), None);
        assert_eq!(other_model(&answered("qwen"), "models/qwen"), None);
        assert_eq!(other_model(&answered(""), "m"), None);
        assert_eq!(other_model(&answered("other"), "toy"), Some("other"));
    }
}
