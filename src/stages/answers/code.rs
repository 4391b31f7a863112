//! What a code cell holds, without running it: statements with the names they bind and
//! need, test functions, magics, a syntax fault.

use super::names::{self, Names};
use crate::python::{self, Dialect};
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{Expr, ModModule, PythonVersion, Stmt};
use ruff_python_parser::{ParseError, Parsed};
use ruff_text_size::{Ranged, TextRange};
use std::collections::BTreeSet;
use std::ops::Range;

/// Cells longer than this are not taken apart.
const MAX_CELL: usize = 1 << 20;

/// Cell magics whose body is Python that runs in the notebook.
const PYTHON_MAGICS: &[&str] = &["time", "timeit", "capture", "prun", "python", "python3", "pypy"];

/// A code cell taken apart.
#[derive(Debug, Clone, Default)]
pub(super) struct Code {
    /// The source with magics replaced by `pass`, line for line.
    pub(super) text: String,
    /// The body is Python; `%%bash` and its like are not.
    pub(super) python: bool,
    /// The first syntax fault.
    pub(super) fault: Option<Fault>,
    /// Top-level statements, in order.
    pub(super) statements: Vec<Statement>,
    /// Top-level test functions and the test methods of top-level classes.
    pub(super) tests: Vec<Test>,
    /// Magics and shell escapes that are not run.
    pub(super) magics: Vec<Magic>,
}

/// A syntax fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// 1-based.
    pub(super) line: u32,
    /// 1-based, in characters.
    pub(super) column: u32,
    /// What the parser says.
    pub(super) message: String,
}

/// A test function, or a method `Class.method`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(super) struct Test {
    /// Its name.
    pub(super) name: String,
    /// 1-based line of its `def`.
    pub(super) line: u32,
}

/// A magic or shell escape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Magic {
    /// 1-based.
    pub(super) line: u32,
    /// As written, its first line.
    pub(super) text: String,
    /// Names that running it would have bound.
    pub(super) binds: BTreeSet<String>,
}

/// What a statement is to the rest of the notebook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `import`, `from … import`.
    Import,
    /// `def`, `class`.
    Definition,
    /// Binds by assignment, or holds such statements (`if`, `try`, `with`, `for`).
    Binding,
    /// Everything else: calls, asserts, loops that only print.
    Other,
}

/// An import of a top-level module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import {
    /// First part of the dotted name.
    pub(super) module: String,
    /// 1-based line.
    pub(super) line: u32,
    /// Not inside `try` or `if`: without the module the cell fails.
    pub(super) required: bool,
}

/// One top-level statement.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    /// Bytes in [`Code::text`].
    pub(super) range: Range<usize>,
    /// What it is.
    pub(super) kind: Kind,
    /// Names it binds in the notebook.
    pub(super) binds: BTreeSet<String>,
    /// Names it takes from the notebook, now or when its functions are called.
    pub(super) needs: BTreeSet<String>,
    /// Names whose values it changes in place.
    pub(super) changes: BTreeSet<String>,
    /// `from x import *`: what it binds is unknown.
    pub(super) star: bool,
    /// A definition that is still to be written: raises NotImplementedError or has no body.
    pub(super) stub: bool,
    /// Sets an environment variable or a start method: must come before what it is for.
    pub(super) sets_environment: bool,
    /// Modules it imports when it runs.
    pub(super) imports: Vec<Import>,
}

impl Code {
    /// Takes a cell apart. `source` may have any line ends.
    pub(super) fn of(source: &str) -> Code {
        let source = dedent(&source.replace("\r\n", "\n").replace('\r', "\n"));
        let (mut text, cell_magic) = split_cell_magic(source);
        let mut magics: Vec<Magic> = cell_magic.iter().map(|(magic, _)| magic.clone()).collect();
        if cell_magic.is_some_and(|(_, python)| !python) {
            return Code { magics, ..Code::default() };
        }
        if text.len() > MAX_CELL {
            let fault = Fault { line: 1, column: 1, message: "the cell is larger than 1 MiB".to_owned() };
            return Code { text, python: true, fault: Some(fault), ..Code::default() };
        }
        let parsed = python::parse(&text, Dialect::Cell, PythonVersion::default());
        let fault = first_fault(&text, &parsed);
        let module = parsed.syntax();
        let tests = tests_in(&module.body, &text);
        let statements: Vec<Statement> = module.body.iter().map(|stmt| statement(stmt, &text)).collect();
        replace_magics(&module.body, &mut text, &mut magics);
        Code { text, python: true, fault, statements, tests, magics }
    }

    /// Nothing but comments and blank lines.
    pub(super) fn is_empty(&self) -> bool {
        self.statements.is_empty() && self.fault.is_none()
    }

    /// Names that its statements bind.
    pub(super) fn binds(&self) -> BTreeSet<String> {
        self.statements.iter().flat_map(|statement| statement.binds.iter().cloned()).collect()
    }

    /// A test cell: holds test functions, or seems to where it does not parse.
    pub(super) fn is_test(&self) -> bool {
        !self.tests.is_empty() || (self.fault.is_some() && self.text.contains("def test"))
    }

    /// Defines something beside its tests.
    pub(super) fn defines_more_than_tests(&self) -> bool {
        let is_test = |name: &String| {
            self.tests.iter().any(|test| test.name == *name || test.name.split('.').next() == Some(name.as_str()))
        };
        let definitions = self.statements.iter().filter(|statement| statement.kind == Kind::Definition);
        self.fault.is_some() || definitions.flat_map(|statement| &statement.binds).any(|name| !is_test(name))
    }

    /// The text with only the chosen statements left, each on its original lines.
    pub(super) fn keep(&self, chosen: impl Fn(&Statement) -> bool) -> String {
        let kept: Vec<&Range<usize>> =
            self.statements.iter().filter(|statement| chosen(statement)).map(|statement| &statement.range).collect();
        let mut out: Vec<char> = Vec::with_capacity(self.text.len());
        let (mut next, mut on_line) = (0, OnLine::Nothing);
        for (at, character) in self.text.char_indices() {
            while kept.get(next).is_some_and(|range| range.end <= at) {
                next += 1;
            }
            let inside = kept.get(next).is_some_and(|range| range.start <= at);
            let starts = kept.get(next).is_some_and(|range| range.start == at);
            if character == '\n' {
                on_line = if inside { OnLine::Kept } else { OnLine::Nothing };
                out.push('\n');
                continue;
            }
            if starts {
                separate(&mut out, on_line);
            }
            on_line = match (inside, on_line) {
                (true, _) => OnLine::Kept,
                (false, OnLine::Nothing) if !character.is_whitespace() => OnLine::Dropped,
                (false, before) => before,
            };
            out.push(if inside { character } else { ' ' });
        }
        out.into_iter().collect()
    }
}

/// What stands before a kept statement on its line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnLine {
    Nothing,
    Kept,
    Dropped,
}

/// `a; b` with one of the two left must stay a line that Python accepts.
fn separate(out: &mut [char], on_line: OnLine) {
    let start = out.iter().rposition(|character| *character == '\n').map_or(0, |at| at + 1);
    let line = &mut out[start..];
    match (on_line, line) {
        (OnLine::Kept, [.., last]) => *last = ';',
        (OnLine::Dropped, [first, second, ..]) => (*first, *second) = ('0', ';'),
        _ => {}
    }
}

/// IPython takes the indentation of the first line from every line.
fn dedent(source: &str) -> String {
    let Some(first) = source.lines().find(|line| !line.trim().is_empty()) else { return source.to_owned() };
    let indent = &first[..first.len() - first.trim_start().len()];
    if indent.is_empty() {
        return source.to_owned();
    }
    source.split('\n').map(|line| line.strip_prefix(indent).unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Blanks the `%%magic` line. The second value tells whether its body is Python.
fn split_cell_magic(source: String) -> (String, Option<(Magic, bool)>) {
    let blank_lines = source.split('\n').take_while(|line| line.trim().is_empty()).count();
    let Some(first) = source.split('\n').nth(blank_lines) else { return (source, None) };
    let Some(rest) = first.strip_prefix("%%") else { return (source, None) };
    let name = rest.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let binds = match (name.as_str(), rest.split_whitespace().nth(1)) {
        ("capture", Some(target)) if !target.starts_with('-') => BTreeSet::from([target.to_owned()]),
        _ => BTreeSet::new(),
    };
    let magic = Magic { line: line_number(blank_lines), text: first.to_owned(), binds };
    let blanked: Vec<&str> =
        source.split('\n').enumerate().map(|(at, line)| if at == blank_lines { "" } else { line }).collect();
    (blanked.join("\n"), Some((magic, PYTHON_MAGICS.contains(&name.as_str()))))
}

fn line_number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1)
}

/// 1-based line and column (in characters) of a byte.
fn position(text: &str, at: usize) -> (u32, u32) {
    let before = text.get(..at.min(text.len())).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line_number(before.matches('\n').count()), line_number(before[line_start..].chars().count()))
}

fn bytes(range: TextRange) -> Range<usize> {
    range.start().to_usize()..range.end().to_usize()
}

fn first_fault(text: &str, parsed: &Parsed<ModModule>) -> Option<Fault> {
    let error = parsed.errors().iter().min_by_key(|error| error.location.start())?;
    Some(unclosed_bracket(text, parsed, error).unwrap_or_else(|| {
        let (line, column) = position(text, error.location.start().to_usize());
        Fault { line, column, message: error.error.to_string() }
    }))
}

/// The parser reports an open bracket at the end of the text; a reader looks for the bracket.
fn unclosed_bracket(text: &str, parsed: &Parsed<ModModule>, error: &ParseError) -> Option<Fault> {
    if error.location.start().to_usize() < text.trim_end().len() {
        return None;
    }
    let mut open: Vec<(char, usize)> = Vec::new();
    for token in parsed.tokens() {
        match token.kind() {
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => {
                let at = token.start().to_usize();
                open.push((text[at..].chars().next()?, at));
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => {
                open.pop();
            }
            _ => {}
        }
    }
    let (bracket, at) = open.pop()?;
    let (line, column) = position(text, at);
    Some(Fault { line, column, message: format!("'{bracket}' was never closed") })
}

fn statement(stmt: &Stmt, text: &str) -> Statement {
    let Names { binds, needs, changes, star } = names::of(stmt);
    Statement {
        range: bytes(stmt.range()),
        kind: kind(stmt, !binds.is_empty() || !changes.is_empty()),
        stub: is_stub(stmt),
        sets_environment: sets_environment(stmt, &text[bytes(stmt.range())]),
        imports: imports(stmt, text),
        binds,
        needs,
        changes,
        star,
    }
}

fn kind(stmt: &Stmt, touches_names: bool) -> Kind {
    match stmt {
        Stmt::Import(_) | Stmt::ImportFrom(_) => Kind::Import,
        Stmt::FunctionDef(_) | Stmt::ClassDef(_) => Kind::Definition,
        Stmt::IpyEscapeCommand(_) => Kind::Other,
        _ if touches_names => Kind::Binding,
        _ => Kind::Other,
    }
}

/// A function whose body only raises NotImplementedError (or is empty), or a class with
/// such a method.
fn is_stub(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::FunctionDef(function) => {
            let real: Vec<&Stmt> = function.body.iter().filter(|stmt| !is_filler(stmt)).collect();
            real.is_empty() || function.body.iter().any(raises_not_implemented)
        }
        Stmt::ClassDef(class) => class.body.iter().any(|stmt| matches!(stmt, Stmt::FunctionDef(_)) && is_stub(stmt)),
        _ => false,
    }
}

fn is_filler(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Pass(_) => true,
        Stmt::Expr(expr) => matches!(&*expr.value, Expr::StringLiteral(_) | Expr::EllipsisLiteral(_)),
        _ => false,
    }
}

fn raises_not_implemented(stmt: &Stmt) -> bool {
    let Stmt::Raise(raise) = stmt else { return false };
    let raised = match raise.exc.as_deref() {
        Some(Expr::Call(call)) => &*call.func,
        Some(other) => other,
        None => return false,
    };
    matches!(raised, Expr::Name(name) if name.id.as_str() == "NotImplementedError")
}

fn sets_environment(stmt: &Stmt, text: &str) -> bool {
    !matches!(stmt, Stmt::FunctionDef(_) | Stmt::ClassDef(_) | Stmt::Import(_) | Stmt::ImportFrom(_))
        && (text.contains("os.environ") || text.contains("putenv") || text.contains("set_start_method"))
}

fn imports(stmt: &Stmt, text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    collect_imports(stmt, true, text, &mut found);
    found
}

fn collect_imports(stmt: &Stmt, required: bool, text: &str, found: &mut Vec<Import>) {
    let line = |range: TextRange| position(text, range.start().to_usize()).0;
    let top = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let body = |stmts: &[Stmt], required: bool, found: &mut Vec<Import>| {
        stmts.iter().for_each(|stmt| collect_imports(stmt, required, text, found));
    };
    match stmt {
        Stmt::Import(import) => found.extend(import.names.iter().map(|alias| Import {
            module: top(alias.name.as_str()),
            line: line(import.range),
            required,
        })),
        Stmt::ImportFrom(import) if import.level == 0 => {
            let module = import.module.as_ref().map(|name| top(name.as_str())).unwrap_or_default();
            found.push(Import { module, line: line(import.range), required });
        }
        Stmt::Try(attempt) => {
            body(&attempt.body, false, found);
            attempt.handlers.iter().for_each(|handler| match handler {
                ruff_python_ast::ExceptHandler::ExceptHandler(handler) => body(&handler.body, false, found),
            });
        }
        Stmt::If(branch) => body(&branch.body, false, found),
        Stmt::With(block) => body(&block.body, required, found),
        _ => {}
    }
}

/// Test functions at top level, also below `if`, `try`, `with`, `for`.
fn tests_in(body: &[Stmt], text: &str) -> Vec<Test> {
    let mut tests = Vec::new();
    collect_tests(body, text, &mut tests);
    tests
}

fn collect_tests(body: &[Stmt], text: &str, tests: &mut Vec<Test>) {
    for stmt in body {
        match stmt {
            Stmt::FunctionDef(function) if function.name.as_str().starts_with("test") => {
                tests.push(Test { name: function.name.to_string(), line: def_line(function, text) });
            }
            Stmt::ClassDef(class) if is_test_class(class) => {
                for method in class.body.iter().filter_map(Stmt::as_function_def_stmt) {
                    if method.name.as_str().starts_with("test") {
                        let name = format!("{}.{}", class.name, method.name);
                        tests.push(Test { name, line: def_line(method, text) });
                    }
                }
            }
            Stmt::If(branch) => {
                collect_tests(&branch.body, text, tests);
                branch.elif_else_clauses.iter().for_each(|clause| collect_tests(&clause.body, text, tests));
            }
            Stmt::Try(attempt) => {
                [&attempt.body, &attempt.orelse, &attempt.finalbody]
                    .into_iter()
                    .for_each(|body| collect_tests(body, text, tests));
            }
            Stmt::With(block) => collect_tests(&block.body, text, tests),
            Stmt::For(block) => collect_tests(&block.body, text, tests),
            _ => {}
        }
    }
}

fn def_line(function: &ruff_python_ast::StmtFunctionDef, text: &str) -> u32 {
    position(text, function.name.range.start().to_usize()).0
}

fn is_test_class(class: &ruff_python_ast::StmtClassDef) -> bool {
    let bases = class.arguments.iter().flat_map(|arguments| &arguments.args);
    class.name.to_ascii_lowercase().contains("test")
        || bases.into_iter().any(|base| match base {
            Expr::Name(name) => name.id.ends_with("TestCase"),
            Expr::Attribute(attribute) => attribute.attr.ends_with("TestCase"),
            _ => false,
        })
}

/// Puts `pass` where a magic stands, so that lines stay what they are.
fn replace_magics(body: &[Stmt], text: &mut String, magics: &mut Vec<Magic>) {
    let mut ranges = Vec::new();
    names::escapes(body, &mut |range, binds| ranges.push((bytes(range), binds)));
    ranges.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut found = Vec::new();
    for (range, mut binds) in ranges {
        let written = text[range.clone()].to_owned();
        let first = written.lines().next().unwrap_or_default().to_owned();
        binds.extend(timed_names(&first));
        found.push(Magic { line: position(text, range.start).0, text: first, binds });
        text.replace_range(range, &placeholder(&written));
    }
    found.reverse();
    magics.extend(found);
}

/// A statement that does nothing, byte for byte and line for line as long as `written`.
fn placeholder(written: &str) -> String {
    let word = if written.len() >= 4 && !written.as_bytes()[..4].contains(&b'\n') { "pass" } else { "0" };
    let rest = written.bytes().skip(word.len()).map(|byte| if byte == b'\n' { '\n' } else { ' ' });
    word.chars().chain(rest).collect()
}

/// `%time x = f()` binds `x`.
fn timed_names(magic: &str) -> BTreeSet<String> {
    let Some(rest) = magic.strip_prefix("%time ") else { return BTreeSet::new() };
    match ruff_python_parser::parse_module(rest) {
        Ok(parsed) => parsed.suite().iter().flat_map(|stmt| names::of(stmt).binds).collect(),
        Err(_) => BTreeSet::new(),
    }
}
