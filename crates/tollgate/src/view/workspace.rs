//! Views of workspaces.

use domain::budget::WorkspaceBudgets;
use domain::workspace::{Workspace, WorkspaceContents};
use serde::Serialize;

use super::{LimitView, UsdNumber, time};

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
pub struct DeletedWorkspace {
    id: String,
    name: String,
    deleted: bool,
    deleted_keys: u64,
    deleted_documents: u64,
    deleted_guardrails: u64,
    deleted_destinations: u64,
}

impl DeletedWorkspace {
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
