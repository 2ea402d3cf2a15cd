//! Creates and changes workspaces.

use super::record::{CreateWorkspaceRequest, UpdateWorkspaceRequest};
use super::{fields, name, record};
use crate::endpoints::prelude::*;

/// `POST …/workspaces`: creates a workspace.
pub(crate) const CREATE: Route =
    Route::management(Post, "/workspaces", tags::WORKSPACES, handler!(handle_create, payload))
        .operation("createWorkspace", "Create a workspace")
        .description(
            "The new workspace has no budgets and no credit limit. A slug that is made of the name gets a number if \
             another workspace has it. Needs an unrestricted key.",
        )
        .query(&[Query::unique_name("True rejects a name that another workspace has.")])
        .body(BodySchema::of::<CreateWorkspaceRequest>)
        .headers(&[IDEMPOTENCY_KEY])
        .created(record::response, "The workspace");

async fn handle_create(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    by.check(Right::Unrestricted)?;
    let is_unique = parameters::unique_name(call.request.query_string())?;
    let body = call.read_json(payload).await?;
    let settings = fields::read_new(body.text()?)?;
    let (workspaces, names) = (&call.gateway.services.workspaces, call.wire_names());
    let create = async |change: &Change<'_, _>| workspaces.create.execute(change, &settings, is_unique).await;
    call.post(by, body.text()?, create, |made| record::respond(StatusCode::CREATED, made, names)).await
}

/// `PATCH …/workspaces/{id}`: changes a workspace.
pub(crate) const UPDATE: Route =
    Route::management(Patch, "/workspaces/{id}", tags::WORKSPACES, handler!(handle_update, payload))
        .operation("updateWorkspace", "Update a workspace")
        .description(
            "Changes the given members; null clears a member. A change is effective on every replica within a second. \
             Needs an unrestricted key.",
        )
        .body(BodySchema::of::<UpdateWorkspaceRequest>)
        .headers(&[IF_MATCH])
        .answer(record::response, "The updated workspace");

async fn handle_update(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    by.check(Right::Unrestricted)?;
    let edit = fields::read_change(call.read_json(payload).await?.text()?)?;
    let manage = &call.gateway.services.workspaces.manage;
    let changed = manage.update(&call.change(by)?, &name(call)?, &edit).await?;
    Ok(record::respond(StatusCode::OK, &changed, call.wire_names()).respond())
}
