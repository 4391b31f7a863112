//! `verify-table/v1`: the table for programs. Every column is there; what no file records
//! is `null` with its reason.

use super::groups::{arms, columns, value};
use super::{Arm, Difference, Group, Sheet, Source, Value};
use crate::model::Lang;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The version that stands in every table.
pub const SCHEMA_VERSION: &str = "verify-table/v1";

/// The machine form of `verify report`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "verify-table/v1")]
pub struct Table {
    /// `verify-table/v1`.
    schema_version: &'static str,
    /// One per arm or result, all with the same columns.
    rows: Vec<Row>,
    /// One per file.
    sources: Vec<SourceRow>,
}

/// One arm of an experiment, or one result. The four groups never make one score.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Row {
    /// Its name.
    name: String,
    /// What was run.
    #[serde(serialize_with = "as_map")]
    #[schemars(with = "BTreeMap<String, Cell>")]
    configuration: Columns,
    /// How long it took; the unit stands in the column's name.
    #[serde(serialize_with = "as_map")]
    #[schemars(with = "BTreeMap<String, Cell>")]
    time: Columns,
    /// What it occupied, MiB, one column per scope.
    #[serde(serialize_with = "as_map")]
    #[schemars(with = "BTreeMap<String, Cell>")]
    memory: Columns,
    /// How good the answers were.
    #[serde(serialize_with = "as_map")]
    #[schemars(with = "BTreeMap<String, Cell>")]
    quality: Columns,
    /// The decision and how far it reaches.
    conclusion: Conclusion,
}

/// Columns of a group by their names, in the order of the table.
type Columns = Vec<(String, Cell)>;

/// What stands in one column.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Cell {
    /// A text, a number, or `null`.
    value: Option<CellValue>,
    /// Smallest pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<f64>,
    /// Largest pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    /// Of a share: how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    /// Of a share: of how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<u32>,
    /// Why the value is `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A text or a number.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum CellValue {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
}

/// A decision and how far it reaches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Conclusion {
    /// What the evidence rules leave of it.
    decision: String,
    /// What the file claims, where that is another thing.
    claimed: Option<String>,
    /// Why, and where it holds.
    reason: String,
    /// What it does not cover.
    not_covered: Option<String>,
    /// The rules that limit it.
    rules: Vec<String>,
    /// What would raise it.
    next_step: Option<String>,
}

/// One file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SourceRow {
    /// Its path, as it was given.
    file: String,
    /// Name of the experiment; `null`: a single result.
    experiment: Option<String>,
    /// What was varied.
    variable: Option<String>,
    /// When, with what, on what.
    #[serde(serialize_with = "as_map")]
    #[schemars(with = "BTreeMap<String, String>")]
    facts: Vec<(String, String)>,
    /// Candidate minus baseline.
    differences: Vec<DifferenceRow>,
    /// What has to be said beside the figures.
    notes: Vec<Note>,
}

/// A remark.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Note {
    /// The rule that says it.
    rule: String,
    /// `error`, `warning` or `note`.
    severity: String,
    /// The arm it is about.
    arm: Option<String>,
    /// What.
    message: String,
}

/// Candidate minus baseline in one metric.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DifferenceRow {
    /// Arm.
    baseline: String,
    /// Arm.
    candidate: String,
    /// The metric as it stands in the record.
    metric: String,
    /// `lower` or `higher`.
    better: String,
    /// Number of pairs.
    pairs: usize,
    /// Mean difference in the metric's unit.
    difference: Option<f64>,
    /// The same, relative to the baseline.
    relative: Option<f64>,
    /// 95 % interval, relative to the baseline.
    interval_relative: Option<[f64; 2]>,
    /// What says nothing, relative to the baseline.
    threshold_relative: Option<f64>,
    /// `better`, `worse` or `unclear`.
    verdict: &'static str,
}

/// The table with conclusions and differences.
pub fn render(sheet: &Sheet) -> String {
    let table = Table {
        schema_version: SCHEMA_VERSION,
        rows: arms(sheet).into_iter().map(|(name, arm)| row(sheet, name, arm)).collect(),
        sources: sheet.sources.iter().map(source).collect(),
    };
    crate::results::v1::to_text(&serde_json::to_value(table).unwrap_or_default())
}

fn row(sheet: &Sheet, name: String, arm: &Arm) -> Row {
    let group = |group: Group| -> Columns {
        let cells = columns(sheet, group).into_iter();
        cells
            .map(|(id, _)| (id.clone(), cell(value(arm, group, &id).map_err(|r| r.get(Lang::En).to_owned()))))
            .collect()
    };
    let known = &arm.conclusion;
    Row {
        name,
        configuration: group(Group::Configuration),
        time: group(Group::Time),
        memory: group(Group::Memory),
        quality: group(Group::Quality),
        conclusion: Conclusion {
            decision: known.decision.clone(),
            claimed: known.claimed.clone(),
            reason: known.reason.get(Lang::En).to_owned(),
            not_covered: known.not_covered.as_ref().map(|text| text.get(Lang::En).to_owned()),
            rules: known.rules.clone(),
            next_step: known.next_step.as_ref().map(|text| text.get(Lang::En).to_owned()),
        },
    }
}

fn cell(value: Result<&Value, String>) -> Cell {
    let cell = |value| Cell { value, min: None, max: None, count: None, of: None, reason: None };
    match value {
        Ok(Value::Text(text)) => cell(Some(CellValue::Text(text.clone()))),
        Ok(Value::Number { value, range }) => Cell {
            min: range.map(|range| range[0]),
            max: range.map(|range| range[1]),
            ..cell(Some(CellValue::Number(*value)))
        },
        Ok(Value::Share { count, of }) => Cell {
            count: Some(*count),
            of: Some(*of),
            ..cell(Some(CellValue::Number(f64::from(*count) / f64::from((*of).max(1)))))
        },
        Ok(Value::Missing(reason)) => Cell { reason: Some(reason.get(Lang::En).to_owned()), ..cell(None) },
        Err(reason) => Cell { reason: Some(reason), ..cell(None) },
    }
}

fn source(source: &Source) -> SourceRow {
    let facts = source.facts.iter().map(|(name, value)| (name.get(Lang::En).to_owned(), value.clone()));
    let notes = source.notes.iter().map(|note| Note {
        rule: note.rule.clone(),
        severity: note.severity.clone(),
        arm: note.arm.clone(),
        message: note.text.get(Lang::En).to_owned(),
    });
    SourceRow {
        file: source.file.clone(),
        experiment: source.experiment.clone(),
        variable: source.variable.clone(),
        facts: facts.collect(),
        differences: source.differences.iter().map(difference).collect(),
        notes: notes.collect(),
    }
}

fn difference(known: &Difference) -> DifferenceRow {
    DifferenceRow {
        baseline: known.baseline.clone(),
        candidate: known.candidate.clone(),
        metric: known.metric.clone(),
        better: known.better.clone(),
        pairs: known.pairs,
        difference: known.difference,
        relative: known.relative,
        interval_relative: known.interval,
        threshold_relative: known.threshold,
        verdict: known.verdict,
    }
}

fn as_map<V: Serialize, S: Serializer>(pairs: &[(String, V)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, value)| (name, value)))
}
