//! Heading ids as three renderers make them. Pure functions of the heading's text.

use regex::Regex;
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// GitHub: lower-case, word characters, hyphens and spaces stay, every space becomes
/// one hyphen. Nothing is trimmed or collapsed (html-pipeline's table of contents).
pub(super) fn github(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    if text.is_ascii() {
        slug.extend(text.chars().map(|c| c.to_ascii_lowercase()).filter_map(github_char));
    } else {
        slug.extend(text.to_lowercase().chars().filter_map(github_char));
    }
    slug
}

fn github_char(c: char) -> Option<char> {
    match c {
        ' ' => Some('-'),
        '-' => Some('-'),
        c if is_word(c) => Some(c),
        _ => None,
    }
}

/// `\p{Word}` of Ruby: alphabetic, marks, decimal digits, connector punctuation. The
/// joiners U+200C and U+200D, which Unicode's own `\w` has, are not in it.
fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    let connector = matches!(
        c,
        '\u{203f}' | '\u{2040}' | '\u{2054}' | '\u{fe33}' | '\u{fe34}' | '\u{fe4d}'..='\u{fe4f}' | '\u{ff3f}'
    );
    c.is_alphabetic() || is_combining_mark(c) || connector || c.is_numeric() && is_decimal_digit(c)
}

/// General category Nd; `char::is_numeric` also takes ① and ½, which GitHub drops.
fn is_decimal_digit(c: char) -> bool {
    static DIGIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\d$").ok());
    let mut buffer = [0; 4];
    DIGIT.as_ref().is_some_and(|digit| digit.is_match(c.encode_utf8(&mut buffer)))
}

/// VitePress: compatibility decomposition without accents and controls, every run of
/// white space and ASCII punctuation one hyphen, trimmed, no digit in front.
pub(super) fn vitepress(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    let mut gap = false;
    for c in text.nfkd() {
        if matches!(c, '\u{300}'..='\u{36f}') || c <= '\u{1f}' {
            continue;
        }
        if is_separator(c) {
            gap = true;
            continue;
        }
        if gap && !slug.is_empty() {
            slug.push('-');
        }
        gap = false;
        slug.push(c);
    }
    if slug.starts_with(|c: char| c.is_ascii_digit()) {
        slug.insert(0, '_');
    }
    slug.to_lowercase()
}

fn is_separator(c: char) -> bool {
    matches!(c, '~' | '`' | '!' | '@' | '#' | '$' | '%' | '^' | '&' | '*' | '(' | ')' | '-' | '_' | '+' | '=' | '[' | ']')
        || matches!(c, '{' | '}' | '|' | '\\' | ';' | ':' | '"' | '\'' | '“' | '”' | '‘' | '’' | '<' | '>' | ',' | '.')
        || matches!(c, '?' | '/' | '\u{feff}')
        // JavaScript's \s: White_Space without U+0085, with U+FEFF.
        || c.is_whitespace() && c != '\u{85}'
}

/// JupyterLab and nbconvert: spaces become hyphens, nothing else changes.
pub(super) fn jupyter(text: &str) -> String {
    text.trim().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn github_keeps_what_ruby_calls_a_word() {
        assert_eq!(github("What's new in v1.2?"), "whats-new-in-v12");
        assert_eq!(github("a & b — c"), "a--b--c");
        assert_eq!(github("一、背景（概述）"), "一背景概述");
        assert_eq!(github("🏛\u{fe0f} 许可证"), "\u{fe0f}-许可证");
        assert_eq!(github("① Ⅳ ² ½ ٣ a\u{200d}b"), "-ⅳ---٣-ab");
        assert_eq!(github("RUN_REAL＿X"), "run_real＿x");
    }

    /// The definition, spelled out once more with the crate that holds Unicode's tables.
    #[test]
    fn word_characters_are_those_of_the_regex_crate_without_joiners() {
        // The crates know different versions of Unicode: unassigned characters are out.
        let word = Regex::new(r"^\w$").unwrap();
        let unassigned = Regex::new(r"^\p{Cn}$").unwrap();
        let mut buffer = [0; 4];
        let different: Vec<char> = ('\u{0}'..=char::MAX)
            .filter(|c| !matches!(c, '\u{200c}' | '\u{200d}'))
            .filter(|c| {
                let text = c.encode_utf8(&mut buffer);
                is_word(*c) != word.is_match(text) && !unassigned.is_match(text)
            })
            .collect();
        assert!(different.is_empty(), "{different:?}");
    }

    #[test]
    fn vitepress_collapses_and_decomposes() {
        assert_eq!(vitepress("2.1 TTFT / TPOT (p99)"), "_2-1-ttft-tpot-p99");
        assert_eq!(vitepress("一、背景（概述）"), "一、背景-概述");
        assert_eq!(vitepress("🚀 快速开始"), "🚀-快速开始");
        assert_eq!(vitepress("  Señor_X & Ünï  "), "senor-x-uni");
        assert_eq!(vitepress("「引用」。"), "「引用」。");
    }

    #[test]
    fn jupyter_changes_spaces_only() {
        assert_eq!(jupyter("Step 1: Load"), "Step-1:-Load");
    }

    proptest! {
        #[test]
        fn slugs_never_panic_and_github_ids_hold_word_characters_only(text in any::<String>()) {
            let slug = github(&text);
            prop_assert!(slug.chars().all(|c| c == '-' || is_word(c)), "{slug:?}");
            jupyter(&text);
        }

        /// VitePress sends the fragment of a link through the function that made the id,
        /// so the function must map its own results to themselves.
        #[test]
        fn vitepress_is_stable(text in "[a-zA-Z0-9 _.&/（）：é一二🚀#-]{0,40}") {
            let once = vitepress(&text);
            prop_assert_eq!(&vitepress(&once), &once);
        }

        #[test]
        fn github_is_stable(text in "[a-z0-9 _.&/（）：一二🚀#-]{0,40}") {
            let once = github(&text);
            prop_assert_eq!(&github(&once), &once);
        }
    }
}
