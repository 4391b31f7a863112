//! From the passes of an experiment to its record: columns, comparisons, notes, a result
//! file per arm, and what the evidence rules make of them.

use super::engine::Ended;
use super::paired::{METRICS, compare};
use super::record::{
    ArmConclusion, ArmManifest, ArmRecord, BothLanguages, Comparison, ComparisonVerdict, ExperimentRecord, Manifest,
    Note, PassRecord, SCHEMA_VERSION,
};
use super::setup::Experiment;
use super::store::{self, Extras, Store};
use super::{figures, notes, result};
use crate::bench::stats::Distribution;
use crate::config::ConcludeSettings;
use crate::course::Context;
use crate::fsx;
use crate::model::{Finding, Lang, Localized, Location, Severity};
use crate::quality::{self, Answers, ArmQuality};
use crate::results::evidence::{self, Case, Conclusion, Facts};
use crate::results::v1::{self, NormalizedResult, Verdict};
use crate::results::{gate, json};
use crate::rules::experiment as rules;
use std::io;
use std::path::PathBuf;

/// What an experiment came to.
pub(crate) struct Concluded {
    pub(crate) record: ExperimentRecord,
    /// A result per arm, in the order of the arms.
    pub(crate) results: Vec<ArmResult>,
    pub(crate) findings: Vec<Finding>,
}

/// The result of one arm.
pub(crate) struct ArmResult {
    pub(crate) path: PathBuf,
    pub(crate) normalized: NormalizedResult,
    /// The highest decision that is allowed.
    pub(crate) allowed: Verdict,
}

/// Reads the store and concludes. Nothing is written.
pub(crate) fn conclude(ctx: &Context, experiment: &Experiment, store: &Store, ended: &Ended) -> Concluded {
    let manifest = &experiment.manifest;
    let qualities = qualities(experiment, store);
    let comparisons = comparisons(manifest, &store.passes);
    let mut arms: Vec<ArmRecord> =
        manifest.arms.iter().zip(qualities).map(|(arm, quality)| arm_record(arm, quality, store)).collect();
    let at = Location::file(ctx.repo_path(&experiment.folder));
    let mut findings = notes::findings(manifest, &arms, &store.passes, ended, &at);
    let mut results: Vec<ArmResult> = Vec::new();
    let limits = &ctx.settings.conclude;
    for (index, arm) in arms.iter_mut().enumerate() {
        if figures::measured(&store.passes, &arm.name).next().is_none() {
            continue;
        }
        let extras = store.extras(&arm.name);
        let baseline = results.first();
        let normalized = result::normalized(experiment, index, arm, &store.passes, &extras);
        let mine: Vec<&Comparison> = comparisons.iter().filter(|comparison| comparison.candidate == arm.name).collect();
        let capped = notes::caps(&findings, &arm.name);
        let (normalized, conclusion, allowed) = decide(manifest, index, normalized, baseline, &mine, capped, limits);
        arm.conclusion = conclusion;
        let path = experiment.arms[index].plan.result.clone();
        findings.extend(gate_faults(&normalized, arm, &at));
        arm.result = path.file_name().map(|name| name.to_string_lossy().into_owned());
        results.push(ArmResult { path, normalized, allowed });
    }
    let record = ExperimentRecord {
        schema_version: SCHEMA_VERSION.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: store.passes.first().map(|pass| pass.started_at.clone()).unwrap_or_default(),
        finished_at: ended.complete.then(|| jiff::Timestamp::now().to_string()),
        manifest: manifest.clone(),
        arms,
        passes: store.passes.clone(),
        comparisons,
        notes: findings.iter().map(note).collect(),
    };
    Concluded { record, results, findings }
}

/// The quality columns of every arm, the baseline's first.
fn qualities(experiment: &Experiment, store: &Store) -> Vec<Option<ArmQuality>> {
    let answers: Vec<Answers> = experiment.arms.iter().map(|arm| store.answers(&arm.name)).collect();
    answers
        .iter()
        .enumerate()
        .map(|(index, mine)| {
            let set = experiment.probes.as_ref().filter(|_| !mine.is_empty())?;
            Some(quality::judge(set, mine, (index > 0).then(|| &answers[0])))
        })
        .collect()
}

fn arm_record(arm: &ArmManifest, quality: Option<ArmQuality>, store: &Store) -> ArmRecord {
    let extras = store.extras(&arm.name);
    let time = figures::arm_time(&store.passes, &store.starts, &arm.name);
    let energy: Vec<f64> = figures::measured(&store.passes, &arm.name).filter_map(|pass| pass.gpu?.energy_j).collect();
    let tokens: u64 = figures::measured(&store.passes, &arm.name).map(|pass| pass.time.output_tokens).sum();
    let energy_j = (!energy.is_empty()).then(|| energy.iter().sum::<f64>());
    ArmRecord {
        name: arm.name.clone(),
        precision: arm.precision.clone().or(extras.precision.clone()),
        starts: figures::served(&store.passes, &store.starts, &arm.name).cloned().collect(),
        time,
        memory: figures::arm_memory(&store.passes, &store.starts, &arm.name),
        quality,
        energy_j,
        energy_per_token_j: energy_j.filter(|_| tokens > 0).map(|energy| energy / tokens as f64),
        server: super::record::ServerEvidence {
            invalidation_cost_ms: invalidation_cost(&extras),
            ..figures::evidence(&store.passes, &arm.name)
        },
        conclusion: ArmConclusion::default(),
        result: None,
    }
}

/// Median TTFT behind a changed prefix minus median TTFT on a hit.
fn invalidation_cost(extras: &Extras) -> Option<f64> {
    let median = |samples: &[f64]| Distribution::of(samples).map(|known| known.p50);
    Some(median(&extras.miss_ttft_ms)? - median(&extras.hit_ttft_ms)?)
}

fn comparisons(manifest: &Manifest, passes: &[PassRecord]) -> Vec<Comparison> {
    let Some((baseline, candidates)) = manifest.arms.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    for candidate in candidates {
        for metric in METRICS {
            let pairs = (1..=manifest.repeats).filter_map(|repeat| {
                let of = |arm: &str| {
                    let pass = figures::measured(passes, arm).find(|pass| pass.repeat == repeat)?;
                    figures::metric(pass, metric.name)
                };
                Some([of(&baseline.name)?, of(&candidate.name)?])
            });
            let pairs = pairs.collect();
            let error = client_error(metric.name, passes);
            found.push(compare(metric, &baseline.name, &candidate.name, pairs, error));
        }
    }
    found
}

/// The largest error of the client on a metric, in its unit; stored with the passes, so
/// that a resumed experiment knows it too.
fn client_error(metric: &str, passes: &[PassRecord]) -> Option<f64> {
    let pick = |pass: &PassRecord| match metric {
        "ttft_p50_ms" => pass.client.error_ttft_ms,
        "tpot_p50_ms" => pass.client.error_itl_ms,
        "e2e_p50_ms" => pass.client.error_e2e_ms,
        _ => None,
    };
    passes.iter().filter_map(pick).map(f64::abs).reduce(f64::max)
}

fn note(finding: &Finding) -> Note {
    let message = BothLanguages { en: finding.message(Lang::En), zh: finding.message(Lang::Zh) };
    Note {
        rule: finding.rule.id.to_owned(),
        severity: finding.severity.name().to_owned(),
        arm: finding.at.target.clone(),
        message,
    }
}

/// Our own gate, on our own results.
fn gate_faults(normalized: &NormalizedResult, arm: &ArmRecord, at: &Location) -> Vec<Finding> {
    let text = v1::to_text(&v1::envelope(serde_json::Map::new(), normalized));
    let document = json::read(&text);
    let marks = gate::judge(&document, at.path.as_str()).marks;
    gate::findings(&at.path, &text, marks)
        .into_iter()
        .filter(|fault| fault.severity == Severity::Error)
        .map(|fault| {
            Finding::new(&rules::GATE, at.clone().target(&arm.name))
                .arg("arm", &arm.name)
                .arg("cause", fault.message(Lang::En))
        })
        .collect()
}

/// The claim of an arm: what the rules allow, and for a candidate no more than `tune`
/// unless it is better in something.
fn decide(
    manifest: &Manifest,
    index: usize,
    mut normalized: NormalizedResult,
    baseline: Option<&ArmResult>,
    comparisons: &[&Comparison],
    cap: Verdict,
    limits: &ConcludeSettings,
) -> (NormalizedResult, ArmConclusion, Verdict) {
    let single = manifest.arms.len() == 1;
    let judged = judge(&normalized, baseline.map(|base| &base.normalized), limits);
    let better = comparisons.iter().any(|comparison| comparison.verdict == ComparisonVerdict::Better);
    let ceiling = if better || single { cap } else { cap.min(Verdict::Tune) };
    let claim = if index == 0 && !single { Verdict::NotEvaluated } else { judged.allowed.min(ceiling) };
    let reason = super::words::reason(manifest, index, comparisons, claim, &judged);
    let not_covered = super::words::not_covered(manifest);
    let next = judged.next_step().map(|step| both(&step));
    normalized.decision.decision = claim;
    normalized.decision.reason = Some(reason.en.clone());
    normalized.decision.scope = Some(format!("not covered: {}", not_covered.en));
    normalized.decision.next_action = Some(match (&next, claim) {
        (_, Verdict::NotEvaluated) if index == 0 && !single => "compare the candidates with it".to_owned(),
        (Some(next), _) => next.en.clone(),
        (None, _) => "repeat it on the device and workload it is meant for".to_owned(),
    });
    let conclusion = ArmConclusion {
        decision: claim.name().to_owned(),
        reason,
        not_covered,
        rules: judged
            .reasons
            .iter()
            .filter(|reason| reason.ceiling.is_some())
            .map(|reason| reason.rule.id.to_owned())
            .collect(),
        next_step: next.filter(|_| claim < Verdict::Accept),
    };
    (normalized, conclusion, judged.allowed)
}

pub(super) fn both(text: &Localized) -> BothLanguages {
    BothLanguages { en: text.get(Lang::En).to_owned(), zh: text.get(Lang::Zh).to_owned() }
}

/// What the evidence rules say, as `conclude` will read the files.
fn judge(candidate: &NormalizedResult, baseline: Option<&NormalizedResult>, limits: &ConcludeSettings) -> Conclusion {
    let text = serde_json::to_string(candidate).unwrap_or_default();
    let other = baseline.map(|baseline| serde_json::to_string(baseline).unwrap_or_default()).unwrap_or_default();
    let (candidate, baseline) = (json::read(&text), json::read(&other));
    let nothing = json::read("{}");
    let root = candidate.root.as_ref().or(nothing.root.as_ref());
    match root {
        Some(root) => evidence::conclude(&Case {
            candidate: Facts(root),
            baseline: baseline.root.as_ref().map(Facts),
            limits,
            strategy_metrics: &[],
        }),
        None => Conclusion { claimed: None, allowed: Verdict::NotEvaluated, reasons: Vec::new() },
    }
}

/// Writes the record and the result files; earlier results are kept in `history/`.
pub(crate) fn write(experiment: &Experiment, concluded: &Concluded) -> io::Result<()> {
    let now = jiff::Timestamp::now();
    store::write(&experiment.folder.join("experiment.json"), &concluded.record)?;
    for (arm, one) in concluded.results.iter().enumerate() {
        let raw = result::raw(&concluded.record, arm);
        let document = v1::envelope(raw, &one.normalized);
        fsx::write_keeping_history(&one.path, v1::to_text(&document).as_bytes(), now)?;
    }
    Ok(())
}
