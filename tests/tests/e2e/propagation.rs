//! Changes to keys and guardrails take effect at three processes within a second.

use std::time::Duration;

use anyhow::{Result, ensure};
use http::Method;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Call, Instance, Server, decisions, free_address};

use crate::gateway::{PROMISED, TestGateway, body, outdated_for};
use crate::metrics::Scrape;

const TURNS: usize = 5;

/// Repeats a call until all servers return this status; returns the delay of the slowest one.
async fn until(servers: &[&Server], call: &Call, status: u16, since: Instant) -> Result<Duration> {
    let mut longest = Duration::ZERO;
    for server in servers {
        longest = longest.max(outdated_for(server, call, status, since).await?);
    }
    Ok(longest)
}

#[tokio::test]
async fn disabled_key_is_rejected_by_three_processes_within_a_second() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let others = [gateway.instance.serve_beside().await?, gateway.instance.serve_beside().await?];
    let servers = [&gateway.server, &others[0], &others[1]];
    for turn in 0..TURNS {
        let key = gateway.instance.inference_key().await?;
        let call = decisions(&key.secret, body("sandbox/decider"));
        for server in servers {
            server.send(&call).await?.ok()?;
        }
        let what = if turn % 2 == 0 { "disable" } else { "delete" };
        gateway.instance.json(&["key", what, &key.hash]).await?;
        let took = until(&servers, &call, 401, Instant::now()).await?;
        ensure!(took <= PROMISED, "the key lived on for {took:?}");
    }
    Ok(())
}

#[tokio::test]
async fn changed_guardrail_is_enforced_by_three_processes_within_a_second() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let others = [gateway.instance.serve_beside().await?, gateway.instance.serve_beside().await?];
    let servers = [&gateway.server, &others[0], &others[1]];
    let guardrail = gateway.instance.guardrail(&[]).await?;
    gateway.instance.json(&["guardrail", "assign", &guardrail, &gateway.inference.hash]).await?;
    sleep(PROMISED).await;
    let call = decisions(&gateway.inference.secret, body("sandbox/decider"));
    let patch = |body: &str| {
        Call::new(Method::PATCH, format!("/api/v1/guardrails/{guardrail}")).key(&gateway.management.secret).json(body)
    };
    let block = r#"{"content_filters":[{"pattern":"smokes","action":"block","label":"SMOKE"}]}"#;
    for turn in 0..TURNS {
        // Each change is made at another process.
        send_ok(servers[turn % 3], &patch(block)).await?;
        let took = until(&servers, &call, 403, Instant::now()).await?;
        ensure!(took <= PROMISED, "the filter came into force after {took:?}");
        send_ok(servers[(turn + 1) % 3], &patch(r#"{"content_filters":null}"#)).await?;
        let took = until(&servers, &call, 200, Instant::now()).await?;
        ensure!(took <= PROMISED, "the filter went out of force after {took:?}");
    }
    Ok(())
}

#[tokio::test]
async fn only_changed_keys_are_reloaded() -> Result<()> {
    let mut instance = Instance::new("")?;
    let metrics = free_address()?;
    instance.set_env("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string());
    let gateway = TestGateway::of(instance).await?;
    let mut keys = Vec::new();
    for _ in 0..10 {
        keys.push(gateway.instance.inference_key().await?);
    }
    let guardrail = gateway.instance.guardrail(&[]).await?;
    let count = |secret: &str| Call::get("/api/v1/models/count").key(secret);
    let looked_up = async || {
        for key in &keys {
            gateway.server.send(&count(&key.secret)).await?;
        }
        let scrape = Scrape::take(metrics).await?;
        anyhow::Ok(scrape.of("tollgate_cache_lookups_total", &[("cache", "keys"), ("result", "miss")]))
    };
    looked_up().await?;
    let (disabled, assigned) = (keys[3].hash.as_str(), keys[4].hash.as_str());
    for (command, misses) in [
        (vec!["key", "create", "--name", "another"], 0),
        (vec!["key", "disable", disabled], 1),
        (vec!["guardrail", "assign", &guardrail, assigned], 1),
        (vec!["guardrail", "create", "--name", "another"], 0),
    ] {
        let before = looked_up().await?;
        gateway.instance.json(&command).await?;
        sleep(PROMISED).await;
        let now = looked_up().await?;
        ensure!(now - before == misses, "{command:?}: {} of {} keys were looked up", now - before, keys.len());
        ensure!(looked_up().await? == now, "{command:?}: looked up twice");
    }
    ensure!(gateway.server.send(&count(&keys[3].secret)).await?.status == 401);
    Ok(())
}

async fn send_ok(server: &Server, call: &Call) -> Result<()> {
    server.send(call).await?.ok().map(drop)
}
