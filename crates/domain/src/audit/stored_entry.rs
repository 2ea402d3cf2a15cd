//! Unparsed entries for verification: parsing could hide a modification.

use sha2::{Digest, Sha256};

use super::AuditHash;
use super::managed_rows::add_field;

/// A row of the log, column by column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAuditEntry {
    /// The version of the hash.
    pub version: i64,
    /// The number.
    pub seq: i64,
    /// Unix milliseconds.
    pub at: i64,
    /// The actor.
    pub actor: String,
    /// The source.
    pub source: Option<String>,
    /// The action.
    pub action: String,
    /// The subject.
    pub subject: String,
    /// The outcome.
    pub outcome: String,
    /// The details, JSON byte for byte.
    pub details: String,
    /// The digest of the managed rows.
    pub state: Option<Vec<u8>>,
    /// The hash of the previous entry.
    pub previous_hash: Vec<u8>,
    /// The hash of this entry.
    pub hash: Vec<u8>,
}

impl StoredAuditEntry {
    /// The hash version of new entries.
    pub const VERSION: i64 = 1;

    /// Returns the hash of the columns, each after its presence and length; `None` for an unknown version.
    pub fn computed_hash(&self) -> Option<AuditHash> {
        if self.version != Self::VERSION {
            return None;
        }
        let mut digest = Sha256::new();
        digest.update(b"tollgate audit entry 1\0");
        let fields: [Option<&[u8]>; 10] = [
            Some(&self.previous_hash),
            Some(&self.seq.to_le_bytes()),
            Some(&self.at.to_le_bytes()),
            Some(self.actor.as_bytes()),
            self.source.as_deref().map(str::as_bytes),
            Some(self.action.as_bytes()),
            Some(self.subject.as_bytes()),
            Some(self.outcome.as_bytes()),
            Some(self.details.as_bytes()),
            self.state.as_deref(),
        ];
        for field in fields {
            add_field(&mut digest, field);
        }
        Some(AuditHash(digest.finalize().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> StoredAuditEntry {
        StoredAuditEntry {
            version: StoredAuditEntry::VERSION,
            seq: 7,
            at: 1_790_000_000_000,
            actor: "user:a".to_owned(),
            source: Some("host".to_owned()),
            action: "key.create".to_owned(),
            subject: "key 1".to_owned(),
            outcome: "done".to_owned(),
            details: "{}".to_owned(),
            state: Some(vec![3; 32]),
            previous_hash: vec![1; 32],
            hash: vec![2; 32],
        }
    }

    #[test]
    fn hash_changes_with_every_column() {
        let changes: [fn(&mut StoredAuditEntry); 14] = [
            |entry| entry.version = 2,
            |entry| entry.seq = -7,
            |entry| entry.at += 1,
            |entry| entry.actor.push('x'),
            |entry| entry.source = None,
            |entry| entry.source = Some(String::new()),
            |entry| entry.action.push('x'),
            |entry| entry.subject.push('x'),
            |entry| entry.outcome.push('x'),
            |entry| entry.details.push(' '),
            |entry| entry.state = None,
            |entry| entry.state = Some(Vec::new()),
            |entry| entry.previous_hash.push(0),
            |entry| (entry.action, entry.subject) = ("key.creat".to_owned(), "ekey 1".to_owned()),
        ];
        let mut hashes = vec![entry().computed_hash()];
        for (number, change) in changes.into_iter().enumerate() {
            let mut other = entry();
            change(&mut other);
            let hash = other.computed_hash();
            assert!(!hashes.contains(&hash), "change {number}");
            hashes.push(hash);
        }
    }

    #[test]
    fn unknown_version_has_no_hash() {
        for version in [0, 2, -1] {
            assert_eq!(StoredAuditEntry { version, ..entry() }.computed_hash(), None);
        }
    }
}
