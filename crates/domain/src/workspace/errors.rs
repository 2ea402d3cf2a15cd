//! What can go wrong with workspaces.

use crate::error::{ErrorKind, StoreError};

/// A name that is empty, too long or holds control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a workspace name has 1 to 100 characters and no control characters")]
pub struct InvalidWorkspaceName;

/// Why a workspace was not made, found or changed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The name breaks the rules.
    #[error(transparent)]
    InvalidName(#[from] InvalidWorkspaceName),
    /// The store failed.
    #[error("the workspace store failed")]
    Store(#[from] StoreError),
}

impl WorkspaceError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidName(_) => ErrorKind::InvalidRequest,
            Self::Store(error) => error.kind(),
        }
    }
}
