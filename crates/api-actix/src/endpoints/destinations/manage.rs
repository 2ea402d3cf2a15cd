//! Handlers that create, read, change and delete destinations.

use std::borrow::Cow;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Payload;
use domain::api_key::ManagementKey;
use domain::ids::WorkspaceId;
use domain::observability::{Destination, DestinationFields};
use serde::Serialize;

use super::fields;
use super::record::DestinationView;
use crate::http::edge::Call;
use crate::http::error::ApiError;
use crate::http::{query, segment};

#[derive(Serialize)]
struct Data<T> {
    data: T,
}

#[derive(Serialize)]
struct Listed {
    data: Vec<DestinationView>,
    total_count: usize,
}

#[derive(Serialize)]
struct DeletedView {
    deleted: bool,
}

pub(super) async fn list(call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    let workspace_id = query::value(call.request.query_string(), "workspace_id")?;
    let workspace_id = workspace_id.as_deref().map(self::workspace_id).transpose()?;
    let found = call.gateway.services.destinations.list.execute(workspace_id).await?;
    let hashes = call.gateway.services.destinations.keys.execute(&found).await?;
    let data: Vec<DestinationView> = found.iter().map(|one| DestinationView::new(one, &hashes)).collect();
    Ok(HttpResponse::Ok().json(Listed { total_count: data.len(), data }))
}

pub(super) async fn create(
    call: &Call<'_>,
    authority: &ManagementKey,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    let (fields, workspace) = body(call, payload).await?;
    let workspace = workspace.as_deref().map(workspace_id).transpose()?;
    let made = call.gateway.services.destinations.create.execute(&call.actor(authority), workspace, &fields).await?;
    Ok(HttpResponse::build(StatusCode::CREATED).json(Data { data: stored_view(call, &made).await }))
}

pub(super) async fn get(call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    let found = call.gateway.services.destinations.get.execute(&id(call)?).await?;
    let hashes = call.gateway.services.destinations.keys.execute(std::slice::from_ref(&found)).await?;
    Ok(HttpResponse::Ok().json(Data { data: DestinationView::new(&found, &hashes) }))
}

pub(super) async fn update(
    call: &Call<'_>,
    authority: &ManagementKey,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    let (fields, _) = body(call, payload).await?;
    let actor = call.actor(authority);
    let changed = call.gateway.services.destinations.update.execute(&actor, &id(call)?, &fields).await?;
    Ok(HttpResponse::Ok().json(Data { data: stored_view(call, &changed).await }))
}

pub(super) async fn delete(call: &Call<'_>, authority: &ManagementKey) -> Result<HttpResponse, ApiError> {
    call.gateway.services.destinations.delete.execute(&call.actor(authority), &id(call)?).await?;
    Ok(HttpResponse::Ok().json(DeletedView { deleted: true }))
}

/// Returns the view of a stored destination, with key ids if the hashes cannot be read: the write has succeeded.
async fn stored_view(call: &Call<'_>, destination: &Destination) -> DestinationView {
    let hashes = call.gateway.services.destinations.keys.execute(std::slice::from_ref(destination)).await;
    DestinationView::new(destination, &hashes.unwrap_or_default())
}

/// Returns the destination id in the path. A segment that is not valid UTF-8 names no destination.
fn id<'a>(call: &Call<'a>) -> Result<Cow<'a, str>, ApiError> {
    segment::decode(call.parameters[0]).ok_or_else(ApiError::not_found)
}

fn workspace_id(text: &str) -> Result<WorkspaceId, ApiError> {
    text.parse().map_err(|_| ApiError::invalid("workspace_id must be a UUID"))
}

async fn body(call: &Call<'_>, payload: Payload) -> Result<(DestinationFields, Option<String>), ApiError> {
    let body = call.read_json(payload).await?;
    fields::read(body.text()?)
}
