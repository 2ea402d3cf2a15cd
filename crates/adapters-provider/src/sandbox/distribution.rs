//! Probabilities in hundredths, so that two decimals sum to exactly 1.

/// A distribution over 1 to 255 outcomes, in hundredths that sum to 100.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Distribution(Vec<u32>);

impl Distribution {
    /// Builds the distribution from the word overlap of each outcome: each further word multiplies the weight by e.
    ///
    /// Rounds hundredths down and adds the difference to the largest remainders, the first on ties.
    pub(super) fn of(overlaps: &[usize]) -> Self {
        let most = overlaps.iter().copied().max().unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "counts of words are far below 2^52")]
        let weights: Vec<f64> = overlaps.iter().map(|overlap| (-((most - overlap) as f64)).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let shares: Vec<f64> = weights.iter().map(|weight| weight / sum * 100.0).collect();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shares lie in 0 to 100")]
        let mut cents: Vec<u32> = shares.iter().map(|share| share.floor() as u32).collect();
        let remainder = |index: usize| shares[index] - shares[index].floor();
        let mut by_remainder: Vec<usize> = (0..shares.len()).collect();
        by_remainder.sort_by(|a, b| remainder(*b).total_cmp(&remainder(*a)));
        let missing = 100_u32.saturating_sub(cents.iter().sum());
        for index in by_remainder.into_iter().cycle().take(missing as usize) {
            cents[index] += 1;
        }
        Self(cents)
    }

    /// Returns the probability of each outcome, in hundredths.
    pub(super) fn hundredths(&self) -> &[u32] {
        &self.0
    }

    /// Returns the likeliest outcome; the first on ties.
    pub(super) fn mode(&self) -> usize {
        (0..self.0.len()).rev().max_by_key(|&index| self.0[index]).unwrap_or(0)
    }

    /// Returns the exact expected outcome, in hundredths.
    pub(super) fn expectation(&self) -> u32 {
        (0..).zip(&self.0).map(|(index, cents)| index * cents).sum()
    }

    /// Returns the confidence of a choice, in hundredths: `(n·pmax - 1) / (n - 1)`, and 1 for one outcome.
    pub(super) fn peak_confidence(&self) -> u32 {
        let n = self.len();
        let most = self.0.iter().copied().max().unwrap_or(0);
        if n < 2 { 100 } else { rounded_ratio((n * most).saturating_sub(100), n - 1) }
    }

    /// Returns the confidence of a score, in hundredths: `1 - E|k - mode| / U`, at least 0, where `U` is the mean
    /// distance of the levels from the middle; 1 for one level.
    pub(super) fn scale_confidence(&self) -> u32 {
        let n = self.len();
        if n < 2 {
            return 100;
        }
        let mode = u32::try_from(self.mode()).unwrap_or(0);
        let distance: u32 = (0..).zip(&self.0).map(|(level, cents): (u32, _)| level.abs_diff(mode) * cents).sum();
        // U = spread / 2n, so E|k - mode| / U = distance·2n / spread.
        let spread: u32 = (0..n).map(|level| (2 * level).abs_diff(n - 1)).sum();
        100 - rounded_ratio(distance * 2 * n, spread).min(100)
    }

    fn len(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

fn rounded_ratio(numerator: u32, denominator: u32) -> u32 {
    (numerator + denominator / 2) / denominator
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_weighs_outcomes_by_overlap() {
        let distribution = Distribution::of(&[1, 0, 0]);
        assert_eq!(distribution.hundredths(), [58, 21, 21]);
        assert_eq!((distribution.mode(), distribution.peak_confidence()), (0, 37));
        assert_eq!(Distribution::of(&[0, 0]).hundredths(), [50, 50]);
        assert_eq!(Distribution::of(&[0, 0]).mode(), 0, "the first on ties");
        assert_eq!(Distribution::of(&[0, 1000]).hundredths(), [0, 100]);
    }

    #[test]
    fn scale_has_expectation_and_confidence() {
        let even = Distribution::of(&[0, 0]);
        assert_eq!((even.expectation(), even.scale_confidence()), (50, 0));
        // 21, 58, 21: mode 1, E|k - 1| = 0.42, U = 2/3, 1 - 0.63 = 0.37
        let middle = Distribution::of(&[0, 1, 0]);
        assert_eq!((middle.expectation(), middle.scale_confidence()), (100, 37));
        let certain = Distribution::of(&[0, 0, 40]);
        assert_eq!((certain.expectation(), certain.scale_confidence()), (200, 100));
    }

    #[test]
    fn single_outcome_is_certain() {
        let one = Distribution::of(&[0]);
        assert_eq!((one.hundredths(), one.peak_confidence(), one.scale_confidence()), (&[100][..], 100, 100));
    }

    proptest! {
        #[test]
        fn hundredths_sum_to_100(overlaps in prop::collection::vec(0_usize..60, 1..256)) {
            let distribution = Distribution::of(&overlaps);
            prop_assert_eq!(distribution.hundredths().iter().sum::<u32>(), 100);
            prop_assert_eq!(distribution.hundredths().len(), overlaps.len());
            prop_assert!(distribution.peak_confidence() <= 100);
            let most = distribution.hundredths()[distribution.mode()];
            prop_assert!(distribution.hundredths().iter().all(|cents| *cents <= most));
        }
    }
}
