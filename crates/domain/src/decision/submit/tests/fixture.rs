//! A gateway whose attempts, sleeps and client connections end when the test ends them.

use super::*;
use crate::decision::SentBytes;
use crate::money::Charge;
use crate::routing::{AttemptReport, Observation};
use crate::usage::{AttemptRecord, UsageRepository};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// A provider whose attempts end when the test ends them or the client disconnects. It counts the computations of
/// bounds. A cancelled attempt still sends this many last bytes.
#[derive(Default)]
pub(super) struct ControlledProvider(
    Mutex<Vec<(ProviderCall, Option<oneshot::Sender<Outcome>>)>>,
    AtomicUsize,
    pub(super) AtomicU64,
);

/// Bytes that are sent on drop.
struct BytesOnDrop(SentBytes, u64);

impl Drop for BytesOnDrop {
    fn drop(&mut self) {
        self.0.add(self.1);
    }
}

/// The bytes that an attempt reports when its client disconnects.
pub(super) const SENT_ON_DISCONNECT: u64 = 77;

#[async_trait]
impl DecisionProvider for ControlledProvider {
    async fn decide(&self, call: ProviderCall) -> Outcome {
        let (end, ended) = oneshot::channel();
        let client = Arc::clone(&call.client);
        call.sent.add(u64::try_from(call.provider_input.len_bytes()).unwrap());
        let _last = BytesOnDrop(call.sent.clone(), self.2.load(Ordering::Relaxed));
        self.0.lock().unwrap().push((call, Some(end)));
        tokio::select! {
            biased;
            () = client.disconnected() => {
                Err(AttemptFailure { sent_bytes: SENT_ON_DISCONNECT, ..AttemptFailure::new(ClientDisconnected, "the client left") })
            }
            outcome = ended => outcome.expect("the test ends each attempt"),
        }
    }

    fn outbound_bytes(&self, _: &Endpoint, provider_input: &ProviderInput) -> u64 {
        self.1.fetch_add(1, Ordering::Relaxed);
        u64::try_from(provider_input.len_bytes()).unwrap()
    }
}

/// A timer whose sleeps end when the test lets time elapse.
#[derive(Default)]
pub(super) struct ControlledTimer(Mutex<Vec<(Duration, oneshot::Sender<()>)>>);

#[async_trait]
impl Timer for ControlledTimer {
    async fn sleep(&self, duration: Duration) {
        let (end, ended) = oneshot::channel();
        self.0.lock().unwrap().push((duration, end));
        // Sleeps of a dropped timer never end.
        if ended.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl ControlledTimer {
    /// The durations of pending sleeps.
    pub(super) fn waiting(&self) -> Vec<Duration> {
        self.0.lock().unwrap().iter().filter(|(_, end)| !end.is_closed()).map(|(duration, _)| *duration).collect()
    }
}

struct WatchedClient(watch::Receiver<bool>);

#[async_trait]
impl ClientConnection for WatchedClient {
    async fn disconnected(&self) {
        let _ = self.0.clone().wait_for(|is_disconnected| *is_disconnected).await;
    }
}

/// The parts of a test gateway.
pub(super) struct GatewaySetup {
    pub(super) rows: Vec<Model>,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) settings: DecisionSettings,
    /// The ledger; `None` is one that grants every hold and collects records.
    pub(super) ledger: Option<Arc<dyn Ledger>>,
    pub(super) stored: Arc<dyn UsageRepository>,
    pub(super) policies: Arc<dyn GuardrailPolicies>,
    pub(super) metrics: Arc<dyn Metrics>,
    pub(super) broadcaster: Arc<dyn Broadcast>,
    pub(super) workers: Arc<dyn Workers>,
}

pub(super) struct TestGateway {
    pub(super) clock: FixedClock,
    pub(super) provider: Arc<ControlledProvider>,
    pub(super) timer: Arc<ControlledTimer>,
    pub(super) health: Arc<HealthBoard>,
    /// The begin of the deadline of the next requests; `None` means now.
    pub(super) began: Option<Duration>,
    records: Arc<Mutex<Vec<UsageRecord>>>,
    submit: Arc<SubmitDecision>,
}

impl GatewaySetup {
    /// Creates a row for each model, and a deadline of 25 seconds.
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
            settings: DecisionSettings::new(Duration::from_secs(25)),
            ledger: None,
            stored: MemoryStore::new().usage(),
            policies: Arc::new(NoGuardrails),
            metrics: Arc::new(NoMetrics),
            broadcaster: Arc::new(NoBroadcast),
            workers: Arc::new(InlineExecutor),
        }
    }

    pub(super) fn build(self) -> TestGateway {
        let clock = FixedClock::default();
        let (provider, timer) = (Arc::new(ControlledProvider::default()), Arc::new(ControlledTimer::default()));
        let records = Arc::new(Mutex::new(Vec::new()));
        let mut ledger = granting_ledger();
        let kept = Arc::clone(&records);
        ledger.expect_settle().returning(move |settlement| {
            kept.lock().unwrap().push(settlement.record.clone());
            Ok(())
        });
        let mut ports = decision_ports(&MemoryStore::new(), self.rows, self.endpoints);
        let health = Arc::clone(&ports.routing.health);
        ports.provider = Arc::clone(&provider) as Arc<dyn DecisionProvider>;
        ports.guardrails = FilterPorts { policies: self.policies, workers: self.workers };
        ports.usage.ledger = self.ledger.unwrap_or(Arc::new(ledger));
        ports.usage.records = self.stored;
        ports.usage.metrics = self.metrics;
        ports.usage.broadcaster = self.broadcaster;
        ports.time = TimeSource { clock: Arc::new(clock.clone()), timer: Arc::clone(&timer) as Arc<dyn Timer> };
        let submit = Arc::new(SubmitDecision::new(ports, self.settings));
        TestGateway { clock, provider, timer, health, began: None, records, submit }
    }
}

/// A request in flight. Dropping it aborts its task.
pub(super) struct PendingRequest {
    task: JoinSet<Result<Decision, SubmitDecisionError>>,
    disconnected: watch::Sender<bool>,
}

impl PendingRequest {
    pub(super) fn disconnect(&self) {
        self.disconnected.send_replace(true);
    }

    /// Returns its result. Panics if it has not ended.
    pub(super) async fn end(mut self) -> Result<Decision, SubmitDecisionError> {
        run_until_idle().await;
        self.task.try_join_next().expect("it has ended").unwrap()
    }
}

/// Runs every task until it waits for the test: a paused clock moves only when no task can run.
pub(super) async fn run_until_idle() {
    const STEP: Duration = Duration::from_millis(1);
    let began = tokio::time::Instant::now();
    tokio::time::sleep(STEP).await;
    assert_eq!(began.elapsed(), STEP, "the clock of this test is paused");
}

/// The number of the first workspace.
pub(super) const FIRST_WORKSPACE: u64 = 900;

/// Returns the key of a workspace.
pub(super) fn key_of(workspace: u64) -> InferenceKey {
    InferenceKey::for_tests(SequentialIds::key(7), WorkspaceId::from_uuid(SequentialIds::uuid(workspace)))
}

impl TestGateway {
    pub(super) fn record_quota_status(&self) -> RecordQuotaStatus {
        self.submit.record_quota_status()
    }

    /// The number of computed bounds.
    pub(super) fn bound_computations(&self) -> usize {
        self.provider.1.load(Ordering::Relaxed)
    }

    /// Sends a request of the first workspace.
    pub(super) async fn send(&self, request: DecisionRequest) -> PendingRequest {
        self.send_in(FIRST_WORKSPACE, request).await
    }

    pub(super) async fn send_in(&self, workspace: u64, request: DecisionRequest) -> PendingRequest {
        self.send_with(key_of(workspace), request).await
    }

    pub(super) async fn send_with(&self, key: InferenceKey, request: DecisionRequest) -> PendingRequest {
        let pending = self.start(key, request);
        run_until_idle().await;
        pending
    }

    /// Starts a request, and does not wait for its first attempt.
    pub(super) fn start(&self, key: InferenceKey, request: DecisionRequest) -> PendingRequest {
        let origin = RequestOrigin {
            request_id: RequestId::from_uuid(SequentialIds::uuid(901)),
            client_address: Some(IpAddr::from([192, 0, 2, 7])),
            began: self.began.map(|began| (self.clock.now(), began)),
        };
        let (disconnected, watched) = watch::channel(false);
        let submit = Arc::clone(&self.submit);
        let mut task = JoinSet::new();
        task.spawn(async move { submit.execute(&key, origin, request, Arc::new(WatchedClient(watched))).await });
        PendingRequest { task, disconnected }
    }

    /// The upstream names of all attempts so far.
    pub(super) fn upstreams(&self) -> Vec<String> {
        let attempts = self.provider.0.lock().unwrap();
        attempts.iter().map(|(call, _)| call.endpoint.upstream_model.to_string()).collect()
    }

    pub(super) fn call(&self, attempt: usize) -> ProviderCall {
        self.provider.0.lock().unwrap()[attempt].0.clone()
    }

    /// Returns true if the attempt was dropped before its end.
    pub(super) fn is_cancelled(&self, attempt: usize) -> bool {
        self.provider.0.lock().unwrap()[attempt].1.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    /// Ends an attempt.
    pub(super) async fn finish(&self, attempt: usize, outcome: Outcome) {
        let end = self.provider.0.lock().unwrap()[attempt].1.take().expect("each attempt ends once");
        assert!(end.send(outcome).is_ok(), "the attempt is still running");
        run_until_idle().await;
    }

    /// Ends an attempt with answers to all questions and a usage of `tokens`.
    pub(super) async fn answer(&self, attempt: usize, tokens: u64) {
        let input = self.call(attempt).provider_input;
        let usage = Some(ReportedUsage { input_tokens: tokens, output_tokens: 0 });
        let sent_bytes = u64::try_from(input.len_bytes()).unwrap();
        self.finish(attempt, Ok(ProviderAnswer { answers: answers_to(&input), usage, sent_bytes })).await;
    }

    pub(super) async fn fail(&self, attempt: usize, kind: AttemptFailureKind) {
        self.finish(attempt, failure(kind)).await;
    }

    /// Advances the clock and ends every sleep.
    pub(super) async fn elapse(&self, after: Duration) {
        self.clock.advance(after);
        for (_, end) in self.timer.0.lock().unwrap().drain(..) {
            let _ = end.send(());
        }
        run_until_idle().await;
    }

    /// Returns every record, after checking its cost.
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

    /// Returns true if the first workspace has no back-off at this endpoint.
    pub(super) fn has_no_backoff(&self, index: usize) -> bool {
        let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(FIRST_WORKSPACE));
        self.health.backoff(index, workspace, crate::system::Clock::monotonic(&self.clock)).is_none()
    }

    /// Reports the end of an attempt of the first workspace.
    pub(super) fn report(&self, endpoint: usize, observation: Observation) {
        let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(FIRST_WORKSPACE));
        let now = crate::system::Clock::monotonic(&self.clock);
        self.health.report(&AttemptReport { endpoint, workspace, began: now, observation }, now);
    }

    /// Begins a back-off of an endpoint for all workspaces.
    pub(super) fn reject_credentials(&self, endpoint: usize) {
        self.report(endpoint, Observation::from(&AttemptFailure::from_status(401, None)));
    }
}

/// Answers each question with the lowest value.
pub(super) fn answers_to(provider_input: &ProviderInput) -> Json {
    let answers = provider_input.questions.typed.as_deref().into_iter().flatten().map(|question| {
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

/// Computes the cost of a record from its attempts.
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

/// A request with these questions about the state `"s"`.
pub(super) fn request_with(questions: &str) -> DecisionRequest {
    let draft = DecisionDraft {
        model: Json::parse("\"acme/judge\"").ok(),
        questions: Json::parse(questions).ok(),
        state: Json::parse("\"s\"").ok(),
        ..DecisionDraft::default()
    };
    draft.check().unwrap()
}

/// A request with `count` yes-or-no questions: `q0`, `q1`, …
pub(super) fn nouls(count: usize) -> DecisionRequest {
    let questions: Vec<String> =
        (0..count).map(|number| format!(r#""q{number}":{{"type":"noul","instructions":"?"}}"#)).collect();
    request_with(&format!("{{{}}}", questions.join(",")))
}

pub(super) fn at_price(endpoint: Endpoint, prompt: &str) -> Endpoint {
    Endpoint { prices: Some(TokenPrices { prompt: price(prompt), completion: price("0") }), ..endpoint }
}

impl PendingRequest {
    /// Waits for its result.
    pub(super) async fn wait(mut self) -> Result<Decision, SubmitDecisionError> {
        self.task.join_next().await.expect("it was spawned").unwrap()
    }
}

impl TestGateway {
    /// Answers every running attempt, with a usage of `tokens`.
    pub(super) fn answer_all(&self, tokens: u64) {
        for (call, end) in self.provider.0.lock().unwrap().iter_mut() {
            if let Some(end) = end.take() {
                let usage = Some(ReportedUsage { input_tokens: tokens, output_tokens: 0 });
                let answers = answers_to(&call.provider_input);
                let sent_bytes = u64::try_from(call.provider_input.len_bytes()).unwrap();
                let _ = end.send(Ok(ProviderAnswer { answers, usage, sent_bytes }));
            }
        }
    }
}
