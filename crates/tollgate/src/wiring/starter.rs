//! The initial catalogue of a new database.

use anyhow::Context;
use domain::audit::{Actor, AuditDraft};
use domain::json::Json;
use domain::model::{CatalogueChange, Model, ModelRepository};

/// The rows shipped with the binary, in the public format.
pub const STARTER_CATALOGUE: &str = include_str!("../../assets/starter-catalogue.json");

/// Parses the rows shipped with the binary.
///
/// # Errors
/// The rows are invalid; a test excludes this.
pub fn starter_rows() -> anyhow::Result<Vec<Model>> {
    wires::catalogue::read_rows(STARTER_CATALOGUE).context("the starter catalogue cannot be read")
}

/// Adds the starter catalogue to a database whose catalogue was never changed. A catalogue emptied by an import stays
/// empty.
///
/// # Errors
/// The store failed.
pub async fn fill_empty_catalogue(models: &dyn ModelRepository) -> anyhow::Result<()> {
    if models.version().await? != 0 {
        return Ok(());
    }
    let change = CatalogueChange { upsert: starter_rows()?, remove: Vec::new() };
    // A rejected change means that another process has just added it.
    let audit = AuditDraft::done(&Actor::system(), "catalogue.starter", "catalogue", Json::object([]));
    models.apply(&change, 0, &audit).await.context("the starter catalogue cannot be stored")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use adapters_provider::SandboxProvider;
    use domain::model::{CatalogueSnapshot, Modality};
    use domain::pricing::TokenPrices;

    #[test]
    fn starter_catalogue_is_valid() {
        let rows = starter_rows().unwrap();
        assert_eq!(CatalogueSnapshot::check(&rows), Ok(()));
        for row in &rows {
            assert!(!row.name.is_empty() && !row.description.is_empty(), "{}", row.id);
            assert!(row.description.chars().count() <= 190, "{}", row.id);
            assert!(row.description.is_ascii(), "{}", row.id);
            assert!(!row.pricing.is_variable(), "{}", row.id);
        }
    }

    #[test]
    fn starter_catalogue_has_decision_models_of_several_vendors() {
        let rows = starter_rows().unwrap();
        let mut vendors: Vec<&str> =
            rows.iter().filter(|row| row.serves_decisions()).map(|row| row.id.author()).collect();
        vendors.sort_unstable();
        vendors.dedup();
        assert!(vendors.len() >= 8, "{vendors:?}");
        let snapshot = CatalogueSnapshot::build(rows);
        let latest = snapshot.resolve("~typesafe/jev-latest").unwrap();
        assert_eq!(latest.model.id.as_str(), "typesafe/jev-1.14");
        assert_eq!(snapshot.resolve("typesafe/jev-1.13-20260917").unwrap().model.id.as_str(), "typesafe/jev-1.13");
    }

    #[test]
    fn starter_catalogue_has_every_output_modality_except_video() {
        let rows = starter_rows().unwrap();
        for modality in Modality::ALL.into_iter().filter(|modality| *modality != Modality::Video) {
            assert!(rows.iter().any(|row| row.architecture.outputs().contains(modality)), "{modality:?}");
        }
    }

    #[test]
    fn starter_catalogue_has_sandbox_models_at_their_prices() {
        let rows = starter_rows().unwrap();
        let mut endpoints = SandboxProvider::endpoints();
        endpoints.extend(SandboxProvider::error_endpoints());
        assert_eq!(endpoints.len(), 9);
        for endpoint in &endpoints {
            let row = rows.iter().find(|row| row.id == endpoint.model).unwrap();
            assert!(row.serves_decisions(), "{}", row.id);
            let prices = TokenPrices { prompt: row.pricing.prompt, completion: row.pricing.completion };
            assert_eq!(Some(prices), endpoint.prices, "{}", row.id);
        }
        assert_eq!(rows.iter().filter(|row| row.id.author() == "sandbox").count(), endpoints.len());
    }
}
