//! `[[models]]`, `[money]` and `[routing]`.

use domain::decision::{Hedging, InvalidTokenFactor, ModelOptions, SingleFlightMode, TokenFactor, UnpricedModels};
use domain::model::ModelId;
use domain::money::Price;
use domain::usage::UnknownUsage;
use serde::Deserialize;

use super::section::Section;
use super::values::{Millis, Name, Named, RequiredText};
use super::{ConfigError, ModelConfig, MoneyConfig};

/// An hour: above any request timeout.
const LONGEST_HEDGE_MS: u64 = 3_600_000;

/// The keys of `[[models]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawModel {
    model: RequiredText,
    hedge: Option<bool>,
    hedge_after_ms: Option<Millis<1, LONGEST_HEDGE_MS>>,
    single_flight: Option<Name<SingleFlightMode>>,
}

/// The keys of `[money]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawMoney {
    unreported_usage: Option<Name<UnknownUsage>>,
    max_tokens_per_byte: Option<String>,
    unpriced_models: Option<Name<UnpricedModels>>,
    default_usd_per_token: Option<String>,
}

/// The keys of `[routing]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRouting {
    pub seed: Option<u64>,
}

impl Named for SingleFlightMode {
    fn names() -> Vec<(&'static str, Self)> {
        vec![("off", Self::Off), ("split_cost", Self::SplitCost), ("charge_each", Self::ChargeEach)]
    }
}

impl Named for UnpricedModels {
    /// Returns the rules without a price.
    fn names() -> Vec<(&'static str, Self)> {
        vec![("reject", Self::Reject), ("free", Self::Free)]
    }
}

impl Named for UnknownUsage {
    fn names() -> Vec<(&'static str, Self)> {
        vec![("charge_bound", Self::Bound), ("free", Self::Free)]
    }
}

/// Checks `[[models]]`.
pub fn models(sections: &[Section<RawModel>]) -> Result<Vec<ModelConfig>, ConfigError> {
    let mut models: Vec<ModelConfig> = Vec::with_capacity(sections.len());
    for section in sections {
        let model = model(section)?;
        if models.iter().any(|other| other.model == model.model) {
            return Err(section.fault("model", format!("is a duplicate model in [[models]]: \"{}\"", model.model)));
        }
        models.push(model);
    }
    Ok(models)
}

fn model(section: &Section<RawModel>) -> Result<ModelConfig, ConfigError> {
    let model: ModelId =
        section.model.as_str().parse().map_err(|error| section.fault("model", format!("is not usable: {error}")))?;
    let after = section.hedge_after_ms.map(Millis::get);
    let hedge = section.hedge.unwrap_or(false);
    if after.is_some() && !hedge {
        return Err(section.fault("hedge_after_ms", "requires hedge = true"));
    }
    let single_flight = section.single_flight.map_or(SingleFlightMode::Off, Name::get);
    let hedging = hedge.then_some(Hedging { after });
    Ok(ModelConfig { model, options: ModelOptions { hedging, single_flight } })
}

/// Returns the rule for usage that a provider does not report.
pub fn unknown_usage(section: &Section<RawMoney>) -> UnknownUsage {
    section.unreported_usage.map_or(UnknownUsage::Bound, Name::get)
}

/// Checks the bounds of charges in `[money]`.
pub fn money(section: &Section<RawMoney>) -> Result<MoneyConfig, ConfigError> {
    let max_tokens_per_byte = match &section.max_tokens_per_byte {
        Some(text) => text.parse().map_err(|error: InvalidTokenFactor| section.fault("max_tokens_per_byte", error))?,
        None => TokenFactor::ONE,
    };
    Ok(MoneyConfig { max_tokens_per_byte, unpriced_models: unpriced_models(section)? })
}

/// Checks the rule for models without a price, or the price that replaces the missing one.
fn unpriced_models(section: &Section<RawMoney>) -> Result<UnpricedModels, ConfigError> {
    let Some(text) = &section.default_usd_per_token else {
        return Ok(section.unpriced_models.map_or(UnpricedModels::Reject, Name::get));
    };
    if section.unpriced_models.is_some() {
        return Err(section.fault("default_usd_per_token", "has no meaning beside unpriced_models"));
    }
    match text.parse::<Price>() {
        Ok(price) if price > Price::ZERO => Ok(UnpricedModels::DefaultPrice(price)),
        _ => Err(section.fault("default_usd_per_token", "must be a price in USD per token, above 0")),
    }
}
