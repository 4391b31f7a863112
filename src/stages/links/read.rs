//! Reading sources: Markdown files and the markdown cells of notebooks. Notebooks are
//! read here with a type that passes over outputs and code, because links need neither
//! and a course holds far more of them than of text.

use super::document::{Document, ReadFault};
use super::extract;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// Extensions of files that GitHub renders as Markdown.
const MARKDOWN: &[&str] = &["md", "markdown", "mdown", "mdwn", "mkd", "mkdn", "mkdown"];

/// What kind of source a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceKind {
    /// `.md`, `.markdown` and their like
    Markdown,
    /// `.ipynb`
    Notebook,
}

impl SourceKind {
    /// By file name.
    pub(super) fn of(name: &str) -> Option<Self> {
        let extension = name.rsplit_once('.')?.1;
        let is = |known: &&str| extension.eq_ignore_ascii_case(known);
        if MARKDOWN.iter().any(&is) {
            Some(SourceKind::Markdown)
        } else if is(&"ipynb") {
            Some(SourceKind::Notebook)
        } else {
            None
        }
    }

    /// Of a file that the user names: MDX is Markdown to whoever asks for it, though no
    /// page of a course is written in it and a walk passes it over.
    pub(super) fn of_named(name: &str) -> Option<Self> {
        let is_mdx = name.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("mdx"));
        SourceKind::of(name).or(is_mdx.then_some(SourceKind::Markdown))
    }
}

/// Reads one source. A file that cannot be read is a document with a fault.
pub(super) fn read(path: &Path, kind: SourceKind) -> Document {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => return faulty(ReadFault::Io(error.to_string())),
    };
    parse(&bytes, kind)
}

/// Reads the bytes of a source.
pub(super) fn parse(bytes: &[u8], kind: SourceKind) -> Document {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => return faulty(ReadFault::Encoding(error.valid_up_to())),
    };
    match kind {
        SourceKind::Markdown => extract::markdown(text),
        SourceKind::Notebook => match cells(text) {
            Ok(cells) => from_cells(&cells),
            Err(fault) => faulty(fault),
        },
    }
}

fn faulty(fault: ReadFault) -> Document {
    Document { fault: Some(fault), ..Document::default() }
}

fn from_cells(cells: &[MarkdownCell<'_>]) -> Document {
    let mut document = Document::default();
    for cell in cells {
        document.attachments.extend(cell.attachments.iter().map(|name| (cell.number, name.clone())));
        extract::cell(&cell.source, cell.number, &mut document);
    }
    document
}

/// One markdown cell.
#[derive(Debug)]
pub(super) struct MarkdownCell<'a> {
    /// 1-based position among all cells.
    pub(super) number: u32,
    /// Its text.
    pub(super) source: String,
    /// Names of its attachments.
    pub(super) attachments: Vec<String>,
    /// The JSON of its source, a slice of the file.
    pub(super) json: &'a str,
}

#[derive(Deserialize)]
struct RawNotebook<'a> {
    #[serde(borrow)]
    cells: Option<Vec<RawCell<'a>>>,
    /// Format 3.
    #[serde(borrow, default)]
    worksheets: Vec<RawSheet<'a>>,
}

#[derive(Deserialize)]
struct RawSheet<'a> {
    #[serde(borrow)]
    cells: Vec<RawCell<'a>>,
}

#[derive(Deserialize)]
struct RawCell<'a> {
    #[serde(borrow)]
    cell_type: Cow<'a, str>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
    #[serde(default)]
    attachments: Option<BTreeMap<String, IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Source {
    Text(String),
    Lines(Vec<String>),
}

/// The markdown cells of a notebook, given as text without byte-order mark.
///
/// # Errors
/// The text is no notebook.
pub(super) fn cells(text: &str) -> Result<Vec<MarkdownCell<'_>>, ReadFault> {
    let notebook: RawNotebook<'_> = serde_json::from_str(text).map_err(|error| fault(&error))?;
    let cells = match notebook.cells {
        Some(cells) => cells,
        None if notebook.worksheets.is_empty() => {
            return Err(ReadFault::Notebook { message: "it has no `cells`".to_owned(), line: 1, column: 1 });
        }
        None => notebook.worksheets.into_iter().flat_map(|sheet| sheet.cells).collect(),
    };
    let markdown = (1..).zip(cells).filter(|(_, cell)| cell.cell_type == "markdown");
    markdown.map(|(number, cell)| markdown_cell(number, cell)).collect()
}

fn markdown_cell(number: u32, cell: RawCell<'_>) -> Result<MarkdownCell<'_>, ReadFault> {
    let json = cell.source.map_or("\"\"", RawValue::get);
    let source = match serde_json::from_str(json) {
        Ok(Source::Text(text)) => text,
        Ok(Source::Lines(lines)) => lines.concat(),
        Err(error) => {
            let message = format!("cell {number}: the source is neither a text nor a list of texts ({error})");
            return Err(ReadFault::Notebook { message, line: 1, column: 1 });
        }
    };
    let attachments = cell.attachments.unwrap_or_default().into_keys().collect();
    Ok(MarkdownCell { number, source, attachments, json })
}

fn fault(error: &serde_json::Error) -> ReadFault {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX).max(1);
    let message = error.to_string();
    // serde_json repeats the place, which the finding carries.
    let message = message.rsplit_once(" at line").map_or(message.as_str(), |(text, _)| text).to_owned();
    ReadFault::Notebook { message, line: number(error.line()), column: number(error.column()) }
}
