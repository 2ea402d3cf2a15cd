//! The results of a verification, and new entries of the chain.

use std::fmt;

use chrono::{DateTime, Utc};

use super::{AuditDraft, AuditEntry, AuditHash, StoredAuditEntry};

/// An entry that was noted outside of the database, to compare the log with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditAnchor {
    /// The number of the entry.
    pub seq: u64,
    /// The hash of the entry.
    pub hash: AuditHash,
}

/// The text is not an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an anchor is the number of an entry, a colon and its hash of 64 hexadecimal digits")]
pub struct InvalidAuditAnchor;

impl std::str::FromStr for AuditAnchor {
    type Err = InvalidAuditAnchor;

    fn from_str(text: &str) -> Result<Self, InvalidAuditAnchor> {
        let (seq, hash) = text.split_once(':').ok_or(InvalidAuditAnchor)?;
        let seq = seq.parse().map_err(|_| InvalidAuditAnchor)?;
        Ok(Self { seq, hash: hash.parse().map_err(|_| InvalidAuditAnchor)? })
    }
}

impl fmt::Display for AuditAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl AuditAnchor {
    /// The anchor before the first entry.
    pub const NONE: Self = Self { seq: 0, hash: AuditHash::NONE };
}

/// The beginning and the end of the log, stored beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditState {
    /// The newest entry; [`AuditAnchor::NONE`] before the first.
    pub newest: AuditAnchor,
    /// The last entry that retention removed; [`AuditAnchor::NONE`] if it removed none.
    pub removed: AuditAnchor,
    /// The number of entries that retention removed.
    pub removed_count: u64,
}

/// A managed row that the log does not account for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{table} {row}: {problem}")]
pub struct RowViolation {
    /// The table.
    pub table: &'static str,
    /// The id of the row, or its known part.
    pub row: String,
    /// The violation.
    pub problem: &'static str,
}

/// A violation of the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditViolation {
    /// A row has a number that no entry can have.
    #[error("entry number {0} is invalid: entries are numbered from 1")]
    ImpossibleNumber(i64),
    /// The content was modified.
    #[error("entry {0}: hash mismatch (content modified)")]
    Changed(i64),
    /// Entries are missing or were inserted.
    #[error("entry {} is followed by entry {found}", .expected - 1)]
    Gap {
        /// The expected number.
        expected: i64,
        /// The found number.
        found: i64,
    },
    /// The oldest entries are missing, and retention did not remove them.
    #[error("the log begins with entry {found}, but retention removed only entries up to {} (beginning truncated)", .expected - 1)]
    BeginningMissing {
        /// The expected first number.
        expected: i64,
        /// The found first number.
        found: i64,
    },
    /// The newest entries are missing.
    #[error("the log ends with entry {found}, but entry {} was written (end truncated)", .newest.seq)]
    EndMissing {
        /// The last written entry.
        newest: AuditAnchor,
        /// The number of the last found entry; zero if there is none.
        found: u64,
    },
    /// All entries are missing.
    #[error("the log is empty, but entry {} was written (log truncated)", .0.seq)]
    Emptied(AuditAnchor),
    /// The newest entry was replaced.
    #[error("entry {0}: not the entry that was written last (end of the log rewritten)")]
    NewestExchanged(u64),
    /// More entries are gone than retention removed.
    #[error("retention removed {count} entries up to number {through}, but {} more are missing", .through - .count)]
    RemovedByOthers {
        /// The last number that retention removed.
        through: u64,
        /// The number of entries that retention removed.
        count: u64,
    },
    /// The record of the log's beginning and end is missing.
    #[error("the row of the table audit_state is missing")]
    StateMissing,
    /// The previous hash is not that of the previous entry.
    #[error("entry {0}: previous-hash mismatch (chain broken)")]
    BrokenLink(i64),
    /// A row cannot be decoded.
    #[error("an entry cannot be read: {0}")]
    Unreadable(String),
    /// The log does not contain the anchor.
    #[error("entry {} is missing or has another hash than the anchor", .0.seq)]
    NotAnchored(AuditAnchor),
}

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditVerification {
    /// The number of verified entries.
    pub entries: u64,
    /// The number of the oldest entry: 1 if none was ever removed.
    pub oldest: Option<u64>,
    /// The newest verified entry. Noted outside of the database, it later shows whether the whole log was rewritten,
    /// which the database itself cannot show.
    pub newest: Option<AuditAnchor>,
    /// The number of entries that retention removed.
    pub removed: u64,
    /// The first violation of the log. Later entries were not verified.
    pub violation: Option<AuditViolation>,
    /// Managed rows that were changed, added or removed without an entry.
    pub row_violations: Vec<RowViolation>,
}

impl AuditVerification {
    /// Returns true if no violation was found.
    pub fn is_verified(&self) -> bool {
        self.violation.is_none() && self.row_violations.is_empty()
    }
}

impl AuditEntry {
    /// Creates the entry after `previous` (number and hash; `None` for the first entry). `state` is the digest of the
    /// managed rows after the change.
    pub fn following(
        previous: Option<(u64, AuditHash)>,
        at: DateTime<Utc>,
        draft: &AuditDraft,
        state: AuditHash,
    ) -> Self {
        let (seq, previous_hash) = previous.map_or((1, AuditHash::NONE), |(seq, hash)| (seq + 1, hash));
        let mut entry = Self {
            seq,
            at: DateTime::from_timestamp_millis(at.timestamp_millis()).unwrap_or(at),
            actor: draft.actor.clone(),
            action: draft.action.to_owned(),
            subject: draft.subject.clone(),
            outcome: draft.outcome,
            details: draft.details.clone(),
            state,
            previous_hash,
            hash: AuditHash::NONE,
        };
        entry.hash = entry.computed_hash();
        entry
    }

    /// Returns the hash of the content.
    pub fn computed_hash(&self) -> AuditHash {
        StoredAuditEntry::from(self).computed_hash().unwrap_or(AuditHash::NONE)
    }
}

impl From<&AuditEntry> for StoredAuditEntry {
    fn from(entry: &AuditEntry) -> Self {
        Self {
            version: Self::VERSION,
            // No store holds more entries than that.
            seq: i64::try_from(entry.seq).unwrap_or(i64::MAX),
            at: entry.at.timestamp_millis(),
            actor: entry.actor.name.clone(),
            source: entry.actor.source.clone(),
            action: entry.action.clone(),
            subject: entry.subject.clone(),
            outcome: entry.outcome.as_str().to_owned(),
            details: entry.details.text().to_owned(),
            state: Some(entry.state.0.to_vec()),
            previous_hash: entry.previous_hash.0.to_vec(),
            hash: entry.hash.0.to_vec(),
        }
    }
}
