//! `GET /usage/rejections`: rejected requests by status and reason.

use chrono::SecondsFormat;
use domain::decision::UsageReader;
use domain::usage::RejectionSum;

use super::KEY;
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::any_key(Get, "/usage/rejections", tags::USAGE, handler!(handle))
    .operation("getRejections", "Count rejected requests")
    .description(
        "The highest number first. An inference key counts its own requests, a management key those of its \
         workspaces.",
    )
    .query(&[
        WORKSPACE,
        Query::text("key", KEY),
        Query::text("since", "The hour of this date or RFC 3339 time in UTC, and later ones. Default: 30 days."),
        Query::text("until", "Only hours that began before this time. Default: tomorrow."),
    ])
    .answer(
        || BodySchema::named::<RejectionsView>("RejectionsResponse", "Rejected requests by status and reason."),
        "The numbers",
    );

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let query = call.request.query_string();
    let range = (parameters::time(query, "since")?, parameters::time(query, "until")?);
    let (key, workspace) = (parameters::resource(query, "key")?, parameters::resource(query, "workspace_id")?);
    let reader = UsageReader::from(caller);
    let sums = &call.gateway.services.sum_usage;
    let sums = sums.count_rejections(&reader, range, key.as_ref(), workspace.as_ref()).await?;
    let requests = sums.iter().map(|sum| sum.count).fold(0, u64::saturating_add);
    let data = sums.iter().map(RejectionView::new).collect();
    Ok(HttpResponse::Ok().json(RejectionsView { data, total: RejectionTotalView { requests } }))
}

/// Rejected requests by status and reason, and their number.
#[derive(Serialize, ToSchema)]
#[schema(as = Rejections)]
struct RejectionsView {
    data: Vec<RejectionView>,
    total: RejectionTotalView,
}

/// The number of rejected requests.
#[derive(Serialize, ToSchema)]
#[schema(as = RejectionTotal)]
struct RejectionTotalView {
    requests: u64,
}

/// The rejected requests with one status and reason.
#[derive(Serialize, ToSchema)]
#[schema(as = RejectionSum)]
struct RejectionView {
    /// 402, 403, 429 or 503.
    status: u16,
    reason: &'static str,
    requests: u64,
    /// The start of the newest hour with such a request.
    last_hour: DateTime,
}

impl RejectionView {
    fn new(sum: &RejectionSum) -> Self {
        Self {
            status: sum.status.code(),
            reason: sum.reason.as_str(),
            requests: sum.count,
            last_hour: sum.last_hour.to_rfc3339_opts(SecondsFormat::Secs, true),
        }
    }
}
