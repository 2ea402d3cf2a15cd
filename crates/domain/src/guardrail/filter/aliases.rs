//! Names that travel under another one.

use crate::decision::{Answers, Inquiry};

/// Which names of questions and options were replaced before anything was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases {}

impl Aliases {
    /// True where every name travels as it is.
    pub fn is_empty(&self) -> bool {
        true
    }

    /// Answers to what was sent, with the names of what was asked.
    #[must_use]
    pub fn restore(&self, answers: Answers, _asked: &Inquiry) -> Answers {
        answers
    }
}
