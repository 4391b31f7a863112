//! `EXPERIMENT.toml`: what an experiment fixes, and the one thing that it varies. A
//! second variable is found before anything runs.

use super::record::Goodput;
use crate::config::check;
use crate::results::v1::Target;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One experiment. Paths are relative to the root; `${NAME}` in a path or an address is
/// the environment variable of that name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExperimentSpec {
    /// Name of the experiment.
    pub name: String,
    /// Backend to start, as `verify backend list` names it.
    pub backend: String,
    /// Server that is running already, instead of a backend; neither started nor stopped.
    pub base_url: String,
    /// Name of the environment variable that holds the API key.
    pub api_key_env: String,
    /// The model: a folder, a file, or an id. Empty: the backend's own.
    pub model: String,
    /// Precision of the weights, where the server does not state it.
    pub precision: String,
    /// Features of the backend that every arm has, as its profile names them.
    pub features: Vec<String>,
    /// Further arguments of the server that every arm has.
    pub args: Vec<String>,
    /// Tokens of context for each request that the server works on.
    #[serde(deserialize_with = "check::amount")]
    pub context: u32,
    /// Requests that the server works on at a time; 0: the largest concurrency of the arms.
    #[serde(deserialize_with = "check::at_a_time_or_auto")]
    pub batch: u32,
    /// JSONL file of prompts; empty: prompts are generated.
    pub workload: String,
    /// Words of a generated prompt.
    #[serde(deserialize_with = "check::amount")]
    pub prompt_words: u32,
    /// Requests of one pass; 0: the file once, or 10 generated prompts.
    #[serde(deserialize_with = "check::amount")]
    pub requests: u32,
    /// Tokens at most per answer.
    #[serde(deserialize_with = "check::amount")]
    pub max_tokens: u32,
    /// Answers go on to `max_tokens` whatever the model says, where the server knows how.
    pub ignore_eos: bool,
    /// Closed loop: requests in flight.
    #[serde(deserialize_with = "check::at_a_time")]
    pub concurrency: u32,
    /// Open loop: requests per second; then `concurrency` is not used.
    pub request_rate: Option<f64>,
    /// Arrivals of the open loop.
    pub arrival: ArrivalSpec,
    /// Whether prompts may hit the server's prefix cache.
    pub cache: CacheSpec,
    /// How tokens are chosen.
    pub decoding: DecodingSpec,
    /// Requests before the measured ones of a block, kept and not counted; 0: the
    /// concurrency, 2 at least.
    #[serde(deserialize_with = "check::amount")]
    pub warmup: u32,
    /// Measured passes per arm; a conclusion needs 3.
    #[serde(deserialize_with = "check::at_a_time")]
    pub repeats: u32,
    /// Seed of the order of the arms, of generated prompts and of arrivals.
    pub seed: u64,
    /// Seconds for one request.
    #[serde(deserialize_with = "check::seconds")]
    pub timeout_s: f64,
    /// Probes of quality: `builtin`, `builtin-en`, `builtin-zh`, `none`, or a TOML file.
    pub probes: String,
    /// What a request has to keep to count as good.
    pub goodput: Goodput,
    /// What quality has to keep.
    pub quality: QualitySpec,
    /// What a candidate has to reach to be accepted.
    pub decision: DecisionSpec,
    /// The one variable and its arms.
    pub vary: Vary,
}

impl Default for ExperimentSpec {
    fn default() -> Self {
        ExperimentSpec {
            name: String::new(),
            backend: String::new(),
            base_url: String::new(),
            api_key_env: String::new(),
            model: String::new(),
            precision: String::new(),
            features: Vec::new(),
            args: Vec::new(),
            context: 2048,
            batch: 0,
            workload: String::new(),
            prompt_words: 64,
            requests: 0,
            max_tokens: 32,
            ignore_eos: false,
            concurrency: 1,
            request_rate: None,
            arrival: ArrivalSpec::Poisson,
            cache: CacheSpec::Off,
            decoding: DecodingSpec::default(),
            warmup: 0,
            repeats: 3,
            seed: 0,
            timeout_s: 120.0,
            probes: "builtin".to_owned(),
            goodput: Goodput::default(),
            quality: QualitySpec::default(),
            decision: DecisionSpec::default(),
            vary: Vary::default(),
        }
    }
}

/// Arrivals of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArrivalSpec {
    /// At equal distances.
    Constant,
    /// At random, as from many independent users.
    Poisson,
}

/// Whether prompts may hit the server's prefix cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CacheSpec {
    /// They may not: the server's cache is switched off where the backend can.
    Off,
    /// They may.
    On,
}

/// How tokens are chosen. Only greedy decoding can be compared token by token.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecodingSpec {
    /// The only value is 0.
    pub temperature: f64,
}

/// What quality has to keep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QualitySpec {
    /// What `floor` is about: `exact` (share of answers that are the baseline's),
    /// `structure` (share of valid structures), `fields` (share of critical fields that
    /// are the baseline's), `log_loss` (nats per token, lower is better).
    pub metric: QualityMetric,
    /// The limit; without one nothing is accepted.
    pub floor: Option<f64>,
}

impl Default for QualitySpec {
    fn default() -> Self {
        QualitySpec { metric: QualityMetric::Exact, floor: None }
    }
}

/// A column of quality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QualityMetric {
    /// Answers that are the baseline's byte for byte.
    Exact,
    /// Answers with the structure that was asked for.
    Structure,
    /// Critical fields that are the baseline's.
    Fields,
    /// Mean negative log-probability of generated tokens.
    LogLoss,
}

/// What a candidate has to reach to be accepted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecisionSpec {
    /// `interactive` or `batch`: which figures count first.
    pub objective: String,
    /// Peak memory at most, MiB, in the scope of the measurement.
    pub peak_memory_mb: Option<f64>,
    /// Targets, as result files have them.
    pub targets: Vec<Target>,
}

/// The one variable and its arms; the first arm is the baseline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Vary {
    /// The variable.
    pub variable: Option<Variable>,
    /// The arms, two at least.
    pub arm: Vec<ArmSpec>,
}

/// What an experiment can vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Variable {
    /// Words of the prompts, or tokens of the answers.
    Length,
    /// Precision in which the server computes (arguments such as `--dtype`).
    Precision,
    /// The file of the weights.
    Quantization,
    /// Requests in flight, or their rate.
    Concurrency,
    /// The prefix cache.
    Cache,
    /// Speculative decoding.
    Speculation,
    /// How the server orders and batches requests (its arguments).
    Scheduler,
}

impl Variable {
    /// The word in files.
    pub fn name(self) -> &'static str {
        match self {
            Variable::Length => "length",
            Variable::Precision => "precision",
            Variable::Quantization => "quantization",
            Variable::Concurrency => "concurrency",
            Variable::Cache => "cache",
            Variable::Speculation => "speculation",
            Variable::Scheduler => "scheduler",
        }
    }

    /// Keys of an arm that belong to it.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Variable::Length => &["prompt_words", "max_tokens", "workload"],
            Variable::Precision => &["precision", "args", "model"],
            Variable::Quantization => &["model", "precision"],
            Variable::Concurrency => &["concurrency", "request_rate"],
            Variable::Cache => &["cache"],
            Variable::Speculation => &["speculation", "args"],
            Variable::Scheduler => &["batch", "args"],
        }
    }

    /// The variable that a key belongs to first of all.
    fn of_key(key: &str) -> Option<Variable> {
        Some(match key {
            "prompt_words" | "max_tokens" | "workload" => Variable::Length,
            "precision" => Variable::Precision,
            "model" => Variable::Quantization,
            "concurrency" | "request_rate" => Variable::Concurrency,
            "cache" => Variable::Cache,
            "speculation" => Variable::Speculation,
            "batch" | "args" => Variable::Scheduler,
            _ => return None,
        })
    }
}

/// One arm: its name and what it changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ArmSpec {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Variable `length`: words of a generated prompt.
    pub prompt_words: Option<u32>,
    /// Variable `length`: tokens at most per answer.
    pub max_tokens: Option<u32>,
    /// Variable `length`: another file of prompts.
    pub workload: Option<String>,
    /// Variable `precision` or `quantization`: what it is, where the server does not state it.
    pub precision: Option<String>,
    /// Variable `quantization`: the file of the weights.
    pub model: Option<String>,
    /// Variable `concurrency`: requests in flight.
    pub concurrency: Option<u32>,
    /// Variable `concurrency`: requests per second.
    pub request_rate: Option<f64>,
    /// Variable `cache`.
    pub cache: Option<CacheSpec>,
    /// Variable `speculation`: the backend's feature of that name.
    pub speculation: Option<CacheSpec>,
    /// Variable `scheduler`: requests that the server works on at a time.
    pub batch: Option<u32>,
    /// Variable `scheduler`, `precision` or `speculation`: further arguments of the server.
    pub args: Option<Vec<String>>,
}

/// A fault of the experiment as a whole, in both languages: message and advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecFault {
    /// What is wrong.
    pub message: [String; 2],
    /// What to do.
    pub hint: [String; 2],
}

fn fault(en: impl Into<String>, zh: impl Into<String>, hint_en: &str, hint_zh: &str) -> SpecFault {
    SpecFault { message: [en.into(), zh.into()], hint: [hint_en.to_owned(), hint_zh.to_owned()] }
}

impl ArmSpec {
    /// What it sets, by key, as comparable text.
    fn overrides(&self) -> BTreeMap<&'static str, String> {
        let shown = |value: Option<String>, key: &'static str| value.map(|value| (key, value));
        let onoff = |value: Option<CacheSpec>| value.map(|value| onoff(value).to_owned());
        [
            shown(self.prompt_words.map(|value| value.to_string()), "prompt_words"),
            shown(self.max_tokens.map(|value| value.to_string()), "max_tokens"),
            shown(self.workload.clone(), "workload"),
            shown(self.precision.clone(), "precision"),
            shown(self.model.clone(), "model"),
            shown(self.concurrency.map(|value| value.to_string()), "concurrency"),
            shown(self.request_rate.map(|value| value.to_string()), "request_rate"),
            shown(onoff(self.cache), "cache"),
            shown(onoff(self.speculation), "speculation"),
            shown(self.batch.map(|value| value.to_string()), "batch"),
            shown(self.args.as_ref().map(|args| args.join(" ")), "args"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The value of the variable as a person reads it; what is not set is the experiment's.
    pub fn value(&self, variable: Variable, spec: &ExperimentSpec) -> String {
        let mine: Vec<String> = self
            .overrides()
            .into_iter()
            .filter(|(key, _)| variable.keys().contains(key))
            .map(|(key, value)| match key {
                "model" => file_name(&value),
                "prompt_words" => format!("{value} words"),
                "max_tokens" => format!("{value} tokens out"),
                "request_rate" => format!("{value}/s"),
                _ => value,
            })
            .collect();
        match (mine.is_empty(), variable) {
            (false, _) => mine.join(" "),
            (true, Variable::Concurrency) => spec.concurrency.to_string(),
            (true, Variable::Cache) => onoff(spec.cache).to_owned(),
            (true, Variable::Speculation) => "off".to_owned(),
            (true, _) => "default".to_owned(),
        }
    }
}

/// The word of a switch.
pub(crate) fn onoff(value: CacheSpec) -> &'static str {
    match value {
        CacheSpec::On => "on",
        CacheSpec::Off => "off",
    }
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> String {
    path.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or(path).to_owned()
}

impl ExperimentSpec {
    /// Checks what TOML cannot: one variable, arms that differ in it, a server, greedy
    /// decoding.
    ///
    /// # Errors
    /// The first fault, with advice.
    pub fn check(&self) -> Result<Variable, SpecFault> {
        let Some(variable) = self.vary.variable else {
            return Err(fault(
                "[vary] names no `variable`",
                "[vary] 没有写明 `variable`",
                "one of length, precision, quantization, concurrency, cache, speculation, scheduler",
                "可选 length、precision、quantization、concurrency、cache、speculation、scheduler",
            ));
        };
        self.check_server()?;
        self.check_arms(variable)?;
        if self.decoding.temperature != 0.0 {
            return Err(fault(
                format!("temperature {} cannot be compared token by token", self.decoding.temperature),
                format!("temperature {} 无法逐 token 比较", self.decoding.temperature),
                "leave it out: answers are greedy (temperature 0)",
                "去掉它即可：回答一律贪心解码（temperature 0）",
            ));
        }
        if self.request_rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            return Err(fault(
                "`request_rate` must be more than 0",
                "`request_rate` 必须大于 0",
                "give requests per second, such as 2.5",
                "请写每秒请求数，例如 2.5",
            ));
        }
        Ok(variable)
    }

    fn check_server(&self) -> Result<(), SpecFault> {
        if self.backend.is_empty() == self.base_url.is_empty() {
            return Err(fault(
                "give either `backend` or `base_url`",
                "`backend` 与 `base_url` 必须二选一",
                "`backend = \"cpu\"` starts a small real model on the CPU",
                "`backend = \"cpu\"` 会在 CPU 上启动一个真实的小模型",
            ));
        }
        if self.max_tokens == 0 || self.context == 0 || (self.workload.is_empty() && self.prompt_words == 0) {
            return Err(fault(
                "`max_tokens`, `context` and `prompt_words` must be more than 0",
                "`max_tokens`、`context`、`prompt_words` 必须大于 0",
                "leave them out for the defaults",
                "不写则取默认值",
            ));
        }
        Ok(())
    }

    fn check_arms(&self, variable: Variable) -> Result<(), SpecFault> {
        let arms = &self.vary.arm;
        if arms.len() < 2 {
            return Err(fault(
                format!("[vary] has {} arm(s); a comparison needs two", arms.len()),
                format!("[vary] 只有 {} 组，比较至少需要两组", arms.len()),
                "add a [[vary.arm]]; the first one is the baseline",
                "请增加 [[vary.arm]]；第一组是基线",
            ));
        }
        for (index, arm) in arms.iter().enumerate() {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if arm.name.is_empty() || !arm.name.chars().all(plain) || arm.name.starts_with('.') {
                return Err(fault(
                    format!("arm {} has the name `{}`", index + 1, arm.name),
                    format!("第 {} 组的名字是 `{}`", index + 1, arm.name),
                    "a name of letters, digits, `-`, `_` and `.`: it becomes a file name",
                    "名字请用字母、数字、`-`、`_`、`.`：它会成为文件名",
                ));
            }
            if arms[..index].iter().any(|other| other.name == arm.name) {
                return Err(fault(
                    format!("two arms are called `{}`", arm.name),
                    format!("有两组都叫 `{}`", arm.name),
                    "give each arm a name of its own",
                    "请给每组不同的名字",
                ));
            }
        }
        one_variable(variable, arms)?;
        for (index, arm) in arms.iter().enumerate() {
            if let Some(other) = arms[..index].iter().find(|other| other.overrides() == arm.overrides()) {
                return Err(fault(
                    format!("arms `{}` and `{}` do not differ", other.name, arm.name),
                    format!("`{}` 与 `{}` 两组没有差别", other.name, arm.name),
                    &format!("set {} in them", variable.keys().join(" or ")),
                    &format!("请在各组中设置 {}", variable.keys().join(" 或 ")),
                ));
            }
        }
        Ok(())
    }

    /// Replaces `${NAME}` in addresses and paths.
    ///
    /// # Errors
    /// The name of a variable that is not set.
    pub fn expand(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<(), String> {
        let fill = |text: &mut String| -> Result<(), String> {
            while let Some(start) = text.find("${") {
                let Some(length) = text[start..].find('}') else { return Ok(()) };
                let name = text[start + 2..start + length].to_owned();
                let value = variable(&name).filter(|value| !value.contains("${")).ok_or_else(|| name.clone())?;
                text.replace_range(start..=start + length, &value);
            }
            Ok(())
        };
        for text in [&mut self.model, &mut self.workload, &mut self.base_url, &mut self.probes] {
            fill(text)?;
        }
        for arm in &mut self.vary.arm {
            for text in [&mut arm.model, &mut arm.workload].into_iter().flatten() {
                fill(text)?;
            }
            arm.args.iter_mut().flatten().try_for_each(fill)?;
        }
        self.args.iter_mut().try_for_each(fill)
    }
}

/// Whether arms set only what belongs to the declared variable.
fn one_variable(variable: Variable, arms: &[ArmSpec]) -> Result<(), SpecFault> {
    for arm in arms {
        let undeclared = arm.overrides().into_keys().find(|key| !variable.keys().contains(key));
        if let Some(key) = undeclared {
            let other = Variable::of_key(key).map_or(key, Variable::name);
            let declared = variable.name();
            return Err(fault(
                format!(
                    "arm `{}` changes two variables: {declared}, which is declared, and {other} (`{key}`)",
                    arm.name
                ),
                format!("`{}` 组改变了两个变量：声明的 {declared}，以及 {other}（`{key}`）", arm.name),
                &format!(
                    "move `{key}` to the experiment, for all arms alike, or make {other} an experiment of its own"
                ),
                &format!("请把 `{key}` 移到实验一级，使各组相同；或为 {other} 另做一个实验"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ExperimentSpec {
        toml::from_str(text).unwrap()
    }

    const HEAD: &str = "name = 'x'\nbackend = 'cpu'\n[vary]\nvariable = 'cache'\n";

    #[test]
    fn a_second_variable_is_named_beside_the_declared_one() {
        let spec = parse(&format!(
            "{HEAD}[[vary.arm]]\nname='a'\ncache='off'\n[[vary.arm]]\nname='b'\ncache='on'\nconcurrency=4\n"
        ));
        let fault = spec.check().unwrap_err();
        assert!(fault.message[0].contains("cache, which is declared, and concurrency (`concurrency`)"), "{fault:?}");
        assert!(fault.message[1].contains("cache") && fault.message[1].contains("concurrency"));
        let spec = parse(&format!("{HEAD}[[vary.arm]]\nname='a'\ncache='off'\n[[vary.arm]]\nname='b'\ncache='on'\n"));
        assert_eq!(spec.check(), Ok(Variable::Cache));
    }

    #[test]
    fn arms_must_be_two_and_differ() {
        let fault = |text: &str| parse(&format!("{HEAD}{text}")).check().unwrap_err().message[0].clone();
        assert!(fault("[[vary.arm]]\nname='a'\n").contains("needs two"));
        assert!(
            fault("[[vary.arm]]\nname='a'\ncache='on'\n[[vary.arm]]\nname='b'\ncache='on'\n").contains("do not differ")
        );
        assert!(fault("[[vary.arm]]\nname='a'\n[[vary.arm]]\nname='a'\ncache='on'\n").contains("two arms"));
        assert!(fault("[[vary.arm]]\nname='../a'\n[[vary.arm]]\nname='b'\ncache='on'\n").contains("../a"));
    }

    #[test]
    fn sampling_is_refused_and_so_is_a_missing_server() {
        let arms = "[vary]\nvariable='cache'\n[[vary.arm]]\nname='a'\n[[vary.arm]]\nname='b'\ncache='on'\n";
        let check = |head: &str| parse(&format!("{head}{arms}")).check();
        assert!(check("backend='cpu'\ndecoding={temperature=0.7}\n").unwrap_err().message[0].contains("0.7"));
        assert!(check("").is_err());
        assert!(check("backend='cpu'\nbase_url='http://h'\n").is_err());
        assert!(check("backend='cpu'\n").is_ok());
    }

    #[test]
    fn paths_take_variables_of_the_environment() {
        let mut spec = parse("model='${M}/a.gguf'\n[[vary.arm]]\nname='a'\nmodel='${M}/b.gguf'\n");
        spec.expand(|name| (name == "M").then(|| "models".to_owned())).unwrap();
        assert_eq!((spec.model.as_str(), spec.vary.arm[0].model.as_deref()), ("models/a.gguf", Some("models/b.gguf")));
        let mut spec = parse("workload='${NOT_SET}/w'\n");
        assert_eq!(spec.expand(|_| None), Err("NOT_SET".to_owned()));
    }
}
