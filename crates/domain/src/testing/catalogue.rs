//! A catalogue in memory.

use std::sync::Arc;

use crate::model::{Catalogue, CatalogueSnapshot, Model};

/// A catalogue of fixed rows.
#[derive(Debug, Clone, Default)]
pub struct MemoryCatalogue(Arc<CatalogueSnapshot>);

impl MemoryCatalogue {
    /// Creates a catalogue of these rows.
    pub fn new(rows: Vec<Model>) -> Self {
        Self(Arc::new(CatalogueSnapshot::build(rows)))
    }
}

impl Catalogue for MemoryCatalogue {
    fn snapshot(&self) -> Arc<CatalogueSnapshot> {
        Arc::clone(&self.0)
    }
}
