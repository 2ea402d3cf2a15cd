//! Concurrent requests under one limit.

use super::fixture::*;
use super::recording_ledger::{RecordingLedger, bound, key, setup, usd};
use super::*;
use tokio::task::JoinSet;

/// A provider that yields to other tasks before it answers, and uses the whole bound of each request.
struct YieldingProvider;

#[async_trait]
impl DecisionProvider for YieldingProvider {
    async fn decide(&self, call: ProviderCall) -> Outcome {
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        let tokens = u64::try_from(call.provider_input.len_bytes()).unwrap() + call.endpoint.prompt_overhead_tokens;
        let usage = Some(ReportedUsage { input_tokens: tokens, output_tokens: 0 });
        Ok(ProviderAnswer { answers: answers_to(&call.provider_input), usage, sent_bytes: 9 })
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
    let clock = FixedClock::default();
    let health = Arc::new(HealthBoard::new(endpoints.len(), HealthPolicy::default()));
    let endpoints = Arc::new(EndpointDirectory::new(endpoints));
    let ports = SubmitDecisionPorts {
        provider: Arc::new(YieldingProvider),
        routing: RoutingPorts {
            catalogue: Arc::new(MemoryCatalogue::new(rows)),
            endpoints,
            health,
            random: Arc::new(ScriptedRandomness::default()),
        },
        guardrails: FilterPorts { policies: Arc::new(NoGuardrails), workers: Arc::new(InlineExecutor) },
        usage: UsagePorts {
            ledger: Arc::clone(&ledger) as Arc<dyn Ledger>,
            volumes: Arc::new(ledger.store.clone()),
            ids: Arc::new(SequentialIds::default()),
            metrics: Arc::new(NoMetrics),
            broadcaster: Arc::new(NoBroadcast),
        },
        time: TimeSource {
            clock: Arc::new(clock),
            // Sleeps end at once, so requests wait only by yielding.
            timer: Arc::new(ManualTimer::new(FixedClock::default())),
        },
    };
    let submit = Arc::new(SubmitDecision::new(ports, settings));
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let submit = Arc::clone(&submit);
        tasks.spawn(async move {
            let request_id = RequestId::from_uuid(SequentialIds::uuid(number));
            submit.execute(&key(1), request_id, nouls(1), Arc::new(NeverDisconnects)).await
        });
    }
    let (mut answered, mut rejected) = (0, 0);
    while let Some(ended) = tasks.join_next().await {
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
