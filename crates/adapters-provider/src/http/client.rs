//! The client: posts a body, returns JSON, and describes failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use domain::decision::ClientConnection;
use domain::routing::{AttemptFailure, AttemptFailureKind, FailureCause};
use domain::system::Clock;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HOST, PROXY_AUTHORIZATION, USER_AGENT};
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use wires::provider::{ReadError, account};

use super::beginning::close_json;
use super::body::{self, BodyError};
use super::connector::Connector;
use super::decoding;
use super::errors::{CallError, invalid_response};
use super::exchange::{Answer, exchange};
use super::origin::{Origin, Origins};
use super::payload::{Payload, SentCounter};
use super::proxies::Proxies;
use super::retry_after::retry_after;
use super::tls::Tls;
use super::{Http2, HttpClientError, HttpClientSettings};
use crate::provider_error;
use crate::redaction::Redactor;

/// A pooled HTTP client. Cheap to clone; clones share the pool.
///
/// It repeats a request once on another connection, if the provider did not process it or a reused connection ended
/// without an answer. It follows no redirects. It asks for no compression, and reads gzip anyway.
#[derive(Clone)]
pub struct HttpClient {
    origins: Origins,
    tls: Tls,
    proxies: Arc<Proxies>,
    user_agent: HeaderValue,
    settings: Arc<HttpClientSettings>,
    /// For waits until a date.
    clock: Arc<dyn Clock>,
}

/// The origin of calls to one host, and their headers.
#[derive(Clone)]
pub(crate) struct Target {
    origin: Arc<Origin>,
    headers: HeaderMap,
    /// The `host` header for HTTP/1.1.
    host: Option<HeaderValue>,
    /// Masks the keys in the headers.
    redactor: Redactor,
}

impl Target {
    /// Returns the redactor of the keys that calls carry.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

/// The detail of an answer that was not read because no memory was left.
const NO_MEMORY: &str = "the memory for requests and answers, limits.body_memory_bytes, is used up";
/// The wait after that. Requests are short, and the end of the next one is unknown.
const MEMORY_RETRY_AFTER: Duration = Duration::from_secs(1);
/// The part of an error body that is read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Longest wait for an error body. The status counts without it.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_millis(500);

impl HttpClient {
    /// Builds the client; connections are opened by calls. A platform without certificate authorities is no error: see
    /// [`Self::has_trusted_authorities`].
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn new(settings: &HttpClientSettings, clock: Arc<dyn Clock>) -> Result<Self, HttpClientError> {
        let tls = Tls::load(settings)?;
        Self::with_tls(settings, tls, clock)
    }

    pub(super) fn with_tls(
        settings: &HttpClientSettings,
        tls: Tls,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, HttpClientError> {
        let user_agent = HeaderValue::from_str(&settings.user_agent).map_err(|_| HttpClientError::UserAgent)?;
        let proxies = Arc::new(Proxies::new(&settings.proxy)?);
        let settings = Arc::new(settings.clone());
        Ok(Self { origins: origins(&settings, &tls, &proxies), tls, proxies, user_agent, settings, clock })
    }

    /// Returns a client with its own pool and changed settings. It shares the certificate authorities, the client
    /// certificate, the proxies and the user agent.
    #[must_use]
    pub fn reconfigured(&self, change: impl FnOnce(&mut HttpClientSettings)) -> Self {
        let mut settings = (*self.settings).clone();
        change(&mut settings);
        let settings = Arc::new(settings);
        Self { origins: origins(&settings, &self.tls, &self.proxies), settings, ..self.clone() }
    }

    /// Returns false if no certificate authority is known, so that every `https://` call fails.
    pub fn has_trusted_authorities(&self) -> bool {
        self.tls.trusted > 0
    }

    /// Returns the target of calls to the host of this address, with additional headers.
    pub(crate) fn target(&self, uri: &Uri, own: HeaderMap) -> Target {
        let mut headers = own;
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.entry(USER_AGENT).or_insert_with(|| self.user_agent.clone());
        headers.insert(CONTENT_TYPE, Payload::JSON);
        let plain = uri.scheme() == Some(&Scheme::HTTP) && self.settings.http2 != Http2::PriorKnowledge;
        let host = host(uri);
        // HTTP/1.1 needs the header; on a connection that may be HTTP/2, each call adds it if needed.
        if (plain || self.settings.http2 == Http2::Off)
            && let Some(host) = &host
        {
            headers.insert(HOST, host.clone());
        }
        // In a tunnel the connector sends the credentials; a forwarding proxy reads them from the request.
        if plain
            && let Some(proxy) = self.proxies.intercept(uri)
            && let Some(credentials) = proxy.basic_auth()
        {
            headers.insert(PROXY_AUTHORIZATION, credentials.clone());
        }
        Target { origin: self.origins.of(uri), redactor: Redactor::of(&headers), headers, host }
    }

    /// Posts the body that `write` builds and returns the JSON body of a 200. Any other response is a failure, which
    /// `read_error` may refine by the body. The size is bounded, the time is not: drop the future to cancel the call.
    /// `sent` counts the sent bytes in every case. `write` is called again to repeat the request. The answer takes memory
    /// of `client`.
    pub(crate) async fn post(
        &self,
        target: &Target,
        uri: Uri,
        write: impl Fn() -> Result<Payload, AttemptFailure>,
        sent: &SentCounter,
        (client, read_error): (&dyn ClientConnection, Option<ReadError>),
    ) -> Result<Bytes, AttemptFailure> {
        self.check_authorities(&uri)?;
        let build = || {
            let payload = write()?;
            let mut headers = target.headers.clone();
            if *payload.media_type() != Payload::JSON {
                headers.insert(CONTENT_TYPE, payload.media_type().clone());
            }
            let mut request = Request::new(payload.with_counter(sent));
            *request.method_mut() = Method::POST;
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers;
            Ok(request)
        };
        let _end = sent.end_on_drop();
        let answer = exchange(&target.origin, build, target.host.as_ref(), sent).await?;
        let status = answer.status;
        if status != 200 {
            tracing::debug!(status, "provider responded with an error status");
            return Err(self.failure(answer, read_error, &target.redactor).await);
        }
        self.read(answer, client).await.map_err(|failure| AttemptFailure { upstream_status: Some(status), ..failure })
    }

    /// Gets an address, which must respond with 200. Its body is not read. The time is not bounded: drop the future to
    /// cancel the call.
    pub(crate) async fn get(&self, target: &Target, uri: Uri) -> Result<(), AttemptFailure> {
        let sent = SentCounter::default();
        let build = || {
            let mut request = Request::new(Payload::none().with_counter(&sent));
            *request.uri_mut() = uri.clone();
            request.headers_mut().clone_from(&target.headers);
            request.headers_mut().remove(CONTENT_TYPE);
            Ok(request)
        };
        let _end = sent.end_on_drop();
        let answer = exchange(&target.origin, build, target.host.as_ref(), &sent).await?;
        if answer.status != 200 {
            return Err(self.failure(answer, None, &target.redactor).await);
        }
        answer.body.retire();
        Ok(())
    }

    /// Opens a connection to the target as a call does, and closes it.
    pub(crate) async fn probe(&self, target: &Target, uri: &Uri) -> Result<(), AttemptFailure> {
        self.check_authorities(uri)?;
        target.origin.probe().await.map_err(CallError::into_failure)
    }

    /// Returns true if a proxy is used for this address.
    pub(crate) fn is_proxied(&self, uri: &Uri) -> bool {
        self.proxies.intercept(uri).is_some()
    }

    fn check_authorities(&self, uri: &Uri) -> Result<(), AttemptFailure> {
        if uri.scheme() == Some(&Scheme::HTTPS) && !self.has_trusted_authorities() {
            return Err(AttemptFailure::of_cause(FailureCause::NoAuthorities));
        }
        Ok(())
    }

    /// Classifies a response with another status than 200, by the beginning of its body.
    async fn failure(&self, mut answer: Answer, read_error: Option<ReadError>, redactor: &Redactor) -> AttemptFailure {
        let status = answer.status;
        let by_status = AttemptFailure::from_status(status, retry_after(&answer.headers, self.clock.now()));
        let mut beginning = BytesMut::new();
        let reading = body::read_beginning(&mut answer.body, &mut beginning, MAX_ERROR_BYTES);
        let is_whole = tokio::time::timeout(ERROR_BODY_TIMEOUT, reading).await.unwrap_or(false);
        let (beginning, is_whole) = decoding::decode_beginning(beginning.freeze(), is_whole, MAX_ERROR_BYTES);
        let body = if is_whole { beginning } else { close_json(&beginning).into() };
        answer.body.release();
        let by_status = AttemptFailure { provider_error: provider_error::read(status, &body, redactor), ..by_status };
        let by_account = account::refine(by_status, &body);
        if by_account.cause.is_some_and(FailureCause::is_of_account) {
            return by_account;
        }
        let meaning = read_error.and_then(|read_error| read_error(status, &body));
        meaning.map_or_else(|| by_account.clone(), |meaning| meaning.of(&by_account))
    }

    /// Reads JSON of any media type: what parses as an answer is one. A body of another type whose first character is
    /// not that of JSON is not read to its end.
    async fn read(&self, mut answer: Answer, client: &dyn ClientConnection) -> Result<Bytes, AttemptFailure> {
        let limit = self.settings.max_response_bytes;
        let is_declared = is_json(&answer.headers);
        let is_wanted = |begin: &[u8]| is_declared || decoding::may_be_json(begin);
        let memory = AnswerMemory { client, taken: AtomicUsize::new(0) };
        let take_memory = |bytes| memory.take(bytes);
        let read = body::read(&mut answer.body, limit, is_wanted, take_memory).await;
        match read.and_then(|body| decoding::decode(body, limit, take_memory)) {
            Ok(body) => {
                memory.keep();
                answer.body.release();
                tracing::debug!(bytes = body.len(), "provider responded");
                Ok(body)
            }
            Err(error) => {
                // A peer that answers with something else gets no further request. Our own memory is not its fault.
                if error != BodyError::NoMemory {
                    answer.body.retire();
                }
                Err(match error {
                    BodyError::TooLong => invalid_response("the provider's answer is too long"),
                    BodyError::Broken => invalid_response("the connection broke within the answer"),
                    BodyError::Unwanted => invalid_response("the provider's answer is not JSON"),
                    BodyError::Compressed => invalid_response("the provider's answer cannot be decompressed"),
                    BodyError::NoMemory => AttemptFailure {
                        retry_after: Some(MEMORY_RETRY_AFTER),
                        ..AttemptFailure::new(AttemptFailureKind::MemoryExhausted, NO_MEMORY)
                    },
                })
            }
        }
    }
}

/// The memory of an answer, which is returned unless the answer is kept.
struct AnswerMemory<'a> {
    client: &'a dyn ClientConnection,
    taken: AtomicUsize,
}

impl AnswerMemory<'_> {
    fn take(&self, bytes: usize) -> bool {
        let is_taken = self.client.take_answer_memory(bytes);
        self.taken.fetch_add(if is_taken { bytes } else { 0 }, Ordering::Relaxed);
        is_taken
    }

    fn keep(&self) {
        self.taken.store(0, Ordering::Relaxed);
    }
}

impl Drop for AnswerMemory<'_> {
    fn drop(&mut self) {
        self.client.return_answer_memory(*self.taken.get_mut());
    }
}

fn origins(settings: &Arc<HttpClientSettings>, tls: &Tls, proxies: &Arc<Proxies>) -> Origins {
    Origins::new(Connector::new(tls.config.clone(), Arc::clone(proxies), settings), settings)
}

/// Returns true for a JSON media type and for a missing one.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(media_type) = headers.get(CONTENT_TYPE) else { return true };
    let essence = media_type.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let begins = |with: &str| essence.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    let ends = |with: &str| {
        let at = essence.len().checked_sub(with.len());
        at.and_then(|at| essence.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(with))
    };
    essence.eq_ignore_ascii_case("application/json") || (begins("application/") && ends("+json"))
}

/// Builds the `host` header, with the port if it is not the scheme's default.
fn host(uri: &Uri) -> Option<HeaderValue> {
    let own = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let host = uri.host()?;
    match uri.port_u16().filter(|port| *port != own) {
        Some(port) => HeaderValue::try_from(format!("{host}:{port}")).ok(),
        None => HeaderValue::from_str(host).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::decision::NeverDisconnects;
    use domain::testing::FixedClock;
    use rustls::RootCertStore;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn clock() -> Arc<dyn Clock> {
        Arc::new(FixedClock::default())
    }

    #[test]
    fn host_header_contains_non_default_port() {
        for (address, named) in [
            ("http://a.example/x", "a.example"),
            ("http://a.example:80/x", "a.example"),
            ("http://a.example:443/x", "a.example:443"),
            ("https://a.example:443/x", "a.example"),
            ("https://a.example:80/x", "a.example:80"),
            ("http://[::1]:8080/", "[::1]:8080"),
        ] {
            assert_eq!(host(&address.parse().unwrap()).unwrap(), named, "{address}");
        }
    }

    #[test]
    fn target_has_host_header_when_only_http1_is_possible() {
        let named = |address: &str, http2| {
            let settings = HttpClientSettings { http2, ..HttpClientSettings::default() };
            let client =
                HttpClient::with_tls(&settings, Tls::trusting(RootCertStore::empty()).unwrap(), clock()).unwrap();
            client.target(&address.parse().unwrap(), HeaderMap::new()).headers.contains_key(HOST)
        };
        assert!(named("http://a/", Http2::Negotiated) && named("http://a/", Http2::Off));
        assert!(named("https://a/", Http2::Off));
        assert!(!named("https://a/", Http2::Negotiated), "it may come to be HTTP/2, which has no such header");
        assert!(!named("http://a/", Http2::PriorKnowledge) && !named("https://a/", Http2::PriorKnowledge));
    }

    #[test]
    fn is_json_checks_essence_of_media_type() {
        let is_accepted = |media_type: &'static str| {
            is_json(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]))
        };
        for json in
            ["application/json", "Application/JSON; charset=utf-8", " application/problem+Json ", "application/+json"]
        {
            assert!(is_accepted(json), "{json}");
        }
        for other in ["", "application", "application/", "text/json", "+json", "text/html", "application/json5", "json"]
        {
            assert!(!is_accepted(other), "{other}");
        }
        assert!(is_json(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn client_calls_http_without_certificate_authorities() {
        let tls = Tls::trusting(RootCertStore::empty()).unwrap();
        let client = HttpClient::with_tls(&HttpClientSettings::default(), tls, clock()).unwrap();
        assert!(!client.has_trusted_authorities());

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answering = async {
            let mut socket = listener.accept().await.unwrap().0;
            socket.read_buf(&mut Vec::new()).await.unwrap();
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        };
        let post = |scheme: &str| {
            let uri: Uri = format!("{scheme}://{address}/").parse().unwrap();
            let client = client.clone();
            let target = client.target(&uri, HeaderMap::new());
            async move {
                client
                    .post(&target, uri, || Ok(Payload::json("{}")), &SentCounter::default(), (&NeverDisconnects, None))
                    .await
            }
        };
        let (answer, ()) = tokio::join!(post("http"), answering);
        assert_eq!(&answer.unwrap()[..], b"{}");
        assert!(post("https").await.unwrap_err().detail.starts_with("https is not possible"));
    }
}
