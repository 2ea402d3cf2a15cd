//! `GET /openapi.json`: the API description for programs.

use serde_json::json;
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::schema::Type;

use super::respond;
use crate::http::call::Call;
use crate::http::routes::{Handler, Method, OpenHandler, Outcome, Route};
use crate::openapi::operations::{JSON, operation, text_responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route =
    Route::new(Method::Get, "/openapi.json", Handler::Open(OpenHandler::Memory(handle)), tags::SERVICE, describe)
        .outside_base();

fn describe() -> OperationBuilder {
    let example = json!({"openapi": "3.1.0", "info": {"title": "Tollgate", "version": "1.0.0"}, "paths": {}});
    let responses = text_responses("The document", JSON, Type::Object, example);
    operation("openapi", "The OpenAPI document").responses(responses)
}

#[expect(clippy::unnecessary_wraps, reason = "the type of a handler")]
fn handle(call: &Call<'_>) -> Outcome {
    let gateway = call.gateway;
    Ok(respond(gateway.openapi.render(&gateway.services.routed.current().list_models), JSON))
}
