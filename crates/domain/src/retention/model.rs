//! How long rows are kept, and the result of removing old ones.

use std::time::Duration;

use crate::budget::PruneReport;

/// A kind of rows that grow old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetainedRows {
    /// Usage records.
    UsageRecords,
    /// Entries of the audit log.
    AuditEntries,
    /// Messages to destinations that were given up.
    DeadLetters,
}

impl RetainedRows {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::UsageRecords, Self::AuditEntries, Self::DeadLetters];

    /// Its name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UsageRecords => "usage records",
            Self::AuditEntries => "audit entries",
            Self::DeadLetters => "dead letters",
        }
    }
}

/// The time that rows are kept, by kind; `None` is for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Usage records; at least [`RetentionPolicy::MIN_USAGE_DAYS`].
    pub usage_records: Option<Duration>,
    /// Entries of the audit log.
    pub audit_entries: Option<Duration>,
    /// Messages to destinations that were given up.
    pub dead_letters: Option<Duration>,
}

impl RetentionPolicy {
    /// The fewest days that usage records are kept: they count in the month of their charge, which has to be whole.
    pub const MIN_USAGE_DAYS: u64 = 32;
    /// The most days that any rows are kept: a hundred years.
    pub const MAX_DAYS: u64 = 36_525;

    /// True where every kind is kept for ever.
    pub fn is_none(&self) -> bool {
        RetainedRows::ALL.into_iter().all(|rows| self.kept(rows).is_none())
    }

    /// The time that rows of a kind are kept.
    pub fn kept(&self, rows: RetainedRows) -> Option<Duration> {
        match rows {
            RetainedRows::UsageRecords => self.usage_records,
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
    /// Removed entries of the audit log.
    pub audit_entries: u64,
    /// Removed dead letters.
    pub dead_letters: u64,
    /// The kinds that a store failed for; the next round goes on with them.
    pub failed: Vec<RetainedRows>,
}
