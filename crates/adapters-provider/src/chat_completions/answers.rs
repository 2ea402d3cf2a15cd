//! Conversion of distributions to answers in canonical form.

use domain::json::Json;
use domain::question::{Question, QuestionKind};
use wires::canonical::{Extras, choice, noul, score};
use wires::provider::MalformedAnswer;

use super::rounding::{expectation, format_units, largest, soften, to_units};

/// The method that produced an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Read from the log-probabilities of labels.
    Logprobs {
        /// The probability of all labels together, from 0 to 1; the smallest one if there were several calls.
        label_mass: f64,
    },
    /// Stated by the model.
    Structured,
}

impl Method {
    /// Returns the member `metadata` of an answer. Answers of chat models are never calibrated.
    pub fn metadata(self) -> Json {
        match self {
            Self::Logprobs { label_mass } => {
                let label_mass = to_units(&[label_mass, 1.0 - label_mass]).map_or(0, |units| units[0]);
                let label_mass = format_units(label_mass.into());
                let members = [("method", "\"logprobs\""), ("label_mass", &label_mass), ("calibrated", "false")];
                Json::object(members)
            }
            Self::Structured => Json::object([("method", "\"structured\""), ("calibrated", "false")]),
        }
    }
}

/// Builds the answer to a question from one weight per outcome. Softens the distribution by the temperature (in
/// thousandths) and rounds it to four decimals that sum to 1. `choice` and `score` follow from the rounded
/// distribution. There is no `confidence`, because chat models report none.
///
/// # Errors
/// The weights are no distribution over the outcomes.
pub fn answer(
    question: &Question,
    weights: &[f64],
    temperature_milli: u32,
    method: Method,
) -> Result<Json, MalformedAnswer> {
    const NONE: MalformedAnswer = MalformedAnswer::Answer("its weights are no distribution");
    let units = to_units(&soften(weights, temperature_milli)).ok_or(NONE)?;
    let probabilities: Vec<String> = units.iter().map(|units| format_units((*units).into())).collect();
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
            Ok(score(levels, &format_units(expectation(&units)), &probabilities, extras))
        }
        _ => Err(NONE),
    }
}
