//! What the parser and the compiler say, in words a learner understands.

use crate::model::Localized;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::semantic_errors::{
    AwaitOutsideAsyncFunctionKind, InvalidExpressionKind, SemanticSyntaxError, SemanticSyntaxErrorKind as Semantic,
    WriteToDebugKind, YieldOutsideFunctionKind,
};
use ruff_python_parser::{
    InterpolatedStringErrorType as Interpolated, LexicalErrorType as Lexical, ParseErrorType as Parse,
    UnsupportedSyntaxError, UnsupportedSyntaxErrorKind as Unsupported,
};

fn both(en: impl Into<String>, zh: impl Into<String>) -> Localized {
    Localized::both(en, zh)
}

/// An error of the grammar.
pub(super) fn parse(error: &Parse) -> Localized {
    match error {
        Parse::ExpectedToken { expected, found } => expected_token(*expected, *found),
        Parse::Lexical(error) => lexical(error),
        Parse::FStringError(error) => interpolated("f-string", error),
        Parse::TStringError(error) => interpolated("t-string", error),
        Parse::UnexpectedTokenAfterAsync(found) => both(
            format!("`def`, `with` or `for` has to follow `async`, not {}", token(*found).0),
            format!("`async` 后面应为 `def`、`with` 或 `for`，而不是{}", token(*found).1).trim_end().to_owned(),
        ),
        Parse::OtherError(message) => other(message),
        Parse::StringAnnotationError(message) => both(*message, *message),
        other => fixed(other),
    }
}

/// The errors of the grammar that need no argument.
fn fixed(error: &Parse) -> Localized {
    let (en, zh) = match error {
        Parse::EmptySlice => ("an index is missing between the brackets", "方括号里缺少下标"),
        Parse::EmptyGlobalNames => ("`global` needs at least one name", "`global` 后面至少要有一个名字"),
        Parse::EmptyNonlocalNames => ("`nonlocal` needs at least one name", "`nonlocal` 后面至少要有一个名字"),
        Parse::EmptyDeleteTargets => ("`del` needs something to delete", "`del` 后面缺少要删除的对象"),
        Parse::EmptyImportNames => ("a name is missing after `import`", "`import` 后面缺少名字"),
        Parse::EmptyTypeParams => ("the list of type parameters is empty", "类型参数列表不能为空"),
        Parse::UnparenthesizedNamedExpression => {
            ("an assignment with `:=` needs parentheses here", "此处的 `:=` 赋值表达式需要加括号")
        }
        Parse::UnparenthesizedTupleExpression => ("a tuple needs parentheses here", "此处的元组需要加括号"),
        Parse::UnparenthesizedGeneratorExpression => {
            ("a generator beside other arguments needs parentheses", "生成器表达式与其他参数并列时需要加括号")
        }
        Parse::InvalidLambdaExpressionUsage => ("a `lambda` cannot stand here", "此处不能使用 `lambda`"),
        Parse::InvalidYieldExpressionUsage => ("a `yield` cannot stand here", "此处不能使用 `yield`"),
        Parse::InvalidStarredExpressionUsage => {
            ("a starred expression cannot stand here", "此处不能使用带 `*` 的表达式")
        }
        Parse::InvalidStarPatternUsage => ("a star pattern cannot stand here", "此处不能使用带 `*` 的模式"),
        Parse::InvalidMatchPatternTarget => ("`_` cannot be bound by `as`", "`as` 后面不能用 `_`"),
        Parse::ParamAfterVarKeywordParam => ("no parameter may follow `**kwargs`", "`**kwargs` 之后不能再有参数"),
        Parse::NonDefaultParamAfterDefaultParam => (
            "a parameter without a default follows one that has a default",
            "没有默认值的参数不能放在有默认值的参数之后",
        ),
        Parse::VarParameterWithDefault => {
            ("`*args` and `**kwargs` cannot have a default", "`*args` 和 `**kwargs` 不能有默认值")
        }
        Parse::InvalidAssignmentTarget => ("this cannot be assigned to", "这里不能作为赋值目标"),
        Parse::InvalidNamedAssignmentTarget => ("`:=` assigns to a plain name only", "`:=` 左边只能是一个名字"),
        Parse::InvalidAnnotatedAssignmentTarget => ("this cannot carry an annotation", "这里不能加类型注解"),
        Parse::InvalidAugmentedAssignmentTarget => {
            ("this cannot be assigned to with an operator such as `+=`", "这里不能使用 `+=` 之类的增量赋值")
        }
        Parse::InvalidDeleteTarget => ("this cannot be deleted", "这里不能用 `del` 删除"),
        Parse::PositionalAfterKeywordArgument => {
            ("a positional argument follows a keyword argument", "位置参数不能放在关键字参数之后")
        }
        Parse::PositionalAfterKeywordUnpacking => {
            ("a positional argument follows `**` unpacking", "位置参数不能放在 `**` 解包之后")
        }
        Parse::InvalidArgumentUnpackingOrder => {
            ("`*` unpacking follows `**` unpacking", "`*` 解包不能放在 `**` 解包之后")
        }
        Parse::IterableUnpackingInComprehension => {
            ("`*` unpacking cannot stand in a comprehension", "推导式里不能使用 `*` 解包")
        }
        Parse::SimpleStatementsOnSameLine => (
            "the statement ends before this; something is missing between the two",
            "语句在此之前已经结束，两部分之间缺少了什么",
        ),
        Parse::SimpleAndCompoundStatementOnSameLine => {
            ("a statement with a block has to begin on a line of its own", "带代码块的语句必须另起一行")
        }
        Parse::ExpectedKeywordParam => ("a named parameter has to follow `*`", "`*` 后面必须有命名参数"),
        Parse::ExpectedRealNumber => ("a real number has to stand here", "此处应为实数"),
        Parse::ExpectedImaginaryNumber => ("an imaginary number has to stand here", "此处应为虚数"),
        Parse::ExpectedExpression => ("an expression is missing here", "此处缺少表达式"),
        Parse::UnexpectedIndentation => {
            ("this line is indented although no block begins here", "此行缩进了，但这里并没有开始新的代码块")
        }
        Parse::UnexpectedIpythonEscapeCommand => {
            ("a magic or shell line works in a notebook only", "魔法命令和 shell 命令只能用在 notebook 里")
        }
        Parse::UnexpectedExpressionToken => ("this does not belong to the expression", "这部分不属于该表达式"),
        _ => ("this is no valid Python", "这不是合法的 Python 代码"),
    };
    both(en, zh)
}

fn expected_token(expected: TokenKind, found: TokenKind) -> Localized {
    let (want_en, want_zh) = token(expected);
    let (got_en, got_zh) = token(found);
    let zh = format!("{got_zh}之前缺少{want_zh}");
    both(format!("{want_en} is missing before {got_en}"), zh.trim())
}

/// A token in both languages.
fn token(kind: TokenKind) -> (String, String) {
    let (en, zh) = match kind {
        TokenKind::Newline | TokenKind::NonLogicalNewline => ("the end of the line", "行尾"),
        TokenKind::Indent => ("an indented line", "缩进行"),
        TokenKind::Dedent => ("the end of the block", "代码块结尾"),
        TokenKind::EndOfFile => ("the end of the text", "文本结尾"),
        TokenKind::Name => ("a name", "名字"),
        TokenKind::Int | TokenKind::Float | TokenKind::Complex => ("a number", "数字"),
        TokenKind::String => ("a string", "字符串"),
        TokenKind::FStringStart | TokenKind::FStringMiddle | TokenKind::FStringEnd => ("an f-string", " f-string "),
        TokenKind::TStringStart | TokenKind::TStringMiddle | TokenKind::TStringEnd => ("a t-string", " t-string "),
        TokenKind::IpyEscapeCommand => ("a magic or shell line", "魔法命令或 shell 命令"),
        TokenKind::Comment => ("a comment", "注释"),
        TokenKind::Unknown => ("an unknown character", "无法识别的字符"),
        symbol => {
            let text = symbol.to_string();
            // Chinese sets a space between its own characters and others.
            return (text.clone(), format!(" {text} "));
        }
    };
    (en.to_owned(), zh.to_owned())
}

fn lexical(error: &Lexical) -> Localized {
    match error {
        Lexical::StringError => both("a string cannot stand here", "此处不能出现字符串"),
        Lexical::UnclosedStringError => both("the closing quote of this string is missing", "字符串缺少结尾的引号"),
        Lexical::UnicodeError => both("this `\\` escape names no character", "这个 `\\` 转义不对应任何字符"),
        Lexical::MissingUnicodeLbrace => both("`{` is missing after `\\N`", "`\\N` 后面缺少 `{`"),
        Lexical::MissingUnicodeRbrace => both("`}` is missing after `\\N{…`", "`\\N{…` 后面缺少 `}`"),
        Lexical::IndentationError => both(
            "this line is indented less than the block before it, but not as far as any block around it",
            "此行的缩进与外层任何一个代码块都对不齐",
        ),
        Lexical::UnrecognizedToken { tok } => {
            both(format!("`{tok}` has no meaning in Python here"), format!("字符 `{tok}` 在 Python 中此处没有意义"))
        }
        Lexical::FStringError(error) => interpolated("f-string", error),
        Lexical::TStringError(error) => interpolated("t-string", error),
        Lexical::InvalidByteLiteral => {
            both("a bytes literal can hold ASCII characters only", "bytes 字面量只能包含 ASCII 字符")
        }
        Lexical::LineContinuationError => {
            both("nothing may follow the `\\` that continues a line", "续行符 `\\` 后面不能再有任何字符")
        }
        Lexical::Eof => both("the text ends in the middle of a statement", "语句还没写完，文本就结束了"),
        Lexical::OtherError(message) => other(message),
    }
}

fn interpolated(what: &str, error: &Interpolated) -> Localized {
    let (en, zh) = match error {
        Interpolated::UnclosedLbrace => ("a `{` is never closed", "`{` 没有闭合"),
        Interpolated::InvalidConversionFlag => {
            ("only `!r`, `!s` and `!a` may follow a value", "值后面的转换只能是 `!r`、`!s` 或 `!a`")
        }
        Interpolated::SingleRbrace => ("a lone `}` has to be written `}}`", "单独的 `}` 要写成 `}}`"),
        Interpolated::UnterminatedString => ("the closing quote is missing", "缺少结尾的引号"),
        Interpolated::UnterminatedTripleQuotedString => ("the closing triple quote is missing", "缺少结尾的三引号"),
        Interpolated::LambdaWithoutParentheses => ("a `lambda` needs parentheses", "`lambda` 需要加括号"),
        Interpolated::ConversionFlagNotImmediatelyAfterExclamation => {
            ("the letter has to follow `!` directly", "`!` 后面必须紧跟转换字母")
        }
        Interpolated::NewlineInFormatSpec => {
            ("a format after `:` cannot go over several lines", "`:` 后面的格式不能跨行")
        }
    };
    both(format!("{what}: {en}"), format!("{what}：{zh}"))
}

/// Messages that the parser has as text. What is not here is shown as it is.
fn other(message: &str) -> Localized {
    let tidy = |text: &str| text.trim_end_matches('.').to_owned();
    let en = tidy(message);
    if let Some(clause) = message.strip_prefix("Expected an indented block after ") {
        let zh = [
            (" statement", " 语句"),
            (" clause", " 子句"),
            (" block", " 分支"),
            ("function definition", "函数定义"),
            ("class definition", "类定义"),
        ]
        .iter()
        .fold(clause.to_owned(), |text, (from, to)| text.replace(from, to));
        return both(format!("an indented block is missing after the {clause}"), format!("{zh}之后缺少缩进的代码块"));
    }
    if let Some(rest) = message.strip_prefix("Expected an identifier, but found a keyword ") {
        let word = rest.split(' ').next().unwrap_or_default();
        return both(
            format!("{word} is a keyword of Python and cannot be a name"),
            format!("{word} 是 Python 的关键字，不能用作名字"),
        );
    }
    let zh = match en.as_str() {
        "Expected a statement" | "Expected a simple statement" => "此处应为语句",
        "Expected an identifier" => "此处应为名字",
        "Expected `except` or `finally` after `try` block" => "`try` 代码块之后缺少 `except` 或 `finally`",
        "Expected `case` block" => "`match` 之后缺少 `case` 代码块",
        "Expected a module name" => "缺少模块名",
        "Expected a parameter name" => "缺少参数名",
        "Expected a parameter or the end of the parameter list" => "此处应为参数或参数列表的结尾",
        "Expected an import name" | "Expected an import name or a ')'" => "`import` 后面缺少名字",
        "Expected name after `as`" | "Expected symbol after `as`" => "`as` 后面缺少名字",
        "Expected one or more exception types" => "缺少异常类型",
        "Expected an expression" | "Expected an expression or a ')'" => "此处缺少表达式",
        "Expected an expression or a ']'" => "此处缺少表达式或 `]`",
        "Expected an expression or a '}'" => "此处缺少表达式或 `}`",
        "Trailing comma not allowed" => "此处不能有多余的逗号",
        "Star import must be the only import" => "`import *` 不能与其他名字并列",
        "Cannot have both 'except' and 'except*' on the same 'try'" => "同一个 `try` 不能混用 `except` 和 `except*`",
        "`else` block must come before `finally` block" => "`else` 代码块必须放在 `finally` 之前",
        "Only one '*' parameter allowed" | "Only one '*' separator allowed" => "参数列表里只能有一个 `*`",
        "Only one '**' parameter allowed" => "参数列表里只能有一个 `**` 参数",
        "Invalid decimal integer literal" => "整数写法不正确",
        "Maximum of 2 `?` tokens are allowed in help end escape command" => "IPython 的帮助最多写两个 `?`",
        "Multiple exception types must be parenthesized when using `as`" => "使用 `as` 时，多个异常类型要用括号括起来",
        "Exception missing in `raise` statement with cause" => "`raise … from` 缺少异常",
        "Await expression cannot be used here" => "此处不能使用 `await`",
        "Missing closing parenthesis `)`" => "缺少右括号 `)`",
        "Missing closing bracket `]`" => "缺少右方括号 `]`",
        "Missing closing brace `}`" => "缺少右花括号 `}`",
        "missing closing quote in string literal" => "字符串缺少结尾的引号",
        _ => return both(en.clone(), format!("语法错误：{en}")),
    };
    both(en.replacen("Expected", "expected", 1), zh)
}

/// Syntax that the target version does not have.
pub(super) fn unsupported(error: &UnsupportedSyntaxError) -> Localized {
    let said = error.to_string();
    let (en, changed) = said.split_once(" on Python ").unwrap_or((&said, ""));
    let changed = changed.rsplit(['(', ')']).find(|part| part.contains("was")).unwrap_or_default();
    let since = changed.rsplit(' ').next().unwrap_or_default();
    let removed = changed.contains("removed");
    let version = error.target_version;
    let what = unsupported_zh(&error.kind);
    let en_verb = if removed { "was removed in" } else { "needs" };
    let en = en.strip_prefix("Cannot use ").or_else(|| en.strip_prefix("Cannot ")).unwrap_or(en);
    if removed {
        both(
            format!("{en}: the syntax {en_verb} Python {since}; the course is judged for {version}"),
            format!("{what}：该语法在 Python {since} 中已移除，而课程按 {version} 检查"),
        )
    } else {
        both(
            format!("{en}: this {en_verb} Python {since} or later; the course is judged for {version}"),
            format!("{what}：需要 Python {since} 或更高版本，而课程按 {version} 检查"),
        )
    }
}

fn unsupported_zh(kind: &Unsupported) -> &'static str {
    use ruff_python_parser::UnsupportedSyntaxErrorKind as Kind;
    match kind {
        Kind::Match => "`match` 语句",
        Kind::Walrus => "`:=` 赋值表达式",
        Kind::ExceptStar => "`except*`",
        Kind::UnparenthesizedNamedExpr(_) => "不带括号的 `:=` 赋值表达式",
        Kind::ParenthesizedKeywordArgumentName => "带括号的关键字参数名",
        Kind::StarTuple(_) => "`return` 或 `yield` 中的 `*` 解包",
        Kind::RelaxedDecorator(_) => "装饰器中的任意表达式",
        Kind::PositionalOnlyParameter => "仅限位置参数的分隔符 `/`",
        Kind::TypeParameterList => "类型参数列表",
        Kind::LazyImportStatement => "`lazy` 导入语句",
        Kind::TypeAliasStatement => "`type` 类型别名语句",
        Kind::TypeParamDefault => "类型参数的默认值",
        Kind::Pep701FString(_) => "f-string 中的嵌套引号、反斜杠、注释或换行",
        Kind::ParenthesizedContextManager => "`with` 语句的括号写法",
        Kind::StarExpressionInIndex => "下标中的 `*` 表达式",
        Kind::StarAnnotation => "`*args` 的带 `*` 注解",
        Kind::UnpackingInComprehension(_) => "推导式中的解包",
        Kind::UnparenthesizedUnpackInFor => "`for` 语句中不带括号的解包",
        Kind::UnparenthesizedExceptionTypes => "不带括号的多个异常类型",
        Kind::TemplateStrings => "t-string",
    }
}

/// An error that only the compiler finds.
pub(super) fn semantic(error: &SemanticSyntaxError) -> Localized {
    match &error.kind {
        Semantic::YieldOutsideFunction(kind) => match kind {
            YieldOutsideFunctionKind::Await => both("`await` stands outside of a function", "`await` 不在函数里"),
            kind => both(
                format!("`{kind}` stands outside of a function, or in a comprehension or class body"),
                format!("`{kind}` 不在函数里，或位于推导式、类体中"),
            ),
        },
        Semantic::AwaitOutsideAsyncFunction(kind) => {
            let what = match kind {
                AwaitOutsideAsyncFunctionKind::AsyncComprehension => "异步推导式".to_owned(),
                kind => kind.to_string(),
            };
            both(
                format!("{kind} needs a function that begins with `async def`"),
                format!("{what} 只能用在 `async def` 函数里"),
            )
        }
        Semantic::DuplicateParameter(name) => {
            both(format!("two parameters have the name `{name}`"), format!("参数名 `{name}` 重复"))
        }
        Semantic::DuplicateKeywordArgument(name) => {
            both(format!("the argument `{name}` is given twice"), format!("关键字参数 `{name}` 重复"))
        }
        Semantic::NonModuleImportStar(name) => both(
            format!("`from {name} import *` works at the top level only"),
            format!("`from {name} import *` 只能写在模块最外层"),
        ),
        Semantic::FutureFeatureNotDefined(name) => {
            both(format!("`__future__` has no feature `{name}`"), format!("`__future__` 中没有 `{name}`"))
        }
        Semantic::MultipleCaseAssignment(name) => {
            both(format!("the pattern binds `{name}` twice"), format!("模式中重复绑定了 `{name}`"))
        }
        Semantic::DuplicateMatchKey(key) => {
            both(format!("the pattern checks the key {key} twice"), format!("模式中重复检查键 {key}"))
        }
        Semantic::DuplicateMatchClassAttribute(name) => {
            both(format!("the pattern names the attribute `{name}` twice"), format!("模式中重复使用属性 `{name}`"))
        }
        Semantic::TypeParameterDefaultOrder(name) => both(
            format!("type parameter `{name}` without a default follows one that has a default"),
            format!("没有默认值的类型参数 `{name}` 不能放在有默认值的之后"),
        ),
        Semantic::InvalidExpression(kind, position) => {
            let zh = match kind {
                InvalidExpressionKind::Yield => "`yield` 表达式",
                InvalidExpressionKind::NamedExpr => "`:=` 赋值表达式",
                InvalidExpressionKind::Await => "`await` 表达式",
            };
            both(format!("a {kind} cannot stand in a {position}"), format!("{zh}不能出现在类型标注中"))
        }
        Semantic::WriteToDebug(WriteToDebugKind::Delete(_)) => {
            both("`__debug__` cannot be deleted", "不能删除 `__debug__`")
        }
        _ => semantic_fixed(error),
    }
}

fn semantic_fixed(error: &SemanticSyntaxError) -> Localized {
    let zh = match &error.kind {
        Semantic::LateFutureImport => {
            return both(
                "`from __future__ import` has to stand before everything else",
                "`from __future__ import` 必须写在最前面",
            );
        }
        Semantic::ReturnOutsideFunction => {
            return both("`return` stands outside of a function", "`return` 不在函数里");
        }
        Semantic::BreakOutsideLoop => return both("`break` stands outside of a loop", "`break` 不在循环里"),
        Semantic::ContinueOutsideLoop => {
            return both("`continue` stands outside of a loop", "`continue` 不在循环里");
        }
        Semantic::NonlocalDeclarationAtModuleLevel => {
            return both("`nonlocal` works inside a function only", "`nonlocal` 只能用在函数里");
        }
        Semantic::InvalidStarExpression => {
            return both("a starred expression cannot stand here", "此处不能使用带 `*` 的表达式");
        }
        Semantic::SingleStarredAssignment => {
            return both(
                "a starred target has to stand in a list or tuple: write `*name, = …`",
                "带 `*` 的赋值目标必须放在列表或元组里，例如 `*name, = …`",
            );
        }
        Semantic::MultipleStarredExpressions => {
            return both("an assignment can have one starred target only", "一个赋值里只能有一个带 `*` 的目标");
        }
        Semantic::WriteToDebug(_) => return both("`__debug__` cannot be assigned to", "不能给 `__debug__` 赋值"),
        Semantic::IrrefutableCasePattern(_) => {
            return both(
                "this pattern matches everything, so that the cases below are never reached",
                "这个模式会匹配一切，后面的分支永远不会执行",
            );
        }
        Semantic::NamedExpressionInComprehensionIterable => "推导式的可迭代部分不能使用 `:=`",
        Semantic::NamedExpressionInClassBodyComprehension => "类体内的推导式不能使用 `:=`",
        Semantic::ReboundComprehensionVariable => "`:=` 不能重新绑定推导式的循环变量",
        Semantic::DuplicateTypeParameter => "类型参数重复",
        Semantic::MultipleStarredNamesInSequencePattern => "序列模式里只能有一个带 `*` 的名字",
        Semantic::AsyncComprehensionInSyncComprehension(_) => "同步推导式里不能嵌套异步推导式（Python 3.11 起才允许）",
        Semantic::YieldFromInAsyncFunction => "`async` 函数里不能用 `yield from`，请改用 `async for`",
        Semantic::DifferentMatchPatternBindings => "`|` 两侧的模式绑定的名字不同",
        Semantic::ReturnInGenerator => "异步生成器里的 `return` 不能带值",
        Semantic::LazyImportNotAllowed { .. } | Semantic::LazyImportStar | Semantic::LazyFutureImport => {
            "此处不能使用 `lazy` 导入"
        }
        _ => return both(error.to_string(), format!("语法错误：{error}")),
    };
    both(error.to_string(), zh)
}
