//! The result file of one arm: the public block `inference-benchmark/v1` at level
//! `real_benchmark`, and the raw part beside it. Pure.

use super::figures;
use super::record::{ArmRecord, ExperimentRecord, OverPasses, PassRecord};
use super::setup::Experiment;
use super::spec::{DecisionSpec, QualityMetric, QualitySpec};
use super::store::Extras;
use crate::bench::stats::Distribution;
use crate::quality::{self, ArmQuality, Tier};
use crate::results::v1::{
    self, Budget, Config, Decision, Failure, FieldProbe, Latency, Metrics, NormalizedResult, Quality, RunMetrics,
};
use serde_json::{Map, Value, json};

/// The public block, its decision still open.
pub(super) fn normalized(
    experiment: &Experiment,
    index: usize,
    arm: &ArmRecord,
    passes: &[PassRecord],
    extras: &Extras,
) -> NormalizedResult {
    let setup = &experiment.arms[index];
    let failed = arm.time.failed;
    NormalizedResult {
        project: setup.plan.project.as_ref().map(|project| project.id.to_string()),
        strategy: Some(setup.plan.strategy.clone()),
        role: Some(if index == 0 && experiment.arms.len() > 1 { "baseline" } else { "candidate" }.to_owned()),
        config: config(experiment, index, arm, extras),
        metrics: metrics(arm, passes),
        quality: quality(arm.quality.as_ref(), &experiment.quality, index > 0),
        status: Some(if failed > 0 { "failed" } else { "ok" }.to_owned()),
        evidence_level: Some("real_benchmark".to_owned()),
        failure: Some(Failure {
            failure_reason: (failed > 0).then(|| format!("{failed} requests failed")),
            retest_path: None,
        }),
        decision: stated(&experiment.decision),
        strategy_metrics: strategy_metrics(experiment, index, arm, passes),
        source: None,
        ..NormalizedResult::default()
    }
}

fn stated(spec: &DecisionSpec) -> Decision {
    Decision {
        objective: Some(spec.objective.clone()).filter(|objective| !objective.is_empty()),
        budget: spec.peak_memory_mb.map(|peak| Budget { peak_memory_mb: Some(peak) }),
        targets: spec.targets.clone(),
        ..Decision::default()
    }
}

fn config(experiment: &Experiment, index: usize, arm: &ArmRecord, extras: &Extras) -> Config {
    let manifest = &experiment.manifest;
    let facts = &manifest.arms[index];
    let plan = &experiment.arms[index].plan;
    let project = plan.project.as_ref().map(|project| project.id);
    let dtype = arm.precision.clone();
    let weights = manifest.variable == "quantization" || project == Some(67);
    let format = dtype.as_deref().filter(|_| weights).map(v1::quantization_of);
    let mut settings = Map::new();
    if let Some(rate) = facts.load.rate_per_s {
        settings.insert("request_rate".to_owned(), json!(rate));
        settings.insert("arrival".to_owned(), json!(facts.load.shape));
    }
    Config {
        model: if extras.served_model.is_empty() { facts.model.name.clone() } else { extras.served_model.clone() },
        model_revision: facts
            .model
            .revision
            .clone()
            .or_else(|| facts.model.sha256.as_ref().map(|digest| format!("sha256:{digest}"))),
        backend: manifest.backend.engine.clone(),
        backend_version: manifest.backend.version.clone(),
        runtime_version: manifest.machine.driver.as_ref().map(|driver| format!("driver {driver}")),
        device: manifest.machine.device.clone(),
        quantization_artifact: format.filter(|format| *format != "none").map(|_| facts.model.name.clone()),
        quantization_format: format.map(str::to_owned),
        dtype: dtype.unwrap_or_else(|| "unknown".to_owned()),
        prompt_tokens: arm.time.prompt_tokens_mean,
        generated_tokens: Some(f64::from(facts.workload.max_tokens)),
        batch: u64::from(facts.batch.max(1)),
        concurrency: u64::from(facts.load.concurrency.unwrap_or(1).max(1)),
        cache_policy: facts.cache_policy.clone(),
        workload: Some(facts.workload.source.clone()),
        workload_sha256: Some(facts.workload.sha256.clone()),
        requests: Some(u64::from(facts.workload.requests)),
        repeats: Some(u64::from(arm.time.output_tokens_per_s.n)),
        warmup: Some(u64::from(experiment.arms[index].warmup)),
        run_phase: Some("warm".to_owned()),
        draft_model: facts.features.iter().any(|feature| feature == "speculation").then(|| "n-gram".to_owned()),
        scheduler_policy: (manifest.variable == "scheduler").then(|| facts.value.clone()),
        experiment_type: (project == Some(70)).then(|| "load".to_owned()),
        settings,
    }
}

/// The requests of all passes when these agree, else the median of the passes.
fn latency(pooled: Option<Latency>, medians: OverPasses, passes: &[f64]) -> Option<Latency> {
    if pooled.is_some() {
        return pooled;
    }
    // The median over passes, with the range over all requests: no percentile above it.
    let all = Latency::from(Distribution::of(passes)?);
    Some(Latency { p50: medians.median, p90: None, p95: None, p99: None, ..all })
}

fn metrics(arm: &ArmRecord, passes: &[PassRecord]) -> Metrics {
    let mine: Vec<&PassRecord> = figures::measured(passes, &arm.name).collect();
    let column = |pick: &dyn Fn(&super::record::RequestRecord) -> Option<f64>| -> Vec<f64> {
        mine.iter().flat_map(|pass| &pass.requests).filter_map(pick).collect()
    };
    let time = &arm.time;
    let e2e = latency(time.e2e_ms, time.e2e_p50_ms, &column(&|request| request.e2e_ms));
    let (peak_memory_mb, peak_memory_scope) = peak(arm);
    let count = mine.len().max(1) as f64;
    Metrics {
        ttft_ms: latency(time.ttft_ms, time.ttft_p50_ms, &column(&|request| request.ttft_ms)),
        tpot_ms: latency(time.tpot_ms, time.tpot_p50_ms, &column(&|request| request.tpot_ms)),
        p95_ms: e2e.as_ref().and_then(|e2e| e2e.p95),
        p99_ms: e2e.as_ref().and_then(|e2e| e2e.p99),
        e2e_latency_ms: e2e,
        throughput_tokens_per_s: time.output_tokens_per_s.median,
        throughput_requests_per_s: time.requests_per_s.median,
        peak_memory_mb,
        peak_memory_scope,
        cold_start_ms: time.cold_start_ms.median,
        queue_wait_ms: mean(&column(&|request| request.queue_wait_ms)),
        samples: Some(time.successful),
        successful_requests: Some(time.successful as f64 / count),
        failed_requests: Some(time.failed as f64 / count),
        duration_s: mean(&mine.iter().map(|pass| pass.duration_s).collect::<Vec<_>>()),
        others_cpu_share: mine.iter().filter_map(|pass| pass.others_cpu_share).reduce(f64::max),
        client_within_limits: mine.iter().filter_map(|pass| pass.client.error_within_limits).reduce(|a, b| a && b),
        output_tokens_mean: time.output_tokens_mean,
        estimated_output_tokens: Some(time.tokens_estimated),
        per_run: mine
            .iter()
            .map(|pass| RunMetrics {
                throughput_tokens_per_s: pass.time.output_tokens_per_s,
                throughput_requests_per_s: pass.time.requests_per_s,
                ttft_p50_ms: pass.time.ttft_ms.and_then(|ttft| ttft.p50),
                e2e_p50_ms: pass.time.e2e_ms.and_then(|e2e| e2e.p50),
                successful_requests: Some(pass.time.successful),
                failed_requests: Some(pass.time.failed),
            })
            .collect(),
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The one memory figure of the public block: on the GPU where there is one, else the
/// proportional share, else the resident set; always with its scope.
fn peak(arm: &ArmRecord) -> (Option<f64>, Option<String>) {
    let peak = &arm.memory.peak;
    let scopes = [
        (peak.device_process_bytes, "device_process"),
        (peak.device_used_bytes, "device_used"),
        (peak.pss_bytes, "pss"),
        (peak.rss_bytes, "rss"),
    ];
    let found = scopes.into_iter().find_map(|(bytes, scope)| Some((bytes.filter(|bytes| *bytes > 0)?, scope)));
    match found {
        Some((bytes, scope)) => (Some(bytes as f64 / f64::from(1 << 20)), Some(scope.to_owned())),
        None => (None, None),
    }
}

fn quality(found: Option<&ArmQuality>, wanted: &QualitySpec, candidate: bool) -> Quality {
    let Some(found) = found else {
        return Quality { status: Some("not_collected".to_owned()), ..Quality::default() };
    };
    // A baseline is its own measure: what is compared with it has no value for itself.
    let value = match wanted.metric {
        QualityMetric::Exact => found.exact.value(),
        QualityMetric::Structure => found.structure.value(),
        QualityMetric::Fields => found.critical_fields.value(),
        QualityMetric::LogLoss => found.log_loss,
    };
    let lower = wanted.metric == QualityMetric::LogLoss;
    let kept = value.zip(wanted.floor).map(|(value, floor)| if lower { value <= floor } else { value >= floor });
    Quality {
        status: Some(
            match kept {
                Some(false) => "below_floor",
                _ if value.is_none() && candidate => "not_collected",
                _ => "ok",
            }
            .to_owned(),
        ),
        metric: Some(wanted.metric.name().to_owned()),
        value,
        floor: wanted.floor,
        direction: Some(if lower { "lower" } else { "higher" }.to_owned()),
        probes: Some(found.probes.len() as u64),
        fields: quality::field_agreement(found)
            .into_iter()
            .filter(|(_, tier, _)| *tier != Tier::Informative)
            .map(|(name, tier, share)| FieldProbe { name, critical: tier == Tier::Critical, agreement: share.value() })
            .collect(),
    }
}

/// What belongs to the strategy alone: what the project asks for, else what was seen.
fn strategy_metrics(
    experiment: &Experiment,
    index: usize,
    arm: &ArmRecord,
    passes: &[PassRecord],
) -> Map<String, Value> {
    let plan = &experiment.arms[index].plan;
    let facts = &experiment.manifest.arms[index];
    let mut metrics = Map::new();
    let fairness =
        mean(&figures::measured(passes, &arm.name).filter_map(|pass| pass.time.fairness_jain_ttft).collect::<Vec<_>>());
    // Decode times of several requests overlap: no cost of a step can be told then.
    let alone = facts.load.concurrency == Some(1);
    let verify_cost = figures::verify_cost_ms(passes, &arm.name).filter(|_| alone);
    let seen = [
        ("acceptance_rate", json!(arm.server.acceptance_rate)),
        ("verify_cost_ms", json!(verify_cost)),
        ("cache_hit_rate", json!(arm.server.prefix_cache_hit_rate)),
        ("invalidation_cost_ms", json!(arm.server.invalidation_cost_ms)),
        ("fairness", json!(fairness)),
        ("queue_wait_ms", json!(queue_wait(passes, &arm.name))),
        ("quantization_format", json!(arm.precision)),
        ("weights_bytes", json!(facts.model.weight_bytes)),
        ("goodput_per_s", json!(arm.time.goodput_per_s.median)),
        ("energy_per_token_j", json!(arm.energy_per_token_j)),
    ];
    let asked: Vec<&str> =
        plan.project.iter().flat_map(|project| &project.strategy_metrics).map(String::as_str).collect();
    for (name, value) in seen {
        let wanted = if plan.project.is_some() { asked.contains(&name) } else { !value.is_null() };
        if wanted {
            metrics.insert(name.to_owned(), value);
        }
    }
    for name in asked {
        metrics.entry(name).or_insert(Value::Null);
    }
    if metrics.get("cache_hit_rate").is_some_and(Value::is_number) {
        metrics.insert("hit_rate_source".to_owned(), json!("server_counters"));
    }
    if metrics.contains_key("fairness") {
        metrics.insert("fairness_definition".to_owned(), json!("Jain's index over the TTFT of the requests"));
    }
    if metrics.get("verify_cost_ms").is_some_and(Value::is_number) {
        let definition = "server's decode time / decoding steps, where a step is one pass of the target model";
        metrics.insert("verify_cost_definition".to_owned(), json!(definition));
    }
    metrics
}

fn queue_wait(passes: &[PassRecord], arm: &str) -> Option<f64> {
    let waits: Vec<f64> = figures::measured(passes, arm)
        .flat_map(|pass| &pass.requests)
        .filter_map(|request| request.queue_wait_ms)
        .collect();
    mean(&waits)
}

/// The raw part of a result file: the arm with its passes, and the manifest.
pub(super) fn raw(record: &ExperimentRecord, index: usize) -> Map<String, Value> {
    let arm = &record.arms[index];
    let passes: Vec<&PassRecord> = record.passes.iter().filter(|pass| pass.arm == arm.name).collect();
    let comparisons: Vec<_> = record.comparisons.iter().filter(|comparison| comparison.candidate == arm.name).collect();
    let document = json!({
        "label": format!("{}-{}", record.manifest.name, arm.name),
        "tool": { "name": "verify", "version": record.tool_version },
        "created_at": record.created_at,
        "experiment": record.manifest,
        "arm": arm,
        "passes": passes,
        "comparisons": comparisons,
        "notes": record.notes,
    });
    match document {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
