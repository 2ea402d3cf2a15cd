//! How far the token counts of an endpoint exceed its configured bound.

use std::time::Duration;

/// The shortest time for which an excess raises the bound; the longest is twice as long.
const PERIOD: Duration = Duration::from_hours(1);
/// The highest ratio, in thousandths. Higher counts are errors of the provider rather than tokens of a prompt.
const MAX_RATIO_MILLI: u64 = 1_000_000;

/// How far token counts exceed the configured bound of an endpoint. It raises the bound of later requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundExcess {
    /// The highest ratio of counted to bounded tokens, in thousandths, rounded up; 1,000 to 1,000,000.
    pub ratio_milli: u64,
    /// The highest difference between counted and bounded tokens.
    pub tokens: u64,
}

impl BoundExcess {
    /// Returns the excess of a count; `None` if it is within the bound, or nothing was bounded.
    pub fn observed(bound: u64, counted: u64) -> Option<Self> {
        let tokens = counted.checked_sub(bound).filter(|tokens| *tokens > 0 && bound > 0)?;
        let ratio = (u128::from(counted) * 1_000).div_ceil(u128::from(bound));
        let ratio_milli = u64::try_from(ratio).unwrap_or(u64::MAX).min(MAX_RATIO_MILLI);
        Some(Self { ratio_milli, tokens })
    }

    /// Returns the raised bound: the ratio or the difference more, whichever is lower. A hidden prompt adds the same to
    /// every request, so its ratio to a small request would be too much for a large one.
    pub fn raise(self, bound: u64) -> u64 {
        let by_ratio = (u128::from(bound) * u128::from(self.ratio_milli)).div_ceil(1_000);
        u64::try_from(by_ratio).unwrap_or(u64::MAX).min(bound.saturating_add(self.tokens))
    }

    fn max(self, other: Self) -> Self {
        Self { ratio_milli: self.ratio_milli.max(other.ratio_milli), tokens: self.tokens.max(other.tokens) }
    }
}

/// The excesses of the current period and of the one before.
#[derive(Debug, Default)]
pub(super) struct BoundExcesses {
    period: u64,
    current: Option<BoundExcess>,
    previous: Option<BoundExcess>,
}

impl BoundExcesses {
    /// Adds an excess. Returns the raised values if the bound was not raised before.
    pub(super) fn add(&mut self, excess: BoundExcess, now: Duration) -> Option<BoundExcess> {
        let is_first = self.highest(now).is_none();
        match self.periods_since(now) {
            0 => {}
            1 => self.previous = self.current.take(),
            _ => (self.previous, self.current) = (None, None),
        }
        self.period = self.period.max(period_of(now));
        self.current = highest(self.current, Some(excess));
        is_first.then_some(excess)
    }

    /// Returns the highest excess of both periods.
    pub(super) fn highest(&self, now: Duration) -> Option<BoundExcess> {
        match self.periods_since(now) {
            0 => highest(self.current, self.previous),
            1 => self.current,
            _ => None,
        }
    }

    fn periods_since(&self, now: Duration) -> u64 {
        period_of(now).saturating_sub(self.period)
    }
}

fn period_of(now: Duration) -> u64 {
    now.as_secs() / PERIOD.as_secs()
}

fn highest(one: Option<BoundExcess>, other: Option<BoundExcess>) -> Option<BoundExcess> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn raised_bound_follows_hidden_prompts_and_shorter_tokens() {
        let hidden_prompt = BoundExcess::observed(231, 4_000).unwrap();
        assert_eq!(hidden_prompt, BoundExcess { ratio_milli: 17_317, tokens: 3_769 });
        assert_eq!([231, 100, 100_000].map(|bound| hidden_prompt.raise(bound)), [4_000, 1_732, 103_769]);
        assert_eq!(BoundExcess::observed(231, 231), None);
        assert_eq!(BoundExcess::observed(0, 5), None, "nothing was sent");
        let absurd = BoundExcess::observed(231, 1_000_000_000).unwrap();
        assert_eq!(absurd.raise(231), 231_000, "at most a thousand times");
        assert_eq!(absurd.raise(u64::MAX), u64::MAX);
    }

    #[test]
    fn excess_is_reported_once_and_expires_after_one_to_two_periods() {
        let excess = |counted| BoundExcess::observed(100, counted).unwrap();
        let mut excesses = BoundExcesses::default();
        assert_eq!(excesses.highest(PERIOD), None);
        assert_eq!(excesses.add(excess(300), PERIOD), Some(excess(300)));
        assert_eq!(excesses.add(excess(200), PERIOD * 2), None, "it is raised already");
        assert_eq!(excesses.highest(PERIOD * 2), Some(excess(300)));
        assert_eq!(excesses.highest(PERIOD * 3), Some(excess(200)), "the higher one has expired");
        assert_eq!(excesses.highest(PERIOD), Some(excess(300)), "a clock that was read earlier");
        assert_eq!(excesses.highest(PERIOD * 4), None);
        assert_eq!(excesses.add(excess(150), PERIOD * 4), Some(excess(150)), "anew");
    }

    proptest! {
        #[test]
        fn raised_bound_covers_the_count_that_raised_it(counts in prop::collection::vec((1_u64..1_000_000, 1_u64..1_000_000), 1..20)) {
            let mut excesses = BoundExcesses::default();
            for (bound, counted) in counts {
                let Some(excess) = BoundExcess::observed(bound, counted) else { continue };
                excesses.add(excess, Duration::ZERO);
                let raised = excesses.highest(Duration::ZERO).unwrap().raise(bound);
                prop_assert!(raised >= counted.min(bound.saturating_mul(1_000)), "{raised} of {counted}");
            }
        }
    }
}
