//! Errors of providers, as operators and clients see them.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use flate2::{Compression, write::GzEncoder};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Call, Server, Upstream, decisions};

use crate::gateway::{ANSWER, TestGateway, body, providers_toml_of_cases};

/// The key of the provider `alpha`; see [`TestGateway::start`].
const PROVIDER_KEY: &str = "alpha-secret-0001";

/// Returns the log lines of failed attempts of one request, of which there is at least one.
async fn attempt_lines(server: &Server, request_id: &str) -> Result<Vec<String>> {
    let since = Instant::now();
    let of_request = format!(" request.id={request_id}");
    loop {
        let log = server.output();
        let lines = log.lines().filter(|line| line.ends_with(&of_request) && line.contains("provider attempt failed"));
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        if !lines.is_empty() {
            return Ok(lines);
        }
        ensure!(since.elapsed() < Duration::from_secs(10), "no line of {request_id}: {log}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn failed_attempt_is_logged_with_provider_error_and_without_keys() -> Result<()> {
    let error = |code: &str, message: &str| format!(r#"{{"error":{{"code":"{code}","message":"{message}"}}}}"#);
    let cases = [
        (401, "provider_auth_failed", "invalid_api_key", format!("Wrong key {PROVIDER_KEY}, sk-other-1234.")),
        (404, "http_error", "model_not_found", format!("No model judge-1 for Bearer {PROVIDER_KEY}")),
        (500, "http_error", "server_error", format!("It broke. {PROVIDER_KEY} {}", "long ".repeat(200))),
    ];
    let alpha = Upstream::start(Behaviour::status(500)).await?;
    let toml = providers_toml_of_cases(&alpha.base_url(), &alpha.base_url(), 5_000, cases.len());
    let gateway = TestGateway::start(&toml).await?;
    for (case, (status, outcome, code, message)) in cases.iter().enumerate() {
        alpha.behave(Behaviour::Answer(*status, "content-type: application/json\r\n".into(), error(code, message)));
        let id = format!("case-{case}");
        let call = decisions(&gateway.inference.secret, body(&format!("acme/alone-{case}")));
        let reply = gateway.server.send(&call.header("x-request-id", &id)).await?;
        reply.envelope(502)?;
        ensure!(!reply.text().contains(code) && !reply.text().contains("broke"), "{}", reply.text());
        let lines = attempt_lines(&gateway.server, &id).await?;
        ensure!(lines.len() == 1, "{lines:?}");
        for expected in [
            "  WARN ".to_owned(),
            "provider.slug=alpha ".to_owned(),
            format!("model.id=acme/alone-{case} "),
            format!("attempt.outcome=\"{outcome}\""),
            format!("upstream.status={status} "),
            format!("provider.error_code=\"{code}\""),
        ] {
            ensure!(lines[0].contains(&expected), "no {expected}: {}", lines[0]);
        }
    }
    let log = gateway.server.output();
    ensure!(log.contains("provider.error_message=\"Wrong key ***, ***.\""), "{log}");
    ensure!(log.contains("provider.error_message=\"No model judge-1 for Bearer ***\""), "{log}");
    let (_, message) = log.split_once("provider.error_message=\"It broke. *** ").context("no long message")?;
    let (message, _) = message.split_once('"').context("no end of the message")?;
    ensure!(message.ends_with('…') && message.chars().count() < 256, "{message}");
    ensure!(!log.contains(PROVIDER_KEY) && !log.contains("sk-other"), "{log}");
    gateway.server.stop().await
}

#[tokio::test]
async fn dead_provider_does_not_flood_the_log() -> Result<()> {
    let alpha = Upstream::start(Behaviour::status(500)).await?;
    let gateway = TestGateway::with_providers(&alpha, &alpha, 5_000).await?;
    let since = Instant::now();
    let mut attempts = 0;
    while attempts < 40 {
        gateway.server.decide(&gateway.inference.secret, body("acme/pair")).await?;
        attempts += alpha.take_requests().len();
    }
    let periods = usize::try_from(since.elapsed().as_secs() / 10)? + 2;
    let call = Call::get("/api/v1/models/count").key(&gateway.inference.secret).header("x-request-id", "the-last");
    gateway.server.send(&call).await?.ok()?;
    gateway.server.terminate().await?;
    sleep(Duration::from_millis(500)).await;
    let log = gateway.server.output();
    let lines = log.lines().filter(|line| line.contains("provider attempt failed")).count();
    // Two endpoints.
    ensure!((2..=10 * periods).contains(&lines), "{lines} lines in {periods} periods: {log}");
    Ok(())
}

#[tokio::test]
async fn rejected_credentials_are_named_in_errors() -> Result<()> {
    let alpha = Upstream::start(Behaviour::status(401)).await?;
    let gateway = TestGateway::with_providers(&alpha, &alpha, 5_000).await?;
    let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
    let envelope = reply.error(502, "Provider returned error: alpha rejected this gateway's credentials with 401; ")?;
    ensure!(envelope["error"]["metadata"]["attempts"][0]["outcome"] == "provider_auth_failed", "{envelope}");
    let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
    reply.error(503, "no endpoint of acme/alone is available: alpha throttled, last failed with 401; retry in ")?;
    gateway.server.stop().await
}

/// Trouble with our account under the status of an invalid or an early request: the next provider, else a 502 that names
/// the provider, a back-off, and a provider in red.
#[tokio::test]
async fn account_trouble_is_the_operators_and_not_the_callers() -> Result<()> {
    let bodies = [
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#,
        r#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#,
        r#"{"error":{"code":"invalid_api_key","message":"Incorrect API key provided"}}"#,
    ];
    let statuses = [400, 403, 429];
    let alpha = Upstream::start(Behaviour::status(500)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let cases = bodies.len() * statuses.len();
    let gateway =
        TestGateway::start(&providers_toml_of_cases(&alpha.base_url(), &beta.base_url(), 5_000, cases)).await?;
    for (case, (status, text)) in statuses.iter().flat_map(|status| bodies.map(|text| (*status, text))).enumerate() {
        alpha.behave(Behaviour::Answer(status, String::new(), text.to_owned()));
        let model = format!("acme/alone-{case}");
        let reply = gateway.server.decide(&gateway.inference.secret, body(&model)).await?;
        let envelope = reply.error(502, "Provider returned error: alpha rejected this gateway's ")?;
        let attempt = &envelope["error"]["metadata"]["attempts"][0];
        ensure!(attempt["outcome"] == "provider_auth_failed" && attempt["upstream_status"] == status, "{envelope}");
        ensure!(attempt["usage_source"] == "none", "{envelope}");
        let reply = gateway.server.decide(&gateway.inference.secret, body(&model)).await?;
        reply.error(503, "no endpoint of ")?;
        ensure!(alpha.take_requests().len() == 1, "no back-off after {status} {text}");
        let answer = gateway.decide(body(&format!("acme/pair-{case}"))).await?;
        ensure!(answer["provider"] == "Beta AI", "{answer}");
        alpha.take_requests();
    }
    let shown = gateway.instance.run_on_terminal(&["status"]).await?;
    let is_red = shown.lines().any(|line| line.contains("\u{1b}[31malpha") && line.contains("credential rejected"));
    ensure!(is_red, "{shown:?}");

    // A rate limit and an invalid request stay what they are.
    let limited = r#"{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached"}}"#;
    alpha.behave(Behaviour::Answer(429, String::new(), limited.to_owned()));
    gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?.envelope(529)?;
    let echoed = r#"{"error":{"code":"invalid_value","message":"Invalid value: 'insufficient balance'"}}"#;
    alpha.behave(Behaviour::Answer(400, String::new(), echoed.to_owned()));
    let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
    ensure!(reply.status == 400, "{}", reply.text());
    gateway.server.stop().await
}

/// An error that a provider compresses although nobody asked for it has the same meaning.
#[tokio::test]
async fn compressed_error_is_read_like_a_plain_one() -> Result<()> {
    let text = r#"{"error":{"message":"Your credit balance is too low to access the API."}}"#;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes())?;
    let compressed = encoder.finish()?;
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\
         content-length: {}\r\n\r\n",
        compressed.len()
    );
    let alpha = Upstream::start(Behaviour::Raw([head.into_bytes(), compressed].concat())).await?;
    let gateway = TestGateway::with_providers(&alpha, &alpha, 5_000).await?;
    let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
    reply.error(502, "Provider returned error: alpha rejected this gateway's account")?;
    gateway.server.stop().await
}
