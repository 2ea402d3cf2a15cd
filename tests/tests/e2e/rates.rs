//! Requests and tokens per minute.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tollgate_tests::{Behaviour, Call, Reply, Upstream, decisions};

use crate::gateway::{ANSWER, TestGateway, body, providers_toml};

/// [`ANSWER`] reports 429 input and 31 output tokens.
const TOKENS_OF_AN_ANSWER: u64 = 460;

fn count(secret: &str) -> Call {
    Call::get("/api/v1/models/count").key(secret)
}

/// Checks a rejection by a rate and returns its metadata.
fn refused(reply: &Reply, scope: &str, unit: &str, limit: u64) -> Result<Value> {
    let body = reply.error(429, "Rate limit exceeded")?;
    let metadata = body["error"]["metadata"].clone();
    ensure!(metadata["scope"] == scope && metadata["unit"] == unit && metadata["limit"] == limit, "{metadata}");
    ensure!(reply.header("x-ratelimit-limit") == limit.to_string());
    ensure!(reply.header("x-ratelimit-remaining").parse::<u64>()? <= limit);
    let wait: u64 = reply.header("retry-after").parse().context("no Retry-After")?;
    let reset: u64 = reply.header("x-ratelimit-reset").parse().context("no X-RateLimit-Reset")?;
    let now = tollgate_tests::unix_ms()?;
    ensure!(wait >= 1 && reset <= now + wait * 1_000 && reset + 60_000 > now, "{wait} s, but {now} and {reset}");
    Ok(metadata)
}

async fn gateway_with(limits: &str, behaviour: Behaviour) -> Result<(TestGateway, Upstream)> {
    let alpha = Upstream::start(behaviour).await?;
    let gateway =
        TestGateway::start(&format!("{limits}{}", providers_toml(&alpha.base_url(), &alpha.base_url(), 30_000)))
            .await?;
    Ok((gateway, alpha))
}

#[tokio::test]
async fn token_rate_counts_used_tokens() -> Result<()> {
    let limit = 3 * TOKENS_OF_AN_ANSWER;
    let (gateway, alpha) =
        gateway_with(&format!("[limits]\ntokens_per_minute = {limit}\n"), Behaviour::json(ANSWER)).await?;
    for _ in 0..3 {
        // A quarter of the body's size must fit before each request.
        gateway.decide(body("acme/alone")).await?;
    }
    alpha.take_requests();
    let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
    refused(&reply, "key", "tokens", limit)?;
    ensure!(reply.header("retry-after").parse::<u64>()? <= 60);
    ensure!(alpha.take_requests().is_empty(), "what is refused is not sent");
    ensure!(gateway.server.send(&count(&gateway.inference.secret)).await?.status == 200, "only Decisions have tokens");
    let other = gateway.instance.inference_key().await?;
    gateway.server.decide(&other.secret, body("acme/alone")).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn excess_token_estimate_is_released() -> Result<()> {
    let (gateway, _alpha) = gateway_with("[limits]\ntokens_per_minute = 10000\n", Behaviour::json(ANSWER)).await?;
    // Each request takes about 9,000 tokens in advance and uses 460.
    let body = json!({"model": "acme/alone", "questions": {"q": {"type": "noul", "instructions": "?"}},
        "state": "x".repeat(36_000)});
    let body = body.to_string();
    for _ in 0..2 {
        let reply = gateway.server.decide(&gateway.inference.secret, &body).await?;
        ensure!(reply.status != 429, "{}", reply.text());
    }
    Ok(())
}

#[tokio::test]
async fn unused_tokens_are_released_after_disconnect() -> Result<()> {
    let limits = "[money]\nunreported_usage = \"free\"\n[limits]\ntokens_per_minute = 10000\n";
    let (gateway, alpha) = gateway_with(limits, Behaviour::HangBeforeHeaders).await?;
    let body = json!({"model": "acme/alone", "questions": {"refund": {"type": "noul", "instructions": "?"}},
        "state": "x".repeat(36_000)});
    let body = body.to_string();
    let (call, address) = (decisions(&gateway.inference.secret, &body), gateway.server.address());
    let mut waiting = tokio::task::JoinSet::new();
    waiting.spawn(async move { call.send(address).await });
    alpha.wait_for_request().await?;
    let reply = gateway.server.decide(&gateway.inference.secret, &body).await?;
    refused(&reply, "key", "tokens", 10_000)?;
    alpha.behave(Behaviour::json(ANSWER));
    waiting.shutdown().await;
    alpha.wait_until_abandoned(1).await?;
    // A refill of a tenth of the bucket takes six seconds; the release is faster.
    for _ in 0..100 {
        if gateway.server.decide(&gateway.inference.secret, &body).await?.status == 200 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    anyhow::bail!("the tokens are not released")
}

#[tokio::test]
async fn workspace_rate_counts_all_keys() -> Result<()> {
    let gateway = TestGateway::start("[limits]\nworkspace_requests_per_minute = 6\nrequests_per_minute = 4\n").await?;
    let (one, two) = (&gateway.inference.secret, gateway.instance.inference_key().await?.secret);
    let elsewhere = gateway.instance.workspace("elsewhere").await?;
    let stranger = gateway.instance.key(&["--name", "k", "--workspace", &elsewhere]).await?;
    for secret in [one, one, one, one] {
        gateway.server.send(&count(secret)).await?.ok()?;
    }
    for _ in 0..10 {
        refused(&gateway.server.send(&count(one)).await?, "key", "requests", 4)?;
    }
    gateway.server.send(&count(&two)).await?.ok()?;
    gateway.server.send(&count(&two)).await?.ok()?;
    let reply = gateway.server.send(&count(&two)).await?;
    refused(&reply, "workspace", "requests", 6)?;
    ensure!(reply.header("x-ratelimit-remaining") == "0");
    gateway.server.send(&count(&stranger.secret)).await?.ok()?;
    gateway.server.send(&count(&gateway.management.secret)).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn key_rate_overrides_configured_rate() -> Result<()> {
    let gateway = TestGateway::start("[limits]\nrequests_per_minute = 1\n").await?;
    let own = gateway.instance.key(&["--name", "own", "--rpm", "3"]).await?;
    for _ in 0..3 {
        gateway.server.send(&count(&own.secret)).await?.ok()?;
    }
    refused(&gateway.server.send(&count(&own.secret)).await?, "key", "requests", 3)?;
    gateway.server.send(&count(&gateway.inference.secret)).await?.ok()?;
    refused(&gateway.server.send(&count(&gateway.inference.secret)).await?, "key", "requests", 1)?;
    Ok(())
}

#[tokio::test]
async fn concurrent_requests_get_exactly_the_rate() -> Result<()> {
    let gateway = TestGateway::start("[limits]\nrequests_per_minute = 20\n").await?;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (call, address) = (count(&gateway.inference.secret), gateway.server.address());
        calls.spawn(async move { call.send(address).await });
    }
    let (mut answered, mut refusals) = (0, 0);
    while let Some(reply) = calls.join_next().await {
        match reply??.status {
            200 => answered += 1,
            429 => refusals += 1,
            other => anyhow::bail!("{other}"),
        }
    }
    // The refill is one every three seconds, which matters on a busy machine.
    ensure!((20..=26).contains(&answered) && answered + refusals == 100, "{answered} were let through");
    Ok(())
}
