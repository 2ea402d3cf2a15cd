//! What can go wrong with keys.

use super::KeyReference;
use crate::error::{ErrorKind, StoreError};

/// A name that is empty, too long or holds control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key name has 1 to 200 characters and no control characters")]
pub struct InvalidApiKeyName;

/// Why a caller was not let in. The messages are one for every way in which a credential does not stand, so that
/// nobody learns whether a key exists.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticateError {
    /// No `Authorization` header.
    #[error("Missing Authentication header")]
    Missing,
    /// Malformed, unknown, disabled, expired or deleted.
    #[error("Invalid API key")]
    Invalid,
    /// The key stands; its workspace is suspended.
    #[error("This workspace is suspended")]
    WorkspaceSuspended {
        /// The workspace's owner, for the envelope.
        owner_id: Option<String>,
    },
    /// Keys cannot be looked up now, so nobody is let in and nobody is called unauthorised.
    #[error("the key store failed")]
    Store(#[from] StoreError),
}

impl AuthenticateError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing | Self::Invalid => ErrorKind::Unauthenticated,
            Self::WorkspaceSuspended { .. } => ErrorKind::Forbidden,
            // Whatever is wrong with the store, it says nothing about the caller, who may ask again.
            Self::Store(_) => ErrorKind::Unavailable,
        }
    }
}

/// The key stands and is of the other kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongKeyKind {
    /// An inference key on a management operation.
    #[error("Only management keys can perform this operation")]
    ManagementNeeded,
    /// A management key on an inference operation.
    #[error("Management keys cannot perform this operation")]
    InferenceNeeded,
}

impl WrongKeyKind {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Forbidden
    }
}

/// Limits that a key cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeyLimit {
    /// A limit of nothing or less.
    #[error("a limit is more than 0 USD")]
    NotPositive,
    /// No request, or no token, a minute.
    #[error("a rate is at least 1 a minute")]
    NoRate,
    /// A management key spends nothing and runs nothing.
    #[error("a management key runs nothing, so it has no limit and no rate of its own")]
    OfManagementKey,
}

/// Why a key was not made.
#[derive(Debug, thiserror::Error)]
pub enum CreateApiKeyError {
    /// The name breaks the rules.
    #[error(transparent)]
    InvalidName(#[from] InvalidApiKeyName),
    /// Limits that it cannot have.
    #[error(transparent)]
    InvalidLimit(#[from] InvalidKeyLimit),
    /// An expiry in the past.
    #[error("the expiry lies in the past")]
    ExpiryInThePast,
    /// An inference key for a workspace that does not exist.
    #[error("there is no such workspace")]
    UnknownWorkspace,
    /// The store or the random source failed.
    #[error("the key could not be stored")]
    Store(#[from] StoreError),
}

impl CreateApiKeyError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidName(_) | Self::InvalidLimit(_) | Self::ExpiryInThePast => ErrorKind::InvalidRequest,
            Self::UnknownWorkspace => ErrorKind::NotFound,
            Self::Store(error) => error.kind(),
        }
    }
}

/// Why a key was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeApiKeyError {
    /// There is no such live key.
    #[error("there is no key {0}")]
    UnknownKey(KeyReference),
    /// The name breaks the rules.
    #[error(transparent)]
    InvalidName(#[from] InvalidApiKeyName),
    /// Limits that it cannot have.
    #[error(transparent)]
    InvalidLimit(#[from] InvalidKeyLimit),
    /// A period for a limit that is not there.
    #[error("a reset belongs to a limit, and the key has none")]
    ResetWithoutLimit,
    /// An expiry in the past.
    #[error("the expiry lies in the past")]
    ExpiryInThePast,
    /// Others changed it each time before this change was written.
    #[error("the key was changed by others at the same time; try again")]
    Contended,
    /// The store failed.
    #[error("the key store failed")]
    Store(#[from] StoreError),
}

impl ChangeApiKeyError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownKey(_) => ErrorKind::NotFound,
            Self::InvalidName(_) | Self::InvalidLimit(_) | Self::ResetWithoutLimit | Self::ExpiryInThePast => {
                ErrorKind::InvalidRequest
            }
            Self::Contended => ErrorKind::Conflict,
            Self::Store(error) => error.kind(),
        }
    }
}
