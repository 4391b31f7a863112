//! Which names a statement binds in the notebook and which it takes from there, by
//! Python's scoping rules.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{
    Comprehension, ExceptHandler, Expr, ExprContext, Parameters, Pattern, Stmt, StmtClassDef, StmtFunctionDef,
};
use ruff_text_size::{Ranged, TextRange};
use std::collections::BTreeSet;

/// Names of one statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Names {
    /// Bound in the notebook.
    pub(super) binds: BTreeSet<String>,
    /// Taken from the notebook, builtins included.
    pub(super) needs: BTreeSet<String>,
    /// Changed in place: `x += 1`, `x[0] = 1`.
    pub(super) changes: BTreeSet<String>,
    /// `from x import *`.
    pub(super) star: bool,
}

/// The names of a top-level statement.
pub(super) fn of(stmt: &Stmt) -> Names {
    let mut collector = Collector { scopes: vec![Scope::default()], changes: BTreeSet::new(), star: false };
    collector.visit_stmt(stmt);
    let top = collector.scopes.pop().unwrap_or_default();
    let mut needs = top.loads;
    needs.extend(top.inner);
    Names { binds: top.stores, needs, changes: collector.changes, star: collector.star }
}

/// Calls `found` with the place of every magic statement, and of every assignment from
/// one together with the names it would bind.
pub(super) fn escapes(body: &[Stmt], found: &mut dyn FnMut(TextRange, BTreeSet<String>)) {
    struct Finder<'f>(&'f mut dyn FnMut(TextRange, BTreeSet<String>));
    impl<'a> Visitor<'a> for Finder<'_> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            let value = match stmt {
                Stmt::IpyEscapeCommand(_) => return (self.0)(stmt.range(), BTreeSet::new()),
                Stmt::Assign(assign) => Some(&*assign.value),
                Stmt::AnnAssign(assign) => assign.value.as_deref(),
                _ => None,
            };
            if matches!(value, Some(Expr::IpyEscapeCommand(_))) {
                (self.0)(stmt.range(), of(stmt).binds);
            } else {
                visitor::walk_stmt(self, stmt);
            }
        }
    }
    Finder(found).visit_body(body);
}

/// One scope while it is read.
#[derive(Debug, Default)]
struct Scope {
    stores: BTreeSet<String>,
    loads: BTreeSet<String>,
    /// Free names of the functions inside.
    inner: BTreeSet<String>,
    globals: BTreeSet<String>,
    is_class: bool,
}

struct Collector {
    scopes: Vec<Scope>,
    changes: BTreeSet<String>,
    star: bool,
}

impl Collector {
    fn scope(&mut self) -> &mut Scope {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    fn store(&mut self, name: &str) {
        if self.scope().globals.contains(name) {
            self.scopes[0].stores.insert(name.to_owned());
        } else {
            self.scope().stores.insert(name.to_owned());
        }
    }

    /// Only changes at the level of the notebook: inside a function they wait for its call.
    fn change(&mut self, name: &str) {
        if self.scopes.len() == 1 {
            self.changes.insert(name.to_owned());
        }
    }

    fn load(&mut self, name: &str) {
        self.scope().loads.insert(name.to_owned());
    }

    /// Reads a scope of its own; what it does not bind is passed on.
    fn nested(&mut self, is_class: bool, read: impl FnOnce(&mut Self)) {
        self.scopes.push(Scope { is_class, ..Scope::default() });
        read(self);
        let done = self.scopes.pop().unwrap_or_default();
        let visible = |name: &String| done.is_class || !done.stores.contains(name);
        let mut free: BTreeSet<String> =
            done.loads.iter().filter(|name| !done.stores.contains(*name)).cloned().collect();
        free.extend(done.inner.iter().filter(|name| visible(name)).cloned());
        free.extend(done.globals);
        self.scope().inner.extend(free);
    }

    fn function(&mut self, function: &StmtFunctionDef) {
        self.store(function.name.as_str());
        function.decorator_list.iter().for_each(|decorator| self.visit_expr(&decorator.expression));
        self.defaults(&function.parameters);
        if let Some(returns) = &function.returns {
            self.visit_expr(returns);
        }
        self.nested(false, |this| {
            function.parameters.iter().for_each(|parameter| this.store(parameter.name().as_str()));
            this.visit_body(&function.body);
        });
    }

    fn defaults(&mut self, parameters: &Parameters) {
        for parameter in parameters {
            parameter.default().into_iter().chain(parameter.annotation()).for_each(|expr| self.visit_expr(expr));
        }
    }

    fn class(&mut self, class: &StmtClassDef) {
        self.store(class.name.as_str());
        class.decorator_list.iter().for_each(|decorator| self.visit_expr(&decorator.expression));
        if let Some(arguments) = &class.arguments {
            self.visit_arguments(arguments);
        }
        self.nested(true, |this| this.visit_body(&class.body));
    }

    fn comprehension(&mut self, generators: &[Comprehension], parts: &[&Expr]) {
        self.nested(false, |this| {
            generators.iter().for_each(|generator| this.visit_comprehension(generator));
            parts.iter().for_each(|part| this.visit_expr(part));
        });
    }

    fn import(&mut self, name: &str, alias: Option<&str>) {
        let bound = alias.unwrap_or_else(|| name.split('.').next().unwrap_or(name));
        self.store(bound);
    }
}

impl<'a> Visitor<'a> for Collector {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => self.function(function),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::Import(import) => import
                .names
                .iter()
                .for_each(|alias| self.import(alias.name.as_str(), alias.asname.as_ref().map(|name| name.as_str()))),
            Stmt::ImportFrom(import) => {
                for alias in &import.names {
                    let name = alias.name.as_str();
                    self.star |= name == "*";
                    if name != "*" {
                        self.store(alias.asname.as_ref().map_or(name, |name| name.as_str()));
                    }
                }
            }
            Stmt::Global(global) => {
                let names = global.names.iter().map(|name| name.as_str().to_owned());
                self.scope().globals.extend(names);
            }
            Stmt::AugAssign(assign) => {
                // Needs what it adds to: whoever binds the name first is still to be found.
                if let Expr::Name(name) = &*assign.target {
                    self.load(name.id.as_str());
                    self.change(name.id.as_str());
                } else {
                    self.visit_expr(&assign.target);
                }
                self.visit_expr(&assign.value);
            }
            _ => visitor::walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Subscript(place) if place.ctx == ExprContext::Store => {
                if let Expr::Name(name) = &*place.value {
                    self.change(name.id.as_str());
                }
                visitor::walk_expr(self, expr);
            }
            Expr::Name(name) if name.ctx == ExprContext::Store => self.store(name.id.as_str()),
            Expr::Name(name) => self.load(name.id.as_str()),
            Expr::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    self.defaults(parameters);
                }
                self.nested(false, |this| {
                    let parameters = lambda.parameters.iter().flat_map(|parameters| parameters.iter());
                    parameters.for_each(|parameter| this.store(parameter.name().as_str()));
                    this.visit_expr(&lambda.body);
                });
            }
            Expr::ListComp(list) => self.comprehension(&list.generators, &[&list.elt]),
            Expr::SetComp(set) => self.comprehension(&set.generators, &[&set.elt]),
            Expr::Generator(generator) => self.comprehension(&generator.generators, &[&generator.elt]),
            Expr::DictComp(dict) => {
                let parts: Vec<&Expr> = dict.key.iter().map(|key| &**key).chain([&*dict.value]).collect();
                self.comprehension(&dict.generators, &parts);
            }
            _ => visitor::walk_expr(self, expr),
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inside) = handler;
        if let Some(name) = &inside.name {
            self.store(name.as_str());
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let bound = match pattern {
            Pattern::MatchStar(star) => star.name.as_ref(),
            Pattern::MatchAs(alias) => alias.name.as_ref(),
            Pattern::MatchMapping(mapping) => mapping.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = bound {
            self.store(name.as_str());
        }
        visitor::walk_pattern(self, pattern);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> (Vec<String>, Vec<String>) {
        let parsed = ruff_python_parser::parse_module(source).unwrap();
        let Names { binds, needs, .. } = of(&parsed.suite()[0]);
        (binds.into_iter().collect(), needs.into_iter().collect())
    }

    #[test]
    fn locals_of_a_function_are_not_taken_from_the_notebook() {
        let (binds, needs) =
            names("def f(x, *rest, y=DEFAULT):\n    z = x + SCALE\n    return [z * k for k in rest]\n");
        assert_eq!(binds, ["f"]);
        assert_eq!(needs, ["DEFAULT", "SCALE"]);
    }

    #[test]
    fn class_names_are_not_seen_by_methods() {
        let (binds, needs) =
            names("class A(Base):\n    size = 3\n    def g(self):\n        return size\n    other = size\n");
        assert_eq!(binds, ["A"]);
        assert_eq!(needs, ["Base", "size"]);
    }

    #[test]
    fn compound_statements_bind_and_globals_reach_the_notebook() {
        assert_eq!(names("if flag:\n    x = 1\nelse:\n    x, (y, *z) = g()\n").0, ["x", "y", "z"]);
        assert_eq!(names("with open(p) as file, a() as (b, c):\n    pass\n").0, ["b", "c", "file"]);
        assert_eq!(names("try:\n    import numpy as np\nexcept ImportError as e:\n    np = None\n").0, ["e", "np"]);
        let (binds, needs) = names("def f():\n    global counter\n    counter = 1\n");
        assert_eq!((binds, needs), (vec!["counter".to_owned(), "f".to_owned()], vec!["counter".to_owned()]));
        assert_eq!(names("total += step\n"), (vec![], vec!["step".to_owned(), "total".to_owned()]));
        assert_eq!(names("match v:\n    case {'a': q, **rest}:\n        pass\n").0, ["q", "rest"]);
    }

    #[test]
    fn identifiers_are_compared_after_normalization() {
        assert_eq!(names("ﬁ = 3\n").0, ["fi"]);
    }
}
