//! What an address says, before anything is looked up. Pure.

use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// An address, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target<'a> {
    /// Nothing between the parentheses.
    Empty,
    /// Another scheme or another host: counted and left alone.
    External,
    /// `file:` or a drive: only good on the author's machine.
    MachineLocal,
    /// `...`
    Placeholder,
    /// `attachment:name` of a notebook cell, decoded.
    Attachment(Cow<'a, str>),
    /// A path of this repository or site.
    Local(LocalTarget<'a>),
}

/// A path with its query and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LocalTarget<'a> {
    /// Before `?` and `#`, percent-decoded; empty for the page itself.
    pub(super) path: Cow<'a, str>,
    /// Between `?` and `#`, as written.
    pub(super) query: &'a str,
    /// Behind `#`, as written, without the instruction to the browser from `:~:` on.
    pub(super) fragment: Option<&'a str>,
}

/// Reads an address.
pub(super) fn parse(address: &str) -> Target<'_> {
    if address.is_empty() {
        return Target::Empty;
    }
    if address.starts_with("//") {
        return Target::External;
    }
    if address.starts_with("\\\\") {
        return Target::MachineLocal;
    }
    if let Some((scheme, rest)) = scheme(address) {
        return match scheme.len() {
            1 => Target::MachineLocal,
            _ if scheme.eq_ignore_ascii_case("file") => Target::MachineLocal,
            _ if scheme.eq_ignore_ascii_case("attachment") => Target::Attachment(decode(rest)),
            _ => Target::External,
        };
    }
    let (before, fragment) = match address.split_once('#') {
        Some((before, fragment)) => (before, Some(fragment)),
        None => (address, None),
    };
    let (path, query) = before.split_once('?').unwrap_or((before, ""));
    if is_placeholder(path) {
        return Target::Placeholder;
    }
    let fragment = fragment.map(|fragment| fragment.split(":~:").next().unwrap_or_default());
    Target::Local(LocalTarget { path: decode(path), query, fragment })
}

/// What to ask a server for: with a scheme, without a fragment. `None` for `mailto:` and
/// its like.
pub(super) fn web_address(target: &str) -> Option<String> {
    let address = target.split('#').next().unwrap_or_default();
    if address.starts_with("//") {
        return Some(format!("https:{address}"));
    }
    let (scheme, _) = scheme(address)?;
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")).then(|| address.to_owned())
}

/// Scheme and rest of an address that has a scheme (RFC 3986, 3.1).
fn scheme(address: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = address.split_once(':')?;
    let mut bytes = scheme.bytes();
    let first = bytes.next()?.is_ascii_alphabetic();
    (first && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))).then_some((scheme, rest))
}

fn is_placeholder(path: &str) -> bool {
    if path.contains("{{") {
        return true;
    }
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    matches!(last, "..." | "…")
}

/// Percent-decodes; what is not UTF-8 afterwards stays as written and matches no file.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8().unwrap_or(Cow::Borrowed(text))
}

/// `decodeURI` of JavaScript: like [`decode`], but the characters with a meaning in an
/// address stay encoded. VitePress reads fragments so.
pub(super) fn decode_uri(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        kept.push_str(&rest[..at]);
        let reserved = rest.get(at..at + 3).filter(|code| {
            matches!(decode(code).as_ref(), ";" | "/" | "?" | ":" | "@" | "&" | "=" | "+" | "$" | "," | "#")
        });
        kept.push_str(if reserved.is_some() { "%25" } else { "%" });
        rest = &rest[at + 1..];
    }
    kept.push_str(rest);
    Cow::Owned(decode(&kept).into_owned())
}

/// Whether a fragment names lines of a source file, as GitHub shows them: `L10`,
/// `L1-L3`, `L1C1-L2C3`.
pub(super) fn is_line_fragment(fragment: &str) -> bool {
    let part = |part: &str| {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        part.strip_prefix('L').is_some_and(|rest| match rest.split_once('C') {
            Some((line, column)) => digits(line) && digits(column),
            None => digits(rest),
        })
    };
    match fragment.split_once('-') {
        Some((from, to)) => part(from) && part(to),
        None => part(fragment),
    }
}

/// A path with `.` and `..` worked off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Joined {
    /// Relative to the root, without a slash at either end; empty: the root.
    Inside(String),
    /// How many folders above the root it climbs, and what follows from there.
    Above(usize, String),
}

/// `path` as seen from `folder`, both with `/`; `folder` is relative to the root.
pub(super) fn join(folder: &str, path: &str) -> Joined {
    let mut joined = folder.to_owned();
    let mut above = 0;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match (joined.rfind('/'), joined.is_empty()) {
                (Some(at), _) => joined.truncate(at),
                (None, false) => joined.clear(),
                (None, true) => above += 1,
            },
            part => {
                if !joined.is_empty() {
                    joined.push('/');
                }
                joined.push_str(part);
            }
        }
    }
    if above == 0 { Joined::Inside(joined) } else { Joined::Above(above, joined) }
}

/// The path of `to` as a link from a page in `folder` has it; both relative to the root.
pub(super) fn relative(folder: &str, to: &str) -> String {
    let parts = |path: &str| path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let (from, to) = (parts(folder), parts(to));
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut steps: Vec<&str> = vec![".."; from.len() - common];
    steps.extend(to[common..].iter().map(String::as_str));
    if steps.is_empty() { ".".to_owned() } else { steps.join("/") }
}

/// Writes a path so that it can be pasted into a Markdown link.
pub(super) fn encode(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            ' ' => encoded.push_str("%20"),
            '%' => encoded.push_str("%25"),
            '#' => encoded.push_str("%23"),
            '?' => encoded.push_str("%3F"),
            '(' => encoded.push_str("%28"),
            ')' => encoded.push_str("%29"),
            '<' => encoded.push_str("%3C"),
            '>' => encoded.push_str("%3E"),
            '\\' => encoded.push_str("%5C"),
            c => encoded.push(c),
        }
    }
    encoded
}

/// The folder of a path; empty for the root.
pub(super) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The last component of a path.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn local(path: &str, query: &'static str, fragment: Option<&'static str>) -> Target<'static> {
        Target::Local(LocalTarget { path: Cow::Owned(path.to_owned()), query, fragment })
    }

    #[test]
    fn the_kinds_of_addresses() {
        assert_eq!(parse("HTTPS://Example.com/x"), Target::External);
        assert_eq!(parse("//example.com/y"), Target::External);
        assert_eq!(parse("mailto:a@example.com"), Target::External);
        assert_eq!(parse("FILE:///home/x.md"), Target::MachineLocal);
        assert_eq!(parse("C:/Users/x.md"), Target::MachineLocal);
        assert_eq!(parse("\\\\server\\share"), Target::MachineLocal);
        assert_eq!(parse("..."), Target::Placeholder);
        assert_eq!(parse("./...#a"), Target::Placeholder);
        assert_eq!(parse("{{url}}/a.md"), Target::Placeholder);
        assert_eq!(parse("attachment:a%20b.png"), Target::Attachment("a b.png".into()));
        assert_eq!(parse("a%20b.md?plain=1#L1"), local("a b.md", "plain=1", Some("L1")));
        assert_eq!(parse("#Step-1:-Load"), local("", "", Some("Step-1:-Load")));
        assert_eq!(parse("g.md#u:~:text=x"), local("g.md", "", Some("u")));
        assert_eq!(parse(".../x.md"), local(".../x.md", "", None));
        assert_eq!(parse("a.md#x?y"), local("a.md", "", Some("x?y")));
    }

    #[test]
    fn lines_of_source_files() {
        assert!(["L1", "L1-L3", "L1C1-L2C3"].iter().all(|fragment| is_line_fragment(fragment)));
        assert!(!["L", "l1", "Lx", "L1-", "Level"].iter().any(|fragment| is_line_fragment(fragment)));
    }

    #[test]
    fn decode_uri_leaves_reserved_characters() {
        assert_eq!(decode_uri("%E4%B8%80%2Fa%20b"), "一%2Fa b");
    }

    #[test]
    fn paths_join() {
        assert_eq!(join("a/b", "../c.md"), Joined::Inside("a/c.md".to_owned()));
        assert_eq!(join("", "docs/../README.md"), Joined::Inside("README.md".to_owned()));
        assert_eq!(join("a", "../../issues"), Joined::Above(1, "issues".to_owned()));
        assert_eq!(join("a", "./"), Joined::Inside("a".to_owned()));
    }

    proptest! {
        #[test]
        fn a_relative_path_leads_there(folder in "([a-c]/){0,3}", to in "([a-c]/){0,3}[a-c]\\.md") {
            let folder = folder.trim_end_matches('/');
            prop_assert_eq!(join(folder, &relative(folder, &to)), Joined::Inside(to));
        }

        #[test]
        fn no_address_panics(address in any::<String>()) {
            parse(&address);
            decode_uri(&address);
        }

        #[test]
        fn an_encoded_path_decodes_to_itself(path in "[ -~é一]{0,30}") {
            let encoded = encode(&path);
            prop_assert_eq!(decode(&encoded), path);
        }
    }
}
