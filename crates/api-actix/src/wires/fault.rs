//! Why a body is no request.

use domain::decision::InvalidDecision;

/// What is wrong with a body. No message holds anything that stands in it but names of members.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyFault {
    /// Not UTF-8.
    #[error("The body is not UTF-8")]
    NotText,
    /// Arrays and objects inside each other, more of them than are served.
    #[error("The body nests arrays and objects deeper than the 128 levels that are served")]
    TooDeep,
    /// A `\u` escape of one half of a surrogate pair without the other.
    #[error("The body has a \\u escape of one half of a surrogate pair without the other")]
    LoneSurrogate,
    /// Not JSON. Both places count from 1.
    #[error("The body is not valid JSON: line {line}, column {column}")]
    NotJson {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// JSON, and no object.
    #[error("The body must be a JSON object")]
    NotAnObject,
    /// A member that could be read two ways.
    #[error("{0} stands in the body more than once")]
    Twice(&'static str),
    /// Of none of the forms that are told apart by what the body holds.
    #[error(
        "The body is of no form that is known here. Expected one of: state and questions, an object of noul, choice \
         or score questions; input and questions, an array of predicate, choice or score questions; input and \
         questions, an object of noul, choice or score questions; input and questions, an array of questions with id \
         and question"
    )]
    NoKnownForm,
    /// Of a known form, with a fault at a place.
    #[error(transparent)]
    Invalid(#[from] InvalidDecision),
}

impl From<&serde_json::Error> for BodyFault {
    /// Says where the fault is and nothing of what stands there.
    fn from(error: &serde_json::Error) -> Self {
        Self::NotJson { line: error.line(), column: error.column() }
    }
}
