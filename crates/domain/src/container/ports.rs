//! The blob store.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::BlobKey;
use crate::error::StoreError;

/// The metadata of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobMeta {
    /// The name.
    pub key: BlobKey,
    /// The size in bytes.
    pub size_bytes: u64,
    /// The time of the last write.
    pub modified_at: DateTime<Utc>,
    /// The number of hard links. More than one is a file that may lie outside of the sandbox, too.
    pub links: u64,
}

/// The outcome of a copy without a failure of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyOutcome {
    /// The copy exists, is complete and durable.
    Copied(CopiedBlob),
    /// The source does not exist (any more); nothing was created.
    SourceGone,
    /// The source has an unexpected size or changed during the copy; nothing was created.
    SourceChanged,
    /// The source has several hard links, some perhaps outside of the sandbox; nothing was created.
    SourceLinked {
        /// The number of hard links.
        links: u64,
    },
}

/// The properties of the copied content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedBlob {
    /// SHA-256 of the whole content, as lower-case hex.
    pub sha256: String,
    /// The first bytes, at most [`CopiedBlob::HEAD_BYTES`], for the detection of the media type.
    pub head: Vec<u8>,
}

impl CopiedBlob {
    /// The number of bytes in [`CopiedBlob::head`].
    pub const HEAD_BYTES: usize = 8_192;
}

/// Bytes that arrive in chunks.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ByteSource: Send {
    /// Returns the next chunk, never an empty one; `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError>;
}

/// A source of one chunk.
pub struct OnePiece(Option<Vec<u8>>);

impl OnePiece {
    /// Creates the source of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Some(bytes.into()))
    }
}

#[async_trait]
impl ByteSource for OnePiece {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.take().filter(|piece| !piece.is_empty()))
    }
}

/// An object that is open for reading.
pub struct OpenBlob {
    /// The size of the whole object in bytes.
    pub size_bytes: u64,
    /// The number of hard links of the opened file; see [`BlobMeta::links`].
    pub links: u64,
    /// The bytes that were asked for. A source that ends earlier fails.
    pub source: Box<dyn ByteSource>,
}

/// An object was not written. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum PutBlobError {
    /// No object can have a name of this length.
    #[error("no object can have a name of this length")]
    NameTooLong,
    /// A folder, a link or a special file is at the name, or in place of one of its folders.
    #[error("a folder, a link or a special file is in the way")]
    Occupied,
    /// The store failed, or the bytes did not arrive.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<PutBlobError> for StoreError {
    fn from(error: PutBlobError) -> Self {
        match error {
            PutBlobError::Store(error) => error,
            error => Self::unavailable(error),
        }
    }
}

/// Stores objects.
///
/// # Contract
/// - An object is visible as a whole or not at all: a reader MUST NOT see a partly written one after any failure.
/// - Objects that `copy` and `put` report as written MUST survive a power loss.
/// - No method holds a whole object in memory.
/// - Only regular files are objects: directories, links and devices MUST be treated as missing, so that a sandbox
///   cannot expose another workspace's or the host's file by linking to it. A file with a second hard link MUST NOT be
///   copied for the same reason.
/// - A copy is one version of its source: a source that changes during the copy MUST NOT be copied.
/// - An object MUST NOT be reported as written if it cannot be found under the configured root any more.
/// - An object that is open stays readable while it is deleted or replaced, as far as the technology allows; it MUST NOT
///   turn into another one. A reader MUST NOT use a thread between two pieces, nor limit the time that its caller takes.
/// - Names are literal bytes: `a%2Fb`, `a#1` and `a b` are three objects.
#[cfg_attr(feature = "mock", mockall::automock)]
#[cfg_attr(feature = "mock", allow(clippy::ref_option_ref, reason = "mockall's own expansion"))]
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Returns the metadata of an object.
    async fn stat(&self, key: &BlobKey) -> Result<Option<BlobMeta>, StoreError>;

    /// Copies `from` to `to` and hashes it. `from` is expected to have `size_bytes` bytes.
    async fn copy(&self, from: &BlobKey, to: &BlobKey, size_bytes: u64) -> Result<CopyOutcome, StoreError>;

    /// Writes an object from a source and replaces an existing one; returns its size. A name whose objects were deleted
    /// is free, also as that of a folder.
    async fn put(&self, key: &BlobKey, source: Box<dyn ByteSource>) -> Result<u64, PutBlobError>;

    /// Opens an object for reading: all of it, or a range with at least one byte. `None` where it does not exist. A range
    /// that ends behind the end of the object fails, here or while it is read.
    async fn read(&self, key: &BlobKey, range: Option<Range<u64>>) -> Result<Option<OpenBlob>, StoreError>;

    /// Deletes an object. Returns false if it does not exist; of concurrent deletions one returns true. An object store
    /// that does not tell returns true.
    async fn delete(&self, key: &BlobKey) -> Result<bool, StoreError>;

    /// Returns up to `limit` objects whose names begin with `prefix`, which ends with a slash, and sort after `after`.
    /// The order is bytewise.
    async fn list<'a>(
        &self,
        prefix: &str,
        after: Option<&'a BlobKey>,
        limit: usize,
    ) -> Result<Vec<BlobMeta>, StoreError>;

    /// Removes the remains of interrupted writes that were not modified for `older_than`; returns their number.
    async fn sweep_partial(&self, older_than: Duration) -> Result<u64, StoreError>;
}
