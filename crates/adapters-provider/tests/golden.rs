//! The `system-one` wire against files: what a caller wrote, what goes upstream, what comes back, what it is read as.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use adapters_provider::system_one::{request, response};
use rstest::rstest;
use support::Upstream;

fn golden(case: &str, part: &str) -> String {
    let path = format!("{}/tests/golden/{case}.{part}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().trim_end_matches('\n').to_owned()
}

#[rstest]
fn bytes_are_as_on_file(#[values("noul", "choice", "score", "opaque_string", "opaque_array")] case: &str) {
    let asked = support::request(&golden(case, "caller"));
    let body = request::write("judge-1.0", asked.state.as_ref(), &asked.questions.json);
    assert_eq!(std::str::from_utf8(&body).unwrap(), golden(case, "request"));

    let answer = response::read(golden(case, "response").as_bytes()).unwrap();
    let count = |tokens: Option<u64>| tokens.map_or("null".to_owned(), |tokens| tokens.to_string());
    let read = format!(
        r#"{{"answers":{},"input_tokens":{},"output_tokens":{}}}"#,
        answer.answers.text(),
        count(answer.usage.map(|usage| usage.input_tokens)),
        count(answer.usage.map(|usage| usage.output_tokens)),
    );
    assert_eq!(read, golden(case, "answer"));
}

#[test]
fn an_odd_model_name_is_escaped() {
    let asked = support::request(r#"{"model":"m","questions":"?"}"#);
    let body = request::write("a\"b\n", None, &asked.questions.json);
    assert_eq!(&body[..], br#"{"model":"a\"b\n","questions":"?"}"#);
}

/// What leaves the process, header by header and byte by byte.
#[tokio::test]
async fn a_provider_sees_questions_and_state_and_nothing_else() {
    use domain::decision::{DecisionProvider, ProviderCall};
    use tokio::io::AsyncWriteExt;

    let (tell, mut requests) = tokio::sync::mpsc::unbounded_channel();
    let upstream = Upstream::start(move |mut socket| {
        let tell = tell.clone();
        async move {
            tell.send(support::read_request(&mut socket).await.unwrap()).unwrap();
            socket.write_all(support::ok(support::ANSWER).as_bytes()).await.unwrap();
            support::closed(&mut socket).await;
        }
    })
    .await;
    let asked = support::request(&golden("noul", "caller"));
    assert_eq!(asked.user.as_deref(), Some("private-user"), "the caller sent what must not get out");
    let call = ProviderCall { request: std::sync::Arc::new(asked), ..support::call() };
    let answer = support::provider(&upstream).decide(call).await.unwrap();
    let (head, body) = requests.recv().await.unwrap();
    let body = String::from_utf8(body).unwrap();
    assert_eq!(body, golden("noul", "request"));
    assert_eq!(answer.sent_bytes, body.len() as u64);

    let mut lines: Vec<&str> = head.trim_end().lines().collect();
    assert_eq!(lines.remove(0), "POST /v1/systemone HTTP/1.1");
    lines.sort_unstable();
    let (length, host) = (format!("content-length: {}", body.len()), format!("host: {}", upstream.address));
    let expected = [
        "accept: application/json",
        "authorization: Bearer sk-provider",
        &length,
        "content-type: application/json",
        &host,
        "user-agent: tollgate-test/1",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn without_a_key_there_is_no_authorization() {
    use adapters_provider::{HttpClient, SystemOneProvider, SystemOneSettings};
    use tokio::io::AsyncWriteExt;

    let (tell, mut requests) = tokio::sync::mpsc::unbounded_channel();
    let upstream = Upstream::start(move |mut socket| {
        let tell = tell.clone();
        async move {
            tell.send(support::read_request(&mut socket).await.unwrap().0).unwrap();
            socket.write_all(support::ok(support::ANSWER).as_bytes()).await.unwrap();
        }
    })
    .await;
    let settings = SystemOneSettings {
        path: "/api/alpha/decisions".to_owned(),
        ..SystemOneSettings::new("acme".parse().unwrap(), upstream.base_url())
    };
    let client = HttpClient::new(&support::settings()).unwrap();
    support::decide(&SystemOneProvider::new(client, settings).unwrap()).await.unwrap();
    let head = requests.recv().await.unwrap();
    assert!(head.starts_with("POST /v1/api/alpha/decisions HTTP/1.1\r\n"), "{head}");
    assert!(!head.contains("authorization"), "{head}");
}
