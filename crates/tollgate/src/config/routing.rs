//! `[[models]]`, `[money]` and `[routing]`.

use std::time::Duration;

use domain::decision::{Coalescing, Hedging, InvalidTokenFactor, ModelOptions, TokenFactor, UnknownUsage, Unpriced};
use domain::model::ModelId;
use domain::money::Price;

use super::build::{choice, within};
use super::entries::Table;
use super::{ConfigError, ModelConfig, MoneyConfig, RoutingConfig};

/// An hour: longer than any request may take.
const LONGEST_HEDGE_MS: u64 = 3_600_000;

/// `[[models]]`
pub fn models(tables: &[Table]) -> Result<Vec<ModelConfig>, ConfigError> {
    let mut models: Vec<ModelConfig> = Vec::with_capacity(tables.len());
    for table in tables {
        let model = model(table)?;
        if models.iter().any(|other| other.model == model.model) {
            return Err(table.fault("model", format!("{} stands in [[models]] more than once", model.model)));
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
        return Err(table.fault("hedge_after_ms", "needs hedge = true beside it"));
    }
    let coalescing = choice(
        table,
        "coalesce",
        &[("off", Coalescing::Off), ("shared", Coalescing::Shared), ("each", Coalescing::Each)],
    )?;
    let hedging = hedge.then_some(Hedging { after });
    Ok(ModelConfig { model, options: ModelOptions { hedging, coalescing } })
}

/// `[money] unknown`
pub fn unknown_usage(table: &Table) -> Result<UnknownUsage, ConfigError> {
    choice(table, "unknown", &[("bound", UnknownUsage::Bound), ("free", UnknownUsage::Free)])
}

/// The bounds of charges in `[money]`.
pub fn money(table: &Table) -> Result<MoneyConfig, ConfigError> {
    let token_factor = match table.text("token_factor") {
        Some(text) => text.parse().map_err(|error: InvalidTokenFactor| table.fault("token_factor", error))?,
        None => TokenFactor::ONE,
    };
    let cap: Option<Price> = table
        .text("cap_price")
        .map(|text| text.parse().ok().filter(|price| *price > Price::ZERO))
        .map(|price| price.ok_or_else(|| table.fault("cap_price", "must be a price in USD a token, above 0")))
        .transpose()?;
    let words = [("refuse", Unpriced::Refuse), ("free", Unpriced::Free), ("cap", Unpriced::Cap(Price::ZERO))];
    let unpriced = match (choice(table, "unpriced", &words)?, cap) {
        (Unpriced::Cap(_), Some(price)) => Unpriced::Cap(price),
        (Unpriced::Cap(_), None) => return Err(table.fault("unpriced", "needs cap_price beside it when it is cap")),
        (_, Some(_)) => return Err(table.fault("cap_price", "needs unpriced = \"cap\" beside it")),
        (other, None) => other,
    };
    Ok(MoneyConfig { token_factor, unpriced })
}

/// `[routing]`
pub fn routing(table: &Table) -> Result<RoutingConfig, ConfigError> {
    Ok(RoutingConfig {
        seed: table.number("seed"),
        max_parts_in_flight: within(table, "max_parts_in_flight", 1..=64)?.unwrap_or(4),
    })
}
