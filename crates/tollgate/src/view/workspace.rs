//! Workspaces, and their keys, limits, guardrails and destinations.

use domain::budget::{LimitStatus, ResetInterval, WorkspaceBudgets};
use domain::money::Usd;
use domain::workspace::{Workspace, WorkspaceContents};
use serde::Serialize;

use super::{UsdNumber, time};

/// A created workspace.
#[derive(Serialize)]
pub struct CreatedWorkspace {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// A workspace.
#[derive(Serialize)]
pub struct WorkspaceView {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The owner's id in the operator's directory.
    pub owner_id: Option<String>,
    /// True for the default workspace.
    pub is_default: bool,
    /// True while requests of its keys are rejected.
    pub suspended: bool,
    /// The balance in USD; null is unlimited.
    pub credit_usd: Option<UsdNumber>,
    /// The budget of each period.
    pub budgets: BudgetsView,
    /// Requests per minute of all keys together; null is the configured default.
    pub requests_per_minute: Option<u32>,
    /// Tokens per minute of all keys together; null is the configured default.
    pub tokens_per_minute: Option<u32>,
    /// The guardrail for all of its traffic.
    pub default_guardrail_id: Option<String>,
    /// The size of its documents in bytes.
    pub storage_used_bytes: u64,
    /// The creation time.
    pub created_at: String,
    /// The credit and the budgets with their current usage; for a single workspace only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<LimitView>>,
}

/// The budget of each period in USD; null is no budget.
#[derive(Serialize)]
pub struct BudgetsView {
    /// Per UTC day.
    pub daily_usd: Option<UsdNumber>,
    /// Per week, from Monday.
    pub weekly_usd: Option<UsdNumber>,
    /// Per calendar month.
    pub monthly_usd: Option<UsdNumber>,
    /// In total.
    pub lifetime_usd: Option<UsdNumber>,
}

impl From<&WorkspaceBudgets> for BudgetsView {
    fn from(budgets: &WorkspaceBudgets) -> Self {
        Self {
            daily_usd: budgets.daily.map(UsdNumber),
            weekly_usd: budgets.weekly.map(UsdNumber),
            monthly_usd: budgets.monthly.map(UsdNumber),
            lifetime_usd: budgets.lifetime.map(UsdNumber),
        }
    }
}

/// The budgets of a workspace after a change.
#[derive(Serialize)]
pub struct WorkspaceBudgetsView {
    /// The workspace.
    pub id: String,
    /// The budget of each period.
    pub budgets: BudgetsView,
}

/// The rates of a workspace after a change.
#[derive(Serialize)]
pub struct WorkspaceRatesView {
    /// The workspace.
    pub id: String,
    /// Requests per minute; null is the configured default.
    pub requests_per_minute: Option<u32>,
    /// Tokens per minute; null is the configured default.
    pub tokens_per_minute: Option<u32>,
}

impl From<&Workspace> for WorkspaceView {
    fn from(workspace: &Workspace) -> Self {
        Self {
            id: workspace.id.to_string(),
            name: workspace.name.as_str().to_owned(),
            owner_id: workspace.owner_id.clone(),
            is_default: workspace.is_default,
            suspended: workspace.suspended,
            credit_usd: workspace.credit.map(UsdNumber),
            budgets: BudgetsView::from(&workspace.budgets),
            requests_per_minute: workspace.rates.requests_per_minute,
            tokens_per_minute: workspace.rates.tokens_per_minute,
            default_guardrail_id: workspace.default_guardrail_id.map(|id| id.to_string()),
            storage_used_bytes: workspace.storage_used_bytes,
            created_at: time(workspace.created_at),
            limits: None,
        }
    }
}

/// The balance of a workspace after a change.
#[derive(Serialize)]
pub struct WorkspaceCreditView {
    /// The workspace.
    pub id: String,
    /// The balance in USD; null is unlimited.
    pub credit_usd: Option<UsdNumber>,
}

/// The suspension of a workspace after a change.
#[derive(Serialize)]
pub struct WorkspaceSuspensionView {
    /// The workspace.
    pub id: String,
    /// True while requests of its keys are rejected.
    pub suspended: bool,
}
/// A deleted workspace and the numbers of its deleted contents.
#[derive(Serialize)]
pub struct DeletedWorkspaceView {
    id: String,
    name: String,
    deleted: bool,
    deleted_keys: u64,
    deleted_documents: u64,
    deleted_guardrails: u64,
    deleted_destinations: u64,
}

impl DeletedWorkspaceView {
    /// Creates a view.
    pub fn new(workspace: &Workspace, contents: WorkspaceContents) -> Self {
        Self {
            id: workspace.id.to_string(),
            name: workspace.name.as_str().to_owned(),
            deleted: true,
            deleted_keys: contents.keys,
            deleted_documents: contents.documents,
            deleted_guardrails: contents.guardrails,
            deleted_destinations: contents.destinations,
        }
    }
}

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
    use domain::budget::BudgetScope;

    use super::*;

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
