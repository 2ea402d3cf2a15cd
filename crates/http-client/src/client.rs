//! The client.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{PROXY_AUTHORIZATION, USER_AGENT};
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use tokio::time::Instant;

use crate::body::{RequestBody, full};
use crate::connector::Connector;
use crate::errors::{Error, Loss};
use crate::exchange::{Repeat, ResponseBody, Target, exchange};
use crate::origin::Origins;
use crate::proxy::Proxies;
use crate::tls::Tls;
use crate::{Http2, HttpClientError, HttpClientSettings};

/// A pooled HTTP client. Cheap to clone; clones share the pool. It follows no redirects.
#[derive(Clone)]
pub struct HttpClient {
    origins: Origins,
    tls: Tls,
    proxies: Arc<Proxies>,
    user_agent: HeaderValue,
    settings: Arc<HttpClientSettings>,
}

impl HttpClient {
    /// Builds the client; connections are opened by calls. A platform without certificate authorities is no error: see
    /// [`Self::has_trusted_authorities`].
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn new(settings: &HttpClientSettings) -> Result<Self, HttpClientError> {
        Self::with_tls(settings, Tls::load(settings)?)
    }

    /// Builds a client for servers that are called without TLS.
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn without_tls(settings: &HttpClientSettings) -> Result<Self, HttpClientError> {
        Self::with_tls(settings, Tls::without_authorities()?)
    }

    fn with_tls(settings: &HttpClientSettings, tls: Tls) -> Result<Self, HttpClientError> {
        let user_agent = HeaderValue::from_str(&settings.user_agent).map_err(|_| HttpClientError::UserAgent)?;
        let proxies = Arc::new(Proxies::new(&settings.proxy)?);
        let settings = Arc::new(settings.clone());
        Ok(Self { origins: origins(&settings, &tls, &proxies), tls, proxies, user_agent, settings })
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

    /// Returns the settings.
    pub fn settings(&self) -> &HttpClientSettings {
        &self.settings
    }

    /// Returns false if no certificate authority is known, so that every `https://` call fails.
    pub fn has_trusted_authorities(&self) -> bool {
        self.tls.trusted > 0
    }

    /// Returns the number of the platform's certificates that could not be read.
    pub fn unreadable_authorities(&self) -> usize {
        self.tls.unreadable
    }

    /// Returns true if a proxy is used for this address.
    pub fn is_proxied(&self, uri: &Uri) -> bool {
        self.proxies.intercept(uri).is_some()
    }

    /// Returns the target of calls to the host of this address.
    pub fn target(&self, uri: &Uri) -> Target {
        let mut headers = HeaderMap::from_iter([(USER_AGENT, self.user_agent.clone())]);
        // In a tunnel the connector sends the credentials; a forwarding proxy reads them from the request.
        if uri.scheme() == Some(&Scheme::HTTP)
            && self.settings.http2 != Http2::PriorKnowledge
            && let Some(proxy) = self.proxies.intercept(uri)
            && let Some(credentials) = proxy.basic_auth()
        {
            headers.insert(PROXY_AUTHORIZATION, credentials.clone());
        }
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        Target { origin: self.origins.of(uri), headers, host: host(uri), is_https }
    }

    /// Sends a request and returns the head of the answer, of any status. It is sent once more on another connection
    /// if the server certainly did not process it. The time is not bounded: see [`before_deadline`](crate::before_deadline).
    ///
    /// # Errors
    /// No connection could be made, or it broke before the head of the answer.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<ResponseBody>, Error> {
        let build = |_| Ok(request.clone().map(full));
        self.send_built(&self.target(request.uri()), None, Repeat::IfNotProcessed, build).await
    }

    /// Sends the request that `build` builds and returns the head of the answer, of any status. A request that is
    /// lost is built and sent once more on another connection, as `repeat` allows; `build` learns the loss. The time is not
    /// bounded, except that of opening a connection: drop the future to cancel the call. If that happens after `deadline`
    /// on an HTTP/2 connection that was silent, later calls use another one.
    ///
    /// # Errors
    /// `build` failed, no connection could be made, or it broke before the head of the answer.
    pub async fn send_built<E: From<Error>>(
        &self,
        target: &Target,
        deadline: Option<Instant>,
        repeat: Repeat,
        build: impl FnMut(Option<Loss>) -> Result<Request<RequestBody>, E>,
    ) -> Result<Response<ResponseBody>, E> {
        self.check_authorities(target)?;
        exchange(target, deadline, repeat, build).await
    }

    /// Opens a connection to the target as a call does, and closes it.
    ///
    /// # Errors
    /// No connection could be made.
    pub async fn probe(&self, target: &Target) -> Result<(), Error> {
        self.check_authorities(target)?;
        target.origin.probe().await
    }

    fn check_authorities(&self, target: &Target) -> Result<(), Error> {
        if target.is_https && !self.has_trusted_authorities() { Err(Error::NoAuthorities) } else { Ok(()) }
    }
}

fn origins(settings: &Arc<HttpClientSettings>, tls: &Tls, proxies: &Arc<Proxies>) -> Origins {
    Origins::new(Connector::new(tls.config.clone(), Arc::clone(proxies), settings), settings)
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

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

    fn client() -> HttpClient {
        HttpClient::without_tls(&HttpClientSettings::default()).unwrap()
    }

    async fn get(client: &HttpClient, address: &str) -> Result<Response<ResponseBody>, Error> {
        client.send(Request::get(address).body(Bytes::new()).unwrap()).await
    }

    /// Reads a request and answers it; returns its head.
    async fn answer(socket: &mut TcpStream, answer: &str) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert!(socket.read_buf(&mut head).await.unwrap() > 0);
        }
        socket.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(head).unwrap()
    }

    #[tokio::test]
    async fn client_calls_http_without_certificate_authorities() {
        let client = client();
        assert!(!client.has_trusted_authorities());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answering = async {
            let mut socket = listener.accept().await.unwrap().0;
            answer(&mut socket, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await
        };
        let url = format!("http://{address}/");
        let (response, head) = tokio::join!(get(&client, &url), answering);
        assert!(head.contains(&format!("host: {address}\r\n")) && head.contains("user-agent: tollgate/"), "{head}");
        assert_eq!(response.unwrap().into_body().read(2).await.unwrap(), "{}");
        assert!(matches!(get(&client, &format!("https://{address}/")).await, Err(Error::NoAuthorities)));
    }

    #[test]
    fn origins_without_users_and_connections_are_forgotten() {
        let client = client();
        let origin = |address: &str| Arc::downgrade(&client.target(&address.parse().unwrap()).origin);
        let used = client.target(&"http://used:1/".parse().unwrap());
        let unused = origin("http://unused:1/");
        assert!(unused.upgrade().is_some());
        origin("http://other:1/");
        assert!(unused.upgrade().is_none());
        assert!(Arc::ptr_eq(&used.origin, &origin("http://used:1/x").upgrade().unwrap()));
    }

    #[tokio::test]
    async fn dropped_body_keeps_its_connection_only_at_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let client = client();
        let empty = "HTTP/1.1 204 No Content\r\n\r\n";
        let unread = "HTTP/1.1 200 OK\r\ncontent-length: 999999\r\n\r\nx";
        let serving = async {
            let mut first = listener.accept().await.unwrap().0;
            for text in [empty, empty, unread] {
                answer(&mut first, text).await;
            }
            assert_eq!(first.read_buf(&mut Vec::new()).await.unwrap_or(0), 0, "the connection was used again");
            answer(&mut listener.accept().await.unwrap().0, empty).await;
        };
        let calling = async {
            for _ in 0..4 {
                let answer = get(&client, &url).await.unwrap();
                // No other target makes the client forget the connection.
                drop(client.target(&"http://other:1/".parse().unwrap()));
                drop(answer);
            }
        };
        tokio::join!(serving, calling);
    }

    #[tokio::test]
    async fn silent_loss_is_repeated_only_if_allowed() {
        for (repeat, expected) in [(Repeat::IfNotProcessed, None), (Repeat::IfSilent, Some(204))] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let uri: Uri = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
            let client = client();
            let serving = async {
                let empty = "HTTP/1.1 204 No Content\r\n\r\n";
                let mut first = listener.accept().await.unwrap().0;
                answer(&mut first, empty).await;
                // The second request arrives, and no byte of an answer.
                answer(&mut first, "").await;
                drop(first);
                if expected.is_some() {
                    answer(&mut listener.accept().await.unwrap().0, empty).await;
                }
            };
            let calling = async {
                let mut losses = Vec::new();
                let target = client.target(&uri);
                get(&client, &uri.to_string()).await.unwrap();
                let build = |loss| {
                    losses.push(loss);
                    Ok::<_, Error>(Request::get(uri.clone()).body(full("")).unwrap())
                };
                let end = client.send_built(&target, None, repeat, build).await;
                (end.map(|response| response.status().as_u16()), losses)
            };
            let ((), (end, losses)) = tokio::join!(serving, calling);
            assert_eq!(end.as_ref().ok(), expected.as_ref(), "{end:?}");
            let sendings = [None, Some(Loss::Silent)];
            assert_eq!(losses, if expected.is_some() { &sendings[..] } else { &sendings[..1] });
        }
    }
}
