//! Configuration: a TOML file with overrides by environment variables, checked at the start.

mod bucket;
mod endpoints;
mod environment;
mod files;
mod headers;
mod limits;
mod load;
mod providers;
mod rate_limits;
mod reload;
mod routing;
mod schema;
mod secret;
mod section;
mod server;
mod settings;
mod source;
mod storage;
mod telemetry;
mod tree;
mod urls;
mod values;
mod warnings;

pub use bucket::{BucketConfig, CredentialSource};
pub use endpoints::EndpointConfig;
pub use environment::Environment;
pub use files::read_text;
pub use load::{DEFAULT_FILE, load, load_text};
pub use providers::{CapabilitySettings, ProviderConfig};
pub use secret::{NamedSecret, SecretSource};
pub use section::ConfigError;
pub use settings::*;
pub use source::{ConfigurationSource, used_variables};
pub use storage::with_storage_url;
pub use telemetry::TelemetryConfig;
pub use values::{nearest, similar};
pub use warnings::{QUOTED_SECRET, idle_options, quoted_secrets};

#[cfg(test)]
mod tests;
