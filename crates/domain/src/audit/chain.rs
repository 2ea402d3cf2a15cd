//! New entries of the chain.

use chrono::{DateTime, Utc};

use super::{AuditDraft, AuditEntry, AuditHash, StoredAuditEntry};

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
