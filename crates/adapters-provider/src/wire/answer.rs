//! What a provider answered, in canonical form, or what was wrong with it.

use domain::decision::ReportedUsage;
use domain::json::Json;

/// What the provider answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireAnswer {
    /// The answers in canonical form, not yet checked against the questions: an object.
    pub answers: Json,
    /// The token counts, where it gave them.
    pub usage: Option<ReportedUsage>,
}

/// An answer body that is no good, and what it says was used all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct BadAnswer {
    /// What is wrong with it.
    pub fault: MalformedAnswer,
    /// The token counts, where it gave them.
    pub usage: Option<ReportedUsage>,
}

impl From<MalformedAnswer> for BadAnswer {
    /// Without token counts.
    fn from(fault: MalformedAnswer) -> Self {
        Self { fault, usage: None }
    }
}

/// An answer body that is not of the wire's form. Says nothing of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedAnswer {
    /// Not UTF-8, or not JSON to its end, or not an object, or with a member twice.
    #[error("the provider's answer is malformed")]
    NotOfItsForm,
    /// Nested deeper than 128 levels.
    #[error("the provider's answer is nested too deeply")]
    TooDeep,
    /// There are no answers, or they are not of the wire's form.
    #[error("the provider's answer holds no answers")]
    NoAnswers,
    /// The answers are to other questions, or there are too few or too many.
    #[error("the provider's answers are not to the questions that were asked")]
    NotAsked,
    /// One of the answers is not of the form that its question asks for.
    #[error("one of the provider's answers is malformed: {0}")]
    Answer(&'static str),
    /// The token counts are there and make no sense.
    #[error("the provider's token counts are malformed")]
    Usage,
}
