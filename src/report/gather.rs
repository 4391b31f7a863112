//! Experiments and results as a [`Sheet`](super::Sheet) shows them.

use super::{Arm, Bar, Cell, Conclusion, Difference, MemoryLine, Said, Scope, Series, Source, Timeline, Value};
use crate::bench::experiment::record::{
    ArmConclusion, ArmManifest, ArmRecord, BothLanguages, Comparison, ComparisonVerdict, ExperimentRecord, Manifest,
    MemoryFigures, OverPasses, PassPhase, PassRecord,
};
use crate::model::Localized;
use crate::quality::{ArmQuality, Share};
use crate::results::compare;
use crate::results::evidence::{self, Facts, plain};
use crate::results::v1::Latency;

/// Requests of a timeline at most; more are no longer told apart.
const MAX_BARS: usize = 48;
/// Points of a line of memory at most.
const MAX_POINTS: usize = 60;
/// Bytes of a MiB.
const MIB: f64 = 1_048_576.0;

fn both(en: &str, zh: &str) -> Localized {
    Localized::both(en, zh)
}

impl From<&BothLanguages> for Localized {
    fn from(text: &BothLanguages) -> Self {
        Localized::both(&text.en, &text.zh)
    }
}

fn cell(column: &str, en: &str, zh: &str, value: Value) -> Cell {
    Cell { column: column.to_owned(), title: both(en, zh), value }
}

fn text(value: Option<impl Into<String>>) -> Value {
    value.map_or_else(|| Value::Missing(both("not recorded", "未记录")), |value| Value::Text(value.into()))
}

fn figure(value: Option<f64>, why: impl FnOnce() -> Localized) -> Value {
    value.map_or_else(|| Value::Missing(why()), |value| Value::Number { value, range: None })
}

/// An experiment.
pub fn experiment(file: &str, record: &ExperimentRecord) -> Source {
    let manifest = &record.manifest;
    let arms = record.arms.iter().enumerate().map(|(index, arm)| experiment_arm(record, index, arm)).collect();
    Source {
        file: file.to_owned(),
        experiment: Some(manifest.name.clone()),
        variable: Some(manifest.variable.clone()),
        facts: experiment_facts(record),
        arms,
        differences: record.comparisons.iter().map(difference).collect(),
        notes: record
            .notes
            .iter()
            .map(|note| Said {
                severity: note.severity.clone(),
                arm: note.arm.clone(),
                rule: note.rule.clone(),
                text: (&note.message).into(),
            })
            .collect(),
        no_figures: record.passes.is_empty().then(|| both("no pass has ended yet", "还没有任何一轮完成")),
    }
}

fn experiment_facts(record: &ExperimentRecord) -> Vec<(Localized, String)> {
    let manifest = &record.manifest;
    let machine = &manifest.machine;
    let mut facts = vec![
        (both("measured", "测量时间"), span(record)),
        (both("device", "设备"), machine.device.clone().unwrap_or("—".to_owned())),
    ];
    facts.push((both("system", "系统"), format!("{}, {}", machine.os, machine.arch)));
    if let Some(cores) = machine.cores {
        facts.push((both("cores", "可用核数"), cores.to_string()));
    }
    if let Some(driver) = &machine.driver {
        facts.push((both("driver", "驱动"), driver.clone()));
    }
    facts.push((both("backend", "后端"), backend(manifest)));
    facts.push((both("decoding", "解码"), decoding(manifest)));
    facts.push((both("passes per arm", "每组测量轮数"), manifest.repeats.to_string()));
    facts.push((both("warm-up requests, not counted", "预热请求（不计入）"), manifest.warmup.to_string()));
    facts.push((both("seed", "随机种子"), manifest.seed.to_string()));
    if let Some(probes) = &manifest.probes {
        let digest: String = probes.sha256.chars().take(12).collect();
        facts.push((both("probes", "质量探针"), format!("{} ({}), sha256 {digest}", probes.name, probes.probes)));
    }
    if let Some(error) = client_error(record) {
        facts.push((both("client's own error", "客户端自身误差"), error));
    }
    facts.push((both("manifest", "清单"), format!("sha256 {}", manifest.fingerprint)));
    facts.push((both("written by", "生成工具"), format!("verify {}", record.tool_version)));
    facts
}

fn span(record: &ExperimentRecord) -> String {
    match &record.finished_at {
        Some(end) => format!("{} – {end}", record.created_at),
        None => format!("{} – …", record.created_at),
    }
}

fn backend(manifest: &Manifest) -> String {
    let backend = &manifest.backend;
    let version = backend.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    format!("{}{version}", if backend.engine.is_empty() { &backend.name } else { &backend.engine })
}

fn decoding(manifest: &Manifest) -> String {
    let decoding = &manifest.decoding;
    let seed = decoding.seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
    let eos = if decoding.ignore_eos { ", ignore_eos" } else { "" };
    format!("temperature {}{seed}{eos}", decoding.temperature)
}

/// The largest error of the client over the passes.
fn client_error(record: &ExperimentRecord) -> Option<String> {
    let largest = |of: fn(&PassRecord) -> Option<f64>| record.passes.iter().filter_map(of).reduce(f64::max);
    let ttft = largest(|pass| pass.client.error_ttft_ms)?;
    let e2e = largest(|pass| pass.client.error_e2e_ms);
    let e2e = e2e.map(|e2e| format!(", E2E {} ms", super::number(e2e))).unwrap_or_default();
    Some(format!("TTFT {} ms{e2e}", super::number(ttft)))
}

fn experiment_arm(record: &ExperimentRecord, index: usize, arm: &ArmRecord) -> Arm {
    let manifest = record.manifest.arms.iter().find(|known| known.name == arm.name);
    Arm {
        name: arm.name.clone(),
        cells: [
            manifest.map(|known| configuration(&record.manifest, known, arm)).unwrap_or_default(),
            time(arm, record.manifest.backend.external),
            memory(arm, record.manifest.backend.external),
            quality(arm.quality.as_ref(), index == 0),
        ],
        conclusion: conclusion(&arm.conclusion),
        series: series(record, arm, manifest),
    }
}

fn conclusion(known: &ArmConclusion) -> Conclusion {
    Conclusion {
        decision: known.decision.clone(),
        claimed: None,
        reason: (&known.reason).into(),
        not_covered: Some((&known.not_covered).into())
            .filter(|text: &Localized| !text.get(crate::model::Lang::En).is_empty()),
        rules: known.rules.clone(),
        next_step: known.next_step.as_ref().map(Into::into),
    }
}

fn configuration(manifest: &Manifest, known: &ArmManifest, arm: &ArmRecord) -> Vec<Cell> {
    let (model, load, workload) = (&known.model, &known.load, &known.workload);
    let rate = load.rate_per_s.map(|rate| format!(" {rate}/s")).unwrap_or_default();
    let limit = load.concurrency.map(|count| format!(", {count}")).unwrap_or_default();
    let digest = |text: &str| text.chars().take(12).collect::<String>();
    let mean = |value: Option<f64>| figure(value, || both("the server gave no usage", "服务端未返回 usage"));
    let features = if known.features.is_empty() { "—".to_owned() } else { known.features.join(", ") };
    vec![
        cell("variable", &manifest.variable, &manifest.variable, Value::Text(known.value.clone())),
        cell("model", "model", "模型", Value::Text(model.name.clone())),
        cell("weights_sha256", "weights sha256", "权重 sha256", text(model.sha256.as_deref().map(digest))),
        cell("dtype", "precision", "精度", text(arm.precision.clone().or(known.precision.clone()))),
        cell("backend", "backend", "后端", Value::Text(backend(manifest))),
        cell("device", "device", "设备", text(manifest.machine.device.clone())),
        cell("batch", "batch", "批大小", Value::Text(known.batch.to_string())),
        cell(
            "load",
            "load (shape, in flight)",
            "负载（方式、并发）",
            Value::Text(format!("{}{rate}{limit}", load.shape)),
        ),
        cell("cache_policy", "cache", "缓存策略", Value::Text(known.cache_policy.clone())),
        cell("features", "features", "特性", Value::Text(features)),
        cell(
            "workload",
            "workload",
            "工作负载",
            Value::Text(format!("{} {}", workload.source, digest(&workload.sha256))),
        ),
        cell("requests", "requests per pass", "每轮请求数", Value::Text(workload.requests.to_string())),
        cell("max_tokens", "tokens at most", "最大输出 token", Value::Text(workload.max_tokens.to_string())),
        cell("prompt_tokens", "prompt tokens, mean", "平均输入 token", mean(arm.time.prompt_tokens_mean)),
        cell("generated_tokens", "output tokens, mean", "平均输出 token", mean(arm.time.output_tokens_mean)),
        cell(
            "cache_hit_rate",
            "cache hit rate, counted",
            "缓存命中率（计数）",
            counted(arm.server.prefix_cache_hit_rate),
        ),
        cell("acceptance_rate", "acceptance rate, counted", "接受率（计数）", counted(arm.server.acceptance_rate)),
        cell("waiting_peak", "waiting requests, peak", "排队请求峰值", counted(arm.server.waiting_peak)),
    ]
}

/// What the server's own counters show: whether the setting was really at work.
fn counted(value: Option<f64>) -> Value {
    figure(value, || both("the server counted nothing of it", "服务端没有相应的计数"))
}

fn over(passes: OverPasses, why: impl FnOnce() -> Localized) -> Value {
    match (passes.median, passes.min, passes.max) {
        (Some(value), Some(low), Some(high)) if passes.n > 1 => Value::Number { value, range: Some([low, high]) },
        (value, _, _) => figure(value, why),
    }
}

/// A percentile over all passes, or why there is none.
fn percentile(known: Option<&Latency>, of: fn(&Latency) -> Option<f64>, needed: u64) -> Value {
    let Some(known) = known else {
        return Value::Missing(both(
            "the passes differ by more than 5 %, so their requests are not pooled",
            "各轮差异超过 5 %，请求不合并统计",
        ));
    };
    figure(of(known), || {
        Localized::both(
            format!("{} requests cannot carry it, {needed} are needed", known.n.unwrap_or(0)),
            format!("{} 个请求不足以支撑，至少需要 {needed} 个", known.n.unwrap_or(0)),
        )
    })
}

fn time(arm: &ArmRecord, external: bool) -> Vec<Cell> {
    let time = &arm.time;
    let none = || both("no request succeeded", "没有成功的请求");
    let cold = move || {
        if external {
            both("the server ran already", "服务在测量前已在运行")
        } else {
            both("no start was measured", "没有测量启动过程")
        }
    };
    let goodput = || both("no limits were stated", "没有设定目标");
    let uncached = || both("the cache is not what is varied, or it is off", "缓存不是实验变量，或没有开启");
    let no_energy = || both("no energy: NVML gave none", "没有能耗数据：NVML 不可用或未返回");
    vec![
        cell("ttft_p50_ms", "TTFT P50 ms", "TTFT P50 ms", over(time.ttft_p50_ms, none)),
        cell("ttft_p95_ms", "TTFT P95 ms", "TTFT P95 ms", percentile(time.ttft_ms.as_ref(), |known| known.p95, 59)),
        cell("ttft_p99_ms", "TTFT P99 ms", "TTFT P99 ms", percentile(time.ttft_ms.as_ref(), |known| known.p99, 100)),
        cell("ttft_max_ms", "TTFT max ms", "TTFT 最大 ms", percentile(time.ttft_ms.as_ref(), |known| known.max, 1)),
        cell("tpot_p50_ms", "TPOT P50 ms", "TPOT P50 ms", over(time.tpot_p50_ms, none)),
        cell("e2e_p50_ms", "E2E P50 ms", "E2E P50 ms", over(time.e2e_p50_ms, none)),
        cell("e2e_p99_ms", "E2E P99 ms", "E2E P99 ms", percentile(time.e2e_ms.as_ref(), |known| known.p99, 100)),
        cell("e2e_max_ms", "E2E max ms", "E2E 最大 ms", percentile(time.e2e_ms.as_ref(), |known| known.max, 1)),
        cell("tokens_per_s", "token/s", "token/s", over(time.output_tokens_per_s, none)),
        cell("requests_per_s", "req/s", "req/s", over(time.requests_per_s, none)),
        cell("goodput_per_s", "goodput/s", "有效吞吐/s", over(time.goodput_per_s, goodput)),
        cell("cold_start_ms", "cold start ms", "冷启动 ms", over(time.cold_start_ms, cold)),
        cell(
            "invalidation_cost_ms",
            "invalidation cost ms",
            "失效代价 ms",
            figure(arm.server.invalidation_cost_ms, uncached),
        ),
        cell("energy_per_token_j", "energy per token J", "每 token 能耗 J", figure(arm.energy_per_token_j, no_energy)),
        cell("successful", "n", "n", Value::Text(time.successful.to_string())),
        cell("failed", "failed", "失败", Value::Text(time.failed.to_string())),
    ]
}

/// One scope of a set of figures, in MiB.
fn of_scope(figures: &MemoryFigures, scope: Scope) -> Option<f64> {
    let bytes = match scope {
        Scope::Rss => figures.rss_bytes,
        Scope::Pss => figures.pss_bytes,
        Scope::RssAnon => figures.rss_anon_bytes,
        Scope::DeviceUsed => figures.device_used_bytes,
        Scope::DeviceProcess => figures.device_process_bytes,
        Scope::KvCache => return figures.kv_cache_usage,
    };
    #[expect(clippy::cast_precision_loss, reason = "memory below 8 PiB is exact enough")]
    bytes.map(|bytes| bytes as f64 / MIB)
}

fn memory(arm: &ArmRecord, external: bool) -> Vec<Cell> {
    let kinds = [
        ("static", "at rest", "静态", &arm.memory.at_rest),
        ("peak", "peak", "峰值", &arm.memory.peak),
        ("growth", "growth", "动态增长", &arm.memory.growth),
    ];
    let mut cells = Vec::new();
    for scope in Scope::ALL {
        let title = scope.title();
        for (kind, en, zh, figures) in kinds {
            let (unit, why) = (scope.unit(), move || no_memory(scope, external));
            cells.push(Cell {
                column: format!("{}_{kind}", scope.name()),
                title: Localized::both(
                    format!("{}: {en}{unit}", title.get(crate::model::Lang::En)),
                    format!("{}：{zh}{unit}", title.get(crate::model::Lang::Zh)),
                ),
                value: figure(of_scope(figures, scope), why),
            });
        }
    }
    cells
}

fn no_memory(scope: Scope, external: bool) -> Localized {
    match scope {
        Scope::DeviceUsed | Scope::DeviceProcess => {
            both("no GPU memory: NVML gave none", "没有 GPU 显存数据：NVML 不可用或未返回")
        }
        Scope::KvCache => both("the server states no use of its cache", "服务端未提供 KV cache 占用"),
        _ if external => both("the server is not ours to look into", "服务不由本工具启动，无法读取其内存"),
        _ => both("/proc gave none", "/proc 未提供"),
    }
}

fn share(known: Share, why: impl FnOnce() -> Localized) -> Value {
    if known.of > 0 { Value::Share { count: known.count, of: known.of } } else { Value::Missing(why()) }
}

fn quality(known: Option<&ArmQuality>, baseline: bool) -> Vec<Cell> {
    let fallback = ArmQuality::default();
    let probed = known.is_some();
    let known = known.unwrap_or(&fallback);
    let none = move |en: &'static str, zh: &'static str| {
        move || if probed { both(en, zh) } else { both("nothing was probed", "没有做质量探测") }
    };
    let itself = move || {
        if baseline && probed {
            both("the baseline itself", "它就是基线")
        } else {
            none("no probe of this kind", "没有此类探针")()
        }
    };
    let kind = none("no probe of this kind", "没有此类探针");
    let asked = none("not asked again", "没有重复询问");
    let loss = none("the server gives no log-probabilities", "服务端不返回 logprobs");
    let prefix = known.prefix_mean.filter(|_| probed);
    vec![
        cell("exact", "same answer as the baseline", "与基线逐字节一致", share(known.exact, itself)),
        cell("prefix", "common prefix, mean", "平均公共前缀", figure(prefix, itself)),
        cell("structure", "structure valid", "结构有效", share(known.structure, kind)),
        cell(
            "critical_fields",
            "critical fields as in the baseline",
            "关键字段与基线一致",
            share(known.critical_fields, itself),
        ),
        cell(
            "normal_fields",
            "other fields as in the baseline",
            "其他字段与基线一致",
            share(known.normal_fields, itself),
        ),
        cell("correct_fields", "fields with the right value", "字段取值正确", share(known.correct_fields, kind)),
        cell("stable_alone", "stable alone", "单独询问时稳定", share(known.stable_alone, asked)),
        cell("stable_under_load", "stable under load", "负载下稳定", share(known.stable_under_load, asked)),
        cell("log_loss", "mean token log-loss, nats", "平均 token log-loss（nat）", figure(known.log_loss, loss)),
    ]
}

fn series(record: &ExperimentRecord, arm: &ArmRecord, manifest: Option<&ArmManifest>) -> Series {
    let passes: Vec<&PassRecord> =
        record.passes.iter().filter(|pass| pass.arm == arm.name && pass.phase == PassPhase::Measured).collect();
    let sorted = |of: fn(&crate::bench::experiment::record::RequestRecord) -> Option<f64>| {
        let requests = passes.iter().flat_map(|pass| &pass.requests).filter(|request| request.fault.is_none());
        let mut values: Vec<f64> = requests.filter_map(of).filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let at = |known: OverPasses| Some([known.median?, known.min?, known.max?]);
    let closed = manifest.filter(|known| known.load.shape == "closed");
    Series {
        ttft_ms: sorted(|request| request.ttft_ms),
        e2e_ms: sorted(|request| request.e2e_ms),
        timeline: passes.first().map(|pass| timeline(pass)).unwrap_or_default(),
        memory: Scope::ALL.into_iter().filter_map(|scope| memory_line(&passes, scope)).collect(),
        concurrency: closed.and_then(|known| known.load.concurrency),
        at_load: [at(arm.time.ttft_p50_ms), at(arm.time.e2e_p50_ms), at(arm.time.output_tokens_per_s)],
    }
}

/// Evenly chosen requests of a pass.
fn timeline(pass: &PassRecord) -> Timeline {
    let of = pass.requests.len();
    let shown = of.min(MAX_BARS);
    let bars = (0..shown).filter_map(|index| pass.requests.get(index * of / shown)).map(|request| Bar {
        id: request.id.clone(),
        scheduled: request.scheduled_ms,
        sent: request.sent_ms,
        queue: request.queue_wait_ms,
        ttft: request.ttft_ms,
        e2e: request.e2e_ms,
        fault: request.fault.clone(),
    });
    Timeline { pass: pass.index, of, bars: bars.collect() }
}

/// The passes one after the other; `None` where no sample has this scope.
fn memory_line(passes: &[&PassRecord], scope: Scope) -> Option<MemoryLine> {
    let mut begin = 0.0;
    let mut lines = Vec::new();
    for pass in passes {
        let samples = &pass.memory.samples;
        let points: Vec<(f64, f64)> = samples
            .iter()
            .filter_map(|sample| Some((begin + sample.at_ms / 1000.0, of_scope(&sample.memory, scope)?)))
            .collect();
        let last = samples.last().map_or(0.0, |sample| sample.at_ms / 1000.0);
        begin += pass.duration_s.max(last);
        if !points.is_empty() {
            lines.push(thinned(&points, (MAX_POINTS / passes.len().max(1)).max(8)));
        }
    }
    (!lines.is_empty()).then_some(MemoryLine { scope, passes: lines })
}

/// Fewer points with the same extremes: of each stretch the largest, and both ends.
fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(most - 2);
    let ends = [points.first(), points.last()];
    let peaks = points.chunks(stretch).filter_map(|chunk| chunk.iter().max_by(|a, b| a.1.total_cmp(&b.1)));
    let mut kept: Vec<(f64, f64)> = peaks.chain(ends.into_iter().flatten()).copied().collect();
    kept.sort_by(|a, b| a.0.total_cmp(&b.0));
    kept.dedup();
    kept
}

fn difference(known: &Comparison) -> Difference {
    let base = known.pairs.iter().map(|pair| pair[0]).sum::<f64>() / known.pairs.len().max(1) as f64;
    let relative = |value: f64| (base > 0.0).then(|| value / base);
    Difference {
        baseline: known.baseline.clone(),
        candidate: known.candidate.clone(),
        metric: known.metric.clone(),
        better: known.better.clone(),
        pairs: known.pairs.len(),
        difference: known.difference,
        relative: known.relative,
        interval: known.interval.and_then(|[low, high]| Some([relative(low)?, relative(high)?])),
        threshold: known.threshold.and_then(relative),
        verdict: match known.verdict {
            ComparisonVerdict::Better => "better",
            ComparisonVerdict::Worse => "worse",
            ComparisonVerdict::Unclear => "unclear",
        },
    }
}

/// A result file, judged by the evidence rules.
pub fn result(file: &str, facts: Facts<'_>, known: &evidence::Conclusion) -> Source {
    let word = |path: &[&str]| facts.text(path).map(str::to_owned);
    let value = |path: &[&str]| word(path).or_else(|| facts.number(path).map(plain));
    let config = |column: &str, en: &str, zh: &str| cell(column, en, zh, text(value(&["config", column])));
    let backend = word(&["config", "backend"])
        .map(|name| word(&["config", "backend_version"]).map_or(name.clone(), |version| format!("{name} {version}")));
    let configuration = vec![
        cell("model", "model", "模型", text(word(&["config", "model"]))),
        config("model_revision", "revision", "版本"),
        cell("dtype", "precision", "精度", text(word(&["config", "dtype"]))),
        cell("backend", "backend", "后端", text(backend)),
        config("device", "device", "设备"),
        config("batch", "batch", "批大小"),
        cell("load", "load (shape, in flight)", "负载（方式、并发）", text(value(&["config", "concurrency"]))),
        config("cache_policy", "cache", "缓存策略"),
        cell("workload", "workload", "工作负载", text(word(&["config", "workload"]))),
        cell("requests", "requests per pass", "每轮请求数", text(value(&["config", "requests"]))),
        cell("prompt_tokens", "prompt tokens, mean", "平均输入 token", text(value(&["config", "prompt_tokens"]))),
        cell("generated_tokens", "output tokens, mean", "平均输出 token", text(value(&["config", "generated_tokens"]))),
        cell("run_phase", "phase", "阶段", text(word(&["config", "run_phase"]))),
    ];
    let mut facts_shown = Vec::new();
    for (name, en, zh) in [
        ("project", "project", "项目"),
        ("strategy", "strategy", "策略"),
        ("role", "role", "角色"),
        ("evidence_level", "evidence", "证据级别"),
    ] {
        if let Some(value) = value(&[name]) {
            facts_shown.push((both(en, zh), value));
        }
    }
    Source {
        file: file.to_owned(),
        experiment: None,
        variable: None,
        facts: facts_shown,
        arms: vec![Arm {
            name: file.to_owned(),
            cells: [configuration, result_time(facts), result_memory(facts), result_quality(facts)],
            conclusion: result_conclusion(facts, known),
            series: Series::default(),
        }],
        differences: Vec::new(),
        notes: Vec::new(),
        no_figures: Some(both(
            "a result file holds no single requests; figures need the record of an experiment",
            "结果文件不含逐请求数据；绘图需要实验记录",
        )),
    }
}

fn result_time(facts: Facts<'_>) -> Vec<Cell> {
    let samples = facts.samples();
    let metric = |column: &str, path: &str, en: &str, zh: &str, needed: Option<f64>| {
        let why = || match (needed, samples) {
            (Some(needed), Some(n)) if n < needed => Localized::both(
                format!("{} requests cannot carry it, {needed} are needed", plain(n)),
                format!("{} 个请求不足以支撑，至少需要 {needed} 个", plain(n)),
            ),
            _ => both("not recorded", "未记录"),
        };
        cell(column, en, zh, figure(facts.metric(path), why))
    };
    vec![
        metric("ttft_p50_ms", "ttft_ms.p50", "TTFT P50 ms", "TTFT P50 ms", None),
        metric("ttft_p95_ms", "ttft_ms.p95", "TTFT P95 ms", "TTFT P95 ms", Some(59.0)),
        metric("ttft_p99_ms", "ttft_ms.p99", "TTFT P99 ms", "TTFT P99 ms", Some(100.0)),
        metric("ttft_max_ms", "ttft_ms.max", "TTFT max ms", "TTFT 最大 ms", None),
        metric("tpot_p50_ms", "tpot_ms.p50", "TPOT P50 ms", "TPOT P50 ms", None),
        metric("e2e_p50_ms", "e2e_latency_ms.p50", "E2E P50 ms", "E2E P50 ms", None),
        metric("e2e_p99_ms", "e2e_latency_ms.p99", "E2E P99 ms", "E2E P99 ms", Some(100.0)),
        metric("e2e_max_ms", "e2e_latency_ms.max", "E2E max ms", "E2E 最大 ms", None),
        metric("tokens_per_s", "throughput_tokens_per_s", "token/s", "token/s", None),
        metric("requests_per_s", "throughput_requests_per_s", "req/s", "req/s", None),
        metric("cold_start_ms", "cold_start_ms", "cold start ms", "冷启动 ms", None),
        cell("successful", "n", "n", text(samples.map(plain))),
        cell("failed", "failed", "失败", text(facts.number(&["metrics", "failed_requests"]).map(plain))),
    ]
}

/// The peak under its own scope: a figure of another scope stands in another column.
fn result_memory(facts: Facts<'_>) -> Vec<Cell> {
    let peak = facts.number(&["metrics", "peak_memory_mb"]);
    let named = facts.text(&["metrics", "peak_memory_scope"]);
    let (column, en, zh) = match Scope::ALL.into_iter().find(|scope| Some(scope.name()) == named) {
        Some(scope) => {
            let title = scope.title();
            let of = |lang| title.get(lang).to_owned();
            (scope.name().to_owned(), of(crate::model::Lang::En), of(crate::model::Lang::Zh))
        }
        None => {
            let name = named.unwrap_or("?").to_owned();
            let unknown = (String::from("scope not recorded"), String::from("口径未记录"));
            let (en, zh) = named.map_or(unknown, |name| (name.to_owned(), name.to_owned()));
            (name, en, zh)
        }
    };
    let why = || both("not measured", "未测量");
    let (en, zh) = (format!("{en}: peak MiB"), format!("{zh}：峰值 MiB"));
    vec![cell(&format!("{column}_peak"), &en, &zh, figure(peak, why))]
}

fn result_quality(facts: Facts<'_>) -> Vec<Cell> {
    let none = || both("not recorded", "未记录");
    let metric = facts.text(&["quality", "metric"]).or_else(|| facts.text(&["quality", "status"]));
    let number = |name: &str| figure(facts.number(&["quality", name]), none);
    vec![
        cell("metric", "metric", "指标", text(metric)),
        cell("value", "value", "数值", number("value")),
        cell("floor", "floor", "下限", number("floor")),
        cell("probes", "probes", "探针数", number("probes")),
    ]
}

fn result_conclusion(facts: Facts<'_>, known: &evidence::Conclusion) -> Conclusion {
    let reason = facts.text(&["decision", "reason"]).map(Localized::from);
    let binding = known.reasons.iter().filter(|reason| reason.ceiling == Some(known.allowed));
    Conclusion {
        // What a file claims is no conclusion; what its evidence allows is.
        decision: known.claim().min(known.allowed).name().to_owned(),
        claimed: Some(known.claim().name().to_owned()),
        reason: reason.unwrap_or_else(|| both("no reason is recorded", "未记录理由")),
        not_covered: Some(compare::boundary(facts)),
        rules: binding.map(|reason| reason.rule.id.to_owned()).collect(),
        next_step: known.next_step(),
    }
}
