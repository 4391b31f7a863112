//! What the driver tells over the control channel.

use serde::Deserialize;

/// One line of the channel.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum Event {
    /// The driver is ready.
    Start,
    /// A cell begins.
    Cell {
        /// 1-based among all cells.
        cell: u32,
    },
    /// A test function was entered.
    Enter {
        /// Its name.
        test: String,
    },
    /// A test function was left without an exception.
    Leave {
        /// Its name.
        test: String,
        /// It returned `False`.
        returned_false: bool,
    },
    /// A test function raised, whoever caught it.
    Raise {
        /// Its name.
        test: String,
        /// The notebook asks for it.
        expected: bool,
        /// What.
        error: Raised,
    },
    /// An `assert` of a test cell was false, whoever caught it.
    Assert {
        /// Its cell.
        cell: u32,
        /// Its line.
        line: u32,
    },
    /// The message of the assert before.
    Message {
        /// The text.
        text: String,
    },
    /// A handler inside a test caught something.
    Caught {
        /// Cell of the handler.
        cell: Option<u32>,
        /// Line of the handler.
        line: u32,
        /// It takes any exception, or AssertionError.
        broad: bool,
        /// The notebook asks for the error.
        expected: bool,
        /// It prints nothing, or that all is well.
        quiet: bool,
        /// What it caught.
        error: Raised,
    },
    /// A test printed a line with a sign.
    Mark {
        /// Which sign.
        mark: Mark,
        /// The line.
        text: String,
    },
    /// `unittest` recorded something.
    Unittest {
        /// `failure` or `skip`.
        kind: Recorded,
        /// The test's name.
        test: String,
        /// What it raised.
        error: Option<Raised>,
        /// Why it was skipped.
        reason: Option<String>,
    },
    /// The notebook ended with an exception.
    Error {
        /// Which.
        error: Raised,
        /// Status of a SystemExit.
        code: Option<String>,
    },
    /// The last cell was left.
    End,
}

/// Signs in printed lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mark {
    /// ⏭, or a configured sentence.
    Skip,
    /// ❌.
    Cross,
}

/// What `unittest` records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Recorded {
    /// Failure or error.
    Failure,
    /// Skip.
    Skip,
}

/// An exception with its place, followed to its original.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Raised {
    /// Type name.
    pub(super) r#type: String,
    /// Message.
    pub(super) message: String,
    /// The exception itself (not its original) is NotImplementedError.
    #[serde(default)]
    pub(super) not_implemented: bool,
    /// It says "skipped".
    #[serde(default)]
    pub(super) skip: bool,
    /// It is SystemExit.
    #[serde(default)]
    pub(super) exit: bool,
    /// Type under which it was raised again.
    #[serde(default)]
    pub(super) outer: Option<String>,
    /// Its message.
    #[serde(default)]
    pub(super) outer_message: Option<String>,
    /// The module that was not found.
    #[serde(default)]
    pub(super) missing: Option<String>,
    /// Cell.
    #[serde(default)]
    pub(super) cell: Option<u32>,
    /// What the cell is for.
    #[serde(default)]
    pub(super) role: Option<String>,
    /// Line.
    #[serde(default)]
    pub(super) line: Option<u32>,
    /// Column, in characters.
    #[serde(default)]
    pub(super) column: Option<u32>,
    /// Length, in characters.
    #[serde(default)]
    pub(super) length: Option<u32>,
    /// Function.
    #[serde(default)]
    pub(super) function: Option<String>,
}

impl Raised {
    /// `KeyError: 3`, or the type alone.
    pub(super) fn text(&self) -> String {
        if self.message.is_empty() { self.r#type.clone() } else { format!("{}: {}", self.r#type, self.message) }
    }

    /// The place, for comparing.
    pub(super) fn place(&self) -> (Option<u32>, Option<u32>) {
        (self.cell, self.line)
    }
}

/// Reads what came over a channel so far: whole lines that carry the nonce. Anything else
/// was written by somebody else and counts for nothing.
#[derive(Debug)]
pub(super) struct Reader {
    nonce: String,
    pending: Vec<u8>,
    /// What was read.
    pub(super) events: Vec<Event>,
}

/// Events beyond these are dropped: a loop of ten million swallowed asserts is one fault.
const MAX_EVENTS: usize = 20_000;
/// A line of the channel is never longer.
const MAX_LINE: usize = 1 << 16;

impl Reader {
    /// A reader for one run.
    pub(super) fn new(nonce: &str) -> Self {
        Reader { nonce: nonce.to_owned(), pending: Vec::new(), events: Vec::new() }
    }

    /// Takes bytes as they come. True when the notebook has told its end.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> bool {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.pending.len() < MAX_LINE {
                self.pending.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                self.line();
            }
        }
        self.ended()
    }

    fn line(&mut self) {
        let line = std::mem::take(&mut self.pending);
        let Some(json) = line.strip_prefix(self.nonce.as_bytes()) else { return };
        let Ok(event) = serde_json::from_slice::<Event>(json) else { return };
        let closes = matches!(event, Event::End | Event::Error { .. });
        if closes || self.events.len() < MAX_EVENTS {
            self.events.push(event);
        }
    }

    /// Whether the notebook has told its end.
    pub(super) fn ended(&self) -> bool {
        matches!(self.events.last(), Some(Event::End | Event::Error { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_with_the_nonce_count() {
        let mut reader = Reader::new("k7");
        assert!(!reader.feed(b"{\"event\":\"end\"}\nk7{\"event\":\"cell\",\"cell\":3}\nk7{\"event\":"));
        assert_eq!(reader.events, [Event::Cell { cell: 3 }]);
        assert!(reader.feed(b"\"end\"}\n"));
    }
}
