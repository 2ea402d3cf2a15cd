//! The schemas of guardrails in requests. `domain::guardrail::GuardrailDraft` reads the bodies, locates their errors and
//! tells null from absence.
#![expect(dead_code, reason = "the schemas of bodies that are read by hand")]

use utoipa::ToSchema;

use super::record::{BuiltinFilterView, ContentFilterView};
use crate::http::value_sets::ResetInterval;

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
    use super::*;
    use domain::guardrail::GuardrailDraft;
    use domain::json::Json;
    use serde_json::{Value, to_value};
    use utoipa::PartialSchema;

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
