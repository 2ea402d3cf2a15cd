//! Conversion of the canonical form to a request body.

use domain::json::Json;
use domain::question::{Attachments, ChoiceOption, ProviderInput, Question, QuestionKind, QuestionType, StateForm};
use domain::routing::Wire;

use super::{FALSE_DESCRIPTION, LIMITS, TRUE_DESCRIPTION};
use crate::canonical::{instructions, text, texts_of_parts};
use crate::provider::{RequestBody, UnsupportedByWire, body};

/// Builds the body: the model's name if given, the state as `input`, and the questions in order. Gemini input parts
/// stay unchanged; other values than strings become their JSON text.
///
/// # Errors
/// The feature that the wire does not support.
pub fn write(model: Option<&str>, provider_input: &ProviderInput) -> Result<RequestBody, UnsupportedByWire> {
    let typed = LIMITS.typed(provider_input)?;
    match (&provider_input.attachments, provider_input.state_form) {
        (Attachments::None, _) | (Attachments::InState, StateForm::GeminiParts) => {}
        _ => return Err(UnsupportedByWire::Attachments),
    }
    let questions = typed.iter().map(question).collect::<Result<Vec<_>, _>>()?;
    let named = typed.iter().map(|question| question.name.as_str()).zip(questions.iter().map(Json::text));
    let questions = Json::object(named);
    let input = match &provider_input.state {
        Some(state) => input(state, provider_input.state_form),
        None => Json::string(""),
    };
    Ok(body(model, &[("input", input.text()), ("questions", questions.text())]))
}

fn input(state: &Json, form: StateForm) -> Json {
    match form {
        StateForm::GeminiParts => state.clone(),
        StateForm::OpenAiItems => of_one_user(state).unwrap_or_else(|| string(state)),
        StateForm::Plain => string(state),
    }
}

/// Returns text parts if the state is a single user item of text. Several items have an order and roles, which parts
/// cannot express.
fn of_one_user(items: &Json) -> Option<Json> {
    let [item] = items.elements()?.try_into().ok()?;
    let members = item.members()?;
    let member = |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, value)| value);
    let is_user = member("role")?.as_string()? == "user" && members.len() == 2;
    is_user.then(|| texts_of_parts(member("content")?)).flatten().map(|texts| parts(&texts))
}

/// Builds text parts.
fn parts(texts: &[String]) -> Json {
    let parts: Vec<Json> =
        texts.iter().map(|text| Json::object([("type", "\"text\""), ("text", Json::string(text).text())])).collect();
    Json::array(parts.iter().map(Json::text))
}

/// Returns the instructions: a string, or text parts.
fn instructions_json(question: &Question) -> Json {
    let given = question.instructions.as_ref().filter(|given| !given.is_blank());
    let texts = given.and_then(texts_of_parts).map(|texts| parts(&texts));
    texts.unwrap_or_else(|| Json::string(&instructions(question)))
}

/// Returns a string unchanged, and any other value as a string of its JSON.
fn string(json: &Json) -> Json {
    if json.as_string().is_some() { json.clone() } else { Json::string(&text(json)) }
}

fn question(question: &Question) -> Result<Json, UnsupportedByWire> {
    Wire::GeminiDecisions.check_texts(question)?;
    let criteria = match &question.kind {
        QuestionKind::Noul { when_true, when_false } => sides(when_true.as_ref(), when_false.as_ref()),
        QuestionKind::Choice { options } => Some(choices(options)?),
        QuestionKind::Score { levels } => Some(scale(levels)?),
        QuestionKind::Box => return Err(UnsupportedByWire::QuestionType(QuestionType::Box)),
    };
    let type_name = Json::string(question.kind.as_str());
    let instructions = instructions_json(question);
    let members = [("type", type_name.text()), ("instructions", instructions.text())];
    Ok(Json::object(members.into_iter().chain(criteria.as_ref().map(|criteria| ("criteria", criteria.text())))))
}

fn sides(when_true: Option<&Json>, when_false: Option<&Json>) -> Option<Json> {
    let sides = [(TRUE_DESCRIPTION, when_true), (FALSE_DESCRIPTION, when_false)];
    let descriptions: Vec<(&str, Json)> =
        sides.into_iter().filter_map(|(name, side)| side.map(|side| (name, string(side)))).collect();
    (!descriptions.is_empty()).then(|| Json::object(descriptions.iter().map(|(name, side)| (*name, side.text()))))
}

fn choices(options: &[ChoiceOption]) -> Result<Json, UnsupportedByWire> {
    LIMITS.check_options(options)?;
    let meanings: Vec<Option<Json>> = options.iter().map(|option| option.meaning.as_ref().map(string)).collect();
    let meanings = meanings.iter().map(|meaning| meaning.as_ref().map_or("null", Json::text));
    Ok(Json::object(options.iter().map(|option| option.name.as_str()).zip(meanings)))
}

fn scale(levels: &[Json]) -> Result<Json, UnsupportedByWire> {
    LIMITS.check_levels(levels)?;
    let levels: Vec<Json> = levels.iter().map(string).collect();
    Ok(Json::array(levels.iter().map(Json::text)))
}
