//! Conversion of the canonical form to a request body.

use domain::json::Json;
use domain::question::{Attachments, ChoiceOption, ProviderInput, Question, QuestionKind, QuestionType};
use domain::routing::{UnsupportedQuestions, Wire};

use super::{DESCRIPTION, ID, LEVELS, LIMITS, NAME, NO, OPTIONS, QUESTION, YES, YES_NO};
use crate::canonical::default_instructions;
use crate::provider::{RequestBody, UnsupportedByWire, body};

/// Builds the body: the model's name if given, the state as `input`, images, and the questions in order, by id. Texts
/// may be any JSON and stay unchanged. Unknown members are omitted, because the wire forbids them.
///
/// # Errors
/// The feature that the wire does not support.
pub fn write(model: Option<&str>, provider_input: &ProviderInput) -> Result<RequestBody, UnsupportedByWire> {
    let typed = LIMITS.typed(provider_input)?;
    let images = match &provider_input.attachments {
        Attachments::None => None,
        Attachments::Images(images) => Some(images),
        Attachments::Assets(_) | Attachments::InState => return Err(UnsupportedByWire::Attachments),
    };
    let input = provider_input.state.as_ref().filter(|state| !state.is_blank());
    let input = input.ok_or(UnsupportedQuestions::EmptyState)?;
    let questions = typed.iter().map(question).collect::<Result<Vec<_>, _>>()?;
    let questions = Json::array(questions.iter().map(Json::text));
    let mut members = vec![("input", input.text())];
    members.extend(images.map(|images| ("images", images.text())));
    members.push(("questions", questions.text()));
    Ok(body(model, &members))
}

fn question(question: &Question) -> Result<Json, UnsupportedByWire> {
    Wire::SglangDecisions.check_texts(question)?;
    let given = question.instructions.clone().filter(|instructions| !instructions.is_blank());
    let text = given.unwrap_or_else(|| Json::string(default_instructions(question.kind.question_type())));
    let id = Json::string(&question.name);
    let type_name = Json::string(match &question.kind {
        QuestionKind::Noul { .. } => YES_NO,
        kind => kind.as_str(),
    });
    let common = [(ID, id.text()), ("type", type_name.text()), (QUESTION, text.text())];
    let common = common.into_iter();
    match &question.kind {
        QuestionKind::Noul { when_true, when_false } => {
            let yes = when_true.as_ref().map(|yes| (YES, yes.text()));
            let no = when_false.as_ref().map(|no| (NO, no.text()));
            Ok(Json::object(common.chain(yes).chain(no)))
        }
        QuestionKind::Choice { options } => {
            let options = choices(options)?;
            Ok(Json::object(common.chain([(OPTIONS, options.text())])))
        }
        QuestionKind::Score { levels } => {
            let levels = scale(levels)?;
            Ok(Json::object(common.chain([(LEVELS, levels.text())])))
        }
        QuestionKind::Box => Err(UnsupportedByWire::QuestionType(QuestionType::Box)),
    }
}

fn choices(options: &[ChoiceOption]) -> Result<Json, UnsupportedByWire> {
    LIMITS.check_options(options)?;
    let written: Vec<Json> = options
        .iter()
        .map(|option| {
            let name = Json::string(&option.name);
            let description = option.meaning.as_ref().map(|meaning| (DESCRIPTION, meaning.text()));
            Json::object([(NAME, name.text())].into_iter().chain(description))
        })
        .collect();
    Ok(Json::array(written.iter().map(Json::text)))
}

fn scale(levels: &[Json]) -> Result<Json, UnsupportedByWire> {
    LIMITS.check_levels(levels)?;
    Ok(Json::array(levels.iter().map(Json::text)))
}
