//! Processes that continue under another id.

use std::sync::Arc;
use std::time::Duration;

use super::fixture::{LedgerFixture, LedgerMachine, process_id, usd};
use crate::budget::{FOLD_AGAIN_FOR, ProcessState, RemainingAllowances};
use crate::error::StoreError;
use crate::usage::{UnknownUsage, UsageOutcome};

/// The time after which a process without other calls shows the store that it lives.
const HEARTBEAT: Duration = Duration::from_secs(30);

pub(super) async fn process_over_an_older_store_folds_again_and_continues(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let backup = machine.backup.copy().await;
    let process = fixture.renewing_process(1).await;
    process.hold(1, 100).await.unwrap().unwrap();
    process.charge(1, 10).await.unwrap();
    process.work().await;
    process.hold(2, 100).await.unwrap().unwrap();
    process.charge(2, 20).await.unwrap();
    process.store.replace(Arc::clone(&backup.budget));
    let restored = fixture.over(&backup);
    let first = process.ledger.process();
    process.work().await;
    assert_ne!(process.ledger.process(), first, "it continues under a new id");
    assert_eq!(restored.counted().await, (30, 0), "folded charges are folded again, and allowances are given up");
    let early = process.hold(3, 100).await;
    assert!(matches!(early, Err(StoreError::Unavailable(_))), "other processes may still fold: {early:?}");
    restored.advance(FOLD_AGAIN_FOR);
    process.hold(4, 970).await.unwrap().unwrap();
    let exceeded = process.hold(5, 1).await.unwrap().unwrap_err();
    assert_eq!((exceeded.limit, exceeded.spent), (usd(1_000), usd(30)));
    process.charge(4, 970).await.unwrap();
    process.work().await;
    assert_eq!(restored.counted().await.0, 1_000);
    restored.audit().await;
}

pub(super) async fn process_that_the_older_store_never_knew_loses_no_charge(machine: &LedgerMachine) {
    let fixture = LedgerFixture::unlimited(machine).await;
    let backup = machine.backup.copy().await;
    let process = fixture.renewing_process(1).await;
    for number in 1..=40 {
        process.hold(number, 10).await.unwrap().unwrap();
        process.charge(number, 5).await.unwrap();
        if number % 10 == 0 {
            process.work().await;
        }
    }
    process.store.replace(Arc::clone(&backup.budget));
    process.hold(41, 10).await.unwrap().unwrap();
    process.charge(41, 5).await.unwrap();
    process.work().await;
    let restored = fixture.over(&backup);
    for number in 1..=41 {
        assert!(restored.record(number).await.is_some(), "the record {number}");
    }
    restored.audit().await;
}

pub(super) async fn open_request_of_a_sealed_journal_is_charged_by_its_bound_until_its_charge(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let process = fixture.renewing_process(1).await;
    process.hold(1, 100).await.unwrap().unwrap();
    machine.stores.budget.end(process_id(1), RemainingAllowances::Adjust).await.unwrap();
    process.work().await;
    assert_ne!(process.ledger.process(), process_id(1));
    let abandoned = fixture.record(1).await.unwrap();
    assert_eq!((abandoned.outcome, abandoned.cost), (UsageOutcome::Abandoned, usd(100)));
    process.charge(1, 30).await.unwrap();
    process.work().await;
    let charged = fixture.record(1).await.unwrap();
    assert_eq!((charged.outcome, charged.cost), (UsageOutcome::Completed, usd(30)));
    assert_eq!(fixture.counted().await, (30, 0));
    fixture.audit().await;
}

pub(super) async fn charge_that_waits_for_the_disk_of_a_sealed_journal_is_charged_once(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let process = fixture.renewing_process(1).await;
    process.hold(1, 100).await.unwrap().unwrap();
    process.work().await;
    machine.journals.set_disk_failing(true);
    process.charge(1, 30).await.unwrap_err();
    machine.stores.budget.end(process_id(1), RemainingAllowances::Adjust).await.unwrap();
    machine.journals.set_disk_failing(false);
    process.hold(2, 100).await.unwrap().unwrap();
    process.charge(2, 5).await.unwrap();
    fixture.advance(HEARTBEAT);
    process.work().await;
    assert_ne!(process.ledger.process(), process_id(1));
    process.work().await;
    assert_eq!(fixture.record(1).await.unwrap().cost, usd(30));
    assert_eq!(fixture.counted().await, (35, 0));
    fixture.audit().await;
}

pub(super) async fn dead_journals_are_folded_again_into_an_older_store(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let backup = machine.backup.copy().await;
    let living = fixture.renewing_process(10).await;
    living.hold(1, 100).await.unwrap().unwrap();
    living.charge(1, 10).await.unwrap();
    living.work().await;
    let dead = fixture.process(1);
    dead.hold(2, 100).await.unwrap().unwrap();
    dead.charge(2, 20).await.unwrap();
    drop(dead);
    assert_eq!(living.recover().await.folded, 1);
    living.store.replace(Arc::clone(&backup.budget));
    living.hold(3, 100).await.unwrap().unwrap();
    living.charge(3, 5).await.unwrap();
    living.work().await;
    let restored = fixture.over(&backup);
    assert_eq!(restored.counted().await, (35, 0), "the charge of the dead process, too");
    restored.recover(UnknownUsage::Bound).await;
    assert_eq!(restored.counted().await, (35, 0));
}

pub(super) async fn idle_process_notices_the_older_store_by_its_declaration(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let backup = machine.backup.copy().await;
    let (idle, busy) = (fixture.renewing_process(1).await, fixture.renewing_process(100).await);
    idle.hold(1, 100).await.unwrap().unwrap();
    idle.charge(1, 10).await.unwrap();
    idle.work().await;
    busy.hold(2, 100).await.unwrap().unwrap();
    for process in [&idle, &busy] {
        process.store.replace(Arc::clone(&backup.budget));
    }
    busy.charge(2, 20).await.unwrap();
    busy.work().await;
    idle.work().await;
    idle.work().await;
    assert_ne!(idle.ledger.process(), process_id(1));
    let restored = fixture.over(&backup);
    assert_eq!(restored.counted().await, (30, 0));
    let row = backup.budget.process(process_id(1)).await.unwrap().unwrap();
    assert_eq!(row.state, ProcessState::Ended);
    restored.audit().await;
}
