//! Providers and endpoints.

use std::time::Duration;

use domain::model::SANDBOX_AUTHOR;
use domain::money::Price;
use domain::routing::TokenPrices;

use super::build::{choice, narrow};
use super::entries::Table;
use super::nearest::nearest;
use super::{ConfigError, EndpointConfig, ProviderConfig, SecretSource, urls};

/// The provider slug and the model author that the sandbox has for itself.
const RESERVED: &str = SANDBOX_AUTHOR;

/// `[[providers]]`
pub fn providers(tables: &[Table]) -> Result<Vec<ProviderConfig>, ConfigError> {
    let mut providers: Vec<ProviderConfig> = Vec::with_capacity(tables.len());
    for table in tables {
        let provider = provider(table)?;
        if providers.iter().any(|other| other.slug == provider.slug) {
            return Err(table.fault("slug", format!("{} stands in the configuration more than once", provider.slug)));
        }
        providers.push(provider);
    }
    Ok(providers)
}

fn provider(table: &Table) -> Result<ProviderConfig, ConfigError> {
    let slug = table.required("slug")?;
    if slug == RESERVED {
        return Err(table.fault("slug", "sandbox is reserved for the built-in sandbox"));
    }
    choice(table, "wire", &[("system-one", ())])?;
    let api_key = match (table.text("api_key_env"), table.text("api_key_file")) {
        (Some(_), Some(_)) => return Err(table.fault("api_key_file", "and api_key_env are both set; one is enough")),
        (Some(variable), None) => Some(SecretSource::Variable(variable.to_owned())),
        (None, Some(path)) => Some(SecretSource::File(path.into())),
        (None, None) => None,
    };
    Ok(ProviderConfig {
        slug: slug.parse().map_err(|error| table.fault("slug", format!("is not usable: {error}")))?,
        name: table.text("name").unwrap_or(slug).to_owned(),
        base_url: urls::provider_base(table.required("base_url")?).map_err(|fault| table.fault("base_url", fault))?,
        path: table.text("path").unwrap_or("systemone").trim_matches('/').to_owned(),
        api_key,
        connect_timeout: Duration::from_millis(table.positive("connect_timeout_ms", 2_000)?),
        attempt_timeout: Duration::from_millis(table.positive("attempt_timeout_ms", 30_000)?),
        max_answer_bytes: narrow(table, "max_answer_bytes", table.positive("max_answer_bytes", 8 * 1024 * 1024)?)?,
        ca_file: table.text("ca_file").map(Into::into),
        http2_prior_knowledge: table.switch("http2_prior_knowledge").unwrap_or(false),
    })
}

/// `[[endpoints]]`
pub fn endpoints(tables: &[Table], providers: &[ProviderConfig]) -> Result<Vec<EndpointConfig>, ConfigError> {
    tables.iter().map(|table| endpoint(table, providers)).collect()
}

fn endpoint(table: &Table, providers: &[ProviderConfig]) -> Result<EndpointConfig, ConfigError> {
    let model: domain::model::ModelId =
        table.required("model")?.parse().map_err(|error| table.fault("model", format!("is not usable: {error}")))?;
    if model.author() == RESERVED {
        return Err(table.fault("model", "has the author sandbox, which is reserved for the built-in sandbox"));
    }
    let wanted = table.required("provider")?;
    let Some(provider) = providers.iter().find(|provider| provider.slug.as_str() == wanted) else {
        let hint = match nearest(wanted, providers.iter().map(|provider| provider.slug.as_str())) {
            Some(slug) => format!("; the nearest is {slug}"),
            None => "; there are no [[providers]] at all".to_owned(),
        };
        return Err(table.fault("provider", format!("names {wanted:?}, which is none of the [[providers]]{hint}")));
    };
    let prices = match (price(table, "prompt_price")?, price(table, "completion_price")?) {
        (Some(prompt), Some(completion)) => Some(TokenPrices { prompt, completion }),
        (None, None) => None,
        (Some(_), None) => {
            return Err(table.fault("prompt_price", "needs completion_price beside it (\"0\" where output is free)"));
        }
        (None, Some(_)) => return Err(table.fault("completion_price", "needs prompt_price beside it")),
    };
    Ok(EndpointConfig {
        upstream_model: table.required("upstream_model")?.to_owned(),
        provider: provider.slug.clone(),
        prices,
        token_overhead: table.number("token_overhead").unwrap_or(128),
        model,
    })
}

fn price(table: &Table, key: &str) -> Result<Option<Price>, ConfigError> {
    let fault = || table.fault(key, "must be a decimal number of USD per token, zero or more, such as \"0.000000042\"");
    match table.text(key) {
        None => Ok(None),
        Some(text) => match text.parse::<Price>() {
            Ok(price) if !price.is_variable() => Ok(Some(price)),
            _ => Err(fault()),
        },
    }
}
