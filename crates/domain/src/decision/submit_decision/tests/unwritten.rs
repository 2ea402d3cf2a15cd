//! Charges that the ledger does not take.

use std::future::pending;
use std::sync::atomic::Ordering;

use super::books::{Books, bound, key, plan, usd};
use super::stage::*;
use super::*;
use crate::budget::{BacklogStanding, SettleBacklog};
use crate::decision::UnknownUsage;

/// A world whose ledger takes no records until it is told to, and what writes them then.
async fn world(limit: Option<i64>, bounds: BacklogBounds) -> (World, Arc<Books>, Late) {
    let books = Books::new(None, &[limit]).await;
    books.takes_no_records.store(true, Ordering::SeqCst);
    let mut plan = plan(&books);
    plan.backlog = Backlog::new(bounds);
    let watch = Box::new(plan.backlog.watch());
    let timer = Arc::new(ManualTimer::new(FixedClock::default()));
    let ledger = Arc::clone(&books) as Arc<dyn Ledger>;
    let writer = SettleBacklog::new(&plan.backlog, ledger, Arc::new(NoMeter), timer);
    (plan.build(), books, Late { watch, writer })
}

struct Late {
    watch: Box<dyn Fn() -> BacklogStanding>,
    writer: SettleBacklog,
}

impl Late {
    /// The store is back.
    async fn write(self, world: World, books: &Books) -> BacklogStanding {
        books.takes_no_records.store(false, Ordering::SeqCst);
        drop(world);
        self.writer.run(pending(), Duration::ZERO).await;
        (self.watch)()
    }
}

fn unlimited() -> InferenceKey {
    InferenceKey::for_tests(key(1).hash(), key(1).workspace_id())
}

fn standing(waiting: u64, written: u64, lost: u64) -> BacklogStanding {
    BacklogStanding { waiting, written, lost }
}

#[tokio::test]
async fn what_nobody_limits_is_charged_exactly_and_once_when_the_store_is_back() {
    let (world, books, late) = world(None, BacklogBounds::new(0)).await;
    let asked = world.ask_with(unlimited(), nouls(1)).await;
    world.answer(0, 30).await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::Unavailable, "there is no answer without a record");
    assert_eq!((books.records().await, (late.watch)()), (vec![], standing(1, 0, 0)));
    assert_eq!(late.write(world, &books).await, standing(0, 1, 0));
    let record = books.records().await.remove(0);
    assert_eq!((record.cost, record.outcome, record.input_tokens), (usd(30), UsageOutcome::Completed, 30));
    assert_eq!(books.records().await.len(), 1);
}

#[tokio::test]
async fn what_is_limited_is_charged_exactly_and_not_by_its_bound() {
    let (world, books, late) = world(Some(1_000), BacklogBounds::new(0)).await;
    let asked = world.ask_with(key(1), nouls(1)).await;
    world.answer(0, 30).await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(books.standing(1).await, (0, bound(&nouls(1))), "it stays reserved");
    assert_eq!(late.write(world, &books).await, standing(0, 1, 0));
    assert_eq!((books.standing(1).await, books.records().await.len()), ((30, 0), 1));
    books.clock.advance(Duration::from_hours(1));
    let report = books.expire(UnknownUsage::Bound, 10).await.unwrap();
    assert_eq!((report.charged, report.released), (0, 0), "nothing is left for the sweeper");
}

#[tokio::test]
async fn what_the_sweeper_ended_first_is_charged_once_and_in_the_end_exactly() {
    for unknown in [UnknownUsage::Bound, UnknownUsage::Free] {
        let (world, books, late) = world(Some(1_000), BacklogBounds::new(0)).await;
        let asked = world.ask_with(key(1), nouls(1)).await;
        world.answer(0, 30).await;
        asked.end().await.unwrap_err();
        books.clock.advance(Duration::from_hours(1));
        books.expire(unknown, 10).await.unwrap();
        let by_bound = if unknown == UnknownUsage::Bound { bound(&nouls(1)) } else { 0 };
        assert_eq!(books.standing(1).await, (by_bound, 0));
        assert_eq!(late.write(world, &books).await, standing(0, 1, 0));
        let records = books.records().await;
        assert_eq!((records.len(), records[0].outcome), (1, UsageOutcome::Completed));
        assert_eq!(books.standing(1).await, (30, 0));
    }
}

#[tokio::test]
async fn a_caller_who_left_is_charged_as_well() {
    let (world, books, late) = world(None, BacklogBounds::new(0)).await;
    let asked = world.ask_with(unlimited(), nouls(1)).await;
    asked.leave();
    settle().await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(late.write(world, &books).await, standing(0, 1, 0));
    let record = books.records().await.remove(0);
    let spent = i64::try_from(SENT_WHEN_LEFT).unwrap() + 20;
    assert_eq!((record.outcome, record.cost), (UsageOutcome::Cancelled, usd(spent)));
}

#[tokio::test]
async fn where_too_much_waits_nothing_more_is_sent() {
    let bounds = BacklogBounds { accepting: 1, most: 2, trace_bytes: 1_000 };
    let (world, books, late) = world(None, bounds).await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(world.ask_with(unlimited(), nouls(1)).await);
    }
    world.end_all(30);
    for asked in asked {
        assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::Unavailable);
    }
    assert_eq!((late.watch)(), standing(2, 0, 1), "those under way have room up to a bound");
    let refused = world.ask_with(unlimited(), nouls(1)).await.end().await.unwrap_err();
    assert_eq!((refused.kind(), world.upstreams().len()), (ErrorKind::Unavailable, 3));
    assert_eq!(late.write(world, &books).await, standing(0, 2, 1));
    assert_eq!(books.records().await.len(), 2);
}
