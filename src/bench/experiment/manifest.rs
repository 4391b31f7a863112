//! The frozen manifest: its fingerprint, and what differs between two. Pure.

use super::record::Manifest;
use crate::fsx;
use serde_json::Value;

impl Manifest {
    /// The same manifest with its fingerprint.
    #[must_use]
    pub fn frozen(mut self) -> Self {
        self.fingerprint = String::new();
        let text = serde_json::to_string(&self).unwrap_or_default();
        self.fingerprint = fsx::sha256(text.as_bytes());
        self
    }

    /// The first members in which another manifest differs: path, ours, theirs.
    pub fn differences(&self, other: &Manifest) -> Vec<(String, String, String)> {
        let value = |manifest: &Manifest| serde_json::to_value(manifest).unwrap_or_default();
        let mut found = Vec::new();
        differ("", &value(self), &value(other), &mut found);
        found.retain(|(path, ..)| path != "fingerprint");
        found
    }
}

fn differ(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<(String, String, String)>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                differ(&below(name), value, b.get(name).unwrap_or(&Value::Null), found);
            }
            for (name, value) in b.iter().filter(|(name, _)| !a.contains_key(*name)) {
                differ(&below(name), &Value::Null, value, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (ours, theirs)) in a.iter().zip(b).enumerate() {
                let name = ours["name"].as_str().map_or_else(|| index.to_string(), str::to_owned);
                differ(&below(&name), ours, theirs, found);
            }
        }
        (a, b) if a != b => found.push((path.to_owned(), shown(a), shown(b))),
        _ => {}
    }
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if text.chars().count() > 60 { text.chars().take(60).chain("…".chars()).collect() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::record::ExperimentRecord;
    use super::*;

    fn example() -> Manifest {
        let text = include_str!("../../../fixtures/experiments/concurrency.experiment.json");
        serde_json::from_str::<ExperimentRecord>(text).unwrap().manifest
    }

    #[test]
    fn a_changed_member_changes_the_fingerprint_and_is_named() {
        let one = example().frozen();
        let mut other = one.clone();
        other.arms[1].model.sha256 = Some("x".to_owned());
        other.machine.driver = Some("550".to_owned());
        let other = other.frozen();
        assert_eq!(one.fingerprint, example().frozen().fingerprint);
        assert_ne!(one.fingerprint, other.fingerprint);
        let paths: Vec<String> = one.differences(&other).into_iter().map(|(path, ..)| path).collect();
        assert_eq!(paths, ["arms.c2.model.sha256", "machine.driver"]);
    }
}
