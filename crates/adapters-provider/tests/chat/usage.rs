//! The usage of the calls of an attempt is summed correctly, for every outcome.

use domain::pricing::ReportedUsage;
use domain::routing::{AttemptFailureKind, ChatMethod};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::model::{Does, Server, by, choice_of, error, label_answer, saying, stated_answer};
use crate::support;

const TWO: &str = r#"{"model":"m","state":"s","questions":{"a":{"type":"noul","instructions":"?"},"b":{"type":"noul","instructions":"!"}}}"#;

fn of(input_tokens: u64, output_tokens: u64) -> ReportedUsage {
    ReportedUsage { input_tokens, output_tokens }
}

fn label(body: &Value) -> Value {
    label_answer(body, &|_| 1.0)
}

fn without_usage(mut answer: Value) -> Value {
    answer["usage"].take();
    answer
}

fn bytes(requests: &[Value]) -> u64 {
    // Bodies have no duplicate members and no spaces between members, so the re-serialised length is the sent length.
    requests.iter().map(|body| body.to_string().len() as u64).sum()
}

#[tokio::test]
async fn usage_is_sum_of_calls() {
    let mut server = Server::start(|_, body| Does::Answer(200, label(body))).await;
    let answer = server.decide(&choice_of(40), by(ChatMethod::Logprobs)).await.unwrap();
    assert_eq!(answer.usage, Some(of(300, 3)));
    assert_eq!(answer.sent_bytes, bytes(&server.requests()));
}

#[tokio::test]
async fn usage_is_unknown_when_call_reports_none() {
    let mut server = Server::start(|place, body| {
        Does::Answer(200, if place == 1 { without_usage(label(body)) } else { label(body) })
    })
    .await;
    let answer = server.decide(&support::provider_input(TWO), by(ChatMethod::Logprobs)).await.unwrap();
    assert_eq!(answer.usage, None);
    assert_eq!(answer.sent_bytes, bytes(&server.requests()));
}

#[tokio::test]
async fn usage_includes_probe_and_not_rejection() {
    let server = Server::start(|place, body| match place {
        0 => Does::Answer(400, error("chat_template_kwargs")),
        1 => Does::Answer(200, saying("A")),
        _ => Does::Answer(200, stated_answer(body)),
    })
    .await;
    let answer = server.decide(&support::provider_input(TWO), by(ChatMethod::Auto)).await.unwrap();
    assert_eq!(answer.usage, Some(of(600, 80)));
}

#[tokio::test]
async fn failure_reports_usage_of_earlier_calls() {
    let mut server = Server::start(|place, body| match place {
        0 => Does::Answer(200, label(body)),
        _ => Does::Answer(503, json!({})),
    })
    .await;
    let failure = server.decide(&support::provider_input(TWO), by(ChatMethod::Logprobs)).await.unwrap_err();
    assert_eq!((failure.kind, failure.upstream_status), (AttemptFailureKind::Overloaded, Some(503)));
    assert_eq!(failure.usage, Some(of(100, 1)));
    assert_eq!(failure.sent_bytes, bytes(&server.requests()));
}

/// The other calls run when the first one fails: each is billed by its own end.
#[tokio::test]
async fn failure_waits_for_ends_of_running_calls() {
    let questions: Vec<String> =
        (0..5).map(|number| format!(r#""q{number}":{{"type":"noul","instructions":"?"}}"#)).collect();
    let input = format!(r#"{{"model":"m","state":"s","questions":{{{}}}}}"#, questions.join(","));
    for (status, usage) in [(401, of(100, 1)), (200, of(400, 4))] {
        let server = Server::start(move |place, body| match place {
            0 => Does::Answer(200, label(body)),
            1 => Does::Answer(503, json!({})),
            _ => Does::Late(status, label(body)),
        })
        .await;
        let failure = server.decide(&support::provider_input(&input), by(ChatMethod::Logprobs)).await.unwrap_err();
        assert_eq!((failure.upstream_status, failure.usage), (Some(503), Some(usage)));
    }
}

#[tokio::test]
async fn failure_reports_no_usage_when_not_billed() {
    let server = Server::start(|_, _| Does::Answer(503, json!({}))).await;
    let failure = server.decide(&support::provider_input(TWO), by(ChatMethod::Logprobs)).await.unwrap_err();
    assert_eq!((failure.upstream_status, failure.usage), (Some(503), None));
}

/// An error status means that the attempt is not billed.
#[tokio::test]
async fn failure_usage_is_unknown_when_other_call_may_be_billed() {
    let server = Server::start(|place, body| match place {
        0 => Does::Answer(200, without_usage(label(body))),
        _ => Does::Answer(503, json!({})),
    })
    .await;
    let failure = server.decide(&support::provider_input(TWO), by(ChatMethod::Logprobs)).await.unwrap_err();
    assert_eq!((failure.kind, failure.upstream_status), (AttemptFailureKind::Overloaded, None));
    assert_eq!(failure.usage, None);
    assert!(failure.sent_bytes > 0);
}

#[tokio::test]
async fn usage_is_unknown_when_connection_breaks() {
    let mut server = Server::start(|place, body| match place {
        0 => Does::Answer(200, label(body)),
        _ => Does::Close,
    })
    .await;
    let failure = server.decide(&support::provider_input(TWO), by(ChatMethod::Logprobs)).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.upstream_status, failure.usage),
        (AttemptFailureKind::ConnectionLost, None, None)
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "the connection was kept, so the second call is repeated");
    assert_eq!(failure.sent_bytes, bytes(&requests[..2]), "a repeated call counts once");
}

#[tokio::test]
async fn usage_includes_unusable_answer() {
    let server = Server::start(|_, _| Does::Answer(200, saying("no JSON"))).await;
    let failure = server.decide(&support::provider_input(TWO), by(ChatMethod::Structured)).await.unwrap_err();
    assert_eq!((failure.kind, failure.upstream_status), (AttemptFailureKind::InvalidResponse, Some(200)));
    assert_eq!(failure.usage, Some(of(300, 40)));
}

#[tokio::test]
async fn error_with_status_200_is_not_billed() {
    let guised = json!({"error": {"code": 429, "message": "slow down"}});
    let server = Server::start(move |_, _| Does::Answer(200, guised.clone())).await;
    let failure = server.decide(&support::provider_input(TWO), by(ChatMethod::Auto)).await.unwrap_err();
    assert_eq!((failure.kind, failure.upstream_status), (AttemptFailureKind::Overloaded, Some(429)));
    assert_eq!(failure.usage, None);
}

/// The first call is answered, and the connection of the second is refused.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the runtime of a test ends with it")]
async fn usage_of_earlier_calls_is_reported_when_a_later_one_never_connects() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, answered) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let mut socket = listener.accept().await.unwrap().0;
        drop(listener);
        let body: Value = serde_json::from_slice(&support::read_request(&mut socket).await.unwrap().1).unwrap();
        let answer = label(&body).to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
        let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
        socket.write_all(answer.as_bytes()).await.unwrap();
        tell.send(body).unwrap();
    });
    let wire = domain::routing::Wire::ChatCompletions;
    let settings = adapters_provider::ProviderSettings::new("acme".parse().unwrap(), base_url, wire);
    let provider = support::provider_of(&support::settings(), wire, settings);
    let call = crate::model::call(&support::provider_input(TWO), by(ChatMethod::Logprobs), support::AMPLE);
    let failure = domain::decision::DecisionProvider::decide(&*provider, call).await.unwrap_err();
    assert_eq!((failure.kind, failure.usage), (AttemptFailureKind::ConnectFailed, Some(of(100, 1))));
    assert_eq!(failure.sent_bytes, bytes(&[answered.await.unwrap()]), "the second body never left");
}

#[tokio::test]
async fn refused_connection_is_not_billed() {
    let server = Server::start(|_, _| Does::Close).await;
    let settings = adapters_provider::ProviderSettings::new(
        "acme".parse().unwrap(),
        "http://127.0.0.1:9",
        domain::routing::Wire::ChatCompletions,
    );
    drop(server);
    let wire = domain::routing::Wire::ChatCompletions;
    let provider = support::provider_of(&support::settings(), wire, settings);
    let call = crate::model::call(&support::provider_input(TWO), by(ChatMethod::Auto), support::AMPLE);
    let failure = domain::decision::DecisionProvider::decide(&*provider, call).await.unwrap_err();
    assert_eq!((failure.kind, failure.sent_bytes, failure.usage), (AttemptFailureKind::ConnectFailed, 0, None));
}
