//! The log lines of requests.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Call, Instance, Server, Upstream, decisions, free_address, raw};

use crate::gateway::{ANSWER, TestGateway, body, disconnect_early, providers_toml};
use crate::metrics::Scrape;

/// Returns the first line with both texts; lines are written with a delay.
async fn line(server: &Server, one: &str, other: &str) -> Result<String> {
    let since = Instant::now();
    loop {
        let log = server.output();
        if let Some(line) = log.lines().find(|line| line.contains(one) && line.contains(other)) {
            return Ok(line.to_owned());
        }
        ensure!(since.elapsed() < Duration::from_secs(10), "no line has {one} and {other}: {log}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the line without its time and its latency, which must exist.
fn without_times(line: &str) -> Result<String> {
    let (time, rest) = line.split_at_checked(27).unwrap_or_default();
    ensure!(time.starts_with("20") && time.ends_with('Z') && time.contains('T'), "no time: {line}");
    let (rest, latency) = rest.split_once(" latency_us=").unwrap_or_default();
    ensure!(latency.parse::<u64>().is_ok(), "no latency: {line}");
    Ok(rest.to_owned())
}

#[tokio::test]
async fn request_log_line_has_all_fields() -> Result<()> {
    let gateway = TestGateway::start("[sandbox]\nerrors = true\n").await?;
    let call = decisions(&gateway.inference.secret, body("sandbox/error-502")).header("x-request-id", "find-me");
    gateway.server.send(&call).await?.envelope(502)?;
    let answered = line(&gateway.server, "request.id=find-me", "request completed").await?;
    let key = &gateway.inference.id;
    ensure!(
        without_times(&answered)?
            == format!(
                "  INFO api_actix::http::access_log: request completed request.id=find-me http.method=\"POST\" \
                http.route=\"/api/alpha/decisions\" client.address=127.0.0.1 http.status=502 \
                reason=\"attempts_failed\" api_key.id={key} model.id=sandbox/error-502 provider.name=\"Tollgate Sandbox\" \
                cost_usd=0"
            ),
        "{answered}"
    );
    let count = Call::get("/api/v1/models/count").key(&gateway.inference.secret).header("x-request-id", "find-me-too");
    gateway.server.send(&count).await?.ok()?;
    let answered = line(&gateway.server, "request.id=find-me-too", "request completed").await?;
    ensure!(
        without_times(&answered)?
            == format!(
                "  INFO api_actix::http::access_log: request completed request.id=find-me-too http.method=\"GET\" \
                http.route=\"/models/count\" client.address=127.0.0.1 http.status=200 api_key.id={key}"
            ),
        "{answered}"
    );
    gateway.server.stop().await
}

#[tokio::test]
async fn json_log_lines_have_the_fields_of_text_and_the_request_id() -> Result<()> {
    let gateway = TestGateway::start("[sandbox]\nerrors = true\n[log]\nformat = \"json\"\n").await?;
    let call = decisions(&gateway.inference.secret, body("sandbox/error-502")).header("x-request-id", "find-me");
    gateway.server.send(&call).await?.envelope(502)?;
    let answered = line(&gateway.server, "\"find-me\"", "request completed").await?;
    let mut answered: Value = serde_json::from_str(&answered)?;
    let members = answered.as_object_mut().context("no object")?;
    for measured in ["timestamp", "latency_us"] {
        ensure!(members.remove(measured).is_some(), "no {measured}");
    }
    let expected = json!({
        "level": "INFO", "target": "api_actix::http::access_log", "message": "request completed",
        "request.id": "find-me", "http.method": "POST", "http.route": "/api/alpha/decisions",
        "client.address": "127.0.0.1", "http.status": 502, "reason": "attempts_failed",
        "api_key.id": gateway.inference.id, "model.id": "sandbox/error-502", "provider.name": "Tollgate Sandbox",
        "cost_usd": "0",
    });
    ensure!(answered == expected, "{answered}");
    let failed: Value = serde_json::from_str(&line(&gateway.server, "\"find-me\"", "request failed").await?)?;
    ensure!(failed["request.id"] == "find-me" && failed["level"] == "WARN", "{failed}");
    gateway.server.stop().await
}

#[tokio::test]
async fn log_line_of_unknown_path_names_it() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    for (path, shown) in [
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/api/v1/modells?key=sk-1", "/api/v1/modells"),
        ("/v1/sk-tg-v1-0123456789abcdef0123456789abcdef/x", "/v1/***/x"),
    ] {
        let id = format!("at-{}", shown.len());
        gateway.server.send(&Call::get(path).header("x-request-id", &id)).await?.envelope(404)?;
        let answered = line(&gateway.server, &format!("request.id={id}"), "request completed").await?;
        ensure!(answered.contains(&format!("http.path=\"{shown}\"")), "{answered}");
        ensure!(!answered.contains("sk-"), "{answered}");
    }
    // A known route has its pattern only.
    let known = Call::get("/api/v1/model/a/b").key(&gateway.inference.secret).header("x-request-id", "known");
    gateway.server.send(&known).await?.envelope(404)?;
    ensure!(!line(&gateway.server, "request.id=known", "request completed").await?.contains("http.path"));
    gateway.server.stop().await
}

#[tokio::test]
async fn access_log_shows_model_provider_and_charge() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = TestGateway::with_providers(&alpha, &alpha, 5_000).await?;
    let call = decisions(&gateway.inference.secret, body("acme/alone")).header("x-request-id", "charged");
    gateway.server.send(&call).await?.ok()?;
    let completed = line(&gateway.server, "request.id=charged", "request completed").await?;
    // 429 input tokens for 0.042 USD per million.
    let expected = format!(
        "http.status=200 api_key.id={} model.id=acme/alone provider.name=\"Alpha AI\" cost_usd=0.000018018 ",
        gateway.inference.id
    );
    ensure!(completed.contains(&expected), "{completed}");
    ensure!(!gateway.server.output().contains(&gateway.inference.secret), "the log has a secret");
    gateway.server.stop().await
}

#[tokio::test]
async fn access_log_shows_reason_of_rejection() -> Result<()> {
    let alpha = Upstream::start(Behaviour::status(401)).await?;
    let gateway = TestGateway::with_providers(&alpha, &alpha, 5_000).await?;
    let poor = gateway.instance.key(&["--name", "poor", "--limit-usd", "0.000000001"]).await?;
    let slow = gateway.instance.key(&["--name", "slow", "--rpm", "1"]).await?;
    let send = async |secret: &str, id: &str, status: u16| {
        let call = decisions(secret, body("acme/alone")).header("x-request-id", id);
        gateway.server.send(&call).await?.envelope(status)?;
        line(&gateway.server, &format!("request.id={id} "), "request completed").await
    };
    let broke = send(&poor.secret, "broke", 402).await?;
    ensure!(broke.contains("http.status=402 reason=\"key_limit_exceeded\" "), "{broke}");
    let managing = send(&gateway.management.secret, "managing", 403).await?;
    ensure!(managing.contains("http.status=403 reason=\"wrong_key_kind\" "), "{managing}");
    send(&slow.secret, "first", 502).await?;
    let limited = send(&slow.secret, "second", 429).await?;
    ensure!(limited.contains("http.status=429 reason=\"rate_limited\" "), "{limited}");
    let throttled = send(&gateway.inference.secret, "throttled", 503).await?;
    ensure!(throttled.contains("http.status=503 reason=\"endpoints_throttled\" "), "{throttled}");
    gateway.server.stop().await
}

#[tokio::test]
async fn start_warns_when_no_certificate_authority_is_readable() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let mut instance = Instance::new(&providers_toml(&alpha.base_url(), &alpha.base_url(), 60_000))?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    let authorities = instance.path().join("authorities.pem");
    std::fs::write(&authorities, "-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n")?;
    instance.set_env("SSL_CERT_FILE", authorities.display().to_string());
    instance.set_env("SSL_CERT_DIR", "");
    let gateway = TestGateway::of(instance).await?;
    let warning = line(&gateway.server, "no certificate authority is known on this platform", " unreadable=1").await?;
    ensure!(warning.contains("  WARN "), "{warning}");
    gateway.server.send(&decisions(&gateway.inference.secret, body("acme/alone"))).await?.ok()?;
    gateway.server.stop().await
}

/// Anyone can send malformed headers, so they are no errors of the gateway.
#[tokio::test]
async fn malformed_request_heads_are_not_logged_as_errors() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    for head in [
        "GET /health/live HTTP/1.1\r\nhost: a\r\nbad header: x\r\n\r\n",
        "GET /health/live HTTP/1.1\r\nhost: a\r\nx: \u{1}\r\n\r\n",
        "GET /health/live HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n",
        "GET /health/live HTTP/9.9\r\nhost: a\r\n\r\n",
        "POST /api/alpha/decisions HTTP/1.1\r\nhost: a\r\ncontent-length: many\r\n\r\n",
        "POST /api/alpha/decisions HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "\u{16}\u{3}\u{1}\u{2}\0 no request at all\r\n\r\n",
    ] {
        raw(gateway.server.address(), head.as_bytes()).await?;
    }
    for (name, value) in [("authorization", "Basic ?"), ("content-type", "???"), ("x-session-id", "\u{e9}")] {
        let call = decisions(&gateway.inference.secret, body("sandbox/decider")).header(name, value);
        let status = gateway.server.send(&call).await?.status;
        ensure!(status < 500, "{name}: {status}");
    }
    gateway.server.ensure_healthy().await?;
    let call = Call::get("/health/live").header("x-request-id", "the-last");
    gateway.server.send(&call).await?;
    line(&gateway.server, "request.id=the-last", "request completed").await?;
    let log = gateway.server.output();
    ensure!(!log.contains("ERROR"), "{log}");
    gateway.server.stop().await
}

#[tokio::test]
async fn detached_task_logs_request_id() -> Result<()> {
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let mut instance = Instance::new(&providers_toml(&alpha.base_url(), &alpha.base_url(), 60_000))?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    instance.set_env("RUST_LOG", "debug");
    let gateway = TestGateway::of(instance).await?;
    let call = decisions(&gateway.inference.secret, body("acme/alone")).header("x-request-id", "left-early");
    disconnect_early(&call, gateway.server.address(), &alpha).await?;
    let refused = line(&gateway.server, "request.id=left-early", "499").await?;
    ensure!(refused.contains(" DEBUG ") && refused.ends_with(" request.id=left-early"), "{refused}");
    gateway.server.stop().await
}

#[tokio::test]
async fn server_answers_and_stops_when_log_is_not_read() -> Result<()> {
    let mut instance = Instance::new("")?;
    let metrics = free_address()?;
    instance.set_env("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string());
    let (reader, writer) = std::io::pipe()?;
    let server = instance.serve_logging_to(writer).await?;
    let key = instance.inference_key().await?;
    let count = Call::get("/api/v1/models/count").key(&key.secret).header("x-request-id", "r".repeat(128));
    let since = Instant::now();
    while Scrape::take(metrics).await?.value("tollgate_log_lines_dropped_total") <= 0 {
        ensure!(since.elapsed() < Duration::from_mins(5), "no line is dropped");
        for _ in 0..200 {
            server.send(&count).await?.ok()?;
        }
    }
    for path in ["/health/live", "/health/ready"] {
        ensure!(server.send(&Call::get(path)).await?.status == 200, "{path}");
    }
    server.decide(&key.secret, body("sandbox/decider")).await?.ok()?;
    // Lines are counted when they are dropped, before anything is read.
    let dropped = Scrape::take(metrics).await?.value("tollgate_log_lines_dropped_total");
    server.terminate().await?;
    let status = server.ended().await?;
    ensure!(status.code() == Some(0), "{status}");
    ensure!(dropped > 0, "{dropped}");
    drop(reader);
    Ok(())
}

#[tokio::test]
async fn log_reports_dropped_lines_after_pipe_is_drained() -> Result<()> {
    let mut instance = Instance::new("")?;
    let metrics = free_address()?;
    instance.set_env("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string());
    let (reader, writer) = std::io::pipe()?;
    let server = instance.serve_logging_to(writer).await?;
    let key = instance.inference_key().await?;
    let count = Call::get("/api/v1/models/count").key(&key.secret).header("x-request-id", "r".repeat(128));
    let dropped = || async { anyhow::Ok(Scrape::take(metrics).await?.value("tollgate_log_lines_dropped_total")) };
    let since = Instant::now();
    while dropped().await? <= 0 {
        ensure!(since.elapsed() < Duration::from_mins(5), "no line is dropped");
        for _ in 0..200 {
            server.send(&count).await?.ok()?;
        }
    }
    let lines = tokio::task::spawn_blocking(move || BufReader::new(reader).lines().collect::<Result<Vec<_>, _>>());
    // The dropped lines are reported when the pipe has room again; then no further one is dropped.
    let last = Call::get("/api/v1/models/count").key(&key.secret).header("x-request-id", "the-last");
    let expected = loop {
        let before = dropped().await?;
        server.send(&last).await?.ok()?;
        if dropped().await? == before {
            break before;
        }
        ensure!(since.elapsed() < Duration::from_mins(6), "the pipe has no room");
        sleep(Duration::from_millis(50)).await;
    };
    sleep(Duration::from_millis(500)).await;
    server.stop().await?;
    let lines = lines.await??;
    let reports = lines.iter().filter(|line| line.contains("log lines dropped"));
    let counts: Vec<i64> = reports
        .map(|line| line.rsplit_once("count=").context("no count")?.1.parse().context("no number"))
        .collect::<Result<_>>()?;
    ensure!(counts.iter().sum::<i64>() == expected, "{counts:?} are reported, {expected} were dropped");
    ensure!(lines.iter().any(|line| line.contains("the-last")), "no line after the dropped ones");
    ensure!(lines.last().is_some_and(|line| line.contains("stopped")), "{:?}", lines.last());
    Ok(())
}
