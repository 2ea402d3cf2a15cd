//! The commands' side of the control socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::{ControlRequest, ServerStatus};
use crate::wiring::SocketFolder;

/// The maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 16 << 20;
/// The maximum time to wait for the status of a server: slightly more than its probes may take.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks the running servers of a database.
#[derive(Debug, Clone)]
pub struct ControlClient(SocketFolder);

/// A server that is running, and its status or the reason why it is unknown.
#[derive(Debug)]
pub struct RunningServer {
    /// The id of its start.
    pub id: String,
    /// Its status.
    pub status: anyhow::Result<ServerStatus>,
}

impl ControlClient {
    /// Creates a client of the servers of a database file.
    pub fn new(database: &Path) -> Self {
        Self(SocketFolder::of_control(database))
    }

    /// Returns every running server, by the order of their starts. A server without a control socket is not found.
    ///
    /// # Errors
    /// The folder of the sockets cannot be read, for example by another user.
    pub async fn servers(&self) -> anyhow::Result<Vec<RunningServer>> {
        let mut servers = Vec::new();
        for id in self.ids()? {
            let asked = tokio::time::timeout(STATUS_TIMEOUT, self.ask(&id, &ControlRequest::Status)).await;
            let status = match asked {
                Ok(Ok(None)) => continue,
                Ok(Ok(Some(status))) => Ok(status),
                Ok(Err(error)) => Err(error),
                Err(_) => Err(anyhow::anyhow!("no answer within {} s", STATUS_TIMEOUT.as_secs())),
            };
            servers.push(RunningServer { id, status });
        }
        Ok(servers)
    }

    /// Sends a request to a server; returns `None` if it is dead.
    ///
    /// # Errors
    /// The server cannot be asked, or it answered with an error.
    pub async fn ask<T: DeserializeOwned>(&self, id: &str, request: &ControlRequest) -> anyhow::Result<Option<T>> {
        let Some(stream) = self.0.connect(id).await.with_context(|| format!("the server {id} cannot be asked"))? else {
            return Ok(None);
        };
        let answer = exchange(stream, request).await.with_context(|| format!("the server {id} did not answer"))?;
        if let Ok(Failure { error }) = serde_json::from_str(&answer) {
            bail!("{error}");
        }
        serde_json::from_str(&answer).map(Some).context("the server is of another release: its answer is unknown")
    }

    fn ids(&self) -> anyhow::Result<Vec<String>> {
        self.0.ids().map_err(|error| {
            let folder = self.0.path().display();
            let hint = if error.kind() == io::ErrorKind::PermissionDenied {
                "; run the command as the user of the server"
            } else {
                ""
            };
            anyhow::Error::from(error).context(format!("{folder} cannot be read{hint}"))
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    error: String,
}

async fn exchange(mut stream: UnixStream, request: &ControlRequest) -> anyhow::Result<String> {
    let line = serde_json::to_string(request)? + "\n";
    stream.write_all(line.as_bytes()).await?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER_BYTES).read_to_string(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use tokio_util::sync::CancellationToken;
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::control::{ControlHandler, ControlListener};

    struct Fixed(&'static str);

    #[async_trait]
    impl ControlHandler for Fixed {
        async fn answer(&self, _: ControlRequest) -> String {
            self.0.to_owned()
        }
    }

    const STATUS: &str = r#"{"id":"a","pid":7,"version":"9.9.9","started_at":"2027-01-01T00:00:00.000Z",
        "uptime_seconds":3,"address":"127.0.0.1:1","state":"ready","added_later":true}"#;

    #[tokio::test]
    async fn servers_are_asked_until_they_stop() {
        let root = tempfile::tempdir().unwrap();
        let database = root.path().join("t.db");
        let folder = SocketFolder::of_control(&database);
        let (tasks, cancelled) = (TaskTracker::new(), CancellationToken::new());
        for (id, answer) in [("a", STATUS), ("b", r#"{"error":"no"}"#), ("c", "{}")] {
            let listener = ControlListener::bind(&folder, id).await.unwrap();
            tasks.spawn(listener.run(Arc::new(Fixed(answer)), tasks.clone(), cancelled.clone()));
        }
        let client = ControlClient::new(&database);
        let servers = client.servers().await.unwrap();
        let found: Vec<String> = servers
            .iter()
            .map(|server| match &server.status {
                Ok(status) => format!("{} {} {}", server.id, status.version, status.stores.len()),
                Err(error) => format!("{} {error}", server.id),
            })
            .collect();
        assert_eq!(found, ["a 9.9.9 0", "b no", "c the server is of another release: its answer is unknown"]);
        cancelled.cancel();
        tasks.close();
        tasks.wait().await;
        assert!(client.servers().await.unwrap().is_empty());
        assert!(folder.ids().unwrap().is_empty(), "the sockets are removed");
    }

    #[tokio::test]
    async fn malformed_request_is_answered_with_an_error() {
        let root = tempfile::tempdir().unwrap();
        let folder = SocketFolder::of_control(&root.path().join("t.db"));
        let (tasks, cancelled) = (TaskTracker::new(), CancellationToken::new());
        let listener = ControlListener::bind(&folder, "a").await.unwrap();
        tasks.spawn(listener.run(Arc::new(Fixed(STATUS)), tasks.clone(), cancelled.clone()));
        for line in ["\n", "GET / HTTP/1.1\r\n\r\n", "{\"operation\":\"stop\"}\n"] {
            let mut stream = folder.connect("a").await.unwrap().unwrap();
            stream.write_all(line.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("{\"error\":"), "{line}: {answer}");
        }
        cancelled.cancel();
    }
}
