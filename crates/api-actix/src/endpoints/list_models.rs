//! `GET /models`: the catalogue, in a format for several kinds of clients.

use std::fmt::Write;

use actix_web::HttpResponse;
use domain::model::{DefaultModality, ListModelsError, ModelList, Page};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::count_models::output_modalities;
use crate::http::edge::Call;
use crate::http::error::ApiError;
use crate::http::format::ErrorFormat;
use crate::http::query;
use crate::http::routes::{Handler, KeyedHandler, Method, Route};
use crate::openapi::operations::{self, COMMON_STATUSES, if_none_match, operation, responses};
use crate::openapi::tags;

/// Vendor clients call both paths.
pub(crate) const DECISION_MODELS: Route = Route::new(
    Method::Get,
    "/v1/models",
    Handler::Keyed(KeyedHandler::Memory(|call| handle(call, DefaultModality::Decisions))),
    tags::MODELS,
    || describe("listDecisionModels", "decisions"),
)
.outside_base()
.for_vendor_clients(ErrorFormat::Contract);

pub(crate) const MODELS: Route = Route::new(
    Method::Get,
    "/models",
    Handler::Keyed(KeyedHandler::Memory(|call| handle(call, DefaultModality::Text))),
    tags::MODELS,
    || describe("listModels", "text"),
)
.for_vendor_clients(ErrorFormat::Contract);

const FILTER: &str = "output_modalities";

impl From<ListModelsError> for ApiError {
    fn from(error: ListModelsError) -> Self {
        Self::from_kind(error.kind()).message(error.to_string())
    }
}

fn handle(call: &Call<'_>, default: DefaultModality) -> Result<HttpResponse, ApiError> {
    let query = call.request.query_string();
    let filter = query::value(query, FILTER)?;
    let page = Page::of(query::count(query, "offset")?, query::count(query, "limit")?)?;
    let list = call.gateway.services.list_models.execute(filter.as_deref(), default, page)?;
    let next = next_page(call.request.path(), filter.as_deref(), &list);
    Ok(call.gateway.rendered.list(&list, next.as_deref()).respond(call.request))
}

/// Returns the path and query of the next page.
fn next_page(path: &str, filter: Option<&str>, list: &ModelList) -> Option<String> {
    let (offset, limit) = list.next?;
    let mut next = format!("{path}?limit={limit}&offset={offset}");
    if let Some(filter) = filter {
        // Writing to a string cannot fail.
        let _ = write!(next, "&{FILTER}={}", utf8_percent_encode(filter, NON_ALPHANUMERIC));
    }
    Some(next)
}

fn describe(id: &str, modality: &str) -> OperationBuilder {
    let number = |least: usize, most: Option<usize>| {
        ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least)).maximum(most)
    };
    let limit = "The maximum number of models on a page; 500 if only `offset` is given.";
    operation(id, "List models")
        .description(Some(
            "`data` contains the models that match the filter; `GET /models/count` counts the same models. `models` \
             contains all decision models, independent of the filter, in the format of System One's clients. Without \
             `offset` and `limit` the list is complete. Unknown parameters are ignored.",
        ))
        .parameter(output_modalities(modality))
        .parameter(operations::query("offset", "The number of models to skip.", number(0, None)))
        .parameter(operations::query("limit", limit, number(1, Some(Page::MAX_LIMIT))))
        .parameter(if_none_match())
        .responses(responses("The models", "ModelListResponse", &[304, 400], &COMMON_STATUSES))
}
