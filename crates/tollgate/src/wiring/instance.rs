//! A whole instance: stores, use cases, background tasks and a server that has its port.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use api_actix::{Application, HttpSettings, MetricsServer, MetricsSettings, WireNames};

use super::background::look_after_the_dead;
use super::services::services;
use super::{Background, Measures, Presence, Stores};
use crate::config::{Config, Environment, WireNamesConfig};

/// How long a stop waits for what requests left to do.
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
        measures.watch_connections(application.connections());
        measures.watch_admission(&application);
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

    /// Serves until `ask` returns, then drains for the configured period, closes the listener and finishes what is in
    /// flight. A further return of `ask` ends the drain period; one after that ends what is in flight.
    ///
    /// # Errors
    /// The server failed.
    pub async fn serve_until<A: AsyncFnMut()>(self, mut ask: A) -> anyhow::Result<()> {
        let metrics = self.metrics.as_ref().map(MetricsServer::handle);
        if let Some(server) = self.metrics {
            // Measures are read for as long as there is something to count, and their failure is not the gateway's.
            self.background.tasks.spawn(async move {
                if let Err(error) = server.run().await {
                    tracing::error!(%error, "measures are not served any more");
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
    let settings = MetricsSettings {
        listen,
        max_connections: config.server.metrics_max_connections,
        connection: config.server.connection,
    };
    let server = MetricsServer::bind(settings, exposition)
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
        admission: config.limits.admission,
        connection: config.server.connection,
        body_timeout: config.limits.body_timeout,
        request_timeout: config.limits.request_timeout,
        max_connections: config.server.max_connections_per_worker,
        workers: config.server.workers,
        trusted_proxies: config.server.trusted_proxies.clone(),
        drain_period: config.server.drain_period,
        shutdown_timeout: config.server.shutdown_timeout,
    }
}

/// The HTTP layer's word for the configuration's.
pub fn wire_names(names: WireNamesConfig) -> WireNames {
    match names {
        WireNamesConfig::Interface => WireNames::Interface,
        WireNamesConfig::OpenRouter => WireNames::OpenRouter,
    }
}
