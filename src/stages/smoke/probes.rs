//! Quality around a run: the probes are asked after the counters of the measured window
//! were read, so that they are in none of its figures. A candidate is judged against the
//! answers that its baseline kept in its result file.

use crate::client::Run;
use crate::quality::{self, Answers, ArmQuality, Moment, ProbeSet, Tier};
use crate::results::v1;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The answers of one run, as its result file keeps them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    /// Name of the set.
    pub(super) set: String,
    /// SHA-256 of the set: other probes are not comparable.
    pub(super) sha256: String,
    /// By the id of the probe.
    pub(super) answers: Answers,
}

/// How the answers came out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judged {
    /// The columns.
    pub(super) columns: ArmQuality,
    /// Whether there was a baseline to compare with.
    pub(super) compared: bool,
}

/// Asks a set once.
pub(super) async fn ask(run: &Run, set: &ProbeSet) -> Asked {
    let mut answers = Answers::new();
    quality::ask(run, set, Moment::After, &mut answers).await;
    Asked { set: set.name.clone(), sha256: set.sha256.clone(), answers }
}

/// Judges the answers to a set; `baseline` is the result file of the other side, if there is one.
pub(super) fn judge(set: &ProbeSet, asked: &Asked, baseline: Option<&Path>) -> Judged {
    let theirs = baseline.and_then(kept).filter(|theirs| theirs.sha256 == asked.sha256);
    let columns = quality::judge(set, &asked.answers, theirs.as_ref().map(|theirs| &theirs.answers));
    Judged { columns, compared: theirs.is_some() }
}

/// The answers that a result file keeps.
fn kept(result: &Path) -> Option<Asked> {
    let mut document: Value = serde_json::from_slice(&std::fs::read(result).ok()?).ok()?;
    serde_json::from_value(document.get_mut("probes")?.take()).ok()
}

/// The public block. A smoke run states no floor: what is good enough is decided with the
/// enlarged workload, so its status says that the figure is an observation.
pub(super) fn block(judged: Option<&Judged>) -> v1::Quality {
    let not_collected = v1::Quality { status: Some("not_collected".to_owned()), ..v1::Quality::default() };
    let Some(Judged { columns, compared }) = judged else { return not_collected };
    let answered = columns.probes.iter().filter(|probe| probe.answers.iter().any(|answer| answer.text.is_some()));
    let answered = answered.count() as u64;
    if answered == 0 {
        return not_collected;
    }
    if !compared {
        return v1::Quality { status: Some("reference".to_owned()), probes: Some(answered), ..v1::Quality::default() };
    }
    v1::Quality {
        status: Some("observed".to_owned()),
        metric: Some("exact_text".to_owned()),
        value: columns.exact.value(),
        direction: Some("higher".to_owned()),
        probes: Some(u64::from(columns.exact.of)),
        fields: fields(columns),
        ..v1::Quality::default()
    }
}

fn fields(columns: &ArmQuality) -> Vec<v1::FieldProbe> {
    quality::field_agreement(columns)
        .into_iter()
        .filter_map(|(name, tier, share)| {
            Some(v1::FieldProbe { name, critical: tier == Tier::Critical, agreement: Some(share.value()?) })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::AnswerRecord;
    use serde_json::json;

    fn set() -> ProbeSet {
        ProbeSet::builtin().unwrap()
    }

    fn asked(text: impl Fn(usize) -> Option<String>) -> Asked {
        let set = set();
        let answers = set.probes.iter().enumerate().map(|(number, probe)| {
            let fault = text(number).is_none().then(|| "timeout".to_owned());
            let record = AnswerRecord { moment: Moment::After, text: text(number), fault, log_loss: None, tokens: 0 };
            (probe.spec.id.clone(), vec![record])
        });
        Asked { answers: answers.collect(), set: set.name, sha256: set.sha256 }
    }

    #[test]
    fn a_candidate_is_judged_against_what_its_baseline_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("67.baseline.json");
        let baseline = asked(|number| Some(number.to_string()));
        std::fs::write(&path, json!({ "probes": baseline }).to_string()).unwrap();
        let candidate = asked(|number| Some(if number == 0 { "other".to_owned() } else { number.to_string() }));
        let judged = judge(&set(), &candidate, Some(&path));
        let block = block(Some(&judged));
        let count = baseline.answers.len() as f64;
        assert_eq!((block.status.as_deref(), block.metric.as_deref()), (Some("observed"), Some("exact_text")));
        assert_eq!((block.value, block.floor), (Some((count - 1.0) / count), None));
        // Probes of another set say nothing about these.
        let other = Asked { sha256: "x".to_owned(), ..baseline };
        std::fs::write(&path, json!({ "probes": other }).to_string()).unwrap();
        assert!(!judge(&set(), &candidate, Some(&path)).compared);
    }

    #[test]
    fn what_was_not_answered_was_not_collected() {
        let status = |judged: Option<&Judged>| block(judged).status;
        assert_eq!(status(None).as_deref(), Some("not_collected"));
        assert_eq!(status(Some(&judge(&set(), &asked(|_| None), None))).as_deref(), Some("not_collected"));
        assert_eq!(
            status(Some(&judge(&set(), &asked(|_| Some(String::new())), None))).as_deref(),
            Some("reference"),
            "an empty answer is one"
        );
    }
}
