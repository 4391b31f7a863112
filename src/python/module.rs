//! Questions about a parsed module that more than one stage asks.

use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{self as ast, Expr, ExprContext, Stmt};
use std::collections::HashMap;

/// Whether a name is that of a test function.
pub fn is_test_name(name: &str) -> bool {
    name.starts_with("test")
}

/// The test functions at the top level of a module, in order.
pub fn tests(body: &[Stmt]) -> impl Iterator<Item = &ast::StmtFunctionDef> {
    body.iter().filter_map(Stmt::as_function_def_stmt).filter(|function| is_test_name(&function.name))
}

/// Every name that a module reads, with the byte offsets at which it does. Texts count
/// as well: `globals()["test_x"]()` and `pytest.main(["-k", "test_x"])` name a test.
pub fn names_read(body: &[Stmt]) -> HashMap<&str, Vec<usize>> {
    let mut reads = Reads(HashMap::new());
    reads.visit_body(body);
    reads.0
}

struct Reads<'a>(HashMap<&'a str, Vec<usize>>);

impl<'a> Visitor<'a> for Reads<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx == ExprContext::Load => {
                self.0.entry(name.id.as_str()).or_default().push(name.range.start().to_usize());
            }
            Expr::StringLiteral(text) => {
                let value = text.value.to_str();
                if is_test_name(value) && value.len() < 200 {
                    self.0.entry(value).or_default().push(text.range.start().to_usize());
                }
            }
            _ => {}
        }
        walk_expr(self, expr);
    }
}
