//! The properties of a configuration in force.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::routing::{ProviderSlug, Wire};

use super::{Config, Environment, used_variables};

/// The properties of a configuration in force that commands ask for.
#[derive(Debug, Clone, Default)]
pub struct ConfigurationSource {
    /// The time at which it was read.
    pub loaded_at: DateTime<Utc>,
    /// The names of the set environment variables that it uses.
    pub variables: Vec<String>,
    /// The wire of each configured provider, with or without an endpoint.
    pub wires: HashMap<ProviderSlug, Wire>,
}

impl ConfigurationSource {
    /// Describes a configuration that was read now.
    pub fn new(config: &Config, environment: &Environment, now: DateTime<Utc>) -> Self {
        let wires = config.providers.iter().map(|provider| (provider.slug.clone(), provider.wire)).collect();
        Self { loaded_at: now, variables: used_variables(config, environment), wires }
    }
}
