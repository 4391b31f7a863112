//! Building one normalized result: the members in the order of the late producer, a
//! default listed as such, a value that was stated above one that was recorded.

use super::value::number;
use super::{Migrated, Request};
use crate::model::Localized;
use crate::results::v1::SCHEMA_VERSION;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Names with which labels of runs begin.
const ENGINES: [&str; 13] = [
    "vllm",
    "sglang",
    "gguf",
    "llama.cpp",
    "llama-server",
    "llamacpp",
    "tgi",
    "tensorrt-llm",
    "trtllm",
    "lmdeploy",
    "ollama",
    "transformers",
    "mlc",
];

/// A result in the making. Members that stay `Null` were not measured.
#[derive(Debug)]
pub(super) struct Draft<'r> {
    pub(super) request: &'r Request<'r>,
    pub(super) project: Option<String>,
    pub(super) label: Option<String>,
    pub(super) role: Option<String>,
    pub(super) model: Value,
    pub(super) backend: Option<String>,
    pub(super) dtype: Option<String>,
    pub(super) prompt_tokens: Value,
    pub(super) generated_tokens: Value,
    pub(super) batch: Value,
    /// `None`: not recorded; `Some(Null)`: recorded, but unreadable.
    pub(super) concurrency: Option<Value>,
    /// A concurrency that nobody recorded may be taken for 1.
    pub(super) concurrency_defaults_to_one: bool,
    pub(super) cache_policy: Option<String>,
    /// Further members of `config`.
    pub(super) config: Map<String, Value>,
    pub(super) ttft: Value,
    pub(super) tpot: Value,
    pub(super) e2e: Value,
    pub(super) tokens_per_s: Value,
    pub(super) requests_per_s: Value,
    pub(super) peak_memory_mb: Value,
    pub(super) peak_memory_scope: Option<String>,
    pub(super) successful: Value,
    pub(super) failed: Value,
    pub(super) duration_s: Value,
    pub(super) samples: Value,
    /// Further members of `metrics`.
    pub(super) metrics: Map<String, Value>,
    pub(super) quality: Value,
    pub(super) status: Option<String>,
    pub(super) evidence_level: Option<String>,
    pub(super) failure_reason: Value,
    pub(super) retest_path: Value,
    pub(super) decision: Value,
    pub(super) strategy_metrics: Map<String, Value>,
    pub(super) source: Value,
    pub(super) defaults: Vec<String>,
    pub(super) notes: Vec<Localized>,
}

impl<'r> Draft<'r> {
    pub(super) fn new(request: &'r Request<'r>) -> Self {
        Draft {
            request,
            project: None,
            label: None,
            role: None,
            model: Value::Null,
            backend: None,
            dtype: None,
            prompt_tokens: Value::Null,
            generated_tokens: Value::Null,
            batch: Value::Null,
            concurrency: None,
            concurrency_defaults_to_one: false,
            cache_policy: None,
            config: Map::new(),
            ttft: Value::Null,
            tpot: Value::Null,
            e2e: Value::Null,
            tokens_per_s: Value::Null,
            requests_per_s: Value::Null,
            peak_memory_mb: Value::Null,
            peak_memory_scope: None,
            successful: Value::Null,
            failed: Value::Null,
            duration_s: Value::Null,
            samples: Value::Null,
            metrics: Map::new(),
            quality: json!({}),
            status: None,
            evidence_level: None,
            failure_reason: Value::Null,
            retest_path: Value::Null,
            decision: json!({ "decision": "not_evaluated" }),
            strategy_metrics: Map::new(),
            source: Value::Null,
            defaults: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn note(&mut self, en: impl Into<String>, zh: impl Into<String>) {
        self.notes.push(Localized::both(en, zh));
    }

    fn default_for(&mut self, name: &str, value: &str) -> String {
        self.defaults.push(format!("{name} = {value}"));
        value.to_owned()
    }

    /// What was stated, else what was recorded, else a default that is listed.
    fn text(&mut self, name: &str, stated: Option<&String>, recorded: Option<String>, default: &str) -> String {
        match stated.cloned().or(recorded) {
            Some(text) => text,
            None => self.default_for(name, default),
        }
    }

    pub(super) fn finish(mut self, kind: &'static str) -> Migrated {
        let project = self.project_name();
        let stated = self.request.stated;
        let label = self.label.clone();
        let strategy = self.text("strategy", stated.strategy.as_ref(), label, "backend");
        let role = self.role.clone().unwrap_or_else(|| {
            if strategy.to_lowercase().contains("baseline") { "baseline" } else { "candidate" }.to_owned()
        });
        let config = self.config_members();
        let metrics = self.metric_members();
        let status = self.status.take().unwrap_or_else(|| "not_recorded".to_owned());
        let level = self.evidence_level.take().unwrap_or_else(|| "not_recorded".to_owned());
        let normalized = json!({
            "schema_version": SCHEMA_VERSION,
            "project": project,
            "strategy": strategy,
            "role": role,
            "config": config,
            "metrics": metrics,
            "quality": self.quality,
            "status": status,
            "evidence_level": level,
            "failure": { "failure_reason": self.failure_reason, "retest_path": self.retest_path },
            "decision": self.decision,
            "strategy_metrics": self.strategy_metrics,
            "source": self.source,
        });
        Migrated { normalized, kind, defaults: self.defaults, notes: self.notes, is_result: false }
    }

    /// Stated, recorded, or the number with which the file name begins.
    fn project_name(&mut self) -> String {
        let name = Path::new(self.request.source_path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let leading = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().to_owned();
        let of_file = Some(leading(&name))
            .filter(|number| number.parse().is_ok_and(|number: u32| self.request.projects.contains(&number)));
        let recorded = self.project.take().map(|text| leading(&text)).filter(|number| !number.is_empty());
        let stated = self.request.stated.project.as_ref();
        self.text("project", stated, recorded.or(of_file), "66")
    }

    fn config_members(&mut self) -> Value {
        let stated = self.request.stated;
        let model = stated.model.clone().map_or_else(|| self.model.take(), Value::String);
        let of_label = self.label.as_deref().and_then(engine_of);
        let recorded = self.backend.take().or(of_label);
        let backend = self.text("config.backend", stated.backend.as_ref(), recorded, "unknown");
        let recorded = self.dtype.take();
        let dtype = self.text("config.dtype", stated.dtype.as_ref(), recorded, "unknown");
        let batch = match (stated.batch, self.batch.take()) {
            (Some(batch), _) => Value::from(batch),
            (None, Value::Null) => {
                self.default_for("config.batch", "1");
                Value::from(1)
            }
            (None, recorded) => recorded,
        };
        let concurrency = self.concurrency();
        let recorded = self.cache_policy.take();
        let cache_policy = self.text("config.cache_policy", stated.cache_policy.as_ref(), recorded, "default");
        let mut config = json!({
            "model": model,
            "backend": backend,
            "dtype": dtype,
            "prompt_tokens": self.prompt_tokens.take(),
            "generated_tokens": self.generated_tokens.take(),
            "batch": batch,
            "concurrency": concurrency,
            "cache_policy": cache_policy,
        });
        if let Value::Object(members) = &mut config {
            members.extend(std::mem::take(&mut self.config));
        }
        config
    }

    fn concurrency(&mut self) -> Value {
        match (self.request.stated.concurrency, self.concurrency.take()) {
            (Some(stated), _) => Value::from(stated),
            (None, Some(recorded)) => recorded,
            (None, None) if self.concurrency_defaults_to_one => {
                self.default_for("config.concurrency", "1");
                Value::from(1)
            }
            (None, None) => {
                self.note(
                    "the report does not say how many requests were in flight: state --concurrency",
                    "报告没有写明同时在途的请求数：请用 --concurrency 说明",
                );
                Value::Null
            }
        }
    }

    fn metric_members(&mut self) -> Value {
        let stated = self.request.stated;
        let peak = stated.peak_memory_mb.map_or_else(|| self.peak_memory_mb.take(), number);
        let scope = stated.memory_scope.clone().or(self.peak_memory_scope.take());
        let tail = |name: &str| self.e2e.get(name).cloned().unwrap_or(Value::Null);
        let (p95, p99) = (tail("p95"), tail("p99"));
        let mut metrics = json!({
            "ttft_ms": self.ttft.take(),
            "tpot_ms": self.tpot.take(),
            "throughput_tokens_per_s": self.tokens_per_s.take(),
            "throughput_requests_per_s": self.requests_per_s.take(),
            "p95_ms": p95,
            "p99_ms": p99,
            "peak_memory_mb": peak,
            "peak_memory_scope": scope,
            "queue_wait_ms": null,
            "e2e_latency_ms": self.e2e.take(),
            "successful_requests": self.successful.take(),
            "failed_requests": self.failed.take(),
            "duration_s": self.duration_s.take(),
            "samples": self.samples.take(),
        });
        if let Value::Object(members) = &mut metrics {
            members.extend(std::mem::take(&mut self.metrics));
        }
        metrics
    }
}

/// The engine that a label begins with: `sglang-backend` → `sglang`.
fn engine_of(label: &str) -> Option<String> {
    let label = label.to_lowercase();
    let begins = |engine: &&&str| {
        label.strip_prefix(**engine).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    };
    ENGINES.iter().find(begins).map(|engine| (*engine).to_owned())
}
