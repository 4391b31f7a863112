//! Characters that look like Python, or like nothing at all, and are not Python.

use crate::model::Localized;

/// What is wrong with a character outside of strings and comments, and what to do.
/// `here` are all such characters of the line: they are corrected together.
pub(super) fn explain(c: char, here: &[char]) -> Option<(Localized, Localized)> {
    if let Some(ascii) = lookalike(c) {
        return Some((
            Localized::both(
                format!(
                    "`{c}` (U+{:04X}) is a full-width or typographic character; Python needs the ASCII `{ascii}`",
                    c as u32
                ),
                format!("`{c}`（U+{:04X}）是全角或中文标点；Python 需要半角的 `{ascii}`", c as u32),
            ),
            instead(here),
        ));
    }
    let (en, zh) = invisible(c)?;
    let code = format!("U+{:04X}", c as u32);
    Some((
        Localized::both(
            format!("an invisible character, {en} ({code}), stands here"),
            format!("此处有一个看不见的字符：{zh}（{code}）"),
        ),
        Localized::both(
            "delete the line and type it again, or copy it without formatting",
            "请删掉这一行重新输入，或以纯文本方式重新粘贴",
        ),
    ))
}

/// What to write for each of these characters.
fn instead(here: &[char]) -> Localized {
    let mut pairs: Vec<(char, &str)> = here.iter().filter_map(|c| Some((*c, lookalike(*c)?))).collect();
    let mut seen = Vec::new();
    pairs.retain(|(c, _)| {
        !seen.contains(c) && {
            seen.push(*c);
            true
        }
    });
    let en: Vec<String> = pairs.iter().map(|(c, ascii)| format!("`{ascii}` instead of `{c}`")).collect();
    let zh: Vec<String> = pairs.iter().map(|(c, ascii)| format!("把 `{c}` 改成 `{ascii}`")).collect();
    Localized::both(
        format!("write {}; switch the input method to half-width punctuation", en.join(", ")),
        format!("请{}，并将输入法切换到半角（英文）标点", zh.join("，")),
    )
}

/// The ASCII text that somebody meant.
fn lookalike(c: char) -> Option<&'static str> {
    const TABLE: &[(&str, &[char])] = &[
        ("(", &['（', '﹙', '❨']),
        (")", &['）', '﹚', '❩']),
        ("[", &['［', '【', '〔', '「', '『']),
        ("]", &['］', '】', '〕', '」', '』']),
        ("{", &['｛', '﹛']),
        ("}", &['｝', '﹜']),
        (",", &['，', '、', '﹐', '､']),
        (":", &['：', '﹕', '∶', '︰']),
        (";", &['；', '﹔', ';']),
        (".", &['。', '．', '｡', '·']),
        ("\"", &['“', '”', '„', '‟', '＂', '〝', '〞', '«', '»', '″']),
        ("'", &['‘', '’', '‚', '‛', '＇', '′', '´', 'ʼ']),
        ("=", &['＝', '﹦']),
        ("+", &['＋', '﹢']),
        ("-", &['－', '—', '–', '−', '‐', '‑', '―', '﹣']),
        ("*", &['＊', '×', '∗', '﹡']),
        ("/", &['／', '÷', '∕']),
        ("<", &['＜', '《', '〈', '﹤']),
        (">", &['＞', '》', '〉', '﹥']),
        ("<=", &['≤', '≦']),
        (">=", &['≥', '≧']),
        ("!=", &['≠']),
        ("->", &['→']),
        ("...", &['…']),
        ("%", &['％']),
        ("#", &['＃', '﹟']),
        ("@", &['＠']),
        ("!", &['！']),
        ("?", &['？']),
        ("&", &['＆']),
        ("|", &['｜', '￨']),
        ("^", &['＾']),
        ("~", &['～', '〜', '˜']),
        ("_", &['＿']),
        ("\\", &['＼']),
        ("$", &['＄']),
        ("`", &['｀']),
    ];
    const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    if c == '\u{3000}' {
        return None;
    }
    if ('０'..='９').contains(&c) {
        return DIGITS.get(c as usize - '０' as usize).copied();
    }
    TABLE.iter().find(|(_, lookalikes)| lookalikes.contains(&c)).map(|(ascii, _)| *ascii)
}

/// Names of characters that nobody sees.
fn invisible(c: char) -> Option<(&'static str, &'static str)> {
    Some(match c {
        '\u{00a0}' => ("a no-break space", "不换行空格"),
        '\u{3000}' => ("a full-width space", "全角空格"),
        '\u{200b}' => ("a zero-width space", "零宽空格"),
        '\u{200c}' => ("a zero-width non-joiner", "零宽不连字"),
        '\u{200d}' => ("a zero-width joiner", "零宽连字"),
        '\u{200e}' | '\u{200f}' => ("a direction mark", "文字方向标记"),
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => ("a direction override", "文字方向控制符"),
        '\u{2060}' => ("a word joiner", "单词连接符"),
        '\u{feff}' => ("a byte-order mark", "字节顺序标记（BOM）"),
        '\u{00ad}' => ("a soft hyphen", "软连字符"),
        '\u{2028}' | '\u{2029}' => ("a line or paragraph separator", "行分隔符或段落分隔符"),
        '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' => ("a typographic space", "排版空格"),
        '\u{2061}'..='\u{2064}' | '\u{180e}' | '\u{fe00}'..='\u{fe0f}' => ("a formatting character", "格式控制符"),
        c if c.is_control() => ("a control character", "控制字符"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Lang;

    #[test]
    fn full_width_characters_name_what_to_write() {
        for (wrong, right) in [('（', "`(`"), ('：', "`:`"), ('“', "`\"`"), ('，', "`,`"), ('７', "`7`"), ('≠', "`!=`")]
        {
            let (message, help) = explain(wrong, &[wrong]).unwrap();
            assert!(message.get(Lang::En).contains(right) && help.get(Lang::Zh).contains(right), "{wrong}");
        }
    }

    #[test]
    fn invisible_characters_are_named_by_code_point() {
        for (wrong, code) in [('\u{200b}', "U+200B"), ('\u{a0}', "U+00A0"), ('\u{3000}', "U+3000"), ('\u{8}', "U+0008")]
        {
            assert!(explain(wrong, &[]).unwrap().0.get(Lang::En).contains(code), "{code}");
        }
        assert!(explain('é', &[]).is_none());
    }
}
