//! A durable document.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};

use super::InvalidIdempotencyKey;
use crate::ids::{ApiKeyId, DocumentId, WorkspaceId};

/// A file in the workspace's durable storage. Every one of them was promoted from a container, so it is downloadable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its id in the documents namespace.
    pub id: DocumentId,
    /// The workspace that it belongs to.
    pub workspace_id: WorkspaceId,
    /// The path that it had in its container.
    pub filename: String,
    /// Told from its content, with the file name's extension as help.
    pub media_type: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// SHA-256 of the content, as lower-case hex.
    pub sha256: String,
    /// When the promotion began.
    pub created_at: DateTime<Utc>,
}

/// A document before its bytes are there: it holds quota and is visible to nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDocument {
    /// Its id.
    pub id: DocumentId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// The path that it has in its container.
    pub filename: String,
    /// The bytes that it will hold.
    pub size_bytes: u64,
    /// The bytes that it counts against the quota: its size, or more where it is small.
    pub charged_bytes: u64,
    /// When the promotion began.
    pub created_at: DateTime<Utc>,
}

/// The bounds on the documents of one workspace, those being written included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentQuota {
    /// Most charged bytes of all documents together.
    pub bytes: u64,
    /// Most documents.
    pub documents: u64,
}

/// A caller's `Idempotency-Key`: 1 to 255 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for IdempotencyKey {
    type Err = InvalidIdempotencyKey;

    fn from_str(text: &str) -> Result<Self, InvalidIdempotencyKey> {
        let fits = (1..=255).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidIdempotencyKey) }
    }
}

/// A claim that a call is the same as an earlier one. Scoped to the API key and the operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyClaim {
    /// Whose.
    pub api_key: ApiKeyId,
    /// Of which operation, such as `promote`.
    pub operation: &'static str,
    /// The caller's key.
    pub key: IdempotencyKey,
    /// What the call was about; the same key with another subject is a mistake of the caller.
    pub subject: String,
    /// Claims made before this moment are forgotten.
    pub not_before: DateTime<Utc>,
}
