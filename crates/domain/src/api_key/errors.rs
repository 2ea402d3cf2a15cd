//! Errors of keys.

use crate::authority::Restricted;
use crate::change::PreconditionFailed;
use crate::error::{ErrorKind, StoreError};
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::naming::NameError;

/// The name is empty, too long or has control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key name has 1 to 200 characters, not all of them blank, and no control characters")]
pub struct InvalidApiKeyName;

/// The label is empty, too long or has control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a label of a user has 1 to 512 characters and no control characters")]
pub struct InvalidUserLabel;

/// An authentication error. All invalid credentials get the same message, which does not reveal whether a key exists.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticateError {
    /// The `Authorization` header is missing.
    #[error("Missing Authentication header")]
    Missing,
    /// The key is malformed, unknown, disabled, expired or deleted.
    #[error("Invalid API key")]
    Invalid,
    /// The key is valid; its workspace is suspended.
    #[error("This workspace is suspended")]
    WorkspaceSuspended {
        /// The key of the caller.
        api_key: ApiKeyId,
        /// The suspended workspace.
        workspace_id: WorkspaceId,
        /// The workspace's owner, for the envelope.
        owner_id: Option<String>,
    },
    /// The key store failed, so the caller is neither accepted nor called unauthorised.
    #[error("the key store failed")]
    Store(#[from] StoreError),
}

impl AuthenticateError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing | Self::Invalid => ErrorKind::Unauthenticated,
            Self::WorkspaceSuspended { .. } => ErrorKind::Forbidden,
            // A failed store says nothing about the caller, who may retry.
            Self::Store(_) => ErrorKind::Unavailable,
        }
    }
}

/// A valid key of the wrong kind.
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
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Forbidden
    }
}

/// Invalid limits of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeyLimit {
    /// The limit is not above zero.
    #[error("a limit must be more than 0 USD")]
    NotPositive,
    /// The rate is below one per minute.
    #[error("a rate must be at least 1 per minute")]
    NoRate,
    /// A management key calls no models, so it has no limits.
    #[error("a management key cannot call models, so it has no limit and no rate")]
    OfManagementKey,
}

/// An error of creating a key.
#[derive(Debug, thiserror::Error)]
pub enum CreateApiKeyError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// The name is invalid.
    #[error(transparent)]
    InvalidName(#[from] InvalidApiKeyName),
    /// The limits are invalid.
    #[error(transparent)]
    InvalidLimit(#[from] InvalidKeyLimit),
    /// The expiry is in the past.
    #[error("the expiry is in the past")]
    ExpiryInThePast,
    /// A label is invalid.
    #[error(transparent)]
    InvalidLabel(#[from] InvalidUserLabel),
    /// The workspace of the inference key, or one of the management scope, does not exist.
    #[error("workspace not found")]
    UnknownWorkspace,
    /// The guardrail does not exist in the workspace of the key.
    #[error("guardrail not found in the workspace of the key")]
    UnknownGuardrail,
    /// Another key has the name.
    #[error(
        "a key named {0:?} exists already: choose another name, or allow a second one (--allow-duplicate, without unique_name=true)"
    )]
    NameTaken(String),
    /// The store or the random source failed.
    #[error("the key could not be stored")]
    Store(#[from] StoreError),
}

impl CreateApiKeyError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Restricted(error) => error.kind(),
            Self::InvalidName(_)
            | Self::InvalidLimit(_)
            | Self::InvalidLabel(_)
            | Self::ExpiryInThePast
            | Self::UnknownGuardrail => ErrorKind::InvalidRequest,
            Self::UnknownWorkspace => ErrorKind::NotFound,
            Self::NameTaken(_) => ErrorKind::Conflict,
            Self::Store(error) => error.kind(),
        }
    }
}

/// The change would leave no unrestricted key that is enabled and does not expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is the last unrestricted management key that is enabled and unexpired; create one without an expiry first"
)]
pub struct LastUnrestrictedKey;

/// An error of a change of a stored key.
#[derive(Debug, thiserror::Error)]
pub enum StoreKeyError {
    /// The change was rejected, see [`super::LastKeyRule`].
    #[error(transparent)]
    LastUnrestrictedKey(#[from] LastUnrestrictedKey),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<StoreKeyError> for ChangeApiKeyError {
    fn from(error: StoreKeyError) -> Self {
        match error {
            StoreKeyError::LastUnrestrictedKey(last) => last.into(),
            StoreKeyError::Store(error) => error.into(),
        }
    }
}

/// An error of changing a key.
#[derive(Debug, thiserror::Error)]
pub enum ChangeApiKeyError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// No key or several keys have the name.
    #[error("key {0}")]
    Name(#[from] NameError),
    /// The key has another version than the caller accepts.
    #[error(transparent)]
    PreconditionFailed(#[from] PreconditionFailed),
    /// The name is invalid.
    #[error(transparent)]
    InvalidName(#[from] InvalidApiKeyName),
    /// The limits are invalid.
    #[error(transparent)]
    InvalidLimit(#[from] InvalidKeyLimit),
    /// A label is invalid.
    #[error(transparent)]
    InvalidLabel(#[from] InvalidUserLabel),
    /// The guardrail does not exist in the workspace of the key.
    #[error("guardrail not found in the workspace of the key")]
    UnknownGuardrail,
    /// A workspace of the new scope does not exist.
    #[error("a workspace of the scope does not exist")]
    UnknownWorkspace,
    /// The caller names another workspace than that of the key.
    #[error(
        "a key does not move to another workspace: its history, documents and limits belong to one; create another key"
    )]
    OtherWorkspace,
    /// The grace period is too long.
    #[error("a grace period has at most {} seconds", super::MAX_GRACE.as_secs())]
    GraceTooLong,
    /// An inference key gets no management scope, and a management key does not lose it.
    #[error("a key does not change its kind: only a management key has a scope; create another key")]
    OtherKind,
    /// The key is the last unrestricted one.
    #[error(transparent)]
    LastUnrestrictedKey(#[from] LastUnrestrictedKey),
    /// A reset interval without a limit.
    #[error("--limit-reset requires a limit; set --limit-usd too")]
    ResetWithoutLimit,
    /// The expiry is in the past.
    #[error("the expiry is in the past")]
    ExpiryInThePast,
    /// Concurrent changes came first, in every attempt.
    #[error("the key was changed concurrently; try again")]
    Contended,
    /// The store failed.
    #[error("the key store failed")]
    Store(#[from] StoreError),
}

impl ChangeApiKeyError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Name(error) => error.kind(),
            Self::PreconditionFailed(error) => error.kind(),
            Self::Restricted(error) => error.kind(),
            Self::InvalidName(_)
            | Self::InvalidLimit(_)
            | Self::InvalidLabel(_)
            | Self::UnknownGuardrail
            | Self::UnknownWorkspace
            | Self::GraceTooLong
            | Self::OtherWorkspace
            | Self::OtherKind
            | Self::ResetWithoutLimit
            | Self::ExpiryInThePast => ErrorKind::InvalidRequest,
            Self::Contended | Self::LastUnrestrictedKey(_) => ErrorKind::Conflict,
            Self::Store(error) => error.kind(),
        }
    }
}
