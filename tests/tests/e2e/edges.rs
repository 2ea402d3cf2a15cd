//! Connection reuse, admission, error metadata, logs and `doctor`.

use anyhow::{Context, Result, ensure};
use tollgate_tests::{Behaviour, Call, Instance, Upstream, decisions, raw};

use crate::gateway::{ANSWER, QUESTIONS, TestGateway, body};

#[tokio::test]
async fn rejected_request_does_not_corrupt_following_request() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let secret = &gateway.inference.secret;
    let post = |body: &str, close: &str| {
        format!(
            "POST /api/alpha/decisions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n{close}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let unknown = "POST /nonsense HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello";
    let stranger = "POST /api/alpha/decisions HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc";
    let requests = [
        post("{", ""),
        unknown.to_owned(),
        stranger.to_owned(),
        post(&body("sandbox/decider"), "connection: close\r\n"),
    ];
    let answers = raw(gateway.server.address(), requests.concat().as_bytes()).await?;
    let statuses: Vec<&str> =
        answers.split("HTTP/1.1 ").skip(1).map(|answer| answer.split(' ').next().unwrap_or_default()).collect();
    // A server may also close after a rejection, but must not parse a body as a request.
    ensure!(["400", "404", "401", "200"].starts_with(&statuses), "{statuses:?}");
    ensure!(!statuses.is_empty());
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn requests_over_admission_limit_get_retry_after() -> Result<()> {
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let toml = format!(
        "[limits]\nmax_in_flight = 1\n{}",
        crate::gateway::providers_toml(&alpha.base_url(), &alpha.base_url(), 30_000)
    );
    let gateway = TestGateway::start(&toml).await?;
    let count = Call::get("/api/v1/models/count").key(&gateway.inference.secret);
    gateway.server.send(&count).await?.ok()?;
    let call = decisions(&gateway.inference.secret, body("acme/alone"));
    let address = gateway.server.address();
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { call.send(address).await });
    alpha.wait_for_request().await?;
    let refused = gateway.server.send(&count).await?;
    refused.error(503, "Service temporarily unavailable")?;
    ensure!(!refused.header("retry-after").is_empty());
    ensure!(gateway.server.send(&Call::get("/health/ready")).await?.status == 200, "open routes take no place");
    calls.shutdown().await;
    alpha.wait_until_abandoned(1).await?;
    for _ in 0..100 {
        if gateway.server.send(&count).await?.status == 200 {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    anyhow::bail!("the place is not released")
}

#[tokio::test]
async fn error_metadata_contains_workspace_owner() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let made = gateway.instance.json(&["workspace", "create", "--name", "w", "--owner-id", "owner-7"]).await?;
    let workspace = made["id"].as_str().context("no id")?;
    let key = gateway.instance.key(&["--name", "k", "--workspace", workspace]).await?;
    let owned = gateway.server.decide(&key.secret, "{").await?.envelope(400)?;
    ensure!(owned["user_id"] == "owner-7", "{owned}");
    let bare = gateway.server.decide(&gateway.inference.secret, "{").await?.envelope(400)?;
    ensure!(bare.get("user_id").is_none_or(serde_json::Value::is_null), "{bare}");
    Ok(())
}

#[tokio::test]
async fn trace_log_contains_no_secrets_or_content() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER.replace("0.97", "0.97,\"aside\":\"marker-answer\""))).await?;
    let toml = crate::gateway::providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000);
    let mut instance = Instance::new(&toml)?;
    instance.set_env("ALPHA_API_KEY", "marker-provider-key");
    instance.set_env("RUST_LOG", "trace");
    let gateway = TestGateway::of(instance).await?;
    let request = format!(
        r#"{{"model":"acme/alone","questions":{QUESTIONS},"state":"marker-state","session_id":"marker-session",
            "user":"marker-user","trace":{{"a":"marker-trace"}}}}"#
    );
    gateway.decide(&request).await?;
    let broken = request.replace("\"noul\"", "\"marker-type\"");
    gateway.server.decide(&gateway.inference.secret, broken).await?.envelope(400)?;
    alpha.behave(Behaviour::Answer(500, String::new(), "failure".to_owned()));
    gateway.server.decide(&gateway.inference.secret, &request).await?.envelope(502)?;
    alpha.behave(Behaviour::json("marker-garbage"));
    gateway.server.decide(&gateway.inference.secret, &request).await?.envelope(502)?;
    let id = gateway.instance.put("sess_a", "a", b"marker-file").await?;
    gateway.server.promote(&gateway.inference.secret, "sess_a", &id).await?.ok()?;

    let log = gateway.server.output();
    ensure!(log.contains("TRACE"), "the log is not at its most talkative");
    ensure!(log.contains("500"), "the failure is not logged");
    ensure!(log.contains("provider.error_message=\"failure\""), "the provider's message is not logged");
    for private in ["marker-", &gateway.inference.secret, &gateway.inference.secret[9..]] {
        let line = log.lines().find(|line| line.contains(private));
        ensure!(line.is_none(), "{private} is in the log: {line:?}");
    }
    Ok(())
}

#[tokio::test]
async fn logs_are_json_when_configured() -> Result<()> {
    let gateway = TestGateway::start("[log]\nformat = \"json\"\n[sandbox]\nerrors = true\n").await?;
    let call = decisions(&gateway.inference.secret, body("sandbox/error-502")).header("x-request-id", "find-me");
    gateway.server.send(&call).await?.envelope(502)?;
    let mut log = gateway.server.output();
    for _ in 0..200 {
        if log.contains("find-me") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        log = gateway.server.output();
    }
    // The last line may be incomplete.
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    for line in whole.lines() {
        serde_json::from_str::<serde_json::Value>(line).with_context(|| format!("not JSON: {line}"))?;
    }
    ensure!(log.contains("find-me"), "the request is not named: {log}");
    gateway.server.stop().await
}

#[tokio::test]
async fn doctor_reports_problems() -> Result<()> {
    let nobody = format!("http://{}/v1", tollgate_tests::free_address()?);
    let gateway = TestGateway::start(&crate::gateway::providers_toml(&nobody, &nobody, 1_000)).await?;
    let output = gateway.instance.run(&["doctor", "--json"]).await?;
    ensure!(!output.status.success(), "an unreachable provider passed the check");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    ensure!(report.to_string().contains("alpha"), "{report}");
    ensure!(report.to_string().contains("acme/alone"), "the minimal row is not reported: {report}");
    Ok(())
}

#[tokio::test]
async fn doctor_reports_a_journal_folder_that_cannot_be_made() -> Result<()> {
    let mut instance = tollgate_tests::Instance::new("")?;
    let (file, link) = (instance.path().join("file"), instance.path().join("link"));
    std::fs::write(&file, "")?;
    std::os::unix::fs::symlink(instance.path().join("nowhere"), &link)?;
    let new = instance.path().join("new");
    for (path, expected) in
        [(new, "does not exist yet"), (link, "cannot be written"), (file.join("journal"), "cannot be opened")]
    {
        instance.set_env("TOLLGATE__JOURNAL__PATH", path.display().to_string());
        let said = String::from_utf8(instance.run(&["doctor", "--json"]).await?.stdout)?;
        ensure!(said.contains(expected), "{}: {said}", path.display());
    }
    Ok(())
}
