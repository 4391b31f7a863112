//! What to write instead: a path or fragment that can be pasted. Runs on faults only.

use super::anchors::{self, Meeting};
use super::document::{Link, LinkKind};
use super::resolve::{Fault, Reader, Sought, Verdict, World};
use super::site::{below, within};
use super::slug;
use super::target::{self, encode, file_name, folder, relative};
use super::tree::Node;
use crate::rules::links as rules;

/// A target that would work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Suggestion {
    /// What to write.
    pub(super) target: String,
    /// No other candidate is as good, so that it can be written without asking.
    pub(super) unique: bool,
}

/// The best replacement for the target of a faulty link. Every candidate is judged like
/// the link itself, so that what is suggested works.
pub(super) fn suggest(world: &World, reader: Reader<'_>, link: &Link, fault: &Fault) -> Option<Suggestion> {
    let suggester = Suggester { world, reader, link, sought: &fault.sought };
    match &fault.sought {
        Sought::Nothing | Sought::Lines => None,
        Sought::Fragment(source) => suggester.fragment(*source),
        Sought::Actual(path) if fault.rule == &rules::CASE_MISMATCH => suggester.first(&[vec![path.clone()]]),
        Sought::Actual(path) => suggester.anywhere(path),
        Sought::Path(path) => suggester.anywhere(path),
    }
}

struct Suggester<'w, 'l> {
    world: &'w World,
    reader: Reader<'w>,
    link: &'l Link,
    sought: &'l Sought,
}

impl Suggester<'_, '_> {
    /// Where the path may have gone; spelling last, since it looks at every file.
    fn anywhere(&self, path: &str) -> Option<Suggestion> {
        self.first(&self.near(path)).or_else(|| self.first(&[self.misspelt(path)]))
    }

    /// Paths to try, group after group; in a group one is as good as the other.
    fn near(&self, path: &str) -> Vec<Vec<String>> {
        let mut groups = vec![self.beside(path)];
        if self.reader.site.is_some() {
            groups.push(vec![format!("{path}/index.md"), format!("{path}/README.md")]);
            groups.extend(self.without_base());
        }
        groups.push(self.other_root());
        groups.extend(self.elsewhere(path));
        groups
    }

    /// The same name in other folders, then the same stem: first where the page itself
    /// lives (chapters or site), since the other place holds copies.
    fn elsewhere(&self, path: &str) -> Vec<Vec<String>> {
        let name = file_name(path);
        if name.is_empty() {
            return Vec::new();
        }
        let names: Vec<String> = std::iter::once(name.to_owned()).chain(other_endings(name)).collect();
        let on_site = |found: &str| self.world.sites.iter().any(|site| site.has_page(found));
        let named = |name: &String, same: bool| -> Vec<String> {
            let found = self.world.tree.named(name).iter().filter(|found| found.as_str() != path);
            found.filter(|found| (on_site(found) == self.reader.site.is_some()) == same).cloned().collect()
        };
        [true, false].iter().flat_map(|same| names.iter().map(move |name| named(name, *same))).collect()
    }

    /// Same folder, same stem, other ending.
    fn beside(&self, path: &str) -> Vec<String> {
        let in_folder = within(folder(path), "");
        other_endings(file_name(path)).into_iter().map(|name| format!("{in_folder}{name}")).collect()
    }

    /// The address without the base that VitePress adds.
    fn without_base(&self) -> Option<Vec<String>> {
        let site = self.reader.site?;
        let address = site.without_base(&self.link.target)?;
        Some(vec![within(&site.pages, address.trim_start_matches('/'))])
    }

    /// `/x` read from the other root, and `x` read from the root.
    fn other_root(&self) -> Vec<String> {
        let target::Target::Local(local) = target::parse(&self.link.target) else { return Vec::new() };
        let path = local.path.trim_start_matches('/');
        let docs = &self.world.docs.0;
        let plain = |folder: &str| match target::join(folder, path) {
            target::Joined::Inside(path) | target::Joined::Above(_, path) => path,
        };
        vec![plain(""), plain(docs)]
    }

    /// Names in the same folder that differ by a letter or two, and less in a short name:
    /// two changes make any name of two letters out of any other.
    fn misspelt(&self, path: &str) -> Vec<String> {
        const CHANGES: usize = 2;
        let name = file_name(path);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let changes = CHANGES.min(stem.chars().count() / 2);
        if changes == 0 {
            return Vec::new();
        }
        let mut near: Vec<(usize, String)> = self
            .world
            .tree
            .maybe_spelled(path, changes)
            .map(|file| (strsim::damerau_levenshtein(file_name(file), name), file.to_owned()))
            .filter(|(distance, _)| (1..=changes).contains(distance))
            .collect();
        near.sort();
        let best = near.first().map(|(distance, _)| *distance);
        near.into_iter().filter(|(distance, _)| Some(*distance) == best).map(|(_, file)| file).collect()
    }

    /// The first group in which something works.
    fn first(&self, groups: &[Vec<String>]) -> Option<Suggestion> {
        groups.iter().find_map(|group| {
            let mut works: Vec<String> = Vec::new();
            for path in group.iter().filter(|path| self.exists(path)) {
                let Some(written) = self.write(path) else { continue };
                if !works.contains(&written) && self.works(&written) {
                    works.push(written);
                }
            }
            let unique = works.len() == 1;
            // Of several the nearest.
            works.sort_by_key(|written| (written.matches("../").count(), written.len(), written.clone()));
            works.into_iter().next().map(|target| Suggestion { target, unique })
        })
    }

    fn exists(&self, path: &str) -> bool {
        let tree = &self.world.tree;
        tree.get(path).is_some_and(|node| node != Node::Folder) || tree.get(&format!("{path}.md")).is_some()
    }

    /// The path as this page would write it: absolute where the link was, and with the
    /// query and fragment that the link had.
    fn write(&self, path: &str) -> Option<String> {
        let link = &*self.link.target;
        if link.contains("://") {
            // The address of a file of one's own: only the path in it changes.
            let (Sought::Path(old) | Sought::Actual(old)) = self.sought else { return None };
            let at = [old.clone(), encode(old)].iter().find_map(|old| Some((link.rfind(old.as_str())?, old.len())));
            let (at, length) = at?;
            return Some(format!("{}{}{}", &link[..at], encode(path), &link[at + length..]));
        }
        let tail = link.find(['#', '?']).map_or("", |at| &link[at..]);
        let site_address = self.reader.site.filter(|_| link.starts_with('/')).and_then(|site| {
            let address = below(&site.pages, path)?;
            Some(address.strip_prefix("public/").unwrap_or(address))
        });
        let written = match site_address {
            Some(address) => {
                format!("/{}", encode(address.strip_suffix(".md").filter(|_| !link.contains(".md")).unwrap_or(address)))
            }
            None if link.starts_with('/') && self.reader.site.is_none() => format!("/{}", encode(path)),
            None => {
                let path = encode(&relative(folder(self.reader.path), path));
                if link.starts_with("./") && !path.starts_with("../") { format!("./{path}") } else { path }
            }
        };
        let written = match written.strip_suffix("/index") {
            Some(folder) if self.reader.site.is_some() => format!("{folder}/"),
            _ => written,
        };
        Some(format!("{written}{tail}"))
    }

    fn works(&self, written: &str) -> bool {
        let candidate = Link { target: written.into(), ..self.link.clone() };
        match self.world.judge(self.reader, &candidate) {
            Verdict::Fine => true,
            // A right file with a wrong fragment is still the right file.
            Verdict::Fault(fault) => fault.rule == &rules::MISSING_ANCHOR || fault.rule == &rules::ANCHOR_CASE,
            Verdict::External => false,
        }
    }

    /// The nearest id of the page.
    fn fragment(&self, source: usize) -> Option<Suggestion> {
        let link = &*self.link.target;
        let (before, fragment) = link.split_once('#')?;
        let written = target::decode(fragment);
        let anchors = self.world.anchors(source, self.reader.style);
        let rewritten = self.link.kind == LinkKind::Link;
        let reachable =
            |id: &&str| anchors::meet(anchors, &encode_fragment(id), self.reader.style, rewritten) == Meeting::Exact;
        let chosen = anchors.chosen_instead(&slug::vitepress(&written));
        if let Some(id) = chosen.iter().find(|id| reachable(id)) {
            let target = format!("{before}#{}", encode_fragment(id));
            return Some(Suggestion { target, unique: chosen.len() == 1 });
        }
        let wanted = normal(&written);
        let mut best: Option<(usize, &str)> = None;
        let mut ties = 0;
        for id in anchors.listed().into_iter().filter(reachable) {
            let distance = distance(&wanted, &normal(id));
            match best {
                Some((known, _)) if distance > known => {}
                Some((known, id_known)) if distance == known => ties += usize::from(normal(id_known) != normal(id)),
                _ => (best, ties) = (Some((distance, id)), 0),
            }
        }
        let (distance, id) = best?;
        let limit = (wanted.chars().count().max(3) / 3).max(1);
        if distance > limit {
            return None;
        }
        Some(Suggestion { target: format!("{before}#{}", encode_fragment(id)), unique: ties == 0 && distance == 0 })
    }
}

/// What two ids must have in common to be meant for each other.
fn normal(id: &str) -> String {
    slug::vitepress(id).trim_start_matches('_').chars().filter(|c| c.is_alphanumeric() || *c == '-').collect()
}

/// Edit distance, with a cut for texts that cannot be near.
fn distance(a: &str, b: &str) -> usize {
    let (long, short) = (a.chars().count(), b.chars().count());
    if long.abs_diff(short) > long.max(short) / 3 + 1 || long > 300 {
        return usize::MAX;
    }
    strsim::damerau_levenshtein(a, b)
}

fn encode_fragment(id: &str) -> String {
    id.replace('%', "%25").replace(' ', "%20").replace('(', "%28").replace(')', "%29")
}

/// Other names under which a page is kept: `x.md` ↔ `x.ipynb`, and no ending at all.
fn other_endings(name: &str) -> Vec<String> {
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    match ending {
        "md" => vec![format!("{stem}.ipynb")],
        "ipynb" => vec![format!("{stem}.md")],
        "html" => vec![format!("{stem}.md"), format!("{stem}.ipynb")],
        "png" | "jpg" | "jpeg" | "svg" | "gif" | "webp" => ["png", "jpg", "jpeg", "svg", "gif", "webp"]
            .iter()
            .filter(|other| **other != ending)
            .map(|other| format!("{stem}.{other}"))
            .collect(),
        _ => vec![format!("{name}.md"), format!("{name}.ipynb")],
    }
}
