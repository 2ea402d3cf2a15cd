//! The control socket of this process.

use std::net::SocketAddr;
use std::sync::Arc;

use http_server::Connections;

use super::{Background, Stores};
use crate::config::Config;
use crate::control::{ControlFolder, ControlListener, ServerIdentity, StatusHandler, StatusParts};

/// Describes the server that starts now.
pub fn identity(config: &Config, stores: &Stores, address: SocketAddr) -> ServerIdentity {
    let file = config.file.as_ref().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()));
    ServerIdentity {
        id: stores.ids.process_id().to_string(),
        started_at: stores.clock.now(),
        began: stores.clock.monotonic(),
        address: address.to_string(),
        base_path: config.server.base_path.clone(),
        config_file: file.map(|file| file.display().to_string()),
    }
}

/// Listens on the control socket in the background. A failure does not stop the server: only commands miss it.
pub async fn listen(
    config: &Config,
    identity: ServerIdentity,
    parts: StatusParts,
    connections: Connections,
    background: &Background,
) {
    let folder = ControlFolder::of(&config.storage.file);
    match ControlListener::bind(&folder, &identity.id).await {
        Ok(listener) => {
            let handler = Arc::new(StatusHandler::new(identity, parts, connections));
            let (tasks, cancelled) = (background.tasks.clone(), background.cancelled.clone());
            background.tasks.spawn(listener.run(handler, tasks, cancelled));
        }
        // The folder of a read-only database may be read-only, too.
        Err(error) if config.storage.read_only => tracing::debug!(%error, "no control socket"),
        Err(error) => tracing::warn!(
            folder = %folder.path().display(),
            %error,
            "no control socket: commands cannot show the status of this server"
        ),
    }
}
