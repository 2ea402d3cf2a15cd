//! The requests that providers receive.

use anyhow::{Result, ensure};
use serde_json::Value;
use tollgate_tests::{Behaviour, Report, Upstream, decisions};

use crate::gateway::{ANSWER, QUESTIONS, TestGateway, body};

#[tokio::test]
async fn provider_receives_model_state_questions_and_its_key() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = TestGateway::with_providers(&alpha, &beta, 5_000).await?;
    let request = format!(
        r#"{{"model":"acme/alone","questions":{QUESTIONS},"state":"It smokes.","session_id":"marker-session",
            "trace":{{"trace_id":"marker-trace","own":"marker-custom"}},"user":"marker-user",
            "provider":{{"allow_fallbacks":true,"ignore":["marker-provider"]}},"odd":"marker-unknown"}}"#
    );
    let call = decisions(&gateway.inference.secret, &request)
        .header("x-session-id", "marker-header")
        .header("x-request-id", "marker-request")
        .header("cookie", "marker-cookie")
        .header("x-forwarded-for", "marker-forwarded")
        .header("user-agent", "marker-agent");
    let answer = gateway.server.send(&call).await?.ok()?;
    let seen = alpha.take_request()?;
    let whole = format!("{}\n{}", seen.head, seen.text());
    ensure!(!whole.contains("marker-"), "what is private reached the provider: {whole}");
    ensure!(!whole.contains(&gateway.inference.secret), "the caller's key reached the provider");
    let head = seen.head.to_ascii_lowercase();
    ensure!(head.starts_with("post /v1/systemone http/1.1"), "{head}");
    ensure!(head.contains("authorization: bearer alpha-secret-0001"), "{head}");
    ensure!(head.contains("content-type: application/json"), "{head}");
    let sent: Value = serde_json::from_slice(&seen.body)?;
    let members: Vec<_> = sent.as_object().into_iter().flat_map(|members| members.keys()).collect();
    ensure!(members.len() == 3, "{members:?}");
    ensure!(sent["model"] == "judge-1" && sent["state"] == "It smokes.", "{sent}");
    ensure!(sent["questions"] == serde_json::from_str::<Value>(QUESTIONS)?, "{sent}");

    // Members that are not forwarded are in the record.
    let id = answer["id"].as_str().unwrap_or_default();
    ensure!(id.starts_with("gen-dec-"), "{answer}");
    let usage = gateway.instance.json(&["usage", "show", id]).await?;
    ensure!(usage["session_id"] == "marker-session" && usage["external_user"] == "marker-user", "{usage}");
    ensure!(usage["trace"]["own"] == "marker-custom", "{usage}");
    ensure!(!gateway.server.output().contains("marker-session"), "a session is logged");
    Ok(())
}

#[tokio::test]
async fn provider_without_key_gets_no_authorization_header() -> Result<()> {
    let alpha = Upstream::start(Behaviour::status(500)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = TestGateway::with_providers(&alpha, &beta, 5_000).await?;
    gateway.decide(body("acme/pair")).await?;
    let seen = beta.take_request()?;
    ensure!(!seen.head.to_ascii_lowercase().contains("authorization"), "{}", seen.head);
    ensure!(seen.text().contains("judge-1-b"), "{}", seen.text());
    Ok(())
}

#[tokio::test]
async fn state_and_questions_are_forwarded_unchanged() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = TestGateway::with_providers(&alpha, &beta, 5_000).await?;
    let opaque = r#"{"model":"j","answers":{"free":[1.50,{"b":1e400}]},"usage":{"input_tokens":1,"output_tokens":1}}"#;
    let typed = r#"{"refund": {"type":"noul" , "instructions":{"z":1.50,"a":1e400,"a":2}}}"#;
    let cases = [
        (typed, r#"{"z": 1.50,  "a":[1e400 , -0.0,0.1000,12345678901234567890123],"é":"\u00e9\/"}"#, ANSWER),
        (QUESTIONS, r#""\ud83d\ude00 \u0000 \b""#, ANSWER),
        (r#""A plain string with 1.50 and \u00e9""#, "[ 1 ,2.00 ]", opaque),
        (r#"[{"q": 1E+2}, null]"#, r#"{"b":1,"a":2,"b":3}"#, opaque),
        (r#"{"b":"untyped", "a": {"c": 1.0}}"#, "7.10", opaque),
    ];
    let mut report = Report::default();
    for (questions, state, answer) in cases {
        alpha.behave(Behaviour::json(answer));
        let body = format!(r#"{{"state":{state},"questions":{questions},"model":"acme/alone"}}"#);
        let reply = gateway.server.decide(&gateway.inference.secret, body).await?;
        ensure!(reply.status == 200, "{questions}: {}", reply.text());
        let sent = alpha.take_request()?.text();
        let kept = [questions, state].iter().all(|part| sent.contains(part));
        report.case(questions, if kept { Ok(()) } else { Err(anyhow::anyhow!("sent: {sent}")) });
        if answer == opaque {
            let whole = reply.text();
            let kept = whole.contains(r#"{"free":[1.50,{"b":1e400}]}"#);
            report.case("the answers", if kept { Ok(()) } else { Err(anyhow::anyhow!("answered: {whole}")) });
        }
    }
    report.finish()
}
