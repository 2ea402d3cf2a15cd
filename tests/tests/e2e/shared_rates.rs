//! Rate limits over several processes: counted on a Valkey server, or divided between the replicas.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use test_servers::Valkey;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Call, Instance, Network, Relay, Reply, Server, Upstream};

use crate::gateway::{ANSWER, TestGateway, body, providers_toml};

/// The time for a recovery, or for a count of replicas, on a busy machine.
const SOON: Duration = Duration::from_secs(30);

fn count(secret: &str) -> Call {
    Call::get("/api/v1/models/count").key(secret)
}

/// Returns the accepted ones of several requests, one after another; the others must be 429.
async fn accepted(server: &Server, secret: &str, requests: usize) -> Result<usize> {
    let mut accepted = 0;
    for _ in 0..requests {
        let reply = server.send(&count(secret)).await?;
        match reply.status {
            200 => accepted += 1,
            429 => {}
            other => bail!("{other}: {}", reply.text()),
        }
    }
    Ok(accepted)
}

async fn ready(server: &Server) -> Result<Reply> {
    server.send(&Call::get("/health/ready")).await
}

/// Waits until readiness shows, or no longer shows, an outage of the shared rate limits.
async fn wait_until_ready(server: &Server, degraded: bool) -> Result<()> {
    let until = Instant::now() + SOON;
    loop {
        let state = ready(server).await?.ok()?;
        if (state["status"] == "degraded") == degraded {
            ensure!(!degraded || state["unavailable"] == serde_json::json!(["rate_limits"]), "{state}");
            return Ok(());
        }
        ensure!(Instant::now() < until, "degraded is not {degraded}: {state}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Returns a section with a timeout that a busy machine does not exceed.
fn section(url: &str, lines: &str) -> String {
    format!("[rate_limits]\nurl = \"{url}\"\ntimeout_ms = 1000\n{lines}")
}

#[tokio::test]
async fn replicas_share_the_rate_of_a_server() -> Result<()> {
    let valkey = Valkey::start()?;
    let toml = format!("[limits]\nrequests_per_minute = 4\n{}", section(&valkey.url(), ""));
    let gateway = TestGateway::start(&toml).await?;
    let beside = gateway.instance.serve_beside().await?;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..60 {
        let address = if number % 2 == 0 { gateway.server.address() } else { beside.address() };
        let call = count(&gateway.inference.secret);
        calls.spawn(async move { call.send(address).await });
    }
    let mut accepted = 0;
    while let Some(reply) = calls.join_next().await {
        let reply = reply??;
        ensure!(matches!(reply.status, 200 | 429), "{}", reply.text());
        accepted += usize::from(reply.status == 200);
    }
    // The refill is one every 15 seconds.
    ensure!((4..=5).contains(&accepted), "{accepted} were accepted");
    let other = gateway.instance.inference_key().await?;
    beside.send(&count(&other.secret)).await?.ok()?;
    wait_until_ready(&beside, false).await?;
    beside.stop().await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn token_rate_is_shared_and_corrected() -> Result<()> {
    let valkey = Valkey::start()?;
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let providers = providers_toml(&alpha.base_url(), &alpha.base_url(), 30_000);
    let limits = "[limits]\ntokens_per_minute = 4600\n";
    let gateway = TestGateway::start(&format!("{limits}{}{providers}", section(&valkey.url(), ""))).await?;
    let beside = gateway.instance.serve_beside().await?;
    let secret = &gateway.inference.secret;
    // The estimate of each body is below a hundred tokens, so without the correction to 460 all would be accepted.
    let mut accepted = 0;
    while accepted < 30 {
        let server = if accepted % 2 == 0 { &gateway.server } else { &beside };
        let reply = server.decide(secret, body("acme/alone")).await?;
        if reply.status == 429 {
            break;
        }
        reply.ok()?;
        accepted += 1;
    }
    // Corrections follow the responses, and 77 tokens a second are refilled.
    ensure!((10..=20).contains(&accepted), "{accepted} were accepted");
    for server in [&gateway.server, &beside] {
        let reply = server.decide(secret, large_body()).await?;
        let metadata = &reply.error(429, "Rate limit exceeded")?["error"]["metadata"];
        ensure!(metadata["unit"] == "tokens" && metadata["limit"] == 4600, "{metadata}");
    }
    Ok(())
}

/// Returns a body of about four thousand tokens.
fn large_body() -> String {
    let questions = serde_json::json!({"refund": {"type": "noul", "instructions": "?"}});
    serde_json::json!({"model": "acme/alone", "questions": questions, "state": "x".repeat(16_000)}).to_string()
}

#[tokio::test]
async fn replicas_divide_limits_without_a_server() -> Result<()> {
    let gateway = TestGateway::start("[limits]\nrequests_per_minute = 8\n").await?;
    ensure!(accepted(&gateway.server, &gateway.inference.secret, 10).await? == 8, "one process has the whole limit");
    let beside = gateway.instance.serve_beside().await?;
    // The new one counts the other before its first request; the other counts the new one within a second.
    let key = gateway.instance.inference_key().await?;
    ensure!(accepted(&beside, &key.secret, 10).await? == 4, "a new process has its share alone");
    wait_for_share(&gateway.instance, &gateway.server, 4).await?;
    let key = gateway.instance.inference_key().await?;
    let both = accepted(&gateway.server, &key.secret, 10).await? + accepted(&beside, &key.secret, 10).await?;
    ensure!((8..=9).contains(&both), "{both} were accepted");
    let limited = beside.send(&count(&key.secret)).await?;
    ensure!(limited.header("x-ratelimit-limit") == "8", "the limit is the configured one");
    beside.stop().await?;
    wait_for_share(&gateway.instance, &gateway.server, 8).await
}

/// Waits until a server accepts this many requests of a new key.
async fn wait_for_share(instance: &Instance, server: &Server, share: usize) -> Result<()> {
    let until = Instant::now() + SOON;
    loop {
        let key = instance.inference_key().await?;
        let found = accepted(server, &key.secret, 10).await?;
        if found == share {
            return Ok(());
        }
        ensure!(Instant::now() < until, "{found} instead of {share}");
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn silent_server_delays_few_requests_and_replicas_decide() -> Result<()> {
    let valkey = Valkey::start()?;
    let relay = Relay::start(valkey.address()).await?;
    // The default timeout of 50 ms.
    let toml =
        format!("[limits]\nrequests_per_minute = 1000000\n[rate_limits]\nurl = \"redis://{}\"\n", relay.address());
    let gateway = TestGateway::start(&toml).await?;
    wait_until_ready(&gateway.server, false).await?;
    relay.set(Network::Frozen);
    let began = Instant::now();
    for _ in 0..50 {
        gateway.server.send(&count(&gateway.inference.secret)).await?.ok()?;
    }
    // Fifty timeouts of 50 ms would be 2.5 s; a busy machine gets the rest.
    ensure!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    wait_until_ready(&gateway.server, true).await?;
    let status = gateway.instance.json(&["status"]).await?;
    let stores = status["servers"][0]["stores"].as_array().context("no stores")?;
    let store = stores.iter().find(|store| store["name"] == "rate_limits").context("no rate limits")?;
    ensure!(store["ready"] == false && status["servers"][0]["state"] == "degraded", "{status}");
    relay.set(Network::Up);
    wait_until_ready(&gateway.server, false).await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn killed_server_is_replaced_by_shares_until_it_is_back() -> Result<()> {
    let valkey = Valkey::start()?;
    let toml = format!("[limits]\nrequests_per_minute = 6\n{}", section(&valkey.url(), ""));
    let gateway = TestGateway::start(&toml).await?;
    let beside = gateway.instance.serve_beside().await?;
    valkey.kill()?;
    for server in [&gateway.server, &beside] {
        wait_until_ready(server, true).await?;
        wait_for_share(&gateway.instance, server, 3).await?;
    }
    valkey.restart()?;
    for server in [&gateway.server, &beside] {
        wait_until_ready(server, false).await?;
    }
    let key = gateway.instance.inference_key().await?;
    let both = accepted(&gateway.server, &key.secret, 10).await? + accepted(&beside, &key.secret, 10).await?;
    ensure!((6..=7).contains(&both), "{both} were accepted by the server");
    beside.stop().await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn lost_server_rejects_limited_requests_if_configured() -> Result<()> {
    let valkey = Valkey::start()?;
    let gateway = TestGateway::start(&section(&valkey.url(), "on_failure = \"reject\"\n")).await?;
    let limited = gateway.instance.key(&["--name", "limited", "--rpm", "1000"]).await?;
    gateway.server.send(&count(&limited.secret)).await?.ok()?;
    valkey.stop();
    wait_until_ready(&gateway.server, true).await?;
    for _ in 0..5 {
        let reply = gateway.server.send(&count(&limited.secret)).await?;
        reply.envelope(503)?;
        ensure!(reply.header("retry-after").parse::<u64>()? >= 1, "{}", reply.header("retry-after"));
    }
    gateway.server.send(&count(&gateway.inference.secret)).await?.ok()?;
    gateway.server.send(&count(&gateway.management.secret)).await?.ok()?;
    valkey.restart()?;
    wait_until_ready(&gateway.server, false).await?;
    gateway.server.send(&count(&limited.secret)).await?.ok()?;
    gateway.server.stop().await
}

#[tokio::test]
async fn missing_server_does_not_prevent_the_start() -> Result<()> {
    let valkey = Valkey::start()?;
    valkey.stop();
    let url = valkey.url();
    let local = TestGateway::start(&format!("[limits]\nrequests_per_minute = 6\n{}", section(&url, ""))).await?;
    wait_until_ready(&local.server, true).await?;
    let log = local.server.output();
    ensure!(log.contains("shared rate limits unavailable") && log.contains("on_failure=\"local\""), "{log}");
    let key = local.instance.inference_key().await?;
    let alone = accepted(&local.server, &key.secret, 10).await?;
    ensure!((6..=7).contains(&alone), "{alone} were accepted without the server");

    let strict = TestGateway::start(&section(&url, "on_failure = \"reject\"\n")).await?;
    let limited = strict.instance.key(&["--name", "limited", "--rpm", "1000"]).await?;
    strict.server.send(&count(&limited.secret)).await?.envelope(503)?;
    strict.server.send(&count(&strict.inference.secret)).await?.ok()?;

    valkey.restart()?;
    for server in [&local.server, &strict.server] {
        wait_until_ready(server, false).await?;
    }
    strict.server.send(&count(&limited.secret)).await?.ok()?;
    let other = local.instance.inference_key().await?;
    let counted = accepted(&local.server, &other.secret, 10).await?;
    ensure!((6..=7).contains(&counted), "{counted} were accepted by the server");
    local.server.stop().await?;
    strict.server.stop().await
}

#[tokio::test]
async fn unusable_server_is_a_start_error() -> Result<()> {
    let valkey = Valkey::start_with(&["--requirepass", "right-secret"])?;
    let toml = section(&valkey.url(), "password = \"env:RATES_PASSWORD\"\n");
    let mut instance = Instance::new(&toml)?;
    let missing = instance.refused_serving().await?;
    ensure!(missing.contains("rate_limits.password names an environment variable that is not set"), "{missing}");
    instance.set_env("RATES_PASSWORD", "wrong-secret");
    let wrong = instance.refused_serving().await?;
    ensure!(wrong.contains("rejects the user or the password"), "{wrong}");
    ensure!(wrong.contains("rate_limits.password names") && !wrong.contains("wrong-secret"), "{wrong}");
    let doctor = instance.run(&["doctor"]).await?;
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    ensure!(said.contains("rate limits") && said.contains("rejects the user or the password"), "{said}");
    instance.set_env("RATES_PASSWORD", "right-secret");
    let server = instance.serve().await?;
    let key = instance.inference_key().await?;
    server.send(&count(&key.secret)).await?.ok()?;
    let doctor = instance.run(&["doctor"]).await?;
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    ensure!(said.contains("can be used") && !said.contains("right-secret"), "{said}");
    server.stop().await
}
