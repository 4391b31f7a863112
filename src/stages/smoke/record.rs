//! What a run writes: the result file with its public block, or the failure record.

use super::probes::{self, Judged};
use super::proof;
use super::run::Observed;
use crate::backend::doctor;
use crate::backend::plan::{Plan, Role, Server};
use crate::backend::session::MEMORY_INTERVAL;
use crate::bench::metrics::{PassFigures, TokensSource};
use crate::course::Context;
use crate::fsx;
use crate::model::{Finding, Lang};
use crate::results::evidence::{self, Case, Facts};
use crate::results::json;
use crate::results::v1::{self, Config, Decision, Failure, Latency, Metrics, NormalizedResult, RunMetrics, Verdict};
use serde_json::{Map, Value, json as object};
use std::io;
use std::path::{Path, PathBuf};

/// Writes the result; an earlier one goes to `history/`, and so does a failure record
/// that this success answers.
pub(super) fn write_result(
    ctx: &Context,
    plan: &Plan,
    observed: &Observed,
    figures: &PassFigures,
    run_id: &str,
) -> io::Result<NormalizedResult> {
    let judged = judged(plan, observed);
    let normalized = with_decision(ctx, plan, normalized(plan, observed, figures, judged.as_ref()));
    let mut raw = raw(ctx, plan, observed, figures, run_id);
    raw.insert("quality".to_owned(), object!(judged.map(|judged| judged.columns)));
    let document = v1::envelope(raw, &normalized);
    let now = jiff::Timestamp::now();
    fsx::write_keeping_history(&plan.result, v1::to_text(&document).as_bytes(), now)?;
    fsx::retire_to_history(&plan.failure_path(), now)?;
    Ok(normalized)
}

/// The quality columns of this run; a candidate's against its baseline.
fn judged(plan: &Plan, observed: &Observed) -> Option<Judged> {
    let baseline = (plan.role == Role::Candidate).then(|| plan.result.with_extension("baseline.json"));
    Some(probes::judge(plan.probes.as_ref()?, observed.measured.probes.as_ref()?, baseline.as_deref()))
}

/// Writes the failure record; the result file stays as it is.
pub(super) fn write_failure(
    ctx: &Context,
    plan: &Plan,
    observed: &Observed,
    fault: &Finding,
    run_id: &str,
) -> io::Result<PathBuf> {
    let path = plan.failure_path();
    let document = object!({
        "schema_version": "verify-failure/v1",
        "run_id": run_id,
        "created_at": jiff::Timestamp::now().to_string(),
        "project": plan.project.as_ref().map(|project| project.id.to_string()),
        "status": "failed",
        "rule": fault.rule.id,
        "failure": {
            "failure_reason": fault.message(Lang::En),
            "retest_path": fault.help_text(Lang::En),
        },
        "decision": { "decision": "not_evaluated", "reason": "the run failed; nothing was measured" },
        "server": server(ctx, observed),
        "log_tail": observed.life.log_tail,
        "failed_requests": observed.measured.traces.iter().filter_map(|trace| {
            trace.fault.as_ref().map(|fault| object!({ "id": trace.id, "fault": fault }))
        }).collect::<Vec<_>>(),
    });
    fsx::write_keeping_history(&path, v1::to_text(&document).as_bytes(), jiff::Timestamp::now())?;
    Ok(path)
}

fn raw(ctx: &Context, plan: &Plan, observed: &Observed, figures: &PassFigures, run_id: &str) -> Map<String, Value> {
    let measured = &observed.measured;
    let document = object!({
        "label": format!("{}-smoke", plan.profile.name),
        "run_id": run_id,
        "created_at": jiff::Timestamp::now().to_string(),
        "tool": { "name": "verify", "version": env!("CARGO_PKG_VERSION") },
        "model": observed.life.identity.model,
        "base_url": observed.life.base_url,
        "workload": {
            "source": plan.workload_path.as_str(),
            "sha256": plan.workload.sha256,
            "requests": figures.successful + figures.failed,
            "concurrency": plan.concurrency,
            "warmup": plan.warmup,
            "max_tokens": plan.max_tokens,
            "temperature": 0,
            "stream": true,
            "load_shape": "closed loop",
            "features": plan.features,
        },
        "metrics": figures,
        "answers": measured.traces.iter().map(|trace| object!({ "id": trace.id, "text": trace.text })).collect::<Vec<_>>(),
        "model_identity": {
            "asked": plan.model.asked,
            "origin": plan.model.origin,
            "path": plan.model.origin.map(|_| &plan.model.name),
            "revision": plan.model.revision,
            "sha256": plan.model.sha256,
            "weights_bytes": plan.model.bytes,
        },
        "dtype": dtype_chain(plan, observed),
        "environment": environment(plan, observed),
        "server": server(ctx, observed),
        "counters": {
            "before": measured.before.counters,
            "after": measured.after.counters,
            "difference": measured.counted(),
            "peaks": measured.gauges,
            "raw": { "before": measured.before.raw, "after": measured.after.raw },
            "settings": measured.before.settings,
        },
        "invalidation": measured.invalidation,
        "probes": measured.probes,
        "memory": {
            "interval_ms": u64::try_from(MEMORY_INTERVAL.as_millis()).ok(),
            "unit": "bytes, summed over the process tree",
            "scopes": {
                "rss": "resident set; pages that processes share are counted once per process",
                "pss": "proportional share of those pages; smaller while strangers map the same file",
                "anonymous": "resident set without what is mapped from files",
                "nvml_process": "GPU memory per process as the driver counts it",
            },
            "peak": measured.memory.peak(),
            "samples": measured.memory.readings,
        },
        "process_tree": measured.memory.processes.values().collect::<Vec<_>>(),
    });
    match document {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn environment(plan: &Plan, observed: &Observed) -> Value {
    object!({
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "cpu": doctor::cpu_name(),
        "cores": std::thread::available_parallelism().map(std::num::NonZero::get).ok(),
        "load_before": observed.measured.load_before,
        "load_after": observed.measured.load_after,
        "contention": observed.measured.contention,
        "backend": plan.profile.name,
        "backend_version": backend_version(plan),
        "build": match &plan.server {
            Server::Start { build, .. } => object!(build),
            Server::External { .. } => Value::Null,
        },
        "external": matches!(plan.server, Server::External { .. }),
        "gpus": doctor::gpus().ok().map(|(driver, gpus)| object!({
            "driver": driver,
            "devices": gpus,
        })),
    })
}

fn server(ctx: &Context, observed: &Observed) -> Value {
    object!({
        "argv": observed.life.argv,
        "cold_start": observed.life.cold,
        "model_entry": observed.life.identity.entry,
        "stop": observed.life.stopped.map(|stopped| object!({
            "kind": stopped.kind,
            "exit_code": stopped.exit.and_then(|exit| exit.code),
            "signal": stopped.exit.and_then(|exit| exit.signal),
            "duration_ms": stopped.duration.as_secs_f64() * 1000.0,
            "port_free": observed.life.after.as_ref().map(|after| after.port_free),
            "gpu_memory_left": observed.life.after.as_ref().and_then(|after| after.gpu_memory.as_ref()),
        })),
        "log": observed.life.log.as_ref().map(|log| ctx.repo_path(log).as_str().to_owned()),
        "log_bytes": observed.life.stopped.map(|stopped| stopped.log_bytes),
        "log_bytes_dropped": observed.life.stopped.map(|stopped| stopped.log_dropped),
        "guarantee": if cfg!(target_os = "linux") {
            "every descendant was stopped (subreaper and parent-death signal)"
        } else {
            "the process group was stopped; a process that left it may live on"
        },
    })
}

fn backend_version(plan: &Plan) -> Option<String> {
    match &plan.server {
        Server::Start { build, .. } => build.version.clone(),
        Server::External { .. } => None,
    }
}

/// From the wish to what the server said it took.
fn dtype_chain(plan: &Plan, observed: &Observed) -> Value {
    let mut chain = object!(plan.model.dtype);
    chain["reported"] = object!(observed.life.reported_dtype);
    chain
}

/// The precision of the run: what the server reported, else what it was asked for.
fn dtype(plan: &Plan, observed: &Observed) -> Option<String> {
    let reported = stated_dtype(observed).or_else(|| observed.life.reported_dtype.clone());
    reported.or_else(|| plan.model.dtype.chosen.clone())
}

/// Precision of the weights as the server states it (`meta.ftype` of llama.cpp).
fn stated_dtype(observed: &Observed) -> Option<String> {
    let stated = observed.life.identity.entry["meta"]["ftype"].as_str()?;
    (!stated.trim().is_empty()).then(|| stated.to_ascii_lowercase())
}

fn normalized(plan: &Plan, observed: &Observed, figures: &PassFigures, judged: Option<&Judged>) -> NormalizedResult {
    let project = plan.project.as_ref();
    let dtype = stated_dtype(observed);
    let strategy_metrics = proof::strategy_metrics(plan, &observed.measured, figures, dtype.as_deref());
    NormalizedResult {
        project: project.map(|project| project.id.to_string()),
        strategy: Some(plan.strategy.clone()),
        role: Some(plan.role.name().to_owned()),
        config: config(plan, observed, figures),
        metrics: metrics(observed, figures),
        quality: probes::block(judged),
        status: Some("ok".to_owned()),
        evidence_level: Some("real_backend_smoke".to_owned()),
        failure: Some(Failure::default()),
        strategy_metrics,
        source: Some(observed.life.base_url.clone()),
        ..NormalizedResult::default()
    }
}

fn config(plan: &Plan, observed: &Observed, figures: &PassFigures) -> Config {
    let engine = if plan.profile.engine.is_empty() { &plan.profile.name } else { &plan.profile.engine };
    let stated = stated_dtype(observed);
    let quantization =
        plan.project.as_ref().filter(|project| project.id == 67).and(stated.as_deref()).map(v1::quantization_of);
    Config {
        model: observed.life.identity.model.clone(),
        model_revision: plan
            .model
            .revision
            .clone()
            .or_else(|| plan.model.sha256.as_ref().map(|digest| format!("sha256:{digest}"))),
        backend: engine.clone(),
        backend_version: backend_version(plan),
        device: device(plan),
        quantization_artifact: quantization.filter(|format| *format != "none").map(|_| file_name(&plan.model.name)),
        quantization_format: quantization.map(str::to_owned),
        dtype: dtype(plan, observed).unwrap_or_else(|| "unknown".to_owned()),
        prompt_tokens: figures.mean_tokens(|request| request.prompt_tokens),
        generated_tokens: Some(f64::from(plan.max_tokens)),
        concurrency: u64::from(plan.concurrency.max(1)),
        cache_policy: plan.cache_policy.clone(),
        draft_model: plan.features.iter().any(|feature| feature == "speculation").then(|| "n-gram".to_owned()),
        experiment_type: plan.project.as_ref().filter(|project| project.id == 70).map(|_| "load".to_owned()),
        workload: Some(plan.workload_path.as_str().to_owned()),
        workload_sha256: Some(plan.workload.sha256.clone()),
        requests: Some((figures.successful + figures.failed) as u64),
        repeats: Some(1),
        warmup: Some(u64::from(plan.warmup)),
        run_phase: Some("warm".to_owned()),
        ..Config::default()
    }
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The processor for a server that we started without a GPU; unknown for somebody else's.
fn device(plan: &Plan) -> Option<String> {
    if matches!(plan.server, Server::External { .. }) {
        return None;
    }
    match doctor::gpus() {
        Ok((_, gpus)) if plan.profile.provision != "cpu" && !gpus.is_empty() => Some(gpus[0].name.clone()),
        _ => Some(doctor::cpu_name().unwrap_or_else(|| "cpu".to_owned())),
    }
}

fn metrics(observed: &Observed, figures: &PassFigures) -> Metrics {
    let e2e = figures.e2e_ms.map(Latency::from);
    let peak = observed.measured.memory.peak();
    let queue = proof::queue_wait(&observed.measured.counted(), figures);
    Metrics {
        ttft_ms: figures.ttft_ms.map(Latency::from),
        tpot_ms: figures.tpot_ms.map(Latency::from),
        p95_ms: e2e.as_ref().and_then(|e2e| e2e.p95),
        p99_ms: e2e.as_ref().and_then(|e2e| e2e.p99),
        e2e_latency_ms: e2e,
        throughput_tokens_per_s: figures.output_tokens_per_s,
        throughput_requests_per_s: figures.requests_per_s,
        peak_memory_mb: peak.map(|peak| peak.rss as f64 / f64::from(1 << 20)),
        peak_memory_scope: peak.map(|_| "rss".to_owned()),
        cold_start_ms: observed.life.cold.first_answer_ms.filter(|_| observed.life.stopped.is_some()),
        samples: Some(figures.successful as u64),
        successful_requests: Some(figures.successful as f64),
        failed_requests: Some(figures.failed as f64),
        duration_s: Some(figures.duration_s),
        output_tokens_mean: figures.mean_tokens(|request| Some(request.output_tokens)),
        estimated_output_tokens: Some(figures.tokens_source == TokensSource::Chunks),
        others_cpu_share: observed.measured.contention.map(|found| found.taken()),
        // The small workload proves a path: the client is not checked for it.
        client_within_limits: None,
        per_run: vec![RunMetrics {
            throughput_tokens_per_s: figures.output_tokens_per_s,
            throughput_requests_per_s: figures.requests_per_s,
            ttft_p50_ms: figures.ttft_ms.map(|ttft| ttft.p50),
            e2e_p50_ms: figures.e2e_ms.map(|e2e| e2e.p50),
            successful_requests: Some(figures.successful as u64),
            failed_requests: Some(figures.failed as u64),
        }],
        queue_wait_ms: queue.map(|(wait, _)| wait),
    }
}

/// A smoke run never says accept, and no more than its evidence carries: the claim is
/// what `conclude` would allow it, `tune` at most.
fn with_decision(ctx: &Context, plan: &Plan, mut normalized: NormalizedResult) -> NormalizedResult {
    let missing = missing(plan, &normalized.strategy_metrics);
    let decision =
        if missing.is_empty() { allowed(ctx, plan, &normalized).min(Verdict::Tune) } else { Verdict::NotEvaluated };
    let reason = match (decision, missing.as_slice()) {
        (Verdict::Reject, _) => "a smoke run whose answers changed where they must not: see quality.fields".to_owned(),
        (Verdict::Tune, _) => "a smoke run: the path works; it is too small to judge performance or quality".to_owned(),
        (_, []) => "a smoke run: the path works; what the project is about is not shown by it".to_owned(),
        (_, missing) => format!("a smoke run that does not show {}", missing.join(", ")),
    };
    let to_confirm = plan.project.as_ref().map(|project| project.to_confirm.join(", ")).unwrap_or_default();
    let next_action = if to_confirm.is_empty() {
        "run the enlarged workload with repeats and quality probes".to_owned()
    } else {
        format!("confirm: {to_confirm}; then run the enlarged workload with repeats and quality probes")
    };
    normalized.decision =
        Decision { decision, reason: Some(reason), next_action: Some(next_action), ..Decision::default() };
    normalized
}

/// The metrics that the project asks for and this run does not show; what only explains
/// them may be unknown.
fn missing<'a>(plan: &'a Plan, shown: &Map<String, Value>) -> Vec<&'a str> {
    let wanted = plan.project.iter().flat_map(|project| &project.strategy_metrics);
    wanted.map(String::as_str).filter(|name| shown.get(*name).is_none_or(Value::is_null)).collect()
}

/// The highest decision that the evidence rules allow, read as `conclude` reads it,
/// against the baseline of the same project where there is one.
fn allowed(ctx: &Context, plan: &Plan, normalized: &NormalizedResult) -> Verdict {
    let text = serde_json::to_string(normalized).unwrap_or_default();
    let candidate = json::read(&text);
    let Some(root) = candidate.root.as_ref() else { return Verdict::NotEvaluated };
    let baseline_text = std::fs::read_to_string(plan.result.with_extension("baseline.json")).unwrap_or_default();
    let baseline = json::read(&baseline_text);
    let baseline = baseline.root.as_ref().and_then(|root| root.at(&["normalized_result"])).map(Facts);
    let case = Case {
        candidate: Facts(root),
        baseline: baseline.filter(|_| plan.role == Role::Candidate),
        limits: &ctx.settings.conclude,
        strategy_metrics: &[],
    };
    evidence::conclude(&case).allowed
}
