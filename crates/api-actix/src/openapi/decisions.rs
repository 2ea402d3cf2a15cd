//! The Decisions operations: one for each path, with the wires that it accepts.

use utoipa::ToSchema;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::response::{ResponseBuilder, ResponsesBuilder};
use utoipa::openapi::schema::{AnyOfBuilder, Schema};
use utoipa::openapi::{HeaderBuilder, Ref, RefOr, Required};

use super::schemas::{
    DecisionsForm, DecisionsRequest, DecisionsResponse, GeminiDecisionsRequest, GeminiDecisionsResponse, GeminiError,
    OpenAiDecisionsRequest, OpenAiDecisionsResponse, OpenAiError, SglangDecisionsRequest, SglangDecisionsResponse,
    SglangError, SystemOneError,
};
use crate::detection::Entry;
use crate::http::envelope::ErrorEnvelope;
use crate::http::operation;
use crate::http::operation::{BodySchema, COMMON_STATUSES, JSON, Operation, Schemas, status_description};
use crate::http::route_parameters::Header;

const SESSION_ID: Header =
    Header::new("x-session-id", "Groups requests; the body's `session_id` takes precedence.", 256, &[]);
const CONTENT_ENCODING: Header = Header::new("Content-Encoding", "`zstd` or `gzip`, for a compressed body.", 16, &[]);
/// The statuses of every Decisions operation in addition to the common ones.
const DECISION_STATUSES: [u16; 7] = [400, 402, 404, 415, 502, 524, 529];

pub(crate) fn describe(entry: Entry, under_base: bool) -> Operation {
    let (id, summary, description) = describe_entry(entry, under_base);
    let answers = answers(entry);
    let example = answers.first().map(|schema| operation::answer_example(schema)).unwrap_or_default();
    let content = any_of(&answers).examples_from_iter(example).build();
    let abstained = HeaderBuilder::new()
        .description(Some("The questions without a decision of a preset with stages: encoded names and commas."))
        .build();
    let answer = ResponseBuilder::new().description("The answers").content(JSON, content);
    let answer = answer.header("x-tollgate-abstained", abstained).build();
    let mut responses = ResponsesBuilder::new().response("200", answer);
    let unprocessable = matches!(entry, Entry::SystemOne | Entry::AnyShape) && !under_base;
    for status in DECISION_STATUSES.into_iter().chain(COMMON_STATUSES).chain(unprocessable.then_some(422)) {
        let response = ResponseBuilder::new()
            .description(status_description(status))
            .content(JSON, any_of(&errors(entry)).build())
            .build();
        responses = responses.response(status.to_string(), response);
    }
    let mut operation = Operation::new(id, summary)
        .description(description)
        .parameter(SESSION_ID.describe())
        .parameter(CONTENT_ENCODING.describe());
    operation.description.request_body = Some(body(entry).into());
    operation.description.responses = responses.build();
    operation.schemas = schemas();
    operation
}

/// Returns the schemas of all wires.
fn schemas() -> Schemas {
    let bodies = [
        BodySchema::of::<DecisionsRequest>(),
        BodySchema::of::<DecisionsResponse>(),
        BodySchema::of::<DecisionsForm>(),
        BodySchema::of::<SystemOneError>(),
        BodySchema::of::<OpenAiDecisionsRequest>(),
        BodySchema::of::<OpenAiDecisionsResponse>(),
        BodySchema::of::<OpenAiError>(),
        BodySchema::of::<GeminiDecisionsRequest>(),
        BodySchema::of::<GeminiDecisionsResponse>(),
        BodySchema::of::<GeminiError>(),
        BodySchema::of::<SglangDecisionsRequest>(),
        BodySchema::of::<SglangDecisionsResponse>(),
        BodySchema::of::<SglangError>(),
    ];
    bodies.into_iter().flat_map(|body| body.schemas).collect()
}

fn describe_entry(entry: Entry, under_base: bool) -> (&'static str, &'static str, &'static str) {
    let outside = |below, outside| if under_base { below } else { outside };
    match entry {
        Entry::Contract => (
            outside("submitDecision", "submitDecisionOutsideTheBasePath"),
            "Submit a Decisions request",
            "A model answers questions about a state. Unknown members of the body are ignored.",
        ),
        Entry::SystemOne => (
            outside("systemOne", "systemOneOutsideTheBasePath"),
            "Submit a System One request",
            "The same request and answer, with errors in the format of System One's client packages. `x-api-key`, \
             `api-key` and `x-goog-api-key` are accepted in place of a bearer token.",
        ),
        Entry::AnyShape => (
            outside("decisions", "decisionsOutsideTheBasePath"),
            "Submit a Decisions request in any wire format",
            "The shape of the body selects the wire format of answers and errors: `state` and an object of questions \
             (System One); `input` and an array of `predicate`, `choice` or `score` questions (OpenAI); `input` and \
             an object of questions (Gemini); `input` and an array of questions with `id` and `question` (SGLang). \
             `x-api-key`, `api-key` and `x-goog-api-key` are accepted in place of a bearer token.",
        ),
        Entry::Gemini => (
            "geminiDecisions",
            "Submit a Gemini Decisions request",
            "A model answers questions about an input. `x-goog-api-key`, `api-key` and `x-api-key` are accepted in \
             place of a bearer token.",
        ),
    }
}

fn requests(entry: Entry) -> Vec<String> {
    match entry {
        Entry::Contract | Entry::SystemOne => vec![name::<DecisionsRequest>()],
        Entry::Gemini => vec![name::<GeminiDecisionsRequest>()],
        Entry::AnyShape => vec![
            name::<DecisionsRequest>(),
            name::<OpenAiDecisionsRequest>(),
            name::<GeminiDecisionsRequest>(),
            name::<SglangDecisionsRequest>(),
        ],
    }
}

fn answers(entry: Entry) -> Vec<String> {
    match entry {
        Entry::Contract | Entry::SystemOne => vec![name::<DecisionsResponse>()],
        Entry::Gemini => vec![name::<GeminiDecisionsResponse>()],
        Entry::AnyShape => vec![
            name::<DecisionsResponse>(),
            name::<OpenAiDecisionsResponse>(),
            name::<GeminiDecisionsResponse>(),
            name::<SglangDecisionsResponse>(),
        ],
    }
}

fn errors(entry: Entry) -> Vec<String> {
    match entry {
        Entry::Contract => vec![name::<ErrorEnvelope>()],
        Entry::SystemOne => vec![name::<SystemOneError>()],
        Entry::Gemini => vec![name::<GeminiError>()],
        Entry::AnyShape => {
            vec![name::<OpenAiError>(), name::<SystemOneError>(), name::<GeminiError>(), name::<SglangError>()]
        }
    }
}

fn body(entry: Entry) -> RequestBody {
    let example = if entry == Entry::Gemini { operation::gemini_request() } else { operation::decision_request() };
    let content = any_of(&requests(entry)).examples_from_iter(operation::named_example(example)).build();
    let body = RequestBodyBuilder::new().content(JSON, content).required(Some(Required::True));
    let form = entry.takes_parts().then(|| any_of(&[name::<DecisionsForm>()]).build());
    match form {
        Some(form) => body.content("multipart/form-data", form),
        None => body,
    }
    .build()
}

fn any_of(names: &[String]) -> ContentBuilder {
    let schema: RefOr<Schema> = match names {
        [name] => Ref::from_schema_name(name).into(),
        names => {
            // The formats overlap: a body may be valid in several of them.
            let any_of =
                names.iter().fold(AnyOfBuilder::new(), |any_of, name| any_of.item(Ref::from_schema_name(name)));
            Schema::AnyOf(any_of.build()).into()
        }
    };
    ContentBuilder::new().schema(Some(schema))
}

fn name<T: ToSchema>() -> String {
    T::name().into_owned()
}
