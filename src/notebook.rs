//! Jupyter notebooks as every stage sees them: cells with text, 1-based.
//!
//! The reader is tolerant where Jupyter is: a byte-order mark, a source that is one
//! text or a list of lines, unknown keys. A fault of one cell does not hide the others;
//! it is kept in [`Notebook::faults`].

use serde_json::{Map, Value};

/// What a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    /// Python, usually.
    Code,
    /// Markdown.
    Markdown,
    /// `raw` and anything unknown.
    Raw,
}

/// The id of a cell as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellId {
    /// No key `id`.
    Missing,
    /// `null`, or no text at all.
    Null,
    /// A text.
    Text(String),
}

/// One cell.
#[derive(Debug, Clone)]
pub struct Cell {
    /// 1-based position among all cells.
    pub number: u32,
    /// What it is.
    pub kind: CellKind,
    /// Its text, lines joined; line ends as stored.
    pub source: String,
    /// `metadata.tags`.
    pub tags: Vec<String>,
    /// Names of its attachments.
    pub attachments: Vec<String>,
    /// Its id.
    pub id: CellId,
    /// Name of the exception in the first stored output that is an error.
    pub stored_error: Option<String>,
}

/// A fault of one cell that does not keep the others from being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellFault {
    /// 1-based position among all cells.
    pub cell: u32,
    /// What is wrong.
    pub kind: CellFaultKind,
}

/// What can be wrong with one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellFaultKind {
    /// Not a JSON object.
    NoObject,
    /// No `cell_type`, or one that nobody knows.
    Type,
    /// No `source`.
    NoSource,
    /// A `source` that is neither a text nor a list of texts.
    Source,
}

/// A notebook of format 4.
#[derive(Debug, Clone)]
pub struct Notebook {
    /// Its cells, in order.
    pub cells: Vec<Cell>,
    /// Language of the kernel, when it is stored.
    pub language: Option<String>,
    /// `metadata.kernelspec.name`.
    pub kernel: Option<String>,
    /// `nbformat` and `nbformat_minor`; `None`: the notebook does not say.
    pub format: Option<(u64, u64)>,
    /// Whether the file begins with a byte-order mark.
    pub byte_order_mark: bool,
    /// Faults of single cells.
    pub faults: Vec<CellFault>,
}

/// Why a file is no notebook. Lines and columns (in characters) are 1-based and count
/// in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotebookError {
    /// Not JSON.
    #[error("{message} (line {line}, column {column})")]
    Json {
        /// What is wrong.
        message: String,
        /// 1-based line of the file.
        line: u32,
        /// 1-based column of the file.
        column: u32,
    },
    /// Not JSON, because a merge left its markers.
    #[error("unresolved merge conflict in line {line}")]
    Conflict {
        /// Line of the first marker.
        line: u32,
    },
    /// Not UTF-8.
    #[error("not UTF-8 in line {line}, column {column}")]
    Encoding {
        /// 1-based line of the file.
        line: u32,
        /// 1-based column of the file.
        column: u32,
        /// The byte that is none.
        byte: u8,
    },
    /// JSON, but no object.
    #[error("not a JSON object")]
    NoObject,
    /// Older than format 4.
    #[error("notebook format {0}")]
    OldFormat(u64),
    /// Newer than format 4.
    #[error("notebook format {0}")]
    NewFormat(u64),
    /// `cells` is missing or no list.
    #[error("no list of cells")]
    NoCells,
}

impl NotebookError {
    /// 1-based line and column, where the fault has a place.
    pub fn place(&self) -> (Option<u32>, Option<u32>) {
        match self {
            NotebookError::Json { line, column, .. } | NotebookError::Encoding { line, column, .. } => {
                (Some(*line), Some(*column))
            }
            NotebookError::Conflict { line } => (Some(*line), None),
            _ => (None, None),
        }
    }
}

impl Notebook {
    /// Reads a notebook; a byte-order mark is passed over.
    ///
    /// # Errors
    /// The bytes are not a JSON notebook of format 4.
    pub fn read(bytes: &[u8]) -> Result<Notebook, NotebookError> {
        let (byte_order_mark, body) = match bytes.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) => (true, rest),
            None => (false, bytes),
        };
        let text = std::str::from_utf8(body).map_err(|error| not_utf8(body, error.valid_up_to()))?;
        let Value::Object(top) = serde_json::from_str(text).map_err(|error| not_json(text, &error))? else {
            return Err(NotebookError::NoObject);
        };
        let format = format(&top);
        match format {
            Some((major, _)) if major < 4 => return Err(NotebookError::OldFormat(major)),
            Some((major, _)) if major > 4 => return Err(NotebookError::NewFormat(major)),
            // Format 3 kept its cells in worksheets.
            None if top.contains_key("worksheets") && !top.contains_key("cells") => {
                return Err(NotebookError::OldFormat(3));
            }
            _ => {}
        }
        let Some(Value::Array(values)) = top.get("cells") else { return Err(NotebookError::NoCells) };
        let mut faults = Vec::new();
        let cells = (1..).zip(values).map(|(number, value)| cell(number, value, &mut faults)).collect();
        let (kernel, language) = kernel(&top);
        Ok(Notebook { cells, language, kernel, format, byte_order_mark, faults })
    }

    /// The cell with this 1-based number.
    pub fn cell(&self, number: u32) -> Option<&Cell> {
        self.cells.get((number as usize).checked_sub(1)?)
    }

    /// Whether the code cells are Python, as far as the notebook says.
    pub fn is_python(&self) -> bool {
        self.language.as_deref().is_none_or(|language| {
            let language = language.to_ascii_lowercase();
            ["python", "ipython", "python3", "python2"].contains(&language.as_str())
        })
    }
}

fn format(top: &Map<String, Value>) -> Option<(u64, u64)> {
    let major = top.get("nbformat")?.as_u64()?;
    Some((major, top.get("nbformat_minor").and_then(Value::as_u64).unwrap_or(0)))
}

/// Name and language of the kernel. What the kernel said of itself goes before what
/// the notebook asked for.
fn kernel(top: &Map<String, Value>) -> (Option<String>, Option<String>) {
    let metadata = |outer: &str, inner: &str| {
        Some(top.get("metadata")?.get(outer)?.get(inner)?.as_str()?.to_owned()).filter(|text| !text.is_empty())
    };
    let language = metadata("language_info", "name").or_else(|| metadata("kernelspec", "language"));
    (metadata("kernelspec", "name"), language)
}

fn cell(number: u32, value: &Value, faults: &mut Vec<CellFault>) -> Cell {
    let mut fault = |kind| faults.push(CellFault { cell: number, kind });
    let empty = Map::new();
    let fields = value.as_object().unwrap_or_else(|| {
        fault(CellFaultKind::NoObject);
        &empty
    });
    let is_object = value.is_object();
    let kind = match fields.get("cell_type").and_then(Value::as_str) {
        Some("code") => CellKind::Code,
        Some("markdown") => CellKind::Markdown,
        Some("raw") => CellKind::Raw,
        _ => {
            if is_object {
                fault(CellFaultKind::Type);
            }
            CellKind::Raw
        }
    };
    let source = match fields.get("source").map(joined) {
        Some(Some(source)) => source,
        missing => {
            if is_object {
                fault(if missing.is_none() { CellFaultKind::NoSource } else { CellFaultKind::Source });
            }
            String::new()
        }
    };
    Cell {
        number,
        kind,
        source,
        tags: tags(fields),
        attachments: fields
            .get("attachments")
            .and_then(Value::as_object)
            .map_or_else(Vec::new, |named| named.keys().cloned().collect()),
        id: match fields.get("id") {
            None => CellId::Missing,
            Some(Value::String(id)) => CellId::Text(id.clone()),
            Some(_) => CellId::Null,
        },
        stored_error: stored_error(fields),
    }
}

/// A source: one text, or texts to be joined with nothing between them.
fn joined(source: &Value) -> Option<String> {
    match source {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => lines.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

fn tags(fields: &Map<String, Value>) -> Vec<String> {
    let tags = fields.get("metadata").and_then(|metadata| metadata.get("tags")).and_then(Value::as_array);
    tags.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn stored_error(fields: &Map<String, Value>) -> Option<String> {
    let outputs = fields.get("outputs")?.as_array()?;
    let error = outputs.iter().find(|output| output.get("output_type").and_then(Value::as_str) == Some("error"))?;
    Some(error.get("ename").and_then(Value::as_str).unwrap_or("error").to_owned())
}

fn not_utf8(body: &[u8], at: usize) -> NotebookError {
    let (line, column) = place(&body[..at]);
    NotebookError::Encoding { line, column, byte: body.get(at).copied().unwrap_or(0) }
}

fn not_json(text: &str, error: &serde_json::Error) -> NotebookError {
    if let Some(line) = conflict_line(text) {
        return NotebookError::Conflict { line };
    }
    // The parser counts columns in bytes; the message repeats the place.
    let line = error.line().max(1);
    let content = text.split('\n').nth(line - 1).unwrap_or_default();
    let before = &content.as_bytes()[..error.column().saturating_sub(1).min(content.len())];
    let message = error.to_string();
    NotebookError::Json {
        message: message.split(" at line ").next().unwrap_or(&message).to_owned(),
        line: u32::try_from(line).unwrap_or(u32::MAX),
        column: u32::try_from(String::from_utf8_lossy(before).chars().count() + 1).unwrap_or(u32::MAX),
    }
}

/// 1-based line and column at the end of `before`.
fn place(before: &[u8]) -> (u32, u32) {
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

/// 1-based line of the first marker that a merge left.
pub fn conflict_line(text: &str) -> Option<u32> {
    (1..).zip(text.lines()).find(|(_, line)| is_conflict_marker(line)).map(|(number, _)| number)
}

/// Whether a line is one that `git merge` writes between the two sides.
pub fn is_conflict_marker(line: &str) -> bool {
    let line = line.trim_end();
    line == "======="
        || ["<<<<<<<", ">>>>>>>", "|||||||"]
            .iter()
            .any(|marker| line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Notebook, NotebookError> {
        Notebook::read(text.as_bytes())
    }

    #[test]
    fn a_cell_that_is_none_does_not_hide_the_others() {
        let notebook = read(
            r#"{"nbformat":4,"nbformat_minor":5,"cells":[7,{"cell_type":"code","source":["a\n","b"]},{"cell_type":"code"},
                {"cell_type":"video","source":"x"},{"cell_type":"markdown","source":[1],"id":null}]}"#,
        )
        .unwrap();
        assert_eq!(notebook.cell(2).unwrap().source, "a\nb");
        let faults: Vec<_> = notebook.faults.iter().map(|fault| (fault.cell, fault.kind)).collect();
        assert_eq!(
            faults,
            [
                (1, CellFaultKind::NoObject),
                (3, CellFaultKind::NoSource),
                (4, CellFaultKind::Type),
                (5, CellFaultKind::Source)
            ]
        );
        assert_eq!(notebook.cell(5).unwrap().id, CellId::Null);
    }

    #[test]
    fn faults_of_the_file_have_a_place() {
        assert_eq!(read("").unwrap_err().place(), (Some(1), Some(1)));
        assert_eq!(read("{\n \"名\": 1,,\n}").unwrap_err().place(), (Some(2), Some(9)));
        assert_eq!(read("{\n<<<<<<< HEAD\n").unwrap_err(), NotebookError::Conflict { line: 2 });
        let error = Notebook::read(b"{\n\"\xe4\xb8\xad\xff\"}").unwrap_err();
        assert_eq!(error, NotebookError::Encoding { line: 2, column: 3, byte: 0xff });
    }

    #[test]
    fn formats_other_than_4_are_refused_by_name() {
        assert_eq!(read(r#"{"nbformat":3,"worksheets":[]}"#).unwrap_err(), NotebookError::OldFormat(3));
        assert_eq!(read(r#"{"worksheets":[]}"#).unwrap_err(), NotebookError::OldFormat(3));
        assert_eq!(read(r#"{"nbformat":5,"cells":[]}"#).unwrap_err(), NotebookError::NewFormat(5));
        assert_eq!(read(r#"{"nbformat":4}"#).unwrap_err(), NotebookError::NoCells);
        assert_eq!(read("[]").unwrap_err(), NotebookError::NoObject);
    }

    /// JSON of any shape, with the keys of a notebook more often than others.
    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0_u64..6).prop_map(Value::from),
            "[a-z%!\n\u{ff08}]{0,6}".prop_map(Value::from),
            prop_oneof![Just("code"), Just("markdown"), Just("error"), Just("python")].prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 6, |inner| {
            let key = prop_oneof![
                Just("cells"),
                Just("cell_type"),
                Just("source"),
                Just("metadata"),
                Just("tags"),
                Just("id"),
                Just("outputs"),
                Just("output_type"),
                Just("ename"),
                Just("attachments"),
                Just("kernelspec"),
                Just("language_info"),
                Just("name"),
                Just("nbformat"),
                Just("nbformat_minor"),
                Just("other"),
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((key.prop_map(str::to_owned), inner), 0..8)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_is_read_or_refused(cells in json(), top in json()) {
            let mut top = top;
            if let Value::Object(fields) = &mut top {
                fields.insert("cells".to_owned(), cells.clone());
                fields.insert("nbformat".to_owned(), Value::from(4));
            }
            if let Ok(notebook) = read(&top.to_string()) {
                let count = cells.as_array().map_or(0, Vec::len);
                prop_assert_eq!(notebook.cells.len(), count);
                prop_assert!((1..).zip(&notebook.cells).all(|(number, cell)| cell.number == number));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused_at_a_place_inside(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Err(error) = Notebook::read(&bytes)
                && let (Some(line), _) = error.place()
            {
                let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
                prop_assert!(line as usize <= lines);
            }
        }

        #[test]
        fn a_cut_or_changed_notebook_never_panics(cut in 0_usize..400, byte in any::<u8>()) {
            let mut bytes = br##"{"cells":[{"cell_type":"code","id":"a","metadata":{"tags":["x"]},"outputs":[{"output_type":"error","ename":"E"}],"source":["a\n","b"]}],"metadata":{"kernelspec":{"name":"python3","language":"python"}},"nbformat":4,"nbformat_minor":5}"##.to_vec();
            let cut = cut.min(bytes.len() - 1);
            bytes[cut] = byte;
            let _ = Notebook::read(&bytes);
            bytes.truncate(cut);
            prop_assert!(Notebook::read(&bytes).is_err());
        }
    }
}
