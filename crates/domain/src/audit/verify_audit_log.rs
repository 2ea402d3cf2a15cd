//! Whether anybody tampered with the log.

use std::fmt;
use std::sync::Arc;

use super::{AuditEntry, AuditHash, AuditLog};
use crate::error::StoreError;

/// Entries that are read at a time.
const PAGE: u64 = 1000;

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

/// What is wrong with the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditFault {
    /// Its content is not what it was written with.
    #[error("entry {0} was changed: its content does not make its hash")]
    Changed(u64),
    /// Something is missing, or was put in between.
    #[error("entry {} is followed by entry {found}", .expected - 1)]
    Gap {
        /// The place that should come.
        expected: u64,
        /// The one that does.
        found: u64,
    },
    /// It names another entry before it than the one that is there.
    #[error("entry {0} does not follow the entry before it: that one is another than when it was written")]
    BrokenLink(u64),
    /// A row that is no entry.
    #[error("an entry cannot be read: {0}")]
    Unreadable(String),
    /// The log does not have the entry that was written down elsewhere.
    #[error("entry {} is not in the log, or not with the hash that was written down", .0.seq)]
    NotAnchored(AuditAnchor),
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditVerification {
    /// Entries that are as they were written.
    pub entries: u64,
    /// The place of the oldest entry that is left: 1 where nothing was ever removed.
    pub oldest: Option<u64>,
    /// The newest entry that is as it was written. Whoever writes it down elsewhere can tell later whether the log was
    /// cut off, which the log itself cannot show.
    pub newest: Option<AuditAnchor>,
    /// The first fault. Nothing behind it was looked at.
    pub fault: Option<AuditFault>,
}

/// Reads the whole log and recomputes every hash.
pub struct VerifyAuditLog {
    log: Arc<dyn AuditLog>,
}

impl VerifyAuditLog {
    /// Wires the port.
    pub fn new(log: Arc<dyn AuditLog>) -> Self {
        Self { log }
    }

    /// Page by page, from the oldest entry on. With an anchor also whether that entry is there.
    pub async fn execute(&self, anchor: Option<AuditAnchor>) -> Result<AuditVerification, StoreError> {
        let mut found = AuditVerification::default();
        let mut anchored = anchor.is_none();
        let mut limit = PAGE;
        loop {
            let from = found.newest.map_or(0, |newest| newest.seq.saturating_add(1));
            let page = match self.log.read(from, limit).await {
                // One row spoils its page: what stands before it is read one by one.
                Err(StoreError::Corrupt(_)) if limit > 1 => {
                    limit = 1;
                    continue;
                }
                Err(StoreError::Corrupt(detail)) => {
                    found.fault = Some(AuditFault::Unreadable(detail));
                    return Ok(found);
                }
                page => page?,
            };
            if page.is_empty() {
                found.fault = anchor.filter(|_| !anchored).map(AuditFault::NotAnchored);
                return Ok(found);
            }
            for entry in &page {
                let mut fault = fault_of(entry, found.newest);
                if matches!(fault, Some(AuditFault::Gap { .. })) && self.is_oldest(entry.seq).await? {
                    // What stood before it was pruned meanwhile.
                    fault = fault_of(entry, None);
                }
                if fault.is_some() {
                    found.fault = fault;
                    return Ok(found);
                }
                let seen = AuditAnchor { seq: entry.seq, hash: entry.hash };
                anchored |= anchor == Some(seen);
                found.entries += 1;
                found.oldest.get_or_insert(entry.seq);
                found.newest = Some(seen);
            }
        }
    }

    async fn is_oldest(&self, seq: u64) -> Result<bool, StoreError> {
        Ok(self.log.read(0, 1).await?.first().is_some_and(|oldest| oldest.seq == seq))
    }
}

/// The first entry that is left may follow one that was pruned.
fn fault_of(entry: &AuditEntry, before: Option<AuditAnchor>) -> Option<AuditFault> {
    let followed = match before {
        Some(before) => Some(before),
        None => (entry.seq <= 1).then_some(AuditAnchor { seq: 0, hash: AuditHash::NONE }),
    };
    if let Some(before) = followed {
        let expected = before.seq.saturating_add(1);
        if entry.seq != expected {
            return Some(AuditFault::Gap { expected, found: entry.seq });
        }
        if entry.previous_hash != before.hash {
            return Some(AuditFault::BrokenLink(entry.seq));
        }
    }
    (entry.computed_hash() != entry.hash).then_some(AuditFault::Changed(entry.seq))
}

#[cfg(test)]
mod tests;
