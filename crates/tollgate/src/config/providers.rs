//! `[[providers]]`

use std::time::Duration;

use domain::model::SANDBOX_AUTHOR;
use domain::routing::Wire;
use serde::Deserialize;

use super::capabilities::{RawCapabilities, capabilities};
use super::section::Section;
use super::values::{Millis, Name, Named, Positive, PositiveMillis, RequiredText};
use super::{ConfigError, ModelLocationConfig, ProviderConfig, ResponseWrapperConfig, SecretSource, headers, urls};

/// The keys of `[[providers]]` that endpoints do not have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawProvider {
    slug: RequiredText,
    name: Option<String>,
    wire: Option<Name<Wire>>,
    base_url: RequiredText,
    path: Option<String>,
    model_location: Option<ModelLocationConfig>,
    response_wrapper: Option<ResponseWrapperConfig>,
    api_key: Option<SecretSource>,
    auth_header: Option<String>,
    auth_scheme: Option<String>,
    headers: Option<Vec<String>>,
    connect_timeout_ms: Option<PositiveMillis>,
    attempt_timeout_ms: Option<PositiveMillis>,
    max_response_bytes: Option<Positive<usize>>,
    ca_file: Option<String>,
    client_cert_file: Option<String>,
    client_key_file: Option<String>,
    http2_prior_knowledge: Option<bool>,
}

impl Named for Wire {
    /// Returns the wires over HTTP.
    fn names() -> Vec<(&'static str, Self)> {
        Self::ALL.into_iter().filter(|wire| *wire != Self::Sandbox).map(|wire| (wire.as_str(), wire)).collect()
    }
}

/// Checks `[[providers]]`.
pub fn providers(
    sections: &[(Section<RawProvider>, Section<RawCapabilities>)],
) -> Result<Vec<ProviderConfig>, ConfigError> {
    let mut providers: Vec<ProviderConfig> = Vec::with_capacity(sections.len());
    for (section, shared) in sections {
        let provider = provider(section, shared)?;
        if providers.iter().any(|other| other.slug == provider.slug) {
            return Err(section.fault("slug", format!("is a duplicate provider slug: \"{}\"", provider.slug)));
        }
        providers.push(provider);
    }
    Ok(providers)
}

fn provider(section: &Section<RawProvider>, shared: &Section<RawCapabilities>) -> Result<ProviderConfig, ConfigError> {
    let (slug, base_url) = (section.slug.as_str(), section.base_url.as_str());
    if slug == SANDBOX_AUTHOR {
        return Err(section.fault("slug", "sandbox is reserved for the built-in sandbox"));
    }
    let wire = section.wire.map_or(Wire::SystemOne, Name::get);
    let (path, model_location) = address(section)?;
    let auth_header = section.auth_header.as_deref().map(headers::auth_header).transpose();
    let auth_header = auth_header.map_err(|fault| section.fault("auth_header", fault))?;
    Ok(ProviderConfig {
        slug: slug.parse().map_err(|error| section.fault("slug", format!("is not usable: {error}")))?,
        name: section.name.as_deref().unwrap_or(slug).to_owned(),
        wire,
        base_url: urls::provider_base(base_url).map_err(|fault| section.fault("base_url", fault))?,
        path,
        model_location,
        response_wrapper: response_wrapper(section, wire)?,
        api_key: section.secret("api_key", section.api_key.as_ref()),
        headers: fixed_headers(section, auth_header.as_deref())?,
        auth_header,
        auth_scheme: auth_scheme(section)?,
        connect_timeout: section.connect_timeout_ms.map_or(Duration::from_secs(2), Millis::get),
        attempt_timeout: section.attempt_timeout_ms.map_or(Duration::from_secs(30), Millis::get),
        max_response_bytes: section.max_response_bytes.map_or(8 * 1024 * 1024, Positive::get),
        ca_file: section.certificate_file("ca_file", section.ca_file.as_deref())?,
        client_identity: section.client_identity(
            ("client_cert_file", section.client_cert_file.as_deref()),
            ("client_key_file", section.client_key_file.as_deref()),
        )?,
        http2_prior_knowledge: section.http2_prior_knowledge.unwrap_or(false),
        capabilities: capabilities(shared, wire)?,
    })
}

/// Checks the path and the location of the model.
fn address(section: &Section<RawProvider>) -> Result<(Option<String>, ModelLocationConfig), ConfigError> {
    let path = section.path.as_deref().map(urls::provider_path).transpose();
    let path = path.map_err(|fault| section.fault("path", fault))?;
    let model_location = section.model_location.unwrap_or(ModelLocationConfig::Body);
    let in_path = path.as_deref().is_some_and(|path| path.contains(urls::MODEL));
    match model_location {
        ModelLocationConfig::Body if in_path => {
            Err(section.fault("path", "has {model}, so model_location must be \"path\" or \"both\""))
        }
        ModelLocationConfig::Both if !in_path => {
            Err(section.fault("model_location", "is \"both\", but there is no {model} in path"))
        }
        // Without {model} in the path, only the base URL can select the model.
        ModelLocationConfig::Path if path.is_none() => {
            Err(section.fault("model_location", "is \"path\", but there is no path that could name the model"))
        }
        _ => Ok((path, model_location)),
    }
}

fn response_wrapper(section: &Section<RawProvider>, wire: Wire) -> Result<ResponseWrapperConfig, ConfigError> {
    let wrapper = section.response_wrapper.unwrap_or(ResponseWrapperConfig::None);
    if wrapper != ResponseWrapperConfig::None && wire != Wire::SystemOne {
        return Err(section.fault("response_wrapper", format!("is for the wire system-one, not {}", wire.as_str())));
    }
    Ok(wrapper)
}

/// Parses a word such as `Bearer`, or an empty scheme.
fn auth_scheme(section: &Section<RawProvider>) -> Result<Option<String>, ConfigError> {
    let Some(scheme) = &section.auth_scheme else { return Ok(None) };
    if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && scheme.len() <= 32
    {
        return Ok(Some(scheme.clone()));
    }
    // It is not repeated, as it may be a misplaced key.
    Err(section.fault("auth_scheme", "must be a word such as Bearer or Basic, or empty; api_key names the key itself"))
}

fn fixed_headers(
    section: &Section<RawProvider>,
    auth_header: Option<&str>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let mut parsed: Vec<(String, String)> = Vec::new();
    for line in section.headers.iter().flatten() {
        let (name, value) = headers::parse(line).map_err(|fault| section.fault("headers", fault))?;
        if parsed.iter().any(|(other, _)| *other == name) {
            return Err(section.fault("headers", format!("has {} more than once", headers::displayed_name(&name))));
        }
        if auth_header == Some(name.as_str()) {
            return Err(section.fault("headers", "has the header of auth_header"));
        }
        parsed.push((name, value));
    }
    Ok(parsed)
}
