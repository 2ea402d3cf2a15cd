//! `GET /generation?id=…`: the record of a Decisions request.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, HeaderValue};
use chrono::SecondsFormat;
use domain::api_key::Principal;
use domain::decision::Generation;
use domain::guardrail::filter::Finding;
use domain::ids::DecisionId;
use domain::usage::{AttemptRecord, GetGenerationError, UsageOutcome};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::openapi::Required;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::http::edge::Call;
use crate::http::error::ApiError;
use crate::http::query;
use crate::http::raw_json::{opaque, usd};
use crate::http::routes::{Handler, KeyedHandler, Method, Route};
use crate::openapi::operations::{COMMON_STATUSES, operation, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Get,
    "/generation",
    Handler::Keyed(KeyedHandler::AnyKey(|call, caller, _| Box::pin(handle(call, caller)))),
    tags::USAGE,
    describe,
);

fn describe() -> OperationBuilder {
    let id = ParameterBuilder::new()
        .name("id")
        .parameter_in(ParameterIn::Query)
        .required(Required::True)
        .description(Some("The id of the answer, or the header `X-Generation-Id` of an error response."))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).pattern(Some("^gen-dec-[A-Za-z0-9_-]{1,64}$"))));
    operation("getGeneration", "Get the record of a Decisions request")
        .description(Some(
            "An inference key reads the records of its workspace, a management key those of all workspaces. Members \
             outside this schema are always null.",
        ))
        .parameter(id)
        .responses(responses("The record", "GenerationResponse", &[400, 404], &COMMON_STATUSES))
}

/// A record belongs to one workspace and must not be cached on the way.
const CACHE_POLICY: HeaderValue = HeaderValue::from_static("private, no-store");

impl From<GetGenerationError> for ApiError {
    fn from(error: GetGenerationError) -> Self {
        match error {
            GetGenerationError::NotFound => Self::from_kind(error.kind()),
            GetGenerationError::Store(store) => Self::store(store),
        }
    }
}

async fn handle(call: &Call<'_>, caller: &Principal) -> Result<HttpResponse, ApiError> {
    let id = query::value(call.request.query_string(), "id")?;
    let id: DecisionId = id.unwrap_or_default().parse().map_err(|_| {
        ApiError::invalid("id must be that of a Decisions answer: gen-dec- and 1 to 64 of A-Z a-z 0-9 _ -")
    })?;
    let generation = call.gateway.services.routed.current().get_generation.execute(caller, &id).await?;
    Ok(HttpResponse::Ok().insert_header((CACHE_CONTROL, CACHE_POLICY)).json(Data { data: View::new(&generation) }))
}

#[derive(Serialize)]
struct Data<T> {
    data: T,
}

/// The record in the format that existing clients decode, with additional members.
#[derive(Serialize)]
struct View<'a> {
    id: &'a str,
    api_type: &'static str,
    model: &'a str,
    requested_model: &'a str,
    alias_resolved: Option<&'a str>,
    provider_name: String,
    created_at: String,
    total_cost: Box<RawValue>,
    usage: Box<RawValue>,
    upstream_inference_cost: Option<()>,
    cost_share: CostShareView,
    tokens_prompt: u64,
    tokens_completion: u64,
    native_tokens_prompt: u64,
    native_tokens_completion: u64,
    usage_source: &'static str,
    latency: u64,
    generation_time: Option<u64>,
    streamed: bool,
    outcome: &'static str,
    cancelled: bool,
    finish_reason: Option<&'static str>,
    is_byok: bool,
    origin: &'static str,
    data_region: &'static str,
    external_user: Option<&'a str>,
    session_id: Option<&'a str>,
    request_id: &'a str,
    workspace_id: String,
    trace: Option<Box<RawValue>>,
    charged_at: String,
    guardrail_ids: Vec<String>,
    findings: Vec<FindingView<'a>>,
    provider_responses: Vec<Response<'a>>,
    #[serde(flatten)]
    without_meaning: UnusedMembers,
}

/// The request's share of the attempts' cost: one of `of` equal shares.
#[derive(Serialize)]
struct CostShareView {
    index: u32,
    of: u32,
}

/// A content that a filter redacted or flagged, without the matched text.
#[derive(Serialize)]
struct FindingView<'a> {
    guardrail_id: String,
    label: &'a str,
    action: &'static str,
    path: &'a str,
    count: u32,
}

impl<'a> FindingView<'a> {
    fn new(finding: &'a Finding) -> Self {
        Self {
            guardrail_id: finding.guardrail_id.to_string(),
            label: &finding.label,
            action: finding.action.as_str(),
            path: &finding.path,
            count: finding.count,
        }
    }
}

/// Members that clients require but that do not apply to Decisions or are not stored: null.
#[derive(Serialize, Default)]
struct UnusedMembers {
    app_id: Option<()>,
    cache_discount: Option<()>,
    http_referer: Option<()>,
    moderation_latency: Option<()>,
    native_finish_reason: Option<()>,
    native_tokens_cached: Option<()>,
    native_tokens_completion_images: Option<()>,
    native_tokens_reasoning: Option<()>,
    num_fetches: Option<()>,
    num_input_audio_prompt: Option<()>,
    num_media_completion: Option<()>,
    num_media_prompt: Option<()>,
    num_search_results: Option<()>,
    preset_id: Option<()>,
    response_cache_source_id: Option<()>,
    router: Option<()>,
    service_tier: Option<()>,
    upstream_id: Option<()>,
    user_agent: Option<()>,
    web_search_engine: Option<()>,
}

/// One attempt.
#[derive(Serialize)]
struct Response<'a> {
    provider_name: &'a str,
    provider: &'a str,
    model: &'a str,
    model_permaslug: &'a str,
    upstream_model: &'a str,
    part: u32,
    status: Option<u16>,
    outcome: &'a str,
    began: u64,
    latency: u64,
    input_tokens: u64,
    output_tokens: u64,
    usage_source: &'static str,
    pricing: Pricing,
    cost: Option<Box<RawValue>>,
    is_byok: bool,
}

/// Prices in USD per token, as decimal strings.
#[derive(Serialize)]
struct Pricing {
    prompt: String,
    completion: String,
}

impl<'a> View<'a> {
    fn new(generation: &'a Generation) -> Self {
        let record = &generation.record;
        Self {
            id: record.id.as_str(),
            api_type: "decisions",
            model: record.model.as_str(),
            requested_model: &record.requested_model,
            alias_resolved: generation.alias_resolved.as_ref().map(domain::model::ModelId::as_str),
            provider_name: generation.provider_name_of_all(),
            created_at: record.created_at.to_rfc3339_opts(SecondsFormat::Millis, true),
            total_cost: usd(record.cost),
            usage: usd(record.cost),
            upstream_inference_cost: None,
            cost_share: CostShareView { index: record.share.index, of: record.share.of },
            tokens_prompt: record.input_tokens,
            tokens_completion: record.output_tokens,
            native_tokens_prompt: record.input_tokens,
            native_tokens_completion: record.output_tokens,
            usage_source: record.usage_source.as_str(),
            latency: milliseconds(record.latency),
            generation_time: record.time_at_providers().map(milliseconds),
            streamed: false,
            outcome: record.outcome.as_str(),
            cancelled: record.outcome == UsageOutcome::Cancelled,
            finish_reason: finish_reason(record.outcome),
            is_byok: false,
            origin: "",
            data_region: "global",
            external_user: record.user.as_deref(),
            session_id: record.session_id.as_deref(),
            request_id: record.request_id.as_str(),
            workspace_id: record.workspace_id.to_string(),
            trace: record.trace.as_ref().map(opaque),
            charged_at: record.charged_at.to_rfc3339_opts(SecondsFormat::Millis, true),
            guardrail_ids: record.guardrails.iter().map(ToString::to_string).collect(),
            findings: record.findings.iter().map(FindingView::new).collect(),
            provider_responses: record.attempts.iter().map(|attempt| Response::new(attempt, generation)).collect(),
            without_meaning: UnusedMembers::default(),
        }
    }
}

impl<'a> Response<'a> {
    fn new(attempt: &'a AttemptRecord, generation: &'a Generation) -> Self {
        let completed = attempt.outcome == UsageOutcome::Completed.as_str();
        Self {
            provider_name: generation.provider_name(&attempt.provider),
            provider: &attempt.provider,
            model: attempt.model.as_str(),
            model_permaslug: attempt.model.as_str(),
            upstream_model: &attempt.upstream_model,
            part: attempt.part,
            status: attempt.upstream_status.or(completed.then_some(200)),
            outcome: &attempt.outcome,
            began: milliseconds(attempt.began),
            latency: milliseconds(attempt.latency),
            input_tokens: attempt.input_tokens,
            output_tokens: attempt.output_tokens,
            usage_source: attempt.usage_source.as_str(),
            pricing: Pricing {
                prompt: attempt.prices.prompt.to_string(),
                completion: attempt.prices.completion.to_string(),
            },
            cost: attempt.cost().map(usd),
            is_byok: false,
        }
    }
}

/// Returns the finish reason in the terms of chat clients.
fn finish_reason(outcome: UsageOutcome) -> Option<&'static str> {
    match outcome {
        UsageOutcome::Completed => Some("stop"),
        UsageOutcome::Failed | UsageOutcome::Abandoned => Some("error"),
        UsageOutcome::Cancelled => None,
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
