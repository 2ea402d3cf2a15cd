//! The description of an operation for the OpenAPI document: bodies with their schemas, responses, tag and examples.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::content::{Content, ContentBuilder};
use utoipa::openapi::example::{Example, ExampleBuilder};
use utoipa::openapi::path::{OperationBuilder, Parameter};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr, Required};

use super::download::OCTET_STREAM;
use super::export::{CSV, JSON_LINES};
use super::response::{CursorPage, Data, Page};
use crate::rendered_openapi::{SANDBOX_MODEL, SANDBOX_VARIANT};

pub(crate) const JSON: &str = "application/json";

/// The statuses of every operation that needs a key.
pub(crate) const COMMON_STATUSES: [u16; 7] = [401, 403, 405, 413, 429, 500, 503];
/// The statuses of every operation that needs no key.
pub(crate) const OPEN_STATUSES: [u16; 2] = [405, 500];

/// Schemas, each with its name. One that several bodies use may occur several times.
pub(crate) type Schemas = Vec<(String, RefOr<Schema>)>;

/// The schema of a body, with those that it refers to.
pub(crate) struct BodySchema {
    pub(crate) name: String,
    pub(crate) schemas: Schemas,
}

impl BodySchema {
    /// Returns the schema of a type.
    pub(crate) fn of<T: ToSchema>() -> Self {
        let mut schemas = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut schemas);
        Self { name: T::name().into_owned(), schemas }
    }

    /// Returns the schema of a type under another name than the type's.
    pub(crate) fn named<T: ToSchema>(name: &str, description: &str) -> Self {
        let mut schema = T::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.description = Some(description.to_owned());
        }
        let mut schemas = vec![(name.to_owned(), schema)];
        T::schemas(&mut schemas);
        Self { name: name.to_owned(), schemas }
    }

    /// Returns the schema of one record in an envelope. The name of a generic type does not tell its content.
    pub(crate) fn data<T: ToSchema>(name: &str, description: &str) -> Self {
        Self::named::<Data<T>>(name, description).with::<T>()
    }

    /// Returns the schema of a page of records.
    pub(crate) fn page<T: ToSchema>(name: &str, description: &str) -> Self {
        Self::named::<Page<T>>(name, description).with::<T>()
    }

    /// Returns the schema of a page of an append-only list.
    pub(crate) fn cursor_page<T: ToSchema>(name: &str, description: &str) -> Self {
        Self::named::<CursorPage<T>>(name, description).with::<T>()
    }

    fn with<T: ToSchema>(mut self) -> Self {
        self.schemas.extend(Self::of::<T>().schemas);
        self
    }
}

/// The description of an operation, with the schemas that it names.
pub(crate) struct Operation {
    pub(crate) description: utoipa::openapi::path::Operation,
    pub(crate) schemas: Schemas,
}

impl Operation {
    /// Begins a description.
    pub(crate) fn new(id: &str, summary: &str) -> Self {
        let description = OperationBuilder::new().operation_id(Some(id)).summary(Some(summary)).build();
        Self { description, schemas: Schemas::new() }
    }

    pub(crate) fn description(mut self, text: impl Into<String>) -> Self {
        self.description.description = Some(text.into());
        self
    }

    pub(crate) fn parameter(mut self, parameter: Parameter) -> Self {
        self.description.parameters.get_or_insert_default().push(parameter.into());
        self
    }

    /// Describes the body of the request.
    pub(crate) fn body(mut self, body: BodySchema, example: Option<Value>) -> Self {
        let content = content(&body.name, example.map(named_example).into_iter().flatten());
        let request = RequestBodyBuilder::new().content(JSON, content).required(Some(Required::True)).build();
        self.description.request_body = Some(request.into());
        self.schemas.extend(body.schemas);
        self
    }

    /// Lets a request leave out the described body.
    pub(crate) fn optional_body(mut self) -> Self {
        if let Some(RefOr::T(body)) = &mut self.description.request_body {
            body.required = Some(Required::False);
        }
        self
    }

    /// Describes a body of any bytes.
    pub(crate) fn bytes(mut self, description: &str) -> Self {
        let request = RequestBodyBuilder::new().description(Some(description)).content(OCTET_STREAM, any_bytes());
        self.description.request_body = Some(request.required(Some(Required::True)).build().into());
        self
    }

    /// Describes the response of success.
    pub(crate) fn answer(mut self, status: u16, body: BodySchema, description: &str) -> Self {
        let content = content(&body.name, answer_example(&body.name));
        let response = ResponseBuilder::new().description(description).content(JSON, content).build();
        self.schemas.extend(body.schemas);
        self.response(status, response)
    }

    /// Describes the response 200 with text of a media type.
    pub(crate) fn text(self, description: &str, media_type: &str, schema: Type, example: Value) -> Self {
        let content = ContentBuilder::new()
            .schema(Some(ObjectBuilder::new().schema_type(schema)))
            .examples_from_iter(named_example(example))
            .build();
        self.response(200, ResponseBuilder::new().description(description).content(media_type, content).build())
    }

    /// Describes the formats of an exported list.
    pub(crate) fn exported(mut self) -> Self {
        if let Some(RefOr::T(response)) = self.description.responses.responses.get_mut("200") {
            for (media_type, example) in [(CSV, "id,…\r\n"), (JSON_LINES, "{\"id\":…}\n")] {
                let schema = ObjectBuilder::new().schema_type(Type::String);
                let content =
                    ContentBuilder::new().schema(Some(schema)).examples_from_iter(named_example(example.into()));
                response.content.insert(media_type.to_owned(), content.build().into());
            }
        }
        self
    }

    /// Adds the errors whose statuses have no description.
    pub(crate) fn add_errors(self, statuses: &[u16]) -> Self {
        statuses.iter().fold(self, |operation, status| operation.response(*status, error_response(*status)))
    }

    fn response(mut self, status: u16, response: Response) -> Self {
        self.description.responses.responses.entry(status.to_string()).or_insert_with(|| response.into());
        self
    }
}

fn any_bytes() -> Content {
    ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).build()
}

fn content(schema: &str, examples: impl IntoIterator<Item = (&'static str, Example)>) -> Content {
    ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).examples_from_iter(examples).build()
}

fn error_response(status: u16) -> Response {
    let builder = ResponseBuilder::new().description(status_description(status));
    match status {
        206 => builder.content(OCTET_STREAM, any_bytes()).build(),
        304 => builder.build(),
        _ => builder.content(JSON, content("ErrorEnvelope", [])).build(),
    }
}

pub(crate) fn status_description(status: u16) -> &'static str {
    match status {
        206 => "The bytes of the range",
        304 => "The client's copy is current",
        400 => "Invalid parameters or malformed input",
        401 => "Authentication required or credentials invalid",
        402 => "Insufficient credits",
        403 => "Authenticated, but insufficient permissions",
        404 => "The resource does not exist",
        405 => "The path does not support this method",
        409 => "Concurrent change or conflicting state",
        412 => "The resource has another version than If-Match names",
        428 => "The operation needs If-Match",
        413 => "Payload too large",
        415 => "Unsupported Content-Encoding",
        416 => "The range begins behind the end of the file",
        422 => "Invalid request",
        429 => "Rate limit exceeded",
        502 => "Provider failure",
        503 => "Temporarily unavailable",
        524 => "Timeout",
        529 => "Provider overloaded",
        _ => "Unexpected server error",
    }
}

/// The tags, which group the operations in viewers and generated clients.
pub(crate) mod tags {
    use utoipa::openapi::tag::{Tag, TagBuilder};

    pub(crate) const DECISIONS: &str = "Decisions";
    pub(crate) const FILES: &str = "Files";
    pub(crate) const GUARDRAILS: &str = "Guardrails";
    pub(crate) const PRESETS: &str = "Presets";
    pub(crate) const KEYS: &str = "API keys";
    pub(crate) const EVIDENCE: &str = "Evidence";
    pub(crate) const MODELS: &str = "Models and providers";
    pub(crate) const USAGE: &str = "Usage";
    pub(crate) const WORKSPACES: &str = "Workspaces";
    pub(crate) const DESTINATIONS: &str = "Trace destinations";
    pub(crate) const OPERATION: &str = "Operation";
    pub(crate) const SERVICE: &str = "Service";

    /// Returns all tags, in the order in which viewers show them.
    pub(crate) fn all() -> Vec<Tag> {
        [
            (DECISIONS, "Ask a model typed questions about a state."),
            (FILES, "Read files of containers, and copy them into the workspace's documents."),
            (GUARDRAILS, "Create rules for requests and assign keys to them. They need a management key."),
            (
                PRESETS,
                "Create named sets of questions, which requests name as their model. Changes need a management key.",
            ),
            (EVIDENCE, "Read the decisions of the answers of a preset, and label them."),
            (MODELS, "Read models, their endpoints and providers with their health."),
            (USAGE, "Read the usage record of a request."),
            (KEYS, "Read the caller's own key, and manage keys, which needs a management key."),
            (WORKSPACES, "Manage workspaces, their budgets and their credit. They need a management key."),
            (DESTINATIONS, "Manage the destinations of traces. They need a management key."),
            (OPERATION, "Operate the gateway: catalogue and audit log. They need a management key of all workspaces."),
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
