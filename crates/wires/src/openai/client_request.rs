//! OpenAI Decisions requests.

use std::collections::HashSet;

use domain::decision::{DecisionDraft, InvalidDecision};
use domain::json::{Json, JsonKind};
use domain::question::{ChoiceOption, MAX_LEVELS, MAX_OPTIONS, Question, QuestionKind};

use super::content;
use super::{CHOICES, DESCRIPTION, INPUT_IMAGE, INPUT_JSON, INPUT_TEXT, LABEL, LEVELS, PREDICATE, VALUE};
use crate::client::Body;
use crate::client::fields::Fields;
use crate::client::fields::element_path;

/// The maximum number of characters of `safety_identifier`.
const MAX_IDENTIFIER_CHARS: usize = 128;

/// The names generated for unnamed questions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GeneratedNames(HashSet<String>);

impl GeneratedNames {
    /// Returns true if the name was generated, so the client does not know it.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// Parses a request into canonical form and generates names for unnamed questions.
///
/// `prompt_cache_key`, `prompt_cache_options` and `prompt_cache_breakpoint` are ignored: caching is up to the provider.
/// `safety_identifier` becomes `user` if that is absent.
///
/// # Errors
/// The first violation, with its path in the wire's own body.
pub fn read(body: &Body<'_>) -> Result<(DecisionDraft, GeneratedNames), InvalidDecision> {
    let mut draft = body.draft();
    let identifier = body.safety_identifier.map(Json::from).map(|json| checked_identifier(&json)).transpose()?;
    draft.user = draft.user.or(identifier);
    let input = body.input.map(Json::from).ok_or_else(|| InvalidDecision::new("input", "is required"))?;
    let mut read = content::read(&input)?;
    let (typed, generated_names, has_media) = questions(body.questions.map(Json::from))?;
    if has_media {
        read = content::as_items(&input);
    }
    let draft = DecisionDraft {
        typed: Some(typed),
        state: Some(read.state),
        state_form: Some(read.form),
        media_in_state: read.has_media,
        ..draft
    };
    Ok((draft, GeneratedNames(generated_names)))
}

fn checked_identifier(json: &Json) -> Result<Json, InvalidDecision> {
    let fault = |fault: String| InvalidDecision::new("safety_identifier", fault);
    let text = json.as_string().ok_or_else(|| fault("must be a string".to_owned()))?;
    if text.chars().count() > MAX_IDENTIFIER_CHARS {
        return Err(fault(format!("must have at most {MAX_IDENTIFIER_CHARS} characters")));
    }
    Ok(json.clone())
}

/// Returns the questions, the generated names, and true if instructions contain media.
fn questions(json: Option<Json>) -> Result<(Vec<Question>, HashSet<String>, bool), InvalidDecision> {
    let json = json.ok_or_else(|| InvalidDecision::new("questions", "is required"))?;
    let elements = json.elements().ok_or_else(|| InvalidDecision::new("questions", "must be an array of questions"))?;
    let mut read = Vec::with_capacity(elements.len());
    let mut names = HashSet::new();
    for (index, element) in elements.iter().enumerate() {
        let fields = Fields::new(element, element_path("questions", index))?;
        let name = fields.text("name")?;
        if let Some(name) = &name
            && !names.insert(name.clone())
        {
            return Err(fields.fault("name", "is in more than one question"));
        }
        read.push((fields, name));
    }
    let mut generated_names = HashSet::new();
    let mut has_media = false;
    let questions = read.iter().enumerate().map(|(index, (fields, name))| {
        let name = name.clone().unwrap_or_else(|| {
            let name = unused_name(&format!("question_{index}"), &names);
            generated_names.insert(name.clone());
            name
        });
        let (question, is_media) = question(fields, &name)?;
        has_media |= is_media;
        Ok(question)
    });
    let questions = questions.collect::<Result<_, InvalidDecision>>()?;
    Ok((questions, generated_names, has_media))
}

/// Returns the name, or a similar one that is not taken.
fn unused_name(name: &str, taken: &HashSet<String>) -> String {
    let mut name = name.to_owned();
    while taken.contains(&name) {
        name.push('_');
    }
    name
}

/// Returns one question, and true if its instructions contain media.
fn question(fields: &Fields, name: &str) -> Result<(Question, bool), InvalidDecision> {
    let kind = match fields.required_text("type")?.as_str() {
        PREDICATE => QuestionKind::Noul { when_true: None, when_false: None },
        "choice" => QuestionKind::Choice { options: options(fields)? },
        "score" => QuestionKind::Score { levels: levels(fields)? },
        _ => return Err(fields.fault("type", "must be predicate, choice or score")),
    };
    let (instructions, has_media) = instructions(fields)?;
    Ok((Question::canonical(name, Some(instructions), kind, fields.path())?, has_media))
}

/// Returns the instructions, and true if they contain media. Parts with a single text or value become that value, so
/// that the instructions are the same on every wire.
fn instructions(fields: &Fields) -> Result<(Json, bool), InvalidDecision> {
    const NAME: &str = "instructions";
    let json = fields.required(NAME)?;
    if json.kind() == JsonKind::String {
        return Ok((json, false));
    }
    let parts = json.iter_elements().ok_or_else(|| fields.fault(NAME, "must be a string or an array of parts"))?;
    let (mut only, mut has_media, mut count) = (None, false, 0);
    for part in parts {
        let part = Fields::new(&part, element_path(&fields.member_path(NAME), count))?;
        count += 1;
        let (value, is_media) = content::read_part(&part, &[INPUT_TEXT, INPUT_JSON, INPUT_IMAGE])?;
        has_media |= is_media;
        only = value;
    }
    if count == 0 {
        return Err(fields.fault(NAME, "must have at least one part"));
    }
    Ok((only.filter(|_| count == 1).unwrap_or(json), has_media))
}

/// Reads the options. A boolean is a different option than the string of the same text, so its canonical name must not
/// equal the name of any string.
fn options(fields: &Fields) -> Result<Vec<ChoiceOption>, InvalidDecision> {
    let elements = fields.elements(CHOICES, 2, MAX_OPTIONS, "choices")?;
    let mut read = Vec::with_capacity(elements.len());
    let mut names = HashSet::new();
    let mut booleans = HashSet::new();
    for (index, element) in elements.iter().enumerate() {
        let choice = Fields::new(element, element_path(&fields.member_path(CHOICES), index))?;
        let value = choice.required(VALUE)?;
        let boolean = (value.kind() == JsonKind::Bool).then(|| value.text() == "true");
        let is_new = match (boolean, value.as_string()) {
            (Some(boolean), _) => booleans.insert(boolean),
            (None, Some(text)) => names.insert(text),
            (None, None) => return Err(choice.fault(VALUE, "must be a string or a boolean")),
        };
        if !is_new {
            return Err(choice.fault(VALUE, "is in more than one choice"));
        }
        read.push((boolean, value.as_string(), choice.text_json(DESCRIPTION)?));
    }
    let options = read.into_iter().map(|(boolean, text, meaning)| {
        let name = text.or_else(|| boolean.map(|boolean| boolean_name(boolean, &names)));
        ChoiceOption { name: name.unwrap_or_default(), boolean, meaning }
    });
    Ok(options.collect())
}

/// Returns the canonical name of a boolean. If a string has that name, the replacement still describes the value to a
/// model.
fn boolean_name(boolean: bool, taken: &HashSet<String>) -> String {
    let name = boolean.to_string();
    if taken.contains(&name) { unused_name(&format!("{name} (boolean)"), taken) } else { name }
}

/// Reads the levels: each is a label, or an object with a label and a description.
fn levels(fields: &Fields) -> Result<Vec<Json>, InvalidDecision> {
    let elements = fields.elements(LEVELS, 2, MAX_LEVELS, "levels")?;
    elements
        .iter()
        .enumerate()
        .map(|(index, element)| {
            let level = Fields::new(element, element_path(&fields.member_path(LEVELS), index))?;
            level.required_text(LABEL)?;
            let label = level.required(LABEL)?;
            Ok(match level.text_json(DESCRIPTION)? {
                None => label,
                Some(description) => Json::object([(LABEL, label.text()), (DESCRIPTION, description.text())]),
            })
        })
        .collect()
}
