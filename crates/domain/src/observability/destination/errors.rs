//! Errors of destinations.

use crate::authority::Restricted;
use crate::change::PreconditionFailed;
use crate::error::{ErrorKind, StoreError};
use crate::naming::NameError;
use crate::observability::{Destination, DestinationKind};
use crate::workspace::ChooseWorkspaceError;

/// An invalid field of a destination. Its value is left out, because it may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} {fault}")]
pub struct InvalidDestination {
    /// The path of the field, such as `config.url`.
    pub path: String,
    /// The violation and its remedy, as the rest of a sentence.
    pub fault: String,
}

impl InvalidDestination {
    /// Creates the error of a field.
    pub(super) fn new(path: impl Into<String>, fault: impl Into<String>) -> Self {
        Self { path: path.into(), fault: fault.into() }
    }
}

/// An error of creating, changing or testing a destination.
#[derive(Debug, thiserror::Error)]
pub enum DestinationError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// A field is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidDestination),
    /// The update has no fields.
    #[error("no fields to update")]
    NothingToChange,
    /// The workspace does not exist.
    #[error("workspace not found")]
    UnknownWorkspace,
    /// The caller manages several workspaces and names none.
    #[error("workspace_id is required: the key manages several workspaces")]
    WorkspaceRequired,
    /// No destination or several ones have the name.
    #[error("destination {0}")]
    Name(#[from] NameError),
    /// The destination has another version than the caller accepts.
    #[error(transparent)]
    PreconditionFailed(#[from] PreconditionFailed),
    /// The test delivery failed.
    #[error("the test call to the destination failed: {0}")]
    TestFailed(String),
    /// The workspace has the most destinations of this kind.
    #[error("a workspace has at most {} destinations of the type {}", Destination::MAX_PER_KIND, .0.as_str())]
    TooMany(DestinationKind),
    /// A concurrent change came first.
    #[error("the destination was changed concurrently; read it again and retry")]
    Changed,
    /// The store failed.
    #[error("the store of destinations failed")]
    Store(#[from] StoreError),
}

impl From<ChooseWorkspaceError> for DestinationError {
    fn from(error: ChooseWorkspaceError) -> Self {
        match error {
            ChooseWorkspaceError::Unknown => Self::UnknownWorkspace,
            ChooseWorkspaceError::Required => Self::WorkspaceRequired,
            ChooseWorkspaceError::Store(error) => Self::Store(error),
        }
    }
}

impl DestinationError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Restricted(error) => error.kind(),
            Self::Invalid(_) | Self::NothingToChange | Self::WorkspaceRequired | Self::TestFailed(_) => {
                ErrorKind::InvalidRequest
            }
            Self::Name(error) => error.kind(),
            Self::UnknownWorkspace => ErrorKind::NotFound,
            Self::PreconditionFailed(error) => error.kind(),
            Self::TooMany(_) | Self::Changed => ErrorKind::Conflict,
            Self::Store(error) => error.kind(),
        }
    }
}
