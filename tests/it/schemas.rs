//! The published JSON schemas are generated from the types and equal the committed
//! files. `VERIFY_UPDATE_SCHEMAS=1 cargo test schemas` rewrites them.

use crate::support::project;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use verify::bench::experiment::record::ExperimentRecord;
use verify::bench::experiment::spec::ExperimentSpec;
use verify::config::{self, Settings};
use verify::quality::ProbeFile;
use verify::render::v1::Report;
use verify::report::json::Table;

/// Every published schema: its file name below `schemas/`, and what generates it.
fn published() -> Vec<(&'static str, Value)> {
    vec![
        ("experiment-toml.schema.json", user_schema::<ExperimentSpec>("EXPERIMENT.toml")),
        ("inference-benchmark-v1.schema.json", verify::results::v1::json_schema().to_value()),
        ("probes-toml.schema.json", user_schema::<ProbeFile>("probes.toml")),
        ("verify-experiment-v1.schema.json", experiment_schema()),
        ("verify-report-v1.schema.json", report_schema()),
        ("verify-table-v1.schema.json", table_schema()),
        ("verify-toml.schema.json", settings_schema()),
    ]
}

/// What the program writes: a member that is always written is required.
fn report_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Report>().to_value()
}

/// What `verify report --format json` writes.
fn table_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Table>().to_value()
}

/// What the program writes of an experiment.
fn experiment_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<ExperimentRecord>().to_value()
}

/// A file that a user writes: nothing unknown is taken.
fn user_schema<T: schemars::JsonSchema>(title: &str) -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    schema["title"] = json!(title);
    schema
}

/// What a user may write: nothing is required, nothing unknown is taken.
fn settings_schema() -> Value {
    let settings = SchemaSettings::draft2020_12();
    let mut schema = settings.into_generator().into_root_schema_for::<Settings>().to_value();
    schema["title"] = json!("verify.toml");
    set_builtin_defaults(&mut schema);
    schema
}

/// The default that an editor shows for a key is what holds without the key: the value
/// of the built-in profile, not that of the Rust type.
fn set_builtin_defaults(schema: &mut Value) {
    let resolved = config::resolve(Path::new("no-such-folder"), None).expect("the built-in profile is valid");
    let builtin = serde_json::to_value(resolved.settings).expect("settings are plain data");
    let sections = schema["properties"].as_object_mut().expect("properties");
    let tables: Vec<(String, String)> = sections
        .iter_mut()
        .filter_map(|(section, property)| {
            property.as_object_mut()?.remove("default");
            let name = property["$ref"].as_str()?.strip_prefix("#/$defs/")?.to_owned();
            Some((section.clone(), name))
        })
        .collect();
    for (section, table) in tables {
        let keys = schema["$defs"][&table]["properties"].as_object_mut().expect("a table of keys");
        for (key, property) in keys {
            if let Some(value) = builtin[&section].get(key) {
                property["default"] = value.clone();
            }
        }
    }
}

#[test]
fn the_committed_schemas_are_the_generated_ones() {
    for (name, schema) in published() {
        let path = project("schemas").join(name);
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).expect("a schema is JSON"));
        if std::env::var_os("VERIFY_UPDATE_SCHEMAS").is_some() {
            fs::create_dir_all(project("schemas")).expect("the folder");
            fs::write(&path, &text).expect("the schema is written");
        }
        let committed = fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        assert!(committed == text, "schemas/{name} is out of date: run `VERIFY_UPDATE_SCHEMAS=1 cargo test schemas`");
    }
}

#[test]
fn every_published_schema_is_itself_valid() {
    for (name, schema) in published() {
        jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn the_schema_of_verify_toml_takes_the_template_and_both_courses() {
    let validator = jsonschema::validator_for(&settings_schema()).expect("a schema");
    let template = fs::read_to_string(project("src/commands/init.toml")).expect("the template");
    let files = [
        config::BUILTIN.to_owned(),
        template,
        fs::read_to_string(project("fixtures/course/verify.toml")).expect("the course has settings"),
        fs::read_to_string(project("fixtures/course-broken/verify.toml")).expect("the broken course has settings"),
    ];
    for text in files {
        let value = serde_json::to_value(toml::from_str::<toml::Table>(&text).expect("TOML")).expect("plain data");
        let faults: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?}\n{text}");
    }
}

#[test]
fn the_schema_of_verify_toml_refuses_what_the_program_refuses() {
    let validator = jsonschema::validator_for(&settings_schema()).expect("a schema");
    for wrong in [
        json!({"smoke": {"backned": "cpu"}}),
        json!({"answers": {"timeout_s": "10"}}),
        json!({"project": [{"id": "66"}]}),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
        let text = toml::to_string(&wrong).expect("TOML");
        assert!(toml::from_str::<Settings>(&text).is_err(), "{text}");
    }
}

#[test]
fn the_schema_of_the_report_refuses_a_report_that_lacks_something() {
    let validator = jsonschema::validator_for(&report_schema()).expect("a schema");
    let whole = json!({
        "schema_version": "verify-report/v1", "tool": {"name": "verify", "version": "0.1.0"}, "status": "fail",
        "exit_code": 1, "duration_ms": 3, "stages": [{
            "stage": "static", "status": "fail", "duration_ms": 3, "summary": {"files": 1}, "items": [],
            "findings": [{"rule": "static/syntax", "severity": "error", "message": "m", "path": "a.py", "line": 1}],
        }],
    });
    assert!(validator.is_valid(&whole));
    for pointer in ["/status", "/tool/version", "/stages/0/status", "/stages/0/findings/0/path"] {
        let mut lacking = whole.clone();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        let parent = lacking.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
        parent.remove(key).expect("a member");
        assert!(!validator.is_valid(&lacking), "{pointer} is not required");
    }
    for (pointer, wrong) in [
        ("/schema_version", json!("verify-report/v2")),
        ("/stages/0/stage", json!("smok")),
        ("/stages/0/findings/0/severity", json!("fatal")),
        ("/stages/0/findings/0/line", json!("1")),
    ] {
        let mut changed = whole.clone();
        *changed.pointer_mut(pointer).expect("a member") = wrong;
        assert!(!validator.is_valid(&changed), "{pointer} takes anything");
    }
}

#[test]
fn the_schema_of_results_takes_what_the_courses_publish_and_names_what_is_missing() {
    let validator = jsonschema::validator_for(&verify::results::v1::json_schema().to_value()).expect("a schema");
    let faults = |path: &str| -> Vec<String> {
        let text = fs::read_to_string(project("fixtures").join(path)).expect("a result");
        let result: Value = serde_json::from_str(&text).expect("JSON");
        validator.iter_errors(&result).map(|error| format!("{}: {error}", error.instance_path())).collect()
    };
    for whole in [
        "course/benchmarks/results/published/66_reference_c1.json",
        "course/benchmarks/results/published/70_reference_c4.json",
        "course-broken/benchmarks/results/69_prefix_cache.json",
        "course-broken/benchmarks/results/69_prefix_cache.baseline.json",
    ] {
        assert_eq!(faults(whole), Vec::<String>::new(), "{whole}");
    }
    let broken = faults("course-broken/benchmarks/results/published/66_missing_ttft.json");
    assert_eq!(broken, ["/normalized_result/metrics: \"ttft_ms\" is a required property"]);
}
