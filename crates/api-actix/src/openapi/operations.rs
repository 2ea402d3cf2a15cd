//! The OpenAPI operations: parameters, request body and statuses.

use serde_json::Value;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{Operation as Description, OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::response::{Response, ResponseBuilder, ResponsesBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Ref, Required};

use super::{BEARER, KEY_HEADERS, decisions, destinations, examples, guardrails, records, tags};
use crate::http::routes::{OpenRoute, Operation, Route, Target};

pub(super) const JSON: &str = "application/json";

/// The statuses of every operation.
pub(super) const COMMON_STATUSES: [u16; 7] = [401, 403, 405, 413, 429, 500, 503];

pub(super) fn describe(route: &Route) -> Description {
    let mut description = match route.target {
        Target::Open(open) => open_route(open),
        Target::Operation(operation) => operation_of(operation, route),
    };
    description.tags = Some(vec![tags::of(route.target).to_owned()]);
    description
}

fn operation_of(operation: Operation, route: &Route) -> Description {
    let builder = match operation {
        Operation::PromoteContainerFile => promote(),
        Operation::SubmitDecision(entry) => decisions::describe(entry, route.under_base),
        Operation::AssignKeysToGuardrail => assign_keys(),
        Operation::RotateApiKey => rotate_key(),
        Operation::GetModel => get_model(),
        Operation::CountModels => count_models(),
        Operation::ListModels(default) => records::list_models(default),
        Operation::ListModelEndpoints => records::list_model_endpoints(),
        Operation::ListProviders => records::list_providers(),
        Operation::GetGeneration => records::get_generation(),
        Operation::Guardrails(operation) => guardrails::describe(operation),
        Operation::Destinations(operation) => destinations::describe(operation),
    };
    let vendors = KEY_HEADERS.iter().filter(|_| route.is_vendor_route());
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

fn promote() -> OperationBuilder {
    OperationBuilder::new()
        .operation_id(Some("promoteContainerFile"))
        .summary(Some("Promote a container file into workspace documents"))
        .description(Some(
            "Copies the file from the container's sandbox prefix into the workspace's durable document storage. \
             Counts against the workspace's storage quota. The shape of the answer follows the headers \
             `anthropic-version`, `User-Agent` and `X-Stainless-*`.",
        ))
        .parameter(example_path(
            "container_id",
            "The container's id from a tool result: 1 to 128 of A-Z a-z 0-9 _ -",
            "sess_demo",
        ))
        .parameter(example_path(
            "file_id",
            "`cfile_` and the unpadded base64url encoding of the file's path",
            examples::FILE_ID,
        ))
        .parameter(header(
            "Idempotency-Key",
            "A retry with the same key within 24 hours returns the first document.",
            255,
        ))
        .responses(responses_with("The new document", "File", examples::file(), &[400, 404]))
}

fn assign_keys() -> OperationBuilder {
    OperationBuilder::new()
        .operation_id(Some("assignKeysToGuardrail"))
        .summary(Some("Bulk assign keys to a guardrail"))
        .description(Some(
            "A key has at most one guardrail: an assignment replaces the previous one. Needs a management key. Keys \
             are named by hash or id. Names that match no key of the guardrail's workspace are skipped and not \
             counted.",
        ))
        .parameter(path("id", "The guardrail's id"))
        .request_body(Some(example_body("AssignKeysRequest", examples::assignment())))
        .responses(responses_with(
            "The number of assigned keys",
            "AssignKeysResponse",
            examples::assigned(),
            &[400, 404, 415],
        ))
}

fn rotate_key() -> OperationBuilder {
    OperationBuilder::new()
        .operation_id(Some("rotateKey"))
        .summary(Some("Replace the secret of a key"))
        .description(Some(
            "Returns the new secret, which is shown once. The old secret is rejected at once by this process and \
             within a second by all others. Id, name, limits, usage and guardrail stay; `hash` changes. Every call \
             creates a new secret. Of concurrent calls for the same secret at most one succeeds. Needs a management \
             key.",
        ))
        .parameter(path("hash", "The key's hash or id. After a rotation the old hash is unknown."))
        .responses(responses("The key and its new secret", "RotateKeyResponse", &[404, 409], &COMMON_STATUSES))
}

fn get_model() -> OperationBuilder {
    OperationBuilder::new()
        .operation_id(Some("getModel"))
        .summary(Some("Get a model by its slug"))
        .description(Some("Ids, dated slugs, former slugs and aliases resolve, case-insensitively."))
        .parameter(example_path("author", "The author or organisation of the model", "sandbox"))
        .parameter(example_path("slug", "The model's slug, optionally followed by a colon and a variant", "decider"))
        .parameter(if_none_match())
        .responses(responses_with("The model", "ModelResponse", examples::model(), &[304, 404]))
}

fn count_models() -> OperationBuilder {
    OperationBuilder::new()
        .operation_id(Some("countModels"))
        .summary(Some("Get the total count of available models"))
        .parameter(records::output_modalities("text"))
        .parameter(if_none_match())
        .responses(responses_with("The count", "CountResponse", examples::count(), &[304, 400]))
}

fn open_route(route: OpenRoute) -> Description {
    let (id, summary, responses) = match route {
        OpenRoute::Root => (
            "root",
            "The name of the service and the paths of its documentation",
            responses("The name and the paths", "RootResponse", &[], &[405, 500]),
        ),
        OpenRoute::Live => (
            "live",
            "Liveness: the process responds",
            responses("The process is alive", "HealthResponse", &[], &[405, 500]),
        ),
        OpenRoute::Ready => (
            "ready",
            "Readiness: all required stores respond",
            responses("The process is ready", "HealthResponse", &[], &[405, 500, 503]),
        ),
        OpenRoute::OpenApi => {
            let schema = ObjectBuilder::new().schema_type(Type::Object);
            let content = ContentBuilder::new().schema(Some(schema)).build();
            let found = ResponseBuilder::new().description("The document").content(JSON, content).build();
            (
                "openapi",
                "The OpenAPI document",
                add_error_responses(ResponsesBuilder::new().response("200", found), &[405, 500]),
            )
        }
        OpenRoute::Docs => {
            let content = ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).build();
            let found = ResponseBuilder::new().description("The page").content("text/html", content).build();
            (
                "docs",
                "The API documentation as a page",
                add_error_responses(ResponsesBuilder::new().response("200", found), &[405, 500]),
            )
        }
        OpenRoute::DocsScript => {
            let content = ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).build();
            let found = ResponseBuilder::new().description("The script").content("text/javascript", content).build();
            (
                "docsScript",
                "The script of the page",
                add_error_responses(ResponsesBuilder::new().response("200", found), &[405, 500]),
            )
        }
    };
    // An empty list declares that no key is needed.
    OperationBuilder::new()
        .operation_id(Some(id))
        .summary(Some(summary))
        .securities(Some([]))
        .responses(responses)
        .build()
}

pub(super) fn responses(description: &str, schema: &str, own: &[u16], common: &[u16]) -> ResponsesBuilder {
    success_and_errors("200", description, schema, own, common)
}

/// Returns the responses of one of the five operations, with an example of the success; see [`responses`].
fn responses_with(description: &str, schema: &str, example: Value, own: &[u16]) -> ResponsesBuilder {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(schema)))
        .examples_from_iter(examples::of(example))
        .build();
    let found = ResponseBuilder::new().description(description).content(JSON, content).build();
    add_error_responses(add_error_responses(ResponsesBuilder::new().response("200", found), own), &COMMON_STATUSES)
}

/// Returns the responses of an operation that creates a record; see [`responses`].
pub(super) fn created_responses(description: &str, schema: &str, own: &[u16], common: &[u16]) -> ResponsesBuilder {
    success_and_errors("201", description, schema, own, common)
}

fn success_and_errors(status: &str, description: &str, schema: &str, own: &[u16], common: &[u16]) -> ResponsesBuilder {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
    let found = ResponseBuilder::new().description(description).content(JSON, content).build();
    add_error_responses(add_error_responses(ResponsesBuilder::new().response(status, found), own), common)
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

pub(super) fn status_description(status: u16) -> &'static str {
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

pub(super) fn body(schema: &str) -> RequestBody {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
    RequestBodyBuilder::new().content(JSON, content).required(Some(Required::True)).build()
}

fn example_body(schema: &str, example: Value) -> RequestBody {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(schema)))
        .examples_from_iter(examples::of(example))
        .build();
    RequestBodyBuilder::new().content(JSON, content).required(Some(Required::True)).build()
}

pub(super) fn path(name: &str, description: &str) -> Parameter {
    path_parameter(name, description).build()
}

fn example_path(name: &str, description: &str, example: &str) -> Parameter {
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

pub(super) fn header(name: &str, description: &str, max_length: usize) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String).max_length(Some(max_length));
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

pub(super) fn if_none_match() -> Parameter {
    header("If-None-Match", "Entity tags of cached responses.", 4_096)
}
