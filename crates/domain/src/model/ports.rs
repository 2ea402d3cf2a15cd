//! The ports of the catalogue.

use std::sync::Arc;

use async_trait::async_trait;

use super::{CatalogueSnapshot, Model, ModelId};
use crate::audit::AuditDraft;
use crate::error::StoreError;

/// The source of the current snapshot.
///
/// # Contract
/// - MUST NOT block, lock or do I/O: it is called on every catalogue read.
/// - A snapshot is immutable; a newer one replaces it.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Catalogue: Send + Sync {
    /// Returns the current snapshot.
    fn snapshot(&self) -> Arc<CatalogueSnapshot>;
}

/// A set of changes to the stored rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogueChange {
    /// Rows to add, or to replace by id.
    pub upsert: Vec<Model>,
    /// Ids of rows to remove.
    pub remove: Vec<ModelId>,
}

/// Stores the rows of the catalogue.
///
/// # Contract
/// - Every method is one transaction.
/// - `apply` MUST write [`crate::change_feed::ChangeSubject::Catalogue`] to the change feed, and its audit entry, in
///   the same transaction.
/// - `list` returns rows as they were stored, opaque JSON byte for byte, in insertion order (an updated row keeps its
///   position).
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ModelRepository: Send + Sync {
    /// Returns all rows.
    async fn list(&self) -> Result<Vec<Model>, StoreError>;

    /// Returns the version of the catalogue: the number of its newest change in the change feed; 0 where it was never
    /// changed.
    async fn version(&self) -> Result<u64, StoreError>;

    /// Applies `change` if the catalogue still has `expected_version`. Otherwise changes nothing and returns false.
    async fn apply(
        &self,
        change: &CatalogueChange,
        expected_version: u64,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;
}
