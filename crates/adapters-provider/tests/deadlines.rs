//! Time limits: calls end at their deadline and when the client disconnects.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::decision::{ClientConnection, NeverDisconnects, ProviderAnswer};
use domain::routing::{AttemptFailure, AttemptFailureKind};
use http_client::HttpClientSettings;
use rstest::rstest;
use support::{AMPLE, Upstream, call_within, closed, provider, provider_with, read_request};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;
use tokio::time::Instant;

const DEADLINE: Duration = Duration::from_millis(300);
/// Additional time for a busy machine. Without the deadline the provider would hang forever.
const SLACK: Duration = Duration::from_secs(10);

/// The moment at which a hanging provider stops answering.
#[derive(Debug, Clone, Copy)]
enum Hang {
    BeforeReading,
    BeforeHeaders,
    WithinHeaders,
    AfterHeaders,
    Dripping,
}

/// Starts a hanging provider; the second notification reports a closed connection.
async fn hanging(hang: Hang) -> (Upstream, Arc<Notify>, Arc<Notify>) {
    let (asked, left) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (on_asked, on_left) = (Arc::clone(&asked), Arc::clone(&left));
    let upstream = Upstream::start(move |mut socket| {
        let (asked, left) = (Arc::clone(&on_asked), Arc::clone(&on_left));
        async move {
            if !matches!(hang, Hang::BeforeReading) {
                read_request(&mut socket).await;
            }
            asked.notify_one();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4000\r\n\r\n";
            match hang {
                Hang::BeforeReading | Hang::BeforeHeaders => {}
                Hang::WithinHeaders => socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-").await.unwrap(),
                Hang::AfterHeaders => socket.write_all(head.as_bytes()).await.unwrap(),
                Hang::Dripping => {
                    socket.write_all(head.as_bytes()).await.unwrap();
                    while socket.write_all(b" ").await.is_ok() {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                }
            }
            closed(&mut socket).await;
            left.notify_one();
        }
    })
    .await;
    (upstream, asked, left)
}

fn kind(end: Result<ProviderAnswer, AttemptFailure>) -> AttemptFailureKind {
    end.unwrap_err().kind
}

#[rstest]
#[case(Hang::BeforeReading)]
#[case(Hang::BeforeHeaders)]
#[case(Hang::WithinHeaders)]
#[case(Hang::AfterHeaders)]
#[case(Hang::Dripping)]
#[tokio::test]
async fn call_ends_at_deadline(#[case] hang: Hang) {
    let (upstream, _, left) = hanging(hang).await;
    let began = Instant::now();
    let end = provider(&upstream).decide(call_within(DEADLINE, Arc::new(NeverDisconnects))).await;
    let took = began.elapsed();
    assert_eq!(kind(end), AttemptFailureKind::TimedOut);
    assert!(took >= DEADLINE && took < DEADLINE + SLACK, "{took:?}");
    tokio::time::timeout(AMPLE, left.notified()).await.expect("the provider sees the disconnect");
}

/// A client that disconnects when notified.
struct Leaves(Arc<Notify>);

#[async_trait]
impl ClientConnection for Leaves {
    async fn disconnected(&self) {
        self.0.notified().await;
    }
}

#[rstest]
#[case(Hang::BeforeReading)]
#[case(Hang::BeforeHeaders)]
#[case(Hang::AfterHeaders)]
#[case(Hang::Dripping)]
#[tokio::test]
async fn provider_sees_disconnect_of_client(#[case] hang: Hang) {
    let (upstream, asked, left) = hanging(hang).await;
    let leaves = Arc::new(Notify::new());
    let provider = provider(&upstream);
    let attempt = provider.decide(call_within(AMPLE, Arc::new(Leaves(Arc::clone(&leaves)))));
    let caller = async {
        asked.notified().await;
        // Waits until the provider's data has arrived before the client disconnects.
        tokio::time::sleep(Duration::from_millis(50)).await;
        leaves.notify_one();
        Instant::now()
    };
    let (end, gone) = tokio::join!(attempt, caller);
    assert!(gone.elapsed() < SLACK, "{:?}", gone.elapsed());
    assert_eq!(kind(end), AttemptFailureKind::ClientDisconnected);
    tokio::time::timeout(AMPLE, left.notified()).await.expect("the provider sees the disconnect");
}

#[tokio::test]
async fn call_is_not_sent_when_client_has_disconnected() {
    let upstream = Upstream::answering(support::ok(support::ANSWER)).await;
    let leaves = Arc::new(Notify::new());
    leaves.notify_one();
    let end = provider(&upstream).decide(call_within(AMPLE, Arc::new(Leaves(leaves)))).await;
    assert_eq!(kind(end), AttemptFailureKind::ClientDisconnected);
    assert_eq!(upstream.seen(), 0);
}

/// A server that accepts TCP and never speaks TLS, so the connection is never established.
#[tokio::test]
async fn connect_has_separate_timeout() {
    let (upstream, _, _) = hanging(Hang::BeforeReading).await;
    let settings = HttpClientSettings {
        connect_timeout: DEADLINE,
        extra_ca_file: Some(support::fixture("ca.pem")),
        ..support::settings()
    };
    let base_url = format!("https://{}/v1", upstream.address);
    let began = Instant::now();
    let failure = support::decide(&provider_with(&settings, &base_url)).await.unwrap_err();
    let took = began.elapsed();
    assert_eq!(failure.kind, AttemptFailureKind::ConnectFailed);
    assert_eq!(failure.detail, "the connection could not be made in time");
    assert!(took >= DEADLINE && took < DEADLINE + SLACK, "{took:?}");
}

/// Over HTTP/2 the call's stream ends, and the connection stays open for other calls.
#[tokio::test]
async fn http2_provider_sees_disconnect_of_client() {
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::sync::mpsc::unbounded_channel;

    struct TellsItsEnd(Arc<Notify>);
    impl Drop for TellsItsEnd {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }

    let (asked, mut requests) = unbounded_channel();
    let left = Arc::new(Notify::new());
    let on_left = Arc::clone(&left);
    let upstream = Upstream::start(move |socket| {
        let (asked, left) = (asked.clone(), Arc::clone(&on_left));
        async move {
            let service = service_fn(move |_| {
                asked.send(()).unwrap();
                let ends = TellsItsEnd(Arc::clone(&left));
                async move {
                    let _ends = ends;
                    std::future::pending::<Result<http::Response<String>, std::convert::Infallible>>().await
                }
            });
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let _ = builder.serve_connection(TokioIo::new(socket), service).await;
        }
    })
    .await;
    let settings = HttpClientSettings { http2: http_client::Http2::PriorKnowledge, ..support::settings() };
    let provider = provider_with(&settings, &upstream.base_url());
    for _ in 0..2 {
        let leaves = Arc::new(Notify::new());
        let attempt = provider.decide(call_within(AMPLE, Arc::new(Leaves(Arc::clone(&leaves)))));
        let caller = async {
            requests.recv().await.unwrap();
            leaves.notify_one();
        };
        let (end, ()) = tokio::join!(attempt, caller);
        assert_eq!(kind(end), AttemptFailureKind::ClientDisconnected);
        tokio::time::timeout(AMPLE, left.notified()).await.expect("the provider sees the end of the stream");
    }
    assert_eq!(upstream.seen(), 1);
}
