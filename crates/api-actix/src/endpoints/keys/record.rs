//! A key as JSON: its view, and the schemas of requests, which `fields.rs` reads.
#![expect(dead_code, reason = "the schemas of bodies that are read by hand")]

use domain::api_key::{ApiKey, KeyRecord, OwnLimit, UserLabel};
use domain::authority::ManagementScope;
use domain::secret::ApiKeySecret;

use crate::endpoints::prelude::*;
use crate::http::response::written_time;

/// A key without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiKeyRecord)]
pub(crate) struct KeyView<'a> {
    /// The permanent id of the key. It does not change with the secret.
    id: Uuid,
    /// The SHA-256 hash of the current secret, in hexadecimal.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    hash: String,
    /// The masked secret.
    label: &'a str,
    name: &'a str,
    /// The workspace id. Of a management key, the default workspace's, because clients decode no null; `GET /key` has
    /// null.
    #[schema(required)]
    workspace_id: Option<Uuid>,
    /// The scope of a management key; null for an inference key.
    #[schema(required)]
    management: Option<ManagementView>,
    disabled: bool,
    /// The spending limit in USD; null means unlimited.
    #[schema(required)]
    limit: Option<Decimal>,
    /// The part of the limit that is not spent, in USD; negative after the limit was lowered below the spend.
    #[schema(required)]
    limit_remaining: Option<Decimal>,
    /// The reset period of the limit; null means never.
    #[schema(required, value_type = Option<ResetInterval>)]
    limit_reset: Option<&'static str>,
    /// The requests per minute; null is the configured rate.
    #[schema(required, minimum = 1)]
    requests_per_minute: Option<u32>,
    /// The tokens per minute; null is the configured rate.
    #[schema(required, minimum = 1)]
    tokens_per_minute: Option<u32>,
    #[schema(required)]
    guardrail_id: Option<Uuid>,
    /// The spend of all time in USD.
    usage: Decimal,
    /// The spend of the current UTC day.
    usage_daily: Decimal,
    /// The spend of the current week, from Monday.
    usage_weekly: Decimal,
    /// The spend of the current month.
    usage_monthly: Decimal,
    /// The amount held for requests in flight, and what other servers drew ahead: zero at the latest two minutes after
    /// the last request.
    reserved: Decimal,
    /// Always 0.
    byok_usage: u8,
    /// Always 0.
    byok_usage_daily: u8,
    /// Always 0.
    byok_usage_weekly: u8,
    /// Always 0.
    byok_usage_monthly: u8,
    /// Always false: a provider's own key is not part of limits.
    include_byok_in_limit: bool,
    /// A label of the operator, used for no access decision.
    #[schema(required)]
    creator_user_id: Option<&'a str>,
    /// A label of the operator, used for no access decision.
    #[schema(required)]
    external_user: Option<&'a str>,
    created_at: DateTime,
    #[schema(required)]
    updated_at: Option<DateTime>,
    /// The start of the key's last recorded request.
    #[schema(required)]
    last_used_at: Option<DateTime>,
    #[schema(required)]
    expires_at: Option<DateTime>,
    /// The time from which the secret before the last rotation is rejected; null if it is rejected now.
    #[schema(required)]
    previous_secret_expires_at: Option<DateTime>,
}

/// The scope of a management key.
#[derive(Serialize, ToSchema)]
#[schema(as = ManagementScope)]
struct ManagementView {
    #[schema(value_type = ManagementAccess)]
    access: &'static str,
    /// The ids of the managed workspaces; null is all.
    #[schema(required, min_items = 1, max_items = 100)]
    workspaces: Option<Vec<String>>,
}

/// The access of a management key; each includes the ones before it.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
enum ManagementAccess {
    Read,
    Keys,
    Write,
}

/// A key and its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiKeyWithSecret)]
pub(crate) struct SecretView<'a> {
    pub(crate) data: KeyView<'a>,
    /// The secret. It is shown once.
    #[schema(pattern = "^sk-tg-v1-[0-9a-f]{64}$")]
    key: &'a str,
}

/// A key with every limit that applies to it.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiKeyWithBudgets)]
pub(super) struct LimitedKeyView<'a> {
    #[serde(flatten)]
    key: KeyView<'a>,
    /// Every limit that applies, in the order of checking; none of a management key.
    budgets: Vec<BudgetView>,
}

impl<'a> LimitedKeyView<'a> {
    /// Builds the view.
    pub(super) fn new(key: KeyView<'a>, limits: &[OwnLimit]) -> Self {
        Self { key, budgets: limits.iter().map(BudgetView::new).collect() }
    }
}

/// A limit that applies to a key.
#[derive(Serialize, ToSchema)]
#[schema(as = OwnKeyBudget)]
pub(crate) struct BudgetView {
    /// `workspace`: credit or a budget of the workspace; `workspace_default_key`: the workspace's default guardrail;
    /// `api_key`: the key's guardrail; `key_limit`: the key's own limit.
    #[schema(value_type = String)]
    scope: &'static str,
    /// True for the workspace's prepaid credit.
    is_credit: bool,
    limit_usd: Decimal,
    /// The amount spent in the period.
    spend_usd: Decimal,
    /// The amount held for requests in flight, and what other servers drew ahead: zero at the latest two minutes after
    /// the last request.
    reserved_usd: Decimal,
    /// The limit less the spend. Zero or less rejects the next request.
    remaining_usd: Decimal,
    /// The period of the limit; null means never reset.
    #[schema(required, value_type = Option<ResetInterval>)]
    reset_interval: Option<&'static str>,
    #[schema(required)]
    resets_at: Option<DateTime>,
    #[schema(required)]
    guardrail_id: Option<Uuid>,
    /// Always null.
    #[schema(required)]
    budget_id: Option<&'static str>,
    /// Always false.
    include_byok: bool,
}

impl BudgetView {
    /// Builds the view of a limit.
    pub(crate) fn new(limit: &OwnLimit) -> Self {
        let OwnLimit { scope, status } = limit;
        Self {
            scope: scope.as_str(),
            is_credit: status.is_credit,
            limit_usd: usd(status.limit),
            spend_usd: usd(status.spent),
            reserved_usd: usd(status.reserved),
            remaining_usd: usd(status.unspent()),
            reset_interval: status.reset.map(domain::budget::ResetInterval::as_str),
            resets_at: status.resets_at.map(time),
            guardrail_id: status.guardrail_id.map(|id| id.to_string()),
            budget_id: None,
            include_byok: false,
        }
    }
}

/// Returns the schema of one key.
pub(super) fn response() -> BodySchema {
    BodySchema::data::<KeyView<'_>>("ApiKeyResponse", "One key.")
}

impl From<&ManagementScope> for ManagementView {
    fn from(scope: &ManagementScope) -> Self {
        let ids = |ids: &[domain::ids::WorkspaceId]| ids.iter().map(ToString::to_string).collect();
        Self { access: scope.access().as_str(), workspaces: scope.workspaces().map(ids) }
    }
}

impl<'a> KeyView<'a> {
    /// Builds the view of a key. A management key has the default workspace in place of its own.
    pub(crate) fn new(record: &'a KeyRecord, default_workspace: Option<&str>) -> Self {
        let KeyRecord { key, spend, limit_remaining, last_used_at } = record;
        let ApiKey { scope, limit, rates, users, .. } = key;
        let workspace_id = scope.workspace_id().map(|id| id.to_string());
        Self {
            id: key.id.to_string(),
            hash: key.hash.to_string(),
            label: &key.label,
            name: key.name.as_str(),
            workspace_id: workspace_id.or_else(|| default_workspace.map(str::to_owned)),
            management: scope.management().map(ManagementView::from),
            disabled: key.disabled,
            limit: limit.map(|limit| usd(limit.amount)),
            limit_remaining: limit_remaining.map(usd),
            limit_reset: limit.and_then(|limit| limit.reset).map(domain::budget::ResetInterval::as_str),
            requests_per_minute: rates.requests_per_minute,
            tokens_per_minute: rates.tokens_per_minute,
            guardrail_id: key.guardrail_id.map(|id| id.to_string()),
            usage: usd(spend.total),
            usage_daily: usd(spend.daily),
            usage_weekly: usd(spend.weekly),
            usage_monthly: usd(spend.monthly),
            reserved: usd(spend.reserved),
            byok_usage: 0,
            byok_usage_daily: 0,
            byok_usage_weekly: 0,
            byok_usage_monthly: 0,
            include_byok_in_limit: false,
            creator_user_id: users.creator.as_ref().map(UserLabel::as_str),
            external_user: users.external.as_ref().map(UserLabel::as_str),
            created_at: time(key.created_at),
            updated_at: key.updated_at.map(time),
            last_used_at: last_used_at.map(time),
            expires_at: key.expires_at.map(written_time),
            previous_secret_expires_at: key.previous_secret.map(|secret| time(secret.expires_at)),
        }
    }

    /// Adds the secret.
    pub(super) fn with_secret(self, secret: &'a ApiKeySecret) -> SecretView<'a> {
        SecretView { data: self, key: secret.expose() }
    }
}

/// A key to create.
#[derive(ToSchema)]
pub(super) struct CreateKeyRequest {
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// The workspace id. Default: the default workspace, or the only one of the management key.
    workspace_id: Option<Uuid>,
    #[serde(flatten)]
    members: KeyMembers,
}

/// A change to a key, with at least one member. Read-only members of the record are ignored.
#[derive(ToSchema)]
pub(super) struct UpdateKeyRequest {
    #[schema(min_length = 1, max_length = 200, nullable = false)]
    name: Option<String>,
    /// True rejects the key until it is enabled, and ends the secret before the last rotation.
    #[schema(nullable = false)]
    disabled: Option<bool>,
    /// The workspace of the key: a key does not move.
    workspace_id: Option<Uuid>,
    #[serde(flatten)]
    members: KeyMembers,
}

/// The members of a key that a request may set.
#[derive(ToSchema)]
struct KeyMembers {
    /// Makes a management key, which has no workspace, limit, rates and guardrail. Needs an unrestricted key.
    management: Option<ManagementRequest>,
    /// The spending limit in USD, more than 0; null is unlimited.
    limit: Option<f64>,
    /// The reset period of the limit; null means never.
    limit_reset: Option<ResetInterval>,
    #[schema(minimum = 1)]
    requests_per_minute: Option<u32>,
    #[schema(minimum = 1)]
    tokens_per_minute: Option<u32>,
    /// The guardrail, of the key's workspace. Needs access `write`.
    guardrail_id: Option<Uuid>,
    /// In the future; null means never.
    expires_at: Option<DateTime>,
    #[schema(min_length = 1, max_length = 512)]
    creator_user_id: Option<String>,
    #[schema(min_length = 1, max_length = 512)]
    external_user: Option<String>,
    /// The same as `external_user`.
    external: Option<ExternalUser>,
    /// Only false is supported.
    include_byok_in_limit: Option<bool>,
}

/// The user that the key belongs to.
#[derive(ToSchema)]
struct ExternalUser {
    #[schema(min_length = 1, max_length = 512)]
    user: String,
}

/// The scope of a management key.
#[derive(ToSchema)]
struct ManagementRequest {
    access: ManagementAccess,
    /// The ids of the managed workspaces; null is all.
    #[schema(min_items = 1, max_items = 100)]
    workspaces: Option<Vec<String>>,
}
