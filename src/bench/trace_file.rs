//! What happened in every request as JSON lines: the raw data that figures follow from.

use crate::client::RequestTrace;
use serde_json::json;
use std::time::Duration;

/// One line per request; times in ms from the start of the run.
pub fn lines(traces: &[RequestTrace]) -> String {
    traces.iter().map(|trace| format!("{}\n", line(trace))).collect()
}

fn line(trace: &RequestTrace) -> serde_json::Value {
    let ms = |at: Duration| at.as_secs_f64() * 1000.0;
    json!({
        "id": trace.id,
        "tenant": trace.tenant.as_deref(),
        "turn": trace.turn,
        "max_tokens": trace.max_tokens,
        "scheduled_ms": ms(trace.scheduled),
        "sent_ms": ms(trace.sent),
        "connect_ms": trace.connect.map(ms),
        "first_event_ms": trace.first_event.map(ms),
        "chunks_ms": trace.chunks.iter().map(|chunk| ms(chunk.at)).collect::<Vec<f64>>(),
        "tokens_so_far": trace.chunks.iter().map(|chunk| chunk.tokens_so_far).collect::<Option<Vec<u64>>>(),
        "end_ms": ms(trace.end),
        "done": trace.done,
        "finish_reason": trace.finish,
        "usage": trace.usage,
        "retries": trace.retries,
        "stale_retry": trace.stale_retry,
        "model": trace.model,
        "text": trace.text,
        "fault": trace.fault,
    })
}
