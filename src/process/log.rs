//! The log of a server: drained always, head and tail kept, secrets removed before
//! anything is stored.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// A line longer than this is handled in pieces.
const MAX_LINE: usize = 64 << 10;

/// What stands in the place of a secret.
const INSTEAD: &[u8; 10] = b"[redacted]";

/// Replaces texts that must not be stored.
#[derive(Debug, Clone, Default)]
pub struct Redactor(Vec<Vec<u8>>);

/// Shorter values are everyday words ("1", "true"): replacing them would destroy the log.
const MIN_SECRET: usize = 6;

impl Redactor {
    /// Replaces nothing.
    pub const fn none() -> Self {
        Redactor(Vec::new())
    }

    /// Takes the texts; the longest first, so that a secret inside another goes with it.
    pub fn new(secrets: &[String]) -> Self {
        let mut list: Vec<Vec<u8>> = secrets
            .iter()
            .filter(|secret| secret.len() >= MIN_SECRET)
            .map(|secret| secret.clone().into_bytes())
            .collect();
        list.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        list.dedup();
        Redactor(list)
    }

    /// The values of the variables whose name says that they are secret.
    pub fn secrets_of<'a>(env: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
        env.into_iter().filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value.to_owned()).collect()
    }

    /// The text without secrets.
    pub fn clean(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.clean_bytes(text.as_bytes())).into_owned()
    }

    pub(crate) fn clean_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        // One pass, so that what is put in is not looked at again: a secret may be a part
        // of it. Of two that begin at one place the longer comes first in the list.
        while let Some((at, length)) = self.first_in(rest) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(INSTEAD);
            rest = &rest[at + length..];
        }
        out.extend_from_slice(rest);
        out
    }

    /// Place and length of the first secret.
    fn first_in(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let found = self.0.iter().filter_map(|secret| Some((memchr::memmem::find(bytes, secret)?, secret.len())));
        found.min_by_key(|(at, length)| (*at, std::cmp::Reverse(*length)))
    }

    /// Whether some text has to be replaced.
    pub(crate) fn finds(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|secret| memchr::memmem::find(bytes, secret).is_some())
    }

    /// Takes one more text.
    pub(crate) fn add(&mut self, secret: &str) {
        let known = self.0.iter().map(|known| String::from_utf8_lossy(known).into_owned());
        *self = Redactor::new(&known.chain([secret.to_owned()]).collect::<Vec<_>>());
    }

    fn longest(&self) -> usize {
        self.0.first().map_or(0, Vec::len)
    }
}

/// Whether a variable of this name holds a secret.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["_TOKEN", "_KEY", "_SECRET"].iter().any(|end| name.ends_with(end)) || name.contains("PASSWORD") || name == "TOKEN"
}

/// Keeps the first and the last half of what is written.
#[derive(Debug)]
pub(super) struct HeadAndTail {
    file: Option<File>,
    half: usize,
    head: usize,
    tail: VecDeque<u8>,
    total: u64,
    dropped: u64,
}

impl HeadAndTail {
    /// Opens the file. A log that cannot be written is still drained and counted.
    pub(super) fn new(path: &Path, max_bytes: u64) -> Self {
        if let Some(folder) = path.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        let half = usize::try_from(max_bytes / 2).unwrap_or(usize::MAX).saturating_sub(128).max(1024);
        HeadAndTail { file: File::create(path).ok(), half, head: 0, tail: VecDeque::new(), total: 0, dropped: 0 }
    }

    fn push(&mut self, mut bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.head < self.half {
            let (now, rest) = bytes.split_at(bytes.len().min(self.half - self.head));
            if let Some(file) = &mut self.file {
                let _ = file.write_all(now);
            }
            self.head += now.len();
            bytes = rest;
        }
        self.tail.extend(bytes);
        let excess = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..excess);
        self.dropped += excess as u64;
    }

    /// Writes the tail. Returns how many bytes came and how many were dropped.
    pub(super) fn finish(mut self) -> (u64, u64) {
        if let Some(file) = &mut self.file {
            if self.dropped > 0 {
                let _ = write!(file, "\n[… {} bytes dropped …]\n", self.dropped);
            }
            let (front, back) = self.tail.as_slices();
            let _ = file.write_all(front).and_then(|()| file.write_all(back));
        }
        (self.total, self.dropped)
    }

    /// Drains `from` until its end, line by line so that no secret is cut in two.
    pub(super) fn drain(&mut self, mut from: impl Read, redactor: &Redactor) {
        let mut pending: Vec<u8> = Vec::new();
        let mut buffer = vec![0; 32 << 10];
        loop {
            let count = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            pending.extend_from_slice(&buffer[..count]);
            let ready = match memchr::memrchr(b'\n', &pending) {
                Some(at) => at + 1,
                None if pending.len() > MAX_LINE => pending.len() - redactor.longest(),
                None => continue,
            };
            let rest = pending.split_off(ready);
            self.push(&redactor.clean_bytes(&pending));
            pending = rest;
        }
        self.push(&redactor.clean_bytes(&pending));
    }
}

/// A log as text that may be shown and stored: UTF-8, no escape sequences, no control
/// characters, no `(EngineCore pid=1)` prefixes.
pub fn clean_log(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                // CSI sequences end with a letter; other escapes take one character.
                if chars.next_if_eq(&'[').is_some() {
                    while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {}
                }
                chars.next();
            }
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out.lines().map(without_process_prefix).collect::<Vec<_>>().join("\n")
}

/// `(EngineCore pid=123) text` without its prefix.
fn without_process_prefix(line: &str) -> &str {
    match line.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
        Some((prefix, rest)) if prefix.contains("pid=") => rest,
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_is_a_part_of_what_replaces_it_is_replaced_once() {
        let mut redactor = Redactor::new(&["redacted".to_owned()]);
        redactor.add("redacted-too");
        assert_eq!(redactor.clean("a redacted b redacted-too"), "a [redacted] b [redacted]");
        assert!(redactor.finds(b"x redacted") && !redactor.finds(b"redact"));
    }

    #[test]
    fn head_and_tail_are_kept_and_the_middle_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = HeadAndTail::new(&path, 4096);
        let text: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
        log.drain(text.as_bytes(), &Redactor::default());
        let (total, dropped) = log.finish();
        let kept = std::fs::read_to_string(&path).unwrap();
        assert_eq!(total, text.len() as u64);
        assert!(kept.len() <= 4096 && kept.starts_with("line 0\n") && kept.ends_with("line 9999\n"), "{}", kept.len());
        assert!(kept.contains(&format!("{dropped} bytes dropped")));
    }

    #[test]
    fn a_secret_is_removed_wherever_a_read_ends() {
        struct ByteByByte<'a>(&'a [u8]);
        impl Read for ByteByByte<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
                buffer[0] = *first;
                self.0 = rest;
                Ok(1)
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let redactor = Redactor::new(&["k-0123456789".to_owned(), "1".to_owned()]);
        let mut log = HeadAndTail::new(&path, 1 << 20);
        let long = format!("{}k-0123456789{}", "x".repeat(MAX_LINE - 3), "y".repeat(MAX_LINE));
        log.drain(ByteByByte(format!("key=k-0123456789 1\n{long}").as_bytes()), &redactor);
        log.finish();
        let kept = std::fs::read_to_string(&path).unwrap();
        assert!(!kept.contains("0123456789") && kept.starts_with("key=[redacted] 1\n"));
        assert_eq!(kept.matches("[redacted]").count(), 2);
    }

    #[test]
    fn a_log_becomes_text() {
        let text = clean_log(b"\x1b[31mred\x1b[0m\0\xff\r\n(EngineCore pid=7) cause\n50%\rdone");
        assert_eq!(text, "red\u{fffd}\ncause\n50%\ndone");
    }

    #[test]
    fn names_that_say_secret() {
        let env =
            [("HF_TOKEN", "a"), ("OPENAI_API_KEY", "b"), ("DB_PASSWORD_FILE", "c"), ("KEYBOARD", "d"), ("PATH", "e")];
        assert_eq!(Redactor::secrets_of(env), ["a", "b", "c"]);
    }
}
