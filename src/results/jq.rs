//! The verdict of the checklist's former gate: its filter under jq 1.6, run as
//! `jq -e FILTER FILE`. For `--level compat` and for nothing else: what jq lets pass
//! (an empty file, `NaN`, several documents of which the last decides) is no virtue.
//!
//! The reader below follows the observable behaviour of jq 1.6, which reads a file
//! line by line into a state machine. A script in `benchmarks/` compares it with a real
//! jq on generated documents.

use crate::model::Localized;
use std::collections::HashMap;

/// The members that the filter joins with `and`, in its order.
const FILTER: [&[&str]; 10] = [
    &["schema_version"],
    &["config", "model"],
    &["config", "backend"],
    &["config", "dtype"],
    &["config", "batch"],
    &["config", "concurrency"],
    &["config", "cache_policy"],
    &["metrics", "ttft_ms"],
    &["metrics", "e2e_latency_ms"],
    &["decision"],
];

/// Open containers and keys at most.
const MAX_DEPTH: usize = 256;
/// Bytes that jq takes from a line at a time.
const CHUNK: usize = 4095;
const RECORD_SEPARATOR: u8 = 0x1e;

/// Why jq would fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Its reader gives up.
    Syntax(&'static str),
    /// A member is null, false or absent.
    Falsy(String),
    /// A member of something that has no members is asked for.
    Index(String),
}

impl Fault {
    /// JSON pointer of the member, `""` for the document.
    pub fn pointer(&self) -> &str {
        match self {
            Fault::Syntax(_) => "",
            Fault::Falsy(pointer) | Fault::Index(pointer) => pointer,
        }
    }

    /// In words.
    pub fn text(&self) -> Localized {
        match self {
            Fault::Syntax(what) => Localized::both(format!("parse error: {what}"), format!("解析错误：{what}")),
            Fault::Falsy(pointer) => Localized::both(
                format!("{pointer} is absent, null or false"),
                format!("{pointer} 不存在、为 null 或为 false"),
            ),
            Fault::Index(pointer) => Localized::both(format!("{pointer} is no object"), format!("{pointer} 不是对象")),
        }
    }
}

/// What jq decides about a file; with several documents the last one counts.
///
/// # Errors
/// The reason why its exit code is not 0.
pub fn verdict(bytes: &[u8]) -> Result<(), Fault> {
    let mut verdict = Ok(());
    let mut parser = Parser::default();
    let mut input = Input::new(bytes);
    loop {
        match input.next(&mut parser) {
            Ok(Some(value)) => verdict = filter(&value),
            Ok(None) => return verdict,
            Err(what) => return Err(Fault::Syntax(what)),
        }
    }
}

fn filter(document: &Value) -> Result<(), Fault> {
    for path in FILTER {
        let mut pointer = String::new();
        let mut value = document;
        for key in std::iter::once(&"normalized_result").chain(path) {
            value = match value {
                Value::Null => &Value::Null,
                Value::Object(members) => members.get(key.as_bytes()).unwrap_or(&Value::Null),
                _ => return Err(Fault::Index(pointer)),
            };
            pointer = format!("{pointer}/{key}");
        }
        if matches!(value, Value::Null | Value::False) {
            return Err(Fault::Falsy(pointer));
        }
    }
    Ok(())
}

/// As much of a value as the filter can tell apart.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    False,
    Text(Vec<u8>),
    Array {
        empty: bool,
    },
    Object(HashMap<Vec<u8>, Value>),
    /// `true` or any number.
    Other,
}

/// Lines of the file, as jq feeds them to its parser.
struct Input<'a> {
    rest: &'a [u8],
    chunk: &'a [u8],
}

impl<'a> Input<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Input { rest: bytes, chunk: &[] }
    }

    /// The next chunk, and whether the end of the file was seen while reading it.
    fn read_more(&mut self) -> bool {
        let line = self.rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let taken = line.unwrap_or(usize::MAX).min(CHUNK).min(self.rest.len());
        let (chunk, rest) = self.rest.split_at(taken);
        self.rest = rest;
        let complete = chunk.last() == Some(&b'\n');
        // Without a line end its length is taken as that of a C string.
        let length = if complete { taken } else { chunk.iter().position(|byte| *byte == 0).unwrap_or(taken) };
        self.chunk = &chunk[..length];
        !complete && taken < CHUNK
    }

    /// The next document; `None` at the end.
    fn next(&mut self, parser: &mut Parser) -> Result<Option<Value>, &'static str> {
        loop {
            let mut last = false;
            if self.chunk.is_empty() {
                last = self.read_more();
                self.chunk = parser.strip_mark(self.chunk)?;
            }
            while let Some((byte, rest)) = self.chunk.split_first() {
                self.chunk = rest;
                match parser.scan(*byte)? {
                    Step::More => {}
                    Step::Done(value) => return Ok(Some(value)),
                    // jq leaves what follows on a last line unread.
                    Step::Reset if last => return Ok(None),
                    Step::Reset => {}
                }
            }
            if last {
                return parser.finish();
            }
        }
    }
}

enum Step {
    More,
    Done(Value),
    Reset,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Normal,
    Text,
    Escape,
}

#[derive(Default)]
struct Parser {
    stack: Vec<Value>,
    next: Option<Value>,
    token: Vec<u8>,
    state: State,
    mark: usize,
}

impl Parser {
    /// Takes a byte order mark away, also one that is spread over chunks.
    fn strip_mark<'a>(&mut self, mut chunk: &'a [u8]) -> Result<&'a [u8], &'static str> {
        const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
        while let (Some(byte), Some(expected)) = (chunk.first(), MARK.get(self.mark)) {
            if byte == expected {
                self.mark += 1;
                chunk = &chunk[1..];
            } else if self.mark == 0 {
                self.mark = MARK.len();
            } else {
                return Err("Malformed BOM");
            }
        }
        Ok(chunk)
    }

    fn scan(&mut self, byte: u8) -> Result<Step, &'static str> {
        if byte == RECORD_SEPARATOR {
            self.literal()?;
            if self.state == State::Normal
                && let Some(value) = self.done()
            {
                return Ok(Step::Done(value));
            }
            *self = Parser { mark: self.mark, ..Parser::default() };
            return Ok(Step::Reset);
        }
        let done = match (self.state, byte) {
            (State::Normal, _) => self.scan_normal(byte)?,
            (State::Text, b'"') => {
                let text = unescape(&std::mem::take(&mut self.token))?;
                self.value(Value::Text(text))?;
                self.state = State::Normal;
                self.done()
            }
            (State::Text, b'\\') => {
                self.token.push(byte);
                self.state = State::Escape;
                None
            }
            _ => {
                self.token.push(byte);
                self.state = State::Text;
                None
            }
        };
        Ok(done.map_or(Step::More, Step::Done))
    }

    /// A value at the top ends where something else begins: `1{}` are two documents.
    fn scan_normal(&mut self, byte: u8) -> Result<Option<Value>, &'static str> {
        let space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        if !space && byte != b'"' && !structural(byte) {
            self.token.push(byte);
            return Ok(None);
        }
        self.literal()?;
        let done = self.done();
        if byte == b'"' {
            self.state = State::Text;
        } else if structural(byte) {
            self.structure(byte)?;
        }
        Ok(done.or_else(|| self.done()))
    }

    /// A complete value at the top.
    fn done(&mut self) -> Option<Value> {
        if self.stack.is_empty() { self.next.take() } else { None }
    }

    fn finish(&mut self) -> Result<Option<Value>, &'static str> {
        if self.state != State::Normal {
            return Err("Unfinished string at EOF");
        }
        self.literal()?;
        if self.stack.is_empty() { Ok(self.next.take()) } else { Err("Unfinished JSON term at EOF") }
    }

    fn value(&mut self, value: Value) -> Result<(), &'static str> {
        if self.next.is_some() {
            return Err("Expected separator between values");
        }
        self.next = Some(value);
        Ok(())
    }

    fn literal(&mut self) -> Result<(), &'static str> {
        let token = std::mem::take(&mut self.token);
        let value = match token.first() {
            None => return Ok(()),
            Some(b't' | b'f' | b'n') => match token.as_slice() {
                b"true" => Value::Other,
                b"false" => Value::False,
                b"null" => Value::Null,
                _ => return Err("Invalid literal"),
            },
            Some(_) if is_number(&token) => Value::Other,
            Some(_) => return Err("Invalid numeric literal"),
        };
        self.value(value)
    }

    fn structure(&mut self, byte: u8) -> Result<(), &'static str> {
        match byte {
            b'[' | b'{' => {
                if self.stack.len() >= MAX_DEPTH {
                    return Err("Exceeds depth limit for parsing");
                }
                if self.next.is_some() {
                    return Err("Expected separator between values");
                }
                let empty = if byte == b'[' { Value::Array { empty: true } } else { Value::Object(HashMap::new()) };
                self.stack.push(empty);
                Ok(())
            }
            b':' => self.colon(),
            b',' => {
                let value = self.next.take().ok_or("Expected value before ','")?;
                self.append(value)
            }
            b']' => self.close_array(),
            _ => self.close_object(),
        }
    }

    fn colon(&mut self) -> Result<(), &'static str> {
        match (self.stack.last(), self.next.take()) {
            (_, None) => Err("Expected string key before ':'"),
            (Some(Value::Object(_)), Some(key @ Value::Text(_))) => {
                self.stack.push(key);
                Ok(())
            }
            (Some(Value::Object(_)), Some(_)) => Err("Object keys must be strings"),
            _ => Err("':' not as part of an object"),
        }
    }

    /// Puts a value into the array or under the key on the stack.
    fn append(&mut self, value: Value) -> Result<(), &'static str> {
        match self.stack.pop() {
            Some(Value::Array { .. }) => {
                self.stack.push(Value::Array { empty: false });
                Ok(())
            }
            Some(Value::Text(key)) => {
                if let Some(Value::Object(members)) = self.stack.last_mut() {
                    members.insert(key, value);
                }
                Ok(())
            }
            _ => Err("Objects must consist of key:value pairs"),
        }
    }

    fn close_array(&mut self) -> Result<(), &'static str> {
        let Some(Value::Array { empty }) = self.stack.last() else { return Err("Unmatched ']'") };
        if self.next.is_none() && !empty {
            return Err("Expected another array element");
        }
        self.stack.pop();
        self.next = Some(Value::Array { empty: false });
        Ok(())
    }

    fn close_object(&mut self) -> Result<(), &'static str> {
        match self.next.take() {
            Some(value) if matches!(self.stack.last(), Some(Value::Text(_))) => self.append(value)?,
            Some(_) => return Err("Objects must consist of key:value pairs"),
            None => match self.stack.last() {
                Some(Value::Object(members)) if members.is_empty() => {}
                Some(Value::Object(_)) => return Err("Expected another key-value pair"),
                _ => return Err("Unmatched '}'"),
            },
        }
        self.next = self.stack.pop();
        Ok(())
    }
}

fn structural(byte: u8) -> bool {
    matches!(byte, b'[' | b']' | b'{' | b'}' | b',' | b':')
}

/// What the C function of jq 1.6 takes for a number: also `NaN`, `Infinity`, `+1`,
/// `01`, `.5`, `1.`; it ends at a zero byte.
fn is_number(token: &[u8]) -> bool {
    let end = token.iter().position(|byte| *byte == 0).unwrap_or(token.len());
    let token = &token[..end];
    if token.is_empty() {
        return true;
    }
    let unsigned = token.strip_prefix(b"-").or_else(|| token.strip_prefix(b"+")).unwrap_or(token);
    let named = [&b"nan"[..], b"inf", b"infinity"].iter().any(|name| unsigned.eq_ignore_ascii_case(name));
    named || is_decimal(unsigned)
}

fn is_decimal(token: &[u8]) -> bool {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(token);
    let mut at = whole;
    let mut fraction = 0;
    if token.get(at) == Some(&b'.') {
        fraction = digits(&token[at + 1..]);
        at += 1 + fraction;
    }
    if whole + fraction == 0 {
        return false;
    }
    if matches!(token.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(token.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(&token[at + 1 + sign..]);
        if exponent == 0 {
            return false;
        }
        at += 1 + sign + exponent;
    }
    at == token.len()
}

/// Resolves escapes as far as keys are compared by them.
fn unescape(token: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(token.len());
    let mut rest = token;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'\\' => rest = unescape_one(rest, &mut out)?,
            1..=0x1e => {
                return Err("Invalid string: control characters from U+0000 through U+001F must be escaped");
            }
            _ => out.push(*byte),
        }
    }
    Ok(out)
}

fn unescape_one<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], &'static str> {
    let (kind, mut rest) = rest.split_first().ok_or("Expected escape character at end of string")?;
    let simple = match kind {
        b'"' | b'\\' | b'/' => *kind,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => {
            let mut code = hex(rest).ok_or("Invalid \\uXXXX escape")?;
            rest = &rest[4..];
            if (0xd800..=0xdbff).contains(&code) {
                let low = rest.strip_prefix(b"\\u").and_then(hex).filter(|low| (0xdc00..=0xdfff).contains(low));
                let low = low.ok_or("Invalid \\uXXXX\\uXXXX surrogate pair escape")?;
                rest = &rest[6..];
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            }
            let c = char::from_u32(code).unwrap_or('\u{fffd}');
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(rest);
        }
        _ => return Err("Invalid escape"),
    };
    out.push(simple);
    Ok(rest)
}

fn hex(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.get(..4)?;
    digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
}
