//! The bound on the bytes that records of a workspace take in a day.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::fixture::*;
use super::*;
use crate::decision::RecordQuotaExceeded;
use crate::usage::{UsageFilter, UsageRepository, UsageSum, UsageSumQuery};

const LIMIT: u64 = 10_000;

/// The volume that the store reports, and the number of its reads.
#[derive(Default)]
struct StoredVolume {
    bytes: AtomicU64,
    is_unavailable: std::sync::atomic::AtomicBool,
    read: AtomicUsize,
}

fn gateway(volume: &Arc<StoredVolume>) -> TestGateway {
    let (mut volumes, read) = (MockUsageRepository::new(), Arc::clone(volume));
    volumes.expect_recorded_bytes().returning(move |_| {
        read.read.fetch_add(1, Ordering::SeqCst);
        if read.is_unavailable.load(Ordering::SeqCst) {
            return Err(StoreError::unavailable("away"));
        }
        Ok(read.bytes.load(Ordering::SeqCst))
    });
    gateway_over(Arc::new(volumes))
}

fn gateway_over(volumes: Arc<dyn UsageRepository>) -> TestGateway {
    let mut ledger = granting_ledger();
    ledger.expect_settle().returning(|_| Ok(()));
    let mut setup = GatewaySetup::new(vec![endpoint("acme/judge", "one", "a")]);
    setup.settings.max_record_bytes_per_day = Some(LIMIT);
    setup.ledger = Some(Arc::new(ledger));
    setup.stored = volumes;
    setup.build()
}

/// A store that responds when the test says so.
struct SlowVolumes(Arc<Notify>);

#[async_trait]
impl UsageRepository for SlowVolumes {
    async fn find(&self, _: &DecisionId) -> Result<Option<UsageRecord>, StoreError> {
        Ok(None)
    }

    async fn list(&self, _: &UsageFilter, _: u64) -> Result<Vec<UsageRecord>, StoreError> {
        Ok(Vec::new())
    }

    async fn count_read(&self, _: &UsageFilter, _: u64) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn sum(&self, _: &UsageSumQuery, _: u64) -> Result<Vec<UsageSum>, StoreError> {
        Ok(Vec::new())
    }

    async fn last_use(
        &self,
        _: &[crate::ids::ApiKeyId],
    ) -> Result<std::collections::HashMap<crate::ids::ApiKeyId, DateTime<chrono::Utc>>, StoreError> {
        Ok(std::collections::HashMap::new())
    }

    async fn recorded_bytes(&self, _: WorkspaceId) -> Result<u64, StoreError> {
        self.0.notified().await;
        Ok(LIMIT)
    }
}

/// A request with a trace of `bytes` bytes.
fn traced(bytes: usize) -> DecisionRequest {
    let trace = Json::object([("a", Json::string(&"x".repeat(bytes - 8)).text())]);
    assert_eq!(trace.text().len(), bytes);
    DecisionRequest { trace: Some(trace), ..nouls(1) }
}

/// Sends a request. The provider answers if it is called.
async fn send(gateway: &TestGateway, workspace: u64, bytes: usize) -> Result<(), RecordQuotaExceeded> {
    let before = gateway.upstreams().len();
    let pending = gateway.send_in(workspace, traced(bytes)).await;
    if gateway.upstreams().len() > before {
        gateway.answer(before, 1).await;
    }
    match pending.end().await {
        Ok(_) => Ok(()),
        Err(SubmitDecisionError::RecordQuotaExceeded(full)) => {
            assert_eq!(gateway.upstreams().len(), before, "no provider is called");
            Err(full)
        }
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn records_of_this_process_count_at_once_and_those_of_others_within_a_second() {
    let volume = Arc::new(StoredVolume::default());
    let gateway = gateway(&volume);
    assert_eq!(send(&gateway, 900, 6_000).await, Ok(()));
    assert_eq!(send(&gateway, 900, 6_000).await, Ok(()), "the bound is not reached yet");
    let full = send(&gateway, 900, 10).await.unwrap_err();
    assert!(full.limit == LIMIT && full.used > 12_000, "{full:?}");
    assert_eq!(volume.read.load(Ordering::SeqCst), 1, "the figure of the store is read once a second");
    assert_eq!(send(&gateway, 901, 6_000).await, Ok(()), "another workspace has its own");

    // The volume of the store replaces the cached one.
    volume.bytes.store(9_999, Ordering::SeqCst);
    gateway.clock.advance(Duration::from_secs(1));
    assert_eq!(send(&gateway, 900, 10).await, Ok(()));
    volume.bytes.store(LIMIT, Ordering::SeqCst);
    gateway.clock.advance(Duration::from_secs(1));
    assert_eq!(send(&gateway, 900, 10).await.unwrap_err().used, LIMIT, "the bound itself is reached");
    let status = gateway.record_quota_status();
    assert_eq!((status.largest_bytes > 0, status.rejected), (true, 2));
}

#[tokio::test(start_paused = true)]
async fn rejected_request_draws_no_id() {
    let volume = Arc::new(StoredVolume::default());
    let gateway = gateway(&volume);
    let full = Arc::new(StoredVolume::default());
    full.bytes.store(LIMIT, Ordering::SeqCst);
    let rejecting = self::gateway(&full);
    for _ in 0..3 {
        send(&rejecting, 900, 10).await.unwrap_err();
    }
    full.bytes.store(0, Ordering::SeqCst);
    rejecting.clock.advance(Duration::from_secs(1));
    let mut ids = Vec::new();
    for gateway in [&gateway, &rejecting] {
        let pending = gateway.send_in(900, traced(10)).await;
        gateway.answer(0, 1).await;
        ids.push(pending.end().await.unwrap().id);
    }
    assert_eq!(ids[0], ids[1], "the first id of each gateway");
}

#[tokio::test(start_paused = true)]
async fn bound_begins_again_with_the_next_utc_day() {
    let volume = Arc::new(StoredVolume::default());
    volume.bytes.store(LIMIT, Ordering::SeqCst);
    let gateway = gateway(&volume);
    let full = send(&gateway, 900, 10).await.unwrap_err();
    assert_eq!(full.resets_at, crate::budget::ResetInterval::Daily.end_of(gateway.clock.now()));
    assert_eq!(full.resets_in, (full.resets_at - gateway.clock.now()).to_std().unwrap());
    gateway.clock.advance(full.resets_in);
    volume.bytes.store(0, Ordering::SeqCst);
    assert_eq!(send(&gateway, 900, 10).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn last_known_figure_counts_while_the_store_does_not_answer() {
    let volume = Arc::new(StoredVolume::default());
    let gateway = gateway(&volume);
    volume.is_unavailable.store(true, Ordering::SeqCst);
    assert_eq!(send(&gateway, 900, 9_000).await, Ok(()));
    assert_eq!(send(&gateway, 900, 2_000).await, Ok(()));
    gateway.clock.advance(Duration::from_secs(1));
    assert!(send(&gateway, 900, 10).await.is_err(), "what this process added is not forgotten");
    assert_eq!(volume.read.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn silent_store_delays_a_request_by_a_second_and_a_slow_one_is_read_later() {
    let response = Arc::new(Notify::new());
    let gateway = gateway_over(Arc::new(SlowVolumes(Arc::clone(&response))));
    let pending = gateway.send_in(900, traced(9_000)).await;
    assert_eq!((gateway.upstreams().len(), gateway.timer.waiting()), (0, vec![Duration::from_secs(1)]));
    gateway.elapse(Duration::from_millis(999)).await;
    gateway.answer(0, 1).await;
    assert!(pending.end().await.is_ok());
    assert_eq!(send(&gateway, 900, 10).await, Ok(()), "no further request waits");
    gateway.elapse(Duration::from_secs(10)).await;
    let pending = gateway.send_in(900, traced(10)).await;
    assert!(gateway.timer.waiting().is_empty(), "the read after a timeout has none");
    response.notify_one();
    assert!(matches!(pending.end().await, Err(SubmitDecisionError::RecordQuotaExceeded(_))));
}
