//! The configured providers and endpoints, and the sandbox.

use std::collections::{HashMap, HashSet};
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use adapters_provider::{
    CredentialCheck, ProviderRouter, ProviderSettings, SandboxProvider, check_connection, check_credential,
    http_provider,
};
use adapters_system::SystemClock;
use anyhow::Context;
use async_trait::async_trait;
use domain::decision::{DecisionProvider, ProviderAnswer, ProviderCall};
use domain::model::{Model, ModelId, Pricing, SANDBOX_AUTHOR};
use domain::routing::{AttachmentForm, AttemptFailure, AttemptFailureKind, Endpoint, EndpointDirectory, ProviderSlug};
use domain::secret::SecretString;
use domain::system::Clock;
use http::header::AUTHORIZATION;
use http_client::{Http2, HttpClient, HttpClientSettings, ProxySettings};

use crate::config::{Config, EndpointConfig, NamedSecret, ProviderConfig};

/// The maximum time to wait for a list of models.
const CREDENTIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// The providers with their endpoints.
pub struct Upstreams {
    /// Calls the provider of an endpoint.
    pub provider: Arc<dyn DecisionProvider>,
    /// Every endpoint: the configured ones in their order, then the sandbox's.
    pub endpoints: Arc<EndpointDirectory>,
    /// The settings and keys of the configured providers, on which the health of their endpoints depends.
    identities: HashMap<ProviderSlug, (ProviderConfig, Option<SecretString>)>,
}

impl Upstreams {
    /// Reads the providers' secrets and builds their clients, without connecting.
    ///
    /// # Errors
    /// A secret is missing, or a provider's settings are invalid.
    pub fn build(config: &Config) -> anyhow::Result<Self> {
        Self::build_unless(config, Err)
    }

    /// Builds the upstreams; calls of a provider whose secret or settings cannot be used fail with the reason.
    pub fn build_usable(config: &Config) -> Self {
        let built = Self::build_unless(config, |error| Ok(Arc::new(UnusableProvider(format!("{error:#}")))));
        built.unwrap_or_else(|_| Self::of(config, HashMap::new(), HashMap::new()))
    }

    fn build_unless(
        config: &Config,
        unusable: impl Fn(anyhow::Error) -> anyhow::Result<Arc<dyn DecisionProvider>>,
    ) -> anyhow::Result<Self> {
        let mut clients = Clients { proxy: &config.proxy, pools: threads(config), by_trust: HashMap::new() };
        let mut providers: HashMap<ProviderSlug, Arc<dyn DecisionProvider>> = HashMap::new();
        let mut identities = HashMap::new();
        for provider in &config.providers {
            let built = build(provider, &mut clients);
            match built.with_context(|| format!("the provider {} cannot be used", provider.slug)) {
                Ok((built, api_key)) => {
                    providers.insert(provider.slug.clone(), built);
                    identities.insert(provider.slug.clone(), (provider.clone(), api_key));
                }
                Err(error) => {
                    providers.insert(provider.slug.clone(), unusable(error)?);
                }
            }
        }
        if config.sandbox.enabled {
            providers.insert(SANDBOX_AUTHOR.parse()?, Arc::new(SandboxProvider::new()));
        }
        Ok(Self::of(config, providers, identities))
    }

    fn of(
        config: &Config,
        providers: HashMap<ProviderSlug, Arc<dyn DecisionProvider>>,
        identities: HashMap<ProviderSlug, (ProviderConfig, Option<SecretString>)>,
    ) -> Self {
        let endpoints = Arc::new(directory(config));
        Self { provider: Arc::new(ProviderRouter::new(providers)), endpoints, identities }
    }

    /// Returns, for each endpoint of `next`, the index here of the same endpoint; `None` for one that is new, or whose
    /// provider has other settings or another key.
    pub fn indices_in(&self, next: &Self) -> Vec<Option<usize>> {
        let mut taken = HashSet::new();
        let same = |new: &Arc<Endpoint>| {
            let name = |of: &Endpoint| (of.model.clone(), of.provider.clone(), of.upstream_model.clone());
            let found = self.endpoints.all().iter().find(|old| {
                name(old) == name(new)
                    // Observed excesses are those of the configured bound.
                    && old.prompt_overhead_tokens == new.prompt_overhead_tokens
                    && self.identities.get(&old.provider) == next.identities.get(&new.provider)
                    && !taken.contains(&old.index)
            })?;
            taken.insert(found.index);
            Some(found.index)
        };
        next.endpoints.all().iter().map(same).collect()
    }
}

/// Builds the provider of one slug, without the secrets of the others; `None` if it is not configured.
///
/// # Errors
/// Its secret is missing, or its settings are invalid.
pub fn single_provider(config: &Config, slug: &ProviderSlug) -> anyhow::Result<Option<Arc<dyn DecisionProvider>>> {
    if config.sandbox.enabled && slug.as_str() == SANDBOX_AUTHOR {
        return Ok(Some(Arc::new(SandboxProvider::new())));
    }
    let Some(provider) = config.providers.iter().find(|provider| provider.slug == *slug) else { return Ok(None) };
    let mut clients = Clients { proxy: &config.proxy, pools: 1, by_trust: HashMap::new() };
    let built = build(provider, &mut clients);
    let (built, _) = built.with_context(|| format!("the provider {slug} cannot be used"))?;
    Ok(Some(built))
}

/// Checks the credential of a provider with its list of models.
///
/// # Errors
/// The secret is missing, or the settings are invalid.
pub async fn check_provider_credential(config: &Config, provider: &ProviderConfig) -> anyhow::Result<CredentialCheck> {
    let mut clients = Clients { proxy: &config.proxy, pools: 1, by_trust: HashMap::new() };
    let settings = settings(provider)?;
    let timeout = provider.attempt_timeout.min(CREDENTIAL_TIMEOUT);
    Ok(check_credential(&clients.of(provider)?, &clock(), &settings, timeout).await?)
}

/// Checks the connection to a provider, without a request and without its secret.
///
/// # Errors
/// The settings are invalid, or there is no connection.
pub async fn check_provider_connection(config: &Config, provider: &ProviderConfig) -> anyhow::Result<String> {
    let mut clients = Clients { proxy: &config.proxy, pools: 1, by_trust: HashMap::new() };
    let settings = ProviderSettings::new(provider.slug.clone(), provider.base_url.clone(), provider.wire);
    check_connection(&clients.of(provider)?, clock(), &settings).await?.map_err(anyhow::Error::msg)
}

/// A provider that cannot be called.
struct UnusableProvider(String);

#[async_trait]
impl DecisionProvider for UnusableProvider {
    async fn decide(&self, _: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        Err(AttemptFailure::new(AttemptFailureKind::ConnectFailed, self.0.clone()))
    }
}

fn build(
    provider: &ProviderConfig,
    clients: &mut Clients<'_>,
) -> anyhow::Result<(Arc<dyn DecisionProvider>, Option<SecretString>)> {
    let settings = settings(provider)?;
    let api_key = settings.api_key.clone();
    Ok((http_provider(clients.of(provider)?, clock(), provider.wire, settings)?, api_key))
}

/// Returns the wire's default settings with the configured overrides.
fn settings(provider: &ProviderConfig) -> anyhow::Result<ProviderSettings> {
    let api_key = provider.api_key.as_ref().map(NamedSecret::read).transpose()?;
    let usual = ProviderSettings::new(provider.slug.clone(), provider.base_url.clone(), provider.wire);
    let (auth_header, usual_scheme) = match &provider.auth_header {
        None => (usual.auth_header, usual.auth_scheme),
        Some(header) if header == AUTHORIZATION.as_str() => (header.clone(), "Bearer".to_owned()),
        Some(header) => (header.clone(), String::new()),
    };
    Ok(ProviderSettings {
        path: provider.path.clone().unwrap_or(usual.path),
        model_location: provider.model_location,
        auth_header,
        auth_scheme: provider.auth_scheme.clone().unwrap_or(usual_scheme),
        api_key,
        headers: provider.headers.clone(),
        response_wrapper: provider.response_wrapper,
        ..usual
    })
}

/// Returns the clock of waits until a date.
fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

/// Returns the number of threads that call providers.
fn threads(config: &Config) -> usize {
    let processors = || thread::available_parallelism().map_or(1, NonZero::get);
    config.server.workers.unwrap_or_else(processors)
}

/// Clients by certificate files. Reading the platform's certificates is slow, so providers with the same files share a
/// client configuration.
struct Clients<'a> {
    proxy: &'a ProxySettings,
    pools: usize,
    by_trust: HashMap<CertificateFiles, HttpClient>,
}

/// The files of the authorities, and of the client certificate with its key.
type CertificateFiles = (Option<PathBuf>, Option<(PathBuf, PathBuf)>);

impl Clients<'_> {
    fn of(&mut self, provider: &ProviderConfig) -> anyhow::Result<HttpClient> {
        let files = (provider.ca_file.clone(), provider.client_identity.clone());
        if let Some(client) = self.by_trust.get(&files) {
            return Ok(client.reconfigured(|settings| apply(provider, settings)));
        }
        let mut settings = HttpClientSettings {
            extra_ca_file: provider.ca_file.clone(),
            client_identity: provider.client_identity.clone(),
            proxy: self.proxy.clone(),
            pools: self.pools,
            ..HttpClientSettings::default()
        };
        apply(provider, &mut settings);
        let client = HttpClient::new(&settings)?;
        if !client.has_trusted_authorities() {
            tracing::warn!(
                unreadable = client.unreadable_authorities(),
                "no certificate authority is known on this platform; https:// providers cannot be called until a file of \
                 authorities is configured"
            );
        }
        self.by_trust.insert(files, client.clone());
        Ok(client)
    }
}

/// Applies the provider's settings for connections and responses.
fn apply(provider: &ProviderConfig, settings: &mut HttpClientSettings) {
    settings.http2 = if provider.http2_prior_knowledge { Http2::PriorKnowledge } else { Http2::Negotiated };
}

/// Returns the endpoints of the configuration, in their order.
pub fn configured_endpoints(config: &Config) -> Vec<Endpoint> {
    config.endpoints.iter().filter_map(|endpoint| of_config(endpoint, &config.providers)).collect()
}

/// Returns every endpoint: the configured ones in their order, then the sandbox's.
pub fn directory(config: &Config) -> EndpointDirectory {
    let mut endpoints = configured_endpoints(config);
    endpoints.extend(sandbox(config));
    EndpointDirectory::new(endpoints)
}

/// Returns the models of the sandbox that are switched on.
pub fn sandbox_models(config: &Config) -> HashSet<ModelId> {
    sandbox(config).into_iter().map(|endpoint| endpoint.model).collect()
}

fn sandbox(config: &Config) -> Vec<Endpoint> {
    let mut endpoints = Vec::new();
    if config.sandbox.enabled {
        endpoints.extend(SandboxProvider::endpoints());
    }
    if config.sandbox.errors {
        endpoints.extend(SandboxProvider::error_endpoints());
    }
    endpoints
}

/// Returns `None` only for an endpoint of an unknown provider, which the configuration rejects.
fn of_config(endpoint: &EndpointConfig, providers: &[ProviderConfig]) -> Option<Endpoint> {
    let provider = providers.iter().find(|provider| provider.slug == endpoint.provider)?;
    let upstream_model = endpoint.upstream_model.clone();
    let usual = Endpoint::new(endpoint.model.clone(), provider.slug.clone(), provider.wire, upstream_model);
    let capabilities = &endpoint.capabilities;
    Some(Endpoint {
        provider_name: provider.name.clone(),
        prices: endpoint.prices,
        attempt_timeout: provider.attempt_timeout,
        prompt_overhead_tokens: endpoint.prompt_overhead_tokens,
        independent_questions: capabilities.independent_questions.unwrap_or(false),
        question_types: capabilities.question_types.clone(),
        own_limits: capabilities.limits,
        attachments: capabilities.images.unwrap_or(AttachmentForm::None),
        confidence: capabilities.confidence.unwrap_or(usual.confidence),
        decimals: capabilities.decimals.unwrap_or(usual.decimals),
        data_policy: capabilities.data_policy(),
        quantization: endpoint.quantization,
        chat: endpoint.chat,
        ..usual
    })
}

/// Returns a row for each configured model, for models that the catalogue lacks: `text->decisions`, at the price of the
/// first endpoint with prices.
pub fn minimal_rows(endpoints: &[EndpointConfig]) -> Vec<Model> {
    let mut rows: Vec<Model> = Vec::new();
    for endpoint in endpoints {
        if rows.iter().any(|row| row.id == endpoint.model) {
            continue;
        }
        let priced = endpoints.iter().filter(|other| other.model == endpoint.model).find_map(|other| other.prices);
        let pricing =
            priced.map_or_else(Pricing::unknown, |prices| Pricing::per_token(prices.prompt, prices.completion));
        rows.push(Model::minimal(endpoint.model.clone(), pricing));
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::question::{ConfidenceSource, QuestionType};
    use domain::routing::{ChatMethod, DataPolicy, EndpointLimits, Quantization, Wire};
    use wires::provider::ModelLocation;
    use wires::system_one::ResponseWrapper;

    use super::*;
    use crate::config::{Environment, load_text};

    const CONFIG: &str = r#"
        [[providers]]
        slug = "one"
        base_url = "http://127.0.0.1:9"
        api_key = "env:ONE_KEY"
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
        input_usd_per_million_tokens = "500000"
        output_usd_per_million_tokens = "250000"
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
        let on: Environment = [("ONE_KEY", "k"), ("TOLLGATE__SANDBOX__ENABLED", "true")].into_iter().collect();
        let upstreams = Upstreams::build(&load_text(None, CONFIG, &on).unwrap()).unwrap();
        let slugs: Vec<&str> = upstreams.endpoints.all().iter().map(|endpoint| endpoint.provider.as_str()).collect();
        assert_eq!(slugs[..4], ["two", "one", "one", "sandbox"]);
        let config = load_text(None, CONFIG, &with_key()).unwrap();
        assert_eq!(Upstreams::build(&config).unwrap().endpoints.all().len(), 3, "beside a provider");
    }

    #[test]
    fn same_endpoint_is_found_unless_its_provider_changed() {
        let built = |text: &str, environment: &Environment| {
            Upstreams::build(&load_text(None, text, environment).unwrap()).unwrap()
        };
        let off: Environment = [("ONE_KEY", "sk-1"), ("TOLLGATE__SANDBOX__ENABLED", "false")].into_iter().collect();
        let before = built(CONFIG, &off);
        assert_eq!(before.indices_in(&built(CONFIG, &off)), [Some(0), Some(1), Some(2)]);
        let rotated: Environment = [("ONE_KEY", "sk-2"), ("TOLLGATE__SANDBOX__ENABLED", "false")].into_iter().collect();
        assert_eq!(before.indices_in(&built(CONFIG, &rotated)), [Some(0), None, None]);
        let elsewhere = CONFIG.replacen("http://127.0.0.1:9", "http://127.0.0.1:10", 1);
        assert_eq!(before.indices_in(&built(&elsewhere, &off)), [Some(0), None, None]);
        let endpoint = "[[endpoints]]\nmodel = \"own/model\"\nprovider = \"two\"\nupstream_model = \"m\"\n";
        let twice = built(&format!("{CONFIG}{endpoint}"), &off);
        assert_eq!(before.indices_in(&twice), [Some(0), Some(1), Some(2), None], "each is taken once");
        assert!(before.indices_in(&built("", &Environment::default())).iter().all(Option::is_none));
    }

    #[test]
    fn missing_secret_stops_the_start() {
        let config = load_text(None, CONFIG, &Environment::default()).unwrap();
        let error = Upstreams::build(&config).err().unwrap();
        let message = format!("{error:#}");
        assert!(
            message.starts_with("the provider one cannot be used") && message.contains("api_key names"),
            "{message}"
        );
    }

    #[test]
    fn connection_settings_reach_the_client() {
        let text = "[[providers]]\nslug = \"a\"\nbase_url = \"http://h\"\n\
                    [[providers]]\nslug = \"b\"\nbase_url = \"http://h\"\n\
                    http2_prior_knowledge = true\n";
        let config = load_text(None, text, &with_key()).unwrap();
        let applied = |index: usize| {
            let mut settings = HttpClientSettings::default();
            apply(&config.providers[index], &mut settings);
            settings
        };
        let (first, second) = (applied(0), applied(1));
        assert_eq!((first.max_header_bytes, settings_of("").max_response_bytes), (256 << 10, 8 << 20));
        assert_eq!((first.connect_timeout, first.http2), (Duration::from_secs(2), Http2::Negotiated));
        let pings = http_client::PingSettings { interval: Duration::from_secs(10), timeout: Duration::from_secs(5) };
        assert_eq!((first.http2_pings, second.http2_pings), (Some(pings), Some(pings)));
        assert_eq!(second.http2, Http2::PriorKnowledge);
    }

    fn settings_of(lines: &str) -> ProviderSettings {
        let text = format!("[[providers]]\nslug = \"a\"\nbase_url = \"http://127.0.0.1:9/v1\"\n{lines}");
        let config = load_text(None, &text, &with_key()).unwrap();
        settings(&config.providers[0]).unwrap()
    }

    #[test]
    fn provider_has_defaults_of_its_wire() {
        for (lines, path, header, scheme) in [
            ("", "systemone", "authorization", "Bearer"),
            ("wire = \"openai-decisions\"", "decisions", "authorization", "Bearer"),
            ("wire = \"sglang-decisions\"", "decisions", "authorization", "Bearer"),
            ("wire = \"chat-completions\"", "chat/completions", "authorization", "Bearer"),
            ("wire = \"gemini-decisions\"", "decisions", "x-goog-api-key", ""),
            ("wire = \"gemini-decisions\"\nauth_header = \"Authorization\"", "decisions", "authorization", "Bearer"),
            ("auth_header = \"Api-Key\"", "systemone", "api-key", ""),
            ("auth_header = \"api-key\"\nauth_scheme = \"Key\"", "systemone", "api-key", "Key"),
            ("auth_scheme = \"Basic\"\npath = \"/x/\"", "x", "authorization", "Basic"),
            ("auth_scheme = \"\"", "systemone", "authorization", ""),
        ] {
            let settings = settings_of(lines);
            let shown = (settings.path.as_str(), settings.auth_header.as_str(), settings.auth_scheme.as_str());
            assert_eq!(shown, (path, header, scheme), "{lines}");
            assert_eq!(
                (settings.model_location, settings.response_wrapper),
                (ModelLocation::Body, ResponseWrapper::None)
            );
        }
    }

    #[test]
    fn provider_has_configured_dialect() {
        let settings = settings_of(
            "path = \"run/{model}\"\nmodel_location = \"both\"\nresponse_wrapper = \"workers-ai\"\napi_key = \"env:ONE_KEY\"\n\
             headers = [\"x-a: 1\"]",
        );
        assert_eq!((settings.path.as_str(), settings.model_location), ("run/{model}", ModelLocation::Both));
        assert_eq!((settings.slug.as_str(), settings.base_url.as_str()), ("a", "http://127.0.0.1:9/v1"));
        assert_eq!(settings.response_wrapper, ResponseWrapper::WorkersAi);
        assert_eq!(settings.headers, [("x-a".to_owned(), "1".to_owned())]);
        assert!(settings.api_key.is_some());
        let other = settings_of("path = \"x\"\nmodel_location = \"path\"\nresponse_wrapper = \"databricks\"");
        assert_eq!((other.model_location, other.response_wrapper), (ModelLocation::Path, ResponseWrapper::Databricks));
    }

    #[test]
    fn provider_of_every_wire_can_be_built() {
        for wire in Wire::ALL.into_iter().filter(|wire| *wire != Wire::Sandbox).map(Wire::as_str) {
            let text = format!("[[providers]]\nslug = \"a\"\nbase_url = \"http://h\"\nwire = \"{wire}\"");
            let config = load_text(None, &text, &with_key()).unwrap();
            assert!(Upstreams::build(&config).is_ok(), "{wire}");
        }
    }

    fn read(text: &str) -> Config {
        load_text(None, text, &Environment::default()).unwrap()
    }

    #[test]
    fn sandbox_models_are_those_switched_on() {
        const PROVIDER: &str = "[[providers]]\nslug = \"p\"\nbase_url = \"http://h\"\n";
        for (text, models) in [
            (String::new(), 2),
            ("[sandbox]\nerrors = true\n".to_owned(), 9),
            ("[sandbox]\nenabled = false\n".to_owned(), 0),
            (PROVIDER.to_owned(), 0),
            (format!("[sandbox]\nenabled = true\n{PROVIDER}"), 2),
            (format!("[sandbox]\nenabled = true\nerrors = true\n{PROVIDER}"), 9),
        ] {
            let config = read(&text);
            assert_eq!((sandbox_models(&config).len(), directory(&config).all().len()), (models, models), "{text}");
        }
    }

    #[test]
    fn endpoint_has_defaults_of_its_wire() {
        for wire in [Wire::SystemOne, Wire::GeminiDecisions, Wire::ChatCompletions] {
            let config = read(&format!(
                "[[providers]]\nslug = \"p\"\nname = \"P\"\nbase_url = \"http://h\"\nwire = \"{}\"\n\
                 [[endpoints]]\nmodel = \"a/b\"\nprovider = \"p\"\nupstream_model = \"m\"\n",
                wire.as_str()
            ));
            let usual = Endpoint::new("a/b".parse().unwrap(), "p".parse().unwrap(), wire, "m");
            assert_eq!(configured_endpoints(&config), [Endpoint { provider_name: "P".to_owned(), ..usual }]);
        }
    }

    #[test]
    fn endpoint_has_all_configured_attributes() {
        let config = read(
            r#"
            [[providers]]
            slug = "p"
            base_url = "http://h"
            attempt_timeout_ms = 7
            image_transport = "assets"
            probability_decimals = 3
            max_questions = 5
            [[endpoints]]
            model = "a/b"
            provider = "p"
            upstream_model = "m"
            prompt_overhead_tokens = 9
            input_usd_per_million_tokens = "500000"
            output_usd_per_million_tokens = "250000"
            confidence = "native"
            question_types = ["noul"]
            max_options = 4
            data_collection = "zdr"
            quantization = "fp8"
            [[providers]]
            slug = "chat"
            base_url = "http://h"
            wire = "chat-completions"
            [[endpoints]]
            model = "a/b"
            provider = "chat"
            upstream_model = "m"
            method = "structured"
            temperature = "2"
            "#,
        );
        let endpoints = configured_endpoints(&config);
        let first = &endpoints[0];
        assert_eq!((first.attempt_timeout, first.prompt_overhead_tokens), (Duration::from_millis(7), 9));
        assert_eq!((first.attachments, first.decimals), (AttachmentForm::Assets, 3));
        assert_eq!(first.confidence, ConfidenceSource::Native);
        assert_eq!(first.question_types, Some(vec![QuestionType::Noul]));
        let limits = EndpointLimits {
            max_questions: Some(5),
            max_options: Some(4),
            max_levels: Some(4),
            ..EndpointLimits::default()
        };
        assert_eq!(first.own_limits, limits);
        assert_eq!(first.data_policy, DataPolicy { zdr: true, collects: false });
        assert_eq!(first.quantization, Quantization::Fp8);
        assert_eq!(first.prices.unwrap().prompt.to_string(), "0.5");
        let second = &endpoints[1];
        assert_eq!((second.wire, second.chat.method), (Wire::ChatCompletions, ChatMethod::Structured));
        assert_eq!(second.chat.temperature_milli, 2_000);
    }

    #[test]
    fn minimal_rows_have_first_known_price() {
        let config = read(
            r#"
            [[providers]]
            slug = "p"
            base_url = "http://h"
            [[endpoints]]
            model = "own/model"
            provider = "p"
            upstream_model = "m"
            [[endpoints]]
            model = "own/model"
            provider = "p"
            upstream_model = "m"
            input_usd_per_million_tokens = "500000"
            output_usd_per_million_tokens = "250000"
            [[endpoints]]
            model = "own/other"
            provider = "p"
            upstream_model = "o"
            "#,
        );
        let rows = minimal_rows(&config.endpoints);
        let shown: Vec<(&str, String, String)> = rows
            .iter()
            .map(|row| (row.id.as_str(), row.pricing.prompt.to_string(), row.pricing.completion.to_string()))
            .collect();
        assert_eq!(shown, [("own/model", "0.5".into(), "0.25".into()), ("own/other", "0".into(), "0".into())]);
        assert!(rows.iter().all(Model::serves_decisions));
    }
}
