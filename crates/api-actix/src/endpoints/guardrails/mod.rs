//! `…/guardrails`: the rules for keys and workspaces. Management keys only.

pub(crate) mod assigned_keys;
pub(crate) mod explain;
mod record;

use domain::decision::{ExplainGuardrailError, FilteringError};
use domain::guardrail::{GuardrailDraft, GuardrailError, GuardrailVersion, InvalidGuardrail, PlacedGuardrail};
use wires::client::{ErrorLocation, read_object};

use crate::endpoints::prelude::*;
use crate::endpoints::workspaces;
use record::{GuardrailChange, GuardrailRequest, GuardrailVersionView, GuardrailView};

/// Parses the guardrail, or the change to one, from the body.
fn draft(body: &JsonBody) -> Result<GuardrailDraft, ApiError> {
    let record = read_object(body.text()?)?;
    Ok(GuardrailDraft::read(&record)?)
}

/// Parses the version number in the path, as it is written in records: without a sign and leading zeros.
pub(super) fn version_number(call: &Call<'_>) -> Result<u32, ApiError> {
    let digits = parameters::segment(call.parameters[1]).ok_or_else(ApiError::not_found)?;
    digits.parse().ok().filter(|number: &u32| number.to_string() == digits).ok_or_else(ApiError::not_found)
}

impl From<InvalidGuardrail> for ApiError {
    fn from(invalid: InvalidGuardrail) -> Self {
        // An error of the record as a whole has no path.
        let message = if invalid.path.is_empty() { invalid.fault.clone() } else { invalid.to_string() };
        let error = Self::invalid(message).location(ErrorLocation::Member(invalid.path));
        if invalid.nearest.is_empty() { error } else { error.metadata("nearest", invalid.nearest) }
    }
}

api_error!(GuardrailError {
    pass: Restricted, Invalid, Name, PreconditionFailed, Store;
    kind: UnknownVersion, Conflict;
    said: WorkspaceRequired;
    with |plain| GuardrailError::UnknownWorkspace => plain.message("workspace_id: workspace not found");
});

api_error!(ExplainGuardrailError {
    pass: Restricted, Name, Store;
    said: UnknownKey;
    with |plain|
        ExplainGuardrailError::UnusableModel(decision) => plain.message(decision.to_string()),
        ExplainGuardrailError::Filtering(FilteringError::TaskFailed(lost)) => Self::from_task_error(lost),
        error @ (ExplainGuardrailError::Filters(_) | ExplainGuardrailError::Filtering(_)) => plain.caused_by(error),
        ref error @ ExplainGuardrailError::UnknownModel { ref nearest } => {
            plain.message(error.to_string()).metadata("nearest", nearest.as_slice())
        };
});

/// `GET …/guardrails`: lists guardrails.
pub(crate) const LIST: Route = Route::management(Get, "/guardrails", tags::GUARDRAILS, handler!(handle_list))
    .operation("listGuardrails", "List guardrails")
    .description("Newest first.")
    .query(&[WORKSPACE, OFFSET, LIMIT])
    .answer(
        || BodySchema::page::<GuardrailView<'_>>("GuardrailListResponse", "A page of guardrails."),
        "The guardrails",
    );

async fn handle_list(call: &Call<'_>, by: &Authority) -> Outcome {
    let query = call.request.query_string();
    let range = PageRange::parse(query, DEFAULT_LIMIT)?;
    let (workspace_id, guardrails) = (workspaces::filter(call, by).await?, call.routed().guardrails.clone());
    let read = async |offset, limit| Ok(guardrails.list(by, workspace_id, offset, limit).await?);
    let size = |placed: &PlacedGuardrail| ElementSize::of_text(placed.guardrail.stored_bytes());
    let (guardrails, total) = range.read(call, size, read).await?;
    Ok(Page::respond(guardrails.iter().map(GuardrailView::new).collect(), total))
}

/// `GET …/guardrails/{id}`: reads a guardrail.
pub(crate) const GET: Route = Route::management(Get, "/guardrails/{id}", tags::GUARDRAILS, handler!(handle_get))
    .operation("getGuardrail", "Get a guardrail")
    .description("Returns a guardrail of any workspace of the caller.")
    .answer(record::response, "The guardrail");

async fn handle_get(call: &Call<'_>, by: &Authority) -> Outcome {
    let found = call.routed().guardrails.get(by, &call.id()?).await?;
    Ok(record::respond(StatusCode::OK, &found).respond())
}

/// `GET …/guardrails/{id}/versions`: lists the versions of a guardrail.
pub(crate) const LIST_VERSIONS: Route =
    Route::management(Get, "/guardrails/{id}/versions", tags::GUARDRAILS, handler!(handle_list_versions))
        .operation("listGuardrailVersions", "List the versions of a guardrail")
        .description("Newest first.")
        .query(&[OFFSET, LIMIT])
        .answer(
            || {
                BodySchema::page::<GuardrailVersionView<'_>>(
                    "GuardrailVersionListResponse",
                    "A page of versions of a guardrail.",
                )
            },
            "The versions",
        );

async fn handle_list_versions(call: &Call<'_>, by: &Authority) -> Outcome {
    let range = PageRange::parse(call.request.query_string(), DEFAULT_LIMIT)?;
    let guardrails = call.routed().guardrails.clone();
    let name = call.id()?;
    let read = async |offset, limit| {
        let (versions, total) = guardrails.list_versions(by, &name, offset, limit).await?;
        Ok((versions, total.into()))
    };
    let size = |version: &GuardrailVersion| ElementSize::of_text(version.guardrail.stored_bytes());
    let (versions, total) = range.read(call, size, read).await?;
    Ok(Page::respond(versions.iter().map(GuardrailVersionView::new).collect(), total))
}

/// `GET …/guardrails/{id}/versions/{version}`: reads a version of a guardrail.
pub(crate) const GET_VERSION: Route =
    Route::management(Get, "/guardrails/{id}/versions/{version}", tags::GUARDRAILS, handler!(handle_get_version))
        .operation("getGuardrailVersion", "Get a version of a guardrail")
        .description("Versions are numbered from 1.")
        .answer(
            || BodySchema::data::<GuardrailVersionView<'_>>("GuardrailVersionResponse", "One version of a guardrail."),
            "The version",
        );

async fn handle_get_version(call: &Call<'_>, by: &Authority) -> Outcome {
    let found = call.routed().guardrails.get_version(by, &call.id()?, version_number(call)?).await?;
    Ok(Data::respond(StatusCode::OK, GuardrailVersionView::new(&found)))
}

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
