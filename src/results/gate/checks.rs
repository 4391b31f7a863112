//! The checks on one normalized result, in the order of the contract.

use super::fields::{CONFIG, DECISION, Demand, Field, METRICS};
use super::{Mark, shown};
use crate::config::nearest;
use crate::model::{Localized, Severity, Text};
use crate::results::json::{Kind, Node, push};
use crate::results::v1::{EVIDENCE_LEVELS, PLACEHOLDERS, RANKS, SCHEMA_VERSION, STATISTICS, STRATEGY_METRICS, Verdict};
use crate::rules::{Rule, schema as rules};

/// Collects marks on one normalized result.
pub(super) struct Checker<'c, 't> {
    text: &'t str,
    marks: &'c mut Vec<Mark>,
}

impl<'c, 't> Checker<'c, 't> {
    pub(super) fn new(text: &'t str, marks: &'c mut Vec<Mark>) -> Self {
        Checker { text, marks }
    }

    fn mark(&mut self, rule: &'static Rule, node: &Node<'_>, pointer: &str) -> &mut Mark {
        let value = shown(self.text, &node.span);
        self.marks.push(Mark::new(rule, node.span.clone(), pointer).arg("value", value));
        let last = self.marks.len() - 1;
        &mut self.marks[last]
    }

    /// A fault of a present value with its remedy.
    fn fault(&mut self, rule: &'static Rule, node: &Node<'_>, pointer: &str, remedy: impl Into<Localized>) {
        let remedy = remedy.into();
        self.mark(rule, node, pointer).args.push(("remedy", remedy));
    }

    fn wrong(&mut self, rule: &'static Rule, node: &Node<'_>, pointer: &str, wanted: Wanted, remedy: Text) {
        let mark = self.mark(rule, node, pointer);
        mark.args.push(("wanted", wanted.text().into()));
        mark.args.push(("remedy", remedy.into()));
    }

    /// A member that is not there; it is placed at the start of its parent.
    fn absent(&mut self, rule: &'static Rule, parent: &Node<'_>, pointer: &str, name: &str, remedy: Text) {
        let span = parent.span.start..parent.span.start + 1;
        let remedy = match misspelt(parent, name) {
            Some(near) => Localized::both(
                format!("did you mean `{name}` where `{near}` stands?"),
                format!("`{near}` 是不是想写 `{name}`？"),
            ),
            None => remedy.into(),
        };
        self.marks.push(Mark::new(rule, span, push(pointer.to_owned(), name)).arg("remedy", remedy));
    }

    /// The whole public block.
    pub(super) fn normalized(&mut self, node: &Node<'_>, pointer: &str) {
        const REMEDY: Text = Text {
            en: "the public block is an object; `verify schema --print-schema` shows it",
            zh: "公共部分是一个对象；`verify schema --print-schema` 会列出其结构",
        };
        if !self.object(node, pointer, REMEDY) {
            return;
        }
        self.version(node, pointer);
        self.identity(
            node,
            pointer,
            "project",
            "write the section's number as text, such as \"66\"",
            "请写章节编号，例如 \"66\"",
        );
        self.identity(
            node,
            pointer,
            "strategy",
            "name what was tried, such as \"vllm-baseline\"",
            "请写所试的策略，例如 \"vllm-baseline\"",
        );
        self.parent(node, pointer, "config", CONFIG);
        self.parent(node, pointer, "metrics", METRICS);
        if let Some(metrics) = node.get("metrics") {
            self.metrics(metrics, &push(pointer.to_owned(), "metrics"));
        }
        self.quality(node, pointer);
        self.decision(node, pointer);
        self.evidence_level(node, pointer);
        self.strategy_metrics(node, pointer);
    }

    /// Whether it is an object; says so when it is not.
    fn object(&mut self, node: &Node<'_>, pointer: &str, remedy: Text) -> bool {
        match &node.kind {
            Kind::Object(_) => return true,
            Kind::Null => self.fault(&rules::NULL, node, pointer, remedy),
            _ => self.wrong(&rules::TYPE, node, pointer, Wanted::Object, remedy),
        }
        false
    }

    fn version(&mut self, node: &Node<'_>, pointer: &str) {
        const REMEDY: Text = Text {
            en: "write \"schema_version\": \"inference-benchmark/v1\"",
            zh: "请写 \"schema_version\": \"inference-benchmark/v1\"",
        };
        let Some(version) = node.get("schema_version") else {
            return self.absent(&rules::MISSING, node, pointer, "schema_version", REMEDY);
        };
        let pointer = push(pointer.to_owned(), "schema_version");
        match &version.kind {
            Kind::Text(text) if text == SCHEMA_VERSION => {}
            Kind::Null => self.fault(&rules::NULL, version, &pointer, REMEDY),
            Kind::Text(text) if !visible(text) => self.fault(&rules::BLANK, version, &pointer, REMEDY),
            Kind::Text(_) => self.fault(&rules::VERSION, version, &pointer, REMEDY),
            _ => self.wrong(&rules::TYPE, version, &pointer, Wanted::Name, REMEDY),
        }
    }

    /// `project` and `strategy`: names that a reader wants but no gate needs.
    fn identity(&mut self, node: &Node<'_>, pointer: &str, name: &str, en: &'static str, zh: &'static str) {
        let remedy = Text { en, zh };
        let Some(value) = node.get(name) else {
            return self.absent(&rules::NOT_COLLECTED, node, pointer, name, remedy);
        };
        let pointer = push(pointer.to_owned(), name);
        match &value.kind {
            Kind::Text(text) if visible(text) => {}
            Kind::Number(_) => {}
            Kind::Null | Kind::Text(_) => self.fault(&rules::NOT_COLLECTED, value, &pointer, remedy),
            _ => self.wrong(&rules::TYPE, value, &pointer, Wanted::Name, remedy),
        }
    }

    /// An object that must be there, and its members.
    fn parent(&mut self, node: &Node<'_>, pointer: &str, name: &str, fields: &'static [Field]) {
        const REMEDY: Text = Text {
            en: "`verify schema --print-schema` shows its members",
            zh: "`verify schema --print-schema` 会列出其字段",
        };
        let Some(parent) = node.get(name) else {
            return self.absent(&rules::MISSING, node, pointer, name, REMEDY);
        };
        let pointer = push(pointer.to_owned(), name);
        if self.object(parent, &pointer, REMEDY) {
            for field in fields {
                self.field(parent, &pointer, field);
            }
        }
    }

    fn field(&mut self, parent: &Node<'_>, pointer: &str, field: &'static Field) {
        let needed = matches!(field.demand, Demand::Name | Demand::Count | Demand::Latency);
        let Some(node) = parent.get(field.name) else {
            let rule = if needed { &rules::MISSING } else { &rules::NOT_COLLECTED };
            return self.absent(rule, parent, pointer, field.name, field.remedy);
        };
        let pointer = push(pointer.to_owned(), field.name);
        match (&node.kind, field.demand) {
            (Kind::NotFinite, _) => {}
            (Kind::Null, _) if needed => self.fault(&rules::NULL, node, &pointer, field.remedy),
            (Kind::Null, _) => {}
            (_, Demand::Name) => self.name(node, &pointer, field.remedy),
            (_, Demand::Count) => self.count(node, &pointer, field.remedy),
            (_, Demand::Amount) => self.number(node, &pointer, Wanted::Positive, field.remedy),
            (_, Demand::Rate) => self.number(node, &pointer, Wanted::NotNegative, field.remedy),
            (_, Demand::Latency) => self.latency(node, &pointer, Wanted::PositiveMs, field.remedy),
            (_, Demand::OptionalLatency) => self.latency(node, &pointer, Wanted::NotNegativeMs, field.remedy),
        }
    }

    fn name(&mut self, node: &Node<'_>, pointer: &str, remedy: Text) {
        match &node.kind {
            Kind::Text(text) if !visible(text) => self.fault(&rules::BLANK, node, pointer, remedy),
            Kind::Text(text) if is_placeholder(text) => self.fault(&rules::PLACEHOLDER, node, pointer, remedy),
            Kind::Text(_) => {}
            _ => self.wrong(&rules::TYPE, node, pointer, Wanted::Name, remedy),
        }
    }

    fn count(&mut self, node: &Node<'_>, pointer: &str, remedy: Text) {
        match node.number() {
            Some(number) if number.fract() != 0.0 => self.wrong(&rules::TYPE, node, pointer, Wanted::Count, remedy),
            Some(number) if number < 1.0 => self.wrong(&rules::RANGE, node, pointer, Wanted::Count, remedy),
            Some(_) => {}
            None => self.wrong(&rules::TYPE, node, pointer, Wanted::Count, remedy),
        }
    }

    fn number(&mut self, node: &Node<'_>, pointer: &str, wanted: Wanted, remedy: Text) {
        match node.number() {
            Some(number) if wanted.holds(number) => {}
            Some(_) => self.wrong(&rules::RANGE, node, pointer, wanted, remedy),
            None => self.wrong(&rules::TYPE, node, pointer, wanted, remedy),
        }
    }

    /// A number of milliseconds or a distribution.
    fn latency(&mut self, node: &Node<'_>, pointer: &str, wanted: Wanted, remedy: Text) {
        if !node.is_object() {
            let wanted_here = if node.number().is_some() { wanted } else { wanted.or_distribution() };
            return self.number(node, pointer, wanted_here, remedy);
        }
        let before = self.marks.len();
        let mut numbers = 0;
        for member in node.members().iter().filter(|member| STATISTICS.contains(&member.key.as_ref())) {
            match member.value.kind {
                Kind::Null => {}
                Kind::NotFinite => numbers += 1,
                _ => {
                    numbers += 1;
                    self.number(&member.value, &push(pointer.to_owned(), &member.key), wanted, remedy);
                }
            }
        }
        if numbers == 0 && self.marks.len() == before {
            self.fault(&rules::BLANK, node, pointer, remedy);
            if wanted == Wanted::NotNegativeMs
                && let Some(mark) = self.marks.last_mut()
            {
                mark.severity = Severity::Warning;
            }
        }
        self.ascending(node, pointer);
    }

    /// min ≤ p50 ≤ p90 ≤ p95 ≤ p99 ≤ max, and the mean between the ends.
    fn ascending(&mut self, node: &Node<'_>, pointer: &str) {
        let number = |name: &str| node.get(name).and_then(Node::number);
        let mut below: Option<(&str, f64)> = None;
        for name in RANKS {
            let (Some(value), Some(member)) = (number(name), node.get(name)) else { continue };
            match below {
                Some((lower, least)) if value < least => {
                    self.inconsistent(member, &push(pointer.to_owned(), name), &below_text(lower, least));
                }
                _ => below = Some((name, value)),
            }
        }
        let (Some(mean), Some(member)) = (number("mean"), node.get("mean")) else { return };
        let pointer = push(pointer.to_owned(), "mean");
        match (number("min"), number("max")) {
            (Some(min), _) if beyond(min, mean) => self.inconsistent(member, &pointer, &below_text("min", min)),
            (_, Some(max)) if beyond(mean, max) => self.inconsistent(member, &pointer, &above_text("max", max)),
            _ => {}
        }
    }

    fn inconsistent(&mut self, node: &Node<'_>, pointer: &str, relation: &Localized) {
        self.mark(&rules::INCONSISTENT, node, pointer).args.push(("relation", relation.clone()));
    }

    fn metrics(&mut self, metrics: &Node<'_>, pointer: &str) {
        self.first_token_before_last(metrics, pointer);
        for member in metrics.members() {
            if STRATEGY_METRICS.contains(&member.key.as_ref()) {
                let pointer = push(pointer.to_owned(), &member.key);
                self.marks.push(Mark::new(&rules::MISPLACED_STRATEGY_METRIC, member.key_span.clone(), pointer));
            }
        }
    }

    /// TTFT above E2E at the same percentile.
    fn first_token_before_last(&mut self, metrics: &Node<'_>, pointer: &str) {
        let (Some(first), Some(last)) = (metrics.get("ttft_ms"), metrics.get("e2e_latency_ms")) else { return };
        let pointer = push(pointer.to_owned(), "ttft_ms");
        if let (Some(ttft), Some(e2e)) = (first.number(), last.number()) {
            if ttft > e2e {
                self.inconsistent(first, &pointer, &above_text("e2e_latency_ms", e2e));
            }
            return;
        }
        for name in STATISTICS {
            let (Some(member), Some(e2e)) = (first.get(name), last.get(name).and_then(Node::number)) else { continue };
            if member.number().is_some_and(|ttft| ttft > e2e) {
                let relation = above_text(&format!("e2e_latency_ms.{name}"), e2e);
                self.inconsistent(member, &push(pointer.clone(), name), &relation);
            }
        }
    }

    fn quality(&mut self, node: &Node<'_>, pointer: &str) {
        const REMEDY: Text = Text {
            en: "write what was probed, or {\"status\": \"not_collected\"}",
            zh: "请写质量探针的结果，或写 {\"status\": \"not_collected\"}",
        };
        match node.get("quality") {
            None => self.absent(&rules::NOT_COLLECTED, node, pointer, "quality", REMEDY),
            Some(quality) => {
                self.object(quality, &push(pointer.to_owned(), "quality"), REMEDY);
            }
        }
    }

    fn decision(&mut self, node: &Node<'_>, pointer: &str) {
        let Some(decision) = node.get("decision") else {
            return self.absent(&rules::MISSING, node, pointer, "decision", DECISION);
        };
        let pointer = push(pointer.to_owned(), "decision");
        if !self.object(decision, &pointer, DECISION) {
            return;
        }
        let Some(word) = decision.get("decision") else {
            return self.absent(&rules::MISSING, decision, &pointer, "decision", DECISION);
        };
        let pointer = push(pointer, "decision");
        match &word.kind {
            Kind::Null => self.fault(&rules::NULL, word, &pointer, DECISION),
            Kind::Text(text) if Verdict::of(text).is_some() => {}
            Kind::Text(text) if !visible(text) => self.fault(&rules::BLANK, word, &pointer, DECISION),
            Kind::Text(text) => {
                let remedy = decision_remedy(text);
                let mark = self.mark(&rules::ENUM, word, &pointer);
                mark.args.push(("wanted", Wanted::Decision.text().into()));
                mark.args.push(("remedy", remedy));
            }
            _ => self.wrong(&rules::TYPE, word, &pointer, Wanted::Decision, DECISION),
        }
    }

    fn evidence_level(&mut self, node: &Node<'_>, pointer: &str) {
        const REMEDY: Text = Text {
            en: "known words: not_recorded, theoretical, simulation, cpu_simulation, gpu_smoke, gpu_baseline_smoke, real_backend_smoke, profiler_trace, real_benchmark",
            zh: "可用的词：not_recorded、theoretical、simulation、cpu_simulation、gpu_smoke、gpu_baseline_smoke、real_backend_smoke、profiler_trace、real_benchmark",
        };
        let Some(level) = node.get("evidence_level") else { return };
        let pointer = push(pointer.to_owned(), "evidence_level");
        match &level.kind {
            Kind::Text(text) if EVIDENCE_LEVELS.contains(&text.as_ref()) => {}
            Kind::Text(_) => {
                self.wrong(&rules::ENUM, level, &pointer, Wanted::Level, REMEDY);
                if let Some(mark) = self.marks.last_mut() {
                    mark.severity = Severity::Warning;
                }
            }
            Kind::Null => {}
            _ => self.wrong(&rules::TYPE, level, &pointer, Wanted::Name, REMEDY),
        }
    }

    fn strategy_metrics(&mut self, node: &Node<'_>, pointer: &str) {
        const REMEDY: Text =
            Text { en: "write an object; its names are free", zh: "请写成对象，其中的名字可自由选择" };
        if let Some(metrics) = node.get("strategy_metrics").filter(|metrics| !metrics.is_null()) {
            self.object(metrics, &push(pointer.to_owned(), "strategy_metrics"), REMEDY);
        }
    }
}

/// What a value must be, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Object,
    Name,
    Count,
    Positive,
    NotNegative,
    PositiveMs,
    NotNegativeMs,
    PositiveOrDistribution,
    NotNegativeOrDistribution,
    Decision,
    Level,
}

impl Wanted {
    fn holds(self, number: f64) -> bool {
        match self {
            Wanted::NotNegative | Wanted::NotNegativeMs | Wanted::NotNegativeOrDistribution => number >= 0.0,
            _ => number > 0.0,
        }
    }

    fn or_distribution(self) -> Self {
        match self {
            Wanted::NotNegativeMs => Wanted::NotNegativeOrDistribution,
            _ => Wanted::PositiveOrDistribution,
        }
    }

    fn text(self) -> Text {
        let (en, zh) = match self {
            Wanted::Object => ("an object", "对象"),
            Wanted::Name => ("text that names something", "有内容的文本"),
            Wanted::Count => ("a whole number from 1", "从 1 起的整数"),
            Wanted::Positive => ("a number above 0", "大于 0 的数"),
            Wanted::NotNegative => ("a number from 0", "不小于 0 的数"),
            Wanted::PositiveMs => ("milliseconds above 0", "大于 0 的毫秒数"),
            Wanted::NotNegativeMs => ("milliseconds from 0", "不小于 0 的毫秒数"),
            Wanted::PositiveOrDistribution | Wanted::NotNegativeOrDistribution => {
                ("a number of milliseconds or an object of statistics", "毫秒数，或由统计量组成的对象")
            }
            Wanted::Decision => ("accept, tune, reject, not_evaluated", "accept、tune、reject、not_evaluated"),
            Wanted::Level => ("the known evidence levels", "已知的证据级别"),
        };
        Text { en, zh }
    }
}

/// Whether a text has a character that a person can see.
pub(crate) fn visible(text: &str) -> bool {
    let unseen = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}')
    };
    !text.chars().all(unseen)
}

/// Whether a text stands in place of what should have been recorded.
pub(crate) fn is_placeholder(text: &str) -> bool {
    PLACEHOLDERS.iter().any(|word| text.trim().eq_ignore_ascii_case(word))
}

/// A member that is near the one that is missing and that the contract does not know.
fn misspelt<'n>(parent: &'n Node<'_>, name: &str) -> Option<&'n str> {
    let known = |key: &str| CONFIG.iter().chain(METRICS).any(|field| field.name == key);
    nearest(name, parent.members().iter().map(|member| member.key.as_ref()).filter(|key| !known(key)))
}

fn decision_remedy(text: &str) -> Localized {
    let words = Verdict::ALL.map(Verdict::name);
    let meant = match text.trim().to_lowercase().as_str() {
        "pending" | "todo" | "unknown" => Some("not_evaluated"),
        "pass" | "passed" | "accepted" | "ok" => Some("accept"),
        "fail" | "failed" | "rejected" => Some("reject"),
        other => nearest(other, words),
    };
    match meant {
        Some(word) => Localized::both(format!("here the word is \"{word}\""), format!("这里应写 \"{word}\"")),
        None => DECISION.into(),
    }
}

/// Beyond rounding: means are written with few digits.
fn beyond(low: f64, high: f64) -> bool {
    low > high + high.abs() * 1e-9
}

fn below_text(name: &str, value: f64) -> Localized {
    Localized::both(format!("below {name} ({value})"), format!("小于 {name}（{value}）"))
}

fn above_text(name: &str, value: f64) -> Localized {
    Localized::both(format!("above {name} ({value})"), format!("大于 {name}（{value}）"))
}
