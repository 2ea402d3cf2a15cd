//! What can go wrong with destinations.

use crate::error::{ErrorKind, StoreError};
use crate::observability::{Destination, DestinationKind};

/// A member of a destination that cannot be used. Holds nothing of its value, which may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} {fault}")]
pub struct InvalidDestination {
    /// Which member, such as `config.url`.
    pub path: String,
    /// What is wrong and what to do, as the rest of a sentence.
    pub fault: String,
}

impl InvalidDestination {
    /// A fault of a member.
    pub(super) fn new(path: impl Into<String>, fault: impl Into<String>) -> Self {
        Self { path: path.into(), fault: fault.into() }
    }
}

/// Why a destination was not made, changed or tested.
#[derive(Debug, thiserror::Error)]
pub enum DestinationError {
    /// A member cannot be used.
    #[error(transparent)]
    Invalid(#[from] InvalidDestination),
    /// Nothing was said that could be changed.
    #[error("nothing is said that can be changed")]
    NothingToChange,
    /// There is no such workspace.
    #[error("there is no such workspace")]
    UnknownWorkspace,
    /// There is no such destination (an id that is not even well formed included).
    #[error("there is no such destination")]
    NotFound,
    /// The test call failed, and why.
    #[error("the test call to the destination failed: {0}")]
    Refused(String),
    /// The workspace has as many of its kind as it may have.
    #[error("a workspace has at most {} destinations of the type {}", Destination::MOST_OF_A_KIND, .0.as_str())]
    TooMany(DestinationKind),
    /// Somebody else changed it at the same time.
    #[error("the destination was changed by somebody else at the same time; read it again")]
    Changed,
    /// The store failed.
    #[error("the store of destinations failed")]
    Store(#[from] StoreError),
}

impl DestinationError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) | Self::NothingToChange | Self::UnknownWorkspace | Self::Refused(_) => {
                ErrorKind::InvalidRequest
            }
            Self::NotFound => ErrorKind::NotFound,
            Self::TooMany(_) | Self::Changed => ErrorKind::Conflict,
            Self::Store(error) => error.kind(),
        }
    }
}
