//! A minimal HTTP/1.1 client, so that the measurement shows the server and not the client.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One keep-alive connection.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A response.
pub struct Response {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl Connection {
    /// Connects, without Nagle's algorithm.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 * 1024) })
    }

    /// Sends a request, reads the whole response and returns its status.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<u16> {
        self.read_response(request).await.map(|(status, ..)| status)
    }

    /// Sends a whole request and reads the whole response.
    pub async fn call(&mut self, request: &[u8]) -> Result<Response> {
        let (status, start, end) = self.read_response(request).await?;
        Ok(Response { status, body: self.buffer[start..end].to_vec() })
    }

    async fn read_response(&mut self, request: &[u8]) -> Result<(u16, usize, usize)> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let mut head = None;
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed the connection in the middle of a response");
            }
            if head.is_none() {
                head = parse_head(&self.buffer)?;
            }
            if let Some(Head { status, body_start, body_length }) = head {
                let end = body_start + body_length;
                if self.buffer.len() >= end {
                    return Ok((status, body_start, end));
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    status: u16,
    body_start: usize,
    body_length: usize,
}

/// Parses a response head. Returns `None` while it is incomplete. Every server here sends `Content-Length`.
fn parse_head(bytes: &[u8]) -> Result<Option<Head>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&bytes[..end]).context("the response's head is not text")?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let status = status.context("the response has no status")?;
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok());
    let body_length = length.with_context(|| format!("the response ({status}) has no Content-Length"))?;
    Ok(Some(Head { status, body_start: end + 4, body_length }))
}

/// Returns the bytes of a request.
pub fn request(method: &str, path: &str, key: &str, body: Option<&[u8]>) -> Vec<u8> {
    let mut bytes =
        format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n").into_bytes();
    match body {
        Some(body) => {
            bytes
                .extend(format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes());
            bytes.extend(body);
        }
        None if method == "GET" => bytes.extend(b"\r\n"),
        None => bytes.extend(b"Content-Length: 0\r\n\r\n"),
    }
    bytes
}

/// Sends one request over a new connection; any status but 200 is an error.
pub async fn call_once(address: SocketAddr, request: &[u8]) -> Result<Vec<u8>> {
    let response = Connection::open(address).await?.call(request).await?;
    if response.status != 200 {
        bail!("the answer was {}: {}", response.status, String::from_utf8_lossy(&response.body));
    }
    Ok(response.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_head_returns_none_until_the_head_is_complete() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-LENGTH: 12\r\nx: y\r\n\r\nabc";
        assert_eq!(parse_head(&whole[..30]).unwrap(), None);
        assert_eq!(parse_head(whole).unwrap(), Some(Head { status: 200, body_start: 45, body_length: 12 }));
        assert!(parse_head(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }

    #[test]
    fn request_has_content_length_of_its_body() {
        let text = String::from_utf8(request("POST", "/x", "k", Some(b"{}"))).unwrap();
        assert!(text.starts_with("POST /x HTTP/1.1\r\n") && text.ends_with("Content-Length: 2\r\n\r\n{}"));
        assert!(String::from_utf8(request("GET", "/x", "k", None)).unwrap().ends_with("Bearer k\r\n\r\n"));
    }
}
