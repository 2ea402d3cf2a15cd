//! Provider failures: with a single provider, and with a fallback.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::Instant;
use tollgate_tests::{Behaviour, Report, Upstream, free_address};

use crate::gateway::{ANSWER, TestGateway, body, providers_toml, providers_toml_of_cases};

const GIB: u64 = 1 << 30;

/// A text of the provider that clients must not see.
const PRIVATE: &str = "stack-trace-of-the-provider";

fn answer(answers: &str) -> Behaviour {
    Behaviour::json(format!(
        r#"{{"model":"judge-1.0","answers":{answers},"usage":{{"input_tokens":429,"output_tokens":31}}}}"#
    ))
}

/// Every kind of failure, the status without a fallback, and the recorded outcome of the attempt.
fn failures(elsewhere: &Upstream) -> Vec<(&'static str, Behaviour, u16, &'static str)> {
    let status = |status: u16| Behaviour::Answer(status, String::new(), format!(r#"{{"error":"{PRIVATE}"}}"#));
    let redirect = |status: u16| {
        let location = format!("location: {}/systemone\r\n", elsewhere.base_url());
        Behaviour::Answer(status, location, String::new())
    };
    let json = |text: &str| Behaviour::json(text);
    vec![
        ("reset", Behaviour::Reset, 502, "connect_error"),
        ("closed", Behaviour::Close, 502, "connect_error"),
        ("hangs before headers", Behaviour::HangBeforeHeaders, 524, "timed_out"),
        ("hangs after headers", Behaviour::HangAfterHeaders, 524, "timed_out"),
        ("500", status(500), 502, "http_error"),
        ("502", status(502), 502, "http_error"),
        ("504", status(504), 502, "http_error"),
        ("204", Behaviour::Raw(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()), 502, "invalid_response"),
        ("402", status(402), 502, "provider_auth_failed"),
        ("404", status(404), 502, "http_error"),
        ("408", status(408), 502, "http_error"),
        ("401", status(401), 502, "provider_auth_failed"),
        ("403", status(403), 502, "provider_auth_failed"),
        ("429", status(429), 529, "overloaded"),
        ("503", status(503), 529, "overloaded"),
        ("529", status(529), 529, "overloaded"),
        ("400", status(400), 400, "rejected_by_provider"),
        ("413", status(413), 400, "rejected_by_provider"),
        ("422", status(422), 400, "rejected_by_provider"),
        ("301", redirect(301), 502, "http_error"),
        ("302", redirect(302), 502, "http_error"),
        ("307", redirect(307), 502, "http_error"),
        ("308", redirect(308), 502, "http_error"),
        ("HTML", Behaviour::Answer(200, String::new(), format!("<html>{PRIVATE}</html>")), 502, "invalid_response"),
        ("an empty body", json(""), 502, "invalid_response"),
        ("truncated JSON", json(&ANSWER[..ANSWER.len() - 20]), 502, "invalid_response"),
        (
            "a body shorter than announced",
            { Behaviour::Raw(format!("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{ANSWER}").into_bytes()) },
            502,
            "invalid_response",
        ),
        ("not HTTP", Behaviour::Raw(b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()), 502, "invalid_response"),
        ("1 GB", Behaviour::Flood(GIB), 502, "invalid_response"),
        ("NaN", answer(r#"{"refund":{"type":"noul","noul":NaN}}"#), 502, "invalid_response"),
        ("infinity", answer(r#"{"refund":{"type":"noul","noul":1e999}}"#), 502, "invalid_response"),
        ("no probability", answer(r#"{"refund":{"type":"noul","noul":1.5}}"#), 502, "invalid_response"),
        ("a string for a number", answer(r#"{"refund":{"type":"noul","noul":"0.5"}}"#), 502, "invalid_response"),
        ("another type", answer(r#"{"refund":{"type":"score","score":0}}"#), 502, "invalid_response"),
        ("a question that was not asked", answer(r#"{"other":{"type":"noul","noul":0.5}}"#), 502, "invalid_response"),
        (
            "one question more",
            { answer(r#"{"refund":{"type":"noul","noul":0.5},"other":{"type":"noul","noul":0.5}}"#) },
            502,
            "invalid_response",
        ),
        (
            "the question twice",
            { answer(r#"{"refund":{"type":"noul","noul":0.5},"refund":{"type":"noul","noul":0.9}}"#) },
            502,
            "invalid_response",
        ),
        ("no answers", json(r#"{"model":"m","usage":{"input_tokens":1,"output_tokens":1}}"#), 502, "invalid_response"),
        ("answers of another kind", answer("[]"), 502, "invalid_response"),
        ("an array", json("[]"), 502, "invalid_response"),
        (
            "negative tokens",
            {
                json(
                    r#"{"answers":{"refund":{"type":"noul","noul":0.5}},"usage":{"input_tokens":-1,"output_tokens":0}}"#,
                )
            },
            502,
            "invalid_response",
        ),
        ("100,000 levels", json(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))), 502, "invalid_response"),
    ]
}

fn message(status: u16, outcome: &str) -> &'static str {
    match status {
        502 if outcome == "connect_error" => "Provider sent no response: alpha ended the connection",
        502 | 529 => "Provider returned error",
        524 => "Request timed out. Please try again later.",
        _ => "",
    }
}

#[tokio::test]
async fn failure_has_expected_status_or_fallback_answers() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let elsewhere = Upstream::start(Behaviour::json(ANSWER)).await?;
    let failures = failures(&elsewhere);
    let (one, other) = (alpha.base_url(), beta.base_url());
    let gateway = TestGateway::start(&providers_toml_of_cases(&one, &other, 1_000, 2 * failures.len())).await?;
    let secret = &gateway.inference.secret;
    let mut report = Report::default();
    for (case, (name, behaviour, status, outcome)) in failures.into_iter().enumerate() {
        alpha.behave(behaviour);
        let alone = gateway.server.decide(secret, body(&format!("acme/alone-{case}"))).await?;
        let seen = || -> Result<()> {
            let envelope = alone.error(status, message(status, outcome))?;
            ensure!(!alone.text().contains(PRIVATE), "the provider's text came through: {}", alone.text());
            let metadata = &envelope["error"]["metadata"];
            ensure!(metadata["provider_name"] == "Alpha AI", "provider_name: {envelope}");
            let attempts = metadata["attempts"].as_array().with_context(|| format!("no attempts: {envelope}"))?;
            ensure!(attempts.len() == 1, "{envelope}");
            ensure!(attempts[0].to_string().contains(outcome), "not {outcome}: {envelope}");
            Ok(())
        };
        report.case(&format!("{name}, alone"), seen());
        let requests = alpha.take_requests().len();
        let repeated = usize::from(outcome == "connect_error");
        ensure!((1..=1 + repeated).contains(&requests), "{name}: {requests} requests of one attempt");

        let pair = gateway.server.decide(secret, body(&format!("acme/pair-{}", 2 * case))).await?;
        report.case(
            &format!("{name}, with another"),
            pair.ok().and_then(|answer| {
                ensure!(answer["provider"] == "Beta AI", "{answer}");
                ensure!(answer["answers"]["refund"]["noul"] == 0.97, "{answer}");
                Ok(())
            }),
        );
        ensure!(beta.take_requests().len() == 1, "{name}: the second provider is asked once");

        let first_only = body(&format!("acme/pair-{}", 2 * case + 1));
        let first_only = first_only.replacen(r#""order""#, r#""allow_fallbacks":false,"order""#, 1);
        let reply = gateway.server.decide(secret, first_only).await?;
        report.case(&format!("{name}, without fallbacks"), reply.error(status, message(status, outcome)));
        ensure!(beta.take_requests().is_empty(), "{name}: the second provider was asked although it must not be");
        alpha.take_requests();
    }
    ensure!(elsewhere.take_requests().is_empty(), "a redirect was followed");
    ensure!(alpha.flooded() < GIB / 8, "{} bytes of a flood were taken", alpha.flooded());
    gateway.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn refused_connection_returns_502_or_fallback_answers() -> Result<()> {
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let closed = format!("http://{}/v1", free_address()?);
    let gateway = TestGateway::start(&providers_toml(&closed, &beta.base_url(), 2_000)).await?;
    let envelope = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
    let envelope = envelope.error(502, "Provider cannot be reached: alpha: the connection was refused")?;
    let attempt = &envelope["error"]["metadata"]["attempts"][0];
    ensure!(attempt["outcome"] == "connect_error" && attempt["cause"] == "connection_refused", "{envelope}");
    ensure!(gateway.decide(body("acme/pair")).await?["provider"] == "Beta AI");
    Ok(())
}

#[tokio::test]
async fn retry_after_of_provider_is_forwarded() -> Result<()> {
    let busy = |seconds: u32| Behaviour::Answer(429, format!("retry-after: {seconds}\r\n"), "{}".to_owned());
    let alpha = Upstream::start(busy(17)).await?;
    let beta = Upstream::start(busy(5)).await?;
    let toml = providers_toml_of_cases(&alpha.base_url(), &beta.base_url(), 2_000, 3);
    let gateway = TestGateway::start(&toml).await?;
    let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone-0")).await?;
    let envelope = reply.error(529, "Provider returned error")?;
    ensure!(envelope["error"]["metadata"]["retry_after_seconds"] == 17, "{envelope}");
    let reply = gateway.server.decide(&gateway.inference.secret, body("acme/pair-0")).await?;
    let envelope = reply.error(529, "Provider returned error")?;
    ensure!(envelope["error"]["metadata"]["retry_after_seconds"] == 5, "the shorter wait counts: {envelope}");

    // Only if every attempt ended with it.
    beta.behave(Behaviour::status(500));
    gateway.server.decide(&gateway.inference.secret, body("acme/pair-1")).await?.envelope(502)?;
    // An invalid header is ignored.
    alpha.behave(Behaviour::Answer(429, "retry-after: soon\r\n".to_owned(), "{}".to_owned()));
    gateway.server.decide(&gateway.inference.secret, body("acme/alone-1")).await?.envelope(529)?;
    Ok(())
}

#[tokio::test]
async fn deadline_applies_to_all_attempts_together() -> Result<()> {
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let beta = Upstream::start(Behaviour::HangAfterHeaders).await?;
    let toml =
        format!("[limits]\nrequest_timeout_ms = 1500\n{}", providers_toml(&alpha.base_url(), &beta.base_url(), 1_000));
    let gateway = TestGateway::start(&toml).await?;
    let since = Instant::now();
    let reply = gateway.server.decide(&gateway.inference.secret, body("acme/pair")).await?;
    let took = since.elapsed();
    reply.error(524, "Request timed out. Please try again later.")?;
    ensure!(took >= Duration::from_millis(1_400), "it was given up after {took:?}");
    ensure!(took < Duration::from_secs(15), "it took {took:?}");
    alpha.wait_until_abandoned(1).await?;
    beta.wait_until_abandoned(1).await
}
