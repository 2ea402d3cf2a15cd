//! `GET …/guardrails/{id}`: reads a guardrail.

use actix_web::http::StatusCode;
use utoipa::openapi::path::OperationBuilder;

use super::id;
use super::record::{self, GuardrailView};
use crate::http::call::Call;
use crate::http::response_body::Data;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::openapi::operations::{COMMON_STATUSES, management_operation, path, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Get,
    "/guardrails/{id}",
    Handler::Keyed(KeyedHandler::Management(|call, _, _| Box::pin(handle(call)))),
    tags::GUARDRAILS,
    describe,
)
.audited()
.with_schemas(record::schemas);

fn describe() -> OperationBuilder {
    management_operation("getGuardrail", "Get a guardrail", "Returns a guardrail of any workspace.")
        .responses(responses("The guardrail", "GuardrailResponse", &[404], &COMMON_STATUSES))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>) -> Outcome {
    let found = call.gateway.services.routed.current().guardrails.get.execute(&id(call)?).await?;
    Ok(Data::respond(StatusCode::OK, GuardrailView::new(&found)))
}
