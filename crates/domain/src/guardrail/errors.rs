//! What can go wrong with guardrails.

use super::filter::InvalidFilters;
use crate::error::{ErrorKind, StoreError};

/// A name that is empty, too long or holds control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a guardrail name has 1 to 200 characters and no control characters")]
pub struct InvalidGuardrailName;

/// A member of a record that cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}{fault}", if path.is_empty() { "" } else { ": " })]
pub struct InvalidGuardrail {
    /// Which member, such as `allowed_models[2]`; empty for the record as a whole.
    pub path: String,
    /// What is wrong and what to do, as a fragment of a sentence.
    pub fault: String,
    /// Up to three names that are spelled like one that nobody has; the fault tells them as well.
    pub nearest: Vec<String>,
}

impl InvalidGuardrail {
    /// A fault at a path.
    pub fn new(path: impl Into<String>, fault: impl Into<String>) -> Self {
        Self { path: path.into(), fault: fault.into(), nearest: Vec::new() }
    }
}

impl From<InvalidFilters> for InvalidGuardrail {
    fn from(InvalidFilters { path, fault }: InvalidFilters) -> Self {
        Self::new(path, fault)
    }
}

/// Why a guardrail was not read or changed. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum GuardrailError {
    /// The record breaks the rules.
    #[error(transparent)]
    Invalid(#[from] InvalidGuardrail),
    /// There is no such guardrail (an id that is not even well formed included).
    #[error("there is no such guardrail")]
    UnknownGuardrail,
    /// The guardrail was never of that version.
    #[error("the guardrail has no such version")]
    UnknownVersion,
    /// There is no such workspace.
    #[error("there is no such workspace")]
    UnknownWorkspace,
    /// Others changed it again and again in the meantime.
    #[error("the guardrail is being changed by others")]
    Conflict,
    /// The store failed.
    #[error("the guardrail store failed")]
    Store(#[from] StoreError),
}

impl GuardrailError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) => ErrorKind::InvalidRequest,
            Self::UnknownGuardrail | Self::UnknownVersion | Self::UnknownWorkspace => ErrorKind::NotFound,
            Self::Conflict => ErrorKind::Conflict,
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
