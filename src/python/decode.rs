//! From the bytes of a source file to text, as PEP 263 has it.

use encoding_rs::Encoding;
use std::borrow::Cow;

/// Why the bytes are no Python source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// A null byte.
    Null,
    /// The declared encoding does not exist.
    UnknownEncoding(String),
    /// A UTF-8 byte-order mark beside a declaration of another encoding.
    MarkAgainstDeclaration(String),
    /// A byte that the encoding does not know.
    BadByte {
        /// The byte.
        byte: u8,
        /// Offset from the start of the file.
        offset: usize,
        /// Name of the encoding.
        encoding: String,
        /// Whether the file declares it.
        declared: bool,
    },
}

/// A [`DecodeError`] with its 1-based line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecodable {
    /// What is wrong.
    pub error: DecodeError,
    /// Where.
    pub line: u32,
}

/// How bytes become characters.
#[derive(Debug, Clone, Copy)]
enum Codec {
    Utf8,
    Ascii,
    /// Every byte is a character; also for the code pages below, of which only the ASCII
    /// half matters to syntax.
    Latin1,
    Other(&'static Encoding),
}

/// Decodes a source file; a byte-order mark is not part of the result.
///
/// # Errors
/// The first fault, with its line.
pub fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, Undecodable> {
    let (marked, body) = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => (true, rest),
        None => (false, bytes),
    };
    if let Some(at) = memchr::memchr(0, body) {
        return Err(Undecodable { error: DecodeError::Null, line: line_of(body, at) });
    }
    let declaration = declared(body);
    let codec = match &declaration {
        None => Codec::Utf8,
        Some((name, line)) => match codec(name) {
            None => {
                return Err(Undecodable { error: DecodeError::UnknownEncoding(name.clone()), line: *line });
            }
            // CPython compares the name, so that even `utf8` does not go with a mark.
            Some(_) if marked && !is_utf_8(name) => {
                return Err(Undecodable { error: DecodeError::MarkAgainstDeclaration(name.clone()), line: *line });
            }
            Some(codec) => codec,
        },
    };
    let name = declaration.as_ref().map_or("utf-8", |(name, _)| name);
    text(body, codec).map_err(|at| Undecodable {
        line: line_of(body, at),
        error: DecodeError::BadByte {
            byte: body[at],
            offset: at + bytes.len() - body.len(),
            encoding: name.to_owned(),
            declared: declaration.is_some(),
        },
    })
}

/// Whether CPython's tokenizer takes this name for UTF-8 without asking the codecs.
fn is_utf_8(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    name == "utf-8" || name.starts_with("utf-8-")
}

/// The text, or the offset of the first byte that is none.
fn text(body: &[u8], codec: Codec) -> Result<Cow<'_, str>, usize> {
    match codec {
        Codec::Utf8 => std::str::from_utf8(body).map(Cow::Borrowed).map_err(|error| error.valid_up_to()),
        Codec::Ascii => match body.iter().position(|byte| !byte.is_ascii()) {
            Some(at) => Err(at),
            None => Ok(String::from_utf8_lossy(body)),
        },
        Codec::Latin1 => Ok(body.iter().map(|&byte| char::from(byte)).collect::<String>().into()),
        Codec::Other(encoding) => encoding
            .decode_without_bom_handling_and_without_replacement(body)
            .ok_or_else(|| first_malformed(body, encoding)),
    }
}

/// Offset of the first byte that `encoding` cannot read.
fn first_malformed(body: &[u8], encoding: &'static Encoding) -> usize {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut out = String::with_capacity(decoder.max_utf8_buffer_length(body.len()).unwrap_or(body.len() * 3));
    match decoder.decode_to_string_without_replacement(body, &mut out, true) {
        (encoding_rs::DecoderResult::Malformed(length, extra), read) => {
            read.saturating_sub(usize::from(length) + usize::from(extra)).min(body.len().saturating_sub(1))
        }
        _ => 0,
    }
}

/// Name and 1-based line of the encoding declaration, if there is one in the first two
/// lines. The second counts only below a blank line or a comment.
fn declared(body: &[u8]) -> Option<(String, u32)> {
    let mut lines = body.splitn(3, |&byte| byte == b'\n');
    let first = lines.next()?;
    if let Some(name) = declaration(first) {
        return Some((name, 1));
    }
    let blank = first.trim_ascii_start();
    if !blank.is_empty() && !blank.starts_with(b"#") {
        return None;
    }
    declaration(lines.next()?).map(|name| (name, 2))
}

/// The encoding that a comment line declares: `coding`, then `:` or `=`, then a name.
fn declaration(line: &[u8]) -> Option<String> {
    let comment = line.trim_ascii_start().strip_prefix(b"#")?;
    let at = memchr::memmem::find_iter(comment, b"coding")
        .map(|at| at + b"coding".len())
        .find(|&at| matches!(comment.get(at), Some(b':' | b'=')))?;
    let rest = comment[at + 1..].trim_ascii_start();
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte)).count();
    (length > 0).then(|| String::from_utf8_lossy(&rest[..length]).into_owned())
}

/// Python codecs whose lower half is ASCII and that `encoding_rs` does not have.
const CODE_PAGES: &[&str] = &[
    "cp037",
    "cp273",
    "cp424",
    "cp437",
    "cp500",
    "cp720",
    "cp737",
    "cp775",
    "cp850",
    "cp852",
    "cp855",
    "cp856",
    "cp857",
    "cp858",
    "cp860",
    "cp861",
    "cp862",
    "cp863",
    "cp864",
    "cp865",
    "cp866",
    "cp869",
    "cp875",
    "cp1006",
    "cp1125",
    "hp-roman8",
    "iso8859-9",
    "koi8-t",
    "kz1048",
    "mac-centeuro",
    "mac-croatian",
    "mac-cyrillic",
    "mac-farsi",
    "mac-greek",
    "mac-iceland",
    "mac-latin2",
    "mac-romanian",
    "mac-turkish",
    "palmos",
    "ptcp154",
    "tis-620",
    "utf-7",
    "utf7",
];

/// The codec that Python knows under this name.
fn codec(name: &str) -> Option<Codec> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let squeezed: String = name.chars().filter(|c| *c != '-').collect();
    let label = match squeezed.as_str() {
        "utf8" | "u8" | "utf" | "utf8sig" | "cp65001" | "utf8ucs2" | "utf8ucs4" => return Some(Codec::Utf8),
        "ascii" | "usascii" | "646" | "ansix3.41968" | "iso646us" => return Some(Codec::Ascii),
        "latin1" | "latin" | "l1" | "iso88591" | "8859" | "cp819" | "iso885911987" => return Some(Codec::Latin1),
        "cp936" | "936" | "ms936" | "gb2312" | "euccn" | "eucgb2312cn" | "gb23121980" => "gbk",
        "cp932" | "932" | "mskanji" | "sjis" | "shiftjis" | "shiftjis2004" | "shiftjisx0213" => "shift_jis",
        "cp949" | "949" | "uhc" | "euckr" | "ksc5601" => "euc-kr",
        "cp950" | "950" | "ms950" | "big5" | "big5tw" | "big5hkscs" | "hkscs" => "big5",
        "eucjp" | "ujis" | "eucjis2004" | "eucjisx0213" => "euc-jp",
        "macroman" | "macintosh" => "macintosh",
        "koi8r" => "koi8-r",
        "koi8u" => "koi8-u",
        "iso2022jp" => "iso-2022-jp",
        // A file in one of these has null bytes; Python refuses the declaration as well.
        "utf16" | "utf16le" | "utf16be" | "utf32" | "utf32le" | "utf32be" => return None,
        _ => match squeezed.strip_prefix("cp125") {
            Some(page) if page.len() == 1 => return label(&format!("windows-125{page}")),
            _ => match squeezed.strip_prefix("iso8859") {
                Some(part) => return label(&format!("iso-8859-{part}")),
                None => return other(&name),
            },
        },
    };
    Encoding::for_label(label.as_bytes()).map(Codec::Other)
}

fn label(name: &str) -> Option<Codec> {
    Encoding::for_label(name.as_bytes()).map(Codec::Other)
}

fn other(name: &str) -> Option<Codec> {
    let squeezed = |text: &str| text.replace('-', "");
    if CODE_PAGES.iter().any(|page| squeezed(page) == squeezed(name)) {
        return Some(Codec::Latin1);
    }
    // Labels of the web that Python does not have must stay unknown.
    let known = ["gbk", "gb18030", "windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254"];
    if known.contains(&name) { label(name) } else { None }
}

/// 1-based line of an offset.
fn line_of(bytes: &[u8], at: usize) -> u32 {
    let before = &bytes[..at.min(bytes.len())];
    let ends = memchr::memchr2_iter(b'\n', b'\r', before)
        .filter(|&end| before[end] == b'\n' || bytes.get(end + 1) != Some(&b'\n'));
    u32::try_from(ends.count() + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_encodings_are_honoured() {
        assert_eq!(decode(b"# -*- coding: gbk -*-\nx = '\xd6\xd0'\n").unwrap(), "# -*- coding: gbk -*-\nx = '中'\n");
        assert_eq!(decode(b"\n# vim: fileencoding=latin-1\n'\xe9'").unwrap(), "\n# vim: fileencoding=latin-1\n'é'");
        assert_eq!(decode(b"\xef\xbb\xbfx = 1").unwrap(), "x = 1");
        assert_eq!(decode("\u{feff}# coding: utf-8\nπ = 3".as_bytes()).unwrap(), "# coding: utf-8\nπ = 3");
        assert!(decode(b"# coding: cp437\nx = '\x81'").is_ok());
        // The second line counts only below a comment.
        assert!(decode(b"x = 1\n# coding: nonsense\n").is_ok());
    }

    #[test]
    fn faults_name_their_line() {
        let fault = |bytes: &[u8]| decode(bytes).map(Cow::into_owned).unwrap_err();
        assert_eq!(fault(b"x = 1\ny = '\0'\n"), Undecodable { error: DecodeError::Null, line: 2 });
        assert_eq!(
            fault(b"#\n# coding: utf-9\n"),
            Undecodable { error: DecodeError::UnknownEncoding("utf-9".to_owned()), line: 2 }
        );
        assert_eq!(
            fault(b"\xef\xbb\xbf# coding: gbk\n"),
            Undecodable { error: DecodeError::MarkAgainstDeclaration("gbk".to_owned()), line: 1 }
        );
        let bad = |byte, offset, encoding: &str, declared, line| Undecodable {
            error: DecodeError::BadByte { byte, offset, encoding: encoding.to_owned(), declared },
            line,
        };
        assert_eq!(fault(b"\r\nx = '\xd6\xd0'\n"), bad(0xd6, 7, "utf-8", false, 2));
        assert_eq!(fault(b"# coding: ascii\nx = '\xe9'\n"), bad(0xe9, 21, "ascii", true, 2));
        assert_eq!(fault(b"# coding: gbk\n'\xff'"), bad(0xff, 15, "gbk", true, 2));
    }
}
