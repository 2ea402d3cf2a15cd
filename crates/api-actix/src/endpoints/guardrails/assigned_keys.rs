//! Lists the keys of a guardrail, and removes keys from it.

use domain::guardrail::KeyAssignment;
use wires::client::check_names;

use crate::endpoints::assign_keys_to_guardrail::{AssignKeysRequest, key_hashes};
use crate::endpoints::prelude::*;
use crate::endpoints::workspaces;

/// `GET …/guardrails/{id}/assignments/keys`: lists the keys of a guardrail.
pub(crate) const LIST: Route =
    Route::management(Get, "/guardrails/{id}/assignments/keys", tags::GUARDRAILS, handler!(handle_list))
        .operation("listGuardrailKeyAssignments", "List the keys of a guardrail")
        .description("Newest assignment first.")
        .query(&[OFFSET, LIMIT])
        .answer(list_response, "The assignments");

/// A key assigned to a guardrail.
#[derive(Serialize, ToSchema)]
#[schema(as = KeyAssignment)]
struct AssignmentView<'a> {
    id: Uuid,
    guardrail_id: Uuid,
    key_hash: String,
    key_name: &'a str,
    /// The masked secret.
    key_label: &'a str,
    #[schema(required)]
    assigned_by: Option<&'a str>,
    created_at: DateTime,
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

fn list_response() -> BodySchema {
    BodySchema::page::<AssignmentView<'_>>("KeyAssignmentListResponse", "A page of keys with a guardrail.")
}

#[expect(clippy::unnecessary_wraps, reason = "the outcome of a handler")]
fn respond((assignments, total): &(Vec<KeyAssignment>, u64)) -> Outcome {
    Ok(Page::respond(assignments.iter().map(AssignmentView::new).collect(), *total))
}

async fn handle_list(call: &Call<'_>, by: &Authority) -> Outcome {
    let PageRange { offset, limit } = PageRange::parse(call.request.query_string(), DEFAULT_LIMIT)?;
    let page = call.routed().guardrails.list_assigned_keys(by, &call.id()?, offset, limit).await?;
    respond(&page)
}

/// `GET …/guardrails/assignments/keys`: lists the keys of all guardrails.
pub(crate) const LIST_ALL: Route =
    Route::management(Get, "/guardrails/assignments/keys", tags::GUARDRAILS, handler!(handle_list_all))
        .operation("listKeyAssignments", "List keys with a guardrail")
        .description("By guardrail, newest assignment first.")
        .query(&[WORKSPACE, OFFSET, LIMIT])
        .answer(list_response, "The assignments");

async fn handle_list_all(call: &Call<'_>, by: &Authority) -> Outcome {
    let query = call.request.query_string();
    let PageRange { offset, limit } = PageRange::parse(query, DEFAULT_LIMIT)?;
    let workspace_id = workspaces::filter(call, by).await?;
    respond(&call.routed().guardrails.list_all_assigned_keys(by, workspace_id, offset, limit).await?)
}

/// `POST …/guardrails/{id}/assignments/keys/remove`: removes keys from a guardrail.
pub(crate) const REMOVE: Route = Route::management(
    Post,
    "/guardrails/{id}/assignments/keys/remove",
    tags::GUARDRAILS,
    handler!(handle_remove, payload),
)
.operation("removeKeysFromGuardrail", "Bulk remove keys from a guardrail")
.description("Keys without this guardrail are skipped and not counted.")
.body(BodySchema::of::<AssignKeysRequest>)
.headers(&[IF_MATCH, IDEMPOTENCY_KEY])
.answer(BodySchema::of::<UnassignedView>, "The number of removed assignments");

/// The number of removed assignments.
#[derive(Serialize, ToSchema)]
#[schema(as = RemoveKeysResponse)]
struct UnassignedView {
    unassigned_count: u64,
}

async fn handle_remove(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let body = call.read_json(payload).await?;
    check_names(body.text()?, &["key_hashes"], &[]).map_err(ApiError::invalid)?;
    let hashes = key_hashes(body.text()?)?;
    let (routed, id) = (call.routed(), call.id()?);
    let execute = async |change: &Change<'_, u64>| routed.guardrails.remove_keys(change, &id, hashes).await;
    let render = |count: &u64| RecordResponse::json(StatusCode::OK, &UnassignedView { unassigned_count: *count });
    call.post(by, body.text()?, execute, render).await
}
