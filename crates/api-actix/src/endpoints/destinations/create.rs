//! `POST …/observability/destinations`: creates a destination.

use actix_web::http::StatusCode;
use actix_web::web::Payload;
use domain::api_key::ManagementKey;
use utoipa::openapi::path::OperationBuilder;

use super::request::DestinationRequest;
use super::{read_fields, record, stored_view, workspace_id};
use crate::http::call::Call;
use crate::http::response_body::Data;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::openapi::operations::{COMMON_STATUSES, body, created_responses, management_operation};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Post,
    "/observability/destinations",
    Handler::Keyed(KeyedHandler::Management(|call, key, payload| Box::pin(handle(call, key, payload)))),
    tags::DESTINATIONS,
    describe,
)
.with_body()
.audited()
.with_schemas(|all| {
    all.add::<DestinationRequest>();
    record::schemas(all);
});

fn describe() -> OperationBuilder {
    let description = "The destination first receives a test request (header `x-test-connection: true`) and must \
                       answer with 2xx or 400. A workspace has at most five destinations of each type.";
    management_operation("createDestination", "Create a trace destination", description)
        .request_body(Some(body("DestinationRequest")))
        .responses(created_responses("The destination", "DestinationResponse", &[400, 409, 415], &COMMON_STATUSES))
}

async fn handle(call: &Call<'_>, authority: &ManagementKey, payload: Payload) -> Outcome {
    let (fields, workspace) = read_fields(call, payload).await?;
    let workspace = workspace.as_deref().map(workspace_id).transpose()?;
    let made = call.gateway.services.destinations.create.execute(&call.actor(authority), workspace, &fields).await?;
    Ok(Data::respond(StatusCode::CREATED, stored_view(call, &made).await))
}
