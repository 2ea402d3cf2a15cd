//! A world in which attempts, sleeps and callers end when the test says so.

use super::*;
use crate::budget::RecordVolumeReader;
use crate::decision::SentBytes;
use crate::money::Charge;
use crate::routing::{AttemptReport, Observation};
use crate::testing::MemoryStore;
use crate::usage::AttemptRecord;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// A provider whose attempts end by the test's word, or when the caller leaves. It counts how often it is asked for the
/// length of what it would send. Of an attempt that is given up a last piece of so many bytes goes out nevertheless.
#[derive(Default)]
pub(super) struct Stage(
    Mutex<Vec<(ProviderCall, Option<oneshot::Sender<Outcome>>)>>,
    AtomicUsize,
    pub(super) AtomicU64,
);

/// Goes out when it is dropped.
struct LastPiece(SentBytes, u64);

impl Drop for LastPiece {
    fn drop(&mut self) {
        self.0.add(self.1);
    }
}

/// What an attempt says it sent when its caller left.
pub(super) const SENT_WHEN_LEFT: u64 = 77;

#[async_trait]
impl DecisionProvider for Stage {
    async fn decide(&self, call: ProviderCall) -> Outcome {
        let (end, ended) = oneshot::channel();
        let caller = Arc::clone(&call.caller);
        call.sent.add(u64::try_from(call.provider_input.len_bytes()).unwrap());
        let _last = LastPiece(call.sent.clone(), self.2.load(Ordering::Relaxed));
        self.0.lock().unwrap().push((call, Some(end)));
        tokio::select! {
            biased;
            () = caller.disconnected() => {
                Err(AttemptFailure { sent_bytes: SENT_WHEN_LEFT, ..AttemptFailure::new(ClientDisconnected, "the caller left") })
            }
            outcome = ended => outcome.expect("the test ends each attempt"),
        }
    }

    fn outbound_bytes(&self, _: &Endpoint, provider_input: &ProviderInput) -> u64 {
        self.1.fetch_add(1, Ordering::Relaxed);
        u64::try_from(provider_input.len_bytes()).unwrap()
    }
}

/// A timer whose sleeps end when the test rings.
#[derive(Default)]
pub(super) struct Bell(Mutex<Vec<(Duration, oneshot::Sender<()>)>>);

#[async_trait]
impl Timer for Bell {
    async fn sleep(&self, duration: Duration) {
        let (ring, heard) = oneshot::channel();
        self.0.lock().unwrap().push((duration, ring));
        // A bell that is gone rings no more.
        if heard.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Bell {
    /// The sleeps that are waited for.
    pub(super) fn waiting(&self) -> Vec<Duration> {
        self.0.lock().unwrap().iter().filter(|(_, ring)| !ring.is_closed()).map(|(duration, _)| *duration).collect()
    }
}

struct Leaving(watch::Receiver<bool>);

#[async_trait]
impl ClientConnection for Leaving {
    async fn disconnected(&self) {
        let _ = self.0.clone().wait_for(|gone| *gone).await;
    }
}

/// What a world is made of.
pub(super) struct Plan {
    pub(super) rows: Vec<Model>,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) settings: RouterSettings,
    /// Where money is; without one, a ledger that only takes records.
    pub(super) ledger: Option<Arc<dyn Ledger>>,
    pub(super) volumes: Arc<dyn RecordVolumeReader>,
    pub(super) policies: Arc<dyn GuardrailPolicies>,
    pub(super) metrics: Arc<dyn Metrics>,
    pub(super) broadcaster: Arc<dyn Broadcast>,
    pub(super) workers: Arc<dyn Workers>,
}

pub(super) struct World {
    pub(super) clock: FixedClock,
    pub(super) stage: Arc<Stage>,
    pub(super) bell: Arc<Bell>,
    pub(super) health: Arc<HealthBoard>,
    records: Arc<Mutex<Vec<UsageRecord>>>,
    submit: Arc<SubmitDecision>,
}

impl Plan {
    /// A row for each model, and a deadline of 25 seconds.
    pub(super) fn new(endpoints: Vec<Endpoint>) -> Self {
        let mut rows: Vec<Model> = Vec::new();
        for endpoint in &endpoints {
            if rows.iter().all(|row| row.id != endpoint.model) {
                rows.push(row(endpoint.model.as_str()));
            }
        }
        Self {
            rows,
            endpoints,
            settings: RouterSettings::new(Duration::from_secs(25)),
            ledger: None,
            volumes: Arc::new(MemoryStore::new()),
            policies: Arc::new(NoGuardrails),
            metrics: Arc::new(NoMetrics),
            broadcaster: Arc::new(NoBroadcast),
            workers: Arc::new(InlineExecutor),
        }
    }

    pub(super) fn build(self) -> World {
        let clock = FixedClock::default();
        let (stage, bell) = (Arc::new(Stage::default()), Arc::new(Bell::default()));
        let records = Arc::new(Mutex::new(Vec::new()));
        let mut ledger = granting_ledger();
        let kept = Arc::clone(&records);
        ledger.expect_settle().returning(move |settlement| {
            kept.lock().unwrap().push(settlement.record);
            Ok(())
        });
        let health = Arc::new(HealthBoard::new(self.endpoints.len(), HealthPolicy::default()));
        let endpoints = Arc::new(EndpointDirectory::new(self.endpoints));
        let ports = SubmitDecisionPorts {
            provider: Arc::clone(&stage) as Arc<dyn DecisionProvider>,
            routing: RoutingPorts {
                catalogue: Arc::new(MemoryCatalogue::new(self.rows)),
                endpoints,
                health: Arc::clone(&health),
                random: Arc::new(ScriptedRandomness::default()),
            },
            guardrails: FilterPorts { policies: self.policies, workers: self.workers },
            usage: UsagePorts {
                ledger: self.ledger.unwrap_or(Arc::new(ledger)),
                volumes: self.volumes,
                ids: Arc::new(SequentialIds::default()),
                metrics: self.metrics,
                broadcaster: self.broadcaster,
            },
            time: TimeSource { clock: Arc::new(clock.clone()), timer: Arc::clone(&bell) as Arc<dyn Timer> },
        };
        let submit = Arc::new(SubmitDecision::new(ports, self.settings));
        World { clock, stage, bell, health, records, submit }
    }
}

/// A request under way. Dropped, its task is.
pub(super) struct Asked {
    task: JoinSet<Result<Decision, SubmitDecisionError>>,
    gone: watch::Sender<bool>,
}

impl Asked {
    pub(super) fn leave(&self) {
        self.gone.send_replace(true);
    }

    /// Its end, which has to have come.
    pub(super) async fn end(mut self) -> Result<Decision, SubmitDecisionError> {
        settle().await;
        self.task.try_join_next().expect("it has ended").unwrap()
    }
}

/// Lets every task go on until it waits for the test.
pub(super) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

impl World {
    pub(super) fn record_quota_status(&self) -> RecordQuotaStatus {
        self.submit.record_quota_status()
    }

    /// How often the length of what would be sent was asked for.
    pub(super) fn measured(&self) -> usize {
        self.stage.1.load(Ordering::Relaxed)
    }

    /// Asks in the first workspace.
    pub(super) async fn ask(&self, request: DecisionRequest) -> Asked {
        self.ask_in(900, request).await
    }

    pub(super) async fn ask_in(&self, workspace: u64, request: DecisionRequest) -> Asked {
        let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(workspace));
        self.ask_with(InferenceKey::for_tests(SequentialIds::key(7), workspace), request).await
    }

    pub(super) async fn ask_with(&self, key: InferenceKey, request: DecisionRequest) -> Asked {
        let request_id = RequestId::from_uuid(SequentialIds::uuid(901));
        let (gone, watched) = watch::channel(false);
        let submit = Arc::clone(&self.submit);
        let mut task = JoinSet::new();
        task.spawn(async move { submit.execute(&key, request_id, request, Arc::new(Leaving(watched))).await });
        settle().await;
        Asked { task, gone }
    }

    /// The upstream names of all attempts so far.
    pub(super) fn upstreams(&self) -> Vec<String> {
        let attempts = self.stage.0.lock().unwrap();
        attempts.iter().map(|(call, _)| call.endpoint.upstream_model.clone()).collect()
    }

    pub(super) fn call(&self, attempt: usize) -> ProviderCall {
        self.stage.0.lock().unwrap()[attempt].0.clone()
    }

    /// True where nobody waits for the attempt any more, though it has not ended.
    pub(super) fn is_given_up(&self, attempt: usize) -> bool {
        self.stage.0.lock().unwrap()[attempt].1.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    /// Ends an attempt.
    pub(super) async fn finish(&self, attempt: usize, outcome: Outcome) {
        let end = self.stage.0.lock().unwrap()[attempt].1.take().expect("each attempt ends once");
        assert!(end.send(outcome).is_ok(), "somebody waits for it");
        settle().await;
    }

    /// Ends an attempt by answers to everything that was asked, for so many tokens.
    pub(super) async fn answer(&self, attempt: usize, tokens: u64) {
        let answers = answers_to(&self.call(attempt).provider_input);
        let usage = Some(ReportedUsage { input_tokens: tokens, output_tokens: 0 });
        self.finish(attempt, Ok(ProviderAnswer { answers, usage, sent_bytes: 9 })).await;
    }

    pub(super) async fn fail(&self, attempt: usize, kind: AttemptFailureKind) {
        self.finish(attempt, failure(kind)).await;
    }

    /// Lets so much time go by and ends every sleep.
    pub(super) async fn ring(&self, after: Duration) {
        self.clock.advance(after);
        for (_, ring) in self.bell.0.lock().unwrap().drain(..) {
            let _ = ring.send(());
        }
        settle().await;
    }

    /// Every record, each of which has been computed again.
    pub(super) fn records(&self) -> Vec<UsageRecord> {
        let records = self.records.lock().unwrap().clone();
        for record in &records {
            assert_eq!(record.cost, recomputed(record), "a record explains its cost");
        }
        records
    }

    pub(super) fn record(&self) -> UsageRecord {
        let mut records = self.records();
        assert_eq!(records.len(), 1);
        records.remove(0)
    }

    /// True where a request of the first workspace to that endpoint keeps no back-off now.
    pub(super) fn admits(&self, index: usize) -> bool {
        let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(900));
        self.health.backoff(index, workspace, crate::system::Clock::monotonic(&self.clock)).is_none()
    }

    /// Reports the end of an attempt of the first workspace.
    pub(super) fn report(&self, endpoint: usize, observation: Observation) {
        let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(900));
        let now = crate::system::Clock::monotonic(&self.clock);
        self.health.report(&AttemptReport { endpoint, workspace, began: now, observation }, now);
    }

    /// Begins a back-off of an endpoint for all workspaces.
    pub(super) fn reject_credentials(&self, endpoint: usize) {
        self.report(endpoint, Observation::from(&AttemptFailure::from_status(401, None)));
    }
}

/// The lowest number to each question.
pub(super) fn answers_to(provider_input: &ProviderInput) -> Json {
    let answers = provider_input.questions.typed.iter().flatten().map(|question| {
        let answer = match &question.kind {
            crate::question::QuestionKind::Noul { .. } => r#"{"type":"noul","noul":0}"#.to_owned(),
            crate::question::QuestionKind::Choice { options } => {
                format!(r#"{{"type":"choice","choice":{}}}"#, Json::string(&options[0].name).text())
            }
            crate::question::QuestionKind::Score { .. } => r#"{"type":"score","score":0}"#.to_owned(),
            crate::question::QuestionKind::Box => unreachable!("no test asks for a box here"),
        };
        (question.name.clone(), answer)
    });
    let answers: Vec<(String, String)> = answers.collect();
    Json::object(answers.iter().map(|(name, answer)| (name.as_str(), answer.as_str())))
}

/// The cost of a record, by what it says of its attempts.
fn recomputed(record: &UsageRecord) -> Usd {
    let sum = record.attempts.iter().fold(Charge::ZERO, |sum, attempt| {
        sum.checked_add(attempt.prices.charge(attempt.input_tokens, attempt.output_tokens).unwrap()).unwrap()
    });
    let whole = sum.round_up().unwrap().pico();
    let (index, of) = (i64::from(record.share.index), i64::from(record.share.of));
    assert!(index < of);
    Usd::from_pico(whole / of + i64::from(index < whole % of))
}

pub(super) fn outcomes(attempts: &[AttemptRecord]) -> Vec<&str> {
    attempts.iter().map(|attempt| attempt.outcome.as_str()).collect()
}

/// A request of these questions about `"s"`.
pub(super) fn asking(questions: &str) -> DecisionRequest {
    let draft = DecisionDraft {
        model: Json::parse("\"acme/judge\"").ok(),
        questions: Json::parse(questions).ok(),
        state: Json::parse("\"s\"").ok(),
        ..DecisionDraft::default()
    };
    draft.check().unwrap()
}

/// So many yes-or-no questions: `q0`, `q1`, …
pub(super) fn nouls(count: usize) -> DecisionRequest {
    let questions: Vec<String> =
        (0..count).map(|number| format!(r#""q{number}":{{"type":"noul","instructions":"?"}}"#)).collect();
    asking(&format!("{{{}}}", questions.join(",")))
}

pub(super) fn at_price(endpoint: Endpoint, prompt: &str) -> Endpoint {
    Endpoint { prices: Some(TokenPrices { prompt: price(prompt), completion: price("0") }), ..endpoint }
}

impl Asked {
    /// Waits for its end, whenever that comes.
    pub(super) async fn wait(mut self) -> Result<Decision, SubmitDecisionError> {
        self.task.join_next().await.expect("it was spawned").unwrap()
    }
}

impl World {
    /// Answers every attempt that is waited for, for so many tokens.
    pub(super) fn end_all(&self, tokens: u64) {
        for (call, end) in self.stage.0.lock().unwrap().iter_mut() {
            if let Some(end) = end.take() {
                let usage = Some(ReportedUsage { input_tokens: tokens, output_tokens: 0 });
                let answers = answers_to(&call.provider_input);
                let _ = end.send(Ok(ProviderAnswer { answers, usage, sent_bytes: 9 }));
            }
        }
    }
}
