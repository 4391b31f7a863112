//! From traces to figures. Pure; definitions as in the glossary of the README.

use super::stats::{Distribution, jain};
use crate::client::{FaultKind, RequestTrace};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Where the token counts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokensSource {
    /// `usage` of every answer.
    Usage,
    /// Chunks were counted because some answer had no plausible usage: an estimate.
    Chunks,
}

/// Figures of one request. Milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestFigures {
    /// Name in the workload.
    pub id: String,
    /// Who asked, in a mix of tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Request sent → first token-bearing event.
    pub ttft_ms: f64,
    /// Request sent → first visible content.
    pub ttft_visible_ms: Option<f64>,
    /// Request sent → first event with a choice, token-bearing or not: a diagnostic.
    pub first_chunk_ms: Option<f64>,
    /// (last − first token-bearing event) / (N − tokens of the first event).
    pub tpot_ms: Option<f64>,
    /// Request sent → last token-bearing event.
    pub e2e_ms: f64,
    /// Request sent → `[DONE]` or end of body.
    pub stream_end_ms: f64,
    /// Planned time of sending → last token-bearing event.
    pub latency_from_schedule_ms: f64,
    /// Planned time of sending → request sent.
    pub client_queue_ms: f64,
    /// Time to open the connection, when one was opened.
    pub connect_ms: Option<f64>,
    /// Prompt tokens by usage.
    pub prompt_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: u64,
    /// Prompt tokens from the cache, by usage.
    pub cached_tokens: Option<u64>,
    /// TTFT minus the prompt time that the server states: time in its queue and on the way.
    pub queue_wait_ms: Option<f64>,
    /// Token-bearing events.
    pub chunks: usize,
    /// `finish_reason`.
    pub finish_reason: Option<String>,
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The tokens of an answer, and how well they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Output tokens; a lower bound when they are chunks.
    pub tokens: u64,
    /// Where the count comes from.
    pub source: TokensSource,
    /// Why `usage` cannot be true.
    pub implausible: Option<String>,
}

/// Output tokens of a request: `usage`, when it is positive, no more than was asked for
/// and no less than the chunks with tokens (one whose bytes were damaged may be none);
/// else the number of chunks.
pub fn counted(trace: &RequestTrace) -> Counted {
    let chunks = trace.chunks.len() as u64;
    let damaged = trace.chunks.iter().filter(|chunk| chunk.damaged).count() as u64;
    let (most, least) = (u64::from(trace.max_tokens), (chunks - damaged).max(1));
    let by_chunks = |implausible| Counted { tokens: chunks, source: TokensSource::Chunks, implausible };
    match trace.usage.and_then(|usage| usage.completion_tokens) {
        None => by_chunks(None),
        Some(count) if count < least => by_chunks(Some(format!("{count} < {chunks} chunks"))),
        Some(count) if most > 0 && count > most => by_chunks(Some(format!("{count} > max_tokens {most}"))),
        Some(tokens) => Counted { tokens, source: TokensSource::Usage, implausible: None },
    }
}

/// Tokens that came with each chunk; `None` where they are not known: the server counts
/// in every chunk, or there are as many tokens as chunks.
pub fn tokens_per_chunk(trace: &RequestTrace) -> Option<Vec<u64>> {
    let so_far: Option<Vec<u64>> = trace.chunks.iter().map(|chunk| chunk.tokens_so_far).collect();
    if let Some(so_far) = so_far {
        let before = std::iter::once(0).chain(so_far.iter().copied());
        let each: Option<Vec<u64>> = so_far.iter().zip(before).map(|(now, before)| now.checked_sub(before)).collect();
        return each.filter(|each| each.iter().all(|count| *count > 0));
    }
    let counted = counted(trace);
    let damaged = trace.chunks.iter().filter(|chunk| chunk.damaged).count();
    let (chunks, tokens) = (trace.chunks.len(), counted.tokens as usize);
    (counted.source == TokensSource::Usage && (chunks - damaged..=chunks).contains(&tokens)).then(|| vec![1; chunks])
}

impl RequestFigures {
    /// Of a successful request; `None` without a token.
    pub fn of(trace: &RequestTrace) -> Option<Self> {
        let (first, last) = (trace.chunks.first()?, trace.chunks.last()?);
        let counted = counted(trace);
        let in_first = first.tokens_so_far.unwrap_or(1).max(1);
        let divisor = if counted.implausible.is_some() { 0 } else { counted.tokens.saturating_sub(in_first) };
        let since_sent = |at: Duration| ms(at.saturating_sub(trace.sent));
        Some(RequestFigures {
            id: trace.id.clone(),
            tenant: trace.tenant.as_deref().map(str::to_owned),
            ttft_ms: since_sent(first.at),
            ttft_visible_ms: trace.chunks.iter().find(|chunk| chunk.visible).map(|chunk| since_sent(chunk.at)),
            first_chunk_ms: trace.first_event.map(since_sent),
            tpot_ms: (divisor > 0).then(|| ms(last.at - first.at) / divisor as f64),
            e2e_ms: since_sent(last.at),
            stream_end_ms: since_sent(trace.end),
            latency_from_schedule_ms: ms(last.at.saturating_sub(trace.scheduled)),
            client_queue_ms: ms(trace.sent.saturating_sub(trace.scheduled)),
            connect_ms: trace.connect.map(ms),
            prompt_tokens: trace.usage.and_then(|usage| usage.prompt_tokens),
            output_tokens: counted.tokens,
            cached_tokens: trace.usage.and_then(|usage| usage.cached_tokens),
            queue_wait_ms: trace.prompt_ms.map(|prompt| (since_sent(first.at) - prompt).max(0.0)),
            chunks: trace.chunks.len(),
            finish_reason: trace.finish.clone(),
        })
    }
}

/// Figures of one measured pass. Failed requests are counted, never averaged in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassFigures {
    /// One entry per successful request.
    pub requests: Vec<RequestFigures>,
    /// Time to first token, ms.
    pub ttft_ms: Option<Distribution>,
    /// Time per output token, ms, one sample per request.
    pub tpot_ms: Option<Distribution>,
    /// End-to-end latency, ms.
    pub e2e_ms: Option<Distribution>,
    /// Time in the server's queue, ms, where the server states its prompt time.
    pub queue_wait_ms: Option<Distribution>,
    /// Gaps between token-bearing events, ms.
    pub icl_ms: Option<Distribution>,
    /// Successful requests.
    pub successful: usize,
    /// Failed requests.
    pub failed: usize,
    /// Failures by kind.
    pub failures: BTreeMap<FaultKind, usize>,
    /// First request sent → end of the last one, seconds. Prefill is inside.
    pub duration_s: f64,
    /// Output tokens of successful requests.
    pub output_tokens: u64,
    /// Where the token counts come from.
    pub tokens_source: TokensSource,
    /// Output tokens per second of the window.
    pub output_tokens_per_s: Option<f64>,
    /// Completed requests per second of the window.
    pub requests_per_s: Option<f64>,
    /// Jain's index over the TTFT of the requests.
    pub fairness_jain_ttft: Option<f64>,
    /// Requests sent again because the server had closed a kept connection.
    pub stale_retries: usize,
}

impl PassFigures {
    /// Derives the figures of a pass.
    pub fn of(traces: &[RequestTrace]) -> Self {
        let good: Vec<&RequestTrace> = traces.iter().filter(|trace| trace.succeeded()).collect();
        let requests: Vec<RequestFigures> = good.iter().filter_map(|trace| RequestFigures::of(trace)).collect();
        let column =
            |pick: &dyn Fn(&RequestFigures) -> Option<f64>| -> Vec<f64> { requests.iter().filter_map(pick).collect() };
        let ttft = column(&|request| Some(request.ttft_ms));
        let gaps: Vec<f64> =
            good.iter().flat_map(|trace| trace.chunks.windows(2).map(|pair| ms(pair[1].at - pair[0].at))).collect();
        let mut failures = BTreeMap::new();
        for fault in traces.iter().filter_map(|trace| trace.fault.as_ref()) {
            *failures.entry(fault.kind).or_insert(0) += 1;
        }
        let begin = traces.iter().map(|trace| trace.sent).min().unwrap_or_default();
        let end = traces.iter().map(|trace| trace.end).max().unwrap_or_default();
        let duration_s = end.saturating_sub(begin).as_secs_f64();
        let output: u64 = requests.iter().map(|request| request.output_tokens).sum();
        let rate = |count: f64| (duration_s > 0.0 && count > 0.0).then(|| count / duration_s);
        let estimated = good.iter().any(|trace| counted(trace).source == TokensSource::Chunks);
        PassFigures {
            ttft_ms: Distribution::of(&ttft),
            tpot_ms: Distribution::of(&column(&|request| request.tpot_ms)),
            e2e_ms: Distribution::of(&column(&|request| Some(request.e2e_ms))),
            queue_wait_ms: Distribution::of(&column(&|request| request.queue_wait_ms)),
            icl_ms: Distribution::of(&gaps),
            successful: good.len(),
            failed: traces.len() - good.len(),
            failures,
            duration_s,
            output_tokens: output,
            tokens_source: if estimated { TokensSource::Chunks } else { TokensSource::Usage },
            output_tokens_per_s: rate(output as f64),
            requests_per_s: rate(good.len() as f64),
            fairness_jain_ttft: jain(&ttft),
            stale_retries: traces.iter().filter(|trace| trace.stale_retry).count(),
            requests,
        }
    }

    /// Mean of a token count over the requests that have it.
    pub fn mean_tokens(&self, pick: impl Fn(&RequestFigures) -> Option<u64>) -> Option<f64> {
        let counts: Vec<u64> = self.requests.iter().filter_map(pick).collect();
        (!counts.is_empty()).then(|| counts.iter().sum::<u64>() as f64 / counts.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Chunk, RequestFault, Usage};

    fn trace(sent: u64, chunks: &[u64], tokens: u64) -> RequestTrace {
        RequestTrace {
            sent: Duration::from_millis(sent),
            chunks: chunks
                .iter()
                .map(|at| Chunk { at: Duration::from_millis(*at), visible: true, tokens_so_far: None, damaged: false })
                .collect(),
            end: Duration::from_millis(chunks.last().copied().unwrap_or(sent) + 5),
            usage: Some(Usage { prompt_tokens: Some(3), completion_tokens: Some(tokens), cached_tokens: None }),
            ..RequestTrace::default()
        }
    }

    #[test]
    fn figures_follow_their_definitions() {
        let pass = PassFigures::of(&[trace(100, &[150, 170, 190], 5), trace(100, &[250], 1)]);
        let first = &pass.requests[0];
        assert_eq!((first.ttft_ms, first.e2e_ms, first.tpot_ms, first.stream_end_ms), (50.0, 90.0, Some(10.0), 95.0));
        assert_eq!(pass.requests[1].tpot_ms, None, "one token has no time per further token");
        assert_eq!(pass.ttft_ms.unwrap().mean, 100.0);
        assert!((pass.duration_s - 0.155).abs() < 1e-9);
        assert_eq!((pass.output_tokens, pass.tokens_source), (6, TokensSource::Usage));
    }

    #[test]
    fn a_failed_request_is_counted_and_not_averaged() {
        let mut failed = trace(0, &[1], 1);
        failed.fault = Some(RequestFault::new(FaultKind::StreamError, "x"));
        let pass = PassFigures::of(&[failed, trace(0, &[40], 1)]);
        assert_eq!((pass.successful, pass.failed, pass.ttft_ms.unwrap().n), (1, 1, 1));
        assert_eq!(pass.failures[&FaultKind::StreamError], 1);
    }

    #[test]
    fn impossible_usage_is_an_estimate_from_chunks() {
        let pass = PassFigures::of(&[trace(0, &[10, 20, 30], 2)]);
        assert_eq!((pass.output_tokens, pass.tokens_source), (3, TokensSource::Chunks));
        assert_eq!(pass.tpot_ms, None, "nothing is divided by a count that cannot be true");
        let too_many = RequestTrace { max_tokens: 4, ..trace(0, &[10, 20, 30], 8) };
        assert_eq!(counted(&too_many).implausible.unwrap(), "8 > max_tokens 4");
    }

    #[test]
    fn tokens_of_a_chunk_are_known_from_its_count_or_from_the_sum() {
        assert_eq!(tokens_per_chunk(&trace(0, &[10, 20], 2)), Some(vec![1, 1]));
        assert_eq!(tokens_per_chunk(&trace(0, &[10, 20], 5)), None);
        let mut counting = trace(0, &[10, 20], 7);
        counting.chunks[0].tokens_so_far = Some(4);
        counting.chunks[1].tokens_so_far = Some(7);
        assert_eq!(tokens_per_chunk(&counting), Some(vec![4, 3]));
    }
}
