//! The HTTP client of the demo.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::exchange::{Exchange, Request};

/// The maximum time for a response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A client of one server.
pub struct DemoClient {
    client: Client<HttpConnector, Full<hyper::body::Bytes>>,
    address: SocketAddr,
}

impl DemoClient {
    /// Creates a client for an address.
    pub fn new(address: SocketAddr) -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build_http(), address }
    }

    /// Sends a request and reads the response.
    ///
    /// # Errors
    /// No response was received.
    pub async fn send(&self, request: Request) -> anyhow::Result<Exchange> {
        let url = format!("http://{}{}", self.address, request.path);
        let mut builder = http::Request::builder().method(&request.method).uri(url);
        if let Some(key) = &request.key {
            builder = builder.header(AUTHORIZATION, format!("Bearer {key}"));
        }
        if request.body.is_some() {
            builder = builder.header(CONTENT_TYPE, "application/json");
        }
        let sent = builder.body(Full::from(request.body.clone().unwrap_or_default()))?;
        let answered = async {
            let answer = self.client.request(sent).await?;
            let status = answer.status().as_u16();
            let request_id = answer.headers().get("x-request-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
            let body = answer.into_body().collect().await?.to_bytes();
            Ok::<_, anyhow::Error>((status, request_id, String::from_utf8_lossy(&body).into_owned()))
        };
        let (status, request_id, body) = tokio::time::timeout(TIMEOUT, answered)
            .await
            .context("no response in time")?
            .with_context(|| format!("{} {} was not answered", request.method, request.path))?;
        Ok(Exchange { request, status, request_id, body })
    }
}
