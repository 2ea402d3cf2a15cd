//! `[[models]]`, `[money]` and `[routing]`.

use std::time::Duration;

use domain::decision::{Coalescing, Hedging, ModelOptions, UnknownUsage};
use domain::model::ModelId;

use super::build::{choice, within};
use super::entries::Table;
use super::{ConfigError, ModelConfig, RoutingConfig};

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

/// `[routing]`
pub fn routing(table: &Table) -> Result<RoutingConfig, ConfigError> {
    Ok(RoutingConfig {
        seed: table.number("seed"),
        max_parts_in_flight: within(table, "max_parts_in_flight", 1..=64)?.unwrap_or(4),
    })
}
