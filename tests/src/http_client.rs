//! A client that sends requests unchanged.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::openapi;

/// The time after which a call counts as hung.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// An HTTP request.
#[derive(Debug, Clone)]
pub struct Call {
    method: Method,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Bytes,
}

impl Call {
    /// Creates a request of any method; `path` is sent unchanged.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body: Bytes::new() }
    }

    /// Creates a GET request.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// Creates a POST request.
    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    /// Adds `Authorization: Bearer <secret>`.
    #[must_use]
    pub fn key(self, secret: &str) -> Self {
        self.header("authorization", format!("Bearer {secret}"))
    }

    /// Adds a header; its value may be any bytes that HTTP permits.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    /// Sets a body with `Content-Type: application/json`.
    #[must_use]
    pub fn json(self, body: impl AsRef<[u8]>) -> Self {
        self.header("content-type", "application/json").body(body)
    }

    /// Sets a body without a content type.
    #[must_use]
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = Bytes::copy_from_slice(body.as_ref());
        self
    }

    /// Sends the request over a new connection. Dropping the future closes the connection. A JSON response of a server
    /// must match the OpenAPI document that it serves.
    pub async fn send(&self, to: SocketAddr) -> Result<Reply> {
        tokio::time::timeout(CALL_TIMEOUT, self.exchange(to))
            .await
            .with_context(|| format!("no answer to {} {}", self.method, self.path))?
            .and_then(|reply| openapi::check(to, &self.method, &self.path, &reply).map(|()| reply))
            .with_context(|| format!("{} {}", self.method, self.path))
    }

    async fn exchange(&self, to: SocketAddr) -> Result<Reply> {
        let stream = TcpStream::connect(to).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let mut request = Request::builder().method(self.method.clone()).uri(&self.path).header("host", to.to_string());
        for (name, value) in &self.headers {
            request = request.header(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_bytes(value)?);
        }
        let response = sender.send_request(request.body(Full::new(self.body.clone()))?).await?;
        let (head, body) = response.into_parts();
        Ok(Reply { status: head.status.as_u16(), headers: head.headers, body: body.collect().await?.to_bytes() })
    }
}

/// An HTTP response.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Reply {
    /// Parses the body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("{} is not JSON: {}", self.status, self.text()))
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns a header as text; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the JSON body of a 200 response; any other status is an error.
    pub fn ok(&self) -> Result<Value> {
        anyhow::ensure!(self.status == 200, "{} instead of 200: {}", self.status, self.text());
        anyhow::ensure!(!self.header("x-request-id").is_empty(), "a 200 without an x-request-id");
        self.json()
    }

    /// Returns the envelope of an error response after checks: the status and the code are equal, the message exists,
    /// and the metadata contains the request id of the header.
    pub fn envelope(&self, status: u16) -> Result<Value> {
        anyhow::ensure!(self.status == status, "{} instead of {status}: {}", self.status, self.text());
        let body = self.json()?;
        let error = &body["error"];
        anyhow::ensure!(error["code"] == status, "error.code is not the status {status}: {body}");
        anyhow::ensure!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "no message: {body}");
        let request_id = self.header("x-request-id");
        anyhow::ensure!(!request_id.is_empty(), "no x-request-id beside {body}");
        anyhow::ensure!(error["metadata"]["request_id"] == request_id, "another request than {request_id}: {body}");
        anyhow::ensure!(self.header("content-type").starts_with("application/json"), "the envelope is not JSON");
        let known = ["error", "service_metadata", "user_id"];
        let members = body.as_object().context("the envelope is no object")?;
        anyhow::ensure!(members.keys().all(|name| known.contains(&name.as_str())), "odd members: {body}");
        Ok(body)
    }

    /// Returns the envelope like [`Reply::envelope`] and checks for a part of the message.
    pub fn error(&self, status: u16, message: &str) -> Result<Value> {
        let body = self.envelope(status)?;
        let said = body["error"]["message"].as_str().unwrap_or_default();
        anyhow::ensure!(said.contains(message), "the message does not say {message:?}: {said:?}");
        Ok(body)
    }
}

/// Sends bytes unchanged and reads until the server closes or sends nothing for two seconds.
pub async fn raw(to: SocketAddr, bytes: &[u8]) -> Result<String> {
    let mut stream = TcpStream::connect(to).await?;
    // The server may respond and close before it has read all bytes.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let mut piece = vec![0; 65_536];
    while let Ok(Ok(read)) = tokio::time::timeout(Duration::from_secs(2), stream.read(&mut piece)).await {
        if read == 0 {
            break;
        }
        answer.extend_from_slice(&piece[..read]);
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
