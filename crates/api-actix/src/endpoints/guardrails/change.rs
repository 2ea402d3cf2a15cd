//! Creates, changes and deletes guardrails, and restores their versions.

use super::record::{GuardrailChange, GuardrailRequest};
use super::{draft, record, version_number};
use crate::endpoints::prelude::*;

/// `POST …/guardrails`: creates a guardrail.
pub(crate) const CREATE: Route =
    Route::management(Post, "/guardrails", tags::GUARDRAILS, handler!(handle_create, payload))
        .operation("createGuardrail", "Create a guardrail")
        .description(
            "The new guardrail has no keys. `workspace_default` applies it to the whole workspace at once. Any \
             resolvable model name is accepted and stored as a canonical slug.",
        )
        .body(BodySchema::of::<GuardrailRequest>)
        .headers(&[IDEMPOTENCY_KEY])
        .created(record::response, "The guardrail")
        .also(&[404]);

async fn handle_create(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let body = call.read_json(payload).await?;
    let draft = draft(&body)?;
    let services = call.routed();
    let create = async |change: &Change<'_, _>| services.guardrails.create(change, &draft).await;
    call.post(by, body.text()?, create, |made| record::respond(StatusCode::CREATED, made)).await
}

/// `PATCH …/guardrails/{id}`: changes a guardrail.
pub(crate) const UPDATE: Route =
    Route::management(Patch, "/guardrails/{id}", tags::GUARDRAILS, handler!(handle_update, payload))
        .operation("updateGuardrail", "Update a guardrail")
        .description(
            "Changes the given members: null removes a rule, a list is replaced as a whole. A change creates a new \
             version, which is effective on every replica within a second.",
        )
        .body(BodySchema::of::<GuardrailChange>)
        .headers(&[IF_MATCH])
        .answer(record::response, "The updated guardrail");

async fn handle_update(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let draft = draft(&call.read_json(payload).await?)?;
    let changed = call.routed().guardrails.update(&call.change(by)?, &call.id()?, &draft).await?;
    Ok(record::respond(StatusCode::OK, &changed).respond())
}

/// `DELETE …/guardrails/{id}`: deletes a guardrail.
pub(crate) const DELETE: Route =
    Route::management(Delete, "/guardrails/{id}", tags::GUARDRAILS, handler!(handle_delete))
        .operation("deleteGuardrail", "Delete a guardrail")
        .description("Removes the guardrail from its keys and from the workspace.")
        .headers(&[IF_MATCH])
        .answer(
            || BodySchema::named::<Deleted>("GuardrailDeletedResponse", "Confirms the deletion of a guardrail."),
            "Deleted",
        );

async fn handle_delete(call: &Call<'_>, by: &Authority) -> Outcome {
    call.routed().guardrails.delete(&call.change(by)?, &call.id()?).await?;
    Ok(Deleted::respond())
}

/// `POST …/guardrails/{id}/versions/{version}/restore`: restores a version of a guardrail.
pub(crate) const RESTORE_VERSION: Route = Route::management(
    Post,
    "/guardrails/{id}/versions/{version}/restore",
    tags::GUARDRAILS,
    handler!(handle_restore_version),
)
.operation("restoreGuardrailVersion", "Restore a version of a guardrail")
.description("Creates a new version with the name, the budget and the rules of an earlier version.")
.headers(&[IF_MATCH, IDEMPOTENCY_KEY])
.answer(record::response, "The updated guardrail");

async fn handle_restore_version(call: &Call<'_>, by: &Authority) -> Outcome {
    let number = version_number(call)?;
    let (services, id) = (call.routed(), call.id()?);
    let restore = async |change: &Change<'_, _>| services.guardrails.restore_version(change, &id, number).await;
    call.post(by, "", restore, |restored| record::respond(StatusCode::OK, restored)).await
}
