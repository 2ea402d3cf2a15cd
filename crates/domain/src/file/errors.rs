//! Errors of files.

use crate::container::{InvalidContainerFileId, InvalidContainerId};
use crate::error::{ErrorKind, StoreError};
use crate::repetition::InvalidIdempotencyKey;

/// A text that is not the position in a list of container files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("after must be the last_id of a page: cfile_ and the unpadded base64url form of a path")]
pub struct InvalidPosition;

/// The error of promoting a container file. Nothing is left behind.
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
    /// The container file does not exist in the caller's workspace, or the workspace was deleted.
    #[error("container file not found")]
    NotFound,
    /// The file is larger than the limit for one file.
    #[error("the file has {file_bytes} bytes; at most {max_bytes} can be promoted")]
    TooLarge {
        /// The size of the file.
        file_bytes: u64,
        /// The limit.
        max_bytes: u64,
    },
    /// The file exceeds the remaining quota of the workspace.
    #[error("the workspace's storage quota does not allow this file")]
    QuotaExceeded {
        /// The quota.
        quota_bytes: u64,
        /// The bytes that documents use now, pending ones included.
        used_bytes: u64,
        /// The size of the file.
        file_bytes: u64,
        /// The bytes that the document would use.
        charged_bytes: u64,
    },
    /// The workspace has reached its limit of documents.
    #[error("the workspace has {documents} documents and may have {max_documents}")]
    TooManyDocuments {
        /// The limit.
        max_documents: u64,
        /// The number of documents in the workspace, pending ones included.
        documents: u64,
    },
    /// The container file has several hard links, some perhaps outside of the container.
    #[error(
        "the container file has {links} hard links; only a file with a single link can be promoted: copy it and promote the copy"
    )]
    HardLinked {
        /// The number of hard links.
        links: u64,
    },
    /// The container file changed in every attempt to copy it.
    #[error("the container file changed while it was being copied; try again when it is complete")]
    SourceChanged,
    /// A call with the same `Idempotency-Key` did not end in time.
    #[error("a promotion with this Idempotency-Key is still in progress; try again shortly")]
    StillInProgress,
    /// A store failed.
    #[error("a store failed while a file was promoted")]
    Store(#[from] StoreError),
}

impl PromoteError {
    /// Returns the error kind.
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
