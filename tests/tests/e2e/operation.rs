//! Operation over HTTP: pauses of providers on every server, and the status.

use std::time::Duration;

use anyhow::{Result, ensure};
use http::Method;
use tokio::time::Instant;
use tollgate_tests::{Call, Server};

use crate::gateway::{TestGateway, body, outdated_for};

fn pause(gateway: &TestGateway, paused: bool) -> Call {
    let body = format!(r#"{{"paused":{paused}}}"#);
    Call::new(Method::PATCH, "/api/v1/providers/sandbox").json(body).key(&gateway.management.secret)
}

fn decision(gateway: &TestGateway) -> Call {
    Call::post("/api/v1/api/alpha/decisions").json(body("sandbox/decider")).key(&gateway.inference.secret)
}

#[tokio::test]
async fn pause_is_in_force_on_every_server_within_a_second_and_after_a_restart() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let beside = gateway.instance.serve_beside().await?;
    let decide = decision(&gateway);
    for server in [&gateway.server, &beside] {
        server.send(&decide).await?.ok()?;
    }
    gateway.server.send(&pause(&gateway, true)).await?.ok()?;
    let paused = Instant::now();
    gateway.server.send(&decide).await?.error(503, "sandbox paused by the operator")?;
    let outdated = outdated_for_pause(&beside, &decide, paused).await?;
    ensure!(outdated <= Duration::from_millis(1_500), "the provider was called for {outdated:?}");
    let status = Call::get("/api/v1/status").key(&gateway.management.secret);
    let status = beside.send(&status).await?.ok()?;
    ensure!(status["data"]["servers"][0]["providers"][0]["state"] == "paused", "{status}");
    ensure!(status["data"]["processes"].as_array().is_some_and(|all| all.len() == 2), "{status}");
    let local = gateway.instance.json(&["status"]).await?;
    ensure!(local["servers"].as_array().is_some_and(|all| all.len() == 2), "{local}");
    ensure!(local["servers"][0]["endpoints"][0]["paused"] == true, "{local}");
    beside.stop().await?;

    let TestGateway { instance, server, inference, management } = gateway;
    server.stop().await?;
    let gateway = TestGateway { server: instance.serve().await?, instance, inference, management };
    gateway.server.send(&decide).await?.error(503, "sandbox paused by the operator")?;
    gateway.server.send(&pause(&gateway, false)).await?.ok()?;
    outdated_for(&gateway.server, &decide, 200, Instant::now()).await?;
    let log = gateway.instance.json(&["audit", "list", "--action", "provider.update"]).await?;
    ensure!(log["data"].as_array().is_some_and(|all| all.len() == 2), "{log}");
    gateway.instance.json(&["audit", "verify"]).await?;
    Ok(())
}

/// Repeats a request until it is 503 because of the pause; returns the time from `since` to its last answer.
async fn outdated_for_pause(server: &Server, call: &Call, since: Instant) -> Result<Duration> {
    let mut outdated = Duration::ZERO;
    loop {
        let sent = since.elapsed();
        let reply = server.send(call).await?;
        if reply.text().contains("paused by the operator") {
            return Ok(outdated);
        }
        outdated = sent;
        ensure!(since.elapsed() < Duration::from_secs(20), "still {}", reply.status);
    }
}
