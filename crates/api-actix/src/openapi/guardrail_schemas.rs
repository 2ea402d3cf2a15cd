//! The schemas of guardrails.
#![expect(dead_code, reason = "only their schemas are used")]

use serde_json::Value;
use utoipa::ToSchema;

/// A guardrail to create.
#[derive(ToSchema)]
pub(super) struct GuardrailRequest {
    /// The display name, without control characters.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// The workspace id. Default: the default workspace.
    #[schema(format = "uuid")]
    workspace_id: Option<String>,
    #[serde(flatten)]
    rules: GuardrailRulesBody,
}

/// A change to a guardrail, with at least one member.
#[derive(ToSchema)]
pub(super) struct GuardrailChange {
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    #[serde(flatten)]
    rules: GuardrailRulesBody,
}

/// The rules of a guardrail. Null means no rule; unknown members are ignored.
#[derive(ToSchema)]
pub(super) struct GuardrailRulesBody {
    #[schema(max_length = 1000)]
    description: Option<String>,
    /// True applies the guardrail to all traffic of the workspace.
    workspace_default: Option<bool>,
    /// The only allowed models, by any name that resolves.
    #[schema(min_items = 1, max_items = 1000)]
    allowed_models: Option<Vec<String>>,
    /// Denied models, by any name that resolves.
    #[schema(min_items = 1, max_items = 1000)]
    ignored_models: Option<Vec<String>>,
    /// The slugs of the only allowed providers.
    #[schema(min_items = 1, max_items = 1000)]
    allowed_providers: Option<Vec<String>>,
    /// The slugs of denied providers.
    #[schema(min_items = 1, max_items = 1000)]
    ignored_providers: Option<Vec<String>>,
    /// The budget of each assigned key per period, in USD. Requires `reset_interval`.
    #[schema(exclusive_minimum = 0.0)]
    limit_usd: Option<f64>,
    reset_interval: Option<ResetInterval>,
    /// True allows only endpoints with zero data retention, for every author without its own setting.
    enforce_zdr: Option<bool>,
    enforce_zdr_anthropic: Option<bool>,
    enforce_zdr_openai: Option<bool>,
    enforce_zdr_google: Option<bool>,
    enforce_zdr_xai: Option<bool>,
    enforce_zdr_other: Option<bool>,
    /// False denies free endpoints that train on inputs.
    enable_free_model_training: Option<bool>,
    /// False denies paid endpoints that train on inputs.
    enable_paid_model_training: Option<bool>,
    #[schema(max_items = 1000)]
    content_filters: Option<Vec<ContentFilter>>,
    content_filter_builtins: Option<Vec<BuiltinContentFilter>>,
}

/// A budget period in UTC; weeks start on Monday.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum ResetInterval {
    Daily,
    Weekly,
    Monthly,
}

/// The action on a match.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum FilterAction {
    Block,
    Redact,
    Flag,
}

/// A custom pattern.
#[derive(ToSchema)]
pub(super) struct ContentFilter {
    /// A regular expression with linear-time matching: no look-around and no back-references.
    #[schema(min_length = 1)]
    pattern: String,
    action: FilterAction,
    /// The name of the filter, and in brackets the replacement of a match.
    #[schema(min_length = 1, max_length = 100)]
    label: Option<String>,
}

/// A built-in pattern.
#[derive(ToSchema)]
pub(super) struct BuiltinContentFilter {
    slug: BuiltinFilter,
    action: FilterAction,
    /// Read only.
    label: Option<String>,
    /// Accepted for compatibility. All content is always scanned.
    scan_scope: Option<ScanScope>,
}

/// The built-in pattern.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
pub(super) enum BuiltinFilter {
    Email,
    Phone,
    Ssn,
    CreditCard,
    IpAddress,
    Secrets,
    RegexPromptInjection,
}

/// The scope of the scan.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(super) enum ScanScope {
    UserOnly,
    AllMessages,
}

/// One guardrail.
#[derive(ToSchema)]
pub(super) struct GuardrailResponse {
    data: Guardrail,
}

/// A page of guardrails.
#[derive(ToSchema)]
pub(super) struct GuardrailListResponse {
    data: Vec<Guardrail>,
    /// The total number of guardrails, including those on other pages.
    #[schema(minimum = 0)]
    total_count: i64,
}

/// A guardrail. All members are present; null means no rule.
#[derive(ToSchema)]
pub(super) struct Guardrail {
    #[schema(format = "uuid")]
    id: String,
    name: String,
    #[schema(required)]
    description: Option<String>,
    #[schema(format = "uuid")]
    workspace_id: String,
    /// True if the guardrail applies to all traffic of the workspace; absent in versions.
    #[schema(nullable = false)]
    workspace_default: Option<bool>,
    /// The version number, from 1. Every change increases it by one.
    #[schema(minimum = 1)]
    version: i64,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(required, format = DateTime)]
    updated_at: Option<String>,
    /// Canonical slugs.
    #[schema(required)]
    allowed_models: Option<Vec<String>>,
    #[schema(required)]
    ignored_models: Option<Vec<String>>,
    #[schema(required)]
    allowed_providers: Option<Vec<String>>,
    #[schema(required)]
    ignored_providers: Option<Vec<String>>,
    #[schema(required)]
    limit_usd: Option<f64>,
    #[schema(required)]
    reset_interval: Option<ResetInterval>,
    #[schema(required)]
    enforce_zdr: Option<bool>,
    #[schema(required)]
    enforce_zdr_anthropic: Option<bool>,
    #[schema(required)]
    enforce_zdr_openai: Option<bool>,
    #[schema(required)]
    enforce_zdr_google: Option<bool>,
    #[schema(required)]
    enforce_zdr_xai: Option<bool>,
    #[schema(required)]
    enforce_zdr_other: Option<bool>,
    #[schema(required)]
    enable_free_model_training: Option<bool>,
    #[schema(required)]
    enable_paid_model_training: Option<bool>,
    #[schema(required)]
    content_filters: Option<Vec<ContentFilter>>,
    #[schema(required)]
    content_filter_builtins: Option<Vec<BuiltinContentFilter>>,
    /// Not supported: always null.
    #[schema(required)]
    enable_free_model_publication: Option<bool>,
    #[schema(required)]
    allow_safety_retention_google: Option<bool>,
    #[schema(required)]
    allow_safety_retention_other: Option<bool>,
    #[schema(required)]
    allowed_data_regions: Option<Vec<String>>,
    include_byok_in_budgets: bool,
}

/// Confirms the deletion of a guardrail.
#[derive(ToSchema)]
pub(super) struct GuardrailDeletedResponse {
    deleted: bool,
}

/// One version of a guardrail.
#[derive(ToSchema)]
pub(super) struct GuardrailVersionResponse {
    data: GuardrailVersion,
}

/// A page of versions of a guardrail.
#[derive(ToSchema)]
pub(super) struct GuardrailVersionListResponse {
    data: Vec<GuardrailVersion>,
    #[schema(minimum = 0)]
    total_count: i64,
}

/// A version of a guardrail.
#[derive(ToSchema)]
pub(super) struct GuardrailVersion {
    #[schema(minimum = 1)]
    version: i64,
    #[schema(format = DateTime)]
    changed_at: String,
    /// The author: `key:` and the hash of a management key, or `user:` and an operating system user.
    changed_by: String,
    guardrail: Guardrail,
}

/// A page of the keys assigned to a guardrail.
#[derive(ToSchema)]
pub(super) struct KeyAssignmentListResponse {
    data: Vec<KeyAssignment>,
    #[schema(minimum = 0)]
    total_count: i64,
}

/// A key assigned to a guardrail.
#[derive(ToSchema)]
pub(super) struct KeyAssignment {
    #[schema(format = "uuid")]
    id: String,
    #[schema(format = "uuid")]
    guardrail_id: String,
    key_hash: String,
    key_name: String,
    /// The masked secret.
    key_label: String,
    #[schema(required)]
    assigned_by: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
}

/// The number of removed assignments.
#[derive(ToSchema)]
pub(super) struct RemoveKeysResponse {
    #[schema(minimum = 0)]
    unassigned_count: i64,
}

/// A request to explain.
#[derive(ToSchema)]
pub(super) struct ExplainRequest {
    /// The key that would send the request, by hash or id. Default: a key of the guardrail's workspace without its own
    /// limits.
    key_hash: Option<String>,
    /// The body of a Decisions request, in any format that a Decisions path accepts.
    #[schema(value_type = Object)]
    body: Value,
}

/// An explanation.
#[derive(ToSchema)]
pub(super) struct ExplainResponse {
    data: Explanation,
}

/// The predicted handling of a request.
#[derive(ToSchema)]
pub(super) struct Explanation {
    /// True if the request would be sent to a provider.
    allowed: bool,
    /// The rule that rejects the request, the first of several; null if none does.
    #[schema(required)]
    decided_by: Option<Decider>,
    /// The ids of the applied guardrails, the workspace's first.
    guardrails: Vec<String>,
    /// The resolved model id; null if a named model does not resolve. The request is then rejected before any rule
    /// applies.
    #[schema(required)]
    model: Option<String>,
    endpoints: Vec<ExplainedEndpoint>,
    /// The matches that filters would redact or flag.
    findings: Vec<ExplainedFinding>,
    /// The content that would be sent; null if a filter blocks the request.
    #[schema(required)]
    sent: Option<ExplainedContent>,
    /// The current limits of the key; empty if no key is named.
    limits: Vec<LimitStatus>,
    /// The amount that would be held, in USD; null if no endpoint is allowed.
    #[schema(required)]
    bound_usd: Option<f64>,
    /// True if the amount is within all limits now.
    #[schema(required)]
    bound_fits: Option<bool>,
}

/// The rule that rejects a request.
#[derive(ToSchema)]
pub(super) struct Decider {
    /// A member of the guardrail's record, `content_filter`, `budget`, `key_disabled`, `key_expired`,
    /// `workspace_suspended`, `unpriced`, `preferences`, `capability` or `no_endpoint`.
    rule: String,
    message: String,
    #[schema(required)]
    guardrail_id: Option<String>,
    /// The label of the blocking filter.
    #[schema(nullable = false)]
    label: Option<String>,
    /// The path of the match of a blocking filter.
    #[schema(nullable = false)]
    path: Option<String>,
    /// The owner of the exhausted limit: `workspace`, `key` or `guardrail`.
    #[schema(nullable = false)]
    scope: Option<String>,
}

/// An endpoint and its verdict.
#[derive(ToSchema)]
pub(super) struct ExplainedEndpoint {
    model: String,
    provider: String,
    /// `allowed`, `forbidden`, `unpriced`, `excluded_by_preferences` or `unsupported`.
    verdict: String,
    #[schema(required)]
    rule: Option<String>,
    #[schema(required)]
    guardrail_id: Option<String>,
}

/// The matches of a filter, without the matched text.
#[derive(ToSchema)]
pub(super) struct ExplainedFinding {
    guardrail_id: String,
    label: String,
    action: FilterAction,
    /// The path of the first match.
    path: String,
    #[schema(minimum = 1)]
    count: i64,
}

/// The questions and the state that would be sent.
#[derive(ToSchema)]
pub(super) struct ExplainedContent {
    questions: Value,
    #[schema(required)]
    state: Option<Value>,
}

/// A limit and its current usage.
#[derive(ToSchema)]
pub(super) struct LimitStatus {
    /// `workspace`, `key` or `guardrail`.
    scope: String,
    #[schema(required)]
    guardrail_id: Option<String>,
    /// True for the workspace's prepaid credit.
    is_credit: bool,
    limit_usd: f64,
    #[schema(required)]
    reset_interval: Option<ResetInterval>,
    spent_usd: f64,
    reserved_usd: f64,
    #[schema(required, format = DateTime)]
    resets_at: Option<String>,
}
