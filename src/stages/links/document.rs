//! What one Markdown file or notebook holds that matters to links.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a link is written; decides how its address is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum LinkKind {
    /// `[text](address)`, through a definition, or `<address>`.
    Link,
    /// `![text](address)`.
    Image,
    /// `<a href>`.
    HtmlLink,
    /// `<img src>` and its like.
    HtmlAsset,
    /// `link:` in the front matter of a VitePress page.
    FrontMatter,
    /// `link:` in the configuration of a VitePress site.
    Config,
}

impl LinkKind {
    /// Whether the address is loaded into the page instead of followed.
    pub(super) fn is_asset(self) -> bool {
        matches!(self, LinkKind::Image | LinkKind::HtmlAsset)
    }
}

/// A place as reports show it: 1-based, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    /// 1-based cell; 0 outside of notebooks.
    pub(super) cell: u32,
    /// 1-based line, inside the cell in a notebook.
    pub(super) line: u32,
    /// 1-based column in characters.
    pub(super) column: u32,
    /// Characters of the link on its first line.
    pub(super) length: u32,
}

/// One link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    /// Destination after CommonMark unescaping, not percent-decoded.
    pub(super) target: Box<str>,
    /// How it is written.
    pub(super) kind: LinkKind,
    /// Where.
    pub(super) place: Place,
    /// Bytes of the whole construct in the text (or cell) without byte-order mark.
    pub(super) span: Range<usize>,
    /// Index of the ignore comment that covers it.
    pub(super) ignored_by: Option<u32>,
}

/// One entry of the outline, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outline {
    /// A heading.
    Heading(Heading),
    /// `<!-- @include: path -->` of VitePress, as written.
    Include(Box<str>),
}

/// A heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heading {
    /// Text content of the rendered heading, as GitHub takes it.
    pub(super) text: Box<str>,
    /// As VitePress takes it, where that differs.
    pub(super) site_text: Option<Box<str>>,
    /// Written as `<h1>`, which VitePress gives no id.
    pub(super) html: bool,
    /// 1-based line, for includes of a range.
    pub(super) line: u32,
}

impl Heading {
    /// The text from which VitePress makes the id.
    pub(super) fn site_text(&self) -> &str {
        self.site_text.as_deref().unwrap_or(&self.text)
    }
}

/// A comment that accepts the links of a range.
#[derive(Debug)]
pub(super) struct IgnoreComment {
    /// Where the comment stands.
    pub(super) place: Place,
    /// Whether a finding was suppressed by it.
    pub(super) used: AtomicBool,
}

impl IgnoreComment {
    /// Remembers that the comment did something.
    pub(super) fn mark(&self) {
        self.used.store(true, Ordering::Relaxed);
    }
}

/// What one file holds.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// Links, sorted by place.
    pub(super) links: Vec<Link>,
    /// Headings and includes, in order.
    pub(super) outline: Vec<Outline>,
    /// Explicit ids of HTML elements.
    pub(super) ids: Vec<Box<str>>,
    /// Names of attachments with their cell.
    pub(super) attachments: Vec<(u32, String)>,
    /// Whether the page brings a script: a Vue component may make ids of its own.
    pub(super) scripted: bool,
    /// Ignore comments.
    pub(super) ignores: Vec<IgnoreComment>,
    /// Why the file could not be read.
    pub(super) fault: Option<ReadFault>,
}

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadFault {
    /// The system refused.
    Io(String),
    /// Not UTF-8; the offset of the first bad byte.
    Encoding(usize),
    /// Not a notebook.
    Notebook {
        /// What is wrong.
        message: String,
        /// 1-based line of the file.
        line: u32,
        /// 1-based column.
        column: u32,
    },
}
