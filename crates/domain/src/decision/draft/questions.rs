//! Reads the member `questions`: validates typed questions and passes others as opaque.

use std::sync::Arc;

use super::path::Path;
use crate::decision::InvalidDecision;
use crate::json::{Json, JsonKind, JsonPart, Member, first_duplicate};
use crate::question::{ChoiceOption, MAX_LEVELS, MAX_OPTIONS, Question, QuestionKind, Questions};

const OPTIONS: &str = "must be an object that maps each option name to a description or null, for example \
                       {\"billing\": \"money\", \"other\": null}";
const LEVELS: &str = "must be an array of level descriptions, lowest first, for example [\"calm\", \"furious\"]";

/// The violation for a duplicate member: parsers differ in which one they use.
pub(super) const DUPLICATE_MEMBER: &str = "is in the object more than once";

impl Questions {
    /// Reads the questions of a body.
    ///
    /// # Errors
    /// The first violation, with its path.
    pub(crate) fn read(json: Json) -> Result<Self, InvalidDecision> {
        let typed = typed(json.as_part())?;
        Ok(Self { json, typed })
    }
}

/// Reads typed questions; returns `None` for opaque ones. Invalid typed questions are errors: sent as opaque ones, they
/// would be charged and answered differently than the client expects.
fn typed(json: JsonPart<'_>) -> Result<Option<Arc<[Question]>>, InvalidDecision> {
    let root = Path::Root("questions");
    if json.iter_elements().any(looks_typed) {
        return Err(root.fault(
            "must be an object that maps names to questions, for example {\"urgent\": {\"type\": \"noul\", \
             \"instructions\": \"Is it urgent?\"}}; POST /v1/decisions takes an array of questions",
        ));
    }
    let Some(members) = json.members() else { return Ok(None) };
    if members.is_empty() {
        return Err(root.fault("must have at least one question"));
    }
    if !members.iter().any(|member| looks_typed(member.value)) {
        return Ok(None);
    }
    let repeated = first_duplicate(&members);
    let read = |(index, member): (usize, &Member<'_>)| {
        let path = Path::Member(&root, &member.name);
        if repeated == Some(index) {
            return Err(path.fault(DUPLICATE_MEMBER));
        }
        question(&member.name, member.value, &path)
    };
    let questions: Result<_, _> = members.iter().enumerate().map(read).collect();
    questions.map(Some)
}

/// Returns true for an object with a member that only questions have.
fn looks_typed(json: JsonPart<'_>) -> bool {
    const MEMBERS: [&str; 4] = ["type", "instructions", "question", "criteria"];
    json.has_member(&MEMBERS)
}

pub(super) fn question(name: &str, body: JsonPart<'_>, path: &Path<'_>) -> Result<Question, InvalidDecision> {
    let [kind, instructions, text, criteria] = pick(body, ["type", "instructions", "question", "criteria"], path)
        .ok_or_else(|| path.fault(format!("must be an object with a type, not {}", body.kind().with_article())))?;
    let type_path = Path::Member(path, "type");
    let kind = kind?.ok_or_else(|| type_path.fault("is required: noul, choice, score or box"))?;
    let instructions = instructions?;
    if instructions.is_none() && text?.is_some() {
        return Err(Path::Member(path, "question").fault("unknown member; the text of a question is \"instructions\""));
    }
    if let Some(instructions) = instructions {
        check_description(instructions, &Path::Member(path, "instructions"))?;
    }
    let criteria = criteria?;
    let at = Path::Member(path, "criteria");
    let kind = match kind.as_str().as_deref() {
        Some("noul") => read_noul(criteria, &at, instructions.is_some())?,
        Some("choice") => read_choice(criteria, &at)?,
        Some("score") => read_score(criteria, &at)?,
        Some("box") => QuestionKind::Box,
        _ => return Err(type_path.fault("must be noul, choice, score or box")),
    };
    Ok(Question {
        name: name.to_owned(),
        json: body.to_json(),
        instructions: instructions.map(JsonPart::to_json),
        kind,
    })
}

fn read_noul(
    criteria: Option<JsonPart<'_>>,
    path: &Path<'_>,
    instructed: bool,
) -> Result<QuestionKind, InvalidDecision> {
    let (mut when_true, mut when_false) = (None, None);
    if let Some(criteria) = criteria {
        let [yes, no] = pick(criteria, ["true", "false"], path)
            .ok_or_else(|| path.fault("must be an object with the members true and false"))?;
        when_true = read_criterion(yes?, "true", path)?;
        when_false = read_criterion(no?, "false", path)?;
    }
    if !instructed && when_true.is_none() && when_false.is_none() {
        return Err(path.fault("is required where there are no instructions"));
    }
    Ok(QuestionKind::Noul { when_true, when_false })
}

fn read_criterion(side: Option<JsonPart<'_>>, name: &str, path: &Path<'_>) -> Result<Option<Json>, InvalidDecision> {
    if let Some(side) = side {
        check_description(side, &Path::Member(path, name))?;
    }
    Ok(side.map(JsonPart::to_json))
}

fn read_choice(criteria: Option<JsonPart<'_>>, path: &Path<'_>) -> Result<QuestionKind, InvalidDecision> {
    let criteria = criteria.ok_or_else(|| path.fault(OPTIONS))?;
    let members = criteria.members().ok_or_else(|| path.fault(OPTIONS))?;
    if !(1..=MAX_OPTIONS).contains(&members.len()) {
        return Err(path.fault(format!("must have 1 to {MAX_OPTIONS} options, not {}", members.len())));
    }
    let repeated = first_duplicate(&members);
    let mut options = Vec::with_capacity(members.len());
    for (index, member) in members.into_iter().enumerate() {
        let at = Path::Member(path, &member.name);
        if repeated == Some(index) {
            return Err(at.fault(DUPLICATE_MEMBER));
        }
        let meaning = Some(member.value).filter(|meaning| !meaning.is_null());
        if let Some(meaning) = meaning {
            check_description(meaning, &at)?;
        }
        options.push(ChoiceOption::new(member.name, meaning.map(JsonPart::to_json)));
    }
    Ok(QuestionKind::Choice { options })
}

fn read_score(criteria: Option<JsonPart<'_>>, path: &Path<'_>) -> Result<QuestionKind, InvalidDecision> {
    let criteria = criteria.ok_or_else(|| path.fault(LEVELS))?;
    let levels = criteria.elements().ok_or_else(|| path.fault(LEVELS))?;
    if !(1..=MAX_LEVELS).contains(&levels.len()) {
        return Err(path.fault(format!("must have 1 to {MAX_LEVELS} levels, not {}", levels.len())));
    }
    for (index, level) in levels.iter().enumerate() {
        check_description(*level, &Path::Element(path, index))?;
    }
    Ok(QuestionKind::Score { levels: levels.into_iter().map(JsonPart::to_json).collect() })
}

/// Checks that instructions or criteria are a string, an object or an array.
fn check_description(json: JsonPart<'_>, path: &Path<'_>) -> Result<(), InvalidDecision> {
    match json.kind() {
        JsonKind::String | JsonKind::Object | JsonKind::Array => Ok(()),
        other => Err(path.fault(format!("must be a string, object or array, not {}", other.with_article()))),
    }
}

/// A member of an object, unless it is absent or null. A duplicate is an error, because it is ambiguous.
type Picked<'a> = Result<Option<JsonPart<'a>>, InvalidDecision>;

/// Returns the members with these names, in one pass over the object; `None` for other types.
fn pick<'a, const N: usize>(object: JsonPart<'a>, names: [&str; N], path: &Path<'_>) -> Option<[Picked<'a>; N]> {
    let (mut found, mut is_repeated) = ([None; N], [false; N]);
    for member in object.iter_members()? {
        let Member { name, value } = member?;
        if let Some(at) = names.iter().position(|wanted| *wanted == name) {
            is_repeated[at] |= found[at].replace(value).is_some();
        }
    }
    Some(std::array::from_fn(|at| match found[at] {
        _ if is_repeated[at] => Err(Path::Member(path, names[at]).fault(DUPLICATE_MEMBER)),
        value => Ok(value.filter(|value| !value.is_null())),
    }))
}
