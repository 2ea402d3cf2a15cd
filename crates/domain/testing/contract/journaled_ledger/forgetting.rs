//! Processes whose journals are lost.

use std::sync::Arc;
use std::time::Duration;

use super::fixture::{LedgerFixture, LedgerMachine, Process, process_id, usd};
use crate::audit::Actor;
use crate::budget::{ForgetError, ForgetProcesses, ForgetSettings, OrphanedJournals, ProcessState};
use crate::ids::ProcessId;
use crate::testing::MemoryJournals;
use crate::usage::UnknownUsage;

/// Returns the journals of another machine, without those of these processes.
fn elsewhere() -> Arc<dyn OrphanedJournals> {
    Arc::new(MemoryJournals::default())
}

const LOST_AFTER: Duration = Duration::from_hours(1);
const STEP: Duration = Duration::from_secs(10);

fn operator() -> Actor {
    Actor { name: "user:op".to_owned(), source: None }
}

/// Returns the actors and details of the audit entries about forgotten processes.
async fn noted(machine: &LedgerMachine) -> Vec<(String, String)> {
    let entries = machine.stores.audit.newest(100).await.unwrap();
    let forgotten = entries.into_iter().filter(|entry| entry.action == "process.forget");
    forgotten.map(|entry| (entry.actor.name, entry.details.text().to_owned())).collect()
}

/// Returns a watcher on a machine with these journals.
fn watcher(machine: &LedgerMachine, journals: Arc<dyn OrphanedJournals>, unknown: UnknownUsage) -> ForgetProcesses {
    let settings = ForgetSettings { lost_after: LOST_AFTER, unknown };
    ForgetProcesses::new(Arc::clone(&machine.stores.budget), journals, Arc::new(machine.stores.clock.clone()), settings)
}

/// Advances the time for a living process and the watcher. Returns the lost processes.
async fn pass(
    fixture: &LedgerFixture<'_>,
    alive: &Process,
    watcher: &ForgetProcesses,
    time: Duration,
) -> Vec<ProcessId> {
    let (mut passed, mut lost) = (Duration::ZERO, Vec::new());
    while passed < time {
        fixture.advance(STEP);
        passed += STEP;
        alive.ledger.tick().await.unwrap();
        lost.extend(watcher.execute().await.unwrap());
    }
    lost
}

pub(super) async fn silent_process_without_journal_is_lost_and_its_allowances_count_as_spent(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let (dead, alive) = (fixture.process(1), fixture.process(2));
    dead.hold(1, 300).await.unwrap().unwrap();
    dead.charge(1, 100).await.unwrap();
    dead.ledger.flush().await.unwrap();
    drop(dead);
    let watcher = watcher(machine, elsewhere(), UnknownUsage::Bound);
    assert_eq!(pass(&fixture, &alive, &watcher, LOST_AFTER.saturating_sub(STEP)).await, []);
    assert!(alive.hold(2, 900).await.unwrap().unwrap_err().is_uncertain);
    assert_eq!(pass(&fixture, &alive, &watcher, STEP).await, [process_id(1)]);
    assert_eq!(fixture.counted().await, (300, 0));
    fixture.audit().await;
    let refused = alive.hold(3, 701).await.unwrap().unwrap_err();
    assert_eq!((refused.spent, refused.is_uncertain), (usd(300), false));
    alive.hold(4, 700).await.unwrap().unwrap();
    assert_eq!(pass(&fixture, &alive, &watcher, LOST_AFTER).await, [], "once, and never the living one");
    let noted = noted(machine).await;
    let [(actor, details)] = &noted[..] else { panic!("{noted:?}") };
    assert!(actor == "system" && details.contains(r#""allowances":"spent""#), "{noted:?}");
}

/// The journal of a lost process reappears, with a charge of 100 of 300.
async fn turns_up(machine: &LedgerMachine, unknown: UnknownUsage, counted_as_spent: i64) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let (dead, alive) = (fixture.process(1), fixture.process(2));
    dead.hold(1, 300).await.unwrap().unwrap();
    dead.charge(1, 100).await.unwrap();
    drop(dead);
    let watcher = watcher(machine, elsewhere(), unknown);
    assert_eq!(pass(&fixture, &alive, &watcher, LOST_AFTER + STEP).await, [process_id(1)]);
    assert_eq!(fixture.counted().await, (counted_as_spent, 0));
    assert_eq!(fixture.recover(unknown).await.folded, 1);
    assert_eq!(fixture.counted().await, (100, 0));
}

pub(super) async fn journal_of_a_lost_process_that_turns_up_is_folded_and_the_rest_returns(machine: &LedgerMachine) {
    turns_up(machine, UnknownUsage::Bound, 300).await;
}

pub(super) async fn allowances_of_a_lost_process_return_where_unknown_usage_is_free(machine: &LedgerMachine) {
    turns_up(machine, UnknownUsage::Free, 0).await;
}

pub(super) async fn journal_of_a_lost_process_without_unfolded_charges_returns_everything(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let dead = fixture.process(1);
    dead.hold(1, 300).await.unwrap().unwrap();
    dead.charge(1, 100).await.unwrap();
    dead.ledger.flush().await.unwrap();
    drop(dead);
    fixture.advance(LOST_AFTER);
    let elsewhere = watcher(machine, elsewhere(), UnknownUsage::Bound);
    elsewhere.forget(process_id(1), &operator()).await.unwrap();
    assert_eq!(fixture.counted().await, (300, 0));
    fixture.recover(UnknownUsage::Bound).await;
    assert_eq!(fixture.counted().await, (100, 0));
    fixture.audit().await;
}

pub(super) async fn process_is_not_lost_because_the_store_was_away(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let (other, alive) = (fixture.process(1), fixture.process(2));
    other.hold(1, 300).await.unwrap().unwrap();
    let watcher = watcher(machine, elsewhere(), UnknownUsage::Bound);
    pass(&fixture, &alive, &watcher, STEP).await;
    // The store is unavailable for all of them.
    fixture.advance(2 * LOST_AFTER);
    assert_eq!(pass(&fixture, &alive, &watcher, Duration::from_secs(50)).await, []);
    other.ledger.tick().await.unwrap();
    assert_eq!(pass(&fixture, &alive, &watcher, Duration::from_mins(2)).await, []);
}

pub(super) async fn command_forgets_only_processes_that_are_silent_and_have_no_journal(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let process = fixture.process(1);
    process.hold(1, 300).await.unwrap().unwrap();
    let elsewhere = watcher(machine, elsewhere(), UnknownUsage::Bound);
    let here = watcher(machine, machine.journals.orphans(Duration::from_hours(1)), UnknownUsage::Bound);
    assert!(matches!(elsewhere.forget(process_id(9), &operator()).await, Err(ForgetError::Unknown(_))));
    fixture.advance(Duration::from_secs(59));
    assert!(matches!(elsewhere.forget(process_id(1), &operator()).await, Err(ForgetError::Lives { .. })));
    fixture.advance(Duration::from_secs(1));
    assert!(matches!(here.forget(process_id(1), &operator()).await, Err(ForgetError::HasJournal(_))));
    let listed = elsewhere.list().await.unwrap();
    assert_eq!(listed.iter().map(|(found, here)| (found.process, *here)).collect::<Vec<_>>(), [(process_id(1), false)]);
    elsewhere.forget(process_id(1), &operator()).await.unwrap();
    assert_eq!(fixture.counted().await, (300, 0));
    let again = elsewhere.forget(process_id(1), &operator()).await;
    assert!(matches!(again, Err(ForgetError::NotLive(_, ProcessState::Lost))), "{again:?}");
    let details = r#"{"allowances":"spent","silent_seconds":60}"#;
    assert_eq!(noted(machine).await, [("user:op".to_owned(), details.to_owned())]);
    assert_eq!(elsewhere.list().await.unwrap(), []);
}
