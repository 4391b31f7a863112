//! The report as one HTML file: no network, no script, light and dark, for the keyboard,
//! for those who hear it and for paper. The policy in its head forbids whatever else
//! somebody might get into it; all text of others is escaped.

mod figures;

use super::groups::{Table, table};
use super::plot::{STYLES, escape};
use super::{Arm, Group, Sheet, Source};
use crate::model::{Lang, word};
use figures::Figure;
use std::fmt::Write;

const CSS: &str = include_str!("page.css");

/// The whole page.
pub fn html(sheet: &Sheet, lang: Lang) -> String {
    let page = Page { sheet, lang };
    let title = page.title();
    let code = if lang == Lang::En { "en" } else { "zh-CN" };
    let mut out = format!(
        "<!doctype html>\n<html lang=\"{code}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"generator\" content=\"verify {}\">\n<title>{}</title>\n<style>\n{CSS}",
        env!("CARGO_PKG_VERSION"),
        escape(&title)
    );
    write_styles(&mut out);
    out.push_str("</style>\n</head>\n<body>\n");
    page.write_body(&mut out, &title);
    out.push_str("</body>\n</html>\n");
    out
}

/// A colour and a dash for each style of line: two lines of one colour differ in dashes.
fn write_styles(out: &mut String) {
    let dashes = ["none", "7 4", "2 3", "10 3 2 3", "5 2"];
    for style in 0..STYLES {
        let _ = writeln!(out, ".s{style}{{--c:var(--k{});stroke-dasharray:{}}}", style % 8, dashes[style % 5]);
    }
}

struct Page<'a> {
    sheet: &'a Sheet,
    lang: Lang,
}

impl Page<'_> {
    fn say(&self, en: &'static str, zh: &'static str) -> &'static str {
        if self.lang == Lang::En { en } else { zh }
    }

    fn title(&self) -> String {
        let names: Vec<&str> =
            self.sheet.sources.iter().map(|source| source.experiment.as_deref().unwrap_or(&source.file)).collect();
        format!("{}: {}", self.say("Benchmark report", "基准测试报告"), names.join(", "))
    }

    fn write_body(&self, out: &mut String, title: &str) {
        let skip = self.say("Skip to the content", "跳到正文");
        let _ = writeln!(out, "<a class=\"skip\" href=\"#content\">{skip}</a>\n<header>\n<h1>{}</h1>", escape(title));
        self.write_navigation(out);
        out.push_str("</header>\n<main id=\"content\">\n");
        self.write_conclusions(out);
        self.write_tables(out);
        for (index, source) in self.sheet.sources.iter().enumerate() {
            self.write_source(out, index, source);
        }
        self.write_method(out);
        out.push_str("</main>\n");
    }

    fn write_navigation(&self, out: &mut String) {
        let mut links = vec![
            ("conclusion".to_owned(), self.say("Conclusion", "结论").to_owned()),
            ("table".to_owned(), self.say("Table", "对比表").to_owned()),
        ];
        for (index, source) in self.sheet.sources.iter().enumerate().filter(|(_, source)| source.experiment.is_some()) {
            let name = source.experiment.as_deref().unwrap_or(&source.file);
            links.push((format!("source-{index}"), format!("{}: {name}", self.say("Figures", "图表"))));
        }
        links.push(("method".to_owned(), self.say("How it was measured", "测量方法").to_owned()));
        let items: String =
            links.iter().map(|(id, text)| format!("<li><a href=\"#{id}\">{}</a></li>", escape(text))).collect();
        let _ = writeln!(out, "<nav aria-label=\"{}\"><ul>{items}</ul></nav>", self.say("Contents", "目录"));
    }

    fn write_conclusions(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<section aria-labelledby=\"conclusion\">\n<h2 id=\"conclusion\">{}</h2>",
            self.say("Conclusion", "结论")
        );
        out.push_str("<ul class=\"verdicts\">\n");
        for (name, arm) in super::groups::arms(self.sheet) {
            self.write_conclusion(out, &name, arm);
        }
        out.push_str("</ul>\n</section>\n");
    }

    fn write_conclusion(&self, out: &mut String, name: &str, arm: &Arm) {
        let known = &arm.conclusion;
        let class = ["accept", "reject"].into_iter().find(|word| *word == known.decision).unwrap_or("other");
        let _ = writeln!(
            out,
            "<li class=\"{class}\"><strong>{}</strong>: <span class=\"word\">{}</span> — {}",
            escape(name),
            escape(&known.decision),
            escape(known.reason.get(self.lang))
        );
        let mut line = |label: &str, text: &str| _ = writeln!(out, "<p><span class=\"dim\">{label}</span> {text}</p>");
        if let Some(claimed) = known.claimed.as_ref().filter(|claimed| **claimed != known.decision) {
            line(
                self.say("the file claims:", "文件声称："),
                &format!("<span class=\"word\">{}</span>", escape(claimed)),
            );
        }
        if let Some(text) = &known.not_covered {
            line(self.say("not covered:", "未覆盖："), &escape(text.get(self.lang)));
        }
        if let Some(step) = &known.next_step {
            line(self.say("next step:", "下一步："), &escape(step.get(self.lang)));
        }
        if !known.rules.is_empty() {
            let rules: Vec<String> = known.rules.iter().map(|rule| format!("<code>{}</code>", escape(rule))).collect();
            line(self.say("limited by:", "受限于："), &rules.join(" "));
        }
        out.push_str("</li>\n");
    }

    fn write_tables(&self, out: &mut String) {
        let _ =
            writeln!(out, "<section aria-labelledby=\"table\">\n<h2 id=\"table\">{}</h2>", self.say("Table", "对比表"));
        let note = self.say(
            "Four groups of columns that are never added up to one score. A dash has its reason below the table.",
            "四组列彼此独立，不合成总分。破折号的原因见表下说明。",
        );
        let _ = writeln!(out, "<p class=\"dim\">{note}</p>");
        for group in Group::ALL {
            self.write_group(out, &table(self.sheet, group));
        }
        out.push_str("</section>\n");
    }

    fn write_group(&self, out: &mut String, table: &Table) {
        let (title, id) = (table.group.title(self.lang), table.group.name());
        let _ = writeln!(out, "<h3 id=\"{id}\">{title}</h3>");
        if table.columns.is_empty() {
            let _ = writeln!(out, "<p>{}</p>", self.say("No column has any value.", "没有任何数据。"));
        } else {
            let _ = write!(
                out,
                "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"{id}\"><table>\n<thead><tr><th scope=\"col\">{}</th>",
                self.say("arm", "组")
            );
            for column in &table.columns {
                let class = if column.numeric { " class=\"n\"" } else { "" };
                let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(column.title.get(self.lang)));
            }
            out.push_str("</tr></thead>\n<tbody>\n");
            for row in &table.rows {
                let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&row.name));
                for (cell, column) in row.cells.iter().zip(&table.columns) {
                    let class = if column.numeric { " class=\"n\"" } else { "" };
                    let _ = write!(out, "<td{class}>{}</td>", self.cell(cell, id));
                }
                out.push_str("</tr>\n");
            }
            out.push_str("</tbody></table></div>\n");
        }
        if !table.shared.is_empty() {
            let _ = writeln!(out, "<p>{}</p>\n<dl>", self.say("The same in every arm:", "各组相同："));
            for (title, text) in &table.shared {
                let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(title.get(self.lang)), escape(text));
            }
            out.push_str("</dl>\n");
        }
        self.write_footnotes(out, table, id);
    }

    /// A value, its range below it; or a dash that leads to its reason.
    fn cell(&self, cell: &Result<String, usize>, group: &str) -> String {
        match cell {
            Ok(text) => match text.strip_suffix(']').and_then(|text| text.split_once(" [")) {
                Some((value, range)) => format!("{}<span class=\"range\">[{}]</span>", escape(value), escape(range)),
                None => escape(text),
            },
            Err(mark) => {
                let word = self.say("none, reason", "无，原因");
                format!("—<sup><a href=\"#{group}-{mark}\" aria-label=\"{word} {mark}\">{mark}</a></sup>")
            }
        }
    }

    fn write_footnotes(&self, out: &mut String, table: &Table, id: &str) {
        if table.reasons.is_empty() {
            return;
        }
        out.push_str("<ul class=\"notes\">\n");
        for (index, note) in super::groups::footnotes(table, self.lang).iter().enumerate() {
            let _ = writeln!(out, "<li id=\"{id}-{}\">{}</li>", index + 1, escape(note));
        }
        out.push_str("</ul>\n");
    }

    fn write_source(&self, out: &mut String, index: usize, source: &Source) {
        let name = source.experiment.as_deref().unwrap_or(&source.file);
        let id = format!("source-{index}");
        let _ = writeln!(out, "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{}</h2>", escape(name));
        self.write_facts(out, source);
        self.write_notes(out, source);
        match &source.no_figures {
            Some(reason) => _ = writeln!(out, "<p class=\"dim\">{}</p>", escape(reason.get(self.lang))),
            None => figures::all(source, &id, self.lang).iter().for_each(|figure| self.write_figure(out, figure)),
        }
        out.push_str("</section>\n");
    }

    fn write_facts(&self, out: &mut String, source: &Source) {
        out.push_str("<dl>\n");
        let file = (self.say("file", "文件"), source.file.as_str());
        let facts = source.facts.iter().map(|(name, value)| (name.get(self.lang), value.as_str()));
        for (name, value) in std::iter::once(file).chain(facts) {
            let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
        }
        out.push_str("</dl>\n");
    }

    fn write_notes(&self, out: &mut String, source: &Source) {
        if source.notes.is_empty() {
            return;
        }
        let _ = writeln!(out, "<h3>{}</h3>\n<ul>", self.say("Notes", "说明"));
        for note in &source.notes {
            let arm = note.arm.as_ref().map(|arm| format!(" {}:", escape(arm))).unwrap_or_default();
            let _ = writeln!(
                out,
                "<li><span class=\"word\">{}</span>{arm} {} <code>{}</code></li>",
                escape(word(&note.severity, self.lang)),
                escape(note.text.get(self.lang)),
                escape(&note.rule)
            );
        }
        out.push_str("</ul>\n");
    }

    fn write_figure(&self, out: &mut String, figure: &Figure) {
        let _ = writeln!(out, "<figure>\n<h3>{}</h3>", escape(&figure.title));
        let Some(svg) = &figure.svg else {
            let _ = writeln!(out, "<p class=\"dim\">{}</p>\n</figure>", escape(&figure.caption));
            return;
        };
        let _ = writeln!(out, "<figcaption>{}</figcaption>", escape(&figure.caption));
        if !figure.legend.is_empty() {
            let _ = writeln!(out, "<ul class=\"legend\">{}</ul>", figure.legend.concat());
        }
        // Wider than a telephone: it scrolls, also by the keyboard.
        let label = escape(&figure.title);
        let _ = writeln!(out, "<div class=\"draw\" role=\"group\" tabindex=\"0\" aria-label=\"{label}\">{svg}</div>");
        let _ = writeln!(out, "<details><summary>{}</summary>", self.say("The data as a table", "数据表"));
        let head: String = figure.head.iter().map(|text| format!("<th scope=\"col\">{}</th>", escape(text))).collect();
        let _ = write!(
            out,
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{label}\"><table><thead><tr>{head}</tr></thead><tbody>"
        );
        for row in &figure.rows {
            let cells: String = row.iter().map(|text| format!("<td>{}</td>", escape(text))).collect();
            let _ = writeln!(out, "<tr>{cells}</tr>");
        }
        out.push_str("</tbody></table></div></details>\n</figure>\n");
    }

    fn write_method(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<section aria-labelledby=\"method\">\n<h2 id=\"method\">{}</h2>\n<ul>",
            self.say("How it was measured", "测量方法")
        );
        let lines = [
            (
                "TTFT: request sent to first token-bearing event. TPOT: time per further output token of a request. E2E: request sent to last token-bearing event. All in milliseconds.",
                "TTFT：请求发出到首个带 token 的事件。TPOT：单个请求每个后续输出 token 的时间。E2E：请求发出到最后一个带 token 的事件。单位均为毫秒。",
            ),
            (
                "P50 columns are the median of the passes with the smallest and largest pass in brackets; P95 and P99 are exact over the pooled requests of all passes, and absent where the number of requests cannot carry them.",
                "P50 列为各轮结果的中位数，方括号内为最小与最大的一轮；P95、P99 由所有轮次的请求合并后精确计算，请求数不足以支撑时不给出。",
            ),
            (
                "Cold starts and warm-up requests are never among the measured ones. Failed requests are counted, never averaged in.",
                "冷启动与预热请求不计入测量；失败的请求只计数，不参与平均。",
            ),
            (
                "Memory figures of different scopes are never compared: each scope has its own column and its own figure. 1 MiB = 1,048,576 bytes.",
                "不同口径的内存不作比较：每种口径各占一列、各用一图。1 MiB = 1,048,576 字节。",
            ),
            (
                "Differences are candidate minus baseline over paired passes with a 95 % t interval. One counts as better or worse only if the interval excludes zero and the difference exceeds 3 % or the client's own error.",
                "差异为成对轮次的候选减基线，区间为 95% t 区间；只有区间不含零且差异超过 3% 或客户端自身误差时，才算更好或更差。",
            ),
            (
                "The figures hold for this device, backend, model and workload alone.",
                "以上数字只对本设备、本后端、本模型与本工作负载成立。",
            ),
        ];
        for (en, zh) in lines {
            let _ = writeln!(out, "<li>{}</li>", self.say(en, zh));
        }
        let _ = writeln!(out, "</ul>\n<p class=\"dim\">verify {}</p>\n</section>", env!("CARGO_PKG_VERSION"));
    }
}
