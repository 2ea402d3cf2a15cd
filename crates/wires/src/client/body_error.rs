//! The reasons why a body is not a valid request.

use domain::decision::InvalidDecision;

/// The reason why a body is not a valid request. Messages quote nothing from the body except member names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body is not UTF-8.
    #[error("The body is not UTF-8")]
    NotText,
    /// The nesting of arrays and objects is too deep.
    #[error("The body nests arrays and objects deeper than 128 levels")]
    TooDeep,
    /// A `\u` escape of half a surrogate pair.
    #[error("The body has a \\u escape of an unpaired surrogate")]
    LoneSurrogate,
    /// The body is not JSON. Line and column count from 1.
    #[error("The body is not valid JSON: line {line}, column {column}")]
    NotJson {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// The body is JSON but not an object.
    #[error("The body must be a JSON object")]
    NotAnObject,
    /// A duplicate member, which is ambiguous.
    #[error("{0} is in the body more than once")]
    Duplicate(&'static str),
    /// The body matches none of the known wires.
    #[error(
        "Unknown request format. Expected one of: state and questions, an object of noul, choice \
         or score questions; input and questions, an array of predicate, choice or score questions; input and \
         questions, an object of noul, choice or score questions; input and questions, an array of questions with id \
         and question"
    )]
    NoKnownForm,
    /// The body matches a wire but violates one of its rules.
    #[error(transparent)]
    Invalid(#[from] InvalidDecision),
}

impl From<&serde_json::Error> for BodyError {
    /// Keeps the position of the error and drops the quoted content.
    fn from(error: &serde_json::Error) -> Self {
        Self::NotJson { line: error.line(), column: error.column() }
    }
}
