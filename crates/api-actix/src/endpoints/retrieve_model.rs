//! `GET /models/{model}`: one entry of the vendors' model list.

use domain::model::{FindCallableModelError, Visibility};

use super::list_models::{include_uncallable, visibility};
use crate::endpoints::prelude::*;
use crate::http::error::ErrorFormat;
use crate::rendered_catalogue::schema::ListedModel;

pub(crate) const ROUTE: Route = route("/models/{model}", "retrieveModel");
pub(crate) const VENDOR_ROUTE: Route = route("/v1/models/{model}", "retrieveModelOutsideTheBasePath").outside_base();
pub(crate) const VENDOR_ROUTE_BY_SLUG: Route =
    route("/v1/models/{author}/{slug}", "retrieveModelBySlug").outside_base();

const fn route(pattern: &'static str, id: &'static str) -> Route {
    Route::memory(Get, pattern, tags::MODELS, handle)
        .operation(id, "Retrieve an entry of the model list")
        .description(
            "A model that can be called, by any name that a Decisions request may use. 404 names the nearest callable \
             models.",
        )
        .any_query()
        .headers(&[IF_NONE_MATCH])
        .answer(BodySchema::of::<ListedModel>, "The model")
        .also(&[400])
        .complete(|operation| operation.parameter(include_uncallable(Visibility::Callable)))
        .for_vendor_clients(ErrorFormat::Contract)
}

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
