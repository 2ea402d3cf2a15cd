//! The members of an answer, read one by one.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::AnswerRules;
use crate::decision::expectation;
use crate::json::{Json, JsonKind};

/// Arithmetic on floats is not exact; this much is forgiven beyond rounding.
const EPSILON: f64 = 1e-6;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as filters pass it")]
pub(super) fn is_probability(number: &f64) -> bool {
    (0.0..=1.0).contains(number)
}

/// The members of one answer, each once.
pub(super) struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    pub(super) fn of(json: &'a Json) -> Result<Self, &'static str> {
        let members = json.raw_members().ok_or("an answer is no object")?;
        let mut names = HashSet::new();
        let twice = if members.len() > 16 {
            !members.iter().all(|(name, _)| names.insert(name.as_str()))
        } else {
            members.iter().enumerate().any(|(place, (name, _))| members[..place].iter().any(|(other, _)| other == name))
        };
        if twice {
            return Err("an answer has a member twice");
        }
        Ok(Self(members))
    }

    pub(super) fn all(&self) -> &[(String, &'a RawValue)] {
        &self.0
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(member, _)| member == name).map(|(_, value)| *value)
    }

    pub(super) fn string(&self, name: &str) -> Option<String> {
        self.get(name).and_then(|value| serde_json::from_str(value.get()).ok())
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.get(name).and_then(number)
    }

    /// Absent and null are the same.
    fn present(&self, name: &str) -> Option<&'a RawValue> {
        self.get(name).filter(|value| value.get() != "null")
    }

    pub(super) fn confidence(&self) -> Result<Option<f64>, &'static str> {
        self.present("confidence")
            .map(|value| number(value).filter(is_probability).ok_or("an answer's confidence is no number from 0 to 1"))
            .transpose()
    }

    /// A probability for each of `names`, in their order.
    pub(super) fn distribution(&self, names: &[&str], rules: AnswerRules) -> Result<Option<Vec<f64>>, &'static str> {
        let Some(given) = self.present("probabilities") else { return Ok(None) };
        let given = Json::from(given);
        let members = given.raw_members().ok_or("an answer's probabilities are no object")?;
        if members.len() != names.len() {
            return Err("an answer's distribution is not over what was asked");
        }
        let mut places: Option<HashMap<&str, usize>> = None;
        let mut probabilities = vec![f64::NAN; names.len()];
        for (place, (name, value)) in members.iter().enumerate() {
            // Most come in the order that was asked.
            let place = if names[place] == name.as_str() {
                place
            } else {
                let index = || names.iter().enumerate().map(|(place, name)| (*name, place)).collect();
                let found = places.get_or_insert_with(index).get(name.as_str());
                *found.ok_or("an answer's distribution is not over what was asked")?
            };
            probabilities[place] =
                number(value).filter(is_probability).ok_or("an answer's distribution holds what is no probability")?;
        }
        if probabilities.iter().any(|probability| probability.is_nan()) {
            return Err("an answer's distribution names an outcome twice");
        }
        let sum: f64 = probabilities.iter().sum();
        if (sum - 1.0).abs() > as_number(names.len()) * rules.half_step() + EPSILON {
            return Err("an answer's distribution does not sum to 1");
        }
        Ok(Some(probabilities))
    }

    pub(super) fn score(
        &self,
        levels: usize,
        probabilities: Option<&[f64]>,
        rules: AnswerRules,
    ) -> Result<f64, &'static str> {
        let top = as_number(levels.saturating_sub(1));
        let score = self.number("score").filter(|score| (0.0..=top).contains(score));
        let score = score.ok_or("a score answer is off the scale")?;
        if let Some(probabilities) = probabilities {
            // Each level's rounding weighs as much as the level, and the score is rounded itself.
            let slack = rules.half_step() * (1.0 + top * (top + 1.0) / 2.0) + EPSILON;
            if (score - expectation(probabilities)).abs() > slack {
                return Err("a score answer is not the expectation of its distribution");
            }
        }
        let legend = self.present("legend").map(|legend| Json::from(legend).kind());
        if !matches!(legend, None | Some(JsonKind::Object)) {
            return Err("an answer's legend is no object");
        }
        Ok(score)
    }

    pub(super) fn rectangle(&self) -> Result<(), &'static str> {
        let rectangle = self.get("box").map(Json::from).ok_or("a box answer has no box")?;
        let sides = Members::of(&rectangle).map_err(|_| "a box answer has no box")?;
        let inside =
            |name: &str| sides.number(name).filter(is_probability).ok_or("a box answer lies outside the image");
        let (top, bottom) = (inside("top")?, inside("bottom")?);
        let (left, right) = (inside("left")?, inside("right")?);
        if top <= bottom && left <= right { Ok(()) } else { Err("a box answer is turned inside out") }
    }
}

/// A finite number; JSON knows no other, but `1e999` becomes infinite when read.
fn number(value: &RawValue) -> Option<f64> {
    let text = value.get();
    let is_number = text.as_bytes().first().is_some_and(|first| first.is_ascii_digit() || *first == b'-');
    is_number.then(|| text.parse().ok()).flatten().filter(|number: &f64| number.is_finite())
}

#[expect(clippy::cast_precision_loss, reason = "at most 255 outcomes")]
pub(super) fn as_number(count: usize) -> f64 {
    count as f64
}
