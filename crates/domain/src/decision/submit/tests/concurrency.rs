//! Concurrent requests under one limit, and what one request costs.

use super::fixture::*;
use super::recording_ledger::{RecordingLedger, bound, key, setup, usd};
use super::*;
use crate::budget::{JournaledLedger, LedgerSettings};
use crate::ids::ProcessId;
use crate::testing::JournalBounds;
use crate::testing::contract::LedgerMachine;
use chrono::Utc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The number of requests that fit under the limit.
const FITTING: usize = 40;

/// A provider that answers when all requests that fit are in flight. Each uses the whole bound.
struct CrowdedProvider(Barrier);

#[async_trait]
impl DecisionProvider for CrowdedProvider {
    async fn decide(&self, call: ProviderCall) -> Outcome {
        self.0.wait().await;
        let tokens = u64::try_from(call.provider_input.len_bytes()).unwrap() + call.endpoint.prompt_overhead_tokens;
        let usage = Some(ReportedUsage { input_tokens: tokens, output_tokens: 0 });
        let sent_bytes = u64::try_from(call.provider_input.len_bytes()).unwrap();
        Ok(ProviderAnswer { answers: answers_to(&call.provider_input), usage, sent_bytes })
    }

    fn outbound_bytes(&self, _: &Endpoint, provider_input: &ProviderInput) -> u64 {
        u64::try_from(provider_input.len_bytes()).unwrap()
    }
}

/// 64 concurrent requests under a limit for 40 of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_use_whole_limit_and_never_exceed_it() {
    let most = bound(&nouls(1));
    let limit = 40 * most + most / 2;
    let ledger = RecordingLedger::new(None, &[Some(limit)]).await;
    let GatewaySetup { rows, endpoints, settings, .. } = setup(&ledger);
    let mut ports = decision_ports(&ledger.store, rows, endpoints);
    ports.provider = Arc::new(CrowdedProvider(Barrier::new(FITTING)));
    ports.usage.ledger = Arc::clone(&ledger) as Arc<dyn Ledger>;
    // Sleeps end at once, and the time of the requests stands still.
    ports.time.timer = Arc::new(ManualTimer::new(FixedClock::default()));
    let submit = Arc::new(SubmitDecision::new(ports, settings));
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let submit = Arc::clone(&submit);
        tasks.spawn(async move {
            let request_id = RequestId::from_uuid(SequentialIds::uuid(number));
            submit.execute(&key(1), request_id.into(), nouls(1), Arc::new(NeverDisconnects)).await
        });
    }
    let (mut answered, mut rejected) = (0, 0);
    // If fewer requests fit, those in flight wait for ever.
    while let Some(ended) = timeout(Duration::from_secs(20), tasks.join_next()).await.expect("40 requests fit") {
        let (spent, reserved) = ledger.spent_and_held(1).await;
        assert!(spent + reserved <= limit, "{spent} and {reserved} of {limit}");
        match ended.unwrap() {
            Ok(decision) => {
                assert_eq!(decision.cost, usd(most));
                answered += 1;
            }
            Err(SubmitDecisionError::LimitExceeded(exceeded)) => {
                let used = exceeded.spent.pico() + exceeded.reserved.pico();
                assert!(used + most > limit, "it would have fitted: {exceeded:?}");
                rejected += 1;
            }
            Err(other) => panic!("unexpected error: {other}"),
        }
    }
    assert_eq!((answered, rejected), (40, 24));
    assert_eq!(ledger.spent_and_held(1).await, (40 * most, 0));
    assert_eq!(ledger.records().await.len(), 40);
}

/// A clock that counts its readings.
#[derive(Default)]
struct CountedClock(FixedClock, AtomicUsize);

impl Clock for CountedClock {
    fn now(&self) -> DateTime<Utc> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.monotonic()
    }
}

#[tokio::test]
async fn unlimited_request_reads_clock_once_a_stage() {
    let GatewaySetup { rows, endpoints, settings, .. } =
        GatewaySetup::new(vec![at_price(endpoint("acme/judge", "one", "a"), "0.000000000001")]);
    let LedgerMachine { stores, journals, .. } = LedgerMachine::memory();
    let clock = Arc::new(CountedClock::default());
    let time = TimeSource { clock: clock.clone(), timer: Arc::new(ManualTimer::new(FixedClock::default())) };
    let journal = journals.start(ProcessId::from_uuid(SequentialIds::uuid(1)), JournalBounds::default());
    let limits = Arc::clone(&stores.limits);
    let ledger = JournaledLedger::new(stores.budget, journal, time.clone(), limits, LedgerSettings::default());
    let mut ports = decision_ports(&MemoryStore::new(), rows, endpoints);
    (ports.provider, ports.time) = (Arc::new(CrowdedProvider(Barrier::new(1))), time);
    ports.usage.ledger = Arc::new(ledger);
    let submit = SubmitDecision::new(ports, settings);
    let request_id = RequestId::from_uuid(SequentialIds::uuid(1));
    let origin = RequestOrigin { began: Some((DateTime::UNIX_EPOCH, Duration::ZERO)), ..request_id.into() };
    submit.execute(&key_of(1), origin, nouls(1), Arc::new(NeverDisconnects)).await.unwrap();
    // Its plan, its hold, and the begin and the end of its attempt.
    assert_eq!(clock.1.load(Ordering::SeqCst), 4);
}
