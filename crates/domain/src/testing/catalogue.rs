//! A catalogue in memory.

use std::sync::Arc;

use crate::model::{Catalogue, CatalogueSnapshot, Model};

/// A catalogue of given rows that never change.
#[derive(Debug, Clone, Default)]
pub struct MemoryCatalogue(Arc<CatalogueSnapshot>);

impl MemoryCatalogue {
    /// Of these rows.
    pub fn new(rows: Vec<Model>) -> Self {
        Self(Arc::new(CatalogueSnapshot::build(rows)))
    }
}

impl Catalogue for MemoryCatalogue {
    fn snapshot(&self) -> Arc<CatalogueSnapshot> {
        Arc::clone(&self.0)
    }
}
