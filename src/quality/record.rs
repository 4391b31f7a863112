//! What probing leaves behind. Columns stay apart; there is no score.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When an answer was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Alone, before the load.
    Before,
    /// While other requests ran.
    UnderLoad,
    /// Alone, after the load.
    After,
}

/// How an answer holds when it is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stability {
    /// The same every time.
    Stable,
    /// The same alone, another one under load: batching flips greedy tokens.
    DiffersUnderLoad,
    /// Another one although nothing else ran.
    DiffersAlone,
    /// It was asked only once.
    NotRepeated,
}

/// How much a change of a field matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Amount, date, account tail, address: byte for byte; one changed character rejects.
    Critical,
    /// Names and ids: the same after normalisation (case, width, spaces).
    Normal,
    /// Free text: informative only.
    Informative,
}

/// `count` of `of`. An empty share (`of` = 0) was not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// How many.
    pub count: u32,
    /// Of how many.
    pub of: u32,
}

impl Share {
    /// The share, 0 to 1; `None` when nothing was measured.
    pub fn value(self) -> Option<f64> {
        (self.of > 0).then(|| f64::from(self.count) / f64::from(self.of))
    }

    /// Counts one more.
    pub fn add(&mut self, hit: bool) {
        self.of += 1;
        self.count += u32::from(hit);
    }
}

/// The quality columns of an arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmQuality {
    /// Name of the probe set.
    pub set: String,
    /// Answers that are the baseline's byte for byte (empty for the baseline itself).
    pub exact: Share,
    /// Mean length of the common prefix with the baseline's answer, as a share of it.
    pub prefix_mean: Option<f64>,
    /// Answers of structured probes that satisfy their structure.
    pub structure: Share,
    /// Critical fields that are the baseline's byte for byte.
    pub critical_fields: Share,
    /// Normal fields that are the baseline's after normalisation.
    pub normal_fields: Share,
    /// Fields with a known right value that have it.
    pub correct_fields: Share,
    /// Probes that answered the same each time when alone.
    pub stable_alone: Share,
    /// Probes that answered the same under load as alone.
    pub stable_under_load: Share,
    /// Mean negative log-probability of the generated tokens, nats; `null` when the
    /// server gives none. Comparable within one tokenizer only.
    pub log_loss: Option<f64>,
    /// Tokens behind it.
    pub log_loss_tokens: u64,
    /// Each probe.
    pub probes: Vec<ProbeRecord>,
}

/// One probe of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRecord {
    /// Name in the set.
    pub id: String,
    /// What came, by moment.
    pub answers: Vec<AnswerRecord>,
    /// How the answer holds when it is asked again.
    pub stability: Stability,
    /// Byte for byte the baseline's answer; `null` for the baseline, or when one is missing.
    pub exact: Option<bool>,
    /// Characters of the longest common prefix with the baseline's answer.
    pub prefix_chars: Option<u32>,
    /// The same as a share of the longer answer.
    pub prefix_share: Option<f64>,
    /// Whether the structure that was asked for is there; `null`: none was.
    pub structure: Option<StructureRecord>,
    /// Key fields.
    pub fields: Vec<FieldRecord>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerRecord {
    /// When.
    pub moment: Moment,
    /// The text; `null` when the request failed.
    pub text: Option<String>,
    /// Why there is none.
    pub fault: Option<String>,
    /// Mean negative log-probability of its tokens, nats.
    pub log_loss: Option<f64>,
    /// Tokens behind it.
    pub tokens: u64,
}

/// Whether an answer has the structure that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StructureRecord {
    /// It has.
    pub valid: bool,
    /// What is wrong with it.
    pub faults: Vec<String>,
}

/// One key field of one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldRecord {
    /// Its name.
    pub name: String,
    /// How much a change matters.
    pub tier: Tier,
    /// What the answer says; `null`: nothing was found.
    pub found: Option<String>,
    /// What the baseline's answer says.
    pub baseline: Option<String>,
    /// Whether both agree by the rule of the tier; `null`: there is nothing to compare.
    pub agrees: Option<bool>,
    /// Whether it is the known right value; `null`: none is known.
    pub correct: Option<bool>,
}
