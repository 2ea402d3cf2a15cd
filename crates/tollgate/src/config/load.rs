//! The loading of the configuration from a file and the environment.

use std::path::{Path, PathBuf};

use http_client::ProxySettings;

use super::endpoints::endpoints;
use super::files::read_text;
use super::limits::{limits, retention};
use super::providers::providers;
use super::rate_limits::rate_limits;
use super::reload::restart_values;
use super::routing::{RawRouting, models, money, unknown_usage};
use super::server::{RawEgress, log, max_stale_keys, sandbox, server};
use super::storage::{blobs, journal, storage};
use super::telemetry::telemetry;
use super::tree::Tree;
use super::{Config, ConfigError, Environment};

/// The file that is read by default, if it exists.
pub const DEFAULT_FILE: &str = "tollgate.toml";

/// Reads the file at `path`, or [`DEFAULT_FILE`] if it exists, and the overrides.
///
/// # Errors
/// The first error, with its origin. A file at `path` must exist.
pub fn load(path: Option<&Path>, environment: &Environment) -> Result<Config, ConfigError> {
    let path = match path {
        Some(path) => Some(path.to_owned()),
        None => Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists()),
    };
    let Some(path) = path else { return load_text(None, "", environment) };
    let text = read_text(&path).map_err(|error| {
        ConfigError::new(format!("the configuration file {} cannot be read: {error}", path.display()))
    })?;
    // Editors of Windows write a byte order mark.
    load_text(Some(&path), text.trim_start_matches('\u{feff}'), environment)
}

/// Loads the configuration from a text.
///
/// # Errors
/// The first error, with its origin.
pub fn load_text(path: Option<&Path>, text: &str, environment: &Environment) -> Result<Config, ConfigError> {
    build(path, &Tree::new(path.unwrap_or(Path::new(DEFAULT_FILE)), text, environment)?, environment)
}

/// Checks every value and applies the defaults.
fn build(file: Option<&Path>, tree: &Tree, environment: &Environment) -> Result<Config, ConfigError> {
    let providers = providers(&tree.list_of_pairs("providers")?, environment)?;
    let limits = limits(&tree.section("limits")?)?;
    let storage = storage(&tree.section("storage")?, environment)?;
    let money_section = tree.section("money")?;
    let egress = tree.section::<RawEgress>("egress")?;
    Ok(Config {
        file: file.map(Path::to_owned),
        endpoints: endpoints(&tree.list_of_pairs("endpoints")?, &providers)?,
        models: models(&tree.list("models")?)?,
        server: server(&tree.section("server")?, &limits)?,
        journal: journal(&tree.section("journal")?, &storage),
        max_stale_keys: max_stale_keys(&tree.section("keys")?),
        storage,
        blobs: blobs(&tree.section("blobs")?, environment)?,
        sandbox: sandbox(&tree.section("sandbox")?, !providers.is_empty())?,
        log: log(&tree.section("log")?, environment)?,
        unknown_usage: unknown_usage(&money_section),
        money: money(&money_section)?,
        limits,
        rate_limits: rate_limits(&tree.section("rate_limits")?, environment)?,
        seed: tree.section::<RawRouting>("routing")?.seed,
        retention: retention(&tree.section("retention")?)?,
        allow_private_addresses: egress.allow_private_addresses.unwrap_or(false),
        telemetry: telemetry(&tree.section("telemetry")?, environment)?,
        providers,
        proxy: ProxySettings {
            https_proxy: environment.first(&["HTTPS_PROXY", "https_proxy"]),
            http_proxy: environment.first(&["HTTP_PROXY", "http_proxy"]),
            no_proxy: no_proxy(environment),
        },
        restart_values: restart_values(tree),
    })
}

/// Returns the entries of `NO_PROXY` and `no_proxy`. Tools disagree on the variable that has precedence.
fn no_proxy(environment: &Environment) -> Option<String> {
    let set: Vec<&str> = ["NO_PROXY", "no_proxy"].into_iter().filter_map(|name| environment.get(name)).collect();
    (!set.is_empty()).then(|| set.join(","))
}
