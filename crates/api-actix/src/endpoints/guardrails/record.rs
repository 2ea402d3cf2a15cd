//! The JSON view of a guardrail.

use chrono::{DateTime, SecondsFormat, Utc};
use domain::guardrail::{
    BuiltinContentFilter, ContentFilter, DataPolicyRules, Guardrail, GuardrailRules, GuardrailVersion, PlacedGuardrail,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::http::raw_json::usd;

/// A guardrail. All members are present; null means no rule.
#[derive(Serialize)]
pub struct GuardrailView<'a> {
    id: String,
    name: &'a str,
    description: Option<&'a str>,
    workspace_id: String,
    /// Absent in versions, which do not store it.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_default: Option<bool>,
    version: u32,
    created_at: String,
    updated_at: Option<String>,
    allowed_models: Option<&'a [String]>,
    ignored_models: Option<&'a [String]>,
    allowed_providers: Option<&'a [String]>,
    ignored_providers: Option<&'a [String]>,
    limit_usd: Option<Box<RawValue>>,
    reset_interval: Option<&'static str>,
    enforce_zdr: Option<bool>,
    enforce_zdr_anthropic: Option<bool>,
    enforce_zdr_openai: Option<bool>,
    enforce_zdr_google: Option<bool>,
    enforce_zdr_xai: Option<bool>,
    enforce_zdr_other: Option<bool>,
    enable_free_model_training: Option<bool>,
    enable_paid_model_training: Option<bool>,
    content_filters: Option<Vec<FilterView<'a>>>,
    content_filter_builtins: Option<Vec<BuiltinView>>,
    #[serde(flatten)]
    unruled: UnusedMembers,
}

/// Members that clients require and that have no effect here.
#[derive(Serialize, Default)]
struct UnusedMembers {
    enable_free_model_publication: Option<bool>,
    allow_safety_retention_google: Option<bool>,
    allow_safety_retention_other: Option<bool>,
    allowed_data_regions: Option<Vec<String>>,
    include_byok_in_budgets: bool,
}

#[derive(Serialize)]
struct FilterView<'a> {
    pattern: &'a str,
    action: &'static str,
    label: Option<&'a str>,
}

#[derive(Serialize)]
struct BuiltinView {
    slug: &'static str,
    action: &'static str,
    label: &'static str,
    scan_scope: &'static str,
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
        let DataPolicyRules {
            enforce_zdr,
            enforce_zdr_anthropic,
            enforce_zdr_openai,
            enforce_zdr_google,
            enforce_zdr_xai,
            enforce_zdr_other,
            enable_paid_model_training,
            enable_free_model_training,
        } = rules.data_policy;
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
            enforce_zdr,
            enforce_zdr_anthropic,
            enforce_zdr_openai,
            enforce_zdr_google,
            enforce_zdr_xai,
            enforce_zdr_other,
            enable_free_model_training,
            enable_paid_model_training,
            content_filters: non_empty(content_filters, FilterView::new),
            content_filter_builtins: non_empty(content_filter_builtins, |filter| BuiltinView::new(*filter)),
            unruled: UnusedMembers::default(),
        }
    }
}

/// An earlier version of a guardrail.
#[derive(Serialize)]
pub struct GuardrailVersionView<'a> {
    version: u32,
    changed_at: String,
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

impl<'a> FilterView<'a> {
    fn new(filter: &'a ContentFilter) -> Self {
        Self { pattern: &filter.pattern, action: filter.action.as_str(), label: filter.label.as_deref() }
    }
}

impl BuiltinView {
    fn new(filter: BuiltinContentFilter) -> Self {
        // All content is scanned, regardless of the requested scope.
        let scan_scope = "all_messages";
        Self { slug: filter.slug.as_str(), action: filter.action.as_str(), label: filter.slug.label(), scan_scope }
    }
}

/// Formats a time as RFC 3339 in UTC, with milliseconds.
pub(super) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
