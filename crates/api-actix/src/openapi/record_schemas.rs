//! The schemas of lists and records.
#![expect(dead_code, reason = "only their schemas are used")]

use serde_json::Value;
use utoipa::ToSchema;

use super::schemas::{Architecture, Model, Pricing};

/// A list of models.
#[derive(ToSchema)]
pub(super) struct ModelListResponse {
    #[schema(pattern = "^list$")]
    object: String,
    data: Vec<ListedModel>,
    /// The decision models, whatever the filter and the page, in the format of System One's clients.
    models: Vec<DecisionModel>,
    /// The number of models that match the filter.
    #[schema(minimum = 0)]
    total_count: i64,
    links: PageLinks,
}

/// A model in a list.
#[derive(ToSchema)]
pub(super) struct ListedModel {
    #[serde(flatten)]
    model: Model,
    #[schema(pattern = "^model$")]
    object: String,
    /// The author.
    owned_by: String,
}

/// A decision model.
#[derive(ToSchema)]
pub(super) struct DecisionModel {
    /// The name to use in requests.
    name: String,
    description: String,
    #[schema(format = Date)]
    release_date: String,
}

/// The links to other pages.
#[derive(ToSchema)]
pub(super) struct PageLinks {
    /// The path and query of the next page; null on the last page.
    #[schema(required)]
    next: Option<String>,
}

/// A model and its endpoints.
#[derive(ToSchema)]
pub(super) struct ModelEndpointsResponse {
    data: ModelEndpoints,
}

/// A model and its endpoints.
#[derive(ToSchema)]
pub(super) struct ModelEndpoints {
    id: String,
    name: String,
    /// Unix epoch seconds.
    created: i64,
    description: String,
    architecture: Architecture,
    endpoints: Vec<ModelEndpoint>,
}

/// A model as one provider serves it.
#[derive(ToSchema)]
pub(super) struct ModelEndpoint {
    name: String,
    model_id: String,
    model_name: String,
    /// The context length in tokens; 0 if unknown.
    context_length: i64,
    pricing: Pricing,
    provider_name: String,
    /// The provider's slug, as used in preferences.
    tag: String,
    quantization: String,
    #[schema(required)]
    max_completion_tokens: Option<i64>,
    #[schema(required)]
    max_prompt_tokens: Option<i64>,
    supported_parameters: Vec<String>,
    supports_implicit_caching: bool,
    supports_tool_choice: ToolChoice,
    /// Always false.
    supports_diarization: bool,
    /// Always empty.
    #[schema(value_type = Object)]
    native_tools: Value,
    /// Always null.
    #[schema(required)]
    service_tier: Option<String>,
    /// 0: not throttled. -1: throttled for some workspaces, by their own failures. -2: throttled for all.
    #[schema(minimum = -2, maximum = 0)]
    status: i32,
    /// The per cent of successful attempts over the throttling window; null without an attempt.
    #[schema(required)]
    uptime_last_5m: Option<f64>,
    /// Equals `uptime_last_5m`.
    #[schema(required)]
    uptime_last_30m: Option<f64>,
    /// Not measured.
    #[schema(required)]
    uptime_last_1d: Option<f64>,
    /// Milliseconds over the last five minutes; null without an answer.
    #[schema(required)]
    latency_last_30m: Option<Percentiles>,
    /// Tokens per second over the last five minutes; null without an answer.
    #[schema(required)]
    throughput_last_30m: Option<Percentiles>,
    /// The wire format of the endpoint.
    wire: String,
    /// The model's name at the provider.
    upstream_model: String,
    /// The supported question types: `noul`, `choice`, `score`, `box`.
    question_types: Vec<String>,
    limits: EndpointLimits,
    /// The transport of images: `none`, `assets`, `images` or `input`.
    images: String,
    /// The meaning of `confidence`: `system-one`, `computed` or defined by the provider.
    confidence: String,
    /// True if the provider has zero data retention.
    zdr: bool,
    /// `deny` if the provider neither stores inputs nor trains on them, otherwise `allow`.
    data_collection: String,
    health: EndpointHealth,
}

/// The support of each `tool_choice`; always false.
#[derive(ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "the members that clients insist on")]
pub(super) struct ToolChoice {
    auto: bool,
    function: bool,
    none: bool,
    required: bool,
}

/// Percentiles: the given per cent of the answers were at least this good.
#[derive(ToSchema)]
pub(super) struct Percentiles {
    p50: f64,
    p75: f64,
    p90: f64,
    p99: f64,
}

/// The limits of the endpoint; null means no limit.
#[derive(ToSchema)]
pub(super) struct EndpointLimits {
    #[schema(required)]
    max_questions: Option<i64>,
    #[schema(required)]
    max_options: Option<i64>,
    #[schema(required)]
    max_levels: Option<i64>,
    #[schema(required)]
    max_body_bytes: Option<i64>,
    #[schema(required)]
    max_input_tokens: Option<i64>,
}

/// The throttling of an endpoint, based on the attempts of this process.
#[derive(ToSchema)]
pub(super) struct EndpointHealth {
    /// True during a back-off for all workspaces, or if requests of any workspace are rejected with a probability of at
    /// least 10 %.
    throttled: bool,
    /// The number of workspaces throttled because of their own failures.
    #[schema(minimum = 0)]
    throttled_workspaces: i64,
    /// The share of successful attempts over the throttling window; null without an attempt.
    #[schema(required, minimum = 0, maximum = 1)]
    accept_rate: Option<f64>,
    /// The probability with which a request of any workspace is rejected; 1 during a back-off.
    #[schema(minimum = 0, maximum = 1)]
    rejection_probability: f64,
    /// The remaining back-off for all workspaces, in seconds; null without one.
    #[schema(required)]
    retry_in_seconds: Option<i64>,
    /// The decaying average latency of successful answers, in milliseconds; null without an answer.
    #[schema(required)]
    latency_ms: Option<f64>,
}

/// A list of providers.
#[derive(ToSchema)]
pub(super) struct ProvidersResponse {
    data: Vec<Provider>,
}

/// A provider. The members for its addresses and locations are always null.
#[derive(ToSchema)]
pub(super) struct Provider {
    name: String,
    /// The slug, as used in preferences.
    slug: String,
    #[schema(required)]
    privacy_policy_url: Option<String>,
    #[schema(required)]
    terms_of_service_url: Option<String>,
    #[schema(required)]
    status_page_url: Option<String>,
    #[schema(required)]
    headquarters: Option<String>,
    #[schema(required)]
    datacenters: Option<Vec<String>>,
    #[schema(minimum = 1)]
    endpoint_count: i64,
    health: ProviderHealth,
}

/// The number of the provider's endpoints, by throttling.
#[derive(ToSchema)]
pub(super) struct ProviderHealth {
    /// Not throttled for any workspace.
    healthy: i64,
    /// Throttled for some workspaces because of their own failures.
    throttled_for_some: i64,
    /// Throttled for all workspaces.
    throttled: i64,
}

/// The record of a Decisions request.
#[derive(ToSchema)]
pub(super) struct GenerationResponse {
    data: Generation,
}

/// The record of a Decisions request.
#[derive(ToSchema)]
pub(super) struct Generation {
    id: String,
    #[schema(pattern = "^decisions$")]
    api_type: String,
    /// The model that served the request or was tried.
    model: String,
    /// The model name in the request.
    requested_model: String,
    /// The model id that the name resolved to; null if the name is the id.
    #[schema(required)]
    alias_resolved: Option<String>,
    /// The provider of the answer, or of the last attempt if none succeeded.
    provider_name: String,
    #[schema(format = DateTime)]
    created_at: String,
    /// The cost in USD.
    total_cost: f64,
    /// Equals `total_cost`.
    usage: f64,
    cost_share: CostShare,
    tokens_prompt: i64,
    tokens_completion: i64,
    native_tokens_prompt: i64,
    native_tokens_completion: i64,
    /// `reported` by the provider, `upper_bound` where a provider reported no usage, or `none` where no usage is charged.
    usage_source: String,
    /// The duration of the request in milliseconds.
    latency: i64,
    /// The time from the start of the first attempt to the end of the last one, in milliseconds.
    #[schema(required)]
    generation_time: Option<i64>,
    streamed: bool,
    /// `completed`, `failed`, `cancelled`, or `abandoned` if the process died.
    outcome: String,
    cancelled: bool,
    /// `stop` if answered, `error` if every attempt failed, null if the client disconnected.
    #[schema(required)]
    finish_reason: Option<String>,
    is_byok: bool,
    /// Always empty: it is not stored.
    origin: String,
    data_region: String,
    /// The end user named in the request.
    #[schema(required)]
    external_user: Option<String>,
    #[schema(required)]
    session_id: Option<String>,
    request_id: String,
    workspace_id: String,
    /// The trace metadata of the request, unchanged.
    #[schema(required, value_type = Option<Object>)]
    trace: Option<Value>,
    /// The time that decides the day, week and month of the cost.
    #[schema(format = DateTime)]
    charged_at: String,
    /// The ids of the guardrails that applied to the key, the workspace's first.
    guardrail_ids: Vec<String>,
    /// The matches that content filters redacted or flagged.
    findings: Vec<FilterFinding>,
    /// All attempts, in the order in which they began.
    provider_responses: Vec<ProviderResponse>,
}

/// The matches of a content filter, without the matched text.
#[derive(ToSchema)]
pub(super) struct FilterFinding {
    guardrail_id: String,
    label: String,
    /// `redact` or `flag`.
    action: String,
    /// The path of the first match.
    path: String,
    /// The number of matches.
    count: i64,
}

/// The request's share of the cost, if identical requests shared a call.
#[derive(ToSchema)]
pub(super) struct CostShare {
    /// The index of the request among those, from 0.
    index: i64,
    /// The number of requests that share the cost.
    #[schema(minimum = 1)]
    of: i64,
}

/// One attempt.
#[derive(ToSchema)]
pub(super) struct ProviderResponse {
    provider_name: String,
    /// The provider's slug.
    provider: String,
    model: String,
    model_permaslug: String,
    /// The model's name at the provider.
    upstream_model: String,
    /// The sub-request of a split request, from 0.
    part: i64,
    /// The provider's HTTP status: 200 for an answer, otherwise the error status.
    #[schema(required)]
    status: Option<i32>,
    /// `completed`, `connect_error`, `http_error`, `invalid_response`, `provider_auth_failed`, `overloaded`,
    /// `timed_out`, `rejected_by_provider`, `no_usable_answer`, `client_disconnected`, `cancelled`, `hedge_lost`,
    /// `simulated`, or `abandoned`.
    outcome: String,
    /// The time from the start of the request to the start of the attempt, in milliseconds.
    began: i64,
    /// The duration of the attempt in milliseconds.
    latency: i64,
    input_tokens: i64,
    output_tokens: i64,
    usage_source: String,
    pricing: AttemptPricing,
    /// The cost in USD, rounded up per attempt. The request's cost is rounded up once for all attempts.
    #[schema(required)]
    cost: Option<f64>,
    is_byok: bool,
}

/// Prices in USD per token, as decimal strings.
#[derive(ToSchema)]
pub(super) struct AttemptPricing {
    prompt: String,
    completion: String,
}
