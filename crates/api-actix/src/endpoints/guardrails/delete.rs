//! `DELETE …/guardrails/{id}`: deletes a guardrail.

use domain::api_key::ManagementKey;
use utoipa::openapi::path::OperationBuilder;

use super::id;
use crate::http::call::Call;
use crate::http::response_body::Deleted;
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
.audited()
.with_schemas(|all| all.add_as::<Deleted>("GuardrailDeletedResponse", "Confirms the deletion of a guardrail."));

fn describe() -> OperationBuilder {
    let description = "Removes the guardrail from its keys and from the workspace.";
    management_operation("deleteGuardrail", "Delete a guardrail", description)
        .responses(responses("Deleted", "GuardrailDeletedResponse", &[404], &COMMON_STATUSES))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>, authority: &ManagementKey) -> Outcome {
    call.gateway.services.routed.current().guardrails.delete.execute(&call.actor(authority), &id(call)?).await?;
    Ok(Deleted::respond())
}
