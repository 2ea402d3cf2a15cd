//! `[[endpoints]]`

use domain::model::{ModelId, SANDBOX_AUTHOR};
use domain::money::Price;
use domain::pricing::TokenPrices;
use domain::routing::{ChatMethod, ChatSettings, DataPolicy, ProviderSlug, Quantization, Wire};
use serde::Deserialize;

use super::providers::{CapabilitySettings, ProviderConfig, RawCapabilities, capabilities};
use super::section::{ConfigError, Section};
use super::values::{Name, Named, RequiredText, Within, nearest, parse_thousandths};

/// One of `[[endpoints]]`
#[derive(Debug, Clone)]
pub struct EndpointConfig {
    /// The model's name in the catalogue.
    pub model: ModelId,
    /// One of the configured providers.
    pub provider: ProviderSlug,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// The prices; `None` are the catalogue's.
    pub prices: Option<TokenPrices>,
    /// Tokens that the provider may add to those of the body.
    pub prompt_overhead_tokens: u64,
    /// The capabilities; missing ones are the provider's.
    pub capabilities: CapabilitySettings,
    /// The number format of the weights.
    pub quantization: Quantization,
    /// The settings of a chat model.
    pub chat: ChatSettings,
}

/// The keys of `[[endpoints]]` that providers do not have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawEndpoint {
    model: RequiredText,
    provider: RequiredText,
    upstream_model: RequiredText,
    input_usd_per_million_tokens: Option<String>,
    output_usd_per_million_tokens: Option<String>,
    prompt_overhead_tokens: Option<u64>,
    quantization: Option<Name<Quantization>>,
    method: Option<Name<ChatMethod>>,
    temperature: Option<String>,
    top_logprobs: Option<Within<usize, 2, 255>>,
}

impl Named for Quantization {
    fn names() -> Vec<(&'static str, Self)> {
        Self::ALL.map(|quantization| (quantization.as_str(), quantization)).to_vec()
    }
}

impl Named for ChatMethod {
    fn names() -> Vec<(&'static str, Self)> {
        [Self::Auto, Self::Logprobs, Self::Structured].map(|method| (method.as_str(), method)).to_vec()
    }
}

/// Keys for chat models only.
const CHAT_KEYS: [&str; 3] = ["method", "temperature", "top_logprobs"];

/// Checks `[[endpoints]]`.
pub fn endpoints(
    sections: &[(Section<RawEndpoint>, Section<RawCapabilities>)],
    providers: &[ProviderConfig],
) -> Result<Vec<EndpointConfig>, ConfigError> {
    sections.iter().map(|(section, shared)| endpoint(section, shared, providers)).collect()
}

fn endpoint(
    section: &Section<RawEndpoint>,
    shared: &Section<RawCapabilities>,
    providers: &[ProviderConfig],
) -> Result<EndpointConfig, ConfigError> {
    let model: ModelId =
        section.model.as_str().parse().map_err(|error| section.fault("model", format!("is not usable: {error}")))?;
    if model.author() == SANDBOX_AUTHOR {
        return Err(section.fault("model", "has the author sandbox, which is reserved for the built-in sandbox"));
    }
    let provider = provider(section, providers)?;
    let own = capabilities(shared, provider.wire)?;
    check_data_policy(shared, &own, provider)?;
    Ok(EndpointConfig {
        upstream_model: section.upstream_model.as_str().to_owned(),
        provider: provider.slug.clone(),
        prices: prices(section)?,
        prompt_overhead_tokens: section.prompt_overhead_tokens.unwrap_or(128),
        capabilities: own.or(&provider.capabilities),
        quantization: section.quantization.map(Name::get).unwrap_or_default(),
        chat: chat(section, provider.wire)?,
        model,
    })
}

/// Rejects a data policy that is weaker than the provider's: the promise of the provider would be void unnoticed.
fn check_data_policy(
    section: &Section<RawCapabilities>,
    own: &CapabilitySettings,
    provider: &ProviderConfig,
) -> Result<(), ConfigError> {
    let strictness = |policy: DataPolicy| (policy.zdr, !policy.collects);
    let (Some(own), Some(promised)) = (own.data_policy, provider.capabilities.data_policy) else { return Ok(()) };
    if strictness(own) >= strictness(promised) {
        return Ok(());
    }
    let name =
        |policy| DataPolicy::names().into_iter().find(|(_, named)| *named == policy).map_or("", |(name, _)| name);
    let (own, promised, slug) = (name(own), name(promised), &provider.slug);
    let fault =
        format!("is {own:?}, but the provider {slug} has data_collection = {promised:?}, which must not be weakened");
    Err(section.fault("data_collection", fault))
}

fn provider<'a>(
    section: &Section<RawEndpoint>,
    providers: &'a [ProviderConfig],
) -> Result<&'a ProviderConfig, ConfigError> {
    let wanted = section.provider.as_str();
    providers.iter().find(|provider| provider.slug.as_str() == wanted).ok_or_else(|| {
        let hint = match nearest(wanted, providers.iter().map(|provider| provider.slug.as_str())) {
            Some(slug) => format!("; the nearest is {slug}"),
            None => "; there are no [[providers]] at all".to_owned(),
        };
        section.fault("provider", format!("names {wanted:?}, which is not one of the [[providers]]{hint}"))
    })
}

const INPUT_PRICE: &str = "input_usd_per_million_tokens";
const OUTPUT_PRICE: &str = "output_usd_per_million_tokens";

fn prices(section: &Section<RawEndpoint>) -> Result<Option<TokenPrices>, ConfigError> {
    let input = price(section, INPUT_PRICE, section.input_usd_per_million_tokens.as_deref())?;
    let output = price(section, OUTPUT_PRICE, section.output_usd_per_million_tokens.as_deref())?;
    match (input, output) {
        (Some(prompt), Some(completion)) => Ok(Some(TokenPrices { prompt, completion })),
        (None, None) => Ok(None),
        (Some(_), None) => {
            Err(section.fault(INPUT_PRICE, format!("requires {OUTPUT_PRICE} (\"0\" if output is free)")))
        }
        (None, Some(_)) => Err(section.fault(OUTPUT_PRICE, format!("requires {INPUT_PRICE}"))),
    }
}

fn price(section: &Section<RawEndpoint>, key: &str, text: Option<&str>) -> Result<Option<Price>, ConfigError> {
    match text.map(Price::from_usd_per_million) {
        None => Ok(None),
        Some(Ok(price)) if !price.is_variable() => Ok(Some(price)),
        Some(_) => {
            let expected = "must be a decimal number of USD per million tokens, zero or more, with at most 18 digits \
                            after the point, such as \"0.042\"";
            Err(section.fault(key, expected))
        }
    }
}

fn chat(section: &Section<RawEndpoint>, wire: Wire) -> Result<ChatSettings, ConfigError> {
    let shipped = ChatSettings::default();
    if wire != Wire::ChatCompletions {
        return match CHAT_KEYS.iter().find(|key| section.has(key)) {
            Some(key) => {
                let fault = format!("is for the wire chat-completions; the provider speaks {}", wire.as_str());
                Err(section.fault(key, fault))
            }
            None => Ok(shipped),
        };
    }
    let method = section.method.map_or(shipped.method, Name::get);
    if method == ChatMethod::Structured && section.has("top_logprobs") {
        let fault = "has no meaning beside method = \"structured\", which reads no label probabilities";
        return Err(section.fault("top_logprobs", fault));
    }
    let temperature = decimal(section, "temperature", section.temperature.as_deref(), ["0.05", "20"])?;
    Ok(ChatSettings {
        method,
        temperature_milli: temperature.unwrap_or(shipped.temperature_milli),
        top_logprobs: section.top_logprobs.map_or(shipped.top_logprobs, Within::get),
        ..shipped
    })
}

/// Parses a decimal number within bounds, in thousandths.
fn decimal(
    section: &Section<RawEndpoint>,
    key: &str,
    text: Option<&str>,
    [least, most]: [&str; 2],
) -> Result<Option<u32>, ConfigError> {
    let Some(text) = text else { return Ok(None) };
    let number = parse_thousandths(text).filter(|number| {
        parse_thousandths(least).is_none_or(|least| *number >= least)
            && parse_thousandths(most).is_none_or(|most| *number <= most)
    });
    let fault = || {
        section.fault(
            key,
            format!("must be a decimal number from {least} to {most} with at most three digits after the point"),
        )
    };
    number.map(Some).ok_or_else(fault)
}
