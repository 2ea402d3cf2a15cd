//! `GET /model/{author}/{slug}`: one model by any of its names.

use actix_web::HttpResponse;
use domain::model::GetModelError;
use utoipa::openapi::path::OperationBuilder;

use crate::http::call::Call;
use crate::http::error::ApiError;
use crate::http::routes::{Handler, KeyedHandler, Method, Route};
use crate::http::segment;
use crate::openapi::operations::{COMMON_STATUSES, example_path, if_none_match, operation, responses};
use crate::openapi::tags;
use crate::rendered_catalogue::schema;

pub(crate) const ROUTE: Route = Route::new(
    Method::Get,
    "/model/{author}/{slug}",
    Handler::Keyed(KeyedHandler::Memory(handle)),
    tags::MODELS,
    describe,
)
.with_schemas(|all| all.add_data::<schema::Model>("ModelResponse", "One model."));

impl From<GetModelError> for ApiError {
    fn from(error: GetModelError) -> Self {
        Self::from_kind(error.kind()).caused_by(error)
    }
}

fn handle(call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    let [author, slug, _] = call.parameters.map(segment::decode);
    // A segment that is not valid UTF-8 names no model.
    let (author, slug) = author.zip(slug).ok_or_else(ApiError::not_found)?;
    let (snapshot, resolved) = call.gateway.services.get_model.execute(&author, &slug)?;
    let row = call.gateway.rendered.row(&snapshot, resolved.index).ok_or_else(ApiError::not_found)?;
    Ok(row.respond(call.request))
}

fn describe() -> OperationBuilder {
    operation("getModel", "Get a model by its slug")
        .description(Some("Ids, dated slugs, former slugs and aliases resolve, case-insensitively."))
        .parameter(example_path("author", "The author or organisation of the model", "sandbox"))
        .parameter(example_path("slug", "The model's slug, optionally followed by a colon and a variant", "decider"))
        .parameter(if_none_match())
        .responses(responses("The model", "ModelResponse", &[304, 404], &COMMON_STATUSES))
}
