//! What can go wrong with files.

use crate::container::{InvalidContainerFileId, InvalidContainerId};
use crate::error::{ErrorKind, StoreError};

/// Not 1 to 255 visible ASCII characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Idempotency-Key must be 1 to 255 visible ASCII characters")]
pub struct InvalidIdempotencyKey;

/// Why a container file was not promoted. Nothing of it is left behind then.
#[derive(Debug, thiserror::Error)]
pub enum PromoteError {
    /// The container id is malformed.
    #[error(transparent)]
    ContainerId(#[from] InvalidContainerId),
    /// The file id is malformed.
    #[error(transparent)]
    FileId(#[from] InvalidContainerFileId),
    /// The `Idempotency-Key` is malformed.
    #[error(transparent)]
    IdempotencyKey(#[from] InvalidIdempotencyKey),
    /// The `Idempotency-Key` was used for another file within the last 24 hours.
    #[error("this Idempotency-Key was already used for another file")]
    IdempotencyKeyReused,
    /// The caller's workspace has no such container file.
    #[error("there is no such container file")]
    NotFound,
    /// The file is over the limit of a single file.
    #[error("the file has {file_bytes} bytes; at most {max_bytes} can be promoted")]
    TooLarge {
        /// Its size.
        file_bytes: u64,
        /// The limit.
        max_bytes: u64,
    },
    /// The workspace's quota has no room for the file.
    #[error("the workspace's storage quota has no room for this file")]
    QuotaExceeded {
        /// The quota.
        quota_bytes: u64,
        /// The bytes that documents count now, those being written included.
        used_bytes: u64,
        /// The file's size.
        file_bytes: u64,
        /// The bytes that the document would count.
        charged_bytes: u64,
    },
    /// The workspace has as many documents as it may have.
    #[error("the workspace has {documents} documents and may have {max_documents}")]
    TooManyDocuments {
        /// The bound.
        max_documents: u64,
        /// The workspace's documents, those being written included.
        documents: u64,
    },
    /// The container file has more names than one, and the others may lie outside of the container.
    #[error(
        "the container file has {links} hard links; only a file with a single link can be promoted: copy it and promote the copy"
    )]
    HardLinked {
        /// The number of its names.
        links: u64,
    },
    /// The container file kept changing while it was read.
    #[error("the container file changed while it was being copied; try again when it is complete")]
    SourceChanged,
    /// A call with the same `Idempotency-Key` has not ended in time.
    #[error("a promotion with this Idempotency-Key is still in progress; try again shortly")]
    StillInProgress,
    /// A store failed.
    #[error("a store failed while a file was promoted")]
    Store(#[from] StoreError),
}

impl PromoteError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::ContainerId(_)
            | Self::FileId(_)
            | Self::IdempotencyKey(_)
            | Self::IdempotencyKeyReused
            | Self::HardLinked { .. } => ErrorKind::InvalidRequest,
            Self::NotFound => ErrorKind::NotFound,
            Self::TooLarge { .. } => ErrorKind::PayloadTooLarge,
            Self::QuotaExceeded { .. } | Self::TooManyDocuments { .. } => ErrorKind::Forbidden,
            Self::SourceChanged | Self::StillInProgress => ErrorKind::Unavailable,
            Self::Store(error) => error.kind(),
        }
    }
}
