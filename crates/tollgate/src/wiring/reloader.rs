//! The reload of the configuration by a running server.

use std::sync::Arc;

use adapters_cache::LiveCatalogue;
use anyhow::Context;
use api_actix::LiveServices;
use domain::routing::HealthBoard;
use tokio::sync::watch;

use super::configuration_warnings::warn_about;
use super::{ProcessMetrics, RoutedParts, Upstreams, lost_endpoints, minimal_rows, router, sandbox_models};
use crate::config::{self, Config, ConfigurationSource, Environment};
use crate::routing::{CurrentRouting, Routing};
use crate::telemetry::{self, LevelFilter};

/// Replaces the providers, the endpoints and the rules of routing of a running server.
pub struct Reloader {
    config: Config,
    environment: Environment,
    upstreams: Upstreams,
    catalogue: Arc<LiveCatalogue>,
    parts: RoutedParts,
    services: LiveServices,
    routing: watch::Sender<Arc<Routing>>,
    measures: ProcessMetrics,
}

/// A valid configuration that is not in force yet.
struct Loaded {
    config: Config,
    upstreams: Upstreams,
    filter: Option<LevelFilter>,
    restart_keys: Vec<String>,
}

impl Reloader {
    /// Builds the use cases of the first configuration.
    pub fn new(
        (config, environment): (&Config, &Environment),
        upstreams: Upstreams,
        catalogue: Arc<LiveCatalogue>,
        parts: RoutedParts,
        measures: ProcessMetrics,
    ) -> Self {
        let endpoints = Arc::clone(&upstreams.endpoints);
        let routing = Routing {
            health: router::health(config, &endpoints),
            endpoints,
            provider: Arc::clone(&upstreams.provider),
            source: ConfigurationSource::new(config, environment, parts.stores.clock.now()),
        };
        let services = LiveServices::new(parts.build(config, Arc::clone(&upstreams.provider), &routing, None));
        let routing = watch::Sender::new(Arc::new(routing));
        let (config, environment) = (config.clone(), environment.clone());
        Self { config, environment, upstreams, catalogue, parts, services, routing, measures }
    }

    /// Returns the use cases, which a reload replaces.
    pub fn services(&self) -> LiveServices {
        self.services.clone()
    }

    /// Returns the endpoints, which a reload replaces.
    pub fn routing(&self) -> CurrentRouting {
        self.routing.subscribe()
    }

    /// Reads the configuration file again, with the environment of the start, and puts it in force. Requests in flight
    /// end with the previous configuration. A configuration that lost all endpoints is accepted only with
    /// `allow_no_endpoints`.
    ///
    /// Logs the settings that need a restart and did change.
    ///
    /// # Errors
    /// The configuration, a secret or a certificate is invalid, or the catalogue cannot be read. The previous
    /// configuration stays in force as a whole.
    pub async fn reload(&mut self, allow_no_endpoints: bool) -> anyhow::Result<()> {
        let (config, environment) = (self.config.clone(), self.environment.clone());
        // Certificates and secrets are read from files.
        let loaded = tokio::task::spawn_blocking(move || load(&config, &environment)).await??;
        let Loaded { config, upstreams, filter, restart_keys } = loaded;
        if !allow_no_endpoints {
            lost_endpoints::check_reload(&self.config, &config)?;
        }
        let rows = minimal_rows(&config.endpoints);
        let replaced = self.catalogue.reconfigure(rows, sandbox_models(&config)).await;
        replaced.context("the catalogue cannot be read")?;
        // No later step fails.
        self.put_in_force(config, upstreams);
        if let Some(Err(error)) = filter.map(LevelFilter::apply) {
            tracing::warn!(error = format!("{error:#}"), "log filter not replaced");
        }
        if !restart_keys.is_empty() {
            tracing::warn!(settings = restart_keys.join(", "), "changed settings need a restart");
        }
        warn_about((&self.config, &self.environment), &self.catalogue, &self.upstreams.endpoints);
        lost_endpoints::record(&self.config, &self.parts.stores).await;
        Ok(())
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn put_in_force(&mut self, config: Config, upstreams: Upstreams) {
        let routing = Routing {
            health: Arc::new(self.health(&config, &upstreams)),
            endpoints: Arc::clone(&upstreams.endpoints),
            provider: Arc::clone(&upstreams.provider),
            source: ConfigurationSource::new(&config, &self.environment, self.parts.stores.clock.now()),
        };
        self.measures.add_providers(&upstreams.endpoints);
        let replaced = self.services.current();
        let services = self.parts.build(&config, Arc::clone(&upstreams.provider), &routing, Some(&replaced));
        self.services.replace(services);
        self.routing.send_replace(Arc::new(routing));
        self.config = config;
        self.upstreams = upstreams;
    }

    fn health(&self, config: &Config, upstreams: &Upstreams) -> HealthBoard {
        let previous = self.upstreams.indices_in(upstreams);
        self.routing.borrow().health.succeeded_by(&previous, config.throttling)
    }
}

fn load(running: &Config, environment: &Environment) -> anyhow::Result<Loaded> {
    // A file that was removed, or is just being replaced, must not count as an empty configuration.
    let loaded = config::load(running.file.as_deref(), environment)?;
    let restart_keys = running.restart_keys(&loaded);
    let config = running.reloaded(loaded);
    let filter = match config.log.filter {
        None => Some(LevelFilter::parse(telemetry::server_level(&config.log))?),
        Some(_) => None,
    };
    Ok(Loaded { upstreams: Upstreams::build(&config, environment)?, filter, restart_keys, config })
}
