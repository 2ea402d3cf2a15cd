//! A client that sends exactly the given bytes.

use std::fmt::Write;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that this is an error of that status in any wire's format, and returns its message.
    #[track_caller]
    pub fn expect_error_in_any_format(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.header("content-type"), Some("application/json"));
        let json = self.json();
        let message = json.pointer("/error/message").or_else(|| json.get("message"));
        message.unwrap().as_str().unwrap().to_owned()
    }

    /// Checks that this is an error envelope of that status, and returns its message.
    #[track_caller]
    pub fn expect_error(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        let json = self.json();
        assert_eq!(json["error"]["code"], status);
        assert_eq!(json["error"]["metadata"]["request_id"], self.header("x-request-id").unwrap());
        assert_eq!(self.header("content-type"), Some("application/json"));
        json["error"]["message"].as_str().unwrap().to_owned()
    }
}

/// Sends a raw request and reads one response, up to its declared length or the end of the connection.
pub async fn exchange(address: SocketAddr, request: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let receive = async {
        let mut answer = Vec::new();
        while !is_whole(&answer) && reader.read_buf(&mut answer).await.unwrap() > 0 {}
        parse(&answer)
    };
    // The server may answer and close before it has read everything.
    let (_, reply) = tokio::join!(writer.write_all(request), receive);
    reply
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let announced = parse(&answer[..end + 4]).header("content-length").and_then(|length| length.parse().ok());
    announced.is_some_and(|length: usize| answer.len() >= end + 4 + length)
}

fn parse(answer: &[u8]) -> Reply {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = std::str::from_utf8(&answer[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_owned(), value.to_owned())
    };
    Reply { status, headers: lines.map(header).collect(), body: answer[end + 4..].to_vec() }
}

/// Builds a request with the given headers and with `Host`, `Connection` and `Content-Length`.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    if ["POST", "PUT", "PATCH"].contains(&method)
        && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding"))
    {
        write!(text, "Content-Length: {}\r\n", body.len()).unwrap();
    }
    text.push_str("\r\n");
    [text.as_bytes(), body].concat()
}
