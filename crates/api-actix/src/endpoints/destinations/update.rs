//! `PATCH …/observability/destinations/{id}`: changes a destination.

use actix_web::http::StatusCode;
use actix_web::web::Payload;
use domain::api_key::ManagementKey;
use utoipa::openapi::path::OperationBuilder;

use super::request::DestinationChange;
use super::{id, read_fields, record, stored_view};
use crate::http::call::Call;
use crate::http::response_body::Data;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::openapi::operations::{COMMON_STATUSES, body, management_operation, path, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Patch,
    "/observability/destinations/{id}",
    Handler::Keyed(KeyedHandler::Management(|call, key, payload| Box::pin(handle(call, key, payload)))),
    tags::DESTINATIONS,
    describe,
)
.with_body()
.audited()
.with_schemas(|all| {
    all.add::<DestinationChange>();
    record::schemas(all);
});

fn describe() -> OperationBuilder {
    let description = "Changes the given members; masked values stay unchanged. A change of URL, headers or secret \
                       is tested with a request first. A URL with another scheme, host or port requires all secrets \
                       again: header values, secret, query.";
    management_operation("updateDestination", "Update a trace destination", description)
        .request_body(Some(body("DestinationChange")))
        .responses(responses("The updated destination", "DestinationResponse", &[400, 404, 409, 415], &COMMON_STATUSES))
        .parameter(path("id", "The destination's id"))
}

async fn handle(call: &Call<'_>, authority: &ManagementKey, payload: Payload) -> Outcome {
    let (fields, _) = read_fields(call, payload).await?;
    let actor = call.actor(authority);
    let changed = call.gateway.services.destinations.update.execute(&actor, &id(call)?, &fields).await?;
    Ok(Data::respond(StatusCode::OK, stored_view(call, &changed).await))
}
