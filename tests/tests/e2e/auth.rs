//! Authentication.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Call, Report, seconds_from_now};

use crate::gateway::{TestGateway, body, outdated_for};

/// The time within which a disabled key must be rejected.
const DEATH: Duration = Duration::from_secs(1);

fn operations() -> Vec<(&'static str, Call)> {
    vec![
        ("promote", Call::post("/api/v1/containers/sess_a/files/cfile_YQ/promote")),
        ("decisions", Call::post("/api/v1/api/alpha/decisions").json(body("sandbox/decider"))),
        ("decisions of old", Call::post("/api/alpha/decisions").json("{ not even JSON")),
        ("assign", Call::post("/api/v1/guardrails/x/assignments/keys").json(r#"{"key_hashes":["a"]}"#)),
        ("model", Call::get("/api/v1/model/sandbox/decider")),
        ("count", Call::get("/api/v1/models/count?output_modalities=nonsense")),
    ]
}

#[tokio::test]
async fn requests_without_live_key_are_rejected_before_other_checks() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let unknown = format!("Bearer sk-tg-v1-{}", "0".repeat(64));
    let headers: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("scheme alone", b"Bearer".to_vec()),
        ("scheme and a space", b"Bearer ".to_vec()),
        ("no scheme", gateway.inference.secret.clone().into_bytes()),
        ("basic", b"Basic dXNlcjpwYXNz".to_vec()),
        ("10 kB", format!("Bearer {}", "a".repeat(10_000)).into_bytes()),
        ("non-ASCII", "Bearer schlüssel-\u{1F511}".as_bytes().to_vec()),
        ("not UTF-8", b"Bearer \xff\xfe\xfd".to_vec()),
        ("SQL", b"Bearer ' OR 1=1; DROP TABLE api_keys; --".to_vec()),
        ("unknown", unknown.into_bytes()),
        ("upper case", format!("Bearer {}", gateway.inference.secret.to_uppercase()).into_bytes()),
        ("the hash for the secret", format!("Bearer {}", gateway.inference.hash).into_bytes()),
        ("two in one", format!("Bearer {0}, Bearer {0}", gateway.inference.secret).into_bytes()),
    ];
    let mut report = Report::default();
    for (operation, call) in operations() {
        let reply = gateway.server.send(&call).await?;
        report.case(&format!("{operation}, none"), reply.error(401, "Missing Authentication header"));
        let mut messages = std::collections::BTreeSet::new();
        for (name, value) in &headers {
            let reply = gateway.server.send(&call.clone().header("authorization", value)).await?;
            let envelope = reply.envelope(401);
            if let (Ok(envelope), true) = (&envelope, *name != "empty") {
                messages.insert(envelope["error"]["message"].to_string());
            }
            report.case(&format!("{operation}, {name}"), envelope);
        }
        let one = if messages.len() == 1 { Ok(()) } else { Err(anyhow::anyhow!("an oracle: {messages:?}")) };
        report.case(&format!("{operation}, one message"), one);
    }
    let output = gateway.server.output();
    report.case("the secret is not logged", {
        if output.contains(&gateway.inference.secret) { Err(anyhow::anyhow!("it is: {output}")) } else { Ok(()) }
    });
    gateway.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn keys_are_limited_to_operations_of_their_kind() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let guardrail = gateway.instance.guardrail(&[]).await?;
    let assign = Call::post(format!("/api/v1/guardrails/{guardrail}/assignments/keys"))
        .json(format!(r#"{{"key_hashes":["{}"]}}"#, gateway.inference.hash));
    let (inference, management) = (&gateway.inference.secret, &gateway.management.secret);
    let server = &gateway.server;

    server.send(&assign.clone().key(inference)).await?.error(403, "Only management keys can perform this operation")?;
    // The kind of key is checked before the body and the guardrail.
    let nonsense = Call::post("/api/v1/guardrails/nonsense/assignments/keys").json("{").key(inference);
    server.send(&nonsense).await?.error(403, "Only management keys can perform this operation")?;
    ensure!(server.send(&assign.key(management)).await?.ok()?["assigned_count"] == 1);

    let forbidden = "Management keys cannot perform this operation";
    server.decide(management, body("sandbox/decider")).await?.error(403, forbidden)?;
    server.promote(management, "sess_a", "cfile_YQ").await?.error(403, forbidden)?;
    gateway.decide(body("sandbox/decider")).await?;

    for secret in [inference, management] {
        server.send(&Call::get("/api/v1/models/count").key(secret)).await?.ok()?;
        server.send(&Call::get("/api/v1/model/sandbox/decider").key(secret)).await?.ok()?;
    }
    let lower = Call::get("/api/v1/models/count").header("authorization", format!("bearer {inference}"));
    server.send(&lower).await?.ok()?;
    Ok(())
}

/// Repeats a call until it has this status; returns the time until then.
async fn until(gateway: &TestGateway, secret: &str, status: u16) -> Result<Duration> {
    let call = Call::get("/api/v1/models/count").key(secret);
    outdated_for(&gateway.server, &call, status, Instant::now()).await
}

#[tokio::test]
async fn key_is_rejected_within_a_second_when_another_process_disables_or_deletes_it() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let (secret, hash) = (&gateway.inference.secret, gateway.inference.hash.as_str());
    // The first request caches the key.
    gateway.decide(body("sandbox/decider")).await?;
    gateway.instance.json(&["key", "disable", hash]).await?;
    let took = until(&gateway, secret, 401).await?;
    ensure!(took <= DEATH, "a disabled key lived on for {took:?}");
    gateway.server.decide(secret, body("sandbox/decider")).await?.error(401, "Invalid API key")?;
    gateway.instance.json(&["key", "enable", hash]).await?;
    let took = until(&gateway, secret, 200).await?;
    ensure!(took <= DEATH, "an enabled key was refused for {took:?}");
    gateway.instance.json(&["key", "delete", hash]).await?;
    let took = until(&gateway, secret, 401).await?;
    ensure!(took <= DEATH, "a deleted key lived on for {took:?}");
    gateway.instance.refused(&["key", "enable", hash]).await?;
    Ok(())
}

#[tokio::test]
async fn new_key_works_immediately_after_earlier_rejection() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    for _ in 0..3 {
        let key = gateway.instance.inference_key().await?;
        gateway.server.decide(&key.secret, body("sandbox/decider")).await?.ok()?;
    }
    Ok(())
}

#[tokio::test]
async fn key_is_rejected_at_expiry_even_if_cached() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let key = gateway.instance.key(&["--name", "short", "--expires-at", &seconds_from_now(4)]).await?;
    gateway.server.send(&Call::get("/api/v1/models/count").key(&key.secret)).await?.ok()?;
    sleep(Duration::from_secs(4)).await;
    let reply = gateway.server.send(&Call::get("/api/v1/models/count").key(&key.secret)).await?;
    reply.error(401, "Invalid API key")?;
    let past = seconds_from_now(-60);
    gateway.instance.refused(&["key", "create", "--name", "late", "--expires-at", &past]).await?;
    Ok(())
}

#[tokio::test]
async fn keys_are_forbidden_while_workspace_is_suspended() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let workspace = gateway.instance.workspace("acme").await?;
    let key = gateway.instance.key(&["--name", "a", "--workspace", &workspace]).await?;
    gateway.server.decide(&key.secret, body("sandbox/decider")).await?.ok()?;
    gateway.instance.json(&["workspace", "suspend", &workspace]).await?;
    let took = until(&gateway, &key.secret, 403).await?;
    ensure!(took <= DEATH, "a suspended workspace went on for {took:?}");
    for (name, call) in operations() {
        let reply = gateway.server.send(&call.key(&key.secret)).await?;
        reply.envelope(403).map_err(|error| error.context(name))?;
    }
    gateway.decide(body("sandbox/decider")).await?;
    gateway.instance.json(&["workspace", "resume", &workspace]).await?;
    let took = until(&gateway, &key.secret, 200).await?;
    ensure!(took <= DEATH, "a resumed workspace waited for {took:?}");
    Ok(())
}
