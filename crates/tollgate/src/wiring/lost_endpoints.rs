//! The rejection of a configuration that lost all its endpoints: an empty or truncated file is valid, and with it every
//! model would be gone and the sandbox be on.

use anyhow::{Context, bail};

use super::Stores;
use crate::config::Config;

/// Checks the configuration of a start against the last server of the database.
///
/// # Errors
/// The configuration has no endpoint and that of the last server had some, or the database cannot be read.
pub async fn check_start(config: &Config, stores: &Stores) -> anyhow::Result<()> {
    let before = stores.database.configured_endpoints().await.context("the database cannot be read")?;
    check(config, before.unwrap_or(0), "the last server of this database had")
}

/// Checks the configuration of a reload against the one in force.
///
/// # Errors
/// The configuration has no endpoint and the one in force has some.
pub fn check_reload(running: &Config, loaded: &Config) -> anyhow::Result<()> {
    check(loaded, count(running), "the running server has")
}

fn check(config: &Config, before: u64, owner: &str) -> anyhow::Result<()> {
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
pub async fn record(config: &Config, stores: &Stores) {
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
