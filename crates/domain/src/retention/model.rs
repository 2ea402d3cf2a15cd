//! The retention policy, and the result of applying it.

use std::time::Duration;

use crate::budget::PruneReport;

/// A kind of rows with a retention time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetainedRows {
    /// Usage records.
    UsageRecords,
    /// Counts of rejected requests, which are kept as long as usage records.
    RejectionCounts,
    /// Entries of the audit log.
    AuditEntries,
    /// Messages to trace destinations that failed permanently.
    DeadLetters,
}

impl RetainedRows {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::UsageRecords, Self::RejectionCounts, Self::AuditEntries, Self::DeadLetters];

    /// Returns the name in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UsageRecords => "usage records",
            Self::RejectionCounts => "rejection counts",
            Self::AuditEntries => "audit entries",
            Self::DeadLetters => "dead letters",
        }
    }
}

/// The retention times by kind; `None` keeps rows for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Usage records and counts of rejected requests; at least [`RetentionPolicy::MIN_USAGE_DAYS`].
    pub usage_records: Option<Duration>,
    /// Entries of the audit log.
    pub audit_entries: Option<Duration>,
    /// Messages to trace destinations that failed permanently.
    pub dead_letters: Option<Duration>,
}

impl RetentionPolicy {
    /// The shortest retention of usage records in days: monthly limits count all records of a month.
    pub const MIN_USAGE_DAYS: u64 = 32;
    /// The longest retention in days: a hundred years.
    pub const MAX_DAYS: u64 = 36_525;

    /// Returns true if every kind is kept for ever.
    pub fn is_none(&self) -> bool {
        RetainedRows::ALL.into_iter().all(|rows| self.retention_of(rows).is_none())
    }

    /// Returns the retention time of a kind.
    pub fn retention_of(&self, rows: RetainedRows) -> Option<Duration> {
        match rows {
            RetainedRows::UsageRecords | RetainedRows::RejectionCounts => self.usage_records,
            RetainedRows::AuditEntries => self.audit_entries,
            RetainedRows::DeadLetters => self.dead_letters,
        }
    }
}

/// The result of one round of retention.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetentionReport {
    /// Usage records.
    pub usage_records: PruneReport,
    /// Removed counts of rejected requests.
    pub rejection_counts: u64,
    /// Removed entries of the audit log.
    pub audit_entries: u64,
    /// Removed dead letters.
    pub dead_letters: u64,
    /// The kinds whose store failed; the next round tries them again.
    pub failed: Vec<RetainedRows>,
}
