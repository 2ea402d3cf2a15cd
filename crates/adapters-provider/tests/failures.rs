//! Each kind of provider failure and its report.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use adapters_provider::ProviderSettings;
use domain::decision::DecisionProvider;
use domain::routing::{AttemptFailure, AttemptFailureKind, Wire};
use rstest::rstest;
use support::{Upstream, closed, decide, provider, provider_with, read_request};
use tokio::io::AsyncWriteExt;

/// Text of a failing provider, which must never be shown.
const THEIRS: &str = "provider-text";

async fn failure(answer: impl Into<Vec<u8>>) -> AttemptFailure {
    let upstream = Upstream::answering(answer).await;
    let failure = decide(&provider(&upstream)).await.unwrap_err();
    assert!(!format!("{failure:?} {failure}").contains(THEIRS), "{failure:?}");
    assert_eq!(upstream.seen(), 1, "nothing is tried twice");
    failure
}

fn status(line: &str, headers: &str) -> String {
    let body = format!(r#"{{"error":"{THEIRS}"}}"#);
    let length = body.len();
    format!("HTTP/1.1 {line}\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

#[rstest]
#[case("500 Oops", 500, AttemptFailureKind::HttpError)]
#[case("502 Oops", 502, AttemptFailureKind::HttpError)]
#[case("402 Pay", 402, AttemptFailureKind::ProviderAuthFailed)]
#[case("407 Proxy", 407, AttemptFailureKind::ConnectFailed)]
#[case("404 No", 404, AttemptFailureKind::HttpError)]
#[case("401 No", 401, AttemptFailureKind::ProviderAuthFailed)]
#[case("403 No", 403, AttemptFailureKind::ProviderAuthFailed)]
#[case("400 No", 400, AttemptFailureKind::RejectedByProvider)]
#[case("413 No", 413, AttemptFailureKind::RejectedByProvider)]
#[case("422 No", 422, AttemptFailureKind::RejectedByProvider)]
#[case("429 Slow", 429, AttemptFailureKind::Overloaded)]
#[case("503 Later", 503, AttemptFailureKind::Overloaded)]
#[case("529 Full", 529, AttemptFailureKind::Overloaded)]
#[case("201 Made", 201, AttemptFailureKind::InvalidResponse)]
#[tokio::test]
async fn failure_kind_follows_status(#[case] line: &str, #[case] code: u16, #[case] kind: AttemptFailureKind) {
    let failure = failure(status(line, "")).await;
    assert_eq!((failure.kind, failure.upstream_status, failure.retry_after), (kind, Some(code), None));
}

#[rstest]
#[case("429 Slow", "retry-after: 7\r\n", 7_000)]
#[case("503 Later", "retry-after-ms: 1500\r\nretry-after: 2\r\n", 1_500)]
#[case("529 Full", "date: Fri, 31 Dec 1999 23:59:29 GMT\r\nretry-after: Fri, 31 Dec 1999 23:59:59 GMT\r\n", 30_000)]
#[tokio::test]
async fn failure_contains_retry_after(#[case] line: &str, #[case] headers: &str, #[case] milliseconds: u64) {
    let failure = failure(status(line, headers)).await;
    assert_eq!(failure.kind, AttemptFailureKind::Overloaded);
    assert_eq!(failure.retry_after, Some(Duration::from_millis(milliseconds)));
}

/// The clock of the client is at the beginning of 1970.
#[tokio::test]
async fn retry_after_as_a_date_needs_no_date_of_the_response() {
    let failure = failure(status("503 Later", "retry-after: Thu, 01 Jan 1970 00:00:30 GMT\r\n")).await;
    assert_eq!(failure.retry_after, Some(Duration::from_secs(30)));
}

/// The beginning of a long error body says as much as the whole of a short one.
#[rstest]
#[case::announced(|body: &str| format!("content-length: {}\r\n\r\n{body}", body.len()))]
#[case::chunked(|body: &str| format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()))]
#[case::incomplete(|body: &str| format!("content-length: {}\r\n\r\n{body}", body.len() + 1))]
#[tokio::test]
async fn beginning_of_long_error_body_is_read(#[case] framed: fn(&str) -> String) {
    let long = "state ".repeat(100_000);
    let body = format!(r#"{{"error":{{"code":"insufficient_quota","message":"No money left: {long}"}}}}"#);
    let answer = format!("HTTP/1.1 429 Slow\r\ncontent-type: application/json\r\n{}", framed(&body));
    let upstream = Upstream::answering(answer).await;
    let failure = decide(&provider(&upstream)).await.unwrap_err();
    assert_eq!((failure.kind, failure.upstream_status), (AttemptFailureKind::ProviderAuthFailed, Some(429)));
    let reported = failure.provider_error.unwrap();
    assert_eq!(reported.code.as_deref(), Some("insufficient_quota"));
    assert!(reported.message.unwrap().starts_with("No money left: state state"));
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let elsewhere = Upstream::answering(support::ok(support::ANSWER)).await;
    let target = elsewhere.base_url();
    for code in [301, 302, 303, 307, 308] {
        let failure = failure(status(&format!("{code} Over there"), &format!("location: {target}\r\n"))).await;
        assert_eq!((failure.kind, failure.upstream_status), (AttemptFailureKind::HttpError, Some(code)));
    }
    assert_eq!(elsewhere.seen(), 0);
}

#[rstest]
#[case::html("text/html", format!("<h1>{THEIRS}</h1>"), "the provider's answer is not JSON")]
#[case::stream("text/event-stream", format!("data: {THEIRS}"), "the provider's answer is not JSON")]
#[case::text("text/plain", format!("{{{THEIRS}"), "the provider's answer is malformed")]
#[case::damaged("application/json", format!("\u{1f}{THEIRS}"), "the provider's answer is malformed")]
#[case::truncated("application/json", r#"{"answers":{"a":"#.to_owned() + "\"" + THEIRS, "the provider's answer is malformed")]
#[case::not_a_number("application/json", r#"{"answers":{"a":NaN}}"#.to_owned(), "the provider's answer is malformed")]
#[case::empty("application/json", String::new(), "the provider's answer is malformed")]
#[case::no_answers("application/json", format!(r#"{{"error":"{THEIRS}"}}"#), "the provider's answer holds no answers")]
#[case::usage("application/json", r#"{"answers":{},"usage":{"input_tokens":-1}}"#.to_owned(), "the provider's token counts are malformed")]
#[case::deep("application/json", format!(r#"{{"answers":{{"a":{}{}}}}}"#, "[".repeat(9999), "]".repeat(9999)), "the provider's answer is nested too deeply")]
#[tokio::test]
async fn answer_that_is_not_json_fails(#[case] media_type: &str, #[case] body: String, #[case] detail: &str) {
    let length = body.len();
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\r\n{body}");
    let failure = failure(answer).await;
    assert_eq!((failure.kind, failure.upstream_status), (AttemptFailureKind::InvalidResponse, Some(200)));
    assert_eq!(failure.detail, detail);
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn wrapped(headers: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// The text of an answer decides, not its headers.
#[tokio::test]
async fn answer_is_read_in_any_wrapping() {
    let plain = support::ANSWER.as_bytes();
    let marked = [b"\xef\xbb\xbf", plain].concat();
    for headers in [
        "",
        "content-type: Application/JSON; charset=utf-8\r\n",
        "content-type: application/problem+json\r\n",
        "content-type: text/json\r\n",
        "content-type: text/plain; charset=utf-8\r\n",
        "content-type: text/html\r\n",
        "content-type: application/octet-stream\r\n",
        "content-type: binary/octet-stream\r\ncontent-encoding: gzip\r\n",
        "content-type: application/json\r\ncontent-encoding: x-gzip\r\n",
    ] {
        for body in [plain.to_vec(), marked.clone(), gzip(plain), gzip(&marked)] {
            let upstream = Upstream::answering(wrapped(headers, &body)).await;
            let answer = decide(&provider(&upstream)).await.unwrap();
            assert_eq!(answer.usage.unwrap().input_tokens, 3, "{headers} {body:?}");
        }
    }
}

/// Returns a provider whose answers are limited.
fn bounded(upstream: &Upstream, max_response_bytes: usize) -> Arc<dyn DecisionProvider> {
    let usual = ProviderSettings::new("acme".parse().unwrap(), upstream.base_url(), Wire::SystemOne);
    let settings = ProviderSettings { max_response_bytes, ..usual };
    support::provider_of(&support::settings(), Wire::SystemOne, settings)
}

#[tokio::test]
async fn decompressed_answer_is_limited() {
    let bomb = gzip(&vec![b' '; 4 << 20]);
    let upstream = Upstream::answering(wrapped("content-encoding: gzip\r\n", &bomb)).await;
    let failure = decide(&bounded(&upstream, 1 << 20)).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.detail.as_str()),
        (AttemptFailureKind::InvalidResponse, "the provider's answer is too long")
    );
}

#[tokio::test]
async fn unusable_answer_reports_usage_in_any_wrapping() {
    let unusable = br#"{"answers":7,"usage":{"input_tokens":7,"output_tokens":2}}"#;
    for body in [unusable.to_vec(), gzip(unusable)] {
        let failure = failure(wrapped("content-type: text/plain\r\n", &body)).await;
        assert_eq!((failure.kind, failure.usage.unwrap().input_tokens), (AttemptFailureKind::InvalidResponse, 7));
    }
}

#[tokio::test]
async fn chunked_answer_is_joined() {
    let mut answer =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    for chunk in support::ANSWER.as_bytes().chunks(5) {
        write!(answer, "{:x}\r\n{}\r\n", chunk.len(), std::str::from_utf8(chunk).unwrap()).unwrap();
    }
    let upstream = Upstream::answering(answer + "0\r\n\r\n").await;
    let answer = decide(&provider(&upstream)).await.unwrap();
    assert_eq!(answer.answers.text(), r#"{"a":{"type":"noul","noul":0.5}}"#);
    assert_eq!(answer.usage.unwrap().input_tokens, 3);
}

#[tokio::test]
async fn refused_connection_fails() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let failure = decide(&provider_with(&support::settings(), &base_url)).await.unwrap_err();
    assert_eq!((failure.kind, failure.upstream_status), (AttemptFailureKind::ConnectFailed, None));
    assert_eq!(failure.detail, "the connection was refused");
}

#[rstest]
#[case::at_once(false)]
#[case::after_the_request(true)]
#[tokio::test]
async fn reset_connection_fails(#[case] reads: bool) {
    let upstream = Upstream::start(move |mut socket| async move {
        if reads {
            read_request(&mut socket).await;
        }
        socket.set_zero_linger().unwrap();
    })
    .await;
    let failure = decide(&provider(&upstream)).await.unwrap_err();
    assert_eq!((failure.kind, failure.upstream_status), (AttemptFailureKind::ConnectionLost, None));
    assert_eq!(upstream.seen(), 1, "a fresh connection that broke is not tried again");
}

#[rstest]
#[case::no_http("SSH-2.0-server\r\n\r\n", AttemptFailureKind::InvalidResponse, "the provider's answer is not HTTP")]
#[case::nothing("", AttemptFailureKind::ConnectionLost, "the connection broke before the answer")]
#[case::half_a_body(
    "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"answers\"",
    AttemptFailureKind::InvalidResponse,
    "the connection broke within the answer"
)]
#[tokio::test]
async fn truncated_answer_fails(#[case] bytes: &'static str, #[case] kind: AttemptFailureKind, #[case] detail: &str) {
    let upstream = Upstream::start(move |mut socket| async move {
        read_request(&mut socket).await;
        socket.write_all(bytes.as_bytes()).await.unwrap();
    })
    .await;
    let failure = decide(&provider(&upstream)).await.unwrap_err();
    assert_eq!((failure.kind, failure.detail.as_str()), (kind, detail));
}

#[tokio::test]
async fn endless_answer_is_dropped_at_limit() {
    const GIGABYTE: u64 = 1 << 30;
    let (taken, end) = (Arc::new(AtomicU64::new(0)), Arc::new(tokio::sync::Notify::new()));
    let (counted, ended) = (Arc::clone(&taken), Arc::clone(&end));
    let upstream = Upstream::start(move |mut socket| {
        let (counted, ended) = (Arc::clone(&counted), Arc::clone(&ended));
        async move {
            read_request(&mut socket).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
            socket.write_all(head.as_bytes()).await.unwrap();
            let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
            while counted.load(Ordering::SeqCst) < GIGABYTE && socket.write_all(&chunk).await.is_ok() {
                counted.fetch_add(0x10000, Ordering::SeqCst);
            }
            ended.notify_one();
        }
    })
    .await;
    let failure = decide(&bounded(&upstream, 1 << 20)).await.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::InvalidResponse);
    assert_eq!(failure.detail, "the provider's answer is too long");
    tokio::time::timeout(support::AMPLE, end.notified()).await.expect("the connection is closed on the provider");
    // The limit, plus the kernel's socket buffers.
    assert!(taken.load(Ordering::SeqCst) < 64 << 20, "{} bytes were taken", taken.load(Ordering::SeqCst));
}

#[tokio::test]
async fn announced_length_above_limit_fails_at_once() {
    let upstream = Upstream::start(|mut socket| async move {
        read_request(&mut socket).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1073741824\r\n\r\n";
        socket.write_all(head.as_bytes()).await.unwrap();
        closed(&mut socket).await;
    })
    .await;
    let answer = tokio::time::timeout(support::AMPLE / 2, async { decide(&provider(&upstream)).await });
    assert_eq!(answer.await.unwrap().unwrap_err().detail, "the provider's answer is too long");
}

#[tokio::test]
async fn answer_at_limit_is_accepted() {
    let upstream = Upstream::answering(support::ok(support::ANSWER)).await;
    for (max_response_bytes, fits) in [(support::ANSWER.len(), true), (support::ANSWER.len() - 1, false)] {
        let answer = decide(&bounded(&upstream, max_response_bytes)).await;
        assert_eq!(answer.is_ok(), fits, "{max_response_bytes}");
    }
}
