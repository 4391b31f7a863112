//! Where a link leads: path first, then fragment. The page the reader is on decides by
//! which rules.

use super::anchors::{self, Anchors, Meeting, Style};
use super::document::{Document, Link, LinkKind};
use super::git::Index;
use super::own::{Own, OwnTarget};
use super::read;
use super::site::{Site, below, within};
use super::target::{self, Joined, LocalTarget, Target, file_name, folder, is_line_fragment, join};
use super::tree::{self, Node, Tree};
use crate::config::Slug;
use crate::model::Severity;
use crate::rules::{Rule, links as rules};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Everything that links are judged against.
#[derive(Debug)]
pub(super) struct World {
    /// Root of the course.
    pub(super) root: PathBuf,
    /// The files.
    pub(super) tree: Tree,
    /// The VitePress sites.
    pub(super) sites: Vec<Site>,
    /// The docs root; whether it was named on the command line.
    pub(super) docs: (String, bool),
    /// Which rule makes ids.
    pub(super) slug: Slug,
    /// Whether fragments are checked.
    pub(super) check_anchors: bool,
    /// Whether links to other servers are kept, to be asked for.
    pub(super) ask_servers: bool,
    /// What git tracks, if there is a repository.
    pub(super) index: Option<Index>,
    /// Where repository and site are on the web.
    pub(super) own: Own,
    /// What was looked for on the disk: a folder is listed once a path, not once a link.
    disk: Mutex<HashMap<String, bool>>,
    documents: Vec<OnceLock<Document>>,
    ids: Vec<[OnceLock<Anchors>; 2]>,
}

/// A source as its reader sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'w> {
    /// Path of the source.
    pub(super) path: &'w str,
    /// Its index in the tree; `None` for a configuration file.
    pub(super) source: Option<usize>,
    /// The site that publishes it.
    pub(super) site: Option<&'w Site>,
    /// Which rule makes ids.
    pub(super) style: Style,
}

/// What is wrong with a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The rule.
    pub(super) rule: &'static Rule,
    /// Where it differs from the rule's.
    pub(super) severity: Option<Severity>,
    /// What was looked for.
    pub(super) sought: Sought,
}

/// What was looked for and not found, or found elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sought {
    /// Nothing that could be looked for.
    Nothing,
    /// A path relative to the root.
    Path(String),
    /// It exists under this path.
    Actual(String),
    /// A fragment of a source.
    Fragment(usize),
    /// Lines of a file that is shown rendered.
    Lines,
}

impl Fault {
    fn new(rule: &'static Rule, sought: Sought) -> Self {
        Fault { rule, severity: None, sought }
    }

    fn missing(path: impl Into<String>) -> Self {
        Fault::new(&rules::MISSING_FILE, Sought::Path(path.into()))
    }
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Landing {
    /// A Markdown file or notebook.
    Page(usize),
    /// A folder, shown with its README.
    Folder(String),
    /// Any other file, or something that cannot be looked into.
    Other,
}

/// Verdict over one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It leads somewhere.
    Fine,
    /// It leaves the repository.
    External,
    /// It is at fault.
    Fault(Fault),
}

impl World {
    /// A world over a tree whose documents are not read yet.
    pub(super) fn new(root: PathBuf, tree: Tree, sites: Vec<Site>, docs: (String, bool), slug: Slug) -> Self {
        let count = tree.sources.len();
        World {
            root,
            tree,
            sites,
            docs,
            slug,
            check_anchors: true,
            ask_servers: false,
            index: None,
            own: Own::default(),
            disk: Mutex::default(),
            documents: std::iter::repeat_with(OnceLock::new).take(count).collect(),
            ids: std::iter::repeat_with(Default::default).take(count).collect(),
        }
    }

    /// The document of a source, read when it is first asked for.
    pub(super) fn document(&self, source: usize) -> &Document {
        self.documents[source].get_or_init(|| {
            let source = &self.tree.sources[source];
            read::read(&source.file, source.kind)
        })
    }

    /// The reader of a source.
    pub(super) fn reader(&self, source: usize) -> Reader<'_> {
        let path = self.tree.sources[source].path.as_str();
        // Of nested sites the innermost is the reader's.
        let sites = self.sites.iter().filter(|site| site.holds(path));
        let site = sites.max_by_key(|site| site.pages.len());
        Reader { path, source: Some(source), site, style: self.style(site.is_some()) }
    }

    /// The reader of a link in the configuration of a site.
    pub(super) fn config_reader<'w>(&'w self, site: &'w Site, path: &'w str) -> Reader<'w> {
        Reader { path, source: None, site: Some(site), style: self.style(true) }
    }

    fn style(&self, on_site: bool) -> Style {
        match self.slug {
            Slug::Github => Style::Github,
            Slug::Vitepress => Style::Vitepress,
            Slug::Auto if on_site => Style::Vitepress,
            Slug::Auto => Style::Github,
        }
    }

    /// The ids of a source under a rule.
    pub(super) fn anchors(&self, source: usize, style: Style) -> &Anchors {
        self.ids[source][usize::from(style == Style::Vitepress)].get_or_init(|| {
            let document = self.document(source);
            let entry = &self.tree.sources[source];
            let headings = anchors::headings(&entry.path, document, &|from, written| self.include(from, written));
            Anchors::of(document, entry.kind, style, &headings)
        })
    }

    fn include(&self, from: &str, written: &str) -> Option<(String, &Document)> {
        let joined = match written.strip_prefix("@/").or_else(|| written.strip_prefix('@')) {
            Some(rest) => {
                let site = self.sites.iter().filter(|site| below(&site.pages, from).is_some());
                join(&site.max_by_key(|site| site.pages.len())?.pages, rest)
            }
            None => join(folder(from), written),
        };
        let Joined::Inside(path) = joined else { return None };
        let source = self.tree.source(&path)?;
        Some((path, self.document(source)))
    }

    /// Judges one link.
    pub(super) fn judge(&self, reader: Reader<'_>, link: &Link) -> Verdict {
        let local = match target::parse(&link.target) {
            Target::External => return self.own_address(reader, link),
            Target::Local(local) => local,
            Target::Empty => return Verdict::Fault(Fault::new(&rules::EMPTY_TARGET, Sought::Nothing)),
            Target::Placeholder => return Verdict::Fault(Fault::new(&rules::PLACEHOLDER, Sought::Nothing)),
            Target::MachineLocal => return Verdict::Fault(Fault::new(&rules::LOCAL_PATH, Sought::Nothing)),
            Target::Attachment(name) => return self.attachment(reader, link, &name),
        };
        let Err(fault) = self.local(reader, link, &local) else { return Verdict::Fine };
        // A file that the site leaves out is read on GitHub, or pasted into pages: a link
        // that is right in either place is right.
        let left_out = reader.source.is_some() && reader.site.is_some_and(|site| !site.has_page(reader.path));
        if left_out {
            let on_github = Reader { site: None, style: self.style(false), ..reader };
            if self.local(on_github, link, &local).is_ok() {
                return Verdict::Fine;
            }
        }
        Verdict::Fault(fault)
    }

    fn local(&self, reader: Reader<'_>, link: &Link, local: &LocalTarget<'_>) -> Result<(), Fault> {
        let landing = self.path(reader, link, local)?;
        self.fragment(reader, link, local, &landing)
    }

    /// An address of the web: one's own is checked here, any other is left alone.
    fn own_address(&self, reader: Reader<'_>, link: &Link) -> Verdict {
        let fault = match self.own.target(&link.target) {
            Some(OwnTarget::File(path, fragment)) => self.own_file(reader, link, &path, fragment).err(),
            Some(OwnTarget::Page(address)) => match self.published() {
                Some(site) => self.own_page(site, link, &address).err(),
                None => return Verdict::External,
            },
            None => return Verdict::External,
        };
        fault.map_or(Verdict::Fine, Verdict::Fault)
    }

    /// A file of the repository as GitHub shows it, whatever page the link stands on.
    fn own_file(&self, reader: Reader<'_>, link: &Link, path: &str, fragment: Option<&str>) -> Result<(), Fault> {
        let landing = self.exact(path, false)?;
        let reader = Reader { style: Style::Github, ..reader };
        let local = LocalTarget { path: path.into(), query: "", fragment };
        self.fragment(reader, link, &local, &landing)
    }

    /// A page of the site by its address: the browser goes there, nothing is rewritten.
    fn own_page(&self, site: &Site, link: &Link, address: &str) -> Result<(), Fault> {
        let Target::Local(local) = target::parse(address) else { return Ok(()) };
        let reader = Reader { path: &site.pages, source: None, site: Some(site), style: self.style(true) };
        let raw = Link { kind: LinkKind::HtmlLink, ..link.clone() };
        let landing = self.site_page(reader, site, &local.path)?;
        self.fragment(reader, &raw, &local, &landing)
    }

    /// The site that is published: that of the docs root, else the only one.
    fn published(&self) -> Option<&Site> {
        let of_docs = self.sites.iter().find(|site| site.home == self.docs.0);
        let only = if let [only] = self.sites.as_slice() { Some(only) } else { None };
        of_docs.or(only)
    }

    fn attachment(&self, reader: Reader<'_>, link: &Link, name: &str) -> Verdict {
        let known = reader.source.is_some_and(|source| {
            self.document(source).attachments.iter().any(|(cell, known)| *cell == link.place.cell && known == name)
        });
        if known { Verdict::Fine } else { Verdict::Fault(Fault::new(&rules::MISSING_ATTACHMENT, Sought::Nothing)) }
    }

    fn path(&self, reader: Reader<'_>, link: &Link, local: &LocalTarget<'_>) -> Result<Landing, Fault> {
        let path = local.path.as_ref();
        if path.is_empty() {
            return Ok(reader.source.map_or(Landing::Other, Landing::Page));
        }
        let landing = match reader.site {
            Some(site) if link.kind.is_asset() => self.site_asset(reader, site, link.kind, path),
            Some(site) if link.kind == LinkKind::Config => self.config_page(reader, site, path),
            // The theme reads these from the root, unless they begin with a dot.
            Some(site) if link.kind == LinkKind::FrontMatter && !path.starts_with(['.', '/']) => {
                self.site_page(reader, site, &format!("/{path}"))
            }
            Some(site) => self.site_page(reader, site, path),
            None => self.repository_path(reader, path),
        };
        match landing {
            // Only a link that leads nowhere is worth a word about its slashes.
            Err(_) if path.contains('\\') => {
                let joined = join(folder(reader.path), &path.replace('\\', "/"));
                let sought = if let Joined::Inside(path) = joined { Sought::Path(path) } else { Sought::Nothing };
                Err(Fault::new(&rules::BACKSLASH, sought))
            }
            other => other,
        }
    }

    // ---- Repository: GitHub, Jupyter ----

    fn repository_path(&self, reader: Reader<'_>, path: &str) -> Result<Landing, Fault> {
        let joined = match path.strip_prefix('/') {
            Some(rest) => self.rooted(reader, rest),
            None => join(folder(reader.path), path),
        };
        match joined {
            Joined::Inside(inside) => self.exact(&inside, path.ends_with('/')),
            Joined::Above(2, rest) => self.github_page(&rest),
            Joined::Above(_, rest) => Err(Fault::new(&rules::OUTSIDE_ROOT, Sought::Path(rest))),
        }
    }

    /// `/x`: the docs root for its own pages when it was named, else the root of the
    /// repository; for a docs folder of another site generator either will do.
    fn rooted(&self, reader: Reader<'_>, rest: &str) -> Joined {
        let (docs, named) = &self.docs;
        let in_docs = !docs.is_empty() && below(docs, reader.path).is_some();
        let in_repository = join("", rest);
        if !in_docs {
            return in_repository;
        }
        if *named {
            return join(docs, rest);
        }
        match (&in_repository, join(docs, rest)) {
            (Joined::Inside(path), Joined::Inside(other))
                if self.tree.get(path).is_none() && self.tree.get(&other).is_some() =>
            {
                Joined::Inside(other)
            }
            _ => in_repository,
        }
    }

    /// `../../issues` from the root of the repository is a page of it on GitHub, where a
    /// file is shown two folders below the repository's address.
    fn github_page(&self, rest: &str) -> Result<Landing, Fault> {
        let (page, below) = rest.split_once('/').unwrap_or((rest, ""));
        if matches!(page, "blob" | "tree" | "raw" | "edit" | "blame") {
            return match below.split_once('/') {
                Some(("main" | "master" | "HEAD", path)) => self.exact(path.trim_end_matches('/'), false),
                _ => Ok(Landing::Other),
            };
        }
        if rest.is_empty() || GITHUB_PAGES.contains(&page) {
            return Ok(Landing::Other);
        }
        Err(Fault::new(&rules::OUTSIDE_ROOT, Sought::Path(rest.to_owned())))
    }

    /// A path of the repository, byte by byte.
    fn exact(&self, path: &str, as_folder: bool) -> Result<Landing, Fault> {
        match self.tree.get(path) {
            Some(Node::Folder) => Ok(Landing::Folder(path.to_owned())),
            Some(_) if as_folder => Err(Fault::missing(path)),
            Some(node) => self.tracked(path, node),
            None => self.absent(path),
        }
    }

    fn tracked(&self, path: &str, node: Node) -> Result<Landing, Fault> {
        if self.index.as_ref().is_some_and(|index| !index.tracks(path)) {
            return Err(Fault::new(&rules::UNTRACKED_TARGET, Sought::Actual(path.to_owned())));
        }
        Ok(self.landing(path, node))
    }

    fn landing(&self, path: &str, node: Node) -> Landing {
        match node {
            Node::Source(source) => Landing::Page(source),
            Node::Symlink => self.behind_symlink(path).map_or(Landing::Other, Landing::Page),
            _ => Landing::Other,
        }
    }

    /// The source that a path leads to through symbolic links inside the root.
    fn behind_symlink(&self, path: &str) -> Option<usize> {
        let root = self.root.canonicalize().ok()?;
        let real = self.root.join(path).canonicalize().ok()?;
        let inside = real.strip_prefix(root).ok()?.to_str()?;
        self.tree.source(&inside.replace('\\', "/"))
    }

    /// A path that the walk did not see.
    fn absent(&self, path: &str) -> Result<Landing, Fault> {
        if self.index.as_ref().is_some_and(|index| index.tracks(path)) {
            // Tracked although ignored, or not checked out here.
            return Ok(Landing::Other);
        }
        if let Some(actual) = self.tree.in_other_case(path).first() {
            return Err(Fault::new(&rules::CASE_MISMATCH, Sought::Actual(actual.clone())));
        }
        let through_symlink = || {
            path.match_indices('/').any(|(at, _)| self.tree.get(&path[..at]) == Some(Node::Symlink))
                && self.on_disk(path)
        };
        if through_symlink() {
            return Ok(self.behind_symlink(path).map_or(Landing::Other, Landing::Page));
        }
        if self.on_disk(path) {
            return Err(Fault::new(&rules::UNTRACKED_TARGET, Sought::Actual(path.to_owned())));
        }
        Err(Fault::missing(path))
    }

    fn on_disk(&self, path: &str) -> bool {
        let mut known = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = known.get(path) {
            return *answer;
        }
        let answer = tree::on_disk(&self.root, path);
        known.insert(path.to_owned(), answer);
        answer
    }

    // ---- Site: VitePress ----

    /// A link of a page. VitePress takes the ending off and looks for the page.
    fn site_page(&self, reader: Reader<'_>, site: &Site, path: &str) -> Result<Landing, Fault> {
        let joined = match path.strip_prefix('/') {
            Some(rest) => join(&site.pages, rest),
            None => join(folder(reader.path), path),
        };
        let inside = match joined {
            Joined::Inside(inside) => inside,
            Joined::Above(_, rest) => return Err(Fault::new(&rules::OUTSIDE_ROOT, Sought::Path(rest))),
        };
        let Some(address) = below(&site.pages, &inside) else {
            return match self.tree.get(&inside) {
                Some(_) => Err(Fault::new(&rules::NOT_ON_SITE, Sought::Actual(inside))),
                None => self.absent(&inside).and(Err(Fault::missing(&inside))),
            };
        };
        if is_asset(address) && !path.ends_with('/') {
            return self.site_file(site, address, &inside);
        }
        let stem = address.strip_suffix(".md").or_else(|| address.strip_suffix(".html")).unwrap_or(address);
        let page = match (path.ends_with('/'), stem.is_empty()) {
            (true, true) => "index".to_owned(),
            (true, false) => format!("{stem}/index"),
            (false, _) => stem.to_owned(),
        };
        if let Some(found) = site.page(&self.tree, &page) {
            return match self.tree.get(&found) {
                Some(node) => self.tracked(&found, node),
                None => Ok(Landing::Other),
            };
        }
        let served = site.public(&self.tree, &format!("{page}.html")).or_else(|| site.public(&self.tree, address));
        if served.is_some() || site.is_dynamic(&self.tree, &page) {
            return Ok(Landing::Other);
        }
        Err(self.no_page(site, &page, &inside))
    }

    /// Why an address of the site has no page.
    fn no_page(&self, site: &Site, page: &str, inside: &str) -> Fault {
        let file = within(&site.pages, &format!("{page}.md"));
        let index = format!("{inside}/index.md");
        let written = [inside, &file, &index]
            .into_iter()
            .find(|path| self.tree.get(path).is_some_and(|node| node != Node::Folder));
        if let Some(path) = written {
            return Fault::new(&rules::NOT_ON_SITE, Sought::Actual(path.to_owned()));
        }
        for path in [&file, inside] {
            if let Some(actual) = self.tree.in_other_case(path).first().filter(|actual| *actual != inside) {
                return Fault::new(&rules::CASE_MISMATCH, Sought::Actual(actual.clone()));
            }
        }
        if self.on_disk(&file) {
            return Fault::new(&rules::UNTRACKED_TARGET, Sought::Actual(file));
        }
        // `/README.md` of the repository is no address of the site.
        let in_repository =
            below(&site.pages, inside).filter(|path| self.tree.get(path).is_some_and(|node| node != Node::Folder));
        match in_repository {
            Some(path) if !site.pages.is_empty() => Fault::new(&rules::NOT_ON_SITE, Sought::Actual(path.to_owned())),
            _ => Fault::missing(inside),
        }
    }

    /// A link to a file that is no page, such as a PDF: only `public/` is copied.
    fn site_file(&self, site: &Site, address: &str, inside: &str) -> Result<Landing, Fault> {
        if site.public(&self.tree, address).is_some() {
            return Ok(Landing::Other);
        }
        match self.tree.get(inside) {
            Some(_) => {
                let fault = Fault::new(&rules::NOT_ON_SITE, Sought::Actual(inside.to_owned()));
                Err(Fault { severity: Some(Severity::Warning), ..fault })
            }
            None => self.absent(inside),
        }
    }

    /// A picture of a page: beside it, under the pages, or in `public/`.
    fn site_asset(&self, reader: Reader<'_>, site: &Site, kind: LinkKind, path: &str) -> Result<Landing, Fault> {
        if let Some(rest) = path.strip_prefix('/') {
            let Joined::Inside(address) = join("", rest) else { return Err(Fault::missing(rest)) };
            if site.public(&self.tree, &address).is_some() {
                return Ok(Landing::Other);
            }
            return self.exact(&within(&site.pages, &address), false);
        }
        let inside = match join(folder(reader.path), path) {
            Joined::Inside(inside) => inside,
            Joined::Above(_, rest) => return Err(Fault::new(&rules::OUTSIDE_ROOT, Sought::Path(rest))),
        };
        // Raw HTML without a dot in front is left as it is: an address of the site.
        let served = kind == LinkKind::HtmlAsset
            && !path.starts_with('.')
            && below(&site.pages, &inside).is_some_and(|address| site.public(&self.tree, address).is_some());
        if served { Ok(Landing::Other) } else { self.exact(&inside, false) }
    }

    /// A link of the configuration; a relative one begins with the `base` of its sidebar.
    fn config_page(&self, reader: Reader<'_>, site: &Site, path: &str) -> Result<Landing, Fault> {
        let root = Reader { path: &site.pages, ..reader };
        if path.starts_with('/') {
            return self.site_page(root, site, path);
        }
        let plain = self.site_page(root, site, &format!("/{path}"));
        let based = site.sidebar_bases().iter().map(|base| self.site_page(root, site, &format!("/{base}{path}")));
        match plain {
            Ok(landing) => Ok(landing),
            Err(fault) => based.into_iter().find_map(Result::ok).ok_or(fault),
        }
    }

    // ---- Fragments ----

    fn fragment(
        &self,
        reader: Reader<'_>,
        link: &Link,
        local: &LocalTarget<'_>,
        landing: &Landing,
    ) -> Result<(), Fault> {
        let Some(fragment) = local.fragment.filter(|_| self.check_anchors) else { return Ok(()) };
        let page = match landing {
            Landing::Page(source) => Some(*source),
            Landing::Folder(folder) => self.readme(folder),
            Landing::Other => return Ok(()),
        };
        if matches!(landing, Landing::Folder(_)) && fragment.eq_ignore_ascii_case("readme") {
            return Ok(());
        }
        let plain = local.query.split('&').any(|part| part.starts_with("plain="));
        if plain && is_line_fragment(fragment) {
            return Ok(());
        }
        let Some(source) = page else {
            return if fragment.is_empty() { Ok(()) } else { Err(Fault::new(&rules::MISSING_ANCHOR, Sought::Nothing)) };
        };
        self.anchor(reader, link, fragment, source)
    }

    fn anchor(&self, reader: Reader<'_>, link: &Link, fragment: &str, source: usize) -> Result<(), Fault> {
        if self.document(source).fault.is_some() {
            return Ok(());
        }
        let anchors = self.anchors(source, reader.style);
        if reader.style == Style::Vitepress && anchors.is_empty() && self.document(source).scripted {
            // A page that is one component: its ids are made in the browser.
            return Ok(());
        }
        match anchors::meet(anchors, fragment, reader.style, link.kind == LinkKind::Link) {
            Meeting::Exact => Ok(()),
            Meeting::OtherCase => Err(Fault::new(&rules::ANCHOR_CASE, Sought::Fragment(source))),
            Meeting::None
                if is_line_fragment(fragment) && reader.style == Style::Github && reader.source != Some(source) =>
            {
                Err(Fault::new(&rules::MISSING_ANCHOR, Sought::Lines))
            }
            Meeting::None => Err(Fault::new(&rules::MISSING_ANCHOR, Sought::Fragment(source))),
        }
    }

    /// The README that GitHub shows below the list of a folder.
    fn readme(&self, folder: &str) -> Option<usize> {
        let names = ["README.md", "readme.md", "Readme.md"];
        names.iter().find_map(|name| self.tree.source(&within(folder, name)))
    }
}

/// First part of the addresses of a repository on GitHub that are no files.
const GITHUB_PAGES: [&str; 33] = [
    "actions",
    "activity",
    "archive",
    "branches",
    "commit",
    "commits",
    "community",
    "compare",
    "contributors",
    "deployments",
    "discussions",
    "find",
    "fork",
    "forks",
    "graphs",
    "issues",
    "labels",
    "milestone",
    "milestones",
    "network",
    "new",
    "packages",
    "projects",
    "pull",
    "pulls",
    "pulse",
    "releases",
    "search",
    "security",
    "settings",
    "stargazers",
    "tags",
    "wiki",
];

/// Endings that VitePress takes for files and not for pages.
const ASSET_ENDINGS: &[&str] = &[
    "3g2", "3gp", "aac", "ai", "apng", "au", "avif", "bin", "bmp", "cer", "class", "conf", "crl", "css", "csv", "dll",
    "doc", "eps", "epub", "exe", "gif", "gz", "ics", "ief", "jar", "jpe", "jpeg", "jpg", "js", "json", "jsonld", "m4a",
    "man", "mid", "midi", "mjs", "mov", "mp2", "mp3", "mp4", "mpe", "mpeg", "mpg", "mpp", "oga", "ogg", "ogv", "ogx",
    "opus", "otf", "p10", "p7c", "p7m", "p7s", "pdf", "png", "ps", "qt", "roff", "rtf", "rtx", "ser", "svg", "t",
    "tif", "tiff", "tr", "ts", "tsv", "ttf", "txt", "vtt", "wav", "weba", "webm", "webp", "woff", "woff2", "xhtml",
    "xml", "yaml", "yml", "zip",
];

fn is_asset(address: &str) -> bool {
    let ending = file_name(address).rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| ASSET_ENDINGS.contains(&ending.as_str()))
}
