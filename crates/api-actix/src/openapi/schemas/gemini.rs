//! The schemas of Gemini's wire. `wires::gemini` writes the bodies as text.
#![expect(dead_code, reason = "the schemas of bodies that are read and written as text")]

use serde_json::Value;
use utoipa::ToSchema;

use super::question::Question;
use super::system_one::ProviderPreferences;

/// Questions about an input, in Gemini's format.
#[derive(ToSchema)]
pub(crate) struct GeminiDecisionsRequest {
    /// The model name, with or without the prefix `models/`.
    #[schema(min_length = 1)]
    model: String,
    /// A string, a part, or an array of parts.
    input: Value,
    /// The questions by name.
    #[schema(value_type = BTreeMap<String, Question>)]
    questions: Value,
    provider: Option<ProviderPreferences>,
}

/// The answers by question name.
#[derive(ToSchema)]
pub(crate) struct GeminiDecisionsResponse {
    #[schema(value_type = Object)]
    answers: Value,
    /// Present if the model refused every question.
    #[schema(value_type = Option<Object>)]
    prompt_feedback: Option<Value>,
    model: String,
    #[schema(value_type = Object)]
    usage: Value,
    id: String,
    provider: String,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
}

/// An error in Gemini's format.
#[derive(ToSchema)]
pub(crate) struct GeminiError {
    error: GeminiErrorBody,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
}

/// The error.
#[derive(ToSchema)]
pub(crate) struct GeminiErrorBody {
    /// Equals the HTTP status.
    code: i32,
    message: String,
    status: String,
    #[schema(value_type = Vec<Object>)]
    details: Vec<Value>,
}
