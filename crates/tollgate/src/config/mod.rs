//! Configuration: a TOML file, overridden by environment variables, checked before anything is opened.

mod build;
mod entries;
mod environment;
mod error;
mod file;
mod load;
mod nearest;
mod overrides;
mod providers;
mod schema;
mod secret;
mod settings;
mod urls;

pub use environment::Environment;
pub use error::ConfigError;
pub use load::{DEFAULT_FILE, load, load_text};
pub use secret::SecretSource;
pub use settings::*;

#[cfg(test)]
mod tests;
