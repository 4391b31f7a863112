//! Where a server is, and one HTTP/1.1 connection to it. No proxy, ever: a proxy in the
//! environment has no business with a server on this machine, and its time would be
//! counted as the server's.

use super::arrival;
use super::clock::{Clocked, SocketClock};
use super::recording::Recording;
use super::trace::{FaultKind, RequestFault};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// A server.
#[derive(Debug, Clone)]
pub struct Endpoint {
    url: url::Url,
    /// A Unix socket instead of the host and port of the address.
    socket: Option<PathBuf>,
    key: Option<String>,
}

/// A base URL that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EndpointError(String);

impl Endpoint {
    /// Takes `http://host:port`, with or without `/v1` at the end, or `unix:/path/of/socket`.
    ///
    /// # Errors
    /// Not an http or https URL, or one with a user name in it; a socket on a system that has none.
    pub fn new(base_url: &str, key: Option<String>) -> Result<Self, EndpointError> {
        if let Some(path) = base_url.strip_prefix("unix:") {
            return Endpoint::of_socket(PathBuf::from(path), key);
        }
        let mut url = url::Url::parse(base_url).map_err(|error| EndpointError(format!("{base_url}: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(EndpointError(format!("{base_url}: an http:// or https:// address is needed")));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError("a base URL must not carry a user name or password; use an API key".to_owned()));
        }
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path).to_owned();
        url.set_path(&path);
        key.as_deref().inspect(|key| crate::secrets::keep(key));
        Ok(Endpoint { url, socket: None, key })
    }

    fn of_socket(path: PathBuf, key: Option<String>) -> Result<Self, EndpointError> {
        if !cfg!(unix) || !path.is_absolute() {
            return Err(EndpointError(format!(
                "unix:{}: the absolute path of a Unix socket is needed",
                path.display()
            )));
        }
        let url = url::Url::parse("http://localhost").map_err(|error| EndpointError(error.to_string()))?;
        key.as_deref().inspect(|key| crate::secrets::keep(key));
        Ok(Endpoint { url, socket: Some(path), key })
    }

    /// A client for everything of this server that is not measured: health, models,
    /// counters. No proxy.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn control_client(&self) -> Result<reqwest::Client, reqwest::Error> {
        let builder = control_builder();
        #[cfg(unix)]
        let builder = match &self.socket {
            Some(path) => builder.unix_socket(path.as_path()),
            None => builder,
        };
        builder.build()
    }

    /// Absolute address of a route such as `/v1/models`.
    pub fn address(&self, route: &str) -> String {
        format!("{}{route}", self.url.as_str().trim_end_matches('/'))
    }

    /// The API key.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Opens a connection whose stamps count from `epoch`.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn connect(&self, epoch: Instant) -> Result<Connection, RequestFault> {
        let fail = |error: &dyn std::fmt::Display| RequestFault::new(FaultKind::Connect, error.to_string());
        #[cfg(unix)]
        if let Some(path) = &self.socket {
            let stream = tokio::net::UnixStream::connect(path).await.map_err(|error| fail(&error))?;
            let clock = Arc::new(SocketClock::new(epoch));
            let sender = handshake(Clocked::new(stream, Arc::clone(&clock))).await.map_err(|error| fail(&error))?;
            return Ok(Connection { sender, clock, requests: 0 });
        }
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = self.url.port_or_known_default().unwrap_or(80);
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(|error| fail(&error))?;
        stream.set_nodelay(true).map_err(|error| fail(&error))?;
        let clock = Arc::new(SocketClock::new(epoch));
        let stream = arrival::timed(stream).map_err(|error| fail(&error))?;
        let stream = Clocked::new(stream, Arc::clone(&clock));
        let sender = if self.url.scheme() == "https" {
            let name = rustls::pki_types::ServerName::try_from(host).map_err(|error| fail(&error))?;
            let stream =
                tls().map_err(|error| fail(&error))?.connect(name, stream).await.map_err(|error| fail(&error))?;
            handshake(stream).await
        } else {
            handshake(stream).await
        };
        Ok(Connection { sender: sender.map_err(|error| fail(&error))?, clock, requests: 0 })
    }

    /// A request for a stream of events.
    fn post(&self, route: &str, body: Bytes) -> Result<Request<Full<Bytes>>, RequestFault> {
        let request = Request::post(self.path(route))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "text/event-stream");
        self.finish(request, body)
    }

    fn path(&self, route: &str) -> String {
        format!("{}{route}", self.url.path().trim_end_matches('/'))
    }

    /// What every request carries.
    fn finish(
        &self,
        request: hyper::http::request::Builder,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, RequestFault> {
        let host = self.url.host_str().unwrap_or_default();
        let host = self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let mut request = request
            .header(header::HOST, host)
            .header(header::USER_AGENT, concat!("verify/", env!("CARGO_PKG_VERSION")));
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        request.body(Full::new(body)).map_err(|error| RequestFault::new(FaultKind::Connect, error.to_string()))
    }
}

async fn handshake<S>(stream: S) -> hyper::Result<SendRequest<Full<Bytes>>>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

fn tls() -> Result<tokio_rustls::TlsConnector, rustls::Error> {
    use rustls_platform_verifier::BuilderVerifierExt;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    Ok(tokio_rustls::TlsConnector::from(Arc::new(config)))
}

/// One open connection.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    clock: Arc<SocketClock>,
    requests: u32,
}

/// The head of an answer with the body still to come.
pub(crate) struct Answered {
    pub(crate) sent: Duration,
    pub(crate) response: Response<Incoming>,
}

impl Connection {
    /// Whether it carried a request before the last one.
    pub fn used_before(&self) -> bool {
        self.requests > 1
    }

    /// Whether it can carry another request.
    pub async fn reusable(&mut self) -> bool {
        self.sender.ready().await.is_ok() && !self.sender.is_closed()
    }

    /// Sends a request and waits for the head of the answer. The stamp is that of the
    /// request's first write on the open connection.
    pub(crate) async fn post(
        &mut self,
        endpoint: &Endpoint,
        route: &str,
        body: Bytes,
    ) -> Result<Answered, RequestFault> {
        let request = endpoint.post(route, body)?;
        self.requests += 1;
        self.clock.expect_write();
        let response = self
            .sender
            .send_request(request)
            .await
            .map_err(|error| RequestFault::new(FaultKind::ConnectClosed, error.to_string()))?;
        Ok(Answered { sent: self.clock.first_write(), response })
    }

    /// When the first byte of the last request was written; now, when none was.
    pub(crate) fn sent(&self) -> Duration {
        self.clock.first_write()
    }

    /// The clock of its socket.
    pub(crate) fn clock(&self) -> Arc<SocketClock> {
        Arc::clone(&self.clock)
    }

    /// Asks for a page that is not measured: status and text.
    ///
    /// # Errors
    /// The connection broke, or the page is larger than any page of ours.
    pub async fn get(&mut self, endpoint: &Endpoint, route: &str) -> Result<(u16, String), RequestFault> {
        let request = endpoint.finish(Request::get(endpoint.path(route)), Bytes::new())?;
        let closed = |error: &dyn std::fmt::Display| RequestFault::new(FaultKind::ConnectClosed, error.to_string());
        let response = self.sender.send_request(request).await.map_err(|error| closed(&error))?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_PAGE).collect().await.map_err(|error| closed(&error))?;
        Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
    }
}

/// Reads a body piece by piece; each piece carries the time at which its last byte was
/// read from the socket. Full recordings go to `sink`, the last one is returned beside
/// whether the transport reached its end; what came is kept either way.
///
/// # Errors
/// The body is larger than any answer of the requested length.
pub(crate) async fn read_body(
    mut body: Incoming,
    clock: &SocketClock,
    recording: &mut Recording,
    sink: &mut (dyn FnMut(Recording) + Send),
) -> Result<bool, RequestFault> {
    let mut total = 0;
    while let Some(frame) = body.frame().await {
        match frame.map(hyper::body::Frame::into_data) {
            Ok(Ok(bytes)) => {
                total += bytes.len();
                if total > MAX_ANSWER {
                    let message = format!("the answer is larger than {} MiB", MAX_ANSWER >> 20);
                    return Err(RequestFault::new(FaultKind::BadEvent, message));
                }
                recording.push(clock.last_read(), &bytes);
                if recording.is_full() {
                    sink(std::mem::take(recording));
                }
            }
            Ok(Err(_)) => {}
            Err(_) => return Ok(false),
        }
    }
    Ok(true)
}

/// An answer larger than this is none: a server that never ends must not fill our memory.
const MAX_ANSWER: usize = 32 << 20;
/// A page that is not measured is smaller than this.
const MAX_PAGE: usize = 8 << 20;

fn control_builder() -> reqwest::ClientBuilder {
    // The provider can be installed once; a second call finds it there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("verify/", env!("CARGO_PKG_VERSION")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_taken_with_and_without_v1() {
        for given in
            ["http://127.0.0.1:8000", "http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/"]
        {
            assert_eq!(Endpoint::new(given, None).unwrap().address("/v1/models"), "http://127.0.0.1:8000/v1/models");
        }
        assert_eq!(Endpoint::new("https://h/openai/v1", None).unwrap().address("/health"), "https://h/openai/health");
        assert!(Endpoint::new("ftp://x", None).is_err());
        assert!(Endpoint::new("http://u:p@x", None).is_err());
        assert!(Endpoint::new("unix:s.sock", None).is_err());
        assert_eq!(Endpoint::new("unix:/a/s.sock", None).unwrap().address("/health"), "http://localhost/health");
    }
}
