//! A catalogue in memory.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::contract::{CatalogueSource, Catalogues};
use super::system::lock;
use crate::model::{Catalogue, CatalogueSnapshot, Model};

/// A catalogue whose rows a test sets. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryCatalogue(Arc<Mutex<Arc<CatalogueSnapshot>>>);

impl MemoryCatalogue {
    /// Creates a catalogue of these rows.
    pub fn new(rows: Vec<Model>) -> Self {
        Self(Arc::new(Mutex::new(Arc::new(CatalogueSnapshot::build(rows)))))
    }
}

impl Catalogue for MemoryCatalogue {
    fn snapshot(&self) -> Arc<CatalogueSnapshot> {
        Arc::clone(&lock(&self.0))
    }
}

#[async_trait]
impl CatalogueSource for MemoryCatalogue {
    async fn replace(&self, rows: Vec<Model>) {
        *lock(&self.0) = Arc::new(CatalogueSnapshot::build(rows));
    }
}

impl Catalogues {
    /// Returns the fake.
    pub fn memory() -> Self {
        let catalogue = MemoryCatalogue::default();
        Self { catalogue: Arc::new(catalogue.clone()), source: Arc::new(catalogue), keep: Box::new(()) }
    }
}
