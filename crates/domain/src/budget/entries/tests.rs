use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::budget::allowances::CounterPeriod;
use crate::budget::{Account, ResetInterval};
use crate::ids::{DestinationId, GuardrailId, OutboxId, PresetId, WorkspaceId};
use crate::json::Json;
use crate::pricing::TokenPrices;
use crate::testing::SequentialIds;
use crate::usage::{
    AnswerEvidence, AnswerMethod, AttemptOutcome, FilterAction, Finding, OutboxMessage, PresetReference, UsageOutcome,
    UsageShare, UsageSource,
};

fn guardrail(number: u128) -> GuardrailId {
    GuardrailId::from_uuid(Uuid::from_u128(number))
}

fn payer() -> Payer {
    Payer {
        workspace_id: WorkspaceId::from_uuid(Uuid::from_u128(2)),
        api_key: SequentialIds::key(3),
        guardrails: vec![guardrail(4), guardrail(5)],
    }
}

fn at() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::microseconds(1_795_000_000_123_456)
}

fn counters() -> Vec<CounterId> {
    let key = SequentialIds::key(3);
    let mut counters = vec![CounterId {
        account: Account::Workspace(WorkspaceId::from_uuid(Uuid::from_u128(2))),
        period: CounterPeriod::Lifetime,
    }];
    for interval in ResetInterval::ALL {
        let period = CounterPeriod::containing(Some(interval), at());
        counters.push(CounterId { account: Account::Key(key), period });
        counters.push(CounterId { account: Account::Guardrail(guardrail(4), key), period });
    }
    counters
}

fn attempt(prompt: &str, upstream_status: Option<u16>) -> AttemptRecord {
    AttemptRecord {
        provider: "acme".into(),
        model: "acme/judge:free".parse().unwrap(),
        upstream_model: "judge \u{1f600} 'quoted'".into(),
        part: 3,
        outcome: AttemptOutcome::TimedOut,
        upstream_status,
        began: Duration::from_micros(17),
        latency: Duration::from_micros(123_456_789),
        input_tokens: u64::MAX,
        output_tokens: 0,
        usage_source: UsageSource::UpperBound,
        prices: TokenPrices { prompt: prompt.parse().unwrap(), completion: "0".parse().unwrap() },
    }
}

fn record() -> UsageRecord {
    let attempts = vec![
        attempt("0.00000045", None),
        attempt("99999999999999.123456789012345678901234", Some(503)),
        attempt("-1", Some(200)),
    ];
    UsageRecord {
        id: DecisionId::from_uuid(Uuid::from_u128(1)),
        workspace_id: payer().workspace_id,
        api_key: payer().api_key,
        request_id: "client.request-id_7".parse().unwrap(),
        requested_model: "~acme/judge-latest".to_owned(),
        model: "acme/judge".parse().unwrap(),
        provider: "acme,other".to_owned(),
        outcome: UsageOutcome::Abandoned,
        input_tokens: 12,
        output_tokens: 1 << 40,
        usage_source: UsageSource::Reported,
        cost: Usd::from_pico(i64::MAX),
        prices: attempts[0].prices,
        share: UsageShare { index: 2, of: 300 },
        attempts: attempts.into(),
        guardrails: payer().guardrails,
        findings: vec![Finding {
            guardrail_id: guardrail(4),
            label: "email".to_owned(),
            action: FilterAction::Block,
            path: "/state/0".to_owned(),
            count: 9,
        }],
        charged_at: at(),
        session_id: Some(String::new()),
        trace: Some(Json::parse(r#"{"a": [1.50, "\u0000"]}"#).unwrap()),
        user: None,
        client_address: Some([192, 0, 2, 7].into()),
        preset: Some(PresetReference { id: PresetId::from_uuid(Uuid::from_u128(10)), version: 300 }),
        outcomes: Some(Json::object([("q", "{}")])),
        created_at: at() - TimeDelta::seconds(3),
        latency: Duration::from_millis(4),
    }
}

fn charge() -> UsageCharge {
    let message = OutboxMessage {
        id: OutboxId::from_uuid(Uuid::from_u128(8)),
        destination_id: DestinationId::from_uuid(Uuid::from_u128(9)),
        payload: Json::parse(r#"{"resourceSpans":[]}"#).unwrap(),
    };
    let bare = AnswerEvidence {
        position: 300,
        question: "ü".to_owned(),
        model: "acme/judge".parse().unwrap(),
        provider: "acme".into(),
        wire: "system-one".into(),
        method: AnswerMethod::LabelProbabilities,
        decision: Json::parse("true").unwrap(),
        probabilities: None,
    };
    let scored = AnswerEvidence { probabilities: Some(Json::parse(r#"{"a":0.93}"#).unwrap()), ..bare.clone() };
    UsageCharge { record: record(), messages: vec![message], evidence: vec![bare, scored] }
}

fn sent() -> SentEntry {
    SentEntry {
        id: record().id,
        payer: payer(),
        at: at(),
        request_id: record().request_id,
        requested_model: record().requested_model,
        amount: Usd::from_pico(77),
        counters: counters(),
        client_address: record().client_address,
        attempts: record().attempts,
    }
}

fn increased() -> IncreasedEntry {
    IncreasedEntry { id: record().id, amount: Usd::from_pico(5), attempts: record().attempts.to_vec() }
}

fn allowances() -> Vec<(CounterId, Usd)> {
    counters().into_iter().zip((1..).map(Usd::from_pico)).collect()
}

fn all() -> [(EntryKind, Vec<u8>, Entry); 5] {
    let fold = FoldEntry { charge: charge(), allowances: allowances() };
    [
        (EntryKind::Sent, sent().encode(), Entry::Sent(Box::new(sent()))),
        (EntryKind::Increased, increased().encode(), Entry::Increased(increased())),
        (EntryKind::Charged, encode_charged(&charge(), &allowances()), Entry::Charged(Box::new(fold))),
        (EntryKind::Released, encode_released(&record().id), Entry::Released(record().id)),
        (EntryKind::Closed, encode_closed(), Entry::Closed),
    ]
}

#[test]
fn decode_returns_every_field_of_each_kind() {
    for (kind, payload, entry) in all() {
        assert_eq!(Entry::decode(kind as u8, &payload), Ok(entry), "{kind:?}");
    }
}

#[test]
fn decode_rejects_every_prefix_and_trailing_bytes() {
    for (kind, payload, _) in all() {
        for len in 1..payload.len() {
            assert_eq!(Entry::decode(kind as u8, &payload[..len]), Err(InvalidEntry::Malformed), "{kind:?} {len}");
        }
        assert_eq!(Entry::decode(kind as u8, &[]), Err(InvalidEntry::Malformed));
        let longer = [&payload[..], &[0]].concat();
        assert_eq!(Entry::decode(kind as u8, &longer), Err(InvalidEntry::Malformed), "{kind:?}");
    }
}

#[test]
fn client_address_of_either_family_takes_its_bytes_and_one() {
    let encoded = |client_address| SentEntry { client_address, ..sent() }.encode();
    let bare = encoded(None).len();
    for (address, bytes) in [("192.0.2.7", 4), ("2001:db8::7", 16)] {
        let client_address = Some(address.parse().unwrap());
        let entry = SentEntry { client_address, ..sent() };
        assert_eq!(encoded(client_address).len(), bare + bytes, "{address}");
        assert_eq!(Entry::decode(EntryKind::Sent as u8, &entry.encode()), Ok(Entry::Sent(Box::new(entry))));
        let charge = UsageCharge::new(UsageRecord { client_address, ..record() });
        let decoded = Entry::decode(EntryKind::Charged as u8, &encode_charged(&charge, &[]));
        assert_eq!(decoded, Ok(Entry::Charged(Box::new(FoldEntry { charge, allowances: Vec::new() }))));
    }
}

#[test]
fn decode_names_unknown_versions_and_kinds() {
    let payload = encode_released(&record().id);
    for other in [VERSION - 1, VERSION + 1] {
        let foreign = [&[other], &payload[1..]].concat();
        assert_eq!(Entry::decode(EntryKind::Released as u8, &foreign), Err(InvalidEntry::Version(other)));
    }
    assert_eq!(Entry::decode(99, &payload), Err(InvalidEntry::Kind(99)));
}

#[test]
fn charge_with_one_attempt_takes_fewer_bytes_than_are_reserved() {
    let mut charge = charge();
    charge.messages.clear();
    charge.evidence.clear();
    let bytes = encode_charged(&charge, &allowances()).len();
    let UsageRecord { attempts, guardrails, .. } = &charge.record;
    let reserved = charge_bytes(attempts.len(), allowances().len(), guardrails.len());
    assert!(bytes <= reserved, "{bytes} bytes of {reserved}");
}

proptest! {
    #[test]
    fn decode_never_panics_on_any_bytes(kind in 0_u8..8, bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Entry::decode(kind, &bytes);
    }

    #[test]
    fn decode_never_panics_on_changed_bytes(which in 0_usize..5, at in any::<prop::sample::Index>(), with in any::<u8>()) {
        let (kind, mut payload, _) = all()[which].clone();
        let at = at.index(payload.len());
        payload[at] = with;
        if let Ok(entry) = Entry::decode(kind as u8, &payload) {
            prop_assert!(matches!((kind, &entry), (EntryKind::Closed, Entry::Closed)) || kind != EntryKind::Closed);
        }
    }
}
