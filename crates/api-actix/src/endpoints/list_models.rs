//! `GET /models`: the catalogue, in a format for several kinds of clients.

use std::fmt::Write;

use actix_web::HttpRequest;
use domain::model::{
    DefaultModality, FilterParameter, FindCallableModelError, GetModelError, InvalidModelSort, InvalidPageLimit,
    ModelList, ModelListRequest, ModelSort, Page, Visibility,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use utoipa::openapi::path::Parameter;

use super::model_filters;
use crate::endpoints::prelude::*;
use crate::http::error::ErrorFormat;
use crate::http::operation::Operation;
use crate::http::route_parameters::query;
use crate::rendered_catalogue::schema;
use crate::rendered_catalogue::schema::{ListedModel, ModelListResponse};

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

impl From<InvalidPageLimit> for ApiError {
    fn from(error: InvalidPageLimit) -> Self {
        Self::invalid(error.to_string())
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

pub(crate) const COUNT: Route = Route::memory(Get, "/models/count", tags::MODELS, handle_count)
    .operation("countModels", "Get the total count of available models")
    .description("Counts the models of `GET /models` with the same filters, all of which must hold.")
    .any_query()
    .headers(&[IF_NONE_MATCH])
    .answer(|| BodySchema::data::<CountView>("CountResponse", "The model count."), "The count")
    .also(&[400])
    .complete(|operation| model_filters::describe(operation, DefaultModality::Text));

/// The number of models.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelCount)]
struct CountView {
    #[schema(value_type = u64)]
    count: usize,
}

fn handle_count(call: &Call<'_>) -> Outcome {
    let query = call.request.query_string();
    model_filters::check_names(query, &[])?;
    let filter = model_filters::read(query, DefaultModality::Text)?;
    let count = call.routed().count_models.execute(&filter);
    Ok(TaggedBody::json(&Data { data: CountView { count } })?.respond(call.request))
}

pub(crate) const PERMITTED: Route = Route::any_key(Get, "/models/user", tags::MODELS, handler!(handle_permitted))
    .operation("listModelsUser", "List the models that the key may use")
    .description(
        "The models of `GET /models` that the guardrails of the workspace and of the key permit: one of their \
         endpoints, or their name if they have none. An alias follows its target. A management key, which has no \
         guardrail, lists all. Filters, order, pages and body are those of `GET /models`; `models` has permitted \
         models only.",
    )
    .any_query()
    .headers(&[IF_NONE_MATCH])
    .answer(BodySchema::of::<ModelListResponse>, "The models")
    .also(&[400])
    .complete(|operation| describe_list(operation, DefaultModality::Text));

async fn handle_permitted(call: &Call<'_>, caller: &Principal) -> Outcome {
    let parameters = ListParameters::read(call.request.query_string(), DefaultModality::Text)?;
    let routed = call.routed();
    let permitted = routed.list_permitted_models.execute(caller, &parameters.request, parameters.models());
    let permitted = permitted.await?;
    let next = next_page(call.request, Visibility::All, &permitted.list)?;
    Ok(call.gateway.rendered.permitted(&permitted, next.as_deref()).respond(call.request))
}

pub(crate) const ENTRY: Route = entry_route("/models/{model}", "retrieveModel");
pub(crate) const VENDOR_ENTRY: Route =
    entry_route("/v1/models/{model}", "retrieveModelOutsideTheBasePath").outside_base();
pub(crate) const VENDOR_ENTRY_BY_SLUG: Route =
    entry_route("/v1/models/{author}/{slug}", "retrieveModelBySlug").outside_base();

const fn entry_route(pattern: &'static str, id: &'static str) -> Route {
    Route::memory(Get, pattern, tags::MODELS, handle_entry)
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
fn handle_entry(call: &Call<'_>) -> Outcome {
    let visibility = visibility(call.request.query_string())?;
    let segments = call.parameters.into_iter().filter(|segment| !segment.is_empty());
    // A segment that is not valid UTF-8 names no model.
    let decoded: Option<Vec<_>> = segments.map(parameters::segment).collect();
    let name = decoded.ok_or_else(ApiError::not_found)?.join("/");
    let (snapshot, found) = call.routed().find_callable_model.execute(&name, visibility)?;
    let entry = call.gateway.rendered.entry(&snapshot, found.index).ok_or_else(ApiError::not_found)?;
    Ok(entry.respond(call.request))
}

pub(crate) const MODEL: Route = Route::memory(Get, "/model/{author}/{slug}", tags::MODELS, handle_model)
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

fn handle_model(call: &Call<'_>) -> Outcome {
    let [author, slug, _] = call.parameters.map(parameters::segment);
    // A segment that is not valid UTF-8 names no model.
    let (author, slug) = author.zip(slug).ok_or_else(ApiError::not_found)?;
    let (snapshot, resolved) = call.gateway.services.get_model.execute(&author, &slug)?;
    let row = call.gateway.rendered.row(&snapshot, resolved.index).ok_or_else(ApiError::not_found)?;
    Ok(row.respond(call.request))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::operation::Operation;

    #[test]
    fn described_parameters_are_the_known_ones() {
        let operation = describe_list(Operation::new("", ""), DefaultModality::Text);
        parameters::assert_known(operation, |query| check_names(query, DefaultModality::Text));
    }

    #[test]
    fn described_parameters_of_the_count_are_the_known_ones() {
        parameters::assert_known(model_filters::describe(Operation::new("", ""), DefaultModality::Text), |query| {
            model_filters::check_names(query, &[])
        });
    }

    #[test]
    fn described_parameters_of_permitted_models_are_the_known_ones() {
        let check = |query: &str| check_names(query, DefaultModality::Text);
        parameters::assert_known(describe_list(Operation::new("", ""), DefaultModality::Text), check);
    }
}
