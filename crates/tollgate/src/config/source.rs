//! The properties of a configuration in force.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::routing::{ProviderSlug, Wire};

use super::{Config, Environment, ProviderConfig, RateLimitsConfig};

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

/// Returns the names of the set variables that the configuration uses: for secrets, overridden settings and proxies.
/// Values never leave the process, nor does the name of a missing variable, which may be a misplaced secret.
pub fn used_variables(config: &Config, environment: &Environment) -> Vec<String> {
    let mut names: Vec<&str> = config.providers.iter().filter_map(ProviderConfig::secret_variable).collect();
    names.extend(config.rate_limits.as_ref().and_then(RateLimitsConfig::secret_variable));
    names.extend(environment.with_prefix("TOLLGATE__").map(|(name, _)| name));
    names.extend(["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"]);
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter(|name| environment.get(name).is_some()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load_text;

    #[test]
    fn used_variables_have_names_only() {
        let text = "[[providers]]\nslug = \"a\"\nbase_url = \"http://h\"\napi_key = \"env:A_KEY\"\n\
                    [[providers]]\nslug = \"b\"\nbase_url = \"http://h\"\napi_key = \"env:B_KEY\"\n";
        let environment: Environment = [
            ("A_KEY", "sk-secret"),
            ("OTHER", "sk-secret"),
            ("TOLLGATE__LOG__FORMAT", "json"),
            ("https_proxy", "http://user:sk-secret@h:1"),
        ]
        .into_iter()
        .collect();
        let config = load_text(None, text, &environment).unwrap();
        let used = used_variables(&config, &environment);
        assert_eq!(used, ["A_KEY", "TOLLGATE__LOG__FORMAT", "https_proxy"]);
    }
}
