//! Features that a wire does not support.

use domain::question::QuestionType;
use domain::routing::{AttemptFailure, AttemptFailureKind};

/// A feature of a provider input that the wire does not support. The request is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedByWire {
    /// Questions without types.
    #[error("its wire takes no questions of this form")]
    OpaqueQuestions,
    /// A question type.
    #[error("its wire has no {} questions", .0.as_str())]
    QuestionType(QuestionType),
    /// Images or other media in their current form.
    #[error("its wire takes no images in this form")]
    Attachments,
    /// More questions than this limit.
    #[error("its wire takes at most {0} questions")]
    Questions(usize),
    /// Fewer than 2 or more than this many options.
    #[error("its wire takes 2 to {0} options")]
    Options(usize),
    /// Fewer than 2 or more than this many levels.
    #[error("its wire takes 2 to {0} levels")]
    Levels(usize),
    /// A question's name.
    #[error("its wire does not take the name of one of the questions")]
    QuestionName,
    /// An option's name.
    #[error("its wire does not take the name of one of the options")]
    OptionName,
    /// Two options whose names are equal to the wire.
    #[error("its wire takes the names of two options for the same")]
    SameOptions,
    /// A level without text.
    #[error("its wire takes no level without text")]
    EmptyLevel,
    /// A state without text.
    #[error("its wire takes no empty state")]
    EmptyState,
    /// The name of a part of the body.
    #[error("an asset's part has a name that cannot be written")]
    PartName,
}

impl From<UnsupportedByWire> for AttemptFailure {
    fn from(unsupported: UnsupportedByWire) -> Self {
        Self::new(AttemptFailureKind::RejectedByProvider, format!("the provider was not asked: {unsupported}"))
    }
}
