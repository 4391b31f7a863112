//! The table: one group of columns after the other, an arm a row. A column in which no arm
//! has anything is told below the table instead of widening it.

use super::{Arm, Cell, Group, Sheet, Value};
use crate::model::{Lang, Localized};

/// One group, laid out.
#[derive(Debug, Clone)]
pub struct Table {
    /// Which.
    pub group: Group,
    /// Columns in which at least one arm has something.
    pub columns: Vec<Column>,
    /// One row per arm.
    pub rows: Vec<Row>,
    /// What the marks of absent values say, mark 1 first.
    pub reasons: Vec<Localized>,
    /// Columns of the configuration in which all arms agree: heading and value.
    pub shared: Vec<(Localized, String)>,
    /// Columns without any value: heading and mark.
    pub absent: Vec<(Localized, usize)>,
}

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name in the machine form.
    pub id: String,
    /// Its heading.
    pub title: Localized,
    /// Holds numbers.
    pub numeric: bool,
}

/// One arm.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// A text, or the mark of the reason why there is none.
    pub cells: Vec<Result<String, usize>>,
}

/// Every arm with the name that tells it from the others.
pub fn arms(sheet: &Sheet) -> Vec<(String, &Arm)> {
    let several = sheet.sources.len() > 1;
    let mut arms = Vec::new();
    for source in &sheet.sources {
        for arm in &source.arms {
            let name = match &source.experiment {
                Some(experiment) if several => format!("{experiment}: {}", arm.name),
                _ => arm.name.clone(),
            };
            arms.push((name, arm));
        }
    }
    arms
}

/// The columns of one group over all arms: those of the first arm, then what others add.
pub fn columns(sheet: &Sheet, group: Group) -> Vec<(String, Localized)> {
    let mut columns: Vec<(String, Localized)> = Vec::new();
    for (_, arm) in arms(sheet) {
        for cell in cells(arm, group) {
            if !columns.iter().any(|(id, _)| *id == cell.column) {
                columns.push((cell.column.clone(), cell.title.clone()));
            }
        }
    }
    columns
}

/// The cells of one arm in one group.
pub fn cells(arm: &Arm, group: Group) -> &[Cell] {
    let index = Group::ALL.iter().position(|known| *known == group).unwrap_or(0);
    &arm.cells[index]
}

/// The value of one arm in one column. A column that only other arms have is absent here.
pub fn value<'a>(arm: &'a Arm, group: Group, column: &str) -> Result<&'a Value, Localized> {
    let found = cells(arm, group).iter().find(|cell| cell.column == column).map(|cell| &cell.value);
    match found {
        Some(Value::Missing(reason)) => Err(reason.clone()),
        Some(value) => Ok(value),
        None => Err(not_in_this_file()),
    }
}

/// Why a column of other files is empty here.
fn not_in_this_file() -> Localized {
    Localized::both("this file does not record it", "该文件未记录此项")
}

/// Lays one group out.
pub fn table(sheet: &Sheet, group: Group) -> Table {
    let arms = arms(sheet);
    let mut table = Table {
        group,
        columns: Vec::new(),
        rows: Vec::new(),
        reasons: Vec::new(),
        shared: Vec::new(),
        absent: Vec::new(),
    };
    table.rows = arms.iter().map(|(name, _)| Row { name: name.clone(), cells: Vec::new() }).collect();
    for (id, title) in columns(sheet, group) {
        let values: Vec<Result<&Value, Localized>> = arms.iter().map(|(_, arm)| value(arm, group, &id)).collect();
        if let Some(reason) = all_absent(&values) {
            let mark = mark(&mut table.reasons, reason);
            table.absent.push((title, mark));
            continue;
        }
        if let Some(text) = agreed(&values).filter(|_| group == Group::Configuration) {
            table.shared.push((title, text));
            continue;
        }
        let numeric = values.iter().flatten().all(|value| match value {
            Value::Text(text) => text.parse::<f64>().is_ok(),
            _ => true,
        });
        for (row, value) in table.rows.iter_mut().zip(values) {
            let text = value.and_then(|value| value.text().ok_or_else(|| Localized::from("—")));
            row.cells.push(text.map_err(|reason| mark(&mut table.reasons, reason)));
        }
        table.columns.push(Column { id, title, numeric });
    }
    table
}

/// The text that all of several arms have.
fn agreed(values: &[Result<&Value, Localized>]) -> Option<String> {
    let texts: Option<Vec<String>> = values.iter().map(|value| value.as_ref().ok()?.text()).collect();
    let texts = texts.filter(|texts| texts.len() > 1 && texts.windows(2).all(|pair| pair[0] == pair[1]))?;
    texts.into_iter().next()
}

/// The reason where no arm has a value. A baseline has reasons of its own and another file
/// knows nothing of the column, so it is that of the last arm which has the column.
fn all_absent(values: &[Result<&Value, Localized>]) -> Option<Localized> {
    let reasons: Option<Vec<&Localized>> = values.iter().map(|value| value.as_ref().err()).collect();
    let reasons = reasons?;
    let told = reasons.iter().rev().find(|reason| ***reason != not_in_this_file());
    told.or(reasons.last()).map(|reason| (*reason).clone())
}

/// The number of a reason, from 1; the same reason has the same number.
fn mark(reasons: &mut Vec<Localized>, reason: Localized) -> usize {
    match reasons.iter().position(|known| *known == reason) {
        Some(index) => index + 1,
        None => {
            reasons.push(reason);
            reasons.len()
        }
    }
}

/// What stands in a cell of a text table: the value, or `— [1]`.
pub fn plain(cell: &Result<String, usize>) -> String {
    cell.clone().unwrap_or_else(|mark| format!("— [{mark}]"))
}

/// The notes under a table: what the marks say, and the columns nobody has.
pub fn footnotes(table: &Table, lang: Lang) -> Vec<String> {
    let marks = table.reasons.iter().enumerate().map(|(index, reason)| {
        let mark = index + 1;
        let absent: Vec<&str> =
            table.absent.iter().filter(|(_, of)| *of == mark).map(|(title, _)| title.get(lang)).collect();
        let (colon, comma) = if lang == Lang::En { (": ", "; ") } else { ("：", "；") };
        let names = if absent.is_empty() { String::new() } else { format!("{}{colon}", absent.join(comma)) };
        format!("[{mark}] {names}{}", reason.get(lang))
    });
    marks.collect()
}
