//! Handlers that list, read and restore the versions of a guardrail.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use domain::api_key::ManagementKey;

use super::page::PageRange;
use super::record::{GuardrailVersionView, GuardrailView};
use super::{Page, data, id};
use crate::http::edge::Call;
use crate::http::error::ApiError;

pub(super) async fn list(call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    let range = PageRange::parse(call.request.query_string())?;
    let versions = call.gateway.services.routed.current().guardrails.list_versions.execute(&id(call)?).await?;
    let total_count = versions.len() as u64;
    let data = versions.iter().skip(range.offset).take(range.limit).map(GuardrailVersionView::new).collect();
    Ok(HttpResponse::Ok().json(Page { data, total_count }))
}

pub(super) async fn get(call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    let found =
        call.gateway.services.routed.current().guardrails.get_version.execute(&id(call)?, number(call)?).await?;
    Ok(data(StatusCode::OK, GuardrailVersionView::new(&found)))
}

pub(super) async fn restore(call: &Call<'_>, authority: &ManagementKey) -> Result<HttpResponse, ApiError> {
    let (actor, number) = (call.actor(authority), number(call)?);
    let restored =
        call.gateway.services.routed.current().guardrails.restore_version.execute(&actor, &id(call)?, number).await?;
    Ok(data(StatusCode::OK, GuardrailView::new(&restored)))
}

/// Parses the version number in the path; only digits are accepted.
fn number(call: &Call<'_>) -> Result<u32, ApiError> {
    let digits = call.parameters[1];
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number).ok_or_else(ApiError::not_found)
}
