//! Errors of usage records.

use crate::error::{ErrorKind, StoreError};

/// The error of reading the usage record of a Decisions request.
#[derive(Debug, thiserror::Error)]
pub enum GetGenerationError {
    /// The record does not exist, or belongs to another workspace.
    #[error("usage record not found")]
    NotFound,
    /// The store failed.
    #[error("the usage store failed")]
    Store(#[from] StoreError),
}

impl GetGenerationError {
    /// Returns the error kind.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::NotFound,
            Self::Store(error) => error.kind(),
        }
    }
}
