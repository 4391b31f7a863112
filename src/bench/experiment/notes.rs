//! What has to be said beside the figures. Pure.

use super::engine::Ended;
use super::figures;
use super::record::{ArmRecord, Manifest, PassRecord};
use super::spec::Variable;
use crate::model::{Finding, Location, RepoPath};
use crate::results::v1::Verdict;
use crate::rules::{Rule, experiment as rules};
use std::collections::BTreeMap;

/// A first request this many times slower than the median is the cold one.
const COLD_FACTOR: f64 = 3.0;
/// First and last pass further apart than this drift.
const DRIFT: f64 = 0.10;
/// Share of a pass that the client may wait for a processor.
const STARVED: f64 = crate::bench::starvation::WAIT_LIMIT;

/// Every note of an experiment.
pub(super) fn findings(
    manifest: &Manifest,
    arms: &[ArmRecord],
    passes: &[PassRecord],
    ended: &Ended,
    at: &Location,
) -> Vec<Finding> {
    let mut all = Vec::new();
    let say = |rule| Finding::new(rule, at.clone());
    let done: usize = arms.iter().map(|arm| figures::measured(passes, &arm.name).count()).sum();
    let total = manifest.repeats as usize * arms.len();
    if done < total && ended.fault.is_none() {
        all.push(say(&rules::INCOMPLETE).arg("done", done).arg("total", total));
    }
    if manifest.repeats < 3 {
        all.push(say(&rules::FEW_REPEATS).arg("repeats", manifest.repeats));
    }
    if manifest.machine.gpus.is_empty() && !manifest.backend.external {
        all.push(say(&rules::NO_GPU_FIGURES));
    }
    for arm in arms {
        let say = |rule| of_arm(rule, at, arm);
        let mine: Vec<&PassRecord> = figures::measured(passes, &arm.name).collect();
        all.extend(requests_failed(&mine).map(|(failed, total, kinds)| {
            say(&rules::REQUESTS_FAILED).arg("failed", failed).arg("total", total).arg("kinds", kinds)
        }));
        // Where the cache is the subject, the first request of a pass is meant to miss it.
        let cold = mine.iter().filter(|pass| cold_first(pass)).count();
        if cold > 0 && manifest.variable != Variable::Cache.name() {
            all.push(say(&rules::COLD_MIXED_IN).arg("count", cold));
        }
        all.extend(client_error(&mine, &say));
        all.extend(drift(&mine).map(|drift| say(&rules::DRIFT).arg("value", percent(drift))));
        all.extend(starved(&mine).map(|share| say(&rules::CLIENT_STARVED).arg("value", percent(share))));
        if !arm.server.resets.is_empty() {
            all.push(say(&rules::COUNTER_RESET).arg("list", arm.server.resets.join(", ")));
        }
        all.extend(quality(arm, &say));
    }
    all.extend(not_shown(manifest, arms, at));
    all
}

/// A finding about one arm: at its result file.
fn of_arm(rule: &'static Rule, at: &Location, arm: &ArmRecord) -> Finding {
    let path = RepoPath::new(format!("{}/{}.json", at.path, arm.name));
    Finding::new(rule, Location::file(path).target(&arm.name)).arg("arm", &arm.name)
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "?".to_owned(), |value| format!("{value:.2}"))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn requests_failed(passes: &[&PassRecord]) -> Option<(u64, u64, String)> {
    let failed: u64 = passes.iter().map(|pass| pass.time.failed).sum();
    let total = failed + passes.iter().map(|pass| pass.time.successful).sum::<u64>();
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for (kind, count) in passes.iter().flat_map(|pass| &pass.time.failures) {
        *kinds.entry(kind).or_insert(0) += count;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    (failed > 0).then(|| (failed, total, kinds.join(", ")))
}

/// Whether the first request of a pass was a cold one. In a load whose requests wait for
/// one another the first is rather the fastest.
fn cold_first(pass: &PassRecord) -> bool {
    let first = pass.requests.first().and_then(|request| request.ttft_ms);
    let median = pass.time.ttft_ms.and_then(|ttft| ttft.p50);
    pass.requests.len() >= 5 && first.zip(median).is_some_and(|(first, median)| first > COLD_FACTOR * median)
}

/// Relative difference of the throughput of the first and the last third of the passes.
fn drift(passes: &[&PassRecord]) -> Option<f64> {
    let values: Vec<f64> = passes.iter().filter_map(|pass| pass.time.output_tokens_per_s).collect();
    let third = values.len() / 3;
    if third == 0 {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (first, last) = (mean(&values[..third]), mean(&values[values.len() - third..]));
    let drift = (last - first).abs() / first;
    (first > 0.0 && drift > DRIFT).then_some(drift)
}

fn starved(passes: &[&PassRecord]) -> Option<f64> {
    let shares = passes
        .iter()
        .filter_map(|pass| (pass.duration_s > 0.0).then_some(pass.client.starved_ms? / 1000.0 / pass.duration_s));
    shares.reduce(f64::max).filter(|share| *share > STARVED)
}

fn quality(arm: &ArmRecord, say: &impl Fn(&'static Rule) -> Finding) -> Vec<Finding> {
    let Some(quality) = &arm.quality else { return Vec::new() };
    let mut all = Vec::new();
    let missing: Vec<&str> = quality
        .probes
        .iter()
        .flat_map(|probe| &probe.answers)
        .filter(|answer| answer.text.is_none())
        .map(|answer| answer.fault.as_deref().unwrap_or("?"))
        .collect();
    if let Some(first) = missing.first() {
        all.push(say(&rules::PROBES_FAILED).arg("count", missing.len()).arg("first", *first));
    }
    let load = quality.stable_under_load;
    if load.count < load.of {
        all.push(say(&rules::DIFFERS_UNDER_LOAD).arg("count", load.of - load.count).arg("of", load.of));
    }
    all
}

/// Arms that should speculate or hit a cache, and do not by the server's own counters.
fn not_shown(manifest: &Manifest, arms: &[ArmRecord], at: &Location) -> Vec<Finding> {
    let on = |index: usize, feature: &str| manifest.arms[index].features.iter().any(|known| known == feature);
    let mut all = Vec::new();
    for (index, arm) in arms.iter().enumerate().filter(|(index, _)| *index < manifest.arms.len()) {
        let (wanted, evidence, name) = if manifest.variable == Variable::Speculation.name() {
            (on(index, "speculation"), arm.server.drafted_tokens, "drafted_tokens")
        } else if manifest.variable == Variable::Cache.name() {
            (manifest.arms[index].cache_policy == "prefix", arm.server.prefix_cache_hit_rate, "prefix_cache_hit_rate")
        } else {
            continue;
        };
        if wanted && evidence.is_none_or(|value| value <= 0.0) {
            let value = evidence.map_or_else(|| "null".to_owned(), |value| value.to_string());
            all.push(
                of_arm(&rules::NOT_SHOWN, at, arm)
                    .arg("variable", &manifest.variable)
                    .arg("evidence", format!("{name}: {value}")),
            );
        }
    }
    all
}

/// Notes that leave the arm they are about no more than `tune`.
static TO_TUNE: [&Rule; 5] = [
    &rules::REQUESTS_FAILED,
    &rules::COLD_MIXED_IN,
    &rules::CLIENT_STARVED,
    &rules::CLIENT_ERROR,
    &rules::CLIENT_UNCHECKED,
];

/// The client's own error, as it was kept with each pass: beyond its limits, or not known.
fn client_error(passes: &[&PassRecord], say: &dyn Fn(&'static Rule) -> Finding) -> Option<Finding> {
    let of = |within: Option<bool>| passes.iter().find(|pass| pass.client.error_within_limits == within);
    if let Some(pass) = of(Some(false)) {
        let (ttft, e2e) = (shown(pass.client.error_ttft_ms), shown(pass.client.error_e2e_ms));
        return Some(say(&rules::CLIENT_ERROR).arg("ttft", ttft).arg("e2e", e2e));
    }
    of(None).map(|_| say(&rules::CLIENT_UNCHECKED))
}

/// The highest decision that these notes leave an arm.
pub(super) fn caps(findings: &[Finding], arm: &str) -> Verdict {
    let mut cap = Verdict::Accept;
    for finding in findings {
        let mine = finding.at.target.as_deref() == Some(arm);
        let id = finding.rule.id;
        if id == rules::NOT_SHOWN.id && mine {
            cap = cap.min(Verdict::NotEvaluated);
        } else if id == rules::INCOMPLETE.id || (mine && TO_TUNE.iter().any(|rule| rule.id == id)) {
            cap = cap.min(Verdict::Tune);
        }
    }
    cap
}
