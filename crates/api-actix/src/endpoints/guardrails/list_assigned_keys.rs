//! `GET …/guardrails/{id}/assignments/keys`: lists the keys of a guardrail.

use domain::guardrail::KeyAssignment;

use super::{PageRange, limit, offset};
use crate::endpoints::prelude::*;
use crate::http::response::time;

pub(crate) const ROUTE: Route = Route::management(
    Method::Get,
    "/guardrails/{id}/assignments/keys",
    |call, _, _| Box::pin(handle(call)),
    tags::GUARDRAILS,
    describe,
)
.with_schemas(|all| {
    all.add_page::<AssignmentView<'_>>("KeyAssignmentListResponse", "A page of the keys assigned to a guardrail.");
});

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

fn describe() -> OperationBuilder {
    management_operation("listGuardrailKeyAssignments", "List the keys of a guardrail", "Newest assignment first.")
        .parameter(offset())
        .parameter(limit())
        .responses(responses("The assignments", "KeyAssignmentListResponse", &[400, 404]))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>) -> Outcome {
    let range = PageRange::parse(call.request.query_string())?;
    let (offset, limit) = (range.offset as u64, range.limit as u64);
    let page = call.routed().guardrails.list_assigned_keys.execute(&call.id()?, offset, limit).await?;
    let data = page.assignments.iter().map(AssignmentView::new).collect();
    Ok(Page::respond(data, page.total))
}
