//! A workspace, a budget and a credit as JSON: their views, and the schemas of requests, which `fields.rs` reads.
#![expect(dead_code, reason = "the schemas of bodies that are read by hand")]

use domain::budget::{LimitStatus, ResetInterval as Period};
use domain::money::Usd;
use domain::workspace::{Credit, Workspace};

use crate::endpoints::prelude::*;
use crate::http::client::WireNames;

/// A workspace.
#[derive(Serialize, ToSchema)]
#[schema(as = WorkspaceRecord)]
pub(crate) struct WorkspaceView<'a> {
    id: Uuid,
    name: &'a str,
    slug: &'a str,
    #[schema(required)]
    description: Option<&'a str>,
    /// The owner's id in the operator's directory; errors carry it as `user_id`.
    #[schema(required)]
    owner_id: Option<&'a str>,
    /// True for the workspace of calls that name none.
    is_default: bool,
    /// True while all calls of its keys are rejected.
    suspended: bool,
    /// The requests per minute of all keys together; null is the configured rate.
    #[schema(required, minimum = 1)]
    requests_per_minute: Option<u32>,
    /// The tokens per minute of all keys together; null is the configured rate.
    #[schema(required, minimum = 1)]
    tokens_per_minute: Option<u32>,
    /// The guardrail of all requests of the workspace; null without one, and empty for published client packages.
    #[schema(required)]
    default_guardrail_id: Option<String>,
    /// The balance of the prepaid credit in USD; null is unlimited.
    #[schema(required)]
    credit_usd: Option<Decimal>,
    /// The bytes of its documents.
    storage_used_bytes: u64,
    created_at: DateTime,
    #[schema(required)]
    updated_at: Option<DateTime>,
    #[serde(flatten)]
    constants: WorkspaceConstants,
}

/// Members that published clients decode and that have no function here.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "members that published clients decode")]
struct WorkspaceConstants {
    /// Always null.
    #[schema(required, value_type = Option<String>)]
    created_by: Option<()>,
    /// Always null.
    #[schema(required, value_type = Option<String>)]
    default_text_model: Option<()>,
    /// Always null.
    #[schema(required, value_type = Option<String>)]
    default_image_model: Option<()>,
    /// Always null.
    #[schema(required, value_type = Option<String>)]
    default_provider_sort: Option<()>,
    /// Always null.
    #[schema(required, value_type = Option<Vec<u64>>)]
    io_logging_api_key_ids: Option<()>,
    /// Always 1.
    io_logging_sampling_rate: u8,
    /// Always false.
    is_data_discount_logging_enabled: bool,
    /// Always false.
    is_observability_broadcast_enabled: bool,
    /// Always false.
    is_observability_io_logging_enabled: bool,
    /// Always empty.
    disabled_server_tools: [String; 0],
    /// Always false.
    include_byok_in_budgets: bool,
}

const CONSTANTS: WorkspaceConstants = WorkspaceConstants {
    created_by: None,
    default_text_model: None,
    default_image_model: None,
    default_provider_sort: None,
    io_logging_api_key_ids: None,
    io_logging_sampling_rate: 1,
    is_data_discount_logging_enabled: false,
    is_observability_broadcast_enabled: false,
    is_observability_io_logging_enabled: false,
    disabled_server_tools: [],
    include_byok_in_budgets: false,
};

impl<'a> WorkspaceView<'a> {
    /// Builds the view of a workspace. Published packages decode no null in place of a guardrail.
    pub(crate) fn new(workspace: &'a Workspace, names: WireNames) -> Self {
        let guardrail = workspace.default_guardrail_id.map(|id| id.to_string());
        Self {
            id: workspace.id.to_string(),
            name: workspace.name.as_str(),
            slug: workspace.slug.as_str(),
            description: workspace.description.as_deref(),
            owner_id: workspace.owner_id.as_deref(),
            is_default: workspace.is_default,
            suspended: workspace.suspended,
            requests_per_minute: workspace.rates.requests_per_minute,
            tokens_per_minute: workspace.rates.tokens_per_minute,
            default_guardrail_id: guardrail.or_else(|| (names == WireNames::OpenRouter).then(String::new)),
            credit_usd: workspace.credit.map(usd),
            storage_used_bytes: workspace.storage_used_bytes,
            created_at: time(workspace.created_at),
            updated_at: workspace.updated_at.map(time),
            constants: CONSTANTS,
        }
    }
}

/// Returns the schema of one workspace.
pub(super) fn response() -> BodySchema {
    BodySchema::data::<WorkspaceView<'_>>("WorkspaceResponse", "One workspace.")
}

/// Renders a workspace with its entity tag.
pub(super) fn respond(status: StatusCode, workspace: &Workspace, names: WireNames) -> RecordResponse {
    RecordResponse::data(status, WorkspaceView::new(workspace, names)).version(workspace.version())
}

/// A budget of a workspace.
#[derive(Serialize, ToSchema)]
#[schema(as = WorkspaceBudget)]
pub(crate) struct BudgetView {
    id: String,
    workspace_id: Uuid,
    limit_usd: Decimal,
    /// The period; null is all time.
    #[schema(required, value_type = Option<ResetInterval>)]
    reset_interval: Option<&'static str>,
    /// The spend of the current period.
    spend_usd: Decimal,
    /// The amount held for requests in flight, and what other servers drew ahead: zero at the latest two minutes after
    /// the last request.
    reserved_usd: Decimal,
    /// The limit without the spend; negative after the limit was lowered below it.
    remaining_usd: Decimal,
    #[schema(required)]
    resets_at: Option<DateTime>,
    /// The creation time of the workspace.
    created_at: DateTime,
    /// The time of the last change of the workspace, or of its creation.
    updated_at: DateTime,
    /// Always false.
    include_byok_in_budgets: bool,
}

impl BudgetView {
    pub(super) fn new(workspace: &Workspace, status: &LimitStatus) -> Self {
        Self {
            id: format!("{}-{}", workspace.id, period_name(status.reset)),
            workspace_id: workspace.id.to_string(),
            limit_usd: usd(status.limit),
            reset_interval: status.reset.map(Period::as_str),
            spend_usd: usd(status.spent),
            reserved_usd: usd(status.reserved),
            remaining_usd: usd(status.unspent()),
            resets_at: status.resets_at.map(time),
            created_at: time(workspace.created_at),
            updated_at: time(workspace.updated_at.unwrap_or(workspace.created_at)),
            include_byok_in_budgets: false,
        }
    }
}

/// The name of the budget without a period.
const LIFETIME: &str = "lifetime";

/// Returns the name of a budget in paths.
fn period_name(period: Option<Period>) -> &'static str {
    period.map_or(LIFETIME, Period::as_str)
}

/// Returns the period of a budget by its name in paths; `Some(None)` is all time.
#[expect(clippy::option_option, reason = "a budget of all time has no period")]
pub(super) fn period_of(name: &str) -> Option<Option<Period>> {
    if name == LIFETIME { Some(None) } else { Period::from_name(name).map(Some) }
}

/// Renders a budget with its entity tag.
pub(super) fn respond_budget(workspace: &Workspace, status: &LimitStatus) -> RecordResponse {
    let response = RecordResponse::data(StatusCode::OK, BudgetView::new(workspace, status));
    match workspace.budget_version(status.reset) {
        Some(version) => response.version(version),
        None => response,
    }
}

/// The prepaid credit of a workspace.
#[derive(Serialize, ToSchema)]
#[schema(as = WorkspaceCredit)]
pub(crate) struct CreditView {
    /// The sum of the credit in USD since the workspace last had none; 0 without credit.
    total_credits: Decimal,
    /// The spend of the credit in USD; without credit the spend of all time.
    total_usage: Decimal,
    /// The balance in USD; null is unlimited.
    #[schema(required)]
    remaining: Option<Decimal>,
}

impl From<&Credit> for CreditView {
    fn from(credit: &Credit) -> Self {
        Self {
            total_credits: usd(credit.granted.unwrap_or(Usd::ZERO)),
            total_usage: usd(credit.spent),
            remaining: credit.remaining().map(usd),
        }
    }
}

/// A workspace to create.
#[derive(ToSchema)]
pub(super) struct CreateWorkspaceRequest {
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    #[serde(flatten)]
    members: WorkspaceMembers,
}

/// A change to a workspace, with at least one member. Read-only members of the record are ignored.
#[derive(ToSchema)]
pub(super) struct UpdateWorkspaceRequest {
    #[schema(min_length = 1, max_length = 100, nullable = false)]
    name: Option<String>,
    #[serde(flatten)]
    members: WorkspaceMembers,
}

/// The members of a workspace that a request may set. Those of published clients without a function are accepted with
/// the values of the record.
#[derive(ToSchema)]
struct WorkspaceMembers {
    /// No other workspace has it. Default: made of the name.
    #[schema(min_length = 1, max_length = 50, pattern = "^[a-z0-9]+(-[a-z0-9]+)*$", nullable = false)]
    slug: Option<String>,
    #[schema(min_length = 1, max_length = 1_000)]
    description: Option<String>,
    #[schema(min_length = 1, max_length = 512)]
    owner_id: Option<String>,
    /// True rejects all calls of its keys.
    #[schema(nullable = false)]
    suspended: Option<bool>,
    #[schema(minimum = 1)]
    requests_per_minute: Option<u32>,
    #[schema(minimum = 1)]
    tokens_per_minute: Option<u32>,
    /// A guardrail of the workspace; null and an empty string clear it.
    default_guardrail_id: Option<String>,
}

/// A budget to set.
#[derive(ToSchema)]
pub(super) struct SetBudgetRequest {
    /// The amount in USD, more than 0, more than the budgets of shorter periods, and less than those of longer ones.
    limit_usd: f64,
    /// Only false is supported.
    include_byok_in_budgets: Option<bool>,
}

/// A change of budgets, with at least one member. Null removes a budget.
#[derive(ToSchema)]
pub(super) struct BudgetsChangeRequest {
    /// In USD, more than 0.
    daily: Option<f64>,
    weekly: Option<f64>,
    monthly: Option<f64>,
    lifetime: Option<f64>,
}

/// Credit to add.
#[derive(ToSchema)]
pub(super) struct AddCreditRequest {
    /// The amount in USD, not 0. A negative amount subtracts.
    add_usd: f64,
}
