//! `[telemetry]`

use std::path::PathBuf;

use domain::observability::{checked_header, checked_url};
use domain::secret::SecretString;
use serde::Deserialize;

use super::section::Section;
use super::{ConfigError, Environment, NamedSecret, SecretSource};

/// `[telemetry]`: the operator's own collector, which receives the traces of all workspaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// The URL of the collector.
    pub otlp_url: String,
    /// Headers of each request to the collector.
    pub otlp_headers: Vec<(String, SecretString)>,
    /// Certificates trusted in addition to the platform's.
    pub ca_file: Option<PathBuf>,
    /// The files of the client certificate and of its key.
    pub client_identity: Option<(PathBuf, PathBuf)>,
    /// The location of further headers.
    pub secret_headers: Option<NamedSecret>,
    /// True if the configuration file itself contains headers.
    pub has_headers_in_file: bool,
    /// True if no content of questions and answers is sent.
    pub otlp_privacy_mode: bool,
}

/// The maximum number of headers.
const MOST_HEADERS: usize = 20;

/// The keys of `[telemetry]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTelemetry {
    otlp_url: Option<String>,
    otlp_headers: Option<Vec<String>>,
    otlp_secret_headers: Option<SecretSource>,
    otlp_ca_file: Option<String>,
    otlp_client_cert_file: Option<String>,
    otlp_client_key_file: Option<String>,
    otlp_privacy_mode: Option<bool>,
}

/// Checks `[telemetry]`. Returns `None` if no collector is configured.
pub fn telemetry(
    section: &Section<RawTelemetry>,
    environment: &Environment,
) -> Result<Option<TelemetryConfig>, ConfigError> {
    let Some(url) = &section.otlp_url else {
        let other = section.first_beside(&["otlp_url"]);
        return other.map_or(Ok(None), |key| Err(section.fault(&key, "requires otlp_url")));
    };
    let source = section.otlp_secret_headers.as_ref();
    let secret_headers = NamedSecret::of(section, "telemetry.otlp_secret_headers", source, environment);
    Ok(Some(TelemetryConfig {
        otlp_headers: telemetry_headers(section, secret_headers.as_ref())?,
        secret_headers,
        otlp_url: checked_url(url).map_err(|fault| section.fault("otlp_url", fault))?,
        ca_file: section.certificate_file("otlp_ca_file", section.otlp_ca_file.as_deref())?,
        client_identity: section.client_identity(
            ("otlp_client_cert_file", section.otlp_client_cert_file.as_deref()),
            ("otlp_client_key_file", section.otlp_client_key_file.as_deref()),
        )?,
        has_headers_in_file: section.is_in_file("otlp_headers"),
        otlp_privacy_mode: section.otlp_privacy_mode.unwrap_or(true),
    }))
}

fn telemetry_headers(
    section: &Section<RawTelemetry>,
    secret: Option<&NamedSecret>,
) -> Result<Vec<(String, SecretString)>, ConfigError> {
    let header = |key: &str, line: &str| {
        let Some((name, value)) = line.split_once(':') else {
            return Err(section.fault(key, "must hold headers in the form \"name: value\""));
        };
        let checked = checked_header(name.trim(), value.trim());
        checked
            .map(|(name, value)| (name, SecretString::new(value)))
            .map_err(|fault| section.fault(key, format!("has a header that {fault}")))
    };
    let in_keys = section.otlp_headers.iter().flatten().map(|line| ("otlp_headers", line.as_str()));
    let text = secret
        .map(NamedSecret::read_text)
        .transpose()
        .map_err(|fault| section.fault("otlp_secret_headers", fault))?
        .unwrap_or_default();
    let secret_lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines = in_keys.chain(secret_lines.map(|line| ("otlp_secret_headers", line)));
    let headers: Vec<(String, SecretString)> = lines.map(|(key, line)| header(key, line)).collect::<Result<_, _>>()?;
    if headers.len() > MOST_HEADERS {
        return Err(section.fault("otlp_headers", format!("must hold at most {MOST_HEADERS} headers")));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, load_text};

    fn read(text: &str) -> Result<Config, String> {
        load_text(None, text, &Environment::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn egress_and_telemetry_have_defaults() {
        let config = read("").unwrap();
        assert!(!config.allow_private_addresses);
        assert!(read("[egress]\nallow_private_addresses = true\n").unwrap().allow_private_addresses);
        assert_eq!(config.telemetry, None);
    }

    #[test]
    fn telemetry_has_headers_and_privacy_mode_by_default() {
        let text = "[telemetry]\notlp_url = \"https://otel.example.org\"\notlp_headers = [\"X-Team: a\"]\n";
        let telemetry = read(text).unwrap().telemetry.unwrap();
        assert_eq!(telemetry.otlp_headers, [("x-team".to_owned(), SecretString::new("a"))]);
        assert!(telemetry.otlp_privacy_mode);
        assert!(!read(&format!("{text}otlp_privacy_mode = false\n")).unwrap().telemetry.unwrap().otlp_privacy_mode);
        assert!(!format!("{:?}", read(text).unwrap()).contains("\"a\""));
    }

    #[test]
    fn telemetry_error_names_key_and_not_its_value() {
        for (text, expected) in [
            ("[telemetry]\notlp_url = \"ftp://s3cret\"\n", "must begin with http"),
            ("[telemetry]\notlp_privacy_mode = true\n", "requires otlp_url"),
            ("[telemetry]\notlp_ca_file = \"ca.pem\"\n", "requires otlp_url"),
            (
                "[telemetry]\notlp_url = \"https://h\"\notlp_client_key_file = \"k.pem\"\n",
                "requires otlp_client_cert_file",
            ),
            ("[telemetry]\notlp_url = \"http://h\"\notlp_headers = [\"s3cret\"]\n", "name: value"),
            (
                "[telemetry]\notlp_url = \"http://h\"\notlp_headers = [\"host: s3cret\"]\n",
                "is set by the connection or by every delivery",
            ),
            (
                "[telemetry]\notlp_url = \"http://h\"\notlp_secret_headers = \"env:NOT_SET\"\n",
                "names an environment variable that is not set, or empty: NOT_SET",
            ),
            (
                "[telemetry]\notlp_url = \"http://h\"\notlp_secret_headers = \"env:s3cret\"\n",
                "names an environment variable that is",
            ),
            (
                "[telemetry]\notlp_url = \"http://h\"\notlp_secret_headers = \"x-key: s3cret\"\n",
                "the name of an environment",
            ),
            ("[telemetry]\notlp_url = \"http://h\"\notlp_secret_headers = \"env:9s3cret\"\n", "no digit first"),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.contains(expected) && !fault.contains("s3cret"), "{text}: {fault}");
        }
    }
}
