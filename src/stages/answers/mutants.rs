//! Answer functions changed on purpose, one change at a time. A test that still passes
//! says nothing about the function. Pure.

use super::plan::{Role, Step};
use crate::model::Localized;
use crate::python::{self, Dialect};
use ruff_python_ast::PythonVersion;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt, StmtFunctionDef, StmtReturn};
use ruff_text_size::{Ranged, TextRange};

/// Conditions of one function that are negated; more would only cost time.
const MAX_CONDITIONS: usize = 3;

/// One change of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mutant {
    /// `f`, or `Class.f`.
    pub(super) function: String,
    /// Line of its `def`.
    pub(super) line: u32,
    /// What was changed.
    pub(super) what: Localized,
    /// The whole cell with the change.
    pub(super) text: String,
}

/// Every mutant of the answer functions of a step.
pub(super) fn of(step: &Step) -> Vec<Mutant> {
    if !matches!(step.role, Role::Answer) && step.pure {
        return Vec::new();
    }
    let parsed = python::parse(&step.text, Dialect::Cell, PythonVersion::default());
    let module = parsed.syntax();
    functions(&module.body)
        .into_iter()
        .filter(|(name, _)| !name.rsplit('.').next().is_some_and(|last| last.starts_with("test")))
        .flat_map(|(name, function)| changes(&step.text, &name, function))
        .collect()
}

/// Top-level functions, and methods of top-level classes.
fn functions(body: &[Stmt]) -> Vec<(String, &StmtFunctionDef)> {
    let mut found = Vec::new();
    for stmt in body {
        match stmt {
            Stmt::FunctionDef(function) => found.push((function.name.to_string(), function)),
            Stmt::ClassDef(class) => {
                let methods = class.body.iter().filter_map(Stmt::as_function_def_stmt);
                found.extend(methods.map(|method| (format!("{}.{}", class.name, method.name), method)));
            }
            _ => {}
        }
    }
    found
}

/// What of a function can be changed, not looking into functions inside it.
#[derive(Default)]
struct Places<'a> {
    returns: Vec<&'a StmtReturn>,
    conditions: Vec<TextRange>,
    yields: bool,
}

impl<'a> Visitor<'a> for Places<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => return,
            Stmt::Return(done) if done.value.is_some() => self.returns.push(done),
            Stmt::If(branch) => self.conditions.push(branch.test.range()),
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Lambda(_) => return,
            Expr::Yield(_) | Expr::YieldFrom(_) => self.yields = true,
            Expr::If(choice) => self.conditions.push(choice.test.range()),
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}

fn changes(text: &str, name: &str, function: &StmtFunctionDef) -> Vec<Mutant> {
    let mut places = Places::default();
    places.visit_body(&function.body);
    let line = line_of(text, function.name.range);
    let mutant = |what: Localized, text: String| Mutant { function: name.to_owned(), line, what, text };
    let mut mutants = Vec::new();
    let returned: Vec<(TextRange, String)> =
        places.returns.iter().filter_map(|done| Some((done.value.as_ref()?.range(), "None".to_owned()))).collect();
    if !returned.is_empty() {
        let what = Localized::both("it returns None", "改为返回 None");
        mutants.push(mutant(what, replaced(text, &returned)));
    } else if let (false, Some(body)) = (places.yields || is_trivial(function), body_range(function)) {
        let what = Localized::both("its body does nothing", "函数体改为空操作");
        mutants.push(mutant(what, replaced(text, &[(body, "pass".to_owned())])));
    }
    for condition in places.conditions.iter().take(MAX_CONDITIONS) {
        let number = line_of(text, *condition);
        let negated = format!("not ({})", &text[condition.start().to_usize()..condition.end().to_usize()]);
        let what =
            Localized::both(format!("the condition of line {number} is negated"), format!("第 {number} 行的条件取反"));
        mutants.push(mutant(what, replaced(text, &[(*condition, negated)])));
    }
    mutants
}

/// Nothing to leave out: a docstring, `pass`, or an abstract method.
fn is_trivial(function: &StmtFunctionDef) -> bool {
    function.body.iter().all(|stmt| match stmt {
        Stmt::Pass(_) | Stmt::Raise(_) => true,
        Stmt::Expr(expr) => matches!(&*expr.value, Expr::StringLiteral(_) | Expr::EllipsisLiteral(_)),
        _ => false,
    })
}

fn body_range(function: &StmtFunctionDef) -> Option<TextRange> {
    Some(TextRange::new(function.body.first()?.range().start(), function.body.last()?.range().end()))
}

/// Replaces ranges, last one first. Lines stay where they were, so that places still fit.
fn replaced(text: &str, changes: &[(TextRange, String)]) -> String {
    let mut out = text.to_owned();
    let mut changes: Vec<&(TextRange, String)> = changes.iter().collect();
    changes.sort_by_key(|(range, _)| std::cmp::Reverse(range.start()));
    for (range, new) in changes {
        let bytes = range.start().to_usize()..range.end().to_usize();
        let lost = out[bytes.clone()].matches('\n').count().saturating_sub(new.matches('\n').count());
        out.replace_range(bytes, &format!("{new}{}", "\n".repeat(lost)));
    }
    out
}

fn line_of(text: &str, range: TextRange) -> u32 {
    let before = text.get(..range.start().to_usize()).unwrap_or_default();
    u32::try_from(before.matches('\n').count()).unwrap_or(u32::MAX).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str) -> Step {
        Step {
            cell: 1,
            role: Role::Answer,
            text: text.to_owned(),
            tests: Vec::new(),
            pure: false,
            tagged_test: false,
            worker_text: String::new(),
            imports: Vec::new(),
        }
    }

    #[test]
    fn each_function_is_changed_on_its_own() {
        let source = "def f(x):\n    if x > 0:\n        return (x +\n                1)\n    return 0\n\nclass A:\n    def g(self):\n        self.y = 1\n        self.z = 2\n";
        let mutants = of(&step(source));
        let texts: Vec<(&str, u32, &str)> =
            mutants.iter().map(|m| (m.function.as_str(), m.line, m.text.as_str())).collect();
        assert_eq!(
            texts[0],
            (
                "f",
                1,
                "def f(x):\n    if x > 0:\n        return (None\n)\n    return None\n\nclass A:\n    def g(self):\n        self.y = 1\n        self.z = 2\n"
            )
        );
        assert!(texts[1].2.contains("if not (x > 0):"));
        assert_eq!((texts[2].0, texts[2].1), ("A.g", 8));
        assert!(texts[2].2.ends_with("        pass\n\n"));
        assert_eq!(texts.len(), 3);
    }

    #[test]
    fn tests_and_abstract_methods_are_left_alone() {
        assert_eq!(of(&step("def test_f():\n    return 1\n\ndef g():\n    raise NotImplementedError\n")), []);
    }
}
