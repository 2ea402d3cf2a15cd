//! A remote provider for the contract suites.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::decision::DecisionProvider;
use domain::routing::Endpoint;
use domain::system::Timer;
use domain::testing::EventCount;
use domain::testing::contract::{PROVIDER_TEXT, Providers, RemoteProvider, RemoteProviders, RemoteReaction};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Upstream, closed, ok, provider_input, read_request};

/// The input of the contract suites, and one that most wires do not support.
pub const SUPPORTED: &str =
    r#"{"model":"acme/judge","state":"s","questions":{"a":{"type":"noul","instructions":"?"}}}"#;
pub const OPAQUE: &str = r#"{"model":"acme/judge","state":"s","questions":"opaque"}"#;

pub struct TokioTimer;

#[async_trait]
impl Timer for TokioTimer {
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A server that answers with a body, unless a test sets another reaction.
#[derive(Clone)]
pub struct ScriptedServer {
    answer: &'static str,
    reaction: Arc<Mutex<RemoteReaction>>,
    requests: EventCount,
}

impl ScriptedServer {
    /// Starts the server, and returns it with its base URL.
    pub async fn start(answer: &'static str) -> (Self, String) {
        let reaction = Arc::new(Mutex::new(RemoteReaction::Answer));
        let server = Self { answer, reaction, requests: EventCount::default() };
        let serving = server.clone();
        let upstream = Upstream::start(move |socket| serving.clone().serve(socket)).await;
        (server, upstream.base_url())
    }

    async fn serve(self, mut socket: TcpStream) {
        while read_request(&mut socket).await.is_some() {
            let reaction = *self.reaction.lock().unwrap();
            self.requests.add();
            let response = match reaction {
                RemoteReaction::Answer => ok(self.answer),
                RemoteReaction::Status(status) => failure(&socket, status),
                RemoteReaction::Malformed => ok(&format!("[{PROVIDER_TEXT:?}]")),
                RemoteReaction::Stall => return closed(&mut socket).await,
            };
            if socket.write_all(response.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    /// Returns the subject of the suites: a provider that calls this server.
    pub fn subject(
        &self,
        provider: Arc<dyn DecisionProvider>,
        endpoint: Endpoint,
        unsupported: &str,
    ) -> RemoteProviders {
        let providers = Providers {
            provider,
            endpoint: Arc::new(endpoint),
            supported: provider_input(SUPPORTED),
            unsupported: provider_input(unsupported),
            keep: Box::new(()),
        };
        RemoteProviders { providers, remote: Arc::new(self.clone()), timer: Arc::new(TokioTimer) }
    }
}

/// Returns a failure, whose text and target of a redirect are set in any case.
fn failure(socket: &TcpStream, status: u16) -> String {
    let body = format!(r#"{{"error":{{"message":"{PROVIDER_TEXT}"}}}}"#);
    format!(
        "HTTP/1.1 {status} .\r\nlocation: http://{}/v1\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        socket.local_addr().unwrap(),
        body.len()
    )
}

#[async_trait]
impl RemoteProvider for ScriptedServer {
    fn react(&self, reaction: RemoteReaction) {
        *self.reaction.lock().unwrap() = reaction;
    }

    fn requests(&self) -> usize {
        self.requests.get()
    }

    async fn reached(&self, requests: usize) {
        self.requests.reached(requests).await;
    }
}
