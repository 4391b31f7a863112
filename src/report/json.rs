//! `verify-table/v1`: the table for programs. Every column is there; what no file records
//! is `null` with its reason.

use super::groups::{arms, columns, value};
use super::{Arm, Difference, Group, Sheet, Source, Value};
use crate::model::Lang;
use serde_json::{Map, Value as Json, json};

/// The version that stands in every table.
pub const SCHEMA_VERSION: &str = "verify-table/v1";

/// The table with conclusions and differences.
pub fn render(sheet: &Sheet) -> String {
    let rows: Vec<Json> = arms(sheet).into_iter().map(|(name, arm)| row(sheet, &name, arm)).collect();
    let sources: Vec<Json> = sheet.sources.iter().map(source).collect();
    crate::results::v1::to_text(&json!({"schema_version": SCHEMA_VERSION, "rows": rows, "sources": sources}))
}

fn row(sheet: &Sheet, name: &str, arm: &Arm) -> Json {
    let mut row = json!({"name": name});
    for group in Group::ALL {
        let cells: Map<String, Json> = columns(sheet, group)
            .into_iter()
            .map(|(id, _)| (id.clone(), cell(value(arm, group, &id).map_err(|r| r.get(Lang::En).to_owned()))))
            .collect();
        row[group.name()] = Json::Object(cells);
    }
    let known = &arm.conclusion;
    row["conclusion"] = json!({
        "decision": known.decision,
        "claimed": known.claimed,
        "reason": known.reason.get(Lang::En),
        "not_covered": known.not_covered.as_ref().map(|text| text.get(Lang::En)),
        "rules": known.rules,
        "next_step": known.next_step.as_ref().map(|text| text.get(Lang::En)),
    });
    row
}

fn cell(value: Result<&Value, String>) -> Json {
    match value {
        Ok(Value::Text(text)) => json!({"value": text}),
        Ok(Value::Number { value, range: None }) => json!({"value": value}),
        Ok(Value::Number { value, range: Some([low, high]) }) => json!({"value": value, "min": low, "max": high}),
        Ok(Value::Share { count, of }) => {
            json!({"value": f64::from(*count) / f64::from((*of).max(1)), "count": count, "of": of})
        }
        Ok(Value::Missing(reason)) => json!({"value": null, "reason": reason.get(Lang::En)}),
        Err(reason) => json!({"value": null, "reason": reason}),
    }
}

fn source(source: &Source) -> Json {
    let facts: Map<String, Json> =
        source.facts.iter().map(|(name, value)| (name.get(Lang::En).to_owned(), json!(value))).collect();
    let notes: Vec<Json> = source
        .notes
        .iter()
        .map(|note| json!({"rule": note.rule, "severity": note.severity, "arm": note.arm, "message": note.text.get(Lang::En)}))
        .collect();
    json!({
        "file": source.file,
        "experiment": source.experiment,
        "variable": source.variable,
        "facts": facts,
        "differences": source.differences.iter().map(difference).collect::<Vec<_>>(),
        "notes": notes,
    })
}

fn difference(known: &Difference) -> Json {
    json!({
        "baseline": known.baseline,
        "candidate": known.candidate,
        "metric": known.metric,
        "better": known.better,
        "pairs": known.pairs,
        "difference": known.difference,
        "relative": known.relative,
        "interval_relative": known.interval,
        "threshold_relative": known.threshold,
        "verdict": known.verdict,
    })
}
