//! The schemas of SGLang's wire. `wires::sglang` writes the bodies as text.
#![expect(dead_code, reason = "the schemas of bodies that are read and written as text")]

use serde_json::Value;
use utoipa::ToSchema;

use super::system_one::ProviderPreferences;

/// Questions about an input, in SGLang's format.
#[derive(ToSchema)]
pub(crate) struct SglangDecisionsRequest {
    #[schema(min_length = 1)]
    model: String,
    /// A string, object or array.
    input: Value,
    images: Option<Vec<Value>>,
    /// The questions: `choice`, `score` or `yes_no`, with `id` and `question`.
    #[schema(min_items = 1, value_type = Vec<Object>)]
    questions: Vec<Value>,
    provider: Option<ProviderPreferences>,
}

/// The answers by question id.
#[derive(ToSchema)]
pub(crate) struct SglangDecisionsResponse {
    #[schema(pattern = "^decisions$")]
    object: String,
    model: String,
    prompt_format_version: i32,
    #[schema(value_type = Object)]
    answers: Value,
    #[schema(value_type = Object)]
    usage: Value,
    id: String,
    provider: String,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
}

/// An error in SGLang's format.
#[derive(ToSchema)]
pub(crate) struct SglangError {
    #[schema(pattern = "^error$")]
    object: String,
    message: String,
    r#type: String,
    param: Option<String>,
    /// Equals the HTTP status.
    code: i32,
    #[schema(value_type = Object)]
    metadata: Value,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
}
