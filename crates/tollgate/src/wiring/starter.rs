//! The catalogue that a new database begins with.

use anyhow::Context;
use domain::audit::{Actor, AuditDraft};
use domain::json::Json;
use domain::model::{CatalogueChange, Model, ModelRepository};

/// The rows that ship with the binary, in the public shape.
pub const STARTER_CATALOGUE: &str = include_str!("../../assets/starter-catalogue.json");

/// The rows that ship with the binary.
///
/// # Errors
/// Never, as a test shows.
pub fn starter_rows() -> anyhow::Result<Vec<Model>> {
    catalogue_json::read_rows(STARTER_CATALOGUE).context("the starter catalogue cannot be read")
}

/// Puts the starter catalogue into a database whose catalogue was never changed. One that was emptied by an import
/// stays as the import left it.
///
/// # Errors
/// The store failed.
pub async fn fill_empty_catalogue(models: &dyn ModelRepository) -> anyhow::Result<()> {
    if models.version().await? != 0 {
        return Ok(());
    }
    let change = CatalogueChange { upsert: starter_rows()?, remove: Vec::new() };
    // Where it is not applied, another process has just done it.
    let audit = AuditDraft::done(&Actor::system(), "catalogue.starter", "catalogue", Json::object([]));
    models.apply(&change, 0, &audit).await.context("the starter catalogue cannot be stored")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use adapters_provider::SandboxProvider;
    use domain::model::{CatalogueSnapshot, Modality};
    use domain::routing::TokenPrices;

    #[test]
    fn the_starter_catalogue_is_sound() {
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
    fn decision_models_of_several_vendors_are_in_it() {
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
    fn every_kind_of_output_but_film_is_in_it() {
        let rows = starter_rows().unwrap();
        for modality in Modality::ALL.into_iter().filter(|modality| *modality != Modality::Video) {
            assert!(rows.iter().any(|row| row.architecture.outputs().contains(modality)), "{modality:?}");
        }
    }

    #[test]
    fn every_sandbox_model_is_in_it_at_its_price() {
        let rows = starter_rows().unwrap();
        let endpoints = SandboxProvider::endpoints();
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
