//! Creates, changes and deletes destinations.

use super::record::{DestinationChange, DestinationRequest};
use super::{fields, record, stored_response};
use crate::endpoints::prelude::*;

/// `POST …/observability/destinations`: creates a destination.
pub(crate) const CREATE: Route =
    Route::management(Post, "/observability/destinations", tags::DESTINATIONS, handler!(handle_create, payload))
        .operation("createDestination", "Create a trace destination")
        .description(
            "The destination first receives a test request (header `x-test-connection: true`) and must answer with \
             2xx or 400. A workspace has at most five destinations of each type.",
        )
        .body(BodySchema::of::<DestinationRequest>)
        .headers(&[IDEMPOTENCY_KEY])
        .created(record::response, "The destination")
        .also(&[404]);

async fn handle_create(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    by.check(Right::Write)?;
    let body = call.read_json(payload).await?;
    let (fields, workspace) = fields::read(body.text()?)?;
    let workspace = workspace.as_deref().map(parameters::workspace_id).transpose()?;
    let destinations = &call.gateway.services.destinations;
    let hashes = destinations.named_key_hashes(&fields).await?;
    let create = async |change: &Change<'_, _>| destinations.create(change, workspace, &fields).await;
    call.post(by, body.text()?, create, |made| record::respond(StatusCode::CREATED, made, &hashes)).await
}

/// `PATCH …/observability/destinations/{id}`: changes a destination.
pub(crate) const UPDATE: Route =
    Route::management(Patch, "/observability/destinations/{id}", tags::DESTINATIONS, handler!(handle_update, payload))
        .operation("updateDestination", "Update a trace destination")
        .description(
            "Changes the given members; `config` as a whole, except that an absent `secret` and masked values stay. A \
             change of URL, headers or secret is tested with a request first. A URL with another scheme, host or port \
             requires all secrets again: header values, secret, query.",
        )
        .body(BodySchema::of::<DestinationChange>)
        .headers(&[IF_MATCH])
        .answer(record::response, "The updated destination");

async fn handle_update(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    by.check(Right::Write)?;
    let (mut fields, workspace) = fields::read(call.read_json(payload).await?.text()?)?;
    fields.workspace_id = workspace.as_deref().map(parameters::workspace_id).transpose()?;
    let changed = call.gateway.services.destinations.update(&call.change(by)?, &call.id()?, &fields).await?;
    Ok(stored_response(call, &changed).await.respond())
}

/// `DELETE …/observability/destinations/{id}`: deletes a destination.
pub(crate) const DELETE: Route =
    Route::management(Delete, "/observability/destinations/{id}", tags::DESTINATIONS, handler!(handle_delete))
        .operation("deleteDestination", "Delete a trace destination")
        .description("Pending deliveries are dropped.")
        .headers(&[IF_MATCH])
        .answer(|| BodySchema::named::<Deleted>("DestinationDeletedResponse", "Confirms the deletion."), "Deleted");

async fn handle_delete(call: &Call<'_>, by: &Authority) -> Outcome {
    call.gateway.services.destinations.delete(&call.change(by)?, &call.id()?).await?;
    Ok(Deleted::respond())
}
