//! What a conclusion says: device, backend, workload, what is better and worse, and what
//! it does not cover. Pure.

use super::record::{BothLanguages, Comparison, ComparisonVerdict, Manifest};
use crate::results::evidence::Conclusion;
use crate::results::v1::Verdict;

/// Why an arm has its decision.
pub(super) fn reason(
    manifest: &Manifest,
    index: usize,
    comparisons: &[&Comparison],
    claim: Verdict,
    judged: &Conclusion,
) -> BothLanguages {
    let (en, zh) = place(manifest, index);
    if index == 0 && manifest.arms.len() > 1 {
        return BothLanguages {
            en: format!("{en}: the baseline; the other arms are compared with it"),
            zh: format!("{zh}：基线，其他各组与它比较"),
        };
    }
    let limits: Vec<&str> = judged
        .reasons
        .iter()
        .filter(|reason| reason.ceiling == Some(judged.allowed) && judged.allowed < Verdict::Accept)
        .map(|reason| reason.rule.id.trim_start_matches("evidence/"))
        .collect();
    let (seen_en, seen_zh) = seen(comparisons);
    let mut text = BothLanguages { en: format!("{en}: {seen_en}"), zh: format!("{zh}：{seen_zh}") };
    if claim < Verdict::Accept && !limits.is_empty() {
        text.en.push_str(&format!("; limited by {}", limits.join(", ")));
        text.zh.push_str(&format!("；受限于 {}", limits.join("、")));
    }
    text
}

/// Device, backend, workload.
fn place(manifest: &Manifest, index: usize) -> (String, String) {
    let backend = match &manifest.backend.version {
        Some(version) => format!("{} ({version})", manifest.backend.engine),
        None => manifest.backend.engine.clone(),
    };
    let device = manifest.machine.device.clone();
    let workload = manifest.arms.get(index).map(|arm| {
        let words = arm.workload.prompt_words.map(|words| format!(" ({words} words)")).unwrap_or_default();
        format!("{}{words}", arm.workload.source)
    });
    let (workload, value) = (workload.unwrap_or_default(), manifest.arms.get(index).map(|arm| arm.value.clone()));
    let value = value.unwrap_or_default();
    let variable = &manifest.variable;
    (
        format!(
            "on {} with {backend}, workload {workload}, {variable} {value}",
            device.as_deref().unwrap_or("an unknown device")
        ),
        format!("设备 {}，后端 {backend}，负载 {workload}，{variable} 为 {value}", device.as_deref().unwrap_or("未知")),
    )
}

/// What is better, worse, unclear.
fn seen(comparisons: &[&Comparison]) -> (String, String) {
    let mut en = Vec::new();
    let mut zh = Vec::new();
    for (verdict, word, zi) in [
        (ComparisonVerdict::Better, "better", "更好"),
        (ComparisonVerdict::Worse, "worse", "更差"),
        (ComparisonVerdict::Unclear, "no clear difference", "无明确差别"),
    ] {
        let names: Vec<String> = comparisons
            .iter()
            .filter(|comparison| comparison.verdict == verdict)
            .map(|comparison| match (verdict, comparison.relative) {
                (ComparisonVerdict::Unclear, _) | (_, None) => comparison.metric.clone(),
                (_, Some(relative)) => format!("{} {:+.1} %", comparison.metric, relative * 100.0),
            })
            .collect();
        if !names.is_empty() {
            en.push(format!("{word}: {}", names.join(", ")));
            zh.push(format!("{zi}：{}", names.join("、")));
        }
    }
    if en.is_empty() {
        return ("measured alone".to_owned(), "单独测量".to_owned());
    }
    (en.join("; "), zh.join("；"))
}

/// What an experiment says nothing about.
pub(super) fn not_covered(manifest: &Manifest) -> BothLanguages {
    let most = manifest.arms.iter().filter_map(|arm| arm.load.concurrency).max();
    let mut en = vec!["other devices, backends, models and prompts".to_owned()];
    let mut zh = vec!["其他设备、后端、模型与提示".to_owned()];
    match most {
        Some(most) => {
            en.push(format!("more than {most} requests in flight"));
            zh.push(format!("并发超过 {most}"));
        }
        None => {
            en.push("other request rates".to_owned());
            zh.push("其他请求速率".to_owned());
        }
    }
    if let Some(tokens) = manifest.arms.iter().map(|arm| arm.workload.max_tokens).max() {
        en.push(format!("answers longer than {tokens} tokens"));
        zh.push(format!("长于 {tokens} token 的回答"));
    }
    en.push("long-term stability".to_owned());
    zh.push("长期稳定性".to_owned());
    match &manifest.probes {
        Some(set) => {
            en.push(format!("quality beyond {} probes", set.probes));
            zh.push(format!("{} 个探针以外的质量", set.probes));
        }
        None => {
            en.push("quality".to_owned());
            zh.push("质量".to_owned());
        }
    }
    BothLanguages { en: en.join("; "), zh: zh.join("；") }
}
