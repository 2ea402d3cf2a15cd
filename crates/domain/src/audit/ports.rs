//! Where the log is kept.

use async_trait::async_trait;

use super::{AuditDraft, AuditEntry, AuditState, RowViolation, StoredAuditEntry};
use crate::error::StoreError;

/// Keeps the audit log. Changes that are made are written by the repository that makes them, in the transaction of the
/// change; here is what stands alone.
///
/// # Contract
/// - Entries follow each other without gaps, each with the hash of the one before, whoever writes at the same time.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Adds an entry by itself.
    async fn append(&self, draft: &AuditDraft) -> Result<AuditEntry, StoreError>;

    /// Up to `limit` entries from place `from` on, oldest first.
    async fn read(&self, from: u64, limit: u64) -> Result<Vec<AuditEntry>, StoreError>;

    /// The newest entries first, up to `limit`.
    async fn newest(&self, limit: u64) -> Result<Vec<AuditEntry>, StoreError>;

    /// Up to `limit` rows of the log with a number above `after`, lowest first; every row where `after` is `None`, those
    /// with impossible numbers included.
    async fn read_stored(&self, after: Option<i64>, limit: u64) -> Result<Vec<StoredAuditEntry>, StoreError>;

    /// The beginning and the end of the log, as they are kept beside the log in the transactions that add or remove entries;
    /// `None` if that record is gone.
    async fn state(&self) -> Result<Option<AuditState>, StoreError>;

    /// Managed rows that are not as the newest entry accounts for them, up to `limit`; read at one point in time.
    async fn check_rows(&self, limit: usize) -> Result<Vec<RowViolation>, StoreError>;

    /// Removes entries older than `before`, the oldest first, up to `limit`; the newest entry always stays. Returns how
    /// many went. What is left still verifies from its first entry on: the last number that went, its hash and the number of
    /// all entries that ever went are kept in the transaction that removes them.
    async fn prune(&self, before: chrono::DateTime<chrono::Utc>, limit: u64) -> Result<u64, StoreError>;
}
