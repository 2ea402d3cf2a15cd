//! Configuration: a TOML file with overrides by environment variables, checked at the start.

mod admission;
mod broadcast;
mod build;
mod capabilities;
mod encryption;
mod endpoints;
mod entries;
mod environment;
mod error;
mod file;
mod fixed_point;
mod headers;
mod journal;
mod load;
mod nearest;
mod overrides;
mod providers;
mod reload;
mod retention;
mod routing;
mod schema;
mod secret;
mod settings;
mod throttling;
mod upstreams;
mod urls;

pub use broadcast::{BroadcastConfig, TelemetryConfig};
pub use encryption::EncryptionKeySource;
pub use environment::Environment;
pub use error::ConfigError;
pub use load::{DEFAULT_FILE, load, load_text};
pub use nearest::nearest;
pub use reload::RestartValues;
pub use secret::SecretSource;
pub use settings::*;
pub use upstreams::*;

#[cfg(test)]
mod tests;
