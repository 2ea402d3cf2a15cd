//! Operation 5 of the interface: the number of models.

use std::sync::Arc;

use super::{CallableModels, Catalogue, ModelFilter};

/// Counts models.
pub struct CountModels {
    catalogue: Arc<dyn Catalogue>,
    callable: Arc<dyn CallableModels>,
}

impl CountModels {
    /// Wires the catalogue and the models with an endpoint.
    pub fn new(catalogue: Arc<dyn Catalogue>, callable: Arc<dyn CallableModels>) -> Self {
        Self { catalogue, callable }
    }

    /// Returns the number of models that match: the total of [`super::ListModels`] for all models with this filter.
    pub fn execute(&self, filter: &ModelFilter) -> usize {
        filter.select(&self.catalogue.snapshot(), &*self.callable).count()
    }
}
