//! `[[endpoints]]`

use domain::model::{ModelId, SANDBOX_AUTHOR};
use domain::money::Price;
use domain::routing::{ChatMethod, ChatSettings, Quantization, TokenPrices, Wire};

use super::build::{alternatives, choice, within};
use super::entries::Table;
use super::fixed_point::parse_thousandths;
use super::nearest::nearest;
use super::{ConfigError, EndpointConfig, ProviderConfig, capabilities};

/// Keys for chat models only.
const CHAT_KEYS: [&str; 4] = ["method", "temperature", "min_label_probability", "top_logprobs"];

/// `[[endpoints]]`
pub fn endpoints(tables: &[Table], providers: &[ProviderConfig]) -> Result<Vec<EndpointConfig>, ConfigError> {
    tables.iter().map(|table| endpoint(table, providers)).collect()
}

fn endpoint(table: &Table, providers: &[ProviderConfig]) -> Result<EndpointConfig, ConfigError> {
    let model: ModelId =
        table.required("model")?.parse().map_err(|error| table.fault("model", format!("is not usable: {error}")))?;
    if model.author() == SANDBOX_AUTHOR {
        return Err(table.fault("model", "has the author sandbox, which is reserved for the built-in sandbox"));
    }
    let provider = provider(table, providers)?;
    let own = capabilities::capabilities(table, provider.wire)?;
    if own.collects == Some(true) && own.zdr.is_none() && provider.capabilities.zdr == Some(true) {
        let fault = format!("is \"allow\", but the provider {} has zdr = true; set zdr = false here", provider.slug);
        return Err(table.fault("data_collection", fault));
    }
    Ok(EndpointConfig {
        upstream_model: table.required("upstream_model")?.to_owned(),
        provider: provider.slug.clone(),
        prices: prices(table)?,
        prompt_overhead_tokens: table.number("prompt_overhead_tokens").unwrap_or(128),
        capabilities: own.or(&provider.capabilities),
        quantization: quantization(table)?,
        chat: chat(table, provider.wire)?,
        model,
    })
}

fn provider<'a>(table: &Table, providers: &'a [ProviderConfig]) -> Result<&'a ProviderConfig, ConfigError> {
    let wanted = table.required("provider")?;
    providers.iter().find(|provider| provider.slug.as_str() == wanted).ok_or_else(|| {
        let hint = match nearest(wanted, providers.iter().map(|provider| provider.slug.as_str())) {
            Some(slug) => format!("; the nearest is {slug}"),
            None => "; there are no [[providers]] at all".to_owned(),
        };
        table.fault("provider", format!("names {wanted:?}, which is not one of the [[providers]]{hint}"))
    })
}

const INPUT_PRICE: &str = "input_usd_per_million_tokens";
const OUTPUT_PRICE: &str = "output_usd_per_million_tokens";

fn prices(table: &Table) -> Result<Option<TokenPrices>, ConfigError> {
    match (price(table, INPUT_PRICE)?, price(table, OUTPUT_PRICE)?) {
        (Some(prompt), Some(completion)) => Ok(Some(TokenPrices { prompt, completion })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(table.fault(INPUT_PRICE, format!("requires {OUTPUT_PRICE} (\"0\" if output is free)"))),
        (None, Some(_)) => Err(table.fault(OUTPUT_PRICE, format!("requires {INPUT_PRICE}"))),
    }
}

fn price(table: &Table, key: &str) -> Result<Option<Price>, ConfigError> {
    let Some(text) = table.text(key) else { return Ok(None) };
    match Price::from_usd_per_million(text) {
        Ok(price) if !price.is_variable() => Ok(Some(price)),
        _ => {
            let expected = "must be a decimal number of USD per million tokens, zero or more, with at most 18 digits \
                            after the point, such as \"0.042\"";
            Err(table.fault(key, expected))
        }
    }
}

fn quantization(table: &Table) -> Result<Quantization, ConfigError> {
    let Some(name) = table.text("quantization") else { return Ok(Quantization::default()) };
    Quantization::from_name(name).ok_or_else(|| {
        table.fault("quantization", format!("must be {}", alternatives(&Quantization::ALL.map(Quantization::as_str))))
    })
}

fn chat(table: &Table, wire: Wire) -> Result<ChatSettings, ConfigError> {
    let shipped = ChatSettings::default();
    if wire != Wire::ChatCompletions {
        return match CHAT_KEYS.iter().find(|key| table.has(key)) {
            Some(key) => {
                let fault = format!("is for the wire chat-completions; the provider speaks {}", wire.as_str());
                Err(table.fault(key, fault))
            }
            None => Ok(shipped),
        };
    }
    let methods = [ChatMethod::Auto, ChatMethod::Logprobs, ChatMethod::Structured];
    let method = choice(table, "method", &methods.map(|method| (method.as_str(), method)))?;
    let top_logprobs = within(table, "top_logprobs", 2..=255)?;
    if method == ChatMethod::Structured
        && let Some(key) = ["min_label_probability", "top_logprobs"].iter().find(|key| table.has(key))
    {
        return Err(
            table.fault(key, "has no meaning beside method = \"structured\", which reads no label probabilities")
        );
    }
    Ok(ChatSettings {
        method,
        temperature_milli: decimal(table, "temperature", "0.05", "20")?.unwrap_or(shipped.temperature_milli),
        min_label_probability_milli: decimal(table, "min_label_probability", "0", "1")?
            .unwrap_or(shipped.min_label_probability_milli),
        top_logprobs: top_logprobs.unwrap_or(shipped.top_logprobs),
    })
}

/// Parses a decimal number within bounds, in thousandths.
fn decimal(table: &Table, key: &str, least: &str, most: &str) -> Result<Option<u32>, ConfigError> {
    let Some(text) = table.text(key) else { return Ok(None) };
    let number = parse_thousandths(text).filter(|number| {
        parse_thousandths(least).is_none_or(|least| *number >= least)
            && parse_thousandths(most).is_none_or(|most| *number <= most)
    });
    let fault = || {
        table.fault(
            key,
            format!("must be a decimal number from {least} to {most} with at most three digits after the point"),
        )
    };
    number.map(Some).ok_or_else(fault)
}
