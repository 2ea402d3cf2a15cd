//! Recovery of the journals of dead processes.

use std::sync::Arc;
use std::time::Duration;

use super::fixture::{LedgerFixture, LedgerMachine, attempt, hold_request, id, process_id, usd};
use crate::budget::{BudgetStore, HoldRequest, Ledger, RecoveryReport};
use crate::money::Usd;
use crate::testing::{JournalBounds, StoreFault};
use crate::usage::{UnknownUsage, UsageOutcome};

pub(super) async fn charges_of_a_dead_process_are_folded_once_and_open_requests_charged_by_their_bounds(
    machine: &LedgerMachine,
) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let dead = fixture.process(1);
    for number in 1..=4 {
        dead.hold(number, 100).await.unwrap().unwrap();
    }
    dead.charge(1, 30).await.unwrap();
    dead.ledger.flush().await.unwrap();
    dead.charge(2, 40).await.unwrap();
    dead.ledger.release(&id(3)).await.unwrap();
    dead.ledger.increase(&id(4), usd(50), &[attempt(50)]).await.unwrap().unwrap();
    drop(dead);
    let report = fixture.recover(UnknownUsage::Bound).await;
    assert_eq!(report, RecoveryReport { journals: 1, folded: 1, abandoned: 1, released: 0, gaps: 0 });
    assert_eq!(fixture.counted().await, (30 + 40 + 150, 0));
    let abandoned = fixture.record(4).await.unwrap();
    assert_eq!((abandoned.outcome, abandoned.cost), (UsageOutcome::Abandoned, usd(150)));
}

pub(super) async fn attempts_of_a_later_stage_are_charged_once_it_has_begun(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let dead = fixture.process(1);
    for number in 1..=2 {
        let stages = HoldRequest { attempts: Arc::new([attempt(40), attempt(60)]), ..hold_request(number, 100) };
        dead.ledger.reserve(stages).await.unwrap().unwrap();
    }
    dead.ledger.increase(&id(2), Usd::ZERO, &[attempt(60)]).await.unwrap().unwrap();
    drop(dead);
    let report = fixture.recover(UnknownUsage::Bound).await;
    assert_eq!(report.abandoned, 2);
    let (first, both) = (fixture.record(1).await.unwrap(), fixture.record(2).await.unwrap());
    assert_eq!((first.cost, first.attempts.len()), (usd(40), 1), "the second stage was not called");
    assert_eq!((both.cost, both.attempts.len()), (usd(100), 2));
    assert_eq!(fixture.counted().await, (40 + 100, 0), "what is held for the rest goes back");
}

pub(super) async fn open_requests_are_free_where_unknown_usage_is(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let dead = fixture.process(1);
    dead.hold(1, 100).await.unwrap().unwrap();
    drop(dead);
    let report = fixture.recover(UnknownUsage::Free).await;
    assert_eq!((report.abandoned, report.released), (0, 1));
    assert_eq!(fixture.counted().await, (0, 0));
}

pub(super) async fn allowances_become_adjustments_where_the_power_was_lost(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let dead = fixture.process_with(1, JournalBounds { is_synced_by_hand: true, ..JournalBounds::default() });
    dead.hold(1, 100).await.unwrap().unwrap();
    machine.journals.sync(process_id(1));
    dead.hold(2, 100).await.unwrap().unwrap();
    dead.charge(1, 60).await.unwrap();
    dead.charge(2, 70).await.unwrap();
    let (_, allotted) = fixture.counted().await;
    drop(dead);
    machine.journals.lose_power();
    let report = fixture.recover(UnknownUsage::Bound).await;
    assert_eq!((report.folded, report.abandoned), (0, 1));
    assert_eq!(fixture.counted().await, (allotted, 0), "the limit holds although 60 and 70 are lost");
}

pub(super) async fn gap_is_counted_and_nothing_behind_it_is_lost(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let dead = fixture.process(1);
    for number in 1..=3 {
        dead.hold(number, 100).await.unwrap().unwrap();
        dead.charge(number, 10).await.unwrap();
    }
    let (_, allotted) = fixture.counted().await;
    drop(dead);
    machine.journals.damage(process_id(1), 4);
    let report = fixture.recover(UnknownUsage::Bound).await;
    assert_eq!((report.folded, report.abandoned, report.gaps), (2, 1, 1));
    assert_eq!(fixture.counted().await.0, allotted, "what is left of the allowances counts as spent");
}

pub(super) async fn more_charges_than_a_batch_are_folded_once(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100_000).await;
    let dead = fixture.process(1);
    for number in 1..=1_100 {
        dead.hold(number, 10).await.unwrap().unwrap();
        dead.charge(number, 5).await.unwrap();
    }
    dead.hold(1_101, 100).await.unwrap().unwrap();
    drop(dead);
    let report = fixture.recover(UnknownUsage::Bound).await;
    assert_eq!((report.abandoned, report.gaps), (1, 0));
    assert_eq!(fixture.counted().await, (1_100 * 5 + 100, 0));
    assert_eq!(fixture.recover(UnknownUsage::Bound).await, RecoveryReport::default());
    assert_eq!(fixture.counted().await, (1_100 * 5 + 100, 0));
}

pub(super) async fn journal_that_is_newer_than_a_restored_store_is_folded_again(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let backup = machine.backup.copy().await;
    let dead = fixture.process(1);
    for number in 1..=3 {
        dead.hold(number, 100).await.unwrap().unwrap();
        dead.charge(number, 10).await.unwrap();
    }
    dead.ledger.close().await.unwrap();
    drop(dead);
    let restored = fixture.over(&backup);
    assert_eq!(restored.counted().await, (0, 0));
    let report = restored.recover(UnknownUsage::Bound).await;
    assert_eq!((report.folded, report.abandoned), (3, 0));
    assert_eq!(restored.counted().await, (30, 0));
}

pub(super) async fn living_process_over_an_older_store_loses_no_charge(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let (known, unknown) = (fixture.process(1), fixture.process(2));
    known.hold(1, 100).await.unwrap().unwrap();
    let backup = machine.backup.copy().await;
    known.charge(1, 10).await.unwrap();
    known.ledger.flush().await.unwrap();
    known.hold(2, 20).await.unwrap().unwrap();
    unknown.hold(3, 30).await.unwrap().unwrap();
    for process in [&known, &unknown] {
        process.store.replace(Arc::clone(&backup.budget));
    }
    known.charge(2, 20).await.unwrap();
    unknown.charge(3, 30).await.unwrap();
    let too_much = unknown.hold(4, 900).await;
    assert!(!matches!(too_much, Ok(Ok(_))), "a store that does not know the process grants nothing");
    assert!(known.ledger.flush().await.is_err() && unknown.ledger.flush().await.is_err());
    drop((known, unknown));
    let restored = fixture.over(&backup);
    restored.recover(UnknownUsage::Bound).await;
    assert_eq!(restored.counted().await, (60, 0), "every charge is there once");
}

pub(super) async fn limits_of_a_restored_store_are_followed_although_its_feed_fell(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let process = fixture.process(1);
    process.hold(1, 100).await.unwrap().unwrap();
    process.ledger.tick().await.unwrap();
    process.ledger.flush().await.unwrap();
    let backup = machine.backup.copy().await;
    for limit in [2_000, 3_000] {
        fixture.limit_key(Some(limit)).await;
        process.ledger.tick().await.unwrap();
    }
    process.hold(2, 10).await.unwrap().unwrap();
    process.store.replace(Arc::clone(&backup.budget));
    let restored = fixture.over(&backup);
    restored.limit_key(Some(500)).await;
    for _ in 0..2 {
        fixture.advance(Duration::from_millis(500));
        process.ledger.tick().await.unwrap();
    }
    let exceeded = process.hold(3, 400).await.unwrap().unwrap_err();
    assert_eq!((exceeded.limit, exceeded.reserved), (usd(500), usd(110)));
    restored.limit_key(Some(510)).await;
    process.ledger.tick().await.unwrap();
    process.hold(4, 400).await.unwrap().unwrap();
    assert_eq!(restored.counted().await, (0, 510));
    restored.audit().await;
}

pub(super) async fn journal_copied_back_from_an_older_backup_frees_nothing_that_may_be_spent(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let dead = fixture.process(1);
    dead.hold(1, 100).await.unwrap().unwrap();
    dead.charge(1, 10).await.unwrap();
    dead.ledger.flush().await.unwrap();
    machine.journals.back_up();
    for number in 2..=3 {
        dead.hold(number, 100).await.unwrap().unwrap();
        dead.charge(number, 10).await.unwrap();
        if number == 2 {
            dead.ledger.flush().await.unwrap();
        }
    }
    let (spent, allotted) = fixture.counted().await;
    assert_eq!(spent, 20);
    drop(dead);
    machine.journals.restore();
    let report = fixture.recover(UnknownUsage::Bound).await;
    assert_eq!((report.folded, report.gaps), (0, 1), "the newest entries are missing");
    assert_eq!(fixture.counted().await, (spent + allotted, 0), "the third charge is lost, its limit holds");
    machine.journals.restore();
    assert_eq!(fixture.recover(UnknownUsage::Bound).await, RecoveryReport::default());
    assert_eq!(
        fixture.counted().await,
        (spent + allotted, 0),
        "a recovered journal adds nothing when it turns up again"
    );
}

pub(super) async fn journal_that_was_closed_returns_its_allowances_after_a_loss_of_power(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let dead = fixture.process(1);
    dead.hold(1, 100).await.unwrap().unwrap();
    dead.charge(1, 30).await.unwrap();
    dead.ledger.flush().await.unwrap();
    dead.store.set(StoreFault::Away);
    assert!(dead.ledger.close().await.is_err(), "the store does not know of the end");
    drop(dead);
    machine.journals.lose_power();
    fixture.recover(UnknownUsage::Bound).await;
    assert_eq!(fixture.counted().await, (30, 0));
}

pub(super) async fn recovery_is_repeated_when_the_store_was_away(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let dead = fixture.process(1);
    dead.hold(1, 100).await.unwrap().unwrap();
    dead.charge(1, 30).await.unwrap();
    drop(dead);
    let store = fixture.faulty_store();
    store.set(StoreFault::Away);
    let report = fixture.recover_by(Arc::clone(&store) as Arc<dyn BudgetStore>, UnknownUsage::Bound).await;
    assert_eq!(report, RecoveryReport::default());
    assert_eq!(fixture.recover(UnknownUsage::Bound).await.folded, 1);
    assert_eq!(fixture.counted().await, (30, 0));
}

/// One answer of a recovery is lost, a different one in each round, with a complete and with a damaged journal.
pub(super) async fn recovery_with_any_answer_lost_is_finished_by_the_next_one(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000_000).await;
    for is_damaged in [false, true] {
        let first = if is_damaged { 1_000 } else { 0 };
        for lost in 0.. {
            let number = first + 10 * u128::from(lost) + 1;
            let (before, _) = fixture.counted().await;
            let dead = fixture.process(number);
            dead.hold(number, 100).await.unwrap().unwrap();
            dead.ledger.tick().await.unwrap();
            dead.hold(number + 1, 100).await.unwrap().unwrap();
            dead.charge(number, 10).await.unwrap();
            // Damage at the end would look like an interrupted write.
            dead.hold(number + 2, 100).await.unwrap().unwrap();
            let (_, allotted) = fixture.counted().await;
            assert!(allotted >= 600, "some is free: {allotted}");
            drop(dead);
            if is_damaged {
                machine.journals.damage(process_id(number), 3);
            }
            let store = fixture.faulty_store();
            store.set(StoreFault::LostAnswerAfter(lost));
            fixture.recover_by(Arc::clone(&store) as Arc<dyn BudgetStore>, UnknownUsage::Bound).await;
            fixture.audit().await;
            let is_over = store.fault() != StoreFault::None;
            fixture.recover_by(Arc::clone(&store) as Arc<dyn BudgetStore>, UnknownUsage::Bound).await;
            fixture.recover(UnknownUsage::Bound).await;
            fixture.remove_recovered().await;
            let expected = if is_damaged { allotted } else { 210 };
            assert_eq!(
                fixture.counted().await,
                (before + expected, 0),
                "answer {lost} was lost, damaged: {is_damaged}"
            );
            if is_over {
                assert!(lost > 2, "a recovery calls the store");
                break;
            }
        }
    }
}
