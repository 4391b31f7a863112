//! CPython's fixed limits, and our own: what is so deep that walking it could exhaust
//! the stack is refused before it is parsed.

use super::fault::{EXACT, Fault};
use super::semantic::too_deep;
use crate::model::Localized;
use crate::python::Dialect;
use crate::rules;
use ruff_python_ast::token::{Token, TokenKind};
use ruff_python_parser::{Mode, lexer};
use ruff_text_size::Ranged;

/// Bytes of stack that one level of a tree may need when it is walked and dropped.
/// Measured at under 600 in an unoptimized build.
const BYTES_A_LEVEL: usize = 1024;

/// CPython's tokenizer: `MAXLEVEL`.
const MAX_BRACKETS: usize = 200;
/// CPython's tokenizer: `MAXINDENT`, of which one entry is the module itself.
const MAX_INDENTS: usize = 99;
/// `sys.int_info.default_max_str_digits`.
const MAX_DIGITS: usize = 4300;

/// A text that could need more stack than there is. A level takes at least one byte of
/// text, so that short texts are safe without a look.
pub(super) fn before_parsing(text: &str, dialect: Dialect, stack: usize) -> Option<Fault> {
    let levels = stack / BYTES_A_LEVEL;
    if text.len() <= levels {
        return None;
    }
    (depth_bound(text, dialect) > levels).then(|| {
        let at = longest_line(text);
        too_deep(at..at + 1).rank(EXACT)
    })
}

/// Where the longest line begins. The lexer keeps its positions to itself; what is
/// nested hundreds of thousands deep is, as a rule, machine-made and on one line.
fn longest_line(text: &str) -> usize {
    let mut longest = (0, 0);
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.len() > longest.0 {
            longest = (line.len(), start);
        }
        start += line.len();
    }
    longest.1
}

/// An upper bound for the depth of the tree, from tokens alone. Inside one pair of
/// brackets, parts between commas stand beside each other; every operator, bracket or
/// keyword within one part may add a level.
fn depth_bound(text: &str, dialect: Dialect) -> usize {
    /// One open bracket: levels of the current part, and of the deepest part so far.
    #[derive(Default, Clone, Copy)]
    struct Open {
        current: usize,
        inner: usize,
        deepest: usize,
    }
    impl Open {
        fn part_ends(&mut self) {
            self.deepest = self.deepest.max(self.current + self.inner);
            self.current = 0;
            self.inner = 0;
        }
    }
    let mode = if dialect == Dialect::Cell { Mode::Ipython } else { Mode::Module };
    let mut lexer = lexer::lex(text, mode);
    let mut open = vec![Open::default()];
    let (mut worst, mut indents) = (0, 0_usize);
    loop {
        let kind = lexer.next_token();
        match kind {
            TokenKind::Indent => indents += 1,
            TokenKind::Dedent => indents = indents.saturating_sub(1),
            TokenKind::Lpar
            | TokenKind::Lsqb
            | TokenKind::Lbrace
            | TokenKind::FStringStart
            | TokenKind::TStringStart => {
                open.push(Open::default());
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace | TokenKind::FStringEnd | TokenKind::TStringEnd => {
                if open.len() > 1
                    && let Some(mut closed) = open.pop()
                    && let Some(outer) = open.last_mut()
                {
                    closed.part_ends();
                    outer.current += 1;
                    outer.inner = outer.inner.max(closed.deepest);
                }
            }
            TokenKind::Comma => open.iter_mut().last().into_iter().for_each(Open::part_ends),
            TokenKind::Newline | TokenKind::EndOfFile => {
                // Brackets left open: all of them may nest.
                let mut total = 0;
                for entry in &mut open {
                    entry.part_ends();
                    total += entry.deepest + 1;
                }
                worst = worst.max(total + indents);
                open = vec![Open::default()];
                if kind == TokenKind::EndOfFile {
                    return worst;
                }
            }
            TokenKind::Name | TokenKind::String | TokenKind::Int | TokenKind::Float | TokenKind::Complex => {}
            kind if kind.is_trivia() => {}
            _ => open.iter_mut().last().into_iter().for_each(|entry| entry.current += 1),
        }
    }
}

/// Limits of CPython's tokenizer, on the tokens of a text that parsed.
pub(super) fn tokens(text: &str, tokens: &[Token]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let (mut brackets, mut indents) = (0_usize, 0_usize);
    for token in tokens {
        let range = token.range();
        match token.kind() {
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => {
                brackets += 1;
                if brackets == MAX_BRACKETS + 1 {
                    faults.push(limit(
                        range,
                        &format!("more than {MAX_BRACKETS} nested brackets"),
                        &format!("括号嵌套超过 {MAX_BRACKETS} 层"),
                    ));
                }
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => brackets = brackets.saturating_sub(1),
            TokenKind::Indent => {
                indents += 1;
                if indents == MAX_INDENTS + 1 {
                    faults.push(limit(
                        range,
                        &format!("more than {MAX_INDENTS} levels of indentation"),
                        &format!("缩进超过 {MAX_INDENTS} 层"),
                    ));
                }
            }
            TokenKind::Dedent => indents = indents.saturating_sub(1),
            TokenKind::Int if range.len().to_usize() > MAX_DIGITS => {
                let digits = &text[range.start().to_usize()..range.end().to_usize()];
                let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
                if is_decimal && digits.bytes().filter(u8::is_ascii_digit).count() > MAX_DIGITS {
                    faults.push(limit(
                        range,
                        &format!("a decimal number of more than {MAX_DIGITS} digits"),
                        &format!("十进制整数超过 {MAX_DIGITS} 位"),
                    ));
                }
            }
            _ => {}
        }
    }
    faults
}

fn limit(range: ruff_text_size::TextRange, en: &str, zh: &str) -> Fault {
    let message = Localized::both(format!("{en}: Python refuses that"), format!("{zh}，Python 无法处理"));
    Fault::new(&rules::static_checks::SYNTAX, range, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(text: &str) -> usize {
        depth_bound(text, Dialect::Module)
    }

    #[test]
    fn flat_data_is_flat_and_chains_are_deep() {
        assert!(bound(&"x = [1, (2, 3), {'a': f(4)}]\n".repeat(1000)) < 20);
        assert!(bound(&format!("x = [{}]", "1, ".repeat(10_000))) < 10);
        assert!(bound(&format!("x = a{}", ".b".repeat(10_000))) >= 10_000);
        assert!(bound(&format!("x = {}1", "-".repeat(10_000))) >= 10_000);
        assert!(bound(&format!("x = f{}", "(1)".repeat(10_000))) >= 10_000);
        assert!(bound(&format!("x = {}", "f(".repeat(10_000))) >= 10_000);
        assert!(bound(&format!("x = {}1", "lambda: ".repeat(10_000))) >= 10_000);
    }

    #[test]
    fn what_does_not_fit_the_stack_is_refused_where_it_begins() {
        let text = format!("a = 1\nx = a{}\n", ".b".repeat(3000));
        let fault = before_parsing(&text, Dialect::Module, 2000 * BYTES_A_LEVEL).unwrap();
        assert_eq!(fault.range.start, 6);
        assert!(before_parsing(&text, Dialect::Module, 1 << 24).is_none());
    }
}
