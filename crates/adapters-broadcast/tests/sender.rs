//! The sender against different destinations.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapters_broadcast::{BroadcastSettings, HttpMessageSender, signature};
use chrono::DateTime;
use domain::ids::{DestinationId, OutboxId, WorkspaceId};
use domain::json::Json;
use domain::observability::{Delivery, DeliveryError, DeliveryErrorKind, Destination, DestinationKind, MessageSender};
use domain::secret::SecretString;
use domain::testing::{FixedClock, SequentialIds};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A timeout for tests that are not about time.
const AMPLE: Duration = Duration::from_secs(20);
const NO_TLS: &str = "no TLS connection could be made with it";
const BODY: &str = r#"{"resourceSpans":["✓"]}"#;

/// Answers the first request with these bytes and returns the received request.
async fn receiver(answer: &'static str) -> (String, JoinSet<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let mut served = JoinSet::new();
    served.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        // The end of every body; it occurs in no header.
        while !read.ends_with(b"]}") {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0, "the request broke off");
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        // Until the other side closes.
        let _ = stream.read_buf(&mut Vec::new()).await;
        String::from_utf8(read).unwrap()
    });
    (url, served)
}

fn destination(url: &str) -> Destination {
    Destination {
        id: DestinationId::from_uuid(SequentialIds::uuid(1)),
        workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(2)),
        name: "one".to_owned(),
        kind: DestinationKind::Webhook,
        url: url.to_owned(),
        headers: vec![("x-team".to_owned(), SecretString::new("blue"))],
        signing_secret: Some(SecretString::new("0123456789abcdef")),
        enabled: true,
        privacy_mode: false,
        sampling: 10_000,
        api_key_ids: None,
        created_at: DateTime::UNIX_EPOCH,
        updated_at: None,
    }
}

fn delivery(is_test: bool) -> Delivery {
    let ids = [3, 4].map(|number| OutboxId::from_uuid(SequentialIds::uuid(number))).to_vec();
    Delivery { ids, traces: vec![Json::parse(BODY).unwrap()], is_test }
}

fn sender(allow_private_addresses: bool) -> HttpMessageSender {
    sender_within(Duration::from_millis(500), allow_private_addresses)
}

fn sender_within(timeout: Duration, allow_private_addresses: bool) -> HttpMessageSender {
    let settings = BroadcastSettings { timeout, allow_private_addresses, ..BroadcastSettings::default() };
    let clock = FixedClock::at(DateTime::from_timestamp(1_790_000_000, 0).unwrap());
    HttpMessageSender::new(&settings, Arc::new(clock)).unwrap()
}

async fn send(url: &str) -> Result<(), DeliveryError> {
    sender(true).send(&destination(url), &delivery(false)).await
}

#[tokio::test]
async fn delivery_has_signature_and_message_ids() {
    let (url, mut served) = receiver("HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\nok").await;
    sender(true).send(&destination(&url), &delivery(true)).await.unwrap();
    let request = served.join_next().await.unwrap().unwrap();
    let signed = signature("0123456789abcdef", "1790000000", BODY.as_bytes());
    for line in [
        "POST /in HTTP/1.1".to_owned(),
        "x-team: blue".to_owned(),
        "content-type: application/json".to_owned(),
        format!("user-agent: tollgate/{}", env!("CARGO_PKG_VERSION")),
        format!("x-tollgate-delivery: {},{}", SequentialIds::uuid(3), SequentialIds::uuid(4)),
        "x-tollgate-timestamp: 1790000000".to_owned(),
        format!("x-tollgate-signature: {signed}"),
        "x-test-connection: true".to_owned(),
    ] {
        assert!(request.lines().any(|found| found == line), "{line} in {request}");
    }
}

#[tokio::test]
async fn body_joins_traces_in_order() {
    let other = r#"{"resourceSpans":[1,{"a":[]}]}"#;
    for (traces, body) in [
        (&[other, BODY][..], r#"{"resourceSpans":[1,{"a":[]},"✓"]}"#),
        (&[BODY, other], r#"{"resourceSpans":["✓",1,{"a":[]}]}"#),
        (&[], r#"{"resourceSpans":[]}"#),
    ] {
        let (url, mut served) = receiver("HTTP/1.1 204 No Content\r\n\r\n").await;
        let traces = traces.iter().map(|trace| Json::parse(trace).unwrap()).collect();
        sender(true).send(&destination(&url), &Delivery { traces, ..delivery(false) }).await.unwrap();
        let request = served.join_next().await.unwrap().unwrap();
        assert_eq!(request.split_once("\r\n\r\n").unwrap().1, body);
        let signed = signature("0123456789abcdef", "1790000000", body.as_bytes());
        assert!(request.contains(&format!("x-tollgate-signature: {signed}\r\n")), "{request}");
    }
}

#[tokio::test]
async fn delivery_outcome_follows_status() {
    let answers = [
        ("HTTP/1.1 204 No Content\r\n\r\n", None),
        (
            "HTTP/1.1 301 Moved\r\nlocation: http://127.0.0.1:1/\r\n\r\n",
            Some((DeliveryErrorKind::Receiver, "redirect (status 301)", None)),
        ),
        ("HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n", Some((DeliveryErrorKind::Body, "status 400", None))),
        ("HTTP/1.1 413 Big\r\ncontent-length: 0\r\n\r\n", Some((DeliveryErrorKind::Body, "status 413", None))),
        ("HTTP/1.1 401 Who\r\ncontent-length: 0\r\n\r\n", Some((DeliveryErrorKind::Receiver, "status 401", None))),
        ("HTTP/1.1 429 Slow\r\nretry-after: 7\r\n\r\n", Some((DeliveryErrorKind::Receiver, "status 429", Some(7)))),
        (
            "HTTP/1.1 503 Gone\r\nretry-after: 99999999999999999999\r\n\r\n",
            Some((DeliveryErrorKind::Receiver, "status 503", Some(86_400))),
        ),
        (
            "HTTP/1.1 503 Gone\r\ndate: Fri, 31 Dec 1999 23:59:29 GMT\r\nretry-after: Fri, 31 Dec 1999 23:59:59 GMT\r\n\r\n",
            Some((DeliveryErrorKind::Receiver, "status 503", Some(30))),
        ),
        (
            "HTTP/1.1 503 Gone\r\nretry-after: Thu, 31 Dec 2139 23:59:59 GMT\r\n\r\n",
            Some((DeliveryErrorKind::Receiver, "status 503", Some(86_400))),
        ),
        ("HTTP/1.1 503 Gone\r\nretry-after: soon\r\n\r\n", Some((DeliveryErrorKind::Receiver, "status 503", None))),
        ("nonsense\r\n\r\n", Some((DeliveryErrorKind::Receiver, "the connection broke", None))),
    ];
    for (answer, expected) in answers {
        let (url, _served) = receiver(answer).await;
        let sent = send(&url).await;
        let Some((kind, reason, seconds)) = expected else {
            assert_eq!(sent, Ok(()), "{answer}");
            continue;
        };
        let failed = sent.unwrap_err();
        assert_eq!((failed.kind, failed.retry_after), (kind, seconds.map(Duration::from_secs)), "{answer}");
        assert!(failed.reason.contains(reason), "{answer}: {}", failed.reason);
    }
}

#[tokio::test]
async fn test_delivery_accepts_success_and_400_only() {
    let test = async |answer| {
        let (url, _served) = receiver(answer).await;
        sender(true).send(&destination(&url), &delivery(true)).await
    };
    assert_eq!(test("HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n").await, Ok(()));
    assert!(test("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n").await.is_err());
}

#[tokio::test]
async fn delivery_times_out_and_ignores_endless_response() {
    let begun = Instant::now();
    let (url, _served) = receiver("").await;
    let failed = send(&url).await.unwrap_err();
    assert!(failed.reason.contains("within 500 ms"), "{}", failed.reason);
    let (url, _served) = receiver("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n").await;
    assert_eq!(send(&url).await, Ok(()), "its status has counted");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn connect_error_contains_no_destination_text() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert_eq!(send(&format!("http://{free}/")).await.unwrap_err().reason, "it refused the connection");
    let failed = send("http://no-such-name.invalid/").await.unwrap_err();
    assert_eq!((failed.kind, failed.reason.as_str()), (DeliveryErrorKind::Receiver, "its name cannot be resolved"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let speaking = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 mail.example ESMTP\r\n").await.unwrap();
        // Until the other side closes.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    };
    let sending = async { sender_within(AMPLE, true).send(&destination(&url), &delivery(false)).await };
    let failed = tokio::join!(speaking, sending).1.unwrap_err();
    assert_eq!((failed.kind, failed.reason.as_str()), (DeliveryErrorKind::Receiver, NO_TLS));
    let failed = sender(true).send(&destination("http://a b/"), &delivery(false)).await.unwrap_err();
    assert_eq!(failed.kind, DeliveryErrorKind::Address);
}

#[tokio::test]
async fn connector_rejects_private_addresses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "0.0.0.0",
        "169.254.169.254",
        "10.1.2.3",
        "2130706433",
    ] {
        let failed =
            sender(false).send(&destination(&format!("http://{host}:{port}/")), &delivery(true)).await.unwrap_err();
        let unresolved = failed.reason.contains("cannot be resolved") && host == "2130706433";
        assert!(failed.kind == DeliveryErrorKind::Address || unresolved, "{host}: {}", failed.reason);
    }
    let nobody = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(nobody.is_err(), "somebody called");
}

/// The fixtures of the provider's tests: a private authority, and its certificates for 127.0.0.1 and for a client.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapters-provider/tests/fixtures").join(name)
}

/// Accepts TLS connections of clients with a certificate, and counts their deliveries.
async fn strict_collector() -> (String, Arc<AtomicUsize>, JoinSet<()>) {
    let certificate = |name: &str| CertificateDer::from_pem_file(fixture(name)).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(certificate("ca.pem")).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider)).build().unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("server-key.pem")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate("server.pem")], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/v1/traces", listener.local_addr().unwrap().port());
    let received = Arc::new(AtomicUsize::new(0));
    let mut served = JoinSet::new();
    let count = Arc::clone(&received);
    served.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = match acceptor.accept(stream).into_fallible().await {
                Ok(stream) => stream,
                Err((_, mut rejected)) => {
                    // A close with unread bytes would reset the connection, and the alert could be lost.
                    let _ = rejected.read_to_end(&mut Vec::new()).await;
                    continue;
                }
            };
            let mut read = Vec::new();
            while !read.ends_with(b"]}") && stream.read_buf(&mut read).await.unwrap() > 0 {}
            count.fetch_add(1, Ordering::SeqCst);
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
    });
    (url, received, served)
}

#[tokio::test]
async fn only_operator_collector_receives_client_certificate() {
    let (url, received, _served) = strict_collector().await;
    let with = |key: &str| {
        let settings = BroadcastSettings {
            timeout: AMPLE,
            allow_private_addresses: true,
            operator_ca_file: Some(fixture("ca.pem")),
            operator_client_identity: Some((fixture("client.pem"), fixture(key))),
        };
        HttpMessageSender::new(&settings, Arc::new(FixedClock::default()))
    };
    let sender = with("client-key.pem").unwrap();
    let operators = Destination { id: Destination::OPERATORS, ..destination(&url) };
    sender.send(&operators, &delivery(false)).await.unwrap();
    assert_eq!(received.load(Ordering::SeqCst), 1);
    // The handshake of TLS 1.3 ends at the client before the server rejects it.
    let failed = sender.send(&destination(&url), &delivery(false)).await.unwrap_err();
    assert_eq!(failed.reason, NO_TLS);
    assert_eq!(received.load(Ordering::SeqCst), 1, "a workspace's destination used the operator's certificate");
    let error = |key: &str| with(key).err().unwrap();
    let message = |key: &str| error(key).to_string();
    assert!(message("client.pem").contains("otlp_client_key_file holds no unencrypted private key"));
    let with_another_key = error("server-key.pem");
    assert!(with_another_key.to_string().contains("cannot be used together"));
    let cause = with_another_key.source().unwrap().to_string();
    assert!(!cause.contains("client_key_file"), "the cause repeats the message: {cause}");
}

#[test]
fn delivery_has_ten_seconds_by_default() {
    assert_eq!(BroadcastSettings::default().timeout.as_millis(), 10_000);
}
