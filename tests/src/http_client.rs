//! A client that sends requests unchanged.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;

use crate::openapi;
use crate::reply::Reply;

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
        self.send_within(to, CALL_TIMEOUT).await
    }

    /// Sends the request like [`Self::send`], with another time after which it counts as hung.
    pub async fn send_within(&self, to: SocketAddr, longest: Duration) -> Result<Reply> {
        let sent = async { self.exchange(TcpStream::connect(to).await?, &to.to_string()).await };
        tokio::time::timeout(longest, sent)
            .await
            .with_context(|| format!("no answer to {} {}", self.method, self.path))?
            .and_then(|reply| openapi::check(to, &self.method, &self.path, &reply).map(|()| reply))
            .with_context(|| format!("{} {}", self.method, self.path))
    }

    /// Sends the request over a Unix socket.
    pub async fn send_over(&self, socket: &Path) -> Result<Reply> {
        let sent = async { self.exchange(UnixStream::connect(socket).await?, "tollgate").await };
        let reply = tokio::time::timeout(CALL_TIMEOUT, sent).await.context("no answer")?;
        reply.with_context(|| format!("{} {} over {}", self.method, self.path, socket.display()))
    }

    async fn exchange(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        host: &str,
    ) -> Result<Reply> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let mut request = Request::builder().method(self.method.clone()).uri(&self.path).header("host", host);
        for (name, value) in &self.headers {
            request = request.header(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_bytes(value)?);
        }
        let response = sender.send_request(request.body(Full::new(self.body.clone()))?).await?;
        let (head, body) = response.into_parts();
        Ok(Reply { status: head.status.as_u16(), headers: head.headers, body: body.collect().await?.to_bytes() })
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
