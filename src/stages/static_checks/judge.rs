//! One unit, a file or a cell, from its text to its faults.

use super::fault::{EXACT, Fault, PARSER, one_a_line};
use super::{explain, limits, mask, semantic, symbols, words};
use crate::model::Localized;
use crate::python::{Dialect, Lines, Target, parse};
use crate::rules::static_checks as rules;
use ruff_python_ast::ModModule;
use ruff_python_parser::{Parsed, UnsupportedSyntaxError, UnsupportedSyntaxErrorKind};

/// Faults of one text that are looked for after the first one.
const MAX_ROUNDS: usize = 20;

/// What became of a unit.
#[derive(Debug)]
pub(super) struct Judged {
    /// At most one fault a line, in order.
    pub(super) faults: Vec<Fault>,
    /// The module, if it parsed.
    pub(super) module: Option<Parsed<ModModule>>,
}

/// Judges one text. `stack` is the number of bytes that the calling thread may use.
pub(super) fn judge(text: &str, dialect: Dialect, target: Target, stack: usize) -> Judged {
    if let Some(fault) = limits::before_parsing(text, dialect, stack) {
        return Judged { faults: vec![fault], module: None };
    }
    let parsed = parse(text, dialect, target.version);
    if parsed.errors().is_empty() {
        let faults = compiled(text, &parsed, dialect, target, true);
        // Most texts have none, and then no lines need to be counted.
        let faults = if faults.is_empty() { faults } else { one_a_line(faults, &Lines::new(text)) };
        return Judged { faults, module: Some(parsed) };
    }
    let faults = broken(text, parsed, dialect, target);
    Judged { faults: one_a_line(faults, &Lines::new(text)), module: None }
}

/// Faults of a text that parses.
fn compiled(text: &str, parsed: &Parsed<ModModule>, dialect: Dialect, target: Target, names: bool) -> Vec<Fault> {
    let body = &parsed.syntax().body;
    let mut faults = limits::tokens(text, parsed.tokens());
    let found = semantic::check(text, body, dialect, target.version);
    faults.extend(found.faults);
    // What is wrong in every version is not said to be too new as well.
    let is_wrong_anyway = |error: &UnsupportedSyntaxError| {
        matches!(error.kind, UnsupportedSyntaxErrorKind::ExceptStar)
            && found.wrong_stars.iter().any(|statement| statement.contains_range(error.range))
    };
    let newer = parsed.unsupported_syntax_errors().iter().filter(|error| !is_wrong_anyway(error));
    faults.extend(newer.map(|error| newer_syntax(error, target)));
    if names && !found.too_deep && symbols::concerns(text) {
        faults.extend(symbols::check(body));
    }
    faults
}

fn newer_syntax(error: &UnsupportedSyntaxError, target: Target) -> Fault {
    let help = match error.kind {
        UnsupportedSyntaxErrorKind::UnparenthesizedExceptionTypes => explain::except_comma(),
        _ => target.origin.hint(),
    };
    Fault::new(&rules::NEWER_SYNTAX, error.range, words::unsupported(error)).rank(PARSER).help(help)
}

/// Faults of a text that does not parse: the first one, then, with the statement that
/// holds it taken out, the next. The parser's own list would hold consequences too.
fn broken(text: &str, first: Parsed<ModModule>, dialect: Dialect, target: Target) -> Vec<Fault> {
    let original = Lines::new(text);
    let mut faults = Vec::new();
    let mut parsed = first;
    let mut current = text.to_owned();
    let mut reached = None;
    for _ in 0..MAX_ROUNDS {
        let lines = Lines::new(&current);
        let Some(error) = explain::first(&current, &lines, &parsed, dialect) else {
            // What was taken out may have bound names that the rest relies on.
            let rest = compiled(&current, &parsed, dialect, target, faults.is_empty());
            faults.extend(rest.into_iter().map(|fault| moved(fault, &lines, &original)));
            return faults;
        };
        let line = lines.index(error.fault.range.start);
        // An error above or in what was taken out is a consequence of taking it out.
        if reached.is_some_and(|reached| line <= reached) {
            break;
        }
        let last = error.ends_text;
        let region = mask::region(&current, &lines, &parsed, &error);
        faults.push(moved(error.fault, &lines, &original));
        if last {
            break;
        }
        reached = Some(region.end.saturating_sub(1).max(line));
        let Some(masked) = mask::without(&lines, &region) else { break };
        current = masked;
        parsed = parse(&current, dialect, target.version);
    }
    faults
}

/// The same place in the original text: masking changes no line outside the mask.
fn moved(mut fault: Fault, lines: &Lines<'_>, original: &Lines<'_>) -> Fault {
    let line = lines.index(fault.range.start);
    let shift = |offset: usize| original.start(line) + offset.saturating_sub(lines.start(line));
    fault.range = shift(fault.range.start)..shift(fault.range.end);
    fault
}

/// The fault of a text with a null byte.
pub(super) fn null_byte(text: &str) -> Option<Fault> {
    let at = memchr::memchr(0, text.as_bytes())?;
    let message = Localized::both("the text contains a null byte", "文本中含有空字节（NUL）");
    Some(Fault::new(&rules::NULL_BYTE, at..at + 1, message).rank(EXACT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::{Origin, ipython::prepare};
    use proptest::prelude::*;
    use ruff_python_ast::PythonVersion;

    const TARGET: Target = Target { version: PythonVersion::PY310, origin: Origin::Default };

    /// Pieces of Python, whole and broken, in any order.
    fn soup() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            prop::sample::select(vec![
                "def f(x):",
                "class C:",
                "if a:",
                "else:",
                "try:",
                "except E:",
                "except* E:",
                "finally:",
                "for x in y:",
                "while 1:",
                "with a as b:",
                "match x:",
                "case _ | 1:",
                "return",
                "yield",
                "await x",
                "lambda: 0",
                "nonlocal x",
                "global x",
                "break",
                "continue",
                "print 'x'",
                "import a",
                "from a import *",
                "x",
                "= ",
                "(",
                ")",
                "[",
                "]",
                "{",
                "}",
                ", ",
                ":",
                "'",
                "\"\"\"",
                "f'{",
                "}'",
                "*",
                "\\",
                "@",
                "%",
                "!ls",
                "%%time",
                "?",
                "<<<<<<< a",
                "=======",
                ">>>>>>> b",
                "（",
                "“",
                "\u{200b}",
                "\u{3000}",
                "1",
                "0777",
                "\0",
                "pip install x",
                "推",
                "\r",
            ])
            .prop_map(str::to_owned),
            Just("\n".to_owned()),
            Just("\n    ".to_owned()),
            Just("\n\t".to_owned()),
            Just(" ".to_owned()),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]
        #[test]
        fn any_text_is_judged_once_a_line_and_inside(text in soup(), is_cell in any::<bool>()) {
            let prepared = prepare(&text);
            let (text, dialect) =
                if is_cell { (prepared.text.as_ref(), Dialect::Cell) } else { (text.as_str(), Dialect::Module) };
            let judged = judge(text, dialect, TARGET, 64 << 20);
            let lines = Lines::new(text);
            let places: Vec<usize> = judged.faults.iter().map(|fault| lines.index(fault.range.start)).collect();
            prop_assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");
            prop_assert!(judged.faults.iter().all(|fault| fault.range.start <= text.len()));
            let parses = parse(text, dialect, TARGET.version).errors().is_empty();
            prop_assert!(parses || !judged.faults.is_empty());
        }
    }
}
