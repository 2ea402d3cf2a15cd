//! The audit log.

use domain::audit::{AuditEntry, AuditVerification, RowViolation};
use serde::Serialize;
use serde_json::value::RawValue;

use super::time;

/// An entry.
#[derive(Serialize)]
pub struct AuditEntryView {
    /// Its number.
    pub seq: u64,
    /// When.
    pub at: String,
    /// Who.
    pub actor: String,
    /// From where.
    pub source: Option<String>,
    /// What was done.
    pub action: String,
    /// To what.
    pub subject: String,
    /// How it ended: `done` or `refused`.
    pub outcome: &'static str,
    /// An object, usually of `before` and `after`.
    pub details: Option<Box<RawValue>>,
    /// The hash of the entry before, in hexadecimal digits.
    pub previous_hash: String,
    /// Its own.
    pub hash: String,
}

impl From<&AuditEntry> for AuditEntryView {
    fn from(entry: &AuditEntry) -> Self {
        Self {
            seq: entry.seq,
            at: time(entry.at),
            actor: entry.actor.name.clone(),
            source: entry.actor.source.clone(),
            action: entry.action.clone(),
            subject: entry.subject.clone(),
            outcome: entry.outcome.as_str(),
            details: RawValue::from_string(entry.details.text().to_owned()).ok(),
            previous_hash: entry.previous_hash.to_string(),
            hash: entry.hash.to_string(),
        }
    }
}

/// Whether the log is whole.
#[derive(Serialize)]
pub struct VerificationView {
    /// True where no fault was found.
    pub verified: bool,
    /// Entries that are as they were written.
    pub entries: u64,
    /// The number of the oldest one.
    pub oldest: Option<u64>,
    /// The newest one, to be written down elsewhere: its number, a colon, its hash.
    pub newest: Option<String>,
    /// Entries that retention removed.
    pub removed_by_retention: u64,
    /// The first fault of the log.
    pub fault: Option<String>,
    /// Managed rows that were changed, added or removed without an entry.
    pub rows: Vec<RowFaultView>,
}

/// A managed row that the log does not account for.
#[derive(Serialize)]
pub struct RowFaultView {
    /// Its table.
    pub table: &'static str,
    /// Its id, or what is known of it.
    pub row: String,
    /// What is wrong.
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
