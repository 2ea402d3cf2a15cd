//! Invalid request bodies, and unusual valid ones.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tollgate_tests::{Call, Report, decisions, raw};

use crate::gateway::{QUESTIONS, TestGateway, body, body_with};

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

fn nested_objects(levels: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
}

fn about(state: &str) -> String {
    format!(r#"{{"model":"sandbox/decider","questions":{QUESTIONS},"state":{state}}}"#)
}

fn asking(questions: &str) -> String {
    format!(r#"{{"model":"sandbox/decider","questions":{questions},"state":"x"}}"#)
}

#[tokio::test]
async fn invalid_decisions_body_is_rejected_with_400() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let good = body("sandbox/decider");
    let deep = 100_000;
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("blank", b"  \n ".to_vec()),
        ("cut short", good.as_bytes()[..good.len() - 1].to_vec()),
        ("a byte order mark alone", "\u{feff}".as_bytes().to_vec()),
        ("two byte order marks", format!("\u{feff}\u{feff}{good}").into_bytes()),
        ("a byte order mark at the end", format!("{good}\u{feff}").into_bytes()),
        ("not JSON", b"model=sandbox/decider".to_vec()),
        ("single quotes", good.replace('"', "'").into_bytes()),
        ("something behind it", format!("{good}x").into_bytes()),
        ("two documents", format!("{good}{good}").into_bytes()),
        ("not UTF-8", [b"{\"model\":\"".as_slice(), b"\xff\xfe", b"\"}"].concat()),
        ("not UTF-8 in the state", [about("\"").as_bytes(), b"\xc3\x28\"}"].concat()),
        ("array", format!("[{good}]").into_bytes()),
        ("string", b"\"x\"".to_vec()),
        ("number", b"7".to_vec()),
        ("null", b"null".to_vec()),
        ("NaN", about("NaN").into_bytes()),
        ("a control character", about("\"a\u{1}b\"").into_bytes()),
        ("100,000 levels of state", about(&nested(deep)).into_bytes()),
        ("100,000 levels of objects", about(&nested_objects(deep)).into_bytes()),
        ("100,000 levels of questions", asking(&nested(deep)).into_bytes()),
        ("100,000 levels of instructions", {
            asking(&format!(r#"{{"q":{{"type":"noul","instructions":{}}}}}"#, nested(deep))).into_bytes()
        }),
        ("100,000 levels in an unknown member", body_with(&format!("\"odd\":{}", nested(deep))).into_bytes()),
        ("100,000 levels of trace", body_with(&format!("\"trace\":{}", nested_objects(deep))).into_bytes()),
        ("100,000 opening brackets", "[".repeat(deep).into_bytes()),
        ("model twice", body_with(r#""model":"acme/other""#).into_bytes()),
        ("model twice, once in disguise", body_with(r#""\u006dodel":"acme/other""#).into_bytes()),
        ("questions twice", body_with(r#""questions":"x""#).into_bytes()),
        ("provider twice", body_with(r#""provider":{},"provider":{"allow_fallbacks":false}"#).into_bytes()),
        ("allow_fallbacks twice", {
            body_with(r#""provider":{"allow_fallbacks":true,"allow_fallbacks":false}"#).into_bytes()
        }),
        ("lone high surrogate in the state", about(r#""\ud800""#).into_bytes()),
        ("lone low surrogate in the state", about(r#"{"a":["\udc00x"]}"#).into_bytes()),
        ("surrogates in the wrong order", about(r#""\udc00\ud800""#).into_bytes()),
        ("lone surrogate as a name", about(r#"{"\ud800":1}"#).into_bytes()),
        ("lone surrogate in opaque questions", asking(r#""\ud83d""#).into_bytes()),
        ("lone surrogate in instructions", {
            asking(r#"{"q":{"type":"noul","instructions":"\ud83d?"}}"#).into_bytes()
        }),
        ("lone surrogate in the model", br#"{"model":"\ud800","questions":"?","state":"x"}"#.to_vec()),
        ("lone surrogate in the user", body_with(r#""user":"\udfff""#).into_bytes()),
        ("lone surrogate in trace", body_with(r#""trace":{"a":"\udfff"}"#).into_bytes()),
        ("provider is no object", body_with(r#""provider":["alpha"]"#).into_bytes()),
        ("allow_fallbacks is no boolean", body_with(r#""provider":{"allow_fallbacks":"no"}"#).into_bytes()),
        ("trace is no object", body_with(r#""trace":"t""#).into_bytes()),
        ("no model", format!(r#"{{"questions":{QUESTIONS},"state":"x"}}"#).into_bytes()),
        ("model is null", br#"{"model":null,"questions":"?"}"#.to_vec()),
        ("model is a number", br#"{"model":7,"questions":"?"}"#.to_vec()),
        ("model is empty", br#"{"model":"","questions":"?"}"#.to_vec()),
        ("no questions", br#"{"model":"sandbox/decider","state":"x"}"#.to_vec()),
        ("questions are null", br#"{"model":"sandbox/decider","questions":null,"state":"x"}"#.to_vec()),
    ];
    let mut report = Report::default();
    for (name, body) in cases {
        let reply = gateway.server.decide(&gateway.inference.secret, body).await?;
        report.case(name, reply.envelope(400));
    }
    gateway.server.ensure_healthy().await?;
    gateway.decide(good).await?;
    report.finish()
}

#[tokio::test]
async fn unusual_valid_requests_are_served() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let cases = [
        ("100 levels of state", about(&nested(100))),
        ("100 levels of objects", about(&nested_objects(100))),
        ("100 levels of instructions", {
            asking(&format!(r#"{{"q":{{"type":"noul","instructions":{}}}}}"#, nested(100)))
        }),
        ("100 levels of opaque questions", asking(&nested(100))),
        ("100 levels in an unknown member", body_with(&format!("\"odd\":{}", nested(100)))),
        ("a pair of surrogates", about(r#""\ud83d\ude00""#)),
        ("an escaped backslash before a u", about(r#""\\ud800""#)),
        ("unknown members", body_with(r#""temperature":0,"stream":false,"odd":{"a":[1]},"odd":2"#)),
        ("null members", body_with(r#""provider":null,"session_id":null,"user":null,"trace":null"#)),
        ("a NUL in the state", about(r#""a\u0000b""#)),
        ("numbers beyond every type", about("[1e400,-0.0,123456789012345678901234567890]")),
        ("a plain string for questions", asking("\"Is it on fire?\"")),
        ("opaque questions without a state", r#"{"model":"sandbox/decider","questions":"?"}"#.to_owned()),
        ("the model in other case", body("Sandbox/DECIDER")),
        ("a byte order mark", format!("\u{feff}{}", body("sandbox/decider"))),
    ];
    let mut report = Report::default();
    for (name, body) in cases {
        let reply = gateway.server.decide(&gateway.inference.secret, body).await?;
        report.case(
            name,
            reply.ok().and_then(|answer| {
                ensure!(answer["answers"].is_object(), "no answers: {answer}");
                ensure!(answer["model"] == "sandbox/decider", "another model: {answer}");
                Ok(())
            }),
        );
    }
    report.finish()
}

#[tokio::test]
async fn other_content_type_than_json_is_rejected() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let guardrail = gateway.instance.guardrail(&[]).await?;
    let mut report = Report::default();
    let decisions =
        Call::post("/api/v1/api/alpha/decisions").key(&gateway.inference.secret).body(body("sandbox/decider"));
    let assign = Call::post(format!("/api/v1/guardrails/{guardrail}/assignments/keys"))
        .key(&gateway.management.secret)
        .body(r#"{"key_hashes":["a"]}"#);
    for (operation, call) in [("decisions", decisions), ("assign", assign)] {
        report.case(&format!("{operation}, none"), gateway.server.send(&call).await?.envelope(400));
        for wrong in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json", ""]
        {
            let reply = gateway.server.send(&call.clone().header("content-type", wrong)).await?;
            report.case(&format!("{operation}, {wrong:?}"), reply.envelope(400));
        }
        for right in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
            let reply = gateway.server.send(&call.clone().header("content-type", right)).await?;
            report.case(&format!("{operation}, {right:?}"), reply.ok());
        }
    }
    report.finish()
}

#[tokio::test]
async fn body_over_limit_is_rejected_with_413_for_any_encoding() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let large = about(&format!("\"{}\"", "a".repeat(9 << 20)));
    let reply = gateway.server.decide(&gateway.inference.secret, &large).await?;
    reply.error(413, "Request payload too large")?;

    let secret = &gateway.inference.secret;
    let mut chunked = format!(
        "POST /api/v1/api/alpha/decisions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    )
    .into_bytes();
    for piece in large.as_bytes().chunks(1 << 20) {
        chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        chunked.extend_from_slice(piece);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let answer = raw(gateway.server.address(), &chunked).await?;
    ensure!(answer.starts_with("HTTP/1.1 413"), "{answer:.300}");
    ensure!(answer.contains("\"code\":413"), "{answer:.300}");

    // A client that reads only after it has written everything, long after the response.
    let mut client = TcpStream::connect(gateway.server.address()).await?;
    let head = format!(
        "POST /api/v1/api/alpha/decisions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        large.len()
    );
    client.write_all(head.as_bytes()).await?;
    for piece in large.as_bytes().chunks(1 << 20) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        client.write_all(piece).await.context("the connection was reset before the body's end")?;
    }
    let mut answer = String::new();
    client.read_to_string(&mut answer).await?;
    ensure!(answer.starts_with("HTTP/1.1 413") && answer.contains("\"code\":413"), "{answer:.300}");

    let hashes = format!(r#"{{"key_hashes":["{}"]}}"#, "a".repeat(9 << 20));
    let assign = Call::post("/api/v1/guardrails/x/assignments/keys").key(&gateway.management.secret).json(hashes);
    gateway.server.send(&assign).await?.error(413, "Request payload too large")?;

    // Slightly below the limit.
    gateway.decide(about(&format!("\"{}\"", "a".repeat((8 << 20) - 300)))).await?;
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn configured_body_limit_is_exact() -> Result<()> {
    let gateway = TestGateway::start("[limits]\nmax_json_bytes = 2000\n").await?;
    let sized = |size: usize| {
        let empty = about("\"\"");
        about(&format!("\"{}\"", "a".repeat(size - empty.len())))
    };
    ensure!(sized(2_000).len() == 2_000);
    gateway.decide(sized(2_000)).await?;
    gateway.server.decide(&gateway.inference.secret, sized(2_001)).await?.envelope(413)?;
    Ok(())
}

#[tokio::test]
async fn malformed_requests_do_not_affect_others() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let secret = &gateway.inference.secret;
    let cases = [
        ("not HTTP", "hello\r\n\r\n".to_owned()),
        ("no body although one is announced", {
            format!(
                "POST /api/alpha/decisions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n\
                 content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
            )
        }),
        ("two lengths", {
            "POST /api/alpha/decisions HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"
                .to_owned()
        }),
        ("a NUL in a header", "GET /health/live HTTP/1.1\r\nhost: x\r\na: b\0c\r\n\r\n".to_owned()),
        ("a broken chunk", {
            format!(
                "POST /api/alpha/decisions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n\
                 content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"
            )
        }),
    ];
    let mut report = Report::default();
    for (name, request) in cases {
        let answer = raw(gateway.server.address(), request.as_bytes()).await?;
        let fine = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
        report.case(name, if fine { Ok(()) } else { Err(anyhow::anyhow!("{answer:.300}")) });
    }
    gateway.server.ensure_healthy().await?;
    gateway.server.send(&decisions(secret, body("sandbox/decider"))).await?.ok()?;
    report.finish()
}
