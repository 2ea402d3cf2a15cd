//! The contract of the sender, against a scripted receiver on a local socket.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the runtime of a test ends with it")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters_broadcast::{BroadcastSettings, HttpMessageSender};
use async_trait::async_trait;
use domain::system::Timer;
use domain::testing::FixedClock;
use domain::testing::contract::{RECEIVER_TEXT, Receiver, ReceiverReaction, Senders};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

struct TokioTimer;

#[async_trait]
impl Timer for TokioTimer {
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

struct HttpReceiver {
    address: SocketAddr,
    closed: SocketAddr,
    script: Arc<Mutex<Script>>,
}

struct Script {
    reaction: ReceiverReaction,
    bodies: Vec<String>,
}

impl HttpReceiver {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let script = Arc::new(Mutex::new(Script { reaction: ReceiverReaction::Status(200), bodies: Vec::new() }));
        let served = Arc::clone(&script);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, address, Arc::clone(&served)));
            }
        });
        Self { address, closed, script }
    }
}

impl Receiver for HttpReceiver {
    fn url(&self) -> String {
        format!("http://{}/in", self.address)
    }

    fn closed_url(&self) -> String {
        format!("http://{}/in", self.closed)
    }

    fn react(&self, reaction: ReceiverReaction) {
        self.script.lock().unwrap().reaction = reaction;
    }

    fn bodies(&self) -> Vec<String> {
        self.script.lock().unwrap().bodies.clone()
    }
}

/// Responds to every request of a connection.
async fn serve(mut socket: TcpStream, address: SocketAddr, script: Arc<Mutex<Script>>) {
    while let Some(body) = read_body(&mut socket).await {
        let reaction = {
            let mut script = script.lock().unwrap();
            script.bodies.push(body);
            script.reaction
        };
        let (status, header) = match reaction {
            ReceiverReaction::Status(status @ 300..=399) => (status, format!("location: http://{address}/in\r\n")),
            ReceiverReaction::Status(status) => (status, String::new()),
            ReceiverReaction::Delay(seconds) => (503, format!("retry-after: {seconds}\r\n")),
            ReceiverReaction::Stall => continue,
        };
        // A 204 has no body.
        let text = if status == 204 { "" } else { RECEIVER_TEXT };
        let response = format!("HTTP/1.1 {status} .\r\n{header}content-length: {}\r\n\r\n{text}", text.len());
        if socket.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads the body of one request; `None` at the end of the connection.
async fn read_body(socket: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some(body.to_owned());
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

fn sender(allow_private_addresses: bool) -> Arc<HttpMessageSender> {
    let timeout = Duration::from_millis(500);
    let settings = BroadcastSettings { timeout, allow_private_addresses, ..BroadcastSettings::default() };
    Arc::new(HttpMessageSender::new(&settings, Arc::new(FixedClock::default())).unwrap())
}

async fn http_sender() -> Senders {
    Senders {
        sender: sender(true),
        public_only: sender(false),
        receiver: Arc::new(HttpReceiver::start().await),
        timer: Arc::new(TokioTimer),
        keep: Box::new(()),
    }
}

domain::message_sender_contract!(
    #[tokio::test]
    crate::http_sender
);
