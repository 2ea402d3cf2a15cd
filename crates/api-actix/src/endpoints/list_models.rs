//! `GET /models`: the catalogue, in a format for several kinds of clients.

use std::fmt::Write;
use std::sync::Arc;

use domain::model::{DefaultModality, ListModelsError, ModelList, Page, Visibility};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::count_models::output_modalities;
use crate::endpoints::prelude::*;
use crate::http::error::ErrorFormat;
use crate::http::operation;
use crate::rendered_catalogue::schema::ModelListResponse;

/// Vendor clients call both paths.
pub(crate) const DECISION_MODELS: Route = Route::memory(
    Method::Get,
    "/v1/models",
    |call| handle(call, DefaultModality::Decisions),
    tags::MODELS,
    || describe("listDecisionModels", DefaultModality::Decisions),
)
.outside_base()
.for_vendor_clients(ErrorFormat::Contract);

pub(crate) const MODELS: Route = Route::memory(
    Method::Get,
    "/models",
    |call| handle(call, DefaultModality::Text),
    tags::MODELS,
    || describe("listModels", DefaultModality::Text),
)
.for_vendor_clients(ErrorFormat::Contract);

const FILTER: &str = "output_modalities";
/// The parameter that adds models without an endpoint to a list.
const INCLUDE_UNCALLABLE: &str = "include_uncallable";

impl From<ListModelsError> for ApiError {
    fn from(error: ListModelsError) -> Self {
        Self::from_kind(error.kind()).message(error.to_string())
    }
}

fn handle(call: &Call<'_>, default: DefaultModality) -> Outcome {
    let query = call.request.query_string();
    let filter = parameters::value(query, FILTER)?;
    let page = Page::of(parameters::count(query, "offset")?, parameters::count(query, "limit")?)?;
    let usual = default_visibility(default);
    let requested = parameters::switch(query, INCLUDE_UNCALLABLE)?.map(visibility_of);
    let visibility = requested.unwrap_or(usual);
    let list_models = Arc::clone(&call.routed().list_models);
    let list = list_models.execute(filter.as_deref(), default, visibility, page)?;
    let next = next_page(call.request.path(), filter.as_deref(), usual, &list);
    // System One's clients call every name of their list.
    let models = requested.unwrap_or(Visibility::Callable);
    Ok(call.gateway.rendered.list(&list, &list_models, models, next.as_deref()).respond(call.request))
}

/// Returns the models that a list shows by default: clients of the vendors' list offer every entry to their users, while
/// the service's own list has the rows that the count counts.
fn default_visibility(default: DefaultModality) -> Visibility {
    match default {
        DefaultModality::Decisions => Visibility::Callable,
        DefaultModality::Text => Visibility::All,
    }
}

fn visibility_of(include_uncallable: bool) -> Visibility {
    if include_uncallable { Visibility::All } else { Visibility::Callable }
}

/// Reads which models one look-up finds.
pub(super) fn visibility(query: &str) -> Result<Visibility, ApiError> {
    Ok(parameters::switch(query, INCLUDE_UNCALLABLE)?.map_or(Visibility::Callable, visibility_of))
}

/// Returns the path and query of the next page. `usual` are the models that the path shows by default.
fn next_page(path: &str, filter: Option<&str>, usual: Visibility, list: &ModelList) -> Option<String> {
    let (offset, limit) = list.next?;
    let mut next = format!("{path}?limit={limit}&offset={offset}");
    // Writing to a string cannot fail.
    if let Some(filter) = filter {
        let _ = write!(next, "&{FILTER}={}", utf8_percent_encode(filter, NON_ALPHANUMERIC));
    }
    if list.visibility != usual {
        let _ = write!(next, "&{INCLUDE_UNCALLABLE}={}", list.visibility == Visibility::All);
    }
    Some(next)
}

fn describe(id: &str, default: DefaultModality) -> Operation {
    let (modality, contents) = match default {
        DefaultModality::Text => {
            ("text", "`data` contains the models that match the filter; `GET /models/count` counts the same models.")
        }
        DefaultModality::Decisions => {
            ("decisions", "`data` contains the models that match the filter and have an endpoint.")
        }
    };
    let number = |least: usize, most: Option<usize>| {
        ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least)).maximum(most)
    };
    let limit = "The maximum number of models on a page; 500 if only `offset` is given.";
    Operation::new(id, "List models")
        .description(format!(
            "{contents} `models` contains the decision models with an endpoint, independent of the filter, in the \
             format of System One's clients. Without `offset` and `limit` the list is complete. Unknown parameters \
             are ignored."
        ))
        .parameter(output_modalities(modality))
        .parameter(include_uncallable(default_visibility(default)))
        .parameter(operation::query("offset", "The number of models to skip.", number(0, None)))
        .parameter(operation::query("limit", limit, number(1, Some(Page::MAX_LIMIT))))
        .parameter(if_none_match())
        .answer(BodySchema::of::<ModelListResponse>(), "The models", &[304, 400])
}

/// Returns the parameter that adds models without an endpoint.
pub(super) fn include_uncallable(default: Visibility) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::Boolean).default(Some(json!(default == Visibility::All)));
    let description = "True includes models without an endpoint, which cannot be called; false omits them.";
    operation::query(INCLUDE_UNCALLABLE, description, schema)
}
