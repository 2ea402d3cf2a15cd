//! The server's side of the control socket.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{ControlFolder, ControlRequest};

/// The maximum size of a request, in bytes.
const MAX_REQUEST_BYTES: u64 = 64 << 10;
/// The maximum time in which a client sends its request, and in which it reads the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Concurrent clients.
const MAX_CLIENTS: usize = 8;
/// The pause after a failed accept, for example without a free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Answers requests.
#[async_trait]
pub trait ControlHandler: Send + Sync {
    /// Returns the JSON document of the answer.
    async fn answer(&self, request: ControlRequest) -> String;
}

/// A bound control socket, which is removed on drop.
#[derive(Debug)]
pub struct ControlListener {
    listener: UnixListener,
    path: PathBuf,
}

impl ControlListener {
    /// Binds the socket of a server.
    ///
    /// # Errors
    /// The folder or the socket cannot be created.
    pub async fn bind(folder: &ControlFolder, id: &str) -> io::Result<Self> {
        let (listener, path) = folder.bind(id).await?;
        Ok(Self { listener, path })
    }

    /// Answers clients until it is cancelled.
    pub async fn run(self, handler: Arc<dyn ControlHandler>, tasks: TaskTracker, cancelled: CancellationToken) {
        let places = Arc::new(Semaphore::new(MAX_CLIENTS));
        loop {
            let accepted = tokio::select! {
                () = cancelled.cancelled() => return,
                accepted = accept(&self.listener, &places) => accepted,
            };
            let Some((stream, place)) = accepted else { continue };
            let (handler, cancelled) = (Arc::clone(&handler), cancelled.clone());
            tasks.spawn(async move {
                tokio::select! {
                    () = cancelled.cancelled() => {}
                    // A client that disconnects needs no answer.
                    _ = converse(stream, &*handler) => {}
                }
                drop(place);
            });
        }
    }
}

impl Drop for ControlListener {
    fn drop(&mut self) {
        // The folder may be gone.
        let _ = fs::remove_file(&self.path);
    }
}

/// Accepts one client when a place is free.
async fn accept(
    listener: &UnixListener,
    places: &Arc<Semaphore>,
) -> Option<(UnixStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    if let Ok((stream, _)) = listener.accept().await {
        return Some((stream, place));
    }
    tokio::time::sleep(ACCEPT_PAUSE).await;
    None
}

async fn converse(stream: UnixStream, handler: &dyn ControlHandler) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(reader.take(MAX_REQUEST_BYTES));
    tokio::time::timeout(CLIENT_TIMEOUT, reader.read_line(&mut line)).await??;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => handler.answer(request).await,
        Err(_) => serde_json::json!({ "error": "unknown request; the server may be of another release" }).to_string(),
    };
    let written = async {
        writer.write_all(answer.as_bytes()).await?;
        writer.shutdown().await
    };
    tokio::time::timeout(CLIENT_TIMEOUT, written).await?
}
