//! Warnings about valid settings that are probably mistakes, at a start and at a reload.

use adapters_cache::LiveCatalogue;
use domain::model::{Catalogue as _, Model};
use domain::routing::EndpointDirectory;

use super::{configured_endpoints, minimal_rows};
use crate::config::{Config, Environment, QUOTED_SECRET, idle_options, price_warnings, quoted_secrets};

/// Logs the warnings.
pub fn warn_about((config, environment): (&Config, &Environment), live: &LiveCatalogue, endpoints: &EndpointDirectory) {
    for secret in quoted_secrets(config, environment) {
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

/// Warns about prices in the wrong unit, which bill a million times too much or too little.
fn warn_about_prices(config: &Config, live: &LiveCatalogue) {
    let snapshot = live.snapshot();
    for endpoint in configured_endpoints(config) {
        for reason in price_warnings(&endpoint, snapshot.rows().iter().map(AsRef::as_ref)) {
            tracing::warn!(
                endpoint.model = %endpoint.model,
                endpoint.provider = %endpoint.provider,
                reason,
                "endpoint price differs from the catalogue"
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
