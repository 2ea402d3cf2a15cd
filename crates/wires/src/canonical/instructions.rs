//! Default instructions for questions without any, and criteria as sentences.

use domain::json::Json;
use domain::question::{Question, QuestionKind, QuestionType};

use super::text::{is_blank, text, texts_of_parts};

/// Returns the sentence for a question without instructions, for wires that require them.
pub fn default_instructions(question_type: QuestionType) -> &'static str {
    match question_type {
        QuestionType::Noul => "Decide whether it is so, yes or no.",
        QuestionType::Choice => "Choose the option that fits best.",
        QuestionType::Score => "Choose the level that fits best.",
        QuestionType::Box => "Find what is asked for in the image.",
    }
}

/// Returns the instructions as text, or the default sentence if there are none. Text parts become paragraphs.
pub fn instructions(question: &Question) -> String {
    match &question.instructions {
        Some(instructions) if !is_blank(instructions) => {
            texts_of_parts(instructions).map_or_else(|| text(instructions), |texts| texts.join("\n\n"))
        }
        _ => default_instructions(question.kind.question_type()).to_owned(),
    }
}

/// Returns the criteria for yes and for no as sentences, for wires without criteria on yes-or-no questions. `None` if
/// there are no criteria.
pub fn sides(kind: &QuestionKind) -> Option<String> {
    let QuestionKind::Noul { when_true, when_false } = kind else { return None };
    let side = |word: &str, side: &Option<Json>| {
        let criterion = side.as_ref().filter(|side| !is_blank(side));
        criterion.map(|side| format!("{word} means: {}", text(side)))
    };
    match (side("Yes", when_true), side("No", when_false)) {
        (Some(yes), Some(no)) => Some(format!("{yes}\n{no}")),
        (one, other) => one.or(other),
    }
}
