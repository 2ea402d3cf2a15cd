//! Use cases behind HTTP, each with the adapters that it needs.

use std::sync::Arc;
use std::time::Duration;

use adapters_blob::ContentMediaTypes;
use adapters_cache::{CachedKeyGrants, ChangeWatcher, LiveCatalogue};
use adapters_system::{KeyRateLimiter, TokioTimer};
use anyhow::Context;
use api_actix::Services;
use domain::api_key::Authenticate;
use domain::container::BlobStore;
use domain::decision::{SubmitDecision, SubmitDecisionPorts};
use domain::file::{PromoteContainerFile, PromoteContainerFilePorts, StorageLimits};
use domain::guardrail::{AssignKeysToGuardrail, NoGuardrails};
use domain::model::{Catalogue, CountModels, GetModel, ListModels, Model};
use domain::money::Price;
use domain::observability::NoMeter;
use domain::rate::{RateLimiter, RateLimits};
use domain::routing::{EndpointDirectory, ListModelEndpoints, ListProviders};
use domain::system::HealthProbe;
use domain::usage::GetGeneration;

use super::resting::Resting;
use super::{Background, Stores, Upstreams, minimal_rows, router};
use crate::config::{Config, Environment};

/// How many keys are kept in memory.
const CACHED_KEYS: u64 = 100_000;
/// For how long a cached key is trusted when the change feed cannot be read; a second is promised.
const STALE_AFTER: Duration = Duration::from_millis(900);

/// Builds every use case, and starts what runs beside requests.
///
/// # Errors
/// A provider's settings cannot be used, or the catalogue cannot be read.
pub async fn services(
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
    warn_of_idle_options(config, &live, &endpoints);
    let clock = || Arc::clone(&stores.clock);
    let watcher = Arc::new(ChangeWatcher::new(Arc::clone(&stores.feed), clock(), STALE_AFTER));
    background.follow_changes(Arc::clone(&watcher), Arc::clone(&live));
    let grants = Arc::new(CachedKeyGrants::new(Arc::clone(&stores.grants), watcher, CACHED_KEYS));
    let health = router::health(config, &endpoints);
    background.watch_endpoints(Resting::new(Arc::clone(&endpoints), Arc::clone(&health)), clock());
    let live: Arc<dyn Catalogue> = live;
    let catalogue = || Arc::clone(&live);
    let decide = SubmitDecisionPorts {
        catalogue: catalogue(),
        provider,
        ledger: stores.ledger(&background.tasks),
        policies: Arc::new(NoGuardrails),
        meter: Arc::new(NoMeter),
        clock: clock(),
        timer: Arc::new(TokioTimer),
        ids: Arc::clone(&stores.ids),
        random: router::randomness(config)?,
        health: Arc::clone(&health),
    };
    let rate_limiter = config.limits.requests_per_minute.map(KeyRateLimiter::per_minute);
    let directory = || Arc::clone(&endpoints);
    Ok(Services {
        authenticate: Arc::new(Authenticate::new(grants, clock())),
        promote: Arc::new(promote(config, stores)),
        submit_decision: Arc::new(SubmitDecision::new(decide, directory(), router::settings(config))),
        assign_keys: Arc::new(AssignKeysToGuardrail::new(Arc::clone(&stores.guardrails))),
        get_model: Arc::new(GetModel::new(catalogue())),
        count_models: Arc::new(CountModels::new(catalogue())),
        list_models: Arc::new(ListModels::new(catalogue())),
        list_model_endpoints: Arc::new(ListModelEndpoints::new(catalogue(), directory(), Arc::clone(&health), clock())),
        list_providers: Arc::new(ListProviders::new(directory(), health, clock())),
        get_generation: Arc::new(GetGeneration::new(Arc::clone(&stores.usage), catalogue(), directory())),
        probes: vec![
            Arc::new(stores.database.clone()) as Arc<dyn HealthProbe>,
            Arc::clone(&stores.blobs) as Arc<dyn HealthProbe>,
        ],
        rate_limiter: rate_limiter.map(|limiter| Arc::new(limiter) as Arc<dyn RateLimiter>),
        key_rates: RateLimits { requests_per_minute: config.limits.requests_per_minute, tokens_per_minute: None },
        workspace_rates: RateLimits::default(),
        ids: Arc::clone(&stores.ids),
        clock: clock(),
    })
}

fn promote(config: &Config, stores: &Stores) -> PromoteContainerFile {
    let ports = PromoteContainerFilePorts {
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
    PromoteContainerFile::new(ports, limits)
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

/// A misspelt model would never be hedged nor shared, and nobody would see it.
fn warn_of_idle_options(config: &Config, live: &LiveCatalogue, endpoints: &EndpointDirectory) {
    for model in &config.models {
        if let Some(reason) = router::idle_options(model, &live.snapshot(), endpoints) {
            tracing::warn!(model.id = %model.model, reason, "an option in [[models]] has no effect");
        }
    }
}
