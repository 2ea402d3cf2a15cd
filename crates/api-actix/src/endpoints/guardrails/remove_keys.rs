//! `POST …/guardrails/{id}/assignments/keys/remove`: removes keys from a guardrail.

use crate::endpoints::assign_keys_to_guardrail::{AssignKeysRequest, key_hashes};
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(
    Method::Post,
    "/guardrails/{id}/assignments/keys/remove",
    |call, key, payload| Box::pin(handle(call, key, payload)),
    tags::GUARDRAILS,
    describe,
)
.with_body()
.with_schemas(|all| {
    all.add::<AssignKeysRequest>();
    all.add::<UnassignedView>();
});

/// The number of removed assignments.
#[derive(Serialize, ToSchema)]
#[schema(as = RemoveKeysResponse)]
struct UnassignedView {
    unassigned_count: u64,
}

fn describe() -> OperationBuilder {
    let description = "Keys without this guardrail are skipped and not counted.";
    management_operation("removeKeysFromGuardrail", "Bulk remove keys from a guardrail", description)
        .request_body(Some(body("AssignKeysRequest")))
        .responses(responses("The number of removed assignments", "RemoveKeysResponse", &[400, 404, 415]))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>, authority: &ManagementKey, payload: Payload) -> Outcome {
    let body = call.read_json(payload).await?;
    let hashes = key_hashes(body.text()?)?;
    let (actor, id) = (call.actor(authority), call.id()?);
    let remove = &call.routed().guardrails.remove_keys;
    let unassigned_count = remove.execute(authority, &actor, &id, hashes).await?;
    Ok(HttpResponse::Ok().json(UnassignedView { unassigned_count }))
}
