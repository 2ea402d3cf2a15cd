//! Scores as probabilities: how well they predict that a decision is right.

use super::{LabelledAnswers, Probability, Proportion, figure};

/// The bins of a reliability diagram. Bins that equal scores fill are merged.
const BINS: usize = 10;

/// The draws of outcomes for the reference of the calibration error.
const DRAWS: usize = 1000;

/// The lowest and the highest probability in the log loss: a wrong answer with score 1 would make it infinite.
const CLIP: (f64, f64) = (0.001, 0.999);

/// A bin of the reliability diagram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReliabilityBin {
    /// The mean of the scores.
    pub mean_score: f64,
    /// The right answers among all answers of the bin.
    pub accuracy: Proportion,
}

/// The expected calibration error (ECE) with its reference: the errors that calibrated scores of this size would show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibrationError {
    /// The mean distance of score and accuracy over the bins of the reliability diagram, weighted by their answers.
    pub observed: f64,
    /// The mean of the reference.
    pub reference_mean: f64,
    /// The value that 95 % of the reference do not exceed.
    pub reference_quantile: f64,
}

impl CalibrationError {
    /// Returns false if the scores are not distinguishable from calibrated ones.
    pub fn is_distinguishable(&self) -> bool {
        self.observed > self.reference_quantile
    }
}

impl LabelledAnswers {
    /// Returns the Brier score of the scored answers: the mean squared difference of score and outcome, where 1 is right.
    pub fn brier_score(&self) -> Option<f64> {
        self.mean_loss(|score, is_error| if is_error { score.powi(2) } else { (1.0 - score).powi(2) })
    }

    /// Returns the log loss of the scored answers; scores are clipped to 0.001 and 0.999.
    pub fn log_loss(&self) -> Option<f64> {
        self.mean_loss(|score, is_error| {
            let score = score.clamp(CLIP.0, CLIP.1);
            -(if is_error { 1.0 - score } else { score }).ln()
        })
    }

    fn mean_loss(&self, loss: impl Fn(f64, bool) -> f64) -> Option<f64> {
        let losses = self.scored().iter().map(|(score, is_error)| loss(score.get(), *is_error));
        (!self.scored().is_empty()).then(|| losses.sum::<f64>() / figure(self.scored().len()))
    }

    /// Returns the reliability diagram: up to 10 bins of equal mass, lowest scores first. Equal scores share a bin.
    pub fn reliability_diagram(&self) -> Vec<ReliabilityBin> {
        let bins = self.bins().into_iter().map(|bin| ReliabilityBin {
            mean_score: score_sum(bin) / figure(bin.len()),
            accuracy: Proportion { count: bin.iter().filter(|(_, is_error)| !is_error).count(), total: bin.len() },
        });
        bins.collect()
    }

    /// Returns the calibration error with its reference: 1,000 draws of outcomes with the scores as probabilities. The
    /// same seed gives the same draws. `None` without scores.
    pub fn calibration_error(&self, seed: u64) -> Option<CalibrationError> {
        let bins: Vec<_> = self.bins().into_iter().map(|bin| (bin, score_sum(bin))).collect();
        let total = (!bins.is_empty()).then(|| figure(self.scored().len()))?;
        let error_of = |is_right: &mut dyn FnMut(&(Probability, bool)) -> bool| {
            let distances = bins.iter().map(|(bin, scores)| {
                let right = bin.iter().filter(|answer| is_right(answer)).count();
                (scores - figure(right)).abs()
            });
            distances.sum::<f64>() / total
        };
        let mut draws = Draws::new(seed);
        let mut reference = [0.0; DRAWS];
        reference.fill_with(|| error_of(&mut |(score, _)| draws.next_number() < score.get()));
        reference.sort_unstable_by(f64::total_cmp);
        Some(CalibrationError {
            observed: error_of(&mut |(_, is_error)| !is_error),
            reference_mean: reference.iter().sum::<f64>() / figure(DRAWS),
            reference_quantile: reference[DRAWS * 95 / 100 - 1],
        })
    }

    /// Splits the scored answers at the deciles of their scores, lowest first. A score equal to a decile is below it.
    fn bins(&self) -> Vec<&[(Probability, bool)]> {
        let mut rest = self.scored();
        let count = rest.len();
        let mut bins = Vec::new();
        for decile in 1..=BINS {
            let Some(last) = count.checked_sub(1) else { break };
            // The scores are in descending order.
            let edge = self.scored()[last - last * decile / BINS].0;
            let (above, bin) = rest.split_at(rest.partition_point(|(score, _)| *score > edge));
            rest = above;
            bins.extend((!bin.is_empty()).then_some(bin));
        }
        bins
    }
}

fn score_sum(bin: &[(Probability, bool)]) -> f64 {
    bin.iter().map(|(score, _)| score.get()).sum()
}

/// A repeatable sequence of numbers from 0 to below 1: `SplitMix64` (Steele, Lea and Flood, 2014).
pub struct Draws(u64);

impl Draws {
    /// Starts a sequence.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    #[expect(clippy::cast_precision_loss, reason = "the upper 53 bits are exact")]
    pub fn next_number(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
