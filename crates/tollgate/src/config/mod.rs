//! Configuration: a TOML file, overridden by environment variables, checked before anything is opened.

mod admission;
mod broadcast;
mod build;
mod endpoints;
mod entries;
mod environment;
mod error;
mod file;
mod headers;
mod journal;
mod load;
mod nearest;
mod overrides;
mod providers;
mod retention;
mod routing;
mod schema;
mod secret;
mod settings;
mod thousandths;
mod throttling;
mod traits;
mod upstreams;
mod urls;

pub use broadcast::{BroadcastConfig, TelemetryConfig};
pub use environment::Environment;
pub use error::ConfigError;
pub use load::{DEFAULT_FILE, load, load_text};
pub use nearest::nearest;
pub use secret::SecretSource;
pub use settings::*;
pub use upstreams::*;

#[cfg(test)]
mod tests;
