//! `[[models]]`, `[money]` and `[routing]`.

use std::time::Duration;

use domain::decision::{
    Hedging, InvalidTokenFactor, ModelOptions, SingleFlightMode, TokenFactor, UnknownUsage, UnpricedModels,
};
use domain::model::ModelId;
use domain::money::Price;

use super::build::{choice, within};
use super::entries::Table;
use super::{ConfigError, ModelConfig, MoneyConfig, RoutingConfig};

/// An hour: above any request timeout.
const LONGEST_HEDGE_MS: u64 = 3_600_000;

/// `[[models]]`
pub fn models(tables: &[Table]) -> Result<Vec<ModelConfig>, ConfigError> {
    let mut models: Vec<ModelConfig> = Vec::with_capacity(tables.len());
    for table in tables {
        let model = model(table)?;
        if models.iter().any(|other| other.model == model.model) {
            return Err(table.fault("model", format!("is a duplicate model in [[models]]: \"{}\"", model.model)));
        }
        models.push(model);
    }
    Ok(models)
}

fn model(table: &Table) -> Result<ModelConfig, ConfigError> {
    let model: ModelId =
        table.required("model")?.parse().map_err(|error| table.fault("model", format!("is not usable: {error}")))?;
    let after = within(table, "hedge_after_ms", 1..=LONGEST_HEDGE_MS)?.map(Duration::from_millis);
    let hedge = table.switch("hedge").unwrap_or(false);
    if after.is_some() && !hedge {
        return Err(table.fault("hedge_after_ms", "requires hedge = true"));
    }
    let single_flight = choice(
        table,
        "single_flight",
        &[
            ("off", SingleFlightMode::Off),
            ("split_cost", SingleFlightMode::SplitCost),
            ("charge_each", SingleFlightMode::ChargeEach),
        ],
    )?;
    let hedging = hedge.then_some(Hedging { after });
    Ok(ModelConfig { model, options: ModelOptions { hedging, single_flight } })
}

/// `[money] unreported_usage`
pub fn unknown_usage(table: &Table) -> Result<UnknownUsage, ConfigError> {
    choice(table, "unreported_usage", &[("charge_bound", UnknownUsage::Bound), ("free", UnknownUsage::Free)])
}

/// Parses the bounds of charges in `[money]`.
pub fn money(table: &Table) -> Result<MoneyConfig, ConfigError> {
    let max_tokens_per_byte = match table.text("max_tokens_per_byte") {
        Some(text) => text.parse().map_err(|error: InvalidTokenFactor| table.fault("max_tokens_per_byte", error))?,
        None => TokenFactor::ONE,
    };
    let cap: Option<Price> = table
        .text("default_usd_per_token")
        .map(|text| text.parse().ok().filter(|price| *price > Price::ZERO))
        .map(|price| {
            price.ok_or_else(|| table.fault("default_usd_per_token", "must be a price in USD per token, above 0"))
        })
        .transpose()?;
    let words = [
        ("reject", UnpricedModels::Reject),
        ("free", UnpricedModels::Free),
        ("default_price", UnpricedModels::DefaultPrice(Price::ZERO)),
    ];
    let unpriced_models = match (choice(table, "unpriced_models", &words)?, cap) {
        (UnpricedModels::DefaultPrice(_), Some(price)) => UnpricedModels::DefaultPrice(price),
        (UnpricedModels::DefaultPrice(_), None) => {
            return Err(table.fault("unpriced_models", "= \"default_price\" requires default_usd_per_token"));
        }
        (_, Some(_)) => {
            return Err(table.fault("default_usd_per_token", "requires unpriced_models = \"default_price\""));
        }
        (other, None) => other,
    };
    Ok(MoneyConfig { max_tokens_per_byte, unpriced_models })
}

/// `[routing]`
pub fn routing(table: &Table) -> Result<RoutingConfig, ConfigError> {
    Ok(RoutingConfig {
        seed: table.number("seed"),
        max_concurrent_subrequests: within(table, "max_concurrent_subrequests", 1..=64)?.unwrap_or(4),
    })
}
