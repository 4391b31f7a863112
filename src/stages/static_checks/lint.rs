//! What compiles, runs, and proves nothing: tests that cannot fail. All warnings.

use crate::python::module::{is_test_name, names_read, tests};
use ruff_python_ast::visitor::{Visitor, walk_stmt};
use ruff_python_ast::{self as ast, ExceptHandler, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};
use std::collections::{HashMap, HashSet};

/// What is wrong with a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lint {
    /// A handler swallows the test's own AssertionError.
    Swallows {
        /// The handler.
        at: TextRange,
        /// Name of the test.
        test: String,
    },
    /// The test returns a comparison.
    Returns {
        /// The `return` statement.
        at: TextRange,
        /// Name of the test.
        test: String,
    },
    /// The test is defined and never called.
    NeverCalled {
        /// Its name, at the definition.
        at: TextRange,
        /// Name of the test.
        test: String,
    },
    /// An earlier test of that name was never called.
    Duplicate {
        /// Its name, at the second definition.
        at: TextRange,
        /// Name of the test.
        test: String,
        /// Index of the unit that holds the first definition.
        first: usize,
    },
}

/// Lints of the functions of one module.
pub(super) fn functions(body: &[Stmt]) -> Vec<Lint> {
    let mut lints = Vec::new();
    for function in test_functions(body) {
        let mut visitor = Body { test: function.name.as_str(), lints: &mut lints };
        visitor.visit_body(&function.body);
    }
    lints
}

/// Test functions at the top level and in classes.
fn test_functions(body: &[Stmt]) -> Vec<&ast::StmtFunctionDef> {
    let mut found: Vec<&ast::StmtFunctionDef> = tests(body).collect();
    for class in body.iter().filter_map(Stmt::as_class_def_stmt) {
        found.extend(tests(&class.body));
    }
    found
}

/// Walks the body of a test; functions inside it are not the test.
struct Body<'a> {
    test: &'a str,
    lints: &'a mut Vec<Lint>,
}

impl<'a> Visitor<'a> for Body<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => return,
            Stmt::Try(statement) if asserts(&statement.body) => {
                // The first handler that takes it; those below never see it.
                let mut handlers = statement.handlers.iter().map(|ExceptHandler::ExceptHandler(handler)| handler);
                if let Some(handler) = handlers.find(|handler| takes_assertion(handler))
                    && !tells(&handler.body)
                {
                    let at = TextRange::at(handler.range.start(), 6.into());
                    self.lints.push(Lint::Swallows { at, test: self.test.to_owned() });
                }
            }
            Stmt::Return(ast::StmtReturn { value: Some(value), range, .. }) if is_verdict(value) => {
                self.lints.push(Lint::Returns { at: *range, test: self.test.to_owned() });
            }
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, _expression: &'a Expr) {}
}

/// Whether statements assert something themselves.
fn asserts(body: &[Stmt]) -> bool {
    struct Asserts(bool);
    impl<'a> Visitor<'a> for Asserts {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            match statement {
                Stmt::Assert(_) => self.0 = true,
                Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
                _ => walk_stmt(self, statement),
            }
        }
        fn visit_expr(&mut self, _expression: &'a Expr) {}
    }
    let mut visitor = Asserts(false);
    visitor.visit_body(body);
    visitor.0
}

/// Whether a handler takes an AssertionError.
fn takes_assertion(handler: &ast::ExceptHandlerExceptHandler) -> bool {
    match handler.type_.as_deref() {
        None => true,
        Some(Expr::Tuple(tuple)) => tuple.elts.iter().any(is_assertion_error),
        Some(one) => is_assertion_error(one),
    }
}

fn is_assertion_error(expression: &Expr) -> bool {
    let name = match expression {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return false,
    };
    matches!(name, "AssertionError" | "Exception" | "BaseException")
}

/// Whether a handler raises, asserts, exits, or calls something that fails a test.
fn tells(body: &[Stmt]) -> bool {
    struct Tells(bool);
    impl<'a> Visitor<'a> for Tells {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            if matches!(statement, Stmt::Raise(_) | Stmt::Assert(_)) {
                self.0 = true;
            }
            walk_stmt(self, statement);
        }
        fn visit_expr(&mut self, expression: &'a Expr) {
            if let Expr::Call(call) = expression {
                let name = match call.func.as_ref() {
                    Expr::Name(name) => name.id.as_str(),
                    Expr::Attribute(attribute) => attribute.attr.as_str(),
                    _ => "",
                };
                self.0 |= matches!(name, "fail" | "exit" | "_exit" | "skip" | "xfail" | "append" | "add");
            }
            ast::visitor::walk_expr(self, expression);
        }
    }
    let mut visitor = Tells(false);
    visitor.visit_body(body);
    visitor.0
}

/// `a == b`, `not a`, `a == b and c == d`.
fn is_verdict(expression: &Expr) -> bool {
    match expression {
        Expr::Compare(_) => true,
        Expr::UnaryOp(unary) => unary.op == ast::UnaryOp::Not,
        Expr::BoolOp(operation) => operation.values.iter().all(is_verdict),
        _ => false,
    }
}

/// Lints that need all units of a notebook, or the one of a file: each with the index
/// of its unit. `runs_itself`: nothing discovers tests here, so they have to be called.
pub(super) fn across(units: &[Option<&[Stmt]>], runs_itself: bool) -> Vec<(usize, Lint)> {
    if !needs_names(units, runs_itself) {
        return Vec::new();
    }
    let read: Vec<HashMap<&str, Vec<usize>>> =
        units.iter().map(|body| body.map(names_read).unwrap_or_default()).collect();
    // A unit that does not parse may call anything.
    let all_parsed = units.iter().all(Option::is_some);
    let has_runner = read.iter().any(|names| RUNNERS.iter().any(|runner| names.contains_key(*runner)));
    let mut lints = Vec::new();
    let mut seen: HashMap<&str, (usize, usize)> = HashMap::new();
    for (index, body) in units.iter().enumerate() {
        for function in body.iter().flat_map(|body| tests(body)) {
            let name = function.name.as_str();
            let at = function.name.range;
            let start = at.start().to_usize();
            if let Some((first, end)) = seen.insert(name, (index, function.end().to_usize()))
                && !is_read_between(&read, name, (first, end), (index, start))
                && all_parsed
                && function.decorator_list.is_empty()
            {
                lints.push((index, Lint::Duplicate { at, test: name.to_owned(), first }));
            }
            let is_called = has_runner || read.iter().any(|names| names.contains_key(name));
            if runs_itself && all_parsed && !is_called && is_test_name(name) {
                lints.push((index, Lint::NeverCalled { at, test: name.to_owned() }));
            }
        }
    }
    lints
}

/// Collecting every name is the dear part; most files have no test, or each once.
fn needs_names(units: &[Option<&[Stmt]>], runs_itself: bool) -> bool {
    let mut names = HashSet::new();
    let mut all = units.iter().flatten().flat_map(|body| tests(body));
    all.any(|function| !names.insert(function.name.as_str()) || runs_itself)
}

/// Modules and functions that find tests by themselves.
const RUNNERS: &[&str] = &["ipytest", "pytest", "unittest", "doctest", "globals", "locals", "vars", "dir"];

/// Whether a name is read after one place and before another; a place is a unit and a
/// byte offset in it.
fn is_read_between(read: &[HashMap<&str, Vec<usize>>], name: &str, from: (usize, usize), to: (usize, usize)) -> bool {
    (from.0..=to.0).any(|index| {
        let offsets = read[index].get(name).map_or(&[][..], Vec::as_slice);
        offsets.iter().any(|offset| (index, *offset) >= from && (index, *offset) < to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::{Dialect, parse};
    use ruff_python_ast::PythonVersion;

    fn lints(cells: &[&str]) -> Vec<String> {
        let parsed: Vec<_> = cells.iter().map(|cell| parse(cell, Dialect::Cell, PythonVersion::PY310)).collect();
        let bodies: Vec<Option<&[Stmt]>> = parsed.iter().map(|unit| Some(&unit.syntax().body[..])).collect();
        let own = parsed
            .iter()
            .enumerate()
            .flat_map(|(index, unit)| functions(&unit.syntax().body).into_iter().map(move |lint| (index, lint)));
        own.chain(across(&bodies, true))
            .map(|(index, lint)| match lint {
                Lint::Swallows { test, .. } => format!("{index} swallows {test}"),
                Lint::Returns { test, .. } => format!("{index} returns {test}"),
                Lint::NeverCalled { test, .. } => format!("{index} uncalled {test}"),
                Lint::Duplicate { test, first, .. } => format!("{index} duplicate {test} of {first}"),
            })
            .collect()
    }

    #[test]
    fn a_swallowed_assertion_is_seen_and_an_expected_exception_is_not() {
        let swallow = "def test_a():\n try:\n  assert x\n except Exception as e:\n  print(e)\ntest_a()";
        assert_eq!(lints(&[swallow]), ["0 swallows test_a"]);
        for fine in [
            "def test_a():\n try:\n  f()\n  assert False\n except ValueError:\n  pass\ntest_a()",
            "def test_a():\n try:\n  assert x\n except Exception:\n  raise\ntest_a()",
            "def test_a():\n try:\n  import torch\n except Exception:\n  return\n assert x\ntest_a()",
            "def test_a():\n try:\n  assert x\n except AssertionError:\n  raise\n except Exception:\n  pass\ntest_a()",
            "def helper():\n try:\n  assert x\n except Exception:\n  pass",
        ] {
            assert_eq!(lints(&[fine]), [""; 0], "{fine}");
        }
    }

    #[test]
    fn a_test_has_to_be_called_somewhere() {
        assert_eq!(lints(&["def test_a():\n pass"]), ["0 uncalled test_a"]);
        for cells in [
            &["def test_a():\n pass", "test_a()"][..],
            &["def test_a():\n pass", "for t in [test_a]: t()"],
            &["def test_a():\n pass", "import pytest\npytest.main()"],
            &["def test_a():\n pass", "globals()['test_a']()"],
        ] {
            assert_eq!(lints(cells), [""; 0], "{cells:?}");
        }
    }

    #[test]
    fn a_second_test_of_one_name_is_a_fault_only_if_the_first_never_ran() {
        let test = "def test_a():\n pass\n";
        assert_eq!(lints(&[test, test, "test_a()"]), ["1 duplicate test_a of 0"]);
        assert_eq!(lints(&[&format!("{test}test_a()"), &format!("{test}test_a()")]), [""; 0]);
    }

    #[test]
    fn a_returned_comparison_is_no_assertion() {
        assert_eq!(lints(&["def test_a():\n return f(1) == 2\ntest_a()"]), ["0 returns test_a"]);
        assert_eq!(lints(&["def test_a():\n return f(1)\ntest_a()"]), [""; 0]);
    }
}
