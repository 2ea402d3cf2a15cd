//! The HTTP client of a running server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// The maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 20;
/// The additional time that a server takes for a response after its own deadline.
const GRACE: Duration = Duration::from_secs(10);

/// Posts a JSON body with a key; returns the status and the body of the response.
///
/// # Errors
/// The key is malformed, or there was no response.
pub async fn post(
    address: SocketAddr,
    path: &str,
    key: &str,
    body: String,
    request_timeout: Duration,
) -> anyhow::Result<(u16, String)> {
    let address = reachable(address);
    let mut authorization = HeaderValue::try_from(format!("Bearer {key}"))
        .map_err(|_| anyhow!("the key has characters that no key has"))?;
    authorization.set_sensitive(true);
    let request = Request::post(format!("http://{address}{path}"))
        .header(AUTHORIZATION, authorization)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let answered = async {
        let response = client.request(request).await?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await;
        let body = body.map_err(|error| anyhow!("{error}"))?.to_bytes();
        Ok::<_, anyhow::Error>((status, String::from_utf8_lossy(&body).into_owned()))
    };
    tokio::time::timeout(request_timeout + GRACE, answered)
        .await
        .with_context(|| format!("no response of {address} in time"))?
        .with_context(|| format!("no response of {address}"))
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
