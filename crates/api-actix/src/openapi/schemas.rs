//! The schemas of the contract's bodies. The bodies are parsed and written elsewhere, by hand where exact bytes matter;
//! the tests compare both.
#![expect(dead_code, reason = "only their schemas are used")]

use serde_json::Value;
use utoipa::ToSchema;

/// The body of every error response.
#[derive(ToSchema)]
pub(super) struct ErrorEnvelope {
    error: ErrorBody,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
    /// The owner of the caller's workspace, if set.
    user_id: Option<String>,
}

/// The error.
#[derive(ToSchema)]
pub(super) struct ErrorBody {
    /// Equals the HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    code: i32,
    message: String,
    /// Machine-readable details; always contains `request_id`.
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
    /// The file's path in its container.
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
    /// The file's path in its container.
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
    /// The file's path in its container.
    filename: String,
    purpose: Purpose,
    #[schema(pattern = "^processed$")]
    status: String,
}

/// The purpose of a file; promoted files have `assistants_output`.
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
    /// A model that serves Decisions requests.
    #[schema(min_length = 1)]
    model: String,
    /// A map of typed questions (`noul`, `choice`, `score`), or any other JSON value, which is forwarded unchanged.
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
    #[schema(value_type = Option<Object>)]
    trace: Option<Value>,
    /// The end user; never sent to a provider.
    #[schema(max_length = 256)]
    user: Option<String>,
    /// Fallback models, tried in order if no endpoint of the previous models succeeds.
    #[schema(max_items = 16)]
    models: Option<Vec<String>>,
    /// True returns an error for each unanswered question instead of failing the whole request.
    partial: Option<bool>,
    /// Media, by the names that the state refers to. Only sent to endpoints with `assets` support.
    #[schema(value_type = Option<Object>)]
    assets: Option<Value>,
    /// Images beside the state. Only sent to endpoints with `images` support.
    images: Option<Vec<Value>>,
}

/// Routing preferences. Unsupported preferences are rejected, never ignored.
#[derive(ToSchema)]
pub(super) struct ProviderPreferences {
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
    #[schema(value_type = Option<Object>)]
    max_price: Option<Value>,
    /// The preferred maximum latency in seconds: a number, or an object of percentiles.
    #[schema(required = false)]
    preferred_max_latency: Value,
    /// The preferred minimum throughput in tokens per second: a number, or an object of percentiles.
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
    /// The id of the answer and of its generation record.
    id: String,
    /// The provider that served the request.
    provider: String,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
}

/// The usage of the request.
#[derive(ToSchema)]
pub(super) struct Usage {
    #[schema(minimum = 0)]
    input_tokens: i64,
    #[schema(minimum = 0)]
    output_tokens: i64,
    /// The cost in USD.
    cost: f64,
}

/// The keys to assign.
#[derive(ToSchema)]
pub(super) struct AssignKeysRequest {
    /// The keys, by hash (64 lower-case hex digits) or id (UUID). Unknown keys are skipped; a repeated key counts once.
    #[schema(min_items = 1, value_type = Vec<KeyHash>)]
    key_hashes: Vec<KeyHash>,
}

/// The hash or the id of a key.
#[derive(ToSchema)]
#[schema(min_length = 1)]
pub(super) struct KeyHash(String);

/// The number of assigned keys.
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

/// A model. Further public members are possible.
#[derive(ToSchema)]
pub(super) struct Model {
    /// `author/slug`, optionally followed by a colon and a variant.
    id: String,
    canonical_slug: String,
    name: String,
    /// Unix epoch seconds.
    created: i64,
    description: String,
    /// The context length in tokens.
    #[schema(required)]
    context_length: Option<i64>,
    architecture: Architecture,
    pricing: Pricing,
    top_provider: TopProvider,
    supported_parameters: Vec<String>,
    /// The model that an alias leads to; only in rows of aliases.
    #[schema(nullable = false)]
    alias_target: Option<AliasTarget>,
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

/// The target of an alias.
#[derive(ToSchema)]
pub(super) struct AliasTarget {
    name: String,
    /// The id of the model.
    slug: String,
}

/// The input and output modalities.
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

/// Prices in USD per unit, as decimal strings; further prices are possible.
#[derive(ToSchema)]
pub(super) struct Pricing {
    prompt: String,
    completion: String,
    image: String,
    request: String,
    /// Prices under conditions, as imported.
    #[schema(nullable = false, value_type = Option<Vec<Object>>)]
    overrides: Option<Vec<Value>>,
}

/// The limits of the top provider.
#[derive(ToSchema)]
pub(super) struct TopProvider {
    #[schema(required)]
    context_length: Option<i64>,
    #[schema(required)]
    max_completion_tokens: Option<i64>,
    is_moderated: bool,
}

/// The links of a model.
#[derive(ToSchema)]
pub(super) struct Links {
    /// The path of the model's endpoints.
    details: String,
}

/// The reasoning capability of a model.
#[derive(ToSchema)]
pub(super) struct Reasoning {
    mandatory: bool,
    default_enabled: Option<bool>,
    default_effort: Option<String>,
    supported_efforts: Option<Vec<String>>,
}

/// The model count.
#[derive(ToSchema)]
pub(super) struct CountResponse {
    data: ModelCount,
}

/// The number of models.
#[derive(ToSchema)]
pub(super) struct ModelCount {
    #[schema(minimum = 0)]
    count: i64,
}

/// The process is alive.
#[derive(ToSchema)]
pub(super) struct LiveResponse {
    #[schema(pattern = "^ok$")]
    status: String,
}

/// The process serves requests.
#[derive(ToSchema)]
pub(super) struct ReadyResponse {
    status: ReadyStatus,
    /// The stores that do not respond; only with the status `degraded`.
    #[schema(nullable = false, min_items = 1)]
    unavailable: Option<Vec<String>>,
}

/// `degraded` if known keys are served without a store.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum ReadyStatus {
    Ok,
    Degraded,
}

/// The name of the service and the paths of its documentation.
#[derive(ToSchema)]
pub(super) struct RootResponse {
    name: String,
    description: String,
    /// The base path of the operations.
    base_path: String,
    documentation: String,
    openapi: String,
}
