//! The settings that a running server can replace, and those that need a restart.

use super::tree::Tree;
use super::{Config, RestartValues, SandboxConfig, schema};

/// Keys of sections that are not repeated and that a reload applies. The lists `[[providers]]`, `[[endpoints]]` and
/// `[[models]]` are applied too.
const RELOADABLE: [(&str, &[&str]); 3] = [
    ("sandbox", &["enabled", "errors"]),
    ("log", &["filter"]),
    ("money", &["max_tokens_per_byte", "unpriced_models", "default_usd_per_token"]),
];

/// Returns true if a reload applies the key.
pub fn is_reloadable(section: &str, key: &str) -> bool {
    RELOADABLE.iter().any(|(name, keys)| *name == section && keys.contains(&key))
        || schema::section(section).is_some_and(|section| section.is_list)
}

/// Collects the values of the keys that need a restart.
pub fn restart_values(tree: &Tree) -> RestartValues {
    let values = tree.values().filter(|(section, key, _)| !is_reloadable(section, key));
    RestartValues::new(values.map(|(section, key, value)| (format!("{section}.{key}"), value)))
}

impl Config {
    /// Returns this configuration with the settings of `loaded` that a reload applies.
    #[must_use]
    pub fn reloaded(&self, loaded: Self) -> Self {
        let mut config = self.clone();
        config.providers = loaded.providers;
        config.endpoints = loaded.endpoints;
        config.models = loaded.models;
        config.sandbox = self.sandbox.reloaded(loaded.sandbox);
        config.log.server_filter = loaded.log.server_filter;
        config.money = loaded.money;
        config
    }

    /// Returns the keys that differ in `loaded` and need a restart. A key that is set to its default is no difference.
    pub fn restart_keys(&self, loaded: &Self) -> Vec<String> {
        let mut keys = self.restart_values.changed(&loaded.restart_values);
        keys.retain(|key| !self.has_same_section(loaded, key.split_once('.').map_or("", |(section, _)| section)));
        let next = self.sandbox.reloaded(loaded.sandbox);
        keys.extend((next.enabled != loaded.sandbox.enabled).then(|| "sandbox.enabled".to_owned()));
        keys.extend((next.errors != loaded.sandbox.errors).then(|| "sandbox.errors".to_owned()));
        keys.sort();
        keys
    }

    fn has_same_section(&self, other: &Self, section: &str) -> bool {
        match section {
            "server" => self.server == other.server,
            "storage" => self.storage == other.storage,
            "journal" => self.journal == other.journal,
            "keys" => self.max_stale_keys == other.max_stale_keys,
            "blobs" => self.blobs == other.blobs,
            "limits" => self.limits == other.limits,
            "rate_limits" => self.rate_limits == other.rate_limits,
            "log" => self.log.format == other.log.format,
            "money" => self.unknown_usage == other.unknown_usage,
            "retention" => self.retention == other.retention,
            "egress" => self.allow_private_addresses == other.allow_private_addresses,
            "telemetry" => self.telemetry == other.telemetry,
            "routing" => self.seed == other.seed,
            _ => false,
        }
    }
}

impl SandboxConfig {
    /// Returns these settings as far as `loaded` keeps them: a reload switches the sandbox off, never on.
    fn reloaded(self, loaded: Self) -> Self {
        Self { enabled: self.enabled && loaded.enabled, errors: self.errors && loaded.errors }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, load_text};

    fn read(text: &str) -> Config {
        load_text(None, text, &Environment::default()).unwrap()
    }

    #[test]
    fn reload_applies_providers_and_rules_and_keeps_the_rest() {
        let running = read("[server]\nlisten = \"127.0.0.1:1\"\n");
        let loaded = read(
            "[server]\nlisten = \"127.0.0.1:2\"\n[sandbox]\nenabled = false\n[log]\nfilter = \"debug\"\n\
             [money]\nunreported_usage = \"free\"\nunpriced_models = \"free\"\n[limits]\nrequest_timeout_ms = 7\n\
             [routing]\nseed = 1\n\
             [[providers]]\nslug = \"p\"\nbase_url = \"http://h\"\n\
             [[endpoints]]\nmodel = \"a/b\"\nprovider = \"p\"\nupstream_model = \"m\"\n[[models]]\nmodel = \"a/b\"\n",
        );
        let next = running.reloaded(loaded.clone());
        assert_eq!((next.providers.len(), next.endpoints.len(), next.models.len()), (1, 1, 1));
        assert_eq!((next.sandbox.enabled, next.log.server_filter.as_deref()), (false, Some("debug")));
        assert_eq!(next.money, loaded.money);
        assert_eq!((&next.server, &next.limits, next.seed), (&running.server, &running.limits, None));
        let expected = ["limits.request_timeout_ms", "money.unreported_usage", "routing.seed", "server.listen"];
        assert_eq!(running.restart_keys(&loaded), expected);
        assert_eq!(next.restart_keys(&loaded), expected, "they differ until the restart");
        assert_eq!(next.restart_keys(&running), ["sandbox.enabled"], "only a restart switches it on");
        assert!(!format!("{next:?}").contains("127.0.0.1:2"));
    }

    #[test]
    fn reload_never_switches_the_sandbox_on() {
        const PROVIDER: &str = "[[providers]]\nslug = \"p\"\nbase_url = \"http://h\"\n";
        let texts = [
            String::new(),
            PROVIDER.to_owned(),
            format!("[sandbox]\nenabled = true\n{PROVIDER}"),
            "[sandbox]\nerrors = true\n".to_owned(),
            "[sandbox]\nenabled = false\n".to_owned(),
        ];
        for before in &texts {
            for after in &texts {
                let (running, loaded) = (read(before), read(after));
                let (was, wanted, is) = (running.sandbox, loaded.sandbox, running.reloaded(loaded.clone()).sandbox);
                assert_eq!(is.enabled, was.enabled && wanted.enabled, "{before} -> {after}");
                assert_eq!(is.errors, was.errors && wanted.errors, "{before} -> {after}");
                let named = running.restart_keys(&loaded);
                assert_eq!(named.contains(&"sandbox.enabled".to_owned()), wanted.enabled && !was.enabled, "{named:?}");
                assert_eq!(named.contains(&"sandbox.errors".to_owned()), wanted.errors && !was.errors, "{named:?}");
            }
        }
    }

    #[test]
    fn key_that_is_set_to_its_default_needs_no_restart() {
        let (unset, set) = (read(""), read("[server]\nlisten = \"127.0.0.1:8080\"\nbase_path = \"/api/v1/\"\n"));
        assert_eq!(unset.restart_keys(&set), Vec::<String>::new());
        let other = read("[server]\nbase_path = \"/x\"\n");
        assert_eq!(unset.restart_keys(&other), ["server.base_path"]);
    }

    /// Checks that a change of each key is either applied or reported.
    #[test]
    fn every_key_is_reloadable_or_needs_a_restart() {
        for (section, keys) in RELOADABLE {
            let known = schema::section(section).unwrap();
            for key in keys {
                assert!(known.keys.iter().any(|known| known == *key), "{section}.{key}");
            }
        }
        for section in schema::SECTIONS.iter().filter(|section| !section.is_list) {
            let restarts = section.keys.iter().any(|key| !is_reloadable(section.name, key));
            let config = read("");
            assert_eq!(config.has_same_section(&config, section.name), restarts, "{}", section.name);
        }
    }
}
