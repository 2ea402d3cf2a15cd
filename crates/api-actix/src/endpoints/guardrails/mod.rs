//! `…/guardrails`: the rules for keys and workspaces. Management keys only.

pub(crate) mod assigned_keys;
pub(crate) mod change;
pub(crate) mod explain;
pub(crate) mod read;
mod record;

use domain::decision::{ExplainGuardrailError, FilteringError};
use domain::guardrail::{GuardrailDraft, GuardrailError, InvalidGuardrail};
use wires::client::{ErrorLocation, read_object};

use crate::http::body::JsonBody;
use crate::http::call::Call;
use crate::http::error::ApiError;

/// Parses the guardrail, or the change to one, from the body.
fn draft(body: &JsonBody) -> Result<GuardrailDraft, ApiError> {
    let record = read_object(body.text()?)?;
    Ok(GuardrailDraft::read(&record)?)
}

/// Parses the version number in the path; only digits are accepted.
pub(super) fn version_number(call: &Call<'_>) -> Result<u32, ApiError> {
    let digits = call.parameters[1];
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number).ok_or_else(ApiError::not_found)
}

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
            GuardrailError::Restricted(restricted) => restricted.into(),
            GuardrailError::Invalid(invalid) => invalid.into(),
            GuardrailError::Name(name) => name.into(),
            GuardrailError::UnknownVersion | GuardrailError::Conflict => Self::from_kind(error.kind()),
            GuardrailError::UnknownWorkspace => {
                Self::from_kind(error.kind()).message("workspace_id: workspace not found")
            }
            GuardrailError::PreconditionFailed(failed) => failed.into(),
            GuardrailError::WorkspaceRequired => Self::from_kind(error.kind()).message(error.to_string()),
            GuardrailError::Store(store) => Self::store(store),
        }
    }
}

impl From<ExplainGuardrailError> for ApiError {
    fn from(error: ExplainGuardrailError) -> Self {
        let plain = Self::from_kind(error.kind());
        match error {
            ExplainGuardrailError::Restricted(restricted) => restricted.into(),
            ExplainGuardrailError::Name(name) => name.into(),
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
