//! The counts of rejected requests.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Instance, Upstream, decisions};

use crate::costs::rows;
use crate::gateway::{ANSWER, TestGateway, body};

/// Returns reason, status and number of the sums.
async fn sums(instance: &Instance, arguments: &[&str]) -> Result<Vec<Value>> {
    let sums = instance.json(&[&["usage", "sum", "--by", "reason"], arguments].concat()).await?;
    let total: u64 = rows(&sums)?.iter().filter_map(|sum| sum["requests"].as_u64()).sum();
    ensure!(sums["total"]["requests"] == total, "{sums}");
    ensure!(rows(&sums)?.iter().all(|sum| sum["last_hour"].is_string()), "{sums}");
    Ok(rows(&sums)?.iter().map(|sum| json!([sum["reason"], sum["status"], sum["requests"]])).collect())
}

#[tokio::test]
async fn rejected_requests_are_counted_per_key_and_reason_over_two_processes() -> Result<()> {
    // A free model is never rejected for a limit.
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = TestGateway::with_providers_and_sandbox(&alpha, &alpha, 5_000).await?;
    let instance = &gateway.instance;
    let beside = instance.serve_beside().await?;
    instance.workspace("team x").await?;
    let poor = instance.key(&["--name", "poor", "--workspace", "team x", "--limit-usd", "0.000000000001"]).await?;
    let suspended = instance.workspace("suspended").await?;
    let stopped = instance.key(&["--name", "stopped", "--workspace", "suspended"]).await?;
    instance.json(&["workspace", "suspend", &suspended]).await?;
    ensure!(sums(instance, &[]).await?.is_empty());

    for server in [&gateway.server, &beside, &gateway.server] {
        server.decide(&poor.secret, body("acme/alone")).await?.envelope(402)?;
    }
    for server in [&gateway.server, &beside] {
        server.decide(&stopped.secret, body("sandbox/decider")).await?.envelope(403)?;
    }
    gateway.server.decide(&gateway.management.secret, body("sandbox/decider")).await?.envelope(403)?;
    gateway.server.decide("sk-tg-v1-unknown", body("sandbox/decider")).await?.envelope(401)?;
    gateway.server.decide(&poor.secret, "{}").await?.envelope(400)?;

    // A running server writes its counts within seconds.
    let since = Instant::now();
    while sums(instance, &["--workspace", "team x"]).await? != [json!(["key_limit_exceeded", 402, 3])] {
        ensure!(since.elapsed() < Duration::from_secs(30), "{:?}", sums(instance, &[]).await?);
        sleep(Duration::from_millis(200)).await;
    }
    // A stopped server has written all of them.
    gateway.server.decide(&poor.secret, body("acme/alone")).await?.envelope(402)?;
    beside.stop().await?;
    gateway.server.stop().await?;
    let all = [
        json!(["key_limit_exceeded", 402, 4]),
        json!(["workspace_suspended", 403, 2]),
        json!(["wrong_key_kind", 403, 1]),
    ];
    ensure!(sums(instance, &[]).await? == all, "{:?}", sums(instance, &[]).await?);
    ensure!(sums(instance, &["--key", "poor"]).await? == all[..1]);
    ensure!(sums(instance, &["--until", "2020-01-01"]).await?.is_empty());

    // Counts of a deleted workspace stay readable by its id, also without a usage record.
    instance.json(&["workspace", "delete", &suspended, "--with", "keys"]).await?;
    ensure!(sums(instance, &["--workspace", &suspended]).await? == all[1..2]);
    let said = instance.refused(&["usage", "sum", "--by", "reason", "--provider", "alpha"]).await?;
    ensure!(said.contains("--by reason"), "{said}");
    Ok(())
}

#[tokio::test]
async fn every_rejection_has_a_reason_in_the_log() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let limited = gateway.instance.key(&["--name", "slow", "--rpm", "1"]).await?;
    gateway.server.decide(&limited.secret, body("sandbox/decider")).await?.ok()?;
    let call = decisions(&limited.secret, body("sandbox/decider")).header("x-request-id", "too-fast");
    gateway.server.send(&call).await?.envelope(429)?;
    let since = Instant::now();
    let line = loop {
        let log = gateway.server.output();
        let line = log.lines().find(|line| line.contains("too-fast") && line.contains("request completed"));
        if let Some(line) = line {
            break line.to_owned();
        }
        ensure!(since.elapsed() < Duration::from_secs(10), "{log}");
        sleep(Duration::from_millis(20)).await;
    };
    ensure!(line.contains("http.status=429") && line.contains("reason=\"rate_limited\""), "{line}");
    gateway.server.stop().await.context("stop")
}
