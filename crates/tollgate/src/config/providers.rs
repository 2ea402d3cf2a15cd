//! `[[providers]]`

use std::time::Duration;

use domain::model::SANDBOX_AUTHOR;
use domain::routing::Wire;

use super::build::{choice, narrow, within};
use super::entries::Table;
use super::secret::variable_name;
use super::{
    ConfigError, ModelLocationConfig, ProviderConfig, ResponseWrapperConfig, SecretSource, capabilities, headers, urls,
};

/// The wires over HTTP, the default first.
const WIRES: [Wire; 5] =
    [Wire::SystemOne, Wire::OpenAiDecisions, Wire::GeminiDecisions, Wire::SglangDecisions, Wire::ChatCompletions];

/// `[[providers]]`
pub fn providers(tables: &[Table]) -> Result<Vec<ProviderConfig>, ConfigError> {
    let mut providers: Vec<ProviderConfig> = Vec::with_capacity(tables.len());
    for table in tables {
        let provider = provider(table)?;
        if providers.iter().any(|other| other.slug == provider.slug) {
            return Err(table.fault("slug", format!("is a duplicate provider slug: \"{}\"", provider.slug)));
        }
        providers.push(provider);
    }
    Ok(providers)
}

fn provider(table: &Table) -> Result<ProviderConfig, ConfigError> {
    let slug = table.required("slug")?;
    if slug == SANDBOX_AUTHOR {
        return Err(table.fault("slug", "sandbox is reserved for the built-in sandbox"));
    }
    let wire = choice(table, "wire", &WIRES.map(|wire| (wire.as_str(), wire)))?;
    let (path, model_location) = address(table)?;
    let auth_header = table.text("auth_header").map(headers::auth_header).transpose();
    let auth_header = auth_header.map_err(|fault| table.fault("auth_header", fault))?;
    Ok(ProviderConfig {
        slug: slug.parse().map_err(|error| table.fault("slug", format!("is not usable: {error}")))?,
        name: table.text("name").unwrap_or(slug).to_owned(),
        wire,
        base_url: urls::provider_base(table.required("base_url")?).map_err(|fault| table.fault("base_url", fault))?,
        path,
        model_location,
        response_wrapper: response_wrapper(table, wire)?,
        api_key: api_key(table)?,
        headers: fixed_headers(table, auth_header.as_deref())?,
        auth_header,
        auth_scheme: auth_scheme(table)?,
        connect_timeout: Duration::from_millis(table.positive("connect_timeout_ms", 2_000)?),
        attempt_timeout: Duration::from_millis(table.positive("attempt_timeout_ms", 30_000)?),
        max_response_bytes: narrow(
            table,
            "max_response_bytes",
            table.positive("max_response_bytes", 8 * 1024 * 1024)?,
        )?,
        max_header_bytes: within(table, "max_header_bytes", 16_384..=16_777_216)?.unwrap_or(262_144),
        ca_file: table.path("ca_file"),
        http2_prior_knowledge: table.switch("http2_prior_knowledge").unwrap_or(false),
        http2_ping_interval: ping_interval(table)?,
        http2_ping_timeout: Duration::from_millis(
            within(table, "http2_ping_timeout_ms", 100..=60_000)?.unwrap_or(5_000),
        ),
        capabilities: capabilities::capabilities(table, wire)?,
    })
}

/// Parses the ping interval; zero disables pings.
fn ping_interval(table: &Table) -> Result<Option<Duration>, ConfigError> {
    match table.number("http2_ping_interval_ms").unwrap_or(10_000) {
        0 => Ok(None),
        interval @ 1_000..=3_600_000 => Ok(Some(Duration::from_millis(interval))),
        _ => Err(table.fault("http2_ping_interval_ms", "must be 0 for no pings, or 1000 to 3600000")),
    }
}

/// Parses the path and the location of the model.
fn address(table: &Table) -> Result<(Option<String>, ModelLocationConfig), ConfigError> {
    let path = table.text("path").map(urls::provider_path).transpose().map_err(|fault| table.fault("path", fault))?;
    let model_location = choice(
        table,
        "model_location",
        &[
            ("body", ModelLocationConfig::Body),
            ("path", ModelLocationConfig::Path),
            ("both", ModelLocationConfig::Both),
        ],
    )?;
    let in_path = path.as_deref().is_some_and(|path| path.contains(urls::MODEL));
    match model_location {
        ModelLocationConfig::Body if in_path => {
            Err(table.fault("path", "has {model}, so model_location must be \"path\" or \"both\""))
        }
        ModelLocationConfig::Both if !in_path => {
            Err(table.fault("model_location", "is \"both\", but there is no {model} in path"))
        }
        // Without {model} in the path, only the base URL can select the model.
        ModelLocationConfig::Path if path.is_none() => {
            Err(table.fault("model_location", "is \"path\", but there is no path that could name the model"))
        }
        _ => Ok((path, model_location)),
    }
}

fn response_wrapper(table: &Table, wire: Wire) -> Result<ResponseWrapperConfig, ConfigError> {
    let wrapper = choice(
        table,
        "response_wrapper",
        &[
            ("none", ResponseWrapperConfig::None),
            ("workers-ai", ResponseWrapperConfig::WorkersAi),
            ("databricks", ResponseWrapperConfig::Databricks),
        ],
    )?;
    if wrapper != ResponseWrapperConfig::None && wire != Wire::SystemOne {
        return Err(table.fault("response_wrapper", format!("is for the wire system-one, not {}", wire.as_str())));
    }
    Ok(wrapper)
}

fn api_key(table: &Table) -> Result<Option<SecretSource>, ConfigError> {
    match (table.text("api_key_env"), table.path("api_key_file")) {
        (Some(_), Some(_)) => Err(table.fault("api_key_file", "and api_key_env are both set; use one")),
        (Some(variable), None) => {
            let variable = variable_name(variable).map_err(|fault| table.fault("api_key_env", fault))?;
            Ok(Some(SecretSource::Variable(variable.to_owned())))
        }
        (None, Some(path)) => Ok(Some(SecretSource::File(path))),
        (None, None) => Ok(None),
    }
}

/// Parses a word such as `Bearer`, or an empty scheme.
fn auth_scheme(table: &Table) -> Result<Option<String>, ConfigError> {
    let Some(scheme) = table.text("auth_scheme") else { return Ok(None) };
    if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && scheme.len() <= 32
    {
        return Ok(Some(scheme.to_owned()));
    }
    // It is not repeated, as it may be a misplaced key.
    Err(table.fault(
        "auth_scheme",
        "must be a word such as Bearer or Basic, or empty; the key itself is named with api_key_env or api_key_file",
    ))
}

fn fixed_headers(table: &Table, auth_header: Option<&str>) -> Result<Vec<(String, String)>, ConfigError> {
    let mut parsed: Vec<(String, String)> = Vec::new();
    for line in table.texts("headers") {
        let (name, value) = headers::parse(line).map_err(|fault| table.fault("headers", fault))?;
        if parsed.iter().any(|(other, _)| *other == name) {
            return Err(table.fault("headers", format!("has {} more than once", headers::displayed_name(&name))));
        }
        if auth_header == Some(name.as_str()) {
            return Err(table.fault("headers", "has the header of auth_header"));
        }
        parsed.push((name, value));
    }
    Ok(parsed)
}
