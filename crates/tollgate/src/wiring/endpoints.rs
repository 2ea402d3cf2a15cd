//! The endpoints of the configuration.

use std::collections::HashSet;

use adapters_provider::SandboxProvider;
use domain::model::{Model, ModelId, Pricing};
use domain::routing::{AttachmentForm, Endpoint, EndpointDirectory};

use crate::config::{Config, EndpointConfig, ProviderConfig};

/// Returns the endpoints of the configuration, in their order.
pub fn configured(config: &Config) -> Vec<Endpoint> {
    config.endpoints.iter().filter_map(|endpoint| of_config(endpoint, &config.providers)).collect()
}

/// Returns every endpoint: the configured ones in their order, then the sandbox's.
pub fn directory(config: &Config) -> EndpointDirectory {
    let mut endpoints = configured(config);
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

    use super::*;
    use crate::config::{Environment, load_text};

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
            assert_eq!(configured(&config), [Endpoint { provider_name: "P".to_owned(), ..usual }]);
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
        let endpoints = configured(&config);
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
