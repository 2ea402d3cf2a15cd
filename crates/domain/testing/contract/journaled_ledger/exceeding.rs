//! Charges above their holds: a limit is exceeded at most by those of the requests in flight.

use std::time::Duration;

use super::fixture::{LedgerFixture, LedgerMachine, Process, id, usd};
use crate::budget::{Ledger, RecoveryReport};
use crate::testing::{SeededDraws, StoreFault};
use crate::usage::UnknownUsage;

pub(super) async fn client_in_sequence_stops_at_the_charge_that_exceeds_the_limit(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let process = fixture.process(1);
    for number in 1..=6 {
        process.hold(number, 10).await.unwrap().unwrap();
        process.charge(number, 168).await.unwrap();
    }
    let exceeded = process.hold(7, 10).await.unwrap().unwrap_err();
    assert_eq!((exceeded.spent, exceeded.waits_for_others()), (usd(1_008), false));
    process.ledger.close().await.unwrap();
    assert_eq!(fixture.counted().await, (1_008, 0));
    fixture.audit().await;
}

pub(super) async fn amounts_freed_after_an_excess_are_returned_and_not_held_again(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let (process, other) = (fixture.process(1), fixture.process(2));
    process.hold(1, 40).await.unwrap().unwrap();
    process.hold(2, 50).await.unwrap().unwrap();
    process.charge(1, 95).await.unwrap();
    process.ledger.release(&id(2)).await.unwrap();
    let exceeded = process.hold(3, 10).await.unwrap().unwrap_err();
    assert_eq!((exceeded.spent, exceeded.waits_for_others()), (usd(95), false));
    assert!(other.hold(4, 10).await.unwrap().is_err());
    process.ledger.tick().await.unwrap();
    other.hold(4, 5).await.unwrap().unwrap();
    fixture.audit().await;
}

pub(super) async fn grant_with_a_lost_answer_is_returned_after_an_excess(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.hold(1, 10).await.unwrap().unwrap();
    process.store.set(StoreFault::LostAnswer);
    assert!(process.hold(2, 80).await.is_err());
    process.store.set(StoreFault::None);
    process.charge(1, 200).await.unwrap();
    process.ledger.flush().await.unwrap();
    assert!(process.hold(3, 80).await.unwrap().is_err(), "the store decided without the excess");
    process.ledger.close().await.unwrap();
    assert_eq!(fixture.counted().await, (200, 0));
    fixture.audit().await;
}

pub(super) async fn excess_counts_after_a_change_of_the_limit(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let process = fixture.process(1);
    process.hold(1, 10).await.unwrap().unwrap();
    process.hold(2, 50).await.unwrap().unwrap();
    process.charge(1, 168).await.unwrap();
    assert!(process.hold(3, 10).await.unwrap().is_err());
    fixture.limit_key(Some(250)).await;
    process.ledger.tick().await.unwrap();
    assert!(process.hold(3, 33).await.unwrap().is_err(), "168 are spent and 50 held");
    process.hold(3, 32).await.unwrap().unwrap();
    fixture.limit_key(None).await;
    process.ledger.tick().await.unwrap();
    process.hold(4, 1_000).await.unwrap().unwrap();
    for (number, cost) in [(2, 50), (3, 32), (4, 7)] {
        process.charge(number, cost).await.unwrap();
    }
    process.ledger.close().await.unwrap();
    fixture.limit_key(Some(1_000)).await;
    assert_eq!(fixture.counted().await, (257, 0));
    fixture.audit().await;
}

pub(super) async fn open_excess_of_a_dead_process_is_counted_once(machine: &LedgerMachine) {
    let fixture = LedgerFixture::limited(machine, 100).await;
    let dead = fixture.process(1);
    dead.hold(1, 10).await.unwrap().unwrap();
    dead.hold(2, 30).await.unwrap().unwrap();
    dead.charge(1, 90).await.unwrap();
    drop(dead);
    let report = fixture.recover(UnknownUsage::Bound).await;
    assert_eq!(report, RecoveryReport { journals: 1, folded: 1, abandoned: 1, released: 0, gaps: 0 });
    assert_eq!(fixture.counted().await, (120, 0));
    assert!(fixture.process(2).hold(3, 1).await.unwrap().is_err());
}

pub(super) async fn limit_is_exceeded_by_excesses_in_flight_alone(machine: &LedgerMachine) {
    excess_script(machine, 1).await;
}

/// Runs random requests of one or two processes, some of which are charged above their holds, with lost answers, raised
/// limits and a death. A naive ledger counts all charges.
///
/// # Panics
/// A hold is granted above the limit, the limit is exceeded by more than the excesses of the requests in flight at the
/// same time, or the store does not add up.
pub async fn excess_script(machine: &LedgerMachine, seed: u64) {
    let fixture = LedgerFixture::limited(machine, 1_000).await;
    let count = 1 + usize::from(seed.is_multiple_of(3));
    let mut script = Script {
        processes: (1..).take(count).map(|number| fixture.process(number)).collect(),
        fixture,
        draws: SeededDraws::new(seed),
        requests: 0,
        limit: 1_000,
        open: Vec::new(),
        charged: 0,
        excesses: vec![0; count],
    };
    for _ in 0..120 {
        script.step().await;
    }
    script.finish().await;
}

/// An open request.
struct Open {
    number: u128,
    process: usize,
    hold: i64,
    cost: i64,
}

struct Script<'a> {
    fixture: LedgerFixture<'a>,
    processes: Vec<Process>,
    draws: SeededDraws,
    requests: u128,
    limit: i64,
    open: Vec<Open>,
    charged: i64,
    /// The highest sum of the excesses of open requests, by process.
    excesses: Vec<i64>,
}

impl Script<'_> {
    /// Returns a random number below a bound.
    fn draw(&mut self, below: i64) -> i64 {
        i64::try_from(self.draws.next()).unwrap() % below
    }

    async fn step(&mut self) {
        let process = usize::try_from(self.draw(16)).unwrap() % self.processes.len();
        match self.draw(24) {
            0..=11 => self.hold(process).await,
            12..=18 => self.end().await,
            19..=20 => drop(self.processes[process].ledger.tick().await),
            21 => {
                let calls = u32::try_from(self.draw(5)).unwrap();
                self.processes[process].store.set(StoreFault::LostAnswerAfter(calls));
            }
            22 => {
                let millis = u64::try_from(self.draw(3_000)).unwrap();
                self.fixture.advance(Duration::from_millis(millis));
            }
            _ if self.draw(4) > 0 => {
                self.limit += self.draw(100);
                self.fixture.limit_key(Some(self.limit)).await;
                for process in &self.processes {
                    process.store.set(StoreFault::None);
                    process.ledger.tick().await.unwrap();
                }
            }
            _ => self.die(process).await,
        }
        let excess = self.charged - self.limit;
        assert!(excess <= self.excesses.iter().sum(), "{excess} above the limit of {}", self.limit);
    }

    async fn hold(&mut self, process: usize) {
        let (hold, above) = (1 + self.draw(60), self.draw(3) == 0);
        let cost = if above { hold + self.draw(6 * hold) } else { self.draw(hold + 1) };
        self.requests += 1;
        let answer = self.processes[process].hold(self.requests, hold).await;
        let in_flight: i64 = self.open.iter().map(|open| open.hold).sum();
        match answer {
            Ok(Ok(_)) => {
                self.open.push(Open { number: self.requests, process, hold, cost });
                let all = self.charged + in_flight + hold;
                assert!(self.processes.len() > 1 || all <= self.limit, "{all} of {} are held or charged", self.limit);
                let own = self.open.iter().filter(|open| open.process == process);
                let excess = own.map(|open| (open.cost - open.hold).max(0)).sum();
                self.excesses[process] = self.excesses[process].max(excess);
            }
            Ok(Err(exceeded)) => {
                let is_needed = exceeded.waits_for_others() || self.charged + hold > self.limit;
                assert!(is_needed, "{} charged, {hold} rejected by a limit of {}", self.charged, self.limit);
            }
            // The store was not reached.
            Err(_) => {}
        }
    }

    async fn end(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let place = usize::try_from(self.draw(i64::try_from(self.open.len()).unwrap())).unwrap();
        let Open { number, process, cost, .. } = self.open.swap_remove(place);
        if cost == 0 {
            self.processes[process].ledger.release(&id(number)).await.unwrap();
        } else {
            self.processes[process].charge(number, cost).await.unwrap();
            self.charged += cost;
        }
    }

    /// Replaces a process. Its open requests are charged by their holds.
    async fn die(&mut self, process: usize) {
        self.requests += 1_000;
        self.processes[process] = self.fixture.process(self.requests);
        let store = self.fixture.faulty_store();
        self.fixture.recover_by(store, UnknownUsage::Bound).await;
        let abandoned = self.open.extract_if(.., |open| open.process == process);
        self.charged += abandoned.map(|open| open.hold).sum::<i64>();
    }

    async fn finish(mut self) {
        while !self.open.is_empty() {
            self.end().await;
        }
        for process in &self.processes {
            process.store.set(StoreFault::None);
            process.ledger.tick().await.unwrap();
            process.ledger.close().await.unwrap();
        }
        assert_eq!(self.fixture.counted().await, (self.charged, 0));
        self.fixture.audit().await;
    }
}
