//! What a notebook prints: the first and the last of it, the rest only counted.

use std::collections::VecDeque;

/// Bytes kept of the beginning and of the end.
const KEPT: usize = 64 * 1024;
/// Lines that a finding shows.
const LINES: usize = 8;
/// Characters of a line that a finding shows.
const WIDTH: usize = 160;

/// Bounded output.
#[derive(Debug, Default)]
pub(super) struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Output {
    /// Takes bytes as they come.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = KEPT.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let rest = &bytes[room..];
        let rest = &rest[rest.len().saturating_sub(KEPT)..];
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..surplus);
    }

    /// The last lines that are not empty, cut to a width.
    pub(super) fn last_lines(&mut self) -> Vec<String> {
        let tail: &[u8] = if self.tail.is_empty() { &self.head } else { self.tail.make_contiguous() };
        let text = String::from_utf8_lossy(&tail[tail.len().saturating_sub(LINES * WIDTH * 8)..]).into_owned();
        let lines: Vec<String> = text.lines().filter(|line| !line.trim().is_empty()).map(cut).collect();
        lines[lines.len().saturating_sub(LINES)..].to_vec()
    }
}

fn cut(line: &str) -> String {
    let clean: String = line.chars().filter(|c| !c.is_control() || *c == '\t').take(WIDTH + 1).collect();
    if clean.chars().count() <= WIDTH { clean } else { clean.chars().take(WIDTH).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_its_end_is_kept() {
        let mut output = Output::default();
        for number in 0..100_000 {
            output.feed(format!("line {number}\n").as_bytes());
        }
        assert!(output.head.len() + output.tail.len() <= 2 * KEPT);
        assert_eq!(output.last_lines().last().map(String::as_str), Some("line 99999"));
        assert!(output.total > 1_000_000);
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let mut output = Output::default();
        output.feed(&[b'y'; 300_000]);
        assert_eq!(output.last_lines()[0].chars().count(), WIDTH + 1);
    }
}
