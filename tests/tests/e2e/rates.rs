//! Requests and tokens per minute.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tollgate_tests::{Behaviour, Call, Reply, Upstream, decisions};

use crate::world::{ANSWER, World, body, providers_toml};

/// [`ANSWER`] says 429 tokens in and 31 out.
const TOKENS_OF_AN_ANSWER: u64 = 460;

fn count(secret: &str) -> Call {
    Call::get("/api/v1/models/count").key(secret)
}

/// What a refusal by a rate must carry; the refusal's metadata.
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

async fn world_with(limits: &str, behaviour: Behaviour) -> Result<(World, Upstream)> {
    let alpha = Upstream::start(behaviour).await?;
    let world =
        World::start(&format!("{limits}{}", providers_toml(&alpha.base_url(), &alpha.base_url(), 30_000))).await?;
    Ok((world, alpha))
}

#[tokio::test]
async fn tokens_are_limited_by_what_answers_used() -> Result<()> {
    let limit = 3 * TOKENS_OF_AN_ANSWER;
    let (world, alpha) =
        world_with(&format!("[limits]\ntokens_per_minute = {limit}\n"), Behaviour::json(ANSWER)).await?;
    for _ in 0..3 {
        // A quarter of the body's bytes fits in before each of them.
        world.decide(body("acme/alone")).await?;
    }
    alpha.take_requests();
    let reply = world.server.decide(&world.inference.secret, body("acme/alone")).await?;
    refused(&reply, "key", "tokens", limit)?;
    ensure!(reply.header("retry-after").parse::<u64>()? <= 60);
    ensure!(alpha.take_requests().is_empty(), "what is refused is not sent");
    ensure!(world.server.send(&count(&world.inference.secret)).await?.status == 200, "only Decisions have tokens");
    let other = world.instance.inference_key().await?;
    world.server.decide(&other.secret, body("acme/alone")).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn an_estimate_that_was_too_high_is_given_back() -> Result<()> {
    let (world, _alpha) = world_with("[limits]\ntokens_per_minute = 10000\n", Behaviour::json(ANSWER)).await?;
    // Each takes about 9,000 tokens in advance and uses 460.
    let body = json!({"model": "acme/alone", "questions": {"q": {"type": "noul", "instructions": "?"}},
        "state": "x".repeat(36_000)});
    let body = body.to_string();
    for _ in 0..2 {
        let reply = world.server.decide(&world.inference.secret, &body).await?;
        ensure!(reply.status != 429, "{}", reply.text());
    }
    Ok(())
}

#[tokio::test]
async fn a_caller_that_leaves_gets_back_what_nobody_used() -> Result<()> {
    let limits = "[money]\nunreported_usage = \"free\"\n[limits]\ntokens_per_minute = 10000\n";
    let (world, alpha) = world_with(limits, Behaviour::HangBeforeHeaders).await?;
    let body = json!({"model": "acme/alone", "questions": {"refund": {"type": "noul", "instructions": "?"}},
        "state": "x".repeat(36_000)});
    let body = body.to_string();
    let (call, address) = (decisions(&world.inference.secret, &body), world.server.address());
    let mut waiting = tokio::task::JoinSet::new();
    waiting.spawn(async move { call.send(address).await });
    alpha.wait_for_request().await?;
    let reply = world.server.decide(&world.inference.secret, &body).await?;
    refused(&reply, "key", "tokens", 10_000)?;
    alpha.behave(Behaviour::json(ANSWER));
    waiting.shutdown().await;
    alpha.wait_until_abandoned(1).await?;
    // A tenth of the bucket comes in by itself in six seconds; this is faster.
    for _ in 0..100 {
        if world.server.decide(&world.inference.secret, &body).await?.status == 200 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    anyhow::bail!("the tokens are not given back")
}

#[tokio::test]
async fn a_workspace_is_limited_over_all_of_its_keys() -> Result<()> {
    let world = World::start("[limits]\nworkspace_requests_per_minute = 6\nrequests_per_minute = 4\n").await?;
    let (one, two) = (&world.inference.secret, world.instance.inference_key().await?.secret);
    let elsewhere = world.instance.workspace("elsewhere").await?;
    let stranger = world.instance.key(&["--name", "k", "--workspace", &elsewhere]).await?;
    for secret in [one, one, one, one] {
        world.server.send(&count(secret)).await?.ok()?;
    }
    for _ in 0..10 {
        refused(&world.server.send(&count(one)).await?, "key", "requests", 4)?;
    }
    world.server.send(&count(&two)).await?.ok()?;
    world.server.send(&count(&two)).await?.ok()?;
    let reply = world.server.send(&count(&two)).await?;
    refused(&reply, "workspace", "requests", 6)?;
    ensure!(reply.header("x-ratelimit-remaining") == "0");
    world.server.send(&count(&stranger.secret)).await?.ok()?;
    world.server.send(&count(&world.management.secret)).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn a_key_s_own_rate_counts_before_the_configured_one() -> Result<()> {
    let world = World::start("[limits]\nrequests_per_minute = 1\n").await?;
    let own = world.instance.key(&["--name", "own", "--rpm", "3"]).await?;
    for _ in 0..3 {
        world.server.send(&count(&own.secret)).await?.ok()?;
    }
    refused(&world.server.send(&count(&own.secret)).await?, "key", "requests", 3)?;
    world.server.send(&count(&world.inference.secret)).await?.ok()?;
    refused(&world.server.send(&count(&world.inference.secret)).await?, "key", "requests", 1)?;
    Ok(())
}

#[tokio::test]
async fn many_callers_at_once_get_exactly_what_there_is() -> Result<()> {
    let world = World::start("[limits]\nrequests_per_minute = 20\n").await?;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (call, address) = (count(&world.inference.secret), world.server.address());
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
    // One comes in every three seconds, which a busy machine may need.
    ensure!((20..=26).contains(&answered) && answered + refusals == 100, "{answered} were let through");
    Ok(())
}
