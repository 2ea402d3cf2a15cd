//! Outbound requests, header by header and byte by byte, and their reports.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use adapters_provider::ProviderSettings;
use async_trait::async_trait;
use domain::decision::{
    AssetPart, ClientConnection, DecisionProvider, NeverDisconnects, ProviderAnswer, ProviderCall, SentBytes,
};
use domain::pricing::ReportedUsage;
use domain::question::{ConfidenceSource, ProviderInput};
use domain::routing::{AttemptFailure, AttemptFailureKind, Endpoint, FailureCause, Wire};
use domain::secret::SecretString;
use http_client::HttpClientSettings;
use rstest::rstest;
use support::{AMPLE, Upstream, closed, endpoint_of, read_request};
use wires::provider::ModelLocation;
use wires::system_one::ResponseWrapper;

const NOUL: &str = r#"{"model":"acme/judge","state":"s","questions":{"a":{"type":"noul","instructions":"?"}},"session_id":"private-session","trace":{"t":"private-trace"},"user":"private-user"}"#;

fn answer_of(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAiDecisions => r#"{"answers":[{"type":"predicate","name":"a","probability":0.5}]}"#,
        Wire::GeminiDecisions => r#"{"answers":{"a":{"type":"noul","noul":0.5,"confidence":0.5}}}"#,
        Wire::SglangDecisions => r#"{"answers":{"a":{"type":"yes_no","probabilities":{"yes":0.5,"no":0.5}}}}"#,
        Wire::SystemOne | Wire::ChatCompletions | Wire::Sandbox => r#"{"answers":{"a":{"type":"noul","noul":0.5}}}"#,
    }
}

fn settings_of(wire: Wire, upstream: &Upstream) -> ProviderSettings {
    ProviderSettings {
        api_key: Some(SecretString::new("sk-provider")),
        ..ProviderSettings::new("acme".parse().unwrap(), upstream.base_url(), wire)
    }
}

fn call(endpoint: Endpoint, provider_input: Arc<ProviderInput>) -> ProviderCall {
    ProviderCall {
        endpoint: Arc::new(endpoint),
        provider_input,
        timeout: AMPLE,
        client: Arc::new(NeverDisconnects),
        sent: SentBytes::default(),
    }
}

fn provider(wire: Wire, settings: ProviderSettings) -> Arc<dyn DecisionProvider> {
    support::provider_of(&support::settings(), wire, settings)
}

async fn decide(
    wire: Wire,
    settings: ProviderSettings,
    provider_input: Arc<ProviderInput>,
) -> Result<ProviderAnswer, AttemptFailure> {
    provider(wire, settings).decide(call(endpoint_of(wire), provider_input)).await
}

fn heads(head: &str) -> (String, Vec<String>) {
    let mut lines: Vec<String> = head.trim_end().lines().map(str::to_owned).collect();
    let first = lines.remove(0);
    lines.sort_unstable();
    (first, lines)
}

#[rstest]
#[case(Wire::SystemOne, "systemone", "authorization: Bearer sk-provider")]
#[case(Wire::OpenAiDecisions, "decisions", "authorization: Bearer sk-provider")]
#[case(Wire::GeminiDecisions, "decisions", "x-goog-api-key: sk-provider")]
#[case(Wire::SglangDecisions, "decisions", "authorization: Bearer sk-provider")]
#[tokio::test]
async fn provider_receives_only_questions_and_state(#[case] wire: Wire, #[case] path: &str, #[case] key: &str) {
    let (upstream, mut requests) = Upstream::recording(support::ok(answer_of(wire))).await;
    let asked = support::request(NOUL);
    assert_eq!(asked.user.as_deref(), Some("private-user"), "the caller sent what must not get out");
    let answer = decide(wire, settings_of(wire, &upstream), asked.provider_input).await.unwrap();
    let (head, body) = requests.recv().await.unwrap();
    let body = String::from_utf8(body).unwrap();
    assert!(!body.contains("private"), "{body}");
    assert_eq!(answer.sent_bytes, body.len() as u64);
    let (first, lines) = heads(&head);
    assert_eq!(first, format!("POST /v1/{path} HTTP/1.1"));
    let mut expected = [
        "accept: application/json".to_owned(),
        "accept-encoding: identity".to_owned(),
        key.to_owned(),
        format!("content-length: {}", body.len()),
        "content-type: application/json".to_owned(),
        format!("host: {}", upstream.address),
        "user-agent: tollgate-test/1".to_owned(),
    ];
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn request_without_key_has_no_auth_header() {
    let (upstream, mut requests) = Upstream::recording(support::ok(support::ANSWER)).await;
    let settings = ProviderSettings {
        path: "/api/alpha/decisions".to_owned(),
        api_key: None,
        ..settings_of(Wire::SystemOne, &upstream)
    };
    decide(Wire::SystemOne, settings, support::provider_input(NOUL)).await.unwrap();
    let (head, _) = requests.recv().await.unwrap();
    assert!(head.starts_with("POST /v1/api/alpha/decisions HTTP/1.1\r\n"), "{head}");
    assert!(!head.contains("authorization"), "{head}");
}

#[tokio::test]
async fn settings_select_dialect() {
    let answer = r#"{"result":{"answers":{"a":{"type":"noul","noul":0.5}}},"success":true}"#;
    let (upstream, mut requests) = Upstream::recording(support::ok(answer)).await;
    let settings = ProviderSettings {
        path: "ai/run/{model}".to_owned(),
        model_location: ModelLocation::Both,
        auth_header: "X-Auth-Key".to_owned(),
        auth_scheme: "Basic".to_owned(),
        headers: vec![("TypeSafe-Danger-Zone-Images".to_owned(), "true".to_owned())],
        response_wrapper: ResponseWrapper::WorkersAi,
        ..settings_of(Wire::SystemOne, &upstream)
    };
    let endpoint = Endpoint { upstream_model: "@cf/cloudflare/clef é".into(), ..endpoint_of(Wire::SystemOne) };
    let provider = provider(Wire::SystemOne, settings);
    let answer = provider.decide(call(endpoint, support::provider_input(NOUL))).await.unwrap();
    assert_eq!(answer.answers.text(), r#"{"a":{"type":"noul","noul":0.5}}"#);
    let (head, body) = requests.recv().await.unwrap();
    assert!(head.starts_with("POST /v1/ai/run/@cf/cloudflare/clef%20%C3%A9 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nx-auth-key: Basic sk-provider\r\n"), "{head}");
    assert!(head.contains("\r\ntypesafe-danger-zone-images: true\r\n"), "{head}");
    assert!(!head.contains("authorization"), "{head}");
    assert!(String::from_utf8(body).unwrap().starts_with(r#"{"model":"clef é","state":"s","#));
}

#[tokio::test]
async fn multipart_assets_are_sent_as_parts() {
    let (upstream, mut requests) = Upstream::recording(support::ok(support::ANSWER)).await;
    let body = r#"{"model":"m","state":"see pic","questions":{"a":{"type":"noul","instructions":"?"}},"assets":{"pic":{"type":"image","part":"asset-0"}}}"#;
    let data: Arc<[u8]> = (0..=255).collect();
    let part =
        AssetPart { name: "asset-0".to_owned(), media_type: Some("image/png".to_owned()), data: Arc::clone(&data) };
    let asked = support::request_with(body, vec![part]).provider_input;
    let answer = decide(Wire::SystemOne, settings_of(Wire::SystemOne, &upstream), asked).await.unwrap();
    let (head, sent) = requests.recv().await.unwrap();
    assert!(head.contains("content-type: multipart/form-data; boundary=tollgate-part-0000000000000000\r\n"), "{head}");
    assert!(head.contains(&format!("content-length: {}\r\n", sent.len())), "{head}");
    assert!(sent.windows(data.len()).any(|window| window == &data[..]));
    assert_eq!(answer.sent_bytes, sent.len() as u64);
}

const SINGLES: &str = r#"{"model":"m","state":"s","questions":{"only option":{"type":"choice","criteria":{"x":null}},"a":{"type":"noul","instructions":"?"},"only level":{"type":"score","criteria":[{"l":1.50}]}}}"#;
const ONLY_SINGLES: &str = r#"{"model":"m","state":"s","questions":{"only option":{"type":"choice","criteria":{"x":null}},"only level":{"type":"score","criteria":["l"]}}}"#;

#[rstest]
#[tokio::test]
async fn single_outcome_is_answered_locally(
    #[values(Wire::OpenAiDecisions, Wire::GeminiDecisions, Wire::SglangDecisions)] wire: Wire,
) {
    let (upstream, mut requests) = Upstream::recording(support::ok(answer_of(wire))).await;
    let answer = decide(wire, settings_of(wire, &upstream), support::provider_input(SINGLES)).await.unwrap();
    let (_, body) = requests.recv().await.unwrap();
    let body = String::from_utf8(body).unwrap();
    assert!(!body.contains("only"), "{body}");
    let answers = answer.answers.members().unwrap();
    let names: Vec<&str> = answers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["only option", "a", "only level"]);
    assert_eq!(answers[0].1.text(), r#"{"type":"choice","choice":"x","probabilities":{"x":1}}"#);
    let score = r#"{"type":"score","score":0,"legend":{"0":{"l":1.50}},"probabilities":{"0":1}}"#;
    assert_eq!(answers[2].1.text(), score);
}

#[rstest]
#[case(Wire::OpenAiDecisions, ResponseWrapper::None)]
#[case(Wire::GeminiDecisions, ResponseWrapper::None)]
#[case(Wire::SglangDecisions, ResponseWrapper::None)]
#[case(Wire::SystemOne, ResponseWrapper::WorkersAi)]
#[tokio::test]
async fn provider_is_not_called_when_no_question_is_left(
    #[case] wire: Wire,
    #[case] response_wrapper: ResponseWrapper,
) {
    let upstream = Upstream::answering(support::ok(answer_of(wire))).await;
    let settings = ProviderSettings { response_wrapper, ..settings_of(wire, &upstream) };
    let endpoint = Endpoint { confidence: ConfidenceSource::Native, ..endpoint_of(wire) };
    let answer = provider(wire, settings).decide(call(endpoint, support::provider_input(ONLY_SINGLES))).await.unwrap();
    assert_eq!(upstream.seen(), 0);
    assert_eq!(answer.sent_bytes, 0);
    assert_eq!(answer.usage, Some(ReportedUsage { input_tokens: 0, output_tokens: 0 }));
    let expected = concat!(
        r#"{"only option":{"type":"choice","choice":"x","probabilities":{"x":1},"confidence":1},"#,
        r#""only level":{"type":"score","score":0,"legend":{"0":"l"},"probabilities":{"0":1},"confidence":1}}"#
    );
    assert_eq!(answer.answers.text(), expected);
}

/// Answers to other questions are kept, so that the check of the whole answer finds them.
#[tokio::test]
async fn additional_answers_are_kept() {
    let answer = r#"{"result":{"answers":{"a":{"type":"noul","noul":0.5},"only_option":{},"more":{}}},"success":true}"#;
    let upstream = Upstream::answering(support::ok(answer)).await;
    let settings =
        ProviderSettings { response_wrapper: ResponseWrapper::WorkersAi, ..settings_of(Wire::SystemOne, &upstream) };
    let asked = r#"{"model":"m","state":"s","questions":{"only_option":{"type":"choice","criteria":{"x":null}},"a":{"type":"noul","instructions":"?"}}}"#;
    let answer = decide(Wire::SystemOne, settings, support::provider_input(asked)).await.unwrap();
    let names: Vec<String> = answer.answers.members().unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["only_option", "a", "only_option", "more"]);
}

#[tokio::test]
async fn plain_system_one_sends_single_outcomes() {
    let answer = r#"{"answers":{"only option":{},"only level":{}}}"#;
    let (upstream, mut requests) = Upstream::recording(support::ok(answer)).await;
    decide(Wire::SystemOne, settings_of(Wire::SystemOne, &upstream), support::provider_input(ONLY_SINGLES))
        .await
        .unwrap();
    assert!(String::from_utf8(requests.recv().await.unwrap().1).unwrap().contains("only level"));
}

#[tokio::test]
async fn unsupported_input_is_not_sent() {
    let upstream = Upstream::answering(support::ok(support::ANSWER)).await;
    let asked = support::provider_input(r#"{"model":"m","questions":"private?"}"#);
    for wire in [Wire::OpenAiDecisions, Wire::GeminiDecisions, Wire::SglangDecisions] {
        let failure = decide(wire, settings_of(wire, &upstream), Arc::clone(&asked)).await.unwrap_err();
        assert_eq!((failure.kind, failure.sent_bytes), (AttemptFailureKind::RejectedByProvider, 0));
        assert_eq!(failure.detail, "the provider was not asked: its wire takes no questions of this form");
    }
    assert_eq!(upstream.seen(), 0);
}

/// The number of sent bytes is known for every outcome: the whole body, or 0 without a connection.
#[tokio::test]
async fn failure_reports_sent_bytes() {
    let body = br#"{"model":"judge-1.0","state":"s","questions":{"a":{"type":"noul","instructions":"?"}}}"#;
    let whole = body.len() as u64;
    for (answer, sent, usage) in [
        ("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n".to_owned(), whole, None),
        ("HTTP/1.1 400 No\r\ncontent-length: 0\r\n\r\n".to_owned(), whole, None),
        ("SSH-2.0-server\r\n\r\n".to_owned(), whole, None),
        (support::ok("no json"), whole, None),
        (support::ok(r#"{"usage":{"input_tokens":7,"output_tokens":1}}"#), whole, Some((7, 1))),
    ] {
        let upstream = Upstream::answering(answer.clone()).await;
        let settings = settings_of(Wire::SystemOne, &upstream);
        let failure = decide(Wire::SystemOne, settings, support::provider_input(NOUL)).await.unwrap_err();
        assert_eq!(failure.sent_bytes, sent, "{answer}");
        assert_eq!(failure.usage.map(|usage| (usage.input_tokens, usage.output_tokens)), usage, "{answer}");
    }
    let gone = Upstream::start(|mut socket| async move {
        read_request(&mut socket).await;
        socket.set_zero_linger().unwrap();
    })
    .await;
    let failure = decide(Wire::SystemOne, settings_of(Wire::SystemOne, &gone), support::provider_input(NOUL)).await;
    assert_eq!(failure.unwrap_err().sent_bytes, whole);

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let nobody = ProviderSettings::new("acme".parse().unwrap(), base_url, Wire::SystemOne);
    let failure = decide(Wire::SystemOne, nobody, support::provider_input(NOUL)).await.unwrap_err();
    assert_eq!((failure.kind, failure.sent_bytes), (AttemptFailureKind::ConnectFailed, 0));
}

struct LeavesAfter(Duration);

#[async_trait]
impl ClientConnection for LeavesAfter {
    async fn disconnected(&self) {
        tokio::time::sleep(self.0).await;
    }
}

#[rstest]
#[case::timed_out(Duration::from_millis(100), AMPLE, AttemptFailureKind::TimedOut)]
#[case::given_up(AMPLE, Duration::from_millis(100), AttemptFailureKind::ClientDisconnected)]
#[tokio::test]
async fn cancelled_attempt_reports_sent_bytes(
    #[case] timeout: Duration,
    #[case] leaves: Duration,
    #[case] kind: AttemptFailureKind,
) {
    let upstream = Upstream::start(|mut socket| async move {
        read_request(&mut socket).await;
        closed(&mut socket).await;
    })
    .await;
    let asked = support::provider_input(NOUL);
    let attempt = |settings: &HttpClientSettings, base_url: &str| {
        let provider = support::provider_with(settings, base_url);
        let call = call(endpoint_of(Wire::SystemOne), Arc::clone(&asked));
        async move {
            provider.decide(ProviderCall { timeout, client: Arc::new(LeavesAfter(leaves)), ..call }).await.unwrap_err()
        }
    };
    let failure = attempt(&support::settings(), &upstream.base_url()).await;
    assert_eq!((failure.kind, failure.sent_bytes), (kind, 86));

    // The server accepts the connection and never speaks TLS: no byte of the request was sent.
    let secure = format!("https://{}", upstream.address);
    let trusting = HttpClientSettings { extra_ca_file: Some(support::fixture("ca.pem")), ..support::settings() };
    let failure = attempt(&trusting, &secure).await;
    assert_eq!((failure.kind, failure.sent_bytes), (kind, 0));
}

fn error(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

const QUOTA: &str = r#"{"error":{"message":"private","type":"insufficient_quota","code":"insufficient_quota"}}"#;
const RATE: &str = r#"{"error":{"message":"private","type":"requests","code":"rate_limit_exceeded"}}"#;
const NEURONS: &str = r#"{"success":false,"errors":[{"code":4006,"message":"private"}]}"#;
const KEY: &str = r#"{"error":{"code":400,"message":"private","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#;
const DELAY: &str =
    r#"{"error":{"code":429,"message":"private","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"1.5s"}]}}"#;

#[rstest]
#[case(Wire::OpenAiDecisions, error("429 Slow", QUOTA), AttemptFailureKind::ProviderAuthFailed, None)]
#[case(Wire::OpenAiDecisions, error("429 Slow", RATE), AttemptFailureKind::Overloaded, None)]
#[case(Wire::OpenAiDecisions, error("402 Pay", QUOTA), AttemptFailureKind::ProviderAuthFailed, None)]
#[case(Wire::GeminiDecisions, error("400 No", KEY), AttemptFailureKind::ProviderAuthFailed, None)]
#[case(Wire::GeminiDecisions, error("429 Slow", DELAY), AttemptFailureKind::Overloaded, Some(1_500))]
#[case(Wire::SystemOne, error("429 Slow", NEURONS), AttemptFailureKind::ProviderAuthFailed, None)]
#[case(
    Wire::SystemOne,
    error("529 Full", r#"{"success":false,"errors":[{"code":5012}]}"#),
    AttemptFailureKind::Overloaded,
    None
)]
#[case(Wire::SystemOne, support::ok(NEURONS), AttemptFailureKind::ProviderAuthFailed, None)]
#[case::a_page(Wire::OpenAiDecisions, error("502 Oops", "<h1>private</h1>"), AttemptFailureKind::HttpError, None)]
#[tokio::test]
async fn error_body_refines_status(
    #[case] wire: Wire,
    #[case] answer: String,
    #[case] kind: AttemptFailureKind,
    #[case] wait: Option<u64>,
) {
    let upstream = Upstream::answering(answer).await;
    let response_wrapper = if wire == Wire::SystemOne { ResponseWrapper::WorkersAi } else { ResponseWrapper::None };
    let settings = ProviderSettings { response_wrapper, ..settings_of(wire, &upstream) };
    let failure = decide(wire, settings, support::provider_input(NOUL)).await.unwrap_err();
    assert_eq!((failure.kind, failure.retry_after), (kind, wait.map(Duration::from_millis)));
    assert!(failure.upstream_status.is_some());
    assert!(failure.sent_bytes > 0);
    assert!(!format!("{failure:?} {failure}").contains("private"));
}

#[tokio::test]
async fn longer_retry_after_wins() {
    for (header, milliseconds) in [(1, 1_500), (7, 7_000)] {
        let answer = error(&format!("429 Slow\r\nretry-after: {header}"), DELAY);
        let upstream = Upstream::answering(answer).await;
        let settings = settings_of(Wire::GeminiDecisions, &upstream);
        let failure = decide(Wire::GeminiDecisions, settings, support::provider_input(NOUL)).await.unwrap_err();
        assert_eq!(failure.retry_after, Some(Duration::from_millis(milliseconds)), "{header}");
    }
}

/// Trouble with our account on every wire, under every status that providers report it with.
#[tokio::test]
async fn account_trouble_is_recognised_on_every_wire() {
    let credit =
        r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#;
    let bodies = [
        (QUOTA, Some(FailureCause::AccountExhausted)),
        (credit, Some(FailureCause::AccountExhausted)),
        (KEY, Some(FailureCause::KeyRejected)),
        (RATE, None),
        (r#"{"error":{"message":"temperature must be a number","code":"invalid_value"}}"#, None),
    ];
    for wire in Wire::ALL.into_iter().filter(|wire| *wire != Wire::Sandbox) {
        for status in [400, 403, 429] {
            for (body, expected) in bodies {
                let upstream = Upstream::answering(error(&format!("{status} No"), body)).await;
                let settings = settings_of(wire, &upstream);
                let failure = decide(wire, settings, support::provider_input(NOUL)).await.unwrap_err();
                let by_status = AttemptFailure::from_status(status, None).kind;
                let kind = expected.map_or(by_status, |_| AttemptFailureKind::ProviderAuthFailed);
                assert_eq!((failure.kind, failure.cause), (kind, expected), "{wire:?} {status} {body}");
                assert!(!format!("{failure:?} {failure}").contains("credit balance"), "{failure:?}");
            }
        }
    }
}

/// The status is known, so the error body is not awaited.
#[tokio::test]
async fn error_without_body_counts_by_status() {
    use tokio::io::AsyncWriteExt;

    let upstream = Upstream::start(|mut socket| async move {
        read_request(&mut socket).await;
        socket.write_all(b"HTTP/1.1 429 Slow\r\nretry-after: 3\r\ncontent-length: 99\r\n\r\n{").await.unwrap();
        closed(&mut socket).await;
    })
    .await;
    let settings = settings_of(Wire::OpenAiDecisions, &upstream);
    let end = decide(Wire::OpenAiDecisions, settings, support::provider_input(NOUL));
    let failure = tokio::time::timeout(AMPLE / 4, end).await.unwrap().unwrap_err();
    assert_eq!((failure.kind, failure.upstream_status), (AttemptFailureKind::Overloaded, Some(429)));
    assert_eq!(failure.retry_after, Some(Duration::from_secs(3)));
}
