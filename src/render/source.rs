//! Source text for snippets: read when a finding is shown, so that no finding has to
//! carry it. In a notebook the text is the cell's.

use crate::fsx;
use crate::model::Location;
use crate::notebook::Notebook;
use crate::term::{neutralize, one_line};
use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use std::collections::HashMap;
use std::path::Path;

/// Lines longer than this are data, not text that a person reads.
const MAX_LINE: usize = 500;
/// Files larger than this are not opened for a snippet.
pub(super) const MAX_FILE: u64 = 16 << 20;

/// Loads files once per rendering.
#[derive(Debug, Default)]
pub struct Sources {
    files: HashMap<String, Option<Loaded>>,
}

#[derive(Debug)]
enum Loaded {
    Text(String),
    Cells(Notebook),
}

impl Sources {
    /// The text around a location and the span to underline; `None` where there is
    /// nothing a person would want to see.
    pub fn snippet(&mut self, root: &Path, at: &Location) -> Option<Snippet> {
        let line = at.line?;
        let loaded = self
            .files
            .entry(at.path.as_str().to_owned())
            .or_insert_with(|| load(root, &root.join(at.path.as_str())))
            .as_ref()?;
        let (name, text) = match (loaded, at.cell) {
            (Loaded::Text(text), None) => (at.path.as_str().to_owned(), text.as_str()),
            (Loaded::Cells(notebook), Some(cell)) => {
                (format!("{}:cell {cell}", at.path), notebook.cell(cell)?.source.as_str())
            }
            _ => return None,
        };
        Snippet::new(one_line(&name), text, line, at.column, at.length)
    }
}

fn load(root: &Path, path: &Path) -> Option<Loaded> {
    // A report that is merged names what it likes: only the course is shown.
    if !fsx::is_inside(root, path) {
        return None;
    }
    if std::fs::metadata(path).ok()?.len() > MAX_FILE {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    if path.extension().is_some_and(|extension| extension == "ipynb")
        && let Ok(notebook) = Notebook::read(&bytes)
    {
        return Some(Loaded::Cells(notebook));
    }
    let text = String::from_utf8_lossy(&bytes);
    Some(Loaded::Text(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()))
}

/// A few lines of source with the span to underline.
#[derive(Debug)]
pub struct Snippet {
    name: String,
    text: String,
    first_line: usize,
    /// Byte span in `text`.
    pub span: SourceSpan,
}

impl Snippet {
    fn new(name: String, text: &str, line: u32, column: Option<u32>, length: Option<u32>) -> Option<Self> {
        let line = line as usize;
        let first_line = line.saturating_sub(1).max(1);
        let mut kept = String::new();
        let mut span = None;
        for (number, content) in (1..).zip(text.lines()).skip(first_line - 1).take(line + 2 - first_line) {
            if content.len() > MAX_LINE {
                if number == line {
                    return None;
                }
                kept.push_str("…\n");
                continue;
            }
            let content = neutralize(content);
            if number == line {
                let offset = |chars: usize| content.char_indices().nth(chars).map_or(content.len(), |(at, _)| at);
                let (start, end) = match column {
                    Some(column) => {
                        let from = column as usize - 1;
                        (offset(from), offset(from + length.unwrap_or(1).max(1) as usize))
                    }
                    None => (content.len() - content.trim_start().len(), content.trim_end().len()),
                };
                span = Some((
                    kept.len() + start,
                    end.saturating_sub(start).max(1).min((content.len() + 1).saturating_sub(start)),
                ));
            }
            kept.push_str(&content);
            kept.push('\n');
        }
        let (start, length) = span?;
        Some(Snippet { name, text: kept, first_line, span: (start, length).into() })
    }
}

impl SourceCode for Snippet {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.as_str().read_span(span, before, after)?;
        // miette counts bytes in its header; editors and our JSON count characters.
        let start = self.text[..span.offset()].rfind('\n').map_or(0, |at| at + 1);
        let column = if inner.line() == self.text[..span.offset()].matches('\n').count() {
            self.text[start..span.offset()].chars().count()
        } else {
            0
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            inner.data(),
            *inner.span(),
            inner.line() + self.first_line - 1,
            column,
            inner.line_count(),
        )))
    }
}
