//! A guardrail as JSON: its view, and the schemas of requests. `domain::guardrail::GuardrailDraft` reads the bodies,
//! locates their errors and tells null from absence.
#![expect(dead_code, reason = "the schemas of bodies that are read by hand")]

use domain::guardrail::{
    BuiltinContentFilter, ContentFilter, Guardrail, GuardrailRules, GuardrailVersion, PlacedGuardrail,
};

use crate::endpoints::prelude::*;

/// A guardrail. All members are present; null means no rule.
#[derive(Serialize, ToSchema)]
#[schema(as = Guardrail)]
pub struct GuardrailView<'a> {
    id: Uuid,
    name: &'a str,
    #[schema(required)]
    description: Option<&'a str>,
    workspace_id: Uuid,
    /// True if the guardrail applies to all traffic of the workspace; absent in versions, which do not store it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    workspace_default: Option<bool>,
    /// The version number, from 1. Every change increases it by one.
    #[schema(value_type = u64, minimum = 1)]
    version: u32,
    created_at: DateTime,
    #[schema(required)]
    updated_at: Option<DateTime>,
    /// Canonical slugs.
    #[schema(required)]
    allowed_models: Option<&'a [String]>,
    #[schema(required)]
    ignored_models: Option<&'a [String]>,
    #[schema(required)]
    allowed_providers: Option<&'a [String]>,
    #[schema(required)]
    ignored_providers: Option<&'a [String]>,
    #[schema(required)]
    limit_usd: Option<Decimal>,
    #[schema(required, value_type = Option<ResetInterval>)]
    reset_interval: Option<&'static str>,
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
    content_filters: Option<Vec<ContentFilterView<'a>>>,
    #[schema(required)]
    content_filter_builtins: Option<Vec<BuiltinFilterView>>,
    /// Not supported: always null.
    #[schema(required)]
    enable_free_model_publication: Option<bool>,
    /// Not supported: always null.
    #[schema(required)]
    allow_safety_retention_google: Option<bool>,
    /// Not supported: always null.
    #[schema(required)]
    allow_safety_retention_other: Option<bool>,
    /// Not supported: always null.
    #[schema(required)]
    allowed_data_regions: Option<Vec<String>>,
    /// Not supported: always false.
    include_byok_in_budgets: bool,
}

/// A custom pattern.
#[derive(Serialize, ToSchema)]
#[schema(as = ContentFilter)]
pub(super) struct ContentFilterView<'a> {
    /// A regular expression with linear-time matching: no look-around and no back-references.
    #[schema(min_length = 1)]
    pattern: &'a str,
    #[schema(value_type = FilterAction)]
    action: &'static str,
    /// The name of the filter, and in brackets the replacement of a match.
    #[schema(min_length = 1, max_length = 100)]
    label: Option<&'a str>,
}

/// A built-in pattern.
#[derive(Serialize, ToSchema)]
#[schema(as = BuiltinContentFilter)]
pub(super) struct BuiltinFilterView {
    #[schema(value_type = BuiltinFilterSlug)]
    slug: &'static str,
    #[schema(value_type = FilterAction)]
    action: &'static str,
    /// Read only.
    #[schema(value_type = Option<String>)]
    label: &'static str,
    /// Kept as written. All content is scanned in either scope.
    #[schema(value_type = Option<ScanScope>)]
    scan_scope: &'static str,
}

/// The built-in pattern.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = BuiltinFilter)]
enum BuiltinFilterSlug {
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
#[serde(rename_all = "snake_case")]
enum ScanScope {
    UserOnly,
    AllMessages,
}

/// Returns the schema of one guardrail.
pub(super) fn response() -> BodySchema {
    BodySchema::data::<GuardrailView<'_>>("GuardrailResponse", "One guardrail.")
}

/// Renders one guardrail with its entity tag.
pub(super) fn respond(status: StatusCode, placed: &PlacedGuardrail) -> RecordResponse {
    RecordResponse::data(status, GuardrailView::new(placed)).version(placed.version())
}

impl<'a> GuardrailView<'a> {
    /// Builds the view of a current guardrail.
    pub fn new(placed: &'a PlacedGuardrail) -> Self {
        Self { workspace_default: Some(placed.workspace_default), ..Self::new_version(&placed.guardrail) }
    }

    /// Builds the view of an earlier version.
    pub(super) fn new_version(guardrail: &'a Guardrail) -> Self {
        let Guardrail { name, budget, rules, version, .. } = guardrail;
        let GuardrailRules { content_filters, content_filter_builtins, .. } = rules;
        let policy = &rules.data_policy;
        Self {
            id: guardrail.id.to_string(),
            name: name.as_str(),
            description: rules.description.as_deref(),
            workspace_id: guardrail.workspace_id.to_string(),
            workspace_default: None,
            version: *version,
            created_at: time(guardrail.created_at),
            updated_at: guardrail.updated_at.map(time),
            allowed_models: rules.allowed_models.as_deref(),
            ignored_models: rules.ignored_models.as_deref(),
            allowed_providers: rules.allowed_providers.as_deref(),
            ignored_providers: rules.ignored_providers.as_deref(),
            limit_usd: budget.map(|budget| usd(budget.amount)),
            reset_interval: budget.and_then(|budget| budget.reset).map(domain::budget::ResetInterval::as_str),
            enforce_zdr: policy.enforce_zdr,
            enforce_zdr_anthropic: policy.enforce_zdr_anthropic,
            enforce_zdr_openai: policy.enforce_zdr_openai,
            enforce_zdr_google: policy.enforce_zdr_google,
            enforce_zdr_xai: policy.enforce_zdr_xai,
            enforce_zdr_other: policy.enforce_zdr_other,
            enable_free_model_training: policy.enable_free_model_training,
            enable_paid_model_training: policy.enable_paid_model_training,
            content_filters: non_empty(content_filters, ContentFilterView::new),
            content_filter_builtins: non_empty(content_filter_builtins, |filter| BuiltinFilterView::new(*filter)),
            enable_free_model_publication: None,
            allow_safety_retention_google: None,
            allow_safety_retention_other: None,
            allowed_data_regions: None,
            include_byok_in_budgets: false,
        }
    }
}

/// A version of a guardrail.
#[derive(Serialize, ToSchema)]
#[schema(as = GuardrailVersion)]
pub struct GuardrailVersionView<'a> {
    #[schema(value_type = u64, minimum = 1)]
    version: u32,
    changed_at: DateTime,
    /// The author: `key:` and the hash of a management key, or `user:` and an operating system user.
    changed_by: &'a str,
    guardrail: GuardrailView<'a>,
}

impl<'a> GuardrailVersionView<'a> {
    /// Builds the view of a version.
    pub fn new(version: &'a GuardrailVersion) -> Self {
        Self {
            version: version.guardrail.version,
            changed_at: time(version.changed_at),
            changed_by: &version.changed_by,
            guardrail: GuardrailView::new_version(&version.guardrail),
        }
    }
}

/// Returns `None` for an empty slice.
fn non_empty<'a, T, V>(all: &'a [T], view: impl Fn(&'a T) -> V) -> Option<Vec<V>> {
    (!all.is_empty()).then(|| all.iter().map(view).collect())
}

impl<'a> ContentFilterView<'a> {
    fn new(filter: &'a ContentFilter) -> Self {
        Self { pattern: &filter.pattern, action: filter.action.as_str(), label: filter.label.as_deref() }
    }
}

impl BuiltinFilterView {
    fn new(filter: BuiltinContentFilter) -> Self {
        Self {
            slug: filter.slug.as_str(),
            action: filter.action.as_str(),
            label: filter.slug.label(),
            scan_scope: filter.scan_scope.as_str(),
        }
    }
}

/// A guardrail to create.
#[derive(ToSchema)]
pub(super) struct GuardrailRequest {
    /// The display name, without control characters.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// The workspace id. Default: the default workspace.
    workspace_id: Option<Uuid>,
    #[serde(flatten)]
    rules: GuardrailRulesBody,
}

/// A change to a guardrail, with at least one member.
#[derive(ToSchema)]
pub(super) struct GuardrailChange {
    #[schema(min_length = 1, max_length = 200, nullable = false)]
    name: Option<String>,
    #[serde(flatten)]
    rules: GuardrailRulesBody,
}

/// The rules of a guardrail. Null means no rule; unknown members are rejected.
#[derive(ToSchema)]
struct GuardrailRulesBody {
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
    content_filters: Option<Vec<ContentFilterView<'static>>>,
    content_filter_builtins: Option<Vec<BuiltinFilterView>>,
}

#[cfg(test)]
mod tests {
    use domain::guardrail::{BuiltinFilter, GuardrailDraft};
    use domain::json::Json;
    use serde_json::{Value, to_value};
    use utoipa::PartialSchema;

    use super::*;

    #[test]
    fn builtin_filters_are_written_with_their_slugs() {
        let schema = to_value(BuiltinFilterSlug::schema()).unwrap();
        assert_eq!(schema["enum"], serde_json::json!(BuiltinFilter::ALL.map(BuiltinFilter::as_str)));
    }

    fn members(schema: &Value) -> impl Iterator<Item = &String> {
        schema["properties"].as_object().into_iter().flat_map(serde_json::Map::keys)
    }

    /// Reads a record with each described member as null. An unknown member is an error.
    #[test]
    fn every_described_member_is_read() {
        let rules = to_value(GuardrailRulesBody::schema()).unwrap();
        assert!(members(&rules).count() > 15);
        let request = to_value(GuardrailRequest::schema()).unwrap();
        let own = request["allOf"].as_array().unwrap().iter().flat_map(members);
        for name in members(&rules).chain(own) {
            let read = GuardrailDraft::read(&Json::parse(&format!(r#"{{"{name}":null}}"#)).unwrap());
            let fault = read.map(drop).map_or_else(|invalid| invalid.to_string(), |()| String::new());
            assert!(!fault.contains("unknown member"), "{name}: {fault}");
        }
        assert!(GuardrailDraft::read(&Json::parse(r#"{"allowed_model":null}"#).unwrap()).is_err());
    }
}
