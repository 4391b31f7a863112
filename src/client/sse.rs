//! Server-sent events, bytes in, events out. Follows the WHATWG grammar
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html>): lines end with
//! CR, LF or CRLF, a leading byte-order mark is dropped, `data` lines join with LF,
//! comments vanish, an event ends at an empty line.

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// `event` field; empty when there was none.
    pub name: String,
    /// `data` lines, joined.
    pub data: String,
    /// Whether some byte of it was not UTF-8 and was replaced.
    pub replaced: bool,
}

/// An incremental parser. Feed it pieces of any size.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    started: bool,
    after_cr: bool,
    unknown: u32,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl Parser {
    /// Takes the next bytes; complete events are appended to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            match memchr::memchr2(b'\r', b'\n', rest) {
                None => {
                    self.line.extend_from_slice(rest);
                    break;
                }
                Some(end) => {
                    self.line.extend_from_slice(&rest[..end]);
                    self.after_cr = rest[end] == b'\r';
                    rest = &rest[end + 1..];
                    self.end_line(out);
                }
            }
        }
    }

    /// The end of the stream: an event without its closing empty line is given out all
    /// the same, since servers forget that line at the end. The flag says that bytes of
    /// an unfinished line were left.
    pub fn finish(&mut self, out: &mut Vec<Event>) -> bool {
        let unfinished = !self.line.is_empty();
        if unfinished {
            self.end_line(out);
        }
        self.dispatch(out);
        unfinished
    }

    /// Lines whose field is none of the grammar; they are passed over.
    pub fn unknown_fields(&self) -> u32 {
        self.unknown
    }

    fn end_line(&mut self, out: &mut Vec<Event>) {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(out);
        } else if line[0] != b':' {
            self.field(line);
        }
    }

    fn field(&mut self, line: &[u8]) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..])),
            None => (line, &[][..]),
        };
        let text = String::from_utf8_lossy(value);
        self.event.replaced |= matches!(text, std::borrow::Cow::Owned(_));
        match name {
            b"data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(&text);
                self.has_data = true;
            }
            b"event" => self.event.name = text.into_owned(),
            // Not of the grammar, but some servers report a fault in a line of its own.
            b"error" => {
                self.event.name = "error".to_owned();
                self.event.data.push_str(&text);
                self.has_data = true;
            }
            b"id" | b"retry" => {}
            _ => self.unknown += 1,
        }
    }

    fn dispatch(&mut self, out: &mut Vec<Event>) {
        let event = std::mem::take(&mut self.event);
        if std::mem::take(&mut self.has_data) {
            out.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(pieces: &[&[u8]]) -> Vec<String> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        pieces.iter().for_each(|piece| parser.push(piece, &mut events));
        parser.finish(&mut events);
        events.into_iter().map(|event| format!("{}|{}", event.name, event.data)).collect()
    }

    #[test]
    fn every_line_end_separates_events() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("data: a{end}{end}: note{end}event: x{end}data:b{end}data: c{end}{end}");
            assert_eq!(parse(&[text.as_bytes()]), ["|a", "x|b\nc"], "{end:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_and_a_missing_last_line_are_tolerated() {
        assert_eq!(parse(&[b"\xef\xbb", b"\xbfdata: 1\r", b"\n\r\ndata: [DONE]"]), ["|1", "|[DONE]"]);
        assert_eq!(parse(&[b"error: boom\n\nid: 7\n\nretry: 1\n\n"]), ["error|boom"]);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(bytes in proptest::collection::vec(prop_oneof![
            Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), any::<u8>()
        ], 0..200), cuts in proptest::collection::vec(0usize..200, 0..6)) {
            let whole = parse(&[&bytes]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(whole, parse(&pieces));
        }
    }
}
