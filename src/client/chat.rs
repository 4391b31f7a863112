//! The OpenAI chat format: the request we send and the members of an answer we look at.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One request of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// Name in the workload.
    pub id: String,
    /// `messages` of the request.
    pub messages: Value,
    /// Tokens at most.
    pub max_tokens: u32,
}

/// Which of the two routes of the OpenAI format is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// `/v1/chat/completions`.
    #[default]
    Chat,
    /// `/v1/completions`: the prompt is the text of the messages.
    Completions,
}

impl Api {
    /// The route.
    pub fn route(self) -> &'static str {
        match self {
            Api::Chat => "/v1/chat/completions",
            Api::Completions => "/v1/completions",
        }
    }
}

/// What every request of a run asks for besides its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked {
    /// The route.
    pub api: Api,
    /// Token counts on every chunk (`continuous_usage_stats`), where the server knows them.
    pub continuous_usage: bool,
    /// The log-probability of every generated token.
    pub logprobs: bool,
    /// No end before `max_tokens` (`ignore_eos`), where the server knows it.
    pub ignore_eos: bool,
}

impl ChatRequest {
    /// One user message.
    pub fn prompt(id: impl Into<String>, text: &str, max_tokens: u32) -> Self {
        ChatRequest { id: id.into(), messages: json!([{"role": "user", "content": text}]), max_tokens }
    }

    /// The streamed request as bytes: greedy, with usage at the end.
    pub fn body(&self, model: &str, asked: Asked) -> Vec<u8> {
        let mut options = json!({"include_usage": true});
        if asked.continuous_usage {
            options["continuous_usage_stats"] = json!(true);
        }
        let mut body = json!({"model": model});
        match asked.api {
            Api::Chat => body["messages"] = self.messages.clone(),
            Api::Completions => body["prompt"] = json!(self.text()),
        }
        body["max_tokens"] = json!(self.max_tokens);
        body["temperature"] = json!(0);
        body["stream"] = json!(true);
        body["stream_options"] = options;
        if asked.logprobs {
            body["logprobs"] = if asked.api == Api::Chat { json!(true) } else { json!(1) };
        }
        if asked.ignore_eos {
            body["ignore_eos"] = json!(true);
        }
        body.to_string().into_bytes()
    }

    /// The text of the messages, one after the other.
    fn text(&self) -> String {
        let contents = self.messages.as_array().into_iter().flatten().map(|message| &message["content"]);
        contents.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
    }

    /// The request of the next turn: this one, its answer, and what the user says then.
    #[must_use]
    pub fn next_turn(&self, answer: &str, next: &ChatRequest) -> ChatRequest {
        let mut messages = self.messages.as_array().cloned().unwrap_or_default();
        messages.push(json!({"role": "assistant", "content": answer}));
        messages.extend(next.messages.as_array().cloned().unwrap_or_default());
        ChatRequest { messages: Value::Array(messages), ..next.clone() }
    }
}

impl ChatRequest {
    /// The same request with a text before its first message: no prefix of it is cached.
    pub fn with_changed_prefix(&self, prefix: &str) -> Self {
        let mut changed = self.clone();
        if let Some(Value::String(content)) = changed.messages.pointer_mut("/0/content") {
            content.insert_str(0, prefix);
        }
        changed
    }
}

/// Token counts as the server gives them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens generated.
    pub completion_tokens: Option<u64>,
    /// Prompt tokens that came from the cache.
    pub cached_tokens: Option<u64>,
}

/// A chunk of a stream, or a whole answer.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Answer {
    #[serde(default)]
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<RawUsage>,
    #[serde(default)]
    pub(super) error: Option<Value>,
    #[serde(default)]
    pub(super) timings: Option<Timings>,
}

/// llama.cpp's own times of a request.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Timings {
    #[serde(default)]
    pub(super) prompt_ms: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    message: Option<Delta>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
    #[serde(default)]
    logprobs: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<Value>,
    #[serde(default)]
    reasoning_content: Option<Value>,
    #[serde(default)]
    reasoning: Option<Value>,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Debug, Default, Deserialize)]
struct ToolCall {
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Debug, Default, Deserialize)]
struct Function {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct RawUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Debug, Default, Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

/// What a chunk brings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bearing {
    /// Visible text.
    pub(super) visible: String,
    /// Reasoning text.
    pub(super) hidden: String,
    /// A tool call with a name or arguments.
    pub(super) tool: bool,
}

impl Bearing {
    /// Whether a token came with it: text, reasoning, or a tool call, never an empty one.
    pub(super) fn any(&self) -> bool {
        !self.visible.is_empty() || !self.hidden.is_empty() || self.tool
    }
}

impl Answer {
    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage.as_ref().map(|usage| Usage {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            cached_tokens: usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens),
        })
    }

    /// Log-probabilities of the tokens of this chunk, in both forms of the format.
    pub(super) fn logprobs(&self) -> impl Iterator<Item = f64> {
        let lists = self.choices.iter().flatten().filter_map(|choice| choice.logprobs.as_ref()).flat_map(|logprobs| {
            [&logprobs["content"], &logprobs["token_logprobs"]].into_iter().filter_map(Value::as_array)
        });
        lists.flatten().filter_map(|token| token.as_f64().or_else(|| token["logprob"].as_f64()))
    }

    pub(super) fn bearing(&self) -> Bearing {
        let mut bearing = Bearing::default();
        for choice in self.choices.iter().flatten() {
            bearing.visible.push_str(choice.text.as_deref().unwrap_or_default());
            for delta in [&choice.delta, &choice.message].into_iter().flatten() {
                let text =
                    |value: &Option<Value>| value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
                bearing.visible.push_str(&text(&delta.content));
                bearing.hidden.push_str(&text(&delta.reasoning_content));
                bearing.hidden.push_str(&text(&delta.reasoning));
                bearing.tool |=
                    delta.tool_calls.iter().flatten().filter_map(|call| call.function.as_ref()).any(|function| {
                        [&function.name, &function.arguments].into_iter().flatten().any(|text| !text.is_empty())
                    });
            }
        }
        bearing
    }
}

/// The readable part of an error object: `{"message": …}`, or whatever it is.
pub(super) fn error_text(error: &Value) -> String {
    match error.get("message").unwrap_or(error) {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
