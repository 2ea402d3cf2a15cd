//! Labelled answers of one group: accuracy, coverage and risk.

use std::cmp::Reverse;

use super::{Probability, Proportion};

/// An answer with a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelledAnswer {
    /// The score of the answer; see [`largest_probability`](super::largest_probability).
    pub score: Option<Probability>,
    /// True if the decision differs from the label; see [`Decision::is_error`](super::Decision::is_error).
    pub is_error: bool,
}

/// The selection of the answers that have labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelSelection {
    /// Drawn at random from the traffic.
    Random,
    /// Chosen by the people who sent the labels. They give no tested threshold.
    Volunteered,
}

/// Labelled answers of one group, all selected alike. They are kept in order of score, so that no figure depends on the
/// order in which they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledAnswers {
    selection: LabelSelection,
    /// The scores, highest first, each with true for an error.
    scored: Vec<(Probability, bool)>,
    /// The errors among answers without a score.
    unscored: Proportion,
}

/// A point of the risk-coverage curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RiskCoverage {
    /// The lowest accepted score.
    pub threshold: Probability,
    /// The accepted answers among all answers.
    pub coverage: Proportion,
    /// The errors among the accepted answers.
    pub risk: Proportion,
}

impl LabelledAnswers {
    /// Collects answers.
    pub fn new(selection: LabelSelection, answers: impl IntoIterator<Item = LabelledAnswer>) -> Self {
        let (mut scored, mut unscored) = (Vec::new(), Proportion { count: 0, total: 0 });
        for LabelledAnswer { score, is_error } in answers {
            match score {
                Some(score) => scored.push((score, is_error)),
                None => unscored = unscored.add(usize::from(is_error), 1),
            }
        }
        scored.sort_unstable_by_key(|answer| Reverse(*answer));
        Self { selection, scored, unscored }
    }

    /// Returns the selection of the answers.
    pub const fn selection(&self) -> LabelSelection {
        self.selection
    }

    /// Returns the scores, highest first, each with true for an error.
    pub fn scored(&self) -> &[(Probability, bool)] {
        &self.scored
    }

    /// Returns the number of answers.
    pub fn count(&self) -> usize {
        self.scored.len() + self.unscored.total
    }

    /// Returns the right answers among all answers.
    pub fn accuracy(&self) -> Proportion {
        let errors = count_errors(&self.scored).count + self.unscored.count;
        Proportion { count: self.count() - errors, total: self.count() }
    }

    /// Returns coverage and risk at a threshold.
    pub fn risk_coverage_at(&self, threshold: Probability) -> RiskCoverage {
        let accepted = self.scored.partition_point(|(score, _)| *score >= threshold);
        let risk = count_errors(&self.scored[..accepted]);
        RiskCoverage { threshold, coverage: Proportion { count: accepted, total: self.count() }, risk }
    }

    /// Returns the risk-coverage curve: a point for each score that occurs, highest first.
    pub fn risk_coverage_curve(&self) -> Vec<RiskCoverage> {
        let mut risk = Proportion { count: 0, total: 0 };
        let of_equal_scores = self.scored.chunk_by(|(left, _), (right, _)| left == right);
        let points = of_equal_scores.map(|answers| {
            let errors = count_errors(answers);
            risk = risk.add(errors.count, errors.total);
            let coverage = Proportion { count: risk.total, total: self.count() };
            RiskCoverage { threshold: answers[0].0, coverage, risk }
        });
        points.collect()
    }

    /// Returns the risk of the most confident fifth; answers with the score of the last of them are included.
    pub fn most_confident_fifth(&self) -> Proportion {
        let last = self.count().div_ceil(5).min(self.scored.len());
        let risk = self.scored[..last].last().map(|(score, _)| self.risk_coverage_at(*score).risk);
        risk.unwrap_or(Proportion { count: 0, total: 0 })
    }
}

/// Returns the errors among scored answers.
pub(super) fn count_errors(scored: &[(Probability, bool)]) -> Proportion {
    Proportion { count: scored.iter().filter(|(_, is_error)| *is_error).count(), total: scored.len() }
}
