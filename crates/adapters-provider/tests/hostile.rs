//! Providers that flood or stall: the bytes before an answer are limited, and silent connections are not reused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the runtime of a test ends with it")]

mod support;

use std::convert::Infallible;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use domain::decision::NeverDisconnects;
use domain::routing::AttemptFailureKind;
use http::Response;
use http_body_util::Full;
use http_client::{Http2, HttpClientSettings, PingSettings};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rstest::rstest;
use support::{AMPLE, Upstream, call_within, decide, provider_with};
use tokio::sync::Notify;

/// Most bytes in the buffers of two local sockets.
const SOCKET_BUFFERS: usize = 32 << 20;

/// Starts a provider thread that never stops sending. It returns the number of sent bytes.
fn flooding(before: Vec<u8>, piece: &[u8]) -> (SocketAddr, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let flood = piece.repeat((64 << 10) / piece.len());
    let sending = move || {
        let mut socket = listener.accept().unwrap().0;
        socket.set_write_timeout(Some(AMPLE)).unwrap();
        wait_for_body(&mut socket);
        socket.write_all(&before).unwrap();
        let mut sent = 0;
        loop {
            match socket.write(&flood) {
                Ok(bytes) => sent += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return sent,
            }
        }
    };
    (address, thread::spawn(sending))
}

/// Reads until the request's JSON has arrived.
fn wait_for_body(socket: &mut TcpStream) {
    let (mut request, mut piece) = (Vec::<u8>::new(), [0; 4096]);
    while !request.windows(4).any(|four| four == b"noul") {
        let read = socket.read(&mut piece).unwrap();
        assert!(read > 0);
        request.extend(&piece[..read]);
    }
}

fn http2_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// `:status: 102`, the name from the static table.
const STATUS_102: &[u8] = b"\x08\x03102";

#[rstest]
#[case::http1(Http2::Off, Vec::new(), b"HTTP/1.1 102 Processing\r\n\r\n".to_vec())]
#[case::http1_in_one_head(Http2::Off, b"HTTP/1.1 200 OK\r\nx: ".to_vec(), b"y".to_vec())]
#[case::http2(Http2::PriorKnowledge, http2_frame(4, 0, 0, b""), http2_frame(1, 4, 1, STATUS_102))]
#[case::http2_pings(Http2::PriorKnowledge, http2_frame(4, 0, 0, b""), http2_frame(6, 1, 0, b"12345678"))]
#[tokio::test]
async fn flood_before_answer_fails_and_does_not_block_other_tasks(
    #[case] http2: Http2,
    #[case] before: Vec<u8>,
    #[case] piece: Vec<u8>,
) {
    let (address, sender) = flooding(before, &piece);
    let settings = HttpClientSettings { http2, ..support::settings() };
    let provider = provider_with(&settings, &format!("http://{address}/v1"));
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let failure = decide(&provider).await.unwrap_err();
    other.abort();
    drop(provider);
    assert_eq!(failure.kind, AttemptFailureKind::InvalidResponse, "{failure:?}");
    assert_eq!(failure.detail, "the provider sent more than 262144 bytes before its answer");
    assert!(turns.load(Ordering::Relaxed) > 4, "the other task had {turns:?} turns");
    let sent = tokio::task::spawn_blocking(|| sender.join().unwrap()).await.unwrap();
    assert!(sent < SOCKET_BUFFERS, "{sent} bytes were taken");
}

#[tokio::test]
async fn informational_heads_within_limit_are_skipped() {
    let heads = "HTTP/1.1 102 Processing\r\nx-progress: 1\r\n\r\n".repeat(1000);
    let upstream = Upstream::answering(format!("{heads}{}", support::ok(support::ANSWER))).await;
    let provider = provider_with(&support::settings(), &upstream.base_url());
    for _ in 0..20 {
        decide(&provider).await.unwrap();
    }
    assert_eq!(upstream.seen(), 1, "each answer has the whole bound to itself");
    let strict = HttpClientSettings { max_header_bytes: 30_000, ..support::settings() };
    let failure = decide(&provider_with(&strict, &upstream.base_url())).await.unwrap_err();
    assert_eq!(failure.detail, "the provider sent more than 30000 bytes before its answer");
}

#[tokio::test]
async fn body_does_not_count_against_head_limit() {
    let padding = " ".repeat(3 << 20);
    let upstream = Upstream::answering(support::ok(&format!("{}{padding}", support::ANSWER))).await;
    let strict = HttpClientSettings { max_header_bytes: 64 << 10, ..support::settings() };
    let provider = provider_with(&strict, &upstream.base_url());
    for _ in 0..10 {
        decide(&provider).await.unwrap();
    }
    assert_eq!(upstream.seen(), 1);
}

/// An HTTP/2 provider. Each connection answers `answers` requests; the next request triggers `afterwards`.
async fn http2_upstream(answers: usize, afterwards: Afterwards) -> Upstream {
    Upstream::start(move |socket| async move {
        let (answered, stall) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let stalls = Arc::clone(&stall);
        let service = service_fn(move |_| {
            let (number, stall) = (answered.fetch_add(1, Ordering::SeqCst), Arc::clone(&stall));
            async move {
                if number == answers {
                    match afterwards {
                        Afterwards::Stall => stall.notify_one(),
                        Afterwards::AnswerOthers => {}
                    }
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(support::ANSWER.as_bytes()))))
            }
        });
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let mut serving = pin!(builder.serve_connection(TokioIo::new(socket), service));
        tokio::select! {
            _ = &mut serving => {}
            // The socket stays open without reads or writes.
            () = stalls.notified() => std::future::pending().await,
        }
    })
    .await
}

#[derive(Debug, Clone, Copy)]
enum Afterwards {
    Stall,
    AnswerOthers,
}

fn http2_settings() -> HttpClientSettings {
    HttpClientSettings { http2: Http2::PriorKnowledge, http2_pings: None, ..support::settings() }
}

fn short_call() -> domain::decision::ProviderCall {
    call_within(Duration::from_millis(400), Arc::new(NeverDisconnects))
}

#[tokio::test]
async fn silent_http2_connection_is_retired_at_deadline() {
    let upstream = http2_upstream(2, Afterwards::Stall).await;
    let provider = provider_with(&http2_settings(), &upstream.base_url());
    decide(&provider).await.unwrap();
    decide(&provider).await.unwrap();
    let failure = provider.decide(short_call()).await.unwrap_err();
    assert_eq!((failure.kind, upstream.seen()), (AttemptFailureKind::TimedOut, 1));
    decide(&provider).await.unwrap();
    assert_eq!(upstream.seen(), 2);
}

#[tokio::test]
async fn active_http2_connection_survives_deadline() {
    let upstream = http2_upstream(1, Afterwards::AnswerOthers).await;
    let provider = provider_with(&http2_settings(), &upstream.base_url());
    decide(&provider).await.unwrap();
    let late = provider.decide(short_call());
    let others = async {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            decide(&provider).await.unwrap();
        }
    };
    let (late, ()) = tokio::join!(late, others);
    assert_eq!(late.unwrap_err().kind, AttemptFailureKind::TimedOut);
    decide(&provider).await.unwrap();
    assert_eq!(upstream.seen(), 1);
}

#[tokio::test]
async fn http2_call_is_repeated_when_ping_is_not_acknowledged() {
    let upstream = http2_upstream(1, Afterwards::Stall).await;
    let pings = PingSettings { interval: Duration::from_millis(100), timeout: Duration::from_millis(100) };
    let settings = HttpClientSettings { http2_pings: Some(pings), ..http2_settings() };
    let provider = provider_with(&settings, &upstream.base_url());
    for _ in 0..2 {
        decide(&provider).await.unwrap();
    }
    assert!(upstream.seen() > 1, "the second call was repeated on another connection");
}

#[tokio::test]
async fn http2_head_is_limited() {
    let upstream = Upstream::start(move |socket| async move {
        let service = service_fn(move |_| async move {
            let mut answer = Response::new(Full::new(Bytes::from_static(support::ANSWER.as_bytes())));
            answer.headers_mut().insert("x-long", "y".repeat(20_000).parse().unwrap());
            Ok::<_, Infallible>(answer)
        });
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = builder.serve_connection(TokioIo::new(socket), service).await;
    })
    .await;
    let failure = decide(&provider_with(&http2_settings(), &upstream.base_url())).await.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::ConnectionLost);
}
