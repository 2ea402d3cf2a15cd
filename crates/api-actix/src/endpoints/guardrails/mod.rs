//! `…/guardrails`: the rules for keys and workspaces. Management keys only.

mod assignments;
mod errors;
mod explain;
mod manage;
mod page;
mod record;
mod use_cases;
mod versions;

pub use record::{GuardrailVersionView, GuardrailView};
pub use use_cases::GuardrailUseCases;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Payload;
use domain::api_key::Principal;
use domain::guardrail::GuardrailDraft;
use serde::Serialize;

use crate::http::edge::Call;
use crate::http::error::ApiError;
use crate::http::json_members::read_object;
use crate::http::segment;

/// The operations on guardrails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuardrailOperation {
    List,
    Create,
    Get,
    Update,
    Delete,
    ListVersions,
    GetVersion,
    RestoreVersion,
    Explain,
    ListAssignedKeys,
    RemoveKeys,
}

impl GuardrailOperation {
    /// Returns true if the operation reads a body.
    pub(crate) fn reads_body(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Explain | Self::RemoveKeys)
    }
}

pub(crate) async fn handle(
    operation: GuardrailOperation,
    call: &Call<'_>,
    caller: &Principal,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    let authority = caller.management()?;
    match operation {
        GuardrailOperation::List => manage::list(call).await,
        GuardrailOperation::Create => manage::create(call, authority, payload).await,
        GuardrailOperation::Get => manage::get(call).await,
        GuardrailOperation::Update => manage::update(call, authority, payload).await,
        GuardrailOperation::Delete => manage::delete(call, authority).await,
        GuardrailOperation::ListVersions => versions::list(call).await,
        GuardrailOperation::GetVersion => versions::get(call).await,
        GuardrailOperation::RestoreVersion => versions::restore(call, authority).await,
        GuardrailOperation::Explain => explain::explain(call, authority, payload).await,
        GuardrailOperation::ListAssignedKeys => assignments::list(call).await,
        GuardrailOperation::RemoveKeys => assignments::remove(call, authority, payload).await,
    }
}

/// `{"data":…}`
#[derive(Serialize)]
struct Data<T> {
    data: T,
}

/// `{"data":[…],"total_count":…}`
#[derive(Serialize)]
struct Page<T> {
    data: Vec<T>,
    total_count: u64,
}

fn data<T: Serialize>(status: StatusCode, data: T) -> HttpResponse {
    HttpResponse::build(status).json(Data { data })
}

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
