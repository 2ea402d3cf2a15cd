//! `…/guardrails`: the rules for keys and workspaces. Management keys only.

pub(crate) mod create;
pub(crate) mod delete;
mod errors;
pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod get_version;
pub(crate) mod list;
pub(crate) mod list_assigned_keys;
pub(crate) mod list_versions;
mod page;
mod record;
pub(crate) mod remove_keys;
mod request;
pub(crate) mod restore_version;
pub(crate) mod update;

pub use explain::{ExplanationView, read_decision_request};
pub use record::{GuardrailVersionView, GuardrailView};

use actix_web::web::Payload;
use domain::guardrail::GuardrailDraft;

use crate::http::call::Call;
use crate::http::error::ApiError;
use crate::http::segment;
use wires::client::read_object;

/// Returns the guardrail id in the path. A segment that is not valid UTF-8 names no guardrail.
fn id<'a>(call: &Call<'a>) -> Result<std::borrow::Cow<'a, str>, ApiError> {
    segment::decode(call.parameters[0]).ok_or_else(ApiError::not_found)
}

/// Reads the guardrail, or the change to one, from the body.
async fn draft(call: &Call<'_>, payload: Payload) -> Result<GuardrailDraft, ApiError> {
    let body = call.read_json(payload).await?;
    let record = read_object(body.text()?)?;
    Ok(GuardrailDraft::read(&record)?)
}

/// Parses the version number in the path; only digits are accepted.
fn version_number(call: &Call<'_>) -> Result<u32, ApiError> {
    let digits = call.parameters[1];
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number).ok_or_else(ApiError::not_found)
}
