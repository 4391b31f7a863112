//! The first error of a text that does not parse: what really is wrong, where a person
//! would put the finger, and what to write instead.

use super::characters;
use super::fault::{EXACT, Fault, PARSER};
use super::words;
use crate::model::{Localized, Severity};
use crate::notebook::is_conflict_marker;
use crate::python::{Dialect, Lines, ipython};
use crate::rules::static_checks as rules;
use ruff_python_ast::ModModule;
use ruff_python_ast::token::{Token, TokenKind};
use ruff_python_parser::{LexicalErrorType, ParseError, ParseErrorType, Parsed};
use ruff_text_size::{Ranged, TextRange};

/// The first error, and what it means for the search for more.
#[derive(Debug)]
pub(super) struct Explained {
    /// The fault.
    pub(super) fault: Fault,
    /// It is a bracket that is never closed: what follows it is part of it.
    pub(super) unclosed: bool,
    /// Nothing below it can be judged.
    pub(super) ends_text: bool,
}

impl From<Fault> for Explained {
    fn from(fault: Fault) -> Self {
        Explained { fault, unclosed: false, ends_text: false }
    }
}

/// The first error of `parsed`, explained. `None`: it has none.
pub(super) fn first(text: &str, lines: &Lines<'_>, parsed: &Parsed<ModModule>, dialect: Dialect) -> Option<Explained> {
    let mut errors: Vec<&ParseError> = parsed.errors().iter().collect();
    errors.sort_by_key(|error| error.location.start());
    let first = *errors.first()?;
    let line = lines.index(first.location.start().to_usize());
    if let Some(conflict) = conflict(lines, &errors, line) {
        return Some(conflict);
    }
    let here: Vec<char> =
        errors.iter().filter(|error| on_line(lines, error, line)).filter_map(|error| unknown(error)).collect();
    if let Some(found) =
        errors.iter().filter(|error| on_line(lines, error, line)).find_map(|error| character(error, &here))
    {
        return Some(found.into());
    }
    if let Some(bracket) = bracket(text, lines, parsed.tokens(), first) {
        return Some(bracket);
    }
    if let Some(comma) = comma(lines, parsed.tokens(), first) {
        return Some(comma.into());
    }
    let known = indentation(lines, first, line)
        .or_else(|| notebook_line(lines, first, line, dialect))
        .or_else(|| python_2(lines, first, line));
    Some(known.unwrap_or_else(|| said_by_parser(text, lines, first)).into())
}

fn on_line(lines: &Lines<'_>, error: &ParseError, line: usize) -> bool {
    lines.index(error.location.start().to_usize()) == line
}

/// An error in or below a merge marker that stands where a statement should.
fn conflict(lines: &Lines<'_>, errors: &[&ParseError], first: usize) -> Option<Explained> {
    let is_at_marker =
        |error: &&ParseError| is_conflict_marker(lines.line(lines.index(error.location.start().to_usize())));
    if !errors.iter().any(is_at_marker) {
        return None;
    }
    let marker = (0..lines.count()).find(|line| is_conflict_marker(lines.line(*line)))?;
    if first < marker {
        return None;
    }
    let start = lines.start(marker);
    let fault = Fault::new(&rules::CONFLICT, start..start + lines.line(marker).len(), "").rank(EXACT);
    Some(Explained { fault, unclosed: false, ends_text: true })
}

/// The character of an error about a character.
fn unknown(error: &ParseError) -> Option<char> {
    match &error.error {
        ParseErrorType::Lexical(LexicalErrorType::UnrecognizedToken { tok }) => Some(*tok),
        _ => None,
    }
}

/// A character that has no place in Python; `here` are all of its line.
fn character(error: &ParseError, here: &[char]) -> Option<Fault> {
    let tok = &unknown(error)?;
    let start = error.location.start().to_usize();
    let range = start..start + tok.len_utf8();
    if let Some((message, help)) = characters::explain(*tok, here) {
        return Some(Fault::new(&rules::CHARACTER, range, message).help(help).rank(EXACT));
    }
    let help = match tok {
        '$' => Localized::both(
            "`$name` is a shell variable; in Python write the name alone",
            "`$name` 是 shell 的写法；Python 里直接写名字",
        ),
        '`' => {
            Localized::both("Python 2 wrote `x` in backticks for repr(x)", "反引号是 Python 2 的写法，请改用 repr(x)")
        }
        '?' => Localized::both(
            "`?` asks for help after a bare name in a notebook; elsewhere it means nothing",
            "`?` 只能在 notebook 里跟在名字后面查看帮助，其他地方没有意义",
        ),
        _ => return Some(Fault::new(&rules::SYNTAX, range, words::parse(&error.error)).rank(EXACT)),
    };
    Some(Fault::new(&rules::SYNTAX, range, words::parse(&error.error)).help(help).rank(EXACT))
}

/// A bracket that does not fit, or is never closed.
fn bracket(text: &str, lines: &Lines<'_>, tokens: &[Token], first: &ParseError) -> Option<Explained> {
    let mut open: Vec<(TokenKind, TextRange)> = Vec::new();
    let error_at = first.location.start();
    let line_of = |range: TextRange| lines.index(range.start().to_usize());
    let error_line = line_of(first.location);
    for token in tokens {
        let range = token.range();
        let Some(opening) = opening(token.kind()) else {
            if matches!(token.kind(), TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace) {
                open.push((token.kind(), range));
            }
            continue;
        };
        match open.last() {
            Some((kind, _)) if *kind == opening => {
                open.pop();
            }
            // Beyond the error the parser's guesses are in the tokens.
            found if range.start() <= error_at || line_of(range) == error_line => {
                return Some(misfit(text, lines, range, found.copied()).into());
            }
            _ => break,
        }
    }
    // A string or line that never ends takes the closing bracket with it.
    if swallows_the_rest(&first.error) {
        return None;
    }
    let (_, range) = open.last().copied()?;
    let is_below = error_line > line_of(range) || first.location.end().to_usize() >= text.trim_end().len();
    let is_after = range.start() < first.location.end();
    if !(is_below && is_after) {
        return None;
    }
    let name = &text[range];
    let fault = Fault::new(
        &rules::SYNTAX,
        range,
        Localized::both(format!("this `{name}` is never closed"), format!("这个 `{name}` 没有闭合")),
    )
    .help(Localized::both(
        format!("close it with `{}` where the expression ends", closing(name)),
        format!("请在表达式结束处补上 `{}`", closing(name)),
    ))
    .rank(EXACT);
    Some(Explained { fault, unclosed: true, ends_text: false })
}

/// Errors that hide what follows them on the line from the lexer.
fn swallows_the_rest(error: &ParseErrorType) -> bool {
    use LexicalErrorType as Lexical;
    matches!(
        error,
        ParseErrorType::FStringError(_)
            | ParseErrorType::TStringError(_)
            | ParseErrorType::Lexical(
                Lexical::UnclosedStringError
                    | Lexical::StringError
                    | Lexical::LineContinuationError
                    | Lexical::FStringError(_)
                    | Lexical::TStringError(_)
            )
    )
}

fn opening(kind: TokenKind) -> Option<TokenKind> {
    match kind {
        TokenKind::Rpar => Some(TokenKind::Lpar),
        TokenKind::Rsqb => Some(TokenKind::Lsqb),
        TokenKind::Rbrace => Some(TokenKind::Lbrace),
        _ => None,
    }
}

fn closing(open: &str) -> &'static str {
    match open {
        "(" => ")",
        "[" => "]",
        _ => "}",
    }
}

fn misfit(text: &str, lines: &Lines<'_>, range: TextRange, open: Option<(TokenKind, TextRange)>) -> Fault {
    let name = &text[range];
    let message = match open {
        None => Localized::both(format!("`{name}` closes nothing"), format!("多余的 `{name}`：没有与之对应的左括号")),
        Some((_, opened)) => {
            let (line, _) = lines.place(opened.start().to_usize());
            let open = &text[opened];
            Localized::both(
                format!("`{name}` does not fit the `{open}` of line {line}"),
                format!("`{name}` 与第 {line} 行的 `{open}` 不匹配"),
            )
        }
    };
    Fault::new(&rules::SYNTAX, range, message).rank(EXACT)
}

/// A comma that is missing at the end of a line; the parser points at the next one.
fn comma(lines: &Lines<'_>, tokens: &[Token], error: &ParseError) -> Option<Fault> {
    if !matches!(&error.error, ParseErrorType::ExpectedToken { expected: TokenKind::Comma, .. }) {
        return None;
    }
    let before = tokens.iter().rev().find(|token| {
        token.range().end() <= error.location.start() && !token.kind().is_trivia() && token.kind() != TokenKind::Newline
    })?;
    let end = before.range().end().to_usize();
    if lines.index(end) == lines.index(error.location.start().to_usize()) {
        return None;
    }
    let message = Localized::both("a comma is missing at the end of this line", "此行末尾缺少逗号");
    Some(Fault::new(&rules::SYNTAX, before.range().start().to_usize()..end, message).rank(PARSER))
}

/// Indentation that mixes tabs and spaces.
fn indentation(lines: &Lines<'_>, error: &ParseError, line: usize) -> Option<Fault> {
    let is_indentation = matches!(
        &error.error,
        ParseErrorType::UnexpectedIndentation | ParseErrorType::Lexical(LexicalErrorType::IndentationError)
    );
    let margin = |line: usize| {
        let text = lines.line(line);
        &text[..text.len() - text.trim_start_matches([' ', '\t']).len()]
    };
    let own = margin(line);
    let around = (0..line).rev().filter(|above| !lines.line(*above).trim().is_empty()).map(margin);
    let mixes = |above: &str| !own.starts_with(above) && !above.starts_with(own);
    if !is_indentation || !around.take(50).any(mixes) {
        return None;
    }
    let start = lines.start(line);
    let message = Localized::both(
        "this line and the lines above mix tabs and spaces in their indentation",
        "此行与上面的行混用了制表符（Tab）和空格来缩进",
    );
    let help = Localized::both("indent with four spaces everywhere", "请统一用四个空格缩进");
    Some(Fault::new(&rules::SYNTAX, start..start + own.len(), message).help(help).rank(EXACT))
}

/// Magics where there are none, and magics without their `%`.
fn notebook_line(lines: &Lines<'_>, error: &ParseError, line: usize, dialect: Dialect) -> Option<Fault> {
    let text = lines.line(line);
    let start = lines.start(line) + text.len() - text.trim_start().len();
    let range = start..lines.start(line) + text.len();
    let text = text.trim();
    if dialect == Dialect::Module {
        let is_magic = text.starts_with('!') || (text.starts_with('%') && text.len() > 1);
        let is_first = error.location.start().to_usize() <= start + 1;
        return (is_magic && is_first).then(|| {
            Fault::new(&rules::SYNTAX, range, words::parse(&ParseErrorType::UnexpectedIpythonEscapeCommand)).rank(EXACT)
        });
    }
    let magic = ipython::automagic(text)?;
    // IPython completes the `%` by itself, but only in a cell of one line.
    let others = (0..lines.count()).filter(|other| *other != line).any(|other| !lines.line(other).trim().is_empty());
    let message = Localized::both(
        format!("`{magic}` is no Python; it works without `%` only as the single line of a cell"),
        format!("`{magic}` 不是 Python 语句；只有单元格里仅此一行时才能省略 `%`"),
    );
    let help = Localized::both(format!("write `%{text}`"), format!("请写成 `%{text}`"));
    let fault = Fault::new(&rules::AUTOMAGIC, range, message).help(help).rank(EXACT);
    Some(if others { fault.severity(Severity::Error) } else { fault })
}

/// What was right in Python 2.
fn python_2(lines: &Lines<'_>, error: &ParseError, line: usize) -> Option<Fault> {
    let whole = lines.line(line);
    let text = whole.trim_start();
    let start = lines.start(line) + whole.len() - text.len();
    let statement = |word: &str| {
        text.strip_prefix(word).is_some_and(|rest| {
            let rest = rest.trim_start_matches([' ', '\t']);
            !rest.is_empty()
                && text.len() > word.len() + rest.len()
                && !rest.starts_with(['(', '=', '.', ',', ')', ':', '['])
        })
    };
    for word in ["print", "exec"] {
        if statement(word) {
            let argument = text[word.len()..].trim().trim_start_matches(">>");
            let message = Localized::both(
                format!("`{word}` is a function in Python 3; this is Python 2"),
                format!("这是 Python 2 的写法：在 Python 3 中 `{word}` 是函数"),
            );
            let help = Localized::both(format!("write `{word}({argument})`"), format!("请写成 `{word}({argument})`"));
            return Some(Fault::new(&rules::SYNTAX, start..start + word.len(), message).help(help).rank(EXACT));
        }
    }
    let range = error.location;
    let hinted =
        |help: Localized| Some(Fault::new(&rules::SYNTAX, range, words::parse(&error.error)).help(help).rank(PARSER));
    if text.starts_with("except") && text.contains(',') && !text.contains('(') {
        return hinted(except_comma());
    }
    if text.starts_with("raise ") && text.contains(',') && !text.contains('(') {
        return hinted(Localized::both("write `raise Error(\"message\")`", "请写成 `raise Error(\"message\")`"));
    }
    if matches!(&error.error, ParseErrorType::Lexical(LexicalErrorType::OtherError(said)) if said.contains("decimal integer"))
    {
        return hinted(Localized::both(
            "an octal number is written `0o17`; a decimal one does not begin with 0",
            "八进制数写作 `0o17`；十进制整数不能以 0 开头",
        ));
    }
    None
}

/// Help for `except A, e`.
pub(super) fn except_comma() -> Localized {
    Localized::both(
        "write `except Error as name:` to name the exception, or `except (A, B):` to catch several",
        "给异常命名请写 `except Error as name:`，捕获多种异常请写 `except (A, B):`",
    )
}

/// The parser's own error, with a help where the text around it shows what was meant.
fn said_by_parser(text: &str, lines: &Lines<'_>, error: &ParseError) -> Fault {
    let fault = Fault::new(&rules::SYNTAX, error.range(), words::parse(&error.error)).rank(PARSER);
    let start = error.location.start().to_usize().min(text.len());
    let before = text.get(lines.start(lines.index(start))..start).unwrap_or_default();
    let after = text.get(start..).unwrap_or_default();
    let word = before.split_whitespace().next().unwrap_or_default();
    let opens_block = ["if", "elif", "while", "for", "def", "class", "with", "else", "try", "except"].contains(&word);
    let help = match &error.error {
        ParseErrorType::ExpectedToken { expected: TokenKind::Colon, found: TokenKind::Equal } if opens_block => {
            Localized::both("`==` compares, `=` assigns", "比较用 `==`，赋值才用 `=`")
        }
        _ if word == "else" && after.starts_with("if") => Localized::both("write `elif`", "请写成 `elif`"),
        ParseErrorType::ExpectedToken { expected: TokenKind::Colon, .. } if opens_block => Localized::both(
            format!("a line that begins with `{word}` ends with `:`"),
            format!("以 `{word}` 开头的行要以 `:` 结尾"),
        ),
        _ if is_keyword(before.trim()) && after.starts_with('=') => Localized::both(
            format!("`{word}` is a keyword of Python and cannot be a name"),
            format!("`{word}` 是 Python 的关键字，不能用作名字"),
        ),
        _ if after.starts_with('&') && before.ends_with('&') => {
            Localized::both("Python writes `and`, `or`, `not`", "Python 里写作 `and`、`or`、`not`")
        }
        _ if after.starts_with('|') && before.ends_with('|') => {
            Localized::both("Python writes `and`, `or`, `not`", "Python 里写作 `and`、`or`、`not`")
        }
        _ if before.trim_end().ends_with("++") || before.trim_end().ends_with("--") => {
            Localized::both("Python has no `++`; write `x += 1`", "Python 没有 `++`，请写成 `x += 1`")
        }
        _ if after.starts_with('>') && before.ends_with('<') => Localized::both("write `!=`", "请写成 `!=`"),
        _ => return fault,
    };
    fault.help(help)
}

/// Whether a word cannot be a name.
fn is_keyword(word: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
        "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass",
        "raise", "return", "try", "while", "with", "yield",
    ];
    KEYWORDS.contains(&word)
}
