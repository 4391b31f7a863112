//! Jupyter notebooks as every stage sees them: cells with text, 1-based.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

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
}

/// A notebook of format 4.
#[derive(Debug, Clone)]
pub struct Notebook {
    /// Its cells, in order.
    pub cells: Vec<Cell>,
    /// Language of the kernel, when it is stored.
    pub language: Option<String>,
}

/// Why a file is no notebook.
#[derive(Debug, thiserror::Error)]
pub enum NotebookError {
    /// Not JSON, or not of the right shape.
    #[error("{message}")]
    Json {
        /// What is wrong.
        message: String,
        /// 1-based line of the file.
        line: u32,
        /// 1-based column of the file.
        column: u32,
    },
}

#[derive(Deserialize)]
struct RawNotebook {
    cells: Vec<RawCell>,
    #[serde(default)]
    metadata: RawMetadata,
}

#[derive(Deserialize, Default)]
struct RawMetadata {
    #[serde(default)]
    kernelspec: Option<RawLanguage>,
    #[serde(default)]
    language_info: Option<RawName>,
}

#[derive(Deserialize)]
struct RawLanguage {
    #[serde(default)]
    language: Option<String>,
}

#[derive(Deserialize)]
struct RawName {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
struct RawCell {
    cell_type: String,
    source: RawSource,
    #[serde(default)]
    metadata: RawCellMetadata,
    #[serde(default)]
    attachments: BTreeMap<String, IgnoredAny>,
}

#[derive(Deserialize, Default)]
struct RawCellMetadata {
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawSource {
    Text(String),
    Lines(Vec<String>),
}

impl Notebook {
    /// Reads a notebook; a byte-order mark is passed over.
    ///
    /// # Errors
    /// The bytes are not a JSON notebook of format 4.
    pub fn read(bytes: &[u8]) -> Result<Notebook, NotebookError> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let raw: RawNotebook = serde_json::from_slice(bytes).map_err(|error| NotebookError::Json {
            message: error.to_string(),
            line: u32::try_from(error.line()).unwrap_or(u32::MAX),
            column: u32::try_from(error.column()).unwrap_or(u32::MAX),
        })?;
        let language = raw
            .metadata
            .kernelspec
            .and_then(|kernel| kernel.language)
            .or_else(|| raw.metadata.language_info.and_then(|info| info.name));
        let cells = (1..).zip(raw.cells).map(|(number, cell)| Cell {
            number,
            kind: match cell.cell_type.as_str() {
                "code" => CellKind::Code,
                "markdown" => CellKind::Markdown,
                _ => CellKind::Raw,
            },
            source: match cell.source {
                RawSource::Text(text) => text,
                RawSource::Lines(lines) => lines.concat(),
            },
            tags: cell.metadata.tags,
            attachments: cell.attachments.into_keys().collect(),
        });
        Ok(Notebook { cells: cells.collect(), language })
    }

    /// The cell with this 1-based number.
    pub fn cell(&self, number: u32) -> Option<&Cell> {
        self.cells.get((number as usize).checked_sub(1)?)
    }
}
