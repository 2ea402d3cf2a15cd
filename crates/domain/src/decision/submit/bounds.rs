//! The bounds of attempts: the most that each may cost.

use std::sync::Arc;
use std::time::Duration;

use super::attempts::{bound_tokens, new_record};
use super::plan::SubRequest;
use crate::decision::{DecisionProvider, TokenFactor};
use crate::money::{Charge, Usd};
use crate::question::ProviderInput;
use crate::routing::{Candidate, HealthBoard};
use crate::usage::{AttemptRecord, UsageSource};

/// Bounds attempts by the bytes that they send, and by how far the endpoint exceeded such bounds before.
pub(super) struct Bounds {
    pub(super) provider: Arc<dyn DecisionProvider>,
    pub(super) health: Arc<HealthBoard>,
    pub(super) max_tokens_per_byte: TokenFactor,
}

impl Bounds {
    /// Returns the record of an attempt with its highest cost. `now` is on the monotonic clock.
    pub(super) fn attempt(
        &self,
        candidate: &Candidate,
        number: u32,
        input: &ProviderInput,
        now: Duration,
    ) -> AttemptRecord {
        let endpoint = &candidate.endpoint;
        let bytes = self.provider.outbound_bytes(endpoint, input);
        let configured = bound_tokens(self.max_tokens_per_byte, bytes, endpoint.prompt_overhead_tokens);
        let excess = self.health.bound_excess(endpoint.index, now);
        let tokens = excess.map_or(configured, |excess| excess.raise(configured));
        let (input_tokens, output_tokens) = candidate.prices.dearest(tokens);
        let record = new_record(candidate, number, Duration::ZERO);
        AttemptRecord { input_tokens, output_tokens, usage_source: UsageSource::UpperBound, ..record }
    }

    /// Returns the bound of the first attempt of each sub-request.
    pub(super) fn first_attempts(&self, sub_requests: &[SubRequest], now: Duration) -> Vec<AttemptRecord> {
        let firsts =
            (0..).zip(sub_requests).filter_map(|(number, part)| Some((number, part, part.candidates.first()?)));
        firsts.map(|(number, part, first)| self.attempt(first, number, &part.input, now)).collect()
    }

    /// Returns the bound of every attempt that the plan allows: fallbacks, hedges, and the smaller sub-requests that
    /// replace one that failed.
    pub(super) fn all_attempts(&self, sub_requests: &[SubRequest], now: Duration) -> Vec<AttemptRecord> {
        let mut all = Vec::new();
        for (number, part) in (0..).zip(sub_requests) {
            all.extend(part.candidates.iter().map(|candidate| self.attempt(candidate, number, &part.input, now)));
            all.extend(part.smaller(&[]).iter().flat_map(|smaller| self.all_attempts(smaller, now)));
        }
        all
    }
}

/// Returns the charge of one attempt; `None` if it exceeds the range of money.
pub(super) fn charge(record: &AttemptRecord) -> Option<Charge> {
    record.prices.charge(record.input_tokens, record.output_tokens)
}

/// Rounds a charge up. A charge above the range of money becomes the largest amount, which exceeds every limit.
pub(super) fn round_up(charge: Option<Charge>) -> Usd {
    charge.and_then(Charge::round_up).unwrap_or(Usd::from_pico(i64::MAX))
}

/// Returns the total cost of attempts.
pub(super) fn total(attempts: &[AttemptRecord]) -> Usd {
    round_up(attempts.iter().try_fold(Charge::ZERO, |sum, attempt| sum.checked_add(charge(attempt)?)))
}

/// Returns the attempt with the most tokens that `amount` pays for. An increase may be lower than the bound of its
/// attempt, because unused parts of the hold count. The recorded attempts of a hold must not cost more than the hold.
pub(super) fn limit_to(attempt: &AttemptRecord, amount: Usd) -> AttemptRecord {
    let prices = attempt.prices;
    let most = attempt.input_tokens.saturating_add(attempt.output_tokens);
    let fits = |tokens: u64| {
        let (input, output) = prices.dearest(tokens);
        prices.charge(input, output).and_then(Charge::round_up).is_some_and(|cost| cost <= amount)
    };
    // The largest number known to fit, and the smallest known not to.
    let (mut fit, mut beyond) = if fits(most) { (most, most) } else { (0, most) };
    while beyond - fit > 1 {
        let middle = fit + (beyond - fit) / 2;
        if fits(middle) { fit = middle } else { beyond = middle }
    }
    let (input_tokens, output_tokens) = prices.dearest(fit);
    AttemptRecord { input_tokens, output_tokens, ..attempt.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pricing::TokenPrices;
    use crate::usage::AttemptOutcome;

    /// An attempt with these tokens at this price.
    fn attempt(tokens: u64, price: &str) -> AttemptRecord {
        AttemptRecord {
            provider: "acme".into(),
            model: "acme/judge".parse().unwrap(),
            upstream_model: "judge".into(),
            part: 0,
            outcome: AttemptOutcome::Cancelled,
            upstream_status: None,
            began: Duration::ZERO,
            latency: Duration::ZERO,
            input_tokens: tokens,
            output_tokens: 0,
            usage_source: UsageSource::UpperBound,
            prices: TokenPrices { prompt: price.parse().unwrap(), completion: "0".parse().unwrap() },
        }
    }

    #[test]
    fn attempt_keeps_all_tokens_when_its_bound_equals_the_amount() {
        let tokens = |attempt: &AttemptRecord, pico| {
            let kept = limit_to(attempt, Usd::from_pico(pico));
            assert!(total(std::slice::from_ref(&kept)) <= Usd::from_pico(pico.max(0)));
            kept.input_tokens + kept.output_tokens
        };
        let whole = attempt(1_000, "0.000000000001");
        assert_eq!([0, 1, 999, 1_000, 1_001].map(|pico| tokens(&whole, pico)), [0, 1, 999, 1_000, 1_000]);
        // Half a picodollar a token: the sum is rounded up, so three tokens come to two picodollars.
        let halves = attempt(3, "0.0000000000005");
        assert_eq!([0, 1, 2].map(|pico| tokens(&halves, pico)), [0, 2, 3]);
        assert_eq!(tokens(&attempt(7, "0"), 0), 7, "free tokens fit everywhere");
    }
}
