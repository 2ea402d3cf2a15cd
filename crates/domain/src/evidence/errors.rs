//! Errors of evidence and labels.

use super::{Label, NewLabel};
use crate::authority::Restricted;
use crate::cursor::InvalidCursor;
use crate::error::{ErrorKind, StoreError};
use crate::json::Json;
use crate::statistics::InvalidLabel;

/// The longest list of valid values in an error, in bytes.
const MAX_LISTED_BYTES: usize = 1_024;

/// The reason why a label is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// The Decisions request does not exist, or belongs to another workspace.
    #[error("generation not found")]
    NotFound,
    /// The request names no preset.
    #[error("the generation is not of a preset, so its answers take no labels")]
    NoPreset,
    /// The preset has no such question.
    #[error("unknown question; the preset has: {valid}")]
    UnknownQuestion {
        /// The names of the questions as JSON, cut.
        valid: String,
    },
    /// The question has no such decision.
    #[error(transparent)]
    Invalid(#[from] InvalidLabel),
    /// The answer has no decision, or its evidence was removed by retention.
    #[error("the answer has no evidence: it has no decision, or retention removed it")]
    NoEvidence,
    /// The answer has the most versions.
    #[error("a label has at most {} versions", Label::MAX_VERSIONS)]
    TooManyVersions,
}

impl LabelError {
    /// Creates the error of a name that none of these questions has.
    pub(super) fn unknown_question<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut valid = String::new();
        for name in names {
            if !valid.is_empty() {
                valid.push_str(", ");
            }
            valid.push_str(Json::string(name).text());
            if valid.len() > MAX_LISTED_BYTES {
                valid.truncate(valid.floor_char_boundary(MAX_LISTED_BYTES));
                valid.push('…');
                break;
            }
        }
        Self::UnknownQuestion { valid }
    }

    /// Returns the error kind.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::NotFound,
            Self::NoPreset | Self::UnknownQuestion { .. } | Self::Invalid(_) | Self::NoEvidence => {
                ErrorKind::InvalidRequest
            }
            Self::TooManyVersions => ErrorKind::Conflict,
        }
    }
}

/// The error of reading evidence or adding labels.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// The generation does not exist, or belongs to another workspace.
    #[error("generation not found")]
    NotFound,
    /// A label is rejected, and none is stored.
    #[error("{question}: {error}")]
    Label {
        /// The name of the question.
        question: String,
        /// The reason.
        error: LabelError,
    },
    /// The preset of an answer whose labels are listed has no such question.
    #[error("question: {0}")]
    Question(LabelError),
    /// The call has too many labels.
    #[error("a call has at most {} labels", NewLabel::MAX_IN_A_CALL)]
    LabelCount,
    /// The range is empty.
    #[error("until must be later than since")]
    EmptyRange,
    /// The cursor is of another list, filter or caller.
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
    /// The store failed.
    #[error("the evidence store failed")]
    Store(#[from] StoreError),
}

impl EvidenceError {
    /// Returns the error kind.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Restricted(error) => error.kind(),
            Self::NotFound => ErrorKind::NotFound,
            Self::Label { error, .. } | Self::Question(error) => error.kind(),
            Self::LabelCount | Self::EmptyRange | Self::Cursor(_) => ErrorKind::InvalidRequest,
            Self::Store(error) => error.kind(),
        }
    }
}
