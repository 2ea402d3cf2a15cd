//! Creates, changes and deletes guardrails, and restores their versions.

use super::record::{GuardrailChange, GuardrailRequest};
use super::{draft, record, version_number};
use crate::endpoints::prelude::*;
use crate::http::operation::{idempotency_key, if_match};

/// `POST …/guardrails`: creates a guardrail.
pub(crate) const CREATE: Route = Route::management(
    Method::Post,
    "/guardrails",
    |call, key, payload| Box::pin(handle_create(call, key, payload)),
    tags::GUARDRAILS,
    describe_create,
)
.with_body();

fn describe_create() -> Operation {
    let description = "The new guardrail has no keys. `workspace_default` applies it to the whole workspace at once. \
                       Any resolvable model name is accepted and stored as a canonical slug.";
    Operation::management("createGuardrail", "Create a guardrail", description)
        .body(BodySchema::of::<GuardrailRequest>(), None)
        .parameter(idempotency_key())
        .created(record::response(), "The guardrail", &[400, 404, 409, 415])
}

async fn handle_create(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let body = call.read_json(payload).await?;
    let draft = draft(&body)?;
    let services = call.routed();
    let create = async |change: &Change<'_, _>| services.guardrails.create(change, &draft).await;
    call.post(by, body.text()?, create, |made| record::respond(StatusCode::CREATED, made)).await
}

/// `PATCH …/guardrails/{id}`: changes a guardrail.
pub(crate) const UPDATE: Route = Route::management(
    Method::Patch,
    "/guardrails/{id}",
    |call, key, payload| Box::pin(handle_update(call, key, payload)),
    tags::GUARDRAILS,
    describe_update,
)
.with_body();

fn describe_update() -> Operation {
    let description = "Changes the given members: null removes a rule, a list is replaced as a whole. A change \
                       creates a new version, which is effective on every replica within a second.";
    Operation::management("updateGuardrail", "Update a guardrail", description)
        .body(BodySchema::of::<GuardrailChange>(), None)
        .parameter(if_match())
        .answer(record::response(), "The updated guardrail", &[400, 404, 409, 412, 415])
        .parameter(path("id", "The guardrail's id, or its unique name."))
}

async fn handle_update(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let draft = draft(&call.read_json(payload).await?)?;
    let changed = call.routed().guardrails.update(&call.change(by)?, &call.id()?, &draft).await?;
    Ok(record::respond(StatusCode::OK, &changed).respond())
}

/// `DELETE …/guardrails/{id}`: deletes a guardrail.
pub(crate) const DELETE: Route = Route::management(
    Method::Delete,
    "/guardrails/{id}",
    |call, key, _| Box::pin(handle_delete(call, key)),
    tags::GUARDRAILS,
    describe_delete,
);

fn describe_delete() -> Operation {
    let body = BodySchema::named::<Deleted>("GuardrailDeletedResponse", "Confirms the deletion of a guardrail.");
    let description = "Removes the guardrail from its keys and from the workspace.";
    Operation::management("deleteGuardrail", "Delete a guardrail", description)
        .parameter(if_match())
        .answer(body, "Deleted", &[400, 404, 409, 412])
        .parameter(path("id", "The guardrail's id, or its unique name."))
}

async fn handle_delete(call: &Call<'_>, by: &Authority) -> Outcome {
    call.routed().guardrails.delete(&call.change(by)?, &call.id()?).await?;
    Ok(Deleted::respond())
}

/// `POST …/guardrails/{id}/versions/{version}/restore`: restores a version of a guardrail.
pub(crate) const RESTORE_VERSION: Route = Route::management(
    Method::Post,
    "/guardrails/{id}/versions/{version}/restore",
    |call, key, _| Box::pin(handle_restore_version(call, key)),
    tags::GUARDRAILS,
    describe_restore_version,
);

fn describe_restore_version() -> Operation {
    let description = "Creates a new version with the name, the budget and the rules of an earlier version.";
    Operation::management("restoreGuardrailVersion", "Restore a version of a guardrail", description)
        .parameter(path("version", "The version's number"))
        .parameter(if_match())
        .parameter(idempotency_key())
        .answer(record::response(), "The updated guardrail", &[400, 404, 409, 412])
        .parameter(path("id", "The guardrail's id, or its unique name."))
}

async fn handle_restore_version(call: &Call<'_>, by: &Authority) -> Outcome {
    let number = version_number(call)?;
    let (services, id) = (call.routed(), call.id()?);
    let restore = async |change: &Change<'_, _>| services.guardrails.restore_version(change, &id, number).await;
    call.post(by, "", restore, |restored| record::respond(StatusCode::OK, restored)).await
}
