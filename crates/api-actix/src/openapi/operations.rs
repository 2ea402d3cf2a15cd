//! Each operation: its parameters, its body, its statuses.

use serde_json::json;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{Operation as Description, OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::response::{Response, ResponseBuilder, ResponsesBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Ref, Required};

use super::BEARER;
use crate::http::routes::{OpenRoute, Operation, Route, Target};

const JSON: &str = "application/json";

/// Statuses that every operation can answer with.
const COMMON: [u16; 7] = [401, 403, 405, 413, 429, 500, 503];

pub(super) fn describe(route: &Route) -> Description {
    match route.target {
        Target::Open(open) => open_route(open),
        Target::Operation(operation) => operation_of(operation, route.under_base),
    }
}

fn operation_of(operation: Operation, under_base: bool) -> Description {
    let builder = match operation {
        Operation::PromoteContainerFile => promote(),
        Operation::SubmitDecision => decisions(under_base),
        Operation::AssignKeysToGuardrail => assign_keys(),
        Operation::GetModel => get_model(),
        Operation::CountModels => count_models(),
    };
    builder
        .security(SecurityRequirement::new::<_, [&str; 0], &str>(BEARER, []))
        .parameter(header(
            "x-request-id",
            "Names the request in the answer and in logs; made up where it is absent.",
            128,
        ))
        .parameter(header("x-tollgate-metadata", "`enabled` asks to be told how the request was handled.", 16))
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
        .parameter(path("container_id", "The container's id, as a tool result gave it: 1 to 128 of A-Z a-z 0-9 _ -"))
        .parameter(path("file_id", "`cfile_` and the unpadded base64url form of the file's path"))
        .parameter(header("Idempotency-Key", "A retry with the same key within 24 hours gets the first document.", 255))
        .responses(responses("The new document", "File", &[400, 404], &COMMON))
}

fn decisions(under_base: bool) -> OperationBuilder {
    let id = if under_base { "submitDecision" } else { "submitDecisionOutsideTheBasePath" };
    OperationBuilder::new()
        .operation_id(Some(id))
        .summary(Some("Submit a Decisions request"))
        .description(Some(
            "Questions about a state, answered by a model. Members of the body that are not named here are ignored.",
        ))
        .parameter(header("x-session-id", "Groups requests; the body's `session_id` takes precedence.", 256))
        .request_body(Some(body("DecisionsRequest")))
        .responses(responses("The answers", "DecisionsResponse", &[400, 402, 404, 502, 524, 529], &COMMON))
}

fn assign_keys() -> OperationBuilder {
    OperationBuilder::new()
        .operation_id(Some("assignKeysToGuardrail"))
        .summary(Some("Bulk assign keys to a guardrail"))
        .description(Some(
            "A key holds at most one guardrail: what it held is replaced. Needs a management key. Hashes that no key \
             of the guardrail's workspace has are skipped and not counted.",
        ))
        .parameter(path("id", "The guardrail's id"))
        .request_body(Some(body("AssignKeysRequest")))
        .responses(responses("How many keys hold the guardrail", "AssignKeysResponse", &[400, 404], &COMMON))
}

fn get_model() -> OperationBuilder {
    OperationBuilder::new()
        .operation_id(Some("getModel"))
        .summary(Some("Get a model by its slug"))
        .description(Some("Ids, dated slugs, former slugs and aliases resolve, in any case."))
        .parameter(path("author", "The author or organisation of the model"))
        .parameter(path("slug", "The model's slug, with a variant behind a colon or without"))
        .parameter(if_none_match())
        .responses(responses("The model", "ModelResponse", &[304, 404], &COMMON))
}

fn count_models() -> OperationBuilder {
    let filter = ParameterBuilder::new()
        .name("output_modalities")
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(
            "Comma-separated list of text, image, embeddings, audio, video, rerank, decisions, speech, transcription; \
             `all` includes all models.",
        ))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).default(Some(json!("text")))));
    OperationBuilder::new()
        .operation_id(Some("countModels"))
        .summary(Some("Get the total count of available models"))
        .parameter(filter)
        .parameter(if_none_match())
        .responses(responses("The count", "CountResponse", &[304, 400], &COMMON))
}

fn open_route(route: OpenRoute) -> Description {
    let (id, summary, responses) = match route {
        OpenRoute::Live => ("live", "The process answers", responses("It does", "HealthResponse", &[], &[405, 500])),
        OpenRoute::Ready => ("ready", "Stores answer", responses("They do", "HealthResponse", &[], &[405, 500, 503])),
        OpenRoute::OpenApi => {
            let schema = ObjectBuilder::new().schema_type(Type::Object);
            let content = ContentBuilder::new().schema(Some(schema)).build();
            let found = ResponseBuilder::new().description("The document").content(JSON, content).build();
            ("openapi", "This description", refusals(ResponsesBuilder::new().response("200", found), &[405, 500]))
        }
        OpenRoute::Docs => {
            let content = ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).build();
            let found = ResponseBuilder::new().description("The page").content("text/html", content).build();
            (
                "docs",
                "This description as a page",
                refusals(ResponsesBuilder::new().response("200", found), &[405, 500]),
            )
        }
    };
    // An empty list says that no key is needed.
    OperationBuilder::new()
        .operation_id(Some(id))
        .summary(Some(summary))
        .securities(Some([]))
        .responses(responses)
        .build()
}

fn responses(description: &str, schema: &str, own: &[u16], common: &[u16]) -> ResponsesBuilder {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
    let found = ResponseBuilder::new().description(description).content(JSON, content).build();
    refusals(refusals(ResponsesBuilder::new().response("200", found), own), common)
}

fn refusals(builder: ResponsesBuilder, statuses: &[u16]) -> ResponsesBuilder {
    statuses.iter().fold(builder, |builder, status| builder.response(status.to_string(), refusal(*status)))
}

fn refusal(status: u16) -> Response {
    let builder = ResponseBuilder::new().description(meaning(status));
    if status == 304 {
        return builder.build();
    }
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorEnvelope"))).build();
    builder.content(JSON, content).build()
}

fn meaning(status: u16) -> &'static str {
    match status {
        304 => "The caller has the answer already",
        400 => "Invalid parameters or malformed input",
        401 => "Authentication required or credentials invalid",
        402 => "Insufficient credits",
        403 => "Authenticated, but insufficient permissions",
        404 => "The resource does not exist",
        405 => "The path does not take this method",
        413 => "Payload too large",
        429 => "Rate limit exceeded",
        502 => "Provider failure",
        503 => "Temporarily unavailable",
        524 => "Timeout",
        529 => "Provider overloaded",
        _ => "Unexpected server error",
    }
}

fn body(schema: &str) -> RequestBody {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
    RequestBodyBuilder::new().content(JSON, content).required(Some(Required::True)).build()
}

fn path(name: &str, description: &str) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

fn header(name: &str, description: &str, max_length: usize) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String).max_length(Some(max_length));
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

fn if_none_match() -> Parameter {
    header("If-None-Match", "Entity tags of answers that the caller has.", 4_096)
}
