//! The names and texts that a wire rejects, beyond the rules of the canonical form.

use std::collections::HashSet;

use super::{UnsupportedQuestions, Wire};
use crate::json::Json;
use crate::question::{ChoiceOption, Question, QuestionKind};

impl Wire {
    /// Checks the names and texts of a question.
    ///
    /// # Errors
    /// The part that the wire rejects.
    pub fn check_texts(self, question: &Question) -> Result<(), UnsupportedQuestions> {
        let has_one_outcome = match &question.kind {
            QuestionKind::Choice { options } => options.len() == 1,
            QuestionKind::Score { levels } => levels.len() == 1,
            _ => false,
        };
        if has_one_outcome {
            // It is answered locally: the wires with rules for names do not carry it.
            return Ok(());
        }
        let rejects_blanks = matches!(self, Self::GeminiDecisions | Self::SglangDecisions);
        if self == Self::SglangDecisions && question.name.trim().is_empty() {
            return Err(UnsupportedQuestions::QuestionName);
        }
        match &question.kind {
            QuestionKind::Choice { options } => self.check_option_names(options),
            QuestionKind::Score { levels } if rejects_blanks && levels.iter().any(Json::is_blank) => {
                Err(UnsupportedQuestions::EmptyLevel)
            }
            _ => Ok(()),
        }
    }

    fn check_option_names(self, options: &[ChoiceOption]) -> Result<(), UnsupportedQuestions> {
        if !options.iter().all(|option| self.allows_option_name(&option.name)) {
            return Err(UnsupportedQuestions::OptionName);
        }
        let is_repeated = match self {
            Self::OpenAiDecisions => {
                let mut booleans = HashSet::new();
                !options.iter().filter_map(|option| option.boolean).all(|boolean| booleans.insert(boolean))
            }
            Self::SglangDecisions => {
                let mut names = HashSet::new();
                !options.iter().all(|option| names.insert(Self::folded_option_name(&option.name)))
            }
            _ => false,
        };
        if is_repeated { Err(UnsupportedQuestions::SameOptions) } else { Ok(()) }
    }

    /// Returns true for a name of an option that the wire allows.
    pub fn allows_option_name(self, name: &str) -> bool {
        match self {
            Self::GeminiDecisions => !name.is_empty() && name.trim() == name && !name.chars().any(char::is_control),
            Self::SglangDecisions => {
                let breaks_lines = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
                !name.trim().is_empty() && !name.chars().any(breaks_lines)
            }
            _ => true,
        }
    }

    /// Returns the name of an option as SGLang compares it: without case and surrounding spaces. Upper-casing first makes
    /// `ß` equal to `ss`, as case folding does.
    pub fn folded_option_name(name: &str) -> String {
        name.trim().to_uppercase().to_lowercase()
    }
}
