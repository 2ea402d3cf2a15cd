//! The bodies of the vendors' wires, as far as they are the same for every request. Answers are described loosely: each
//! is of the type of its question.
#![expect(dead_code, reason = "only their schemas are used")]

use serde_json::Value;
use utoipa::ToSchema;

use super::schemas::{ErrorBody, ProviderPreferences};

/// A System One body as a form with files: the JSON, and a part an asset.
#[derive(ToSchema)]
pub(super) struct DecisionsForm {
    /// The request, as JSON.
    request: super::schemas::DecisionsRequest,
    /// The content of an asset; its part is named in the asset's `part`. Any number of parts, under any names.
    #[schema(required = false, rename = "asset-0", content_media_type = "application/octet-stream")]
    asset_0: String,
}

/// A failure in the form of System One, with the service's envelope beside it.
#[derive(ToSchema)]
pub(super) struct SystemOneError {
    /// Faults of the request as a list of `{loc, msg, type}`; anything else as `{type, message}`.
    detail: Value,
    error: ErrorBody,
    /// The owner of the caller's workspace, where one is set.
    user_id: Option<String>,
}

/// Questions about an input, as OpenAI's clients ask.
#[derive(ToSchema)]
pub(super) struct OpenAiDecisionsRequest {
    #[schema(min_length = 1)]
    model: String,
    /// A text, or an array of items: messages, calls of functions and tools, and their outputs.
    input: Value,
    #[schema(min_items = 1)]
    questions: Vec<OpenAiQuestion>,
    /// Taken as `user` where there is none; never sent to a provider.
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
    /// Unique; answered as null where there is none.
    name: Option<String>,
    /// A text, or an array of parts.
    instructions: Value,
    /// Of a `choice`: 2 to 255.
    #[schema(min_items = 2, max_items = 255)]
    choices: Option<Vec<OpenAiChoice>>,
    /// Of a `score`: 2 to 10.
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

/// One of several.
#[derive(ToSchema)]
pub(super) struct OpenAiChoice {
    /// A string or a boolean: `true` is another choice than `"true"`.
    value: Value,
    description: Option<String>,
}

/// A place on a scale.
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
}

/// A failure in the form of OpenAI.
#[derive(ToSchema)]
pub(super) struct OpenAiError {
    error: OpenAiErrorBody,
}

/// What went wrong.
#[derive(ToSchema)]
pub(super) struct OpenAiErrorBody {
    message: String,
    r#type: String,
    /// The path of the fault in the body.
    param: Option<String>,
    code: String,
    #[schema(value_type = Object)]
    metadata: Value,
}

/// Questions about an input, as Gemini's clients ask.
#[derive(ToSchema)]
pub(super) struct GeminiDecisionsRequest {
    /// With `models/` before it or without.
    #[schema(min_length = 1)]
    model: String,
    /// A text, a part, or an array of parts.
    input: Value,
    /// Questions by their names: `noul`, `choice` or `score`, with `instructions` and `criteria`.
    #[schema(value_type = Object)]
    questions: Value,
    provider: Option<ProviderPreferences>,
}

/// The answers by their questions' names.
#[derive(ToSchema)]
pub(super) struct GeminiDecisionsResponse {
    #[schema(value_type = Object)]
    answers: Value,
    /// There where the model refused every question.
    #[schema(value_type = Option<Object>)]
    prompt_feedback: Option<Value>,
    model: String,
    #[schema(value_type = Object)]
    usage: Value,
    id: String,
    provider: String,
}

/// A failure in the form of Gemini.
#[derive(ToSchema)]
pub(super) struct GeminiError {
    error: GeminiErrorBody,
}

/// What went wrong.
#[derive(ToSchema)]
pub(super) struct GeminiErrorBody {
    /// Equals the HTTP status.
    code: i32,
    message: String,
    status: String,
    #[schema(value_type = Vec<Object>)]
    details: Vec<Value>,
}

/// Questions about an input, as SGLang's clients ask.
#[derive(ToSchema)]
pub(super) struct SglangDecisionsRequest {
    #[schema(min_length = 1)]
    model: String,
    /// A string, object or array.
    input: Value,
    images: Option<Vec<Value>>,
    /// Questions: `choice`, `score` or `yes_no`, with `id` and `question`.
    #[schema(min_items = 1, value_type = Vec<Object>)]
    questions: Vec<Value>,
    provider: Option<ProviderPreferences>,
}

/// The answers by their questions' ids.
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
}

/// A failure in the form of SGLang.
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
}
