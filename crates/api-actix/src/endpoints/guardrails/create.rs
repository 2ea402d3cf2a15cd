//! `POST …/guardrails`: creates a guardrail.

use actix_web::http::StatusCode;
use actix_web::web::Payload;
use domain::api_key::ManagementKey;
use utoipa::openapi::path::OperationBuilder;

use super::draft;
use super::record::{self, GuardrailView};
use super::request::GuardrailRequest;
use crate::http::call::Call;
use crate::http::response_body::Data;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::http::schemas::SchemaList;
use crate::openapi::operations::{COMMON_STATUSES, body, created_responses, management_operation};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Post,
    "/guardrails",
    Handler::Keyed(KeyedHandler::Management(|call, key, payload| Box::pin(handle(call, key, payload)))),
    tags::GUARDRAILS,
    describe,
)
.with_body()
.audited()
.with_schemas(schemas);

fn describe() -> OperationBuilder {
    let description = "The new guardrail has no keys. `workspace_default` applies it to the whole workspace at once. \
                       Any resolvable model name is accepted and stored as a canonical slug.";
    management_operation("createGuardrail", "Create a guardrail", description)
        .request_body(Some(body("GuardrailRequest")))
        .responses(created_responses("The guardrail", "GuardrailResponse", &[400, 404, 415], &COMMON_STATUSES))
}

fn schemas(all: &mut SchemaList) {
    all.add::<GuardrailRequest>();
    record::schemas(all);
}

async fn handle(call: &Call<'_>, authority: &ManagementKey, payload: Payload) -> Outcome {
    let draft = draft(call, payload).await?;
    let made = call.gateway.services.routed.current().guardrails.create.execute(&call.actor(authority), &draft).await?;
    Ok(Data::respond(StatusCode::CREATED, GuardrailView::new(&made)))
}
