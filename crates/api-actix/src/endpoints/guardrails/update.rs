//! `PATCH …/guardrails/{id}`: changes a guardrail.

use actix_web::http::StatusCode;
use actix_web::web::Payload;
use domain::api_key::ManagementKey;
use utoipa::openapi::path::OperationBuilder;

use super::record::{self, GuardrailView};
use super::request::GuardrailChange;
use super::{draft, id};
use crate::http::call::Call;
use crate::http::response_body::Data;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::http::schemas::SchemaList;
use crate::openapi::operations::{COMMON_STATUSES, body, management_operation, path, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Patch,
    "/guardrails/{id}",
    Handler::Keyed(KeyedHandler::Management(|call, key, payload| Box::pin(handle(call, key, payload)))),
    tags::GUARDRAILS,
    describe,
)
.with_body()
.audited()
.with_schemas(schemas);

fn describe() -> OperationBuilder {
    let description = "Changes the given members: null removes a rule, a list is replaced as a whole. A change \
                       creates a new version, which is effective on every replica within a second.";
    management_operation("updateGuardrail", "Update a guardrail", description)
        .request_body(Some(body("GuardrailChange")))
        .responses(responses("The updated guardrail", "GuardrailResponse", &[400, 404, 409, 415], &COMMON_STATUSES))
        .parameter(path("id", "The guardrail's id"))
}

fn schemas(all: &mut SchemaList) {
    all.add::<GuardrailChange>();
    record::schemas(all);
}

async fn handle(call: &Call<'_>, authority: &ManagementKey, payload: Payload) -> Outcome {
    let draft = draft(call, payload).await?;
    let actor = call.actor(authority);
    let changed = call.gateway.services.routed.current().guardrails.update.execute(&actor, &id(call)?, &draft).await?;
    Ok(Data::respond(StatusCode::OK, GuardrailView::new(&changed)))
}
