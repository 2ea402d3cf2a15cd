//! Reads the configuration of presets.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::draft::PRESET_PREFIX;
use super::{DecisionDraft, DecisionRequest, InvalidDecision};
use crate::json::{Json, JsonKind, unknown_member, unknown_name};
use crate::preset::{Acceptance, Cascade, CascadeStage, Otherwise, PresetConfig};
use crate::question::{Question, QuestionKind};
use crate::statistics::Probability;

/// Stands for every question, or every decision, that is not named.
const ANY: &str = "*";

impl PresetConfig {
    /// Reads a configuration from the members of an object: `questions` as of a request, and either `model` and
    /// `models`, or `stages` and `otherwise`.
    ///
    /// # Errors
    /// The first violation, with its path.
    pub fn read(json: &Json) -> Result<Self, InvalidDecision> {
        let mut draft = DecisionDraft { state: Some(Json::string("")), ..DecisionDraft::default() };
        let (mut stages, mut otherwise) = (None, None);
        let is_given = |(_, value): &(String, Json)| value.kind() != JsonKind::Null;
        for (name, value) in json.members().unwrap_or_default().into_iter().filter(is_given) {
            match name.as_str() {
                "model" => draft.model = Some(value),
                "models" => draft.models = Some(value),
                "questions" => draft.questions = Some(value),
                "stages" => stages = Some(value),
                "otherwise" => otherwise = Some(value),
                _ => {}
            }
        }
        let stages = stages.map(|stages| read_stages(&stages)).transpose()?;
        if let Some(stages) = &stages {
            for (name, given) in [("model", &draft.model), ("models", &draft.models)] {
                if given.is_some() {
                    return Err(InvalidDecision::new(name, "must be absent: the stages name their models"));
                }
            }
            let models: Vec<Json> = stages.iter().map(|(model, _)| Json::string(model)).collect();
            draft.models = Some(Json::array(models.iter().map(Json::text)));
        } else if otherwise.is_some() {
            return Err(InvalidDecision::new("otherwise", "requires stages"));
        }
        let is_empty = |models: &Json| models.elements().is_some_and(|models| models.is_empty());
        if draft.model.is_none() && draft.models.as_ref().is_none_or(is_empty) {
            return Err(InvalidDecision::new("models", "is required, or stages"));
        }
        let request = draft.check()?;
        if request.preset_slug().is_some() {
            return Err(InvalidDecision::new("model", "must be a model, not a preset"));
        }
        let DecisionRequest { model, fallback_models, provider_input, .. } = request;
        let questions = provider_input.questions.clone();
        let Some(typed) = &questions.typed else {
            let fault = "must be an object that maps names to questions, for example {\"urgent\": {\"type\": \"noul\", \
                         \"instructions\": \"Is it urgent?\"}}";
            return Err(InvalidDecision::new("questions", fault));
        };
        let cascade = stages.map(|stages| cascade(stages, otherwise, typed)).transpose()?.map(Arc::new);
        let models = std::iter::once(model).chain(fallback_models).collect();
        let config = Self { models, questions, cascade };
        if config.to_json().text().len() > Self::MAX_BYTES {
            let fault = format!("must take at most {} bytes as JSON with the models", Self::MAX_BYTES);
            return Err(InvalidDecision::new("questions", fault));
        }
        Ok(config)
    }
}

/// Returns the model and the thresholds of each stage, as they are written.
fn read_stages(json: &Json) -> Result<Vec<(String, Option<Json>)>, InvalidDecision> {
    let elements = json.elements().unwrap_or_default();
    if !(1..=Cascade::MAX_STAGES).contains(&elements.len()) {
        let fault = format!("must be an array of 1 to {} objects with model and accept", Cascade::MAX_STAGES);
        return Err(InvalidDecision::new("stages", fault));
    }
    let mut stages = Vec::with_capacity(elements.len());
    for (number, element) in elements.iter().enumerate() {
        let path = format!("stages[{number}]");
        let (mut model, mut accept) = (None, None);
        for (name, value) in distinct_members(element, &path)? {
            match name.as_str() {
                "model" => model = value.as_string().filter(|name| !name.is_empty()),
                "accept" => accept = Some(value).filter(|value| value.kind() != JsonKind::Null),
                _ => return Err(InvalidDecision::new(path, unknown_member(&name, ["model", "accept"]))),
            }
        }
        let model = model.ok_or_else(|| InvalidDecision::new(format!("{path}.model"), "must be a non-empty string"))?;
        if model.starts_with(PRESET_PREFIX) {
            return Err(InvalidDecision::new(format!("{path}.model"), "must be a model, not a preset"));
        }
        if accept.is_none() && number + 1 < elements.len() {
            let fault =
                "is required: without thresholds a stage accepts every decision, and the next one is never asked";
            return Err(InvalidDecision::new(format!("{path}.accept"), fault));
        }
        stages.push((model, accept));
    }
    Ok(stages)
}

fn cascade(
    stages: Vec<(String, Option<Json>)>,
    otherwise: Option<Json>,
    questions: &[Question],
) -> Result<Cascade, InvalidDecision> {
    let stage = |(number, (model, accept)): (usize, (String, Option<Json>))| {
        let path = format!("stages[{number}].accept");
        let accept = accept.map(|json| read_acceptance(json, questions, &path)).transpose()?;
        Ok(CascadeStage { model, accept })
    };
    let stages = stages.into_iter().enumerate().map(stage).collect::<Result<_, InvalidDecision>>()?;
    let otherwise = otherwise.map_or(Some(Otherwise::Answer), |json| Otherwise::from_name(&json.as_string()?));
    let otherwise = otherwise.ok_or_else(|| InvalidDecision::new("otherwise", "must be \"answer\" or \"abstain\""))?;
    Ok(Cascade { stages, otherwise })
}

/// Reads the thresholds of a stage: by question, and there one number or one by decision.
fn read_acceptance(json: Json, questions: &[Question], path: &str) -> Result<Acceptance, InvalidDecision> {
    let given = distinct_members(&json, path)?;
    let names: Vec<&str> = questions.iter().map(|question| question.name.as_str()).collect();
    if let Some((name, _)) = given.iter().find(|(name, _)| name != ANY && !names.contains(&name.as_str())) {
        return Err(InvalidDecision::new(path, unknown_name("question", name, names)));
    }
    let given: HashMap<&str, &Json> = given.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let thresholds = questions.iter().map(|question| {
        let at = |name: &str| format!("{path}[{name:?}]");
        let (name, value) = find_or_any(&given, &question.name).ok_or_else(|| {
            let fault = format!("is required: add the question, or {ANY:?} for all others");
            InvalidDecision::new(at(&question.name), fault)
        })?;
        by_decision(value, &question.kind, &at(name))
    });
    let thresholds = thresholds.collect::<Result<_, _>>()?;
    Ok(Acceptance { json, thresholds })
}

/// Returns the threshold of each decision of a question.
fn by_decision(value: &Json, kind: &QuestionKind, path: &str) -> Result<Vec<Probability>, InvalidDecision> {
    let decisions: Vec<String> = match kind {
        QuestionKind::Noul { .. } => vec!["yes".to_owned(), "no".to_owned()],
        QuestionKind::Choice { options } => options.iter().map(|option| option.name.clone()).collect(),
        QuestionKind::Score { levels } => (0..levels.len()).map(|level| level.to_string()).collect(),
        // A box has no decision: no threshold accepts it.
        QuestionKind::Box => Vec::new(),
    };
    if value.members().is_none() {
        return Ok(vec![threshold(value, path)?; decisions.len()]);
    }
    let given = distinct_members(value, path)?;
    let known = || decisions.iter().map(String::as_str);
    if let Some((name, _)) = given.iter().find(|(name, _)| name != ANY && !decisions.contains(name)) {
        return Err(InvalidDecision::new(path, unknown_name("decision", name, known())));
    }
    let given: HashMap<&str, &Json> = given.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let of = |decision: &str| {
        let at = |name: &str| format!("{path}[{name:?}]");
        let missing = || InvalidDecision::new(at(decision), format!("is required: add it, or {ANY:?} for all others"));
        let (name, value) = find_or_any(&given, decision).ok_or_else(missing)?;
        threshold(value, &at(name))
    };
    known().map(of).collect()
}

/// Returns the value of a name, or that of all others, with the name in the object, which errors show.
fn find_or_any<'a>(given: &HashMap<&str, &'a Json>, name: &'a str) -> Option<(&'a str, &'a Json)> {
    [name, ANY].into_iter().find_map(|name| Some((name, *given.get(name)?)))
}

fn threshold(value: &Json, path: &str) -> Result<Probability, InvalidDecision> {
    let number = value.as_f64().and_then(|number| Probability::new(number).ok());
    number.ok_or_else(|| InvalidDecision::new(path, "must be a number from 0 to 1, or an object with one by decision"))
}

/// Returns the members of an object without two of one name.
fn distinct_members(json: &Json, path: &str) -> Result<Vec<(String, Json)>, InvalidDecision> {
    let members = json.members().ok_or_else(|| InvalidDecision::new(path, "must be an object"))?;
    let mut names = HashSet::with_capacity(members.len());
    if let Some((name, _)) = members.iter().find(|(name, _)| !names.insert(name)) {
        let name: String = name.chars().take(64).collect();
        return Err(InvalidDecision::new(path, format!("has the member {name:?} more than once")));
    }
    Ok(members)
}
