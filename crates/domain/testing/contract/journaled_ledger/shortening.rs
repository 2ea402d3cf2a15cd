//! Charges that leave out details to fit into the journal.

use super::fixture::{LedgerFixture, LedgerMachine, attempt, hold_request, key_counter, payer, usage_record, usd};
use crate::budget::{HoldRequest, Ledger, UsageCharge, cost_of_attempts};
use crate::error::StoreError;
use crate::ids::{DestinationId, GuardrailId, OutboxId};
use crate::json::Json;
use crate::money::Price;
use crate::testing::{JournalBounds, SequentialIds, StoreFault};
use crate::usage::{AttemptRecord, FilterAction, Finding, OutboxMessage, UsageRecord};

fn text(bytes: usize) -> Json {
    Json::string(&"x".repeat(bytes))
}

pub(super) async fn records_go_without_their_trace_above_half_of_the_journal(machine: &LedgerMachine) {
    let fixture = LedgerFixture::unlimited(machine).await;
    let process = fixture
        .process_with(1, JournalBounds { max_bytes: 64 << 10, max_payload_bytes: 8 << 10, ..JournalBounds::default() });
    let charge = async |number: u128| {
        process.hold(number, 10).await.unwrap().unwrap();
        let record = UsageRecord { trace: Some(text(3_000)), ..usage_record(number, 7) };
        process.ledger.settle(&UsageCharge { record, messages: Vec::new() }).await.unwrap();
    };
    let is_traced = async |number| fixture.record(number).await.expect("it is recorded").trace.is_some();
    let is_above_half = || {
        let status = process.ledger.journal_status();
        status.unfolded_bytes > status.max_bytes / 2
    };
    charge(1).await;
    process.ledger.flush().await.unwrap();
    process.store.set(StoreFault::Away);
    let mut traced = 1;
    while !is_above_half() {
        traced += 1;
        charge(traced).await;
    }
    assert!(traced > 5 && process.ledger.omitted_traces() == 0, "{traced} charges with their traces");
    let bytes = process.ledger.journal_status().unfolded_bytes;
    for number in [traced + 1, traced + 2] {
        charge(number).await;
    }
    assert!(process.ledger.journal_status().unfolded_bytes - bytes < 3_000, "two charges without their traces");
    // A record without a trace loses no detail.
    process.hold(traced + 3, 10).await.unwrap().unwrap();
    process.charge(traced + 3, 7).await.unwrap();
    assert_eq!(process.ledger.omitted_traces(), 2);
    process.store.set(StoreFault::None);
    process.ledger.flush().await.unwrap();
    charge(traced + 4).await;
    process.ledger.flush().await.unwrap();
    for number in 1..=traced + 4 {
        assert_eq!(is_traced(number).await, number <= traced || number == traced + 4, "{number} of {traced}");
    }
    assert_eq!(process.ledger.omitted_traces(), 2, "below half of it records have their traces again");
    fixture.audit().await;
}

pub(super) async fn charge_of_any_size_is_recorded_and_ends_its_hold(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000_000_000).await;
    let process = fixture.process_with(1, JournalBounds { max_payload_bytes: 4 << 10, ..JournalBounds::default() });
    let at_price = |pico: i64| {
        let mut attempt = attempt(1);
        attempt.prices.prompt = Price::from_parts(i128::from(pico), 12).unwrap();
        attempt
    };
    let message = |number| OutboxMessage {
        id: OutboxId::from_uuid(SequentialIds::uuid(number)),
        destination_id: DestinationId::from_uuid(SequentialIds::uuid(1)),
        payload: text(1_000),
    };
    let finding = |number| Finding {
        guardrail_id: GuardrailId::from_uuid(SequentialIds::uuid(1)),
        label: format!("label {number}"),
        action: FilterAction::Redact,
        path: "state".to_owned(),
        count: 1,
    };
    let findings: Vec<Finding> = (0..900).map(finding).collect();
    let messages: Vec<OutboxMessage> = (1..=9).map(message).collect();
    let named = AttemptRecord { upstream_model: "m".repeat(100_000).into(), ..attempt(9) };
    let attempts =
        [vec![attempt(7)], (0..900).map(|_| attempt(1)).collect(), (1..=900).map(at_price).collect(), vec![named]];
    let mut spent = 0;
    for (number, attempts) in (1..).zip(attempts) {
        let cost = cost_of_attempts(&attempts).unwrap();
        spent += cost.pico();
        let record = UsageRecord {
            requested_model: "m".repeat(if number % 2 == 1 { 100_000 } else { 10 }),
            attempts: attempts.into(),
            cost,
            findings: findings.clone(),
            trace: Some(text(100_000)),
            session_id: Some("s".repeat(1_024)),
            user: Some("u".repeat(1_024)),
            ..usage_record(number, 0)
        };
        process.hold(number, 500_000).await.unwrap().unwrap();
        process.ledger.settle(&UsageCharge { record, messages: messages.clone() }).await.unwrap();
        assert_eq!(process.ledger.open_calls(), 0);
        process.ledger.flush().await.unwrap();
        let found = fixture.record(number).await.expect("it is recorded");
        assert_eq!((found.cost, cost_of_attempts(&found.attempts)), (cost, Some(cost)), "{number}");
        assert_eq!((found.trace, found.findings), (None, Vec::new()));
        let (counted, allotted) = fixture.counted().await;
        assert_eq!(counted, spent);
        let free = process.ledger.free(payer().workspace_id, key_counter());
        assert_eq!(free, usd(allotted), "nothing is held any more");
    }
    let kept = fixture.record(2).await.unwrap();
    assert_eq!((kept.attempts.len(), kept.attempts[0].input_tokens), (1, 900), "attempts at one price are one");
    assert_eq!(process.ledger.omitted_traces(), 4);
    process.ledger.close().await.unwrap();
    assert_eq!(fixture.counted().await, (spent, 0));
    fixture.audit().await;
}

pub(super) async fn hold_is_rejected_when_its_end_cannot_fit_into_the_journal(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let process = fixture.process_with(1, JournalBounds { max_payload_bytes: 1 << 10, ..JournalBounds::default() });
    let rejected = process.hold(1, 10).await;
    assert!(matches!(rejected, Err(StoreError::Unavailable(_))), "{rejected:?}");
    assert_eq!(process.ledger.open_calls(), 0);
    // No amount is held: the whole limit is free, and fails alike.
    let all = HoldRequest { amount: usd(1_000), ..hold_request(2, 10) };
    assert!(matches!(process.ledger.reserve(all).await, Err(StoreError::Unavailable(_))));
    process.ledger.flush().await.unwrap();
    process.ledger.close().await.unwrap();
    assert_eq!(fixture.counted().await, (0, 0));
    fixture.audit().await;
}
