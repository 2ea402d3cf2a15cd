//! The answer of a provider in canonical form, and its errors.

use domain::json::Json;
use domain::pricing::ReportedUsage;

/// The answer of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireAnswer {
    /// The object of answers in canonical form, not yet validated against the questions.
    pub answers: Json,
    /// The token counts, if reported.
    pub usage: Option<ReportedUsage>,
}

/// An unusable answer, with the usage that it reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct BadAnswer {
    /// The error.
    pub error: MalformedAnswer,
    /// The token counts, if reported.
    pub usage: Option<ReportedUsage>,
}

impl From<MalformedAnswer> for BadAnswer {
    /// Converts without token counts.
    fn from(error: MalformedAnswer) -> Self {
        Self { error, usage: None }
    }
}

/// An answer that does not match the wire's format. The message contains none of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedAnswer {
    /// The body is not UTF-8, no JSON object, or has duplicate members.
    #[error("the provider's answer is malformed")]
    NotOfItsForm,
    /// Nested deeper than 128 levels.
    #[error("the provider's answer is nested too deeply")]
    TooDeep,
    /// The answers are missing or malformed.
    #[error("the provider's answer holds no answers")]
    NoAnswers,
    /// The answers do not match the questions.
    #[error("the provider's answers do not match the questions")]
    NotAsked,
    /// An answer does not match the type of its question.
    #[error("an answer of the provider is malformed: {0}")]
    Answer(&'static str),
    /// The token counts are present but invalid.
    #[error("the provider's token counts are malformed")]
    Usage,
}
