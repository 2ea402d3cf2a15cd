//! What can go wrong with usage records.

use crate::error::{ErrorKind, StoreError};

/// Why the record of a Decisions request was not shown.
#[derive(Debug, thiserror::Error)]
pub enum GetGenerationError {
    /// There is none of that id, or it belongs to another workspace.
    #[error("there is no such usage record")]
    NotFound,
    /// The store failed.
    #[error("the usage store failed")]
    Store(#[from] StoreError),
}

impl GetGenerationError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::NotFound,
            Self::Store(error) => error.kind(),
        }
    }
}
