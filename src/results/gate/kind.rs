//! What a document is when it is no enveloped result: each kind has its own message
//! and the command that helps.

use super::{Mark, shown};
use crate::model::Localized;
use crate::results::json::{Kind, Node};
use crate::results::v1::SCHEMA_VERSION;
use crate::rules::schema as rules;

/// What kind of document it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// `normalized_result` is there, whatever it is.
    Enveloped,
    /// The document itself is the normalized result.
    Bare,
    /// A report of the course's own client.
    RawReport,
    /// A report of another tool, by the name that `--from` takes.
    Foreign(&'static str),
    /// A run that failed.
    FailureRecord,
    /// Several results in one document.
    Manifest {
        /// Names of the groups.
        groups: Vec<String>,
    },
    /// Something else, by the name it gives itself.
    OtherContract(String),
    /// An object that says nothing of itself.
    Nothing,
    /// No object at all.
    NoObject,
}

/// Tells the kinds apart.
pub fn form(root: &Node<'_>) -> Form {
    if !root.is_object() {
        return Form::NoObject;
    }
    if root.get("normalized_result").is_some_and(|inner| !inner.is_null()) {
        return Form::Enveloped;
    }
    let version = root.get("schema_version").and_then(Node::text);
    if let Some(groups) = manifest(root) {
        Form::Manifest { groups }
    } else if is_failure(root) {
        Form::FailureRecord
    } else if version == Some(SCHEMA_VERSION)
        && (root.get("config").is_some() || root.get("metrics").is_some() && !is_raw(root))
    {
        Form::Bare
    } else if let Some(tool) = foreign(root) {
        Form::Foreign(tool)
    } else if root.get("normalized_result").is_some() {
        // Null beside whatever else: an absent envelope, to be named at its place.
        Form::Enveloped
    } else if is_raw(root) {
        Form::RawReport
    } else if version == Some(SCHEMA_VERSION) || root.members().is_empty() {
        Form::Nothing
    } else {
        Form::OtherContract(name(root, version))
    }
}

/// The name another contract gives itself, else its first members.
fn name(root: &Node<'_>, version: Option<&str>) -> String {
    let named = ["contract", "schema", "task", "kind", "type"].iter().find_map(|key| root.get(key)?.text());
    match version.or(named) {
        Some(name) => name.to_owned(),
        None => root.members().iter().take(3).map(|member| member.key.as_ref()).collect::<Vec<_>>().join(", "),
    }
}

fn manifest(root: &Node<'_>) -> Option<Vec<String>> {
    let groups = root.get("groups")?.entries();
    let holds = groups.iter().any(|group| group.get("normalized_result").is_some());
    holds.then(|| groups.iter().enumerate().map(|(index, group)| group_name(index, group)).collect())
}

/// The name of one group of a manifest, else its position.
pub fn group_name(index: usize, group: &Node<'_>) -> String {
    let name = group.at(&["group", "name"]).or_else(|| group.get("group")).or_else(|| group.get("name"));
    name.and_then(Node::text).map_or_else(|| index.to_string(), str::to_owned)
}

/// A record says why it failed and has nothing measured.
fn is_failure(root: &Node<'_>) -> bool {
    let measured = root.get("metrics").is_some_and(|metrics| !metrics.is_null());
    let reason = failure_reason(root).is_some();
    let stated = root.at(&["failure", "status"]).and_then(Node::text).is_some_and(|status| status == "recorded");
    let versioned = root.get("schema_version").and_then(Node::text).is_some_and(|text| text.contains("failure"));
    !measured && (reason || stated || versioned)
}

/// The recorded reason, whatever its spelling.
pub fn failure_reason<'n>(root: &'n Node<'_>) -> Option<&'n str> {
    let failure = root.get("failure")?;
    ["reason", "failure_reason", "message", "error"]
        .iter()
        .find_map(|key| failure.get(key)?.text())
        .or_else(|| failure.text())
}

/// The course's client: metrics beside a workload, a label or rows.
fn is_raw(root: &Node<'_>) -> bool {
    let beside = ["workload", "label", "base_url", "results", "request_results", "runs"];
    let metrics = root.get("metrics").is_some_and(|metrics| metrics.is_object() || metrics.is_null());
    metrics && beside.iter().any(|key| root.get(key).is_some()) && root.get("task").is_none()
}

/// Reports of other tools, by members that only they write.
pub fn foreign(root: &Node<'_>) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().all(|key| root.get(key).is_some());
    let benchmarks = root.get("benchmarks").is_some_and(|list| {
        list.entries().iter().any(|entry| entry.get("metrics").is_some() || entry.get("type_").is_some())
    });
    if benchmarks {
        Some("guidellm")
    } else if has(&["total_output_tokens_retokenized"]) || has(&["server_info", "mean_ttft_ms"]) {
        Some("sglang-bench")
    } else if has(&["mean_ttft_ms", "completed"]) {
        Some("vllm-bench")
    } else if has(&["results_ttft_s_mean"]) || has(&["results_end_to_end_latency_s_mean"]) {
        Some("llmperf")
    } else if has(&["time_to_first_token", "request_latency"]) || has(&["request_latency", "input_config"]) {
        let aiperf = has(&["aiperf_version"]) || has(&["schema_version"]) || has(&["was_cancelled"]);
        Some(if aiperf { "aiperf" } else { "genai-perf" })
    } else {
        None
    }
}

/// The title of a tool, by the name that `--from` takes.
pub fn tool_title(name: &str) -> &'static str {
    match name {
        "guidellm" => "guidellm",
        "sglang-bench" => "sglang bench_serving",
        "vllm-bench" => "vllm bench serve",
        "llmperf" => "LLMPerf",
        "aiperf" => "AIPerf",
        "genai-perf" => "GenAI-Perf",
        _ => "the course's client",
    }
}

/// The mark of a document that is no enveloped result.
pub(super) fn mark(form: &Form, root: &Node<'_>, text: &str, path: &str) -> Mark {
    let start = root.span.start..root.span.start + 1;
    let at = |rule| Mark::new(rule, start.clone(), "/normalized_result");
    let normalize = format!("verify normalize {}", quoted(path));
    match form {
        Form::Bare => at(&rules::NOT_ENVELOPED).arg("command", normalize),
        Form::RawReport => at(&rules::RAW_REPORT)
            .arg("source", Localized::both("the course's client", "课程自带客户端"))
            .arg("command", normalize),
        Form::Foreign(tool) => {
            at(&rules::RAW_REPORT).arg("source", tool_title(tool)).arg("command", format!("{normalize} --from {tool}"))
        }
        Form::FailureRecord => failure(at(&rules::FAILURE_RECORD), root),
        Form::Manifest { groups } => {
            let first = groups.first().map_or("0", String::as_str);
            at(&rules::MANIFEST)
                .arg("value", groups.len())
                .arg("groups", groups.join(", "))
                .arg("command", format!("{normalize} --group {}", quoted(first)))
        }
        Form::OtherContract(name) => at(&rules::OTHER_CONTRACT).arg("value", name),
        Form::Enveloped | Form::Nothing => at(&rules::MISSING).arg("remedy", nothing(root)),
        Form::NoObject => Mark::new(&rules::TYPE, root.span.clone(), "")
            .arg("target", Localized::both("the document", "文档"))
            .arg("value", shown(text, &root.span))
            .arg("wanted", Localized::both("an object", "对象"))
            .arg("remedy", list_remedy(root)),
    }
}

fn list_remedy(root: &Node<'_>) -> Localized {
    match root.kind {
        Kind::Array(_) => {
            Localized::both("one result stands in one file: split the list", "一个文件只放一份结果：请拆分列表")
        }
        _ => Localized::both("a result file is one JSON object", "结果文件是一个 JSON 对象"),
    }
}

fn failure(mark: Mark, root: &Node<'_>) -> Mark {
    let retest = root.at(&["failure", "retest_path"]).and_then(Node::text);
    let reason = match failure_reason(root) {
        Some(reason) => Localized::from(reason),
        None => Localized::both("no reason was recorded", "没有记录原因"),
    };
    let retest = match retest {
        Some(path) => Localized::both(format!("; recorded retest: {path}"), format!("；记录的复测位置：{path}")),
        None => Localized::from(""),
    };
    mark.arg("reason", reason).arg("retest", retest)
}

fn nothing(root: &Node<'_>) -> Localized {
    let names = root.members().iter().map(|member| member.key.as_ref());
    match crate::config::nearest("normalized_result", names) {
        Some(name) => Localized::both(
            format!("did you mean `normalized_result` where `{name}` stands?"),
            format!("`{name}` 是不是想写 `normalized_result`？"),
        ),
        None => Localized::both(
            "a result file holds the public block under `normalized_result`",
            "结果文件把公共部分放在 `normalized_result` 下",
        ),
    }
}

/// A path as a shell takes it.
pub fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}
