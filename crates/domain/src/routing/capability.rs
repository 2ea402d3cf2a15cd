//! The capabilities of endpoints. Unsupported inputs are rejected before the call; no part of an input is dropped.

use super::{AttachmentForm, Endpoint, Wire};
use crate::json::Json;
use crate::question::{Attachments, ProviderInput, Question, QuestionKind, QuestionType};

/// The part of a request that an endpoint does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedQuestions {
    /// Opaque questions: without types.
    #[error("questions of this form; use typed questions (noul, choice, score)")]
    OpaqueQuestions,
    /// A question of this type.
    #[error("{} questions", .0.as_str())]
    QuestionType(QuestionType),
    /// A choice with this many options.
    #[error("a choice of {0} options")]
    Options(usize),
    /// A score with this many levels.
    #[error("a score of {0} levels")]
    Levels(usize),
    /// A question whose name the wire rejects.
    #[error("the name of one of the questions")]
    QuestionName,
    /// An option whose name the wire rejects.
    #[error("the name of one of the options")]
    OptionName,
    /// Two options whose names the wire takes for the same.
    #[error("two options that it takes for the same")]
    SameOptions,
    /// A level without text.
    #[error("a level without text")]
    EmptyLevel,
    /// A state without text.
    #[error("an empty state")]
    EmptyState,
    /// Images or other media in this form.
    #[error("images in this form")]
    Attachments,
    /// A request that needs this many calls, more than the maximum.
    #[error("a request that would have to be split into {0} calls")]
    SubRequests(usize),
    /// A state and question of this size.
    #[error("a request of this size")]
    Size,
}

impl Endpoint {
    /// Checks that it supports the provider input without its questions: the media and the size of the state.
    ///
    /// # Errors
    /// The part that it does not support.
    pub fn check_input(&self, provider_input: &ProviderInput) -> Result<(), UnsupportedQuestions> {
        if provider_input.questions.typed.is_none() && !self.wire.supports_opaque_questions() {
            return Err(UnsupportedQuestions::OpaqueQuestions);
        }
        let form = match (&provider_input.attachments, provider_input.state_form) {
            (Attachments::None, _) => AttachmentForm::None,
            (Attachments::Assets(_), _) => AttachmentForm::Assets,
            (Attachments::Images(_), _) => AttachmentForm::Images,
            (Attachments::InState, form) if self.wire.carries_media_in(form) => AttachmentForm::InState,
            (Attachments::InState, _) => return Err(UnsupportedQuestions::Attachments),
        };
        if form != AttachmentForm::None && (self.attachments != form || !self.wire.carries(form)) {
            return Err(UnsupportedQuestions::Attachments);
        }
        if self.wire == Wire::SglangDecisions && provider_input.state.as_ref().is_none_or(Json::is_blank) {
            return Err(UnsupportedQuestions::EmptyState);
        }
        let state = provider_input.len_bytes_without_questions();
        let opaque =
            if provider_input.questions.typed.is_none() { provider_input.questions.json.text().len() } else { 0 };
        if self.has_room_for(state + opaque) { Ok(()) } else { Err(UnsupportedQuestions::Size) }
    }

    /// Returns true if it answers questions of this type. A `box` question needs an image.
    pub fn supports_type(&self, question_type: QuestionType) -> bool {
        let served = self.question_types.as_ref().is_none_or(|types| types.contains(&question_type));
        let pictured = question_type != QuestionType::Box || self.attachments != AttachmentForm::None;
        served && pictured && self.wire.supports_type(question_type)
    }

    /// Checks that it supports this question on its own.
    ///
    /// # Errors
    /// The part of the question that it does not support.
    pub fn check_question(&self, question: &Question) -> Result<(), UnsupportedQuestions> {
        let question_type = question.kind.question_type();
        if !self.supports_type(question_type) {
            return Err(UnsupportedQuestions::QuestionType(question_type));
        }
        self.wire.check_texts(question)?;
        let limits = self.limits();
        match &question.kind {
            QuestionKind::Choice { options } if limits.max_options.is_some_and(|max| options.len() > max) => {
                Err(UnsupportedQuestions::Options(options.len()))
            }
            QuestionKind::Score { levels } if limits.max_levels.is_some_and(|max| levels.len() > max) => {
                Err(UnsupportedQuestions::Levels(levels.len()))
            }
            _ => Ok(()),
        }
    }

    /// Returns true if this many bytes of state and questions are within its limits. A token takes at least one byte,
    /// so the bytes are an upper bound of the tokens.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        let limits = self.limits();
        limits.max_body_bytes.is_none_or(|max| bytes <= max) && limits.max_input_tokens.is_none_or(|max| bytes <= max)
    }
}

#[cfg(test)]
mod tests;
