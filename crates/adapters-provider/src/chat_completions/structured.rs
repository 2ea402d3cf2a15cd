//! The method `structured`: the schema of one JSON object for all questions, and its conversion to one distribution per
//! question.

use std::collections::HashMap;

use domain::json::{Json, JsonText};
use domain::question::{Question, QuestionKind};
use wires::chat::provider_request::RequestedOutput;
use wires::provider::{MalformedAnswer, Object, as_text, is_null, number};

use super::prompt::outcomes;

const NOT_STATED: MalformedAnswer = MalformedAnswer::Answer("its probabilities are not stated");
const NO_PROBABILITY: MalformedAnswer = MalformedAnswer::Answer("what it states is no probability");

/// Reads one weight per outcome for each question, in order; yes and no for yes-or-no questions. Weights are not
/// negative and at least one is positive, but they need not sum to 1. The object may be in a code fence, between
/// sentences, or behind reasoning.
///
/// # Errors
/// The object, a question or a valid probability is missing.
pub fn read(content: &str, questions: &[Question]) -> Result<Vec<Vec<f64>>, MalformedAnswer> {
    let content = as_text(content.as_bytes())?;
    let object = object(content).ok_or(MalformedAnswer::NoAnswers)?;
    let stated = by_key(&object);
    let answer = |(place, question): (usize, &Question)| {
        let stated = *stated.get(format!("q{place}").as_str()).ok_or(NOT_STATED)?;
        let stated = stated.ok_or(MalformedAnswer::NotOfItsForm)?;
        match &question.kind {
            QuestionKind::Noul { .. } => {
                let yes = weight(stated)?;
                if yes > 1.0 { Err(NO_PROBABILITY) } else { Ok(vec![yes, 1.0 - yes]) }
            }
            kind => options(stated, outcomes(kind)),
        }
    };
    questions.iter().enumerate().map(answer).collect()
}

/// Maps each key to its value, omitting nulls; `None` for duplicate keys. A map, because a body may hold many
/// questions.
fn by_key<'o>(object: &'o Object<'_>) -> HashMap<&'o str, Option<JsonText<'o>>> {
    let mut stated = HashMap::with_capacity(object.members().len());
    for (key, value) in object.members() {
        stated.entry(&**key).and_modify(|value| *value = None).or_insert(Some(*value));
    }
    stated.retain(|_, value| value.is_none_or(|value| !is_null(value)));
    stated
}

/// Finds the object in a text: the whole text, or from the first brace to the last one.
fn object(content: &str) -> Option<Object<'_>> {
    let said = content.rsplit_once("</think>").map_or(content, |(_, said)| said).trim();
    Object::parse(said).or_else(|| {
        let (from, to) = (said.find('{')?, said.rfind('}')?);
        Object::parse(said.get(from..=to)?)
    })
}

/// Reads the weights of exactly `count` options, each present once.
fn options(stated: JsonText<'_>, count: usize) -> Result<Vec<f64>, MalformedAnswer> {
    let stated = Object::of(stated).ok_or(NOT_STATED)?;
    if stated.members().len() != count {
        return Err(MalformedAnswer::Answer("its distribution is not over what was asked"));
    }
    let weights: Vec<f64> = (0..count)
        .map(|option| weight(stated.get(&format!("o{option}"))?.ok_or(NOT_STATED)?))
        .collect::<Result<_, _>>()?;
    if weights.iter().any(|weight| *weight > 0.0) {
        Ok(weights)
    } else {
        Err(MalformedAnswer::Answer("all of its probabilities are 0"))
    }
}

fn weight(value: JsonText<'_>) -> Result<f64, MalformedAnswer> {
    number(value).map(|(_, number)| number).filter(|number| *number >= 0.0).ok_or(NO_PROBABILITY)
}

/// Token budget for models whose reasoning cannot be disabled.
const REASONING_TOKENS: usize = 4096;
/// Tokens of one probability, with its key and punctuation.
const TOKENS_PER_PROBABILITY: usize = 16;

/// Builds the output for all questions: one object of probabilities.
pub fn probabilities_output(questions: &[Question]) -> RequestedOutput {
    let number = Json::object([("type", "\"number\"")]);
    let members: Vec<(String, Json)> = questions
        .iter()
        .enumerate()
        .map(|(place, question)| {
            let schema = match &question.kind {
                QuestionKind::Noul { .. } => number.clone(),
                kind => {
                    let options = (0..outcomes(kind)).map(|option| (format!("o{option}"), number.clone()));
                    object_schema(&options.collect::<Vec<_>>())
                }
            };
            (format!("q{place}"), schema)
        })
        .collect();
    let stated: usize = questions.iter().map(|question| outcomes(&question.kind) + 1).sum();
    RequestedOutput::Object {
        schema: object_schema(&members),
        max_tokens: REASONING_TOKENS + TOKENS_PER_PROBABILITY * stated,
    }
}

/// Builds the schema of an object with exactly these members.
fn object_schema(members: &[(String, Json)]) -> Json {
    let properties = Json::object(members.iter().map(|(name, schema)| (name.as_str(), schema.text())));
    let names: Vec<Json> = members.iter().map(|(name, _)| Json::string(name)).collect();
    let required = Json::array(names.iter().map(Json::text));
    Json::object([
        ("type", "\"object\""),
        ("properties", properties.text()),
        ("required", required.text()),
        ("additionalProperties", "false"),
    ])
}
