//! The audit of the ledger after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use adapters_journal::LocalJournals;
use domain::budget::{
    Account, DrawAsk, DrawRequest, RecoverJournals, RecoveryReport,
    allowances::{CounterId, CounterPeriod},
};
use domain::ids::DecisionId;
use domain::money::Usd;
use domain::testing::contract::{Stores, payer};
use domain::usage::{UnknownUsage, UsageFilter, UsageOutcome, UsageRecord};
use uuid::Uuid;

use crate::child::{COST, HOLD};
use crate::machine::{clock, open_database, stores};
use crate::points;
use crate::scene::{DEAD_COST, DEAD_HOLD, LIMIT, Scene, counted, process};

/// The requests of a child, from its own report.
#[derive(Default)]
pub struct ReportedRequests {
    /// Requests that may have been sent.
    tried: BTreeSet<u128>,
    /// Requests that were sent.
    held: BTreeSet<u128>,
    /// Requests whose release may have been written.
    released: BTreeSet<u128>,
    /// Requests whose charge was acknowledged.
    charged: BTreeSet<u128>,
}

impl ReportedRequests {
    /// Recovers the journals in a child's folder and compares the ledger with the child's report.
    pub async fn check(scene: &Scene, output: &str, point: &str) {
        let reported = Self::read(output);
        let clock = clock();
        let database = open_database(&scene.work().join("tollgate.db"), &clock).await;
        let stores = stores(&database, &clock);
        let root = scene.work().join("journals");
        let journals = LocalJournals::new(&root, database.id().await.unwrap(), Duration::from_hours(1));
        let recover =
            || RecoverJournals::new(Arc::clone(&stores.budget), Arc::new(journals.clone()), UnknownUsage::Bound);
        recover().execute().await.unwrap();
        assert_eq!(recover().execute().await.unwrap(), RecoveryReport::default(), "{point}: recovered twice");
        let unfinished =
            std::fs::read_dir(&root).unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
        assert_eq!(unfinished.filter(|name| name.starts_with('.')).count(), 0, "{point}: an unfinished folder is left");
        assert_eq!(stores.maintenance.audit().await.unwrap().discrepancies, [], "{point}");
        let records = stores.usage.list(&UsageFilter::for_workspace(payer().workspace_id), 1000).await.unwrap();
        reported.check_records(&records, point);
        check_dead(&records, point);
        // The damaged journal's allowances count as spent in full; for every other journal only the records count.
        let of_damaged = |record: &&UsageRecord| (200..300).any(|number| record.id == id(number));
        let others = records.iter().filter(|record| !of_damaged(record)).map(|record| record.cost.pico()).sum::<i64>();
        let spent = others + scene.damaged_allotment;
        assert_eq!(counted(&stores).await, (spent, 0), "{point}: nothing is left with the dead");
        check_room(&stores, LIMIT - spent, point).await;
        database.close().await;
    }

    fn read(output: &str) -> Self {
        let mut reported = Self::default();
        for (word, number) in points::events(output).filter_map(|event| event.split_once(' ')) {
            let set = match word {
                "holds" => &mut reported.tried,
                "held" => &mut reported.held,
                "releases" => &mut reported.released,
                "charged" => &mut reported.charged,
                _ => continue,
            };
            set.insert(number.parse().unwrap());
        }
        reported
    }

    fn check_records(&self, records: &[UsageRecord], point: &str) {
        for number in 1000..1100 {
            let found: Vec<&UsageRecord> = records.iter().filter(|record| record.id == id(number)).collect();
            assert!(found.len() <= 1, "{point}: {number} is charged twice");
            let Some(record) = found.first() else {
                assert!(
                    !self.charged.contains(&number),
                    "{point}: the charge of {number} was acknowledged and is lost"
                );
                let may_be_missing = !self.held.contains(&number) || self.released.contains(&number);
                assert!(may_be_missing, "{point}: {number} was sent and is not accounted for");
                continue;
            };
            assert!(self.tried.contains(&number), "{point}: {number} was never sent");
            let cost = record.cost.pico();
            if self.charged.contains(&number) || record.outcome == UsageOutcome::Completed {
                assert_eq!((record.outcome, cost), (UsageOutcome::Completed, COST), "{point}: {number}");
            } else {
                assert_eq!(record.outcome, UsageOutcome::Abandoned, "{point}: {number}");
                assert!(cost == HOLD || (number % 10 == 1 && cost == 2 * HOLD), "{point}: {number} came to {cost}");
            }
        }
    }
}

/// Checks the requests of the two processes that were dead before the child started.
fn check_dead(records: &[UsageRecord], point: &str) {
    let outcomes = [
        (100, UsageOutcome::Completed, DEAD_COST),
        (101, UsageOutcome::Abandoned, DEAD_HOLD),
        (102, UsageOutcome::Completed, DEAD_COST),
        // The damage makes its charge unreadable.
        (200, UsageOutcome::Abandoned, DEAD_HOLD),
        (201, UsageOutcome::Abandoned, DEAD_HOLD),
        (202, UsageOutcome::Completed, DEAD_COST),
    ];
    for (number, outcome, cost) in outcomes {
        let found: Vec<_> = records.iter().filter(|record| record.id == id(number)).collect();
        let found: Vec<_> = found.iter().map(|record| (record.outcome, record.cost.pico())).collect();
        assert_eq!(found, [(outcome, cost)], "{point}: {number}");
    }
}

/// Checks that exactly the remaining room can be drawn.
async fn check_room(stores: &Stores, room: i64, point: &str) {
    stores.budget.register(process(9)).await.unwrap();
    let counter = CounterId { account: Account::Key(payer().api_key), period: CounterPeriod::Lifetime };
    let at = domain::system::Clock::now(&stores.clock);
    let ask = |pico| {
        let amount = Usd::from_pico(pico);
        DrawAsk { payer: payer(), at, amount, counters: vec![counter] }
    };
    let request = DrawRequest {
        process: process(9),
        number: 1,
        asks: vec![ask(room + 1), ask(room)],
        free: BTreeMap::new(),
        ahead: Vec::new(),
    };
    let reply = stores.budget.draw(&request).await.unwrap();
    let granted: Vec<bool> = reply.answers.iter().map(Result::is_ok).collect();
    assert_eq!(granted, [false, true], "{point}: {room}");
}

fn id(number: u128) -> DecisionId {
    DecisionId::from_uuid(Uuid::from_u128(number))
}
