//! Operation 5 of the interface: the number of models.

use std::sync::Arc;

use super::{Catalogue, InvalidModalityFilter, ModalityFilter};

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
