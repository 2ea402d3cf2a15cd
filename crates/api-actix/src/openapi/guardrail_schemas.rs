//! The bodies of guardrails, as the description shows them.
#![expect(dead_code, reason = "only their schemas are used")]

use serde_json::Value;
use utoipa::ToSchema;

/// A guardrail to be made.
#[derive(ToSchema)]
pub(super) struct GuardrailRequest {
    /// Without control characters.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// The default workspace where none is named.
    #[schema(format = "uuid")]
    workspace_id: Option<String>,
    #[serde(flatten)]
    rules: GuardrailRulesBody,
}

/// A change to a guardrail: at least one member.
#[derive(ToSchema)]
pub(super) struct GuardrailChange {
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    #[serde(flatten)]
    rules: GuardrailRulesBody,
}

/// What a guardrail rules. Null rules nothing; further members are ignored.
#[derive(ToSchema)]
pub(super) struct GuardrailRulesBody {
    #[schema(max_length = 1000)]
    description: Option<String>,
    /// True puts all traffic of the workspace under it.
    workspace_default: Option<bool>,
    /// The only models that may be used, by any name that resolves.
    #[schema(min_items = 1, max_items = 1000)]
    allowed_models: Option<Vec<String>>,
    /// Models that may not.
    #[schema(min_items = 1, max_items = 1000)]
    ignored_models: Option<Vec<String>>,
    /// Slugs of the only providers that may be used.
    #[schema(min_items = 1, max_items = 1000)]
    allowed_providers: Option<Vec<String>>,
    /// Slugs of providers that may not.
    #[schema(min_items = 1, max_items = 1000)]
    ignored_providers: Option<Vec<String>>,
    /// What each key that holds it may spend in a period, in USD; goes with `reset_interval`.
    #[schema(exclusive_minimum = 0.0)]
    limit_usd: Option<f64>,
    reset_interval: Option<ResetInterval>,
    /// True: only endpoints that keep nothing, for every author that says nothing itself.
    enforce_zdr: Option<bool>,
    enforce_zdr_anthropic: Option<bool>,
    enforce_zdr_openai: Option<bool>,
    enforce_zdr_google: Option<bool>,
    enforce_zdr_xai: Option<bool>,
    enforce_zdr_other: Option<bool>,
    /// False: no endpoint that costs nothing and trains on what it is sent.
    enable_free_model_training: Option<bool>,
    /// False: no endpoint that costs something and trains on what it is sent.
    enable_paid_model_training: Option<bool>,
    #[schema(max_items = 1000)]
    content_filters: Option<Vec<ContentFilter>>,
    content_filter_builtins: Option<Vec<BuiltinContentFilter>>,
}

/// A period in UTC; weeks start on Monday.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum ResetInterval {
    Daily,
    Weekly,
    Monthly,
}

/// What happens to a match.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum FilterAction {
    Block,
    Redact,
    Flag,
}

/// A pattern of one's own.
#[derive(ToSchema)]
pub(super) struct ContentFilter {
    /// A regular expression that is matched in linear time: without look-around and back-references.
    #[schema(min_length = 1)]
    pattern: String,
    action: FilterAction,
    /// What the filter is called, and what stands in for a match in brackets.
    #[schema(min_length = 1, max_length = 100)]
    label: Option<String>,
}

/// A pattern that comes with the service.
#[derive(ToSchema)]
pub(super) struct BuiltinContentFilter {
    slug: BuiltinFilter,
    action: FilterAction,
    /// Read only.
    label: Option<String>,
    /// Either is kept by looking through everything.
    scan_scope: Option<ScanScope>,
}

/// Which pattern.
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

/// What is looked through.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(super) enum ScanScope {
    UserOnly,
    AllMessages,
}

/// A guardrail.
#[derive(ToSchema)]
pub(super) struct GuardrailResponse {
    data: Guardrail,
}

/// Guardrails.
#[derive(ToSchema)]
pub(super) struct GuardrailListResponse {
    data: Vec<Guardrail>,
    /// How many there are, those beyond the page included.
    #[schema(minimum = 0)]
    total_count: i64,
}

/// A guardrail. Every member is there; null rules nothing.
#[derive(ToSchema)]
pub(super) struct Guardrail {
    #[schema(format = "uuid")]
    id: String,
    name: String,
    #[schema(required)]
    description: Option<String>,
    #[schema(format = "uuid")]
    workspace_id: String,
    /// True where all traffic of the workspace is under it; absent in versions.
    #[schema(nullable = false)]
    workspace_default: Option<bool>,
    /// From 1; every change makes it one more.
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
    /// Nothing here can tell whether it is kept: always null.
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

/// A guardrail is gone.
#[derive(ToSchema)]
pub(super) struct GuardrailDeletedResponse {
    deleted: bool,
}

/// A state that a guardrail was in.
#[derive(ToSchema)]
pub(super) struct GuardrailVersionResponse {
    data: GuardrailVersion,
}

/// States that a guardrail was in.
#[derive(ToSchema)]
pub(super) struct GuardrailVersionListResponse {
    data: Vec<GuardrailVersion>,
    #[schema(minimum = 0)]
    total_count: i64,
}

/// A state that a guardrail was in.
#[derive(ToSchema)]
pub(super) struct GuardrailVersion {
    #[schema(minimum = 1)]
    version: i64,
    #[schema(format = DateTime)]
    changed_at: String,
    /// `key:` and the hash of a management key, or `user:` and a user of the operating system.
    changed_by: String,
    guardrail: Guardrail,
}

/// Keys that hold a guardrail.
#[derive(ToSchema)]
pub(super) struct KeyAssignmentListResponse {
    data: Vec<KeyAssignment>,
    #[schema(minimum = 0)]
    total_count: i64,
}

/// A key that holds a guardrail.
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

/// What was removed.
#[derive(ToSchema)]
pub(super) struct RemoveKeysResponse {
    #[schema(minimum = 0)]
    unassigned_count: i64,
}

/// A request that is to be explained.
#[derive(ToSchema)]
pub(super) struct ExplainRequest {
    /// The key that would send it, by hash or by id; a key of the guardrail's workspace without limits of its own where none is named.
    key_hash: Option<String>,
    /// The body of a Decisions request, in any form that a path for Decisions takes.
    #[schema(value_type = Object)]
    body: Value,
}

/// What would become of a request.
#[derive(ToSchema)]
pub(super) struct ExplainResponse {
    data: Explanation,
}

/// What would become of a request.
#[derive(ToSchema)]
pub(super) struct Explanation {
    /// True where it would be tried.
    allowed: bool,
    /// What refuses it, the first of several; null where nothing does.
    #[schema(required)]
    decided_by: Option<Decider>,
    /// Ids of the guardrails that apply, the workspace's first.
    guardrails: Vec<String>,
    /// What the name of the model means; null where a name of a model means none that can be asked, and the request is
    /// refused before anybody looks.
    #[schema(required)]
    model: Option<String>,
    endpoints: Vec<ExplainedEndpoint>,
    /// What filters would redact or flag.
    findings: Vec<ExplainedFinding>,
    /// What would be sent; null where a filter blocks.
    #[schema(required)]
    sent: Option<ExplainedContent>,
    /// The limits of the key as they stand; empty where no key is named.
    limits: Vec<LimitStatus>,
    /// What would be reserved, in USD; null where no endpoint may be tried.
    #[schema(required)]
    bound_usd: Option<f64>,
    /// Whether that fits into every limit now.
    #[schema(required)]
    bound_fits: Option<bool>,
}

/// What refuses a request.
#[derive(ToSchema)]
pub(super) struct Decider {
    /// A member of the guardrail's record, `content_filter`, `budget`, `key_disabled`, `key_expired`,
    /// `workspace_suspended`, `unpriced`, `preferences`, `capability` or `no_endpoint`.
    rule: String,
    message: String,
    #[schema(required)]
    guardrail_id: Option<String>,
    /// The filter's label, where one blocks.
    #[schema(nullable = false)]
    label: Option<String>,
    /// Where the match is, where a filter blocks.
    #[schema(nullable = false)]
    path: Option<String>,
    /// Whose limit it is, where one leaves no room: `workspace`, `key` or `guardrail`.
    #[schema(nullable = false)]
    scope: Option<String>,
}

/// An endpoint, and what becomes of it.
#[derive(ToSchema)]
pub(super) struct ExplainedEndpoint {
    model: String,
    provider: String,
    /// `allowed`, `forbidden`, `unpriced`, `unwanted` or `incapable`.
    verdict: String,
    #[schema(required)]
    rule: Option<String>,
    #[schema(required)]
    guardrail_id: Option<String>,
}

/// What a filter found, without a word of what matched.
#[derive(ToSchema)]
pub(super) struct ExplainedFinding {
    guardrail_id: String,
    label: String,
    action: FilterAction,
    /// Where the first match is.
    path: String,
    #[schema(minimum = 1)]
    count: i64,
}

/// Questions and state as they would leave.
#[derive(ToSchema)]
pub(super) struct ExplainedContent {
    questions: Value,
    #[schema(required)]
    state: Option<Value>,
}

/// A limit as it stands.
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
