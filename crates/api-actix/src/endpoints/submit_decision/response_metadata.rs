//! The service metadata of a Decisions request, sent on request.

use domain::api_key::InferenceKey;
use domain::decision::Decision;
use serde_json::{Value, json};

use super::errors::{attempt_view, funnel_view, pipeline_view};
use crate::http::error::ApiError;

/// The service metadata of a Decisions request, sent on request.
pub(super) struct ResponseMetadata {
    guardrail: Value,
    routing: Value,
}

impl ResponseMetadata {
    pub(super) fn new(key: &InferenceKey, model: &str) -> Self {
        let guardrail = key.guardrail_id().map_or(Value::Null, |id| json!({"id": id.to_string()}));
        Self { guardrail, routing: json!({"requested_model": model}) }
    }

    pub(super) fn describe_answer(mut self, decision: &Decision) -> Value {
        self.routing["model"] = Value::from(decision.model.as_str());
        self.routing["provider"] = Value::from(decision.provider.as_str());
        json!({
            "attempt_count": decision.attempts.len(),
            "attempts": decision.attempts.iter().map(attempt_view).collect::<Vec<_>>(),
            "guardrail": self.guardrail,
            "pipeline": pipeline_view(&decision.findings),
            "routing": self.routing,
            "routing_funnel": funnel_view(&decision.funnel),
            "usage_source": decision.usage_source.as_str(),
        })
    }
    pub(super) fn add_to_error(self, error: ApiError) -> ApiError {
        error.service_metadata("guardrail", self.guardrail).service_metadata("routing", self.routing)
    }
}
