//! Providers and endpoints as the configuration names them, and the sandbox.

use std::collections::HashMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use adapters_provider::{
    Http2, HttpClient, HttpClientSettings, ProviderRouter, ProxySettings, SandboxProvider, Secret, SystemOneProvider,
    SystemOneSettings,
};
use anyhow::Context;
use domain::decision::DecisionProvider;
use domain::model::{Model, Pricing, SANDBOX_AUTHOR};
use domain::money::Price;
use domain::routing::{Endpoint, EndpointDirectory, ProviderSlug, Wire};

use crate::config::{Config, EndpointConfig, Environment, ProviderConfig, ProxyConfig};

/// Who is called, and which models they serve.
pub struct Upstreams {
    /// Hands calls to the provider of their endpoint.
    pub router: Arc<dyn DecisionProvider>,
    /// Every endpoint: those of the configuration in their order, then the sandbox's.
    pub endpoints: Arc<EndpointDirectory>,
}

impl Upstreams {
    /// Reads the providers' secrets and builds their clients; connects to nobody.
    ///
    /// # Errors
    /// A secret is missing, or a provider's settings cannot be used.
    pub fn build(config: &Config, environment: &Environment) -> anyhow::Result<Self> {
        let mut clients = Clients { proxy: &config.proxy, pools: threads(config), by_trust: HashMap::new() };
        let mut providers: HashMap<ProviderSlug, Arc<dyn DecisionProvider>> = HashMap::new();
        for provider in &config.providers {
            let system_one = system_one(provider, &mut clients, environment)
                .with_context(|| format!("the provider {} cannot be used", provider.slug))?;
            providers.insert(provider.slug.clone(), Arc::new(system_one));
        }
        let mut endpoints: Vec<Endpoint> =
            config.endpoints.iter().filter_map(|endpoint| of_config(endpoint, &config.providers)).collect();
        if config.sandbox_enabled {
            providers.insert(SANDBOX_AUTHOR.parse()?, Arc::new(SandboxProvider::new()));
            endpoints.extend(SandboxProvider::endpoints());
        }
        Ok(Self {
            router: Arc::new(ProviderRouter::new(providers)),
            endpoints: Arc::new(EndpointDirectory::new(endpoints)),
        })
    }
}

/// `None` only for an endpoint of a provider that is not configured, which the configuration refuses.
fn of_config(endpoint: &EndpointConfig, providers: &[ProviderConfig]) -> Option<Endpoint> {
    let provider = providers.iter().find(|provider| provider.slug == endpoint.provider)?;
    Some(Endpoint {
        model: endpoint.model.clone(),
        provider: provider.slug.clone(),
        provider_name: provider.name.clone(),
        wire: Wire::SystemOne,
        upstream_model: endpoint.upstream_model.clone(),
        prices: endpoint.prices,
        attempt_timeout: provider.attempt_timeout,
        token_overhead: endpoint.token_overhead,
    })
}

fn system_one(
    provider: &ProviderConfig,
    clients: &mut Clients<'_>,
    environment: &Environment,
) -> anyhow::Result<SystemOneProvider> {
    let api_key = provider.api_key.as_ref().map(|source| source.read(environment)).transpose()?;
    let settings = SystemOneSettings {
        slug: provider.slug.clone(),
        base_url: provider.base_url.clone(),
        path: provider.path.clone(),
        api_key: api_key.map(Secret::new),
    };
    Ok(SystemOneProvider::new(clients.of(provider)?, settings)?)
}

/// Threads that serve, and so call providers.
fn threads(config: &Config) -> usize {
    let processors = || thread::available_parallelism().map_or(1, NonZero::get);
    config.server.workers.unwrap_or_else(processors)
}

/// Clients by what they trust and how much they read: reading the platform's certificates takes a while, so it is
/// done once for all that differ in the way of connecting only.
struct Clients<'a> {
    proxy: &'a ProxyConfig,
    pools: usize,
    by_trust: HashMap<(Option<PathBuf>, usize), HttpClient>,
}

impl Clients<'_> {
    fn of(&mut self, provider: &ProviderConfig) -> anyhow::Result<HttpClient> {
        let http2 = if provider.http2_prior_knowledge { Http2::PriorKnowledge } else { Http2::Negotiated };
        let trust = (provider.ca_file.clone(), provider.max_answer_bytes);
        if let Some(client) = self.by_trust.get(&trust) {
            return Ok(client.reconnecting(provider.connect_timeout, http2));
        }
        let client = HttpClient::new(&HttpClientSettings {
            connect_timeout: provider.connect_timeout,
            extra_ca_file: provider.ca_file.clone(),
            http2,
            proxy: ProxySettings {
                https_proxy: self.proxy.https.clone(),
                http_proxy: self.proxy.http.clone(),
                no_proxy: self.proxy.none_for.clone(),
            },
            max_answer_bytes: provider.max_answer_bytes,
            pools: self.pools,
            ..HttpClientSettings::default()
        })?;
        self.by_trust.insert(trust, client.clone());
        Ok(client)
    }
}

/// A row for each model that an endpoint is configured for, for where the catalogue has none: `text->decisions`, at
/// the price of its first endpoint that has one.
pub fn minimal_rows(endpoints: &[EndpointConfig]) -> Vec<Model> {
    let mut rows: Vec<Model> = Vec::new();
    for endpoint in endpoints {
        if rows.iter().any(|row| row.id == endpoint.model) {
            continue;
        }
        let priced = endpoints.iter().filter(|other| other.model == endpoint.model).find_map(|other| other.prices);
        let pricing = priced.map_or_else(
            || Pricing::per_token(Price::ZERO, Price::ZERO),
            |prices| Pricing::per_token(prices.prompt, prices.completion),
        );
        rows.push(Model::minimal(endpoint.model.clone(), pricing));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load_text;

    const CONFIG: &str = r#"
        [[providers]]
        slug = "one"
        base_url = "http://127.0.0.1:9"
        api_key_env = "ONE_KEY"
        [[providers]]
        slug = "two"
        base_url = "http://127.0.0.1:9"
        [[endpoints]]
        model = "own/model"
        provider = "two"
        upstream_model = "m"
        [[endpoints]]
        model = "own/model"
        provider = "one"
        upstream_model = "m"
        prompt_price = "0.5"
        completion_price = "0.25"
        [[endpoints]]
        model = "own/other"
        provider = "one"
        upstream_model = "o"
    "#;

    fn with_key() -> Environment {
        [("ONE_KEY", "sk-1")].into_iter().collect()
    }

    #[test]
    fn endpoints_keep_their_order_and_the_sandbox_comes_last() {
        let config = load_text(None, CONFIG, &with_key()).unwrap();
        let upstreams = Upstreams::build(&config, &with_key()).unwrap();
        let slugs: Vec<&str> = upstreams.endpoints.all().iter().map(|endpoint| endpoint.provider.as_str()).collect();
        assert_eq!(slugs[..4], ["two", "one", "one", "sandbox"]);
        let off: Environment = [("ONE_KEY", "k"), ("TOLLGATE__SANDBOX__ENABLED", "false")].into_iter().collect();
        let config = load_text(None, CONFIG, &off).unwrap();
        assert_eq!(Upstreams::build(&config, &off).unwrap().endpoints.all().len(), 3);
    }

    #[test]
    fn a_missing_secret_stops_the_start() {
        let config = load_text(None, CONFIG, &with_key()).unwrap();
        let error = Upstreams::build(&config, &Environment::default()).err().unwrap();
        assert!(format!("{error:#}").contains("ONE_KEY"), "{error:#}");
    }

    #[test]
    fn a_model_gets_one_row_at_the_first_price_that_is_known() {
        let config = load_text(None, CONFIG, &with_key()).unwrap();
        let rows = minimal_rows(&config.endpoints);
        let shown: Vec<(&str, String, String)> = rows
            .iter()
            .map(|row| (row.id.as_str(), row.pricing.prompt.to_string(), row.pricing.completion.to_string()))
            .collect();
        assert_eq!(shown, [("own/model", "0.5".into(), "0.25".into()), ("own/other", "0".into(), "0".into())]);
        assert!(rows.iter().all(Model::serves_decisions));
    }
}
