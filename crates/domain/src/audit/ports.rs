//! The port of the audit log.

use async_trait::async_trait;

use super::{AuditDraft, AuditEntry, AuditState, RowViolation, StoredAuditEntry};
use crate::error::StoreError;

/// Stores the audit log. Repositories write the entries of their changes in the transaction of the change; `append` is
/// for all other entries.
///
/// # Contract
/// - Entries are numbered without gaps, each with the hash of the previous entry, also under concurrent writes.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Appends an entry in its own transaction.
    async fn append(&self, draft: &AuditDraft) -> Result<AuditEntry, StoreError>;

    /// Returns up to `limit` entries from number `from` on, oldest first.
    async fn read(&self, from: u64, limit: u64) -> Result<Vec<AuditEntry>, StoreError>;

    /// Returns up to `limit` entries with numbers below `before`, newest first.
    async fn read_before(&self, before: u64, limit: u64) -> Result<Vec<AuditEntry>, StoreError>;

    /// Returns up to `limit` entries, newest first.
    async fn newest(&self, limit: u64) -> Result<Vec<AuditEntry>, StoreError> {
        self.read_before(u64::MAX, limit).await
    }

    /// Returns up to `limit` rows of the log with a number above `after`, lowest first. Without `after`, rows with
    /// impossible numbers are included.
    async fn read_stored(&self, after: Option<i64>, limit: u64) -> Result<Vec<StoredAuditEntry>, StoreError>;

    /// Returns the beginning and the end of the log, which transactions that add or remove entries keep beside it;
    /// `None` if that record is missing.
    async fn state(&self) -> Result<Option<AuditState>, StoreError>;

    /// Returns up to `limit` managed rows that differ from the newest entry; read at one point in time.
    async fn check_rows(&self, limit: usize) -> Result<Vec<RowViolation>, StoreError>;

    /// Removes up to `limit` entries older than `before`, oldest first; the newest entry always stays. Returns their
    /// number. The same transaction stores the last removed entry and the count of all removed entries, so that the
    /// rest still verifies.
    async fn prune(&self, before: chrono::DateTime<chrono::Utc>, limit: u64) -> Result<u64, StoreError>;
}
