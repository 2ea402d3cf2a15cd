//! A whole instance: stores, use cases, background tasks and a server that has its port.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use api_actix::{Application, HttpSettings, WireNames};

use super::background::look_after_the_dead;
use super::services::services;
use super::{Background, Presence, Stores};
use crate::config::{Config, Environment, WireNamesConfig};

/// How long a graceful stop waits for requests, and again for what they left to do.
const SHUTDOWN: Duration = Duration::from_secs(30);

/// An instance that listens and does not serve yet.
pub struct Instance {
    application: Application,
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
        let services = services(config, environment, &stores, &background).await?;
        let settings = http_settings(config);
        let application = Application::bind(services, settings, background.tasks.clone())
            .with_context(|| format!("{} cannot be listened on", config.server.listen))?;
        let mut presence = None;
        if !config.storage.read_only {
            presence = take_place(&config.storage.file, &stores).await;
            background.sweep(&stores);
        }
        Ok(Self { application, background, stores, _presence: presence })
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
        let stop = async {
            ask().await;
            tokio::select! {
                () = handle.stop(true) => {}
                () = ask() => handle.stop(false).await,
            }
        };
        let (served, ()) = tokio::join!(self.application.run(), stop);
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

fn http_settings(config: &Config) -> HttpSettings {
    HttpSettings {
        listen: config.server.listen,
        base_path: config.server.base_path.clone(),
        wire_names: wire_names(config.server.wire_names),
        max_json_bytes: config.limits.max_json_bytes,
        max_in_flight: Some(config.limits.max_in_flight),
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
