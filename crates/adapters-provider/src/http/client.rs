//! The client: posts JSON, returns JSON, and says in our own words what went wrong.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::routing::AttemptFailure;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, PROXY_AUTHORIZATION, USER_AGENT};
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::client::proxy::matcher::Matcher;

use super::body::{self, BodyFault};
use super::connector::proxies;
use super::errors::{broken, from_call};
use super::pools::Pools;
use super::retry_after::retry_after;
use super::tls::Tls;
use super::{Http2, HttpClientError, HttpClientSettings};

/// A pooled HTTP client. Cheap to clone; clones share the pool.
///
/// Nothing is retried, except a request that a pooled connection did not take because it was already closed. No
/// redirect is followed. Answers are taken uncompressed.
#[derive(Clone)]
pub struct HttpClient {
    pools: Pools,
    tls: Tls,
    proxies: Arc<Matcher>,
    user_agent: HeaderValue,
    settings: Arc<HttpClientSettings>,
}

/// Where calls of one kind go, with the headers that they share.
#[derive(Clone)]
pub struct Target {
    uri: Uri,
    headers: HeaderMap,
}

impl HttpClient {
    /// Builds the client; connections are made by the calls. A platform without certificate authorities is no error:
    /// see [`Self::trusts_anyone`].
    ///
    /// # Errors
    /// Settings that cannot be used.
    pub fn new(settings: &HttpClientSettings) -> Result<Self, HttpClientError> {
        let tls = Tls::load(settings.extra_ca_file.as_deref())?;
        Self::with_tls(settings, tls)
    }

    pub(super) fn with_tls(settings: &HttpClientSettings, tls: Tls) -> Result<Self, HttpClientError> {
        let user_agent = HeaderValue::from_str(&settings.user_agent).map_err(|_| HttpClientError::UserAgent)?;
        let proxies = Arc::new(proxies(&settings.proxy)?);
        Ok(Self {
            pools: Pools::new(settings, &tls, &proxies),
            tls,
            proxies,
            user_agent,
            settings: Arc::new(settings.clone()),
        })
    }

    /// A client with its own pool and other ways of connecting, which shares what is trusted and all other settings.
    #[must_use]
    pub fn reconnecting(&self, connect_timeout: Duration, http2: Http2) -> Self {
        let settings = HttpClientSettings { connect_timeout, http2, ..(*self.settings).clone() };
        let pools = Pools::new(&settings, &self.tls, &self.proxies);
        Self { pools, settings: Arc::new(settings), ..self.clone() }
    }

    /// False where no certificate authority is known, so that every `https://` call fails.
    pub fn trusts_anyone(&self) -> bool {
        self.tls.trusted > 0
    }

    /// A target of JSON calls.
    pub(crate) fn target(&self, uri: Uri, authorization: Option<HeaderValue>) -> Target {
        let mut headers = HeaderMap::with_capacity(5);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, self.user_agent.clone());
        if let Some(mut authorization) = authorization {
            authorization.set_sensitive(true);
            headers.insert(AUTHORIZATION, authorization);
        }
        // In a tunnel the connector shows the credentials; a proxy that forwards reads them from the request.
        let forwarded = uri.scheme() == Some(&Scheme::HTTP) && self.settings.http2 != Http2::PriorKnowledge;
        if forwarded
            && let Some(proxy) = self.proxies.intercept(&uri)
            && let Some(credentials) = proxy.basic_auth()
        {
            headers.insert(PROXY_AUTHORIZATION, credentials.clone());
        }
        Target { uri, headers }
    }

    /// Posts a JSON body and returns that of a 200 with JSON in it. Anything else is a failure. Bounded in size, not
    /// in time: dropping the future gives the call up.
    pub(crate) async fn post_json(&self, target: &Target, body: Bytes) -> Result<Bytes, AttemptFailure> {
        if target.uri.scheme() == Some(&Scheme::HTTPS) && !self.trusts_anyone() {
            return Err(broken("https is not possible: no certificate authority is known; configure a file of them"));
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = target.uri.clone();
        *request.headers_mut() = target.headers.clone();
        let connection = capture_connection(&mut request);
        let answer = self.pools.own().request(request).await.map_err(|error| from_call(&error))?;
        let status = answer.status().as_u16();
        if status != 200 {
            tracing::debug!(status, "a provider answered with a failure");
            return Err(AttemptFailure::from_status(status, retry_after(answer.headers())));
        }
        self.read(answer, &connection)
            .await
            .map_err(|detail| AttemptFailure { upstream_status: Some(status), ..broken(detail) })
    }

    async fn read(&self, answer: Response<Incoming>, connection: &CaptureConnection) -> Result<Bytes, &'static str> {
        if !is_json(answer.headers()) {
            forget(connection);
            return Err("the provider's answer is not JSON");
        }
        match body::read(answer.into_body(), self.settings.max_answer_bytes).await {
            Ok(body) => {
                tracing::debug!(bytes = body.len(), "a provider answered");
                Ok(body)
            }
            Err(fault) => {
                forget(connection);
                Err(match fault {
                    BodyFault::TooLong => "the provider's answer is too long",
                    BodyFault::Broken => "the connection broke within the answer",
                })
            }
        }
    }
}

/// JSON by its media type, or of no stated type.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(media_type) = headers.get(CONTENT_TYPE) else { return true };
    let essence = media_type.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Takes the connection out of the pool: whoever answers like this is not to be trusted with the next request.
fn forget(connection: &CaptureConnection) {
    if let Some(connection) = connection.connection_metadata().as_ref() {
        connection.poison();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::RootCertStore;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_platform_without_authorities_still_speaks_http() {
        let tls = Tls::trusting(RootCertStore::empty()).unwrap();
        let client = HttpClient::with_tls(&HttpClientSettings::default(), tls).unwrap();
        assert!(!client.trusts_anyone());

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answering = async {
            let mut socket = listener.accept().await.unwrap().0;
            socket.read_buf(&mut Vec::new()).await.unwrap();
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        };
        let post = |scheme: &str| {
            let target = client.target(format!("{scheme}://{address}/").parse().unwrap(), None);
            let client = client.clone();
            async move { client.post_json(&target, Bytes::from_static(b"{}")).await }
        };
        let (answer, ()) = tokio::join!(post("http"), answering);
        assert_eq!(&answer.unwrap()[..], b"{}");
        assert!(post("https").await.unwrap_err().detail.starts_with("https is not possible"));
    }
}
