//! The operations that read lists and records.

use serde_json::json;
use utoipa::openapi::Required;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use domain::model::{DefaultModality, Page};

use super::operations::{COMMON_STATUSES, if_none_match, path, responses};

pub(super) fn list_models(default: DefaultModality) -> OperationBuilder {
    let (id, modality) = match default {
        DefaultModality::Text => ("listModels", "text"),
        DefaultModality::Decisions => ("listDecisionModels", "decisions"),
    };
    let number = |least: usize, most: Option<usize>| {
        ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least)).maximum(most)
    };
    OperationBuilder::new()
        .operation_id(Some(id))
        .summary(Some("List models"))
        .description(Some(
            "`data` contains the models that match the filter; `GET /models/count` counts the same models. `models` \
             contains all decision models, independent of the filter, in the format of System One's clients. Without \
             `offset` and `limit` the list is complete. Unknown parameters are ignored.",
        ))
        .parameter(output_modalities(modality))
        .parameter(query("offset", "The number of models to skip.", number(0, None)))
        .parameter(query(
            "limit",
            "The maximum number of models on a page; 500 if only `offset` is given.",
            number(1, Some(Page::MAX_LIMIT)),
        ))
        .parameter(if_none_match())
        .responses(responses("The models", "ModelListResponse", &[304, 400], &COMMON_STATUSES))
}

/// Returns the modality filter of lists and counts.
pub(super) fn output_modalities(default: &str) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String).default(Some(json!(default)));
    let description = "Comma-separated list of text, image, embeddings, audio, video, rerank, decisions, speech, \
                       transcription; `all` includes all models.";
    query("output_modalities", description, schema)
}

pub(super) fn list_model_endpoints() -> OperationBuilder {
    OperationBuilder::new()
        .operation_id(Some("listModelEndpoints"))
        .summary(Some("List the endpoints of a model"))
        .description(Some(
            "The configured endpoints of the model, in configuration order, and their current health. Names resolve \
             as in `GET /model/{author}/{slug}`.",
        ))
        .parameter(path("author", "The author or organisation of the model"))
        .parameter(path("slug", "The model's slug, optionally followed by a colon and a variant"))
        .parameter(if_none_match())
        .responses(responses("The endpoints", "ModelEndpointsResponse", &[304, 404], &COMMON_STATUSES))
}

pub(super) fn list_providers() -> OperationBuilder {
    OperationBuilder::new()
        .operation_id(Some("listProviders"))
        .summary(Some("List the providers"))
        .description(Some("The providers with at least one configured endpoint, including the sandbox."))
        .parameter(if_none_match())
        .responses(responses("The providers", "ProvidersResponse", &[304], &COMMON_STATUSES))
}

pub(super) fn get_generation() -> OperationBuilder {
    let id = ParameterBuilder::new()
        .name("id")
        .parameter_in(ParameterIn::Query)
        .required(Required::True)
        .description(Some("The id of the answer, or the header `X-Generation-Id` of an error response."))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).pattern(Some("^gen-dec-[A-Za-z0-9_-]{1,64}$"))));
    OperationBuilder::new()
        .operation_id(Some("getGeneration"))
        .summary(Some("Get the record of a Decisions request"))
        .description(Some(
            "An inference key reads the records of its workspace, a management key those of all workspaces. Members \
             outside this schema are always null.",
        ))
        .parameter(id)
        .responses(responses("The record", "GenerationResponse", &[400, 404], &COMMON_STATUSES))
}

pub(super) fn query(name: &str, description: &str, schema: ObjectBuilder) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}
