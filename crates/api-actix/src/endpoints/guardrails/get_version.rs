//! `GET …/guardrails/{id}/versions/{version}`: reads a version of a guardrail.

use actix_web::http::StatusCode;
use utoipa::openapi::path::OperationBuilder;

use super::record::{self, GuardrailVersionView};
use super::{id, version_number};
use crate::http::call::Call;
use crate::http::response_body::Data;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::openapi::operations::{COMMON_STATUSES, management_operation, path, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Get,
    "/guardrails/{id}/versions/{version}",
    Handler::Keyed(KeyedHandler::Management(|call, _, _| Box::pin(handle(call)))),
    tags::GUARDRAILS,
    describe,
)
.audited()
.with_schemas(record::version_schemas);

fn describe() -> OperationBuilder {
    management_operation("getGuardrailVersion", "Get a version of a guardrail", "Versions are numbered from 1.")
        .parameter(path("version", "The version's number"))
        .responses(responses("The version", "GuardrailVersionResponse", &[404], &COMMON_STATUSES))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>) -> Outcome {
    let found = call
        .gateway
        .services
        .routed
        .current()
        .guardrails
        .get_version
        .execute(&id(call)?, version_number(call)?)
        .await?;
    Ok(Data::respond(StatusCode::OK, GuardrailVersionView::new(&found)))
}
