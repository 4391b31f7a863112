//! One request to a hub: redirects by hand, so that a token stays with its host, and
//! every refusal sorted into "give up" and "again".

use super::error::DownloadError;
use super::site::{Site, host};
use crate::backend::model_id::ModelId;
use reqwest::header::{AUTHORIZATION, COOKIE, ETAG, IF_RANGE, LOCATION, RANGE, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use std::time::Duration;
use url::Url;

/// Silence longer than this is a cut connection.
const SILENCE: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(10);
/// A server that asks to wait longer than this is left for another day.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
const MAX_REDIRECTS: usize = 10;
/// A list of files larger than this is none, in bytes.
const MAX_LISTING: usize = 64 << 20;
/// The first pause before another try; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Why a request came to nothing.
pub(super) enum Trouble {
    /// Another try changes nothing.
    Fatal(DownloadError),
    /// Another try may do.
    Again {
        /// What to say when no try does.
        error: DownloadError,
        /// How long the server wants to be left alone.
        after: Option<Duration>,
    },
}

impl Trouble {
    /// What to say when it is given up.
    pub(super) fn into_error(self) -> DownloadError {
        match self {
            Trouble::Fatal(error) | Trouble::Again { error, .. } => error,
        }
    }
}

/// Waits before the `failures`th new try, as long as the server asked for or twice as
/// long as the time before.
pub(super) async fn pause(failures: u32, after: Option<Duration>) {
    let grown = FIRST_PAUSE * 2_u32.pow(failures.saturating_sub(1).min(6));
    tokio::time::sleep(after.unwrap_or(grown)).await;
}

/// The part of a file that is still wanted.
pub(super) struct Rest<'a> {
    /// Bytes that are here.
    pub(super) from: u64,
    /// Name that the server gave to the content they are of.
    pub(super) etag: Option<&'a str>,
}

/// A hub that is asked about one model.
pub(super) struct Web<'a> {
    client: reqwest::Client,
    pub(super) site: &'a Site,
    pub(super) id: &'a ModelId,
}

impl<'a> Web<'a> {
    /// Sets up the connection.
    pub(super) fn new(site: &'a Site, id: &'a ModelId) -> Result<Self, DownloadError> {
        // The provider can be installed once; a second call finds it there.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .user_agent(concat!("verify/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| DownloadError::Unusable { host: site.host(), cause: error.to_string() })?;
        Ok(Web { client, site, id })
    }

    /// The text of a list of files, tried up to three times.
    pub(super) async fn listing(&self) -> Result<String, DownloadError> {
        let mut failures = 0;
        loop {
            match self.listing_once().await {
                Ok(text) => return Ok(text),
                Err(Trouble::Again { after, .. }) if failures < 2 => {
                    failures += 1;
                    pause(failures, after).await;
                }
                Err(trouble) => return Err(trouble.into_error()),
            }
        }
    }

    async fn listing_once(&self) -> Result<String, Trouble> {
        let url = self.site.listing_url(self.id);
        let mut response = self.get(url, None, None).await?;
        let mut text = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.broken(&error, self.site.host()))? {
            text.extend_from_slice(&chunk);
            if text.len() > MAX_LISTING {
                let cause = format!("its list of files is larger than {} MiB", MAX_LISTING >> 20);
                return Err(Trouble::Fatal(DownloadError::Unusable { host: self.site.host(), cause }));
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Gets an address, following redirects. Statuses that come back: 200, and for a
    /// part of a file 206 and 416.
    pub(super) async fn get(&self, url: Url, file: Option<&str>, rest: Option<&Rest<'_>>) -> Result<Response, Trouble> {
        let mut url = url;
        for _ in 0..MAX_REDIRECTS {
            let response = self.request(&url, rest).await?;
            match response.status() {
                StatusCode::OK => return Ok(response),
                StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE if rest.is_some() => {
                    return Ok(response);
                }
                status if status.is_redirection() => url = self.next(&url, &response)?,
                _ => return Err(self.refused(&url, &response, file)),
            }
        }
        let cause = format!("more than {MAX_REDIRECTS} redirects");
        Err(Trouble::Fatal(DownloadError::Unusable { host: host(&url), cause }))
    }

    async fn request(&self, url: &Url, rest: Option<&Rest<'_>>) -> Result<Response, Trouble> {
        let mut request = self.client.get(url.clone());
        if let Some(token) = self.site.token_for(url) {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            if self.site.hub == super::Hub::ModelScope {
                // Older routes of it know the token by this cookie only.
                request = request.header(COOKIE, format!("m_session_id={token}"));
            }
        }
        if let Some(rest) = rest {
            request = request.header(RANGE, format!("bytes={}-", rest.from));
            if let Some(etag) = rest.etag {
                request = request.header(IF_RANGE, etag);
            }
        }
        request.send().await.map_err(|error| self.broken(&error, host(url)))
    }

    /// Where a redirect leads.
    fn next(&self, url: &Url, response: &Response) -> Result<Url, Trouble> {
        let unusable =
            |cause: &str| Trouble::Fatal(DownloadError::Unusable { host: host(url), cause: cause.to_owned() });
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let next =
            location.and_then(|location| url.join(location).ok()).ok_or_else(|| unusable("a redirect to nowhere"))?;
        match (url.scheme(), next.scheme()) {
            (_, "https") | ("http", "http") => Ok(next),
            _ => Err(unusable("a redirect away from https")),
        }
    }

    /// A connection that failed or broke.
    pub(super) fn broken(&self, error: &reqwest::Error, host: String) -> Trouble {
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        let cause =
            if error.is_timeout() { format!("no answer for {} s", SILENCE.as_secs()) } else { cause.to_string() };
        let error = DownloadError::Unreachable { host, cause, variable: self.site.hub.endpoint_variable() };
        Trouble::Again { error, after: None }
    }

    /// A status that is not what was asked for.
    fn refused(&self, url: &Url, response: &Response, file: Option<&str>) -> Trouble {
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        // What another host refuses is an address that ran out, not our right to the model.
        if matches!(status, 401 | 403 | 408 | 425 | 429 | 500..=599) && (status > 403 || !self.site.is_own(url)) {
            return busy(host(url), status, header(RETRY_AFTER.as_str()).and_then(wait_of));
        }
        let variable = self.site.hub.token_variable();
        let (what, page) = (self.id.to_string(), self.site.page(self.id));
        let code = header("x-error-code").unwrap_or_default();
        Trouble::Fatal(match (status, code) {
            (403, _) | (401, "GatedRepo") => DownloadError::Gated { what, variable, page },
            (401, _) => {
                let token_sent = self.site.token_for(url).is_some();
                DownloadError::Unauthorized { what, variable, token_sent, page }
            }
            (404 | 410, code) => {
                let revision = self.id.revision.as_ref().filter(|_| code != "RepoNotFound");
                let part = file.map(str::to_owned).or_else(|| revision.map(|revision| format!("revision {revision}")));
                DownloadError::NotFound { repo: self.id.repo.clone(), part, host: host(url) }
            }
            _ => DownloadError::Unusable { host: host(url), cause: format!("status {status}") },
        })
    }
}

fn busy(host: String, status: u16, after: Option<Duration>) -> Trouble {
    let error = DownloadError::Busy { host, status, wait_s: after.map(|after| after.as_secs()) };
    match after {
        Some(after) if after > LONGEST_WAIT => Trouble::Fatal(error),
        after => Trouble::Again { error, after },
    }
}

/// `Retry-After`: seconds, or a date.
fn wait_of(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp();
    Some(then.duration_since(jiff::Timestamp::now()).try_into().unwrap_or(Duration::ZERO))
}

/// The name that a server gives to a content, if it is good for continuing: weak ones
/// are not.
pub(super) fn strong_etag(response: &Response) -> Option<String> {
    let etag = response.headers().get(ETAG)?.to_str().ok()?;
    (etag.starts_with('"') && etag.len() < 300).then(|| etag.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_when_to_come_again_in_seconds_or_as_a_date() {
        assert_eq!(wait_of("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait_of("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let far = wait_of("Fri, 01 Jan 2100 00:00:00 GMT").unwrap();
        assert!(far > LONGEST_WAIT && matches!(busy(String::new(), 503, Some(far)), Trouble::Fatal(_)));
        assert_eq!(wait_of("soon"), None);
    }
}
