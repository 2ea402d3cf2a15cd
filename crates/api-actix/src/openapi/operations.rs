//! The parts of OpenAPI operations: parameters, request bodies, responses, tags and examples. Each endpoint describes its
//! own.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::example::{Example, ExampleBuilder};
use utoipa::openapi::path::{Operation as Description, OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::response::{Response, ResponseBuilder, ResponsesBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Ref, Required};

use crate::http::routes::Route;
use crate::rendered_openapi::{SANDBOX_MODEL, SANDBOX_VARIANT};

pub(crate) const JSON: &str = "application/json";

/// The security scheme of every operation that needs a key.
pub(super) const BEARER: &str = "bearer";
/// Headers that the vendor routes accept in place of the bearer token.
pub(super) const KEY_HEADERS: [&str; 3] = ["x-goog-api-key", "api-key", "x-api-key"];

/// The statuses of every operation.
pub(crate) const COMMON_STATUSES: [u16; 7] = [401, 403, 405, 413, 429, 500, 503];

/// Describes a route: what its endpoint says, with what is common to all.
pub(super) fn describe(route: &Route) -> Description {
    let builder = (route.describe)().tags(Some([route.tag]));
    if route.is_open() {
        // An empty list declares that no key is needed.
        return builder.securities(Some([])).build();
    }
    let vendors = KEY_HEADERS.iter().filter(|_| route.is_for_vendor_clients());
    let schemes = std::iter::once(BEARER).chain(vendors.copied());
    builder
        .securities(Some(schemes.map(|scheme| SecurityRequirement::new::<_, [&str; 0], &str>(scheme, []))))
        .parameter(header(
            "x-request-id",
            "Names the request in the answer and in logs; made up where it is absent.",
            128,
        ))
        .parameter(header(
            "x-tollgate-metadata",
            "`enabled` adds service metadata about the handling of the request.",
            16,
        ))
        .build()
}

/// Begins the description of an operation.
pub(crate) fn operation(id: &str, summary: &str) -> OperationBuilder {
    OperationBuilder::new().operation_id(Some(id)).summary(Some(summary))
}

/// Begins the description of an operation for management keys.
pub(crate) fn management_operation(id: &str, summary: &str, description: &str) -> OperationBuilder {
    operation(id, summary).description(Some(format!("{description} Needs a management key.")))
}

/// Returns the responses of an operation that needs a key; `own` are its error statuses beside the common ones.
pub(crate) fn responses(description: &str, schema: &str, own: &[u16]) -> ResponsesBuilder {
    success_and_errors("200", description, schema, own, &COMMON_STATUSES)
}

/// Returns the responses of an operation that creates a record; see [`responses`].
pub(crate) fn created_responses(description: &str, schema: &str, own: &[u16]) -> ResponsesBuilder {
    success_and_errors("201", description, schema, own, &COMMON_STATUSES)
}

/// Returns the responses of an operation that needs no key; see [`responses`].
pub(crate) fn open_responses(description: &str, schema: &str, own: &[u16]) -> ResponsesBuilder {
    success_and_errors("200", description, schema, own, &[405, 500])
}

fn success_and_errors(status: &str, description: &str, schema: &str, own: &[u16], common: &[u16]) -> ResponsesBuilder {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(schema)))
        .examples_from_iter(answer_example(schema))
        .build();
    let found = ResponseBuilder::new().description(description).content(JSON, content).build();
    add_error_responses(add_error_responses(ResponsesBuilder::new().response(status, found), own), common)
}

/// Returns the responses of an open operation that answers with text of a media type.
pub(crate) fn text_responses(description: &str, media_type: &str, schema: Type, example: Value) -> ResponsesBuilder {
    let content = ContentBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(schema)))
        .examples_from_iter(named_example(example))
        .build();
    let found = ResponseBuilder::new().description(description).content(media_type, content).build();
    add_error_responses(ResponsesBuilder::new().response("200", found), &[405, 500])
}

fn add_error_responses(builder: ResponsesBuilder, statuses: &[u16]) -> ResponsesBuilder {
    statuses.iter().fold(builder, |builder, status| builder.response(status.to_string(), error_response(*status)))
}

fn error_response(status: u16) -> Response {
    let builder = ResponseBuilder::new().description(status_description(status));
    if status == 304 {
        return builder.build();
    }
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorEnvelope"))).build();
    builder.content(JSON, content).build()
}

pub(crate) fn status_description(status: u16) -> &'static str {
    match status {
        304 => "The client's copy is current",
        400 => "Invalid parameters or malformed input",
        401 => "Authentication required or credentials invalid",
        402 => "Insufficient credits",
        403 => "Authenticated, but insufficient permissions",
        404 => "The resource does not exist",
        405 => "The path does not support this method",
        409 => "Concurrent change or conflicting state",
        413 => "Payload too large",
        415 => "Unsupported Content-Encoding",
        422 => "Invalid request",
        429 => "Rate limit exceeded",
        502 => "Provider failure",
        503 => "Temporarily unavailable",
        524 => "Timeout",
        529 => "Provider overloaded",
        _ => "Unexpected server error",
    }
}

pub(crate) fn body(schema: &str) -> RequestBody {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
    RequestBodyBuilder::new().content(JSON, content).required(Some(Required::True)).build()
}

pub(crate) fn example_body(schema: &str, example: Value) -> RequestBody {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(schema)))
        .examples_from_iter(named_example(example))
        .build();
    RequestBodyBuilder::new().content(JSON, content).required(Some(Required::True)).build()
}

pub(crate) fn path(name: &str, description: &str) -> Parameter {
    path_parameter(name, description).build()
}

pub(crate) fn example_path(name: &str, description: &str, example: &str) -> Parameter {
    path_parameter(name, description).example(Some(Value::from(example))).build()
}

fn path_parameter(name: &str, description: &str) -> ParameterBuilder {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(schema))
}

pub(crate) fn header(name: &str, description: &str, max_length: usize) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String).max_length(Some(max_length));
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

pub(crate) fn if_none_match() -> Parameter {
    header("If-None-Match", "Entity tags of cached responses.", 4_096)
}

pub(crate) fn query(name: &str, description: &str, schema: ObjectBuilder) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

/// The tags, which group the operations in viewers and generated clients.
pub(crate) mod tags {
    use utoipa::openapi::tag::{Tag, TagBuilder};

    pub(crate) const DECISIONS: &str = "Decisions";
    pub(crate) const FILES: &str = "Files";
    pub(crate) const GUARDRAILS: &str = "Guardrails";
    pub(crate) const KEYS: &str = "API keys";
    pub(crate) const MODELS: &str = "Models and providers";
    pub(crate) const USAGE: &str = "Usage";
    pub(crate) const DESTINATIONS: &str = "Trace destinations";
    pub(crate) const SERVICE: &str = "Service";

    /// Returns all tags, in the order in which viewers show them.
    pub(in crate::openapi) fn all() -> Vec<Tag> {
        [
            (DECISIONS, "Ask a model typed questions about a state."),
            (FILES, "Copy files of a container into the workspace's documents."),
            (GUARDRAILS, "Create rules for requests and assign keys to them. They need a management key."),
            (MODELS, "Read models, their endpoints and providers with their health."),
            (USAGE, "Read the usage record of a request."),
            (KEYS, "Replace the secret of a key. Other changes of keys: `tollgate key`."),
            (DESTINATIONS, "Manage the destinations of traces. They need a management key."),
            (SERVICE, "Health and documentation, without a key."),
        ]
        .map(|(name, description)| TagBuilder::new().name(name).description(Some(description)).build())
        .into()
    }
}

/// The key of every example in `examples`. Some viewers ignore a single `example`.
const NAME: &str = "sandbox";

/// The answers by the names of their schemas.
static ANSWERS: LazyLock<HashMap<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("answers.json")).unwrap_or_default());

/// Returns the `examples` of a body with one value.
pub(crate) fn named_example(value: Value) -> [(&'static str, Example); 1] {
    [(NAME, ExampleBuilder::new().summary("An example").value(Some(value)).build())]
}

/// Returns the `examples` of a response by the name of its schema. A test checks that every response has one.
pub(crate) fn answer_example(schema: &str) -> Vec<(&'static str, Example)> {
    ANSWERS.get(schema).map(|value| named_example(value.clone())).into_iter().flatten().collect()
}

/// `out/report.csv`, as a file id.
pub(crate) const FILE_ID: &str = "cfile_b3V0L3JlcG9ydC5jc3Y";

pub(crate) fn decision_request() -> Value {
    json!({
        "model": SANDBOX_VARIANT,
        "state": "The blender smokes. I want my money back, and I am furious.",
        "questions": {
            "refund": {"type": "noul", "instructions": "Does the writer want money back?"},
            "queue": {
                "type": "choice",
                "instructions": "Who handles it?",
                "criteria": {"billing": "money back", "hardware": "a device that smokes", "other": null}
            },
            "heat": {"type": "score", "instructions": "How upset?", "criteria": ["calm", "annoyed", "furious"]}
        }
    })
}

pub(crate) fn assignment() -> Value {
    json!({"key_hashes": ["f30ba15c3e3465cbeb8798a26d28f2adb7f7c069bc4d40a0e2e625533e6aee56"]})
}

pub(crate) fn gemini_request() -> Value {
    json!({
        "model": SANDBOX_MODEL,
        "input": "The blender smokes. I want my money back, and I am furious.",
        "questions": {"refund": {"type": "noul", "instructions": "Does the writer want money back?"}}
    })
}
