//! `--fix`: writes the suggestions that leave no choice. Only the bytes of the target
//! change, in notebooks too; every edit is proven by reading the result again.

use super::document::{Document, Link, LinkKind};
use super::read::{self, SourceKind};
use super::resolve::World;
use super::tree::Source;
use super::{Faulty, report};
use similar::TextDiff;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

/// A file with its old and new text.
#[derive(Debug)]
pub(super) struct Change {
    /// Relative to the root.
    pub(super) path: String,
    /// Where to write.
    pub(super) file: PathBuf,
    /// As it is.
    pub(super) old: String,
    /// As it should be.
    pub(super) new: String,
    /// Links that change.
    pub(super) links: usize,
}

impl Change {
    /// The change as a unified diff, three lines of context.
    pub(super) fn diff(&self) -> String {
        let diff = TextDiff::from_lines(&self.old, &self.new);
        let (from, to) = (format!("a/{}", self.path), format!("b/{}", self.path));
        diff.unified_diff().context_radius(3).header(&from, &to).to_string()
    }
}

/// The changes that leave no choice, file by file.
pub(super) fn plan(world: &World, faults: &[Faulty]) -> Vec<Change> {
    let mut files: BTreeMap<usize, Vec<(&Link, String)>> = BTreeMap::new();
    for faulty in faults {
        if let Some(source) = faulty.source
            && let Some(suggestion) = report::suggestion(world, faulty).filter(|suggestion| suggestion.unique)
        {
            files.entry(source).or_default().push((&faulty.link, suggestion.target));
        }
    }
    files.into_iter().filter_map(|(source, edits)| change(&world.tree.sources[source], &edits)).collect()
}

fn change(source: &Source, edits: &[(&Link, String)]) -> Option<Change> {
    let old = String::from_utf8(std::fs::read(&source.file).ok()?).ok()?;
    let all = apply(&old, source.kind, edits);
    let (new, links) = if proven(&old, &all, source.kind, edits) {
        (all, edits.len())
    } else {
        // One of them does not do what it should: take them one by one.
        let good: Vec<(&Link, String)> = edits
            .iter()
            .filter(|edit| {
                let edit = std::slice::from_ref(*edit);
                proven(&old, &apply(&old, source.kind, edit), source.kind, edit)
            })
            .cloned()
            .collect();
        (apply(&old, source.kind, &good), good.len())
    };
    (new != old).then(|| Change { path: source.path.clone(), file: source.file.clone(), old, new, links })
}

/// Whether exactly the links of `edits` have changed, and to what they should.
fn proven(old: &str, new: &str, kind: SourceKind, edits: &[(&Link, String)]) -> bool {
    let parse = |text: &str| -> Document { read::parse(text.as_bytes(), kind) };
    let (before, after) = (parse(old), parse(new));
    before.links.len() == after.links.len()
        && before.links.iter().zip(&after.links).all(|(before, after)| {
            let wanted = edits.iter().find(|(link, _)| *link == before).map_or(&*before.target, |(_, target)| target);
            *after.target == *wanted
        })
}

/// The text with the edits made, as far as their targets are found in it.
fn apply(text: &str, kind: SourceKind, edits: &[(&Link, String)]) -> String {
    let mark = text.len() - text.strip_prefix('\u{feff}').unwrap_or(text).len();
    let mut places: Vec<(Range<usize>, String)> = match kind {
        SourceKind::Markdown => {
            edits.iter().filter_map(|(link, new)| Some((locate(&text[mark..], link)?, new.clone()))).collect()
        }
        SourceKind::Notebook => in_notebook(&text[mark..], edits),
    };
    places.sort_by_key(|(range, _)| range.start);
    let mut edited = text.to_owned();
    for (range, new) in places.into_iter().rev() {
        edited.replace_range(range.start + mark..range.end + mark, &new);
    }
    edited
}

/// Where the target of a link stands in its text, if it stands there as it is.
fn locate(text: &str, link: &Link) -> Option<Range<usize>> {
    let source = text.get(link.span.clone())?;
    let at = match link.kind {
        LinkKind::Link | LinkKind::Image => destination(source, &link.target)?,
        _ => source.find(&*link.target)?,
    };
    let start = link.span.start + at;
    Some(start..start + link.target.len())
}

/// Where the destination of `[text](destination "title")` or `[label]: destination`
/// begins.
fn destination(source: &str, target: &str) -> Option<usize> {
    let openings = source.rmatch_indices("](").chain(source.match_indices("]:"));
    openings.map(|(at, _)| at + 2).find_map(|at| {
        let rest = source[at..].trim_start();
        let rest = rest.strip_prefix('<').unwrap_or(rest);
        rest.starts_with(target).then_some(source.len() - rest.len())
    })
}

/// Where the targets stand in the JSON of a notebook, with the JSON to write.
fn in_notebook(text: &str, edits: &[(&Link, String)]) -> Vec<(Range<usize>, String)> {
    let Ok(cells) = read::cells(text) else { return Vec::new() };
    let mut places = Vec::new();
    for cell in &cells {
        // The JSON is a slice of the text; its distance from the start is its offset.
        let base = (cell.json.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        for (link, new) in edits.iter().filter(|(link, _)| link.place.cell == cell.number) {
            let Some(decoded) = locate(&cell.source, link) else { continue };
            let Some(raw) = json_range(cell.json, &decoded) else { continue };
            let ascii = cell.json[raw.clone()].is_ascii() && !link.target.is_ascii();
            places.push((base + raw.start..base + raw.end, json_text(new, ascii)));
        }
    }
    places
}

/// The raw bytes of a JSON text, or list of texts, that hold a range of the decoded and
/// joined text. `None` when the range spans two texts.
fn json_range(json: &str, wanted: &Range<usize>) -> Option<Range<usize>> {
    let mut decoded = 0;
    let mut start = None;
    let mut inside = false;
    let mut at = 0;
    while let Some(c) = json.get(at..)?.chars().next() {
        if inside && decoded == wanted.start && c != '"' {
            start.get_or_insert(at);
        }
        if inside && decoded == wanted.end && start.is_some() {
            return start.map(|start| start..at);
        }
        if c == '"' {
            inside = !inside;
            start = start.filter(|_| inside);
            at += 1;
        } else if inside && c == '\\' {
            let (raw, length) = escape(&json[at..])?;
            at += raw;
            decoded += length;
        } else {
            at += c.len_utf8();
            decoded += if inside { c.len_utf8() } else { 0 };
        }
    }
    None
}

/// Raw and decoded length of the escape at the start of a JSON text.
fn escape(json: &str) -> Option<(usize, usize)> {
    if json.as_bytes().get(1) != Some(&b'u') {
        return Some((2, 1));
    }
    let unit = |at: usize| u16::from_str_radix(json.get(at..at + 4)?, 16).ok();
    let first = unit(2)?;
    if (0xd800..0xdc00).contains(&first) { Some((12, 4)) } else { Some((6, char::from_u32(first.into())?.len_utf8())) }
}

/// A text as the inside of a JSON text.
fn json_text(text: &str, ascii: bool) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let inner = quoted.trim_matches('"').to_owned();
    if !ascii {
        return inner;
    }
    let mut units = [0; 2];
    inner
        .chars()
        .map(|c| match c.is_ascii() {
            true => c.to_string(),
            false => c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fixed(text: &str, kind: SourceKind, from: &str, to: &str) -> String {
        let document = read::parse(text.as_bytes(), kind);
        let edits: Vec<(&Link, String)> =
            document.links.iter().filter(|link| &*link.target == from).map(|link| (link, to.to_owned())).collect();
        assert!(!edits.is_empty(), "no link to {from}");
        let new = apply(text, kind, &edits);
        assert!(proven(text, &new, kind, &edits), "{new}");
        new
    }

    #[test]
    fn only_the_target_changes() {
        let text = "\u{feff}[a.md](a.md \"a.md\") ![x](<a.md>)\r\n<a href='a.md'>a.md</a>\r\n\r\n[r]: a.md\r\n[r] a.md [![i](a.md)](a.md)\r\n";
        assert_eq!(
            fixed(text, SourceKind::Markdown, "a.md", "b.md"),
            "\u{feff}[a.md](b.md \"a.md\") ![x](<b.md>)\r\n<a href='b.md'>a.md</a>\r\n\r\n[r]: b.md\r\n[r] a.md [![i](b.md)](b.md)\r\n"
        );
    }

    #[test]
    fn a_notebook_keeps_its_form() {
        let text = "{\"cells\": [{\"cell_type\": \"markdown\", \"source\": [\"\\u63a8 \\\"q\\\" \\ud83d\\ude80\\n\",\n \"[x](\\u63a8.md) [y](推.md)\"]}]}";
        assert_eq!(
            fixed(text, SourceKind::Notebook, "推.md", "理.md"),
            text.replace("(\\u63a8.md)", "(\\u7406.md)").replace("(推.md)", "(理.md)")
        );
    }

    proptest! {
        /// Whatever stands around it, a target is found where the parser says it is.
        #[test]
        fn a_located_target_is_the_target(before in "[a-z\\[\\]()*_`\"\\\\é一 ]{0,12}", target in "[a-z/]{1,6}\\.md") {
            let text = format!("{before} [t]({target} \"n\") end [{target}]({target})\n");
            for link in read::parse(text.as_bytes(), SourceKind::Markdown).links {
                if let Some(range) = locate(&text, &link) {
                    prop_assert_eq!(&text[range], &*link.target);
                }
            }
        }

        #[test]
        fn json_ranges_hold_what_they_should(words in proptest::collection::vec("[a-z\"\\\\\u{1}é推🚀]{0,6}", 1..5), cut in 0usize..40) {
            let json = serde_json::to_string(&words).unwrap();
            let text = words.concat();
            let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            if let Some(&start) = ends.get(cut) {
                let end = text[start..].chars().next().map_or(start, |c| start + c.len_utf8());
                if let Some(raw) = json_range(&json, &(start..end)) {
                    let decoded: String = serde_json::from_str(&format!("\"{}\"", &json[raw])).unwrap();
                    prop_assert_eq!(&decoded, &text[start..end]);
                }
            }
        }
    }
}
