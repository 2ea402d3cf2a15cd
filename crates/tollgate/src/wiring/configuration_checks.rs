//! Checks of a valid configuration at a start and at a reload: warnings about probable mistakes, and the rejection of one
//! that lost all its endpoints. An empty or truncated file is valid, and with it every model would be gone and the sandbox
//! be on.

use adapters_cache::LiveCatalogue;
use anyhow::{Context, bail};
use domain::model::{Catalogue as _, Model};
use domain::routing::{EndpointDirectory, price_warnings};

use super::{Stores, configured_endpoints, minimal_rows};
use crate::config::{Config, QUOTED_SECRET, idle_options, quoted_secrets};

/// Logs the warnings.
pub fn warn_about(config: &Config, live: &LiveCatalogue, endpoints: &EndpointDirectory) {
    for secret in quoted_secrets(config) {
        tracing::warn!(secret, reason = QUOTED_SECRET, "secret in quotation marks");
    }
    warn_about_prices(config, live);
    warn_about_missing_prices(config, live);
    warn_about_idle_options(config, live, endpoints);
    for entry in config.proxy.unknown_entries() {
        tracing::warn!(entry, "NO_PROXY entry without effect: its form is unknown");
    }
}

/// Warns about endpoints without prices, which are served for free.
fn warn_about_missing_prices(config: &Config, live: &LiveCatalogue) {
    let snapshot = live.snapshot();
    let minimal = minimal_rows(&config.endpoints);
    for endpoint in config.endpoints.iter().filter(|endpoint| endpoint.prices.is_none()) {
        let stands_in = |row: &Model| minimal.contains(row) && !row.pricing.is_known;
        if snapshot.rows().iter().any(|row| row.id == endpoint.model && stands_in(row)) {
            tracing::warn!(
                endpoint.model = %endpoint.model,
                endpoint.provider = %endpoint.provider,
                "no price in the endpoint or the catalogue: calls are free"
            );
        }
    }
}

/// Warns about prices in the wrong unit, which bill a million times too much or too little, and about free calls.
fn warn_about_prices(config: &Config, live: &LiveCatalogue) {
    let snapshot = live.snapshot();
    for endpoint in configured_endpoints(config) {
        for reason in price_warnings(&endpoint, snapshot.rows().iter().map(AsRef::as_ref)) {
            tracing::warn!(
                endpoint.model = %endpoint.model,
                endpoint.provider = %endpoint.provider,
                reason,
                "check the endpoint's price"
            );
        }
    }
}

/// Warns about options of misspelt models, which have no effect.
fn warn_about_idle_options(config: &Config, live: &LiveCatalogue, endpoints: &EndpointDirectory) {
    for model in &config.models {
        if let Some(reason) = idle_options(model, &live.snapshot(), endpoints) {
            tracing::warn!(model.id = %model.model, reason, "[[models]] option without effect");
        }
    }
}

/// Checks the configuration of a start against the last server of the database.
///
/// # Errors
/// The configuration has no endpoint and that of the last server had some, or the database cannot be read.
pub async fn require_endpoints_at_start(config: &Config, stores: &Stores) -> anyhow::Result<()> {
    let before = stores.database.configured_endpoints().await.context("the database cannot be read")?;
    require_endpoints(config, before.unwrap_or(0), "the last server of this database had")
}

/// Checks the configuration of a reload against the one in force.
///
/// # Errors
/// The configuration has no endpoint and the one in force has some.
pub fn require_endpoints_at_reload(running: &Config, loaded: &Config) -> anyhow::Result<()> {
    require_endpoints(loaded, count(running), "the running server has")
}

fn require_endpoints(config: &Config, before: u64, owner: &str) -> anyhow::Result<()> {
    if before == 0 || !config.endpoints.is_empty() {
        return Ok(());
    }
    let file = config.file.as_ref().map_or("no configuration file".to_owned(), |file| file.display().to_string());
    bail!(
        "the configuration ({file}) has no endpoint, and {owner} {before}: check the file, or accept this with `tollgate \
         serve --allow-no-endpoints`"
    )
}

/// Records the number of endpoints for the next start. A failure only weakens its check.
pub async fn record_endpoints(config: &Config, stores: &Stores) {
    if config.storage.read_only {
        return;
    }
    if let Err(error) = stores.database.record_configured_endpoints(count(config)).await {
        tracing::warn!(error = &error as &dyn std::error::Error, "number of endpoints not recorded");
    }
}

fn count(config: &Config) -> u64 {
    config.endpoints.len() as u64
}
