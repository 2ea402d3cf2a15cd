//! Accepted and rejected JSON bodies.

use super::gateway::{BASE, Caller, Gateway, Setup, answer};

const PATH: &str = "/api/alpha/decisions";

async fn refused(gateway: &Gateway, body: impl AsRef<[u8]>) -> String {
    let reply = gateway.post(Caller::Inference, PATH, &[("Content-Type", "application/json")], body.as_ref()).await;
    reply.expect_error(400)
}

#[tokio::test]
async fn malformed_bodies_return_400_with_reason() {
    let gateway = Setup::new().await.start();
    let cases: [(&[u8], &str); 12] = [
        (b"", "empty"),
        (b"{", "not valid JSON: line 1"),
        (b"nonsense", "not valid JSON"),
        (b"{\"model\":NaN}", "not valid JSON"),
        (b"[]", "must be a JSON object"),
        (b"\"x\"", "must be a JSON object"),
        (b"{\"model\":\"\xff\"}", "UTF-8"),
        (br#"{"model":"a","model":"b"}"#, "model is in the body more than once"),
        (br#"{"model":"\ud800"}"#, "surrogate"),
        (br#"{"ignored":["\udc00"]}"#, "surrogate"),
        (b"{}", "model: is required"),
        (br#"{"model":"acme/judge","questions":{}}"#, "questions: must have at least one question"),
    ];
    for (body, fault) in cases {
        let message = refused(&gateway, body).await;
        assert!(message.contains(fault), "{}: {message}", String::from_utf8_lossy(body));
    }
}

#[tokio::test]
async fn trace_above_bound_returns_400_on_every_wire() {
    let gateway = Setup::new().await.start();
    let trace = format!(r#""trace":{{"of":"{}"}}"#, "x".repeat(65_528));
    let bodies = [
        ("/v1/systemone", r#""state":"s","questions":{"q":{"type":"noul","instructions":"?"}}"#),
        ("/v1/decisions", r#""input":"s","questions":[{"type":"predicate","name":"q","instructions":"?"}]"#),
        ("/v1/decisions", r#""input":"s","questions":[{"id":"q","type":"yes_no","question":"?"}]"#),
        ("/v1beta/decisions", r#""input":"s","questions":{"q":{"type":"noul","instructions":"?"}}"#),
    ];
    let bearer = Caller::Inference.bearer();
    let headers = [("Content-Type", "application/json"), ("Authorization", bearer.as_str())];
    for (path, rest) in bodies {
        let body = format!(r#"{{"model":"acme/judge",{trace},{rest}}}"#);
        let reply = gateway.send("POST", path, &headers, body.as_bytes()).await;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(matches!(reply.status, 400 | 422), "{path}: {text}");
        assert!(text.contains("must take at most 65536 bytes as JSON, not 65537"), "{path}: {text}");
    }
}

#[tokio::test]
async fn nesting_of_100_levels_is_accepted_and_of_100000_rejected() {
    let gateway = Setup::answering([answer("{}")]).await.start();
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"model":"acme/judge","questions":{open}{close}}}"#)
    };
    let reply = gateway.decide(&nested(100)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    for levels in [128, 100_000] {
        assert!(refused(&gateway, nested(levels)).await.contains("128 levels"));
    }
    let unclosed = format!(r#"{{"x":{}"#, "{\"a\":".repeat(100_000));
    assert!(refused(&gateway, unclosed).await.contains("128 levels"));
}

#[tokio::test]
async fn other_content_types_are_rejected() {
    let gateway = Setup::new().await.start();
    for headers in
        [&[][..], &[("Content-Type", "text/plain")], &[("Content-Type", "application/x-www-form-urlencoded")]]
    {
        let reply = gateway.post(Caller::Inference, PATH, headers, b"{}").await;
        assert!(reply.expect_error(400).starts_with("Content-"), "{headers:?}");
    }
    for good in ["application/json; charset=utf-8", "application/problem+json", "APPLICATION/JSON"] {
        let reply = gateway.post(Caller::Inference, PATH, &[("Content-Type", good)], b"{}").await;
        assert_eq!(reply.expect_error(400), "model: is required");
    }
}

#[tokio::test]
async fn body_of_nine_mebibytes_returns_413_with_and_without_content_length() {
    let gateway = Setup::new().await.start();
    let bearer = Caller::Inference.bearer();
    let json = [("Content-Type", "application/json"), ("Authorization", bearer.as_str())];
    let body = vec![b' '; 9 << 20];
    let reply = gateway.send("POST", &format!("{BASE}{PATH}"), &json, &body).await;
    assert_eq!(reply.expect_error(413), "Request payload too large");

    let chunked = [&json[..], &[("Transfer-Encoding", "chunked")]].concat();
    let mut chunks = format!("{:x}\r\n", body.len()).into_bytes();
    chunks.extend_from_slice(&body);
    chunks.extend_from_slice(b"\r\n0\r\n\r\n");
    let reply = gateway.send("POST", &format!("{BASE}{PATH}"), &chunked, &chunks).await;
    assert_eq!(reply.expect_error(413), "Request payload too large");
}

#[tokio::test]
async fn body_in_pieces_is_reassembled() {
    let gateway = Setup::new().await.start();
    let bearer = Caller::Inference.bearer();
    let headers =
        [("Content-Type", "application/json"), ("Authorization", bearer.as_str()), ("Transfer-Encoding", "chunked")];
    let path = format!("{BASE}{PATH}");
    let reply = gateway.send("POST", &path, &headers, b"3\r\n{\"m\r\n8\r\nodel\":1}\r\n0\r\n\r\n").await;
    assert_eq!(reply.expect_error(400), "model: must be a non-empty string");
    let reply = gateway.send("POST", &path, &headers, b"zz\r\n{}\r\n0\r\n\r\n").await;
    reply.expect_error(400);
}
