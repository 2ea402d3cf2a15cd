//! `[rate_limits]`

use std::time::Duration;

use adapters_valkey::{Credentials, ValkeySettings};
use serde::Deserialize;

use super::section::Section;
use super::values::Millis;
use super::{ConfigError, Environment, NamedSecret, OnRateStoreFailure, RateLimitsConfig, SecretSource};

const DEFAULT_PORT: u16 = 6379;
const DEFAULT_TIMEOUT: Duration = Duration::from_millis(50);
/// The prefix of all keys. Servers that share a Valkey by mistake need databases of their own.
const KEY_PREFIX: &str = "tollgate:rates:";
/// The largest number of a database.
const LAST_DATABASE: i64 = 65_535;

/// The keys of `[rate_limits]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRateLimits {
    url: Option<String>,
    username: Option<String>,
    password: Option<SecretSource>,
    ca_file: Option<String>,
    client_cert_file: Option<String>,
    client_key_file: Option<String>,
    timeout_ms: Option<Millis<1, 1_000>>,
    on_failure: Option<OnRateStoreFailure>,
}

/// Checks `[rate_limits]`. Returns `None` if no server is configured.
pub fn rate_limits(
    section: &Section<RawRateLimits>,
    environment: &Environment,
) -> Result<Option<RateLimitsConfig>, ConfigError> {
    let Some(url) = &section.url else {
        let other = section.first_beside(&["url"]);
        return other.map_or(Ok(None), |key| Err(section.fault(&key, "requires url")));
    };
    let address = address(url).map_err(|fault| section.fault("url", fault))?;
    let of_tls = ["ca_file", "client_cert_file", "client_key_file"];
    if let Some(key) = of_tls.into_iter().find(|key| section.has(key) && !address.is_tls) {
        return Err(section.fault(key, "requires a rediss:// URL"));
    }
    let password = NamedSecret::of(section, "rate_limits.password", section.password.as_ref(), environment);
    if section.username.is_some() && password.is_none() {
        return Err(section.fault("username", "requires a password"));
    }
    let store = ValkeySettings {
        host: address.host,
        port: address.port,
        database: address.database,
        is_tls: address.is_tls,
        ca_file: section.certificate_file("ca_file", section.ca_file.as_deref())?,
        client_identity: section.client_identity(
            ("client_cert_file", section.client_cert_file.as_deref()),
            ("client_key_file", section.client_key_file.as_deref()),
        )?,
        credentials: Credentials { username: username(section)?, password: None },
        key_prefix: KEY_PREFIX.to_owned(),
        timeout: section.timeout_ms.map_or(DEFAULT_TIMEOUT, Millis::get),
    };
    let on_failure = section.on_failure.unwrap_or(OnRateStoreFailure::Local);
    Ok(Some(RateLimitsConfig { store, password, on_failure }))
}

struct Address {
    host: String,
    port: u16,
    database: i64,
    is_tls: bool,
}

/// Parses `redis[s]://host[:port][/database]`, and the same with `valkey[s]`.
fn address(url: &str) -> Result<Address, String> {
    let form = || "must have the form redis://host:port/database, or rediss:// for TLS".to_owned();
    let (scheme, rest) = url.split_once("://").ok_or_else(form)?;
    let is_tls = match scheme.to_ascii_lowercase().as_str() {
        "redis" | "valkey" => false,
        "rediss" | "valkeys" => true,
        _ => return Err(form()),
    };
    if rest.contains('@') {
        return Err("must not contain a user or a password: set username and password".to_owned());
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let authority: http::uri::Authority = authority.parse().map_err(|_| form())?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    // A port above 65535 would count as none.
    let has_valid_port = authority.as_str() == authority.host() || authority.port_u16().is_some_and(|port| port > 0);
    let database = if path.is_empty() { Some(0) } else { path.parse().ok() };
    match database.filter(|number| (0..=LAST_DATABASE).contains(number) && !path.starts_with('+')) {
        Some(database) if !host.is_empty() && has_valid_port => {
            Ok(Address { host: host.to_owned(), port: authority.port_u16().unwrap_or(DEFAULT_PORT), database, is_tls })
        }
        _ => Err(form()),
    }
}

fn username(section: &Section<RawRateLimits>) -> Result<Option<String>, ConfigError> {
    match section.username.as_deref() {
        Some(name) if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(section.fault("username", "must be visible ASCII characters"))
        }
        name => Ok(name.map(str::to_owned)),
    }
}

impl RateLimitsConfig {
    /// Returns the settings of the server with the password.
    ///
    /// # Errors
    /// The password cannot be read. The message does not contain it.
    pub fn settings(&self) -> Result<ValkeySettings, ConfigError> {
        let password = self.password.as_ref().map(NamedSecret::read).transpose()?;
        let password = password.map(|password| password.expose().to_owned());
        let username = self.store.credentials.username.clone();
        Ok(ValkeySettings { credentials: Credentials { username, password }, ..self.store.clone() })
    }

    /// Returns the name of the environment variable with the password, if it is in one.
    pub fn secret_variable(&self) -> Option<&str> {
        self.password.as_ref().and_then(NamedSecret::variable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, load_text};

    fn read(lines: &str) -> Result<Config, String> {
        load_text(None, &format!("[rate_limits]\n{lines}\n"), &Environment::default())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn address_has_defaults() {
        assert_eq!(read("").unwrap().rate_limits, None);
        let found = |url: &str| {
            let store = read(&format!("url = \"{url}\"")).unwrap().rate_limits.unwrap().store;
            (store.host, store.port, store.database, store.is_tls)
        };
        assert_eq!(found("redis://h"), ("h".to_owned(), 6379, 0, false));
        assert_eq!(found("rediss://h:1/"), ("h".to_owned(), 1, 0, true));
        assert_eq!(found("valkeys://10.0.0.1:6380/3"), ("10.0.0.1".to_owned(), 6380, 3, true));
        assert_eq!(found("Valkey://[::1]:7/15"), ("::1".to_owned(), 7, 15, false));
        let config = read("url = \"redis://h\"").unwrap().rate_limits.unwrap();
        assert_eq!((config.store.timeout, config.on_failure), (DEFAULT_TIMEOUT, OnRateStoreFailure::Local));
        assert_eq!(config.store.key_prefix, "tollgate:rates:");
    }

    #[test]
    fn wrong_values_are_rejected_without_their_secrets() {
        let url = "url = \"redis://h\"\n";
        for (lines, expected) in [
            ("url = \"h:6379\"".to_owned(), "must have the form redis://host:port/database"),
            ("url = \"http://h\"".to_owned(), "must have the form"),
            ("url = \"redis://\"".to_owned(), "must have the form"),
            ("url = \"redis://h:0\"".to_owned(), "must have the form"),
            ("url = \"redis://h:\"".to_owned(), "must have the form"),
            ("url = \"redis://h:99999\"".to_owned(), "must have the form"),
            ("url = \"redis://h/-1\"".to_owned(), "must have the form"),
            ("url = \"redis://h/1?a=very-secret\"".to_owned(), "must have the form"),
            ("url = \"redis://:very-secret@h\"".to_owned(), "must not contain a user or a password"),
            ("timeout_ms = 5".to_owned(), "rate_limits.timeout_ms requires url"),
            (format!("{url}ca_file = \"c.pem\""), "requires a rediss:// URL"),
            (format!("{url}client_key_file = \"k.pem\""), "requires a rediss:// URL"),
            (
                "url = \"rediss://h\"\nclient_key_file = \"k.pem\"".to_owned(),
                "client_key_file requires client_cert_file",
            ),
            (
                "url = \"rediss://h\"\nclient_cert_file = \"c.pem\"".to_owned(),
                "client_cert_file requires client_key_file",
            ),
            (format!("{url}username = \"u\""), "requires a password"),
            (format!("{url}password = \"very-secret\""), "must be \"env:NAME\", the name of an environment variable"),
            (format!("{url}timeout_ms = 0"), "must be 1 to 1000"),
            (format!("{url}on_failure = \"open\""), "on_failure"),
        ] {
            let message = read(&lines).unwrap_err();
            assert!(message.contains(expected), "{lines}: {message}");
            assert!(!message.contains("very-secret"), "{message}");
        }
    }

    #[test]
    fn password_is_read_from_variable_or_file() {
        let environment = Environment::from_iter([("RATES", "s3cret")]);
        let settings = |lines: &str, environment: &Environment| {
            let config = load_text(None, &format!("[rate_limits]\nurl = \"redis://h\"\n{lines}"), environment).unwrap();
            config.rate_limits.unwrap().settings().map_err(|error| error.to_string())
        };
        let found = settings("username = \"u\"\npassword = \"env:RATES\"", &environment).unwrap();
        let expected = Credentials { username: Some("u".to_owned()), password: Some("s3cret".to_owned()) };
        assert_eq!(found.credentials, expected);
        assert!(!format!("{found:?}").contains("s3cret"));
        let missing = settings("password = \"env:RATES\"", &Environment::default()).unwrap_err();
        assert_eq!(missing, "rate_limits.password names an environment variable that is not set, or empty: RATES");
        let missing = settings("password = \"file:/no/such/file\"", &environment).unwrap_err();
        assert!(missing.starts_with("rate_limits.password names a file that cannot be read"), "{missing}");
    }
}
