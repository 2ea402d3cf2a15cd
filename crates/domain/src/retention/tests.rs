//! Tests of retention with fakes.

use std::future::{pending, ready};
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};

use super::*;
use crate::audit::{Actor, AuditDraft, MockAuditLog, VerifyAuditLog};
use crate::budget::{Ledger, MockLedgerMaintenance, UsageCharge};
use crate::ids::{DestinationId, OutboxId};
use crate::json::Json;
use crate::observability::MockOutbox;
use crate::repetition::{Repetition, RepetitionScope, StoredRepetition, StoredResponse};
use crate::system::{Clock, Timer};
use crate::testing::contract::usage_record;
use crate::testing::{EventCount, FixedClock, ManualTimer, MemoryAuditLog, MemoryStore, SequentialIds, join_all};
use crate::usage::{
    OutboxMessage, Rejection, RejectionCount, RejectionReason, RejectionStatus, UsageRepository as _, UsageSumQuery,
    hour_of,
};

const DAY: Duration = Duration::from_hours(24);

const AUDIT: RetentionPolicy = RetentionPolicy {
    usage_records: None,
    usage_sums: None,
    evidence: None,
    audit_entries: Some(DAY),
    dead_letters: None,
};
const USAGE: RetentionPolicy = RetentionPolicy {
    usage_records: Some(DAY),
    usage_sums: None,
    evidence: None,
    audit_entries: None,
    dead_letters: None,
};

/// A store with entries that are two days old, its clock, and the timer of the pauses.
struct Fixture {
    store: MemoryStore,
    clock: FixedClock,
    timer: ManualTimer,
}

impl Fixture {
    fn new() -> Self {
        let clock = FixedClock::default();
        let store = MemoryStore::new().with_clock(clock.clone());
        Self { store, timer: ManualTimer::new(clock.clone()), clock }
    }

    async fn with_audit_entries(count: u64) -> Self {
        let fixture = Self::new();
        for _ in 0..count {
            fixture.append_audit_entry().await;
        }
        fixture.clock.advance(2 * DAY);
        fixture
    }

    async fn append_audit_entry(&self) {
        let draft = AuditDraft::done(&Actor::system(), "key.create", "key", Json::object([]));
        self.store.audit_log().append(&draft).await.unwrap();
    }

    async fn audit_entries(&self) -> usize {
        self.store.audit_log().read(0, 10_000).await.unwrap().len()
    }

    fn ports(&self) -> ApplyRetentionPorts {
        ApplyRetentionPorts {
            usage: self.store.maintenance(),
            rejections: self.store.rejections(),
            evidence: self.store.evidence(),
            audit: self.store.audit_log(),
            outbox: self.store.outbox(),
            repetitions: self.store.repetitions(),
            time: TimeSource { clock: Arc::new(self.clock.clone()), timer: Arc::new(self.timer.clone()) },
        }
    }

    fn retention(&self, policy: RetentionPolicy) -> ApplyRetention {
        ApplyRetention::new(self.ports(), policy)
    }
}

fn pruned(removed: u64, unreadable: u64) -> PruneReport {
    let named = ["a", "b"].into_iter().take(usize::try_from(unreadable).unwrap()).map(str::to_owned).collect();
    PruneReport { removed, unreadable, named }
}

/// A pruner that returns these results, one per step.
fn pruner(answers: Vec<Result<PruneReport, StoreError>>) -> Arc<MockLedgerMaintenance> {
    let mut pruner = MockLedgerMaintenance::new();
    let count = answers.len();
    let answers = Mutex::new(answers.into_iter());
    pruner.expect_prune().times(count).returning(move |kept, limit| {
        assert_eq!((kept, limit), (DAY, STEP_ROWS));
        answers.lock().unwrap_or_else(PoisonError::into_inner).next().unwrap()
    });
    Arc::new(pruner)
}

#[tokio::test]
async fn execute_keeps_every_kind_without_a_policy() {
    let fixture = Fixture::with_audit_entries(3).await;
    let none = RetentionPolicy::default();
    assert_eq!(fixture.retention(none).execute(pending()).await, RetentionReport::default());
    assert_eq!(fixture.audit_entries().await, 3);
}

#[tokio::test]
async fn execute_removes_old_rows_in_bounded_steps_with_a_pause_after_each() {
    let fixture = Fixture::with_audit_entries(2 * STEP_ROWS + 3).await;
    let (store, timer) = (fixture.store.audit_log(), fixture.timer.clone());
    let mut audit = MockAuditLog::new();
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&steps);
    audit.expect_prune().times(3).returning(move |before, limit| {
        assert_eq!(limit, STEP_ROWS);
        let step = counted.fetch_add(1, Ordering::SeqCst);
        assert_eq!(timer.slept(), vec![PAUSE; step], "one pause between two steps");
        store.prune(before, limit).now_or_never().expect("the fake never waits")
    });
    let ports = ApplyRetentionPorts { audit: Arc::new(audit), ..fixture.ports() };
    fixture.append_audit_entry().await;
    let report = ApplyRetention::new(ports, AUDIT).execute(pending()).await;
    assert_eq!(report, RetentionReport { audit_entries: 2 * STEP_ROWS + 3, ..RetentionReport::default() });
    assert_eq!((fixture.audit_entries().await, steps.load(Ordering::SeqCst)), (1, 3));
    let verified = VerifyAuditLog::new(fixture.store.audit_log()).execute(None).await.unwrap();
    assert_eq!((verified.oldest, verified.violation), (Some(2 * STEP_ROWS + 4), None));
}

/// A timer that counts the entries of the audit log in each pause.
struct CountingTimer {
    log: Arc<MemoryAuditLog>,
    left: Mutex<Vec<usize>>,
}

#[async_trait::async_trait]
impl Timer for CountingTimer {
    async fn sleep(&self, _: Duration) {
        let count = self.log.read(0, 10_000).await.unwrap().len();
        self.left.lock().unwrap().push(count);
    }
}

/// Another writer waits for at most one step.
#[tokio::test]
async fn execute_lets_other_writers_run_between_two_steps() {
    let fixture = Fixture::with_audit_entries(4 * STEP_ROWS).await;
    let timer = Arc::new(CountingTimer { log: fixture.store.audit_log(), left: Mutex::default() });
    let time = TimeSource { clock: Arc::new(fixture.clock.clone()), timer: Arc::clone(&timer) as Arc<dyn Timer> };
    let retention = ApplyRetention::new(ApplyRetentionPorts { time, ..fixture.ports() }, AUDIT);
    retention.execute(pending()).await;
    assert_eq!(*timer.left.lock().unwrap(), [1_500, 1_000, 500], "the store is free in each pause");
    assert_eq!(fixture.audit_entries().await, 1, "the newest entry of a log always stays");
}

#[tokio::test]
async fn execute_skips_and_counts_unreadable_records() {
    let fixture = Fixture::new();
    let answers = vec![
        Ok(pruned(STEP_ROWS, 2)),
        Ok(pruned(3, 2)),
        // The next round.
        Ok(pruned(0, 1)),
        Ok(pruned(0, 0)),
    ];
    let retention = ApplyRetention::new(ApplyRetentionPorts { usage: pruner(answers), ..fixture.ports() }, USAGE);
    assert_eq!(retention.unreadable_records(), 0);
    assert_eq!(retention.execute(pending()).await.usage_records, pruned(STEP_ROWS + 3, 2));
    assert_eq!(retention.unreadable_records(), 2);
    for left in [1, 0] {
        retention.execute(pending()).await;
        assert_eq!(retention.unreadable_records(), left);
    }
}

#[tokio::test]
async fn execute_continues_with_other_kinds_when_a_store_fails() {
    let fixture = Fixture::with_audit_entries(3).await;
    let answers = vec![Ok(pruned(STEP_ROWS, 1)), Err(StoreError::unavailable("away")), Ok(pruned(7, 0))];
    let mut outbox = MockOutbox::new();
    outbox.expect_prune().times(2).returning(|_, _| Err(StoreError::unavailable("away")));
    let ports = ApplyRetentionPorts { usage: pruner(answers), outbox: Arc::new(outbox), ..fixture.ports() };
    let policy = RetentionPolicy {
        usage_records: Some(DAY),
        usage_sums: None,
        evidence: Some(DAY),
        audit_entries: Some(DAY),
        dead_letters: Some(DAY),
    };
    let retention = ApplyRetention::new(ports, policy);
    let first = RetentionReport {
        usage_records: pruned(STEP_ROWS, 1),
        usage_sums: 0,
        rejection_counts: 0,
        evidence: 0,
        audit_entries: 2,
        dead_letters: 0,
        idempotent_requests: 0,
        failed: vec![RetainedRows::UsageRecords, RetainedRows::DeadLetters],
    };
    assert_eq!(retention.execute(pending()).await, first);
    assert_eq!(retention.unreadable_records(), 0, "a round that failed has not met all of them");
    let second = retention.execute(pending()).await;
    assert_eq!((second.usage_records, second.failed), (pruned(7, 0), vec![RetainedRows::DeadLetters]));
}

#[tokio::test]
async fn execute_removes_dead_letters_and_no_pending_messages() {
    let fixture = Fixture::new();
    let message = |number| OutboxMessage {
        id: OutboxId::from_uuid(SequentialIds::uuid(number)),
        destination_id: DestinationId::from_uuid(SequentialIds::uuid(9)),
        payload: Json::object([]),
    };
    let charge = UsageCharge { messages: vec![message(1), message(2)], ..UsageCharge::new(usage_record(1, 7)) };
    fixture.store.ledger().settle(&charge).await.unwrap();
    fixture.store.outbox().failed(&[message(1).id], None, "given up").await.unwrap();
    let policy = RetentionPolicy { dead_letters: Some(DAY), ..RetentionPolicy::default() };
    let status = async || fixture.store.outbox().status().await.map(|found| (found.pending, found.dead)).unwrap();
    assert_eq!(fixture.retention(policy).execute(pending()).await.dead_letters, 0, "the dead letter is not old yet");
    assert_eq!(status().await, (1, 1));
    fixture.clock.advance(2 * DAY);
    assert_eq!(fixture.retention(policy).execute(pending()).await.dead_letters, 1);
    assert_eq!(status().await, (1, 0));
}

#[tokio::test]
async fn execute_removes_rejection_counts_with_usage_records() {
    let fixture = Fixture::new();
    let rejection = Rejection {
        api_key: SequentialIds::key(1),
        workspace_id: None,
        status: RejectionStatus::TooManyRequests,
        reason: RejectionReason::RateLimited,
    };
    let count = RejectionCount { rejection, hour: hour_of(fixture.clock.now()), count: 3 };
    fixture.store.rejections().add(&[count]).await.unwrap();
    fixture.clock.advance(DAY);
    assert_eq!(fixture.retention(USAGE).execute(pending()).await.rejection_counts, 0, "its hour is not old yet");
    fixture.clock.advance(Duration::from_hours(1));
    assert_eq!(fixture.retention(AUDIT).execute(pending()).await.rejection_counts, 0);
    assert_eq!(fixture.retention(USAGE).execute(pending()).await.rejection_counts, 1);
}

#[tokio::test]
async fn execute_removes_sums_of_days_that_ended_before_their_retention() {
    let fixture = Fixture::new();
    let charge = UsageCharge::new(usage_record(1, 7));
    let day = charge.record.charged_at.date_naive();
    fixture.store.ledger().settle(&charge).await.unwrap();
    let sums = async || {
        let query = UsageSumQuery { since: day, until: day.succ_opt().unwrap(), ..UsageSumQuery::default() };
        fixture.store.usage().sum(&query, 9).await.unwrap().len()
    };
    let end =
        (day.succ_opt().unwrap().and_time(chrono::NaiveTime::MIN).and_utc() - fixture.clock.now()).to_std().unwrap();
    let policy = RetentionPolicy { usage_sums: Some(DAY), ..RetentionPolicy::default() };
    fixture.clock.advance((end + DAY).saturating_sub(Duration::from_millis(1)));
    assert_eq!((fixture.retention(policy).execute(pending()).await.usage_sums, sums().await), (0, 1));
    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!((fixture.retention(policy).execute(pending()).await.usage_sums, sums().await), (1, 0));
}

/// Two processes on one database remove each row once, and neither fails.
#[tokio::test]
async fn concurrent_rounds_remove_each_row_once() {
    let fixture = Fixture::with_audit_entries(5 * STEP_ROWS).await;
    fixture.append_audit_entry().await;
    let processes = [fixture.retention(AUDIT), fixture.retention(AUDIT)];
    let reports = join_all(processes.iter().map(|process| process.execute(pending()))).await;
    let removed: Vec<u64> = reports.iter().map(|report| report.audit_entries).collect();
    assert_eq!(removed.iter().sum::<u64>(), 5 * STEP_ROWS);
    assert!(removed.iter().all(|removed| *removed > 0), "both took part: {removed:?}");
    assert!(reports.iter().all(|report| report.failed.is_empty()));
    assert_eq!(fixture.audit_entries().await, 1);
}

#[tokio::test]
async fn execute_removes_idempotent_requests_after_24_hours_without_a_policy() {
    let fixture = Fixture::new();
    let scope = |key: &str| RepetitionScope {
        caller: "key:1".to_owned(),
        route: "POST /keys".to_owned(),
        key: key.parse().unwrap(),
    };
    for key in ["old", "new"] {
        let request = Repetition { scope: scope(key), fingerprint: [0; 32] };
        let stored = StoredRepetition { request, response: StoredResponse::Secret { id: "1".to_owned() } };
        let draft = AuditDraft::done(&Actor::system(), "key.create", "key", Json::object([]));
        let draft = AuditDraft { repetition: Some(stored), ..draft };
        fixture.store.audit_log().append(&draft).await.unwrap();
        fixture.clock.advance(DAY / 2 + Duration::from_millis(1));
    }
    let report = fixture.retention(RetentionPolicy::default()).execute(pending()).await;
    assert_eq!(report, RetentionReport { idempotent_requests: 1, ..RetentionReport::default() });
    assert!(fixture.store.repetitions().find(&scope("new")).await.unwrap().is_some());
}

#[tokio::test]
async fn execute_starts_no_step_when_stopped() {
    let fixture = Fixture::with_audit_entries(3).await;
    assert_eq!(fixture.retention(AUDIT).execute(ready(())).await, RetentionReport::default());
    assert_eq!(fixture.audit_entries().await, 3);
}

/// A timer whose first pause never ends. It counts pauses.
#[derive(Clone, Default)]
struct EndlessPause(EventCount);

#[async_trait::async_trait]
impl Timer for EndlessPause {
    async fn sleep(&self, _: Duration) {
        self.0.add();
        pending::<()>().await;
    }
}

#[tokio::test]
async fn execute_stops_between_two_steps() {
    let fixture = Fixture::with_audit_entries(3 * STEP_ROWS).await;
    let clock: Arc<dyn Clock> = Arc::new(fixture.clock.clone());
    // Neither the second step of this kind nor the first one of the next may begin.
    let mut outbox = MockOutbox::new();
    outbox.expect_prune().never();
    let pause = EndlessPause::default();
    let time = TimeSource { clock, timer: Arc::new(pause.clone()) };
    let ports = ApplyRetentionPorts { outbox: Arc::new(outbox), time, ..fixture.ports() };
    let retention = ApplyRetention::new(ports, RetentionPolicy { dead_letters: Some(DAY), ..AUDIT });
    let (stopped, stop) = futures_util::future::abortable(pending::<()>());
    let stopping = async {
        pause.0.reached(1).await;
        assert_eq!(fixture.audit_entries().await, 1_000, "the first step is done");
        stop.abort();
    };
    let (report, ()) = futures_util::future::join(retention.execute(stopped.map(drop)), stopping).await;
    assert_eq!(report, RetentionReport { audit_entries: STEP_ROWS, ..RetentionReport::default() });
    assert_eq!(fixture.audit_entries().await, 1_000);
}

#[tokio::test]
async fn execute_keeps_everything_when_the_cutoff_is_out_of_range() {
    let fixture = Fixture::with_audit_entries(3).await;
    let policy = RetentionPolicy { audit_entries: Some(Duration::MAX), ..RetentionPolicy::default() };
    assert_eq!(fixture.retention(policy).execute(pending()).await.audit_entries, 0);
    assert_eq!(fixture.audit_entries().await, 3);
}
