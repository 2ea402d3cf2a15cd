//! `GET /key`: the caller's own key.

use actix_web::http::header::{CACHE_CONTROL, HeaderValue};
use domain::api_key::{GetOwnKeyError, OwnKey, OwnLimit};
use serde_json::value::RawValue;

use crate::endpoints::prelude::*;
use crate::http::response::{ResetInterval, time, usd};

pub(crate) const ROUTE: Route =
    Route::any_key(Method::Get, "/key", |call, caller, _| Box::pin(handle(call, caller)), tags::KEYS, describe);

fn describe() -> Operation {
    let body = BodySchema::data::<View<'_>>("OwnKeyResponse", "The caller's own key.");
    Operation::new("getOwnKey", "Get the key of the caller")
        .description(
            "Returns the key that the request was made with, its spend, and every limit that applies to it. The \
             amounts are those that decide about the next request. A management key has no limits and no spend.",
        )
        .answer(body, "The key", &[])
}

/// A key's amounts change with every request and must not be cached.
const CACHE_POLICY: HeaderValue = HeaderValue::from_static("private, no-store");

impl From<GetOwnKeyError> for ApiError {
    fn from(error: GetOwnKeyError) -> Self {
        match error {
            GetOwnKeyError::NoKey => Self::from_kind(error.kind()).message(error.to_string()),
            // The message of every other rejected key.
            GetOwnKeyError::Deleted => domain::api_key::AuthenticateError::Invalid.into(),
            GetOwnKeyError::Store(store) => Self::store(store),
        }
    }
}

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let own = call.gateway.services.get_own_key.execute(caller).await?;
    Ok(HttpResponse::Ok().insert_header((CACHE_CONTROL, CACHE_POLICY)).json(Data { data: View::new(&own) }))
}

/// The caller's key.
#[derive(Serialize, ToSchema)]
#[schema(as = OwnKeyRecord)]
#[expect(clippy::struct_excessive_bools, reason = "the members that clients require")]
struct View<'a> {
    /// The permanent id of the key. It does not change with the secret.
    #[schema(format = "uuid")]
    id: String,
    /// The SHA-256 hash of the current secret, in hexadecimal.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    hash: String,
    /// The masked secret.
    label: &'a str,
    name: &'a str,
    /// The workspace id; null for a management key.
    #[schema(required, format = "uuid")]
    workspace_id: Option<String>,
    is_management_key: bool,
    /// The same as `is_management_key`, under its older name.
    is_provisioning_key: bool,
    /// The spending limit in USD; null means unlimited.
    #[schema(required, value_type = Option<f64>)]
    limit: Option<Box<RawValue>>,
    /// The part of the limit that is not spent, in USD; negative after the limit was lowered below the spend.
    #[schema(required, value_type = Option<f64>)]
    limit_remaining: Option<Box<RawValue>>,
    /// The reset period of the limit; null means never.
    #[schema(required, value_type = Option<ResetInterval>)]
    limit_reset: Option<&'static str>,
    /// The spend of all time in USD.
    #[schema(value_type = f64)]
    usage: Box<RawValue>,
    /// The spend of the current UTC day.
    #[schema(value_type = f64)]
    usage_daily: Box<RawValue>,
    /// The spend of the current week, from Monday.
    #[schema(value_type = f64)]
    usage_weekly: Box<RawValue>,
    /// The spend of the current month.
    #[schema(value_type = f64)]
    usage_monthly: Box<RawValue>,
    /// Always 0.
    byok_usage: u8,
    /// Always 0.
    byok_usage_daily: u8,
    /// Always 0.
    byok_usage_weekly: u8,
    /// Always 0.
    byok_usage_monthly: u8,
    /// Always false: a provider's own key is not part of limits.
    include_byok_in_limit: bool,
    /// Always false.
    is_free_tier: bool,
    /// Always null.
    #[schema(required)]
    creator_user_id: Option<&'static str>,
    /// Always null.
    #[schema(required)]
    organization_id: Option<&'static str>,
    #[schema(required, format = DateTime)]
    expires_at: Option<String>,
    /// The start of the key's last recorded request.
    #[schema(required, format = DateTime)]
    last_used_at: Option<String>,
    #[schema(value_type = Vec<String>, example = json!(["global"]))]
    allowed_data_regions: [&'static str; 1],
    free_model_daily_requests: FreeRequestsView,
    rate_limit: RateLimitView,
    /// Every limit that applies, in the order of checking.
    budgets: Vec<BudgetView>,
    /// The limit with the least room: `remaining_usd` less `reserved_usd`.
    #[schema(required)]
    effective_budget: Option<BudgetView>,
}

/// Constants: no model is free of limits.
#[derive(Serialize, ToSchema)]
#[schema(as = FreeModelDailyRequests)]
struct FreeRequestsView {
    limit: u8,
    remaining: u8,
    used: u8,
}

/// Constants, which older clients read; see the headers `x-ratelimit-*` of a rejected request.
#[derive(Serialize, ToSchema)]
#[schema(as = OwnKeyRateLimit)]
struct RateLimitView {
    requests: i8,
    interval: &'static str,
    note: &'static str,
}

/// A limit that applies to the caller.
#[derive(Serialize, ToSchema)]
#[schema(as = OwnKeyBudget)]
struct BudgetView {
    /// `workspace`: credit or a budget of the workspace; `workspace_default_key`: the workspace's default guardrail;
    /// `api_key`: the key's guardrail; `key_limit`: the key's own limit.
    #[schema(value_type = String)]
    scope: &'static str,
    /// True for the workspace's prepaid credit.
    is_credit: bool,
    #[schema(value_type = f64)]
    limit_usd: Box<RawValue>,
    /// The amount spent in the period.
    #[schema(value_type = f64)]
    spend_usd: Box<RawValue>,
    /// The amount held for requests in flight.
    #[schema(value_type = f64)]
    reserved_usd: Box<RawValue>,
    /// The limit less the spend. Zero or less rejects the next request.
    #[schema(value_type = f64)]
    remaining_usd: Box<RawValue>,
    /// The period of the limit; null means never reset.
    #[schema(required, value_type = Option<ResetInterval>)]
    reset_interval: Option<&'static str>,
    #[schema(required, format = DateTime)]
    resets_at: Option<String>,
    #[schema(required, format = "uuid")]
    guardrail_id: Option<String>,
    /// Always null.
    #[schema(required)]
    budget_id: Option<&'static str>,
    /// Always false.
    include_byok: bool,
}

impl<'a> View<'a> {
    fn new(own: &'a OwnKey) -> Self {
        let OwnKey { key, spend, .. } = own;
        let workspace_id = key.scope.workspace_id();
        Self {
            id: key.id.to_string(),
            hash: key.hash.to_string(),
            label: &key.label,
            name: key.name.as_str(),
            workspace_id: workspace_id.map(|id| id.to_string()),
            is_management_key: workspace_id.is_none(),
            is_provisioning_key: workspace_id.is_none(),
            limit: key.limit.map(|limit| usd(limit.amount)),
            limit_remaining: own.own_limit().map(|status| usd(status.unspent())),
            limit_reset: key.limit.and_then(|limit| limit.reset).map(domain::budget::ResetInterval::as_str),
            usage: usd(spend.total),
            usage_daily: usd(spend.daily),
            usage_weekly: usd(spend.weekly),
            usage_monthly: usd(spend.monthly),
            byok_usage: 0,
            byok_usage_daily: 0,
            byok_usage_weekly: 0,
            byok_usage_monthly: 0,
            include_byok_in_limit: false,
            is_free_tier: false,
            creator_user_id: None,
            organization_id: None,
            expires_at: key.expires_at.map(time),
            last_used_at: own.last_used_at.map(time),
            allowed_data_regions: ["global"],
            free_model_daily_requests: FreeRequestsView { limit: 0, remaining: 0, used: 0 },
            rate_limit: RateLimitView {
                requests: -1,
                interval: "10s",
                note: "Deprecated: see the x-ratelimit headers of a 429.",
            },
            budgets: own.limits.iter().map(BudgetView::new).collect(),
            effective_budget: own.tightest_limit().map(BudgetView::new),
        }
    }
}

impl BudgetView {
    fn new(limit: &OwnLimit) -> Self {
        let OwnLimit { scope, status } = limit;
        Self {
            scope: scope.as_str(),
            is_credit: status.is_credit,
            limit_usd: usd(status.limit),
            spend_usd: usd(status.spent),
            reserved_usd: usd(status.reserved),
            remaining_usd: usd(status.unspent()),
            reset_interval: status.reset.map(domain::budget::ResetInterval::as_str),
            resets_at: status.resets_at.map(time),
            guardrail_id: status.guardrail_id.map(|id| id.to_string()),
            budget_id: None,
            include_byok: false,
        }
    }
}
