//! Idle connections: their number, lifetime and reuse.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the runtime of a test ends with it")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_client::HttpClientSettings;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use support::{AMPLE, ANSWER, Upstream, closed, decide, fixture, ok, provider, provider_with, read_request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Answers one request per connection after `delay`, and reports when the client closes it.
async fn reporting_ends(delay: Duration, shut_down: bool) -> (Upstream, UnboundedReceiver<()>) {
    let (report, ends) = unbounded_channel();
    let upstream = Upstream::start(move |mut socket| {
        let report = report.clone();
        async move {
            read_request(&mut socket).await;
            tokio::time::sleep(delay).await;
            socket.write_all(ok(ANSWER).as_bytes()).await.unwrap();
            if shut_down {
                socket.shutdown().await.unwrap();
            }
            closed(&mut socket).await;
            report.send(()).unwrap();
        }
    })
    .await;
    (upstream, ends)
}

#[tokio::test]
async fn idle_connection_closes_when_its_peer_closes() {
    let (upstream, mut ends) = reporting_ends(Duration::ZERO, true).await;
    let provider = provider(&upstream);
    for _ in 0..3 {
        decide(&provider).await.unwrap();
        timeout(AMPLE, ends.recv()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn idle_connection_closes_after_the_idle_timeout() {
    let (upstream, mut ends) = reporting_ends(Duration::ZERO, false).await;
    let settings = HttpClientSettings { pool_idle_timeout: Duration::from_millis(100), ..support::settings() };
    let provider = provider_with(&settings, &upstream.base_url());
    for _ in 0..3 {
        decide(&provider).await.unwrap();
        timeout(AMPLE, ends.recv()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn idle_connections_close_with_their_client() {
    let (upstream, mut ends) = reporting_ends(Duration::ZERO, false).await;
    let provider = provider(&upstream);
    decide(&provider).await.unwrap();
    drop(provider);
    timeout(AMPLE, ends.recv()).await.unwrap().unwrap();
}

#[tokio::test]
async fn connections_beyond_the_idle_limit_close() {
    let (upstream, mut ends) = reporting_ends(Duration::from_millis(200), false).await;
    let settings = HttpClientSettings { pool_max_idle_per_host: 1, ..support::settings() };
    let provider = provider_with(&settings, &upstream.base_url());
    let (a, b, c) = tokio::join!(decide(&provider), decide(&provider), decide(&provider));
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    for _ in 0..2 {
        timeout(AMPLE, ends.recv()).await.unwrap().unwrap();
    }
    assert!(timeout(Duration::from_millis(100), ends.recv()).await.is_err(), "one is kept");
}

#[tokio::test]
async fn connection_is_kept_after_an_error() {
    let upstream = Upstream::answering("HTTP/1.1 500 Oops\r\ncontent-length: 5\r\n\r\nsorry").await;
    let provider = provider(&upstream);
    for _ in 0..5 {
        decide(&provider).await.unwrap_err();
    }
    assert_eq!(upstream.seen(), 1);
}

#[tokio::test]
async fn connection_closes_when_its_peer_asks_for_it() {
    let answer = ok(ANSWER).replace("\r\ncontent-type", "\r\nconnection: close\r\ncontent-type");
    let upstream = Upstream::answering(answer).await;
    let provider = provider(&upstream);
    for _ in 0..3 {
        decide(&provider).await.unwrap();
    }
    assert_eq!(upstream.seen(), 3);
}

/// The announced time is shorter than the idle timeout. The margin of a second leaves half a second of one second.
#[tokio::test]
async fn idle_connection_closes_before_its_peer_announced_to_close_it() {
    let (report, mut ends) = unbounded_channel();
    let upstream = Upstream::start(move |mut socket| {
        let report = report.clone();
        async move {
            read_request(&mut socket).await;
            let answer = ok(ANSWER).replace("\r\ncontent-type", "\r\nKeep-Alive: timeout=1, max=9\r\ncontent-type");
            socket.write_all(answer.as_bytes()).await.unwrap();
            closed(&mut socket).await;
            report.send(()).unwrap();
        }
    })
    .await;
    let provider = provider(&upstream);
    for _ in 0..2 {
        decide(&provider).await.unwrap();
        timeout(AMPLE, ends.recv()).await.unwrap().unwrap();
    }
    assert_eq!(upstream.seen(), 2);
}

#[tokio::test]
async fn bytes_on_an_idle_connection_answer_no_later_request() {
    let upstream = Upstream::start(|mut socket| async move {
        read_request(&mut socket).await;
        socket.write_all(ok(ANSWER).as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        // Some servers close idle connections with such a response.
        let _ = socket.write_all(b"HTTP/1.1 408 Too late\r\ncontent-length: 0\r\n\r\n").await;
        closed(&mut socket).await;
    })
    .await;
    let provider = provider(&upstream);
    for _ in 0..3 {
        decide(&provider).await.unwrap();
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert_eq!(upstream.seen(), 3);
}

/// The first connection answers after a delay; the handshakes of all others hang.
#[tokio::test]
async fn call_takes_a_connection_that_becomes_idle_before_its_own_is_open() {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = vec![CertificateDer::from_pem_file(fixture("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(fixture("server-key.pem")).unwrap();
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap()));
    let accepted = Arc::new(AtomicUsize::new(0));
    let upstream = Upstream::start(move |mut socket| {
        let (acceptor, is_first) = (acceptor.clone(), accepted.fetch_add(1, Ordering::SeqCst) == 0);
        async move {
            if !is_first {
                return closed(&mut socket).await;
            }
            let mut stream = acceptor.accept(socket).await.unwrap();
            let mut request = Vec::new();
            while stream.read_buf(&mut request).await.unwrap_or(0) > 0 {
                if request.ends_with(b"}}}") {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    stream.write_all(ok(ANSWER).as_bytes()).await.unwrap();
                    request.clear();
                }
            }
        }
    })
    .await;
    let settings = HttpClientSettings {
        extra_ca_file: Some(fixture("ca.pem")),
        connect_timeout: 4 * AMPLE,
        ..support::settings()
    };
    let provider = provider_with(&settings, &format!("https://localhost:{}/v1", upstream.address.port()));
    let late = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        decide(&provider).await
    };
    let (first, second) = timeout(AMPLE, async { tokio::join!(decide(&provider), late) }).await.unwrap();
    assert!(first.is_ok() && second.is_ok(), "{second:?}");
    assert_eq!(upstream.seen(), 2);
}

/// A detached call may continue on another thread, and a runtime may end before the client.
#[test]
fn connections_of_an_ended_runtime_are_replaced() {
    let serving = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let upstream = serving.block_on(Upstream::answering(ok(ANSWER)));
    let provider = provider(&upstream);
    for runtime in 1..4 {
        let calling = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for _ in 0..2 {
            calling.block_on(decide(&provider)).unwrap();
        }
        assert_eq!(upstream.seen(), runtime);
    }
}

#[test]
fn call_goes_on_when_another_thread_polls_it() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (serving, calling) = (runtime(), runtime());
    let upstream = serving.block_on(Upstream::answering(ok(ANSWER)));
    let provider = provider(&upstream);
    calling.block_on(async {
        let calls: Vec<_> = (0..500)
            .map(|_| {
                let provider = Arc::clone(&provider);
                tokio::spawn(async move {
                    tokio::task::yield_now().await;
                    decide(&provider).await
                })
            })
            .collect();
        for call in calls {
            timeout(AMPLE, call).await.unwrap().unwrap().unwrap();
        }
    });
}
