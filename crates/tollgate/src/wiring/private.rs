//! The application of one command, for a database without a running server.

use std::io;
use std::time::Duration;

use anyhow::Context;
use api_actix::serve_operator;
use domain::authority::Authority;
use tempfile::TempDir;
use tokio::net::UnixStream;

use super::instance::http_settings;
use super::stages::{FollowedStores, StartContext};
use super::{
    Background, FOLD_WITHIN, ProcessMetrics, Schema, ServerLock, SocketFile, SocketFolder, Stores, fold_journals,
};
use crate::config::{Config, Environment};

/// The name of the socket.
const SOCKET: &str = "command";
/// The time that the end waits for the tasks.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// An application on a socket that only this user can reach.
pub struct PrivateApplication {
    folder: SocketFolder,
    background: Background,
    stores: Stores,
    _socket: SocketFile,
    _place: TempDir,
    _lock: Option<ServerLock>,
}

impl PrivateApplication {
    /// Starts the application; returns the id of a server that started first, if one did. Other commands and servers may
    /// use the database at the same time.
    ///
    /// # Errors
    /// The stores cannot be opened, another process uses the database alone, or the socket cannot be created.
    pub async fn start(
        config: &Config,
        environment: &Environment,
        by: &Authority,
    ) -> anyhow::Result<Result<Self, String>> {
        let lock = match take_lock(config).await? {
            Ok(lock) => lock,
            Err(server) => return Ok(Err(server)),
        };
        let stores = Stores::open(config, Schema::Required).await?;
        fold_journals(config, &stores, FOLD_WITHIN).await?;
        if !config.storage.read_only {
            stores.create_workspace().default(by).await?;
        }
        let (background, measures) = (Background::default(), ProcessMetrics::new(config));
        let start = StartContext {
            config,
            environment,
            stores: &stores,
            background: &background,
            measures: &measures,
            is_private: true,
        };
        let parts = FollowedStores::start(start).await?.journal().await?.serve().await?;
        let place = TempDir::new().context("cannot create a temporary folder")?;
        let folder = SocketFolder::of(&place.path().join("tollgate"));
        let (socket, listener) = SocketFile::bind(&folder, SOCKET).await.context("cannot create a private socket")?;
        let serving = serve_operator(parts.services, http_settings(config), background.tasks.clone(), listener)?;
        let cancelled = background.cancelled.clone();
        background.tasks.spawn(async move { drop(cancelled.run_until_cancelled(serving).await) });
        Ok(Ok(Self { folder, background, stores, _socket: socket, _place: place, _lock: lock }))
    }

    /// Connects to the application.
    ///
    /// # Errors
    /// It has failed.
    pub async fn connect(&self) -> io::Result<UnixStream> {
        self.folder.connect(SOCKET).await?.ok_or_else(|| io::ErrorKind::ConnectionRefused.into())
    }

    /// Stops the application.
    pub async fn stop(self) {
        self.background.end(STOP_TIMEOUT).await;
        self.stores.database.close().await;
    }
}

/// Takes the lock of the database's servers, shared with other commands, `None` without support for locks; or finds the
/// server that has started meanwhile.
async fn take_lock(config: &Config) -> anyhow::Result<Result<Option<ServerLock>, String>> {
    let path = config.storage.servers();
    let lock = ServerLock::share(&path).await?;
    Ok(SocketFolder::of(&path).find_server().await?.map_or(Ok(lock), Err))
}
