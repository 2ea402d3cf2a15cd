//! Errors of the explanation.

use crate::decision::{FilteringError, SubmitDecisionError};
use crate::error::{ErrorKind, StoreError};
use crate::guardrail::filter::InvalidFilters;

/// Why nothing was explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainGuardrailError {
    /// There is no such guardrail (an id that is not even well formed included).
    #[error("there is no such guardrail")]
    UnknownGuardrail,
    /// No live inference key has that hash.
    #[error("key_hash names no live inference key")]
    UnknownKey,
    /// A model that nobody has; Decisions would be refused as well.
    #[error("there is no such model")]
    UnknownModel {
        /// Up to three ids of decision models that are spelled alike.
        nearest: Vec<String>,
    },
    /// A model that answers no Decisions requests; which one, and why not, it says itself.
    #[error(transparent)]
    UnusableModel(Box<SubmitDecisionError>),
    /// Filters that were accepted once cannot be used any more.
    #[error("the guardrail's filters cannot be used: {0}")]
    Filters(#[from] InvalidFilters),
    /// Filters did not get to the end of the request.
    #[error(transparent)]
    Filtering(#[from] FilteringError),
    /// The store failed.
    #[error("a store failed")]
    Store(#[from] StoreError),
}

impl From<SubmitDecisionError> for ExplainGuardrailError {
    fn from(error: SubmitDecisionError) -> Self {
        match error {
            SubmitDecisionError::UnknownModel { nearest } => Self::UnknownModel { nearest },
            SubmitDecisionError::Store(error) => Self::Store(error),
            other => Self::UnusableModel(Box::new(other)),
        }
    }
}

impl ExplainGuardrailError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownKey => ErrorKind::InvalidRequest,
            Self::UnusableModel(error) => error.kind(),
            Self::Filtering(why) => why.kind(),
            Self::UnknownGuardrail | Self::UnknownModel { .. } => ErrorKind::NotFound,
            Self::Filters(_) => ErrorKind::Internal,
            Self::Store(error) => error.kind(),
        }
    }
}
