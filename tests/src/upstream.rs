//! A simulated provider with configurable behaviour that records its requests.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// The provider's reaction to a request.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// Responds with a status, further header lines and a body.
    Answer(u16, String, String),
    /// Responds with a 200 after a delay.
    Late(Duration, String),
    /// Resets the connection.
    Reset,
    /// Closes the connection without a response.
    Close,
    /// Answers the first request of each connection, and ends the connection when another one arrives: by a reset if
    /// the flag is set.
    DieBetweenCalls(bool, String),
    /// Sends nothing.
    HangBeforeHeaders,
    /// Sends headers and the beginning of a body, and then nothing.
    HangAfterHeaders,
    /// Sends this many bytes as the body of a 200, until the client stops reading.
    Flood(u64),
    /// Sends raw bytes and closes.
    Raw(Vec<u8>),
    /// Sends the whole response byte by byte, with this delay between bytes.
    Drip(Duration, String),
    /// Sends the head and this many bytes of the body, then resets the connection.
    ResetAfter(usize, String),
    /// Responds with the status and the body that a function returns for the request.
    Speak(fn(&Recorded) -> (u16, String)),
}

impl Behaviour {
    /// Returns a 200 with a JSON body.
    pub fn json(body: impl Into<String>) -> Self {
        Self::Answer(200, String::new(), body.into())
    }

    /// Returns a status with an empty JSON object.
    pub fn status(status: u16) -> Self {
        Self::Answer(status, String::new(), "{}".to_owned())
    }
}

/// A recorded request.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Request line and headers.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
    /// True if the connection ended instead of a response, by [`Behaviour::DieBetweenCalls`].
    pub is_lost: bool,
}

impl Recorded {
    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A provider at a loopback address; stopped when it is dropped.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    state: Arc<State>,
    _accepting: JoinSet<()>,
}

#[derive(Debug)]
struct State {
    behaviour: Mutex<Behaviour>,
    requests: Mutex<Vec<Recorded>>,
    abandoned: AtomicUsize,
    flooded: AtomicU64,
}

impl Upstream {
    /// Starts a provider.
    pub async fn start(behaviour: Behaviour) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            behaviour: Mutex::new(behaviour),
            requests: Mutex::default(),
            abandoned: AtomicUsize::new(0),
            flooded: AtomicU64::new(0),
        });
        let mut accepting = JoinSet::new();
        let shared = Arc::clone(&state);
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                // Head and body are written apart: the second would wait 40 ms for the client to acknowledge the first.
                let _ = stream.set_nodelay(true);
                let state = Arc::clone(&shared);
                connections.spawn(async move {
                    // The test observes connection errors at the client.
                    let _ = state.converse(stream).await;
                });
            }
        });
        Ok(Self { address, state, _accepting: accepting })
    }

    /// Sets the behaviour from the next request on.
    pub fn behave(&self, behaviour: Behaviour) {
        *lock(&self.state.behaviour) = behaviour;
    }

    /// Returns the provider's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its base URL for the configuration.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Takes the requests since the last call.
    pub fn take_requests(&self) -> Vec<Recorded> {
        std::mem::take(&mut lock(&self.state.requests))
    }

    /// Takes the only request since the last call.
    pub fn take_request(&self) -> Result<Recorded> {
        let mut requests = self.take_requests();
        ensure!(requests.len() == 1, "{} requests instead of one", requests.len());
        requests.pop().context("no request")
    }

    /// Returns the number of flood bytes sent.
    pub fn flooded(&self) -> u64 {
        self.state.flooded.load(Ordering::SeqCst)
    }

    /// Waits until a request has arrived.
    pub async fn wait_for_request(&self) -> Result<()> {
        self.wait_for_requests(1).await
    }

    /// Waits until this many requests have arrived since the last call.
    pub async fn wait_for_requests(&self, count: usize) -> Result<()> {
        wait_for("requests at the provider", || lock(&self.state.requests).len() >= count).await
    }

    /// Waits until the client has abandoned `times` hanging requests.
    pub async fn wait_until_abandoned(&self, times: usize) -> Result<()> {
        wait_for("an abandoned call", || self.state.abandoned.load(Ordering::SeqCst) >= times).await
    }
}

/// Waits until a condition is true, ten seconds at most.
pub async fn wait_for(what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        ensure!(Instant::now() < deadline, "waited in vain for {what}");
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

impl State {
    async fn converse(&self, mut stream: TcpStream) -> Result<()> {
        let mut unread = Vec::new();
        let mut is_reused = false;
        while let Some(mut request) = read_request(&mut stream, &mut unread).await? {
            // Read before the request is recorded: a test that sees the request may change the behaviour.
            let behaviour = lock(&self.behaviour).clone();
            request.is_lost = is_reused && matches!(behaviour, Behaviour::DieBetweenCalls(..));
            lock(&self.requests).push(request.clone());
            let behaviour = match behaviour {
                Behaviour::DieBetweenCalls(true, _) if request.is_lost => Behaviour::Reset,
                Behaviour::DieBetweenCalls(false, _) if request.is_lost => Behaviour::Close,
                Behaviour::DieBetweenCalls(_, body) => Behaviour::json(body),
                other => other,
            };
            if !self.behave(behaviour, &request, &mut stream).await? {
                break;
            }
            is_reused = true;
        }
        Ok(())
    }

    /// Responds; returns true if the connection stays open.
    async fn behave(&self, behaviour: Behaviour, request: &Recorded, stream: &mut TcpStream) -> Result<bool> {
        match behaviour {
            Behaviour::Answer(status, headers, body) => answer(stream, status, &headers, &body).await?,
            Behaviour::Late(after, body) => {
                sleep(after).await;
                answer(stream, 200, "", &body).await?;
            }
            Behaviour::Reset => {
                stream.set_zero_linger()?;
                return Ok(false);
            }
            Behaviour::Close | Behaviour::DieBetweenCalls(..) => return Ok(false),
            Behaviour::HangBeforeHeaders => return self.hang(stream).await,
            Behaviour::HangAfterHeaders => {
                stream.write_all(head(200, "", 1_000).as_bytes()).await?;
                stream.write_all(b"{\"answers\":").await?;
                return self.hang(stream).await;
            }
            Behaviour::Flood(size) => self.flood(stream, size).await?,
            Behaviour::Raw(bytes) => {
                stream.write_all(&bytes).await?;
                stream.shutdown().await?;
                return Ok(false);
            }
            Behaviour::Drip(pause, body) => {
                for byte in format!("{}{body}", head(200, "", body.len())).as_bytes() {
                    stream.write_all(&[*byte]).await?;
                    sleep(pause).await;
                }
            }
            Behaviour::ResetAfter(bytes, body) => {
                stream.write_all(head(200, "", body.len()).as_bytes()).await?;
                stream.write_all(&body.as_bytes()[..bytes.min(body.len())]).await?;
                stream.flush().await?;
                // The bytes must arrive before the reset discards buffered data.
                sleep(Duration::from_millis(20)).await;
                stream.set_zero_linger()?;
                return Ok(false);
            }
            Behaviour::Speak(speak) => {
                let (status, body) = speak(request);
                answer(stream, status, "", &body).await?;
            }
        }
        Ok(true)
    }

    async fn hang(&self, stream: &mut TcpStream) -> Result<bool> {
        let mut nothing = [0; 1_024];
        while stream.read(&mut nothing).await.is_ok_and(|read| read > 0) {}
        self.abandoned.fetch_add(1, Ordering::SeqCst);
        Ok(false)
    }

    async fn flood(&self, stream: &mut TcpStream, size: u64) -> Result<()> {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n").await?;
        stream.write_all(b"{\"answers\":\"").await?;
        let piece = vec![b'a'; 65_536];
        while self.flooded.load(Ordering::SeqCst) < size {
            stream.write_all(&piece).await?;
            self.flooded.fetch_add(piece.len() as u64, Ordering::SeqCst);
        }
        anyhow::bail!("the flood was taken whole")
    }
}

fn head(status: u16, headers: &str, length: usize) -> String {
    format!("HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n")
}

async fn answer(stream: &mut TcpStream, status: u16, headers: &str, body: &str) -> Result<()> {
    stream.write_all(head(status, headers, body.len()).as_bytes()).await?;
    Ok(stream.write_all(body.as_bytes()).await?)
}

/// Returns the next request, or `None` at the end of the connection. Bytes of the following request stay in `unread`.
async fn read_request(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Result<Option<Recorded>> {
    let end = loop {
        if let Some(at) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(unread).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&unread[..end]).into_owned();
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(Ok(0), |(_, value)| value.trim().parse::<usize>())?;
    let whole = end + 4 + length;
    while unread.len() < whole {
        ensure!(stream.read_buf(unread).await? > 0, "the request was cut short");
    }
    let body = unread[end + 4..whole].to_vec();
    unread.drain(..whole);
    Ok(Some(Recorded { head, body, is_lost: false }))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
