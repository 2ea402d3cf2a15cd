//! The bodies of lists and records, as the description shows them.
#![expect(dead_code, reason = "only their schemas are used")]

use serde_json::Value;
use utoipa::ToSchema;

use super::schemas::{Architecture, Model, Pricing};

/// Models.
#[derive(ToSchema)]
pub(super) struct ModelListResponse {
    #[schema(pattern = "^list$")]
    object: String,
    data: Vec<ListedModel>,
    /// Every decision model, in the form that clients of System One read.
    models: Vec<DecisionModel>,
    /// How many models the filter lets through.
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
    /// What a request names it by.
    name: String,
    description: String,
    #[schema(format = Date)]
    release_date: String,
}

/// Where to read on.
#[derive(ToSchema)]
pub(super) struct PageLinks {
    /// The path and query of the next page; null on the last one.
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
    /// Tokens; 0 where nobody knows.
    context_length: i64,
    pricing: Pricing,
    provider_name: String,
    /// The provider's slug, as preferences name it.
    tag: String,
    quantization: String,
    #[schema(required)]
    max_completion_tokens: Option<i64>,
    #[schema(required)]
    max_prompt_tokens: Option<i64>,
    supported_parameters: Vec<String>,
    supports_implicit_caching: bool,
    #[schema(value_type = Object)]
    supports_tool_choice: Value,
    /// 0: not throttled. -1: throttled for some workspaces, by their own failures. -2: throttled for all.
    #[schema(minimum = -2, maximum = 0)]
    status: i32,
    /// Per cent of attempts with a good answer over the throttling window; null without an attempt.
    #[schema(required)]
    uptime_last_5m: Option<f64>,
    /// The same number.
    #[schema(required)]
    uptime_last_30m: Option<f64>,
    /// Not measured.
    #[schema(required)]
    uptime_last_1d: Option<f64>,
    /// Milliseconds, over the last five minutes; null where there was no answer.
    #[schema(required)]
    latency_last_30m: Option<Percentiles>,
    /// Tokens a second, over the last five minutes; null where there was no answer.
    #[schema(required)]
    throughput_last_30m: Option<Percentiles>,
    /// The protocol that it speaks.
    wire: String,
    /// The model's name at the provider.
    upstream_model: String,
    /// Of `noul`, `choice`, `score`, `box`.
    question_types: Vec<String>,
    limits: EndpointLimits,
    /// In which form it takes images: `none`, `assets`, `images` or `input`.
    images: String,
    /// What its `confidence` is: `system-one`, `computed` or as the provider means it.
    confidence: String,
    /// True where the provider keeps nothing.
    zdr: bool,
    /// `deny` where the provider does not store or train on what it is sent.
    data_collection: String,
    health: EndpointHealth,
}

/// So many per cent of the answers were at least this good.
#[derive(ToSchema)]
pub(super) struct Percentiles {
    p50: f64,
    p75: f64,
    p90: f64,
    p99: f64,
}

/// What the endpoint takes at most; null is no limit.
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

/// How an endpoint is throttled, by the attempts of this process.
#[derive(ToSchema)]
pub(super) struct EndpointHealth {
    /// True during a back-off for all workspaces, and where a request of any workspace is rejected with a probability
    /// of 10 % and more.
    throttled: bool,
    /// The number of workspaces that are throttled by their own failures.
    #[schema(minimum = 0)]
    throttled_workspaces: i64,
    /// The share of attempts with a good answer over the throttling window; null without an attempt.
    #[schema(required, minimum = 0, maximum = 1)]
    accept_rate: Option<f64>,
    /// The probability with which a request of any workspace is rejected; 1 during a back-off.
    #[schema(minimum = 0, maximum = 1)]
    rejection_probability: f64,
    /// The rest of a back-off for all workspaces; null without one.
    #[schema(required)]
    retry_in_seconds: Option<i64>,
    /// The average of good answers, with decay.
    #[schema(required)]
    latency_ms: Option<f64>,
}

/// Providers.
#[derive(ToSchema)]
pub(super) struct ProvidersResponse {
    data: Vec<Provider>,
}

/// A provider. The members for its addresses and places are always null.
#[derive(ToSchema)]
pub(super) struct Provider {
    name: String,
    /// As preferences name it.
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

/// The number of its endpoints, by how they are throttled.
#[derive(ToSchema)]
pub(super) struct ProviderHealth {
    /// Not throttled for any workspace.
    healthy: i64,
    /// Throttled for some workspaces, by their own failures.
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
    /// The model that was served or tried.
    model: String,
    /// The model as the caller named it.
    requested_model: String,
    /// What that name turned out to be, where it was another name than the model's id.
    #[schema(required)]
    alias_resolved: Option<String>,
    /// Who answered; who was tried last where nobody did.
    provider_name: String,
    #[schema(format = DateTime)]
    created_at: String,
    /// USD.
    total_cost: f64,
    /// The same amount.
    usage: f64,
    cost_share: CostShare,
    tokens_prompt: i64,
    tokens_completion: i64,
    native_tokens_prompt: i64,
    native_tokens_completion: i64,
    /// `reported`, or `bound` where a provider did not say what it used.
    token_source: String,
    /// Milliseconds from the request's beginning to its end.
    latency: i64,
    /// Milliseconds from the first attempt's beginning to the last one's end.
    #[schema(required)]
    generation_time: Option<i64>,
    streamed: bool,
    /// `completed`, `failed`, `cancelled`, or `abandoned` where the process died.
    outcome: String,
    cancelled: bool,
    /// `stop` where it was answered, `error` where every attempt failed, null where the caller left.
    #[schema(required)]
    finish_reason: Option<String>,
    is_byok: bool,
    /// Empty: it is not kept.
    origin: String,
    data_region: String,
    /// The end user, as the request named it.
    #[schema(required)]
    external_user: Option<String>,
    #[schema(required)]
    session_id: Option<String>,
    request_id: String,
    workspace_id: String,
    /// As it was sent.
    #[schema(required, value_type = Option<Object>)]
    trace: Option<Value>,
    /// The moment whose day, week and month the cost belongs to.
    #[schema(format = DateTime)]
    charged_at: String,
    /// The guardrails that the key was under, the workspace's first.
    guardrail_ids: Vec<String>,
    /// What their content filters redacted or flagged.
    findings: Vec<FilterFinding>,
    /// One for each attempt, in the order in which they began.
    provider_responses: Vec<ProviderResponse>,
}

/// What a content filter found, without what it was.
#[derive(ToSchema)]
pub(super) struct FilterFinding {
    guardrail_id: String,
    label: String,
    /// `redact` or `flag`.
    action: String,
    /// Where the first match is.
    path: String,
    /// How many matches there were.
    count: i64,
}

/// Which share of the cost of its attempts a request bears, where identical requests shared a call.
#[derive(ToSchema)]
pub(super) struct CostShare {
    /// Its place among the requests, from 0.
    index: i64,
    /// How many requests share the cost.
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
    /// Which part of a split request it was for, from 0.
    part: i64,
    /// The provider's HTTP status where it failed with one, 200 where it answered.
    #[schema(required)]
    status: Option<i32>,
    /// `completed`, or how it failed.
    outcome: String,
    /// Milliseconds from the request's beginning to the attempt's.
    began: i64,
    /// Milliseconds that it took.
    latency: i64,
    input_tokens: i64,
    output_tokens: i64,
    token_source: String,
    pricing: AttemptPricing,
    /// USD, rounded up by itself; the request's cost is rounded up once for all of its attempts.
    #[schema(required)]
    cost: Option<f64>,
    is_byok: bool,
}

/// USD per token, as decimal strings.
#[derive(ToSchema)]
pub(super) struct AttemptPricing {
    prompt: String,
    completion: String,
}
