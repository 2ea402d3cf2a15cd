//! An instance: stores, use cases, background tasks, the operator's socket and a server that listens on its port.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use api_actix::{Application, HttpSettings, MetricsServer, MetricsSettings};
use http_server::{BoundSocket, bind_tcp};

use super::process::METRICS_CONNECTIONS;
use super::stages::{FollowedStores, ServingParts, StartContext};
use super::{Background, ProcessMetrics, Reloader, ServerLock, SocketFile, SocketFolder, Stores};
use crate::config::{Config, Environment};

/// The longest time in which a client may send a body.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);

/// The time that a stop waits for detached tasks.
const SHUTDOWN: Duration = Duration::from_secs(30);

/// The pause between attempts to bind a port in use, and their number: a killed process keeps its ports for a moment.
const BIND_PAUSE: Duration = Duration::from_millis(20);
const BIND_ATTEMPTS: usize = 50;

/// The sockets of a server, bound before anything is written: a start whose address another server has leaves nothing.
pub struct ServerSockets {
    port: BoundSocket,
    metrics: Option<BoundSocket>,
}

impl ServerSockets {
    /// Binds the ports. They do not listen before the instance can serve.
    ///
    /// # Errors
    /// A port cannot be bound within a second.
    pub async fn bind(config: &Config) -> anyhow::Result<Self> {
        let server = &config.server;
        let port = bind_free(server.listen, config).await.with_context(|| not_bound(server.listen))?;
        let metrics = match server.metrics_listen {
            None => None,
            Some(listen) => Some(bind_free(listen, config).await.with_context(|| not_bound_for_metrics(listen))?),
        };
        Ok(Self { port, metrics })
    }
}

async fn bind_free(listen: SocketAddr, config: &Config) -> io::Result<BoundSocket> {
    for _ in 1..BIND_ATTEMPTS {
        match bind_tcp(listen, &config.server.connection) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => tokio::time::sleep(BIND_PAUSE).await,
            bound => return bound,
        }
    }
    bind_tcp(listen, &config.server.connection)
}

fn not_bound(listen: SocketAddr) -> String {
    format!("cannot bind {listen}")
}

fn not_bound_for_metrics(listen: SocketAddr) -> String {
    format!("cannot bind {listen} for metrics")
}

/// An instance that listens on its port and does not serve yet.
pub struct Instance {
    application: Application,
    metrics: Option<MetricsServer>,
    background: Background,
    stores: Stores,
    socket: Option<SocketFile>,
    _lock: Option<ServerLock>,
}

impl Instance {
    /// Builds the instance and listens on its sockets. It keeps the lock of its database. The reloader replaces its
    /// configuration while it serves.
    ///
    /// # Errors
    /// A provider's settings are invalid, the catalogue cannot be read, or another process listens on a port.
    pub async fn start(
        config: &Config,
        environment: &Environment,
        sockets: ServerSockets,
        stores: Stores,
        lock: Option<ServerLock>,
    ) -> anyhow::Result<(Self, Reloader)> {
        let background = Background::default();
        let measures = ProcessMetrics::new(config);
        let start = StartContext {
            config,
            environment,
            stores: &stores,
            background: &background,
            measures: &measures,
            is_private: false,
        };
        let ServingParts { services, reloader } = FollowedStores::start(start).await?.journal().await?.serve().await?;
        let (settings, id) = (http_settings(config), services.server.id.clone());
        let mut application = Application::listen(sockets.port, services, settings, background.tasks.clone())
            .with_context(|| not_bound(config.server.listen))?;
        measures.watch_connections(&application.connections());
        measures.watch_admission(&application);
        let metrics = metrics_server(config, sockets.metrics, &measures)?;
        let socket = listen_for_operator(config, &id, &mut application).await;
        if !config.storage.read_only {
            background.sweep(&stores);
        }
        Ok((Self { application, metrics, background, stores, socket, _lock: lock }, reloader))
    }

    /// Returns the bound address.
    pub fn address(&self) -> SocketAddr {
        self.application.local_addr()
    }

    /// Returns the path of the operator's socket.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_ref().map(SocketFile::path)
    }

    /// Serves until `ask` returns. Then drains for the configured period, closes the listener and finishes the requests
    /// in flight. A second return of `ask` ends the drain period, a third one aborts the requests.
    ///
    /// # Errors
    /// The server failed.
    pub async fn serve_until<A: AsyncFnMut()>(self, mut ask: A) -> anyhow::Result<()> {
        let metrics = self.metrics.as_ref().map(MetricsServer::handle);
        if let Some(server) = self.metrics {
            // Metrics stay available until the end; their failure does not stop the gateway.
            self.background.tasks.spawn(async move {
                if let Err(error) = server.run().await {
                    tracing::error!(%error, "metrics listener failed");
                }
            });
        }
        let (running, stopper) = self.application.run();
        let stop = async {
            ask().await;
            tokio::select! {
                () = stopper.drain() => {}
                () = ask() => {}
            }
            tokio::select! {
                () = stopper.close() => {}
                () = ask() => {}
            }
        };
        let mut running = pin!(running);
        let served = tokio::select! {
            served = &mut running => served,
            () = stop => running.await,
        };
        if let Some(metrics) = metrics {
            metrics.stop(false).await;
        }
        served.context("the server failed")?;
        if !self.background.end(SHUTDOWN).await {
            tracing::warn!("background tasks did not end in time");
        }
        self.stores.database.close().await;
        Ok(())
    }
}

/// Listens on the metrics port, if one is configured.
fn metrics_server(
    config: &Config,
    socket: Option<BoundSocket>,
    measures: &ProcessMetrics,
) -> anyhow::Result<Option<MetricsServer>> {
    let (Some(listen), Some(socket), Some(exposition)) = (config.server.metrics_listen, socket, measures.exposition())
    else {
        return Ok(None);
    };
    let settings = MetricsSettings { max_connections: METRICS_CONNECTIONS, connection: config.server.connection };
    let server = MetricsServer::listen(socket, settings, exposition).with_context(|| not_bound_for_metrics(listen))?;
    tracing::info!(metrics.address = %server.local_addr(), "metrics served at /metrics");
    Ok(Some(server))
}

/// Returns the settings of HTTP.
pub(super) fn http_settings(config: &Config) -> HttpSettings {
    HttpSettings {
        base_path: config.server.base_path.clone(),
        wire_names: config.server.wire_names,
        max_json_bytes: config.limits.max_json_bytes,
        admission: config.limits.admission,
        connection: config.server.connection,
        body_timeout: BODY_TIMEOUT,
        request_timeout: config.limits.request_timeout,
        max_connections: config.server.max_connections_per_worker,
        workers: config.server.workers,
        trusted_proxies: config.server.trusted_proxies.clone(),
        record_client_address: config.server.record_client_address,
        drain_period: config.server.drain_period,
        shutdown_timeout: config.server.shutdown_timeout,
    }
}

/// Listens on the operator's socket. A failure does not stop the server: only commands miss it.
async fn listen_for_operator(config: &Config, id: &str, application: &mut Application) -> Option<SocketFile> {
    let folder = SocketFolder::of(&config.storage.servers());
    let bound = SocketFile::bind(&folder, id).await;
    let listening = bound.and_then(|(file, socket)| application.listen_for_operator(socket).map(|()| file));
    match listening {
        Ok(file) => return Some(file),
        // The folder of a read-only database may be read-only, too.
        Err(error) if config.storage.read_only => tracing::debug!(%error, "no operator's socket"),
        Err(error) => tracing::warn!(
            folder = %folder.path().display(),
            %error,
            "no operator's socket: commands cannot reach this server"
        ),
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load_text;

    #[tokio::test]
    async fn bind_waits_for_a_port_that_is_released() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = taken.local_addr().unwrap();
        let text = format!("[server]\nlisten = \"{listen}\"\n");
        let config = load_text(None, &text, &Environment::default()).unwrap();
        let error = ServerSockets::bind(&config).await.err().unwrap();
        assert!(format!("{error:#}").starts_with(&format!("cannot bind {listen}: ")), "{error:#}");
        let mut binding = pin!(ServerSockets::bind(&config));
        assert!(futures_util::poll!(&mut binding).is_pending());
        drop(taken);
        let sockets = binding.await.unwrap();
        assert!(std::net::TcpStream::connect(listen).is_err(), "it listens before it can serve");
        sockets.port.listen().unwrap();
    }
}
