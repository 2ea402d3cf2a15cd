//! Several processes with one limit.

use std::time::Duration;

use futures_util::FutureExt;

use super::fixture::{LedgerFixture, LedgerMachine, id, usd};
use crate::budget::{Ledger, RecoveryReport};
use crate::testing::{StoreFault, join_all};
use crate::usage::UnknownUsage;

pub(super) async fn limit_holds_over_processes_and_its_whole_room_can_be_used(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let processes = [fixture.process(1), fixture.process(2), fixture.process(3)];
    let mut held = 0;
    for number in 1..=300_u128 {
        let process = &processes[usize::try_from(number % 3).unwrap()];
        if process.hold(number, 10).await.unwrap().is_ok() {
            held += 10;
        }
        for process in &processes {
            process.ledger.tick().await.unwrap();
        }
        let (spent, allotted) = fixture.counted().await;
        assert!(spent + allotted <= 1_000, "{spent} + {allotted}");
    }
    assert_eq!(held, 1_000, "free allowances of other processes are returned");
    fixture.audit().await;
}

pub(super) async fn process_that_lacks_gets_what_others_have_free(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let (one, two) = (fixture.process(1), fixture.process(2));
    one.hold(1, 10).await.unwrap().unwrap();
    one.ledger.tick().await.unwrap();
    let exceeded = two.hold(2, 80).await.unwrap().unwrap_err();
    assert!(exceeded.waits_for_others(), "{exceeded:?}");
    one.ledger.tick().await.unwrap();
    two.hold(2, 80).await.unwrap().unwrap();
    let exceeded = two.hold(3, 11).await.unwrap().unwrap_err();
    assert_eq!((exceeded.spent, exceeded.reserved), (usd(0), usd(90)));
    fixture.audit().await;
}

pub(super) async fn sixty_four_requests_at_once_get_exactly_what_fits(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 109).await;
    let (one, two) = (fixture.process(1), fixture.process(2));
    let held = join_all((1..=64).map(async |number| {
        let process = if number % 2 == 0 { &one } else { &two };
        process.hold(number, 10).await.unwrap().is_ok()
    }));
    assert_eq!(held.await.into_iter().filter(|held| *held).count(), 10);
    fixture.audit().await;
}

pub(super) async fn request_behind_one_that_does_not_fit_is_not_held_up(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    // Requests that read their limits from the store may overtake each other.
    process.hold(9, 1).await.unwrap().unwrap();
    process.ledger.release(&id(9)).await.unwrap();
    let held = join_all([(1, 90), (2, 50), (3, 10)].map(async |(number, pico)| process.hold(number, pico).await));
    let held: Vec<bool> = held.await.into_iter().map(|answer| answer.unwrap().is_ok()).collect();
    assert_eq!(held, [true, false, true], "the freed amount is left to the third");
    fixture.audit().await;
}

pub(super) async fn process_that_was_paused_keeps_its_money_and_charges_afterwards(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let (paused, other) = (fixture.process(1), fixture.process(2));
    paused.hold(1, 60).await.unwrap().unwrap();
    // Longer than a month and a recall.
    fixture.advance(Duration::from_hours(40 * 24));
    assert_eq!(fixture.recover(UnknownUsage::Bound).await, RecoveryReport::default(), "its journal is its own");
    let exceeded = other.hold(2, 41).await.unwrap().unwrap_err();
    assert!(exceeded.waits_for_others(), "{exceeded:?}");
    other.hold(2, 40).await.unwrap().unwrap();
    paused.charge(1, 55).await.unwrap();
    paused.ledger.flush().await.unwrap();
    paused.ledger.tick().await.unwrap();
    other.charge(2, 40).await.unwrap();
    other.ledger.flush().await.unwrap();
    assert_eq!(fixture.counted().await.0, 95);
    for process in [&paused, &other] {
        process.ledger.close().await.unwrap();
    }
    assert_eq!(fixture.counted().await, (95, 0));
    fixture.audit().await;
}

pub(super) async fn refusal_is_uncertain_while_a_holder_is_silent_and_certain_once_it_has_answered(
    machine: &LedgerMachine,
) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let (one, two) = (fixture.process(1), fixture.process(2));
    one.hold(1, 90).await.unwrap().unwrap();
    one.ledger.tick().await.unwrap();
    fixture.advance(Duration::from_millis(10));
    for _ in 0..3 {
        two.ledger.tick().await.unwrap();
        assert!(two.hold(2, 20).await.unwrap().unwrap_err().is_uncertain, "the holder is paused");
        fixture.advance(Duration::from_secs(1));
    }
    one.ledger.tick().await.unwrap();
    for _ in 0..20 {
        let refused = two.hold(3, 20).await.unwrap().unwrap_err();
        assert!(refused.waits_for_others() && !refused.is_uncertain, "all of it is held: {refused:?}");
        fixture.advance(Duration::from_millis(500));
        one.ledger.tick().await.unwrap();
    }
    fixture.advance(Duration::from_secs(3));
    assert!(two.hold(4, 20).await.unwrap().unwrap_err().is_uncertain, "it is paused again");
    one.charge(1, 90).await.unwrap();
    one.ledger.flush().await.unwrap();
    let refused = two.hold(5, 20).await.unwrap().unwrap_err();
    assert!(!refused.waits_for_others() && !refused.is_uncertain, "the limit is spent");
    fixture.audit().await;
}

pub(super) async fn idle_process_is_seen_by_its_heartbeat(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    let silent_for = async || machine.stores.budget.live_processes().await.unwrap()[0].silent_for.as_secs();
    process.ledger.tick().await.unwrap();
    fixture.advance(Duration::from_secs(29));
    process.ledger.tick().await.unwrap();
    assert_eq!(silent_for().await, 29);
    fixture.advance(Duration::from_secs(1));
    process.ledger.tick().await.unwrap();
    assert_eq!(silent_for().await, 0);
}

pub(super) async fn key_at_its_limit_is_refused_from_memory_for_a_moment(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.hold(1, 95).await.unwrap().unwrap();
    process.charge(1, 95).await.unwrap();
    let first = process.hold(2, 10).await.unwrap().unwrap_err();
    let draws = process.store.draws();
    for number in 3..50 {
        assert_eq!(process.hold(number, 10).await.unwrap().unwrap_err(), first);
    }
    assert_eq!(process.store.draws(), draws);
    // An amount within the limit is held.
    process.hold(50, 5).await.unwrap().unwrap();
    process.ledger.release(&id(50)).await.unwrap();
    // A higher limit applies after the next read of the feed; then the store is asked again.
    fixture.limit_key(Some(110)).await;
    process.ledger.tick().await.unwrap();
    process.hold(51, 10).await.unwrap().unwrap();
    process.hold(52, 10).await.unwrap().unwrap_err();
    let draws = process.store.draws();
    process.hold(53, 10).await.unwrap().unwrap_err();
    assert!(process.store.draws() > draws, "with money in flight the store is asked each time");
    process.charge(51, 10).await.unwrap();
    process.hold(54, 10).await.unwrap().unwrap_err();
    let draws = process.store.draws();
    process.hold(55, 10).await.unwrap().unwrap_err();
    assert_eq!(process.store.draws(), draws);
    fixture.advance(Duration::from_millis(50));
    process.hold(56, 10).await.unwrap().unwrap_err();
    assert!(process.store.draws() > draws);
    fixture.audit().await;
}

pub(super) async fn request_is_answered_when_the_one_that_draws_for_it_leaves(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.hold(9, 10).await.unwrap().unwrap();
    process.ledger.release(&id(9)).await.unwrap();
    process.store.set(StoreFault::Hangs);
    {
        let (mut leaver, mut other) = (Box::pin(process.hold(1, 70)), Box::pin(process.hold(2, 70)));
        // Both wait in the queue; the first one waits for the store.
        for future in [&mut leaver, &mut other] {
            assert!(future.as_mut().now_or_never().is_none());
        }
        drop(leaver);
        process.store.set(StoreFault::None);
        other.await.unwrap().unwrap();
    }
    assert_eq!(process.ledger.open_calls(), 1);
    fixture.audit().await;
}
