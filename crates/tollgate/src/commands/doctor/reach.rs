//! The reachability of a provider: a connection is opened and closed without a request.

use std::time::Duration;

use anyhow::{Context as _, bail};
use http::Uri;
use tokio::net::TcpStream;

/// Connects to the host of a base URL.
///
/// # Errors
/// The URL has no host, or the connection failed or timed out.
pub async fn reach(base_url: &str, timeout: Duration) -> anyhow::Result<String> {
    let uri: Uri = base_url.parse().context("the base URL is malformed")?;
    let Some(host) = uri.host() else { bail!("the base URL has no host") };
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    tokio::time::timeout(timeout, TcpStream::connect((plain, port)))
        .await
        .with_context(|| format!("{host}:{port} did not answer within {} ms", timeout.as_millis()))?
        .with_context(|| format!("{host}:{port} cannot be reached"))?;
    Ok(format!("{host}:{port} accepts TCP connections"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn reach_fails_when_port_is_closed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let second = Duration::from_secs(1);
        assert!(reach(&url, second).await.unwrap().contains("accepts TCP connections"));
        drop(listener);
        assert!(reach(&url, second).await.is_err());
    }
}
