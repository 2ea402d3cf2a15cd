//! The listener of the control socket, and the requests that it reads.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::wiring::SocketFolder;

/// The maximum size of a request, in bytes.
const MAX_REQUEST_BYTES: u64 = 64 << 10;
/// The maximum time in which a client sends its request, and in which it reads the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Concurrent clients, without those whose tests run.
const MAX_CLIENTS: usize = 8;
/// Concurrent tests of providers.
const MAX_TESTS: usize = 4;
/// The maximum time of an answer from this process.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time of a test of a provider.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);
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
    limits: Limits,
}

/// The limits of the answers.
#[derive(Debug, Clone)]
struct Limits {
    /// Concurrent tests. They have their own places, so that tests that hang do not block the status.
    tests: Arc<Semaphore>,
    answer_timeout: Duration,
    test_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let tests = Arc::new(Semaphore::new(MAX_TESTS));
        Self { tests, answer_timeout: ANSWER_TIMEOUT, test_timeout: TEST_TIMEOUT }
    }
}

impl ControlListener {
    /// Binds the socket of a server.
    ///
    /// # Errors
    /// The folder or the socket cannot be created.
    pub async fn bind(folder: &SocketFolder, id: &str) -> io::Result<Self> {
        let (listener, path) = folder.bind(id).await?;
        Ok(Self { listener, path, limits: Limits::default() })
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
            let limits = self.limits.clone();
            tasks.spawn(async move {
                tokio::select! {
                    () = cancelled.cancelled() => {}
                    // A client that disconnects needs no answer.
                    _ = converse(stream, place, &limits, &*handler) => {}
                }
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
async fn accept(listener: &UnixListener, places: &Arc<Semaphore>) -> Option<(UnixStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    if let Ok((stream, _)) = listener.accept().await {
        return Some((stream, place));
    }
    tokio::time::sleep(ACCEPT_PAUSE).await;
    None
}

/// Answers one client. `place` is given back once the request is read if it waits for a provider.
async fn converse(
    stream: UnixStream,
    place: OwnedSemaphorePermit,
    limits: &Limits,
    handler: &dyn ControlHandler,
) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(reader.take(MAX_REQUEST_BYTES));
    tokio::time::timeout(CLIENT_TIMEOUT, reader.read_line(&mut line)).await??;
    let answer = match serde_json::from_str(&line) {
        Ok(request @ ControlRequest::TestProvider { .. }) => {
            drop(place);
            let test = limits.test(handler, request);
            tokio::select! {
                biased;
                answer = test => answer,
                // The call of a client that is gone would be made for nobody.
                _ = closed(&mut reader) => return Ok(()),
            }
        }
        Ok(request) => within(limits.answer_timeout, handler.answer(request)).await,
        Err(_) => error("unknown request; the server may be of another release"),
    };
    let written = async {
        writer.write_all(answer.as_bytes()).await?;
        writer.shutdown().await
    };
    tokio::time::timeout(CLIENT_TIMEOUT, written).await?
}

impl Limits {
    /// Answers a test if few enough run.
    async fn test(&self, handler: &dyn ControlHandler, request: ControlRequest) -> String {
        let Ok(_place) = self.tests.try_acquire() else {
            return error("as many tests of providers as the server allows are running; try again later");
        };
        within(self.test_timeout, handler.answer(request)).await
    }
}

async fn within(timeout: Duration, answer: impl Future<Output = String>) -> String {
    let answer = tokio::time::timeout(timeout, answer).await;
    answer.unwrap_or_else(|_| error(&format!("no answer within {} s", timeout.as_secs().max(1))))
}

/// Returns when the client has closed the connection. Further input is discarded.
async fn closed(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut discarded = [0; 256];
    while reader.read(&mut discarded).await? > 0 {}
    Ok(())
}

fn error(message: &str) -> String {
    serde_json::json!({ "error": message }).to_string()
}

/// A request to a running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum ControlRequest {
    /// Returns a [`ServerStatus`](super::ServerStatus).
    Status,
    /// Tests a provider with its credential in the server, and returns a [`api_actix::ProviderTestReport`].
    TestProvider {
        /// The provider's slug.
        provider: String,
        /// The name of a model, in the catalogue or at the provider; `None` is that of the first endpoint.
        model: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Answers the status at once and tests never, and counts the tests that run.
    #[derive(Default)]
    struct Hanging(AtomicUsize);

    struct Running<'a>(&'a AtomicUsize);

    impl Drop for Running<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[async_trait]
    impl ControlHandler for Hanging {
        async fn answer(&self, request: ControlRequest) -> String {
            if request == ControlRequest::Status {
                return "{}".to_owned();
            }
            self.0.fetch_add(1, Ordering::SeqCst);
            let _running = Running(&self.0);
            std::future::pending().await
        }
    }

    impl Hanging {
        async fn wait_for_tests(&self, count: usize) {
            let reached = async {
                while self.0.load(Ordering::SeqCst) != count {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(10), reached).await.expect("the number of running tests");
        }
    }

    struct Fixture {
        folder: SocketFolder,
        handler: Arc<Hanging>,
        tasks: TaskTracker,
        cancelled: CancellationToken,
        _root: tempfile::TempDir,
    }

    impl Fixture {
        async fn start(test_timeout: Duration) -> Self {
            let root = tempfile::tempdir().unwrap();
            let folder = SocketFolder::of_control(&root.path().join("t.db"));
            let mut listener = ControlListener::bind(&folder, "a").await.unwrap();
            listener.limits.test_timeout = test_timeout;
            let (handler, tasks, cancelled) =
                (Arc::new(Hanging::default()), TaskTracker::new(), CancellationToken::new());
            tasks.spawn(listener.run(
                Arc::clone(&handler) as Arc<dyn ControlHandler>,
                tasks.clone(),
                cancelled.clone(),
            ));
            Self { folder, handler, tasks, cancelled, _root: root }
        }

        async fn send(&self, request: &ControlRequest) -> UnixStream {
            let mut stream = self.folder.connect("a").await.unwrap().unwrap();
            let line = serde_json::to_string(request).unwrap() + "\n";
            stream.write_all(line.as_bytes()).await.unwrap();
            stream
        }

        async fn test(&self) -> UnixStream {
            self.send(&ControlRequest::TestProvider { provider: "p".to_owned(), model: None }).await
        }
    }

    async fn answer(mut stream: UnixStream) -> String {
        let mut answer = String::new();
        let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_string(&mut answer)).await;
        read.expect("an answer").unwrap();
        answer
    }

    #[tokio::test]
    async fn hanging_tests_leave_room_for_status_and_end_with_their_clients() {
        let fixture = Fixture::start(TEST_TIMEOUT).await;
        let mut hanging = Vec::new();
        for count in 1..=MAX_TESTS {
            hanging.push(fixture.test().await);
            fixture.handler.wait_for_tests(count).await;
        }
        for _ in 0..2 * MAX_CLIENTS {
            assert!(answer(fixture.test().await).await.contains("try again later"));
        }
        assert_eq!(answer(fixture.send(&ControlRequest::Status).await).await, "{}");
        drop(hanging);
        fixture.handler.wait_for_tests(0).await;
        let _again = fixture.test().await;
        fixture.handler.wait_for_tests(1).await;
        fixture.cancelled.cancel();
        fixture.tasks.close();
        fixture.tasks.wait().await;
    }

    #[tokio::test]
    async fn test_ends_after_its_time() {
        let fixture = Fixture::start(Duration::from_millis(20)).await;
        assert!(answer(fixture.test().await).await.contains("no answer within 1 s"));
        fixture.handler.wait_for_tests(0).await;
        fixture.cancelled.cancel();
    }
}
