//! Reads the members of an answer.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::json::{JsonKind, JsonPart, Member, first_duplicate};
use crate::question::{AnswerRules, ChoiceOption, expectation};

/// The tolerance for float arithmetic, in addition to rounding.
const EPSILON: f64 = 1e-6;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as filters pass it")]
pub(super) fn is_probability(number: &f64) -> bool {
    (0.0..=1.0).contains(number)
}

/// The outcomes of a distribution.
#[derive(Clone, Copy)]
pub(super) enum Outcomes<'q> {
    /// The options of a choice, by name.
    Options(&'q [ChoiceOption]),
    /// The number of levels of a score, numbered from 0.
    Levels(usize),
}

impl<'q> Outcomes<'q> {
    fn count(self) -> usize {
        match self {
            Self::Options(options) => options.len(),
            Self::Levels(count) => count,
        }
    }

    /// Returns true if the outcome at this index exists and has this name.
    fn is_named(self, place: usize, name: &str) -> bool {
        match self {
            Self::Options(options) => options.get(place).is_some_and(|option| option.name == name),
            Self::Levels(count) => place < count && parse_level(name) == Some(place),
        }
    }

    /// Maps option names to indexes. It is empty for levels, whose names are their indexes.
    fn index_by_name(self) -> HashMap<&'q str, usize> {
        match self {
            Self::Options(options) => {
                options.iter().enumerate().map(|(place, option)| (option.name.as_str(), place)).collect()
            }
            Self::Levels(_) => HashMap::new(),
        }
    }

    /// Returns the index of the outcome with this name.
    fn index_of(self, index: &HashMap<&'q str, usize>, name: &str) -> Option<usize> {
        match self {
            Self::Options(_) => index.get(name).copied(),
            Self::Levels(count) => parse_level(name).filter(|level| *level < count),
        }
    }
}

/// Parses the name of a level: a decimal number without leading zeros.
fn parse_level(name: &str) -> Option<usize> {
    let is_written_so = name == "0" || (!name.starts_with(['0', '+']));
    is_written_so.then(|| name.parse().ok()).flatten()
}

/// The members of one answer, without duplicates.
pub(super) struct Members<'a>(Vec<Member<'a>>);

impl<'a> Members<'a> {
    pub(super) fn read(answer: JsonPart<'a>) -> Result<Self, &'static str> {
        let members = answer.members().ok_or("an answer is not an object")?;
        if first_duplicate(&members).is_some() {
            return Err("an answer has a member twice");
        }
        Ok(Self(members))
    }

    pub(super) fn all(&self) -> &[Member<'a>] {
        &self.0
    }

    pub(super) fn get(&self, name: &str) -> Option<JsonPart<'a>> {
        self.0.iter().find(|member| member.name == name).map(|member| member.value)
    }

    pub(super) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(JsonPart::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.get(name).and_then(number)
    }

    /// Returns a member that is present and not null.
    fn present(&self, name: &str) -> Option<JsonPart<'a>> {
        self.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn confidence(&self) -> Result<Option<f64>, &'static str> {
        self.present("confidence")
            .map(|value| {
                number(value).filter(is_probability).ok_or("an answer's confidence is not a number from 0 to 1")
            })
            .transpose()
    }

    /// Returns the probability of each outcome, in their order.
    pub(super) fn distribution(
        &self,
        outcomes: Outcomes<'_>,
        rules: AnswerRules,
    ) -> Result<Option<Vec<f64>>, &'static str> {
        const NO_OBJECT: &str = "an answer's probabilities are not an object";
        const OUTCOMES_MISMATCH: &str = "an answer's distribution is not over what was asked";
        let Some(given) = self.present("probabilities") else { return Ok(None) };
        let (mut index, mut count) = (None, 0);
        let mut probabilities = vec![f64::NAN; outcomes.count()];
        for member in given.iter_members().ok_or(NO_OBJECT)? {
            let Member { name, value } = member.ok_or(NO_OBJECT)?;
            // Most providers keep the order of the question, which saves the map.
            let place = if outcomes.is_named(count, &name) {
                count
            } else {
                let found = outcomes.index_of(index.get_or_insert_with(|| outcomes.index_by_name()), &name);
                found.ok_or(OUTCOMES_MISMATCH)?
            };
            probabilities[place] = number(value)
                .filter(is_probability)
                .ok_or("an answer's distribution has a value that is not a probability")?;
            count += 1;
        }
        if count != probabilities.len() {
            return Err(OUTCOMES_MISMATCH);
        }
        if probabilities.iter().any(|probability| probability.is_nan()) {
            return Err("an answer's distribution names an outcome twice");
        }
        let sum: f64 = probabilities.iter().sum();
        if (sum - 1.0).abs() > as_number(count) * rules.half_step() + EPSILON {
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
        let score = score.ok_or("a score answer is outside the scale")?;
        if let Some(probabilities) = probabilities {
            // The rounding error of each level is weighted with the level, and the score itself is rounded.
            let slack = rules.half_step() * (1.0 + top * (top + 1.0) / 2.0) + EPSILON;
            if (score - expectation(probabilities)).abs() > slack {
                return Err("a score answer is not the expectation of its distribution");
            }
        }
        let legend = self.present("legend").map(JsonPart::kind);
        if !matches!(legend, None | Some(JsonKind::Object)) {
            return Err("an answer's legend is not an object");
        }
        Ok(score)
    }

    pub(super) fn check_box(&self) -> Result<(), &'static str> {
        let rectangle = self.get("box").ok_or("a box answer has no box")?;
        let sides = Members::read(rectangle).map_err(|_| "a box answer has no box")?;
        let inside = |name: &str| sides.number(name).filter(is_probability).ok_or("a box answer is outside the image");
        let (top, bottom) = (inside("top")?, inside("bottom")?);
        let (left, right) = (inside("left")?, inside("right")?);
        if top <= bottom && left <= right { Ok(()) } else { Err("a box answer has inverted edges") }
    }
}

/// Returns a finite number. JSON has no infinity, but `1e999` is parsed as infinite.
fn number(value: JsonPart<'_>) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

#[expect(clippy::cast_precision_loss, reason = "at most 255 outcomes")]
pub(super) fn as_number(count: usize) -> f64 {
    count as f64
}
