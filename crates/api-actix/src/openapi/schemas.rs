//! The schemas of Decisions bodies, whose readers and writers are in the crate `wires`.
#![expect(dead_code, reason = "the schemas of bodies that are read and written as text")]

use domain::question::{MAX_LEVELS, MAX_OPTIONS};
use serde_json::Value;
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::http::envelope::ErrorBody;
use crate::http::response::Object;

/// A map of typed questions, or any other JSON value.
pub(crate) enum Questions {}

/// One typed question.
pub(crate) enum Question {}

impl PartialSchema for Questions {
    fn schema() -> RefOr<Schema> {
        let typed = question_map().description(Some("Typed questions by name, which are validated.")).build();
        let opaque = ObjectBuilder::new()
            .schema_type(SchemaType::AnyValue)
            .description(Some("Any other JSON value, which is forwarded unchanged to wires that accept it."));
        AnyOfBuilder::new().item(Schema::Object(typed)).item(opaque).into()
    }
}

impl ToSchema for Questions {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Question::name().into_owned(), Question::schema()));
    }
}

impl PartialSchema for Question {
    fn schema() -> RefOr<Schema> {
        let sides = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
            .property("true", text("The meaning of yes."))
            .property("false", text("The meaning of no."))
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .description(Some("The sides; at least one if there are no instructions."));
        let options = ObjectBuilder::new()
            .schema_type(Type::Object)
            .additional_properties(Some(text("The description of an option.")))
            .description(Some(format!("1 to {MAX_OPTIONS} options by name.")));
        let levels = ArrayBuilder::new()
            .items(text("The description of a level."))
            .min_items(Some(1))
            .max_items(Some(MAX_LEVELS))
            .description(Some("The levels, lowest first."));
        OneOfBuilder::new()
            .item(question("noul", "Asks whether something is true.").property("criteria", sides))
            .item(
                question("choice", "Asks which of several options.").property("criteria", options).required("criteria"),
            )
            .item(question("score", "Asks how much, on a scale.").property("criteria", levels).required("criteria"))
            .item(question("box", "Asks for a rectangle in an image.").required("instructions"))
            .description(Some("A typed question."))
            .into()
    }
}

impl ToSchema for Question {}

/// Returns the schema of a map of typed questions.
pub(crate) fn question_map() -> ObjectBuilder {
    let question: RefOr<Schema> = Ref::from_schema_name(Question::name()).into();
    ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(question))
}

fn question(kind: &str, description: &str) -> ObjectBuilder {
    let name = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([kind]));
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(description))
        .property("type", name)
        .required("type")
        .property("instructions", text("The question in words."))
        // Unknown members are ignored.
        .additional_properties(Some(AdditionalProperties::FreeForm(true)))
}

/// Returns the schema of a text: a string, an object or an array; null counts as absent.
fn text(description: &str) -> ObjectBuilder {
    let types = [Type::String, Type::Object, Type::Array, Type::Null];
    ObjectBuilder::new().schema_type(SchemaType::from_iter(types)).description(Some(description))
}

/// Questions about a state.
#[derive(ToSchema)]
pub(crate) struct DecisionsRequest {
    /// A model that serves Decisions requests.
    #[schema(min_length = 1)]
    model: String,
    /// A map of typed questions (`noul`, `choice`, `score`), or any other JSON value, which is forwarded unchanged.
    #[schema(value_type = Questions)]
    questions: Value,
    /// The subject of the questions. Required with typed questions, as a string, object or array.
    #[schema(required = false)]
    state: Value,
    provider: Option<ProviderPreferences>,
    /// Groups related requests; never sent to a provider.
    #[schema(max_length = 256)]
    session_id: Option<String>,
    /// Observability metadata (`trace_id`, `trace_name`, `span_name`, `generation_name`, `parent_span_id` and custom
    /// members); never sent to a provider.
    trace: Option<Object>,
    /// The end user; never sent to a provider.
    #[schema(max_length = 256)]
    user: Option<String>,
    /// Fallback models, tried in order if no endpoint of the previous models succeeds.
    #[schema(max_items = 16)]
    models: Option<Vec<String>>,
    /// True returns an error for each unanswered question instead of failing the whole request.
    partial: Option<bool>,
    /// Media, by the names that the state refers to. Only sent to endpoints with `assets` support.
    assets: Option<Object>,
    /// Images beside the state. Only sent to endpoints with `images` support.
    images: Option<Vec<Value>>,
}

/// Routing preferences. Unsupported preferences are rejected, never ignored.
#[derive(ToSchema)]
pub(crate) struct ProviderPreferences {
    /// False tries only the first provider.
    allow_fallbacks: Option<bool>,
    /// The providers to try first, in order.
    order: Option<Vec<String>>,
    /// The only allowed providers.
    only: Option<Vec<String>>,
    /// The denied providers.
    ignore: Option<Vec<String>>,
    /// True allows only providers that support every parameter of the request.
    require_parameters: Option<bool>,
    /// `allow` or `deny`; `deny` excludes providers that may store inputs.
    data_collection: Option<String>,
    /// True allows only providers with zero data retention.
    zdr: Option<bool>,
    /// The only allowed quantizations.
    quantizations: Option<Vec<String>>,
    /// `price`, `latency` or `throughput`, or an object with `by` and `partition`.
    #[schema(required = false)]
    sort: Value,
    /// The maximum prices in USD per million tokens: `prompt`, `completion`.
    max_price: Option<Object>,
    /// The preferred maximum latency in seconds: a number, or an object of percentiles.
    #[schema(required = false)]
    preferred_max_latency: Value,
    /// The preferred minimum throughput in tokens per second: a number, or an object of percentiles.
    #[schema(required = false)]
    preferred_min_throughput: Value,
}

/// The answers.
#[derive(ToSchema)]
pub(crate) struct DecisionsResponse {
    answers: Object,
    /// The model that served the request.
    model: String,
    usage: Usage,
    /// The id of the answer and of its generation record.
    id: String,
    /// The provider that served the request.
    provider: String,
    /// Of a preset with stages, by question: `outcome`, `stage`, `model` and `threshold`.
    outcomes: Option<Object>,
    /// Service metadata about the handling of the request; only on request.
    service_metadata: Option<Object>,
}

/// The usage of the request.
#[derive(ToSchema)]
pub(crate) struct Usage {
    #[schema(minimum = 0)]
    input_tokens: i64,
    #[schema(minimum = 0)]
    output_tokens: i64,
    /// The cost in USD.
    cost: f64,
}

/// A System One request with files, as a form: one JSON part and one part for each asset.
#[derive(ToSchema)]
pub(crate) struct DecisionsForm {
    /// The request, as JSON.
    request: DecisionsRequest,
    /// The content of an asset, in the part named by the asset's `part`. Any number of parts with any names.
    #[schema(required = false, rename = "asset-0", content_media_type = "application/octet-stream")]
    asset_0: String,
}

/// An error in System One's format, combined with the service's envelope.
#[derive(ToSchema)]
pub(crate) struct SystemOneError {
    /// A list of `{loc, msg, type}` for an invalid request, otherwise `{type, message}`.
    detail: Value,
    error: ErrorBody,
    /// The owner of the caller's workspace, if set.
    user_id: Option<String>,
    /// Service metadata about the handling of the request; only on request.
    service_metadata: Option<Object>,
}

/// Questions about an input, in OpenAI's format.
#[derive(ToSchema)]
pub(crate) struct OpenAiDecisionsRequest {
    #[schema(min_length = 1)]
    model: String,
    /// A string, or an array of items: messages, function and tool calls, and their outputs.
    input: Value,
    #[schema(min_items = 1)]
    questions: Vec<OpenAiQuestion>,
    /// Used as `user` if that is absent; never sent to a provider.
    #[schema(max_length = 128)]
    safety_identifier: Option<String>,
    /// Ignored.
    prompt_cache_key: Option<String>,
    /// Ignored.
    prompt_cache_options: Option<Object>,
    provider: Option<ProviderPreferences>,
}

/// A question.
#[derive(ToSchema)]
pub(crate) struct OpenAiQuestion {
    r#type: OpenAiQuestionType,
    /// The unique name. Answers to unnamed questions have a null name.
    name: Option<String>,
    /// A string, or an array of parts.
    instructions: Value,
    /// For a `choice`: 2 to 255 options.
    #[schema(min_items = 2, max_items = 255)]
    choices: Option<Vec<OpenAiChoice>>,
    /// For a `score`: 2 to 10 levels.
    #[schema(min_items = 2, max_items = 10)]
    levels: Option<Vec<OpenAiLevel>>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum OpenAiQuestionType {
    Predicate,
    Choice,
    Score,
}

/// An option of a choice.
#[derive(ToSchema)]
pub(crate) struct OpenAiChoice {
    /// A string or a boolean; `true` and `"true"` are different options.
    value: Value,
    description: Option<String>,
}

/// A level of a scale.
#[derive(ToSchema)]
pub(crate) struct OpenAiLevel {
    label: String,
    description: Option<String>,
}

/// The answers, in the order of the questions.
#[derive(ToSchema)]
pub(crate) struct OpenAiDecisionsResponse {
    model: String,
    answers: Vec<Object>,
    usage: Object,
    id: String,
    provider: String,
    /// Of a preset with stages, by question: `outcome`, `stage`, `model` and `threshold`.
    outcomes: Option<Object>,
    /// Service metadata about the handling of the request; only on request.
    service_metadata: Option<Object>,
}

/// An error in OpenAI's format.
#[derive(ToSchema)]
pub(crate) struct OpenAiError {
    error: OpenAiErrorBody,
    /// Service metadata about the handling of the request; only on request.
    service_metadata: Option<Object>,
}

/// The error.
#[derive(ToSchema)]
pub(crate) struct OpenAiErrorBody {
    message: String,
    r#type: String,
    /// The path of the error in the body.
    param: Option<String>,
    code: String,
    metadata: Object,
}

/// Questions about an input, in Gemini's format.
#[derive(ToSchema)]
pub(crate) struct GeminiDecisionsRequest {
    /// The model name, with or without the prefix `models/`.
    #[schema(min_length = 1)]
    model: String,
    /// A string, a part, or an array of parts.
    input: Value,
    /// The questions by name.
    #[schema(value_type = BTreeMap<String, Question>)]
    questions: Value,
    provider: Option<ProviderPreferences>,
}

/// The answers by question name.
#[derive(ToSchema)]
pub(crate) struct GeminiDecisionsResponse {
    answers: Object,
    /// Present if the model refused every question.
    prompt_feedback: Option<Object>,
    model: String,
    usage: Object,
    id: String,
    provider: String,
    /// Of a preset with stages, by question: `outcome`, `stage`, `model` and `threshold`.
    outcomes: Option<Object>,
    /// Service metadata about the handling of the request; only on request.
    service_metadata: Option<Object>,
}

/// An error in Gemini's format.
#[derive(ToSchema)]
pub(crate) struct GeminiError {
    error: GeminiErrorBody,
    /// Service metadata about the handling of the request; only on request.
    service_metadata: Option<Object>,
}

/// The error.
#[derive(ToSchema)]
pub(crate) struct GeminiErrorBody {
    /// Equals the HTTP status.
    code: i32,
    message: String,
    status: String,
    details: Vec<Object>,
}

/// Questions about an input, in SGLang's format.
#[derive(ToSchema)]
pub(crate) struct SglangDecisionsRequest {
    #[schema(min_length = 1)]
    model: String,
    /// A string, object or array.
    input: Value,
    images: Option<Vec<Value>>,
    /// The questions: `choice`, `score` or `yes_no`, with `id` and `question`.
    #[schema(min_items = 1, value_type = Vec<Object>)]
    questions: Vec<Value>,
    provider: Option<ProviderPreferences>,
}

/// The answers by question id.
#[derive(ToSchema)]
pub(crate) struct SglangDecisionsResponse {
    #[schema(pattern = "^decisions$")]
    object: String,
    model: String,
    prompt_format_version: i32,
    answers: Object,
    usage: Object,
    id: String,
    provider: String,
    /// Of a preset with stages, by question: `outcome`, `stage`, `model` and `threshold`.
    outcomes: Option<Object>,
    /// Service metadata about the handling of the request; only on request.
    service_metadata: Option<Object>,
}

/// An error in SGLang's format.
#[derive(ToSchema)]
pub(crate) struct SglangError {
    #[schema(pattern = "^error$")]
    object: String,
    message: String,
    r#type: String,
    param: Option<String>,
    /// Equals the HTTP status.
    code: i32,
    metadata: Object,
    /// Service metadata about the handling of the request; only on request.
    service_metadata: Option<Object>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use domain::question::{MAX_LEVELS, MAX_OPTIONS};
    use openapi_check::Schemas;
    use serde_json::{Value, json};
    use wires::client::{ALL_MEMBERS, SYSTEM_ONE_MEMBERS};

    use crate::app::openapi_document;

    fn described<T: ToSchema>() -> BTreeSet<String> {
        let schema = serde_json::to_value(T::schema()).unwrap();
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn described_members_are_those_that_are_read() {
        let names = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|&name| name.to_owned()).collect() };
        assert_eq!(described::<DecisionsRequest>(), names(&SYSTEM_ONE_MEMBERS));
        let read = names(&ALL_MEMBERS);
        let mut openai = described::<OpenAiDecisionsRequest>();
        // Described as ignored.
        assert!(openai.remove("prompt_cache_key") && openai.remove("prompt_cache_options"));
        for described in [openai, described::<GeminiDecisionsRequest>(), described::<SglangDecisionsRequest>()] {
            assert!(described.is_subset(&read), "{described:?}");
        }
    }

    #[test]
    fn described_limits_are_those_of_the_canonical_form() {
        let question = serde_json::to_value(OpenAiQuestion::schema()).unwrap();
        let most = |member: &str| question["properties"][member]["maxItems"].as_u64();
        assert_eq!((most("choices"), most("levels")), (Some(MAX_OPTIONS as u64), Some(MAX_LEVELS as u64)));
    }

    #[test]
    fn question_schema_accepts_what_the_parser_accepts() {
        let schemas = Schemas::new(openapi_document("/api/v1")).unwrap();
        let violations = |schema: &str, value: &Value| {
            schemas.violations(&json!({"$ref": format!("#/components/schemas/{schema}")}), value)
        };
        for (question, is_valid) in [
            (json!({"type": "noul", "instructions": "?"}), true),
            (json!({"type": "noul", "criteria": {"true": ["a", 1]}, "later": 1}), true),
            (json!({"type": "choice", "criteria": {"a": null, "b": {"c": 1}}}), true),
            (json!({"type": "score", "instructions": {"task": "?"}, "criteria": ["a", {"b": 1}]}), true),
            (json!({"type": "box", "instructions": "?"}), true),
            (json!({"type": "noul", "instructions": 7}), false),
            (json!({"type": "choice"}), false),
            (json!({"type": "choice", "criteria": ["a"]}), false),
            (json!({"type": "score", "criteria": {"a": null}}), false),
            (json!({"type": "score", "criteria": []}), false),
            (json!({"type": "rank", "instructions": "?"}), false),
            (json!({"instructions": "?"}), false),
        ] {
            assert_eq!(violations("Question", &question).is_empty(), is_valid, "{question}");
        }
        for opaque in [json!("?"), json!(["a"]), json!({"a": 1}), json!({"a": {"type": "noul", "instructions": "?"}})] {
            assert_eq!(violations("Questions", &opaque), [""; 0], "{opaque}");
        }
    }
}
