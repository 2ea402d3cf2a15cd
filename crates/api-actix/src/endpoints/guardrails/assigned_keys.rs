//! Lists the keys of a guardrail, and removes keys from it.

use domain::guardrail::{AssignmentPage, KeyAssignment};
use wires::client::check_names;

use crate::endpoints::assign_keys_to_guardrail::{AssignKeysRequest, key_hashes};
use crate::endpoints::prelude::*;
use crate::endpoints::workspaces::{self, ALL_WORKSPACES, LIST_PARAMETERS, describe_filter};
use crate::http::change::RecordResponse;
use crate::http::operation::{idempotency_key, if_match};
use crate::http::page::{DEFAULT_LIMIT, PageRange};
use crate::http::response::time;

/// `GET …/guardrails/{id}/assignments/keys`: lists the keys of a guardrail.
pub(crate) const LIST: Route = Route::management(
    Method::Get,
    "/guardrails/{id}/assignments/keys",
    |call, by, _| Box::pin(handle_list(call, by)),
    tags::GUARDRAILS,
    describe_list,
)
.with_query(&["offset", "limit"]);

/// A key assigned to a guardrail.
#[derive(Serialize, ToSchema)]
#[schema(as = KeyAssignment)]
struct AssignmentView<'a> {
    #[schema(format = "uuid")]
    id: String,
    #[schema(format = "uuid")]
    guardrail_id: String,
    key_hash: String,
    key_name: &'a str,
    /// The masked secret.
    key_label: &'a str,
    #[schema(required)]
    assigned_by: Option<&'a str>,
    #[schema(format = DateTime)]
    created_at: String,
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
fn respond(page: &AssignmentPage) -> Outcome {
    Ok(Page::respond(page.assignments.iter().map(AssignmentView::new).collect(), page.total))
}

fn describe_list() -> Operation {
    let body = list_response();
    let operation = Operation::management(
        "listGuardrailKeyAssignments",
        "List the keys of a guardrail",
        "Newest assignment first.",
    );
    PageRange::describe(operation, DEFAULT_LIMIT)
        .answer(body, "The assignments", &[400, 404, 409])
        .parameter(path("id", "The guardrail's id, or its unique name."))
}

async fn handle_list(call: &Call<'_>, by: &Authority) -> Outcome {
    let PageRange { offset, limit } = PageRange::parse(call.request.query_string(), DEFAULT_LIMIT)?;
    let page = call.routed().guardrails.list_assigned_keys(by, &call.id()?, offset, limit).await?;
    respond(&page)
}

/// `GET …/guardrails/assignments/keys`: lists the keys of all guardrails.
pub(crate) const LIST_ALL: Route = Route::management(
    Method::Get,
    "/guardrails/assignments/keys",
    |call, by, _| Box::pin(handle_list_all(call, by)),
    tags::GUARDRAILS,
    describe_list_all,
)
.with_query(&LIST_PARAMETERS);

fn describe_list_all() -> Operation {
    let body = list_response();
    let operation = Operation::management(
        "listKeyAssignments",
        "List keys with a guardrail",
        "By guardrail, newest assignment first.",
    )
    .parameter(describe_filter(ALL_WORKSPACES));
    PageRange::describe(operation, DEFAULT_LIMIT).answer(body, "The assignments", &[400, 404, 409])
}

async fn handle_list_all(call: &Call<'_>, by: &Authority) -> Outcome {
    let query = call.request.query_string();
    let PageRange { offset, limit } = PageRange::parse(query, DEFAULT_LIMIT)?;
    let workspace_id = workspaces::filter(call, by).await?;
    respond(&call.routed().guardrails.list_all_assigned_keys(by, workspace_id, offset, limit).await?)
}

/// `POST …/guardrails/{id}/assignments/keys/remove`: removes keys from a guardrail.
pub(crate) const REMOVE: Route = Route::management(
    Method::Post,
    "/guardrails/{id}/assignments/keys/remove",
    |call, key, payload| Box::pin(handle_remove(call, key, payload)),
    tags::GUARDRAILS,
    describe_remove,
)
.with_body();

/// The number of removed assignments.
#[derive(Serialize, ToSchema)]
#[schema(as = RemoveKeysResponse)]
struct UnassignedView {
    unassigned_count: u64,
}

fn describe_remove() -> Operation {
    let description = "Keys without this guardrail are skipped and not counted.";
    Operation::management("removeKeysFromGuardrail", "Bulk remove keys from a guardrail", description)
        .body(BodySchema::of::<AssignKeysRequest>(), None)
        .parameter(if_match())
        .parameter(idempotency_key())
        .answer(BodySchema::of::<UnassignedView>(), "The number of removed assignments", &[400, 404, 409, 412, 415])
        .parameter(path("id", "The guardrail's id, or its unique name."))
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
