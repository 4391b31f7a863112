//! What the grammar accepts and only the compiler refuses. Most of it is the parser
//! crate's own checker, which needs to be told the scopes; the rest are checks that
//! crate does not have.

use super::extra;
use super::fault::{Fault, PARSER};
use super::words;
use crate::model::Localized;
use crate::python::Dialect;
use crate::rules;
use ruff_python_ast::visitor::{
    Visitor, walk_except_handler, walk_expr, walk_interpolated_string_element, walk_keyword, walk_pattern, walk_stmt,
};
use ruff_python_ast::{self as ast, Expr, PythonVersion, Stmt};
use ruff_python_parser::semantic_errors::{
    LazyImportContext, SemanticSyntaxChecker, SemanticSyntaxContext, SemanticSyntaxError,
};
use ruff_text_size::{Ranged, TextRange};
use std::cell::RefCell;

/// Nesting of statements and expressions at which CPython gives up: it allows three
/// times its recursion limit of 1000 (measured with 3.11: 2,992 levels of `1+1+…`).
pub(super) const MAX_DEPTH: u32 = 3000;

/// What a module that parsed is found to have.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Its faults.
    pub(super) faults: Vec<Fault>,
    /// It is deeper than CPython goes; what lies below was not looked at.
    pub(super) too_deep: bool,
    /// `try` statements whose `except*` is wrong in every version of Python.
    pub(super) wrong_stars: Vec<TextRange>,
}

/// Checks a module that parsed.
pub(super) fn check(text: &str, body: &[Stmt], dialect: Dialect, version: PythonVersion) -> Found {
    let mut checker = Checker {
        text,
        dialect,
        version,
        future_annotations: has_future_annotations(body),
        crate_checker: SemanticSyntaxChecker::new(),
        errors: RefCell::default(),
        found: Found::default(),
        scopes: vec![Scope::new(ScopeKind::Module)],
        depth: 0,
        tries: Vec::new(),
    };
    checker.visit_body(body);
    let mut found = checker.found;
    found.faults.extend(
        checker
            .errors
            .into_inner()
            .iter()
            .map(|error| Fault::new(&rules::static_checks::SYNTAX, error.range, words::semantic(error))),
    );
    found
}

fn has_future_annotations(body: &[Stmt]) -> bool {
    body.iter().filter_map(Stmt::as_import_from_stmt).any(|import| {
        import.module.as_deref() == Some("__future__") && import.names.iter().any(|name| &name.name == "annotations")
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    Module,
    Class,
    Function {
        is_async: bool,
    },
    /// A list, set or dict comprehension, or a generator expression.
    Comprehension {
        is_async: bool,
        is_generator: bool,
    },
}

/// What surrounds a statement inside its scope; each entry is one of CPython's frame blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Loop,
    ExceptStar,
    Other,
}

#[derive(Debug)]
struct Scope {
    kind: ScopeKind,
    blocks: Vec<Block>,
}

impl Scope {
    fn new(kind: ScopeKind) -> Self {
        Scope { kind, blocks: Vec::new() }
    }
}

struct Checker<'a> {
    text: &'a str,
    dialect: Dialect,
    version: PythonVersion,
    future_annotations: bool,
    crate_checker: SemanticSyntaxChecker,
    errors: RefCell<Vec<SemanticSyntaxError>>,
    found: Found,
    scopes: Vec<Scope>,
    depth: u32,
    /// The `try` statements around.
    tries: Vec<TextRange>,
}

impl Checker<'_> {
    fn kinds(&self) -> impl Iterator<Item = ScopeKind> + '_ {
        self.scopes.iter().rev().map(|scope| scope.kind)
    }

    fn kind(&self) -> ScopeKind {
        self.scopes.last().map_or(ScopeKind::Module, |scope| scope.kind)
    }

    fn blocks(&self) -> &[Block] {
        self.scopes.last().map_or(&[], |scope| &scope.blocks)
    }

    fn fault(&mut self, range: TextRange, message: Localized) {
        self.found.faults.push(Fault::new(&rules::static_checks::SYNTAX, range, message));
    }

    fn within(&mut self, kind: ScopeKind, visit: impl FnOnce(&mut Self)) {
        self.scopes.push(Scope::new(kind));
        visit(self);
        self.scopes.pop();
    }

    /// Visits what stands inside `blocks`; CPython has room for a fixed number of them.
    fn inside(&mut self, at: TextRange, blocks: &[Block], visit: impl FnOnce(&mut Self)) {
        let limit = if self.version >= PythonVersion::PY313 { 21 } else { 20 };
        let before = self.blocks().len();
        if before <= limit && before + blocks.len() > limit {
            self.fault(
                at,
                Localized::both(
                    format!("too many blocks inside each other: Python allows {limit}"),
                    format!("代码块嵌套过多：Python 最多允许 {limit} 层"),
                ),
            );
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.blocks.extend_from_slice(blocks);
        }
        visit(self);
        if let Some(scope) = self.scopes.last_mut() {
            scope.blocks.truncate(before);
        }
    }

    /// Counts one level of nesting; `false`: deeper than CPython goes.
    fn enter(&mut self, range: TextRange) -> bool {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return true;
        }
        if !self.found.too_deep {
            self.found.too_deep = true;
            self.found.faults.push(too_deep(range).rank(PARSER));
        }
        false
    }

    fn function(&mut self, function: &ast::StmtFunctionDef) {
        // Decorators, defaults and annotations belong to the scope around the function.
        for decorator in &function.decorator_list {
            self.visit_decorator(decorator);
        }
        if let Some(parameters) = &function.type_params {
            self.visit_type_params(parameters);
        }
        self.visit_parameters(&function.parameters);
        if let Some(returns) = &function.returns {
            self.visit_annotation(returns);
        }
        let kind = ScopeKind::Function { is_async: function.is_async };
        self.within(kind, |checker| checker.visit_body(&function.body));
    }

    fn class(&mut self, class: &ast::StmtClassDef) {
        for decorator in &class.decorator_list {
            self.visit_decorator(decorator);
        }
        if let Some(parameters) = &class.type_params {
            self.visit_type_params(parameters);
        }
        if let Some(arguments) = &class.arguments {
            self.visit_arguments(arguments);
        }
        self.within(ScopeKind::Class, |checker| checker.visit_body(&class.body));
    }

    fn try_statement(&mut self, statement: &ast::StmtTry) {
        let at = TextRange::at(statement.range.start(), 3.into());
        let outer: &[Block] = if statement.finalbody.is_empty() { &[] } else { &[Block::Other] };
        self.tries.push(statement.range);
        self.inside(at, outer, |checker| {
            let body: &[Block] = if statement.handlers.is_empty() { &[] } else { &[Block::Other] };
            checker.inside(at, body, |checker| checker.visit_body(&statement.body));
            let handler = if statement.is_star { Block::ExceptStar } else { Block::Other };
            checker.inside(at, &[Block::Other, handler][..], |checker| {
                for handler in &statement.handlers {
                    walk_except_handler(checker, handler);
                }
            });
            checker.visit_body(&statement.orelse);
        });
        self.inside(at, outer, |checker| checker.visit_body(&statement.finalbody));
        self.tries.pop();
        self.found.faults.extend(extra::default_except_not_last(statement));
    }

    /// `break`, `continue` and `return` may not leave an `except*` block.
    fn leaves_except_star(&mut self, range: TextRange, word: &str, whole_function: bool) {
        let found = self.blocks().iter().rev().find(|block| match block {
            Block::ExceptStar => true,
            Block::Loop => !whole_function,
            Block::Other => false,
        });
        if found == Some(&Block::ExceptStar) {
            self.found.wrong_stars.extend(self.tries.last());
            self.fault(
                range,
                Localized::both(
                    format!("`{word}` may not leave an `except*` block"),
                    format!("`except*` 代码块里不能使用 `{word}` 跳出"),
                ),
            );
        }
    }

    fn comprehension(&mut self, generators: &[ast::Comprehension], is_generator: bool, elements: &[Option<&Expr>]) {
        // The first iterable is evaluated outside.
        if let Some(first) = generators.first() {
            self.visit_expr(&first.iter);
        }
        let is_async = generators.iter().any(|generator| generator.is_async);
        self.within(ScopeKind::Comprehension { is_async, is_generator }, |checker| {
            for (index, generator) in generators.iter().enumerate() {
                if index > 0 {
                    checker.visit_expr(&generator.iter);
                }
                checker.visit_expr(&generator.target);
                generator.ifs.iter().for_each(|condition| checker.visit_expr(condition));
            }
            elements.iter().flatten().for_each(|element| checker.visit_expr(element));
        });
    }

    fn lambda(&mut self, lambda: &ast::ExprLambda) {
        if let Some(parameters) = &lambda.parameters {
            self.visit_parameters(parameters);
        }
        self.within(ScopeKind::Function { is_async: false }, |checker| checker.visit_expr(&lambda.body));
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::FunctionDef(function) => self.function(function),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::For(ast::StmtFor { target, iter, body, orelse, .. }) => {
                self.visit_expr(iter);
                self.visit_expr(target);
                self.inside(first_word(statement), &[Block::Loop], |checker| checker.visit_body(body));
                self.visit_body(orelse);
            }
            Stmt::While(ast::StmtWhile { test, body, orelse, .. }) => {
                self.visit_expr(test);
                self.inside(first_word(statement), &[Block::Loop], |checker| checker.visit_body(body));
                self.visit_body(orelse);
            }
            Stmt::With(ast::StmtWith { items, body, .. }) => {
                items.iter().for_each(|item| self.visit_with_item(item));
                let blocks = vec![Block::Other; items.len()];
                self.inside(first_word(statement), &blocks, |checker| checker.visit_body(body));
            }
            Stmt::Try(statement) => self.try_statement(statement),
            Stmt::Break(_) => self.leaves_except_star(statement.range(), "break", false),
            Stmt::Continue(_) => self.leaves_except_star(statement.range(), "continue", false),
            Stmt::Return(_) => {
                self.leaves_except_star(first_word(statement), "return", true);
                walk_stmt(self, statement);
            }
            _ => walk_stmt(self, statement),
        }
    }
}

/// The fault of a tree that is deeper than CPython goes.
pub(super) fn too_deep(range: impl Into<super::fault::Span>) -> Fault {
    Fault::new(&rules::static_checks::TOO_DEEP, range, "")
}

/// The place of a compound statement's first word; enough to find its line.
fn first_word(statement: &Stmt) -> TextRange {
    TextRange::at(statement.range().start(), 1.into())
}

impl<'a> Visitor<'a> for Checker<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if self.enter(first_word(statement)) {
            let mut checker = std::mem::take(&mut self.crate_checker);
            checker.visit_stmt(statement, self);
            self.crate_checker = checker;
            self.found.faults.extend(extra::statement(statement));
            self.statement(statement);
        }
        self.depth -= 1;
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if self.enter(expression.range()) {
            let mut checker = std::mem::take(&mut self.crate_checker);
            checker.visit_expr(expression, self);
            self.crate_checker = checker;
            self.found.faults.extend(extra::expression(expression));
            match expression {
                Expr::Lambda(lambda) => self.lambda(lambda),
                Expr::ListComp(ast::ExprListComp { elt, generators, .. })
                | Expr::SetComp(ast::ExprSetComp { elt, generators, .. }) => {
                    self.comprehension(generators, false, &[Some(elt)]);
                }
                Expr::Generator(ast::ExprGenerator { elt, generators, .. }) => {
                    self.comprehension(generators, true, &[Some(elt)]);
                }
                Expr::DictComp(ast::ExprDictComp { key, value, generators, .. }) => {
                    self.comprehension(generators, false, &[key.as_deref(), Some(value)]);
                }
                _ => walk_expr(self, expression),
            }
        }
        self.depth -= 1;
    }

    fn visit_keyword(&mut self, keyword: &'a ast::Keyword) {
        self.found.faults.extend(extra::keyword(keyword));
        walk_keyword(self, keyword);
    }

    fn visit_pattern(&mut self, pattern: &'a ast::Pattern) {
        self.found.faults.extend(extra::pattern(pattern));
        walk_pattern(self, pattern);
    }

    fn visit_interpolated_string_element(&mut self, element: &'a ast::InterpolatedStringElement) {
        self.found.faults.extend(extra::interpolation(element));
        walk_interpolated_string_element(self, element);
    }
}

impl SemanticSyntaxContext for Checker<'_> {
    fn future_annotations_or_stub(&self) -> bool {
        self.future_annotations
    }

    fn lazy_import_context(&self) -> Option<LazyImportContext> {
        match self.kind() {
            ScopeKind::Function { .. } => Some(LazyImportContext::Function),
            ScopeKind::Class => Some(LazyImportContext::Class),
            _ if !self.tries.is_empty() => Some(LazyImportContext::TryExceptBlocks),
            _ => None,
        }
    }

    fn python_version(&self) -> PythonVersion {
        self.version
    }

    fn source(&self) -> &str {
        self.text
    }

    // Names are judged by our own symbol table, which sees declarations and bindings
    // of every kind; these answers keep the crate's partial check silent.
    fn global(&self, _name: &str) -> Option<TextRange> {
        None
    }

    fn has_nonlocal_binding(&self, _name: &str) -> bool {
        true
    }

    fn is_bound_parameter(&self, _name: &str) -> bool {
        false
    }

    fn in_async_context(&self) -> bool {
        for kind in self.kinds() {
            match kind {
                ScopeKind::Function { is_async } => return is_async,
                ScopeKind::Class => return false,
                ScopeKind::Module => return self.in_notebook(),
                ScopeKind::Comprehension { .. } => {}
            }
        }
        false
    }

    fn in_await_allowed_context(&self) -> bool {
        for kind in self.kinds() {
            match kind {
                ScopeKind::Function { .. } | ScopeKind::Comprehension { is_generator: true, .. } => return true,
                ScopeKind::Class => return false,
                ScopeKind::Module => return self.in_notebook(),
                ScopeKind::Comprehension { .. } => {}
            }
        }
        false
    }

    fn in_yield_allowed_context(&self) -> bool {
        self.in_function_scope()
    }

    fn in_sync_comprehension(&self) -> bool {
        self.kinds().any(|kind| kind == ScopeKind::Comprehension { is_async: false, is_generator: false })
    }

    fn in_class_body_comprehension(&self) -> bool {
        self.kinds().find(|kind| !matches!(kind, ScopeKind::Comprehension { .. })) == Some(ScopeKind::Class)
    }

    fn in_module_scope(&self) -> bool {
        self.kind() == ScopeKind::Module
    }

    fn in_function_scope(&self) -> bool {
        matches!(self.kind(), ScopeKind::Function { .. })
    }

    fn in_generator_context(&self) -> bool {
        self.kinds().any(|kind| matches!(kind, ScopeKind::Comprehension { is_generator: true, .. }))
    }

    fn in_notebook(&self) -> bool {
        self.dialect == Dialect::Cell
    }

    fn in_loop_context(&self) -> bool {
        self.blocks().contains(&Block::Loop)
    }

    fn report_semantic_error(&self, error: SemanticSyntaxError) {
        self.errors.borrow_mut().push(error);
    }
}
