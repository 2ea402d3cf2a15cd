//! The shared part of the ledger under a model checker: requests and the keeper run as threads, in many interleavings.
//!
//! Only the ledger's locks are the checker's; the store and the journal are fakes whose calls are atomic.
//! `cargo xtask model` runs it.
#![cfg(shuttle)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use domain::budget::allowances::{CounterId, CounterPeriod};
use domain::budget::{Account, BudgetStore, JournaledLedger, Ledger, LedgerSettings, UsageCharge};
use domain::ids::ProcessId;
use domain::money::Usd;
use domain::testing::contract::{LedgerMachine, Stores, hold_request, insert_payer, limit_payer, payer, usage_record};
use domain::testing::{FaultyBudgetStore, JournalBounds, StoreFault, create_time_without_timer, yield_now};
use futures_util::future::{Either, select};
use shuttle::future::block_on;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread::{self, JoinHandle};
use shuttle::{Config, MaxSteps, Runner};
use uuid::Uuid;

/// The maximum time of a model.
const MAX_TIME: Duration = Duration::from_secs(3);

/// Two processes and one limit.
#[derive(Clone)]
struct Model {
    stores: Arc<Stores>,
    processes: [Process; 2],
    totals: Arc<Mutex<Totals>>,
}

/// The sums over all requests. Their lock is no point at which threads are switched.
#[derive(Default)]
struct Totals {
    /// The costs of charges that have returned, by process.
    charged: [i64; 2],
    /// The costs above holds, from before their charge.
    excess: i64,
}

#[derive(Clone)]
struct Process {
    ledger: Arc<JournaledLedger>,
    store: Arc<FaultyBudgetStore>,
}

impl Model {
    fn new(limit: i64) -> Self {
        let LedgerMachine { stores, journals, .. } = LedgerMachine::memory();
        block_on(async {
            insert_payer(&stores).await;
            limit_payer(&stores, Some(limit)).await;
        });
        let process = |number| {
            let store = Arc::new(FaultyBudgetStore::new(Arc::clone(&stores.budget)));
            let journal = journals.start(ProcessId::from_uuid(Uuid::from_u128(number)), JournalBounds::default());
            let ledger = JournaledLedger::new(
                Arc::clone(&store) as Arc<dyn BudgetStore>,
                journal,
                create_time_without_timer(&stores.clock),
                Arc::clone(&stores.limits),
                LedgerSettings { limits_recheck: Duration::ZERO, ..LedgerSettings::default() },
            );
            Process { ledger: Arc::new(ledger), store }
        };
        let processes = [process(1), process(2)];
        Self { stores: Arc::new(stores), processes, totals: Arc::default() }
    }

    /// The spent and the allotted amount in the store, which exceed the limit by folded excesses alone.
    fn counted(&self, limit: i64) -> (i64, i64) {
        let found = block_on(self.stores.limits.limit_statuses(&payer())).unwrap();
        let (spent, allotted) = (found[0].spent.pico(), found[0].reserved.pico());
        let excess = self.totals().excess;
        assert!(spent + allotted <= limit + excess, "{spent} + {allotted} of {limit}, {excess} above holds");
        (spent, allotted)
    }

    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.totals.lock().unwrap()
    }

    fn free(&self) -> i64 {
        let counter = CounterId { account: Account::Key(payer().api_key), period: CounterPeriod::Lifetime };
        let free = self.processes.each_ref().map(|process| process.ledger.free(payer().workspace_id, counter).pico());
        assert!(free.iter().all(|free| *free >= 0), "{free:?}");
        free.iter().sum()
    }

    /// Checks the amounts after the end of all requests, which cost `charged` in total.
    fn check_end(&self, charged: i64, limit: i64) {
        for process in &self.processes {
            process.store.set(StoreFault::None);
            // Finishes the pending work.
            block_on(process.ledger.tick()).unwrap();
            assert_eq!(process.ledger.open_calls(), 0);
        }
        let (spent, allotted) = self.counted(limit);
        assert_eq!(allotted, self.free() + (charged - spent), "free and charged, not folded, are what was drawn");
        for process in &self.processes {
            block_on(process.ledger.close()).unwrap();
        }
        let charged_in_all: i64 = self.totals().charged.iter().sum();
        assert_eq!(charged, charged_in_all);
        assert_eq!(self.counted(limit), (charged, 0));
        assert_eq!(block_on(self.stores.maintenance.audit()).unwrap().discrepancies, []);
    }
}

/// Runs a request: it holds, increases its hold, and is charged or released. Returns its cost.
async fn request(model: &Model, place: usize, number: u128, [hold, more, cost]: [i64; 3]) -> i64 {
    let process = &model.processes[place];
    let Ok(Ok(held)) = process.ledger.reserve(hold_request(number, hold)).await else { return 0 };
    thread::yield_now();
    let mut amount = hold;
    if more > 0 {
        let increased = process.ledger.increase(&held.id, Usd::from_pico(more), &[]).await;
        amount += if matches!(increased, Ok(Ok(()))) { more } else { 0 };
        thread::yield_now();
    }
    if cost == 0 {
        process.ledger.release(&held.id).await.unwrap();
    } else {
        model.totals().excess += (cost - amount).max(0);
        let charge = UsageCharge::new(usage_record(number, cost));
        process.ledger.settle(&charge).await.unwrap();
        model.totals().charged[place] += cost;
    }
    cost
}

fn spawn_request(model: &Model, place: usize, number: u128, amounts: [i64; 3]) -> JoinHandle<i64> {
    let model = model.clone();
    thread::spawn(move || block_on(request(&model, place, number, amounts)))
}

/// Runs requests of a client of the first process one after the other, each charged above its hold. A hold is granted
/// only if the charges of the process that have returned leave room for it; it learns those of others by its draws.
fn spawn_client(model: &Model, first: u128, [hold, cost]: [i64; 2], limit: i64) -> JoinHandle<i64> {
    let model = model.clone();
    thread::spawn(move || {
        let mut spent = 0;
        for number in first..first + 3 {
            let charged = model.totals().charged[0];
            let cost = block_on(request(&model, 0, number, [hold, 0, cost]));
            assert!(cost == 0 || charged + hold <= limit, "{charged} of {limit} are charged, and {hold} held");
            spent += cost;
        }
        spent
    })
}

/// Runs the background work: ticks, idle allowances and checks of limits.
fn spawn_keeper(model: &Model, number: usize, limit: i64) -> JoinHandle<i64> {
    let model = model.clone();
    thread::spawn(move || {
        for _ in 0..3 {
            let _ = block_on(model.processes[number].ledger.tick());
            model.counted(limit);
            model.free();
            model.stores.clock.advance(Duration::from_secs(6));
            thread::yield_now();
        }
        0
    })
}

fn join(threads: Vec<JoinHandle<i64>>) -> i64 {
    threads.into_iter().map(|thread| thread.join().unwrap()).sum()
}

/// Explores random interleavings, then those with few preemptions.
fn check(model: fn()) {
    let config = || {
        let mut config = Config::new();
        config.max_time = Some(MAX_TIME);
        config.max_steps = MaxSteps::FailAfter(1_000_000);
        config
    };
    Runner::new(RandomScheduler::new(1_000_000), config()).run(model);
    Runner::new(PctScheduler::new(3, 1_000_000), config()).run(model);
}

#[test]
fn amounts_add_up_in_one_process() {
    check(|| {
        let model = Model::new(100);
        let mut threads = vec![
            spawn_request(&model, 0, 1, [30, 20, 25]),
            spawn_request(&model, 0, 2, [40, 0, 0]),
            spawn_request(&model, 0, 3, [30, 0, 30]),
        ];
        threads.push(spawn_keeper(&model, 0, 100));
        let charged = join(threads);
        model.check_end(charged, 100);
    });
}

#[test]
fn amounts_add_up_over_two_processes_with_lost_answers() {
    check(|| {
        let model = Model::new(100);
        let [one, two] = &model.processes;
        one.store.set(StoreFault::LostAnswerAfter(4));
        two.store.set(StoreFault::LostAnswerAfter(7));
        let mut threads = vec![
            spawn_request(&model, 0, 1, [60, 0, 25]),
            spawn_request(&model, 0, 2, [20, 30, 0]),
            spawn_request(&model, 1, 3, [40, 0, 40]),
        ];
        threads.extend([spawn_keeper(&model, 0, 100), spawn_keeper(&model, 1, 100)]);
        let charged = join(threads);
        model.check_end(charged, 100);
    });
}

#[test]
fn limit_is_exceeded_by_excesses_in_flight_alone() {
    check(|| {
        let model = Model::new(100);
        model.processes[0].store.set(StoreFault::Slow);
        let mut threads = vec![
            spawn_client(&model, 1, [10, 35], 100),
            spawn_client(&model, 11, [20, 45], 100),
            // Frees an amount that was drawn before.
            spawn_request(&model, 0, 21, [30, 0, 0]),
            spawn_request(&model, 1, 22, [10, 0, 15]),
        ];
        threads.extend([spawn_keeper(&model, 0, 100), spawn_keeper(&model, 1, 100)]);
        let charged = join(threads);
        model.check_end(charged, 100);
    });
}

#[test]
fn request_is_answered_when_another_client_disconnects() {
    check(|| {
        let model = Model::new(100);
        let [process, _] = &model.processes;
        process.store.set(StoreFault::Slow);
        let leaver = process.clone();
        let mut threads = vec![thread::spawn(move || {
            block_on(async {
                let leaves = async {
                    // The store is asked, then it answers.
                    yield_now().await;
                    yield_now().await;
                };
                match select(pin!(leaver.ledger.reserve(hold_request(1, 30))), pin!(leaves)).await {
                    Either::Left((held, _)) => leaver.ledger.release(&held.unwrap().unwrap().id).await.unwrap(),
                    Either::Right(_) => {}
                }
            });
            0
        })];
        for number in 2..4 {
            let process = process.clone();
            threads.push(thread::spawn(move || {
                block_on(async {
                    let held = process.ledger.reserve(hold_request(number, 30)).await;
                    let held = held.expect("the store answers").expect("there is room");
                    process.ledger.release(&held.id).await.unwrap();
                });
                0
            }));
        }
        let charged = join(threads);
        model.check_end(charged, 100);
    });
}
