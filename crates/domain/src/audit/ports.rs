//! Where the log is kept.

use async_trait::async_trait;

use super::{AuditDraft, AuditEntry};
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

    /// Removes entries older than `before`, the oldest first, up to `limit`; the newest entry always stays. Returns how
    /// many went. What is left still verifies from its first entry on.
    async fn prune(&self, before: chrono::DateTime<chrono::Utc>, limit: u64) -> Result<u64, StoreError>;
}
