//! Bytes of a body with the time of each read, as compact as they come: the hot path
//! copies and stamps, everything else is read out of it afterwards.

use std::time::Duration;

/// A recording of this size is handed on, so that memory stays small whatever the length
/// of an answer.
const FULL: usize = 12 << 10;

/// Bytes and their stamps.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Recording {
    bytes: Vec<u8>,
    /// Time, and the end of the bytes that came with it.
    marks: Vec<(Duration, usize)>,
}

impl Recording {
    /// Appends what one read brought.
    pub fn push(&mut self, at: Duration, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        match self.marks.last_mut() {
            // One read of the socket may hold several pieces of the body.
            Some((last, end)) if *last == at => *end = self.bytes.len(),
            _ => self.marks.push((at, self.bytes.len())),
        }
    }

    /// Whether it should be handed on.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// Whether nothing came.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The reads, in order.
    pub fn reads(&self) -> impl Iterator<Item = (Duration, &[u8])> {
        let mut from = 0;
        self.marks.iter().map(move |(at, end)| {
            let bytes = &self.bytes[from..*end];
            from = *end;
            (*at, bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_read_share_their_stamp() {
        let mut recording = Recording::default();
        let ms = Duration::from_millis;
        for (at, bytes) in [(1, "a"), (1, "bc"), (2, "d")] {
            recording.push(ms(at), bytes.as_bytes());
        }
        let reads: Vec<_> = recording.reads().collect();
        assert_eq!(reads, [(ms(1), b"abc".as_slice()), (ms(2), b"d".as_slice())]);
    }
}
