//! Views of limits.

use domain::budget::{LimitStatus, ResetInterval};
use domain::money::Usd;
use serde::Serialize;

use super::{UsdNumber, time};

/// A limit with its current usage.
#[derive(Debug, Serialize)]
pub struct LimitView {
    /// The owner: `workspace`, `key` or `guardrail`.
    pub scope: &'static str,
    /// The guardrail, for a guardrail's budget.
    pub guardrail_id: Option<String>,
    /// True for the workspace's prepaid credit.
    pub is_credit: bool,
    /// The maximum spend in the period, in USD.
    pub limit_usd: UsdNumber,
    /// The period.
    pub reset_interval: Option<&'static str>,
    /// The spend in the period, in USD.
    pub spent_usd: UsdNumber,
    /// The holds of requests in flight, in USD.
    pub reserved_usd: UsdNumber,
    /// The amount left for further requests, in USD; negative if a charge exceeded its hold or the limit was lowered.
    pub remaining_usd: UsdNumber,
    /// The end of the period.
    pub resets_at: Option<String>,
}

impl From<&LimitStatus> for LimitView {
    fn from(standing: &LimitStatus) -> Self {
        let used = standing.spent.pico().saturating_add(standing.reserved.pico());
        Self {
            scope: standing.scope.as_str(),
            guardrail_id: standing.guardrail_id.map(|id| id.to_string()),
            is_credit: standing.is_credit,
            limit_usd: UsdNumber(standing.limit),
            reset_interval: standing.reset.map(ResetInterval::as_str),
            spent_usd: UsdNumber(standing.spent),
            reserved_usd: UsdNumber(standing.reserved),
            remaining_usd: UsdNumber(Usd::from_pico(standing.limit.pico().saturating_sub(used))),
            resets_at: standing.resets_at.map(time),
        }
    }
}

impl LimitView {
    /// The column heads of [`Self::line`].
    pub const HEAD: [&'static str; 6] = ["LIMIT", "LIMIT USD", "SPENT", "RESERVED", "REMAINING", "RESETS AT"];

    /// Returns a table row.
    pub fn line(&self) -> [String; 6] {
        let what = match (self.scope, self.is_credit, self.reset_interval) {
            (scope, true, _) => format!("{scope} credit"),
            (scope, false, Some(interval)) => format!("{scope}, {interval}"),
            (scope, false, None) => format!("{scope}, lifetime"),
        };
        let what = match &self.guardrail_id {
            Some(id) => format!("{what} ({id})"),
            None => what,
        };
        let usd = |amount: UsdNumber| amount.0.to_string();
        [
            what,
            usd(self.limit_usd),
            usd(self.spent_usd),
            usd(self.reserved_usd),
            usd(self.remaining_usd),
            self.resets_at.clone().unwrap_or_else(|| "never".to_owned()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::budget::BudgetScope;

    #[test]
    fn remaining_is_limit_minus_spend_and_holds() {
        let usd = |text: &str| text.parse::<Usd>().unwrap();
        let standing = LimitStatus {
            scope: BudgetScope::Key,
            guardrail_id: None,
            is_credit: false,
            limit: usd("2.5"),
            reset: Some(ResetInterval::Daily),
            spent: usd("1.25"),
            reserved: usd("1.5"),
            resets_at: chrono::DateTime::from_timestamp(1_767_225_600, 0),
        };
        let view = LimitView::from(&standing);
        assert_eq!(view.line(), ["key, daily", "2.5", "1.25", "1.5", "-0.25", "2026-01-01T00:00:00.000Z"]);
        let credit =
            LimitStatus { is_credit: true, scope: BudgetScope::Workspace, reset: None, resets_at: None, ..standing };
        assert_eq!(LimitView::from(&credit).line()[0], "workspace credit");
    }
}
