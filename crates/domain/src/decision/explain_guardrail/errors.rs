//! Errors of explaining a guardrail.

use crate::decision::{FilteringError, SubmitDecisionError};
use crate::error::{ErrorKind, StoreError};
use crate::guardrail::filter::InvalidFilters;
use crate::model::or_nearest;

/// The error of explaining a guardrail.
#[derive(Debug, thiserror::Error)]
pub enum ExplainGuardrailError {
    /// No guardrail has this id, or the id is malformed.
    #[error("guardrail not found")]
    UnknownGuardrail,
    /// No active inference key has this hash.
    #[error("key_hash is not an active inference key")]
    UnknownKey,
    /// No model has this name. A Decisions request would fail as well.
    #[error("Model not found{}", or_nearest(.nearest))]
    UnknownModel {
        /// Up to three ids of callable models with a similar spelling.
        nearest: Vec<String>,
    },
    /// The model does not answer Decisions requests, for the reason in the inner error.
    #[error(transparent)]
    UnusableModel(Box<SubmitDecisionError>),
    /// The stored filters of the guardrail no longer compile.
    #[error("the guardrail's filters cannot be used: {0}")]
    Filters(#[from] InvalidFilters),
    /// The filters did not finish.
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
    /// Returns its kind.
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
