//! The schemas of the vendor wires, as far as they are the same for all requests. Answers are loosely typed, because
//! each depends on its question.
#![expect(dead_code, reason = "only their schemas are used")]

use serde_json::Value;
use utoipa::ToSchema;

use super::schemas::{ErrorBody, ProviderPreferences};

/// A System One request with files, as a form: one JSON part and one part for each asset.
#[derive(ToSchema)]
pub(super) struct DecisionsForm {
    /// The request, as JSON.
    request: super::schemas::DecisionsRequest,
    /// The content of an asset, in the part named by the asset's `part`. Any number of parts with any names.
    #[schema(required = false, rename = "asset-0", content_media_type = "application/octet-stream")]
    asset_0: String,
}

/// An error in System One's format, combined with the service's envelope.
#[derive(ToSchema)]
pub(super) struct SystemOneError {
    /// A list of `{loc, msg, type}` for an invalid request, otherwise `{type, message}`.
    detail: Value,
    error: ErrorBody,
    /// The owner of the caller's workspace, if set.
    user_id: Option<String>,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
}

/// Questions about an input, in OpenAI's format.
#[derive(ToSchema)]
pub(super) struct OpenAiDecisionsRequest {
    #[schema(min_length = 1)]
    model: String,
    /// A string, or an array of items: messages, function and tool calls, and their outputs.
    input: Value,
    #[schema(min_items = 1)]
    questions: Vec<OpenAiQuestion>,
    /// Used as `user` if that is absent; never sent to a provider.
    #[schema(max_length = 128)]
    safety_identifier: Option<String>,
    /// Ignored.
    prompt_cache_key: Option<String>,
    /// Ignored.
    #[schema(value_type = Option<Object>)]
    prompt_cache_options: Option<Value>,
    provider: Option<ProviderPreferences>,
}

/// A question.
#[derive(ToSchema)]
pub(super) struct OpenAiQuestion {
    r#type: OpenAiQuestionType,
    /// The unique name. Answers to unnamed questions have a null name.
    name: Option<String>,
    /// A string, or an array of parts.
    instructions: Value,
    /// For a `choice`: 2 to 255 options.
    #[schema(min_items = 2, max_items = 255)]
    choices: Option<Vec<OpenAiChoice>>,
    /// For a `score`: 2 to 10 levels.
    #[schema(min_items = 2, max_items = 10)]
    levels: Option<Vec<OpenAiLevel>>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(super) enum OpenAiQuestionType {
    Predicate,
    Choice,
    Score,
}

/// An option of a choice.
#[derive(ToSchema)]
pub(super) struct OpenAiChoice {
    /// A string or a boolean; `true` and `"true"` are different options.
    value: Value,
    description: Option<String>,
}

/// A level of a scale.
#[derive(ToSchema)]
pub(super) struct OpenAiLevel {
    label: String,
    description: Option<String>,
}

/// The answers, in the order of the questions.
#[derive(ToSchema)]
pub(super) struct OpenAiDecisionsResponse {
    model: String,
    #[schema(value_type = Vec<Object>)]
    answers: Vec<Value>,
    #[schema(value_type = Object)]
    usage: Value,
    id: String,
    provider: String,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
}

/// An error in OpenAI's format.
#[derive(ToSchema)]
pub(super) struct OpenAiError {
    error: OpenAiErrorBody,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
}

/// The error.
#[derive(ToSchema)]
pub(super) struct OpenAiErrorBody {
    message: String,
    r#type: String,
    /// The path of the error in the body.
    param: Option<String>,
    code: String,
    #[schema(value_type = Object)]
    metadata: Value,
}

/// Questions about an input, in Gemini's format.
#[derive(ToSchema)]
pub(super) struct GeminiDecisionsRequest {
    /// The model name, with or without the prefix `models/`.
    #[schema(min_length = 1)]
    model: String,
    /// A string, a part, or an array of parts.
    input: Value,
    /// The questions by name: `noul`, `choice` or `score`, with `instructions` and `criteria`.
    #[schema(value_type = Object)]
    questions: Value,
    provider: Option<ProviderPreferences>,
}

/// The answers by question name.
#[derive(ToSchema)]
pub(super) struct GeminiDecisionsResponse {
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
pub(super) struct GeminiError {
    error: GeminiErrorBody,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
}

/// The error.
#[derive(ToSchema)]
pub(super) struct GeminiErrorBody {
    /// Equals the HTTP status.
    code: i32,
    message: String,
    status: String,
    #[schema(value_type = Vec<Object>)]
    details: Vec<Value>,
}

/// Questions about an input, in SGLang's format.
#[derive(ToSchema)]
pub(super) struct SglangDecisionsRequest {
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
pub(super) struct SglangDecisionsResponse {
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
pub(super) struct SglangError {
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
