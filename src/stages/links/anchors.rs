//! The ids of a page under each rule, and whether a fragment names one of them.

use super::document::{Document, Heading, Outline};
use super::read::SourceKind;
use super::slug;
use super::target::decode;
use std::collections::HashMap;

/// Which renderer makes the ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Style {
    /// GitHub; for notebooks also Jupyter.
    Github,
    /// VitePress.
    Vitepress,
}

/// The ids of a page under one rule.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    ids: HashMap<String, Id>,
    /// The id a heading would have, and the one that its author gave it instead.
    replaced: Vec<(String, String)>,
}

/// What is known of an id.
#[derive(Debug, Clone, Copy, Default)]
struct Id {
    /// Rank on the page; `None` for a second reading that is not worth suggesting.
    rank: Option<u32>,
    /// Headings so far whose own id this is.
    repeats: u32,
}

impl Anchors {
    /// The ids of a document. `include` finds the headings of an included file.
    pub(super) fn of(document: &Document, kind: SourceKind, style: Style, headings: &[&Heading]) -> Self {
        let mut anchors = Anchors::default();
        if kind == SourceKind::Notebook {
            // First, because what is suggested should work where notebooks are read.
            for heading in headings {
                anchors.add(slug::jupyter(&heading.text));
            }
        }
        match style {
            Style::Github => anchors.add_github(headings),
            Style::Vitepress => anchors.add_vitepress(headings),
        }
        for id in &document.ids {
            anchors.add(id.to_string());
        }
        anchors
    }

    fn add(&mut self, id: String) {
        let rank = u32::try_from(self.ids.len()).ok();
        self.ids.entry(id).or_insert(Id { rank, repeats: 0 });
    }

    fn add_silently(&mut self, id: String) {
        self.ids.entry(id).or_default();
    }

    fn add_github(&mut self, headings: &[&Heading]) {
        for heading in headings {
            let base = slug::github(&heading.text);
            // White space around the text of a hand-written tag: renderers differ.
            if heading.html && heading.text.trim().len() != heading.text.len() {
                self.add_silently(slug::github(heading.text.trim()));
            }
            let rank = u32::try_from(self.ids.len()).ok();
            let repeated = match self.ids.get_mut(&base) {
                Some(known) => {
                    known.repeats += 1;
                    (known.repeats > 1).then(|| known.repeats - 1)
                }
                None => {
                    self.ids.insert(base, Id { rank, repeats: 1 });
                    continue;
                }
            };
            if let Some(number) = repeated {
                self.add(format!("{base}-{number}"));
            }
        }
    }

    /// Custom ids and generated ones share one numbering; a repeat takes the first free
    /// number (markdown-it-anchor).
    fn add_vitepress(&mut self, headings: &[&Heading]) {
        let mut next: HashMap<String, usize> = HashMap::new();
        for heading in headings.iter().filter(|heading| !heading.html) {
            let (text, custom) = custom_id(heading.site_text());
            if let Some(id) = custom {
                self.replaced.push((slug::vitepress(text), id.to_owned()));
                self.add(id.to_owned());
                continue;
            }
            // Which `:name:` are emoji is the renderer's to know; both readings count.
            if let Some(without) = without_shortcodes(text) {
                self.add_silently(slug::vitepress(&without));
            }
            let base = slug::vitepress(text);
            let number = next.entry(base.clone()).or_default();
            let mut id = base.clone();
            while self.ids.contains_key(&id) {
                *number += 1;
                id = format!("{base}-{number}");
            }
            self.add(id);
        }
    }

    /// Whether the page has this id.
    pub(super) fn has(&self, id: &str) -> bool {
        self.ids.contains_key(id)
    }

    /// The ids that authors of headings chose in place of this one.
    pub(super) fn chosen_instead(&self, id: &str) -> Vec<&str> {
        self.replaced.iter().filter(|(replaced, _)| replaced == id).map(|(_, chosen)| chosen.as_str()).collect()
    }

    /// Whether the page has no id at all.
    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Ids worth suggesting, in order of the page.
    pub(super) fn listed(&self) -> Vec<&str> {
        let mut listed: Vec<(u32, &str)> =
            self.ids.iter().filter_map(|(text, id)| Some((id.rank?, text.as_str()))).collect();
        listed.sort_unstable();
        listed.into_iter().map(|(_, text)| text).collect()
    }
}

/// Splits `Title {#id .class}` into text and id, as markdown-it-attrs does.
fn custom_id(text: &str) -> (&str, Option<&str>) {
    let trimmed = text.trim_end();
    let Some(inner) = trimmed.strip_suffix('}') else { return (text, None) };
    let Some(at) = inner.rfind('{') else { return (text, None) };
    let attributes = &inner[at + 1..];
    let is_attribute = |word: &str| word.starts_with(['#', '.']) || word.contains('=');
    if attributes.trim().is_empty() || !attributes.split_whitespace().all(is_attribute) {
        return (text, None);
    }
    (&text[..at], attributes.split_whitespace().find_map(|word| word.strip_prefix('#')))
}

/// The text without `:rocket:` and its like; `None` when there is none.
fn without_shortcodes(text: &str) -> Option<String> {
    let mut kept = String::new();
    let mut rest = text;
    let mut any = false;
    while let Some(at) = rest.find(':') {
        let name = rest[at + 1..].split(':').next().unwrap_or_default();
        let is_code = !name.is_empty()
            && rest[at + 1 + name.len()..].starts_with(':')
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_+-".contains(&byte));
        kept.push_str(&rest[..at]);
        if is_code {
            any = true;
            rest = &rest[at + name.len() + 2..];
        } else {
            kept.push(':');
            rest = &rest[at + 1..];
        }
    }
    kept.push_str(rest);
    any.then_some(kept)
}

/// How a fragment meets the ids of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meeting {
    /// It names one.
    Exact,
    /// It names one on GitHub, which tries the lower-case form too.
    OtherCase,
    /// It names none.
    None,
}

/// Looks a fragment up. `rewritten`: the renderer sends the fragment of this kind of
/// link through its own function first.
pub(super) fn meet(anchors: &Anchors, fragment: &str, style: Style, rewritten: bool) -> Meeting {
    let decoded = decode(fragment);
    if decoded.is_empty() || decoded.eq_ignore_ascii_case("top") {
        return Meeting::Exact;
    }
    if style == Style::Vitepress && rewritten {
        let slug = slug::vitepress(&super::target::decode_uri(fragment));
        return if slug.is_empty() || anchors.has(&slug) { Meeting::Exact } else { Meeting::None };
    }
    if anchors.has(&decoded) {
        return Meeting::Exact;
    }
    if style == Style::Vitepress {
        return Meeting::None;
    }
    let id = decoded.strip_prefix("user-content-").unwrap_or(&decoded);
    if anchors.has(id) {
        Meeting::Exact
    } else if anchors.has(&id.to_lowercase()) {
        Meeting::OtherCase
    } else {
        Meeting::None
    }
}

/// Finds an included file: from the path of the including file and the path as written,
/// the path and the document of the included one.
pub(super) type OpenInclude<'o, 'd> = &'o dyn Fn(&str, &str) -> Option<(String, &'d Document)>;

/// The headings of a document with those of its includes, in order.
pub(super) fn headings<'d>(path: &str, document: &'d Document, open: OpenInclude<'_, 'd>) -> Vec<&'d Heading> {
    let mut collector = Collector { open, trail: vec![path.to_owned()], all: Vec::new() };
    collector.collect(document, None);
    collector.all
}

/// Includes nested deeper than this are a mistake.
const MAX_DEPTH: usize = 20;

struct Collector<'o, 'd> {
    open: OpenInclude<'o, 'd>,
    /// The files that include each other, from the page on.
    trail: Vec<String>,
    all: Vec<&'d Heading>,
}

impl<'d> Collector<'_, 'd> {
    fn collect(&mut self, document: &'d Document, lines: Option<(u32, u32)>) {
        for entry in &document.outline {
            match entry {
                Outline::Heading(heading) => {
                    if lines.is_none_or(|(from, to)| (from..=to).contains(&heading.line)) {
                        self.all.push(heading);
                    }
                }
                Outline::Include(written) => self.include(written),
            }
        }
    }

    fn include(&mut self, written: &str) {
        let (path, lines) = include_range(written);
        let from = self.trail.last().map_or("", String::as_str);
        let Some((path, included)) = (self.open)(from, path) else { return };
        if self.trail.len() < MAX_DEPTH && !self.trail.contains(&path) {
            self.trail.push(path);
            self.collect(included, lines);
            self.trail.pop();
        }
    }
}

/// Splits `path{3,10}` or `path#region`. A region counts as the whole file.
fn include_range(written: &str) -> (&str, Option<(u32, u32)>) {
    let (path, range) = match written.strip_suffix('}').and_then(|text| text.rsplit_once('{')) {
        Some((path, range)) => (path, range),
        None => (written, ""),
    };
    let path = path.split('#').next().unwrap_or(path).trim();
    let Some((from, to)) = range.split_once(',') else {
        let only = range.trim().parse().ok();
        return (path, only.map(|line| (line, line)));
    };
    (path, Some((from.trim().parse().unwrap_or(1), to.trim().parse().unwrap_or(u32::MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::links::extract;

    fn anchors(text: &str, style: Style) -> Anchors {
        let document = extract::markdown(text);
        let headings = headings("a.md", &document, &|_, _| None);
        Anchors::of(&document, SourceKind::Markdown, style, &headings)
    }

    #[test]
    fn repeats_are_numbered() {
        let text = "# A\n\n# A\n\n## A 1\n\n# A\n";
        let github = anchors(text, Style::Github);
        assert_eq!(github.listed(), ["a", "a-1", "a-2"]);
        let site = anchors(text, Style::Vitepress);
        assert_eq!(site.listed(), ["a", "a-1", "a-1-1", "a-2"]);
    }

    #[test]
    fn many_repeats_are_numbered_in_linear_time() {
        let text = "# A\n".repeat(100_000);
        let site = anchors(&text, Style::Vitepress);
        assert!(site.has("a-99999") && !site.has("a-100000"));
    }

    #[test]
    fn custom_ids_belong_to_vitepress() {
        let text = "## Setup {#install}\n\n## B { #b .x }\n\n## Set {a, b}\n";
        assert_eq!(anchors(text, Style::Vitepress).listed(), ["install", "b", "set-a-b"]);
        assert!(anchors(text, Style::Github).has("setup-install"));
    }

    #[test]
    fn headings_in_quotes_lists_and_under_lines_count() {
        let text = "Setext\n===\n\n> ## Quoted\n\n- # Listed\n\n```\n# code\n```\n";
        assert_eq!(anchors(text, Style::Github).listed(), ["setext", "quoted", "listed"]);
    }

    #[test]
    fn an_image_is_no_text_on_github_and_its_alt_is_on_the_site() {
        let text = "## Status ![badge](b.png)\n";
        assert_eq!(anchors(text, Style::Github).listed(), ["status-"]);
        assert_eq!(anchors(text, Style::Vitepress).listed(), ["status-badge"]);
    }

    #[test]
    fn character_references_stay_on_the_site() {
        assert_eq!(anchors("## a &amp; b\n", Style::Vitepress).listed(), ["a-amp-b"]);
        assert_eq!(anchors("## a &amp; b\n", Style::Github).listed(), ["a--b"]);
    }

    #[test]
    fn html_headings_may_span_blocks() {
        let text = "<h2 align=\"center\">\n\nThe *Title*\n\n</h2>\n\n# Next\n";
        let github = anchors(text, Style::Github);
        assert!(github.has("the-title") && github.has("next"), "{:?}", github.listed());
    }

    #[test]
    fn include_ranges_are_read() {
        assert_eq!(include_range("./a.md{3,10}"), ("./a.md", Some((3, 10))));
        assert_eq!(include_range("./a.md{3,}"), ("./a.md", Some((3, u32::MAX))));
        assert_eq!(include_range("./a.md#part"), ("./a.md", None));
    }
}
