//! Asking the probes, one at a time.

use super::judge::Answers;
use super::record::{AnswerRecord, Moment};
use super::set::ProbeSet;
use crate::bench::metrics::counted;
use crate::client::{Asked, FaultKind, RequestTrace, Run};

/// Asks every probe of a set, one after the other, and adds the answers. Token
/// log-probabilities are asked for; a server that refuses them is asked without.
pub async fn ask(run: &Run, set: &ProbeSet, moment: Moment, answers: &mut Answers) {
    let mut connection = None;
    let mut run = Run { asked: Asked { logprobs: true, ..run.asked }, ..run.clone() };
    for probe in &set.probes {
        let mut trace = run.send(&probe.request(), &mut connection).await;
        if run.asked.logprobs && refused(&trace) {
            run.asked.logprobs = false;
            trace = run.send(&probe.request(), &mut connection).await;
        }
        answers.entry(probe.spec.id.clone()).or_default().push(answer(&trace, moment));
    }
}

/// A server that does not know what was asked for says so with a status of the client's fault.
fn refused(trace: &RequestTrace) -> bool {
    trace.fault.as_ref().is_some_and(|fault| {
        fault.kind == FaultKind::Http && fault.status.is_some_and(|status| matches!(status, 400 | 404 | 422 | 501))
    })
}

fn answer(trace: &RequestTrace, moment: Moment) -> AnswerRecord {
    let losses: Vec<f64> = trace.logprobs.iter().map(|logprob| -logprob).filter(|loss| loss.is_finite()).collect();
    // llama.cpp gives none for tokens that a draft proposed: the mean over the others is
    // the mean over the hard ones. The end of the text may be a token without one.
    let generated = counted(trace).tokens;
    let whole = !losses.is_empty() && losses.len() as u64 + 1 >= generated;
    AnswerRecord {
        moment,
        text: trace.succeeded().then(|| trace.text.clone()),
        fault: trace.fault.as_ref().map(|fault| format!("{}: {}", fault.name(), fault.message)),
        log_loss: (whole && trace.succeeded()).then(|| losses.iter().sum::<f64>() / losses.len() as f64),
        tokens: losses.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Chunk, Usage};
    use std::time::Duration;

    fn trace(logprobs: usize, tokens: u64) -> RequestTrace {
        let chunk = Chunk { at: Duration::from_millis(1), visible: true, tokens_so_far: None, damaged: false };
        RequestTrace {
            chunks: vec![chunk],
            done: true,
            max_tokens: 32,
            usage: Some(Usage { prompt_tokens: None, completion_tokens: Some(tokens), cached_tokens: None }),
            logprobs: vec![-0.5; logprobs],
            ..RequestTrace::default()
        }
    }

    #[test]
    fn a_loss_over_some_of_the_tokens_is_none() {
        assert_eq!(answer(&trace(15, 15), Moment::Before).log_loss, Some(0.5));
        assert_eq!(answer(&trace(14, 15), Moment::Before).log_loss, Some(0.5), "the end of the text");
        assert_eq!(answer(&trace(5, 15), Moment::Before).log_loss, None, "drafted tokens have none");
        assert_eq!(answer(&trace(0, 15), Moment::Before).log_loss, None);
    }
}
