//! Checks of CPython's compiler that the parser crate does not have (0.0.10), one
//! function per kind of node.

use super::fault::Fault;
use crate::model::Localized;
use crate::rules;
use ruff_python_ast::{self as ast, ExceptHandler, Expr, ExprContext, Number, Operator, Pattern, Stmt, UnaryOp};
use ruff_text_size::{Ranged, TextRange};

fn fault(range: TextRange, en: impl Into<String>, zh: impl Into<String>) -> Fault {
    Fault::new(&rules::static_checks::SYNTAX, range, Localized::both(en, zh))
}

/// Faults of one statement, its expressions aside.
pub(super) fn statement(statement: &Stmt) -> Option<Fault> {
    match statement {
        Stmt::Expr(ast::StmtExpr { value, .. }) if value.is_starred_expr() => Some(fault(
            value.range(),
            "a starred expression is no statement; write `(*name,)`, or call a function with it",
            "带 `*` 的表达式不能单独成为语句；请写成 `(*name,)`，或作为函数参数使用",
        )),
        Stmt::Assert(ast::StmtAssert { test, .. }) => match test.as_ref() {
            Expr::Tuple(tuple) if !tuple.elts.is_empty() => {
                Some(Fault::new(&rules::static_checks::ASSERT_TUPLE, tuple.range, ""))
            }
            _ => None,
        },
        Stmt::IpyEscapeCommand(command) if command.kind == ast::IpyEscapeKind::Magic2 => Some(
            fault(
                command.range,
                "a cell magic works on the first line of a cell only",
                "单元格魔法命令（`%%`）只能写在单元格的第一行",
            )
            .help(Localized::both(
                "move this line to the top of the cell, or move what follows to a cell of its own",
                "请把这一行移到单元格开头，或把后面的内容拆成新的单元格",
            )),
        ),
        _ => None,
    }
}

/// A bare `except:` with other handlers below it.
pub(super) fn default_except_not_last(statement: &ast::StmtTry) -> Option<Fault> {
    let (_, earlier) = statement.handlers.split_last()?;
    earlier.iter().map(|ExceptHandler::ExceptHandler(handler)| handler).find(|handler| handler.type_.is_none()).map(
        |handler| {
            fault(
                TextRange::at(handler.range.start(), 6.into()),
                "a bare `except:` has to be the last one, because it catches everything",
                "不带异常类型的 `except:` 会捕获一切，必须放在最后",
            )
        },
    )
}

/// Faults of one expression, its parts aside.
pub(super) fn expression(expression: &Expr) -> Option<Fault> {
    match expression {
        Expr::Attribute(attribute) if attribute.ctx != ExprContext::Load && &attribute.attr == "__debug__" => {
            Some(debug(attribute.attr.range))
        }
        Expr::Tuple(ast::ExprTuple { elts, ctx: ExprContext::Store, .. })
        | Expr::List(ast::ExprList { elts, ctx: ExprContext::Store, .. }) => unpacking(elts),
        _ => None,
    }
}

/// The bytecode has eight bits for the targets in front of a starred one.
fn unpacking(targets: &[Expr]) -> Option<Fault> {
    let (index, starred) = targets.iter().enumerate().find(|(_, target)| target.is_starred_expr())?;
    (index >= 256).then(|| {
        fault(
            starred.range(),
            "at most 255 targets may stand in front of a starred one",
            "带 `*` 的目标之前最多只能有 255 个目标",
        )
    })
}

fn debug(range: TextRange) -> Fault {
    fault(range, "`__debug__` cannot be assigned to", "不能给 `__debug__` 赋值")
}

/// `f(__debug__=1)`.
pub(super) fn keyword(keyword: &ast::Keyword) -> Option<Fault> {
    let name = keyword.arg.as_ref()?;
    (name == "__debug__").then(|| debug(name.range))
}

/// `f"{*a}"`.
pub(super) fn interpolation(element: &ast::InterpolatedStringElement) -> Option<Fault> {
    let value = &element.as_interpolation()?.expression;
    value.is_starred_expr().then(|| {
        fault(
            value.range(),
            "a starred expression cannot stand in an f-string; write `{(*name,)}`",
            "f-string 中不能使用带 `*` 的表达式；可以写成 `{(*name,)}`",
        )
    })
}

/// Faults of one pattern, its parts aside.
pub(super) fn pattern(pattern: &Pattern) -> Option<Fault> {
    match pattern {
        Pattern::MatchOr(ast::PatternMatchOr { patterns, .. }) => {
            let (_, earlier) = patterns.split_last()?;
            earlier.iter().find(|pattern| pattern.is_irrefutable()).map(|pattern| {
                fault(
                    pattern.range(),
                    "this alternative matches everything, so that those after it are never reached",
                    "这个模式会匹配一切，后面的选项永远不会被用到",
                )
            })
        }
        Pattern::MatchValue(value) => (!is_pattern_value(&value.value)).then(|| no_literal(value.range)),
        Pattern::MatchMapping(mapping) => {
            let wrong = mapping.keys.iter().find(|key| !is_pattern_value(key) && !is_singleton(key))?;
            Some(no_literal(wrong.range()))
        }
        _ => None,
    }
}

fn no_literal(range: TextRange) -> Fault {
    fault(range, "a pattern can be a literal or a dotted name only", "模式只能是字面量或带点的名字")
}

fn is_singleton(expression: &Expr) -> bool {
    expression.is_none_literal_expr() || expression.is_boolean_literal_expr()
}

/// Strings, bytes, dotted names, numbers with a sign, and complex numbers such as `1-2j`.
fn is_pattern_value(expression: &Expr) -> bool {
    match expression {
        Expr::StringLiteral(_) | Expr::BytesLiteral(_) | Expr::Attribute(_) => true,
        Expr::BinOp(ast::ExprBinOp { left, op: Operator::Add | Operator::Sub, right, .. }) => {
            signed(left).is_some_and(|number| !is_complex(number))
                && right.as_number_literal_expr().is_some_and(|number| is_complex(&number.value))
        }
        _ => signed(expression).is_some(),
    }
}

fn signed(expression: &Expr) -> Option<&Number> {
    let inner = match expression {
        Expr::UnaryOp(ast::ExprUnaryOp { op: UnaryOp::USub, operand, .. }) => operand,
        other => other,
    };
    Some(&inner.as_number_literal_expr()?.value)
}

fn is_complex(number: &Number) -> bool {
    matches!(number, Number::Complex { .. })
}
