//! From the members of a request body to a checked [`DecisionRequest`]: parsed once, with the path of the fault.

mod attachments;
mod preferences;

use std::sync::Arc;

use super::{
    Attachments, ChoiceOption, DecisionRequest, Inquiry, InvalidDecision, Question, QuestionKind, Questions, StateForm,
};
use crate::json::{Json, JsonKind};

pub use attachments::AssetPart;

/// The members of a request body, unchecked. A member that is null counts as absent. That strings are text (without
/// half surrogate pairs in escapes) is for whoever took the body in to see to.
#[derive(Debug, Clone, Default)]
pub struct DecisionDraft {
    /// `model`
    pub model: Option<Json>,
    /// `models`: more models, to go on with where the first gives no answer.
    pub models: Option<Json>,
    /// `questions`
    pub questions: Option<Json>,
    /// Questions that a wire of another form has read already, in place of `questions`.
    pub typed: Option<Vec<Question>>,
    /// `state`
    pub state: Option<Json>,
    /// How the state is to be read; `None` is as plain JSON.
    pub state_form: Option<StateForm>,
    /// True where media stand among the items or parts of the state.
    pub media_in_state: bool,
    /// `assets`
    pub assets: Option<Json>,
    /// The content of assets that came as parts of their own.
    pub asset_parts: Vec<AssetPart>,
    /// `images`
    pub images: Option<Json>,
    /// `provider`
    pub provider: Option<Json>,
    /// `session_id`
    pub session_id: Option<Json>,
    /// The `x-session-id` header; the body's `session_id` takes precedence.
    pub session_id_header: Option<String>,
    /// `trace`
    pub trace: Option<Json>,
    /// `user`
    pub user: Option<Json>,
    /// `partial`
    pub partial: Option<Json>,
}

/// Most characters of `session_id` and of `user`.
const MAX_LABEL_CHARS: usize = 256;
/// Most options of a `choice`.
const MAX_OPTIONS: usize = 255;
/// Most levels of a `score`.
const MAX_LEVELS: usize = 10;

impl DecisionDraft {
    /// Checks everything that can be checked without a catalogue.
    ///
    /// Questions are *typed* where they are an object and any member is an object with a `type`; then every member is
    /// checked. Anything else is opaque and passes through, except `{}`.
    ///
    /// # Errors
    /// The first fault, with its path.
    pub fn check(self) -> Result<DecisionRequest, InvalidDecision> {
        let (model, fallback_models) = models(present(self.model).as_ref(), present(self.models).as_ref())?;
        let questions = match self.typed {
            Some(typed) if typed.is_empty() => {
                return Err(InvalidDecision::new("questions", "must have at least one question"));
            }
            Some(typed) => Questions::of_typed(typed),
            None => questions(required(self.questions, "questions")?)?,
        };
        let state = present(self.state);
        if questions.typed.is_some() {
            let kind = state.as_ref().map(Json::kind);
            if !matches!(kind, Some(JsonKind::String | JsonKind::Array | JsonKind::Object)) {
                let fault = kind.map_or("is required with typed questions".to_owned(), |kind| {
                    format!("must be a string, object or array with typed questions, not {}", kind.described())
                });
                return Err(InvalidDecision::new("state", fault));
            }
        }
        let session_id = match label(self.session_id, "session_id")? {
            Some(id) => Some(id),
            None => self.session_id_header.map(|id| within_limit(id, "x-session-id")).transpose()?,
        };
        let trace = present(self.trace);
        if let Some(trace) = &trace
            && trace.kind() != JsonKind::Object
        {
            return Err(InvalidDecision::new("trace", "must be an object"));
        }
        let partial = match present(self.partial) {
            None => false,
            Some(json) if json.kind() == JsonKind::Bool => json.text() == "true",
            Some(_) => return Err(InvalidDecision::new("partial", "must be a boolean")),
        };
        let attachments =
            match attachments::read(present(self.assets).as_ref(), self.asset_parts, present(self.images))? {
                Attachments::None if self.media_in_state => Attachments::InState,
                Attachments::Assets(_) | Attachments::Images(_) if self.media_in_state => {
                    return Err(InvalidDecision::new(
                        "state",
                        "holds media, and others stand beside it; use one of them",
                    ));
                }
                other => other,
            };
        let state_form = self.state_form.unwrap_or(StateForm::Plain);
        Ok(DecisionRequest {
            model,
            fallback_models,
            inquiry: Arc::new(Inquiry { questions, state, state_form, attachments }),
            preferences: preferences::read(present(self.provider))?,
            partial,
            session_id,
            trace,
            user: label(self.user, "user")?,
        })
    }
}

impl Question {
    /// A question of another wire in canonical form. What the canonical form cannot hold (options, levels and their
    /// numbers, names twice) is refused by the rules for a question that came in canonical form.
    ///
    /// # Errors
    /// The first fault, with its path below `path`.
    pub fn canonical(
        name: &str,
        instructions: Option<Json>,
        kind: QuestionKind,
        path: &str,
    ) -> Result<Self, InvalidDecision> {
        let json = written(instructions.as_ref(), &kind);
        let read = question(name, &json, path)?;
        Ok(Self { instructions: present(instructions), kind, ..read })
    }
}

impl Questions {
    /// Reads questions as they stand in a body.
    ///
    /// # Errors
    /// The first fault, with its path.
    pub(crate) fn read(json: Json) -> Result<Self, InvalidDecision> {
        questions(json)
    }
}

impl Question {
    /// True where it is another question but for its words: of the same type, with as many options or levels.
    pub(crate) fn is_form_of(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (QuestionKind::Choice { options }, QuestionKind::Choice { options: others }) => {
                options.len() == others.len()
            }
            (QuestionKind::Score { levels }, QuestionKind::Score { levels: others }) => levels.len() == others.len(),
            (own, other) => own.question_type() == other.question_type(),
        }
    }

    /// Makes options stand for the booleans that those of another question in the same places stand for, which the
    /// canonical form does not tell.
    pub(crate) fn take_booleans(&mut self, from: &Self) {
        if let (QuestionKind::Choice { options }, QuestionKind::Choice { options: others }) =
            (&mut self.kind, &from.kind)
        {
            for (option, other) in options.iter_mut().zip(others) {
                option.boolean = other.boolean;
            }
        }
    }
}

/// A question as the canonical form writes it.
fn written(instructions: Option<&Json>, kind: &QuestionKind) -> Json {
    let criteria = match kind {
        QuestionKind::Noul { when_true: None, when_false: None } | QuestionKind::Box => None,
        QuestionKind::Noul { when_true, when_false } => {
            let sides = [("true", when_true), ("false", when_false)];
            Some(Json::object(sides.iter().filter_map(|(side, json)| Some((*side, json.as_ref()?.text())))))
        }
        QuestionKind::Choice { options } => Some(Json::object(options.iter().map(|option| {
            let meaning = option.meaning.as_ref().map_or("null", Json::text);
            (option.name.as_str(), meaning)
        }))),
        QuestionKind::Score { levels } => Some(Json::array(levels.iter().map(Json::text))),
    };
    let type_name = Json::string(kind.as_str());
    let mut members = vec![("type", type_name.text())];
    members.extend(instructions.map(|instructions| ("instructions", instructions.text())));
    members.extend(criteria.as_ref().map(|criteria| ("criteria", criteria.text())));
    Json::object(members)
}

/// Most models of one request.
const MAX_MODELS: usize = 16;

/// The first model and those after it; one that is named twice is tried once.
fn models(model: Option<&Json>, more: Option<&Json>) -> Result<(String, Vec<String>), InvalidDecision> {
    let name = |json: &Json, path: &str| {
        json.as_string()
            .filter(|name| !name.is_empty())
            .ok_or_else(|| InvalidDecision::new(path, "must be a non-empty string"))
    };
    let mut names = Vec::new();
    if let Some(model) = model {
        names.push(name(model, "model")?);
    }
    if let Some(more) = more {
        let more = more.elements().ok_or_else(|| InvalidDecision::new("models", "must be an array of model names"))?;
        if more.len() > MAX_MODELS {
            return Err(InvalidDecision::new("models", format!("must have at most {MAX_MODELS} names")));
        }
        for (index, json) in more.iter().enumerate() {
            let name = name(json, &format!("models[{index}]"))?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if names.is_empty() {
        return Err(InvalidDecision::new("model", "is required"));
    }
    let first = names.remove(0);
    Ok((first, names))
}

fn present(member: Option<Json>) -> Option<Json> {
    member.filter(|json| json.kind() != JsonKind::Null)
}

fn required(member: Option<Json>, path: &str) -> Result<Json, InvalidDecision> {
    present(member).ok_or_else(|| InvalidDecision::new(path, "is required"))
}

fn label(member: Option<Json>, path: &str) -> Result<Option<String>, InvalidDecision> {
    present(member)
        .map(|json| {
            let text = json.as_string().ok_or_else(|| InvalidDecision::new(path, "must be a string"))?;
            within_limit(text, path)
        })
        .transpose()
}

fn within_limit(text: String, path: &str) -> Result<String, InvalidDecision> {
    if text.chars().count() > MAX_LABEL_CHARS {
        return Err(InvalidDecision::new(path, format!("must have at most {MAX_LABEL_CHARS} characters")));
    }
    Ok(text)
}

fn questions(json: Json) -> Result<Questions, InvalidDecision> {
    let Some(members) = json.members() else { return Ok(Questions { json, typed: None }) };
    if members.is_empty() {
        return Err(InvalidDecision::new("questions", "must have at least one question"));
    }
    let typed = |(_, question): &(String, Json)| {
        question.members().is_some_and(|members| members.iter().any(|(name, _)| name == "type"))
    };
    if !members.iter().any(typed) {
        return Ok(Questions { json, typed: None });
    }
    let mut names = std::collections::HashSet::new();
    let mut questions = Vec::with_capacity(members.len());
    for (name, body) in &members {
        let path = member_path("questions", name);
        if !names.insert(name) {
            return Err(InvalidDecision::new(path, "stands in the object more than once"));
        }
        questions.push(question(name, body, &path)?);
    }
    Ok(Questions { json, typed: Some(questions) })
}

fn question(name: &str, body: &Json, path: &str) -> Result<Question, InvalidDecision> {
    let members = body.members().ok_or_else(|| {
        InvalidDecision::new(path, format!("must be an object with a type, not {}", body.kind().described()))
    })?;
    let kind =
        once(&members, "type", path)?.ok_or_else(|| InvalidDecision::new(format!("{path}.type"), "is required"))?;
    let instructions = once(&members, "instructions", path)?;
    if let Some(instructions) = &instructions {
        described(instructions, &format!("{path}.instructions"))?;
    }
    let criteria = once(&members, "criteria", path)?;
    let at = format!("{path}.criteria");
    let kind = match kind.as_string().as_deref() {
        Some("noul") => noul(criteria, &at, instructions.is_some())?,
        Some("choice") => choice(criteria, &at)?,
        Some("score") => score(criteria, &at)?,
        Some("box") => QuestionKind::Box,
        _ => return Err(InvalidDecision::new(format!("{path}.type"), "must be noul, choice, score or box")),
    };
    Ok(Question { name: name.to_owned(), json: body.clone(), instructions, kind })
}

fn noul(criteria: Option<Json>, path: &str, instructed: bool) -> Result<QuestionKind, InvalidDecision> {
    let (mut when_true, mut when_false) = (None, None);
    if let Some(criteria) = criteria {
        let members = criteria
            .members()
            .ok_or_else(|| InvalidDecision::new(path, "must be an object with the members true and false"))?;
        when_true = side(&members, "true", path)?;
        when_false = side(&members, "false", path)?;
    }
    if !instructed && when_true.is_none() && when_false.is_none() {
        return Err(InvalidDecision::new(path, "is required where there are no instructions"));
    }
    Ok(QuestionKind::Noul { when_true, when_false })
}

fn side(members: &[(String, Json)], name: &str, path: &str) -> Result<Option<Json>, InvalidDecision> {
    let side = once(members, name, path)?;
    if let Some(side) = &side {
        described(side, &format!("{path}.{name}"))?;
    }
    Ok(side)
}

fn choice(criteria: Option<Json>, path: &str) -> Result<QuestionKind, InvalidDecision> {
    let criteria =
        criteria.ok_or_else(|| InvalidDecision::new(path, "is required: an object with an option a member"))?;
    let members =
        criteria.members().ok_or_else(|| InvalidDecision::new(path, "must be an object with an option a member"))?;
    if !(1..=MAX_OPTIONS).contains(&members.len()) {
        return Err(InvalidDecision::new(path, format!("must have 1 to {MAX_OPTIONS} options, not {}", members.len())));
    }
    let mut names = std::collections::HashSet::new();
    let mut options = Vec::with_capacity(members.len());
    for (name, meaning) in &members {
        let at = member_path(path, name);
        if !names.insert(name) {
            return Err(InvalidDecision::new(at, "stands in the object more than once"));
        }
        let meaning = present(Some(meaning.clone()));
        if let Some(meaning) = &meaning {
            described(meaning, &at)?;
        }
        options.push(ChoiceOption::new(name.clone(), meaning));
    }
    Ok(QuestionKind::Choice { options })
}

fn score(criteria: Option<Json>, path: &str) -> Result<QuestionKind, InvalidDecision> {
    let criteria =
        criteria.ok_or_else(|| InvalidDecision::new(path, "is required: an array with a level an element"))?;
    let levels =
        criteria.elements().ok_or_else(|| InvalidDecision::new(path, "must be an array with a level an element"))?;
    if !(1..=MAX_LEVELS).contains(&levels.len()) {
        return Err(InvalidDecision::new(path, format!("must have 1 to {MAX_LEVELS} levels, not {}", levels.len())));
    }
    for (index, level) in levels.iter().enumerate() {
        described(level, &format!("{path}[{index}]"))?;
    }
    Ok(QuestionKind::Score { levels })
}

/// Instructions and criteria are a string, an object or an array.
fn described(json: &Json, path: &str) -> Result<(), InvalidDecision> {
    match json.kind() {
        JsonKind::String | JsonKind::Object | JsonKind::Array => Ok(()),
        other => {
            Err(InvalidDecision::new(path, format!("must be a string, object or array, not {}", other.described())))
        }
    }
}

/// The member of that name, where it is there and not null. Two of one name could be read two ways, so they are refused.
fn once(members: &[(String, Json)], name: &str, path: &str) -> Result<Option<Json>, InvalidDecision> {
    let mut found = members.iter().filter(|(member, _)| member == name);
    let first = found.next();
    if found.next().is_some() {
        return Err(InvalidDecision::new(format!("{path}.{name}"), "stands in the object more than once"));
    }
    Ok(present(first.map(|(_, json)| json.clone())))
}

/// The path of a member; a name that is long or odd is cut and quoted, so that the message stays a message.
fn member_path(parent: &str, name: &str) -> String {
    let plain =
        !name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if plain {
        format!("{parent}.{name}")
    } else {
        format!("{parent}[{:?}]", name.chars().take(64).collect::<String>())
    }
}

#[cfg(test)]
mod tests;
