//! Typed and opaque questions.

use std::sync::Arc;

use crate::json::Json;

/// The questions of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Questions {
    /// The questions as the caller wrote them.
    pub json: Json,
    /// The typed questions in order, which clones share. `None` for opaque questions, which are only sent to a wire that
    /// accepts them.
    pub typed: Option<Arc<[Question]>>,
}

impl Questions {
    /// Creates questions in canonical form: an object with one member per question.
    pub fn from_typed(questions: Vec<Question>) -> Self {
        let members = questions.iter().map(|question| (question.name.as_str(), &question.json));
        Self { json: Json::object_of(members), typed: Some(questions.into()) }
    }

    /// Returns the number of questions; opaque questions count as one.
    pub fn count(&self) -> usize {
        self.typed.as_ref().map_or(1, |typed| typed.len())
    }

    /// Returns the most memory that the typed questions take beyond their text, in bytes.
    pub fn structure_bytes(&self) -> usize {
        let typed = self.typed.as_deref().unwrap_or_default();
        typed.iter().map(Question::structure_bytes).fold(0, usize::saturating_add)
    }
}

/// One typed question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The name, unique in the request.
    pub name: String,
    /// The question in System One format: as the caller wrote it, or converted from another wire.
    pub json: Json,
    /// The instructions: a string, object or array.
    pub instructions: Option<Json>,
    /// The kind of the question.
    pub kind: QuestionKind,
}

/// The most memory of a question, option or level beyond its text, in bytes.
pub(crate) const BYTES_PER_QUESTION: usize = 256;

impl Question {
    /// Returns the most memory that it takes beyond its text, in bytes, with its options or levels.
    pub(crate) fn structure_bytes(&self) -> usize {
        let parts = match &self.kind {
            QuestionKind::Choice { options } => options.len() + 1,
            QuestionKind::Score { levels } => levels.len() + 1,
            QuestionKind::Noul { .. } | QuestionKind::Box => 1,
        };
        parts.saturating_mul(BYTES_PER_QUESTION)
    }

    /// Returns an upper bound of its size in bytes as a member of the questions' object, punctuation included.
    pub(crate) fn len_bytes(&self) -> usize {
        // Two quotes, a colon, and a comma or brace. An escaped character takes up to six bytes.
        let escaped = |c: char| if c < ' ' || matches!(c, '"' | '\\') { 6 } else { c.len_utf8() };
        self.name.chars().map(escaped).sum::<usize>() + self.json.text().len() + 6
    }
}

/// The most options of a `choice`.
pub const MAX_OPTIONS: usize = 255;
/// The most levels of a `score`.
pub const MAX_LEVELS: usize = 10;

/// The kind of a typed question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionKind {
    /// Yes or no, answered by the probability of yes.
    Noul {
        /// The criterion for yes.
        when_true: Option<Json>,
        /// The criterion for no.
        when_false: Option<Json>,
    },
    /// One of 1 to [`MAX_OPTIONS`] options.
    Choice {
        /// The options in order, with unique names.
        options: Vec<ChoiceOption>,
    },
    /// A position on a scale of 1 to [`MAX_LEVELS`] levels.
    Score {
        /// The meaning of each level, from 0 up.
        levels: Vec<Json>,
    },
    /// A rectangle in an image.
    Box,
}

/// One option of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceOption {
    /// The name, unique in the question.
    pub name: String,
    /// The boolean value, if the option was a JSON boolean: `true` and `"true"` are different options.
    pub boolean: Option<bool>,
    /// The meaning.
    pub meaning: Option<Json>,
}

impl ChoiceOption {
    /// Creates an option with this name.
    pub fn new(name: impl Into<String>, meaning: Option<Json>) -> Self {
        Self { name: name.into(), boolean: None, meaning }
    }
}

named_enum! {
    /// The type of a question, without its content.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum QuestionType {
        /// Yes or no.
        Noul = "noul",
        /// One of several options.
        Choice = "choice",
        /// A position on a scale.
        Score = "score",
        /// A rectangle in an image.
        Box = "box",
    }
}

impl QuestionKind {
    /// Returns the type.
    pub fn question_type(&self) -> QuestionType {
        match self {
            Self::Noul { .. } => QuestionType::Noul,
            Self::Choice { .. } => QuestionType::Choice,
            Self::Score { .. } => QuestionType::Score,
            Self::Box => QuestionType::Box,
        }
    }

    /// Returns the value of the member `type`.
    pub fn as_str(&self) -> &'static str {
        self.question_type().as_str()
    }
}
