//! The running servers of the data folder.

use api_actix::{ServerStatus, Status};
use futures_util::future::join_all;
use http_client::before_deadline;
use serde::Deserialize;

use crate::commands::prelude::*;
use crate::wiring::SocketFolder;

/// The path of the status.
pub const STATUS: &str = "/status";
/// The maximum time to wait for the status of a server: slightly more than its probes may take.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// A running server, and its status or the reason why it is unknown.
pub struct RunningServer {
    /// The id of its start.
    pub id: String,
    /// Its status.
    pub status: anyhow::Result<Status>,
}

#[derive(Deserialize)]
struct Response {
    data: Status,
}

/// Returns the status of every running server, in the order of their starts. `path` is [`STATUS`], with parameters.
///
/// # Errors
/// The folder of the sockets cannot be used, for example by another user.
pub async fn running(context: &Context, path: &str) -> anyhow::Result<Vec<RunningServer>> {
    let folder = SocketFolder::of(&context.config.storage.servers());
    let found = folder.servers().await?;
    let ask = async |id: String| {
        let api = Api::of_server(context, folder.clone(), &id);
        let asked = before_deadline(STATUS_TIMEOUT, read(&api, path)).await;
        let silent = || anyhow::anyhow!("the server did not answer within {} s", STATUS_TIMEOUT.as_secs());
        RunningServer { id, status: asked.unwrap_or_else(|| Err(silent())) }
    };
    Ok(join_all(found.into_iter().map(|(id, _)| ask(id))).await)
}

/// Reads the status of one server.
///
/// # Errors
/// It does not answer, or its answer is unknown.
pub async fn read(api: &Api<'_>, path: &str) -> anyhow::Result<Status> {
    api.read(path).await.map(|Response { data }| data)
}

impl RunningServer {
    /// Returns the server's own status.
    ///
    /// # Errors
    /// It is unknown.
    pub fn own_status(self) -> anyhow::Result<ServerStatus> {
        self.status?.servers.pop().context("the server does not describe itself")
    }
}
