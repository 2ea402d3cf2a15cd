//! `GET /generation?id=…`: the record of a Decisions request.

use std::net::IpAddr;

use chrono::SecondsFormat;
use domain::decision::{Generation, GetGenerationError};
use domain::ids::DecisionId;
use domain::usage::{AttemptRecord, Finding, UsageOutcome};
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::any_key(Get, "/generation", tags::USAGE, handler!(handle))
    .any_query()
    .operation("getGeneration", "Get the record of a Decisions request")
    .description(
        "An inference key reads its own records, a management key those of its workspaces. Members outside this \
         schema are always null.",
    )
    .query(&[Query::new("id", "The id of the answer, or the header `X-Generation-Id` of an error response.", || {
        text().pattern(Some("^gen-dec-[A-Za-z0-9_-]{1,64}$"))
    })
    .required()])
    .answer(
        || BodySchema::data::<GenerationView<'_>>("GenerationResponse", "The record of a Decisions request."),
        "The record",
    )
    .also(&[404]);

api_error!(GetGenerationError {
    pass: Store;
    kind: NotFound;
});

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let id = parameters::value(call.request.query_string(), "id")?;
    let id: DecisionId = id.unwrap_or_default().parse().map_err(|_| {
        ApiError::invalid("id must be that of a Decisions answer: gen-dec- and 1 to 64 of A-Z a-z 0-9 _ -")
    })?;
    let generation = call.routed().get_generation.execute(caller, &id).await?;
    Ok(HttpResponse::Ok().json(Data { data: GenerationView::new(&generation) }))
}

/// The record of a Decisions request.
#[derive(Serialize, ToSchema)]
#[schema(as = Generation)]
pub(crate) struct GenerationView<'a> {
    id: &'a str,
    #[schema(pattern = "^decisions$")]
    api_type: &'static str,
    /// The model that served the request or was tried.
    model: &'a str,
    /// The model name in the request.
    requested_model: &'a str,
    /// The model id that the name resolved to; null if the name is the id.
    #[schema(required)]
    alias_resolved: Option<&'a str>,
    /// The provider of the answer, or of the last attempt if none succeeded.
    provider_name: String,
    /// The slug of that provider.
    provider: &'a str,
    /// The id of the key.
    api_key: String,
    created_at: DateTime,
    /// The cost in USD.
    total_cost: Decimal,
    /// Equals `total_cost`.
    usage: Decimal,
    /// One of the members without meaning.
    #[schema(ignore)]
    upstream_inference_cost: Option<()>,
    cost_share: CostShareView,
    tokens_prompt: u64,
    tokens_completion: u64,
    native_tokens_prompt: u64,
    native_tokens_completion: u64,
    /// `reported` by the provider, `upper_bound` where a provider reported no usage, or `none` where no usage is charged.
    usage_source: &'static str,
    /// The duration of the request in milliseconds.
    latency: u64,
    /// The time from the start of the first attempt to the end of the last one, in milliseconds.
    #[schema(required)]
    generation_time: Option<u64>,
    streamed: bool,
    /// `completed`, `failed`, `cancelled`, or `abandoned` if the process died.
    outcome: &'static str,
    /// The outcome of the last failed attempt, with the provider's status; null if the request was answered.
    #[schema(required)]
    reason: Option<String>,
    cancelled: bool,
    /// `stop` if answered, `error` if every attempt failed, null if the client disconnected.
    #[schema(required)]
    finish_reason: Option<&'static str>,
    is_byok: bool,
    /// Always empty: it is not stored.
    origin: &'static str,
    data_region: &'static str,
    /// The end user named in the request.
    #[schema(required)]
    external_user: Option<&'a str>,
    #[schema(required)]
    session_id: Option<&'a str>,
    request_id: &'a str,
    /// The client's IP address; null if it is unknown or `server.record_client_address` is false.
    #[schema(required, value_type = Option<String>)]
    client_address: Option<IpAddr>,
    workspace_id: String,
    /// The preset that the request named.
    #[schema(required)]
    preset_id: Option<Uuid>,
    /// The number of its version.
    #[schema(required, value_type = Option<u64>)]
    preset_version: Option<u32>,
    /// By question of a preset with stages: `outcome`, `stage`, `model` and `threshold`, as in the answer.
    #[schema(required)]
    outcomes: Option<Object>,
    /// The trace metadata of the request, unchanged.
    #[schema(required)]
    trace: Option<Object>,
    /// The time that decides the day, week and month of the cost.
    charged_at: DateTime,
    /// The ids of the guardrails that applied to the key, the workspace's first.
    guardrail_ids: Vec<String>,
    /// The matches that content filters redacted or flagged.
    findings: Vec<FindingView<'a>>,
    /// All attempts, in the order in which they began.
    provider_responses: Vec<Response<'a>>,
    #[serde(flatten)]
    #[schema(inline, value_type = BTreeMap<String, Null>)]
    without_meaning: UnusedMembers,
}

/// The request's share of the cost, if identical requests shared a call.
#[derive(Serialize, ToSchema)]
#[schema(as = CostShare)]
struct CostShareView {
    /// The index of the request among those, from 0.
    #[schema(value_type = u64)]
    index: u32,
    /// The number of requests that share the cost.
    #[schema(value_type = u64, minimum = 1)]
    of: u32,
}

/// The matches of a content filter, without the matched text.
#[derive(Serialize, ToSchema)]
#[schema(as = FilterFinding)]
struct FindingView<'a> {
    guardrail_id: String,
    label: &'a str,
    /// `redact` or `flag`.
    #[schema(value_type = FilterAction)]
    action: &'static str,
    /// The path of the first match.
    path: &'a str,
    /// The number of matches.
    #[schema(value_type = u64)]
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
    response_cache_source_id: Option<()>,
    router: Option<()>,
    service_tier: Option<()>,
    upstream_id: Option<()>,
    user_agent: Option<()>,
    web_search_engine: Option<()>,
}

/// The schema of null.
enum Null {}

impl PartialSchema for Null {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Null).into()
    }
}

impl ToSchema for Null {}

/// One attempt.
#[derive(Serialize, ToSchema)]
#[schema(as = ProviderResponse)]
struct Response<'a> {
    provider_name: &'a str,
    /// The provider's slug.
    provider: &'a str,
    model: &'a str,
    model_permaslug: &'a str,
    /// The model's name at the provider.
    upstream_model: &'a str,
    /// The sub-request of a split request, from 0.
    #[schema(value_type = u64)]
    part: u32,
    /// The provider's HTTP status: 200 for an answer, otherwise the error status.
    #[schema(required)]
    status: Option<u16>,
    /// `completed`, `connect_error`, `http_error`, `invalid_response`, `provider_auth_failed`, `overloaded`,
    /// `timed_out`, `rejected_by_provider`, `no_usable_answer`, `memory_exhausted`, `client_disconnected`, `cancelled`,
    /// `hedge_lost`, `simulated`, `abandoned`, or `unknown`.
    outcome: &'static str,
    /// The time from the start of the request to the start of the attempt, in milliseconds.
    began: u64,
    /// The duration of the attempt in milliseconds.
    latency: u64,
    input_tokens: u64,
    output_tokens: u64,
    usage_source: &'static str,
    pricing: Pricing,
    /// The cost in USD, rounded up per attempt. The request's cost is rounded up once for all attempts.
    #[schema(required)]
    cost: Option<Decimal>,
    is_byok: bool,
}

/// Prices in USD per token, as decimal strings.
#[derive(Serialize, ToSchema)]
#[schema(as = AttemptPricing)]
struct Pricing {
    prompt: String,
    completion: String,
}

impl<'a> GenerationView<'a> {
    pub(crate) fn new(generation: &'a Generation) -> Self {
        let record = &generation.record;
        Self {
            id: record.id.as_str(),
            api_type: "decisions",
            model: record.model.as_str(),
            requested_model: &record.requested_model,
            alias_resolved: generation.alias_resolved.as_ref().map(domain::model::ModelId::as_str),
            provider_name: generation.provider_name_of_all(),
            provider: &record.provider,
            api_key: record.api_key.to_string(),
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
            reason: record.failure_reason(),
            cancelled: record.outcome == UsageOutcome::Cancelled,
            finish_reason: finish_reason(record.outcome),
            is_byok: false,
            origin: "",
            data_region: "global",
            external_user: record.user.as_deref(),
            session_id: record.session_id.as_deref(),
            request_id: record.request_id.as_str(),
            client_address: record.client_address,
            workspace_id: record.workspace_id.to_string(),
            preset_id: record.preset.map(|preset| preset.id.to_string()),
            preset_version: record.preset.map(|preset| preset.version),
            outcomes: record.outcomes.as_ref().map(opaque),
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
        Self {
            provider_name: generation.provider_name(&attempt.provider),
            provider: &attempt.provider,
            model: attempt.model.as_str(),
            model_permaslug: attempt.model.as_str(),
            upstream_model: &attempt.upstream_model,
            part: attempt.part,
            status: attempt.http_status(),
            outcome: attempt.outcome.as_str(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use domain::usage::AttemptOutcome;

    #[test]
    fn schema_names_every_outcome_of_attempts() {
        let schema = serde_json::to_string(&<Response<'_> as utoipa::PartialSchema>::schema()).unwrap();
        for outcome in AttemptOutcome::ALL {
            assert!(schema.contains(&format!("`{outcome}`")), "{outcome} in {schema}");
        }
    }
}
