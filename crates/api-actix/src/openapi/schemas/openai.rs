//! The schemas of OpenAI's wire. `wires::openai` writes the bodies as text.
#![expect(dead_code, reason = "the schemas of bodies that are read and written as text")]

use serde_json::Value;
use utoipa::ToSchema;

use super::system_one::ProviderPreferences;

/// Questions about an input, in OpenAI's format.
#[derive(ToSchema)]
pub(crate) struct OpenAiDecisionsRequest {
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
pub(crate) struct OpenAiQuestion {
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
pub(crate) enum OpenAiQuestionType {
    Predicate,
    Choice,
    Score,
}

/// An option of a choice.
#[derive(ToSchema)]
pub(crate) struct OpenAiChoice {
    /// A string or a boolean; `true` and `"true"` are different options.
    value: Value,
    description: Option<String>,
}

/// A level of a scale.
#[derive(ToSchema)]
pub(crate) struct OpenAiLevel {
    label: String,
    description: Option<String>,
}

/// The answers, in the order of the questions.
#[derive(ToSchema)]
pub(crate) struct OpenAiDecisionsResponse {
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
pub(crate) struct OpenAiError {
    error: OpenAiErrorBody,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
}

/// The error.
#[derive(ToSchema)]
pub(crate) struct OpenAiErrorBody {
    message: String,
    r#type: String,
    /// The path of the error in the body.
    param: Option<String>,
    code: String,
    #[schema(value_type = Object)]
    metadata: Value,
}
