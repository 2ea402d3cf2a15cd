//! Probabilities, the decided values of answers, and their scores.

use std::cmp::Ordering;

use thiserror::Error;

use crate::question::{AnswerValue, argmax};

/// A number from 0 to 1. Its order is total.
#[derive(Debug, Clone, Copy)]
pub struct Probability(f64);

/// A number is no probability.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("{0} is not a probability: it must be a number from 0 to 1")]
pub struct InvalidProbability(f64);

impl Probability {
    /// One half.
    pub const HALF: Self = Self(0.5);

    /// Checks a number.
    ///
    /// # Errors
    /// The number is NaN, below 0 or above 1.
    pub fn new(number: f64) -> Result<Self, InvalidProbability> {
        // Adding zero turns -0 into 0.
        if (0.0..=1.0).contains(&number) { Ok(Self(number + 0.0)) } else { Err(InvalidProbability(number)) }
    }

    /// Returns the number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Ord for Probability {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Probability {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Probability {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Probability {}

/// The decided value of an answer. A label is the right decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Yes or no.
    Noul(bool),
    /// The index of the option.
    Choice(usize),
    /// The index of the level.
    Score(usize),
}

impl Decision {
    /// Returns the decision of an answer: yes from a probability of 0.5, the choice, or the first of the most probable
    /// levels. `None` for a refusal, a box, an unanswered question and a score without a distribution.
    pub fn from_answer(answer: &AnswerValue) -> Option<Self> {
        match answer {
            AnswerValue::Noul { probability } => Some(Self::Noul(*probability >= 0.5)),
            AnswerValue::Choice { chosen, .. } => Some(Self::Choice(*chosen)),
            AnswerValue::Score { probabilities, .. } => argmax(probabilities.as_deref()?).map(Self::Score),
            AnswerValue::Box | AnswerValue::Refusal | AnswerValue::Unanswered(_) => None,
        }
    }

    /// Returns true if the decision differs from the label; for levels, by more than `tolerance`.
    pub fn is_error(self, label: Self, tolerance: usize) -> bool {
        match (self, label) {
            (Self::Score(level), Self::Score(label)) => level.abs_diff(label) > tolerance,
            (decision, label) => decision != label,
        }
    }
}

/// Returns `1 - probability` without the floating-point noise of the last digit: 0.93 for 0.07.
pub fn complement(probability: f64) -> f64 {
    const SCALE: f64 = 1e15;
    ((1.0 - probability) * SCALE).round() / SCALE
}

/// Returns the score of an answer: the largest probability of its distribution. `None` for an answer without a
/// distribution, which no threshold accepts.
pub fn largest_probability(answer: &AnswerValue) -> Option<Probability> {
    let score = match answer {
        AnswerValue::Noul { probability } => probability.max(complement(*probability)),
        AnswerValue::Choice { probabilities, .. } | AnswerValue::Score { probabilities, .. } => {
            probabilities.iter().flatten().copied().reduce(f64::max)?
        }
        AnswerValue::Box | AnswerValue::Refusal | AnswerValue::Unanswered(_) => return None,
    };
    Probability::new(score).ok()
}
