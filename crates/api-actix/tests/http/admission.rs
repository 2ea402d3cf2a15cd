//! In-flight permits and body memory: one key cannot take the share of others.

use std::sync::Arc;
use std::time::Duration;

use api_actix::PROCESSING_COPIES;
use async_trait::async_trait;
use domain::decision::{DecisionProvider, ProviderAnswer, ProviderCall};
use domain::routing::AttemptFailure;
use domain::testing::ScriptedProvider;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};

use super::gateway::{BASE, Caller, Gateway, Setup, answer};

const BODY: &str = r#"{"model":"acme/judge","state":"s","questions":{"q":{"type":"noul","instructions":"?"}}}"#;
const ANSWERS: &str = r#"{"q":{"type":"noul","noul":0.5}}"#;
const PATH: &str = "/api/alpha/decisions";

/// Begins a request, waits until the server reads its body, and sends the first bytes of the body.
async fn begin(gateway: &Gateway, caller: Caller, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let head = format!(
        "POST {BASE}{PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n",
        caller.bearer(),
        BODY.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut said = [0; 25];
    stream.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(first).await.unwrap();
    stream
}

async fn end(mut stream: TcpStream, rest: &[u8]) -> String {
    stream.write_all(rest).await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    said
}

#[tokio::test]
async fn slow_bodies_take_no_permits() {
    let mut setup = Setup::answering((0..10).map(|_| answer(ANSWERS))).await;
    setup.settings.admission.max_in_flight = 8;
    setup.settings.admission.max_in_flight_per_key = 4;
    let gateway = setup.start();
    let mut slow = Vec::new();
    for _ in 0..8 {
        slow.push(begin(&gateway, Caller::Inference, &BODY.as_bytes()[..40]).await);
    }
    let reply = gateway.post_json(Caller::OfOtherWorkspace, PATH, BODY).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(gateway.decide(BODY).await.status, 200, "nor from the same key");
    for stream in slow {
        let said = end(stream, &BODY.as_bytes()[40..]).await;
        assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    }
}

/// A provider that answers once the test releases it.
struct BlockedProvider {
    asked: Arc<Notify>,
    go_on: Arc<Semaphore>,
    answers: ScriptedProvider,
}

#[async_trait]
impl DecisionProvider for BlockedProvider {
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        self.asked.notify_one();
        self.go_on.acquire().await.unwrap().forget();
        self.answers.decide(call).await
    }
}

#[tokio::test]
async fn key_at_its_share_gets_429_and_others_are_served() {
    let (asked, go_on) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let answers = ScriptedProvider::new((0..4).map(|_| answer(ANSWERS)));
    let provider = BlockedProvider { asked: Arc::clone(&asked), go_on: Arc::clone(&go_on), answers };
    let mut setup = Setup { provider: Arc::new(provider), ..Setup::new().await };
    setup.settings.admission.max_in_flight = 2;
    setup.settings.admission.max_in_flight_per_key = 1;
    let gateway = setup.start();
    let first = async { gateway.decide(BODY).await };
    let rest = async {
        asked.notified().await;
        let rejected = gateway.decide(BODY).await;
        let message = rejected.expect_error(429);
        assert!(message.contains("this key has 1 requests in flight"), "{message}");
        assert_eq!(rejected.header("retry-after"), Some("1"));
        let metadata = &rejected.json()["error"]["metadata"];
        assert_eq!((&metadata["scope"], &metadata["limit"]), (&"key".into(), &1.into()));
        // Operations without a body count as well.
        gateway.get(Caller::Inference, "/models/count", &[]).await.expect_error(429);
        assert_eq!(gateway.get(Caller::OfOtherWorkspace, "/models/count", &[]).await.status, 200);
        let other = async { gateway.post_json(Caller::OfOtherWorkspace, PATH, BODY).await };
        let full = async {
            asked.notified().await;
            let reply = gateway.get(Caller::Management, "/models/count", &[]).await;
            assert_eq!(reply.expect_error(503), "Service temporarily unavailable");
            go_on.add_permits(2);
        };
        let (other, ()) = tokio::join!(other, full);
        assert_eq!(other.status, 200);
    };
    let (first, ()) = tokio::time::timeout(Duration::from_secs(20), async { tokio::join!(first, rest) }).await.unwrap();
    assert_eq!(first.status, 200);
    go_on.add_permits(1);
    assert_eq!(gateway.decide(BODY).await.status, 200, "its place is free again");
}

#[tokio::test]
async fn bodies_above_the_share_of_memory_get_429_and_above_all_of_it_503() {
    let mut setup = Setup::answering((0..200).map(|_| answer(ANSWERS))).await;
    setup.settings.admission.body_memory_bytes = PROCESSING_COPIES * BODY.len() + 20;
    setup.settings.admission.body_memory_bytes_per_workspace = PROCESSING_COPIES * BODY.len() + 10;
    let gateway = setup.start();
    let slow = begin(&gateway, Caller::Inference, &BODY.as_bytes()[..21]).await;
    // The first bytes are in transit: until they are counted, a body of that size may still be admitted.
    let began = tokio::time::Instant::now();
    let rejected = loop {
        let reply = gateway.decide(&BODY.replace('?', "")).await;
        if reply.status == 429 {
            break reply;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{reply:?}");
    };
    assert!(rejected.expect_error(429).contains("take its share of"), "{rejected:?}");
    assert_eq!(rejected.json()["error"]["metadata"]["unit"], "body_bytes");
    let full = gateway.post_json(Caller::OfOtherWorkspace, PATH, BODY).await;
    assert!(full.expect_error(503).contains("memory for request bodies"));
    assert_eq!(full.header("retry-after"), Some("1"));
    let said = end(slow, &BODY.as_bytes()[21..]).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    let reply = gateway.post_json(Caller::OfOtherWorkspace, PATH, &BODY.replace("acme/judge", "acme/none")).await;
    assert_eq!(reply.status, 404, "the memory is free again");
}
