//! The results of a verification.

use std::fmt;

use super::AuditHash;

/// An entry that somebody wrote down elsewhere, to hold the log against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditAnchor {
    /// Its place.
    pub seq: u64,
    /// Its hash.
    pub hash: AuditHash,
}

/// Not a place and a hash.
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
    /// The place before the first entry.
    pub const NONE: Self = Self { seq: 0, hash: AuditHash::NONE };
}

/// The beginning and the end of the log, kept beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditState {
    /// The newest entry; [`AuditAnchor::NONE`] where there was none yet.
    pub newest: AuditAnchor,
    /// The last entry that retention removed; [`AuditAnchor::NONE`] where it removed none.
    pub removed: AuditAnchor,
    /// All entries that retention removed.
    pub removed_count: u64,
}

/// A managed row that the log does not account for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{table} {row}: {problem}")]
pub struct RowViolation {
    /// Its table.
    pub table: &'static str,
    /// Its id, or what is known of it.
    pub row: String,
    /// The violation.
    pub problem: &'static str,
}

/// The first violation of the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditViolation {
    /// A row with a number that no entry can have.
    #[error("a row has the number {0}: entries are numbered from 1, so it was not written by this service")]
    ImpossibleNumber(i64),
    /// The content is another than the one that was written.
    #[error("entry {0}: hash mismatch (content modified)")]
    Changed(i64),
    /// Something is missing, or was put in between.
    #[error("entry {} is followed by entry {found}", .expected - 1)]
    Gap {
        /// The place that should come.
        expected: i64,
        /// The one that does.
        found: i64,
    },
    /// The oldest entries are missing, and retention did not remove them.
    #[error("the log begins with entry {found}, but retention removed entries up to {} only: the beginning was cut", .expected - 1)]
    BeginningMissing {
        /// The place that should be the first.
        expected: i64,
        /// The one that is.
        found: i64,
    },
    /// The newest entries are missing.
    #[error("the log ends with entry {found}, but entry {} was written: the end was cut", .newest.seq)]
    EndMissing {
        /// The entry that was written last.
        newest: AuditAnchor,
        /// The place of the last one that is there; zero where there is none.
        found: u64,
    },
    /// All entries are missing.
    #[error("the log is empty, but entry {} was written: it was emptied", .0.seq)]
    Emptied(AuditAnchor),
    /// The newest entry is another than the one that was written.
    #[error("entry {0}: not the entry that was written last (end of the log rewritten)")]
    NewestExchanged(u64),
    /// Retention removed fewer entries than are gone.
    #[error("retention removed {count} entries up to number {through}: {} more are gone", .through - .count)]
    RemovedByOthers {
        /// The last number that retention removed.
        through: u64,
        /// The entries that it removed.
        count: u64,
    },
    /// The record of where the log begins and ends is gone.
    #[error("the table audit_state has lost its row")]
    StateMissing,
    /// It names another entry before it than the one that is there.
    #[error("entry {0}: previous-hash mismatch (chain broken)")]
    BrokenLink(i64),
    /// A row that is no entry.
    #[error("an entry cannot be read: {0}")]
    Unreadable(String),
    /// The log does not have the entry that was written down elsewhere.
    #[error("entry {} is not in the log, or not with the hash that was written down", .0.seq)]
    NotAnchored(AuditAnchor),
}

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditVerification {
    /// Entries that are as they were written.
    pub entries: u64,
    /// The place of the oldest entry that is left: 1 where nothing was ever removed.
    pub oldest: Option<u64>,
    /// The newest entry that is as it was written. Whoever writes it down elsewhere can tell later whether the log was
    /// rewritten by somebody who can write to the whole database, which the database itself cannot show.
    pub newest: Option<AuditAnchor>,
    /// Entries that retention removed.
    pub removed: u64,
    /// The first violation of the log. Entries behind it were not verified.
    pub violation: Option<AuditViolation>,
    /// Managed rows that were changed, added or removed without an entry.
    pub row_violations: Vec<RowViolation>,
}

impl AuditVerification {
    /// True where no violation was found.
    pub fn is_verified(&self) -> bool {
        self.violation.is_none() && self.row_violations.is_empty()
    }
}
