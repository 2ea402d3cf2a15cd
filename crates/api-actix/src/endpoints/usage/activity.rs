//! `GET /activity`: sums by day, model and provider, as published clients decode them.

use domain::decision::{SumUsageRequest, UsageReader};
use domain::usage::{UsageGroup, UsageSum};

use super::KEY;
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::any_key(Get, "/activity", tags::USAGE, handler!(handle))
    .operation("getActivity", "Sum usage by day, model and provider")
    .description(
        "The last 30 UTC days with today. An inference key gets its own usage, a management key that of its \
         workspaces. Other groups and ranges: `GET /usage`.",
    )
    .query(&[
        Query::text("date", "Only this UTC day, YYYY-MM-DD, one of the last 30."),
        Query::text("api_key_hash", KEY),
        Query::new("group_by", "Rows by workspace, too.", || text().enum_values(Some(["workspace"]))),
        WORKSPACE,
        Query::undescribed(UNSUPPORTED),
    ])
    .answer(
        || BodySchema::named::<ActivityListView>("ActivityResponse", "Usage by day, model and provider."),
        "The rows",
    );

/// A parameter of published clients: a member of an organisation, which does not exist here.
const UNSUPPORTED: &str = "user_id";

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let query = call.request.query_string();
    parameters::reject_names(query, &[UNSUPPORTED])?;
    let mut groups = vec![UsageGroup::Day, UsageGroup::Model, UsageGroup::Provider];
    match parameters::value(query, "group_by")?.as_deref() {
        None => {}
        Some("workspace") => groups.push(UsageGroup::Workspace),
        Some(_) => return Err(ApiError::invalid("group_by must be workspace")),
    }
    let since = parameters::date(query, "date")?;
    let today = call.gateway.services.clock.now().date_naive();
    if since.is_some_and(|day| !(0..30).contains(&(today - day).num_days())) {
        return Err(ApiError::invalid("date must be one of the last 30 UTC days; other ranges: GET /usage"));
    }
    let request = SumUsageRequest {
        groups,
        since,
        until: since.and_then(|day| day.succ_opt()),
        key: parameters::resource(query, "api_key_hash")?,
        workspace: parameters::resource(query, "workspace_id")?,
        ..SumUsageRequest::default()
    };
    let sums = call.gateway.services.sum_usage.execute(&UsageReader::from(caller), request).await?;
    Ok(HttpResponse::Ok().json(ActivityListView { data: sums.rows.iter().map(ActivityView::new).collect() }))
}

/// Usage by day, model and provider.
#[derive(Serialize, ToSchema)]
#[schema(as = ActivityList)]
struct ActivityListView {
    data: Vec<ActivityView>,
}

/// The usage of a model at a provider on a day.
#[derive(Serialize, ToSchema)]
#[schema(as = Activity)]
struct ActivityView {
    /// The UTC day of the charges, `YYYY-MM-DD`.
    date: String,
    model: String,
    /// Equals `model`.
    model_permaslug: String,
    /// The model and the provider.
    endpoint_id: String,
    /// The provider's slug.
    provider_name: String,
    requests: u64,
    prompt_tokens: u64,
    completion_tokens: u64,
    /// Always 0.
    reasoning_tokens: u64,
    /// Always 0.
    cached_tokens: u64,
    /// The cost in USD.
    usage: Decimal,
    /// Always 0.
    byok_usage_inference: u64,
    /// With `group_by=workspace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<String>,
}

impl ActivityView {
    fn new(row: &UsageSum) -> Self {
        let (model, provider) = (row.model.clone().unwrap_or_default(), row.provider.clone().unwrap_or_default());
        Self {
            date: row.day.map(|day| day.to_string()).unwrap_or_default(),
            model_permaslug: model.clone(),
            endpoint_id: format!("{model}@{provider}"),
            model,
            provider_name: provider,
            requests: row.totals.requests,
            prompt_tokens: row.totals.input_tokens,
            completion_tokens: row.totals.output_tokens,
            reasoning_tokens: 0,
            cached_tokens: 0,
            usage: usd(row.totals.cost),
            byok_usage_inference: 0,
            workspace_id: row.workspace_id.map(|id| id.to_string()),
        }
    }
}
