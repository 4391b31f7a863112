//! The bad and the good example of a rule. Each rule has one file below
//! `fixtures/explain`, which the binary carries; `tests/it/explain.rs` runs every one.
//!
//! ```text
//! $ verify links
//! --- with docs/guide.md
//! # Guide
//! --- bad docs/index.md
//! See [the guide](gude.md).
//! --- good docs/index.md
//! See [the guide](guide.md).
//! ```
//!
//! `bad $ …` and `good $ …` stand where the command is what differs. `PATH over BASE` is a
//! part of a JSON document of `fixtures/explain/base` (nothing: all of it); `"(absent)"` takes
//! a member away.
//! `PATH escaped` has bytes written as `\xNN`; a notebook is written as its cells, `# %%`.
//! `server` in the place of a path is what a server sends. A rule that no small file can
//! break says why instead: `none: …` and `none-zh: …`.

use crate::model::Text;

/// Which of the two a line or a file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Breaks the rule.
    Bad,
    /// The same, put right.
    Good,
    /// What both need beside them.
    Both,
}

/// A file of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Where it belongs.
    pub side: Side,
    /// Path below the root, or `server…`.
    pub name: &'static str,
    /// The document that it is a part of.
    pub base: Option<&'static str>,
    /// `\\xNN` stands for a byte.
    pub escaped: bool,
    /// What stands in it.
    pub text: &'static str,
}

/// What a rule's file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Example {
    /// Command lines, `verify …`.
    pub commands: Vec<(Side, &'static str)>,
    /// Files, in their order.
    pub parts: Vec<Part>,
    /// Rules that break together with this one.
    pub also: Vec<&'static str>,
    /// Why there is no example.
    pub none: Option<Text>,
}

impl Example {
    /// Reads the file of a rule.
    ///
    /// # Errors
    /// The first line that means nothing.
    pub fn parse(text: &'static str) -> Result<Example, String> {
        let (head, parts) = text.split_at(text.find("--- ").unwrap_or(text.len()));
        let mut example = Example::default();
        let (mut en, mut zh) = ("", "");
        for line in head.lines() {
            match line.split_once(' ') {
                Some(("$", command)) => example.commands.push((Side::Both, command)),
                Some(("bad", command)) => example.commands.push((Side::Bad, command.trim_start_matches("$ "))),
                Some(("good", command)) => example.commands.push((Side::Good, command.trim_start_matches("$ "))),
                Some(("also:", rules)) => example.also.extend(rules.split_whitespace()),
                Some(("none:", reason)) => en = reason,
                Some(("none-zh:", reason)) => zh = reason,
                _ => return Err(line.to_owned()),
            }
        }
        example.none = (!en.is_empty()).then_some(Text { en, zh });
        let sections = parts.strip_prefix("--- ").into_iter().flat_map(|parts| parts.split("\n--- "));
        for section in sections {
            example.parts.push(Part::parse(section).ok_or_else(|| section.lines().next().unwrap_or("").to_owned())?);
        }
        Ok(example)
    }

    /// The command of a side.
    pub fn command(&self, side: Side) -> Option<&'static str> {
        self.commands.iter().find(|(of, _)| *of == side || *of == Side::Both).map(|(_, command)| *command)
    }

    /// What a reader sees of a side: what belongs to it alone, else what both need.
    pub fn shown(&self, side: Side) -> Vec<&Part> {
        let own: Vec<&Part> = self.parts.iter().filter(|part| part.side == side).collect();
        if own.is_empty() { self.parts.iter().filter(|part| part.side == Side::Both).collect() } else { own }
    }
}

impl Part {
    fn parse(section: &'static str) -> Option<Part> {
        let (head, text) = section.split_once('\n').unwrap_or((section, ""));
        let (side, name) = head.split_once(' ')?;
        let side = match side {
            "bad" => Side::Bad,
            "good" => Side::Good,
            "with" => Side::Both,
            _ => return None,
        };
        let (name, base) = name.split_once(" over ").map_or((name, None), |(name, base)| (name, Some(base)));
        let (name, escaped) = name.strip_suffix(" escaped").map_or((name, false), |name| (name, true));
        Some(Part { side, name, base, escaped, text })
    }

    /// Whether it is what a server sends.
    pub fn is_server(&self) -> bool {
        self.name == "server" || self.name.starts_with("server ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_in_its_parts() {
        let text = "$ verify links\nalso: a/b c/d\n--- with a.md\n# A\n--- bad b.json over c.json\n{}\n--- good b.md\n";
        let example = Example::parse(text).unwrap();
        assert_eq!(example.command(Side::Good), Some("verify links"));
        assert_eq!(example.also, ["a/b", "c/d"]);
        assert_eq!((example.parts[0].side, example.parts[0].name, example.parts[0].text), (Side::Both, "a.md", "# A"));
        assert_eq!(
            (example.parts[1].name, example.parts[1].base, example.parts[1].text),
            ("b.json", Some("c.json"), "{}")
        );
        assert_eq!((example.shown(Side::Good).len(), example.parts[2].text), (1, ""));
        assert_eq!(Example::parse("what\n"), Err("what".to_owned()));
        assert!(Example::parse("$ verify\n--- worse a.md\n").is_err());
    }
}
