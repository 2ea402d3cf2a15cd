//! The blob store.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::BlobKey;
use crate::error::StoreError;

/// What is known of an object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobMeta {
    /// Its name.
    pub key: BlobKey,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// When it was last written.
    pub modified_at: DateTime<Utc>,
}

/// How a copy ended without a failure of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyOutcome {
    /// The object is there, whole and durable.
    Copied(CopiedBlob),
    /// The source is not (or no longer) there; nothing was made.
    SourceGone,
    /// The source has another size than expected, or changed while it was read; nothing was made.
    SourceChanged,
    /// The source has further names, which may lie outside of the sandbox; nothing was made.
    SourceLinked {
        /// The number of all its names.
        links: u64,
    },
}

/// What was seen of the bytes on their way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedBlob {
    /// SHA-256 of the whole content, as lower-case hex.
    pub sha256: String,
    /// The first bytes, at most [`CopiedBlob::HEAD_BYTES`], for telling the media type.
    pub head: Vec<u8>,
}

impl CopiedBlob {
    /// How many first bytes a copy keeps.
    pub const HEAD_BYTES: usize = 8_192;
}

/// Bytes that arrive in pieces.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ByteSource: Send {
    /// The next piece, not empty; `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError>;
}

/// Keeps objects.
///
/// # Contract
/// - An object is visible whole or not at all: a reader MUST NOT see one half-written, whatever fails in between.
/// - Objects that `copy` and `put` report done MUST survive the loss of power.
/// - No method holds an object in memory whole.
/// - Only regular files are objects: directories, links and devices under a key MUST be as if absent, so that a
///   sandbox cannot make another workspace's or the host's file readable by linking to it. A file with a second
///   name (a hard link) MUST NOT be copied for the same reason.
/// - A copy is one version of its source: a source that is written while it is copied MUST NOT be copied.
/// - An object MUST NOT be reported done where it cannot be found any more under the configured root.
/// - Names are taken literally, byte for byte: `a%2Fb`, `a#1` and `a b` are three objects.
#[cfg_attr(feature = "mock", mockall::automock)]
#[cfg_attr(feature = "mock", allow(clippy::ref_option_ref, reason = "mockall's own expansion"))]
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// What is known of an object.
    async fn stat(&self, key: &BlobKey) -> Result<Option<BlobMeta>, StoreError>;

    /// Copies `from`, which is expected to have `size_bytes` bytes, to `to`, hashing on the way.
    async fn copy(&self, from: &BlobKey, to: &BlobKey, size_bytes: u64) -> Result<CopyOutcome, StoreError>;

    /// Writes an object from a source, replacing what was there; returns its size.
    async fn put(&self, key: &BlobKey, source: Box<dyn ByteSource>) -> Result<u64, StoreError>;

    /// Deletes an object; that it is not there is no error.
    async fn delete(&self, key: &BlobKey) -> Result<(), StoreError>;

    /// Up to `limit` objects whose names begin with `prefix` (which ends with a slash) and, where given, sort after
    /// `after`; in bytewise order of their names.
    async fn list<'a>(
        &self,
        prefix: &str,
        after: Option<&'a BlobKey>,
        limit: usize,
    ) -> Result<Vec<BlobMeta>, StoreError>;

    /// Removes what interrupted writes left behind and has not been touched for `older_than`; returns how many.
    async fn sweep_partial(&self, older_than: Duration) -> Result<u64, StoreError>;
}
