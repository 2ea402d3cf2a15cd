use super::*;
use crate::budget::{Hold, Ledger, MockLedger, Payer};
use crate::decision::{
    Broadcast, DecisionDraft, DecisionProvider, Metrics, NeverDisconnects, NoBroadcast, NoMetrics, ProviderAnswer,
    ProviderCall, SingleFlightMode,
};
use crate::error::{ErrorKind, StoreError};
use crate::guardrail::{GuardrailPolicies, NoGuardrails, Policy};
use crate::ids::{DecisionId, RequestId, WorkspaceId};
use crate::json::Json;
use crate::model::{Model, Pricing};
use crate::money::{Price, Usd};
use crate::pricing::{ReportedUsage, TokenPrices};
use crate::question::{ProviderInput, Questions};
use crate::routing::{AttemptFailure, AttemptFailureKind, Endpoint, HealthBoard, HealthPolicy, Wire};
use crate::system::{Clock, InlineExecutor, TimeSource, Timer, Workers};
use crate::testing::{FixedClock, ManualTimer, MemoryStore, SequentialIds, decision_ports};
use crate::usage::{AttemptOutcome, MockUsageRepository, RequestLabels, UsageOutcome, UsageRecord, UsageSource};
use async_trait::async_trait;
use chrono::DateTime;
use rstest::rstest;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

mod cascade_limits;
mod cascades;
mod charges;
mod cheaper_plans;
mod concurrency;
mod failed_charges;
mod filtering;
mod fixture;
mod guardrails;
mod health;
mod hedging;
mod hold_increases;
mod holds;
mod models;
mod recording_ledger;
mod records;
mod single_flight;
mod single_flight_holds;
mod sub_requests;
mod unpriced;

use AttemptFailureKind::{
    ClientDisconnected, ConnectFailed, InvalidResponse, Overloaded, ProviderAuthFailed, RejectedByProvider, TimedOut,
};

type Outcome = Result<ProviderAnswer, AttemptFailure>;

/// A provider with scripted outcomes. Every attempt takes the same time.
struct ScriptedProvider {
    outcomes: Mutex<VecDeque<Outcome>>,
    calls: Mutex<Vec<ProviderCall>>,
    clock: FixedClock,
    takes: Duration,
}

#[async_trait]
impl DecisionProvider for ScriptedProvider {
    async fn decide(&self, call: ProviderCall) -> Outcome {
        self.calls.lock().unwrap().push(call);
        self.clock.advance(self.takes);
        self.outcomes.lock().unwrap().pop_front().expect("an attempt more than expected")
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as the port returns it")]
fn answer(usage: Option<(u64, u64)>) -> Outcome {
    Ok(ProviderAnswer {
        answers: Json::parse(r#"{"q":{"type":"noul","noul":0.5}}"#).unwrap(),
        usage: usage.map(|(input_tokens, output_tokens)| ReportedUsage { input_tokens, output_tokens }),
        sent_bytes: 400,
    })
}

fn failure(kind: AttemptFailureKind) -> Outcome {
    Err(AttemptFailure::new(kind, "it failed"))
}

fn price(text: &str) -> Price {
    text.parse().unwrap()
}

fn row(id: &str) -> Model {
    Model::minimal(id.parse().unwrap(), Pricing::per_token(price("0.000000042"), price("0")))
}

fn endpoint(model: &str, provider: &str, upstream: &str) -> Endpoint {
    let wire = if provider == "sandbox" { Wire::Sandbox } else { Wire::SystemOne };
    Endpoint {
        provider_name: provider.to_uppercase(),
        attempt_timeout: Duration::from_secs(10),
        prompt_overhead_tokens: 20,
        ..Endpoint::new(model.parse().unwrap(), provider.parse().unwrap(), wire, upstream)
    }
}

fn request(model: &str) -> DecisionRequest {
    let draft = DecisionDraft {
        model: Json::parse(&format!("\"{model}\"")).ok(),
        questions: Json::parse(r#"{"q":{"type":"noul","instructions":"?"}}"#).ok(),
        state: Json::parse("\"s\"").ok(),
        trace: Json::parse(r#"{"t":1}"#).ok(),
        user: Json::parse("\"u\"").ok(),
        session_id: Json::parse("\"s\"").ok(),
        ..DecisionDraft::default()
    };
    draft.check().unwrap()
}

struct Setup {
    rows: Vec<Model>,
    endpoints: Vec<Endpoint>,
    outcomes: Vec<Outcome>,
    request: DecisionRequest,
    takes: Duration,
    store_fails: bool,
}

struct TestRun {
    result: Result<Decision, SubmitDecisionError>,
    calls: Vec<ProviderCall>,
    records: Vec<UsageRecord>,
}

impl Setup {
    /// A model at three endpoints: two of `one`, one of `two`.
    fn new(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        let endpoints = [("one", "a"), ("one", "b"), ("two", "c")];
        Self {
            rows: vec![row("acme/judge")],
            endpoints: endpoints.map(|(provider, upstream)| endpoint("acme/judge", provider, upstream)).into(),
            outcomes: outcomes.into_iter().collect(),
            request: request("acme/judge"),
            takes: Duration::from_secs(1),
            store_fails: false,
        }
    }

    async fn run(self) -> TestRun {
        let clock = FixedClock::default();
        let records = Arc::new(Mutex::new(Vec::new()));
        let mut ledger = granting_ledger();
        let (kept, fails) = (Arc::clone(&records), self.store_fails);
        ledger.expect_settle().returning(move |settlement| {
            kept.lock().unwrap().push(settlement.record.clone());
            if fails { Err(StoreError::unavailable("away")) } else { Ok(()) }
        });
        let expected_calls = self.outcomes.len();
        let provider = Arc::new(ScriptedProvider {
            outcomes: Mutex::new(self.outcomes.into()),
            calls: Mutex::default(),
            clock: clock.clone(),
            takes: self.takes,
        });
        let mut ports = decision_ports(&MemoryStore::new(), self.rows, self.endpoints);
        ports.provider = Arc::clone(&provider) as Arc<dyn DecisionProvider>;
        ports.usage.ledger = Arc::new(ledger);
        ports.usage.records = Arc::new(MockUsageRepository::new());
        ports.time = TimeSource { clock: Arc::new(clock.clone()), timer: Arc::new(ManualTimer::new(clock)) };
        let submit = SubmitDecision::new(ports, DecisionSettings::new(Duration::from_secs(25)));
        let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(900));
        let key = InferenceKey::for_tests(SequentialIds::key(7), workspace);
        let request_id = RequestId::from_uuid(SequentialIds::uuid(901));
        let result = submit.execute(&key, request_id.into(), self.request, Arc::new(NeverDisconnects)).await;
        let calls = provider.calls.lock().unwrap().clone();
        assert_eq!(calls.len(), expected_calls, "the number of attempts");
        let records = records.lock().unwrap().clone();
        TestRun { result, calls, records }
    }
}

/// A ledger that grants every hold and increase, and accepts releases.
fn granting_ledger() -> MockLedger {
    let mut ledger = MockLedger::new();
    ledger.expect_reserve().returning(|wanted| {
        let at = crate::system::Clock::now(&FixedClock::default());
        Ok(Ok(Hold { id: wanted.id, at, payer: wanted.payer, amount: wanted.amount }))
    });
    ledger.expect_increase().returning(|_, _, _| Ok(Ok(())));
    ledger.expect_release().returning(|_| Ok(()));
    ledger
}

impl TestRun {
    fn upstreams(&self) -> Vec<&str> {
        self.calls.iter().map(|call| &*call.endpoint.upstream_model).collect()
    }

    fn kind(&self) -> ErrorKind {
        self.result.as_ref().unwrap_err().kind()
    }
}

#[tokio::test]
async fn first_answer_is_charged_exactly_and_recorded() {
    let run = Setup::new([answer(Some((429, 7)))]).run().await;
    let decision = run.result.as_ref().unwrap();
    assert_eq!(decision.cost.to_string(), "0.000018018");
    assert_eq!((decision.provider.as_str(), decision.attempts.len()), ("ONE", 1));
    let [record] = &run.records[..] else { panic!("one record, not {}", run.records.len()) };
    assert_eq!((&record.id, record.cost, record.outcome), (&decision.id, decision.cost, UsageOutcome::Completed));
    assert_eq!((record.input_tokens, record.output_tokens, record.usage_source), (429, 7, UsageSource::Reported));
    assert_eq!(record.prices.prompt, price("0.000000042"));
    assert_eq!((record.session_id.as_deref(), record.user.as_deref()), (Some("s"), Some("u")));
    assert_eq!(record.trace.as_ref().map(Json::text), Some(r#"{"t":1}"#));
    assert_eq!(record.latency, Duration::from_secs(1));
}

#[rstest]
#[case(InvalidResponse)]
#[case(ProviderAuthFailed)]
#[case(Overloaded)]
#[case(TimedOut)]
#[tokio::test]
async fn failed_attempt_is_followed_by_next_candidate(#[case] kind: AttemptFailureKind) {
    let run = Setup::new([failure(kind), failure(kind), answer(Some((1, 0)))]).run().await;
    assert_eq!(run.upstreams(), ["a", "b", "c"]);
    assert_eq!(run.result.unwrap().attempts.len(), 3);
    let outcomes: Vec<&str> = run.records[0].attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
    assert_eq!(outcomes, [kind.as_str(), kind.as_str(), "completed"]);
}

#[tokio::test]
async fn provider_that_rejected_is_not_tried_again() {
    let run = Setup::new([failure(RejectedByProvider), answer(Some((1, 0)))]).run().await;
    assert_eq!(run.upstreams(), ["a", "c"]);
    let run = Setup::new([failure(RejectedByProvider), failure(RejectedByProvider)]).run().await;
    assert_eq!(run.kind(), ErrorKind::InvalidRequest);
}

#[tokio::test]
async fn no_fallbacks_tries_only_first_candidate() {
    let mut setup = Setup::new([failure(InvalidResponse)]);
    setup.request.preferences.allow_fallbacks = false;
    let run = setup.run().await;
    assert_eq!((run.kind(), run.upstreams()), (ErrorKind::ProviderFailure, vec!["a"]));
    assert_eq!(run.records[0].outcome, UsageOutcome::Failed);
    assert_eq!(run.records[0].cost, Usd::ZERO);
}

#[tokio::test]
async fn request_is_overloaded_with_shortest_wait_when_all_are() {
    let wait = |seconds| Err(AttemptFailure::from_status(529, Some(Duration::from_secs(seconds))));
    let run = Setup::new([wait(9), wait(3), failure(Overloaded)]).run().await;
    assert_eq!(run.kind(), ErrorKind::ProviderOverloaded);
    let Err(SubmitDecisionError::Attempts(failed)) = run.result else { panic!("attempts have failed") };
    assert_eq!(failed.retry_after, Some(Duration::from_secs(3)));
    assert_eq!((failed.provider_name.as_str(), failed.attempts[0].upstream_status), ("TWO", Some(529)));
    assert_eq!(failed.id, run.records[0].id, "its record is found by the id that the caller gets");
}

#[tokio::test]
async fn attempt_timeout_is_limited_by_remaining_deadline() {
    let mut setup = Setup::new([failure(TimedOut), failure(TimedOut), failure(TimedOut)]);
    setup.takes = Duration::from_secs(10);
    let run = setup.run().await;
    let timeouts: Vec<u64> = run.calls.iter().map(|call| call.timeout.as_secs()).collect();
    assert_eq!(timeouts, [10, 10, 5]);
    assert_eq!(run.kind(), ErrorKind::TimedOut);

    let mut setup = Setup::new([failure(InvalidResponse)]);
    setup.takes = Duration::from_secs(25);
    assert_eq!(setup.run().await.upstreams(), ["a"], "nothing is tried after the deadline");
}

#[tokio::test]
async fn no_further_attempt_after_client_disconnected() {
    let run = Setup::new([failure(InvalidResponse), failure(ClientDisconnected)]).run().await;
    assert_eq!(run.kind(), ErrorKind::ClientDisconnected);
    assert_eq!(run.records[0].outcome, UsageOutcome::Cancelled);
    assert_eq!(run.records[0].attempts.len(), 2);
}

#[tokio::test]
async fn answer_is_not_returned_when_record_is_not_stored() {
    for outcome in [answer(Some((1, 0))), failure(ClientDisconnected)] {
        let run = Setup { store_fails: true, ..Setup::new([outcome]) }.run().await;
        assert_eq!((run.kind(), run.records.len()), (ErrorKind::Unavailable, 1));
    }
}

#[tokio::test]
async fn answer_without_usage_is_charged_its_bound() {
    let run = Setup::new([answer(None)]).run().await;
    let decision = run.result.unwrap();
    assert_eq!((decision.input_tokens, decision.usage_source), (420, UsageSource::UpperBound));
    assert_eq!(decision.cost.to_string(), "0.00001764");
}

#[tokio::test]
async fn attempt_that_never_connected_is_not_charged() {
    let run = Setup::new([failure(InvalidResponse), failure(TimedOut), answer(Some((10, 0)))]).run().await;
    assert_eq!(run.result.unwrap().cost.to_string(), "0.00000042", "ten tokens of the one that answered");
    let [first, second, _] = &run.records[0].attempts[..] else { panic!("three attempts") };
    for attempt in [first, second] {
        assert_eq!((attempt.input_tokens, attempt.usage_source), (0, UsageSource::None), "nothing was sent");
    }
    // A sent byte may be billed, with the overhead of the provider.
    let sent = AttemptFailure { sent_bytes: 1, ..failure(InvalidResponse).unwrap_err() };
    let run = Setup::new([Err(sent), answer(Some((10, 0)))]).run().await;
    assert_eq!(run.records[0].attempts[0].input_tokens, 21);
}

#[tokio::test]
async fn usage_above_range_of_money_is_ignored() {
    let absurd = AttemptFailure {
        usage: answer(Some((0, u64::MAX))).unwrap().usage,
        sent_bytes: 5,
        ..failure(InvalidResponse).unwrap_err()
    };
    let mut setup = Setup::new([answer(Some((u64::MAX, 0))), Err(absurd), answer(Some((1, 0)))]);
    setup.rows[0].pricing.completion = price("0.00000001");
    let run = setup.run().await;
    assert_eq!(run.result.unwrap().cost.to_string(), "0.000018732", "446 tokens: two bounds and an answer");
    let tokens: Vec<u64> = run.records[0].attempts.iter().map(|attempt| attempt.input_tokens).collect();
    assert_eq!(tokens, [420, 25, 1]);
    assert_eq!(run.records[0].attempts[0].outcome, AttemptOutcome::InvalidResponse);
}

#[tokio::test]
async fn usage_above_storable_tokens_is_ignored_even_when_free() {
    let run = Setup::new([answer(Some((0, u64::MAX))), answer(Some((1, 1 << 48)))]).run().await;
    assert_eq!(run.result.unwrap().output_tokens, 1 << 48);
    let outcomes: Vec<&str> = run.records[0].attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
    assert_eq!(outcomes, ["invalid_response", "completed"]);
}

#[tokio::test]
async fn charge_out_of_range_fails_request() {
    // Each one can be charged, but not both together.
    let billed = || {
        let usage = answer(Some((200_000_000_000_000, 0))).unwrap().usage;
        Err(AttemptFailure { usage, ..failure(InvalidResponse).unwrap_err() })
    };
    let run = Setup::new([billed(), billed(), answer(Some((1, 0)))]).run().await;
    assert!(matches!(run.result, Err(SubmitDecisionError::ChargeOutOfRange)));
}

#[tokio::test]
async fn answer_to_other_questions_is_invalid_response() {
    let wrong = ProviderAnswer { answers: Json::parse(r#"{"x":{}}"#).unwrap(), usage: None, sent_bytes: 1 };
    let run = Setup::new([Ok(wrong), answer(Some((1, 0)))]).run().await;
    assert_eq!(run.records[0].attempts[0].outcome, AttemptOutcome::InvalidResponse);
    assert_eq!(run.result.unwrap().attempts.len(), 2);
}

#[tokio::test]
async fn simulated_failure_has_no_fallback() {
    let run = Setup::new([failure(AttemptFailureKind::Simulated(ErrorKind::RateLimited))]).run().await;
    assert_eq!(run.kind(), ErrorKind::RateLimited);
}

#[tokio::test]
async fn unusable_model_is_rejected_with_reason() {
    let run = Setup { request: request("acme/jugde"), ..Setup::new([]) }.run().await;
    let Err(SubmitDecisionError::UnknownModel { nearest }) = &run.result else { panic!("it is unknown") };
    assert_eq!(nearest, &["acme/judge"]);
    assert!(run.records.is_empty(), "nothing was used");

    let mut setup = Setup::new([]);
    setup.rows[0].architecture.output_modalities = vec!["text".to_owned()];
    assert!(matches!(setup.run().await.result, Err(SubmitDecisionError::NotADecisionModel(_))));

    let mut setup = Setup::new([]);
    setup.rows[0].pricing.completion = price("-1");
    assert!(matches!(setup.run().await.result, Err(SubmitDecisionError::VariablePrice(_))));

    let run = Setup { endpoints: Vec::new(), ..Setup::new([]) }.run().await;
    let Err(SubmitDecisionError::NoEndpoint { funnel, nearest, .. }) = run.result else {
        panic!("there is no endpoint")
    };
    assert_eq!((funnel, nearest), (vec![("model", 0), ("price", 0)], Vec::new()));
    let mut setup = Setup::new([]);
    setup.rows.push(row("acme/unlike"));
    setup.request = request("acme/unlike");
    let Err(SubmitDecisionError::NoEndpoint { nearest, .. }) = setup.run().await.result else { panic!("no endpoint") };
    assert_eq!(nearest, ["acme/judge"], "only models that can be called, at any distance");
    let mut setup = Setup::new([]);
    setup.rows.push(row("acme/jugde-2"));
    setup.request = request("acme/jugde");
    let Err(SubmitDecisionError::UnknownModel { nearest }) = setup.run().await.result else { panic!("unknown") };
    assert_eq!(nearest, ["acme/judge"], "a model without an endpoint is of no help");
}

#[tokio::test]
async fn unknown_required_provider_is_reported_with_similar_slugs() {
    use crate::routing::RoutingPreferences;

    let excluded = async |preferences: RoutingPreferences| {
        let mut setup = Setup::new([]);
        setup.request.preferences = preferences;
        match setup.run().await.result {
            Err(SubmitDecisionError::ExcludedByPreferences { unknown, .. }) => unknown,
            _ => panic!("no endpoint is left"),
        }
    };
    let list = |slug: &str| vec![slug.to_owned()];
    let only = |slug: &str| RoutingPreferences { only: Some(list(slug)), ..RoutingPreferences::default() };
    let unknown = excluded(only("oen")).await.unwrap();
    assert_eq!(unknown.to_string(), "\"oen\" is not a configured provider", "not similar enough");
    let unknown = excluded(only("twoo")).await.unwrap();
    assert_eq!(unknown.nearest, ["two"]);
    let ordered = RoutingPreferences { order: list("onee"), allow_fallbacks: false, ..RoutingPreferences::default() };
    assert_eq!(excluded(ordered).await.unwrap().nearest, ["one"]);
    let known = RoutingPreferences { ignore: list("one"), ..only("one") };
    assert_eq!(excluded(known).await, None, "the provider exists");
}

#[tokio::test]
async fn opaque_questions_are_sent_verbatim() {
    let answers = Json::parse(r#"{"anything":[1]}"#).unwrap();
    let mut setup = Setup::new([Ok(ProviderAnswer { answers: answers.clone(), usage: None, sent_bytes: 1 })]);
    let questions = Questions { json: Json::parse("\"on fire?\"").unwrap(), typed: None };
    setup.request.provider_input = Arc::new(ProviderInput::new(questions, None));
    let run = setup.run().await;
    assert_eq!(run.calls[0].provider_input.questions.json.text(), "\"on fire?\"");
    assert_eq!(run.result.unwrap().answers.json(), &answers);
}

#[tokio::test]
async fn sandbox_endpoint_serves_only_its_own_name() {
    let prices = TokenPrices { prompt: price("0.00000004"), completion: price("0") };
    let sandbox = Endpoint { prices: Some(prices), ..endpoint("sandbox/decider", "sandbox", "decider") };
    let setup = Setup {
        rows: Vec::new(),
        endpoints: vec![sandbox.clone()],
        request: request("Sandbox/Decider"),
        ..Setup::new([answer(Some((10, 0)))])
    };
    assert_eq!(setup.run().await.result.unwrap().model.as_str(), "sandbox/decider", "also without a row");

    let mut disguised = row("acme/judge");
    disguised.canonical_slug = "sandbox/decider".parse().unwrap();
    let run = Setup { rows: vec![disguised], endpoints: vec![sandbox], ..Setup::new([]) }.run().await;
    assert!(matches!(run.result, Err(SubmitDecisionError::NoEndpoint { .. })));
}

#[tokio::test]
async fn floor_variant_tries_cheapest_first() {
    let mut setup =
        Setup { request: request("acme/judge:floor"), ..Setup::new([failure(InvalidResponse), answer(Some((10, 0)))]) };
    let at = |prompt| Some(TokenPrices { prompt: price(prompt), completion: price("0") });
    setup.endpoints[0].prices = at("0.3");
    setup.endpoints[1].prices = at("0.2");
    setup.endpoints[2].prices = at("0.1");
    let run = setup.run().await;
    assert_eq!(run.upstreams(), ["c", "b"]);
    assert_eq!(run.result.unwrap().cost.to_string(), "2", "at the price of the endpoint that answered");
}
