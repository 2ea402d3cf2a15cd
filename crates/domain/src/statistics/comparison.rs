//! Two models on the same items.

use super::{Probability, binomial_tail, figure};

/// The answers of two models to the same items, counted by their errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PairedErrors {
    /// Items on which both models are right.
    pub none: usize,
    /// Items on which only the first model is wrong.
    pub first_only: usize,
    /// Items on which only the second model is wrong.
    pub second_only: usize,
    /// Items on which both models are wrong.
    pub both: usize,
}

impl PairedErrors {
    /// Counts pairs: true for an error of the first model, and of the second.
    pub fn count(pairs: impl IntoIterator<Item = (bool, bool)>) -> Self {
        let mut counted = Self::default();
        for pair in pairs {
            *match pair {
                (false, false) => &mut counted.none,
                (true, false) => &mut counted.first_only,
                (false, true) => &mut counted.second_only,
                (true, true) => &mut counted.both,
            } += 1;
        }
        counted
    }

    /// Returns the number of items.
    pub const fn items(&self) -> usize {
        self.none + self.first_only + self.second_only + self.both
    }

    /// Returns the accuracy of the first model minus that of the second; `None` without items.
    pub fn accuracy_difference(&self) -> Option<f64> {
        let items = self.items();
        (items > 0).then(|| (figure(self.second_only) - figure(self.first_only)) / figure(items))
    }

    /// Returns the two-sided p-value of McNemar's exact test: the probability of this difference, or a larger one, between
    /// models that are equally accurate.
    pub fn mcnemar_p_value(&self) -> f64 {
        let (fewer, differing) = (self.first_only.min(self.second_only), self.first_only + self.second_only);
        (2.0 * binomial_tail(differing, Probability::HALF, fewer)).min(1.0)
    }
}
