//! Raw HTML in Markdown: addresses, ids, headings and comments, each with its place.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use std::convert::Infallible;
use std::ops::Range;

/// What a piece of HTML holds, in order. Ranges are bytes of the piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HtmlItem {
    /// `href` of a link.
    Href(String, Range<usize>),
    /// `src`, `poster` or one candidate of `srcset`.
    Asset(String, Range<usize>),
    /// `id`, or `name` of an `a`.
    Id(String),
    /// `<h1>` to `<h6>`.
    HeadingOpen(usize),
    /// `</h1>` to `</h6>`.
    HeadingClose,
    /// `<script>`
    Script,
    /// Text outside of tags.
    Text(String),
    /// Contents of a comment.
    Comment(String, usize),
}

/// Tokenizes a piece of HTML as a browser does.
pub(super) fn scan(html: &str) -> Vec<HtmlItem> {
    let mut scanner = Scanner::default();
    let emitter = {
        let scanner = &mut scanner;
        let mut emitter =
            CallbackEmitter::new(move |event: CallbackEvent<'_>, span: Span<usize>| -> Option<Infallible> {
                scanner.take(event, span);
                None
            });
        emitter.naively_switch_states(true);
        emitter
    };
    // A reader over a text cannot fail.
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
    scanner.items
}

#[derive(Default)]
struct Scanner {
    items: Vec<HtmlItem>,
    tag: String,
    attribute: String,
    /// Inside script, style and their like, whose text nobody reads.
    hidden: bool,
}

impl Scanner {
    fn take(&mut self, event: CallbackEvent<'_>, span: Span<usize>) {
        match event {
            CallbackEvent::OpenStartTag { name } => self.open(name, span.start),
            CallbackEvent::AttributeName { name } => self.attribute = String::from_utf8_lossy(name).into_owned(),
            CallbackEvent::AttributeValue { value } => self.value(value, span.start..span.end),
            CallbackEvent::EndTag { name } => {
                self.hidden = false;
                if heading_level(name) {
                    self.items.push(HtmlItem::HeadingClose);
                }
            }
            CallbackEvent::String { value } if !self.hidden => {
                self.items.push(HtmlItem::Text(String::from_utf8_lossy(value).into_owned()));
            }
            CallbackEvent::Comment { value } => {
                self.items.push(HtmlItem::Comment(String::from_utf8_lossy(value).into_owned(), span.start));
            }
            _ => {}
        }
    }

    fn open(&mut self, name: &[u8], at: usize) {
        self.tag = String::from_utf8_lossy(name).into_owned();
        self.hidden = matches!(self.tag.as_str(), "script" | "style" | "title" | "textarea");
        if self.tag == "script" {
            self.items.push(HtmlItem::Script);
        }
        if heading_level(name) {
            self.items.push(HtmlItem::HeadingOpen(at));
        }
    }

    fn value(&mut self, value: &[u8], range: Range<usize>) {
        let value = String::from_utf8_lossy(value).into_owned();
        match (self.attribute.as_str(), self.tag.as_str()) {
            ("id", _) | ("name", "a") => self.items.push(HtmlItem::Id(value)),
            ("href", "a" | "area") => self.items.push(HtmlItem::Href(value, range)),
            ("src", "img" | "video" | "audio" | "source" | "iframe" | "embed" | "track" | "input")
            | ("poster", "video") => self.items.push(HtmlItem::Asset(value, range)),
            ("srcset", "img" | "source") => {
                // Character references make the value shorter than its source; then the
                // place of a candidate is the place of the attribute.
                let exact = value.len() == range.len();
                for candidate in srcset(&value) {
                    let url = value[candidate.clone()].to_owned();
                    let at =
                        if exact { range.start + candidate.start..range.start + candidate.end } else { range.clone() };
                    self.items.push(HtmlItem::Asset(url, at));
                }
            }
            _ => {}
        }
    }
}

fn heading_level(name: &[u8]) -> bool {
    matches!(name, [b'h' | b'H', b'1'..=b'6'])
}

/// Where the addresses of a `srcset` stand (HTML standard, "parse a srcset attribute").
fn srcset(value: &str) -> Vec<Range<usize>> {
    let bytes = value.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        while at < bytes.len() && (bytes[at].is_ascii_whitespace() || bytes[at] == b',') {
            at += 1;
        }
        if at == bytes.len() {
            return found;
        }
        let start = at;
        while at < bytes.len() && !bytes[at].is_ascii_whitespace() {
            at += 1;
        }
        let end = start + value[start..at].trim_end_matches(',').len();
        found.push(start..end);
        if end == at {
            at = skip_descriptor(bytes, at);
        }
    }
}

/// Passes over `2x` or `100w` up to the comma that ends it; commas in parentheses do not.
fn skip_descriptor(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < bytes.len() {
        match bytes[at] {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => break,
            _ => {}
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn addresses(html: &str) -> Vec<(String, String)> {
        let pick = |item| match item {
            HtmlItem::Href(url, range) | HtmlItem::Asset(url, range) => Some((url, html[range].to_owned())),
            _ => None,
        };
        scan(html).into_iter().filter_map(pick).collect()
    }

    #[test]
    fn addresses_are_found_where_they_stand() {
        let html = "<a class=x href='a.md'>t</a> <IMG SRC=b.png> <video poster=\"c.png\"></video>";
        let found = addresses(html);
        let urls: Vec<&str> = found.iter().map(|(url, _)| url.as_str()).collect();
        assert_eq!(urls, ["a.md", "b.png", "c.png"]);
        assert!(found.iter().all(|(url, source)| url == source), "{found:?}");
    }

    #[test]
    fn bound_attributes_scripts_and_comments_hold_no_address() {
        assert_eq!(addresses("<img :src=\"a\"><a v-bind:href='b'><a @click=\"href='x'\">"), []);
        assert_eq!(addresses("<script>const a = '<a href=\"x\">'</script><style>a{}</style>"), []);
        assert_eq!(addresses("<!-- <a href=\"x\"> --><a data-href='y'>"), []);
    }

    #[test]
    fn srcset_candidates_are_separate() {
        let value = "a.png 1x,b,c.png 2x, d.png, e.png 100w";
        let urls: Vec<&str> = srcset(value).into_iter().map(|range| &value[range]).collect();
        assert_eq!(urls, ["a.png", "b,c.png", "d.png", "e.png"]);
    }

    proptest! {
        #[test]
        fn any_text_is_tokenized_and_every_range_lies_in_it(html in "[<>a/!=\"' \\-&;hrefscté一]{0,60}") {
            for item in scan(&html) {
                if let HtmlItem::Href(_, range) | HtmlItem::Asset(_, range) = item {
                    prop_assert!(html.get(range).is_some());
                }
            }
        }
    }
}
