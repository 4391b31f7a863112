//! Names and scopes, for `global` and `nonlocal` alone: the rules of CPython's symbol
//! table (`Python/symtable.c`). Only run on texts that use one of the two words.

use super::fault::Fault;
use crate::model::Localized;
use crate::rules;
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_pattern, walk_stmt};
use ruff_python_ast::{self as ast, Expr, ExprContext, Identifier, Stmt};
use ruff_text_size::{Ranged, TextRange};
use std::collections::HashMap;

/// Checks the declarations of a module.
pub(super) fn check(body: &[Stmt]) -> Vec<Fault> {
    let mut table = Table { scopes: vec![Scope::new(Kind::Module, None)], current: 0, faults: Vec::new() };
    table.visit_body(body);
    table.resolve();
    table.faults
}

/// Whether a text can need the check at all.
pub(super) fn concerns(text: &str) -> bool {
    [&b"global"[..], b"nonlocal"].iter().any(|word| memchr::memmem::find(text.as_bytes(), word).is_some())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Module,
    Class,
    Function,
    Comprehension,
    TypeParameters,
}

/// How a name has been used in a scope so far.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    read: bool,
    bound: bool,
    parameter: bool,
    annotated: bool,
    global: bool,
    nonlocal: Option<TextRange>,
}

#[derive(Debug)]
struct Scope<'a> {
    kind: Kind,
    parent: Option<usize>,
    names: HashMap<&'a str, Use>,
}

impl Scope<'_> {
    fn new(kind: Kind, parent: Option<usize>) -> Self {
        Scope { kind, parent, names: HashMap::new() }
    }
}

struct Table<'a> {
    scopes: Vec<Scope<'a>>,
    current: usize,
    faults: Vec<Fault>,
}

impl<'a> Table<'a> {
    fn scope(&mut self) -> &mut Scope<'a> {
        &mut self.scopes[self.current]
    }

    fn name(&mut self, name: &'a str) -> &mut Use {
        self.scope().names.entry(name).or_default()
    }

    fn bind(&mut self, name: &'a Identifier) {
        self.name(name.as_str()).bound = true;
    }

    fn within(&mut self, kind: Kind, visit: impl FnOnce(&mut Self)) {
        self.scopes.push(Scope::new(kind, Some(self.current)));
        let outer = std::mem::replace(&mut self.current, self.scopes.len() - 1);
        visit(self);
        self.current = outer;
    }

    fn fault(&mut self, range: TextRange, en: String, zh: String) {
        self.faults.push(Fault::new(&rules::static_checks::SYNTAX, range, Localized::both(en, zh)));
    }

    /// A `global` or `nonlocal` statement.
    fn declare(&mut self, names: &'a [Identifier], statement: TextRange, word: &'static str) {
        for name in names {
            let seen = *self.name(name.as_str());
            let (en, zh) = if seen.parameter {
                (
                    format!("`{name}` is a parameter and cannot be {word}"),
                    format!("`{name}` 是参数，不能再声明为 {word}"),
                )
            } else if seen.annotated {
                (format!("`{name}` is annotated and cannot be {word}"), format!("`{name}` 带有注解，不能声明为 {word}"))
            } else if seen.bound || seen.read {
                let (en, zh) = if seen.bound { ("assigned to", "被赋值") } else { ("used", "被使用") };
                (
                    format!("`{name}` is {en} before it is declared {word}"),
                    format!("`{name}` 在声明为 {word} 之前就已{zh}"),
                )
            } else if (word == "global" && seen.nonlocal.is_some()) || (word == "nonlocal" && seen.global) {
                (format!("`{name}` is declared nonlocal and global"), format!("`{name}` 同时声明为 nonlocal 和 global"))
            } else {
                self.declared(name.as_str(), statement, word);
                continue;
            };
            self.fault(TextRange::at(statement.start(), statement.len()), en, zh);
            // Resolved as declared, so that one fault does not bring a second one.
            self.declared(name.as_str(), statement, "global");
        }
    }

    fn declared(&mut self, name: &'a str, statement: TextRange, word: &str) {
        let seen = self.name(name);
        if word == "global" {
            seen.global = true;
        } else {
            seen.nonlocal = Some(statement);
        }
    }

    /// Every `nonlocal` has to find its name bound in a function around it.
    fn resolve(&mut self) {
        let mut lost = Vec::new();
        for (index, scope) in self.scopes.iter().enumerate() {
            for (name, seen) in &scope.names {
                if let Some(range) = seen.nonlocal
                    && scope.kind != Kind::Module
                    && !self.is_bound_around(index, name)
                {
                    lost.push(((*name).to_owned(), range));
                }
            }
        }
        lost.sort_by_key(|(name, range)| (range.start(), name.clone()));
        for (name, range) in lost {
            self.fault(
                range,
                format!("`nonlocal {name}`: no function around this one binds `{name}`"),
                format!("`nonlocal {name}`：外层函数中没有绑定 `{name}`"),
            );
        }
    }

    fn is_bound_around(&self, inner: usize, name: &str) -> bool {
        let mut parent = self.scopes[inner].parent;
        while let Some(index) = parent {
            let scope = &self.scopes[index];
            let seen = scope.names.get(name).copied().unwrap_or_default();
            match scope.kind {
                Kind::Module => return false,
                // Methods see the class they are in under this name alone.
                Kind::Class if name == "__class__" => return true,
                Kind::Class => {}
                _ if seen.global => return false,
                _ if (seen.bound || seen.parameter) && seen.nonlocal.is_none() => return true,
                _ => {}
            }
            parent = scope.parent;
        }
        false
    }

    fn with_type_parameters(&mut self, parameters: Option<&'a ast::TypeParams>, visit: impl FnOnce(&mut Self)) {
        let Some(parameters) = parameters else { return visit(self) };
        self.within(Kind::TypeParameters, |table| {
            for parameter in &parameters.type_params {
                table.bind(parameter.name());
            }
            visit(table);
        });
    }

    fn defaults(&mut self, parameters: &'a ast::Parameters) {
        for parameter in parameters.iter_non_variadic_params() {
            if let Some(default) = &parameter.default {
                self.visit_expr(default);
            }
        }
    }

    fn parameters(&mut self, parameters: &'a ast::Parameters) {
        for parameter in parameters {
            self.name(parameter.name().as_str()).parameter = true;
        }
    }

    fn function(&mut self, function: &'a ast::StmtFunctionDef) {
        self.bind(&function.name);
        function.decorator_list.iter().for_each(|decorator| self.visit_decorator(decorator));
        self.defaults(&function.parameters);
        self.with_type_parameters(function.type_params.as_deref(), |table| {
            table.within(Kind::Function, |table| {
                table.parameters(&function.parameters);
                table.visit_body(&function.body);
            });
        });
    }

    fn class(&mut self, class: &'a ast::StmtClassDef) {
        self.bind(&class.name);
        class.decorator_list.iter().for_each(|decorator| self.visit_decorator(decorator));
        self.with_type_parameters(class.type_params.as_deref(), |table| {
            if let Some(arguments) = &class.arguments {
                table.visit_arguments(arguments);
            }
            table.within(Kind::Class, |table| table.visit_body(&class.body));
        });
    }

    fn annotated(&mut self, statement: &'a ast::StmtAnnAssign) {
        if let Some(value) = &statement.value {
            self.visit_expr(value);
        }
        let Expr::Name(name) = statement.target.as_ref() else { return self.visit_expr(&statement.target) };
        let in_module = self.scope().kind == Kind::Module;
        let seen = self.name(name.id.as_str());
        if statement.simple {
            let word = if seen.global { "global" } else { "nonlocal" };
            if (seen.global || seen.nonlocal.is_some()) && !in_module {
                let text = name.id.as_str();
                self.fault(
                    name.range,
                    format!("`{text}` is {word} and cannot be annotated here"),
                    format!("`{text}` 已声明为 {word}，此处不能加注解"),
                );
                return;
            }
            seen.annotated = true;
            seen.bound = true;
        } else if statement.value.is_some() {
            seen.bound = true;
        }
    }

    fn comprehension(&mut self, generators: &'a [ast::Comprehension], elements: &[Option<&'a Expr>]) {
        if let Some(first) = generators.first() {
            self.visit_expr(&first.iter);
        }
        self.within(Kind::Comprehension, |table| {
            for (index, generator) in generators.iter().enumerate() {
                if index > 0 {
                    table.visit_expr(&generator.iter);
                }
                table.visit_expr(&generator.target);
                generator.ifs.iter().for_each(|condition| table.visit_expr(condition));
            }
            elements.iter().flatten().for_each(|element| table.visit_expr(element));
        });
    }

    /// `name := value` binds outside of the comprehensions around it.
    fn named(&mut self, named: &'a ast::ExprNamed) {
        self.visit_expr(&named.value);
        let Expr::Name(name) = named.target.as_ref() else { return };
        let mut owner = self.current;
        while self.scopes[owner].kind == Kind::Comprehension {
            match self.scopes[owner].parent {
                Some(parent) => owner = parent,
                None => break,
            }
        }
        self.scopes[owner].names.entry(name.id.as_str()).or_default().bound = true;
    }
}

impl<'a> Visitor<'a> for Table<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => self.function(function),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::Global(global) => self.declare(&global.names, global.range, "global"),
            Stmt::Nonlocal(nonlocal) if self.scope().kind != Kind::Module => {
                self.declare(&nonlocal.names, nonlocal.range, "nonlocal");
            }
            Stmt::AnnAssign(statement) => self.annotated(statement),
            Stmt::Import(import) => {
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
                    self.name(name.split('.').next().unwrap_or(name)).bound = true;
                }
            }
            Stmt::ImportFrom(import) => {
                import.names.iter().for_each(|alias| self.bind(alias.asname.as_ref().unwrap_or(&alias.name)));
            }
            Stmt::TypeAlias(alias) => self.visit_expr(&alias.name),
            _ => walk_stmt(self, statement),
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ast::ExceptHandler) {
        let ast::ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.bind(name);
        }
        ast::visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a ast::Pattern) {
        match pattern {
            ast::Pattern::MatchAs(ast::PatternMatchAs { name: Some(name), .. })
            | ast::Pattern::MatchStar(ast::PatternMatchStar { name: Some(name), .. })
            | ast::Pattern::MatchMapping(ast::PatternMatchMapping { rest: Some(name), .. }) => self.bind(name),
            _ => {}
        }
        walk_pattern(self, pattern);
    }

    fn visit_annotation(&mut self, _annotation: &'a Expr) {
        // Whether an annotation is evaluated depends on version and `__future__`.
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) => {
                let seen = self.name(name.id.as_str());
                match name.ctx {
                    ExprContext::Load => seen.read = true,
                    _ => seen.bound = true,
                }
            }
            Expr::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    self.defaults(parameters);
                }
                self.within(Kind::Function, |table| {
                    if let Some(parameters) = &lambda.parameters {
                        table.parameters(parameters);
                    }
                    table.visit_expr(&lambda.body);
                });
            }
            Expr::Named(named) => self.named(named),
            Expr::ListComp(ast::ExprListComp { elt, generators, .. })
            | Expr::SetComp(ast::ExprSetComp { elt, generators, .. })
            | Expr::Generator(ast::ExprGenerator { elt, generators, .. }) => {
                self.comprehension(generators, &[Some(elt)]);
            }
            Expr::DictComp(ast::ExprDictComp { key, value, generators, .. }) => {
                self.comprehension(generators, &[key.as_deref(), Some(value)]);
            }
            _ => walk_expr(self, expression),
        }
    }
}
