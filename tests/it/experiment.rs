//! Experiments: their records, their files, their conclusions.

use crate::support::project;
use std::fs;
use verify::bench::experiment::record::ExperimentRecord;

#[test]
fn the_example_of_a_record_is_one() {
    let text = fs::read_to_string(project("fixtures/experiments/concurrency.experiment.json")).expect("the example");
    let record: ExperimentRecord = serde_json::from_str(&text).expect("a record");
    let again: serde_json::Value = serde_json::to_value(&record).expect("plain data");
    let once: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let members = |value: &serde_json::Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&once["passes"][0]["requests"][0]), members(&again["passes"][0]["requests"][0]));
    assert_eq!(members(&once["arms"][0]["memory"]), ["static", "peak", "growth", "interval_ms", "samples"]);
    assert_eq!(record.passes.len(), 18);
}
