//! Workspaces, and their keys, limits, guardrails and destinations.

use api_actix::{GuardrailVersionView, GuardrailView};
use domain::api_key::ApiKey;
use domain::authority::ManagementScope;
use domain::budget::{LimitStatus, ResetInterval, WorkspaceBudgets};
use domain::money::Usd;
use domain::secret::ApiKeySecret;
use domain::workspace::{Workspace, WorkspaceContents};
use serde::Serialize;

use super::{RejectionView, UsdNumber, time};

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

/// The scope of a management key.
#[derive(Serialize)]
pub struct ManagementView {
    /// `read`, `keys` or `write`.
    pub access: &'static str,
    /// The ids of its workspaces; null for all.
    pub workspaces: Option<Vec<String>>,
}

impl From<&ManagementScope> for ManagementView {
    fn from(scope: &ManagementScope) -> Self {
        let workspaces = scope.workspaces().map(|ids| ids.iter().map(ToString::to_string).collect());
        Self { access: scope.access().as_str(), workspaces }
    }
}

impl std::fmt::Display for ManagementView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let workspaces = self.workspaces.as_ref().map_or_else(|| "all workspaces".to_owned(), |ids| ids.join(", "));
        write!(f, "{} access to {workspaces}", self.access)
    }
}

/// A created or rotated key; its secret is shown only once.
#[derive(Serialize)]
pub struct CreatedKey {
    /// The secret.
    pub key: String,
    /// The hash of the secret; it changes when the secret is rotated.
    pub hash: String,
    /// The id; it never changes.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its workspace; null for a management key.
    pub workspace_id: Option<String>,
    /// The scope of a management key; null for an inference key.
    pub management: Option<ManagementView>,
}

impl CreatedKey {
    /// Creates a view of a key with its secret.
    pub fn new(key: &ApiKey, secret: &ApiKeySecret) -> Self {
        Self {
            key: secret.expose().to_owned(),
            hash: key.hash.to_string(),
            id: key.id.to_string(),
            name: key.name.as_str().to_owned(),
            workspace_id: key.scope.workspace_id().map(|id| id.to_string()),
            management: key.scope.management().map(ManagementView::from),
        }
    }
}

/// A stored key.
#[derive(Serialize)]
pub struct KeyView {
    /// The id; it never changes.
    pub id: String,
    /// The hash of the current secret.
    pub hash: String,
    /// The masked secret.
    pub label: String,
    /// Its name.
    pub name: String,
    /// Its workspace; null for a management key.
    pub workspace_id: Option<String>,
    /// The scope of a management key; null for an inference key.
    pub management: Option<ManagementView>,
    /// True while its requests are rejected.
    pub disabled: bool,
    /// The expiry time.
    pub expires_at: Option<String>,
    /// The spending limit in USD.
    pub limit_usd: Option<UsdNumber>,
    /// The period of the limit.
    pub limit_reset: Option<&'static str>,
    /// Requests per minute; null is the configured default.
    pub requests_per_minute: Option<u32>,
    /// Tokens per minute, in and out; null is the configured default.
    pub tokens_per_minute: Option<u32>,
    /// The assigned guardrail.
    pub guardrail_id: Option<String>,
    /// The creation time.
    pub created_at: String,
    /// The spend in USD: of the limit's current period, or of all time without one; for lists only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent_usd: Option<UsdNumber>,
    /// The start of the newest recorded request; for lists only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// Every limit of the key with its current usage; for a single key only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<LimitView>>,
    /// The newest counts of rejected requests, at most ten; for a single key only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejections: Option<Vec<RejectionView>>,
}

impl From<&ApiKey> for KeyView {
    fn from(key: &ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            hash: key.hash.to_string(),
            label: key.label.clone(),
            name: key.name.as_str().to_owned(),
            workspace_id: key.scope.workspace_id().map(|id| id.to_string()),
            management: key.scope.management().map(ManagementView::from),
            disabled: key.disabled,
            expires_at: key.expires_at.map(time),
            limit_usd: key.limit.map(|limit| UsdNumber(limit.amount)),
            limit_reset: key.limit.and_then(|limit| limit.reset).map(domain::budget::ResetInterval::as_str),
            requests_per_minute: key.rates.requests_per_minute,
            tokens_per_minute: key.rates.tokens_per_minute,
            guardrail_id: key.guardrail_id.map(|id| id.to_string()),
            created_at: time(key.created_at),
            spent_usd: None,
            last_used_at: None,
            limits: None,
            rejections: None,
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

/// A created guardrail.
#[derive(Serialize)]
pub struct CreatedGuardrail {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// A guardrail as in the HTTP interface, with its number of keys.
#[derive(Serialize)]
pub struct ShownGuardrail<'a> {
    /// The record.
    #[serde(flatten)]
    pub record: GuardrailView<'a>,
    /// The number of live keys with this guardrail.
    pub key_count: u64,
}

/// The versions of a guardrail as in the HTTP interface.
#[derive(Serialize)]
pub struct GuardrailVersions<'a> {
    /// The newest version first.
    pub data: Vec<GuardrailVersionView<'a>>,
}

/// The result of an assignment.
#[derive(Serialize)]
pub struct AssignmentView {
    /// The number of the given keys that now have the guardrail.
    pub assigned_count: u64,
}

/// The result of an unassignment.
#[derive(Serialize)]
pub struct UnassignmentView {
    /// The number of the given keys that had the guardrail.
    pub unassigned_count: u64,
}

/// The default guardrail of a workspace.
#[derive(Serialize)]
pub struct DefaultGuardrail {
    /// The workspace.
    pub workspace_id: String,
    /// The guardrail; null is none.
    pub default_guardrail_id: Option<String>,
}

/// A destination that passed a test.
#[derive(Serialize)]
pub struct TestedDestination {
    /// Its id.
    pub id: String,
    /// Always true; a failed test is an error.
    pub reached: bool,
}

/// The result of a retry of dead letters.
#[derive(Serialize)]
pub struct RetriedView {
    /// The number of retried dead letters.
    pub retried_count: u64,
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
