//! A result as the rules see it: what is there and of the right type, nothing else.
//! Whether the rest is a fault of the file is the gate's business.

use crate::results::gate::{is_placeholder, visible};
use crate::results::json::{Kind, Node};

/// One normalized result.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a>(pub &'a Node<'a>);

impl<'a> Facts<'a> {
    /// The value at a path of member names.
    pub fn node(self, path: &[&str]) -> Option<&'a Node<'a>> {
        self.0.at(path).filter(|node| !node.is_null())
    }

    /// The number at a path.
    pub fn number(self, path: &[&str]) -> Option<f64> {
        self.node(path)?.number()
    }

    /// The text at a path, if something visible stands there.
    pub fn text(self, path: &[&str]) -> Option<&'a str> {
        self.node(path)?.text().map(str::trim).filter(|text| visible(text))
    }

    /// The text at a path, unless it is a placeholder.
    pub fn recorded(self, path: &[&str]) -> Option<&'a str> {
        self.text(path).filter(|text| !is_placeholder(text))
    }

    /// Entries of the list at a path.
    pub fn list(self, path: &[&str]) -> &'a [Node<'a>] {
        self.node(path).map(Node::entries).unwrap_or_default()
    }

    /// A metric by the path that targets use: `ttft_ms.p50`, or a name among the
    /// strategy's. A latency that is one number stands for its median and its mean.
    pub fn metric(self, path: &str) -> Option<f64> {
        let steps: Vec<&str> = path.split('.').collect();
        ["metrics", "strategy_metrics"].iter().find_map(|parent| {
            let parent = self.node(&[parent])?;
            match (parent.at(&steps), steps.as_slice()) {
                (Some(node), _) => node.number(),
                (None, [name, "p50" | "mean"]) => parent.get(name)?.number(),
                _ => None,
            }
        })
    }

    /// Successful requests over all measured passes.
    pub fn samples(self) -> Option<f64> {
        self.number(&["metrics", "samples"]).or_else(|| {
            let requests = self.number(&["metrics", "successful_requests"])?;
            Some(requests * self.repeats().unwrap_or(1.0))
        })
    }

    /// Measured passes.
    pub fn repeats(self) -> Option<f64> {
        self.number(&["config", "repeats"]).or_else(|| {
            let runs = self.list(&["metrics", "per_run"]).len();
            (runs > 0).then_some(runs as f64)
        })
    }

    /// Number of the section: `66` of `66`, `"66"` and `"66_inference_performance"`.
    pub fn project(self) -> Option<u32> {
        let node = self.node(&["project"])?;
        match &node.kind {
            Kind::Number(number) => format!("{number}").parse().ok(),
            Kind::Text(text) => text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok(),
            _ => None,
        }
    }

    /// The evidence level, if it is recorded.
    pub fn level(self) -> Option<&'a str> {
        self.text(&["evidence_level"])
    }

    /// Whether a real backend was measured beyond a smoke run.
    pub fn is_real_benchmark(self) -> bool {
        self.level() == Some("real_benchmark")
    }

    /// What is claimed besides the decision, in lower case.
    pub fn claims(self) -> Vec<String> {
        self.list(&["decision", "claims"]).iter().filter_map(Node::text).map(str::to_lowercase).collect()
    }
}

/// A number as people write it: at most four decimals, no trailing zeros.
pub fn plain(number: f64) -> String {
    let text = format!("{number:.4}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
