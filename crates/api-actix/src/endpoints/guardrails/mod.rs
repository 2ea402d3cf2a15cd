//! `…/guardrails`: the rules for keys and workspaces. Management keys only.

pub(crate) mod assigned_keys;
pub(crate) mod change;
pub(crate) mod explain;
pub(crate) mod read;
mod record;

use domain::decision::{ExplainGuardrailError, FilteringError};
use domain::guardrail::{GuardrailDraft, GuardrailError, InvalidGuardrail};
use wires::client::{ErrorLocation, read_object};

use crate::endpoints::prelude::*;

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

api_error!(GuardrailError {
    pass: Restricted, Invalid, Name, PreconditionFailed, Store;
    kind: UnknownVersion, Conflict;
    said: WorkspaceRequired;
    with |plain| GuardrailError::UnknownWorkspace => plain.message("workspace_id: workspace not found");
});

api_error!(ExplainGuardrailError {
    pass: Restricted, Name, Store;
    said: UnknownKey;
    with |plain|
        ExplainGuardrailError::UnusableModel(decision) => plain.message(decision.to_string()),
        ExplainGuardrailError::Filtering(FilteringError::TaskFailed(lost)) => Self::from_task_error(lost),
        error @ (ExplainGuardrailError::Filters(_) | ExplainGuardrailError::Filtering(_)) => plain.caused_by(error),
        ref error @ ExplainGuardrailError::UnknownModel { ref nearest } => {
            plain.message(error.to_string()).metadata("nearest", nearest.as_slice())
        };
});
