//! `GET /key`: the caller's own key.

use domain::api_key::{GetOwnKeyError, OwnKey};

use crate::endpoints::keys::record::{BudgetView, KeyView};
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::any_key(Get, "/key", tags::KEYS, handler!(handle))
    .operation("getOwnKey", "Get the key of the caller")
    .description(
        "Returns the key that the request was made with, its spend, and every limit that applies to it. The \
         amounts are those that decide about the next request. A management key has no limits and no spend.",
    )
    .answer(|| BodySchema::data::<View<'_>>("OwnKeyResponse", "The caller's own key."), "The key");

api_error!(GetOwnKeyError {
    pass: Store;
    said: NoKey;
    // The message of every other rejected key.
    with |plain| GetOwnKeyError::Deleted => domain::api_key::AuthenticateError::Invalid.into();
});

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let own = call.gateway.services.get_own_key.execute(caller).await?;
    Ok(RecordResponse::data(StatusCode::OK, View::new(&own)).version(own.record.key.version()).respond())
}

/// The caller's key.
#[derive(Serialize, ToSchema)]
#[schema(as = OwnKeyRecord)]
struct View<'a> {
    #[serde(flatten)]
    key: KeyView<'a>,
    is_management_key: bool,
    /// The same as `is_management_key`, under its older name.
    is_provisioning_key: bool,
    /// Always false.
    is_free_tier: bool,
    /// Always null.
    #[schema(required)]
    organization_id: Option<&'static str>,
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

impl<'a> View<'a> {
    fn new(own: &'a OwnKey) -> Self {
        let is_management_key = own.record.key.scope.management().is_some();
        Self {
            key: KeyView::new(&own.record, None),
            is_management_key,
            is_provisioning_key: is_management_key,
            is_free_tier: false,
            organization_id: None,
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
