//! `tollgate usage sum --by reason`

use std::process::ExitCode;

use anyhow::bail;
use domain::usage::{RejectionFilter, UsageFilter};

use super::Context;
use crate::output::table;
use crate::view::{RejectionSumView, RejectionSumsView, RejectionTotalsView};
use crate::wiring::Stores;

/// Prints the numbers of rejected requests per status and reason, the highest number first.
pub async fn sum_rejections(context: &Context, stores: &Stores, filter: UsageFilter) -> anyhow::Result<ExitCode> {
    let sums = stores.rejections.sum(&rejection_filter(&filter)?).await?;
    let requests = sums.iter().map(|sum| sum.count).fold(0, u64::saturating_add);
    let data = sums.iter().map(RejectionSumView::from).collect();
    let view = RejectionSumsView { by: "reason", data, total: RejectionTotalsView { requests } };
    context.output.show(&view, || describe(&view))?;
    Ok(ExitCode::SUCCESS)
}

/// Converts the filter of usage records; rejected requests have neither a provider nor an outcome.
fn rejection_filter(filter: &UsageFilter) -> anyhow::Result<RejectionFilter> {
    if filter.provider.is_some() || filter.outcome.is_some() {
        bail!("--provider and --status do not apply to --by reason: rejected requests were not sent to a provider");
    }
    let UsageFilter { workspace_id, api_key, since, until, .. } = *filter;
    Ok(RejectionFilter { workspace_id, api_key, since, until })
}

fn describe(view: &RejectionSumsView) -> String {
    let mut rows: Vec<[String; 4]> = view.data.iter().map(RejectionSumView::line).collect();
    rows.push(["total".to_owned(), String::new(), view.total.requests.to_string(), String::new()]);
    table(["REASON", "STATUS", "REQUESTS", "LAST HOUR"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::usage::UsageOutcome;

    #[test]
    fn filter_rejects_properties_that_rejected_requests_lack() {
        let provider = UsageFilter { provider: Some("alpha".to_owned()), ..UsageFilter::default() };
        let outcome = UsageFilter { outcome: Some(UsageOutcome::Failed), ..UsageFilter::default() };
        for filter in [provider, outcome] {
            assert!(rejection_filter(&filter).unwrap_err().to_string().contains("--by reason"));
        }
        assert_eq!(rejection_filter(&UsageFilter::default()).unwrap(), RejectionFilter::default());
    }
}
