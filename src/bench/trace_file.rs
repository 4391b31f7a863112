//! What happened in every request as JSON lines: the raw data that figures follow from.

use crate::client::{Chunk, RequestFault, RequestTrace, Usage};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// One line per request; times in ms from the start of the run.
pub fn lines(traces: &[RequestTrace]) -> String {
    traces.iter().map(|trace| format!("{}\n", line(trace))).collect()
}

fn ms(at: Duration) -> f64 {
    at.as_secs_f64() * 1000.0
}

fn line(trace: &RequestTrace) -> serde_json::Value {
    let places = |pick: fn(&Chunk) -> bool| {
        let places = trace.chunks.iter().enumerate().filter(|(_, chunk)| pick(chunk)).map(|(index, _)| index);
        places.collect::<Vec<usize>>()
    };
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
        "invisible_chunks": places(|chunk| !chunk.visible),
        "damaged_chunks": places(|chunk| chunk.damaged),
        "end_ms": ms(trace.end),
        "done": trace.done,
        "finish_reason": trace.finish,
        "usage": trace.usage,
        "prompt_ms": trace.prompt_ms,
        "retries": trace.retries,
        "stale_retry": trace.stale_retry,
        "content_type": trace.content_type,
        "unknown_fields": trace.unknown_fields,
        "model": trace.model,
        "text": trace.text,
        "fault": trace.fault,
    })
}

/// A line as it is read back; the text of the answer is left behind.
#[derive(Deserialize)]
struct Line {
    id: String,
    tenant: Option<String>,
    turn: u32,
    max_tokens: u32,
    scheduled_ms: f64,
    sent_ms: f64,
    connect_ms: Option<f64>,
    first_event_ms: Option<f64>,
    chunks_ms: Vec<f64>,
    tokens_so_far: Option<Vec<u64>>,
    invisible_chunks: Vec<usize>,
    damaged_chunks: Vec<usize>,
    end_ms: f64,
    done: bool,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    prompt_ms: Option<f64>,
    retries: u32,
    stale_retry: bool,
    content_type: Option<String>,
    unknown_fields: u32,
    model: Option<String>,
    fault: Option<RequestFault>,
}

/// Longest time of a run that is believed: a year, ms.
const LONGEST_MS: f64 = 3.2e10;

fn time(ms: f64) -> Result<Duration, String> {
    if !(0.0..=LONGEST_MS).contains(&ms) {
        return Err(format!("{ms} ms is no time of a run"));
    }
    // To the nanosecond, as it was before it became a decimal number.
    Ok(Duration::from_nanos((ms * 1e6).round() as u64))
}

/// A request out of its line, its text left out. All its times are moved by the same
/// length, `shift` of the time at which it was sent: what lies between them stays exact.
///
/// # Errors
/// It is no such line; what is wrong with it.
pub fn read_line(text: &str, shift: &dyn Fn(f64) -> f64) -> Result<RequestTrace, String> {
    let line: Line = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let by = shift(if line.sent_ms == 0.0 { line.scheduled_ms } else { line.sent_ms });
    let at = |ms: f64| time(ms).and_then(|_| time(ms + by));
    let chunks = chunks(&line, &at)?;
    Ok(RequestTrace {
        tenant: line.tenant.map(Into::into),
        scheduled: at(line.scheduled_ms)?,
        // Never on the wire: no time at all, wherever the clock stands.
        sent: if line.sent_ms == 0.0 { Duration::ZERO } else { at(line.sent_ms)? },
        connect: line.connect_ms.map(time).transpose()?,
        first_event: line.first_event_ms.map(at).transpose()?,
        end: at(line.end_ms)?,
        id: line.id,
        turn: line.turn,
        max_tokens: line.max_tokens,
        stale_retry: line.stale_retry,
        retries: line.retries,
        chunks,
        done: line.done,
        finish: line.finish_reason,
        usage: line.usage,
        prompt_ms: line.prompt_ms,
        model: line.model,
        text: String::new(),
        logprobs: Vec::new(),
        content_type: line.content_type,
        unknown_fields: line.unknown_fields,
        fault: line.fault,
    })
}

fn chunks(line: &Line, at: &dyn Fn(f64) -> Result<Duration, String>) -> Result<Vec<Chunk>, String> {
    if line.tokens_so_far.as_ref().is_some_and(|counts| counts.len() != line.chunks_ms.len()) {
        return Err("tokens_so_far has not one number for each chunk".to_owned());
    }
    let chunk = |(index, ms): (usize, &f64)| {
        Ok(Chunk {
            at: at(*ms)?,
            visible: line.invisible_chunks.binary_search(&index).is_err(),
            tokens_so_far: line.tokens_so_far.as_ref().map(|counts| counts[index]),
            damaged: line.damaged_chunks.binary_search(&index).is_ok(),
        })
    };
    line.chunks_ms.iter().enumerate().map(chunk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::FaultKind;

    fn trace() -> RequestTrace {
        let at = Duration::from_nanos;
        let chunk = |nanos, visible, damaged| Chunk { at: at(nanos), visible, tokens_so_far: Some(3), damaged };
        RequestTrace {
            id: "p-1".to_owned(),
            tenant: Some("chat".into()),
            turn: 1,
            max_tokens: 8,
            scheduled: at(1_000_003),
            sent: at(1_234_567),
            connect: Some(at(98_765)),
            stale_retry: true,
            retries: 2,
            chunks: vec![chunk(5_000_001, false, false), chunk(7_100_003, true, true)],
            first_event: Some(at(4_999_999)),
            end: at(9_000_000_001),
            done: true,
            finish: Some("stop".to_owned()),
            usage: Some(Usage { prompt_tokens: Some(3), completion_tokens: Some(2), cached_tokens: None }),
            prompt_ms: Some(1.5),
            model: Some("m".to_owned()),
            content_type: Some("text/plain".to_owned()),
            unknown_fields: 1,
            fault: Some(RequestFault { kind: FaultKind::Http, status: Some(503), message: "busy".to_owned() }),
            ..RequestTrace::default()
        }
    }

    #[test]
    fn a_request_survives_its_line_to_the_nanosecond() {
        let trace = trace();
        assert_eq!(read_line(&lines(std::slice::from_ref(&trace)), &|_| 0.0).unwrap(), trace);
        let moved = read_line(&lines(std::slice::from_ref(&trace)), &|_| 10.0).unwrap();
        assert_eq!(moved.sent, trace.sent + Duration::from_millis(10));
        assert_eq!(moved.connect, trace.connect, "a length is no time");
    }

    #[test]
    fn what_cannot_be_a_time_is_refused() {
        for wrong in ["-1.0", "1e300", "null"] {
            let text = lines(&[trace()]).replace("\"end_ms\":9000.000001", &format!("\"end_ms\":{wrong}"));
            assert!(read_line(&text, &|_| 0.0).is_err(), "{wrong}");
        }
        assert!(read_line(&lines(&[trace()]), &|_| -1e6).is_err());
        assert!(read_line("{}", &|_| 0.0).is_err() && read_line("", &|_| 0.0).is_err());
    }
}
