//! Questions.

use crate::json::Json;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Questions {
    /// As the caller wrote it.
    pub json: Json,
    /// The questions where they are typed, in their order; `None` where they are opaque and go as they are to a wire
    /// that takes them.
    pub typed: Option<Vec<Question>>,
}

impl Questions {
    /// From questions, in canonical form: an object of a member a question.
    pub fn of_typed(questions: Vec<Question>) -> Self {
        let members = questions.iter().map(|question| (question.name.as_str(), question.json.text()));
        Self { json: Json::object(members), typed: Some(questions) }
    }

    /// How many are asked; opaque questions count as one.
    pub fn count(&self) -> usize {
        self.typed.as_ref().map_or(1, Vec::len)
    }
}

/// One typed question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its name, unique in the request.
    pub name: String,
    /// The question in System One form: as the caller wrote it, or written by the wire that it came in by.
    pub json: Json,
    /// What to decide: a string, object or array.
    pub instructions: Option<Json>,
    /// What kind of answer it wants.
    pub kind: QuestionKind,
}

impl Question {
    /// Bytes of it as a member of the questions' object, braces and punctuation included: never less than it takes.
    pub(crate) fn len_bytes(&self) -> usize {
        // Two quotes, a colon and a comma or brace; a name that needs escapes may take up to six bytes for one.
        let escaped = |c: char| if c < ' ' || matches!(c, '"' | '\\') { 6 } else { c.len_utf8() };
        self.name.chars().map(escaped).sum::<usize>() + self.json.text().len() + 6
    }
}

/// The kind of a typed question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionKind {
    /// Yes or no, answered by the probability of yes.
    Noul {
        /// What speaks for yes.
        when_true: Option<Json>,
        /// What speaks for no.
        when_false: Option<Json>,
    },
    /// One of 1 to 255 options.
    Choice {
        /// The options in order, names unique.
        options: Vec<ChoiceOption>,
    },
    /// A place on a scale of 1 to 10 levels.
    Score {
        /// What each level means, from 0 up.
        levels: Vec<Json>,
    },
    /// A rectangle in an image.
    Box,
}

/// One option of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceOption {
    /// Its name, unique in the question.
    pub name: String,
    /// The boolean that it stands for, where it came as one: `true` is another option than `"true"`.
    pub boolean: Option<bool>,
    /// What it means.
    pub meaning: Option<Json>,
}

impl ChoiceOption {
    /// An option of that name.
    pub fn new(name: impl Into<String>, meaning: Option<Json>) -> Self {
        Self { name: name.into(), boolean: None, meaning }
    }
}

/// The type of a question, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuestionType {
    /// Yes or no.
    Noul,
    /// One of several options.
    Choice,
    /// A place on a scale.
    Score,
    /// A rectangle in an image.
    Box,
}

impl QuestionType {
    /// Every type.
    pub const ALL: [Self; 4] = [Self::Noul, Self::Choice, Self::Score, Self::Box];

    /// The value of the member `type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Noul => "noul",
            Self::Choice => "choice",
            Self::Score => "score",
            Self::Box => "box",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

impl QuestionKind {
    /// Its type.
    pub fn question_type(&self) -> QuestionType {
        match self {
            Self::Noul { .. } => QuestionType::Noul,
            Self::Choice { .. } => QuestionType::Choice,
            Self::Score { .. } => QuestionType::Score,
            Self::Box => QuestionType::Box,
        }
    }

    /// The value of its member `type`.
    pub fn as_str(&self) -> &'static str {
        self.question_type().as_str()
    }
}
