//! What a record has to cost, by what it says of itself.

use std::time::Duration;

use super::{Claim, Reservation};
use crate::money::{Charge, Usd};
use crate::usage::{AttemptRecord, TokenSource, UsageOutcome, UsageRecord, UsageShare};

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

/// Shares differ by a picodollar at most and sum to the whole; the first ones bear what does not divide.
fn share_of(whole: Usd, share: UsageShare) -> Usd {
    let (of, index) = (i64::from(share.of.max(1)), i64::from(share.index));
    let (each, rest) = (whole.pico() / of, whole.pico() % of);
    Usd::from_pico(each + i64::from(index < rest))
}

/// The record of a request whose process died: charged as if all that it claimed had been used. `None` where it claimed
/// for no attempt, so that there is nothing to charge.
pub fn abandoned_record(claim: &Claim, reservation: &Reservation) -> Option<UsageRecord> {
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
        token_source: TokenSource::Bound,
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
