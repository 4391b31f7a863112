//! What must not leave the process: the API key of a server. A server that is given a key
//! may send it back, in an answer, a model name or an error, and whatever a server says
//! ends up in results, failure records, reports and on the screen. So the key is taken
//! out where texts leave the process, not where they come in.

use crate::process::Redactor;
use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

static KNOWN: RwLock<Redactor> = RwLock::new(Redactor::none());

/// Remembers a secret for the life of the process, as it is and as JSON writes it.
pub fn keep(secret: &str) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    known.add(secret);
    let escaped = serde_json::Value::from(secret).to_string();
    known.add(escaped.trim_matches('"'));
}

/// The bytes without the secrets that are known.
pub fn clean(bytes: &[u8]) -> Cow<'_, [u8]> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    if known.finds(bytes) { Cow::Owned(known.clean_bytes(bytes)) } else { Cow::Borrowed(bytes) }
}

/// The text without the secrets that are known.
pub fn clean_text(text: &str) -> Cow<'_, str> {
    match clean(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(cleaned) => Cow::Owned(String::from_utf8_lossy(&cleaned).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_taken_out_in_every_form() {
        keep("k\"canary-2026");
        assert_eq!(clean_text("a k\"canary-2026 b"), "a [redacted] b");
        assert_eq!(clean_text(r#"{"a":"k\"canary-2026"}"#), r#"{"a":"[redacted]"}"#);
        assert!(matches!(clean_text("nothing"), Cow::Borrowed("nothing")));
    }
}
