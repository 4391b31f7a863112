//! Workloads: JSON lines, one prompt each, frozen by a fingerprint.

use crate::client::ChatRequest;
use crate::fsx;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

/// Prompts with a fingerprint of the bytes they came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The prompts, in order.
    pub requests: Vec<ChatRequest>,
    /// SHA-256 of the file.
    pub sha256: String,
}

/// A workload that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is no prompt.
    #[error("{path}:{line}: {message}")]
    Line {
        /// The file.
        path: String,
        /// 1-based.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// It holds no prompt.
    #[error("{path} holds no prompt")]
    Empty {
        /// The file.
        path: String,
    },
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    messages: Option<Value>,
    #[serde(default)]
    max_tokens: Option<u32>,
}

impl Workload {
    /// Reads a JSONL file. `max_tokens` holds where a line has none of its own, and is
    /// the limit where it has a larger one.
    ///
    /// # Errors
    /// The file cannot be read, a line is no prompt, or there is none.
    pub fn read(path: &Path, max_tokens: u32) -> Result<Self, WorkloadError> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|source| WorkloadError::Read { path: name.clone(), source })?;
        Workload::parse(&bytes, &name, max_tokens)
    }

    /// The pure part of [`Workload::read`].
    ///
    /// # Errors
    /// A line is no prompt, or there is none.
    pub fn parse(bytes: &[u8], name: &str, max_tokens: u32) -> Result<Self, WorkloadError> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut requests = Vec::new();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let fault = |message: String| WorkloadError::Line { path: name.to_owned(), line: number, message };
            let line: Line = serde_json::from_str(line).map_err(|error| fault(error.to_string()))?;
            let messages = match (line.messages, line.prompt) {
                (Some(messages @ Value::Array(_)), _) => messages,
                (None, Some(prompt)) if !prompt.is_empty() => json!([{"role": "user", "content": prompt}]),
                _ => return Err(fault("needs `prompt` (a text) or `messages` (a list)".to_owned())),
            };
            let id = match line.id {
                Some(Value::String(id)) => id,
                Some(id) => id.to_string(),
                None => format!("line-{number}"),
            };
            requests.push(ChatRequest {
                id,
                messages,
                max_tokens: line.max_tokens.unwrap_or(max_tokens).min(max_tokens),
            });
        }
        if requests.is_empty() {
            return Err(WorkloadError::Empty { path: name.to_owned() });
        }
        Ok(Workload { requests, sha256: fsx::sha256(bytes) })
    }

    /// The first `count` requests, beginning again at the end of the list. 0: the list once.
    pub fn take(&self, count: u32) -> Vec<ChatRequest> {
        let count = if count == 0 { self.requests.len() } else { count as usize };
        self.requests.iter().cycle().take(count).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_prompt_is_placed() {
        let bytes = "{\"id\":\"a\",\"prompt\":\"hi\",\"max_tokens\":4}\n\n{\"id\":2,\"prompt\":\"\"}\n".as_bytes();
        let error = Workload::parse(bytes, "w.jsonl", 32).unwrap_err();
        assert_eq!(error.to_string(), "w.jsonl:3: needs `prompt` (a text) or `messages` (a list)");
        assert!(Workload::parse(b"\n", "w.jsonl", 32).is_err());
    }

    #[test]
    fn requests_repeat_and_the_limit_holds() {
        let workload =
            Workload::parse(b"{\"prompt\":\"a\",\"max_tokens\":400}\n{\"prompt\":\"b\",\"max_tokens\":2}", "w", 32)
                .unwrap();
        let ids: Vec<(String, u32)> =
            workload.take(3).into_iter().map(|request| (request.id, request.max_tokens)).collect();
        assert_eq!(ids, [("line-1".to_owned(), 32), ("line-2".to_owned(), 2), ("line-1".to_owned(), 32)]);
        assert_eq!(workload.take(0).len(), 2);
    }
}
