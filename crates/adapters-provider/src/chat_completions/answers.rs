//! Distributions -> answers in canonical form.

use domain::decision::{Question, QuestionKind};
use domain::json::Json;

use super::rounding::{expectation, in_units, largest, soften, text};
use crate::canonical::{Extras, choice, noul, score};
use crate::wire::MalformedAnswer;

/// How an answer was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Read off the log-probabilities of labels, which held this much of all probability; the least of all calls where
    /// there were several.
    Logprobs {
        /// From 0 to 1.
        label_mass: f64,
    },
    /// Stated by the model.
    Structured,
}

impl Method {
    /// The member `metadata` of an answer. Nothing that is made here is calibrated.
    pub fn metadata(self) -> Json {
        match self {
            Self::Logprobs { label_mass } => {
                let label_mass = in_units(&[label_mass, 1.0 - label_mass]).map_or(0, |units| units[0]);
                let label_mass = text(label_mass.into());
                let members = [("method", "\"logprobs\""), ("label_mass", &label_mass), ("calibrated", "false")];
                Json::object(members)
            }
            Self::Structured => Json::object([("method", "\"structured\""), ("calibrated", "false")]),
        }
    }
}

/// The answer to a question, from a weight an outcome. The distribution is softened by the temperature, in thousandths,
/// and rounded to four decimals that sum to 1; `choice` and `score` are those of the rounded distribution. There is no
/// `confidence`: a chat model has none of its own.
///
/// # Errors
/// Weights that are no distribution over the outcomes.
pub fn answer(
    question: &Question,
    weights: &[f64],
    temperature_milli: u32,
    method: Method,
) -> Result<Json, MalformedAnswer> {
    const NONE: MalformedAnswer = MalformedAnswer::Answer("its weights are no distribution");
    let units = in_units(&soften(weights, temperature_milli)).ok_or(NONE)?;
    let probabilities: Vec<String> = units.iter().map(|units| text((*units).into())).collect();
    let probabilities: Vec<&str> = probabilities.iter().map(String::as_str).collect();
    let metadata = method.metadata();
    let extras = Extras { confidence: None, metadata: Some(metadata.text()) };
    match &question.kind {
        QuestionKind::Noul { .. } if units.len() == 2 => Ok(noul(probabilities[0], extras)),
        QuestionKind::Choice { options } if units.len() == options.len() => {
            let chosen = largest(&units).and_then(|chosen| options.get(chosen)).ok_or(NONE)?;
            Ok(choice(options, &chosen.name, &probabilities, extras))
        }
        QuestionKind::Score { levels } if units.len() == levels.len() => {
            Ok(score(levels, &text(expectation(&units)), &probabilities, extras))
        }
        _ => Err(NONE),
    }
}
