//! Handlers that list and remove the key assignments of a guardrail.

use std::borrow::Cow;

use actix_web::HttpResponse;
use actix_web::web::Payload;
use domain::api_key::ManagementKey;
use domain::guardrail::KeyAssignment;
use serde::Serialize;

use super::page::PageRange;
use super::record::time;
use super::{Page, id};
use crate::endpoints::assign_keys_to_guardrail::key_hashes;
use crate::http::edge::Call;
use crate::http::error::ApiError;

#[derive(Serialize)]
struct AssignmentView<'a> {
    id: String,
    guardrail_id: String,
    key_hash: String,
    key_name: &'a str,
    key_label: &'a str,
    assigned_by: Option<&'a str>,
    created_at: String,
}

#[derive(Serialize)]
struct UnassignedView {
    unassigned_count: u64,
}

impl<'a> AssignmentView<'a> {
    fn new(assignment: &'a KeyAssignment) -> Self {
        Self {
            id: assignment.id().to_string(),
            guardrail_id: assignment.guardrail_id.to_string(),
            key_hash: assignment.key_hash.to_string(),
            key_name: assignment.key_name.as_str(),
            key_label: &assignment.key_label,
            assigned_by: assignment.assigned_by.as_deref(),
            created_at: time(assignment.assigned_at),
        }
    }
}

pub(super) async fn list(call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    let range = PageRange::parse(call.request.query_string())?;
    let (offset, limit) = (range.offset as u64, range.limit as u64);
    let page =
        call.gateway.services.routed.current().guardrails.list_assigned_keys.execute(&id(call)?, offset, limit).await?;
    let data = page.assignments.iter().map(AssignmentView::new).collect();
    Ok(HttpResponse::Ok().json(Page { data, total_count: page.total }))
}

pub(super) async fn remove(
    call: &Call<'_>,
    authority: &ManagementKey,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    let body = call.read_json(payload).await?;
    let hashes = key_hashes(body.text()?)?;
    let (actor, id) = (call.actor(authority), id(call)?);
    let routed = call.gateway.services.routed.current();
    let remove = &routed.guardrails.remove_keys;
    let unassigned_count = remove.execute(authority, &actor, &id, hashes.iter().map(Cow::as_ref)).await?;
    Ok(HttpResponse::Ok().json(UnassignedView { unassigned_count }))
}
