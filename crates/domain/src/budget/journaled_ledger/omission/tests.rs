//! Shortened charges.

use std::time::Duration;

use chrono::DateTime;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::budget::allowances::{CounterId, CounterPeriod};
use crate::budget::entries::{charge_bytes, encode_charged};
use crate::budget::{Account, ResetInterval, cost_of_record};
use crate::ids::{ApiKeyId, DestinationId, GuardrailId, OutboxId, WorkspaceId};
use crate::json::Json;
use crate::money::Usd;
use crate::usage::{AttemptOutcome, FilterAction, Finding, OutboxMessage, UsageOutcome, UsageSource};

fn attempt(input_tokens: u64, price: i128, usage_source: UsageSource, name: &str) -> AttemptRecord {
    AttemptRecord {
        provider: name.into(),
        model: "acme/judge".parse().unwrap(),
        upstream_model: name.into(),
        part: u32::MAX,
        outcome: AttemptOutcome::Abandoned,
        upstream_status: Some(u16::MAX),
        began: Duration::from_millis(input_tokens % 97),
        latency: Duration::from_secs(1),
        input_tokens,
        output_tokens: input_tokens / 3,
        usage_source,
        prices: TokenPrices {
            prompt: Price::from_parts(price, 20).unwrap(),
            completion: Price::from_parts(price / 2, 24).unwrap(),
        },
    }
}

/// Returns a charge of these attempts with long names, and a counter of every kind in every account.
fn charge(attempts: Vec<AttemptRecord>, of: u32, name: &str) -> (UsageCharge, Vec<(CounterId, Usd)>) {
    let at = DateTime::from_timestamp(1_784_116_800, 999_999_000).unwrap();
    let key = ApiKeyId::from_uuid(Uuid::from_bytes([0xff; 16]));
    let guardrails: Vec<GuardrailId> = (0..3).map(|n| GuardrailId::from_uuid(Uuid::from_u128(u128::MAX - n))).collect();
    let workspace_id = WorkspaceId::from_uuid(Uuid::max());
    let mut record = UsageRecord {
        id: format!("gen-dec-{}", "x".repeat(64)).parse().unwrap(),
        workspace_id,
        api_key: key,
        request_id: "r".repeat(128).parse().unwrap(),
        requested_model: name.to_owned(),
        model: format!("a/{}", "m".repeat(254)).parse().unwrap(),
        provider: name.to_owned(),
        outcome: UsageOutcome::Failed,
        input_tokens: u64::MAX,
        output_tokens: u64::MAX,
        usage_source: UsageSource::UpperBound,
        cost: Usd::ZERO,
        prices: TokenPrices {
            prompt: Price::from_parts(10_i128.pow(37), 24).unwrap(),
            completion: Price::from_parts(10_i128.pow(37), 24).unwrap(),
        },
        share: UsageShare { index: of - 1, of },
        attempts: attempts.into(),
        guardrails: guardrails.clone(),
        findings: vec![
            Finding {
                guardrail_id: guardrails[0],
                label: name.to_owned(),
                action: FilterAction::Redact,
                path: name.to_owned(),
                count: u32::MAX,
            };
            9
        ],
        charged_at: at,
        session_id: Some("é".repeat(256)),
        trace: Some(Json::string(name)),
        user: Some("é".repeat(256)),
        client_address: Some(std::net::Ipv6Addr::from_bits(u128::MAX).into()),
        preset: None,
        outcomes: None,
        created_at: at,
        latency: Duration::MAX,
    };
    record.cost = cost_of_record(&record).unwrap_or(Usd::from_pico(i64::MAX));
    let message = OutboxMessage {
        id: OutboxId::from_uuid(Uuid::max()),
        destination_id: DestinationId::from_uuid(Uuid::max()),
        payload: Json::string(name),
    };
    let accounts = [Account::Workspace(workspace_id), Account::Key(key)];
    let accounts = accounts.into_iter().chain(guardrails.into_iter().map(|id| Account::Guardrail(id, key)));
    let allowances = accounts.flat_map(|account| {
        let periods = ResetInterval::ALL.map(|interval| CounterPeriod::containing(Some(interval), at));
        let counters = periods.into_iter().chain([CounterPeriod::Lifetime]);
        counters.map(move |period| (CounterId { account, period }, Usd::from_pico(i64::MAX)))
    });
    (UsageCharge { messages: vec![message; 3], ..UsageCharge::new(record) }, allowances.collect())
}

#[test]
fn merge_joins_attempts_at_the_same_prices_alone() {
    use UsageSource::{Reported, UpperBound as Bound};
    let attempts = [
        attempt(10, 7, Reported, "a"),
        attempt(20, 8, Reported, "b"),
        attempt(30, 7, Bound, "c"),
        attempt(50, 7, Reported, "d"),
        attempt(u64::MAX, 8, Reported, "e"),
    ];
    let merged = merge_attempts(&attempts);
    let tokens: Vec<_> = merged.iter().map(|found| (&*found.provider, found.input_tokens)).collect();
    assert_eq!(tokens, [("a", 60), ("b", 20), ("c", 30), ("e", u64::MAX)], "tokens beyond the range stay apart");
    let ends = attempts.iter().map(|one| one.began + one.latency);
    assert_eq!(merged[0].began, attempts[0].began);
    assert!(ends.max().unwrap() >= merged[0].began + merged[0].latency);
}

#[test]
fn apply_returns_false_when_charge_lacks_the_detail() {
    let (full, _) = charge(vec![attempt(1, 1, UsageSource::UpperBound, "a"); 2], 1, "x");
    let mut charge = full;
    for omission in [Omission::Trace, Omission::Findings, Omission::Attempts] {
        assert!(omission.apply(&mut charge), "{omission:?}");
        assert!(!omission.apply(&mut charge), "{omission:?} again");
    }
    assert_eq!((charge.messages.len(), &charge.record.trace, charge.record.findings.len()), (0, &None, 0));
    assert_eq!(charge.record.attempts.len(), 1);
}

#[test]
fn keep_sum_leaves_records_without_attempts_to_their_own_tokens() {
    let (mut charge, _) = charge(Vec::new(), 3, "x");
    (charge.record.input_tokens, charge.record.output_tokens) = (30, 0);
    charge.record.prices = TokenPrices { prompt: Price::from_parts(7, 12).unwrap(), completion: Price::ZERO };
    charge.record.cost = cost_of_record(&charge.record).unwrap();
    Omission::Everything.apply(&mut charge);
    assert_eq!((charge.record.cost, charge.record.share.of), (Usd::from_pico(70), 3));
    assert_eq!(cost_of_record(&charge.record), Some(charge.record.cost));
}

proptest! {
    /// The largest possible record ends its hold at the same cost.
    #[test]
    fn reduced_charge_fits_into_its_reservation_at_same_cost(
        attempts in proptest::collection::vec((any::<u32>(), 0_i128..1 << 40, any::<bool>()), 0..40),
        of in 1_u32..9,
        name in prop_oneof![Just(String::new()), Just("é".repeat(2_000)), "\\PC{0,400}"],
    ) {
        let source = |is_bound| if is_bound { UsageSource::UpperBound } else { UsageSource::Reported };
        let attempts: Vec<AttemptRecord> = attempts
            .into_iter()
            .map(|(tokens, price, is_bound)| attempt(u64::from(tokens), price, source(is_bound), &name))
            .collect();
        let is_priced = !attempts.is_empty();
        let (mut charge, allowances) = charge(attempts, of, &name);
        let (id, cost, guardrails) = (charge.record.id.clone(), charge.record.cost, charge.record.guardrails.clone());
        for omission in Omission::ALL {
            omission.apply(&mut charge);
            prop_assert_eq!((&charge.record.id, charge.record.cost), (&id, cost));
            prop_assert_eq!(&charge.record.guardrails, &guardrails, "it counts in their budgets");
            if is_priced {
                prop_assert_eq!(cost_of_record(&charge.record), Some(cost), "{:?}", omission);
            }
        }
        let bytes = encode_charged(&charge, &allowances).len();
        let reserved = charge_bytes(0, allowances.len(), guardrails.len());
        prop_assert!(bytes <= reserved, "{} bytes of {}", bytes, reserved);
    }
}
