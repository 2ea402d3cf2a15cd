//! Audit entries and their hashes.

use crate::json::Json;
use crate::repetition::StoredRepetition;
use crate::text::hex;
use chrono::{DateTime, Utc};

named_enum! {
    /// The outcome of a change.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum AuditOutcome {
        /// The change was made; the entry is of the same transaction.
        Done = "done",
        /// The change was denied, once or several times within a minute.
        Denied = "refused",
    }
}

/// The actor of a change and its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// `key:<id>` of an API key, `user:<name>` of the operating system, or `system`.
    pub name: String,
    /// The client's address, trusted proxies respected; the host's name for a command.
    pub source: Option<String>,
}

impl Actor {
    /// Returns the service itself as the actor.
    pub fn system() -> Self {
        Self { name: "system".to_owned(), source: None }
    }
}

/// An audit entry without its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditDraft {
    /// The actor.
    pub actor: Actor,
    /// The action, such as `guardrail.update`.
    pub action: &'static str,
    /// The changed object, such as `guardrail 0199…`.
    pub subject: String,
    /// The outcome.
    pub outcome: AuditOutcome,
    /// A JSON object, usually of `before` and `after`. MUST hold no secret.
    pub details: Json,
    /// The request that makes the change; it is stored in the same transaction and is no part of the entry.
    pub repetition: Option<StoredRepetition>,
}

impl AuditDraft {
    /// Creates the entry of a successful change.
    pub fn done(actor: &Actor, action: &'static str, subject: impl Into<String>, details: Json) -> Self {
        let outcome = AuditOutcome::Done;
        Self { actor: actor.clone(), action, subject: subject.into(), outcome, details, repetition: None }
    }

    /// Returns the entry of a change from one state to another; `None` means that the subject does not exist.
    pub fn change(
        actor: &Actor,
        action: &'static str,
        subject: impl Into<String>,
        before: Option<Json>,
        after: Option<Json>,
    ) -> Self {
        let states = [("before", before), ("after", after)];
        let details = Json::object(states.iter().filter_map(|(name, state)| Some((*name, state.as_ref()?.text()))));
        Self::done(actor, action, subject, details)
    }
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// The number, from 1, without gaps.
    pub seq: u64,
    /// The time of the change, in whole milliseconds.
    pub at: DateTime<Utc>,
    /// The actor.
    pub actor: Actor,
    /// The action.
    pub action: String,
    /// The changed object.
    pub subject: String,
    /// The outcome.
    pub outcome: AuditOutcome,
    /// A JSON object.
    pub details: Json,
    /// The digest of the managed rows after the change.
    pub state: AuditHash,
    /// The hash of the previous entry; zeros for the first.
    pub previous_hash: AuditHash,
    /// SHA-256 over all other fields.
    pub hash: AuditHash,
}

/// A hash of the chain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AuditHash(pub [u8; 32]);

impl AuditHash {
    /// The previous hash of the first entry.
    pub const NONE: Self = Self([0; 32]);
}

/// The text is not a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a hash is 64 hexadecimal digits")]
pub struct InvalidAuditHash;

impl std::str::FromStr for AuditHash {
    type Err = InvalidAuditHash;

    fn from_str(text: &str) -> Result<Self, InvalidAuditHash> {
        let mut hash = [0; 32];
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(InvalidAuditHash);
        }
        for (byte, place) in hash.iter_mut().zip((0..).step_by(2)) {
            let digits = text.get(place..place + 2).ok_or(InvalidAuditHash)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| InvalidAuditHash)?;
        }
        Ok(Self(hash))
    }
}

impl std::fmt::Display for AuditHash {
    /// Writes lower-case hexadecimal digits.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl std::fmt::Debug for AuditHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
