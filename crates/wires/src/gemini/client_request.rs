//! Gemini Decisions requests.

use domain::decision::{DecisionDraft, InvalidDecision};
use domain::json::{Json, JsonKind};
use domain::question::{ChoiceOption, MAX_LEVELS, MAX_OPTIONS, Question, QuestionKind, StateForm};
use domain::routing::Wire;

use super::{FALSE_DESCRIPTION, TRUE_DESCRIPTION};
use crate::client::Body;
use crate::client::fields::element_path;
use crate::client::fields::{Fields, check_count};

/// Parses a request into canonical form. The prefix `models/` of a model name is removed.
///
/// # Errors
/// The first violation, with its path in the wire's own body.
pub fn read(body: &Body<'_>) -> Result<DecisionDraft, InvalidDecision> {
    let draft = body.draft();
    let model = draft.model.map(|model| {
        let name = model.as_string();
        name.as_deref().and_then(|name| name.strip_prefix("models/")).map_or(model, Json::string)
    });
    let input = body.input.map(Json::from).ok_or_else(|| InvalidDecision::new("input", "is required"))?;
    let (state, form, media_in_state) = state(&input)?;
    let questions = body.questions.map(Json::from).ok_or_else(|| InvalidDecision::new("questions", "is required"))?;
    let questions = Fields::new(&questions, "questions")?;
    let members = questions.members()?;
    let typed = members.iter().map(|(name, json)| question(name, json, &questions.member_path(name)));
    Ok(DecisionDraft {
        model,
        typed: Some(typed.collect::<Result<_, _>>()?),
        state: Some(state),
        state_form: Some(form),
        media_in_state,
        ..draft
    })
}

/// Returns the state and whether it contains media. A single text becomes a plain string, so that the state is the same
/// on every wire; other input stays an array of parts.
fn state(input: &Json) -> Result<(Json, StateForm, bool), InvalidDecision> {
    let parts = match input.kind() {
        JsonKind::String => return Ok((input.clone(), StateForm::Plain, false)),
        JsonKind::Object => Json::array([input.text()]),
        JsonKind::Array => input.clone(),
        _ => return Err(InvalidDecision::new("input", "must be a string, a part or an array of parts")),
    };
    let (mut has_media, mut only, mut count) = (false, None, 0);
    for element in parts.iter_elements().into_iter().flatten() {
        let at = if input.kind() == JsonKind::Array { element_path("input", count) } else { "input".to_owned() };
        count += 1;
        let text = part(&Fields::new(&element, at)?)?;
        has_media |= text.is_none();
        only = text;
    }
    if count == 0 {
        return Err(InvalidDecision::new("input", "must have at least one part"));
    }
    Ok(match only {
        Some(text) if count == 1 => (text, StateForm::Plain, false),
        _ => (parts, StateForm::GeminiParts, has_media),
    })
}

/// Returns the text of a part; `None` for media.
fn part(part: &Fields) -> Result<Option<Json>, InvalidDecision> {
    match part.required_text("type")?.as_str() {
        "text" => {
            part.required_text("text")?;
            part.get("text")
        }
        "image" | "audio" | "video" | "document" => {
            part.text("mime_type")?;
            if part.text("data")?.is_none() && part.text("uri")?.is_none() {
                return Err(part.fault("data", "is required where there is no uri"));
            }
            Ok(None)
        }
        _ => Err(part.fault("type", "must be text, image, audio, video or document")),
    }
}

fn question(name: &str, json: &Json, path: &str) -> Result<Question, InvalidDecision> {
    let fields = Fields::new(json, path)?;
    let kind = match fields.required_text("type")?.as_str() {
        "noul" => noul(&fields)?,
        "choice" => QuestionKind::Choice { options: options(&fields)? },
        "score" => QuestionKind::Score { levels: levels(&fields)? },
        _ => return Err(fields.fault("type", "must be noul, choice or score")),
    };
    Question::canonical(name, Some(instructions(&fields)?), kind, path)
}

/// Reads a string, a text part, or an array of text parts; a single text becomes a plain string.
fn instructions(fields: &Fields) -> Result<Json, InvalidDecision> {
    const NAME: &str = "instructions";
    let json = fields.required(NAME)?;
    let parts = match json.kind() {
        JsonKind::String => return Ok(json),
        JsonKind::Object => vec![json.clone()],
        _ => json
            .elements()
            .ok_or_else(|| fields.fault(NAME, "must be a string, a text part or an array of text parts"))?,
    };
    if parts.is_empty() {
        return Err(fields.fault(NAME, "must have at least one part"));
    }
    let mut only = None;
    for (index, element) in parts.iter().enumerate() {
        let at = fields.member_path(NAME);
        let at = if json.kind() == JsonKind::Array { element_path(&at, index) } else { at };
        let element = Fields::new(element, at)?;
        let text = part(&element)?;
        only = Some(text.ok_or_else(|| element.fault("type", "must be text"))?);
    }
    Ok(only.filter(|_| parts.len() == 1).unwrap_or_else(|| json.clone()))
}

fn noul(fields: &Fields) -> Result<QuestionKind, InvalidDecision> {
    let Some(criteria) = fields.get("criteria")? else {
        return Ok(QuestionKind::Noul { when_true: None, when_false: None });
    };
    let criteria = Fields::new(&criteria, fields.member_path("criteria"))?;
    Ok(QuestionKind::Noul {
        when_true: criteria.text_json(TRUE_DESCRIPTION)?,
        when_false: criteria.text_json(FALSE_DESCRIPTION)?,
    })
}

fn options(fields: &Fields) -> Result<Vec<ChoiceOption>, InvalidDecision> {
    let criteria = Fields::new(&fields.required("criteria")?, fields.member_path("criteria"))?;
    check_count(criteria.count(), 2, MAX_OPTIONS, "options").map_err(|fault| fields.fault("criteria", fault))?;
    let option = |(name, meaning): (String, Json)| {
        if !Wire::GeminiDecisions.allows_option_name(&name) {
            return Err(criteria.fault(&name, "must be a name without control characters and white space around it"));
        }
        match meaning.kind() {
            JsonKind::Null => Ok(ChoiceOption::new(name, None)),
            JsonKind::String => Ok(ChoiceOption::new(name, Some(meaning))),
            _ => Err(criteria.fault(&name, "must be a string")),
        }
    };
    criteria.members()?.into_iter().map(option).collect()
}

fn levels(fields: &Fields) -> Result<Vec<Json>, InvalidDecision> {
    let levels = fields.elements("criteria", 2, MAX_LEVELS, "levels")?;
    for (index, level) in levels.iter().enumerate() {
        if level.as_string().is_none_or(|text| text.is_empty()) {
            let path = element_path(&fields.member_path("criteria"), index);
            return Err(InvalidDecision::new(path, "must be a non-empty string"));
        }
    }
    Ok(levels)
}
