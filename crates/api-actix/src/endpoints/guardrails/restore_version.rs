//! `POST …/guardrails/{id}/versions/{version}/restore`: restores a version of a guardrail.

use actix_web::http::StatusCode;
use domain::api_key::ManagementKey;
use utoipa::openapi::path::OperationBuilder;

use super::record::{self, GuardrailView};
use super::{id, version_number};
use crate::http::call::Call;
use crate::http::response_body::Data;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::openapi::operations::{COMMON_STATUSES, management_operation, path, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Post,
    "/guardrails/{id}/versions/{version}/restore",
    Handler::Keyed(KeyedHandler::Management(|call, key, _| Box::pin(handle(call, key)))),
    tags::GUARDRAILS,
    describe,
)
.audited()
.with_schemas(record::schemas);

fn describe() -> OperationBuilder {
    let description = "Creates a new version with the name, the budget and the rules of an earlier version.";
    management_operation("restoreGuardrailVersion", "Restore a version of a guardrail", description)
        .parameter(path("version", "The version's number"))
        .responses(responses("The updated guardrail", "GuardrailResponse", &[404, 409], &COMMON_STATUSES))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>, authority: &ManagementKey) -> Outcome {
    let (actor, number) = (call.actor(authority), version_number(call)?);
    let restored =
        call.gateway.services.routed.current().guardrails.restore_version.execute(&actor, &id(call)?, number).await?;
    Ok(Data::respond(StatusCode::OK, GuardrailView::new(&restored)))
}
