//! Merging layers of TOML values; the only place that knows precedence.

use std::collections::BTreeMap;
use toml::{Table, Value};

/// The layer a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The built-in course profile.
    Builtin,
    /// `verify.toml`, or the file given with `--settings`.
    File,
}

impl Origin {
    /// The word in `verify settings`.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Builtin => "built-in",
            Origin::File => "file",
        }
    }
}

/// Origin of every value that a layer set, by dotted path (`project.66.concurrency`).
#[derive(Debug, Clone, Default)]
pub struct Origins(BTreeMap<String, Origin>);

impl Origins {
    /// Path and origin, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Origin)> {
        self.0.iter().map(|(path, origin)| (path.as_str(), *origin))
    }

    /// The origin of one value; `None` when it is the default of the program.
    pub fn get(&self, path: &str) -> Option<Origin> {
        self.0.get(path).copied()
    }
}

/// Lays `over` on `base`. Tables merge key by key; lists of tables that carry an `id`
/// or a `name` merge entry by entry; every other value replaces the one below.
pub(super) fn merge(base: &mut Table, over: Table, origin: Origin, origins: &mut Origins) {
    merge_table(base, over, "", origin, origins);
}

fn merge_table(base: &mut Table, over: Table, path: &str, origin: Origin, origins: &mut Origins) {
    for (key, value) in over {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (base.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge_table(below, above, &path, origin, origins),
            (Some(Value::Array(below)), Value::Array(above)) if keyed(below) && keyed(&above) => {
                merge_entries(below, above, &path, origin, origins);
            }
            (_, value) => {
                record(&value, &path, origin, origins);
                base.insert(key, value);
            }
        }
    }
}

fn merge_entries(below: &mut Vec<Value>, above: Vec<Value>, path: &str, origin: Origin, origins: &mut Origins) {
    for entry in above {
        let name = entry_name(&entry).unwrap_or_default();
        let path = format!("{path}.{name}");
        match (below.iter_mut().find(|known| entry_name(known).as_deref() == Some(&name)), entry) {
            (Some(Value::Table(known)), Value::Table(entry)) => merge_table(known, entry, &path, origin, origins),
            (_, entry) => {
                record(&entry, &path, origin, origins);
                below.push(entry);
            }
        }
    }
}

fn keyed(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(|entry| entry_name(entry).is_some())
}

fn entry_name(entry: &Value) -> Option<String> {
    let table = entry.as_table()?;
    match table.get("id").or_else(|| table.get("name"))? {
        Value::String(name) => Some(name.clone()),
        Value::Integer(id) => Some(id.to_string()),
        _ => None,
    }
}

fn record(value: &Value, path: &str, origin: Origin, origins: &mut Origins) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                record(value, &format!("{path}.{key}"), origin, origins);
            }
        }
        Value::Array(list) if keyed(list) => {
            for entry in list {
                record(entry, &format!("{path}.{}", entry_name(entry).unwrap_or_default()), origin, origins);
            }
        }
        _ => {
            origins.0.insert(path.to_owned(), origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn entries_merge_by_id_and_keep_their_origin() {
        let mut origins = Origins::default();
        let mut merged = Table::new();
        merge(&mut merged, table("[[project]]\nid = 66\nconcurrency = 1\nrequests = 5"), Origin::Builtin, &mut origins);
        merge(
            &mut merged,
            table("[[project]]\nid = 66\nrequests = 8\n[[project]]\nid = 71"),
            Origin::File,
            &mut origins,
        );
        assert_eq!(merged, table("[[project]]\nid = 66\nconcurrency = 1\nrequests = 8\n[[project]]\nid = 71"));
        assert_eq!(origins.get("project.66.concurrency"), Some(Origin::Builtin));
        assert_eq!(origins.get("project.66.requests"), Some(Origin::File));
    }
}
