//! The bodies, as the description shows them. They are written and read elsewhere, by hand where bytes matter; the
//! tests hold both against each other.
#![expect(dead_code, reason = "only their schemas are used")]

use serde_json::Value;
use utoipa::ToSchema;

/// The body of every failure.
#[derive(ToSchema)]
pub(super) struct ErrorEnvelope {
    error: ErrorBody,
    /// How the request was handled; only where the request asks for it.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
    /// The owner of the caller's workspace, where one is set.
    user_id: Option<String>,
}

/// What went wrong.
#[derive(ToSchema)]
pub(super) struct ErrorBody {
    /// Equals the HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    code: i32,
    message: String,
    /// Details for programs; `request_id` always.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
}

/// A stored file in the service's own shape.
#[derive(ToSchema)]
pub(super) struct NativeFile {
    #[schema(rename = "_shape")]
    shape: String,
    /// The durable id.
    id: String,
    #[schema(pattern = "^file$")]
    r#type: String,
    /// The path that the file had in its container.
    filename: String,
    mime_type: String,
    #[schema(minimum = 0)]
    size_bytes: i64,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
    downloadable: bool,
}

/// A stored file in the shape of one vendor's files API.
#[derive(ToSchema)]
pub(super) struct VendorAFile {
    #[schema(rename = "_shape")]
    shape: String,
    /// The durable id.
    id: String,
    #[schema(pattern = "^file$")]
    r#type: String,
    /// The path that the file had in its container.
    filename: String,
    mime_type: String,
    #[schema(minimum = 0)]
    size_bytes: i64,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
    downloadable: bool,
}

/// A stored file in the shape of another vendor's files API.
#[derive(ToSchema)]
pub(super) struct VendorBFile {
    #[schema(rename = "_shape")]
    shape: String,
    /// The durable id.
    id: String,
    #[schema(pattern = "^file$")]
    object: String,
    #[schema(minimum = 0)]
    bytes: i64,
    /// Unix epoch seconds.
    created_at: i64,
    /// The path that the file had in its container.
    filename: String,
    purpose: Purpose,
    #[schema(pattern = "^processed$")]
    status: String,
}

/// What a file is for; a promoted one is `assistants_output`.
#[derive(ToSchema)]
pub(super) enum Purpose {
    #[schema(rename = "assistants")]
    Assistants,
    #[schema(rename = "batch")]
    Batch,
    #[schema(rename = "fine-tune")]
    FineTune,
    #[schema(rename = "vision")]
    Vision,
    #[schema(rename = "user_data")]
    UserData,
    #[schema(rename = "evals")]
    Evals,
    #[schema(rename = "assistants_output")]
    AssistantsOutput,
    #[schema(rename = "batch_output")]
    BatchOutput,
    #[schema(rename = "fine-tune-results")]
    FineTuneResults,
}

/// Questions about a state.
#[derive(ToSchema)]
pub(super) struct DecisionsRequest {
    /// A model that answers Decisions requests.
    #[schema(min_length = 1)]
    model: String,
    /// What to evaluate: a map of typed questions (`noul`, `choice`, `score`), or any other JSON value, which is
    /// passed on as it is.
    questions: Value,
    /// What the questions are about. Needed with typed questions, where it is a string, object or array.
    #[schema(required = false)]
    state: Value,
    provider: Option<ProviderPreferences>,
    /// Groups related requests; never sent to a provider.
    #[schema(max_length = 256)]
    session_id: Option<String>,
    /// Observability metadata (`trace_id`, `trace_name`, `span_name`, `generation_name`, `parent_span_id` and your
    /// own); never sent to a provider.
    #[schema(value_type = Option<Object>)]
    trace: Option<Value>,
    /// The end user; never sent to a provider.
    #[schema(max_length = 256)]
    user: Option<String>,
    /// Models to go on with where no endpoint of those before gave an answer, in order.
    #[schema(max_items = 16)]
    models: Option<Vec<String>>,
    /// True: questions that no provider answered are told as such instead of failing the whole request.
    partial: Option<bool>,
    /// Media by the names by which the state refers to them; they go to endpoints that take them in this form only.
    #[schema(value_type = Option<Object>)]
    assets: Option<Value>,
    /// Images beside the state; they go to endpoints that take them in this form only.
    images: Option<Vec<Value>>,
}

/// How to route. What is not honoured is refused, never ignored.
#[derive(ToSchema)]
pub(super) struct ProviderPreferences {
    /// False: only the first provider is tried.
    allow_fallbacks: Option<bool>,
    /// Providers to try first, in order.
    order: Option<Vec<String>>,
    /// Providers to choose among.
    only: Option<Vec<String>>,
    /// Providers to leave out.
    ignore: Option<Vec<String>>,
    /// Only providers that take every parameter of the request.
    require_parameters: Option<bool>,
    /// `allow` or `deny`: leave out providers that may store what they are sent.
    data_collection: Option<String>,
    /// Only providers that keep nothing.
    zdr: Option<bool>,
    /// Only these number formats of weights.
    quantizations: Option<Vec<String>>,
    /// `price`, `latency` or `throughput`, or an object with `by` and `partition`.
    #[schema(required = false)]
    sort: Value,
    /// Most that may be charged, in USD per million tokens: `prompt`, `completion`.
    #[schema(value_type = Option<Object>)]
    max_price: Option<Value>,
    /// Seconds: a number, or an object of percentiles.
    #[schema(required = false)]
    preferred_max_latency: Value,
    /// Tokens a second: a number, or an object of percentiles.
    #[schema(required = false)]
    preferred_min_throughput: Value,
}

/// The answers.
#[derive(ToSchema)]
pub(super) struct DecisionsResponse {
    #[schema(value_type = Object)]
    answers: Value,
    /// The model that served the request.
    model: String,
    usage: Usage,
    /// Names the answer; its usage record is found by it.
    id: String,
    /// The provider that served the request.
    provider: String,
    /// How the request was handled; only where the request asks for it.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
}

/// What the request used.
#[derive(ToSchema)]
pub(super) struct Usage {
    #[schema(minimum = 0)]
    input_tokens: i64,
    #[schema(minimum = 0)]
    output_tokens: i64,
    /// USD.
    cost: f64,
}

/// The keys to assign.
#[derive(ToSchema)]
pub(super) struct AssignKeysRequest {
    /// Hashes of keys (64 lower-case hex digits each) or their ids (UUIDs); others name no key. A key counts once.
    #[schema(min_items = 1, value_type = Vec<KeyHash>)]
    key_hashes: Vec<KeyHash>,
}

/// The hash of a key, or its id.
#[derive(ToSchema)]
#[schema(min_length = 1)]
pub(super) struct KeyHash(String);

/// What was assigned.
#[derive(ToSchema)]
pub(super) struct AssignKeysResponse {
    #[schema(minimum = 0)]
    assigned_count: i64,
}

/// One model.
#[derive(ToSchema)]
pub(super) struct ModelResponse {
    data: Model,
}

/// A model. Further public members may stand beside these.
#[derive(ToSchema)]
pub(super) struct Model {
    /// `author/slug`, with a variant behind a colon or without.
    id: String,
    canonical_slug: String,
    name: String,
    /// Unix epoch seconds.
    created: i64,
    description: String,
    /// Tokens.
    #[schema(required)]
    context_length: Option<i64>,
    architecture: Architecture,
    pricing: Pricing,
    top_provider: TopProvider,
    supported_parameters: Vec<String>,
    links: Links,
    reasoning: Option<Reasoning>,
    #[schema(required)]
    default_parameters: Value,
    #[schema(required)]
    expiration_date: Option<String>,
    #[schema(required)]
    knowledge_cutoff: Option<String>,
    #[schema(required)]
    per_request_limits: Value,
    #[schema(required)]
    supported_voices: Option<Vec<String>>,
    #[schema(required)]
    hugging_face_id: Option<String>,
}

/// What goes in and comes out.
#[derive(ToSchema)]
pub(super) struct Architecture {
    /// `input->output`
    #[schema(required)]
    modality: Option<String>,
    input_modalities: Vec<String>,
    output_modalities: Vec<String>,
    #[schema(required)]
    tokenizer: Option<String>,
    #[schema(required)]
    instruct_type: Option<String>,
}

/// USD per unit, as decimal strings; further prices may stand beside these.
#[derive(ToSchema)]
pub(super) struct Pricing {
    prompt: String,
    completion: String,
    image: String,
    request: String,
}

/// Figures of the best provider.
#[derive(ToSchema)]
pub(super) struct TopProvider {
    #[schema(required)]
    context_length: Option<i64>,
    #[schema(required)]
    max_completion_tokens: Option<i64>,
    is_moderated: bool,
}

/// Where to read on.
#[derive(ToSchema)]
pub(super) struct Links {
    /// The path of the model's endpoints.
    details: String,
}

/// How the model reasons.
#[derive(ToSchema)]
pub(super) struct Reasoning {
    mandatory: bool,
    default_enabled: Option<bool>,
    default_effort: Option<String>,
    supported_efforts: Option<Vec<String>>,
}

/// The count.
#[derive(ToSchema)]
pub(super) struct CountResponse {
    data: ModelCount,
}

/// How many models there are.
#[derive(ToSchema)]
pub(super) struct ModelCount {
    #[schema(minimum = 0)]
    count: i64,
}

/// It is well.
#[derive(ToSchema)]
pub(super) struct HealthResponse {
    #[schema(pattern = "^ok$")]
    status: String,
}

/// The name of the service and the paths of its documentation.
#[derive(ToSchema)]
pub(super) struct RootResponse {
    name: String,
    description: String,
    /// The path that operations are below.
    base_path: String,
    documentation: String,
    openapi: String,
}
