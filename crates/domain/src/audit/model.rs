//! An entry, and the hash that binds it to the one before.

use crate::json::Json;
use chrono::{DateTime, Utc};

/// How the change ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOutcome {
    /// It was made; the entry is of the same transaction.
    Done,
    /// It was refused, so many times within the minute.
    Refused,
}

impl AuditOutcome {
    /// Its name in stores and on surfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
        }
    }

    /// The outcome of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Done, Self::Refused].into_iter().find(|outcome| outcome.as_str() == name)
    }
}

/// Who asks for a change, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// `key:<id>` of an API key, `user:<name>` of the operating system, or `system`.
    pub name: String,
    /// The client's address, trusted proxies respected; the host's name for a command.
    pub source: Option<String>,
}

impl Actor {
    /// The service itself.
    pub fn system() -> Self {
        Self { name: "system".to_owned(), source: None }
    }
}

/// What is to be written down of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditDraft {
    /// Who.
    pub actor: Actor,
    /// What was done, such as `guardrail.update`.
    pub action: &'static str,
    /// To what, such as `guardrail 0199…`.
    pub subject: String,
    /// How it ended.
    pub outcome: AuditOutcome,
    /// A JSON object, usually of `before` and `after`. MUST hold no secret.
    pub details: Json,
}

impl AuditDraft {
    /// A change that was made.
    pub fn done(actor: &Actor, action: &'static str, subject: impl Into<String>, details: Json) -> Self {
        Self { actor: actor.clone(), action, subject: subject.into(), outcome: AuditOutcome::Done, details }
    }
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its place, from 1, without gaps.
    pub seq: u64,
    /// When, in whole milliseconds.
    pub at: DateTime<Utc>,
    /// Who.
    pub actor: Actor,
    /// What was done.
    pub action: String,
    /// To what.
    pub subject: String,
    /// How it ended.
    pub outcome: AuditOutcome,
    /// A JSON object.
    pub details: Json,
    /// The digest of the managed rows after the change; entries of an earlier form have none.
    pub state: Option<AuditHash>,
    /// The hash of the entry before; zeros for the first.
    pub previous_hash: AuditHash,
    /// SHA-256 over everything above.
    pub hash: AuditHash,
}

/// A hash of the chain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AuditHash(pub [u8; 32]);

impl AuditHash {
    /// What the first entry follows.
    pub const NONE: Self = Self([0; 32]);
}

/// Not a hash.
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
    /// In lower-case hex.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for AuditHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
