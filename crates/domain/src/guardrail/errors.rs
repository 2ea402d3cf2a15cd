//! Errors of guardrails.

use super::filter::InvalidFilters;
use crate::authority::Restricted;
use crate::change::PreconditionFailed;
use crate::error::{ErrorKind, StoreError};
use crate::naming::NameError;
use crate::workspace::ChooseWorkspaceError;

/// A name that is empty, too long or holds control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a guardrail name has 1 to 200 characters, not all of them blank, and no control characters")]
pub struct InvalidGuardrailName;

/// An invalid member of a guardrail record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}{fault}", if path.is_empty() { "" } else { ": " })]
pub struct InvalidGuardrail {
    /// The path of the member, such as `allowed_models[2]`; empty for the record as a whole.
    pub path: String,
    /// The violation and its remedy, as a fragment of a sentence.
    pub fault: String,
    /// Up to three known names that are spelled like the unknown one; `fault` lists them as well.
    pub nearest: Vec<String>,
}

impl InvalidGuardrail {
    /// Creates an error at a path.
    pub fn new(path: impl Into<String>, fault: impl Into<String>) -> Self {
        Self { path: path.into(), fault: fault.into(), nearest: Vec::new() }
    }
}

impl From<InvalidFilters> for InvalidGuardrail {
    fn from(InvalidFilters { path, fault }: InvalidFilters) -> Self {
        Self::new(path, fault)
    }
}

/// The error of reading or changing a guardrail. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum GuardrailError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// The record is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidGuardrail),
    /// No guardrail or several ones have the name.
    #[error("guardrail {0}")]
    Name(#[from] NameError),
    /// The guardrail has no version of that number.
    #[error("the guardrail has no such version")]
    UnknownVersion,
    /// The workspace does not exist.
    #[error("workspace not found")]
    UnknownWorkspace,
    /// The caller manages several workspaces and names none.
    #[error("workspace_id is required: the key manages several workspaces")]
    WorkspaceRequired,
    /// The guardrail has another version than the caller accepts.
    #[error(transparent)]
    PreconditionFailed(#[from] PreconditionFailed),
    /// Every attempt to write collided with a concurrent change.
    #[error("the guardrail was changed concurrently; try again")]
    Conflict,
    /// The store failed.
    #[error("the guardrail store failed")]
    Store(#[from] StoreError),
}

impl GuardrailError {
    /// Returns the error kind.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Restricted(error) => error.kind(),
            Self::Invalid(_) | Self::WorkspaceRequired => ErrorKind::InvalidRequest,
            Self::Name(error) => error.kind(),
            Self::UnknownVersion | Self::UnknownWorkspace => ErrorKind::NotFound,
            Self::PreconditionFailed(error) => error.kind(),
            Self::Conflict => ErrorKind::Conflict,
            Self::Store(error) => error.kind(),
        }
    }
}

impl From<ChooseWorkspaceError> for GuardrailError {
    fn from(error: ChooseWorkspaceError) -> Self {
        match error {
            ChooseWorkspaceError::Unknown => Self::UnknownWorkspace,
            ChooseWorkspaceError::Required => Self::WorkspaceRequired,
            ChooseWorkspaceError::Store(error) => Self::Store(error),
        }
    }
}

/// The error of assigning keys. Nothing was assigned.
#[derive(Debug, thiserror::Error)]
pub enum AssignKeysError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// `key_hashes` has no element.
    #[error("key_hashes must have at least one element")]
    NoHashes,
    /// An element of `key_hashes` is empty.
    #[error("key_hashes[{0}] must not be empty")]
    EmptyHash(usize),
    /// No guardrail or several ones have the name.
    #[error("guardrail {0}")]
    Name(#[from] NameError),
    /// The guardrail has another version than the caller accepts.
    #[error(transparent)]
    PreconditionFailed(#[from] PreconditionFailed),
    /// The store failed.
    #[error("the guardrail store failed")]
    Store(#[from] StoreError),
}

impl AssignKeysError {
    /// Returns the error kind.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Restricted(error) => error.kind(),
            Self::NoHashes | Self::EmptyHash(_) => ErrorKind::InvalidRequest,
            Self::Name(error) => error.kind(),
            Self::PreconditionFailed(error) => error.kind(),
            Self::Store(error) => error.kind(),
        }
    }
}
