//! The HTTP client of a running server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request};
use http_client::{HttpClient, HttpClientSettings, before_deadline};

use crate::commands::prelude::*;

/// The maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// A client of one server.
pub struct ServerClient {
    client: HttpClient,
    /// Scheme and authority.
    origin: String,
    timeout: Duration,
}

/// A response.
pub struct ServerResponse {
    /// The status.
    pub status: u16,
    /// The header `x-request-id`.
    pub request_id: Option<String>,
    /// The header `retry-after`.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: String,
}

impl ServerClient {
    /// Creates a client for an address, whose calls take at most `timeout`.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(address: SocketAddr, timeout: Duration) -> anyhow::Result<Self> {
        let settings = HttpClientSettings { connect_timeout: timeout, ..HttpClientSettings::default() };
        Ok(Self {
            client: HttpClient::without_tls(&settings)?,
            origin: format!("http://{}", reachable(address)),
            timeout,
        })
    }

    /// Creates a client for an origin: scheme and authority.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn of_origin(origin: String, settings: &HttpClientSettings, timeout: Duration) -> anyhow::Result<Self> {
        let is_tls = origin.starts_with("https:");
        let client = if is_tls { HttpClient::new(settings)? } else { HttpClient::without_tls(settings)? };
        Ok(Self { client, origin, timeout })
    }

    /// Sends a request with a key and a JSON body, and reads the response.
    ///
    /// # Errors
    /// The key is malformed, or there was no response.
    pub async fn send(
        &self,
        method: &Method,
        path: &str,
        key: Option<&str>,
        json: Option<String>,
    ) -> anyhow::Result<ServerResponse> {
        let origin = &self.origin;
        let mut request = Request::builder().method(method).uri(format!("{origin}{path}"));
        if let Some(key) = key {
            let value = HeaderValue::try_from(format!("Bearer {key}"));
            let mut value = value.map_err(|_| anyhow!("the key has characters that no key has"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        if json.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(json.unwrap_or_default().into())?;
        let answered = async {
            let response = self.client.send(request).await?;
            let status = response.status().as_u16();
            let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
            let request_id = text("x-request-id").map(str::to_owned);
            let retry_after = text(RETRY_AFTER.as_str()).and_then(|seconds| seconds.parse().ok());
            let body = String::from_utf8_lossy(&response.into_body().read(MAX_RESPONSE_BYTES).await?).into();
            let retry_after = retry_after.map(Duration::from_secs);
            Ok::<_, anyhow::Error>(ServerResponse { status, request_id, retry_after, body })
        };
        let answered = before_deadline(self.timeout, answered).await;
        answered
            .with_context(|| format!("no response of {origin} in time"))?
            .with_context(|| format!("no response of {origin}"))
    }
}

/// Returns the loopback address of a server that listens on all addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reachable_replaces_unspecified_addresses() {
        for (listen, expected) in
            [("0.0.0.0:80", "127.0.0.1:80"), ("[::]:80", "[::1]:80"), ("10.0.0.7:80", "10.0.0.7:80")]
        {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), expected);
        }
    }
}
