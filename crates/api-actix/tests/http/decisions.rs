//! Decisions requests.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::budget::MockLedger;
use domain::decision::{DecisionProvider, ProviderAnswer, ProviderCall};
use domain::error::{ErrorKind, StoreError};
use domain::routing::{AttemptFailure, AttemptFailureKind};
use domain::system::{TaskError, Work, WorkOwner, Workers};
use domain::testing::{FixedClock, ScriptedProvider};
use domain::usage::{UsageFilter, UsageOutcome, UsageRepository};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::client::request;
use super::gateway::{BASE, Caller, Setup, answer, granted, workspace};
use api_actix::WireNames;

const BODY: &str =
    r#"{"model":"acme/judge","state":"s","questions":{"q":{"type":"noul","instructions":"?"}},"extra":1}"#;
const ANSWERS: &str = r#"{"q":{"type":"noul","noul":0.50, "confidence":1e-1}}"#;

fn overloaded(wait: u64) -> Result<ProviderAnswer, AttemptFailure> {
    Err(AttemptFailure::from_status(529, Some(Duration::from_secs(wait))))
}

/// Workers with a queue that takes some time.
struct SlowWorkers(FixedClock, Duration);

#[async_trait]
impl Workers for SlowWorkers {
    async fn run(&self, _: WorkOwner, work: Work) -> Result<(), TaskError> {
        self.0.advance(self.1);
        work();
        Ok(())
    }
}

/// A provider that records the time that an attempt has.
struct TimedProvider(ScriptedProvider, Arc<Mutex<Vec<Duration>>>);

#[async_trait]
impl DecisionProvider for TimedProvider {
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        self.1.lock().unwrap().push(call.timeout);
        self.0.decide(call).await
    }
}

#[tokio::test]
async fn decision_has_what_the_wait_for_a_scan_thread_leaves_of_the_deadline() {
    let timeouts = Arc::default();
    let answers = ScriptedProvider::new([answer(ANSWERS), answer(ANSWERS)]);
    let provider = TimedProvider(answers, Arc::clone(&timeouts));
    let mut setup = Setup { provider: Arc::new(provider), ..Setup::new().await };
    setup.workers = Arc::new(SlowWorkers(setup.clock.clone(), Duration::from_secs(55)));
    let gateway = setup.start();
    let large = BODY.replace("\"s\"", &format!("\"{}\"", "s".repeat(600_000)));
    assert_eq!(gateway.decide(&large).await.status, 200);
    assert_eq!(*timeouts.lock().unwrap(), [Duration::from_secs(5)], "55 of 60 seconds have passed");
    // A small body does not wait, and has a deadline of its own.
    assert_eq!(gateway.decide(BODY).await.status, 200);
    assert!(timeouts.lock().unwrap()[1] > Duration::from_secs(5));
}

#[tokio::test]
async fn answer_has_cost_and_record() {
    let gateway = Setup::answering([answer(ANSWERS)]).await.start();
    let reply = gateway.decide(BODY).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let body = std::str::from_utf8(&reply.body).unwrap();
    let id = reply.header("x-generation-id").unwrap();
    let expected = format!(
        r#"{{"answers":{ANSWERS},"model":"acme/judge","usage":{{"input_tokens":429,"output_tokens":0,"cost":0.000018018}},"id":"{id}","provider":"The first"}}"#
    );
    assert_eq!(body, expected);
    assert_eq!(reply.header("x-provider-name"), Some("The first"));
    let record = gateway.store.usage().find(&id.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(record.request_id.as_str(), reply.header("x-request-id").unwrap());
}

#[tokio::test]
async fn client_package_path_serves_decisions() {
    let gateway = Setup::answering([answer(ANSWERS)]).await.start();
    let bearer = Caller::Inference.bearer();
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    assert_eq!(gateway.send("POST", "/api/alpha/decisions", &headers, BODY.as_bytes()).await.status, 200);
}

#[tokio::test]
async fn labels_are_recorded_and_body_session_overrides_header() {
    let gateway = Setup::answering([answer("{}"), answer("{}")]).await.start();
    let json = ("Content-Type", "application/json");
    let long = "h".repeat(257);
    let session_of = async |id: Option<&str>| {
        let id = id.unwrap().parse().unwrap();
        gateway.store.usage().find(&id).await.unwrap().unwrap().session_id
    };
    let post = async |headers: &[(&str, &str)], body: &str| {
        gateway.post(Caller::Inference, "/api/alpha/decisions", headers, body.as_bytes()).await
    };
    let plain = r#"{"model":"acme/judge","questions":"?"}"#;
    let reply = post(&[json, ("x-session-id", "from-header")], plain).await;
    assert_eq!(session_of(reply.header("x-generation-id")).await.as_deref(), Some("from-header"));
    let own = r#"{"model":"acme/judge","questions":"?","session_id":"from-body"}"#;
    let reply = post(&[json, ("x-session-id", &long), ("x-session-id", "again")], own).await;
    assert_eq!(session_of(reply.header("x-generation-id")).await.as_deref(), Some("from-body"));
    assert!(post(&[json, ("x-session-id", &long)], plain).await.expect_error(400).contains("256"));
    assert!(
        post(&[json, ("x-session-id", "a"), ("x-session-id", "b")], plain)
            .await
            .expect_error(400)
            .contains("more than once")
    );
    let long = format!(r#"{{"model":"acme/judge","questions":"?","session_id":"{}"}}"#, "é".repeat(257));
    assert!(post(&[json], &long).await.expect_error(400).starts_with("session_id: "));
}

#[tokio::test]
async fn model_name_errors_are_distinct() {
    let gateway = Setup::new().await.start();
    let ask = async |model: &str| gateway.decide(&format!(r#"{{"model":"{model}","questions":"?"}}"#)).await;
    let reply = ask("acme/jugde").await;
    assert_eq!(reply.expect_error(404), "Model not found; nearest callable models: acme/judge");
    assert_eq!(reply.json()["error"]["metadata"]["nearest"][0], "acme/judge");
    assert_eq!(reply.json()["user_id"], "owner-1");
    assert!(ask("acme/writer").await.expect_error(400).contains("does not answer Decisions"));
    assert!(ask("acme/varies").await.expect_error(400).contains("variable price"));
    let reply = ask("acme/idle").await;
    let message = "no endpoint is configured for acme/idle; nearest callable models: acme/judge";
    assert_eq!(reply.expect_error(404), message);
    assert_eq!(reply.json()["error"]["metadata"]["nearest"], serde_json::json!(["acme/judge"]));
    assert_eq!(reply.json()["error"]["metadata"]["routing_funnel"][0]["endpoint_count"], 0);
}

#[tokio::test]
async fn failed_attempts_return_status_and_history() {
    let broken = || Err(AttemptFailure::new(AttemptFailureKind::InvalidResponse, "secret detail"));
    let late = || Err(AttemptFailure::new(AttemptFailureKind::TimedOut, "late"));
    let refused = || Err(AttemptFailure::from_status(422, None));
    let cases = [
        ([broken(), broken()], 502, "Provider returned error"),
        ([late(), late()], 524, "Request timed out. Please try again later."),
        ([overloaded(7), overloaded(3)], 529, "Provider returned error"),
        ([refused(), refused()], 400, "Every provider that was tried rejected the request as invalid"),
    ];
    for (script, status, message) in cases {
        let gateway = Setup::answering(script).await.start();
        let reply = gateway.decide(BODY).await;
        assert_eq!(reply.expect_error(status), message);
        let metadata = reply.json()["error"]["metadata"].clone();
        assert_eq!(metadata["provider_name"], "The second");
        assert_eq!(metadata["attempts"].as_array().unwrap().len(), 2);
        assert_eq!(metadata["attempts"][0]["provider"], "first");
        assert!(!String::from_utf8_lossy(&reply.body).contains("secret detail"));
        let waits = (reply.header("retry-after").map(str::to_owned), metadata["retry_after_seconds"].as_u64());
        assert_eq!(waits, if status == 529 { (Some("3".to_owned()), Some(3)) } else { (None, None) });
        let id = reply.header("x-generation-id").unwrap().parse().unwrap();
        let record = gateway.store.usage().find(&id).await.unwrap().unwrap();
        assert_eq!(record.outcome, UsageOutcome::Failed);
    }
}

#[tokio::test]
async fn simulated_failures_are_returned_unchanged() {
    use ErrorKind as S;
    for (failure, status) in [
        (S::InsufficientCredits, 402),
        (S::Forbidden, 403),
        (S::RateLimited, 429),
        (S::ProviderFailure, 502),
        (S::Unavailable, 503),
        (S::TimedOut, 524),
        (S::ProviderOverloaded, 529),
    ] {
        let failure = AttemptFailure::new(AttemptFailureKind::Simulated(failure), "simulated");
        let reply = Setup::answering([Err(failure)]).await.start().decide(BODY).await;
        reply.expect_error(status);
        assert_eq!(reply.json()["error"]["metadata"]["simulated"], true);
        assert_eq!(reply.header("retry-after").is_some(), [429, 503].contains(&status), "{status}");
        assert_eq!(reply.header("x-ratelimit-limit").is_some(), status == 429);
    }
}

#[tokio::test]
async fn service_metadata_is_sent_only_on_request() {
    let answering = async |script: Vec<_>| Setup::answering(script).await.start();
    let gateway = answering(vec![overloaded(1), answer(ANSWERS), answer(ANSWERS)]).await;
    let headers = [("Content-Type", "application/json"), ("x-openrouter-metadata", "enabled")];
    let reply = gateway.post(Caller::Inference, "/api/alpha/decisions", &headers, BODY.as_bytes()).await;
    let service_metadata = &reply.json()["openrouter_metadata"];
    assert_eq!(
        (&service_metadata["attempt_count"], &service_metadata["routing"]["provider"]),
        (&2.into(), &"The second".into())
    );
    assert_eq!(gateway.decide(BODY).await.json().get("openrouter_metadata"), None);
    let gateway = answering(vec![overloaded(1), overloaded(1)]).await;
    let reply = gateway.post(Caller::Inference, "/api/alpha/decisions", &headers, BODY.as_bytes()).await;
    assert_eq!(reply.json()["openrouter_metadata"]["attempts"].as_array().unwrap().len(), 2);
    let own = ("x-tollgate-metadata", "enabled");
    for (agent, configured, member) in [
        ("curl/8", WireNames::Interface, "service_metadata"),
        ("curl/8", WireNames::OpenRouter, "openrouter_metadata"),
        ("typesafe-sdk/0.7.5", WireNames::Interface, "openrouter_metadata"),
    ] {
        let mut setup = Setup::answering(vec![answer(ANSWERS)]).await;
        setup.settings.wire_names = configured;
        let headers = [("Content-Type", "application/json"), own, ("User-Agent", agent)];
        let gateway = setup.start();
        let reply = gateway.post(Caller::Inference, "/api/alpha/decisions", &headers, BODY.as_bytes()).await;
        assert!(reply.json()[member].is_object(), "{agent} {configured:?}");
        let failed = gateway.post(Caller::Inference, "/api/alpha/decisions", &headers, b"{}").await;
        assert!(failed.json()[member].is_object(), "{agent} {configured:?}");
    }
}

#[tokio::test]
async fn answer_is_withheld_when_record_fails() {
    let mut ledger = MockLedger::new();
    ledger.expect_reserve().returning(granted);
    ledger.expect_settle().returning(|_| Err(StoreError::unavailable("full")));
    let gateway = Setup { ledger: Arc::new(ledger), ..Setup::answering([answer(ANSWERS)]).await }.start();
    gateway.decide(BODY).await.expect_error(503);
}

/// A provider that waits until the client disconnects.
struct DisconnectProvider {
    asked: Arc<Notify>,
}

#[async_trait]
impl DecisionProvider for DisconnectProvider {
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        self.asked.notify_one();
        call.client.disconnected().await;
        Err(AttemptFailure::new(AttemptFailureKind::ClientDisconnected, "the client disconnected"))
    }
}

#[tokio::test]
async fn client_disconnect_cancels_call_and_keeps_record() {
    let asked = Arc::new(Notify::new());
    let gateway =
        Setup { provider: Arc::new(DisconnectProvider { asked: Arc::clone(&asked) }), ..Setup::new().await }.start();
    let bearer = Caller::Inference.bearer();
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream
        .write_all(&request("POST", &format!("{BASE}/api/alpha/decisions"), &headers, BODY.as_bytes()))
        .await
        .unwrap();
    asked.notified().await;
    drop(stream);
    gateway.tasks.close();
    // The tracker counts the work from its start, so it ends after the record is written.
    tokio::time::timeout(Duration::from_secs(10), gateway.tasks.wait()).await.unwrap();
    let records = gateway.store.usage().list(&UsageFilter::for_workspace(workspace(1)), 10).await.unwrap();
    assert_eq!(records.iter().map(|record| record.outcome).collect::<Vec<_>>(), [UsageOutcome::Cancelled]);
}

#[tokio::test]
async fn graceful_stop_finishes_in_flight_requests() {
    struct SlowProvider(Arc<Notify>, Arc<Notify>, ScriptedProvider);
    #[async_trait]
    impl DecisionProvider for SlowProvider {
        async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
            self.0.notify_one();
            self.1.notified().await;
            self.2.decide(call).await
        }
    }
    let (asked, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = SlowProvider(Arc::clone(&asked), Arc::clone(&go_on), ScriptedProvider::new([answer(ANSWERS)]));
    let mut gateway = Setup { provider: Arc::new(slow), ..Setup::new().await }.start();
    let stopper = gateway.stopper.take().unwrap();
    let stop = async {
        asked.notified().await;
        stopper.drain().await;
        let (mut stopping, mut begun) = (pin!(stopper.close()), false);
        poll_fn(|cx| {
            let progress = stopping.as_mut().poll(cx);
            if !std::mem::replace(&mut begun, true) {
                go_on.notify_one();
            }
            progress
        })
        .await;
    };
    let (reply, ()) = tokio::join!(gateway.decide(BODY), stop);
    assert_eq!(reply.status, 200);
    gateway.server.close();
    tokio::time::timeout(Duration::from_secs(10), gateway.server.wait()).await.unwrap();
}
