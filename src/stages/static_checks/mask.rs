//! Taking a faulty statement out of a text, so that the next independent fault can be
//! found. Lines outside the statement keep their number and their content.

use super::explain::Explained;
use crate::python::Lines;
use ruff_python_ast::ModModule;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::Parsed;
use ruff_text_size::Ranged;
use std::ops::Range;

/// 0-based lines of the statement that holds a fault.
pub(super) fn region(text: &str, lines: &Lines<'_>, parsed: &Parsed<ModModule>, error: &Explained) -> Range<usize> {
    let at = error.fault.range.start.min(text.len());
    let line = lines.index(at);
    if error.unclosed {
        return line..block_end(lines, line);
    }
    let newlines = parsed.tokens().iter().filter(|token| token.kind() == TokenKind::Newline);
    let (mut first, mut last) = (0, lines.count() - 1);
    for newline in newlines {
        let start = newline.range().start().to_usize();
        if start < at {
            first = lines.index(start) + 1;
        } else {
            last = lines.index(start);
            break;
        }
    }
    // Blank and comment lines in front belong to nobody.
    let first = (first..=line).find(|line| !is_empty(lines.line(*line))).unwrap_or(line).min(line);
    first..last.max(line) + 1
}

/// The line below everything that is indented deeper than `line` or closes a bracket.
fn block_end(lines: &Lines<'_>, line: usize) -> usize {
    let indent = indent(lines.line(line));
    (line + 1..lines.count())
        .find(|below| {
            let text = lines.line(*below);
            !is_empty(text) && self::indent(text) <= indent && !text.trim_start().starts_with([')', ']', '}'])
        })
        .unwrap_or(lines.count())
}

fn is_empty(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

/// The text without these lines: a statement that does nothing, or a header of the same
/// kind if a block follows. `None`: there is nothing sensible to put there.
pub(super) fn without(lines: &Lines<'_>, region: &Range<usize>) -> Option<String> {
    let head = lines.line(region.start);
    let (margin, rest) = head.split_at(indent(head));
    let below = (region.end..lines.count()).map(|line| lines.line(line)).find(|line| !is_empty(line));
    let has_block = below.is_some_and(|line| indent(line) > margin.len());
    let word: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let substitute = match (word.as_str(), has_block) {
        ("async", true) => "async def _():",
        ("def", true) => "def _():",
        ("class", true) => "class _:",
        ("for" | "while", true) => "while 1:",
        ("elif", _) => "elif 1:",
        ("else", _) => "else:",
        ("try", _) => "try:",
        ("except", _) => "except Exception:",
        ("finally", _) => "finally:",
        ("match", true) => "match 1:",
        ("case", true) => "case 1:",
        (_, true) => "if 1:",
        (_, false) => "pass",
    };
    // A header that is nothing without its block.
    if !has_block && substitute.ends_with(':') {
        return None;
    }
    let mut text = String::new();
    for line in 0..lines.count() {
        if line == region.start {
            text.push_str(margin);
            text.push_str(substitute);
        } else if !region.contains(&line) {
            text.push_str(lines.line(line));
        }
        if line + 1 < lines.count() {
            text.push('\n');
        }
    }
    Some(text)
}
