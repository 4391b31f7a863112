//! Bytes to text, and faults of the document to marks.

use super::{Mark, shown};
use crate::model::Localized;
use crate::results::json::{Expected, Fault, FaultKind};
use crate::rules::schema as rules;

/// The text of a file.
#[derive(Debug)]
pub struct Text<'a> {
    /// Without byte order mark.
    pub text: &'a str,
    /// Whether there was one.
    pub bom: bool,
}

/// Decodes a file.
///
/// # Errors
/// The bytes are not UTF-8: the readable part before the fault, and the mark at its end.
pub fn decode(bytes: &[u8]) -> Result<Text<'_>, (&str, Box<Mark>)> {
    if let Some(name) = other_encoding(bytes) {
        let what = Localized::both(format!("it is {name}"), format!("它是 {name}"));
        return Err(("", Box::new(Mark::new(&rules::ENCODING, 0..0, "").arg("what", what))));
    }
    let (bytes, bom) = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => (rest, true),
        None => (bytes, false),
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Text { text, bom }),
        Err(error) => {
            let at = error.valid_up_to();
            let readable = std::str::from_utf8(&bytes[..at]).unwrap_or_default();
            let byte = bytes.get(at).copied().unwrap_or_default();
            let what = Localized::both(format!("byte 0x{byte:02X} stands here"), format!("此处有字节 0x{byte:02X}"));
            Err((readable, Box::new(Mark::new(&rules::ENCODING, at..at, "").arg("what", what))))
        }
    }
}

/// UTF-16 and UTF-32, by their mark or by the zero bytes of ASCII text.
fn other_encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, 1..=0x7f, ..] | [1..=0x7f, 0, ..] => Some("UTF-16"),
        _ => None,
    }
}

/// The mark of a fault of the document.
pub fn mark_of(fault: &Fault, text: &str) -> Mark {
    let rule = match &fault.kind {
        FaultKind::Empty => &rules::EMPTY,
        FaultKind::Conflict | FaultKind::LfsPointer | FaultKind::Syntax(_) | FaultKind::NotFinite => &rules::SYNTAX,
        FaultKind::NumberRange => &rules::NUMBER_RANGE,
        FaultKind::TooDeep => &rules::TOO_DEEP,
        FaultKind::DuplicateKey(_) => &rules::DUPLICATE_KEY,
        FaultKind::TrailingData => &rules::TRAILING_DATA,
    };
    let value = match &fault.kind {
        FaultKind::DuplicateKey(key) => key.clone(),
        _ => shown(text, &fault.span),
    };
    let mark = Mark::new(rule, fault.span.clone(), fault.pointer.clone()).arg("value", value.clone());
    let (what, help) = match &fault.kind {
        FaultKind::Conflict => (
            Localized::both("a merge conflict was committed", "提交了未解决的合并冲突"),
            Some(Localized::both(
                "resolve the conflict: keep one side, remove the marks",
                "请解决冲突：保留一方并删除标记",
            )),
        ),
        FaultKind::LfsPointer => (
            Localized::both("a Git LFS pointer stands in place of the file", "这里只有 Git LFS 指针，没有文件本身"),
            Some(Localized::both("fetch the file: git lfs pull", "请取回文件：git lfs pull")),
        ),
        FaultKind::NotFinite => (
            Localized::both(format!("{value} is no JSON number"), format!("{value} 不是 JSON 数值")),
            Some(Localized::both(
                "write null for what was not measured; in Python: json.dumps(…, allow_nan=False) finds the place",
                "没有测量的值请写 null；在 Python 中用 json.dumps(…, allow_nan=False) 可找到出处",
            )),
        ),
        FaultKind::Syntax(expected) => (expectation(*expected, &value), None),
        _ => return mark,
    };
    let mark = mark.arg("what", what);
    match help {
        Some(help) => mark.help(help),
        None => mark,
    }
}

fn expectation(expected: Expected, value: &str) -> Localized {
    let found = match value {
        "" => Localized::both("the end of the file", "文件结尾"),
        other => Localized::from(format!("`{}`", other.escape_debug())),
    };
    let (en, zh) = match expected {
        Expected::Value => ("a value is expected here", "此处应为一个值"),
        Expected::Key => ("a member name in double quotes is expected here", "此处应为双引号括起的字段名"),
        Expected::Colon => ("`:` is expected after a member name", "字段名之后应为 `:`"),
        Expected::CommaOrBrace => ("`,` or `}` is expected here", "此处应为 `,` 或 `}`"),
        Expected::CommaOrBracket => ("`,` or `]` is expected here", "此处应为 `,` 或 `]`"),
        Expected::Digit => ("a digit is expected here", "此处应为数字"),
        Expected::NoLeadingZero => ("a number does not start with 0", "数值不能以 0 开头"),
        Expected::ClosingQuote => ("this text has no closing quote", "这段文本缺少右引号"),
        Expected::Escape => ("JSON has no such escape", "JSON 没有这种转义"),
        Expected::SurrogatePair => ("half a surrogate pair is no character", "单独的半个代理对不是字符"),
        Expected::EscapedControl => ("a control character inside a text must be escaped", "文本中的控制字符必须转义"),
        Expected::MemberAfterComma => ("another member is expected after `,`", "`,` 之后应为另一个字段"),
        Expected::EntryAfterComma => ("another entry is expected after `,`", "`,` 之后应为另一个元素"),
    };
    let (found_en, found_zh) = (found.get(crate::model::Lang::En), found.get(crate::model::Lang::Zh));
    Localized::both(format!("{en}, found {found_en}"), format!("{zh}，实际是 {found_zh}"))
}
