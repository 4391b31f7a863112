//! Values on their way from one document to the other.

use crate::results::json::{Kind, Node};
use serde_json::{Map, Number, Value};

/// A value with the text of its numbers; what is not finite becomes null.
pub(super) fn to_value(text: &str, node: &Node<'_>) -> Value {
    match &node.kind {
        Kind::Null | Kind::NotFinite => Value::Null,
        Kind::Bool(value) => Value::Bool(*value),
        Kind::Number(_) => literal(&text[node.span.clone()]),
        Kind::Text(text) => Value::String(text.clone().into_owned()),
        Kind::Array(entries) => entries.iter().map(|entry| to_value(text, entry)).collect(),
        Kind::Object(members) => members
            .iter()
            .map(|member| (member.key.to_string(), to_value(text, &member.value)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

/// A number by its very text: parsing it would rewrite `1E5` as `1e+5`. The function
/// is hidden in serde_json's documentation, there is no other; a test below holds it to
/// what is needed here. The reader has checked that the text is a number.
fn literal(text: &str) -> Value {
    Value::Number(Number::from_string_unchecked(text.to_owned()))
}

/// A computed number; whole ones without a fraction, what is not finite as null.
pub(super) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        #[expect(clippy::cast_possible_truncation, reason = "whole and inside the range that doubles hold exactly")]
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// A number times a power of ten, exact in decimal: `0.8426` seconds are `842.6`
/// milliseconds, not `842.5999999999999`.
pub(super) fn shifted(text: &str, node: &Node<'_>, exponent: i32) -> Option<f64> {
    let value = node.number()?;
    let digits = &text[node.span.clone()];
    let shifted = if digits.contains(['e', 'E']) {
        value * 10f64.powi(exponent)
    } else {
        format!("{digits}e{exponent}").parse().ok()?
    };
    shifted.is_finite().then_some(shifted)
}

/// Rounded to three decimals, ties to even on the binary value, as the historical tool did.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.3}").parse().unwrap_or(value)
}

/// Takes user, password and keys out of every address in the document.
pub(super) fn hide_credentials(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("://") => *text = without_keys(&without_credentials(text)),
        Value::Array(entries) => entries.iter_mut().for_each(hide_credentials),
        Value::Object(members) => members.iter_mut().for_each(|(_, member)| hide_credentials(member)),
        _ => {}
    }
}

/// `http://user:secret@host/v1` → `http://host/v1`, also inside a longer text; what is
/// outside the authority stays as it is.
fn without_credentials(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        out.push_str(head);
        let end =
            tail.find(|c: char| matches!(c, '/' | '?' | '#' | '"' | '\'') || c.is_whitespace()).unwrap_or(tail.len());
        let authority = &tail[..end];
        out.push_str(authority.rfind('@').map_or(authority, |at| &authority[at + 1..]));
        rest = &tail[end..];
    }
    out.push_str(rest);
    out
}

/// `…/v1?api_key=secret&n=1` → `…/v1?api_key=&n=1`: what the parameter was stays
/// readable, what it held does not.
fn without_keys(text: &str) -> String {
    const SECRET: [&str; 9] = ["key", "apikey", "token", "secret", "password", "passwd", "signature", "sig", "auth"];
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['?', '&']) {
        let (head, tail) = rest.split_at(at + 1);
        out.push_str(head);
        rest = tail;
        let end = tail.find(|c: char| matches!(c, '&' | '#' | '"' | '\'') || c.is_whitespace()).unwrap_or(tail.len());
        if let Some((name, _)) = tail[..end].split_once('=')
            && name.split(['_', '-', '.']).any(|part| SECRET.contains(&part.to_ascii_lowercase().as_str()))
        {
            out.push_str(name);
            out.push('=');
            rest = &tail[end..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::json;

    #[test]
    fn numbers_keep_their_text() {
        let text = r#"[1, 1.0, 182.1461, 1e-7, 1E5, -0.0, 4.30, 9007199254740993, 1e999, NaN]"#;
        let document = json::read(text);
        let value = to_value(text, document.root.as_ref().unwrap());
        assert_eq!(value.to_string(), "[1,1.0,182.1461,1e-7,1E5,-0.0,4.30,9007199254740993,null,null]");
    }

    #[test]
    fn seconds_become_milliseconds_exactly() {
        let text = "[0.8426, 0.3, 2, 61.5, 1.5e-3]";
        let document = json::read(text);
        let entries = document.root.as_ref().unwrap().entries();
        let shift = |index: usize, by| shifted(text, &entries[index], by).unwrap();
        assert_eq!([shift(0, 3), shift(1, 3), shift(2, 3), shift(3, -2)], [842.6, 300.0, 2000.0, 0.615]);
        assert_eq!(shift(4, 3), 1.5);
    }

    #[test]
    fn ties_go_to_even_on_the_binary_value() {
        assert_eq!([rounded(0.0625), rounded(28.6004), rounded(1.0005)], [0.062, 28.6, 1.0]);
    }

    #[test]
    fn credentials_go_and_the_rest_stays() {
        for (given, kept) in [
            ("http://me:secret@10.0.0.7:8000/v1", "http://10.0.0.7:8000/v1"),
            ("see https://a@b@host and mail x@y.z", "see https://host and mail x@y.z"),
            ("http://host/path@v1", "http://host/path@v1"),
            ("http://host/v1?n=1&api_key=s3cret&b=2", "http://host/v1?n=1&api_key=&b=2"),
            ("http://host/v1?max_tokens=64", "http://host/v1?max_tokens=64"),
        ] {
            let mut value = serde_json::json!({ "a": [given] });
            hide_credentials(&mut value);
            assert_eq!(value["a"][0], kept);
        }
    }
}
