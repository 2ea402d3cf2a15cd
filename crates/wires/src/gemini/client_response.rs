//! Gemini Decisions answers.

use domain::json::{Json, JsonKind, ObjectWriter};
use domain::question::{Answer, AnswerValue, Question, QuestionKind};
use domain::statistics::complement;

use super::{BLOCK_REASON, PROMPT_FEEDBACK, USAGE};
use crate::client::DecisionResponse;
use crate::client::response::{append_provider_members, by_level, by_option, confidence, unanswered};
use crate::client::string;

/// Writes the body: a map in question order. If the model refused every question, the body has a `prompt_feedback` and
/// no answers, as this wire defines.
///
/// `confidence` of choices and scores is the service's own, not the largest probability. A `noul` has no confidence,
/// but the client packages require one: they get the probability of the likelier side.
pub fn write(response: &DecisionResponse<'_>) -> String {
    let decision = response.decision;
    let usage = ObjectWriter::new()
        .shown(USAGE.input, decision.input_tokens)
        .shown(USAGE.output, decision.output_tokens)
        .shown("total_tokens", response.total_tokens())
        .json("cost", &decision.cost.to_string())
        .end();
    let refused = response.pairs().all(|(_, answer)| answer.value == AnswerValue::Refusal);
    let body = if refused {
        let feedback = ObjectWriter::new().text(BLOCK_REASON, "other");
        let feedback = feedback.text("block_reason_message", "the model refused every question");
        ObjectWriter::new().json("answers", "{}").json(PROMPT_FEEDBACK, &feedback.end())
    } else {
        let answers = response.pairs().fold(ObjectWriter::new(), |object, (question, answer)| {
            object.json(&question.name, &write_answer(question, answer))
        });
        ObjectWriter::new().json("answers", &answers.end())
    };
    response.end(body.text("model", decision.model.as_str()).json("usage", &usage))
}

fn write_answer(question: &Question, answer: &Answer) -> String {
    let object = match (&answer.value, &question.kind) {
        (AnswerValue::Noul { probability }, _) => {
            let likelier = probability.max(complement(*probability));
            ObjectWriter::with_type("noul").number("noul", *probability).number("confidence", likelier)
        }
        (AnswerValue::Choice { chosen, probabilities, .. }, QuestionKind::Choice { options }) => {
            let name = options.get(*chosen).map_or("null".to_owned(), |option| string(&option.name));
            let probabilities = probabilities.as_deref().map(|given| by_option(options, given));
            ObjectWriter::with_type("choice")
                .json("choice", &name)
                .maybe("confidence", confidence(&answer.value).as_deref())
                .maybe("probabilities", probabilities.as_deref())
        }
        (AnswerValue::Score { score, probabilities, .. }, QuestionKind::Score { levels }) => {
            let probabilities = probabilities.as_deref().map(by_level);
            ObjectWriter::with_type("score")
                .number("score", *score)
                .maybe("confidence", confidence(&answer.value).as_deref())
                .json("legend", &legend(levels))
                .maybe("probabilities", probabilities.as_deref())
        }
        (AnswerValue::Refusal, _) => ObjectWriter::with_type("refusal"),
        (AnswerValue::Unanswered(kind), _) => unanswered(*kind),
        // These answers do not exist for the question types of this wire.
        (AnswerValue::Box | AnswerValue::Choice { .. } | AnswerValue::Score { .. }, _) => {
            return answer.json.text().to_owned();
        }
    };
    append_provider_members(object, answer)
}

/// Maps each level number, as a string, to its description.
fn legend(levels: &[Json]) -> String {
    let text = |level: &Json| {
        if level.kind() == JsonKind::String { level.text().to_owned() } else { string(level.text()) }
    };
    let levels = levels.iter().enumerate();
    levels.fold(ObjectWriter::new(), |object, (index, level)| object.json(&index.to_string(), &text(level))).end()
}
