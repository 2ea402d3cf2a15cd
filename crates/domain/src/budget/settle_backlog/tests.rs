use std::collections::BTreeSet;
use std::future::{pending, ready};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use chrono::DateTime;

use super::super::backlog::CORRUPT_TRIES;
use super::*;
use crate::api_key::ApiKeyHash;
use crate::budget::{
    BacklogBounds, BacklogStanding, Claim, ExpiryReport, LedgerAudit, Overspent, Payer, PruneReport, Reservation,
    Settlement, StandingLimit,
};
use crate::decision::UnknownUsage;
use crate::ids::{DecisionId, DestinationId, OutboxId, RequestId, WorkspaceId};
use crate::json::Json;
use crate::observability::{MockMeter, NoMeter, OutboxMessage};
use crate::routing::TokenPrices;
use crate::testing::{FixedClock, ManualTimer, SequentialIds};
use crate::usage::{AttemptRecord, TokenSource, UsageOutcome, UsageShare};

fn id(number: u64) -> DecisionId {
    DecisionId::from_uuid(SequentialIds::uuid(number))
}

/// A record of so many picodollars.
fn settlement(number: u64, pico: i64) -> Settlement {
    let price = |text: &str| text.parse().unwrap();
    let at = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
    let record = UsageRecord {
        id: id(number),
        workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(1)),
        api_key: ApiKeyHash::from_bytes([7; 32]),
        request_id: RequestId::from_uuid(SequentialIds::uuid(2)),
        requested_model: "acme/judge".to_owned(),
        model: "acme/judge".parse().unwrap(),
        provider: "acme".to_owned(),
        outcome: UsageOutcome::Completed,
        input_tokens: u64::try_from(pico).unwrap(),
        output_tokens: 0,
        token_source: TokenSource::Reported,
        cost: Usd::from_pico(pico),
        prices: TokenPrices { prompt: price("0.000000000001"), completion: price("0") },
        share: UsageShare::WHOLE,
        attempts: Arc::default(),
        guardrails: Vec::new(),
        findings: Vec::new(),
        charged_at: at,
        session_id: None,
        trace: Json::parse(r#"{"team":"a"}"#).ok(),
        user: None,
        created_at: at,
        latency: Duration::from_millis(5),
    };
    let message = OutboxMessage {
        id: OutboxId::from_uuid(SequentialIds::uuid(number)),
        destination_id: DestinationId::from_uuid(SequentialIds::uuid(3)),
        payload: Json::parse(r#"{"spans":[]}"#).unwrap(),
    };
    Settlement { record, messages: vec![message] }
}

fn away() -> StoreError {
    StoreError::unavailable("away")
}

/// A ledger that only settles, and not always.
#[derive(Default)]
struct Store {
    /// How often it does not answer before it does.
    away_for: Mutex<u32>,
    /// Never takes these, or calls them corrupt.
    refused: BTreeSet<DecisionId>,
    corrupt: BTreeSet<DecisionId>,
    /// True while it does not even come to an end.
    hangs: AtomicBool,
    asked: Mutex<Vec<DecisionId>>,
    settled: Mutex<Vec<Settlement>>,
}

impl Store {
    fn away_for(times: u32) -> Arc<Self> {
        Arc::new(Self { away_for: Mutex::new(times), ..Self::default() })
    }

    fn settled(&self) -> Vec<DecisionId> {
        self.settled.lock().unwrap().iter().map(|settlement| settlement.record.id.clone()).collect()
    }
}

#[async_trait]
impl Ledger for Store {
    async fn settle(&self, settlement: Settlement) -> Result<(), StoreError> {
        let id = settlement.record.id.clone();
        self.asked.lock().unwrap().push(id.clone());
        if self.hangs.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
        let mut away_for = self.away_for.lock().unwrap();
        if *away_for > 0 {
            *away_for -= 1;
            return Err(away());
        }
        if self.refused.contains(&id) {
            return Err(away());
        }
        if self.corrupt.contains(&id) {
            return Err(StoreError::Corrupt("a counter".to_owned()));
        }
        self.settled.lock().unwrap().push(settlement);
        Ok(())
    }

    async fn reserve(&self, _: Claim) -> Result<Result<Reservation, Overspent>, StoreError> {
        unreachable!("nothing is reserved here")
    }

    async fn extend(&self, _: &DecisionId, _: Usd, _: &[AttemptRecord]) -> Result<Result<(), Overspent>, StoreError> {
        unreachable!("nothing is reserved here")
    }

    async fn release(&self, _: &DecisionId) -> Result<(), StoreError> {
        unreachable!("nothing is released here")
    }

    async fn expire(&self, _: UnknownUsage, _: u64) -> Result<ExpiryReport, StoreError> {
        unreachable!("nothing expires here")
    }

    async fn standing(&self, _: &Payer) -> Result<Vec<StandingLimit>, StoreError> {
        unreachable!("nobody asks for limits here")
    }

    async fn audit(&self) -> Result<LedgerAudit, StoreError> {
        unreachable!("nothing is compared here")
    }

    async fn prune(&self, _: Duration, _: u64) -> Result<PruneReport, StoreError> {
        unreachable!("nothing is pruned here")
    }
}

/// A writer over a timer that takes no time and remembers its sleeps.
fn writer(backlog: &Backlog, store: &Arc<Store>) -> (SettleBacklog, ManualTimer) {
    let timer = ManualTimer::new(FixedClock::default());
    let ledger = Arc::clone(store) as Arc<dyn Ledger>;
    (SettleBacklog::new(backlog, ledger, Arc::new(NoMeter), Arc::new(timer.clone())), timer)
}

fn filled(numbers: std::ops::RangeInclusive<u64>) -> Backlog {
    let backlog = Backlog::new(BacklogBounds::new(1_000));
    for number in numbers {
        backlog.keep(settlement(number, 5), None, &away());
    }
    backlog
}

fn standing(waiting: u64, written: u64, lost: u64) -> BacklogStanding {
    BacklogStanding { waiting, written, lost }
}

#[tokio::test]
async fn a_store_that_is_away_is_asked_less_and_less_often_and_by_one_alone() {
    let (backlog, store) = (filled(1..=5), Store::away_for(9));
    let (writer, timer) = writer(&backlog, &store);
    let watch = backlog.watch();
    assert_eq!(watch(), standing(5, 0, 0));
    drop(backlog);
    writer.run(pending(), Duration::ZERO).await;
    assert_eq!(
        timer.slept(),
        [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000].map(Duration::from_millis)
    );
    assert_eq!(store.asked.lock().unwrap().len(), 9 + 5, "while it is away one asks for all");
    assert_eq!(BTreeSet::from_iter(store.settled()), (1..=5).map(id).collect());
    assert_eq!((store.settled().len(), watch()), (5, standing(0, 5, 0)));
}

#[tokio::test]
async fn what_comes_later_is_written_as_well_until_nobody_holds_the_backlog() {
    let (backlog, store) = (filled(1..=1), Store::away_for(1));
    let (writer, _) = writer(&backlog, &store);
    let mut running = tokio::task::JoinSet::new();
    running.spawn(async move { writer.run(pending(), Duration::ZERO).await });
    crate::testing::yield_now().await;
    while backlog.watch()().waiting > 0 {
        crate::testing::yield_now().await;
    }
    for _ in 0..20 {
        crate::testing::yield_now().await;
    }
    assert!(running.try_join_next().is_none(), "there may be more to come");
    backlog.keep(settlement(2, 5), None, &away());
    drop(backlog);
    running.join_next().await.unwrap().unwrap();
    assert_eq!(store.settled(), [id(1), id(2)]);
}

#[tokio::test]
async fn many_are_written_together_when_the_store_is_back() {
    let (backlog, store) = (filled(1..=300), Store::away_for(1));
    let (writer, timer) = writer(&backlog, &store);
    drop(backlog);
    writer.run(pending(), Duration::ZERO).await;
    assert_eq!((store.settled().len(), timer.slept().len()), (300, 1));
}

#[tokio::test]
async fn one_that_is_never_taken_is_in_nobodys_way_and_is_lost_in_the_end() {
    let backlog = filled(1..=300);
    let store = Arc::new(Store { refused: BTreeSet::from([id(1)]), ..Store::default() });
    let (writer, timer) = writer(&backlog, &store);
    let watch = backlog.watch();
    drop(backlog);
    // Ten rounds are enough by far.
    let stopped = async {
        while timer.slept().len() < 10 {
            crate::testing::yield_now().await;
        }
    };
    writer.run(stopped, Duration::ZERO).await;
    assert_eq!(watch(), standing(0, 299, 1));
    assert!(!store.settled().contains(&id(1)));
}

#[tokio::test]
async fn writer_waits_longer_each_round_when_one_settlement_keeps_failing() {
    for (refused, corrupt) in [(Some(id(2)), None), (None, Some(id(2)))] {
        let backlog = filled(1..=3);
        let (refused, corrupt) = (refused.into_iter().collect(), corrupt.into_iter().collect());
        let store = Arc::new(Store { refused, corrupt, ..Store::default() });
        let (writer, timer) = writer(&backlog, &store);
        drop(backlog);
        let stopped = async {
            while timer.slept().len() < 8 {
                crate::testing::yield_now().await;
            }
        };
        writer.run(stopped, Duration::ZERO).await;
        // Two were written in the first round; from then on the rounds fail, one call each.
        let waits = [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000].map(Duration::from_millis);
        assert_eq!(timer.slept()[..8], waits);
        assert!(store.asked.lock().unwrap().len() <= 3 + 9, "no call between two waits");
    }
}

fn corrupt() -> StoreError {
    StoreError::Corrupt("a counter".to_owned())
}

#[tokio::test]
async fn what_the_store_calls_corrupt_to_the_end_is_lost_and_in_nobody_s_way() {
    let backlog = filled(1..=3);
    let store = Arc::new(Store { corrupt: BTreeSet::from([id(2)]), ..Store::default() });
    let (writer, _) = writer(&backlog, &store);
    let watch = backlog.watch();
    backlog.keep(settlement(4, 5), None, &corrupt());
    assert_eq!(watch(), standing(4, 0, 0), "what reads like that may be mended");
    drop(backlog);
    writer.run(pending(), Duration::ZERO).await;
    assert_eq!((watch(), store.settled()), (standing(0, 3, 1), vec![id(1), id(3), id(4)]));
    let tries = store.asked.lock().unwrap().iter().filter(|asked| **asked == id(2)).count();
    assert_eq!(tries, usize::try_from(CORRUPT_TRIES).unwrap() + 1);
}

#[tokio::test]
async fn what_is_corrupt_takes_no_more_room_than_its_own() {
    let backlog = Backlog::new(BacklogBounds::new(0));
    for number in 0..200 {
        backlog.keep(settlement(number, 5), None, &corrupt());
    }
    assert_eq!(backlog.watch()(), standing(128, 0, 72));
    backlog.keep(settlement(200, 5), None, &away());
    assert_eq!(backlog.watch()(), standing(129, 0, 72), "others have theirs");
    assert!(backlog.accepts());
}

#[tokio::test]
async fn beyond_the_bounds_settlements_are_lost_and_nothing_is_accepted() {
    let backlog = Backlog::new(BacklogBounds { accepting: 1, most: 2, trace_bytes: 1_000 });
    assert!(backlog.accepts());
    for number in 1..=3 {
        backlog.keep(settlement(number, 5), Some(Usd::from_pico(9)), &away());
        assert!(!backlog.accepts());
    }
    assert_eq!(backlog.watch()(), standing(2, 0, 1));
    let store = Store::away_for(0);
    let (writer, _) = writer(&backlog, &store);
    let held = async {
        while backlog.watch()().waiting > 0 {
            crate::testing::yield_now().await;
        }
        assert!(backlog.accepts(), "there is room again");
        drop(backlog);
    };
    tokio::join!(writer.run(pending(), Duration::ZERO), held);
    assert_eq!(store.settled(), [id(1), id(2)]);
    assert!(!Backlog::new(BacklogBounds::nothing()).accepts());
}

#[tokio::test]
async fn beyond_the_bytes_money_is_kept_and_traces_are_not() {
    let each = settlement(1, 5);
    let bytes = each.messages[0].payload.text().len() + each.record.trace.as_ref().unwrap().text().len();
    let backlog = Backlog::new(BacklogBounds { accepting: 9, most: 9, trace_bytes: 2 * bytes });
    (1..=3).for_each(|number| backlog.keep(settlement(number, 5), None, &away()));
    let store = Store::away_for(0);
    let (writer, _) = writer(&backlog, &store);
    drop(backlog);
    writer.run(pending(), Duration::ZERO).await;
    let settled = store.settled.lock().unwrap().clone();
    assert_eq!(settled[..2], [settlement(1, 5), settlement(2, 5)], "as they came");
    let bare = settlement(3, 5);
    let record = UsageRecord { trace: None, ..bare.record };
    assert_eq!(settled[2], Settlement { record, messages: Vec::new() });
}

#[tokio::test]
async fn bytes_that_were_written_are_free_again() {
    let each = settlement(1, 5);
    let bytes = each.messages[0].payload.text().len() + each.record.trace.as_ref().unwrap().text().len();
    let backlog = Backlog::new(BacklogBounds { accepting: 9, most: 9, trace_bytes: bytes });
    let store = Store::away_for(0);
    let (writer, _) = writer(&backlog, &store);
    let filling = async {
        for number in 1..=3 {
            backlog.keep(settlement(number, 5), None, &away());
            while backlog.watch()().waiting > 0 {
                crate::testing::yield_now().await;
            }
        }
        drop(backlog);
    };
    tokio::join!(writer.run(pending(), Duration::ZERO), filling);
    assert_eq!(*store.settled.lock().unwrap(), [1, 2, 3].map(|number| settlement(number, 5)));
}

#[tokio::test]
async fn a_stop_waits_for_the_store_without_long_pauses_and_not_for_ever() {
    // It is back while there is time.
    let (backlog, store) = (filled(1..=2), Store::away_for(3));
    let watch = backlog.watch();
    let clock = FixedClock::default();
    let timer = Patient { stops: Duration::from_secs(7), sleeps: ManualTimer::new(clock) };
    let late = SettleBacklog::new(&backlog, Arc::clone(&store) as _, Arc::new(NoMeter), Arc::new(timer.clone()));
    drop(backlog);
    late.run(ready(()), timer.stops).await;
    assert_eq!((watch(), timer.sleeps.slept()), (standing(0, 2, 0), vec![FIRST_WAIT; 3]));

    // It is not, or does not even say so.
    for hangs in [false, true] {
        let (backlog, store) = (filled(1..=2), Store::away_for(u32::MAX));
        store.hangs.store(hangs, Ordering::Relaxed);
        let (writer, _) = writer(&backlog, &store);
        let watch = backlog.watch();
        writer.run(ready(()), Duration::from_secs(7)).await;
        assert_eq!(watch(), standing(0, 0, 2));
        backlog.keep(settlement(3, 5), None, &away());
        assert_eq!(watch(), standing(0, 0, 3), "nobody is there to write it");
        assert_eq!(store.settled(), []);
    }
}

/// Its sleeps take no time, but for the one that a stop is bounded by, which does not end.
#[derive(Clone)]
struct Patient {
    stops: Duration,
    sleeps: ManualTimer,
}

#[async_trait]
impl Timer for Patient {
    async fn sleep(&self, duration: Duration) {
        if duration == self.stops {
            pending::<()>().await;
        }
        self.sleeps.sleep(duration).await;
    }
}

#[tokio::test]
async fn a_stop_ends_a_long_pause() {
    let (backlog, store) = (filled(1..=1), Store::away_for(1));
    let timer = Patient { stops: FIRST_WAIT, sleeps: ManualTimer::new(FixedClock::default()) };
    // The pause after the first failure does not end by itself.
    let late = SettleBacklog::new(&backlog, Arc::clone(&store) as _, Arc::new(NoMeter), Arc::new(timer));
    drop(backlog);
    let stopped = async {
        while store.asked.lock().unwrap().is_empty() {
            crate::testing::yield_now().await;
        }
        for _ in 0..5 {
            crate::testing::yield_now().await;
        }
        assert_eq!(store.settled(), []);
    };
    late.run(stopped, FIRST_WAIT).await;
    assert_eq!(store.settled(), [id(1)]);
}

#[tokio::test]
async fn what_is_written_late_is_measured_as_what_is_written_at_once() {
    let backlog = filled(1..=1);
    backlog.keep(settlement(2, 5), Some(Usd::from_pico(5)), &away());
    backlog.keep(settlement(3, 5), Some(Usd::from_pico(4)), &away());
    let mut meter = MockMeter::new();
    meter.expect_settled().times(3).return_const(());
    meter.expect_beyond_bound().times(1).return_const(());
    let timer = ManualTimer::new(FixedClock::default());
    let store = Store::away_for(1);
    let late = SettleBacklog::new(&backlog, Arc::clone(&store) as _, Arc::new(meter), Arc::new(timer));
    drop(backlog);
    late.run(pending(), Duration::ZERO).await;
    assert_eq!(store.settled().len(), 3);
}
