//! Many at once on one limit.

use super::books::{Books, bound, key, plan, usd};
use super::stage::*;
use super::*;
use tokio::task::JoinSet;

/// Answers after it has let others have their turns, for the whole bound of each request.
struct Greedy;

#[async_trait]
impl DecisionProvider for Greedy {
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

/// 64 callers at once with money for 40 of them: exactly 40 are answered, and at no time is more spent and reserved
/// than there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_gets_more_than_there_is_and_nobody_less() {
    let most = bound(&nouls(1));
    let limit = 40 * most + most / 2;
    let books = Books::new(None, &[Some(limit)]).await;
    let Plan { rows, endpoints, settings, .. } = plan(&books);
    let clock = FixedClock::default();
    let health = Arc::new(HealthBoard::new(endpoints.len(), HealthPolicy::default()));
    let endpoints = Arc::new(EndpointDirectory::new(endpoints));
    let ports = SubmitDecisionPorts {
        provider: Arc::new(Greedy),
        routing: RoutingPorts {
            catalogue: Arc::new(MemoryCatalogue::new(rows)),
            endpoints,
            health,
            random: Arc::new(ScriptedRandomness::default()),
        },
        guardrails: FilterPorts { policies: Arc::new(NoGuardrails), workers: Arc::new(InlineExecutor) },
        usage: UsagePorts {
            ledger: Arc::clone(&books) as Arc<dyn Ledger>,
            volumes: Arc::new(books.store.clone()),
            ids: Arc::new(SequentialIds::default()),
            metrics: Arc::new(NoMetrics),
            broadcaster: Arc::new(NoBroadcast),
        },
        time: TimeSource {
            clock: Arc::new(clock),
            // Its sleeps take no time, so that each waits for others by its turns alone.
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
    let (mut answered, mut refused) = (0, 0);
    while let Some(ended) = tasks.join_next().await {
        let (spent, reserved) = books.standing(1).await;
        assert!(spent + reserved <= limit, "{spent} and {reserved} of {limit}");
        match ended.unwrap() {
            Ok(decision) => {
                assert_eq!(decision.cost, usd(most));
                answered += 1;
            }
            Err(SubmitDecisionError::LimitExceeded(overspent)) => {
                let used = overspent.spent.pico() + overspent.reserved.pico();
                assert!(used + most > limit, "it would have fitted: {overspent:?}");
                refused += 1;
            }
            Err(other) => panic!("neither answered nor refused: {other}"),
        }
    }
    assert_eq!((answered, refused), (40, 24));
    assert_eq!(books.standing(1).await, (40 * most, 0));
    assert_eq!(books.records().await.len(), 40);
}
