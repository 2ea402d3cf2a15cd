//! Providers that count more tokens than the upper bound: limits stop the next request, and bounds are raised.

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use tollgate_tests::{Behaviour, Key, Server, Upstream, decisions};

use crate::gateway::{TestGateway, body, providers_toml};
use crate::limits::ensure_audit_passes;
use crate::stores::unavailable;

/// An answer with a hidden prompt: 4,000 tokens at 0.000000042 USD, for a bound of about 400 tokens.
const OVERCHARGED: &str =
    r#"{"model":"judge-1.0","answers":{"refund":{"type":"noul","noul":0.97}},"usage":{"input_tokens":4000}}"#;
const COST_PICO: i64 = 168_000_000;

async fn gateway() -> Result<(TestGateway, Upstream)> {
    let alpha = Upstream::start(Behaviour::json(OVERCHARGED)).await?;
    let toml = providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000);
    Ok((TestGateway::start(&toml).await?, alpha))
}

/// Sends requests one after the other until one is rejected; returns the number of answers.
async fn send_until_rejected(server: std::net::SocketAddr, key: &Key) -> Result<i64> {
    let call = decisions(&key.secret, body("acme/alone"));
    let mut answered = 0;
    loop {
        let reply = call.send(server).await?;
        if reply.status == 503 {
            // On a busy machine a process may report its free allowance too late.
            unavailable(&reply)?;
            continue;
        }
        if reply.status != 200 {
            reply.envelope(402)?;
            return Ok(answered);
        }
        answered += 1;
        ensure!(answered < 1_000, "the limit rejects nothing");
    }
}

#[tokio::test]
async fn client_in_sequence_stops_at_its_limit() -> Result<()> {
    let (gateway, _alpha) = gateway().await?;
    let key = gateway.instance.key(&["--name", "limited", "--limit-usd", "0.001"]).await?;
    let answered = send_until_rejected(gateway.server.address(), &key).await?;
    ensure!(answered == 5, "{answered} answers of 0.000168 USD within 0.001 USD");
    ensure_audit_passes(&gateway.instance).await?;
    Ok(())
}

#[tokio::test]
async fn limit_is_exceeded_by_requests_in_flight_alone() -> Result<()> {
    const CLIENTS: i64 = 4;
    let (gateway, _alpha) = gateway().await?;
    let second = gateway.instance.serve_beside().await?;
    let key = gateway.instance.key(&["--name", "limited", "--limit-usd", "0.01"]).await?;
    let mut clients = JoinSet::new();
    for address in [&gateway.server, &second].map(Server::address) {
        for _ in 0..CLIENTS {
            let key = key.clone();
            clients.spawn(async move { send_until_rejected(address, &key).await });
        }
    }
    let mut answered = 0;
    while let Some(client) = clients.join_next().await {
        answered += client??;
    }
    let limit = 10_000_000_000;
    let spent = answered * COST_PICO;
    ensure!(spent <= limit + 2 * CLIENTS * COST_PICO, "{answered} answers cost {spent} of {limit}");
    ensure!(spent > limit / 2, "the limit was hardly used: {answered} answers");
    ensure_audit_passes(&gateway.instance).await?;
    Ok(())
}

#[tokio::test]
async fn second_request_holds_the_raised_bound_which_is_shown_and_logged_once() -> Result<()> {
    let (gateway, _alpha) = gateway().await?;
    // Room for one charge, and for another hold of the configured bound.
    let key = gateway.instance.key(&["--name", "limited", "--limit-usd", "0.0003"]).await?;
    ensure!(send_until_rejected(gateway.server.address(), &key).await? == 1, "the second request exceeds the limit");
    for _ in 0..3 {
        gateway.decide(body("acme/alone")).await?;
    }
    let listed = gateway.instance.json(&["endpoint", "list", "--model", "acme/alone"]).await?;
    let health = &listed["data"][0]["health"][0];
    ensure!(health["bound_ratio"].as_f64().is_some_and(|ratio| ratio > 5.0), "{listed}");
    ensure!(health["bound_extra_tokens"].as_u64().is_some_and(|tokens| tokens > 3_000), "{listed}");
    let log = gateway.server.output();
    let raised = log.lines().filter(|line| line.contains("bound raised")).collect::<Vec<_>>();
    let [line] = raised[..] else { anyhow::bail!("{} lines: {log}", raised.len()) };
    ensure!(line.contains("alpha") && line.contains("ratio"), "{line}");
    Ok(())
}
