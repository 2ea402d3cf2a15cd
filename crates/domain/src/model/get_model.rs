//! Operation 4 of the interface: one model by author and slug.

use std::sync::Arc;

use super::{Catalogue, CatalogueSnapshot, GetModelError, ResolvedModel};

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
