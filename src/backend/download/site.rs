//! Where a hub is: its address or mirror, its token, the addresses of its parts.

use super::error::DownloadError;
use super::listing::Listing;
use crate::backend::model_id::ModelId;
use url::Url;

/// A hub that models come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hub {
    /// Hugging Face, or a mirror of it.
    HuggingFace,
    /// ModelScope, or a mirror of it.
    ModelScope,
}

impl Hub {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Hub::HuggingFace => "Hugging Face",
            Hub::ModelScope => "ModelScope",
        }
    }

    /// What a model without a revision stands at.
    pub(super) fn default_revision(self) -> &'static str {
        match self {
            Hub::HuggingFace => "main",
            Hub::ModelScope => "master",
        }
    }

    /// Variable that names another address of it.
    pub(super) fn endpoint_variable(self) -> &'static str {
        match self {
            Hub::HuggingFace => "HF_ENDPOINT",
            Hub::ModelScope => "MODELSCOPE_ENDPOINT",
        }
    }

    /// Variable that holds a token for it.
    pub(super) fn token_variable(self) -> &'static str {
        match self {
            Hub::HuggingFace => "HF_TOKEN",
            Hub::ModelScope => "MODELSCOPE_API_TOKEN",
        }
    }
}

/// A hub with its address and our token.
pub(super) struct Site {
    pub(super) hub: Hub,
    base: Url,
    token: Option<String>,
}

impl Site {
    /// The hub as the environment describes it: HF_ENDPOINT, HF_TOKEN; MODELSCOPE_ENDPOINT
    /// (once MODELSCOPE_DOMAIN), MODELSCOPE_API_TOKEN. The names are the libraries' own.
    pub(super) fn of(hub: Hub, variable: impl Fn(&str) -> Option<String>) -> Result<Self, DownloadError> {
        let (default, older) = match hub {
            Hub::HuggingFace => ("https://huggingface.co", None),
            Hub::ModelScope => ("https://modelscope.cn", Some("MODELSCOPE_DOMAIN")),
        };
        let named = variable(hub.endpoint_variable()).or_else(|| variable(older?));
        let address = named.unwrap_or_else(|| default.to_owned());
        let address = if address.contains("://") { address } else { format!("https://{address}") };
        let wrong = |cause: String| DownloadError::Unusable { host: hub.endpoint_variable().to_owned(), cause };
        let base = Url::parse(&address).map_err(|error| wrong(format!("it is no address: {error}")))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(wrong("an http:// or https:// address is needed".to_owned()));
        }
        let token = variable(hub.token_variable());
        // A hub may send it back in an error.
        token.as_deref().inspect(|token| crate::secrets::keep(token));
        Ok(Site { hub, base, token })
    }

    /// Its host, for messages.
    pub(super) fn host(&self) -> String {
        host(&self.base)
    }

    /// The token, if it may go to this address: the hub's own origin and no other, and
    /// never in clear text over a network.
    pub(super) fn token_for(&self, url: &Url) -> Option<&str> {
        let same = url.origin() == self.base.origin();
        let private = url.scheme() == "https" || is_loopback(url);
        self.token.as_deref().filter(|_| same && private)
    }

    /// Whether an address is the hub's own, and not one that it sent us to.
    pub(super) fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// The page of a model that people read.
    pub(super) fn page(&self, id: &ModelId) -> String {
        match self.hub {
            Hub::HuggingFace => self.at(id.repo.split('/')).to_string(),
            Hub::ModelScope => self.at(["models"].into_iter().chain(id.repo.split('/'))).to_string(),
        }
    }

    /// Where the list of a model's files is.
    pub(super) fn listing_url(&self, id: &ModelId) -> Url {
        let revision = id.revision.as_deref().unwrap_or(self.hub.default_revision());
        let repo = id.repo.split('/');
        match self.hub {
            Hub::HuggingFace => {
                let mut url = self.at(["api", "models"].into_iter().chain(repo).chain(["revision", revision]));
                url.query_pairs_mut().append_pair("blobs", "true");
                url
            }
            Hub::ModelScope => {
                let path = ["api", "v1", "models"].into_iter().chain(repo).chain(["repo", "files"]);
                let mut url = self.at(path);
                url.query_pairs_mut().append_pair("Revision", revision).append_pair("Recursive", "True");
                url
            }
        }
    }

    /// Reads that list.
    pub(super) fn listing(&self, text: &str) -> Result<Listing, DownloadError> {
        match self.hub {
            Hub::HuggingFace => Listing::of_hugging_face(text, &self.host()),
            Hub::ModelScope => Listing::of_model_scope(text, &self.host()),
        }
    }

    /// Where a file is, at a commit or the revision that was asked for.
    pub(super) fn file_url(&self, id: &ModelId, commit: Option<&str>, path: &str) -> Url {
        let revision = commit.or(id.revision.as_deref()).unwrap_or(self.hub.default_revision());
        let repo = id.repo.split('/');
        match self.hub {
            Hub::HuggingFace => self.at(repo.chain(["resolve", revision]).chain(path.split('/'))),
            Hub::ModelScope => {
                let mut url = self.at(["api", "v1", "models"].into_iter().chain(repo).chain(["repo"]));
                url.query_pairs_mut().append_pair("Revision", revision).append_pair("FilePath", path);
                url
            }
        }
    }

    fn at<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.base.clone();
        url.set_query(None);
        // Always possible for the schemes that `of` lets pass.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }
}

/// Host and port, never more of an address: a query may be a signature.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(hub: Hub, set: &[(&str, &str)]) -> Site {
        let find = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Site::of(hub, find).unwrap_or_else(|error| panic!("{error:?}"))
    }

    #[test]
    fn addresses_are_the_hubs_own() {
        let id = ModelId::parse("o/n@refs/pr/1").unwrap();
        let face = site(Hub::HuggingFace, &[("HF_ENDPOINT", "http://127.0.0.1:81/mirror/")]);
        assert_eq!(
            face.listing_url(&id).as_str(),
            "http://127.0.0.1:81/mirror/api/models/o/n/revision/refs%2Fpr%2F1?blobs=true"
        );
        assert_eq!(
            face.file_url(&id, Some("abc"), "a b/c.json").as_str(),
            "http://127.0.0.1:81/mirror/o/n/resolve/abc/a%20b/c.json"
        );
        let id = ModelId::parse("o/n").unwrap();
        let scope = site(Hub::ModelScope, &[("MODELSCOPE_DOMAIN", "m.example")]);
        assert_eq!(
            scope.listing_url(&id).as_str(),
            "https://m.example/api/v1/models/o/n/repo/files?Revision=master&Recursive=True"
        );
        assert_eq!(
            scope.file_url(&id, None, "a/b.json").as_str(),
            "https://m.example/api/v1/models/o/n/repo?Revision=master&FilePath=a%2Fb.json"
        );
        assert_eq!(site(Hub::HuggingFace, &[]).page(&id), "https://huggingface.co/o/n");
    }

    #[test]
    fn a_token_goes_to_its_own_origin_and_never_in_clear_over_a_network() {
        let url = |text: &str| Url::parse(text).unwrap();
        let local = site(Hub::HuggingFace, &[("HF_ENDPOINT", "http://127.0.0.1:81"), ("HF_TOKEN", "t")]);
        assert_eq!(local.token_for(&url("http://127.0.0.1:81/x")), Some("t"));
        for other in ["http://127.0.0.1:82/x", "https://127.0.0.1:81/x", "http://localhost:81/x"] {
            assert_eq!(local.token_for(&url(other)), None, "{other}");
        }
        let clear = site(Hub::HuggingFace, &[("HF_ENDPOINT", "http://mirror.example"), ("HF_TOKEN", "t")]);
        assert_eq!(clear.token_for(&url("http://mirror.example/x")), None);
        let usual = site(Hub::HuggingFace, &[("HF_TOKEN", "t")]);
        assert_eq!(usual.token_for(&url("https://huggingface.co/x")), Some("t"));
    }

    #[test]
    fn an_endpoint_that_is_none_is_named_by_its_variable() {
        for wrong in ["ftp://x", "http://", "https://a b"] {
            let error =
                Site::of(Hub::HuggingFace, |name| (name == "HF_ENDPOINT").then(|| wrong.to_owned())).err().unwrap();
            assert!(error.cause().get(crate::model::Lang::En).contains("HF_ENDPOINT"), "{wrong}");
        }
    }
}
