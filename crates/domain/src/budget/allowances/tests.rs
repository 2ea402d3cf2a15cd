use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::budget::{Account, ResetInterval};
use crate::ids::{DecisionId, WorkspaceId};
use crate::money::Usd;

const NOW: Duration = Duration::from_secs(100);

fn at() -> DateTime<Utc> {
    "2026-11-22T12:00:00Z".parse().unwrap()
}

fn id(number: u128) -> DecisionId {
    DecisionId::from_uuid(Uuid::from_u128(number))
}

fn account(number: u128) -> Account {
    Account::Workspace(WorkspaceId::from_uuid(Uuid::from_u128(number)))
}

fn lifetime(number: u128) -> CounterId {
    CounterId { account: account(number), period: CounterPeriod::Lifetime }
}

fn today(number: u128) -> CounterId {
    CounterId { account: account(number), period: CounterPeriod::containing(Some(ResetInterval::Daily), at()) }
}

fn pico(amount: i64) -> Usd {
    Usd::from_pico(amount)
}

fn granted(amounts: &[(CounterId, i64)]) -> WorkspaceAllowances {
    let mut allowances = WorkspaceAllowances::new(AllowanceSettings::default());
    for (counter, amount) in amounts {
        allowances.granted(*counter, pico(*amount), NOW, 1, 0);
    }
    allowances
}

fn free(allowances: &WorkspaceAllowances, counter: CounterId) -> i64 {
    allowances.status(counter).free.pico()
}

#[test]
fn hold_takes_from_all_counters_or_none() {
    let (a, b, c) = (lifetime(1), today(1), lifetime(2));
    let mut allowances = granted(&[(a, 100), (b, 50)]);
    allowances.hold(&id(1), NOW, &[(a, pico(30)), (b, pico(30))]).unwrap();
    assert_eq!((free(&allowances, a), free(&allowances, b)), (70, 20));
    let short = allowances.hold(&id(2), NOW, &[(a, pico(30)), (b, pico(30)), (c, pico(5))]).unwrap_err();
    assert_eq!(short, HoldError::Short(Shortfall { lacking: vec![(b, pico(10)), (c, pico(5))] }));
    assert_eq!((free(&allowances, a), free(&allowances, b), allowances.open_holds()), (70, 20, 1));
}

#[test]
fn hold_sums_repeated_counters() {
    let a = lifetime(1);
    let mut allowances = granted(&[(a, 100)]);
    assert!(allowances.hold(&id(1), NOW, &[(a, pico(60)), (a, pico(60))]).is_err());
    allowances.hold(&id(1), NOW, &[(a, pico(60)), (a, pico(40))]).unwrap();
    assert_eq!(free(&allowances, a), 0);
}

#[test]
fn hold_rejects_open_id() {
    let a = lifetime(1);
    let mut allowances = granted(&[(a, 100)]);
    allowances.hold(&id(1), NOW, &[(a, pico(10))]).unwrap();
    assert_eq!(allowances.hold(&id(1), NOW, &[(a, pico(10))]), Err(HoldError::State(id(1))));
    assert_eq!(free(&allowances, a), 90);
}

#[test]
fn increase_adds_counters_and_is_rejected_once_a_charge_began() {
    let (a, b) = (lifetime(1), lifetime(2));
    let mut allowances = granted(&[(a, 100), (b, 100)]);
    assert_eq!(allowances.increase(&id(1), NOW, &[(a, pico(1))]), Err(HoldError::State(id(1))));
    allowances.hold(&id(1), NOW, &[(a, pico(10))]).unwrap();
    allowances.increase(&id(1), NOW, &[(a, pico(20)), (b, pico(5))]).unwrap();
    assert!(allowances.increase(&id(1), NOW, &[(a, pico(71))]).is_err());
    assert_eq!((free(&allowances, a), free(&allowances, b)), (70, 95));
    allowances.begin_charge(&id(1), NOW, &[]).unwrap();
    assert_eq!(allowances.increase(&id(1), NOW, &[(a, pico(1))]), Err(HoldError::State(id(1))));
    assert_eq!(allowances.begin_charge(&id(1), NOW, &[]), Err(ChargeError(id(1))));
    assert_eq!(allowances.cancel(&id(1)), Err(ChargeError(id(1))));
}

#[test]
fn charge_frees_the_rest_of_its_hold_only_when_it_is_finished() {
    let a = lifetime(1);
    let mut allowances = granted(&[(a, 100)]);
    allowances.hold(&id(1), NOW, &[(a, pico(60))]).unwrap();
    let charges = allowances.begin_charge(&id(1), NOW, &[(a, pico(25))]).unwrap();
    assert_eq!(charges, [CounterCharge { counter: a, cost: pico(25), from_allowance: pico(25) }]);
    assert_eq!(free(&allowances, a), 40, "the journal does not have it yet");
    allowances.finish_charge(&id(1), 7).unwrap();
    let status = allowances.status(a);
    assert_eq!((status.amount, status.held, status.charged, status.free), (pico(100), pico(0), pico(25), pico(75)));
    allowances.folded([(a, pico(25))]);
    let status = allowances.status(a);
    assert_eq!((status.amount, status.charged, status.free), (pico(75), pico(0), pico(75)));
}

#[test]
fn charge_above_its_hold_takes_free_allowance_and_reports_the_rest() {
    let (a, b) = (lifetime(1), lifetime(2));
    let mut allowances = granted(&[(a, 100)]);
    allowances.hold(&id(1), NOW, &[(a, pico(60))]).unwrap();
    let charges = allowances.begin_charge(&id(1), NOW, &[(a, pico(130)), (b, pico(9))]).unwrap();
    let charge = |counter, cost, from| CounterCharge { counter, cost: pico(cost), from_allowance: pico(from) };
    assert_eq!(charges, [charge(a, 130, 100), charge(b, 9, 0)]);
    assert_eq!(free(&allowances, a), 0, "the next hold cannot take what this charge takes");
    allowances.finish_charge(&id(1), 1).unwrap();
    assert_eq!(allowances.status(a).charged, pico(100));
}

#[test]
fn excess_denies_holds_in_its_counter_until_the_store_has_it() {
    let (a, b) = (lifetime(1), lifetime(2));
    let mut allowances = granted(&[(a, 100), (b, 100)]);
    for number in 1..=3 {
        allowances.hold(&id(number), NOW, &[(a, pico(30)), (b, pico(30))]).unwrap();
    }
    allowances.begin_charge(&id(1), NOW, &[(a, pico(70)), (b, pico(40))]).unwrap();
    allowances.finish_charge(&id(1), 7).unwrap();
    assert_eq!(allowances.last_excess(&[b]), None, "free amounts bear its excess");
    assert_eq!(allowances.last_excess(&[a, b]), Some(7));
    allowances.begin_charge(&id(2), NOW, &[]).unwrap();
    allowances.finish_charge(&id(2), 8).unwrap();
    assert_eq!((allowances.status(a).free, allowances.status(a).available), (pico(30), pico(0)), "freed afterwards");
    assert!(allowances.hold(&id(4), NOW, &[(a, pico(1))]).is_err());
    allowances.hold(&id(4), NOW, &[(b, pico(30))]).unwrap();
    assert!(allowances.take_wishes(NOW, at()).iter().all(|wish| wish.counter != a));
    allowances.granted(a, pico(50), NOW, 1, 6);
    assert!(allowances.hold(&id(5), NOW, &[(a, pico(1))]).is_err(), "granted without the excess");
    allowances.synced(8);
    assert_eq!(allowances.take_returnable(NOW, at()), [(a, pico(80))]);
    allowances.excesses_folded(6);
    assert_eq!(allowances.last_excess(&[a]), Some(7));
    allowances.granted(a, pico(10), NOW, 1, 7);
    allowances.hold(&id(5), NOW, &[(a, pico(10))]).unwrap();
    allowances.excesses_folded(7);
    assert_eq!(allowances.last_excess(&[a]), None);
    for number in [3, 5] {
        allowances.begin_charge(&id(number), NOW, &[]).unwrap();
        allowances.finish_charge(&id(number), 9).unwrap();
    }
    allowances.synced(9);
    assert_eq!(allowances.take_returnable(NOW, at()), [(a, pico(30))], "held when the excess was charged");
}

#[test]
fn cost_outside_of_the_hold_is_an_excess() {
    let a = lifetime(1);
    let mut allowances = granted(&[(a, 100)]);
    allowances.hold(&id(1), NOW, &[]).unwrap();
    allowances.begin_charge(&id(1), NOW, &[(a, pico(5))]).unwrap();
    allowances.finish_charge(&id(1), 1).unwrap();
    assert_eq!(allowances.last_excess(&[a]), Some(1));
    assert!(allowances.hold(&id(2), NOW, &[(a, pico(1))]).is_err());
}

#[test]
fn cancel_frees_hold_without_journal_entry() {
    let a = lifetime(1);
    let mut allowances = granted(&[(a, 100)]);
    allowances.hold(&id(1), NOW, &[(a, pico(60))]).unwrap();
    allowances.cancel(&id(1)).unwrap();
    assert_eq!((free(&allowances, a), allowances.open_holds()), (100, 0));
    assert_eq!(allowances.cancel(&id(1)), Err(ChargeError(id(1))));
    assert_eq!(allowances.finish_charge(&id(1), 1), Err(ChargeError(id(1))));
}

#[test]
fn finish_charge_is_rejected_before_the_charge_began_and_keeps_the_hold() {
    let a = lifetime(1);
    let mut allowances = granted(&[(a, 100)]);
    allowances.hold(&id(1), NOW, &[(a, pico(60))]).unwrap();
    assert_eq!(allowances.finish_charge(&id(1), 1), Err(ChargeError(id(1))));
    assert_eq!((free(&allowances, a), allowances.open_holds()), (40, 1));
}

#[test]
fn freed_amount_returns_only_after_sync() {
    let a = lifetime(1);
    let mut allowances = granted(&[(a, 100)]);
    for (number, sequence) in [(1, 12), (2, 11)] {
        allowances.hold(&id(number), NOW, &[(a, pico(50))]).unwrap();
        allowances.begin_charge(&id(number), NOW, &[]).unwrap();
        allowances.finish_charge(&id(number), sequence).unwrap();
    }
    allowances.recalled(a, NOW + Duration::from_secs(5));
    assert_eq!(allowances.take_returnable(NOW, at()), []);
    allowances.synced(11);
    assert_eq!(allowances.take_returnable(NOW, at()), [(a, pico(50))]);
    allowances.synced(12);
    assert_eq!(allowances.take_returnable(NOW, at()), [(a, pico(50))]);
    assert_eq!(allowances.take_returnable(NOW, at()), []);
}

#[test]
fn recalled_amounts_and_late_grants_return_when_free() {
    let a = lifetime(1);
    let mut allowances = granted(&[(a, 100)]);
    allowances.hold(&id(1), NOW, &[(a, pico(60))]).unwrap();
    assert_eq!(allowances.take_returnable(NOW, at()), [], "it is in use");
    let until = NOW + Duration::from_secs(5);
    allowances.recalled(a, until);
    assert_eq!(allowances.take_returnable(NOW, at()), [(a, pico(40))]);
    assert_eq!(free(&allowances, a), 0, "it has left");
    allowances.granted(a, pico(10), NOW, 1, 0);
    assert_eq!(allowances.take_returnable(NOW, at()), [(a, pico(10))]);
    assert_eq!(allowances.take_wishes(NOW, at()), [], "it does not draw what others need");
    allowances.granted(a, pico(10), until, 1, 0);
    assert_eq!(allowances.take_returnable(until, at()), [], "the recall is over");
    let (b, until) = (lifetime(2), until + Duration::from_secs(5));
    let now = until.checked_sub(Duration::from_secs(1)).unwrap();
    allowances.recalled(b, until);
    allowances.granted(b, pico(10), now, 1, 0);
    assert_eq!(allowances.take_returnable(now, at()), [(b, pico(10))], "the grant came after its recall");
}

#[test]
fn idle_amounts_and_amounts_of_past_periods_return() {
    let (a, day) = (lifetime(1), today(1));
    let idle = AllowanceSettings::default().idle_return;
    let mut allowances = granted(&[(a, 100)]);
    assert_eq!(allowances.take_returnable((NOW + idle).checked_sub(Duration::from_nanos(1)).unwrap(), at()), []);
    let mut allowances = granted(&[(a, 100), (day, 100)]);
    assert_eq!(allowances.take_returnable(NOW, at() + TimeDelta::hours(12)), [(day, pico(100))], "midnight");
    assert_eq!(allowances.take_returnable(NOW + idle, at()), [(a, pico(100))]);
    assert_eq!(allowances.counters().count(), 0, "nothing is kept of them");
}

#[test]
fn changed_limits_return_free_amounts_once_and_stale_grants() {
    let (a, other) = (lifetime(1), lifetime(2));
    let mut allowances = granted(&[(a, 100), (other, 100)]);
    allowances.hold(&id(1), NOW, &[(a, pico(60))]).unwrap();
    allowances.limits_changed(account(1), 5);
    assert_eq!(allowances.take_returnable(NOW, at()), [(a, pico(40))]);
    allowances.granted(a, pico(30), NOW, 4, 0);
    assert_eq!(allowances.take_returnable(NOW, at()), [(a, pico(30))], "decided before the change");
    allowances.granted(a, pico(30), NOW, 5, 0);
    assert_eq!(allowances.take_returnable(NOW, at()), [], "decided after it");
    allowances.limits_changed(account(1), 3);
    assert_eq!(allowances.take_returnable(NOW, at()), [(a, pico(30))]);
    allowances.granted(a, pico(1), NOW, 4, 0);
    assert_eq!(allowances.take_returnable(NOW, at()), [(a, pico(1))], "changes may be handled out of order");
}

#[test]
fn stale_grant_is_detected_after_its_counter_was_forgotten() {
    let a = lifetime(1);
    let mut allowances = granted(&[]);
    allowances.limits_changed(account(1), 5);
    allowances.granted(a, pico(30), NOW, 4, 0);
    assert_eq!(allowances.take_returnable(NOW, at()), [(a, pico(30))]);
}

#[test]
fn wishes_name_counters_with_less_than_half_of_their_wish() {
    let a = lifetime(1);
    let mut allowances = granted(&[(a, 1000)]);
    allowances.hold(&id(1), NOW, &[(a, pico(100))]).unwrap();
    assert_eq!(allowances.take_wishes(NOW, at()), [], "900 of eight times 100");
    allowances.hold(&id(2), NOW, &[(a, pico(501))]).unwrap();
    assert_eq!(allowances.take_wishes(NOW, at()), [Wish { counter: a, amount: pico(4008), free: pico(399) }]);
    assert_eq!(allowances.take_wishes(NOW, at()), [], "not used since");
    for number in [3, 4] {
        allowances.hold(&id(number), NOW, &[(a, pico(1))]).unwrap();
    }
    let later = NOW + AllowanceSettings::default().idle_return;
    assert_eq!(allowances.take_wishes(later, at()), [], "it is idle");
    allowances.hold(&id(5), NOW, &[(a, pico(1))]).unwrap();
    assert_eq!(allowances.take_wishes(NOW, at()).len(), 1);
    let mut busy = granted(&[(a, 100_000)]);
    for number in 0..9_000 {
        busy.hold(&id(number), NOW, &[(a, pico(10))]).unwrap();
    }
    assert_eq!(busy.take_wishes(NOW, at()), [Wish { counter: a, amount: pico(90_000), free: pico(10_000) }], "by rate");
}

/// An event on one of two counters, each with a limit of 1,000.
#[derive(Debug, Clone)]
enum Step {
    Draw(u8, i64),
    /// The answer to the last draw arrives.
    Grant,
    Hold(u8, i64, i64),
    Increase(u8, i64),
    Begin(u8, i64, i64),
    Finish(u8),
    Cancel(u8),
    Sync,
    Fold,
    Recall(u8),
    Change(u8),
    Return,
    PowerLoss,
}

fn step() -> impl Strategy<Value = Step> {
    let amount = 0_i64..300;
    prop_oneof![
        2 => (0_u8..2, amount.clone()).prop_map(|(counter, amount)| Step::Draw(counter, amount)),
        2 => Just(Step::Grant),
        3 => (0_u8..8, amount.clone(), amount.clone()).prop_map(|(id, a, b)| Step::Hold(id, a, b)),
        1 => (0_u8..8, amount.clone()).prop_map(|(id, amount)| Step::Increase(id, amount)),
        3 => (0_u8..8, amount.clone(), amount).prop_map(|(id, a, b)| Step::Begin(id, a, b)),
        3 => (0_u8..8).prop_map(Step::Finish),
        1 => (0_u8..8).prop_map(Step::Cancel),
        1 => Just(Step::Sync),
        1 => Just(Step::Fold),
        1 => (0_u8..2).prop_map(Step::Recall),
        1 => (0_u8..2).prop_map(Step::Change),
        1 => Just(Step::Return),
        1 => Just(Step::PowerLoss),
    ]
}

/// A store that counts one dollar after the other, and a journal.
#[derive(Default)]
struct NaiveLedger {
    spent: [i64; 2],
    allotted: [i64; 2],
    /// Charges: the cost of each counter, and the part from its allowance.
    journal: Vec<[(i64, i64); 2]>,
    synced: usize,
    folded: usize,
    /// Charges that began.
    begun: HashMap<u8, [(i64, i64); 2]>,
    holds: HashMap<u8, [i64; 2]>,
    /// A grant whose answer is on its way: its counter, its amount, and the folded charges at its decision.
    pending: Option<(usize, i64, usize)>,
}

impl NaiveLedger {
    /// Returns the costs of all charges, and the holds of all open requests.
    fn charged_and_held(&self, at: usize) -> i64 {
        let charged: i64 = self.journal.iter().map(|charge| charge[at].0).sum();
        charged + self.holds.values().map(|held| held[at]).sum::<i64>()
    }

    fn fold(&mut self, allowances: &mut WorkspaceAllowances) {
        for charge in &self.journal[self.folded..self.synced] {
            for (at, (cost, from_allowance)) in charge.iter().enumerate() {
                self.spent[at] += cost;
                self.allotted[at] -= from_allowance;
            }
            allowances.folded((0..2).map(|at| (COUNTERS[at](), pico(charge[at].1))));
        }
        self.folded = self.synced;
    }
}

const LIMIT: i64 = 1_000;
const COUNTERS: [fn() -> CounterId; 2] = [|| lifetime(1), || lifetime(2)];

proptest! {
    #[test]
    fn allowances_agree_with_a_naive_ledger(steps in prop::collection::vec(step(), 1..120)) {
        let counters = COUNTERS.map(|counter| counter());
        let mut ledger = NaiveLedger::default();
        let mut allowances = WorkspaceAllowances::new(AllowanceSettings::default());
        for step in steps {
            let name = |number: u8| id(u128::from(number) + 1);
            match step {
                Step::Draw(counter, amount) => {
                    let at = usize::from(counter);
                    if allowances.last_excess(&[counters[at]]).is_some_and(|last| last > ledger.folded as u64) {
                        ledger.synced = ledger.journal.len();
                        ledger.fold(&mut allowances);
                    }
                    if ledger.pending.is_none() && ledger.spent[at] + ledger.allotted[at] + amount <= LIMIT {
                        ledger.allotted[at] += amount;
                        ledger.pending = Some((at, amount, ledger.folded));
                    }
                }
                Step::Grant => {
                    if let Some((at, amount, folded)) = ledger.pending.take() {
                        let feed = 1 + u64::from(amount % 3 > 0);
                        allowances.granted(counters[at], pico(amount), NOW, feed, folded as u64);
                        allowances.excesses_folded(ledger.folded as u64);
                    }
                }
                Step::Hold(number, a, b) => {
                    let amounts = [(counters[0], pico(a)), (counters[1], pico(b))];
                    let held = allowances.hold(&name(number), NOW, &amounts);
                    prop_assert!(held.is_err() || !ledger.holds.contains_key(&number));
                    if held.is_ok() {
                        ledger.holds.insert(number, [a, b]);
                        for (at, amount) in [a, b].into_iter().enumerate() {
                            // So a limit is exceeded at most by the excesses of the requests in flight.
                            prop_assert!(amount == 0 || ledger.charged_and_held(at) <= LIMIT);
                        }
                    }
                }
                Step::Increase(number, amount) => {
                    if allowances.increase(&name(number), NOW, &[(counters[0], pico(amount))]).is_ok() {
                        ledger.holds.get_mut(&number).unwrap()[0] += amount;
                    }
                }
                Step::Begin(number, a, b) => {
                    let costs = [(counters[0], pico(a)), (counters[1], pico(b))];
                    if let Ok(charges) = allowances.begin_charge(&name(number), NOW, &costs) {
                        let charge = |at: usize| {
                            let charge = charges.iter().find(|charge| charge.counter == counters[at]).unwrap();
                            (charge.cost.pico(), charge.from_allowance.pico())
                        };
                        let (first, second) = (charge(0), charge(1));
                        let held = ledger.holds[&number];
                        prop_assert_eq!([first.0, second.0], [a, b]);
                        prop_assert!(first.1 <= a && first.1 >= a.min(held[0]));
                        prop_assert!(second.1 <= b && second.1 >= b.min(held[1]));
                        ledger.begun.insert(number, [first, second]);
                    }
                }
                Step::Finish(number) => {
                    let sequence = ledger.journal.len() as u64 + 1;
                    let finished = allowances.finish_charge(&name(number), sequence);
                    let begun = ledger.begun.remove(&number);
                    prop_assert_eq!(finished.is_ok(), begun.is_some());
                    if let Some(charge) = begun {
                        ledger.journal.push(charge);
                        ledger.holds.remove(&number);
                    }
                }
                Step::Cancel(number) => {
                    let cancelled = allowances.cancel(&name(number)).is_ok();
                    prop_assert_eq!(cancelled, ledger.holds.contains_key(&number) && !ledger.begun.contains_key(&number));
                    if cancelled {
                        ledger.holds.remove(&number);
                    }
                }
                Step::Sync => {
                    ledger.synced = ledger.journal.len();
                    allowances.synced(ledger.synced as u64);
                }
                Step::Fold => ledger.fold(&mut allowances),
                Step::Recall(counter) => allowances.recalled(counters[usize::from(counter)], NOW + Duration::from_secs(1)),
                Step::Change(counter) => allowances.limits_changed(account(u128::from(counter) + 1), 2),
                Step::Return => {
                    for (counter, amount) in allowances.take_returnable(NOW, at()) {
                        let at = counters.iter().position(|other| *other == counter).unwrap();
                        ledger.allotted[at] -= amount.pico();
                    }
                }
                // Unsynced charges are lost and their requests open again: the store still has their upper
                // bounds allotted.
                Step::PowerLoss => {
                    for at in 0..2 {
                        let lost: i64 = ledger.journal[ledger.synced..].iter().map(|charge| charge[at].1).sum();
                        let synced: i64 = ledger.journal[ledger.folded..ledger.synced].iter().map(|charge| charge[at].1).sum();
                        prop_assert!(ledger.allotted[at] >= lost + synced);
                    }
                }
            }
            prop_assert_eq!(allowances.has_returns_due(), allowances.finds_returns_due());
            for at in 0..2 {
                let status = allowances.status(counters[at]);
                let pending = ledger.pending.filter(|(other, ..)| *other == at).map_or(0, |(_, amount, _)| amount);
                let allotted = ledger.allotted[at] - pending;
                let held: i64 = ledger.holds.iter().map(|(number, held)| {
                    // A charge above its hold has taken more.
                    ledger.begun.get(number).map_or(held[at], |charge| held[at].max(charge[at].1))
                }).sum();
                let charged: i64 = ledger.journal[ledger.folded..].iter().map(|charge| charge[at].1).sum();
                prop_assert!(status.free >= Usd::ZERO);
                prop_assert_eq!(status.amount.pico(), allotted);
                prop_assert_eq!((status.held.pico(), status.charged.pico()), (held, charged));
                prop_assert_eq!(status.free.pico(), allotted - held - charged);
                prop_assert!(allotted >= 0);
            }
        }
    }
}
