//! `POST …/guardrails/{id}/assignments/keys/remove`: removes keys from a guardrail.

use actix_web::HttpResponse;
use actix_web::web::Payload;
use domain::api_key::ManagementKey;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::path::OperationBuilder;

use super::id;
use crate::endpoints::assign_keys_to_guardrail::{AssignKeysRequest, key_hashes};
use crate::http::call::Call;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::openapi::operations::{COMMON_STATUSES, body, management_operation, path, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Post,
    "/guardrails/{id}/assignments/keys/remove",
    Handler::Keyed(KeyedHandler::Management(|call, key, payload| Box::pin(handle(call, key, payload)))),
    tags::GUARDRAILS,
    describe,
)
.with_body()
.audited()
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
        .responses(responses(
            "The number of removed assignments",
            "RemoveKeysResponse",
            &[400, 404, 415],
            &COMMON_STATUSES,
        ))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>, authority: &ManagementKey, payload: Payload) -> Outcome {
    let body = call.read_json(payload).await?;
    let hashes = key_hashes(body.text()?)?;
    let (actor, id) = (call.actor(authority), id(call)?);
    let remove = &call.gateway.services.routed.current().guardrails.remove_keys;
    let unassigned_count = remove.execute(authority, &actor, &id, hashes).await?;
    Ok(HttpResponse::Ok().json(UnassignedView { unassigned_count }))
}
