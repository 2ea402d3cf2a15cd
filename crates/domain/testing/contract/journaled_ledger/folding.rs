//! Draws, folds and returns, with lost answers and store outages.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, poll_immediate, select};

use super::fixture::{LedgerFixture, LedgerMachine, hold_request, id, key_counter, payer, process_id, usd};
use crate::budget::{Ledger, LedgerReader};
use crate::error::StoreError;
use crate::system::TimeSource;
use crate::testing::{JournalBounds, ManualTimer, StoreFault};

pub(super) async fn request_waits_for_the_store_only_while_its_counter_is_cold(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000_000).await;
    let process = fixture.process(1);
    process.hold(1, 10).await.unwrap().unwrap();
    process.ledger.tick().await.unwrap();
    let draws = process.store.draws();
    for number in 2..=8 {
        process.hold(number, 10).await.unwrap().unwrap();
    }
    assert_eq!(process.store.draws(), draws, "the counter was filled ahead");
    process.store.set(StoreFault::Away);
    process.charge(1, 7).await.unwrap();
    assert!(process.ledger.tick().await.is_err());
    process.store.set(StoreFault::None);
    process.ledger.flush().await.unwrap();
    assert_eq!(fixture.counted().await.0, 7);
    fixture.audit().await;
}

pub(super) async fn hold_fails_as_unavailable_while_the_store_is_away_and_never_as_a_limit(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.hold(1, 60).await.unwrap().unwrap();
    process.store.set(StoreFault::Away);
    assert!(matches!(process.hold(2, 60).await, Err(StoreError::Unavailable(_))));
    process.charge(1, 50).await.unwrap();
    process.hold(3, 10).await.unwrap().unwrap();
    process.store.set(StoreFault::None);
    let exceeded = process.hold(4, 60).await.unwrap().unwrap_err();
    assert_eq!((exceeded.spent, exceeded.reserved, exceeded.wanted), (usd(50), usd(10), usd(60)));
    fixture.audit().await;
}

pub(super) async fn request_does_not_queue_behind_a_store_that_failed_and_hangs(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.hold(1, 60).await.unwrap().unwrap();
    process.ledger.flush().await.unwrap();
    process.store.set(StoreFault::Away);
    assert!(process.ledger.tick().await.is_err());
    // Without entries, a flush does not ask the store and does not learn that it is back.
    process.ledger.flush().await.unwrap();
    process.store.set(StoreFault::Hangs);
    // The tick is polled first.
    match select(pin!(process.ledger.tick()), pin!(process.hold(2, 60))).await {
        Either::Left(_) => panic!("the store answers"),
        Either::Right((held, _)) => assert!(matches!(held, Err(StoreError::Unavailable(_)))),
    }
    process.store.set(StoreFault::None);
    process.ledger.tick().await.unwrap();
    process.hold(2, 40).await.unwrap().unwrap();
    fixture.audit().await;
}

pub(super) async fn known_limits_are_used_after_a_second_without_response(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let timer = ManualTimer::new(machine.stores.clock.clone());
    let time = TimeSource { clock: Arc::new(machine.stores.clock.clone()), timer: Arc::new(timer.clone()) };
    let process = fixture.process_with_time(1, JournalBounds::default(), time);
    process.hold(1, 60).await.unwrap().unwrap();
    fixture.limit_key(Some(200)).await;
    process.ledger.tick().await.unwrap();
    assert_eq!(timer.slept().len(), 0, "the limits of the first request are not known");
    process.store.set(StoreFault::Hangs);
    process.hold(2, 20).await.unwrap().unwrap();
    assert_eq!(timer.slept(), [Duration::from_secs(1)]);
    process.hold(3, 20).await.unwrap().unwrap();
    assert_eq!(timer.slept().len(), 1, "no further request waits for a silent store");
    process.store.set(StoreFault::None);
    process.ledger.tick().await.unwrap();
    process.hold(4, 100).await.unwrap().unwrap();
    assert_eq!(timer.slept().len(), 1, "the read after a timeout has none: a slow store must respond to some");
    fixture.audit().await;
}

pub(super) async fn request_that_waits_for_a_round_fails_with_it(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.hold(1, 60).await.unwrap().unwrap();
    process.store.set(StoreFault::TimesOut);
    let mut round = Box::pin(process.ledger.tick());
    assert!(poll_immediate(&mut round).await.is_none(), "the store does not answer yet");
    let mut waiting = pin!(process.hold(2, 60));
    assert!(poll_immediate(&mut waiting).await.is_none(), "the round has its turn");
    process.store.set(StoreFault::Hangs);
    assert!(round.await.is_err());
    let held = poll_immediate(waiting).await.expect("no draw of its own that would hang");
    assert!(matches!(held, Err(StoreError::Unavailable(_))));
    process.store.set(StoreFault::None);
    process.ledger.tick().await.unwrap();
    process.hold(2, 40).await.unwrap().unwrap();
    fixture.audit().await;
}

pub(super) async fn callers_that_wait_together_for_a_failing_store_get_one_error(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.hold(1, 60).await.unwrap().unwrap();
    process.charge(1, 50).await.unwrap();
    process.store.set(StoreFault::TimesOut);
    // A flush would wait for the disk first.
    let mut round = Box::pin(process.ledger.tick());
    assert!(poll_immediate(&mut round).await.is_none(), "the store does not answer yet");
    let mut waiting = pin!(process.ledger.flush());
    assert!(poll_immediate(&mut waiting).await.is_none(), "the round has its turn");
    process.store.set(StoreFault::Hangs);
    assert!(round.await.is_err());
    let waited = poll_immediate(waiting).await.expect("no attempt of its own that would hang");
    assert!(matches!(waited, Err(StoreError::Unavailable(_))));
    process.store.set(StoreFault::None);
    process.ledger.flush().await.unwrap();
    fixture.audit().await;
}

pub(super) async fn answered_request_does_not_wait_for_the_draw_of_a_later_one(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.hold(1, 10).await.unwrap().unwrap();
    process.store.set(StoreFault::Hangs);
    let mut blocking = Box::pin(process.ledger.tick());
    assert!(poll_immediate(&mut blocking).await.is_none(), "the store hangs");
    let (mut second, mut third) = (pin!(process.hold(2, 10)), pin!(process.hold(3, 10)));
    assert!(poll_immediate(&mut second).await.is_none() && poll_immediate(&mut third).await.is_none());
    process.store.set(StoreFault::None);
    drop(blocking);
    second.await.unwrap().unwrap();
    process.store.set(StoreFault::Hangs);
    let mut later = Box::pin(process.ledger.tick());
    assert!(poll_immediate(&mut later).await.is_none(), "a later call has its turn");
    poll_immediate(third).await.expect("it was answered with the second").unwrap().unwrap();
    process.store.set(StoreFault::None);
    drop(later);
    process.ledger.tick().await.unwrap();
    fixture.audit().await;
}

pub(super) async fn draw_fills_a_counter_ahead_by_the_holds_of_the_last_second(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let process = fixture.process(1);
    process.hold(1, 10).await.unwrap().unwrap();
    assert_eq!(fixture.counted().await, (0, 10), "the counter was cold");
    process.hold(2, 30).await.unwrap().unwrap();
    assert_eq!(fixture.counted().await, (0, 50));
    process.hold(3, 961).await.unwrap().unwrap_err();
    assert_eq!(fixture.counted().await, (0, 50), "a rejection draws nothing");
    process.store.set(StoreFault::Away);
    process.hold(3, 10).await.unwrap().unwrap();
    process.store.set(StoreFault::None);
    fixture.advance(Duration::from_secs(2));
    process.hold(4, 40).await.unwrap().unwrap();
    assert_eq!(fixture.counted().await, (0, 90), "the last second had no holds");
    fixture.audit().await;
}

pub(super) async fn draw_with_a_lost_answer_is_granted_once(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.ledger.tick().await.unwrap();
    process.store.set(StoreFault::LostAnswer);
    assert!(process.hold(1, 60).await.is_err());
    process.store.set(StoreFault::None);
    process.hold(2, 60).await.unwrap().unwrap();
    assert_eq!(fixture.counted().await, (0, 60), "the first grant is the second request's");
    fixture.audit().await;
}

pub(super) async fn fold_and_return_with_lost_answers_take_effect_once(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.hold(1, 60).await.unwrap().unwrap();
    process.charge(1, 20).await.unwrap();
    process.store.set(StoreFault::LostAnswer);
    assert!(process.ledger.flush().await.is_err());
    process.hold(2, 10).await.unwrap().unwrap();
    process.charge(2, 5).await.unwrap();
    assert!(process.ledger.flush().await.is_err());
    process.store.set(StoreFault::None);
    process.ledger.flush().await.unwrap();
    assert_eq!(fixture.counted().await, (25, 35));
    fixture.advance(Duration::from_secs(61));
    process.store.set(StoreFault::LostAnswer);
    assert!(process.ledger.tick().await.is_err());
    process.store.set(StoreFault::None);
    process.ledger.tick().await.unwrap();
    process.ledger.tick().await.unwrap();
    assert_eq!(fixture.counted().await, (25, 0), "idle allowances are returned");
    process.hold(3, 75).await.unwrap().unwrap();
    fixture.audit().await;
}

pub(super) async fn released_hold_is_free_at_once_and_journaled(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.hold(1, 100).await.unwrap().unwrap();
    process.ledger.release(&id(1)).await.unwrap();
    process.hold(2, 100).await.unwrap().unwrap();
    assert_eq!(process.ledger.open_calls(), 1);
    assert_eq!(process.ledger.journal_status().last_sequence, 3, "sent, released, sent");
}

pub(super) async fn full_journal_rejects_a_request_before_it_costs_anything(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process_with(1, JournalBounds { max_bytes: 4_500, ..JournalBounds::default() });
    process.hold(1, 50).await.unwrap().unwrap();
    assert!(matches!(process.hold(2, 50).await, Err(StoreError::Unavailable(_))));
    let free = process.ledger.free(payer().workspace_id, key_counter()).pico();
    assert_eq!(fixture.counted().await, (0, 50 + free), "nothing is held for it");
    process.charge(1, 50).await.unwrap();
    process.ledger.flush().await.unwrap();
    process.hold(3, 50).await.unwrap().unwrap();
}

pub(super) async fn charge_that_waits_for_the_disk_is_an_error_and_is_charged_once(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.hold(1, 50).await.unwrap().unwrap();
    machine.journals.set_disk_failing(true);
    assert!(process.charge(1, 30).await.is_err());
    assert!(process.hold(2, 10).await.is_err());
    machine.journals.set_disk_failing(false);
    machine.journals.sync(process_id(1));
    process.ledger.flush().await.unwrap();
    assert_eq!(fixture.counted().await.0, 30);
    fixture.audit().await;
}

pub(super) async fn pending_records_are_stored_on_demand(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.hold(1, 50).await.unwrap().unwrap();
    process.charge(1, 30).await.unwrap();
    assert_eq!(fixture.counted().await.0, 0);
    process.ledger.store_pending().await.unwrap();
    assert_eq!(fixture.counted().await.0, 30);
}

pub(super) async fn request_that_nothing_limits_needs_no_store(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.store.set(StoreFault::Away);
    let unlimited = crate::budget::HoldRequest { is_limited: false, ..hold_request(1, 1_000_000) };
    process.ledger.reserve(unlimited).await.unwrap().unwrap();
    process.charge(1, 5).await.unwrap();
    process.store.set(StoreFault::None);
    process.ledger.flush().await.unwrap();
    assert_eq!(fixture.counted().await, (5, 0), "it counts in every account all the same");
    fixture.audit().await;
}

pub(super) async fn closed_process_has_folded_everything_and_returned_its_allowances(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let process = fixture.process(1);
    process.hold(1, 50).await.unwrap().unwrap();
    process.ledger.tick().await.unwrap();
    assert!(process.ledger.close().await.is_err(), "a request is open");
    process.charge(1, 30).await.unwrap();
    process.ledger.close().await.unwrap();
    assert_eq!(fixture.counted().await, (30, 0));
    fixture.audit().await;
}

pub(super) async fn request_in_flight_when_a_limit_begins_counts_when_it_is_charged(machine: &LedgerMachine) {
    let fixture = LedgerFixture::unlimited(machine).await;
    let process = fixture.process(1);
    process.hold(1, 80).await.unwrap().unwrap();
    fixture.limit_key(Some(100)).await;
    process.ledger.tick().await.unwrap();
    process.hold(2, 20).await.unwrap().unwrap();
    process.charge(1, 80).await.unwrap();
    process.charge(2, 10).await.unwrap();
    process.ledger.flush().await.unwrap();
    let exceeded = process.hold(3, 11).await.unwrap().unwrap_err();
    assert_eq!((exceeded.spent, exceeded.reserved), (usd(90), usd(0)));
    fixture.limit_key(None).await;
    process.ledger.tick().await.unwrap();
    process.hold(4, 1_000).await.unwrap().unwrap();
    fixture.audit().await;
}

/// One answer of a process is lost, a different one in each round.
pub(super) async fn any_lost_answer_is_made_up_for(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100_000).await;
    for lost in 0.. {
        let first = 10 * u128::from(lost) + 1;
        let (mut spent, _) = fixture.counted().await;
        let process = fixture.process(first);
        process.store.set(StoreFault::LostAnswerAfter(lost));
        for number in first..first + 4 {
            let Ok(held) = process.hold(number, 50).await else { continue };
            held.unwrap();
            process.ledger.tick().await.ok();
            process.ledger.increase(&id(number), usd(500), &[]).await.ok();
            if number == first {
                process.ledger.release(&id(number)).await.unwrap();
            } else {
                process.charge(number, 30).await.unwrap();
                spent += 30;
            }
            process.ledger.flush().await.ok();
            fixture.advance(Duration::from_secs(61));
            process.ledger.tick().await.ok();
        }
        let is_over = process.store.fault() != StoreFault::None;
        process.store.set(StoreFault::None);
        process.hold(first + 5, 50).await.unwrap().unwrap();
        process.ledger.tick().await.unwrap();
        let free = process.ledger.free(payer().workspace_id, key_counter()).pico();
        assert_eq!(fixture.counted().await, (spent, free + 50), "answer {lost} was lost");
        fixture.audit().await;
        process.charge(first + 5, 50).await.unwrap();
        process.ledger.close().await.unwrap();
        assert_eq!(fixture.counted().await, (spent + 50, 0), "answer {lost} was lost");
        if is_over {
            assert!(lost > 10, "a process calls the store");
            break;
        }
    }
}

pub(super) async fn folding_of_a_long_journal_leaves_turns_to_requests(machine: &LedgerMachine) {
    let fixture = LedgerFixture::unlimited(machine).await;
    let process = fixture.process(1);
    for number in 1..=1_100 {
        process.hold(number, 1).await.unwrap().unwrap();
        process.charge(number, 1).await.unwrap();
    }
    // Each call to the store takes longer than a round of folding.
    process.store.slow_down(machine.stores.clock.clone(), Duration::from_millis(120));
    process.ledger.tick().await.unwrap();
    assert!(process.ledger.has_unfolded(), "the rest waits for the next turn");
    process.ledger.flush().await.unwrap();
    assert!(!process.ledger.has_unfolded());
    fixture.audit().await;
}
