//! Token rate limits: the estimate is corrected after each outcome of a request.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::budget::MockLedger;
use domain::decision::{DecisionProvider, ProviderAnswer, ProviderCall};
use domain::error::StoreError;
use domain::routing::{AttemptFailure, AttemptFailureKind};
use domain::testing::{FixedRateLimiter, ScriptedProvider};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::client::request;
use super::gateway::{BASE, Caller, Setup, answer, granted};

const BODY: &str = r#"{"model":"acme/judge","state":"s","questions":{"q":{"type":"noul","instructions":"?"}}}"#;
const ANSWERS: &str = r#"{"q":{"type":"noul","noul":0.5}}"#;

/// Returns the token estimate of [`BODY`].
fn taken() -> u64 {
    u64::try_from(BODY.len() / 4).unwrap()
}

async fn measured(limiter: &FixedRateLimiter, script: Vec<Result<ProviderAnswer, AttemptFailure>>) -> Setup {
    let provider = Arc::new(ScriptedProvider::new(script));
    Setup { rate_limiter: Arc::new(limiter.clone()), provider, ..Setup::new().await }
}

#[tokio::test]
async fn token_estimate_is_corrected_to_actual_usage() {
    let limiter = FixedRateLimiter::new(u32::MAX);
    let overloaded = || Err(AttemptFailure::from_status(529, None));
    let gateway = measured(&limiter, vec![answer(ANSWERS), overloaded(), overloaded()]).await.start();
    assert_eq!(gateway.decide(BODY).await.status, 200);
    assert_eq!(gateway.decide(BODY).await.status, 529);
    assert_eq!(limiter.corrections(), [(taken(), 429), (taken(), 0)]);
}

#[tokio::test]
async fn rejection_before_routing_takes_no_tokens() {
    let limiter = FixedRateLimiter::new(u32::MAX);
    let gateway = measured(&limiter, Vec::new()).await.start();
    gateway.decide("{").await.expect_error(400);
    assert!(limiter.corrections().is_empty(), "nothing was taken");
    let unknown = BODY.replace("acme/judge", "acme/gone");
    gateway.decide(&unknown).await.expect_error(404);
    assert_eq!(limiter.corrections(), [(u64::try_from(unknown.len() / 4).unwrap(), 0)]);
}

#[tokio::test]
async fn token_estimate_stays_when_usage_is_unknown() {
    let limiter = FixedRateLimiter::new(u32::MAX);
    let mut ledger = MockLedger::new();
    ledger.expect_reserve().returning(granted);
    ledger.expect_settle().returning(|_| Err(StoreError::unavailable("full")));
    let setup = measured(&limiter, vec![answer(ANSWERS)]).await;
    let gateway = Setup { ledger: Arc::new(ledger), ..setup }.start();
    gateway.decide(BODY).await.expect_error(503);
    assert_eq!(limiter.corrections(), [(taken(), taken())]);
}

#[tokio::test]
async fn token_limit_returns_429_and_does_not_count_request() {
    let limiter = FixedRateLimiter::new(2).with_tokens(440);
    let gateway = measured(&limiter, vec![answer(ANSWERS)]).await.start();
    assert_eq!(gateway.decide(BODY).await.status, 200);
    for _ in 0..5 {
        let reply = gateway.decide(BODY).await;
        assert_eq!(reply.expect_error(429), "Rate limit exceeded");
        let metadata = &reply.json()["error"]["metadata"];
        assert_eq!((&metadata["scope"], &metadata["unit"]), (&"key".into(), &"tokens".into()));
        assert_eq!(
            (reply.header("x-ratelimit-limit"), reply.header("x-ratelimit-remaining")),
            (Some("440"), Some("11"))
        );
        assert_eq!(reply.header("retry-after"), Some("1"));
    }
    // The second of two permitted requests is still available.
    assert_eq!(gateway.get(Caller::Inference, "/models/count", &[]).await.status, 200);
    assert_eq!(gateway.get(Caller::Inference, "/models/count", &[]).await.status, 429);
}

/// A provider that waits until the client disconnects.
struct DisconnectProvider(Arc<Notify>);

#[async_trait]
impl DecisionProvider for DisconnectProvider {
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        self.0.notify_one();
        call.client.disconnected().await;
        Err(AttemptFailure::new(AttemptFailureKind::ClientDisconnected, "the client disconnected"))
    }
}

#[tokio::test]
async fn token_estimate_is_corrected_after_disconnect() {
    let (limiter, asked) = (FixedRateLimiter::new(u32::MAX), Arc::new(Notify::new()));
    let setup = measured(&limiter, Vec::new()).await;
    let gateway = Setup { provider: Arc::new(DisconnectProvider(Arc::clone(&asked))), ..setup }.start();
    let bearer = Caller::Inference.bearer();
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let path = format!("{BASE}/api/alpha/decisions");
    stream.write_all(&request("POST", &path, &headers, BODY.as_bytes())).await.unwrap();
    asked.notified().await;
    assert!(limiter.corrections().is_empty());
    drop(stream);
    gateway.tasks.close();
    tokio::time::timeout(Duration::from_secs(10), gateway.tasks.wait()).await.unwrap();
    let corrections = limiter.corrections();
    assert_eq!(corrections.len(), 1, "{corrections:?}");
    assert_eq!(corrections[0].0, taken());
}
