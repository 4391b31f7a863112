//! From Markdown to links, headings, ids and ignore comments: one pass.

use super::document::{Document, Heading, IgnoreComment, Link, LinkKind, Outline, Place};
use super::html::{self, HtmlItem};
use memchr::memchr;
use pulldown_cmark::{Event, LinkType, OffsetIter, Options, Parser, Tag, TagEnd};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// What GitHub, Jupyter and VitePress all understand. Heading attributes are left out:
/// they are text on GitHub, and the VitePress rule takes them off itself.
const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_MATH)
    .union(Options::ENABLE_GFM);

/// Reads one Markdown file (without byte-order mark).
pub(super) fn markdown(text: &str) -> Document {
    let mut document = Document::default();
    let body = front_matter(text).map_or(0, |range| range.end);
    document.links = front_matter_links(text);
    Extractor::new(text, body, 0).run(&mut document);
    document
}

/// Reads one markdown cell of a notebook into its document.
pub(super) fn cell(text: &str, number: u32, document: &mut Document) {
    Extractor::new(text, 0, number).run(document);
}

/// The `link:` values of `hero:` and `features:` in the front matter of a VitePress page.
fn front_matter_links(text: &str) -> Vec<Link> {
    let Some(range) = front_matter(text) else { return Vec::new() };
    let mut cursor = Cursor::new(text, 0);
    let mut section = "";
    let mut links = Vec::new();
    let mut start = 0;
    for line in text[range].split_inclusive('\n') {
        if line.starts_with(|c: char| c.is_ascii_alphabetic()) {
            section = line.split(':').next().unwrap_or_default().trim();
        } else if matches!(section, "hero" | "features")
            && let Some(value) = yaml_link(line)
        {
            let span = start + value.start..start + value.end;
            let target = text[span.clone()].into();
            links.push(Link {
                target,
                kind: LinkKind::FrontMatter,
                place: cursor.place(span.clone()),
                span,
                ignored_by: None,
            });
        }
        start += line.len();
    }
    links
}

/// Where the value of a line `- link: value` stands in it.
fn yaml_link(line: &str) -> Option<Range<usize>> {
    let key = line.trim_start().trim_start_matches("- ").trim_start();
    let rest = key.strip_prefix("link:")?.trim_start();
    let start = line.len() - rest.len();
    let quoted = rest.strip_prefix(['"', '\'']);
    let (start, value) = match quoted {
        Some(inner) => (start + 1, inner.split(&rest[..1]).next().unwrap_or_default()),
        None => (start, rest.split(" #").next().unwrap_or_default().trim_end()),
    };
    (!value.is_empty()).then_some(start..start + value.len())
}

/// The range of the front matter, its fences included.
fn front_matter(text: &str) -> Option<Range<usize>> {
    let first = text.find('\n')?;
    if text[..first].trim_end() != "---" {
        return None;
    }
    let mut at = first + 1;
    for line in text[at..].split_inclusive('\n') {
        at += line.len();
        if line.trim_end() == "---" {
            return Some(0..at);
        }
    }
    None
}

/// Turns byte offsets that only grow into lines and columns, each byte looked at once.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    column: u32,
    cell: u32,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str, cell: u32) -> Self {
        Cursor { text, at: 0, line: 1, column: 1, cell }
    }

    fn place(&mut self, span: Range<usize>) -> Place {
        self.advance(span.start);
        let first_line = self.text.get(span).unwrap_or_default().lines().next().unwrap_or_default();
        Place { cell: self.cell, line: self.line, column: self.column, length: count(first_line).max(1) }
    }

    fn advance(&mut self, to: usize) {
        let bytes = self.text.as_bytes();
        while let Some(found) = memchr(b'\n', &bytes[self.at..to.max(self.at)]) {
            self.at += found + 1;
            self.line += 1;
            self.column = 1;
        }
        if to > self.at {
            self.column += count(self.text.get(self.at..to).unwrap_or_default());
            self.at = to;
        }
    }
}

fn count(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}

/// A link before its line and column are known.
struct Found {
    target: Box<str>,
    kind: LinkKind,
    span: Range<usize>,
}

/// A heading that is being read.
struct OpenHeading {
    text: String,
    site_text: String,
    html: bool,
    at: usize,
    images: usize,
}

/// Range of an ignore comment.
struct Ignored {
    comment: Range<usize>,
    range: Range<usize>,
}

struct Extractor<'a> {
    text: &'a str,
    /// Where the Markdown begins, behind the front matter.
    body: usize,
    cell: u32,
    links: Vec<Found>,
    definitions: HashSet<usize>,
    heading: Option<OpenHeading>,
    headings: Vec<(usize, Outline)>,
    ids: Vec<Box<str>>,
    scripted: bool,
    html_block: Option<HtmlBlock>,
    blocks: Vec<Range<usize>>,
    /// Links and code blocks around: no address in their text is a link.
    shielded: usize,
    /// Where the last bare address ended.
    bare_end: usize,
    ignored: Vec<Ignored>,
    /// Comments that wait for the next block.
    waiting: Vec<Range<usize>>,
    /// Start comments that wait for their end.
    opened: Vec<Range<usize>>,
}

/// The lines of an HTML block; in a quote or list they are not contiguous in the source.
#[derive(Default)]
struct HtmlBlock {
    joined: String,
    /// Offset in `joined` and in the text of every piece.
    pieces: Vec<(usize, usize)>,
}

impl HtmlBlock {
    fn push(&mut self, piece: &str, at: usize) {
        self.pieces.push((self.joined.len(), at));
        self.joined.push_str(piece);
    }

    fn source(&self, offset: usize) -> usize {
        let index = self.pieces.partition_point(|(start, _)| *start <= offset).saturating_sub(1);
        self.pieces.get(index).map_or(0, |(start, source)| source + (offset - start))
    }
}

impl<'a> Extractor<'a> {
    fn new(text: &'a str, body: usize, cell: u32) -> Self {
        Extractor {
            text,
            body,
            cell,
            links: Vec::new(),
            definitions: HashSet::new(),
            heading: None,
            headings: Vec::new(),
            ids: Vec::new(),
            scripted: false,
            html_block: None,
            blocks: Vec::new(),
            shielded: 0,
            bare_end: 0,
            ignored: Vec::new(),
            waiting: Vec::new(),
            opened: Vec::new(),
        }
    }

    fn run(mut self, document: &mut Document) {
        let mut events = Parser::new_ext(&self.text[self.body..], OPTIONS).into_offset_iter();
        while let Some((event, range)) = events.next() {
            let range = range.start + self.body..range.end + self.body;
            self.take(event, range, &events);
        }
        self.close_heading();
        let end = self.text.len();
        for comment in std::mem::take(&mut self.opened).into_iter().chain(std::mem::take(&mut self.waiting)) {
            self.ignored.push(Ignored { range: comment.end..end, comment });
        }
        self.finish(document);
    }

    fn take(&mut self, event: Event<'a>, range: Range<usize>, events: &OffsetIter<'a>) {
        match event {
            Event::Start(tag) => self.start(tag, range, events),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => {
                self.bare_addresses(range.clone());
                self.heading_text(&text, range);
            }
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                if let Some(heading) = &mut self.heading {
                    heading.text.push_str(&text);
                    heading.site_text.push_str(&text);
                }
            }
            Event::Html(piece) => {
                self.html_block.get_or_insert_default().push(&piece, range.start);
            }
            Event::InlineHtml(piece) => {
                let mut block = HtmlBlock::default();
                block.push(&piece, range.start);
                self.html(&block, true);
            }
            Event::SoftBreak
            | Event::HardBreak
            | Event::Rule
            | Event::TaskListMarker(_)
            | Event::FootnoteReference(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'a>, range: Range<usize>, events: &OffsetIter<'a>) {
        match tag {
            Tag::Link { link_type, dest_url, id, .. } => {
                self.shielded += 1;
                self.link(LinkKind::Link, link_type, &dest_url, &id, range, events)
            }
            Tag::Image { link_type, dest_url, id, .. } => {
                if let Some(heading) = &mut self.heading {
                    heading.images += 1;
                }
                self.link(LinkKind::Image, link_type, &dest_url, &id, range, events);
            }
            Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Superscript | Tag::Subscript => {}
            block => self.start_block(&block, range),
        }
    }

    fn start_block(&mut self, tag: &Tag<'a>, range: Range<usize>) {
        if let Tag::Heading { .. } = tag {
            self.open_heading(range.start, false);
        }
        if matches!(tag, Tag::CodeBlock(_)) {
            self.shielded += 1;
        }
        if matches!(tag, Tag::HtmlBlock) {
            self.html_block = Some(HtmlBlock::default());
        } else {
            for comment in std::mem::take(&mut self.waiting) {
                self.ignored.push(Ignored { range: comment.end..range.end, comment });
            }
        }
        self.blocks.push(range);
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Link => {
                self.shielded = self.shielded.saturating_sub(1);
                return;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => return,
            TagEnd::Superscript | TagEnd::Subscript => return,
            TagEnd::Image => {
                if let Some(heading) = &mut self.heading {
                    heading.images = heading.images.saturating_sub(1);
                }
                return;
            }
            TagEnd::Heading(_) => self.close_heading(),
            TagEnd::CodeBlock => self.shielded = self.shielded.saturating_sub(1),
            TagEnd::HtmlBlock => {
                if let Some(block) = self.html_block.take() {
                    self.html(&block, false);
                }
            }
            _ => {}
        }
        self.blocks.pop();
    }

    /// Addresses that stand in the text as they are: GitHub and VitePress make links of
    /// them. They may run on behind the event, which ends at every `_` or `&`.
    fn bare_addresses(&mut self, range: Range<usize>) {
        if self.shielded > 0 {
            return;
        }
        let bytes = &self.text.as_bytes()[range.clone()];
        let colons = memchr::memchr_iter(b':', bytes).filter(|at| bytes[*at..].starts_with(b"://"));
        for at in colons.map(|at| range.start + at) {
            let scheme = ["https", "http"].into_iter().find(|scheme| self.text[..at].ends_with(scheme));
            let Some(start) = scheme.map(|scheme| at - scheme.len()).filter(|start| *start >= self.bare_end) else {
                continue;
            };
            let length = bare_length(&self.text[start..]);
            if start + length > at + 3 {
                self.bare_end = start + length;
                let target = self.text[start..start + length].into();
                self.links.push(Found { target, kind: LinkKind::Link, span: start..start + length });
            }
        }
    }

    fn heading_text(&mut self, text: &str, range: Range<usize>) {
        let Some(heading) = &mut self.heading else { return };
        if heading.images == 0 {
            heading.text.push_str(text);
        }
        // VitePress leaves character references to Vue: `&amp;` is the text "&amp;".
        match self.text.get(range) {
            Some(source) if source.starts_with('&') && source.ends_with(';') && source != text => {
                heading.site_text.push_str(source);
            }
            _ => heading.site_text.push_str(text),
        }
    }

    fn open_heading(&mut self, at: usize, html: bool) {
        self.close_heading();
        self.heading = Some(OpenHeading { text: String::new(), site_text: String::new(), html, at, images: 0 });
    }

    fn close_heading(&mut self) {
        let Some(open) = self.heading.take() else { return };
        let site_text = (open.site_text != open.text).then(|| open.site_text.into());
        let heading = Heading { text: open.text.into(), site_text, html: open.html, line: 0 };
        self.headings.push((open.at, Outline::Heading(heading)));
    }

    fn link(
        &mut self,
        kind: LinkKind,
        how: LinkType,
        target: &str,
        id: &str,
        range: Range<usize>,
        events: &OffsetIter<'a>,
    ) {
        match how {
            LinkType::Email => return,
            LinkType::Reference | LinkType::Collapsed | LinkType::Shortcut => {
                let Some(definition) = events.reference_definitions().get(id) else { return };
                let start = definition.span.start + self.body;
                // One finding per definition: it is the only place to correct.
                if !self.definitions.insert(start) {
                    return;
                }
                let end = definition.span.end + self.body;
                self.links.push(Found { target: target.into(), kind, span: start..end });
                return;
            }
            _ => {}
        }
        self.links.push(Found { target: target.into(), kind, span: range });
    }

    fn html(&mut self, block: &HtmlBlock, inline: bool) {
        for item in html::scan(&block.joined) {
            match item {
                HtmlItem::Href(url, range) => self.address(url, LinkKind::HtmlLink, block, range),
                HtmlItem::Asset(url, range) => self.address(url, LinkKind::HtmlAsset, block, range),
                HtmlItem::Script => self.scripted = true,
                HtmlItem::Id(id) => self.ids.push(id.into()),
                // A tag inside a Markdown heading opens no second one.
                HtmlItem::HeadingOpen(at) if self.heading.as_ref().is_none_or(|heading| heading.html) => {
                    self.open_heading(block.source(at), true);
                }
                HtmlItem::HeadingClose if self.heading.as_ref().is_some_and(|heading| heading.html) => {
                    self.close_heading()
                }
                HtmlItem::Text(text) if !inline => {
                    if let Some(heading) = &mut self.heading {
                        heading.text.push_str(&text);
                        heading.site_text.push_str(&text);
                    }
                }
                HtmlItem::Comment(text, at) => self.comment(&text, block.source(at), inline),
                _ => {}
            }
        }
    }

    fn address(&mut self, url: String, kind: LinkKind, block: &HtmlBlock, range: Range<usize>) {
        let span = block.source(range.start)..block.source(range.end.saturating_sub(1)) + 1;
        self.links.push(Found { target: url.trim().into(), kind, span });
    }

    fn comment(&mut self, text: &str, at: usize, inline: bool) {
        let text = text.trim();
        if let Some(path) = text.strip_prefix("@include:") {
            self.headings.push((at, Outline::Include(path.trim().into())));
            return;
        }
        let Some(directive) = text.strip_prefix("verify-ignore") else { return };
        let length = self.text[at..].find("-->").map_or(self.text.len() - at, |length| length + 3);
        let comment = at..at + length;
        match Directive::parse(directive) {
            Some(Directive::Next) if inline => {
                let range = self.blocks.last().cloned().unwrap_or(comment.clone());
                self.ignored.push(Ignored { range, comment });
            }
            Some(Directive::Next) => self.waiting.push(comment),
            Some(Directive::Start) => self.opened.push(comment),
            Some(Directive::End) => {
                if let Some(start) = self.opened.pop() {
                    self.ignored.push(Ignored { range: start.end..at, comment: start });
                }
            }
            None => {}
        }
    }

    fn finish(mut self, document: &mut Document) {
        self.links.sort_by_key(|link| link.span.start);
        let first_ignore = document.ignores.len();
        self.ignored.sort_by_key(|ignored| ignored.comment.start);
        let mut cursor = Cursor::new(self.text, self.cell);
        for ignored in &self.ignored {
            let place = cursor.place(ignored.comment.clone());
            document.ignores.push(IgnoreComment { place, used: AtomicBool::new(false) });
        }
        let mut cursor = Cursor::new(self.text, self.cell);
        for found in self.links {
            let ignored_by = self.ignored.iter().position(|ignored| ignored.range.contains(&found.span.start));
            document.links.push(Link {
                target: found.target,
                kind: found.kind,
                place: cursor.place(found.span.clone()),
                span: found.span,
                ignored_by: ignored_by.and_then(|index| u32::try_from(first_ignore + index).ok()),
            });
        }
        let mut cursor = Cursor::new(self.text, self.cell);
        self.headings.sort_by_key(|(at, _)| *at);
        document.outline.extend(self.headings.into_iter().map(|(at, mut entry)| {
            if let Outline::Heading(heading) = &mut entry {
                cursor.advance(at);
                heading.line = cursor.line;
            }
            entry
        }));
        document.ids.extend(self.ids);
        document.scripted |= self.scripted;
    }
}

/// Length of the address at the start of a text (GFM, extended autolinks; also ended by
/// the punctuation that follows an address in Chinese).
fn bare_length(text: &str) -> usize {
    let ends = |c: char| {
        c.is_whitespace() || matches!(c, '<' | '|' | '`' | '"' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}')
    };
    let mut address = &text[..text.find(ends).unwrap_or(text.len())];
    loop {
        let trimmed = address.trim_end_matches(['?', '!', '.', ',', ':', ';', '*', '_', '~', '\'', ']', '}']);
        let unbalanced = trimmed.ends_with(')') && trimmed.matches(')').count() > trimmed.matches('(').count();
        let next = if unbalanced { &trimmed[..trimmed.len() - 1] } else { trimmed };
        if next.len() == address.len() {
            return address.len();
        }
        address = next;
    }
}

/// What an ignore comment asks for.
#[derive(Debug, PartialEq, Eq)]
enum Directive {
    Next,
    Start,
    End,
}

impl Directive {
    /// Reads what follows `verify-ignore` in a comment: `-start`, `-end` or nothing, then
    /// `links`, then anything (a reason).
    fn parse(text: &str) -> Option<Self> {
        let (directive, rest) = match text {
            _ if text.starts_with("-start") => (Directive::Start, &text[6..]),
            _ if text.starts_with("-end") => (Directive::End, &text[4..]),
            _ => (Directive::Next, text),
        };
        let word = rest.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty())?;
        (word == "links" && rest.starts_with(|c: char| c.is_whitespace() || c == ':')).then_some(directive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn targets(text: &str) -> Vec<(String, u32, u32)> {
        let links = markdown(text).links;
        links.iter().map(|link| (link.target.to_string(), link.place.line, link.place.column)).collect()
    }

    fn link(target: &str, line: u32, column: u32) -> (String, u32, u32) {
        (target.to_owned(), line, column)
    }

    #[test]
    fn every_way_to_write_a_link() {
        let text = "[a](a.md \"t\") ![b](<b c.png>) <https://x.y> [d][D] [u][nowhere]\n\n[d]: d.md\n[e]: e.md\n\n<a href='f.md'>f</a>\n";
        assert_eq!(
            targets(text),
            [
                link("a.md", 1, 1),
                link("b c.png", 1, 15),
                link("https://x.y", 1, 31),
                link("d.md", 3, 1),
                link("f.md", 6, 10)
            ]
        );
    }

    #[test]
    fn html_blocks_in_quotes_keep_their_places() {
        let text = "> <p>\n> 中 <img\n>  src=\"a.png\">\n> </p>\n";
        assert_eq!(targets(text), [link("a.png", 3, 9)]);
    }

    #[test]
    fn bare_addresses_end_where_the_renderers_end_them() {
        let text = "See https://a.b/c_d_e(f)?g=h. (https://i.j/k), 见https://l.m/n。`https://no.code`\n\n[https://no.link](a.md)\n";
        let found: Vec<String> = targets(text).into_iter().map(|(target, ..)| target).collect();
        assert_eq!(found, ["https://a.b/c_d_e(f)?g=h", "https://i.j/k", "https://l.m/n", "a.md"]);
    }

    #[test]
    fn front_matter_holds_no_links_but_those_of_hero_and_features() {
        let text = "---\ntitle: '[x](x.md)'\nlink: /no\nhero:\n  actions:\n    - link: \"/a\"\n    - { link: /flow }\nfeatures:\n  - title: t\n    link: ./b # why\n---\n\n[c](c.md)\n";
        assert_eq!(targets(text), [link("/a", 6, 14), link("./b", 10, 11), link("c.md", 13, 1)]);
    }

    /// The byte at a line and column, counted the slow way.
    fn offset(text: &str, place: Place) -> Option<usize> {
        let line = text.split_inclusive('\n').nth(place.line as usize - 1)?;
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        let column = place.column as usize - 1;
        Some(start + line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(column)?)
    }

    fn snippet() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ -~一é🚀]{0,12}",
            Just("[t](a.md)".to_owned()),
            Just("![t](a.md 'x')".to_owned()),
            Just("[t][r]\n\n[r]: a.md\n\n".to_owned()),
            Just("<img alt='é' src=\"a.md\">".to_owned()),
            Just("<p>\n<a href=a.md>x</a>\n</p>\n\n".to_owned()),
            Just("> - ".to_owned()),
            Just("\r\n".to_owned()),
            Just("\n\n\t".to_owned()),
            Just("| a | b |\n|---|---|\n| [t](a.md) | `[n](n.md)` |\n".to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn positions_point_at_the_text_that_holds_the_target(parts in proptest::collection::vec(snippet(), 0..12)) {
            let text = parts.concat();
            let mut before = 0;
            for link in markdown(&text).links {
                prop_assert!(link.span.start >= before || link.kind == LinkKind::FrontMatter);
                before = link.span.start;
                prop_assert_eq!(offset(&text, link.place), Some(link.span.start));
                let source = &text[link.span.clone()];
                if &*link.target == "a.md" {
                    prop_assert!(source.contains("a.md"), "{source:?}");
                    let starts = ["[", "!", "a.md"].iter().any(|start| source.starts_with(start));
                    prop_assert!(starts, "{source:?}");
                }
            }
        }
    }
}
