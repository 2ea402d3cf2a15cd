//! A provider made of a socket and a script, and calls to it.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the runtime of a test ends with it")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapters_provider::{HttpClient, HttpClientSettings, Secret, SystemOneProvider, SystemOneSettings};
use domain::decision::{
    CallerPresence, DecisionDraft, DecisionProvider, DecisionRequest, ProviderAnswer, ProviderCall, StaysToTheEnd,
};
use domain::json::Json;
use domain::routing::{AttemptFailure, Endpoint, Wire};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Long enough for everything that is not about time.
pub const AMPLE: Duration = Duration::from_secs(20);

/// A good answer, by itself and as HTTP.
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

    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub fn seen(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// One request: its head and its body. `None` at the end of the connection.
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

/// Returns once the other side has closed.
pub async fn closed(socket: &mut TcpStream) {
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest).await;
}

/// Settings that trust nobody but a file, where one is given.
pub fn settings() -> HttpClientSettings {
    HttpClientSettings { user_agent: "tollgate-test/1".to_owned(), ..HttpClientSettings::default() }
}

pub fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub fn provider_with(settings: &HttpClientSettings, base_url: &str) -> SystemOneProvider {
    let one = SystemOneSettings {
        api_key: Some(Secret::new("sk-provider")),
        ..SystemOneSettings::new("acme".parse().unwrap(), base_url)
    };
    SystemOneProvider::new(HttpClient::new(settings).unwrap(), one).unwrap()
}

pub fn provider(upstream: &Upstream) -> SystemOneProvider {
    provider_with(&settings(), &upstream.base_url())
}

pub fn endpoint() -> Endpoint {
    Endpoint {
        model: "acme/judge".parse().unwrap(),
        provider: "acme".parse().unwrap(),
        provider_name: "Acme".to_owned(),
        wire: Wire::SystemOne,
        upstream_model: "judge-1.0".to_owned(),
        prices: None,
        attempt_timeout: AMPLE,
        token_overhead: 128,
    }
}

/// The checked request of a caller's body.
pub fn request(body: &str) -> DecisionRequest {
    let members = Json::parse(body).unwrap().members().unwrap();
    let member = |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, json)| json.clone());
    let draft = DecisionDraft {
        model: member("model"),
        questions: member("questions"),
        state: member("state"),
        provider: member("provider"),
        session_id: member("session_id"),
        session_id_header: None,
        trace: member("trace"),
        user: member("user"),
    };
    draft.check().unwrap()
}

pub fn call_within(timeout: Duration, caller: Arc<dyn CallerPresence>) -> ProviderCall {
    let body = r#"{"model":"acme/judge","state":"s","questions":{"a":{"type":"noul","instructions":"?"}}}"#;
    ProviderCall { endpoint: Arc::new(endpoint()), request: Arc::new(request(body)), timeout, caller }
}

pub fn call() -> ProviderCall {
    call_within(AMPLE, Arc::new(StaysToTheEnd))
}

pub async fn decide(provider: &SystemOneProvider) -> Result<ProviderAnswer, AttemptFailure> {
    provider.decide(call()).await
}
