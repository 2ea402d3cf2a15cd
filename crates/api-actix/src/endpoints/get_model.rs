//! `GET /model/{author}/{slug}`: one model by any of its names.

use domain::model::GetModelError;

use crate::endpoints::prelude::*;
use crate::rendered_catalogue::schema;

pub(crate) const ROUTE: Route = Route::memory(Get, "/model/{author}/{slug}", tags::MODELS, handle)
    .any_query()
    .operation("getModel", "Get a model by its slug")
    .description("Ids, dated slugs, former slugs and aliases resolve, case-insensitively.")
    .headers(&[IF_NONE_MATCH])
    .answer(|| BodySchema::data::<schema::Model>("ModelResponse", "One model."), "The model");

impl From<GetModelError> for ApiError {
    fn from(error: GetModelError) -> Self {
        Self::from_kind(error.kind()).caused_by(error)
    }
}

fn handle(call: &Call<'_>) -> Outcome {
    let [author, slug, _] = call.parameters.map(parameters::segment);
    // A segment that is not valid UTF-8 names no model.
    let (author, slug) = author.zip(slug).ok_or_else(ApiError::not_found)?;
    let (snapshot, resolved) = call.gateway.services.get_model.execute(&author, &slug)?;
    let row = call.gateway.rendered.row(&snapshot, resolved.index).ok_or_else(ApiError::not_found)?;
    Ok(row.respond(call.request))
}
