//! What a wire cannot carry.

use domain::decision::QuestionType;
use domain::routing::{AttemptFailure, AttemptFailureKind};

/// Something of a provider input that a wire cannot carry. Nothing is sent then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Uncarried {
    /// Questions without types.
    #[error("its wire takes no questions of this form")]
    OpaqueQuestions,
    /// A type of question.
    #[error("its wire has no {} questions", .0.as_str())]
    QuestionType(QuestionType),
    /// Images or other media in the form that they came in.
    #[error("its wire takes no images in this form")]
    Attachments,
    /// More questions than the wire takes, which is this many.
    #[error("its wire takes at most {0} questions")]
    Questions(usize),
    /// Fewer or more options than the wire takes, which is 2 to this many.
    #[error("its wire takes 2 to {0} options")]
    Options(usize),
    /// Fewer or more levels than the wire takes, which is 2 to this many.
    #[error("its wire takes 2 to {0} levels")]
    Levels(usize),
    /// A question's name.
    #[error("its wire does not take the name of one of the questions")]
    QuestionName,
    /// An option's name.
    #[error("its wire does not take the name of one of the options")]
    OptionName,
    /// Two options whose names the wire takes for the same.
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

impl From<Uncarried> for AttemptFailure {
    fn from(uncarried: Uncarried) -> Self {
        Self::new(AttemptFailureKind::Refused, format!("the provider was not asked: {uncarried}"))
    }
}
