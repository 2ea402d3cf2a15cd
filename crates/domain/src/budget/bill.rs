//! The expected cost of usage records.

use std::time::Duration;

use super::entries::SentEntry;
use crate::money::{Charge, Usd};
use crate::pricing::TokenPrices;
use crate::usage::{AttemptRecord, UsageOutcome, UsageRecord, UsageShare, UsageSource};

/// Returns the total cost of attempts: tokens times prices, summed exactly, rounded up once. `None` if it is out of
/// range.
pub fn cost_of_attempts(attempts: &[AttemptRecord]) -> Option<Usd> {
    let mut sum = Charge::ZERO;
    for attempt in attempts {
        sum = sum.checked_add(attempt.prices.charge(attempt.input_tokens, attempt.output_tokens)?)?;
    }
    sum.round_up()
}

/// Returns the expected cost of a record: its share of its attempts. A record without attempts costs its own tokens times
/// its own prices. `None` if the cost is out of range.
pub fn cost_of_record(record: &UsageRecord) -> Option<Usd> {
    let whole = if record.attempts.is_empty() {
        record.prices.charge(record.input_tokens, record.output_tokens)?.round_up()?
    } else {
        cost_of_attempts(&record.attempts)?
    };
    Some(record.share.apply(whole))
}

/// Returns the cost of attempts by their prices, input tokens and output tokens; otherwise as [`cost_of_record`].
pub fn cost_of_tokens(attempts: impl IntoIterator<Item = (TokenPrices, u64, u64)>, share: UsageShare) -> Option<Usd> {
    let mut sum = Charge::ZERO;
    for (prices, input_tokens, output_tokens) in attempts {
        sum = sum.checked_add(prices.charge(input_tokens, output_tokens)?)?;
    }
    Some(share.apply(sum.round_up()?))
}

/// Returns the record of a request whose process died, charged by the upper bounds of the attempts that had begun. `None`
/// if none had, so that there is nothing to charge.
pub(super) fn abandoned_record(sent: SentEntry) -> Option<UsageRecord> {
    // The first attempt is the only one that was surely made.
    let first = sent.attempts.first()?;
    let tokens = |count: fn(&AttemptRecord) -> u64| sent.attempts.iter().map(count).fold(0, u64::saturating_add);
    Some(UsageRecord {
        model: first.model.clone(),
        provider: first.provider.to_string(),
        outcome: UsageOutcome::Abandoned,
        input_tokens: tokens(|attempt| attempt.input_tokens),
        output_tokens: tokens(|attempt| attempt.output_tokens),
        usage_source: UsageSource::UpperBound,
        cost: cost_of_attempts(&sent.attempts).unwrap_or(sent.amount),
        prices: first.prices,
        share: UsageShare::WHOLE,
        id: sent.id,
        workspace_id: sent.payer.workspace_id,
        api_key: sent.payer.api_key,
        request_id: sent.request_id,
        requested_model: sent.requested_model,
        attempts: sent.attempts,
        guardrails: sent.payer.guardrails,
        findings: Vec::new(),
        charged_at: sent.at,
        session_id: None,
        trace: None,
        user: None,
        client_address: sent.client_address,
        preset: None,
        outcomes: None,
        created_at: sent.at,
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
    use crate::usage::AttemptOutcome;
    use chrono::DateTime;
    use uuid::Uuid;

    /// Returns an attempt at a third of a picodollar per token.
    fn attempt(input_tokens: u64, output_tokens: u64) -> AttemptRecord {
        AttemptRecord {
            provider: "acme".into(),
            model: "acme/judge".parse().unwrap(),
            upstream_model: "judge".into(),
            part: 0,
            outcome: AttemptOutcome::Abandoned,
            upstream_status: None,
            began: Duration::ZERO,
            latency: Duration::ZERO,
            input_tokens,
            output_tokens,
            usage_source: UsageSource::UpperBound,
            prices: TokenPrices { prompt: "0.000000000000333".parse().unwrap(), completion: Price::ZERO },
        }
    }

    fn sent(attempts: Vec<AttemptRecord>) -> SentEntry {
        SentEntry {
            id: DecisionId::from_uuid(Uuid::from_u128(1)),
            payer: Payer {
                workspace_id: WorkspaceId::from_uuid(Uuid::from_u128(2)),
                api_key: SequentialIds::key(3),
                guardrails: Vec::new(),
            },
            at: DateTime::UNIX_EPOCH,
            request_id: RequestId::from_uuid(Uuid::from_u128(4)),
            requested_model: "acme/judge".to_owned(),
            client_address: None,
            amount: Usd::from_pico(9),
            counters: Vec::new(),
            attempts: attempts.into(),
        }
    }

    #[test]
    fn cost_is_rounded_up_once_for_all_attempts() {
        assert_eq!(cost_of_attempts(&[]), Some(Usd::ZERO));
        assert_eq!(cost_of_attempts(&[attempt(1, 5)]), Some(Usd::from_pico(1)));
        assert_eq!(cost_of_attempts(&[attempt(1, 0), attempt(1, 0), attempt(1, 0)]), Some(Usd::from_pico(1)));
        let beyond = TokenPrices { prompt: "9".parse().unwrap(), completion: Price::ZERO };
        assert_eq!(cost_of_attempts(&[AttemptRecord { prices: beyond, ..attempt(u64::MAX, 0) }]), None);
    }

    #[test]
    fn abandoned_record_names_model_and_provider_of_one_attempt() {
        let later = AttemptRecord { provider: "beta".into(), model: "acme/large".parse().unwrap(), ..attempt(5, 2) };
        let record = abandoned_record(sent(vec![attempt(4, 1), later])).unwrap();
        assert_eq!((record.model.as_str(), record.provider.as_str()), ("acme/judge", "acme"));
    }

    #[test]
    fn abandoned_record_costs_its_attempts() {
        let record = abandoned_record(sent(vec![attempt(4, 1), attempt(5, 2)])).unwrap();
        assert_eq!((record.input_tokens, record.output_tokens), (9, 3));
        assert_eq!(record.cost, Usd::from_pico(3), "nine thirds, less than was reserved for each alone");
        assert_eq!(cost_of_record(&record), Some(record.cost));
    }

    #[test]
    fn abandoned_record_needs_attempts_and_costs_its_hold_without_price() {
        assert_eq!(abandoned_record(sent(Vec::new())), None);
        let variable = TokenPrices { prompt: "-1".parse().unwrap(), completion: Price::ZERO };
        let record = abandoned_record(sent(vec![AttemptRecord { prices: variable, ..attempt(1, 0) }])).unwrap();
        assert_eq!((record.cost, cost_of_record(&record)), (Usd::from_pico(9), None));
    }

    #[test]
    fn shares_sum_to_whole_and_record_without_attempts_costs_its_tokens() {
        let record = abandoned_record(sent(vec![attempt(30, 0)])).unwrap();
        let share = |index| cost_of_record(&UsageRecord { share: UsageShare { index, of: 3 }, ..record.clone() });
        assert_eq!([share(0), share(1), share(2)], [4, 3, 3].map(|pico| Some(Usd::from_pico(pico))));
        let bare = UsageRecord { attempts: std::sync::Arc::default(), ..record };
        assert_eq!(cost_of_record(&bare), Some(Usd::from_pico(10)));
        let tokens = [(attempt(0, 0).prices, 30, 0)];
        assert_eq!(cost_of_tokens(tokens, UsageShare { index: 0, of: 3 }), Some(Usd::from_pico(4)));
        assert_eq!(cost_of_tokens([(attempt(0, 0).prices, u64::MAX, 0); 2], UsageShare::WHOLE), None);
    }
}
