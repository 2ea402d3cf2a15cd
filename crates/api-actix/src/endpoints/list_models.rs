//! `GET /models`: the catalogue, in a format for several kinds of clients.

use std::fmt::Write;

use actix_web::HttpRequest;
use domain::model::{
    DefaultModality, FilterParameter, InvalidModelSort, ListModelsError, ModelList, ModelListRequest, ModelSort, Page,
    Visibility,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use utoipa::openapi::path::Parameter;

use super::model_filters;
use crate::endpoints::prelude::*;
use crate::http::error::ErrorFormat;
use crate::http::operation::Operation;
use crate::http::route_parameters::query;
use crate::rendered_catalogue::schema::ModelListResponse;

/// Vendor clients call both paths.
pub(crate) const DECISION_MODELS: Route =
    Route::memory(Get, "/v1/models", tags::MODELS, |call| handle(call, DefaultModality::Decisions))
        .operation("listDecisionModels", "List models")
        .description(
            "`data` contains the models that match all filters and have an endpoint. Unknown parameters are ignored. \
             `models` contains the decision models with an endpoint, independent of the filters, in the format of \
             System One's clients. Without `offset` and `limit` the list is complete.",
        )
        .any_query()
        .headers(&[IF_NONE_MATCH])
        .answer(BodySchema::of::<ModelListResponse>, "The models")
        .also(&[400])
        .complete(|operation| describe_list(operation, DefaultModality::Decisions))
        .outside_base()
        .for_vendor_clients(ErrorFormat::Contract);

pub(crate) const MODELS: Route =
    Route::memory(Get, "/models", tags::MODELS, |call| handle(call, DefaultModality::Text))
        .operation("listModels", "List models")
        .description(
            "`data` contains the models that match all filters; `GET /models/count` counts the same models. An unknown \
             parameter is 400. `models` contains the decision models with an endpoint, independent of the filters, in \
             the format of System One's clients. Without `offset` and `limit` the list is complete.",
        )
        .any_query()
        .headers(&[IF_NONE_MATCH])
        .answer(BodySchema::of::<ModelListResponse>, "The models")
        .also(&[400])
        .complete(|operation| describe_list(operation, DefaultModality::Text))
        .for_vendor_clients(ErrorFormat::Contract);

/// The parameter that adds models without an endpoint to a list.
const INCLUDE_UNCALLABLE: &str = "include_uncallable";
const SORT: &str = "sort";
/// The parameters besides the filters.
const PARAMETERS: [&str; 4] = ["offset", "limit", SORT, INCLUDE_UNCALLABLE];

impl From<ListModelsError> for ApiError {
    fn from(error: ListModelsError) -> Self {
        Self::from_kind(error.kind()).message(error.to_string())
    }
}

impl From<InvalidModelSort> for ApiError {
    fn from(error: InvalidModelSort) -> Self {
        Self::invalid(error.to_string())
    }
}

fn handle(call: &Call<'_>, default: DefaultModality) -> Outcome {
    let parameters = ListParameters::read(call.request.query_string(), default)?;
    let list_models = Arc::clone(&call.routed().list_models);
    let list = list_models.execute(&parameters.request);
    let next = next_page(call.request, default_visibility(default), &list)?;
    Ok(call.gateway.rendered.list(&list, &list_models, parameters.models(), next.as_deref()).respond(call.request))
}

/// The parameters of a list.
pub(super) struct ListParameters {
    pub(super) request: ModelListRequest,
    include_uncallable: Option<bool>,
}

impl ListParameters {
    /// Reads the parameters.
    ///
    /// # Errors
    /// 400 that names an unknown, invalid or repeated parameter.
    pub(super) fn read(query: &str, default: DefaultModality) -> Result<Self, ApiError> {
        check_names(query, default)?;
        let include_uncallable = parameters::switch(query, INCLUDE_UNCALLABLE)?;
        let request = ModelListRequest {
            filter: model_filters::read(query, default)?,
            visibility: include_uncallable.map_or(default_visibility(default), visibility_of),
            sort: parameters::value(query, SORT)?.as_deref().map(str::parse::<ModelSort>).transpose()?,
            page: Page::of(parameters::count(query, "offset")?, parameters::count(query, "limit")?)?,
        };
        Ok(Self { request, include_uncallable })
    }

    /// Returns the visibility of the decision models beside the list: System One's clients call every name of theirs.
    pub(super) fn models(&self) -> Visibility {
        self.include_uncallable.map_or(Visibility::Callable, visibility_of)
    }
}

/// Checks the names of the parameters. The vendors' clients add parameters of their own to their list.
pub(super) fn check_names(query: &str, default: DefaultModality) -> Result<(), ApiError> {
    match default {
        DefaultModality::Text => model_filters::check_names(query, &PARAMETERS),
        DefaultModality::Decisions => model_filters::reject_unsupported(query),
    }
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

/// Returns the path and query of the next page, with the filters and the order of this one. `usual` are the models that
/// the path shows by default.
pub(super) fn next_page(
    request: &HttpRequest,
    usual: Visibility,
    list: &ModelList,
) -> Result<Option<String>, ApiError> {
    let Some((offset, limit)) = list.next else { return Ok(None) };
    let mut next = format!("{}?limit={limit}&offset={offset}", request.path());
    for name in FilterParameter::ALL.map(FilterParameter::as_str).into_iter().chain([SORT]) {
        if let Some(value) = parameters::value(request.query_string(), name)? {
            // Writing to a string cannot fail.
            let _ = write!(next, "&{name}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC));
        }
    }
    if list.visibility != usual {
        let _ = write!(next, "&{INCLUDE_UNCALLABLE}={}", list.visibility == Visibility::All);
    }
    Ok(Some(next))
}

/// Describes filters, order and pages.
pub(super) fn describe_list(operation: Operation, default: DefaultModality) -> Operation {
    let limit = "The maximum number of models on a page; 500 if only `offset` is given.";
    let orders = text().enum_values(Some(ModelSort::ALL.map(ModelSort::as_str)));
    let sort = "The order of the list; the catalogue's by default. Equal models are in the order of their ids, models \
                without a fixed price after the others.";
    model_filters::describe(operation, default)
        .parameter(query(SORT, sort, orders))
        .parameter(query("offset", "The number of models to skip.", number(0, None)))
        .parameter(query("limit", limit, number(1, Some(Page::MAX_LIMIT))))
        .parameter(include_uncallable(default_visibility(default)))
}

/// Returns the parameter that adds models without an endpoint.
pub(super) fn include_uncallable(default: Visibility) -> Parameter {
    let schema = flag().default(Some(json!(default == Visibility::All)));
    let description = "True includes models without an endpoint, which cannot be called; false omits them.";
    query(INCLUDE_UNCALLABLE, description, schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn described_parameters_are_the_known_ones() {
        let operation = describe_list(Operation::new("", ""), DefaultModality::Text);
        parameters::assert_known(operation, |query| check_names(query, DefaultModality::Text));
    }
}
