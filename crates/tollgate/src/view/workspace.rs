//! Workspaces.

use domain::budget::WorkspaceBudgets;
use domain::workspace::Workspace;
use serde::Serialize;

use super::{LimitView, UsdNumber, time};

/// A workspace that was made now.
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
    /// Its owner's id in the operator's directory.
    pub owner_id: Option<String>,
    /// True for the default one.
    pub is_default: bool,
    /// True while its keys' calls are refused.
    pub suspended: bool,
    /// Its balance in USD; null is unlimited.
    pub credit_usd: Option<UsdNumber>,
    /// What it may spend in each period.
    pub budgets: BudgetsView,
    /// Requests per minute of all of its keys together; null follows the configuration.
    pub requests_per_minute: Option<u32>,
    /// Tokens per minute of all of its keys together; null follows the configuration.
    pub tokens_per_minute: Option<u32>,
    /// The guardrail that all of its traffic is under.
    pub default_guardrail_id: Option<String>,
    /// Bytes that its documents hold.
    pub storage_used_bytes: u64,
    /// When it was made.
    pub created_at: String,
    /// Its credit and its budgets as they stand; only where one workspace is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<LimitView>>,
}

/// What a workspace may spend in each period, in USD; null is no budget.
#[derive(Serialize)]
pub struct BudgetsView {
    /// A UTC day.
    pub daily_usd: Option<UsdNumber>,
    /// Monday to Monday.
    pub weekly_usd: Option<UsdNumber>,
    /// A calendar month.
    pub monthly_usd: Option<UsdNumber>,
    /// All time.
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

/// A workspace's budgets as they are now.
#[derive(Serialize)]
pub struct Budgeted {
    /// The workspace.
    pub id: String,
    /// What it may spend in each period.
    pub budgets: BudgetsView,
}

/// A workspace's rates as they are now.
#[derive(Serialize)]
pub struct Rated {
    /// The workspace.
    pub id: String,
    /// Requests per minute; null follows the configuration.
    pub requests_per_minute: Option<u32>,
    /// Tokens per minute; null follows the configuration.
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

/// A workspace's new balance.
#[derive(Serialize)]
pub struct Credited {
    /// The workspace.
    pub id: String,
    /// Its balance in USD; null is unlimited.
    pub credit_usd: Option<UsdNumber>,
}

/// Whether a workspace is suspended now.
#[derive(Serialize)]
pub struct Suspended {
    /// The workspace.
    pub id: String,
    /// True while its keys' calls are refused.
    pub suspended: bool,
}
