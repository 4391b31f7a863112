//! Phrases that are made in English in many places and read by people: words of tables and
//! what progress says, with their Chinese beside them. Machine formats never come here.

use super::Lang;

/// A word of a table in the reader's language; one that the table lacks stays as it is.
pub fn word(english: &str, lang: Lang) -> &str {
    match lang {
        Lang::En => english,
        Lang::Zh => WORDS.iter().find(|(en, _)| *en == english).map_or(english, |(_, zh)| zh),
    }
}

/// A count with its name: `2 files` and `文件 2`.
pub fn counted(count: impl std::fmt::Display, english: &str, lang: Lang) -> String {
    match lang {
        Lang::En => format!("{count} {}", english.replace('_', " ")),
        Lang::Zh => format!("{} {count}", word(english, lang)),
    }
}

/// What progress says, in the reader's language.
pub fn progress(english: &str, lang: Lang) -> String {
    let chinese = match lang {
        Lang::En => None,
        Lang::Zh => translate(PROGRESS, english),
    };
    chinese.unwrap_or_else(|| english.to_owned())
}

/// What a reader of TOML finds wrong, in the reader's language.
pub fn fault(english: &str, lang: Lang) -> String {
    let chinese = match lang {
        Lang::En => None,
        Lang::Zh => translate(FAULTS, english),
    };
    chinese.unwrap_or_else(|| english.to_owned())
}

/// Faults of a TOML file, as its reader words them; `{}` is whatever stands there.
const FAULTS: &[(&str, &str)] = &[
    ("unknown field `{}`, expected one of {}", "没有 `{}` 这个键；可用的键：{}"),
    ("unknown field `{}`, expected {}", "没有 `{}` 这个键；可用的键：{}"),
    ("unknown field `{}`, there are no fields", "没有 `{}` 这个键；这里不接受任何键"),
    ("unknown variant `{}`, expected one of {}", "没有 `{}` 这个值；可用的值：{}"),
    ("unknown variant `{}`, expected {}", "没有 `{}` 这个值；可用的值：{}"),
    ("missing field `{}`", "缺少键 `{}`"),
    ("duplicate field `{}`", "键 `{}` 写了两次"),
    ("duplicate key", "键写了两次"),
    ("invalid type: {}, expected {}", "类型不对：这里是 {}，应为 {}"),
    ("invalid value: {}, expected {}", "值不对：这里是 {}，应为 {}"),
    ("a table", "表"),
    ("a list", "列表"),
    ("a string", "字符串"),
    ("a boolean", "true 或 false"),
    ("a number", "数"),
    ("a whole number, not negative", "非负整数"),
    ("a whole number", "整数"),
    ("map", "表"),
    ("sequence", "列表"),
    ("string {}", "字符串 {}"),
    ("integer `{}`", "整数 `{}`"),
    ("floating point `{}`", "浮点数 `{}`"),
    ("boolean `{}`", "布尔值 `{}`"),
];

/// Verdicts, levels and what is counted.
const WORDS: &[(&str, &str)] = &[
    ("pass", "通过"),
    ("fail", "失败"),
    ("skip", "跳过"),
    ("expected_fail", "如期失败"),
    ("timeout", "超时"),
    ("error", "错误"),
    ("ok", "合格"),
    ("failed", "不合格"),
    ("skipped", "跳过"),
    ("blocked", "被阻断"),
    ("warning", "警告"),
    ("note", "提示"),
    ("cause", "原因"),
    ("files", "文件"),
    ("cells", "单元格"),
    ("links", "链接"),
    ("external", "外部链接"),
    ("pages", "页面"),
    ("unreadable", "无法读取"),
    ("fixable", "可自动修复"),
    ("fixed", "已修复"),
];

/// Lines of progress; `{}` is whatever stands there. The first that fits counts.
const PROGRESS: &[(&str, &str)] = &[
    ("project {}, enlarged workload", "项目 {}：放大后的工作负载"),
    ("project {} {}", "项目 {} {}"),
    ("pass", "通过"),
    ("fail", "失败"),
    ("skip", "跳过"),
    ("ok", "合格"),
    ("failed", "不合格"),
    ("warm-up", "预热"),
    ("measuring", "测量中"),
    ("waiting for the other generators to end", "等待其他压测进程结束"),
    ("waiting for the other generators", "等待其他压测进程"),
    ("{} of {} other generators are ready", "其他压测进程已就绪 {}/{}"),
    ("part 1 is not at {} yet: {}", "第 1 份还没有在 {} 监听：{}"),
    ("measuring the clocks", "正在比对时钟"),
    ("starting at {}", "将于 {} 开始"),
    ("invalidation", "测量缓存失效代价"),
    ("quality probes", "质量探针"),
    ("request {}/{}", "请求 {}/{}"),
    ("checking this client's own error", "检查客户端自身误差"),
    ("checking the client at concurrency {}", "检查并发 {} 时的客户端误差"),
    ("starting it once", "试启动一次"),
    ("starting {}", "正在启动 {}"),
    ("stopping", "正在停止"),
    ("waiting for the server: {}", "等待服务就绪：{}"),
    ("waiting for {}, {} s", "等待 {} 就绪，已 {} s"),
    ("waiting for {}, {} s; {}", "等待 {} 就绪，已 {} s；{}"),
    ("waiting for {}: {}", "等待 {} 就绪：{}"),
    ("looking for {} at {}", "在 {1} 查找 {0}"),
    ("fetching {} of {}: {} in {} files", "下载 {1} 的 {0}：共 {3} 个文件，{2}"),
    ("{} is here: {}", "{} 已就绪：{}"),
    ("{}: its digest is wrong; fetching it once more", "{}：摘要不符，重新下载"),
    ("{}: waiting for another process that fetches it", "{}：另一个进程正在下载，等待其完成"),
    ("the model differs from its digest", "模型与其摘要不符"),
    ("installing {}", "正在安装 {}"),
    ("computing the digest of the model", "正在计算模型摘要"),
    ("making a virtual environment", "正在创建虚拟环境"),
    // The line of a running load, part by part.
    ("{} pass {}: {}", "{} 第 {} 轮：{}"),
    ("{} warm-up: {}", "{} 预热：{}"),
    ("{} · {}", "{} · {}"),
    ("{} in flight", "在途 {}"),
    ("{} failed", "失败 {}"),
    ("ETA {}", "剩余 {}"),
    ("{}: probes", "{}：质量探针"),
    ("{}: invalidation", "{}：测量缓存失效代价"),
    ("{} pass {}", "{} 第 {} 轮"),
    ("{} pass", "{} 通过"),
    ("{} fail", "{} 失败"),
    ("{} skip", "{} 跳过"),
    ("{} expected_fail", "{} 如期失败"),
    ("{} timeout", "{} 超时"),
    ("{} error", "{} 错误"),
    // What was seen of a server that is not ready yet.
    ("{} answers {}", "{} 返回 {}"),
    ("{} lists no model", "{} 没有列出模型"),
    ("the first request failed: {}", "首个请求失败：{}"),
    ("{} gave no answer within {} s", "{} 在 {} s 内没有应答"),
];

/// A line by the first template of a table that fits; what stands in its holes is
/// translated as well. `{}` is a hole, `{1}` names one by its position.
pub fn translate(table: &[(&str, &str)], line: &str) -> Option<String> {
    table.iter().find_map(|(en, zh)| {
        let holes = matched(en, line)?.into_iter();
        let holes: Vec<String> = holes.map(|hole| translate(table, hole).unwrap_or_else(|| hole.to_owned())).collect();
        Some(filled(zh, &holes))
    })
}

/// What stands in the holes of a template, if the text is of its kind.
fn matched<'t>(template: &str, text: &'t str) -> Option<Vec<&'t str>> {
    let mut pieces = template.split("{}");
    let mut rest = text.strip_prefix(pieces.next()?)?;
    let pieces: Vec<&str> = pieces.collect();
    let mut holes = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let end = if at + 1 == pieces.len() { rest.strip_suffix(piece)?.len() } else { rest.find(piece)? };
        holes.push(&rest[..end]);
        rest = &rest[end + piece.len()..];
    }
    rest.is_empty().then_some(holes)
}

/// Fills `{}` in turn and `{N}` by position.
fn filled(template: &str, holes: &[String]) -> String {
    let numbered =
        holes.iter().enumerate().fold(template.to_owned(), |text, (at, hole)| text.replace(&format!("{{{at}}}"), hole));
    let mut pieces = numbered.split("{}");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for (piece, hole) in pieces.zip(holes) {
        out.push_str(hole);
        out.push_str(piece);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ItemStatus, Severity, Status};
    use std::path::Path;

    #[test]
    fn a_template_takes_apart_and_puts_together() {
        assert_eq!(
            progress("waiting for vllm, 12 s; /health answers 503", Lang::Zh),
            "等待 vllm 就绪，已 12 s；/health 返回 503"
        );
        assert_eq!(progress("looking for a/b at hf", Lang::Zh), "在 hf 查找 a/b");
        assert_eq!(progress("what a server said", Lang::Zh), "what a server said");
        assert_eq!(progress("warm-up", Lang::En), "warm-up");
        assert_eq!(
            (counted(2, "files", Lang::Zh), counted(2, "expected_fail", Lang::En)),
            ("文件 2".to_owned(), "2 expected fail".to_owned())
        );
    }

    #[test]
    fn every_verdict_has_its_word() {
        let statuses = [
            ItemStatus::Pass,
            ItemStatus::Fail,
            ItemStatus::Skip,
            ItemStatus::ExpectedFail,
            ItemStatus::Timeout,
            ItemStatus::Error,
            ItemStatus::Ok,
            ItemStatus::Failed,
            ItemStatus::Skipped,
        ];
        let names = statuses.map(ItemStatus::name).into_iter();
        let names = names.chain([Status::Pass, Status::Fail, Status::Skipped, Status::Blocked].map(Status::name));
        let names = names.chain([Severity::Note, Severity::Warning, Severity::Error].map(Severity::name));
        names.for_each(|name| assert_ne!(word(name, Lang::Zh), name));
    }

    /// Every literal that progress is given, wherever in the sources, has its Chinese.
    #[test]
    fn progress_says_nothing_in_english_alone() {
        let call =
            regex::Regex::new(r#"(?:phase|meter)\.(?:quiet_)?(?:say|step)\(\s*(?:&format!\(\s*)?"((?:[^"\\]|\\.)*)""#)
                .unwrap();
        let hole = regex::Regex::new(r"\{[^}]*\}").unwrap();
        let mut seen = 0;
        for file in walkdir::WalkDir::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
            let path = file.unwrap().into_path();
            if path.extension().is_none_or(|end| end != "rs") {
                continue;
            }
            for found in call.captures_iter(&std::fs::read_to_string(&path).unwrap()) {
                let english = hole.replace_all(&found[1], "{}").into_owned();
                let bare = english.replace("{}", "").chars().all(|c| !c.is_alphabetic());
                let known = translate(PROGRESS, &english.replace("{}", "7")).is_some();
                assert!(bare || known || english == "c={}", "{}: {english}", path.display());
                seen += 1;
            }
        }
        assert!(seen > 15, "the search finds what progress says: {seen}");
    }
}
