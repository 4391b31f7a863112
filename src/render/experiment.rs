//! An experiment for people: four groups of columns, differences, conclusions. Figures
//! of different scopes never share a column.

use crate::bench::experiment::record::{
    ArmRecord, BothLanguages, ComparisonVerdict, ExperimentRecord, MemoryFigures, OverPasses, ServerEvidence,
};
use crate::commands::compare::write_table;
use crate::model::{Lang, Localized};
use crate::quality::Share;
use std::fmt::Write;

/// What stands where nothing was measured.
const NONE: &str = "—";

/// The tables of an experiment.
pub(crate) fn human(record: &ExperimentRecord, lang: Lang) -> String {
    let mut out = String::new();
    let say = |en: &str, zh: &str| Localized::both(en, zh).get(lang).to_owned();
    let manifest = &record.manifest;
    let _ = writeln!(
        out,
        "{} · {} {} · {} × {}",
        manifest.name,
        say("varies", "变量"),
        manifest.variable,
        manifest.repeats,
        say("passes per arm, interleaved", "轮/组，交错执行"),
    );
    let groups = [
        (say("configuration", "配置"), configuration(record, lang)),
        (say("time (median of the passes, min–max)", "时间（各轮中位数，最小–最大）"), time(record, lang)),
        (say("memory, MiB: at rest → peak, by scope", "内存 MiB：静态 → 峰值，按口径"), memory(record, lang)),
        (say("quality", "质量"), quality(record, lang)),
        (say("differences from the baseline", "与基线的差别"), differences(record, lang)),
    ];
    for (title, rows) in groups.iter().filter(|(_, rows)| rows.len() > 1) {
        let _ = writeln!(out, "\n{title}");
        write_table(&mut out, rows);
    }
    let _ = writeln!(out, "\n{}", say("conclusions", "结论"));
    for arm in &record.arms {
        conclusion(&mut out, arm, lang);
    }
    out
}

fn conclusion(out: &mut String, arm: &ArmRecord, lang: Lang) {
    let pick = |text: &BothLanguages| if lang == Lang::Zh { text.zh.clone() } else { text.en.clone() };
    let say = |en: &str, zh: &str| Localized::both(en, zh).get(lang).to_owned();
    let known = &arm.conclusion;
    if known.decision.is_empty() {
        let _ = writeln!(out, "  {}: {}", arm.name, say("not measured", "没有测量"));
        return;
    }
    let _ = writeln!(out, "  {}: {} — {}", arm.name, known.decision, pick(&known.reason));
    let _ = writeln!(out, "    {}: {}", say("not covered", "不涵盖"), pick(&known.not_covered));
    if let Some(step) = &known.next_step {
        let _ = writeln!(out, "    {}", pick(step));
    }
}

fn head(lang: Lang, names: &[(&str, &str)]) -> Vec<String> {
    std::iter::once(String::new())
        .chain(names.iter().map(|(en, zh)| Localized::both(*en, *zh).get(lang).to_owned()))
        .collect()
}

fn configuration(record: &ExperimentRecord, lang: Lang) -> Vec<Vec<String>> {
    let mut names = vec![
        ("value", "取值"),
        ("model", "模型"),
        ("precision", "精度"),
        ("batch", "批大小"),
        ("load", "负载"),
        ("cache", "缓存"),
        ("requests", "请求数"),
        ("prompt tok", "输入 token"),
        ("output tok", "输出 token"),
    ];
    let counted: Vec<&Counted> =
        COUNTED.iter().filter(|(.., pick)| record.arms.iter().any(|arm| pick(&arm.server).is_some())).collect();
    names.extend(counted.iter().map(|(en, zh, _)| (*en, *zh)));
    let mut rows = vec![head(lang, &names)];
    for (facts, arm) in record.manifest.arms.iter().zip(&record.arms) {
        let load = match (facts.load.concurrency, facts.load.rate_per_s) {
            (_, Some(rate)) => format!("{} {rate}/s", facts.load.shape),
            (Some(concurrency), None) => format!("c={concurrency}"),
            (None, None) => NONE.to_owned(),
        };
        let mut row = vec![
            facts.name.clone(),
            facts.value.clone(),
            facts.model.name.clone(),
            arm.precision.clone().unwrap_or_else(|| NONE.to_owned()),
            facts.batch.to_string(),
            load,
            facts.cache_policy.clone(),
            facts.workload.requests.to_string(),
            number(arm.time.prompt_tokens_mean, 1),
            number(arm.time.output_tokens_mean, 1),
        ];
        row.extend(counted.iter().map(|(.., pick)| number(pick(&arm.server), 2)));
        rows.push(row);
    }
    rows
}

type Counted = (&'static str, &'static str, fn(&ServerEvidence) -> Option<f64>);

/// What the server's own counters show of the setting; only columns that hold something.
const COUNTED: &[Counted] = &[
    ("hit rate", "命中率", |server| server.prefix_cache_hit_rate),
    ("acceptance", "接受率", |server| server.acceptance_rate),
    ("waiting peak", "排队峰值", |server| server.waiting_peak),
    ("invalidation ms", "失效代价 ms", |server| server.invalidation_cost_ms),
];

fn time(record: &ExperimentRecord, lang: Lang) -> Vec<Vec<String>> {
    let goodput = record.manifest.goodput.is_stated();
    let mut names = vec![
        ("TTFT ms", "TTFT ms"),
        ("TPOT ms", "TPOT ms"),
        ("E2E ms", "E2E ms"),
        ("out tok/s", "输出 tok/s"),
        ("req/s", "请求/s"),
    ];
    if goodput {
        names.push(("good req/s", "达标请求/s"));
    }
    names.extend([("cold start ms", "冷启动 ms"), ("n", "n"), ("failed", "失败")]);
    let mut rows = vec![head(lang, &names)];
    for arm in &record.arms {
        let time = &arm.time;
        let mut row = vec![
            arm.name.clone(),
            range(time.ttft_p50_ms, 1),
            range(time.tpot_p50_ms, 2),
            range(time.e2e_p50_ms, 0),
            range(time.output_tokens_per_s, 1),
            range(time.requests_per_s, 2),
        ];
        if goodput {
            row.push(range(time.goodput_per_s, 2));
        }
        row.extend([range(time.cold_start_ms, 0), time.successful.to_string(), time.failed.to_string()]);
        rows.push(row);
    }
    rows
}

fn memory(record: &ExperimentRecord, lang: Lang) -> Vec<Vec<String>> {
    type Pick = fn(&MemoryFigures) -> Option<u64>;
    let scopes: [(&str, &str, Pick); 5] = [
        ("RSS tree", "RSS（进程树）", |figures| figures.rss_bytes),
        ("PSS tree", "PSS（进程树）", |figures| figures.pss_bytes),
        ("anonymous", "匿名内存", |figures| figures.rss_anon_bytes),
        ("GPU used", "GPU 已用", |figures| figures.device_used_bytes),
        ("GPU process", "GPU 进程", |figures| figures.device_process_bytes),
    ];
    let names: Vec<(&str, &str)> =
        scopes.iter().map(|(en, zh, _)| (*en, *zh)).chain([("KV use", "KV 占用"), ("sampled", "采样间隔")]).collect();
    let mut rows = vec![head(lang, &names)];
    for arm in &record.arms {
        let mib = |bytes: u64| format!("{:.0}", bytes as f64 / f64::from(1 << 20));
        let mut row = vec![arm.name.clone()];
        row.extend(scopes.iter().map(|(_, _, pick)| match (pick(&arm.memory.at_rest), pick(&arm.memory.peak)) {
            (Some(rest), Some(peak)) => format!("{} → {}", mib(rest), mib(peak)),
            (None, Some(peak)) => mib(peak),
            _ => NONE.to_owned(),
        }));
        row.push(
            arm.memory.peak.kv_cache_usage.map_or_else(|| NONE.to_owned(), |share| format!("{:.0} %", share * 100.0)),
        );
        row.push(if arm.memory.samples > 0 { format!("{:.0} ms", arm.memory.interval_ms) } else { NONE.to_owned() });
        rows.push(row);
    }
    rows
}

fn quality(record: &ExperimentRecord, lang: Lang) -> Vec<Vec<String>> {
    let mut rows = vec![head(
        lang,
        &[
            ("exact", "逐字一致"),
            ("prefix", "公共前缀"),
            ("structure", "结构有效"),
            ("critical fields", "关键字段"),
            ("other fields", "普通字段"),
            ("right value", "值正确"),
            ("stable alone", "单独稳定"),
            ("stable under load", "负载下稳定"),
            ("log-loss", "对数损失"),
        ],
    )];
    for arm in &record.arms {
        let Some(known) = &arm.quality else { continue };
        let share =
            |share: Share| if share.of == 0 { NONE.to_owned() } else { format!("{}/{}", share.count, share.of) };
        rows.push(vec![
            arm.name.clone(),
            share(known.exact),
            known.prefix_mean.map_or_else(|| NONE.to_owned(), |mean| format!("{:.0} %", mean * 100.0)),
            share(known.structure),
            share(known.critical_fields),
            share(known.normal_fields),
            share(known.correct_fields),
            share(known.stable_alone),
            share(known.stable_under_load),
            number(known.log_loss, 3),
        ]);
    }
    rows
}

fn differences(record: &ExperimentRecord, lang: Lang) -> Vec<Vec<String>> {
    let mut rows = vec![head(
        lang,
        &[
            ("metric", "指标"),
            ("difference", "差值"),
            ("relative", "相对"),
            ("95 % interval", "95 % 区间"),
            ("threshold", "阈值"),
            ("pairs", "对数"),
            ("verdict", "判断"),
        ],
    )];
    for found in &record.comparisons {
        let verdict = match found.verdict {
            ComparisonVerdict::Better => Localized::both("better", "更好"),
            ComparisonVerdict::Worse => Localized::both("worse", "更差"),
            ComparisonVerdict::Unclear => Localized::both("no clear difference", "无明确差别"),
        };
        rows.push(vec![
            found.candidate.clone(),
            found.metric.clone(),
            found.difference.map_or_else(|| NONE.to_owned(), |value| format!("{value:+.2}")),
            found.relative.map_or_else(|| NONE.to_owned(), |value| format!("{:+.1} %", value * 100.0)),
            found.interval.map_or_else(|| NONE.to_owned(), |[low, high]| format!("{low:+.2} … {high:+.2}")),
            found.threshold.map_or_else(|| NONE.to_owned(), |value| format!("±{value:.2}")),
            found.pairs.len().to_string(),
            verdict.get(lang).to_owned(),
        ]);
    }
    rows
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.digits$}"))
}

/// The median with its range, where there is one.
fn range(figure: OverPasses, digits: usize) -> String {
    let shown = |value: f64| format!("{value:.digits$}");
    match (figure.median, figure.min, figure.max) {
        (Some(median), Some(min), Some(max)) if figure.n > 1 => {
            format!("{} ({}–{})", shown(median), shown(min), shown(max))
        }
        (Some(median), ..) => shown(median),
        _ => NONE.to_owned(),
    }
}
