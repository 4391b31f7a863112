//! Asking the probes, one at a time.

use super::judge::Answers;
use super::record::{AnswerRecord, Moment};
use super::set::ProbeSet;
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
    AnswerRecord {
        moment,
        text: trace.succeeded().then(|| trace.text.clone()),
        fault: trace.fault.as_ref().map(|fault| format!("{}: {}", fault.name(), fault.message)),
        log_loss: (!losses.is_empty() && trace.succeeded()).then(|| losses.iter().sum::<f64>() / losses.len() as f64),
        tokens: losses.len() as u64,
    }
}
