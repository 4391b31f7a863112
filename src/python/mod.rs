//! Python source without Python: from bytes to text, lines and columns, the parser,
//! and the few questions about a module that more than one stage asks.

pub mod decode;
pub mod ipython;
pub mod lines;
pub mod module;
pub mod version;

pub use lines::Lines;
pub use version::{Origin, Target};

use ruff_python_ast::{ModModule, PythonVersion};
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_unchecked};
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

/// What kind of Python a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// A module, as a `.py` file holds it.
    Module,
    /// A notebook cell: magics, shell lines and top-level `await` are allowed.
    Cell,
}

/// Parses a text; errors are in the result. Deep trees need a deep stack to be walked
/// and dropped: call this from a thread that has one when the text is a stranger's.
pub fn parse(text: &str, dialect: Dialect, version: PythonVersion) -> Parsed<ModModule> {
    match dialect {
        Dialect::Module => parse_as(text, Mode::Module, version),
        // The parser takes it for impossible that a help request (`?x`) stands where an
        // expression is wanted, and a mismatched bracket above it makes that happen. The
        // plain grammar finds the bracket too, and the request is no Python there either.
        Dialect::Cell => {
            quietly(|| parse_as(text, Mode::Ipython, version)).unwrap_or_else(|| parse_as(text, Mode::Module, version))
        }
    }
}

fn parse_as(text: &str, mode: Mode, version: PythonVersion) -> Parsed<ModModule> {
    let parsed = parse_unchecked(text, ParseOptions::from(mode).with_target_version(version));
    #[expect(clippy::expect_used, reason = "both modes above parse to a module, whatever the text")]
    parsed.try_into_module().expect("a module")
}

thread_local! {
    /// A panic of this thread is expected and says nothing.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The result of `work`, or nothing if it panics; the panic is not printed.
fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let known = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                known(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_the_parser_panic_is_a_syntax_error() {
        for text in ["{)\n?", "{)\n?x", "(]\n??y", "{)\n/f 1"] {
            let parsed = parse(text, Dialect::Cell, PythonVersion::PY310);
            assert!(!parsed.errors().is_empty(), "{text:?}");
        }
    }
}
