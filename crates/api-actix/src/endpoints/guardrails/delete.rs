//! `DELETE …/guardrails/{id}`: deletes a guardrail.

use actix_web::HttpResponse;
use domain::api_key::ManagementKey;
use serde::Serialize;
use utoipa::openapi::path::OperationBuilder;

use super::id;
use crate::http::edge::Call;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::openapi::operations::{COMMON_STATUSES, management_operation, path, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Delete,
    "/guardrails/{id}",
    Handler::Keyed(KeyedHandler::Management(|call, key, _| Box::pin(handle(call, key)))),
    tags::GUARDRAILS,
    describe,
)
.audited();

#[derive(Serialize)]
struct DeletedView {
    deleted: bool,
}

fn describe() -> OperationBuilder {
    let description = "Removes the guardrail from its keys and from the workspace.";
    management_operation("deleteGuardrail", "Delete a guardrail", description)
        .responses(responses("Deleted", "GuardrailDeletedResponse", &[404], &COMMON_STATUSES))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>, authority: &ManagementKey) -> Outcome {
    call.gateway.services.routed.current().guardrails.delete.execute(&call.actor(authority), &id(call)?).await?;
    Ok(HttpResponse::Ok().json(DeletedView { deleted: true }))
}
