//! Addresses of the repository itself and of its published site. They are on the web
//! and yet name files at hand, so they are checked here, without asking anybody.

use super::site::within;
use super::target::{Joined, decode, join};
use crate::config::LinksSettings;

/// Where the repository and the site are on the web.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// `owner/name`, lower-case.
    repository: Option<String>,
    branches: Vec<String>,
    /// Host and path of the site with a slash behind, without scheme.
    site: Option<String>,
}

/// What an address of one's own names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OwnTarget<'a> {
    /// A path of the repository, with the fragment.
    File(String, Option<&'a str>),
    /// An address of the site from its root, with the fragment.
    Page(String),
}

const BRANCHES: [&str; 3] = ["main", "master", "HEAD"];

impl Own {
    /// From the settings, and from the git remote where they say nothing.
    pub(super) fn new(settings: &LinksSettings, remote: Option<&str>) -> Self {
        let address = Some(settings.repository.as_str()).filter(|address| !address.is_empty()).or(remote);
        let branches = match settings.branches.as_slice() {
            [] => BRANCHES.map(str::to_owned).to_vec(),
            named => named.to_vec(),
        };
        let site = without_scheme(&settings.site).map(|site| format!("{}/", site.trim_end_matches('/')));
        Own { repository: address.and_then(owner_and_name), branches, site }
    }

    /// `owner/name` on GitHub, as far as it is known.
    pub(super) fn repository(&self) -> Option<&str> {
        self.repository.as_deref()
    }

    /// The branch to name in new links.
    pub(super) fn branch(&self) -> &str {
        self.branches.first().map_or("main", String::as_str)
    }

    /// What an address names, if it is one's own and names a file.
    pub(super) fn target<'a>(&self, address: &'a str) -> Option<OwnTarget<'a>> {
        let rest = without_scheme(address)?;
        self.page(rest).or_else(|| self.file(rest))
    }

    fn page<'a>(&self, rest: &'a str) -> Option<OwnTarget<'a>> {
        let site = self.site.as_deref()?;
        let (host, _) = site.split_once('/')?;
        let same_host = rest.get(..host.len()).is_some_and(|start| start.eq_ignore_ascii_case(host));
        let path = rest.get(host.len()..).filter(|_| same_host)?;
        let below = match path.strip_prefix(&site[host.len()..]) {
            Some(below) => below,
            // The site's address without its last slash.
            None if path == site[host.len()..].trim_end_matches('/') => "",
            None => return None,
        };
        Some(OwnTarget::Page(format!("/{below}")))
    }

    /// `github.com/o/n/blob/main/path`, `raw.githubusercontent.com/o/n/main/path`, and
    /// services that show files of GitHub under `…/github/o/n/blob/main/path`.
    fn file<'a>(&self, rest: &'a str) -> Option<OwnTarget<'a>> {
        let repository = self.repository.as_deref()?;
        let (host, path) = rest.split_once('/')?;
        let host = host.to_ascii_lowercase();
        let path = match host.trim_start_matches("www.") {
            "github.com" | "github.dev" => Some(path),
            "raw.githubusercontent.com" => Some(path),
            _ => path.split_once("github/").map(|(_, path)| path),
        }?;
        let own = path.get(..repository.len()).is_some_and(|start| start.eq_ignore_ascii_case(repository));
        let inside = path.get(repository.len()..).filter(|_| own)?.strip_prefix('/')?;
        let inside = if host == "raw.githubusercontent.com" {
            inside
        } else {
            let (view, inside) = inside.split_once('/')?;
            matches!(view, "blob" | "tree" | "raw" | "edit" | "blame").then_some(inside)?
        };
        let inside = inside.strip_prefix("refs/heads/").unwrap_or(inside);
        let (before, fragment) = match inside.split_once('#') {
            Some((before, fragment)) => (before, Some(fragment)),
            None => (inside, None),
        };
        let (before, query) = before.split_once('?').unwrap_or((before, ""));
        // `?plain=1` shows the source, whose lines are no headings.
        let fragment = fragment.filter(|_| !query.contains("plain="));
        let branch = self.branches.iter().find(|branch| {
            before.strip_prefix(branch.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })?;
        match join("", &decode(&before[branch.len()..])) {
            Joined::Inside(path) => Some(OwnTarget::File(path, fragment)),
            Joined::Above(..) => None,
        }
    }

    /// The address of a file on GitHub, to write where the site does not publish it.
    pub(super) fn blob(&self, path: &str) -> Option<String> {
        let repository = self.repository()?;
        let path = within("", &super::target::encode(path));
        Some(format!("https://github.com/{repository}/blob/{}/{path}", self.branch()))
    }
}

fn without_scheme(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once("://")?;
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")).then_some(rest)
}

/// `owner/name` of `https://github.com/owner/name.git`, `git@github.com:owner/name`.
fn owner_and_name(address: &str) -> Option<String> {
    let (_, path) = address.split_once("github.com")?;
    let mut parts = path.trim_start_matches([':', '/']).trim_end_matches('/').split('/');
    let (owner, name) = (parts.next()?, parts.next()?);
    let name = name.strip_suffix(".git").unwrap_or(name);
    (!owner.is_empty() && !name.is_empty()).then(|| format!("{owner}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Own {
        let settings = LinksSettings { site: "https://o.github.io/n/".to_owned(), ..LinksSettings::default() };
        Own::new(&settings, Some("git@github.com:O/n.git"))
    }

    #[test]
    fn addresses_of_the_repository_are_files() {
        let own = own();
        let file = |path: &str, fragment| Some(OwnTarget::File(path.to_owned(), fragment));
        assert_eq!(own.target("https://github.com/o/N/blob/main/a%20b.md#x"), file("a b.md", Some("x")));
        assert_eq!(own.target("http://www.github.com/O/n/tree/master/docs/"), file("docs", None));
        assert_eq!(own.target("https://raw.githubusercontent.com/O/n/refs/heads/main/a.png"), file("a.png", None));
        assert_eq!(own.target("https://colab.research.google.com/github/O/n/blob/main/a.ipynb"), file("a.ipynb", None));
        assert_eq!(own.target("https://nbviewer.org/github/O/n/blob/main/a.ipynb"), file("a.ipynb", None));
        assert_eq!(own.target("https://github.com/O/n/blob/main/a.md?plain=1#L3"), file("a.md", None));
        for other in [
            "https://github.com/O/n/issues",
            "https://github.com/O/n2/blob/main/a",
            "https://github.com/O/n/blob/v1/a",
            "https://github.com/O/n",
        ] {
            assert_eq!(own.target(other), None, "{other}");
        }
    }

    #[test]
    fn addresses_of_the_site_are_pages() {
        let own = own();
        assert_eq!(own.target("https://O.github.io/n/guide#x"), Some(OwnTarget::Page("/guide#x".to_owned())));
        assert_eq!(own.target("https://o.github.io/n"), Some(OwnTarget::Page("/".to_owned())));
        assert_eq!(own.target("https://o.github.io/nn/"), None);
    }
}
