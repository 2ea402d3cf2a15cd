//! Requests: canonical form, outbound writer, inbound parser.

use domain::json::{Json, JsonKind};
use domain::question::{Attachments, ChoiceOption, ProviderInput, Question, QuestionKind, Questions};
use proptest::prelude::*;
use wires::canonical;
use wires::formats::{Shape, read_bytes};

use crate::form::codec;

/// Returns the expected provider input after a round trip: only unsupported details differ.
fn normalized(form: Shape, provider_input: &ProviderInput) -> ProviderInput {
    let state = provider_input.state.clone().unwrap();
    let state = match form {
        Shape::SystemOne | Shape::Sglang => state,
        // Objects and arrays of objects are structured; anything else is text.
        Shape::OpenAi if is_structure(&state) => state,
        Shape::OpenAi | Shape::Gemini => as_text(&state),
    };
    let questions = provider_input.questions.typed.as_deref().unwrap();
    let questions = questions.iter().map(|question| normalized_question(form, question)).collect();
    ProviderInput::new(Questions::from_typed(questions), Some(state))
}

fn normalized_question(form: Shape, asked: &Question) -> Question {
    if form == Shape::SystemOne {
        return asked.clone();
    }
    let mut instructions = asked.instructions.clone().unwrap_or_else(|| Json::string(sentence(&asked.kind)));
    if form == Shape::Gemini || form == Shape::OpenAi && !is_structure(&instructions) {
        instructions = as_text(&instructions);
    }
    let kind = match (form, asked.kind.clone()) {
        // The format has no criteria for it: they follow the instructions as sentences.
        (Shape::OpenAi, QuestionKind::Noul { when_true, when_false }) => {
            let was_text = asked.instructions.as_ref().is_none_or(|json| json.kind() == JsonKind::String);
            instructions = with_sides(&instructions, was_text, when_true.as_ref(), when_false.as_ref());
            QuestionKind::Noul { when_true: None, when_false: None }
        }
        (Shape::Sglang, kind) => kind,
        (_, QuestionKind::Noul { when_true, when_false }) => QuestionKind::Noul {
            when_true: when_true.as_ref().map(as_text),
            when_false: when_false.as_ref().map(as_text),
        },
        (_, QuestionKind::Choice { options }) => QuestionKind::Choice {
            options: options
                .into_iter()
                .map(|option| ChoiceOption { meaning: option.meaning.as_ref().map(as_text), ..option })
                .collect(),
        },
        (_, QuestionKind::Score { levels }) => QuestionKind::Score {
            levels: levels
                .iter()
                .map(|level| if form == Shape::OpenAi && is_labelled(level) { level.clone() } else { as_text(level) })
                .collect(),
        },
        (_, QuestionKind::Box) => QuestionKind::Box,
    };
    Question::canonical(&asked.name, Some(instructions), kind, "questions").unwrap()
}

/// Keeps a string; converts anything else to a string of its JSON.
fn as_text(json: &Json) -> Json {
    if json.kind() == JsonKind::String { json.clone() } else { Json::string(json.text()) }
}

fn is_structure(json: &Json) -> bool {
    let is_object = |json: &Json| json.kind() == JsonKind::Object;
    is_object(json) || json.elements().is_some_and(|all| !all.is_empty() && all.iter().all(is_object))
}

fn is_labelled(level: &Json) -> bool {
    level.members().is_some_and(|members| {
        members.iter().map(|(name, _)| name.as_str()).eq(["label", "description"])
            && members.iter().all(|(_, json)| json.kind() == JsonKind::String)
    })
}

fn sentence(kind: &QuestionKind) -> &'static str {
    canonical::default_instructions(kind.question_type())
}

/// Appends the criteria after an empty line to a text, and as a text part to anything else.
fn with_sides(instructions: &Json, was_text: bool, when_true: Option<&Json>, when_false: Option<&Json>) -> Json {
    let side = |word: &str, side: Option<&Json>| {
        side.map(|side| format!("{word} means: {}", side.as_string().unwrap_or_else(|| side.text().to_owned())))
    };
    let sides: Vec<String> = [side("Yes", when_true), side("No", when_false)].into_iter().flatten().collect();
    if sides.is_empty() {
        return instructions.clone();
    }
    let sides = sides.join("\n");
    let part = |text: &str| Json::object([("type", "\"input_text\""), ("text", Json::string(text).text())]);
    match instructions.as_string() {
        Some(text) if was_text => Json::string(&format!("{text}\n\n{sides}")),
        Some(text) => Json::array([part(&text).text(), part(&sides).text()]),
        None => {
            let structure = Json::object([("type", "\"input_json\""), ("data", instructions.text())]);
            Json::array([structure.text(), part(&sides).text()])
        }
    }
}

/// Formats all parts of a provider input that its `Debug` output hides.
fn shown(provider_input: &ProviderInput) -> String {
    let state = provider_input.state.as_ref().map_or("", Json::text);
    let booleans: Vec<_> = provider_input
        .questions
        .typed
        .as_deref()
        .into_iter()
        .flatten()
        .filter_map(|question| match &question.kind {
            QuestionKind::Choice { options } => Some(options.iter().map(|option| option.boolean).collect::<Vec<_>>()),
            _ => None,
        })
        .collect();
    format!("{state}\n{}\n{booleans:?}", provider_input.questions.json.text())
}

/// Writes the request by the outbound wire and reads it by the inbound wire.
pub fn request_round_trip(form: Shape, provider_input: &ProviderInput) -> Result<(), TestCaseError> {
    let body =
        codec(form).write("acme/judge", provider_input).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
    let body = body.to_bytes();
    let body = std::str::from_utf8(&body).unwrap();
    let asked = read_bytes(form, body.as_bytes()).map_err(|fault| TestCaseError::fail(format!("{fault}: {body}")))?;
    let request = asked.draft.check().map_err(|fault| TestCaseError::fail(format!("{fault}: {body}")))?;
    let expected = normalized(form, provider_input);
    prop_assert_eq!(&request.model, "acme/judge");
    prop_assert_eq!(shown(&request.provider_input), shown(&expected), "{}", body);
    prop_assert!(
        *request.provider_input == expected && request.provider_input.attachments == Attachments::None,
        "{}",
        body
    );
    // A second round trip changes nothing.
    prop_assert_eq!(shown(&normalized(form, &expected)), shown(&expected));
    Ok(())
}
