//! The configured endpoints with the properties of their wires.

use domain::pricing::TokenPrices;
use domain::question::QuestionType;
use domain::routing::{ChatSettings, Endpoint, EndpointStatus, Wire};
use serde::Deserialize;

use crate::endpoints::prelude::*;
use crate::services::RoutedServices;

/// A configured endpoint, with the properties of its wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfiguredEndpoint {
    /// The model's name in the catalogue.
    pub model: String,
    /// The provider's slug.
    pub provider: String,
    /// The provider's display name.
    pub provider_name: String,
    /// The wire.
    pub wire: String,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// The prices; null if neither the endpoint nor the catalogue has any.
    #[schema(required)]
    pub prices: Option<EndpointPrices>,
    /// The supported types of questions.
    pub question_types: Vec<String>,
    /// The limits of a request.
    pub limits: EndpointLimits,
    /// The transport of images.
    pub image_transport: String,
    /// The source of `confidence`.
    pub confidence: String,
    /// The decimals of its numbers.
    pub probability_decimals: u32,
    /// True for zero data retention.
    pub zdr: bool,
    /// Whether it may store or train on prompts: `allow` or `deny`.
    pub data_collection: String,
    /// The number format of the weights.
    pub quantization: String,
    /// The deadline of an attempt in milliseconds.
    pub attempt_timeout_ms: u64,
    /// The settings of a chat model; only on that wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<ChatOptions>,
}

/// Prices in USD per token, exact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfiguredEndpointPrices)]
pub struct EndpointPrices {
    /// Per input token.
    pub prompt: String,
    /// Per output token.
    pub completion: String,
    /// The source of the prices: `endpoint` or `catalogue`.
    pub source: String,
}

/// The limits of a request; null is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfiguredEndpointLimits)]
pub struct EndpointLimits {
    /// The most questions.
    #[schema(required)]
    pub max_questions: Option<usize>,
    /// The most options of a choice.
    #[schema(required)]
    pub max_options: Option<usize>,
    /// The most levels of a score.
    #[schema(required)]
    pub max_levels: Option<usize>,
    /// The most bytes of state and questions together.
    #[schema(required)]
    pub max_body_bytes: Option<usize>,
    /// The most tokens of state and questions together.
    #[schema(required)]
    pub max_input_tokens: Option<usize>,
}

/// The settings of a chat model, in configuration terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfiguredEndpointChat)]
pub struct ChatOptions {
    method: String,
    temperature: String,
    min_label_probability: String,
    top_logprobs: usize,
}

/// Returns all endpoints.
pub(super) fn all(routed: &RoutedServices) -> Vec<ConfiguredEndpoint> {
    views(routed, &routed.list_endpoints.all())
}

/// Returns the endpoints of a model by any of its names. A configured model may have no row in the catalogue.
///
/// # Errors
/// No model has the name.
pub(super) fn of_model(routed: &RoutedServices, name: &str) -> Result<Vec<ConfiguredEndpoint>, ApiError> {
    let (author, slug) = name.split_once('/').unwrap_or((name, ""));
    routed.list_endpoints.of_model(author, slug).map(|found| views(routed, &found.endpoints)).or_else(|error| {
        let own: Vec<_> = all(routed).into_iter().filter(|own| own.model.eq_ignore_ascii_case(name)).collect();
        if own.is_empty() { Err(ApiError::from_kind(error.kind()).message("Model not found")) } else { Ok(own) }
    })
}

fn views(routed: &RoutedServices, endpoints: &[EndpointStatus]) -> Vec<ConfiguredEndpoint> {
    let view = |EndpointStatus { endpoint, .. }: &EndpointStatus| {
        ConfiguredEndpoint::new(endpoint, routed.list_endpoints.catalogue_prices(endpoint))
    };
    endpoints.iter().map(view).collect()
}

impl ConfiguredEndpoint {
    /// Creates a view; the catalogue's prices apply if the endpoint has none.
    fn new(endpoint: &Endpoint, of_catalogue: Option<TokenPrices>) -> Self {
        let prices = |prices: TokenPrices, source: &str| EndpointPrices {
            prompt: prices.prompt.to_string(),
            completion: prices.completion.to_string(),
            source: source.to_owned(),
        };
        let own = endpoint.prices.map(|own| prices(own, "endpoint"));
        let limits = endpoint.limits();
        let types = QuestionType::ALL.into_iter().filter(|&question_type| endpoint.supports_type(question_type));
        Self {
            model: endpoint.model.to_string(),
            provider: endpoint.provider.to_string(),
            provider_name: endpoint.provider_name.clone(),
            wire: endpoint.wire.as_str().to_owned(),
            upstream_model: endpoint.upstream_model.to_string(),
            prices: own.or_else(|| of_catalogue.map(|row| prices(row, "catalogue"))),
            question_types: types.map(|question_type| question_type.as_str().to_owned()).collect(),
            limits: EndpointLimits {
                max_questions: limits.max_questions,
                max_options: limits.max_options,
                max_levels: limits.max_levels,
                max_body_bytes: limits.max_body_bytes,
                max_input_tokens: limits.max_input_tokens,
            },
            image_transport: endpoint.attachments.as_str().to_owned(),
            confidence: endpoint.confidence.as_str().to_owned(),
            probability_decimals: endpoint.decimals,
            zdr: endpoint.data_policy.zdr,
            data_collection: if endpoint.data_policy.collects { "allow" } else { "deny" }.to_owned(),
            quantization: endpoint.quantization.as_str().to_owned(),
            attempt_timeout_ms: u64::try_from(endpoint.attempt_timeout.as_millis()).unwrap_or(u64::MAX),
            chat: (endpoint.wire == Wire::ChatCompletions).then(|| endpoint.chat.into()),
        }
    }
}

impl From<ChatSettings> for ChatOptions {
    fn from(chat: ChatSettings) -> Self {
        Self {
            method: chat.method.as_str().to_owned(),
            temperature: decimal(chat.temperature_milli),
            min_label_probability: decimal(chat.min_label_probability_milli),
            top_logprobs: chat.top_logprobs,
        }
    }
}

/// Formats thousandths as a decimal number: 1350 is `1.35`.
fn decimal(thousandths: u32) -> String {
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use domain::routing::AttachmentForm;

    use super::*;

    fn endpoint(wire: Wire) -> Endpoint {
        Endpoint::new("a/b".parse().unwrap(), "p".parse().unwrap(), wire, "m")
    }

    fn prices(prompt: &str) -> TokenPrices {
        TokenPrices { prompt: prompt.parse().unwrap(), completion: "0".parse().unwrap() }
    }

    #[test]
    fn endpoint_prices_have_precedence_over_catalogue() {
        let own = Endpoint { prices: Some(prices("0.5")), ..endpoint(Wire::SystemOne) };
        for (endpoint, row, expected) in [
            (&own, Some(prices("0.25")), Some(("0.5", "endpoint"))),
            (&endpoint(Wire::SystemOne), Some(prices("0.25")), Some(("0.25", "catalogue"))),
            (&endpoint(Wire::SystemOne), None, None),
        ] {
            let view = ConfiguredEndpoint::new(endpoint, row);
            assert_eq!(view.prices.as_ref().map(|prices| (&*prices.prompt, &*prices.source)), expected);
        }
    }

    #[test]
    fn view_omits_boxes_without_images() {
        let types = |endpoint: &Endpoint| ConfiguredEndpoint::new(endpoint, None).question_types;
        assert_eq!(types(&endpoint(Wire::SystemOne)), ["noul", "choice", "score"]);
        let seeing = Endpoint { attachments: AttachmentForm::Assets, ..endpoint(Wire::SystemOne) };
        assert_eq!(types(&seeing), ["noul", "choice", "score", "box"]);
        let narrow = Endpoint { question_types: Some(vec![QuestionType::Score]), ..endpoint(Wire::OpenAiDecisions) };
        assert_eq!(types(&narrow), ["score"]);
    }

    #[test]
    fn decimal_formats_thousandths() {
        for (number, text) in [(0, "0"), (50, "0.05"), (500, "0.5"), (1_000, "1"), (20_125, "20.125"), (10_000, "10")] {
            assert_eq!(decimal(number), text);
        }
    }

    #[test]
    fn chat_settings_are_shown_for_chat_models_only() {
        let json = |wire| serde_json::to_value(ConfiguredEndpoint::new(&endpoint(wire), None)).unwrap();
        let chat = &json(Wire::ChatCompletions)["chat"];
        assert_eq!((&chat["method"], &chat["temperature"]), (&"auto".into(), &"1".into()));
        assert_eq!(chat["min_label_probability"], "0.5");
        assert!(json(Wire::SystemOne).get("chat").is_none());
    }
}
