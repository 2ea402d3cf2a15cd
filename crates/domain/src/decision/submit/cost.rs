//! The tokens and the cost of a request. Pure.

use crate::money::{Charge, Usd};
use crate::usage::{AttemptRecord, UsageShare, UsageSource};

/// The share of a call's cost that one request bears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CostShare {
    index: usize,
    of: usize,
}

impl CostShare {
    /// The whole cost.
    pub(super) const WHOLE: Self = Self { index: 0, of: 1 };

    /// Creates the share with this index of `of` shares.
    pub(super) fn new(index: usize, of: usize) -> Self {
        Self { index, of }
    }

    /// Returns this share of a cost. Shares differ by a picodollar at most and sum to the whole.
    pub(super) fn apply(self, cost: Usd) -> Usd {
        let of = i64::try_from(self.of.max(1)).unwrap_or(i64::MAX);
        let index = i64::try_from(self.index).unwrap_or(i64::MAX);
        let (each, rest) = (cost.pico() / of, cost.pico() % of);
        Usd::from_pico(each + i64::from(index < rest))
    }

    /// Returns the share for the record.
    fn recorded(self) -> UsageShare {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        UsageShare { index: count(self.index), of: count(self.of) }
    }
}

/// The tokens of a call, and the share of its cost that a request pays.
pub(super) struct RequestCost {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) usage_source: UsageSource,
    pub(super) amount: Usd,
    pub(super) share: UsageShare,
}

impl RequestCost {
    /// Sums the exact charges of all attempts, rounds up once, then takes the share. Returns `None` if the sum exceeds
    /// the range of money.
    pub(super) fn of(attempts: &[AttemptRecord], share: CostShare) -> Option<Self> {
        let mut sum = Charge::ZERO;
        let (mut input_tokens, mut output_tokens) = (0_u64, 0_u64);
        let mut usage_source = UsageSource::None;
        for attempt in attempts {
            sum = sum.checked_add(attempt.prices.charge(attempt.input_tokens, attempt.output_tokens)?)?;
            input_tokens = input_tokens.checked_add(attempt.input_tokens)?;
            output_tokens = output_tokens.checked_add(attempt.output_tokens)?;
            usage_source = usage_source.combine(attempt.usage_source);
        }
        let amount = share.apply(sum.round_up()?);
        Some(Self { input_tokens, output_tokens, usage_source, amount, share: share.recorded() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_sum_to_the_whole_and_differ_by_one_at_most(cost in 0..i64::MAX, of in 1_usize..300) {
            let share = |index| CostShare::new(index, of).apply(Usd::from_pico(cost)).pico();
            let shares: Vec<i64> = (0..of).map(share).collect();
            prop_assert_eq!(shares.iter().map(|share| i128::from(*share)).sum::<i128>(), i128::from(cost));
            prop_assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
