//! Verifications of the audit log, and the processes with a journal.

use domain::audit::{AuditVerification, RowViolation};
use domain::budget::LiveProcess;
use serde::Serialize;

use super::time;

/// The result of a verification.
#[derive(Serialize)]
pub struct VerificationView {
    /// True if no violation was found.
    pub verified: bool,
    /// The number of intact entries.
    pub entries: u64,
    /// The sequence number of the oldest entry.
    pub oldest: Option<u64>,
    /// The newest entry as an anchor to store elsewhere: its number, a colon, its hash.
    pub newest: Option<String>,
    /// The number of entries removed by retention.
    pub removed_by_retention: u64,
    /// The first violation in the log.
    pub fault: Option<String>,
    /// Managed rows changed, added or removed without an entry.
    pub rows: Vec<RowFaultView>,
}

/// A managed row that differs from the log.
#[derive(Serialize)]
pub struct RowFaultView {
    /// The table.
    pub table: &'static str,
    /// The row's id, or the known part of it.
    pub row: String,
    /// The difference.
    pub problem: &'static str,
}

impl From<&AuditVerification> for VerificationView {
    fn from(found: &AuditVerification) -> Self {
        Self {
            verified: found.is_verified(),
            entries: found.entries,
            oldest: found.oldest,
            newest: found.newest.map(|newest| newest.to_string()),
            removed_by_retention: found.removed,
            fault: found.violation.as_ref().map(ToString::to_string),
            rows: found.row_violations.iter().map(RowFaultView::from).collect(),
        }
    }
}

impl From<&RowViolation> for RowFaultView {
    fn from(fault: &RowViolation) -> Self {
        Self { table: fault.table, row: fault.row.clone(), problem: fault.problem }
    }
}

/// A process with allowances.
#[derive(Serialize)]
pub struct ProcessView {
    /// Its id.
    pub id: String,
    /// The last time that the database saw it.
    pub seen_at: String,
    /// The time since then, in seconds.
    pub silent_seconds: u64,
    /// True if its journal is on this machine.
    pub has_journal: bool,
}

impl ProcessView {
    /// The column heads of [`Self::row`].
    pub const HEAD: [&str; 3] = ["PROCESS", "SEEN AT", "JOURNAL"];

    /// Returns a table row.
    pub fn row(&self) -> [String; 3] {
        let journal = if self.has_journal { "on this machine" } else { "not on this machine" };
        [self.id.clone(), self.seen_at.clone(), journal.to_owned()]
    }
}

impl From<&(LiveProcess, bool)> for ProcessView {
    fn from((found, has_journal): &(LiveProcess, bool)) -> Self {
        Self {
            id: found.process.to_string(),
            seen_at: time(found.seen_at),
            silent_seconds: found.silent_for.as_secs(),
            has_journal: *has_journal,
        }
    }
}

/// A forgotten process.
#[derive(Serialize)]
pub struct ForgottenView {
    /// Its id.
    pub id: String,
    /// Always true.
    pub forgotten: bool,
}
