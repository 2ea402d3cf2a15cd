//! The shared part of the ledger under a model checker: requests and the keeper run as threads, in many interleavings.
//!
//! Only the ledger's locks are the checker's; the store and the journal are fakes whose calls are atomic.
//! `cargo xtask model` runs it.
#![cfg(shuttle)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::pin::pin;
use std::sync::Arc;
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
        Self { stores: Arc::new(stores), processes }
    }

    /// The spent and the allotted amount in the store, which never exceed the limit.
    fn counted(&self, limit: i64) -> (i64, i64) {
        let found = block_on(self.stores.limits.limit_statuses(&payer())).unwrap();
        let (spent, allotted) = (found[0].spent.pico(), found[0].reserved.pico());
        assert!(spent + allotted <= limit, "{spent} + {allotted} of {limit}");
        (spent, allotted)
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
        assert_eq!(self.counted(limit), (charged, 0));
        assert_eq!(block_on(self.stores.auditor.audit()).unwrap().discrepancies, []);
    }
}

/// Runs a request: it holds, increases its hold, and is charged or released. Returns its cost.
async fn request(process: Process, number: u128, hold: i64, more: i64, cost: i64) -> i64 {
    let Ok(Ok(held)) = process.ledger.reserve(hold_request(number, hold)).await else { return 0 };
    thread::yield_now();
    if more > 0 {
        let _ = process.ledger.increase(&held.id, Usd::from_pico(more), &[]).await;
        thread::yield_now();
    }
    if cost == 0 {
        process.ledger.release(&held.id).await.unwrap();
    } else {
        let charge = UsageCharge { record: usage_record(number, cost), messages: Vec::new() };
        process.ledger.settle(charge).await.unwrap();
    }
    cost
}

fn spawn_request(process: &Process, number: u128, [hold, more, cost]: [i64; 3]) -> JoinHandle<i64> {
    let process = process.clone();
    thread::spawn(move || block_on(request(process, number, hold, more, cost)))
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
        let [process, _] = &model.processes;
        let mut threads = vec![
            spawn_request(process, 1, [30, 20, 25]),
            spawn_request(process, 2, [40, 0, 0]),
            spawn_request(process, 3, [30, 0, 30]),
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
            spawn_request(one, 1, [60, 0, 25]),
            spawn_request(one, 2, [20, 30, 0]),
            spawn_request(two, 3, [40, 0, 40]),
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
