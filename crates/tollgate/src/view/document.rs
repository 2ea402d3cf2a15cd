//! Views of documents.

use domain::file::Document;
use serde::Serialize;

use super::time;

/// A document.
#[derive(Serialize)]
pub struct DocumentView {
    /// Its id.
    pub id: String,
    /// Its workspace.
    pub workspace_id: String,
    /// The original path in its container.
    pub filename: String,
    /// Its media type.
    pub media_type: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// SHA-256 of its bytes, as lower-case hex.
    pub sha256: String,
    /// The start of its promotion: RFC 3339, UTC.
    pub created_at: String,
}

impl From<&Document> for DocumentView {
    fn from(document: &Document) -> Self {
        Self {
            id: document.id.to_string(),
            workspace_id: document.workspace_id.to_string(),
            filename: document.filename.clone(),
            media_type: document.media_type.clone(),
            size_bytes: document.size_bytes,
            sha256: document.sha256.clone(),
            created_at: time(document.created_at),
        }
    }
}
