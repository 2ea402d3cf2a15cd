//! Error mapping of the guardrail endpoints.

use domain::decision::ExplainGuardrailError;
use domain::decision::FilteringError;
use domain::guardrail::{GuardrailError, InvalidGuardrail};

use crate::http::error::ApiError;
use wires::client::ErrorLocation;

impl From<InvalidGuardrail> for ApiError {
    fn from(invalid: InvalidGuardrail) -> Self {
        // An error of the record as a whole has no path.
        let message = if invalid.path.is_empty() { invalid.fault.clone() } else { invalid.to_string() };
        let error = Self::invalid(message).location(ErrorLocation::Member(invalid.path));
        if invalid.nearest.is_empty() { error } else { error.metadata("nearest", invalid.nearest) }
    }
}

impl From<GuardrailError> for ApiError {
    fn from(error: GuardrailError) -> Self {
        match error {
            GuardrailError::Invalid(invalid) => invalid.into(),
            GuardrailError::UnknownGuardrail | GuardrailError::UnknownVersion | GuardrailError::Conflict => {
                Self::from_kind(error.kind())
            }
            GuardrailError::UnknownWorkspace => {
                Self::from_kind(error.kind()).message("workspace_id: workspace not found")
            }
            GuardrailError::Store(store) => Self::store(store),
        }
    }
}

impl From<ExplainGuardrailError> for ApiError {
    fn from(error: ExplainGuardrailError) -> Self {
        let plain = Self::from_kind(error.kind());
        match error {
            ExplainGuardrailError::UnknownGuardrail => plain,
            ExplainGuardrailError::UnknownKey => plain.message(error.to_string()),
            ExplainGuardrailError::UnknownModel { ref nearest } => {
                plain.message(error.to_string()).metadata("nearest", nearest.as_slice())
            }
            ExplainGuardrailError::UnusableModel(decision) => plain.message(decision.to_string()),
            ExplainGuardrailError::Filtering(FilteringError::TaskFailed(lost)) => Self::from_task_error(lost),
            ExplainGuardrailError::Filters(_) | ExplainGuardrailError::Filtering(_) => plain.caused_by(error),
            ExplainGuardrailError::Store(store) => Self::store(store),
        }
    }
}
