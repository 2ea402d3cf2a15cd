//! Audit entries and container files.

use domain::audit::{AuditEntry, AuditVerification, RowViolation};
use domain::container::{ContainerId, ContainerPath};
use serde::Serialize;
use serde_json::value::RawValue;

use super::time;

/// An audit entry.
#[derive(Serialize)]
pub struct AuditEntryView {
    /// The sequence number.
    pub seq: u64,
    /// The time.
    pub at: String,
    /// The actor.
    pub actor: String,
    /// The source address.
    pub source: Option<String>,
    /// The action.
    pub action: String,
    /// The affected record.
    pub subject: String,
    /// The outcome.
    pub outcome: &'static str,
    /// An object, usually with `before` and `after`.
    pub details: Option<Box<RawValue>>,
    /// The hash of the previous entry, in hexadecimal digits.
    pub previous_hash: String,
    /// The hash of this entry.
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

/// A container file.
#[derive(Serialize)]
pub struct ContainerFileView {
    /// The container.
    pub container_id: String,
    /// The id in the HTTP interface.
    pub file_id: String,
    /// Its path.
    pub path: String,
    /// Its size in bytes.
    pub size_bytes: u64,
}

impl ContainerFileView {
    /// Creates a view.
    pub fn new(container: &ContainerId, path: &ContainerPath, size_bytes: u64) -> Self {
        Self {
            container_id: container.to_string(),
            file_id: path.file_id(),
            path: path.as_str().to_owned(),
            size_bytes,
        }
    }
}
