//! `GET /models/{model}`: one entry of the vendors' model list.

use domain::model::{FindCallableModelError, Visibility};
use utoipa::openapi::path::Parameter;

use super::list_models::{include_uncallable, visibility};
use crate::endpoints::prelude::*;
use crate::http::error::ErrorFormat;
use crate::rendered_catalogue::schema::ListedModel;

pub(crate) const ROUTE: Route =
    Route::memory(Method::Get, "/models/{model}", handle, tags::MODELS, || describe("retrieveModel", [by_name()]))
        .for_vendor_clients(ErrorFormat::Contract);

pub(crate) const VENDOR_ROUTE: Route = Route::memory(Method::Get, "/v1/models/{model}", handle, tags::MODELS, || {
    describe("retrieveModelOutsideTheBasePath", [by_name()])
})
.outside_base()
.for_vendor_clients(ErrorFormat::Contract);

pub(crate) const VENDOR_ROUTE_BY_SLUG: Route =
    Route::memory(Method::Get, "/v1/models/{author}/{slug}", handle, tags::MODELS, || {
        let author = path("author", "The author or organisation of the model");
        let slug = path("slug", "The model's slug, optionally followed by a colon and a variant");
        describe("retrieveModelBySlug", [author, slug])
    })
    .outside_base()
    .for_vendor_clients(ErrorFormat::Contract);

impl From<FindCallableModelError> for ApiError {
    fn from(error: FindCallableModelError) -> Self {
        let plain = Self::from_kind(error.kind()).message(error.to_string());
        let (FindCallableModelError::Unknown { nearest } | FindCallableModelError::NotCallable { nearest }) = error;
        plain.metadata("nearest", nearest)
    }
}

/// The name is one segment with an encoded slash or without an author, or the two segments of author and slug.
fn handle(call: &Call<'_>) -> Outcome {
    let visibility = visibility(call.request.query_string())?;
    let segments = call.parameters.into_iter().filter(|segment| !segment.is_empty());
    // A segment that is not valid UTF-8 names no model.
    let decoded: Option<Vec<_>> = segments.map(parameters::segment).collect();
    let name = decoded.ok_or_else(ApiError::not_found)?.join("/");
    let (snapshot, found) = call.routed().find_callable_model.execute(&name, visibility)?;
    let entry = call.gateway.rendered.entry(&snapshot, found.index).ok_or_else(ApiError::not_found)?;
    Ok(entry.respond(call.request))
}

fn by_name() -> Parameter {
    path("model", "The model's name: without an author, or with an encoded slash.")
}

fn describe<const N: usize>(id: &str, name: [Parameter; N]) -> Operation {
    let operation = Operation::new(id, "Retrieve an entry of the model list").description(
        "A model that can be called, by any name that a Decisions request may use. 404 names the nearest callable \
         models.",
    );
    name.into_iter()
        .fold(operation, Operation::parameter)
        .parameter(include_uncallable(Visibility::Callable))
        .parameter(if_none_match())
        .answer(BodySchema::of::<ListedModel>(), "The model", &[304, 400, 404])
}
