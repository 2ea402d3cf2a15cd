//! What an endpoint can be asked. What it cannot carry is refused before the call, never dropped.

use super::{AttachmentForm, Endpoint, Wire};
use crate::question::{Attachments, ProviderInput, Question, QuestionKind, QuestionType, StateForm};

/// Why an endpoint cannot be asked something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Incapable {
    /// Questions without types.
    #[error("questions of this form; use typed questions (noul, choice, score)")]
    OpaqueQuestions,
    /// A type of question.
    #[error("{} questions", .0.as_str())]
    QuestionType(QuestionType),
    /// Options of a choice.
    #[error("a choice of {0} options")]
    Options(usize),
    /// Levels of a score.
    #[error("a score of {0} levels")]
    Levels(usize),
    /// Images or other media in the form that they came in.
    #[error("images in this form")]
    Attachments,
    /// More calls than one request is split into.
    #[error("a request that would have to be split into {0} calls")]
    Parts(usize),
    /// Bytes of state and question.
    #[error("a request of this size")]
    Size,
}

impl Endpoint {
    /// Whether it takes everything of the provider input but its questions: media, and the state's size with nothing asked.
    ///
    /// # Errors
    /// What it does not take.
    pub fn takes(&self, provider_input: &ProviderInput) -> Result<(), Incapable> {
        if provider_input.questions.typed.is_none() && !self.wire.takes_opaque_questions() {
            return Err(Incapable::OpaqueQuestions);
        }
        let form = match (&provider_input.attachments, provider_input.state_form) {
            (Attachments::None, _) => None,
            (Attachments::Assets(_), _) => Some((AttachmentForm::Assets, self.wire == Wire::SystemOne)),
            (Attachments::Images(_), _) => {
                Some((AttachmentForm::Images, matches!(self.wire, Wire::SystemOne | Wire::SglangDecisions)))
            }
            (Attachments::InState, StateForm::OpenAiItems) => {
                Some((AttachmentForm::InState, self.wire == Wire::OpenAiDecisions))
            }
            (Attachments::InState, StateForm::GeminiParts) => {
                Some((AttachmentForm::InState, self.wire == Wire::GeminiDecisions))
            }
            (Attachments::InState, StateForm::Plain) => return Err(Incapable::Attachments),
        };
        if let Some((form, same_wire)) = form
            && (self.attachments != form || !same_wire)
        {
            return Err(Incapable::Attachments);
        }
        let state = provider_input.len_bytes_around();
        let opaque =
            if provider_input.questions.typed.is_none() { provider_input.questions.json.text().len() } else { 0 };
        if self.room_for(state + opaque) { Ok(()) } else { Err(Incapable::Size) }
    }

    /// Whether it answers questions of that type at all. A box is found in an image only.
    pub fn asks(&self, question_type: QuestionType) -> bool {
        let served = self.question_types.as_ref().is_none_or(|types| types.contains(&question_type));
        let pictured = question_type != QuestionType::Box || self.attachments != AttachmentForm::None;
        served && pictured && self.wire.asks(question_type)
    }

    /// Whether it can answer this question, alone.
    ///
    /// # Errors
    /// What of it is beyond it.
    pub fn can_ask(&self, question: &Question) -> Result<(), Incapable> {
        let question_type = question.kind.question_type();
        if !self.asks(question_type) {
            return Err(Incapable::QuestionType(question_type));
        }
        let limits = self.limits();
        match &question.kind {
            QuestionKind::Choice { options } if limits.max_options.is_some_and(|max| options.len() > max) => {
                Err(Incapable::Options(options.len()))
            }
            QuestionKind::Score { levels } if limits.max_levels.is_some_and(|max| levels.len() > max) => {
                Err(Incapable::Levels(levels.len()))
            }
            _ => Ok(()),
        }
    }

    /// True where that many bytes of state and questions are within its limits. No token is shorter than a byte, so
    /// what passes here never exceeds the limit of tokens.
    pub fn room_for(&self, bytes: usize) -> bool {
        let limits = self.limits();
        limits.max_body_bytes.is_none_or(|max| bytes <= max) && limits.max_input_tokens.is_none_or(|max| bytes <= max)
    }

    /// True where the question travels as it is: nothing of it has to be folded into its instructions, nothing stands
    /// in for what is missing, and the answer is not made by other means.
    pub fn asks_natively(&self, question: &Question) -> bool {
        let instructed = question.instructions.is_some();
        match self.wire {
            Wire::SystemOne | Wire::Sandbox => true,
            Wire::ChatCompletions => false,
            Wire::OpenAiDecisions | Wire::GeminiDecisions | Wire::SglangDecisions => {
                let whole = match &question.kind {
                    QuestionKind::Noul { when_true: None, when_false: None } => true,
                    QuestionKind::Noul { .. } => self.wire != Wire::OpenAiDecisions,
                    QuestionKind::Choice { options } => options.len() > 1,
                    QuestionKind::Score { levels } => levels.len() > 1,
                    QuestionKind::Box => false,
                };
                instructed && whole
            }
        }
    }
}

#[cfg(test)]
mod tests;
