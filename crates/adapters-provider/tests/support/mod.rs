//! A scripted provider on a local socket, and calls to it.
#![allow(dead_code, unused_imports, reason = "each test file uses a part of it")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the runtime of a test ends with it")]

#[path = "../../../wires/tests/support/mod.rs"]
mod requests;
pub mod scripted;

pub use requests::{provider_input, provider_inputs, request, request_with};

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapters_provider::{ProviderSettings, http_provider};
use domain::decision::{ClientConnection, DecisionProvider, NeverDisconnects, ProviderAnswer, ProviderCall, SentBytes};
use domain::routing::{AttemptFailure, Endpoint, Wire};
use domain::secret::SecretString;
use domain::system::Clock;
use domain::testing::FixedClock;
use http_client::{HttpClient, HttpClientSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A timeout for tests that are not about time.
pub const AMPLE: Duration = Duration::from_secs(20);

/// A valid answer, as a body and as HTTP.
pub const ANSWER: &str = r#"{"answers":{"a":{"type":"noul","noul":0.5}},"usage":{"input_tokens":3,"output_tokens":1}}"#;

pub fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

pub struct Upstream {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
}

impl Upstream {
    /// Runs the script on every connection.
    pub async fn start<S, F>(script: S) -> Self
    where
        S: Fn(TcpStream) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(script(socket));
            }
        });
        Self { address, connections }
    }

    /// Answers every request with the same bytes and keeps the connection open.
    pub async fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes: Arc<[u8]> = bytes.into().into();
        Self::start(move |mut socket| {
            let bytes = Arc::clone(&bytes);
            async move {
                while read_request(&mut socket).await.is_some() {
                    if socket.write_all(&bytes).await.is_err() {
                        break;
                    }
                }
            }
        })
        .await
    }

    /// Like [`Self::answering`], but also returns the received requests.
    pub async fn recording(bytes: impl Into<Vec<u8>>) -> (Self, UnboundedReceiver<(String, Vec<u8>)>) {
        let bytes: Arc<[u8]> = bytes.into().into();
        let (tell, requests) = unbounded_channel();
        let upstream = Self::start(move |mut socket| {
            let (bytes, tell) = (Arc::clone(&bytes), tell.clone());
            async move {
                while let Some(request) = read_request(&mut socket).await {
                    let _ = tell.send(request);
                    if socket.write_all(&bytes).await.is_err() {
                        break;
                    }
                }
            }
        })
        .await;
        (upstream, requests)
    }

    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub fn seen(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads one request: its head and its body. `None` at the end of the connection.
pub async fn read_request(socket: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break bytes.drain(..end + 4).collect::<Vec<u8>>();
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(head).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse::<usize>().unwrap());
    while bytes.len() < length {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, bytes))
}

/// Returns an address at which nothing listens.
pub async fn closed_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// Returns once the other side has closed.
pub async fn closed(socket: &mut TcpStream) {
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest).await;
}

/// Returns settings that trust no authorities but those of a file, if given.
pub fn settings() -> HttpClientSettings {
    HttpClientSettings { user_agent: "tollgate-test/1".to_owned(), ..HttpClientSettings::default() }
}

pub fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub fn provider_with(settings: &HttpClientSettings, base_url: &str) -> Arc<dyn DecisionProvider> {
    let one = ProviderSettings {
        api_key: Some(SecretString::new("sk-provider")),
        ..ProviderSettings::new("acme".parse().unwrap(), base_url, Wire::SystemOne)
    };
    provider_of(settings, Wire::SystemOne, one)
}

pub fn provider_of(client: &HttpClientSettings, wire: Wire, provider: ProviderSettings) -> Arc<dyn DecisionProvider> {
    http_provider(client_of(client), clock(), wire, provider).unwrap()
}

pub fn client_of(settings: &HttpClientSettings) -> HttpClient {
    HttpClient::new(settings).unwrap()
}

pub fn clock() -> Arc<dyn Clock> {
    Arc::new(FixedClock::at(chrono::DateTime::UNIX_EPOCH))
}

pub fn provider(upstream: &Upstream) -> Arc<dyn DecisionProvider> {
    provider_with(&settings(), &upstream.base_url())
}

pub fn endpoint() -> Endpoint {
    endpoint_of(Wire::SystemOne)
}

pub fn endpoint_of(wire: Wire) -> Endpoint {
    Endpoint {
        provider_name: "Acme".to_owned(),
        attempt_timeout: AMPLE,
        ..Endpoint::new("acme/judge".parse().unwrap(), "acme".parse().unwrap(), wire, "judge-1.0")
    }
}

pub fn call_within(timeout: Duration, client: Arc<dyn ClientConnection>) -> ProviderCall {
    let body = r#"{"model":"acme/judge","state":"s","questions":{"a":{"type":"noul","instructions":"?"}}}"#;
    ProviderCall {
        endpoint: Arc::new(endpoint()),
        provider_input: provider_input(body),
        timeout,
        client,
        sent: SentBytes::default(),
    }
}

pub fn call() -> ProviderCall {
    call_within(AMPLE, Arc::new(NeverDisconnects))
}

pub async fn decide(provider: &Arc<dyn DecisionProvider>) -> Result<ProviderAnswer, AttemptFailure> {
    provider.decide(call()).await
}
