//! The members the contract speaks of, one row each: what they must be and how to
//! mend them.

use crate::model::Text;

/// What a member must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand {
    /// Text with a visible character.
    Name,
    /// A whole number, at least 1.
    Count,
    /// A positive number; null and (with a warning) absence are allowed.
    Amount,
    /// A number that is not negative; null and (with a warning) absence are allowed.
    Rate,
    /// A latency that must be there.
    Latency,
    /// A latency that may be absent, null, empty or zero.
    OptionalLatency,
}

/// One member.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) demand: Demand,
    pub(super) remedy: Text,
}

const fn field(name: &'static str, demand: Demand, en: &'static str, zh: &'static str) -> Field {
    Field { name, demand, remedy: Text { en, zh } }
}

/// Members of `config`.
pub(super) static CONFIG: &[Field] = &[
    field(
        "model",
        Demand::Name,
        "write the model that was loaded, such as \"Qwen/Qwen2.5-0.5B-Instruct\"",
        "请写实际加载的模型，例如 \"Qwen/Qwen2.5-0.5B-Instruct\"",
    ),
    field(
        "backend",
        Demand::Name,
        "write the engine that served, such as \"vllm\" or \"llama.cpp\"",
        "请写提供服务的引擎，例如 \"vllm\" 或 \"llama.cpp\"",
    ),
    field(
        "dtype",
        Demand::Name,
        "write the precision that really ran, such as \"bfloat16\" or \"q8_0\"; the server's log names it",
        "请写实际运行的精度，例如 \"bfloat16\" 或 \"q8_0\"；服务端日志里有",
    ),
    field("prompt_tokens", Demand::Amount, NULL_EN, NULL_ZH),
    field("generated_tokens", Demand::Amount, NULL_EN, NULL_ZH),
    field("batch", Demand::Count, "write the batch size, a whole number from 1", "请写批大小，从 1 起的整数"),
    field(
        "concurrency",
        Demand::Count,
        "write the number of requests in flight, a whole number from 1",
        "请写同时在途的请求数，从 1 起的整数",
    ),
    field(
        "cache_policy",
        Demand::Name,
        "write whether prefixes were cached, such as \"off\" or \"prefix_cache\"",
        "请写是否缓存前缀，例如 \"off\" 或 \"prefix_cache\"",
    ),
];

const NULL_EN: &str = "write the measured value, or null when it was not measured";
const NULL_ZH: &str = "请写测得的值；没有测量则写 null";
const MEASURE_EN: &str =
    "measure it: a number of milliseconds, or an object with at least one of mean, min, p50, p90, p95, p99, max";
const MEASURE_ZH: &str = "请测量：写毫秒数，或写对象，其中至少有 mean、min、p50、p90、p95、p99、max 之一";

/// Members of `metrics`.
pub(super) static METRICS: &[Field] = &[
    field("ttft_ms", Demand::Latency, MEASURE_EN, MEASURE_ZH),
    field("tpot_ms", Demand::OptionalLatency, NULL_EN, NULL_ZH),
    field("e2e_latency_ms", Demand::Latency, MEASURE_EN, MEASURE_ZH),
    field("throughput_tokens_per_s", Demand::Rate, NULL_EN, NULL_ZH),
    field("p99_ms", Demand::Amount, NULL_EN, NULL_ZH),
    field("peak_memory_mb", Demand::Amount, NULL_EN, NULL_ZH),
];

/// How to write a decision.
pub(super) const DECISION: Text = Text {
    en: "write an object: {\"decision\": \"tune\", \"reason\": \"…\", \"next_action\": \"…\"}",
    zh: "请写成对象：{\"decision\": \"tune\", \"reason\": \"…\", \"next_action\": \"…\"}",
};
