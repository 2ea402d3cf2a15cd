//! Operations 4 and 5 of the interface: one model by author and slug, and the number of models.

use std::sync::Arc;

use super::{Catalogue, CatalogueSnapshot, GetModelError, InvalidModalityFilter, ModalityFilter, ResolvedModel};

/// Reads a model by any of its names.
pub struct GetModel {
    catalogue: Arc<dyn Catalogue>,
}

impl GetModel {
    /// Wires the port.
    pub fn new(catalogue: Arc<dyn Catalogue>) -> Self {
        Self { catalogue }
    }

    /// Returns the model and its snapshot. `slug` may have a variant after a colon.
    pub fn execute(&self, author: &str, slug: &str) -> Result<(Arc<CatalogueSnapshot>, ResolvedModel), GetModelError> {
        let snapshot = self.catalogue.snapshot();
        let resolved = snapshot.resolve(&format!("{author}/{slug}")).ok_or(GetModelError::NotFound)?;
        Ok((snapshot, resolved))
    }
}

/// Counts models by output modality.
pub struct CountModels {
    catalogue: Arc<dyn Catalogue>,
}

impl CountModels {
    /// Wires the port.
    pub fn new(catalogue: Arc<dyn Catalogue>) -> Self {
        Self { catalogue }
    }

    /// Counts models. `output_modalities` is the filter as the caller wrote it; `None` means `text`.
    pub fn execute(&self, output_modalities: Option<&str>) -> Result<usize, InvalidModalityFilter> {
        let filter = output_modalities.map_or(Ok(ModalityFilter::default()), str::parse)?;
        Ok(self.catalogue.snapshot().count(filter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{MockCatalogue, Model, Pricing};
    use crate::money::Price;

    #[test]
    fn execute_joins_author_and_slug() {
        let row = Model::minimal("acme/judge:free".parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
        let snapshot = Arc::new(CatalogueSnapshot::build(vec![row]));
        let mut catalogue = MockCatalogue::new();
        catalogue.expect_snapshot().returning(move || Arc::clone(&snapshot));
        let get = GetModel::new(Arc::new(catalogue));
        assert_eq!(get.execute("Acme", "judge:free").unwrap().1.model.id.as_str(), "acme/judge:free");
        assert!(matches!(get.execute("acme", "judge"), Err(GetModelError::NotFound)));
        assert!(matches!(get.execute("acme/judge", "free"), Err(GetModelError::NotFound)));
    }
}
