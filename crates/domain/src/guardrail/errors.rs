//! What can go wrong with guardrails.

use crate::error::{ErrorKind, StoreError};

/// A name that is empty, too long or holds control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a guardrail name has 1 to 200 characters and no control characters")]
pub struct InvalidGuardrailName;

/// Why a guardrail was not made.
#[derive(Debug, thiserror::Error)]
pub enum CreateGuardrailError {
    /// The name breaks the rules.
    #[error(transparent)]
    InvalidName(#[from] InvalidGuardrailName),
    /// There is no such workspace.
    #[error("there is no such workspace")]
    UnknownWorkspace,
    /// The store failed.
    #[error("the guardrail store failed")]
    Store(#[from] StoreError),
}

impl CreateGuardrailError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidName(_) => ErrorKind::InvalidRequest,
            Self::UnknownWorkspace => ErrorKind::NotFound,
            Self::Store(error) => error.kind(),
        }
    }
}

/// Why keys were not assigned. Nothing was assigned then.
#[derive(Debug, thiserror::Error)]
pub enum AssignKeysError {
    /// `key_hashes` has no element.
    #[error("key_hashes must have at least one element")]
    NoHashes,
    /// An element of `key_hashes` is empty.
    #[error("key_hashes[{0}] must not be empty")]
    EmptyHash(usize),
    /// There is no such guardrail (an id that is not even well formed included).
    #[error("there is no such guardrail")]
    UnknownGuardrail,
    /// The store failed.
    #[error("the guardrail store failed")]
    Store(#[from] StoreError),
}

impl AssignKeysError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoHashes | Self::EmptyHash(_) => ErrorKind::InvalidRequest,
            Self::UnknownGuardrail => ErrorKind::NotFound,
            Self::Store(error) => error.kind(),
        }
    }
}
