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
    let mode = match dialect {
        Dialect::Module => Mode::Module,
        Dialect::Cell => Mode::Ipython,
    };
    let parsed = parse_unchecked(text, ParseOptions::from(mode).with_target_version(version));
    #[expect(clippy::expect_used, reason = "both modes above parse to a module, whatever the text")]
    parsed.try_into_module().expect("a module")
}
