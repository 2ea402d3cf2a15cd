//! Conversion of the canonical form to a request body.

use std::borrow::Cow;

use domain::json::Json;
use domain::question::{Attachments, ChoiceOption, ProviderInput, Question, QuestionKind, QuestionType, StateForm};
use domain::routing::Wire;

use super::content;
use super::{CHOICES, DESCRIPTION, LABEL, LEVELS, LIMITS, PREDICATE, VALUE};
use crate::canonical::{default_instructions, sides, text};
use crate::provider::{RequestBody, UnsupportedByWire, body};

/// Builds the body: the model's name if given, the state as `input`, and the questions in order, by name. OpenAI input
/// items stay unchanged.
///
/// # Errors
/// The feature that the wire does not support.
pub fn write(model: Option<&str>, provider_input: &ProviderInput) -> Result<RequestBody, UnsupportedByWire> {
    let typed = LIMITS.typed(provider_input)?;
    let media_in_state = match (&provider_input.attachments, provider_input.state_form) {
        (Attachments::None, _) => false,
        (Attachments::InState, StateForm::OpenAiItems) => true,
        _ => return Err(UnsupportedByWire::Attachments),
    };
    let questions = typed.iter().map(|asked| question(asked, media_in_state)).collect::<Result<Vec<_>, _>>()?;
    let questions = Json::array(questions.iter().map(Json::text));
    Ok(body(model, &[("input", &input(provider_input)), ("questions", questions.text())]))
}

/// Returns the state: text unchanged, structure as one item of one part.
fn input(provider_input: &ProviderInput) -> Cow<'_, str> {
    let Some(state) = &provider_input.state else { return Cow::Borrowed("\"\"") };
    let content = match provider_input.state_form {
        StateForm::OpenAiItems => return Cow::Borrowed(state.text()),
        StateForm::GeminiParts => content::of_texts(state),
        StateForm::Plain if state.as_string().is_some() => return Cow::Borrowed(state.text()),
        StateForm::Plain => None,
    };
    let content = content.unwrap_or_else(|| vec![content::of_json(state)]);
    Cow::Owned(format!(r#"[{{"role":"user","content":[{}]}}]"#, content.join(",")))
}

fn question(question: &Question, media_in_state: bool) -> Result<Json, UnsupportedByWire> {
    Wire::OpenAiDecisions.check_texts(question)?;
    let (type_name, outcomes) = match &question.kind {
        QuestionKind::Noul { .. } => (PREDICATE, None),
        QuestionKind::Choice { options } => ("choice", Some((CHOICES, choices(options)?))),
        QuestionKind::Score { levels } => ("score", Some((LEVELS, scale(levels)?))),
        QuestionKind::Box => return Err(UnsupportedByWire::QuestionType(QuestionType::Box)),
    };
    let type_name = Json::string(type_name);
    let (name, instructions) = (Json::string(&question.name), instructions(question, media_in_state));
    let members = [("type", type_name.text()), ("name", name.text()), ("instructions", instructions.as_str())];
    Ok(Json::object(members.into_iter().chain(outcomes.as_ref().map(|(name, json)| (*name, json.text())))))
}

/// Returns the instructions as a string or an array of parts. The criteria for yes and no follow, because the wire has
/// no other place for them.
fn instructions(question: &Question, media_in_state: bool) -> String {
    let sides = sides(&question.kind);
    let given = question.instructions.as_ref().filter(|instructions| !instructions.is_blank());
    let texts =
        given.map_or_else(|| Some(default_instructions(question.kind.question_type()).to_owned()), Json::as_string);
    match (texts, given) {
        (None, Some(given)) => {
            let own = content::of_this_wire(given, media_in_state).or_else(|| content::of_texts(given));
            let mut parts = own.unwrap_or_else(|| vec![content::of_json(given)]);
            parts.extend(sides.as_deref().map(content::of_text));
            format!("[{}]", parts.join(","))
        }
        (texts, _) => {
            let texts = texts.into_iter().chain(sides).collect::<Vec<_>>();
            Json::string(&texts.join("\n\n")).text().to_owned()
        }
    }
}

fn choices(options: &[ChoiceOption]) -> Result<Json, UnsupportedByWire> {
    LIMITS.check_options(options)?;
    let written: Vec<Json> = options
        .iter()
        .map(|option| {
            let value = option
                .boolean
                .map_or_else(|| Json::string(&option.name), |value| Json::from(serde_json::Value::Bool(value)));
            described(VALUE, value.text(), option.meaning.as_ref())
        })
        .collect();
    Ok(Json::array(written.iter().map(Json::text)))
}

fn scale(levels: &[Json]) -> Result<Json, UnsupportedByWire> {
    LIMITS.check_levels(levels)?;
    let written: Vec<Json> = levels.iter().map(level).collect();
    Ok(Json::array(written.iter().map(Json::text)))
}

/// Returns a level with its text as label. A level with label and description stays unchanged.
fn level(level: &Json) -> Json {
    let own = level.members().and_then(|members| {
        let (mut label, mut description) = (None, None);
        for (name, value) in members {
            let place = match name.as_str() {
                LABEL => &mut label,
                DESCRIPTION => &mut description,
                _ => return None,
            };
            value.as_string()?;
            if place.replace(value).is_some() {
                return None;
            }
        }
        Some((label?, description))
    });
    match own {
        Some((label, description)) => described(LABEL, label.text(), description.as_ref()),
        None => described(LABEL, Json::string(&text(level)).text(), None),
    }
}

fn described(name: &str, value: &str, description: Option<&Json>) -> Json {
    let description = description.map(|description| Json::string(&text(description)));
    let members = [(name, value)];
    Json::object(members.into_iter().chain(description.as_ref().map(|text| (DESCRIPTION, text.text()))))
}
