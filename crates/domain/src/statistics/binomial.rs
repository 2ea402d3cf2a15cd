//! Shares of a count, with exact limits from the binomial distribution.

use statrs::function::beta::checked_beta_reg;

use super::{Probability, figure};

/// The probability outside of a two-sided 95 % interval, on each side.
const EACH_SIDE: f64 = 0.025;

/// Halvings of the range 0 to 1 that determine a limit to the precision of `f64`.
const HALVINGS: usize = 60;

/// Returns `P(Bin(trials, probability) <= count)`, exactly up to rounding.
pub fn binomial_tail(trials: usize, probability: Probability, count: usize) -> f64 {
    if count >= trials {
        return 1.0;
    }
    incomplete_beta(trials - count, count + 1, 1.0 - probability.get())
}

/// Returns the regularised incomplete beta function of positive whole parameters. A value that cannot be computed is 1,
/// with which no test succeeds and every interval is wider.
fn incomplete_beta(a: usize, b: usize, x: f64) -> f64 {
    let value = checked_beta_reg(figure(a), figure(b), x).unwrap_or(1.0);
    if value.is_nan() { 1.0 } else { value.clamp(0.0, 1.0) }
}

/// An interval of a share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower limit.
    pub lower: f64,
    /// The upper limit.
    pub upper: f64,
}

/// A count out of a total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Proportion {
    pub(super) count: usize,
    pub(super) total: usize,
}

impl Proportion {
    /// Returns the proportion, or `None` if the count exceeds the total.
    pub fn new(count: usize, total: usize) -> Option<Self> {
        (count <= total).then_some(Self { count, total })
    }

    /// Adds a part with its own total.
    #[must_use]
    pub(super) const fn add(self, count: usize, total: usize) -> Self {
        Self { count: self.count + count, total: self.total + total }
    }

    /// Returns the count.
    pub const fn count(self) -> usize {
        self.count
    }

    /// Returns the total.
    pub const fn total(self) -> usize {
        self.total
    }

    /// Returns count / total; `None` for a total of 0.
    pub fn share(self) -> Option<f64> {
        (self.total > 0).then(|| figure(self.count) / figure(self.total))
    }

    /// Returns the two-sided 95 % interval of Clopper and Pearson.
    pub fn interval(self) -> Interval {
        let rest = Self { count: self.total - self.count, ..self };
        Interval { lower: self.limit(EACH_SIDE), upper: 1.0 - rest.limit(EACH_SIDE) }
    }

    /// Returns the one-sided lower limit of Clopper and Pearson that exceeds the true share with probability `error` at
    /// most.
    pub fn lower_limit(self, error: Probability) -> f64 {
        self.limit(error.get())
    }

    /// Returns the largest share under which this count, or a higher one, has at most the probability `error`.
    fn limit(self, error: f64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let (mut lower, mut upper) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(lower, upper);
            if incomplete_beta(self.count, self.total - self.count + 1, middle) <= error {
                lower = middle;
            } else {
                upper = middle;
            }
        }
        lower
    }
}
