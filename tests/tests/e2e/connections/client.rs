//! A client that keeps its connection and exposes every byte.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The maximum time of a response on a busy machine.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// A response with the bytes of its body.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The response head in lower case.
    pub head: String,
    pub body: String,
}

impl Answer {
    /// Returns true if the server closes the connection after the response.
    pub fn closes(&self) -> bool {
        self.head.contains("\r\nconnection: close\r\n")
    }
}

pub struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    pub async fn connect(to: SocketAddr) -> Result<Self> {
        Ok(Self { stream: timeout(MAX_WAIT, TcpStream::connect(to)).await??, unread: Vec::new() })
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        Ok(self.stream.write_all(bytes.as_ref()).await?)
    }

    /// Reads the response to a request of any method but HEAD.
    pub async fn answer(&mut self) -> Result<Answer> {
        timeout(MAX_WAIT, self.read_answer(false)).await.context("no answer")?
    }

    /// Reads the response to HEAD.
    pub async fn answer_to_head(&mut self) -> Result<Answer> {
        timeout(MAX_WAIT, self.read_answer(true)).await.context("no answer")?
    }

    /// Fails if the server sends a byte or keeps the connection open.
    pub async fn ensure_closed(&mut self) -> Result<()> {
        ensure!(self.unread.is_empty(), "behind the answer: {}", String::from_utf8_lossy(&self.unread));
        let read = timeout(MAX_WAIT, self.stream.read_buf(&mut self.unread)).await.context("it stays open")?;
        ensure!(!matches!(read, Ok(1..)), "more was sent: {}", String::from_utf8_lossy(&self.unread));
        Ok(())
    }

    async fn read_answer(&mut self, head_only: bool) -> Result<Answer> {
        let end = loop {
            if let Some(at) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.read_more().await?;
        };
        let head = String::from_utf8(self.unread.drain(..end).collect())?.to_ascii_lowercase();
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or("0");
        let length: usize = if head_only || status < 200 { 0 } else { length.parse()? };
        while self.unread.len() < length {
            self.read_more().await?;
        }
        let body = String::from_utf8(self.unread.drain(..length).collect())?;
        Ok(Answer { status, head, body })
    }

    async fn read_more(&mut self) -> Result<()> {
        let read = self.stream.read_buf(&mut self.unread).await?;
        ensure!(read > 0, "the connection ended in the middle of an answer, or before it");
        Ok(())
    }
}

/// Returns a request without a body.
pub fn request(method: &str, path: &str, headers: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n")
}

/// Returns a Decisions request with a key.
pub fn decision(secret: &str, body: &str) -> String {
    let headers = format!(
        "authorization: Bearer {secret}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    request("POST", "/api/alpha/decisions", &headers) + body
}
