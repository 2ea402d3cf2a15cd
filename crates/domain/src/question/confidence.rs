//! The computed `confidence`, defined like that of System One.
//!
//! The formulas are published in the vendor's own adapter package (`system-one-adapter` 0.2.1); SGLang uses them as
//! well. They do not calibrate: two models with equal confidence can have different error rates.

/// Returns how far the likeliest of `n` options stands out from chance: `(n·p_max - 1) / (n - 1)`, between 0 and 1; 1
/// for a single option.
pub fn choice_confidence(probabilities: &[f64]) -> f64 {
    let n = count(probabilities);
    if probabilities.len() < 2 {
        return 1.0;
    }
    let most = probabilities.iter().copied().fold(0.0, f64::max);
    ((n * most - 1.0) / (n - 1.0)).clamp(0.0, 1.0)
}

/// Returns how narrow the distribution over a scale is: `1 - E|level - mode| / U`, between 0 and 1. `U` is the mean
/// distance of the levels from the middle of the scale. Returns 1 for a single level; the first of tied modes counts.
pub fn score_confidence(probabilities: &[f64]) -> f64 {
    let n = count(probabilities);
    if probabilities.len() < 2 {
        return 1.0;
    }
    let mode = argmax(probabilities).map_or(0.0, as_number);
    let middle = (n - 1.0) / 2.0;
    let (mut distance, mut spread) = (0.0, 0.0);
    for (level, probability) in probabilities.iter().enumerate() {
        let level = as_number(level);
        distance += probability * (level - mode).abs();
        spread += (level - middle).abs();
    }
    (1.0 - distance / (spread / n)).clamp(0.0, 1.0)
}

/// Returns the index of the largest number, the first one of ties; `None` for an empty slice.
pub fn argmax(probabilities: &[f64]) -> Option<usize> {
    let largest = probabilities.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    probabilities.iter().position(|probability| *probability >= largest)
}

/// Returns the expected level of a scale: the sum of `level · p`.
pub fn expectation(probabilities: &[f64]) -> f64 {
    probabilities.iter().enumerate().map(|(level, probability)| as_number(level) * probability).sum()
}

fn count(probabilities: &[f64]) -> f64 {
    as_number(probabilities.len())
}

#[expect(clippy::cast_precision_loss, reason = "a distribution has at most 255 entries")]
fn as_number(count: usize) -> f64 {
    count as f64
}

named_enum! {
    /// The source of the number in `confidence`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ConfidenceSource {
        /// The provider's value, which follows the formula of System One.
        SystemOne = "system-one",
        /// The value computed from the distribution by the formula of System One. The provider's value becomes
        /// `native_confidence`.
        Computed = "computed",
        /// The provider's value, unchanged and with the provider's meaning.
        Native = "native",
    }
}

/// The rules for reading the answers of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerRules {
    /// The number of decimals that numbers are rounded to.
    pub decimals: u32,
    /// The source of `confidence`.
    pub confidence: ConfidenceSource,
}

impl AnswerRules {
    /// Returns half of the last decimal: the highest rounding error of one number.
    pub(super) fn half_step(self) -> f64 {
        0.5 * 10_f64.powi(-i32::try_from(self.decimals.min(15)).unwrap_or(15))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn choice_confidence_is_rescaled_from_chance_to_certainty() {
        assert!(close(choice_confidence(&[0.25; 4]), 0.0));
        assert!(close(choice_confidence(&[0.0, 1.0]), 1.0));
        assert!(close(choice_confidence(&[0.74, 0.24, 0.02]), 0.61));
        // Four options, 0.33 on top: reported as 0.10 by the vendor.
        assert!(close(choice_confidence(&[0.33, 0.23, 0.22, 0.22]), 0.32 / 3.0));
        assert!(close(choice_confidence(&[1.0]), 1.0));
    }

    #[test]
    fn score_confidence_measures_spread() {
        assert!(close(score_confidence(&[0.0, 1.0, 0.0]), 1.0));
        // Mode 1, distance 0.44, U = 2/3.
        assert!(close(score_confidence(&[0.06, 0.56, 0.38]), 1.0 - 0.44 / (2.0 / 3.0)));
        assert!(close(score_confidence(&[0.5, 0.0, 0.5]), 0.0));
        assert!(close(score_confidence(&[1.0]), 1.0));
    }

    #[test]
    fn argmax_returns_first_of_ties() {
        assert_eq!(argmax(&[0.2, 0.4, 0.4]), Some(1));
        assert_eq!(argmax(&[]), None);
    }

    proptest! {
        #[test]
        fn confidence_is_between_zero_and_one(weights in prop::collection::vec(0.0_f64..1.0, 1..50)) {
            let sum: f64 = weights.iter().sum::<f64>().max(1e-12);
            let probabilities: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
            for confidence in [choice_confidence(&probabilities), score_confidence(&probabilities)] {
                prop_assert!((0.0..=1.0).contains(&confidence));
            }
        }
    }
}
