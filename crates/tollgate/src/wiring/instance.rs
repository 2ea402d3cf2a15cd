//! A whole instance: stores, use cases, background tasks and a server that has its port.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use api_actix::{Application, HttpSettings, MetricsServer, WireNames};

use super::background::look_after_the_dead;
use super::services::services;
use super::{Background, Measures, Presence, Stores};
use crate::config::{Config, Environment, WireNamesConfig};

/// How long a graceful stop waits for requests, and again for what they left to do.
const SHUTDOWN: Duration = Duration::from_secs(30);

/// An instance that listens and does not serve yet.
pub struct Instance {
    application: Application,
    metrics: Option<MetricsServer>,
    background: Background,
    stores: Stores,
    _presence: Option<Presence>,
}

impl Instance {
    /// Puts everything together and takes the port.
    ///
    /// # Errors
    /// A provider's settings cannot be used, the catalogue cannot be read, or the port cannot be taken.
    pub async fn start(config: &Config, environment: &Environment, stores: Stores) -> anyhow::Result<Self> {
        let background = Background::default();
        let measures = Measures::new(config);
        let services = services(config, environment, &stores, &background, &measures).await?;
        let settings = http_settings(config);
        let application = Application::bind(services, settings, background.tasks.clone())
            .with_context(|| format!("{} cannot be listened on", config.server.listen))?;
        let metrics = metrics_server(config, &measures)?;
        let mut presence = None;
        if !config.storage.read_only {
            presence = take_place(&config.storage.file, &stores).await;
            background.sweep(&stores);
        }
        Ok(Self { application, metrics, background, stores, _presence: presence })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.application.local_addr()
    }

    /// Serves until `ask` returns, then finishes what is in flight; a second return of `ask` ends it at once.
    ///
    /// # Errors
    /// The server failed.
    pub async fn serve_until<A: AsyncFnMut()>(self, mut ask: A) -> anyhow::Result<()> {
        let handle = self.application.handle();
        let metrics = self.metrics.as_ref().map(MetricsServer::handle);
        if let Some(server) = self.metrics {
            // Measures are read for as long as there is something to count, and their failure is not the gateway's.
            self.background.tasks.spawn(async move {
                if let Err(error) = server.run().await {
                    tracing::error!(%error, "measures are not served any more");
                }
            });
        }
        let stop = async {
            ask().await;
            tokio::select! {
                () = handle.stop(true) => {}
                () = ask() => handle.stop(false).await,
            }
        };
        let (served, ()) = tokio::join!(self.application.run(), stop);
        if let Some(metrics) = metrics {
            metrics.stop(false).await;
        }
        served.context("the server failed")?;
        if !self.background.end(SHUTDOWN).await {
            tracing::warn!("some work did not end in time");
        }
        self.stores.database.close().await;
        Ok(())
    }
}

/// Without a place nothing is lost: what dead processes left behind then waits for the sweeper's grace period.
async fn take_place(database: &Path, stores: &Stores) -> Option<Presence> {
    Presence::take(database, async || look_after_the_dead(stores).await)
        .await
        .inspect_err(|error| tracing::debug!(%error, "the database's folder takes no locks"))
        .ok()
}

/// Takes the port of measures, where the configuration names one.
fn metrics_server(config: &Config, measures: &Measures) -> anyhow::Result<Option<MetricsServer>> {
    let (Some(listen), Some(exposition)) = (config.server.metrics_listen, measures.exposition()) else {
        return Ok(None);
    };
    let server = MetricsServer::bind(listen, exposition)
        .with_context(|| format!("{listen} cannot be listened on for measures"))?;
    tracing::info!(metrics.address = %server.local_addr(), "measures can be read at /metrics");
    Ok(Some(server))
}

fn http_settings(config: &Config) -> HttpSettings {
    HttpSettings {
        listen: config.server.listen,
        base_path: config.server.base_path.clone(),
        wire_names: wire_names(config.server.wire_names),
        max_json_bytes: config.limits.max_json_bytes,
        draft_bounds: config.limits.draft_bounds,
        max_in_flight: Some(config.limits.max_in_flight),
        connection: config.server.connection,
        body_timeout: config.limits.body_timeout,
        request_timeout: config.limits.request_timeout,
        max_connections: config.server.max_connections,
        workers: config.server.workers,
        trusted_proxies: config.server.trusted_proxies.clone(),
        shutdown_timeout: SHUTDOWN,
    }
}

/// The HTTP layer's word for the configuration's.
pub fn wire_names(names: WireNamesConfig) -> WireNames {
    match names {
        WireNamesConfig::Interface => WireNames::Interface,
        WireNamesConfig::OpenRouter => WireNames::OpenRouter,
    }
}
