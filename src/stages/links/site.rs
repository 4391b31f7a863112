//! A VitePress site as far as links need it: where its pages are, what its
//! configuration says about addresses, and the links that stand in the configuration.
//! The configuration is a program; only literals are read, nothing is run.

use super::document::{Link, LinkKind, Place};
use super::tree::{Node, Tree};
use globset::{Glob, GlobSet, GlobSetBuilder};
use std::ops::Range;

/// A VitePress site.
#[derive(Debug, Default)]
pub(super) struct Site {
    /// The folder that holds `.vitepress`; empty for the root.
    pub(super) home: String,
    /// The folder of the pages (`srcDir`).
    pub(super) pages: String,
    /// Literal addresses such as `/course/` that may be the `base` of the site.
    bases: Vec<String>,
    /// Literal `base` of sidebars, which their relative links begin with.
    sidebar_bases: Vec<String>,
    rewrites: Vec<(String, String)>,
    excluded: GlobSet,
    /// Links of the configuration, by file.
    pub(super) config_links: Vec<(String, Vec<Link>)>,
}

/// Endings of configuration files.
const CONFIG_ENDINGS: [&str; 6] = ["mts", "ts", "mjs", "js", "cts", "cjs"];

/// Every site of the tree: the docs root, if it has a `.vitepress` folder, and every
/// other folder with a VitePress configuration.
pub(super) fn find(tree: &Tree, docs: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<Site> {
    let mut homes: Vec<String> = tree
        .folders()
        .filter_map(|folder| match folder {
            ".vitepress" => Some(String::new()),
            other => other.strip_suffix("/.vitepress").map(str::to_owned),
        })
        .filter(|home| home == docs || config_files(tree, home).iter().any(|file| file.contains("/config")))
        .collect();
    homes.sort();
    homes.into_iter().map(|home| Site::read(tree, home, read)).collect()
}

/// The program files right under `.vitepress`, under `.vitepress/config`, and other
/// folders that hold parts of the configuration.
fn config_files(tree: &Tree, home: &str) -> Vec<String> {
    let folder = within(home, ".vitepress/");
    let mut files: Vec<String> = tree
        .files()
        .filter(|path| {
            path.strip_prefix(&folder).is_some_and(|rest| {
                let program = rest.rsplit_once('.').is_some_and(|(_, ending)| CONFIG_ENDINGS.contains(&ending));
                program && !rest.starts_with("theme/") && !rest.starts_with("node_modules/")
            })
        })
        .map(str::to_owned)
        .collect();
    // Locales may keep a configuration of their own beside their pages.
    files.extend(
        tree.files()
            .filter(|path| {
                let name = super::target::file_name(path);
                path.starts_with(home)
                    && name.strip_prefix("config.").is_some_and(|ending| CONFIG_ENDINGS.contains(&ending))
                    && !path.contains("/.vitepress/")
                    && !path.starts_with(".vitepress/")
                    && !home.is_empty()
            })
            .map(str::to_owned),
    );
    files.sort();
    files
}

/// A path below a folder that may be the root.
pub(super) fn within(folder: &str, path: &str) -> String {
    if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") }
}

/// What of `path` lies below `folder`.
pub(super) fn below<'p>(folder: &str, path: &'p str) -> Option<&'p str> {
    if folder.is_empty() {
        return Some(path);
    }
    if path == folder { Some("") } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

impl Site {
    fn read(tree: &Tree, home: String, read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut site = Site { pages: home.clone(), home, ..Site::default() };
        let mut excluded = GlobSetBuilder::new();
        for file in config_files(tree, &site.home) {
            let Some(text) = read(&file) else { continue };
            let literals = scan_literals(&text);
            site.take(&text, &file, &literals, &mut excluded);
        }
        site.excluded = excluded.build().unwrap_or_default();
        site
    }

    fn take(&mut self, text: &str, file: &str, literals: &[Literal], excluded: &mut GlobSetBuilder) {
        let mut links = Vec::new();
        for literal in literals {
            let value = literal.value.as_str();
            match literal.key.as_deref() {
                Some("link") if !literal.computed => links.push(config_link(text, literal)),
                Some("srcDir") if !literal.computed => {
                    if let super::target::Joined::Inside(pages) = super::target::join(&self.home, value) {
                        self.pages = pages;
                    }
                }
                Some("base") => self.sidebar_bases.push(value.to_owned()),
                Some("srcExclude") => {
                    if let Ok(glob) = Glob::new(value) {
                        excluded.add(glob);
                    }
                }
                Some(key) if literal.group.as_deref() == Some("rewrites") => {
                    self.rewrites.push((key.to_owned(), value.to_owned()));
                }
                _ => {}
            }
            if value.len() > 2 && value.starts_with('/') && value.ends_with('/') {
                self.bases.push(value.to_owned());
            }
        }
        if !links.is_empty() {
            self.config_links.push((file.to_owned(), links));
        }
    }

    /// Whether a Markdown file lies among the pages of this site.
    pub(super) fn holds(&self, path: &str) -> bool {
        let hidden = |page: &str| page.split('/').any(|part| part.starts_with('.'));
        path.ends_with(".md") && below(&self.pages, path).is_some_and(|page| !hidden(page))
    }

    /// Whether a source is a page of this site.
    pub(super) fn has_page(&self, path: &str) -> bool {
        self.holds(path) && below(&self.pages, path).is_some_and(|page| !self.excluded.is_match(page))
    }

    /// The file of the page with this address: without slash in front and ending behind.
    pub(super) fn page(&self, tree: &Tree, address: &str) -> Option<String> {
        let written = within(&self.pages, &format!("{address}.md"));
        let rewritten = || {
            let target = format!("{address}.md");
            let original = self.rewrites.iter().find_map(|(from, to)| rewrite_back(from, to, &target))?;
            Some(within(&self.pages, &original))
        };
        let exists = |path: &String| tree.source(path).is_some() && self.has_page(path);
        Some(written).filter(exists).or_else(|| rewritten().filter(exists))
    }

    /// Whether a page with a parameter in its name, `[name].md`, may make this address.
    pub(super) fn is_dynamic(&self, tree: &Tree, address: &str) -> bool {
        let pattern = |path: &str| {
            below(&self.pages, path).and_then(|page| page.strip_suffix(".md")).is_some_and(|page| {
                page.contains('[') && {
                    let (a, b): (Vec<&str>, Vec<&str>) = (page.split('/').collect(), address.split('/').collect());
                    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a == b || a.contains('['))
                }
            })
        };
        tree.sources.iter().any(|source| pattern(&source.path))
    }

    /// What stands under an address of the site that `public/` serves.
    pub(super) fn public(&self, tree: &Tree, address: &str) -> Option<Node> {
        let path = within(&within(&self.pages, "public"), address);
        tree.get(path.trim_end_matches('/')).filter(|node| *node != Node::Folder)
    }

    /// The address without the configured base that VitePress puts in front itself.
    pub(super) fn without_base<'p>(&self, address: &'p str) -> Option<&'p str> {
        self.bases
            .iter()
            .find_map(|base| address.strip_prefix(base.trim_end_matches('/')).filter(|rest| rest.starts_with('/')))
    }

    /// What a relative link of a sidebar may begin with.
    pub(super) fn sidebar_bases(&self) -> &[String] {
        &self.sidebar_bases
    }
}

/// The source path that a rewrite rule `en/:rest*` → `:rest*` maps to `target`.
fn rewrite_back(from: &str, to: &str, target: &str) -> Option<String> {
    let to_parts: Vec<&str> = to.split('/').collect();
    let target_parts: Vec<&str> = target.split('/').collect();
    let mut values: Vec<(String, String)> = Vec::new();
    if !match_parts(&to_parts, &target_parts, &mut values) {
        return None;
    }
    let fill = |part: &str| match parameter(part) {
        Some((name, _, ending)) => {
            let value = values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())?;
            Some(format!("{value}{ending}"))
        }
        None => Some(part.to_owned()),
    };
    let parts: Option<Vec<String>> = from.split('/').map(fill).collect();
    parts.map(|parts| parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/"))
}

fn match_parts(pattern: &[&str], target: &[&str], values: &mut Vec<(String, String)>) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return target.is_empty() };
    match parameter(first) {
        Some((name, true, ending)) => {
            let taken = target.len().saturating_sub(rest.len());
            let joined = target[..taken].join("/");
            let Some(value) = joined.strip_suffix(ending) else { return false };
            values.push((name.to_owned(), value.to_owned()));
            match_parts(rest, &target[taken..], values)
        }
        Some((name, false, ending)) => {
            let Some(value) = target.first().and_then(|part| part.strip_suffix(ending)) else { return false };
            values.push((name.to_owned(), value.to_owned()));
            match_parts(rest, &target[1..], values)
        }
        None => target.first() == Some(first) && match_parts(rest, &target[1..], values),
    }
}

/// Name of a parameter `:name`, `:name*`, `:name(.*)`, whether it takes several parts,
/// and what follows it.
fn parameter(part: &str) -> Option<(&str, bool, &str)> {
    let rest = part.strip_prefix(':')?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, tail) = rest.split_at(end);
    if let Some(ending) = tail.strip_prefix('*').or_else(|| tail.strip_prefix("(.*)")) {
        return Some((name, true, ending));
    }
    Some((name, false, tail))
}

fn config_link(text: &str, literal: &Literal) -> Link {
    let line_start = text[..literal.span.start].rfind('\n').map_or(0, |at| at + 1);
    let count = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let line = u32::try_from(text[..line_start].matches('\n').count() + 1).unwrap_or(u32::MAX);
    let column = count(&text[line_start..literal.span.start]) + 1;
    let length = count(&text[literal.span.clone()]).max(1);
    Link {
        target: literal.value.as_str().into(),
        kind: LinkKind::Config,
        place: Place { cell: 0, line, column, length },
        span: literal.span.clone(),
        ignored_by: None,
    }
}

/// A string literal of a program with the key in front of it.
#[derive(Debug, PartialEq, Eq)]
struct Literal {
    /// `link` of `link: '/x'`; of a list the key of the list.
    key: Option<String>,
    /// Key of the object that it stands in.
    group: Option<String>,
    value: String,
    /// Bytes between the quotes.
    span: Range<usize>,
    /// Part of an expression, so that the value is not the whole.
    computed: bool,
}

/// The string literals of a JavaScript or TypeScript program. Comments are passed over;
/// this is a lexer and no parser, good enough for the literals of a configuration.
fn scan_literals(text: &str) -> Vec<Literal> {
    let mut lexer = Lexer { text, at: 0, literals: Vec::new(), key: None, word: None, groups: Vec::new() };
    lexer.run();
    lexer.literals
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    literals: Vec<Literal>,
    /// The key whose value comes next.
    key: Option<String>,
    /// The last identifier or literal, which a colon makes a key.
    word: Option<String>,
    /// Keys of the objects and lists around.
    groups: Vec<Option<String>>,
}

impl Lexer<'_> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'/' if bytes.get(self.at + 1) == Some(&b'/') => self.skip_to("\n"),
                b'/' if bytes.get(self.at + 1) == Some(&b'*') => self.skip_to("*/"),
                b'\'' | b'"' | b'`' => self.literal(byte),
                b':' => {
                    self.key = self.word.take();
                    self.at += 1;
                }
                b'{' | b'[' => {
                    self.groups.push(self.key.take());
                    self.at += 1;
                }
                b'}' | b']' => {
                    self.groups.pop();
                    self.word = None;
                    self.at += 1;
                }
                b',' | b';' | b'(' | b')' | b'?' | b'=' | b'+' => {
                    self.key = None;
                    self.word = None;
                    self.at += 1;
                }
                byte if byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' => self.identifier(),
                _ => self.at += 1,
            }
        }
    }

    fn skip_to(&mut self, end: &str) {
        let rest = &self.text[self.at..];
        self.at += rest.find(end).map_or(rest.len(), |at| at + end.len());
    }

    fn identifier(&mut self) {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
        self.word = Some(rest[..end].to_owned());
        self.key = None;
        self.at += end;
    }

    fn literal(&mut self, quote: u8) {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut end = start;
        while end < bytes.len() && bytes[end] != quote && (quote == b'`' || bytes[end] != b'\n') {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let end = end.min(bytes.len());
        let Some(value) = self.text.get(start..end) else {
            self.at = start;
            return;
        };
        let next = self.text[end..].get(1..).unwrap_or_default().trim_start();
        let computed = value.contains("${") || value.contains('\\') || next.starts_with(['+', '.', '?']);
        let in_list = self.groups.last().cloned().flatten();
        let (key, group) = match self.key.take() {
            Some(key) => (Some(key), in_list),
            None => (in_list, self.groups.iter().rev().nth(1).cloned().flatten()),
        };
        if !next.starts_with(':') {
            self.literals.push(Literal { key, group, value: value.to_owned(), span: start..end, computed });
        }
        self.word = Some(value.to_owned());
        self.at = (end + 1).min(bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn links_of_a_configuration_are_literals_behind_the_key() {
        let text = "// link: '/a'\n/* link: '/b' */\nx({ link: '/c', \"link\": \"/d\", text: 'link: /e', link: `/f/${g}`,\n link: base + '/h', link: '/i' + j, link: k ? '/l' : '/m' })";
        let links: Vec<(String, bool)> = scan_literals(text)
            .into_iter()
            .filter(|literal| literal.key.as_deref() == Some("link"))
            .map(|literal| (literal.value, literal.computed))
            .collect();
        let plain: Vec<&str> =
            links.iter().filter(|(_, computed)| !computed).map(|(value, _)| value.as_str()).collect();
        assert_eq!(plain, ["/c", "/d"]);
    }

    #[test]
    fn lists_and_objects_lend_their_key() {
        let text = "{ srcExclude: ['**/a.md', 'b/**'], rewrites: { 'en/:rest*': ':rest*' } }";
        let literals = scan_literals(text);
        let keys: Vec<_> = literals.iter().map(|l| (l.key.as_deref(), l.group.as_deref(), l.value.as_str())).collect();
        assert_eq!(
            keys,
            [
                (Some("srcExclude"), None, "**/a.md"),
                (Some("srcExclude"), None, "b/**"),
                (Some("en/:rest*"), Some("rewrites"), ":rest*")
            ]
        );
    }

    #[test]
    fn rewrites_are_undone() {
        assert_eq!(rewrite_back("en/:rest*", ":rest*", "guide/a.md").as_deref(), Some("en/guide/a.md"));
        assert_eq!(
            rewrite_back("packages/:pkg/src/:slug*", ":pkg/:slug*", "foo/a/b.md").as_deref(),
            Some("packages/foo/src/a/b.md")
        );
        assert_eq!(rewrite_back("a/b.md", "c.md", "c.md").as_deref(), Some("a/b.md"));
        assert_eq!(rewrite_back("a/b.md", "c.md", "d.md"), None);
    }

    proptest! {
        #[test]
        fn any_program_is_scanned(text in any::<String>()) {
            for literal in scan_literals(&text) {
                prop_assert!(text.get(literal.span).is_some());
            }
        }
    }
}
