//! Where a finding is in the file as it lies on disk. A report counts lines inside the
//! cell of a notebook; CI systems mark lines of the file, and some count bytes.

use super::source::MAX_FILE;
use crate::model::{Finding, Location};
use crate::results::json::{self, Node, Positions};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

/// A position in a file. All 1-based; ends are exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Line of the file; 1 where nothing better is known.
    pub(super) line: u32,
    /// Columns in characters.
    pub(super) columns: Option<Span>,
    /// Columns in bytes of UTF-8, where the file could be read.
    pub(super) bytes: Option<Span>,
}

/// Begin and end of what is marked, in one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// First column.
    pub(super) start: u32,
    /// Column behind the last, where the length is known.
    pub(super) end: Option<u32>,
}

/// The places of `findings`, in their order. Every file is read once.
pub(super) fn places(root: &Path, findings: &[&Finding]) -> Vec<Place> {
    let mut by_file: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, finding) in findings.iter().enumerate() {
        by_file.entry(finding.at.path.as_str()).or_default().push(index);
    }
    let mut places: Vec<Place> = findings.iter().map(|finding| unread(&finding.at)).collect();
    for (path, indices) in by_file {
        // A place without line or cell needs no file.
        if indices.iter().all(|index| findings[*index].at.line.is_none() && findings[*index].at.cell.is_none()) {
            continue;
        }
        let Some(text) = load(&root.join(path)) else { continue };
        let cells = indices.iter().any(|index| findings[*index].at.cell.is_some()).then(|| json::read(&text));
        for index in indices {
            let at = &findings[index].at;
            let found = match (at.cell, &cells) {
                (Some(cell), Some(document)) => document.root.as_ref().and_then(|root| in_cell(&text, root, cell, at)),
                _ => in_text(&text, at),
            };
            places[index] = found.unwrap_or(places[index]);
        }
    }
    places
}

/// `folder/` from the root of the repository to the root of the course: CI systems know
/// files by their path in the repository.
pub(super) fn prefix(root: &Path) -> String {
    let repository = root.ancestors().find(|folder| folder.join(".git").exists());
    let inside = repository.and_then(|folder| root.strip_prefix(folder).ok()).unwrap_or(Path::new(""));
    inside.components().map(|part| format!("{}/", part.as_os_str().to_string_lossy())).collect()
}

/// What the location says by itself. A line inside a cell is no line of the file.
fn unread(at: &Location) -> Place {
    match (at.cell, at.line) {
        (None, Some(line)) => {
            let columns = at.column.map(|start| Span { start, end: at.length.map(|length| start + length.max(1)) });
            Place { line, columns, bytes: None }
        }
        _ => Place { line: 1, columns: None, bytes: None },
    }
}

fn load(path: &Path) -> Option<String> {
    let facts = std::fs::metadata(path).ok()?;
    if !facts.is_file() || facts.len() > MAX_FILE {
        return None;
    }
    let text = String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned();
    Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn in_text(text: &str, at: &Location) -> Option<Place> {
    let line = at.line?;
    let content = text.lines().nth(line as usize - 1)?;
    let known = unread(at);
    let bytes = known.columns.map(|span| Span {
        start: byte_column(content, span.start),
        end: span.end.map(|end| byte_column(content, end)),
    });
    Some(Place { bytes, ..known })
}

/// 1-based byte column of a 1-based character column.
fn byte_column(line: &str, column: u32) -> u32 {
    let chars = column.saturating_sub(1) as usize;
    let bytes = line.char_indices().nth(chars).map_or(line.len(), |(at, _)| at);
    u32::try_from(bytes + 1).unwrap_or(u32::MAX)
}

/// The place of a line of a cell in the JSON of its notebook.
fn in_cell(text: &str, root: &Node<'_>, cell: u32, at: &Location) -> Option<Place> {
    let source = root.get("cells")?.entries().get(cell as usize - 1)?.get("source")?;
    let (line, column) = (at.line.unwrap_or(1), at.column.unwrap_or(1));
    let marked = at.column.and(at.length).unwrap_or(0) as usize;
    let span = walk(text, source, line, column, marked).unwrap_or(source.span.start..source.span.start);
    let mut positions = Positions::new(text);
    let (line, start) = positions.of(span.start);
    let (last, end) = positions.of(span.end);
    let line_start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let byte = |offset: usize| u32::try_from(offset - line_start + 1).unwrap_or(u32::MAX);
    let ended = span.end > span.start && last == line;
    let spans = |start, end| at.column.map(|_| Span { start, end: ended.then_some(end) });
    Some(Place { line, columns: spans(start, end), bytes: spans(byte(span.start), byte(span.end)) })
}

/// Byte span in the JSON text of `marked` characters of a cell, from a line and column of
/// its source: one string, or a list of strings that are joined.
fn walk(text: &str, source: &Node<'_>, line: u32, column: u32, marked: usize) -> Option<Range<usize>> {
    let alone = std::slice::from_ref(source);
    let strings = if source.text().is_some() { alone } else { source.entries() };
    let (mut at_line, mut at_column) = (1, 1);
    for string in strings {
        let mut offset = string.span.start + 1;
        for c in string.text()?.chars() {
            if (at_line, at_column) == (line, column) {
                return Some(offset..offset + raw_length(&text[offset..string.span.end - 1], marked));
            }
            offset += raw_length(&text[offset..string.span.end - 1], 1);
            (at_line, at_column) = if c == '\n' { (at_line + 1, 1) } else { (at_line, at_column + 1) };
        }
        // A column behind the last character of the cell.
        if (at_line, at_column) == (line, column) && string.span == strings.last()?.span {
            return Some(offset..offset);
        }
    }
    None
}

/// Bytes that `count` characters take inside a JSON string, escapes included.
fn raw_length(raw: &str, count: usize) -> usize {
    let mut rest = raw;
    for _ in 0..count {
        let mut chars = rest.chars();
        let taken = match (chars.next(), chars.next()) {
            (Some('\\'), Some('u')) => 6 + if is_high_surrogate(rest) { 6 } else { 0 },
            (Some('\\'), Some(_)) => 2,
            (Some(c), _) => c.len_utf8(),
            (None, _) => break,
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    raw.len() - rest.len()
}

/// Whether a `\uD83D` begins a pair that makes one character.
fn is_high_surrogate(escape: &str) -> bool {
    escape
        .get(2..6)
        .and_then(|hex| u32::from_str_radix(hex, 16).ok())
        .is_some_and(|unit| (0xd800..0xdc00).contains(&unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RepoPath;
    use crate::rules::run;

    fn place(name: &str, text: &str, at: impl Fn(Location) -> Location) -> Place {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
        let finding = Finding::new(&run::EXCLUDED, at(Location::file(RepoPath::new(name))));
        places(folder.path(), &[&finding])[0]
    }

    fn span(start: u32, end: impl Into<Option<u32>>) -> Option<Span> {
        Some(Span { start, end: end.into() })
    }

    #[test]
    fn columns_are_characters_and_bytes() {
        let found = place("a.md", "x\n推理[a](b)\n", |at| at.line(2).column(3).length(6));
        assert_eq!(found, Place { line: 2, columns: span(3, 9), bytes: span(7, 13) });
    }

    #[test]
    fn a_line_of_a_cell_is_found_in_the_file() {
        let text = "{\"cells\": [\n {\"source\": []},\n {\"source\": [\n  \"a\\n\",\n  \"\\t\\\"推\\ud83d\\ude00 = (\\n\"\n ]}]}\n";
        let found = place("n.ipynb", text, |at| at.cell(2).line(2).column(5).length(1));
        // `  "\t\"推\ud83d\ude00 = (`: two spaces, the quote, 2 + 2 + 1 + 12 characters.
        assert_eq!(found, Place { line: 5, columns: span(21, 22), bytes: span(23, 24) });
        let joined = "{\"cells\": [{\"source\": \"a\\nb = 1\"}]}";
        let found = place("n.ipynb", joined, |at| at.cell(1).line(2));
        assert_eq!(found, Place { line: 1, columns: None, bytes: None });
    }

    #[test]
    fn what_cannot_be_found_is_the_first_line() {
        let nowhere = Place { line: 1, columns: None, bytes: None };
        assert_eq!(place("n.ipynb", "{", |at| at.cell(3).line(9).column(2)), nowhere);
        assert_eq!(place("n.ipynb", "{\"cells\": [3]}", |at| at.cell(1).line(9)), nowhere);
        assert_eq!(place("a.md", "x", |at| at), nowhere);
        let beyond = place("a.md", "x", |at| at.line(7).column(3));
        assert_eq!(beyond, Place { line: 7, columns: span(3, None), bytes: None });
    }

    #[test]
    fn paths_begin_at_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let course = folder.path().join("a/b");
        std::fs::create_dir_all(&course).unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        assert_eq!(prefix(&course), "a/b/");
        assert_eq!(prefix(folder.path()), "");
    }
}
