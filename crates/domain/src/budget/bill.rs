//! What a record has to cost, by what it says of itself.

use std::time::Duration;

use super::{Hold, HoldRequest};
use crate::money::{Charge, Usd};
use crate::pricing::TokenPrices;
use crate::usage::{AttemptRecord, UsageOutcome, UsageRecord, UsageShare, UsageSource};

/// What attempts cost together: tokens times prices, summed exactly, rounded up once. `None` where that leaves the range
/// of money.
pub fn cost_of_attempts(attempts: &[AttemptRecord]) -> Option<Usd> {
    let mut sum = Charge::ZERO;
    for attempt in attempts {
        sum = sum.checked_add(attempt.prices.charge(attempt.input_tokens, attempt.output_tokens)?)?;
    }
    sum.round_up()
}

/// What a record has to cost: its share of its attempts. One that lists none is of before attempts were listed; then its
/// own tokens times its own prices. `None` where that leaves the range of money.
pub fn cost_of_record(record: &UsageRecord) -> Option<Usd> {
    let whole = if record.attempts.is_empty() {
        record.prices.charge(record.input_tokens, record.output_tokens)?.round_up()?
    } else {
        cost_of_attempts(&record.attempts)?
    };
    Some(share_of(whole, record.share))
}

/// The cost of attempts of which only prices and tokens, input and output, are known; otherwise as [`cost_of_record`].
pub fn cost_of_tokens(attempts: impl IntoIterator<Item = (TokenPrices, u64, u64)>, share: UsageShare) -> Option<Usd> {
    let mut sum = Charge::ZERO;
    for (prices, input_tokens, output_tokens) in attempts {
        sum = sum.checked_add(prices.charge(input_tokens, output_tokens)?)?;
    }
    Some(share_of(sum.round_up()?, share))
}

/// Shares differ by a picodollar at most and sum to the whole; the first ones bear what does not divide.
fn share_of(whole: Usd, share: UsageShare) -> Usd {
    let (of, index) = (i64::from(share.of.max(1)), i64::from(share.index));
    let (each, rest) = (whole.pico() / of, whole.pico() % of);
    Usd::from_pico(each + i64::from(index < rest))
}

/// The record of a request whose process died: charged as if all that it claimed had been used. `None` where it claimed
/// for no attempt, so that there is nothing to charge.
pub fn abandoned_record(claim: &HoldRequest, reservation: &Hold) -> Option<UsageRecord> {
    let (first, last) = (claim.attempts.first()?, claim.attempts.last()?);
    let tokens = |count: fn(&AttemptRecord) -> u64| claim.attempts.iter().map(count).fold(0, u64::saturating_add);
    Some(UsageRecord {
        id: reservation.id.clone(),
        workspace_id: reservation.payer.workspace_id,
        api_key: reservation.payer.api_key,
        request_id: claim.request_id.clone(),
        requested_model: claim.requested_model.clone(),
        model: first.model.clone(),
        provider: last.provider.clone(),
        outcome: UsageOutcome::Abandoned,
        input_tokens: tokens(|attempt| attempt.input_tokens),
        output_tokens: tokens(|attempt| attempt.output_tokens),
        usage_source: UsageSource::UpperBound,
        cost: cost_of_attempts(&claim.attempts).unwrap_or(reservation.amount),
        prices: first.prices,
        share: UsageShare::WHOLE,
        attempts: claim.attempts.clone(),
        guardrails: reservation.payer.guardrails.clone(),
        findings: Vec::new(),
        charged_at: reservation.at,
        session_id: None,
        trace: None,
        user: None,
        created_at: reservation.at,
        latency: Duration::ZERO,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Payer;
    use crate::ids::{DecisionId, RequestId, WorkspaceId};
    use crate::money::Price;
    use crate::testing::SequentialIds;
    use chrono::DateTime;
    use uuid::Uuid;

    /// At a third of a picodollar a token.
    fn attempt(input_tokens: u64, output_tokens: u64) -> AttemptRecord {
        AttemptRecord {
            provider: "acme".to_owned(),
            model: "acme/judge".parse().unwrap(),
            upstream_model: "judge".to_owned(),
            part: 0,
            outcome: "abandoned".to_owned(),
            upstream_status: None,
            began: Duration::ZERO,
            latency: Duration::ZERO,
            input_tokens,
            output_tokens,
            usage_source: UsageSource::UpperBound,
            prices: TokenPrices { prompt: "0.000000000000333".parse().unwrap(), completion: Price::ZERO },
        }
    }

    fn claim(attempts: Vec<AttemptRecord>) -> (HoldRequest, Hold) {
        let id = DecisionId::from_uuid(Uuid::from_u128(1));
        let payer = Payer {
            workspace_id: WorkspaceId::from_uuid(Uuid::from_u128(2)),
            api_key: SequentialIds::key(3),
            guardrails: Vec::new(),
        };
        let at = DateTime::UNIX_EPOCH;
        let reservation = Hold { id: id.clone(), at, payer: payer.clone(), amount: Usd::from_pico(9) };
        let claim = HoldRequest {
            id,
            payer,
            amount: reservation.amount,
            is_limited: true,
            request_id: RequestId::from_uuid(Uuid::from_u128(4)),
            requested_model: "acme/judge".to_owned(),
            attempts: attempts.into(),
        };
        (claim, reservation)
    }

    #[test]
    fn attempts_are_rounded_up_once_for_all_of_them() {
        assert_eq!(cost_of_attempts(&[]), Some(Usd::ZERO));
        assert_eq!(cost_of_attempts(&[attempt(1, 5)]), Some(Usd::from_pico(1)));
        assert_eq!(cost_of_attempts(&[attempt(1, 0), attempt(1, 0), attempt(1, 0)]), Some(Usd::from_pico(1)));
        let beyond = TokenPrices { prompt: "9".parse().unwrap(), completion: Price::ZERO };
        assert_eq!(cost_of_attempts(&[AttemptRecord { prices: beyond, ..attempt(u64::MAX, 0) }]), None);
    }

    #[test]
    fn what_is_abandoned_costs_what_its_attempts_do() {
        let (claim, reservation) = claim(vec![attempt(4, 1), attempt(5, 2)]);
        let record = abandoned_record(&claim, &reservation).unwrap();
        assert_eq!((record.input_tokens, record.output_tokens), (9, 3));
        assert_eq!(record.cost, Usd::from_pico(3), "nine thirds, less than was reserved for each alone");
        assert_eq!(cost_of_record(&record), Some(record.cost));
    }

    #[test]
    fn what_claimed_for_no_attempt_is_no_record_and_what_has_no_price_costs_what_was_reserved() {
        let (nothing, reservation) = claim(Vec::new());
        assert_eq!(abandoned_record(&nothing, &reservation), None);
        let variable = TokenPrices { prompt: "-1".parse().unwrap(), completion: Price::ZERO };
        let (odd, reservation) = claim(vec![AttemptRecord { prices: variable, ..attempt(1, 0) }]);
        let record = abandoned_record(&odd, &reservation).unwrap();
        assert_eq!((record.cost, cost_of_record(&record)), (reservation.amount, None));
    }

    #[test]
    fn shares_sum_to_the_whole_and_a_record_without_attempts_is_charged_by_its_own_tokens() {
        let (claim, reservation) = claim(vec![attempt(30, 0)]);
        let record = abandoned_record(&claim, &reservation).unwrap();
        let share = |index| cost_of_record(&UsageRecord { share: UsageShare { index, of: 3 }, ..record.clone() });
        assert_eq!([share(0), share(1), share(2)], [4, 3, 3].map(|pico| Some(Usd::from_pico(pico))));
        let older = UsageRecord { attempts: std::sync::Arc::default(), ..record };
        assert_eq!(cost_of_record(&older), Some(Usd::from_pico(10)));
        let tokens = [(attempt(0, 0).prices, 30, 0)];
        assert_eq!(cost_of_tokens(tokens, UsageShare { index: 0, of: 3 }), Some(Usd::from_pico(4)));
        assert_eq!(cost_of_tokens([(attempt(0, 0).prices, u64::MAX, 0); 2], UsageShare::WHOLE), None);
    }
}
