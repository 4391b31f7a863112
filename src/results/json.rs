//! A strict RFC 8259 reader that keeps the place of every value, the text of every
//! number and every duplicate key: what a gate has to name. It goes on after faults
//! that leave the structure clear (a number that is not finite, a duplicate key) and
//! stops at those that do not.

use std::borrow::Cow;
use std::ops::Range;

/// Open containers at most; an object counts twice, for itself and for its key, as the
/// checklist's former gate (jq 1.6) counted them.
const MAX_DEPTH: usize = 256;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<'a> {
    /// Byte span in the text.
    pub span: Range<usize>,
    /// What it is.
    pub kind: Kind<'a>,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A finite number; its text is the span.
    Number(f64),
    /// `NaN`, `Infinity`, `1e999`: reported already, no number.
    NotFinite,
    /// Text, escapes resolved.
    Text(Cow<'a, str>),
    /// A list.
    Array(Vec<Node<'a>>),
    /// Members in order, duplicates included.
    Object(Vec<Member<'a>>),
}

/// One member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Member<'a> {
    /// Its name.
    pub key: Cow<'a, str>,
    /// Span of the name, quotes included.
    pub key_span: Range<usize>,
    /// Its value.
    pub value: Node<'a>,
}

impl<'a> Node<'a> {
    /// The last member of that name, as readers have it; `None` also for no object.
    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.members().iter().rev().find(|member| member.key == key).map(|member| &member.value)
    }

    /// The value at a path of member names.
    pub fn at(&self, path: &[&str]) -> Option<&Node<'a>> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The members; empty for no object.
    pub fn members(&self) -> &[Member<'a>] {
        match &self.kind {
            Kind::Object(members) => members,
            _ => &[],
        }
    }

    /// The entries; empty for no array.
    pub fn entries(&self) -> &[Node<'a>] {
        match &self.kind {
            Kind::Array(entries) => entries,
            _ => &[],
        }
    }

    /// The number.
    pub fn number(&self) -> Option<f64> {
        match self.kind {
            Kind::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The text.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// `true` or `false`.
    pub fn bool(&self) -> Option<bool> {
        match self.kind {
            Kind::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.kind == Kind::Null
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object(_))
    }
}

/// One fault of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// Byte span in the text.
    pub span: Range<usize>,
    /// JSON pointer, for a duplicate key; else the whole document.
    pub pointer: String,
}

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq)]
pub enum FaultKind {
    /// Nothing but white space.
    Empty,
    /// A merge conflict was committed.
    Conflict,
    /// The file itself is in Git LFS and was not fetched.
    LfsPointer,
    /// The grammar was left; what was expected there.
    Syntax(Expected),
    /// `NaN` or `Infinity`: no JSON, although Python writes it.
    NotFinite,
    /// A number beyond the largest double.
    NumberRange,
    /// More open containers than any result needs.
    TooDeep,
    /// A member occurs twice.
    DuplicateKey(String),
    /// Something follows the document.
    TrailingData,
}

/// What the grammar asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// A value.
    Value,
    /// A member name in double quotes.
    Key,
    /// `:`
    Colon,
    /// `,` or `}`
    CommaOrBrace,
    /// `,` or `]`
    CommaOrBracket,
    /// A digit.
    Digit,
    /// A number without a leading zero.
    NoLeadingZero,
    /// The closing quote.
    ClosingQuote,
    /// An escape that JSON knows.
    Escape,
    /// Both halves of a surrogate pair.
    SurrogatePair,
    /// A control character written as an escape.
    EscapedControl,
    /// Another member after the comma.
    MemberAfterComma,
    /// Another entry after the comma.
    EntryAfterComma,
}

/// What a text holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Document<'a> {
    /// The text, without byte order mark.
    pub text: &'a str,
    /// The value; `None` when the structure is not clear.
    pub root: Option<Node<'a>>,
    /// Faults in document order.
    pub faults: Vec<Fault>,
}

/// Reads one document.
pub fn read(text: &str) -> Document<'_> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, depth: 0, faults: Vec::new() };
    reader.skip_space();
    let root = match reader.value(Expected::Value) {
        Ok(root) => {
            reader.skip_space();
            if reader.at < text.len() {
                let (kind, span) = reader.stop(Expected::Value);
                let kind = if kind == FaultKind::Conflict { kind } else { FaultKind::TrailingData };
                reader.fault(kind, span);
            }
            duplicates(&root, &Place::Root, &mut reader.faults);
            Some(root)
        }
        Err((kind, span)) => {
            let kind = if text.trim_matches([' ', '\t', '\r', '\n']).is_empty() { FaultKind::Empty } else { kind };
            let span = if kind == FaultKind::Empty { text.len()..text.len() } else { span };
            reader.fault(kind, span);
            None
        }
    };
    let mut faults = reader.faults;
    faults.sort_by_key(|fault| fault.span.start);
    Document { text, root, faults }
}

type Stop = (FaultKind, Range<usize>);

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    faults: Vec<Fault>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn fault(&mut self, kind: FaultKind, span: Range<usize>) {
        self.faults.push(Fault { kind, span, pointer: String::new() });
    }

    /// A fault of grammar here, or what a person would call it by.
    fn stop(&self, expected: Expected) -> Stop {
        let start = self.at.min(self.text.len());
        let width = self.text[start..].chars().next().map_or(0, char::len_utf8);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = &self.text[line_start..];
        let kind = if ["<<<<<<< ", ">>>>>>> ", "=======", "||||||| "].iter().any(|mark| line.starts_with(mark)) {
            FaultKind::Conflict
        } else if self.text.starts_with("version https://git-lfs") {
            FaultKind::LfsPointer
        } else {
            FaultKind::Syntax(expected)
        };
        (kind, start..start + width)
    }

    fn value(&mut self, expected: Expected) -> Result<Node<'a>, Stop> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'N' | b'I') => self.not_finite(start)?,
            Some(_) => self.word(expected)?,
            None => return Err(self.stop(expected)),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn word(&mut self, expected: Expected) -> Result<Kind<'a>, Stop> {
        let words = [("true", Kind::Bool(true)), ("false", Kind::Bool(false)), ("null", Kind::Null)];
        for (word, kind) in words {
            if self.text[self.at..].starts_with(word) && self.ends_word(self.at + word.len()) {
                self.at += word.len();
                return Ok(kind);
            }
        }
        Err(self.stop(expected))
    }

    /// Whether nothing of a longer word follows.
    fn ends_word(&self, at: usize) -> bool {
        !self.bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    }

    /// `NaN` and `Infinity`, which Python writes: the structure stays clear.
    fn not_finite(&mut self, start: usize) -> Result<Kind<'a>, Stop> {
        for word in ["NaN", "Infinity"] {
            if self.text[self.at..].starts_with(word) && self.ends_word(self.at + word.len()) {
                self.at += word.len();
                self.fault(FaultKind::NotFinite, start..self.at);
                return Ok(Kind::NotFinite);
            }
        }
        Err(self.stop(Expected::Value))
    }

    fn number(&mut self) -> Result<Kind<'a>, Stop> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
            if self.peek() == Some(b'I') {
                return self.not_finite(start);
            }
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                self.at = start;
                return Err(self.stop(Expected::NoLeadingZero));
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        // The grammar above is a part of what the standard library parses.
        let number: f64 = self.text[start..self.at].parse().unwrap_or(f64::INFINITY);
        if number.is_finite() {
            return Ok(Kind::Number(number));
        }
        self.fault(FaultKind::NumberRange, start..self.at);
        Ok(Kind::NotFinite)
    }

    fn digits(&mut self) -> Result<(), Stop> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.stop(Expected::Digit)) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Stop> {
        let open = self.at;
        self.at += 1;
        let mut owned: Option<String> = None;
        let mut from = self.at;
        loop {
            match self.peek() {
                None => {
                    self.at = open;
                    return Err(self.stop(Expected::ClosingQuote));
                }
                Some(b'"') => {
                    let rest = &self.text[from..self.at];
                    self.at += 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(rest),
                        Some(text) => Cow::Owned(text + rest),
                    });
                }
                Some(b'\\') => {
                    let text = owned.get_or_insert_default();
                    text.push_str(&self.text[from..self.at]);
                    let escaped = self.escape()?;
                    owned.get_or_insert_default().push(escaped);
                    from = self.at;
                }
                Some(0..=0x1f) => return Err(self.stop(Expected::EscapedControl)),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<char, Stop> {
        let start = self.at;
        self.at += 1;
        let simple = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(start),
            _ => {
                self.at = start;
                return Err(self.stop(Expected::Escape));
            }
        };
        self.at += 1;
        Ok(simple)
    }

    fn unicode(&mut self, start: usize) -> Result<char, Stop> {
        let bad = |reader: &mut Self, expected| {
            reader.at = start;
            reader.stop(expected)
        };
        let Some(high) = self.hex(self.at + 1) else { return Err(bad(self, Expected::Escape)) };
        self.at += 5;
        if let Some(single) = char::from_u32(high) {
            return Ok(single);
        }
        let low = if self.bytes[self.at..].starts_with(b"\\u") { self.hex(self.at + 2) } else { None };
        match (high, low) {
            (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
                self.at += 6;
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                char::from_u32(code).ok_or_else(|| bad(self, Expected::SurrogatePair))
            }
            _ => Err(bad(self, Expected::SurrogatePair)),
        }
    }

    fn hex(&self, at: usize) -> Option<u32> {
        let digits = self.bytes.get(at..at + 4)?;
        digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
    }

    fn enter(&mut self, weight: usize) -> Result<(), Stop> {
        if self.depth >= MAX_DEPTH {
            return Err((FaultKind::TooDeep, self.at..self.at + 1));
        }
        self.depth += weight;
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    fn leave(&mut self, weight: usize) {
        self.depth -= weight;
        self.at += 1;
    }

    fn array(&mut self) -> Result<Kind<'a>, Stop> {
        self.enter(1)?;
        let mut entries = Vec::new();
        if self.peek() != Some(b']') {
            loop {
                let expected = if entries.is_empty() { Expected::Value } else { Expected::EntryAfterComma };
                entries.push(self.value(expected)?);
                self.skip_space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break,
                    _ => return Err(self.stop(Expected::CommaOrBracket)),
                }
                self.skip_space();
            }
        }
        self.leave(1);
        Ok(Kind::Array(entries))
    }

    fn object(&mut self) -> Result<Kind<'a>, Stop> {
        self.enter(2)?;
        let mut members = Vec::new();
        if self.peek() != Some(b'}') {
            loop {
                members.push(self.member(members.is_empty())?);
                self.skip_space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => break,
                    _ => return Err(self.stop(Expected::CommaOrBrace)),
                }
                self.skip_space();
            }
        }
        self.leave(2);
        Ok(Kind::Object(members))
    }

    fn member(&mut self, first: bool) -> Result<Member<'a>, Stop> {
        if self.peek() != Some(b'"') {
            return Err(self.stop(if first { Expected::Key } else { Expected::MemberAfterComma }));
        }
        let start = self.at;
        let key = self.string()?;
        let key_span = start..self.at;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.stop(Expected::Colon));
        }
        self.at += 1;
        self.skip_space();
        Ok(Member { key, key_span, value: self.value(Expected::Value)? })
    }
}

/// The way from the root to a value, kept on the stack.
enum Place<'p> {
    Root,
    Below(&'p Place<'p>, &'p str),
    Entry(&'p Place<'p>, usize),
}

impl Place<'_> {
    fn pointer(&self) -> String {
        match self {
            Place::Root => String::new(),
            Place::Below(parent, key) => push(parent.pointer(), key),
            Place::Entry(parent, index) => push(parent.pointer(), &index.to_string()),
        }
    }
}

/// Appends one step to a JSON pointer (RFC 6901).
pub fn push(mut pointer: String, step: &str) -> String {
    pointer.push('/');
    if step.contains(['~', '/']) {
        pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
    } else {
        pointer.push_str(step);
    }
    pointer
}

fn duplicates(node: &Node<'_>, place: &Place<'_>, faults: &mut Vec<Fault>) {
    for (index, entry) in node.entries().iter().enumerate() {
        duplicates(entry, &Place::Entry(place, index), faults);
    }
    let members = node.members();
    let mut seen = std::collections::HashSet::new();
    for (index, member) in members.iter().enumerate() {
        // Small objects, nearly all of them, need no table.
        let known = if members.len() <= 16 {
            members[..index].iter().any(|earlier| earlier.key == member.key)
        } else {
            !seen.insert(member.key.as_ref())
        };
        let below = Place::Below(place, &member.key);
        if known {
            let kind = FaultKind::DuplicateKey(member.key.clone().into_owned());
            faults.push(Fault { kind, span: member.key_span.clone(), pointer: below.pointer() });
        }
        duplicates(&member.value, &below, faults);
    }
}

/// Line and column of ascending offsets, counted in one pass.
#[derive(Debug, Clone)]
pub struct Positions<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    column: u32,
}

impl<'a> Positions<'a> {
    /// Starts at the beginning.
    pub fn new(text: &'a str) -> Self {
        Positions { text, at: 0, line: 1, column: 1 }
    }

    /// 1-based line and column (in characters) of a byte offset. Cheap as long as
    /// offsets ascend.
    pub fn of(&mut self, offset: usize) -> (u32, u32) {
        let offset = offset.min(self.text.len());
        if offset < self.at {
            *self = Positions::new(self.text);
        }
        for c in self.text[self.at..offset].chars() {
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.at = offset;
        (self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(text: &str) -> Vec<FaultKind> {
        read(text).faults.into_iter().map(|fault| fault.kind).collect()
    }

    #[test]
    fn faults_are_told_apart() {
        assert_eq!(kinds("{\"a\": [1, 2.5e-3, null, true, \"\\u4e2d\\ud83d\\ude00\"]}\r\n"), []);
        assert_eq!(kinds(" \n"), [FaultKind::Empty]);
        assert_eq!(
            kinds("[NaN, -Infinity, 1e999]"),
            [FaultKind::NotFinite, FaultKind::NotFinite, FaultKind::NumberRange]
        );
        assert_eq!(kinds("{} {}"), [FaultKind::TrailingData]);
        assert_eq!(kinds("{\"a\": 1,\n=======\n"), [FaultKind::Conflict]);
        assert_eq!(kinds("version https://git-lfs.github.com/spec/v1\n"), [FaultKind::LfsPointer]);
        for (text, expected) in [
            ("[1,]", Expected::EntryAfterComma),
            ("{\"a\":1,}", Expected::MemberAfterComma),
            ("{a:1}", Expected::Key),
            ("{\"a\" 1}", Expected::Colon),
            ("{\"a\":1 \"b\":2}", Expected::CommaOrBrace),
            ("[1 2]", Expected::CommaOrBracket),
            ("[01]", Expected::NoLeadingZero),
            ("[1.]", Expected::Digit),
            ("[+1]", Expected::Value),
            ("[nan]", Expected::Value),
            ("[truex]", Expected::Value),
            ("[\"a\tb\"]", Expected::EscapedControl),
            ("[\"\\x\"]", Expected::Escape),
            ("[\"\\ud800\"]", Expected::SurrogatePair),
            ("[\"\\udc00\"]", Expected::SurrogatePair),
            ("[\"a", Expected::ClosingQuote),
            ("\u{1e}{}", Expected::Value),
        ] {
            assert_eq!(kinds(text), [FaultKind::Syntax(expected)], "{text}");
        }
    }

    #[test]
    fn nesting_has_the_limit_of_the_former_gate() {
        let arrays = |n: usize| "[".repeat(n) + &"]".repeat(n);
        let objects = |n: usize| "{\"a\":".repeat(n) + "1" + &"}".repeat(n);
        assert_eq!(kinds(&arrays(256)), []);
        assert_eq!(kinds(&arrays(257)), [FaultKind::TooDeep]);
        assert_eq!(kinds(&objects(128)), []);
        assert_eq!(kinds(&objects(129)), [FaultKind::TooDeep]);
        assert_eq!(kinds(&"[".repeat(1_000_000)), [FaultKind::TooDeep]);
    }

    #[test]
    fn a_duplicate_is_found_behind_escapes_and_in_large_objects() {
        let document = read("{\"a/b\": {\"x\": 1, \"\\u0078\": 2}}");
        assert_eq!(document.faults[0].pointer, "/a~1b/x");
        assert_eq!(document.root.unwrap().at(&["a/b", "x"]).unwrap().number(), Some(2.0));
        let many: Vec<String> = (0..40).map(|n| format!("\"k{}\": 0", n % 39)).collect();
        assert_eq!(kinds(&format!("{{{}}}", many.join(","))), [FaultKind::DuplicateKey("k0".to_owned())]);
    }

    #[test]
    fn columns_count_characters() {
        let mut positions = Positions::new("推理\r\n x");
        assert_eq!([positions.of(3), positions.of(9), positions.of(0)], [(1, 2), (2, 2), (1, 1)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever the bytes, the reader agrees with serde_json on what is JSON
        /// (serde_json keeps quiet about duplicates).
        #[test]
        fn agrees_with_an_independent_reader(text in r#"[\[\]{}:,"\\0-9eE+\-. \ntrufalsenINy\u{4e2d}\u{1}]{0,24}"#) {
            let document = read(&text);
            let sound = document.faults.iter().all(|fault| matches!(fault.kind, FaultKind::DuplicateKey(_)));
            prop_assert_eq!(sound, serde_json::from_str::<serde_json::Value>(&text).is_ok_and(|_| true), "{}", text);
        }

        /// Spans lie inside the text and on character borders.
        #[test]
        fn spans_can_be_sliced(text in r#"[\[\]{}:,"\\ua-f0-9eNInty \n\u{4e2d}\u{1f600}]{0,40}"#) {
            for fault in read(&text).faults {
                prop_assert!(text.get(fault.span.clone()).is_some(), "{:?}", fault);
            }
        }
    }
}
