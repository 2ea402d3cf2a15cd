//! Handlers that create, read, change and delete guardrails.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Payload;
use domain::api_key::ManagementKey;
use domain::ids::WorkspaceId;
use serde::Serialize;

use super::page::PageRange;
use super::record::GuardrailView;
use super::{Page, data, draft, id};
use crate::http::edge::Call;
use crate::http::error::ApiError;
use crate::http::query;

#[derive(Serialize)]
struct DeletedView {
    deleted: bool,
}

pub(super) async fn list(call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    let query = call.request.query_string();
    let range = PageRange::parse(query)?;
    let workspace_id = query::value(query, "workspace_id")?;
    let workspace_id: Option<WorkspaceId> = workspace_id
        .map(|text| text.parse().map_err(|_| ApiError::invalid("workspace_id must be a UUID")))
        .transpose()?;
    let page =
        call.gateway.services.routed.current().guardrails.list.execute(workspace_id, range.offset, range.limit).await?;
    let data = page.guardrails.iter().map(GuardrailView::new).collect();
    Ok(HttpResponse::Ok().json(Page { data, total_count: page.total as u64 }))
}

pub(super) async fn create(
    call: &Call<'_>,
    authority: &ManagementKey,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    let draft = draft(call, payload).await?;
    let made = call.gateway.services.routed.current().guardrails.create.execute(&call.actor(authority), &draft).await?;
    Ok(data(StatusCode::CREATED, GuardrailView::new(&made)))
}

pub(super) async fn get(call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    let found = call.gateway.services.routed.current().guardrails.get.execute(&id(call)?).await?;
    Ok(data(StatusCode::OK, GuardrailView::new(&found)))
}

pub(super) async fn update(
    call: &Call<'_>,
    authority: &ManagementKey,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    let draft = draft(call, payload).await?;
    let actor = call.actor(authority);
    let changed = call.gateway.services.routed.current().guardrails.update.execute(&actor, &id(call)?, &draft).await?;
    Ok(data(StatusCode::OK, GuardrailView::new(&changed)))
}

pub(super) async fn delete(call: &Call<'_>, authority: &ManagementKey) -> Result<HttpResponse, ApiError> {
    call.gateway.services.routed.current().guardrails.delete.execute(&call.actor(authority), &id(call)?).await?;
    Ok(HttpResponse::Ok().json(DeletedView { deleted: true }))
}
