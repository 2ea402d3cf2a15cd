//! A whole instance: stores, use cases, background tasks and a server that has its port.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adapters_blob::ContentMediaTypes;
use adapters_cache::{CachedKeyGrants, ChangeWatcher, LiveCatalogue};
use adapters_system::{KeyRateLimiter, TokioTimer};
use anyhow::Context;
use api_actix::{Application, HttpSettings, Services, WireNames};
use domain::api_key::{Authenticate, RateLimiter};
use domain::container::BlobStore;
use domain::decision::{SubmitDecision, SubmitDecisionPorts};
use domain::file::{PromoteContainerFile, PromoteContainerFilePorts, StorageLimits};
use domain::guardrail::AssignKeysToGuardrail;
use domain::model::{Catalogue, CountModels, GetModel, Model};
use domain::money::Price;
use domain::system::HealthProbe;

use super::background::look_after_the_dead;
use super::{Background, Presence, Stores, Upstreams, minimal_rows, router};
use crate::config::{Config, Environment, WireNamesConfig};

/// How many keys are kept in memory.
const CACHED_KEYS: u64 = 100_000;
/// For how long a cached key is trusted when the change feed cannot be read; a second is promised.
const STALE_AFTER: Duration = Duration::from_millis(900);
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

async fn services(
    config: &Config,
    environment: &Environment,
    stores: &Stores,
    background: &Background,
) -> anyhow::Result<Services> {
    let Upstreams { provider, endpoints } = Upstreams::build(config, environment)?;
    let live = LiveCatalogue::load(
        Arc::clone(&stores.models),
        &*stores.feed,
        minimal_rows(&config.endpoints),
        !config.sandbox_enabled,
    );
    let live = Arc::new(live.await.context("the catalogue cannot be read")?);
    warn_of_free_calls(config, &live);
    for model in &config.models {
        if let Some(reason) = router::idle_options(model, &live.snapshot(), &endpoints) {
            tracing::warn!(model = %model.model, "options in [[models]] do nothing: {reason}");
        }
    }
    let watcher = Arc::new(ChangeWatcher::new(Arc::clone(&stores.feed), Arc::clone(&stores.clock), STALE_AFTER));
    background.follow_changes(Arc::clone(&watcher), Arc::clone(&live));
    let grants = Arc::new(CachedKeyGrants::new(Arc::clone(&stores.grants), watcher, CACHED_KEYS));
    let catalogue: Arc<dyn Catalogue> = live;
    let promote = PromoteContainerFilePorts {
        documents: Arc::clone(&stores.documents),
        blobs: Arc::clone(&stores.blobs) as Arc<dyn BlobStore>,
        media_types: Arc::new(ContentMediaTypes),
        clock: Arc::clone(&stores.clock),
        timer: Arc::new(TokioTimer),
        ids: Arc::clone(&stores.ids),
    };
    let limits = StorageLimits {
        max_file_bytes: config.limits.max_file_bytes,
        workspace_quota_bytes: config.limits.workspace_quota_bytes,
    };
    let decide = SubmitDecisionPorts {
        catalogue: Arc::clone(&catalogue),
        provider,
        usage: stores.usage(&background.tasks),
        clock: Arc::clone(&stores.clock),
        timer: Arc::new(TokioTimer),
        ids: Arc::clone(&stores.ids),
        random: router::randomness(config)?,
        health: router::health(&endpoints),
    };
    let rate_limiter = config.limits.requests_per_minute.map(KeyRateLimiter::per_minute);
    Ok(Services {
        authenticate: Arc::new(Authenticate::new(grants, Arc::clone(&stores.clock))),
        promote: Arc::new(PromoteContainerFile::new(promote, limits)),
        submit_decision: Arc::new(SubmitDecision::new(decide, endpoints, router::settings(config))),
        assign_keys: Arc::new(AssignKeysToGuardrail::new(Arc::clone(&stores.guardrails))),
        get_model: Arc::new(GetModel::new(Arc::clone(&catalogue))),
        count_models: Arc::new(CountModels::new(catalogue)),
        probes: vec![
            Arc::new(stores.database.clone()) as Arc<dyn HealthProbe>,
            Arc::clone(&stores.blobs) as Arc<dyn HealthProbe>,
        ],
        rate_limiter: rate_limiter.map(|limiter| Arc::new(limiter) as Arc<dyn RateLimiter>),
        ids: Arc::clone(&stores.ids),
        clock: Arc::clone(&stores.clock),
    })
}

/// An endpoint that nobody gave a price is served for nothing: an operator should hear of it before the bill does.
fn warn_of_free_calls(config: &Config, live: &LiveCatalogue) {
    let snapshot = live.snapshot();
    let minimal = minimal_rows(&config.endpoints);
    for endpoint in config.endpoints.iter().filter(|endpoint| endpoint.prices.is_none()) {
        let stands_in = |row: &Model| minimal.contains(row) && row.pricing.prompt == Price::ZERO;
        if snapshot.rows().iter().any(|row| row.id == endpoint.model && stands_in(row)) {
            tracing::warn!(
                endpoint.model = %endpoint.model,
                endpoint.provider = %endpoint.provider,
                "neither the endpoint nor the catalogue has a price: calls are free"
            );
        }
    }
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
