//! Historical and foreign reports → an envelope with `normalized_result`. Pure: the
//! text of one file in, a document or a refusal out. What is not recorded becomes null
//! or a stated default, never an invention; numbers that pass through keep their text.

mod draft;
mod foreign;
mod raw;
mod value;

use super::gate::{self, Form, Mark};
use super::json::{self, Document, FaultKind, Node};
use super::v1;
use crate::cli::{SourceFormat, Stated};
use crate::model::{Localized, Severity};
use serde_json::{Map, Value};
use value::to_value;

/// What the caller knows about the file.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// How reports and the envelope name the file.
    pub source_path: &'a str,
    /// SHA-256 of its bytes.
    pub source_sha256: &'a str,
    /// Which tool wrote it.
    pub from: SourceFormat,
    /// Line of a JSONL file, from 1.
    pub line: Option<u32>,
    /// Benchmark of a guidellm report, from 0.
    pub index: Option<u32>,
    /// Group of a pair manifest.
    pub group: Option<&'a str>,
    /// What the user states.
    pub stated: &'a Stated,
    /// Sections of the course, for file names such as `66_vllm.json`.
    pub projects: &'a [u32],
}

/// A document that can be written.
#[derive(Debug, Clone)]
pub struct Migration {
    /// The text of the file.
    pub text: String,
    /// What the source was.
    pub kind: &'static str,
    /// Members that were not recorded and got a default.
    pub defaults: Vec<String>,
    /// What a person should know.
    pub notes: Vec<Localized>,
    /// The source is a result already.
    pub is_result: bool,
    /// What the gate says about the new document.
    pub marks: Vec<Mark>,
}

impl Migration {
    /// Whether the gate accepts the new document.
    pub fn passes(&self) -> bool {
        self.marks.iter().all(|mark| mark.severity != Severity::Error)
    }
}

/// Why a file is not migrated.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// What is wrong.
    pub reason: Localized,
    /// Byte offset in the text, where there is one place.
    pub offset: Option<usize>,
    /// The rule that is broken, where it is one of the gate.
    pub rule: Option<&'static crate::rules::Rule>,
    /// What to do next.
    pub help: Localized,
}

impl Refusal {
    fn new(reason: Localized, help: Localized) -> Self {
        Refusal { reason, offset: None, rule: None, help }
    }
}

/// What a source said, in the form of v1.
#[derive(Debug, Default)]
struct Migrated {
    normalized: Value,
    kind: &'static str,
    defaults: Vec<String>,
    notes: Vec<Localized>,
    is_result: bool,
}

/// Migrates the text of one file.
///
/// # Errors
/// It is not JSON, nobody can tell what was measured, or it is no inference report.
pub fn migrate(text: &str, request: &Request<'_>) -> Result<Migration, Refusal> {
    let part = part_of(text, request)?;
    let document = json::read(part);
    let mut notes = tolerated(&document, text)?;
    let root = document.root.as_ref().ok_or_else(|| {
        Refusal::new(
            Localized::both("the file is empty", "文件是空的"),
            Localized::both(
                "leave it out, or run the measurement again: a run that was cut short often leaves an empty file",
                "请不要指定它，或重新测量：中断的运行常会留下空文件",
            ),
        )
    })?;
    let mut migrated = choose(&document, root, request)?;
    notes.append(&mut migrated.notes);
    Ok(finish(migrated, notes, request))
}

/// One line of a JSONL file, or the whole text.
fn part_of<'t>(text: &'t str, request: &Request<'_>) -> Result<&'t str, Refusal> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if let Some(number) = request.line {
        return lines.get(number as usize - 1).copied().ok_or_else(|| {
            let count = lines.len();
            Refusal::new(
                Localized::both(
                    format!("there is no line {number}: the file has {count}"),
                    format!("没有第 {number} 行：文件共 {count} 行"),
                ),
                Localized::both(format!("give --line 1 to {count}"), format!("请用 --line 给出 1 到 {count}")),
            )
        });
    }
    let several = lines.len() > 1
        && lines.iter().all(|line| line.trim_start().starts_with('{') && line.trim_end().ends_with('}'));
    if several && json::read(text).faults.iter().any(|fault| fault.kind == FaultKind::TrailingData) {
        return Err(Refusal::new(
            Localized::both(
                format!("the file holds {} reports, one a line", lines.len()),
                format!("文件包含 {} 份报告，每行一份", lines.len()),
            ),
            Localized::both(
                format!("choose one with --line N, from 1 to {}", lines.len()),
                format!("请用 --line N 选择其中一份，N 为 1 到 {}", lines.len()),
            ),
        ));
    }
    Ok(text)
}

/// Faults with which a report can still be read: Python's `NaN` and `Infinity`, which
/// become null. Every other fault is a refusal.
fn tolerated(document: &Document<'_>, text: &str) -> Result<Vec<Localized>, Refusal> {
    let mut notes = Vec::new();
    // A chosen line is a part of the text; places are those of the whole.
    let base = document.text.as_ptr() as usize - text.as_ptr() as usize;
    let mut positions = json::Positions::new(text);
    for fault in &document.faults {
        let mark = gate::mark_of(fault, document.text);
        let value = gate::shown(document.text, &fault.span);
        let (line, column) = positions.of(base + fault.span.start);
        if !matches!(fault.kind, FaultKind::NotFinite | FaultKind::NumberRange) {
            return Err(refused(&mark, base + fault.span.start));
        }
        notes.push(Localized::both(
            format!("{value} in line {line}, column {column} is no measurement: null"),
            format!("第 {line} 行第 {column} 列的 {value} 不是测量值：写为 null"),
        ));
    }
    Ok(notes)
}

/// A fault of the document as a refusal, in the words of the gate.
fn refused(mark: &Mark, offset: usize) -> Refusal {
    let location = crate::model::Location::file(crate::model::RepoPath::new(""));
    let finding = mark.args.iter().fold(crate::model::Finding::new(mark.rule, location), |finding, (name, value)| {
        finding.arg(name, value.clone())
    });
    let text = |lang| finding.message(lang);
    Refusal {
        reason: Localized::both(text(crate::model::Lang::En), text(crate::model::Lang::Zh)),
        offset: Some(offset),
        rule: Some(mark.rule),
        help: mark.help.clone().unwrap_or_else(|| {
            let help = |lang| finding.help_text(lang).unwrap_or_default();
            Localized::both(help(crate::model::Lang::En), help(crate::model::Lang::Zh))
        }),
    }
}

fn choose(document: &Document<'_>, root: &Node<'_>, request: &Request<'_>) -> Result<Migrated, Refusal> {
    use SourceFormat as From;
    let form = gate::form(root);
    let text = document.text;
    let foreign = |tool| foreign::migrate(text, root, tool, request);
    match (request.from, &form) {
        (_, Form::NoObject) => Err(no_object(root)),
        (From::VllmBench, _) => foreign("vllm-bench"),
        (From::SglangBench, _) => foreign("sglang-bench"),
        (From::Guidellm, _) => foreign("guidellm"),
        (From::Aiperf, _) => foreign("aiperf"),
        (From::GenaiPerf, _) => foreign("genai-perf"),
        (From::Llmperf, _) => foreign("llmperf"),
        (_, Form::Enveloped) => match root.get("normalized_result").filter(|inner| !inner.is_null()) {
            Some(inner) => Ok(enveloped(text, root, inner)),
            None => raw::migrate(text, root, request),
        },
        (_, Form::Bare) => Ok(Migrated { normalized: to_value(text, root), kind: "bare", ..Migrated::default() }),
        (_, Form::Manifest { groups }) => group(text, root, groups, request),
        (From::Auto, Form::Foreign(tool)) => foreign(tool),
        (_, Form::RawReport) => raw::migrate(text, root, request),
        (_, Form::FailureRecord) => raw::migrate_failure(text, root, request),
        (_, Form::OtherContract(name)) => Err(Refusal::new(
            Localized::both(
                format!("a document of another contract ({name}): it holds no inference measurement"),
                format!("另一种契约（{name}）的文档：其中没有推理测量"),
            ),
            Localized::both("leave it out: there is nothing to migrate", "请不要指定它：没有可迁移的内容"),
        )),
        (_, Form::Nothing | Form::Foreign(_)) => Err(Refusal::new(
            Localized::both("nothing here looks like a report", "看不出这是哪种报告"),
            Localized::both(
                "name the tool with --from if it is one (`verify normalize --help` lists them), else leave it out",
                "如果是报告，请用 --from 指明工具（`verify normalize --help` 列出了全部）；否则请不要指定它",
            ),
        )),
    }
}

fn no_object(root: &Node<'_>) -> Refusal {
    if root.entries().is_empty() {
        return Refusal::new(
            Localized::both("a report is one JSON object", "报告应是一个 JSON 对象"),
            Localized::both(
                "leave it out, or give the file that the tool wrote",
                "请不要指定它，或给出工具原本写出的文件",
            ),
        );
    }
    Refusal::new(
        Localized::both(
            format!("a list of {} reports", root.entries().len()),
            format!("这是 {} 份报告的列表", root.entries().len()),
        ),
        Localized::both(
            "split it, one report in one file, such as with `jq '.[0]' FILE`",
            "请拆分，一个文件一份报告，例如用 `jq '.[0]' FILE`",
        ),
    )
}

/// A result already: the inner document stays as it is. What stands beside it and
/// contradicts it is named, not merged.
fn enveloped(text: &str, root: &Node<'_>, inner: &Node<'_>) -> Migrated {
    let mut notes = Vec::new();
    let outer = [("evidence_level", &["evidence_level"][..]), ("quality.status", &["quality", "status"])];
    for (name, path) in outer {
        let beside = root.at(path).or_else(|| root.at(&["experiment_contract"]).and_then(|contract| contract.at(path)));
        let (Some(beside), mine) = (beside.and_then(Node::text), inner.at(path).and_then(Node::text)) else { continue };
        if mine != Some(beside) {
            notes.push(Localized::both(
                format!("the report says {name} = {beside} beside the result; not carried over"),
                format!("报告在结果之外写有 {name} = {beside}；没有带入"),
            ));
        }
    }
    Migrated { normalized: to_value(text, inner), kind: "enveloped", notes, is_result: true, ..Migrated::default() }
}

fn group(text: &str, root: &Node<'_>, names: &[String], request: &Request<'_>) -> Result<Migrated, Refusal> {
    let Some(wanted) = request.group else {
        let list = names.join(", ");
        return Err(Refusal::new(
            Localized::both(
                format!("a manifest of {} results ({list})", names.len()),
                format!("这是 {} 份结果的清单（{list}）", names.len()),
            ),
            Localized::both("choose one with --group NAME", "请用 --group NAME 选择其中一份"),
        ));
    };
    let groups = root.get("groups").map(Node::entries).unwrap_or_default();
    let found = groups.iter().zip(names).find(|(_, name)| *name == wanted);
    let found = found.or_else(|| {
        let index: usize = wanted.parse().ok()?;
        groups.get(index).zip(names.get(index))
    });
    match found.and_then(|(group, name)| Some((group.get("normalized_result")?, name))) {
        Some((inner, name)) => Ok(Migrated {
            normalized: to_value(text, inner),
            kind: "manifest-group",
            notes: vec![Localized::both(format!("group {name}"), format!("分组 {name}"))],
            ..Migrated::default()
        }),
        None => {
            let list = names.join(", ");
            Err(Refusal::new(
                Localized::both(
                    format!("there is no group {wanted} with a result"),
                    format!("没有带结果的分组 {wanted}"),
                ),
                match crate::config::nearest(wanted, names.iter().map(String::as_str)) {
                    Some(near) => Localized::both(
                        format!("did you mean `{near}`? groups: {list}"),
                        format!("是不是想写 `{near}`？已有分组：{list}"),
                    ),
                    None => Localized::both(format!("groups: {list}"), format!("已有分组：{list}")),
                },
            ))
        }
    }
}

fn finish(migrated: Migrated, notes: Vec<Localized>, request: &Request<'_>) -> Migration {
    let list = |texts: &mut dyn Iterator<Item = String>| Value::Array(texts.map(Value::String).collect());
    let migration: Map<String, Value> = [
        ("tool", Value::String(format!("verify {}", env!("CARGO_PKG_VERSION")))),
        ("kind", Value::String(migrated.kind.to_owned())),
        ("source_path", Value::String(request.source_path.to_owned())),
        ("source_sha256", Value::String(request.source_sha256.to_owned())),
        ("defaults", list(&mut migrated.defaults.iter().cloned())),
        ("notes", list(&mut notes.iter().map(|note| note.get(crate::model::Lang::En).to_owned()))),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect();
    let mut document = Map::new();
    document.insert("normalized_result".to_owned(), migrated.normalized);
    document.insert("migration".to_owned(), Value::Object(migration));
    let mut document = Value::Object(document);
    value::hide_credentials(&mut document);
    let text = v1::to_text(&document);
    let marks = gate::judge(&json::read(&text), request.source_path).marks;
    Migration { text, kind: migrated.kind, defaults: migrated.defaults, notes, is_result: migrated.is_result, marks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(stated: &Stated) -> Request<'_> {
        Request {
            source_path: "66.json",
            source_sha256: "",
            from: SourceFormat::Auto,
            line: None,
            index: None,
            group: None,
            stated,
            projects: &[66],
        }
    }

    /// Reports of every kind that is read, to be damaged.
    const SEEDS: [&str; 8] = [
        include_str!("../../fixtures/legacy-results/03_raw_with_results_usage.json"),
        include_str!("../../fixtures/legacy-results/05_raw_repeats_with_runs.json"),
        include_str!("../../fixtures/legacy-results/08_failure_record_backend_start.json"),
        include_str!("../../fixtures/legacy-results/10_bare_v1_late_normalizer_output.json"),
        include_str!("../../fixtures/legacy-results/12_enveloped_late_notebook_extras.json"),
        include_str!("../../fixtures/legacy-results/13_manifest_69_prefix_cache.json"),
        include_str!("../../fixtures/cases/normalize/vllm-bench-serve-latencies/input/raw.json"),
        include_str!("../../fixtures/cases/normalize/guidellm-sweep/input/raw.json"),
    ];

    /// What stands where something else was expected.
    fn odd() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("null".to_owned()),
            Just("NaN".to_owned()),
            Just("-Infinity".to_owned()),
            Just("1e999".to_owned()),
            Just("{}".to_owned()),
            Just("[]".to_owned()),
            Just("[1, \"\"]".to_owned()),
            Just("{\"p50\": \"x\"}".to_owned()),
            Just("\"http://a:b@c/\"".to_owned()),
            Just("\"\\ud800\"".to_owned()),
            Just("true".to_owned()),
            any::<f64>().prop_map(|number| number.to_string()),
            any::<i64>().prop_map(|number| number.to_string()),
            "\\PC{0,8}".prop_map(|text| serde_json::to_string(&text).unwrap_or_default()),
            "\\PC{0,8}",
        ]
    }

    /// A report in which some scalar values were replaced.
    fn damaged() -> impl Strategy<Value = String> {
        (0..SEEDS.len(), prop::collection::vec((any::<prop::sample::Index>(), odd()), 0..4)).prop_map(
            |(seed, changes)| {
                let mut text = SEEDS[seed].to_owned();
                for (index, odd) in changes {
                    let starts: Vec<usize> = text.match_indices(": ").map(|(at, _)| at + 2).collect();
                    if starts.is_empty() {
                        break;
                    }
                    let start = starts[index.index(starts.len())];
                    let end = text[start..].find([',', '}', ']', '\n']).map_or(text.len(), |at| start + at);
                    text.replace_range(start..end, &odd);
                }
                text
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever stands in a report: no panic, strict JSON without credentials comes
        /// out, and migrating that again changes nothing.
        #[test]
        fn damaged_reports_become_sound_documents_or_refusals(text in damaged()) {
            let stated = Stated::default();
            if let Ok(migration) = migrate(&text, &request(&stated)) {
                let document = json::read(&migration.text);
                prop_assert!(document.faults.is_empty(), "{:?}", document.faults);
                prop_assert!(!migration.text.contains("a:b@c"));
                let again = migrate(&migration.text, &request(&stated)).expect("its own output is readable");
                let inner = |text: &str| serde_json::from_str::<Value>(text).expect("JSON")["normalized_result"].take();
                if inner(&migration.text).is_object() {
                    prop_assert_eq!(inner(&again.text), inner(&migration.text));
                }
            }
        }

        /// Any text at all.
        #[test]
        fn any_text_is_answered(text in "\\PC{0,64}") {
            let stated = Stated::default();
            let _ = migrate(&text, &request(&stated));
        }
    }
}
