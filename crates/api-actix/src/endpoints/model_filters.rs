//! The query parameters that filter models, of lists and of the count.

use domain::model::{DefaultModality, FilterParameter, InvalidModelFilter, ModelFilter};
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::endpoints::prelude::*;
use crate::http::operation::Operation;
use crate::http::route_parameters::query;

/// Filters of published clients for which a catalogue has no data.
const UNSUPPORTED: [&str; 20] = [
    "category",
    "supported_parameters",
    "arch",
    "distillable",
    "zdr",
    "region",
    "min_price",
    "min_output_price",
    "min_age_days",
    "max_age_days",
    "min_intelligence_index",
    "max_intelligence_index",
    "min_coding_index",
    "max_coding_index",
    "min_agentic_index",
    "max_agentic_index",
    "min_tool_success_rate",
    "max_tool_success_rate",
    "use_rss",
    "use_rss_chat_links",
];

impl From<InvalidModelFilter> for ApiError {
    fn from(error: InvalidModelFilter) -> Self {
        Self::from_kind(error.kind()).message(error.to_string())
    }
}

/// Checks that the query has no parameters besides the filters and `further`.
///
/// # Errors
/// 400 that names the parameter.
pub(super) fn check_names(query: &str, further: &[&'static str]) -> Result<(), ApiError> {
    if query.is_empty() {
        return Ok(());
    }
    reject_unsupported(query)?;
    let filters = FilterParameter::ALL.map(FilterParameter::as_str).into_iter();
    parameters::check_names(query, filters.chain(further.iter().copied()))
}

/// Checks that the query has no filter without data: an ignored one would return the whole catalogue.
///
/// # Errors
/// 400 that names the filter.
pub(super) fn reject_unsupported(query: &str) -> Result<(), ApiError> {
    parameters::reject_names(query, &UNSUPPORTED)
}

/// Reads the filters.
///
/// # Errors
/// 400 that names an invalid or repeated filter.
pub(super) fn read(query: &str, default: DefaultModality) -> Result<ModelFilter, ApiError> {
    let mut filter = ModelFilter::of(default);
    if !query.is_empty() {
        for parameter in FilterParameter::ALL {
            if let Some(value) = parameters::value(query, parameter.as_str())? {
                filter.set(parameter, &value)?;
            }
        }
    }
    Ok(filter)
}

/// Describes the filters.
pub(super) fn describe(operation: Operation, default: DefaultModality) -> Operation {
    FilterParameter::ALL
        .into_iter()
        .map(|parameter| describe_one(parameter, default))
        .fold(operation, Operation::parameter)
}

fn describe_one(parameter: FilterParameter, default: DefaultModality) -> Parameter {
    let of_type = |schema: Type| ObjectBuilder::new().schema_type(schema);
    let price = || of_type(Type::Number).minimum(Some(0));
    let (description, schema) = match parameter {
        FilterParameter::Text => {
            let text = of_type(Type::String).min_length(Some(1)).max_length(Some(256));
            ("Text in the id, the canonical slug or the name, in any case.", text)
        }
        FilterParameter::InputModalities => (
            "Comma-separated list of text, image, file, audio, video: models that accept one of them.",
            of_type(Type::String),
        ),
        FilterParameter::OutputModalities => {
            let modality = match default {
                DefaultModality::Text => "text",
                DefaultModality::Decisions => "decisions",
            };
            (
                "Comma-separated list of text, image, embeddings, audio, video, rerank, decisions, speech, \
                 transcription; `all` includes all models.",
                of_type(Type::String).default(Some(json!(modality))),
            )
        }
        FilterParameter::ModelAuthors => {
            ("Comma-separated list of authors: models of one of them.", of_type(Type::String))
        }
        FilterParameter::Providers => (
            "Comma-separated list of slugs of providers: models for which one of them has an endpoint.",
            of_type(Type::String),
        ),
        FilterParameter::Context => ("The smallest context window in tokens.", of_type(Type::Integer).minimum(Some(0))),
        FilterParameter::MaxPrice => {
            ("The highest price of input tokens in USD per million. Excludes models without a fixed price.", price())
        }
        FilterParameter::MaxOutputPrice => {
            ("The highest price of output tokens in USD per million. Excludes models without a fixed price.", price())
        }
    };
    query(parameter.as_str(), description, schema)
}
