//! `verify report`: what was measured, for a reader. Four groups of columns that are never
//! mixed into one score, then figures, then how far the conclusion reaches.
//!
//! [`gather`] turns experiments and results into a [`Sheet`]; [`groups`] lays its cells
//! out; [`page`] draws the HTML page with the figures of [`plot`], [`text`] the terminal
//! and Markdown, [`json`] the machine form. All pure; the command reads and writes.

pub mod gather;
pub mod groups;
pub mod json;
pub mod page;
pub mod plot;
pub mod text;

use crate::model::{Lang, Localized};

/// Everything that a report shows.
#[derive(Debug, Clone, Default)]
pub struct Sheet {
    /// One per file.
    pub sources: Vec<Source>,
}

/// What one file holds.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file as the reader knows it.
    pub file: String,
    /// Name of the experiment; `None`: a single result.
    pub experiment: Option<String>,
    /// What was varied.
    pub variable: Option<String>,
    /// When, with what, on what.
    pub facts: Vec<(Localized, String)>,
    /// The arms, the baseline first; a result is one arm.
    pub arms: Vec<Arm>,
    /// Candidate minus baseline.
    pub differences: Vec<Difference>,
    /// What has to be said beside the figures.
    pub notes: Vec<Said>,
    /// Why there are no figures; `None`: there are.
    pub no_figures: Option<Localized>,
}

/// A remark: severity and text.
#[derive(Debug, Clone)]
pub struct Said {
    /// `error`, `warning` or `note`.
    pub severity: String,
    /// The arm it is about.
    pub arm: Option<String>,
    /// The rule that says it.
    pub rule: String,
    /// What.
    pub text: Localized,
}

/// One of the four groups of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// What was run.
    Configuration,
    /// How long it took.
    Time,
    /// What it occupied, scope by scope.
    Memory,
    /// How good the answers were.
    Quality,
}

impl Group {
    /// Every group, in the order of the table.
    pub const ALL: [Group; 4] = [Group::Configuration, Group::Time, Group::Memory, Group::Quality];

    /// The name in the machine form.
    pub fn name(self) -> &'static str {
        match self {
            Group::Configuration => "configuration",
            Group::Time => "time",
            Group::Memory => "memory",
            Group::Quality => "quality",
        }
    }

    /// The heading.
    pub fn title(self, lang: Lang) -> &'static str {
        match (self, lang) {
            (Group::Configuration, Lang::En) => "Configuration",
            (Group::Configuration, Lang::Zh) => "配置",
            (Group::Time, Lang::En) => "Time",
            (Group::Time, Lang::Zh) => "时间",
            (Group::Memory, Lang::En) => "Memory",
            (Group::Memory, Lang::Zh) => "内存",
            (Group::Quality, Lang::En) => "Quality",
            (Group::Quality, Lang::Zh) => "质量",
        }
    }
}

/// A value of one arm in one column.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Identifies the column.
    pub column: String,
    /// Its heading.
    pub title: Localized,
    /// What is there.
    pub value: Value,
}

/// What stands in a cell.
#[derive(Debug, Clone)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number, over passes with their range.
    Number {
        /// The number.
        value: f64,
        /// Smallest and largest pass.
        range: Option<[f64; 2]>,
    },
    /// `count` of `of`.
    Share {
        /// How many.
        count: u32,
        /// Of how many.
        of: u32,
    },
    /// Nothing, and why.
    Missing(Localized),
}

impl Value {
    /// The text of a cell; `None` where nothing is there.
    pub fn text(&self) -> Option<String> {
        match self {
            Value::Text(text) => Some(text.clone()),
            Value::Number { value, range: None } => Some(number(*value)),
            Value::Number { value, range: Some([low, high]) } => {
                Some(format!("{} [{}–{}]", number(*value), number(*low), number(*high)))
            }
            Value::Share { count, of } => Some(format!("{count}/{of}")),
            Value::Missing(_) => None,
        }
    }
}

/// A number with three to four significant digits: `0.333`, `9.47`, `93.6`, `490`, `12,345`.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    let digits = match magnitude {
        m if m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        _ => 3,
    };
    if magnitude == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    let (sign, whole) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, rest) = whole.find('.').map_or((whole, ""), |at| whole.split_at(at));
    if whole.len() < 5 {
        return text;
    }
    let grouped: Vec<&str> =
        whole.as_bytes().rchunks(3).rev().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    format!("{sign}{}{rest}", grouped.join(","))
}

/// One arm of an experiment, or one result.
#[derive(Debug, Clone)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// Cells of each group, in the order of [`Group::ALL`].
    pub cells: [Vec<Cell>; 4],
    /// The decision and its limits.
    pub conclusion: Conclusion,
    /// What the figures are drawn from; empty for a result.
    pub series: Series,
}

/// A decision and how far it reaches.
#[derive(Debug, Clone)]
pub struct Conclusion {
    /// What the evidence rules leave of it.
    pub decision: String,
    /// What the file claims, where that is another thing.
    pub claimed: Option<String>,
    /// Why, and where it holds.
    pub reason: Localized,
    /// What it does not cover.
    pub not_covered: Option<Localized>,
    /// The rules that limit it.
    pub rules: Vec<String>,
    /// What would raise it.
    pub next_step: Option<Localized>,
}

/// What is drawn of an arm. Times in milliseconds unless the name says otherwise.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// TTFT of every successful measured request, ascending.
    pub ttft_ms: Vec<f64>,
    /// E2E of every successful measured request, ascending.
    pub e2e_ms: Vec<f64>,
    /// Requests of one pass.
    pub timeline: Timeline,
    /// Memory, scope by scope.
    pub memory: Vec<MemoryLine>,
    /// In flight, in a closed loop.
    pub concurrency: Option<u32>,
    /// Medians of the passes with their range: TTFT, E2E, tokens per second.
    pub at_load: [Option<[f64; 3]>; 3],
}

/// The requests of one pass, sampled where they are many.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Number of the pass.
    pub pass: u32,
    /// Requests of the pass.
    pub of: usize,
    /// Those that are shown.
    pub bars: Vec<Bar>,
}

/// One request, milliseconds from the beginning of its pass.
#[derive(Debug, Clone, Default)]
pub struct Bar {
    /// Its name.
    pub id: String,
    /// When it should have been sent.
    pub scheduled: f64,
    /// When it was sent.
    pub sent: f64,
    /// Time in the server's queue, where the server tells it.
    pub queue: Option<f64>,
    /// Sent → first token.
    pub ttft: Option<f64>,
    /// Sent → last token.
    pub e2e: Option<f64>,
    /// Why it failed.
    pub fault: Option<String>,
}

/// Memory of one scope over the measured passes of an arm, one after the other.
#[derive(Debug, Clone)]
pub struct MemoryLine {
    /// The scope.
    pub scope: Scope,
    /// One line per pass: seconds and MiB (a share for the cache).
    pub passes: Vec<Vec<(f64, f64)>>,
}

/// What a memory figure counts. Figures of two scopes never share a column or an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Resident set of the process tree.
    Rss,
    /// Proportional share of the process tree.
    Pss,
    /// Anonymous part of the resident set.
    RssAnon,
    /// Used on all GPUs by anybody.
    DeviceUsed,
    /// Used on all GPUs by the server.
    DeviceProcess,
    /// Share of the cache for keys and values in use.
    KvCache,
}

impl Scope {
    /// Every scope of an experiment.
    pub const ALL: [Scope; 6] =
        [Scope::Pss, Scope::Rss, Scope::RssAnon, Scope::DeviceProcess, Scope::DeviceUsed, Scope::KvCache];

    /// The word in results.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Rss => "rss",
            Scope::Pss => "pss",
            Scope::RssAnon => "rss_anon",
            Scope::DeviceUsed => "device_used",
            Scope::DeviceProcess => "device_process",
            Scope::KvCache => "kv_cache_usage",
        }
    }

    /// What a person calls it.
    pub fn title(self) -> Localized {
        let (en, zh) = match self {
            Scope::Rss => ("RSS, process tree", "RSS（进程树）"),
            Scope::Pss => ("PSS, process tree", "PSS（进程树）"),
            Scope::RssAnon => ("anonymous RSS", "匿名 RSS"),
            Scope::DeviceUsed => ("GPU, everybody", "GPU（所有进程）"),
            Scope::DeviceProcess => ("GPU, the server", "GPU（服务进程）"),
            Scope::KvCache => ("KV cache in use", "KV cache 占用率"),
        };
        Localized::both(en, zh)
    }

    /// MiB, or nothing for a share.
    pub fn unit(self) -> &'static str {
        if self == Scope::KvCache { "" } else { " MiB" }
    }
}

/// Candidate minus baseline in one metric.
#[derive(Debug, Clone)]
pub struct Difference {
    /// Arm.
    pub baseline: String,
    /// Arm.
    pub candidate: String,
    /// The metric as it stands in the record.
    pub metric: String,
    /// `lower` or `higher`.
    pub better: String,
    /// Number of pairs.
    pub pairs: usize,
    /// Mean difference in the metric's unit.
    pub difference: Option<f64>,
    /// The same, relative to the baseline.
    pub relative: Option<f64>,
    /// 95 % interval, relative to the baseline.
    pub interval: Option<[f64; 2]>,
    /// What says nothing, relative to the baseline.
    pub threshold: Option<f64>,
    /// `better`, `worse` or `unclear`.
    pub verdict: &'static str,
}

/// Heading of a metric.
pub fn metric_title(metric: &str) -> String {
    let title = match metric {
        "ttft_p50_ms" => "TTFT P50",
        "tpot_p50_ms" => "TPOT P50",
        "e2e_p50_ms" => "E2E P50",
        "output_tokens_per_s" => "token/s",
        "requests_per_s" => "req/s",
        other => other,
    };
    title.to_owned()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_read_well() {
        let texts = [0.0, 0.3333, 9.4712, 93.572, 490.435, 9_999.6, 123_456.7, -12_345.0, 99.97, 1.0].map(number);
        assert_eq!(texts, ["0", "0.333", "9.47", "93.6", "490", "10,000", "123,457", "-12,345", "100", "1"]);
    }
}
