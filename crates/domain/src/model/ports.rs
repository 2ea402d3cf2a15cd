//! Where the catalogue is kept, and where its current snapshot is.

use std::sync::Arc;

use async_trait::async_trait;

use super::{CatalogueSnapshot, Model, ModelId};
use crate::audit::AuditDraft;
use crate::error::StoreError;

/// Hands out the current snapshot.
///
/// # Contract
/// - MUST NOT block, lock or do I/O: it is called on every catalogue read.
/// - A snapshot is never changed; a newer one replaces it whole.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Catalogue: Send + Sync {
    /// The snapshot now in force.
    fn snapshot(&self) -> Arc<CatalogueSnapshot>;
}

/// A set of changes to the stored rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogueChange {
    /// Rows to add, or to put in place of those with the same id.
    pub upsert: Vec<Model>,
    /// Ids of rows to take away.
    pub remove: Vec<ModelId>,
}

/// Keeps the catalogue's rows.
///
/// # Contract
/// - Every method is one transaction.
/// - `apply` MUST write [`crate::change_feed::ChangeSubject::Catalogue`] to the change feed, and its audit entry, in the
///   same transaction.
/// - `list` returns what was stored, field by field, opaque JSON byte for byte, in insertion order (an updated row
///   keeps its place).
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ModelRepository: Send + Sync {
    /// All rows.
    async fn list(&self) -> Result<Vec<Model>, StoreError>;

    /// The version of the catalogue: the number of its newest change in the change feed; 0 where it was never changed.
    async fn version(&self) -> Result<u64, StoreError>;

    /// Applies `change` where the catalogue still has `expected_version`. Returns false, with nothing changed, where it
    /// has another one.
    async fn apply(
        &self,
        change: &CatalogueChange,
        expected_version: u64,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;
}
