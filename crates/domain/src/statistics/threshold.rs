//! The tested threshold: "Learn then Test" by fixed-sequence testing (Angelopoulos, Bates, Candès, Jordan, Lei 2021).

use std::cmp::Reverse;
use std::num::NonZeroU32;

use super::{LabelSelection, LabelledAnswers, Probability, Proportion, RiskCoverage, binomial_tail, figure};

/// The candidates: they accept 5, 10, … 100 % of the scores.
const CANDIDATES: usize = 20;

/// The first candidate is expected to accept so many labels, divided by the promised risk.
const FIRST_LABELS: f64 = 8.0;

/// The most labels that [`TooFewLabels::needed`] considers.
const MAX_NEEDED: usize = 1_000_000;

/// The promise of a threshold: the risk is at most alpha, and a threshold that breaks this is found with probability
/// delta at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Promise {
    alpha: Probability,
    delta: Probability,
}

impl Promise {
    /// Creates the promise of one question, if `questions` share the probability delta. `None` if alpha or delta is 0 or
    /// 1.
    pub fn new(alpha: Probability, delta: Probability, questions: NonZeroU32) -> Option<Self> {
        let is_open = |probability: Probability| probability.get() > 0.0 && probability.get() < 1.0;
        let shared = Probability::new(delta.get() / f64::from(questions.get())).ok()?;
        (is_open(alpha) && is_open(delta) && is_open(shared)).then_some(Self { alpha, delta: shared })
    }

    /// Returns the promised risk.
    pub const fn alpha(&self) -> Probability {
        self.alpha
    }

    /// Returns the probability of a broken promise for one question.
    pub const fn delta(&self) -> Probability {
        self.delta
    }

    /// Returns the smallest number of accepted labels that can pass the test: all of them without an error.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and the cast saturates")]
    pub fn minimum_labels(&self) -> usize {
        (self.delta.get().ln() / (-self.alpha.get()).ln_1p()).ceil() as usize
    }

    /// Returns the number of accepted labels that are expected of a candidate that is tested.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and the cast saturates")]
    pub fn labels_of_a_test(&self) -> usize {
        (FIRST_LABELS / self.alpha.get()).ceil() as usize
    }

    /// Returns the probability of so few errors if the risk is alpha.
    fn p_value(&self, risk: Proportion) -> f64 {
        binomial_tail(risk.total, self.alpha, risk.count)
    }

    fn holds_for(&self, risk: Proportion) -> bool {
        self.p_value(risk) <= self.delta.get()
    }
}

/// Candidates for a threshold, strictest first. They are chosen from scores without labels, of answers that are not among
/// the tested ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThresholdCandidates(Vec<Candidate>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Candidate {
    threshold: Probability,
    /// The expected coverage.
    coverage: Proportion,
}

impl ThresholdCandidates {
    /// Chooses the thresholds that accept 5, 10, … 100 % of the answers with these scores; an answer without a score is
    /// `None`. Returns `None` if no answer has a score.
    pub fn from_scores(scores: impl IntoIterator<Item = Option<Probability>>) -> Option<Self> {
        // Answers without a score are last.
        let mut scores: Vec<Option<Probability>> = scores.into_iter().collect();
        scores.sort_unstable_by_key(|score| Reverse(*score));
        let total = scores.len();
        let thresholds = (1..=CANDIDATES).filter_map(|part| {
            let threshold = (*scores.get((total * part).div_ceil(CANDIDATES).checked_sub(1)?)?)?;
            let accepted = scores.partition_point(|score| *score >= Some(threshold));
            Some(Candidate { threshold, coverage: Proportion { count: accepted, total } })
        });
        let mut candidates: Vec<Candidate> = thresholds.collect();
        candidates.dedup();
        (!candidates.is_empty()).then_some(Self(candidates))
    }

    /// Returns the candidates that are tested with so many labels: from the first that is expected to accept 8 / alpha of
    /// them, at least the last one.
    fn tested(&self, labels: usize, alpha: Probability) -> &[Candidate] {
        let expected = |candidate: &Candidate| candidate.coverage.share().unwrap_or_default() * figure(labels);
        let too_small = self.0.partition_point(|candidate| expected(candidate) < FIRST_LABELS / alpha.get());
        &self.0[too_small.min(self.0.len().saturating_sub(1))..]
    }
}

/// The answer to the question for a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ThresholdFinding {
    /// The promise was tested.
    Tested(TestedThreshold),
    /// More labels can show a threshold, or that there is none.
    TooFewLabels(TooFewLabels),
    /// The labels show that the risk exceeds alpha: so do the lower limits for the first candidate and for the most
    /// confident fifth.
    NoThreshold {
        /// The errors in the most confident fifth.
        most_confident_fifth: Proportion,
    },
    /// People chose the labels, so the labels say nothing about the traffic.
    Volunteered,
}

impl ThresholdFinding {
    /// Returns the finding without any tested label.
    pub fn without_labels(promise: &Promise) -> Self {
        Self::TooFewLabels(TooFewLabels { risk: Proportion::default(), first_coverage: None, promise: *promise })
    }
}

/// A threshold that passed the test. The promise holds if the labels are a random sample of the traffic on which the
/// threshold will be used, and are used for one test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestedThreshold {
    /// The threshold, with coverage and risk on the labels.
    pub point: RiskCoverage,
    /// The p-value of its test.
    pub p_value: f64,
}

/// Labels that are too few for a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TooFewLabels {
    /// The errors among the accepted answers with the lower error rate: of the first candidate, or of the most confident
    /// fifth.
    pub risk: Proportion,
    /// The coverage of the first tested candidate, with which the test ended, if stricter ones were not tested because
    /// they are expected to accept fewer than [`Promise::labels_of_a_test`] labels.
    pub first_coverage: Option<Proportion>,
    promise: Promise,
}

impl TooFewLabels {
    /// Returns the smallest number of accepted labels that can pass the test: all of them without an error.
    pub fn minimum(&self) -> usize {
        self.promise.minimum_labels()
    }

    /// Returns how many further accepted labels pass the test at the present error rate; the labels so far are used.
    /// `None` for an error rate of alpha or more, or more than a million.
    pub fn needed(&self) -> Option<usize> {
        let Proportion { count: errors, total } = self.risk;
        if total == 0 || self.risk.share()? >= self.promise.alpha.get() {
            return None;
        }
        let holds_for = |labels: usize| {
            let errors = (labels.saturating_mul(errors)).div_ceil(total);
            self.promise.holds_for(Proportion { count: errors, total: labels })
        };
        // Among totals with the same number of errors the p-value falls, so the last of them decides.
        let mut first = self.minimum();
        while first <= MAX_NEEDED {
            let last = match errors {
                0 => first,
                _ => (first * errors).div_ceil(total) * total / errors,
            };
            if holds_for(last) {
                return (first..=last).find(|labels| holds_for(*labels));
            }
            first = last + 1;
        }
        None
    }
}

/// Finds the lowest threshold that keeps the promise. The candidates are tested in their order by the exact binomial test;
/// the first that fails ends the sequence.
pub fn find_threshold(
    promise: &Promise,
    candidates: &ThresholdCandidates,
    answers: &LabelledAnswers,
) -> ThresholdFinding {
    if answers.selection() == LabelSelection::Volunteered {
        return ThresholdFinding::Volunteered;
    }
    let tested = candidates.tested(answers.count(), promise.alpha);
    let points = tested.iter().map(|candidate| answers.risk_coverage_at(candidate.threshold));
    let passed = points.take_while(|point| promise.holds_for(point.risk)).last();
    if let Some(point) = passed {
        return ThresholdFinding::Tested(TestedThreshold { point, p_value: promise.p_value(point.risk) });
    }
    let most_confident_fifth = answers.most_confident_fifth();
    let RiskCoverage { risk: first, coverage, .. } = answers.risk_coverage_at(tested[0].threshold);
    let rate = |risk: &Proportion| risk.share().unwrap_or(1.0);
    if [first, most_confident_fifth].iter().all(|risk| risk.interval().lower > promise.alpha.get()) {
        return ThresholdFinding::NoThreshold { most_confident_fifth };
    }
    let risk = if rate(&most_confident_fifth) < rate(&first) { most_confident_fifth } else { first };
    let first_coverage = (tested.len() < candidates.0.len()).then_some(coverage);
    ThresholdFinding::TooFewLabels(TooFewLabels { risk, first_coverage, promise: *promise })
}
