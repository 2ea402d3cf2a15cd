//! Configuration: a TOML file with overrides by environment variables, checked at the start.

mod broadcast;
mod bucket;
mod build;
mod capabilities;
mod deserialize;
mod endpoints;
mod environment;
mod error;
mod files;
mod fixed_point;
mod headers;
mod idle_options;
mod journal;
mod limits;
mod load;
mod nearest;
mod overrides;
mod price_check;
mod process;
mod providers;
mod rate_limits;
mod reload;
mod restart_values;
mod retention;
mod routing;
mod schema;
mod secret;
mod section;
mod server;
mod settings;
mod source;
mod storage;
mod tree;
mod upstreams;
mod urls;
mod used_variables;
mod values;

pub use broadcast::{BroadcastConfig, TelemetryConfig};
pub use bucket::{BucketConfig, CredentialSource};
pub use environment::Environment;
pub use error::ConfigError;
pub use files::read_text;
pub use idle_options::idle_options;
pub use load::{DEFAULT_FILE, load, load_text};
pub use nearest::{nearest, similar};
pub use price_check::price_warnings;
pub use restart_values::RestartValues;
pub use secret::{NamedSecret, QUOTED_SECRET, SecretSource, quoted_secrets};
pub use settings::*;
pub use source::ConfigurationSource;
pub use storage::with_storage_url;
pub use upstreams::*;
pub use used_variables::used_variables;

#[cfg(test)]
mod tests;
