//! The answers of a group, as far as its figures need them.

use std::collections::BTreeMap;

use crate::evidence::LabelSource;
use crate::money::Usd;
use crate::statistics::{LabelledAnswer, Probability};

/// The reason why an answer has no decision. It counts as an error, and no threshold accepts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingDecision {
    /// The model refused to answer.
    Refusal,
    /// There is no answer, or one that decides nothing: a box, or a level without a distribution.
    Unanswered,
}

/// An answer without its item and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TalliedAnswer {
    /// The score.
    pub score: Option<Probability>,
    /// True if the answer differs from its label, and the source of the label.
    pub label: Option<(bool, LabelSource)>,
    /// The reason if it has no decision.
    pub missing: Option<MissingDecision>,
    /// The cost of its request, if it is known.
    pub cost: Option<Usd>,
    /// The latency of its request in milliseconds, if it is known.
    pub latency_ms: Option<u64>,
}

/// Latencies in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// The median.
    pub median_ms: u64,
    /// The time that 95 % do not exceed.
    pub p95_ms: u64,
}

/// The answers of a group. Of an answer without a label it holds counts only.
#[derive(Debug, Default)]
pub(super) struct GroupTally {
    /// The number of answers.
    pub answers: usize,
    /// The refusals among them.
    pub refused: usize,
    /// The others without a decision.
    pub unanswered: usize,
    /// True if an answer has a score.
    pub has_scores: bool,
    /// The scores for the candidates of thresholds.
    pub candidates: Vec<Option<Probability>>,
    /// The number of used labels of each source.
    pub sources: BTreeMap<LabelSource, usize>,
    /// The labelled answers.
    pub labelled: Vec<LabelledAnswer>,
    /// The sum of the known costs in picodollars, and their number.
    costs: (i128, i128),
    /// The number of requests of each latency.
    latencies: BTreeMap<u64, usize>,
}

impl GroupTally {
    /// Adds an answer. The label of one for the candidates is used for nothing.
    pub fn add(&mut self, answer: TalliedAnswer, is_for_candidates: bool) {
        let TalliedAnswer { score, label, missing, cost, latency_ms } = answer;
        self.answers += 1;
        self.refused += usize::from(missing == Some(MissingDecision::Refusal));
        self.unanswered += usize::from(missing == Some(MissingDecision::Unanswered));
        self.has_scores |= score.is_some();
        if is_for_candidates {
            self.candidates.push(score);
        } else if let Some((is_error, source)) = label {
            self.labelled.push(LabelledAnswer { score, is_error });
            *self.sources.entry(source).or_default() += 1;
        }
        if let Some(cost) = cost {
            self.costs = (self.costs.0 + i128::from(cost.pico()), self.costs.1 + 1);
        }
        if let Some(latency) = latency_ms {
            *self.latencies.entry(latency).or_default() += 1;
        }
    }

    /// Returns the cost of 1,000 requests at the mean of the costs, rounded up.
    pub fn cost_per_1000(&self) -> Option<Usd> {
        let (sum, count) = self.costs;
        let thousand = sum.checked_mul(1000).filter(|_| count > 0)?;
        let rounding = i128::from(thousand.checked_rem_euclid(count)? > 0);
        i64::try_from(thousand.div_euclid(count) + rounding).ok().map(Usd::from_pico)
    }

    /// Returns the percentiles of the latencies; zero without any.
    pub fn latency(&self) -> Latency {
        let total: usize = self.latencies.values().sum();
        let of_rank = |per_cent: usize| {
            let mut rest = (total * per_cent).div_ceil(100);
            let at_rank = self.latencies.iter().find(|(_, count)| {
                let is_reached = rest <= **count;
                rest = rest.saturating_sub(**count);
                is_reached
            });
            at_rank.map(|(latency, _)| *latency).unwrap_or_default()
        };
        Latency { median_ms: of_rank(50), p95_ms: of_rank(95) }
    }
}
