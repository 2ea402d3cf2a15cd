//! `GET /models/{author}/{slug}/endpoints`: the endpoints of a model and their health.

use domain::model::{Model, Pricing};
use domain::question::QuestionType;
use domain::routing::{Endpoint, EndpointStatus, ModelEndpoints, Percentiles, ThrottleView};
use wires::catalogue::{write_architecture, write_pricing};

use crate::endpoints::prelude::*;
use crate::http::error::whole_seconds;
use crate::rendered_catalogue::schema;

pub(crate) const ROUTE: Route = Route::memory(Get, "/models/{author}/{slug}/endpoints", tags::MODELS, handle)
    .operation("listModelEndpoints", "List the endpoints of a model")
    .description(
        "The configured endpoints of the model, in configuration order, and their current health. Names resolve \
         as in `GET /model/{author}/{slug}`.",
    )
    .headers(&[IF_NONE_MATCH])
    .answer(|| BodySchema::data::<View<'_>>("ModelEndpointsResponse", "A model and its endpoints."), "The endpoints");

fn handle(call: &Call<'_>) -> Outcome {
    let [author, slug, _] = call.parameters.map(parameters::segment);
    // A segment that is not valid UTF-8 names no model.
    let (author, slug) = author.zip(slug).ok_or_else(ApiError::not_found)?;
    let listed = call.routed().list_endpoints.of_model(&author, &slug)?;
    Ok(TaggedBody::json(&Data { data: View::new(&listed) })?.respond(call.request))
}

/// A model and its endpoints.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelEndpoints)]
struct View<'a> {
    id: &'a str,
    name: &'a str,
    /// Unix epoch seconds.
    created: i64,
    description: &'a str,
    #[schema(value_type = schema::Architecture)]
    architecture: Box<RawValue>,
    endpoints: Vec<EndpointView<'a>>,
}

impl<'a> View<'a> {
    fn new(listed: &'a ModelEndpoints) -> Self {
        let model = &*listed.model;
        Self {
            id: model.id.as_str(),
            name: &model.name,
            created: model.created,
            description: &model.description,
            architecture: raw(write_architecture(&model.architecture)),
            endpoints: listed.endpoints.iter().map(|status| EndpointView::new(model, status)).collect(),
        }
    }
}

/// A model as one provider serves it.
// The members before `wire` are those that existing clients decode.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelEndpoint)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent member of the API")]
pub(super) struct EndpointView<'a> {
    name: String,
    model_id: &'a str,
    model_name: &'a str,
    /// The context length in tokens; 0 if unknown.
    context_length: u64,
    #[schema(value_type = schema::Pricing)]
    pricing: Box<RawValue>,
    provider_name: &'a str,
    /// The provider's slug, as used in preferences.
    tag: &'a str,
    quantization: &'static str,
    #[schema(required)]
    max_completion_tokens: Option<u64>,
    #[schema(required, value_type = Option<u64>)]
    max_prompt_tokens: Option<usize>,
    supported_parameters: &'a [String],
    supports_implicit_caching: bool,
    supports_tool_choice: ToolChoice,
    /// Always false.
    supports_diarization: bool,
    /// Always empty.
    #[schema(value_type = Object)]
    native_tools: NoTools,
    /// Always null.
    #[schema(required, value_type = Option<String>)]
    service_tier: Option<()>,
    /// 0: not throttled. -1: throttled for some workspaces, by their own failures. -2: throttled for all.
    #[schema(minimum = -2, maximum = 0)]
    status: i8,
    /// The per cent of successful attempts over the throttling window; null without an attempt.
    #[schema(required)]
    uptime_last_5m: Option<f64>,
    /// Equals `uptime_last_5m`.
    #[schema(required)]
    uptime_last_30m: Option<f64>,
    /// Not measured.
    #[schema(required, value_type = Option<f64>)]
    uptime_last_1d: Option<()>,
    /// Milliseconds over the last five minutes; null without an answer.
    #[schema(required)]
    latency_last_30m: Option<PercentilesView>,
    /// Tokens per second over the last five minutes; null without an answer.
    #[schema(required)]
    throughput_last_30m: Option<PercentilesView>,
    /// The wire format of the endpoint.
    wire: &'static str,
    /// The model's name at the provider.
    upstream_model: &'a str,
    /// The supported question types: `noul`, `choice`, `score`, `box`.
    question_types: Vec<&'static str>,
    /// True if the provider answers each question by itself: of a later stage of a preset it receives the open ones only.
    independent_questions: bool,
    limits: Limits,
    /// The transport of images: `none`, `assets`, `images` or `input`.
    images: &'static str,
    /// The meaning of `confidence`: `system-one`, `computed` or defined by the provider.
    confidence: &'static str,
    /// True if the provider has zero data retention.
    zdr: bool,
    /// `deny` if the provider neither stores inputs nor trains on them, otherwise `allow`.
    data_collection: &'static str,
    health: Health,
}

/// The support of each `tool_choice`; always false.
#[derive(Serialize, Default, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "the members that clients insist on")]
struct ToolChoice {
    auto: bool,
    function: bool,
    none: bool,
    required: bool,
}

/// The tools of a provider, of which Decisions use none. Clients insist on the object.
#[derive(Serialize)]
struct NoTools {}

/// The limits of the endpoint; null means no limit.
#[derive(Serialize, ToSchema)]
#[schema(as = EndpointLimits)]
struct Limits {
    #[schema(required, value_type = Option<u64>)]
    max_questions: Option<usize>,
    #[schema(required, value_type = Option<u64>)]
    max_options: Option<usize>,
    #[schema(required, value_type = Option<u64>)]
    max_levels: Option<usize>,
    #[schema(required, value_type = Option<u64>)]
    max_body_bytes: Option<usize>,
    #[schema(required, value_type = Option<u64>)]
    max_input_tokens: Option<usize>,
}

/// Percentiles: the given per cent of the answers were at least this good.
#[derive(Serialize, ToSchema)]
#[schema(as = Percentiles)]
struct PercentilesView {
    p50: f64,
    p75: f64,
    p90: f64,
    p99: f64,
}

/// The throttling of an endpoint, based on the attempts of this process.
#[derive(Serialize, ToSchema)]
#[schema(as = EndpointHealth)]
struct Health {
    /// True during a back-off for all workspaces, or if requests of any workspace are rejected with a probability of at
    /// least 10 %.
    throttled: bool,
    /// The number of workspaces throttled because of their own failures.
    #[schema(value_type = u64)]
    throttled_workspaces: u32,
    /// The share of successful attempts over the throttling window; null without an attempt.
    #[schema(required, minimum = 0, maximum = 1)]
    accept_rate: Option<f64>,
    /// The probability with which a request of any workspace is rejected; 1 during a back-off.
    #[schema(minimum = 0, maximum = 1)]
    rejection_probability: f64,
    /// The remaining back-off for all workspaces, in seconds; null without one.
    #[schema(required)]
    retry_in_seconds: Option<u64>,
    /// The decaying average latency of successful answers, in milliseconds; null without an answer.
    #[schema(required)]
    latency_ms: Option<f64>,
}

impl<'a> EndpointView<'a> {
    pub(super) fn new(model: &'a Model, status: &'a EndpointStatus) -> Self {
        let EndpointStatus { endpoint, health, throttling } = status;
        let limits = endpoint.limits();
        let uptime = uptime(throttling);
        Self {
            name: format!("{} | {}", endpoint.provider_name, model.canonical_slug),
            model_id: model.id.as_str(),
            model_name: &model.name,
            context_length: model.context_length.unwrap_or(0),
            pricing: raw(pricing(model, endpoint)),
            provider_name: &endpoint.provider_name,
            tag: endpoint.provider.as_str(),
            quantization: endpoint.quantization.as_str(),
            max_completion_tokens: model.top_provider.max_completion_tokens,
            max_prompt_tokens: limits.max_input_tokens,
            supported_parameters: &model.supported_parameters,
            supports_implicit_caching: false,
            supports_tool_choice: ToolChoice::default(),
            supports_diarization: false,
            native_tools: NoTools {},
            service_tier: None,
            status: status_code(throttling),
            uptime_last_5m: uptime,
            uptime_last_30m: uptime,
            uptime_last_1d: None,
            latency_last_30m: health.percentiles.map(|measured| PercentilesView::new(measured, milliseconds)),
            throughput_last_30m: health.throughput.map(|measured| PercentilesView::new(measured, tokens_per_second)),
            wire: endpoint.wire.as_str(),
            upstream_model: &endpoint.upstream_model,
            question_types: question_types(endpoint),
            independent_questions: endpoint.independent_questions,
            limits: Limits {
                max_questions: limits.max_questions,
                max_options: limits.max_options,
                max_levels: limits.max_levels,
                max_body_bytes: limits.max_body_bytes,
                max_input_tokens: limits.max_input_tokens,
            },
            images: endpoint.attachments.as_str(),
            confidence: endpoint.confidence.as_str(),
            zdr: endpoint.data_policy.zdr,
            data_collection: if endpoint.data_policy.collects { "allow" } else { "deny" },
            health: Health::new(status),
        }
    }
}

/// Returns the endpoint's own prices, or those of the catalogue row.
fn pricing(model: &Model, endpoint: &Endpoint) -> String {
    match endpoint.prices {
        Some(own) => write_pricing(&Pricing::per_token(own.prompt, own.completion)),
        None => write_pricing(&model.pricing),
    }
}

fn question_types(endpoint: &Endpoint) -> Vec<&'static str> {
    QuestionType::ALL.into_iter().filter(|&known| endpoint.supports_type(known)).map(QuestionType::as_str).collect()
}

/// Returns 0 for an endpoint that is not throttled, -1 if some workspaces are throttled, -2 if all are.
fn status_code(throttling: &ThrottleView) -> i8 {
    match throttling {
        ThrottleView { throttled: true, .. } => -2,
        ThrottleView { throttled_workspaces: 1.., .. } => -1,
        ThrottleView { .. } => 0,
    }
}

/// Returns the per cent of successful attempts; `None` without an attempt.
fn uptime(throttling: &ThrottleView) -> Option<f64> {
    throttling.accept_rate.map(|rate| rounded(rate * 100.0, 100.0))
}

impl PercentilesView {
    fn new<T>(measured: Percentiles<T>, convert: impl Fn(T) -> f64) -> Self {
        let Percentiles { p50, p75, p90, p99 } = measured;
        let [p50, p75, p90, p99] = [p50, p75, p90, p99].map(convert);
        Self { p50, p75, p90, p99 }
    }
}

/// Converts thousandths of a token per second to tokens per second.
#[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 53 bits")]
fn tokens_per_second(thousandths: u64) -> f64 {
    thousandths as f64 / 1000.0
}

impl Health {
    fn new(EndpointStatus { health, throttling, .. }: &EndpointStatus) -> Self {
        Self {
            throttled: throttling.throttled,
            throttled_workspaces: throttling.throttled_workspaces,
            accept_rate: throttling.accept_rate.map(|rate| rounded(rate, 10_000.0)),
            rejection_probability: rounded(throttling.rejection_probability, 10_000.0),
            retry_in_seconds: throttling.retry_in.map(whole_seconds),
            latency_ms: health.latency.map(milliseconds),
        }
    }
}

/// Converts to milliseconds with microsecond precision.
fn milliseconds(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64() * 1000.0, 1000.0)
}

/// Rounds to multiples of one `parts`-th.
fn rounded(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

pub(crate) const ZERO_RETENTION: Route = Route::memory(Get, "/endpoints/zdr", tags::MODELS, handle_zero_retention)
    .operation("listZeroRetentionEndpoints", "List the endpoints with zero data retention")
    .description(
        "The configured endpoints whose providers retain no data, of all models, in configuration order, and \
         their current health.",
    )
    .headers(&[IF_NONE_MATCH])
    .answer(
        || BodySchema::data::<Vec<EndpointView<'_>>>("EndpointsResponse", "Endpoints with zero data retention."),
        "The endpoints",
    )
    .also(&[400]);

fn handle_zero_retention(call: &Call<'_>) -> Outcome {
    let listed = call.routed().list_endpoints.with_zero_retention();
    let data: Vec<_> = listed.iter().map(|(model, status)| EndpointView::new(model, status)).collect();
    Ok(TaggedBody::json(&Data { data })?.respond(call.request))
}

#[cfg(test)]
mod tests;
