//! Verifications of the audit log.

use domain::audit::{AuditVerification, RowViolation};
use serde::Serialize;

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
